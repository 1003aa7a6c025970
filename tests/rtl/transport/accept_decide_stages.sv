// SPDX-License-Identifier: Apache-2.0
// The stages of a decision of heddle_accept, one after the other without registers.

module accept_decide_stages
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import accept_verdict_pkg::*;
(
  input  port_cfg_t   port_i,
  input  logic        ruled_i,
  input  logic [15:0] now_i,
  input  logic        forget_i,
  input  rx_packet_t  pkt_i,
  input  logic [PdcW-1:0] pdc_i,
  input  logic        hit_i,
  input  logic        room_i,
  input  logic        closed_i,
  input  logic        grave_i,
  input  target_pdc_t entry_i,
  input  logic        looked_i,
  input  logic [TableMessageW-1:0] place_i,
  input  target_message_t message_i,
  input  logic        named_i,
  input  logic        look_hit_i,
  input  return_code_e look_miss_i,
  input  logic [23:0] look_job_i,
  input  logic        look_event_i,
  input  logic        listens_i,
  input  rma_answer_t region_i,
  input  logic        return_room_i,
  input  logic        report_room_i,
  input  logic        head_valid_i,
  input  rx_buffer_t  head_i,
  input  logic [15:0] head_released_i,
  input  logic        head_spare_i,
  input  logic [NumRx-1:0]           rx_alive_i,
  input  logic [NumRx-1:0][GenW-1:0] rx_gen_i,
  input  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] rx_counters_i,
  input  logic [NumCq-1:0]           credit_ok_i,
  input  logic [NumCq-1:0]           credit_spare_i,
  input  reorder_t    reorder_i,

  output verdict_t    verdict_o
);
  accept_class_t    class_;
  accept_decision_t decision;
  accept_effect_t   effect;
  target_pdc_t      judged, after, written;
  target_message_t  own, message;
  response_t        rsp;
  place_t           record;
  return_job_t      job;
  ack_event_t       ack;
  logic [31:0]      cack;
  logic             to_error, placing, forward;
  heddle_accept_class u_class (
    .port_i, .job_i(forget_i ? JobForget : JobNone), .reaps_i(1'b0), .pkt_i, .pdc_i, .hit_i, .room_i, .closed_i, .grave_i, .entry_i, .whole_i(entry_i),
    .looked_i, .place_i, .message_i, .named_i, .look_hit_i, .look_miss_i, .look_ctx_i(head_i.ctx),
    .look_owner_i(head_i.owner), .look_job_i, .look_event_i, .listens_i, .region_i, .rx_alive_i, .rx_gen_i,
    .rx_counters_i, .class_o(class_), .entry_o(judged), .own_o(own)
  );
  heddle_accept_outcome u_outcome (
    .ruled_i, .pkt_i, .class_i(class_), .entry_i(judged), .looked_i, .ctx_i(head_i.ctx), .return_room_i, .report_room_i,
    .head_valid_i, .head_spare_i, .credit_ok_i(credit_ok_i[head_i.cq]), .credit_spare_i(credit_spare_i[head_i.cq]),
    .reorder_i, .decision_o(decision)
  );
  heddle_accept_entry u_entry (
    .port_i, .now_i, .pkt_i, .class_i(class_), .decision_i(decision), .entry_i(judged), .own_i(own), .place_i,
    .head_i, .head_released_i, .region_counter_i(region_i.counter), .seen_psn_i('0), .rx_counters_i,
    .effect_o(effect), .after_o(after), .entry_o(written), .message_o(message)
  );
  heddle_cack u_cack (.entry_i(after), .cack_o(cack), .to_error_o(to_error));
  heddle_accept_answer u_answer (
    .ruled_i, .pkt_i, .class_i(class_), .decision_i(decision), .effect_i(effect), .after_i(after), .cack_i(cack),
    .to_error_i(to_error), .pdc_i, .place_i,
    .region_i, .rsp_o(rsp), .place_o(placing), .record_o(record), .job_o(job)
  );
  heddle_accept_forward u_forward (.pkt_i, .class_i(class_), .valid_o(forward), .ack_o(ack));

  always_comb begin
    verdict_o         = '0;
    verdict_o.respond = effect.respond;
    verdict_o.rsp     = rsp;
    verdict_o.place   = placing;
    verdict_o.record  = record;
    verdict_o.hand    = effect.hand;
    verdict_o.job     = job;
    verdict_o.forward = forward;
    verdict_o.ack     = ack;
    verdict_o.heard   = effect.heard;
    verdict_o.write   = effect.write;
    verdict_o.entry   = written;
    verdict_o.keep    = effect.keep;
    verdict_o.message = message;
    verdict_o.reap    = effect.reap;
    verdict_o.create  = effect.create;
    verdict_o.close   = effect.close;
    verdict_o.bury    = effect.bury;
    verdict_o.full    = effect.full;
    verdict_o.reorder = decision.outcome == OutcomeReorder;
    verdict_o.take    = decision.take;
    verdict_o.credit  = decision.credit;
    verdict_o.stat    = effect.stat;
  end
endmodule
