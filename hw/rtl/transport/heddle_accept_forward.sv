// SPDX-License-Identifier: Apache-2.0
// An ACK or NACK for a PDC of ours, as heddle_pdc_tx and heddle_return_tx take it from heddle_accept. Combinational.

`include "heddle_assert.svh"

module heddle_accept_forward
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  rx_packet_t    pkt_i,
  input  accept_class_t class_i,
  output logic          valid_o,   // It is one.
  output ack_event_t    ack_o
);
  assign valid_o = class_i.settled && class_i.outcome == OutcomeForward;
  always_comb begin
    ack_o             = '0;
    ack_o.nack        = class_i.is_nack || class_i.is_ask;
    ack_o.ask         = class_i.is_ask;
    ack_o.pdc         = pkt_i.dpdcid[PdcW-1:0];
    ack_o.dpdcid      = pkt_i.dpdcid;
    ack_o.spdcid      = pkt_i.spdcid;
    ack_o.fa          = pkt_i.source_fa;
    ack_o.cack        = pkt_i.psn;
    ack_o.psn         = class_i.is_nack ? pkt_i.psn : pkt_i.psn + 32'($signed(pkt_i.offset));
    ack_o.req         = !class_i.is_ask ? pkt_i.req :
                        pkt_i.next_hdr == CpTypeCloseRequest ? AckReqClose : AckReqClear;
    ack_o.code        = pkt_i.nack_code;
    ack_o.return_code = pkt_i.return_code;
    ack_o.m           = pkt_i.m;
    ack_o.retx        = pkt_i.retx;
    if (pkt_i.pds_type == PdsTypeAckCc) begin
      ack_o.sack         = 1'b1;
      ack_o.range        = pkt_i.nack_code;
      ack_o.sack_base    = pkt_i.psn + 32'($signed(pkt_i.sack_offset));
      ack_o.sack_bitmap  = pkt_i.match_bits;
      ack_o.service_time = pkt_i.header_data[63:48];
      ack_o.rcvd_bytes   = pkt_i.header_data[39:16];
    end
    ack_o.data        = class_i.is_ack && pkt_i.next_hdr == NextHdrResponseData;
  end

  logic unused_bits;
  assign unused_bits = ^{pkt_i, class_i};
endmodule
