// SPDX-License-Identifier: Apache-2.0
// How a target PDC stands: what an ACK of it holds at any time, as far as heddle_cack allows. Combinational.
//
// Error:  the stored error answer goes with every ACK that reaches up to it, so that a lost one is
//         repeated by whatever asks next. Otherwise a default response.
// Selective: of an unordered PDC, to a SYN and with congestion control, it is an ACK_CC whose bitmap has all that came, what is
//            held back too.

module heddle_standing
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  target_pdc_t entry_i,
  input  response_t   rsp_i,    // Addresses of the answer.
  input  logic        syn_i,    // To a packet that may have opened the PDC: the answer states how far it may go.
  input  logic        ruled_i,  // Congestion control: the answer says what came, and that it came just now.
  input  logic [31:0] cack_i,   // heddle_cack, of this entry.
  input  logic        to_error_i,
  output response_t   rsp_o
);
  logic [31:0] held_back;  // PSNs between `cack_i` and the expected one: expected - 1 - cack.
  assign held_back = entry_i.expected + ~cack_i;

  logic [31:0] rounded;
  assign rounded = entry_i.received + 32'd255;

  always_comb begin
    rsp_o            = rsp_i;
    rsp_o.kind       = ResponseAck;
    rsp_o.cack       = cack_i;
    rsp_o.rod        = !entry_i.rud;
    if (entry_i.rud || ruled_i || syn_i) begin
      rsp_o.cc          = 1'b1;
      rsp_o.sack_bitmap = held_back < 32'(PdcWindow) ?
                          ~(~entry_i.ahead << held_back[$clog2(PdcWindow)-1:0]) : '1;
    end
    if (ruled_i) begin
      rsp_o.service_time = 16'd1;
      rsp_o.rcvd_bytes   = rounded[31:8];
    end
    rsp_o.ack_offset = '0;
    rsp_o.response   = SesResponseDefaultResponse;
    if (to_error_i) begin
      rsp_o.ack_offset  = 16'd1;
      rsp_o.req         = AckReqClear;
      rsp_o.response    = SesResponseResponse;
      rsp_o.return_code = entry_i.stored_code;
      rsp_o.message_id  = entry_i.stored_message;
      rsp_o.job_id      = entry_i.stored_job;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{entry_i, rounded[7:0]};
endmodule
