// SPDX-License-Identifier: Apache-2.0
// Descriptor fetch, flows and spilling as in the NIC. Each operation gets the message table entry `msg_index_i`.

module tx_waits_probe
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter int unsigned DataW = 512
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  doorbell_t        db_i,
  input  push_t            push_i,
  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  output logic             op_valid_o,
  input  logic             op_ready_i,
  output tx_op_t           op_o,
  input  logic [MsgW-1:0]  msg_index_i,
  input  logic [NumCq-1:0] credit_ok_i,
  input  logic             group_i,
  input  logic [TxW-1:0]   group_ctx_i,
  input  logic [GroupW-1:0] group_number_i,
  input  logic             drained_i,

  input  logic [NumTx-1:0][15:0] head_i,
  input  logic             enq_i,
  input  logic [MsgW-1:0]  enq_msg_i,
  input  logic [PdcW-1:0]  enq_pdc_i,
  input  logic             pop_i,
  input  logic             free_i,
  input  logic [MsgW-1:0]  free_msg_i,
  input  logic [TxW-1:0]   free_ctx_i,
  input  logic [NumPdc-1:0] stuck_i,

  output logic             give_valid_o,
  input  logic             give_ready_i,
  output tx_give_t         give_o,
  input  logic             give_done_i,
  input  logic             give_ok_i,
  output logic             owe_o,
  output logic [MsgW-1:0]  owe_msg_o,
  output logic             move_o,
  output logic [MsgW-1:0]  move_msg_o,
  output logic [RingLog2Max-1:0] move_slot_o,

  output logic             spill_rd_valid_o,
  input  logic             spill_rd_ready_i,
  output dma_req_t         spill_rd_req_o,
  input  logic             spill_rd_rsp_valid_i,
  output logic             spill_rd_rsp_ready_o,
  input  logic [DataW-1:0] spill_rd_rsp_data_i,
  input  logic             spill_rd_rsp_last_i,
  input  logic             spill_rd_rsp_error_i,
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic [NumTx-1:0] in_nic_o,
  output logic [NumTx-1:0][SpillAreaW-1:0] nic_area_o,
  input  logic             pay_valid_i,
  input  spill_read_t      pay_i,
  output logic             pay_rsp_valid_o,
  input  logic             pay_rsp_ready_i,
  output logic [DataW-1:0] pay_rsp_data_o,
  output logic             pay_rsp_last_o,
  output logic             kept_o,      // Strobe: a descriptor waits.
  output logic [TxW-1:0]   kept_ctx_o,
  output logic [15:0]      kept_position_o,
  output logic             again_o,     // Strobe: one came back.
  output logic             idle_o
);
  logic [NumTx-1:0]            alive, busy, waits, room, early;
  logic [NumTx-1:0][GenW-1:0]  gen;
  logic [NumTx-1:0][3:0]       log2;
  logic [NumTx-1:0][63:0]      base, head_cell;
  logic [NumTx-1:0][7:0]       owner;
  logic [NumTx-1:0][15:0]      tail;
  logic [NumTx-1:0][$bits(tx_counters_t)-1:0] counters;
  logic [FlowW-1:0]            look_flow, flow, wake_flow;
  logic [$clog2(MessageShare):0] look_count;
  logic                        look_stuck, look_waits, take, forget, ready, stir_flows, stir_spill;
  logic [TxW-1:0]              forget_ctx, av_ctx;
  logic                        again_valid, again_seen, again_taken, again_holds, put, pop, some, flow_room, wake_valid, wake_take, renew;
  logic                        barred, av_invalidate, credit_take, idle_fetch, idle_flows, idle_spill;
  tx_keep_t                    kept;
  tx_again_t                   again;
  logic [RingLog2Max-1:0]      number, put_number, first, next, popped, behind;
  logic [AgainW-1:0]           ahead;
  logic                        last;
  tx_wait_t                    waiting;
  logic [NumTx-1:0]            closed, keep_ok;
  logic                        keep;
  tx_keep_t                    keep_data;
  logic [CqW-1:0]              credit_cq;
  logic [NumStat-1:0]          stat_fetch;

  logic         put_begin, put_valid, put_last, put_ok;
  logic [511:0] pushed;

  logic        msg_valid;
  msg_packet_t msg_packet;
  msg_done_t   msg_done;
  tx_fetched_t fetched;
  assign op_o = fetched.op;
  assign msg_valid = op_valid_o && op_ready_i && !op_o.token;
  always_comb begin
    msg_packet          = '0;
    msg_packet.ctx      = op_o.ctx;
    msg_packet.flags    = op_o.flags;
    msg_packet.iova     = op_o.iova;
    msg_done            = '0;
    msg_done.ctx        = op_o.ctx;
    msg_done.gen        = op_o.gen;
    msg_done.owner      = op_o.owner;
    msg_done.position   = op_o.position;
    msg_done.slots      = op_o.slots;
    msg_done.flags      = op_o.flags;
    msg_done.length     = op_o.length;
  end

  heddle_tx_fetch #(.DataW(DataW)) u_fetch (
    .clk_i, .rst_ni, .db_valid_i, .db_ready_o, .db_i, .push_i, .tbl_valid_i, .tbl_req_i, .tbl_rsp_o,
    .rd_valid_o, .rd_ready_i, .rd_req_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i,
    .rd_rsp_last_i, .rd_rsp_error_i, .op_valid_o, .op_ready_i, .op_o(fetched),
    .put_tag_i('0), .put_begin_o(put_begin), .put_valid_o(put_valid), .put_last_o(put_last),
    .put_ok_o(put_ok), .put_o(pushed),
    .av_invalidate_o(av_invalidate), .av_ctx_o(av_ctx), .credit_ok_i, .cq_gen_i('0),
    .credit_take_o(credit_take), .credit_cq_o(credit_cq),
    .retire_i(free_i), .retire_ctx_i(free_ctx_i), .retire_gen_i('0),
    .ctx_error_i(1'b0), .ctx_error_ctx_i('0), .ctx_error_gen_i('0),
    .group_i, .group_ctx_i, .group_number_i, .drained_i, .busy_i(busy),
    .look_flow_o(look_flow), .look_count_i(look_count), .look_stuck_i(look_stuck),
    .look_waits_i(look_waits), .take_o(take), .forget_o(forget), .forget_ctx_o(forget_ctx),
    .waits_i(waits), .flows_ready_i(ready), .stir_i(stir_flows || stir_spill),
    .keep_o(keep), .keep_data_o(keep_data), .keep_ok_i(keep_ok),
    .again_valid_i(again_valid), .again_i(again), .again_seen_o(again_seen),
    .again_taken_o(again_taken), .again_holds_o(again_holds), .room_o(room),
    .alive_o(alive), .gen_o(gen), .head_cell_o(head_cell), .ring_log2_o(log2),
    .spill_base_o(base), .early_o(early), .owner_o(owner), .tail_o(tail), .counters_o(counters),
    .stat_o(stat_fetch), .idle_o(idle_fetch)
  );

  heddle_tx_flows u_flows (
    .clk_i, .rst_ni, .look_flow_i(look_flow), .look_count_o(look_count),
    .look_stuck_o(look_stuck), .look_waits_o(look_waits), .take_i(take), .forget_i(forget),
    .forget_ctx_i(forget_ctx), .waits_o(waits),
    .keep_i(keep), .keep_data_i(keep_data), .keep_ok_o(keep_ok), .ring_log2_i(log2), .closed_i(closed),
    .msg_valid_i(msg_valid), .msg_index_i,
    .msg_flow_i(flow_of(op_o.ctx, op_o.peer, op_o.rx_index, op_o.rud)),
    .msg_sends_i(op_o.status == StatusOk && op_o.opcode != OpcodeNop),
    .enq_i, .enq_msg_i, .enq_pdc_i, .free_i, .free_msg_i, .stuck_i,
    .put_o(put), .put_data_o(kept), .put_number_o(put_number),
    .flow_i(flow), .head_o(first), .number_i(number), .info_o(waiting), .last_o(last), .next_o(next),
    .pop_i(pop), .pop_number_i(popped), .pop_next_i(behind), .ahead_i(ahead), .some_o(some), .room_o(flow_room),
    .wake_valid_o(wake_valid), .wake_flow_o(wake_flow), .wake_take_i(wake_take),
    .renew_i(renew), .barred_i(barred), .open_i(room), .stir_o(stir_flows), .ready_o(ready),
    .idle_o(idle_flows)
  );

  heddle_tx_spill #(.DataW(DataW)) u_spill (
    .clk_i, .rst_ni, .alive_i(alive), .gen_i(gen), .ring_log2_i(log2), .spill_base_i(base), .early_i(early),
    .owner_i(owner), .tail_i(tail), .head_i, .told_i(head_i),
    .msg_valid_i(msg_valid), .msg_index_i, .msg_packet_i(msg_packet), .msg_done_i(msg_done),
    .enq_i, .enq_msg_i, .enq_pdc_i, .pop_i, .pop_msg_i(free_msg_i), .done_i(free_i),
    .done_msg_i(free_msg_i), .free_i, .free_msg_i, .stuck_i,
    .owe_o, .owe_msg_o, .give_valid_o, .give_ready_i, .give_o, .give_done_i, .give_ok_i,
    .put_i(put), .put_data_i(kept), .put_number_i(put_number), .closed_o(closed),
    .again_valid_o(again_valid), .again_o(again), .again_seen_i(again_seen),
    .again_taken_i(again_taken), .again_holds_i(again_holds), .room_i(room),
    .flow_o(flow), .first_i(first), .number_o(number), .wait_i(waiting), .last_i(last), .next_i(next),
    .pop_o(pop), .pop_number_o(popped), .pop_next_o(behind), .ahead_o(ahead), .some_i(some), .flow_room_i(flow_room),
    .wake_valid_i(wake_valid), .wake_flow_i(wake_flow), .wake_take_o(wake_take),
    .renew_o(renew), .barred_o(barred), .stir_o(stir_spill),
    .move_o, .move_msg_o, .move_slot_o, .seq_issued_i('0), .seq_done_i('0),
    .rd_valid_o(spill_rd_valid_o), .rd_ready_i(spill_rd_ready_i), .rd_req_o(spill_rd_req_o),
    .rd_rsp_valid_i(spill_rd_rsp_valid_i), .rd_rsp_ready_o(spill_rd_rsp_ready_o),
    .rd_rsp_data_i(spill_rd_rsp_data_i), .rd_rsp_last_i(spill_rd_rsp_last_i),
    .rd_rsp_error_i(spill_rd_rsp_error_i),
    .wr_valid_o, .wr_ready_i, .wr_req_o, .wr_data_valid_o, .wr_data_ready_i, .wr_data_o,
    .wr_rsp_valid_i, .wr_rsp_error_i, .in_nic_o, .nic_area_o,
    .pay_valid_i, .pay_i, .pay_rsp_valid_o, .pay_rsp_ready_i, .pay_rsp_data_o, .pay_rsp_last_o,
    .busy_o(busy), .idle_o(idle_spill)
  );

  assign kept_o  = put;
  assign kept_ctx_o      = kept.ctx;
  assign kept_position_o = kept.position;
  assign again_o = pop;
  assign idle_o  = idle_fetch && idle_flows && idle_spill;

  logic unused;
  assign unused = ^{av_invalidate, av_ctx, credit_take, credit_cq, head_cell, counters, stat_fetch,
                    put_begin, put_valid, put_last, put_ok, pushed, fetched.av_base, fetched.av_entries};
endmodule
