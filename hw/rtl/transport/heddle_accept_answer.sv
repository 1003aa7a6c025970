// SPDX-License-Identifier: Apache-2.0
// Last stage of a decision of heddle_accept: the answer, the record for heddle_place and the return job, of what
// was decided. Combinational.

`include "heddle_assert.svh"

module heddle_accept_answer
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic             ruled_i,       // Congestion control is on.
  input  rx_packet_t       pkt_i,
  input  accept_class_t    class_i,
  input  accept_decision_t decision_i,
  input  accept_effect_t   effect_i,
  input  target_pdc_t      after_i,       // heddle_accept_entry.
  input  logic [31:0]      cack_i,        // heddle_cack, of it: for the answer.
  input  logic             to_error_i,
  input  logic [PdcW-1:0]  pdc_i,
  input  logic [TableMessageW-1:0] place_i,
  input  rma_answer_t      region_i,

  output response_t        rsp_o,         // If effect_i.respond,
  output logic             place_o,
  output place_t           record_o,      // If place_o,
  output return_job_t      job_o          // If effect_i.hand.
);
  accept_class_t    c;
  accept_decision_t t;
  accept_effect_t   f;
  target_pdc_t      m;
  assign c = class_i;
  assign t = decision_i;
  assign f = effect_i;
  assign m = after_i;

  // Bytes that the message has placed.
  logic [31:0] limit, placed;
  logic        accepts;
  assign accepts = t.outcome == OutcomeAccept;
  assign limit   = f.failed ? m.message.bytes : m.message.request_length;
  assign placed  = limit < m.message.buffer.length ? limit : m.message.buffer.length;

  // ------------------------------------------------------------------ response
  // The content of answers without news, and how they name a PSN that they acknowledge.
  response_t   addressed, standing;
  logic [31:0] offset;
  heddle_standing u_standing (
    .entry_i(m), .rsp_i(addressed), .syn_i(pkt_i.syn && c.job == JobNone), .ruled_i, .cack_i, .to_error_i, .rsp_o(standing)
  );
  assign offset = pkt_i.psn - cack_i;

  logic is_deferrable;
  assign is_deferrable = pkt_i.opcode == SesOpcodeDeferrableSend;
  always_comb begin
    addressed            = '0;
    addressed.ipv6       = pkt_i.ipv6;
    addressed.fa         = pkt_i.source_fa;
    addressed.mac        = pkt_i.source_mac;
    addressed.entropy    = pkt_i.source_port;
    addressed.dscp       = c.trimmed ? m.dscp : pkt_i.dscp;
    addressed.m          = pkt_i.ce;
    addressed.retx       = pkt_i.retx;
    addressed.dpdcid     = pkt_i.spdcid;
    if (c.job != JobNone) begin
      addressed.ipv6     = m.ipv6;
      addressed.fa       = m.fa;
      addressed.mac      = m.mac;
      addressed.entropy  = m.entropy;
      addressed.dscp     = m.dscp;
      addressed.m        = 1'b0;
      addressed.retx     = 1'b0;
      addressed.dpdcid   = m.spdcid;
    end
    addressed.spdcid     = c.tpdcid;
    addressed.nack_psn   = t.outcome == OutcomeRefuse && c.jumps ? m.expected :
                           t.outcome == OutcomeReorder && t.alone_missing ? t.missing : pkt_i.psn;
    addressed.code       = c.job != JobNone ? '0 :
                           t.outcome == OutcomeReorder && t.alone_missing ? 8'(NackCodePktNotRcvd) : 8'(t.code);
    addressed.message_id = c.job != JobNone ? m.message.message_id : c.is_query ? pkt_i.pds_payload[15:0] : pkt_i.message_id;
  end
  always_comb begin
    rsp_o = addressed;
    unique case (t.outcome)
      OutcomeStrange: begin
        rsp_o.kind   = ResponseNack;
        rsp_o.spdcid = '0;
      end
      OutcomeOutside: begin
        rsp_o.kind   = ResponseNack;
        rsp_o.spdcid = c.fresh ? '0 : c.tpdcid;
      end
      OutcomeRefuse: begin
        rsp_o.kind = ResponseNack;
        if (t.code == NackCodeRodOoo) rsp_o.cack = m.expected;
      end
      OutcomeReorder: begin
        rsp_o.kind = ResponseNack;
        if (!t.alone_missing) rsp_o.cack = m.expected;
      end
      OutcomeClear: rsp_o = standing;
      OutcomeDuplicate, OutcomeQuery: begin
        rsp_o = standing;
        if (!to_error_i && offset[31]) rsp_o.ack_offset = offset[15:0];
        if (c.is_close) rsp_o.kind = ResponseNone;
      end
      OutcomeTell: begin
        rsp_o.kind       = c.is_probe ? ResponseNone : ResponseOffer;
        rsp_o.probe      = c.is_probe;
        rsp_o.rod        = !m.rud;
        rsp_o.cack       = cack_i;
        rsp_o.ack_offset = pkt_i.offset;
      end
      OutcomeAccept: begin
        rsp_o = standing;
        if (!to_error_i && f.names) rsp_o.ack_offset = offset[15:0];
        if (f.repeats && !to_error_i) begin
          rsp_o.response        = SesResponseResponse;
          rsp_o.return_code     = m.message.code;
          rsp_o.job_id          = pkt_i.job_id;
        end else if (f.takes && !to_error_i) begin
          rsp_o.return_code     = ReturnCodeOk;
          rsp_o.job_id          = pkt_i.job_id;
          rsp_o.modified_length = c.bare ? '0 : placed;
          // A message that is cut reports its length, but for a deferrable send, which that would defer.
          if (!c.bare && placed != m.message.request_length) begin
            if (is_deferrable) rsp_o.modified_length = '0;
            rsp_o.response    = is_deferrable ? SesResponseDefaultResponse : SesResponseResponse;
            rsp_o.return_code = is_deferrable ? ReturnCodeNull : ReturnCodeOk;
          end
        end
        if (f.refuses_next) begin
          rsp_o          = addressed;
          rsp_o.kind     = ResponseNack;
          rsp_o.retx     = 1'b1;
          rsp_o.nack_psn = pkt_i.psn + 32'd1;
          rsp_o.code     = 8'(t.lost == TrimLasthop ? NackCodeTrimmedLasthop : NackCodeTrimmed);
        end
      end
      OutcomeJob: begin
        rsp_o = standing;
        if (ruled_i && f.waited != '0) rsp_o.service_time = f.waited;
        if (c.job != JobAck && !to_error_i) rsp_o.req = AckReqClose;
      end
      OutcomeClose: begin
        rsp_o.kind = ResponseNone;
        rsp_o.cc   = m.rud || ruled_i;
        rsp_o.cack = pkt_i.psn;
      end
      default: ;
    endcase
  end

  // -------------------------------------------------------------------- record
  logic counts;
  assign counts  = f.count != '0;  // Only of an accepted packet, or one that ends its PDC.
  assign place_o = f.place || counts;
  logic [31:0] room;   // In the buffer, from `base` on.
  logic [13:0] bytes;  // To place.
  always_comb begin
    room  = '0;
    bytes = '0;
    if (f.fills) begin
      room  = m.message.buffer.length > c.base ? m.message.buffer.length - c.base : '0;
      bytes = room < 32'(pkt_i.payload_bytes) ? room[13:0] : pkt_i.payload_bytes;
    end
  end
  always_comb begin
    record_o        = '0;
    record_o.stream = c.job != JobNone ? '0 : pkt_i.payload_bytes;
    record_o.tpdc   = pdc_i;
    if (accepts || t.outcome == OutcomeClose || t.outcome == OutcomeForget) begin
      record_o.job       = f.hand;
      record_o.bytes     = bytes;
      record_o.iova      = m.message.rma ? region_i.iova : m.message.buffer.iova + 64'(c.base);
      record_o.first     = f.first;
      record_o.alone     = t.brief;
      record_o.tabled    = t.tabled || (c.job != JobNone && c.in_table);
      record_o.place     = place_i;
      record_o.complete  = f.ends || f.returned || counts;
      record_o.visible   = f.hides;
      record_o.psn       = f.last;
      record_o.ev.write  = f.ends;
      record_o.ev.credit = f.ends || f.returned;
      record_o.ev.owner  = m.message.buffer.owner;
      record_o.ev.cq     = m.message.buffer.cq;
      record_o.ev.cq_gen = m.message.buffer.cq_gen;
      record_o.ev.count  = f.count;
    end
    record_o.ev.entry.kind           = m.message.rma ? CompletionKindTarget : CompletionKindRx;
    record_o.ev.entry.opcode         = m.message.read ? OpcodeRead : m.message.rma ? OpcodeWrite : OpcodeSend;
    record_o.ev.entry.context_       = 8'(m.message.buffer.ctx);
    record_o.ev.entry.position       = m.message.buffer.position;
    record_o.ev.entry.queue_head     = m.message.queue_head;
    record_o.ev.entry.peer           = m.message.initiator;
    record_o.ev.entry.source_fa_hi   = m.fa[127:64];
    record_o.ev.entry.source_fa_lo   = m.fa[63:0];
    record_o.ev.entry.match_bits     = m.message.match_bits;
    record_o.ev.entry.header_data    = m.message.header_data;
    record_o.ev.entry.message_length = m.message.request_length;
    record_o.ev.entry.length         = placed;
    record_o.ev.entry.op_context     = m.message.buffer.op_context;
    record_o.ev.entry.flags          = (m.message.hd ? CompletionFlagHeaderData : '0) |
                                       (m.ipv6 ? CompletionFlagSourceIpv6 : '0);
    if (f.failed) begin
      record_o.ev.entry.status = StatusInitiatorError;
      record_o.ev.entry.detail = 8'(ReturnCodeInitiatorErr);
    end else if (m.message.request_length > m.message.buffer.length) begin
      record_o.ev.entry.status = StatusTruncated;
    end
  end

  // ------------------------------------------------------------------ for others
  always_comb begin
    job_o                     = '0;
    job_o.close               = f.hand && !accepts;
    job_o.open                = f.opens_return;
    job_o.lost                = t.outcome == OutcomeForget;
    job_o.tell                = f.hand && accepts && f.tells;
    job_o.report.ctx          = m.message.buffer.ctx;
    job_o.report.gen          = m.message.buffer.gen;
    job_o.report.owner        = m.message.buffer.owner;
    job_o.report.credit       = f.held_credit;
    job_o.report.cq           = m.message.buffer.cq;
    job_o.report.cq_gen       = m.message.buffer.cq_gen;
    job_o.report.queue_head   = m.message.queue_head;
    job_o.report.initiator    = m.message.initiator;
    job_o.report.key          = m.message.match_bits;
    job_o.report.bytes        = m.message.request_length;
    job_o.pdc                 = pdc_i;
    job_o.start_psn           = m.start_psn;
    job_o.route.rud           = m.rud;
    job_o.route.ipv6          = pkt_i.ipv6;
    job_o.route.fa            = pkt_i.source_fa;
    job_o.route.mac           = pkt_i.source_mac;
    job_o.route.dscp          = pkt_i.dscp;
    job_o.route.entropy       = pkt_i.source_port;
    job_o.route.spdcid        = c.tpdcid;
    job_o.route.dpdcid        = pkt_i.spdcid;
    job_o.data.iova           = region_i.iova;
    job_o.data.bytes          = pkt_i.read_bytes;
    job_o.data.owner          = region_i.owner;
    job_o.data.region         = region_i.region;
    job_o.data.message_id     = pkt_i.message_id;
    job_o.data.message_offset = pkt_i.message_offset;
    job_o.data.message_bytes  = pkt_i.request_length;
    job_o.data.job_id         = pkt_i.job_id;
  end

  logic unused_bits;
  assign unused_bits = ^{pkt_i, c, t, f, m, offset, region_i};
endmodule
