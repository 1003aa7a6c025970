// SPDX-License-Identifier: Apache-2.0
// The initiator half of the transport (tx_msg, pdc_tx, pdc_walk, read_ends) with flat ports for a test.

module initiator_probe
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        tick_i,
  input  logic [31:0] safety_ticks_i,
  input  logic [31:0] idle_ticks_i,
  input  logic [31:0] cwnd_bytes_i,
  input  logic [31:0] base_rtt_ns_i,  // 0: the window is fixed.
  input  logic [31:0] now_ns_i,
  input  logic [31:0] pdc_seed_i,
  input  logic        close_i,
  output logic [8:0]  open_pdcs_o,

  // Operation.
  input  logic        op_valid_i,
  output logic        op_ready_o,
  input  logic        op_token_i,
  input  logic [7:0]  op_status_i,
  input  logic [7:0]  op_opcode_i,
  input  logic [31:0] op_peer_i,      // Also the peer's fabric address.
  input  logic [31:0] op_length_i,
  input  logic [63:0] op_context_i,
  input  logic        op_rud_i,
  input  logic        op_rel_i,
  input  logic [11:0] op_rx_index_i,
  input  logic [11:0] op_source_ri_i,
  input  logic [23:0] op_job_id_i,
  output logic        wr_o,
  output logic [9:0]  wr_msg_o,
  output logic [63:0] wr_context_o,

  output logic        open_o,
  output logic [7:0]  open_pdc_o,
  output logic [15:0] open_spdcid_o,
  output logic [31:0] open_psn_o,
  output logic [31:0] open_fa_o,
  output logic        open_rud_o,

  input  logic        pause_i,
  output logic        pkt_valid_o,
  input  logic        pkt_ready_i,
  output logic [7:0]  pkt_pdc_o,
  output logic [9:0]  pkt_msg_o,
  output logic [31:0] pkt_psn_o,
  output logic [21:0] pkt_index_o,
  output logic        pkt_last_o,
  output logic        pkt_syn_o,
  output logic        pkt_retx_o,
  output logic        pkt_ar_o,
  output logic        pkt_failed_o,
  output logic        pkt_close_o,
  output logic        pkt_clear_o,
  output logic        pkt_ask_o,
  output logic [31:0] pkt_clear_psn_o,
  output logic [15:0] pkt_tpdcid_o,
  input  logic [15:0] seq_done_i,
  output logic [15:0] seq_issued_o,

  input  logic [NumPdc-1:0] gaps_i,  // In the return direction.
  input  logic        fail_i,
  input  logic [9:0]  fail_msg_i,

  input  logic        ack_valid_i,
  output logic        ack_ready_o,
  input  logic        ack_nack_i,
  input  logic        ack_ask_i,
  input  logic [15:0] ack_dpdcid_i,
  input  logic [15:0] ack_spdcid_i,
  input  logic [31:0] ack_fa_i,
  input  logic [31:0] ack_cack_i,
  input  logic [31:0] ack_psn_i,
  input  logic [7:0]  ack_code_i,
  input  logic [5:0]  ack_return_code_i,
  input  logic [1:0]  ack_req_i,
  input  logic        ack_sack_i,
  input  logic [7:0]  ack_range_i,
  input  logic [31:0] ack_sack_base_i,
  input  logic [63:0] ack_sack_bitmap_i,
  input  logic        ack_data_i,
  input  logic        ack_m_i,
  input  logic        ack_retx_i,

  output logic [255:0] alive_o,       // PDCs that take return data.
  input  logic        taken_i,        // Return data of a READ were taken,
  input  logic [9:0]  taken_msg_i,
  input  logic        settle_i,       // and are in memory.
  input  logic [15:0] settle_spdcid_i,
  input  logic [9:0]  settle_msg_i,
  input  logic        settle_refused_i,
  input  logic        settle_fail_i,
  input  logic [5:0]  settle_code_i,
  input  logic [15:0] back_decided_i,
  input  logic [15:0] back_done_i,
  output logic        cut_o,          // No more packets than these settle.
  output logic [9:0]  cut_msg_o,
  output logic [22:0] cut_packets_o,

  output logic        done_valid_o,
  input  logic        done_ready_i,
  output logic        done_token_o,
  output logic [9:0]  done_msg_o,
  output logic [7:0]  done_status_o,
  output logic [15:0] done_detail_o,
  input  logic        free_i,
  input  logic [9:0]  free_msg_i,

  output logic [63:0] stat_o,
  output logic        idle_o,
  output logic        deadline_valid_o,
  output logic [31:0] deadline_o
);
  port_cfg_t port;
  always_comb begin
    port                   = '0;
    port.payload_mtu       = 16'd1024;
    port.slot              = 8'd5;
    port.enable            = 8'd1;
    port.rto_ticks         = 32'd20;
    port.rto_max_ticks     = 32'd200;
    port.backoff_ticks     = 32'd2;
    port.backoff_max_ticks = 32'd16;
    port.dead_ticks        = 32'd1000;
    port.pdc_seed          = pdc_seed_i;
  end

  transport_cfg_t transport;
  always_comb begin
    transport              = '0;
    transport.safety_ticks = safety_ticks_i;
    transport.idle_ticks   = idle_ticks_i;
    transport.reorder      = 8'd3;
    transport.cwnd_bytes   = cwnd_bytes_i;
    transport.base_rtt_ns  = base_rtt_ns_i;
    transport.congestion   = 8'(base_rtt_ns_i != '0);
  end

  tx_resolved_t op;
  always_comb begin
    op               = '0;
    op.op.token      = op_token_i;
    op.op.status     = status_e'(op_status_i);
    op.op.opcode     = opcode_e'(op_opcode_i);
    op.op.peer       = op_peer_i;
    op.op.length     = op_length_i;
    op.op.op_context = op_context_i;
    op.op.rud        = op_rud_i;
    op.op.rel        = op_rel_i;
    op.op.rx_index   = {4'b0, op_rx_index_i};
    op.op.source_ri  = op_source_ri_i;
    op.op.job_id     = op_job_id_i;
    op.fa            = {96'b0, op_peer_i};
  end

  msg_packet_t wr_packet;
  msg_done_t   wr_done;
  assign wr_context_o = wr_done.op_context;

  pdc_peer_t  open_peer;
  logic       open_valid, open_ready, open_again;
  assign open_o        = open_valid && open_ready;
  assign open_spdcid_o = open_peer.spdcid;
  assign open_psn_o    = open_peer.start_psn;
  assign open_fa_o     = open_peer.fa[31:0];
  assign open_rud_o    = open_peer.rud;

  logic            enq_valid, enq_ready, straight_valid, walked_valid;
  logic [PdcW-1:0] enq_pdc;
  logic [MsgW-1:0] enq_msg;
  logic [PktW-1:0] enq_last;
  logic            enq_read, enq_rma;
  tx_done_t        straight, walked, done;
  logic            unmap_valid, unmap_ready, unmap_keep, pdc_free, reopen_valid, reopen_ready;
  logic [PdcW-1:0] unmap_pdc, pdc_free_pdc, reopen_pdc;
  logic            idle_msg, idle_walk, idle_pdc, waits;
  logic [WantW-1:0] want;
  logic             pdc_deadline_valid;
  logic [31:0]      pdc_deadline;
  assign deadline_valid_o = pdc_deadline_valid || waits;
  assign deadline_o       = waits ? 32'd1 : pdc_deadline;

  logic              pdc_scarce;
  logic [NumPdc-1:0] pdc_full;
  heddle_tx_msg u_tx_msg (
    .clk_i, .rst_ni, .tick_i, .port_i(port), .transport_i(transport),
    .op_valid_i, .op_ready_o, .op_i(op),
    .wr_o, .wr_msg_o, .wr_packet_o(wr_packet), .wr_done_o(wr_done),
    .open_valid_o(open_valid), .open_ready_i(open_ready), .open_pdc_o,
    .open_again_o(open_again), .open_peer_o(open_peer),
    .enq_valid_o(enq_valid), .enq_ready_i(enq_ready), .full_i(pdc_full), .scarce_i(pdc_scarce), .enq_pdc_o(enq_pdc),
    .enq_msg_o(enq_msg), .enq_last_o(enq_last), .enq_read_o(enq_read), .enq_rma_o(enq_rma),
    .done_valid_o(straight_valid), .done_ready_i(done_ready_i && !walked_valid),
    .done_o(straight),
    .free_i, .free_msg_i,
    .unmap_valid_i(unmap_valid), .unmap_ready_o(unmap_ready), .unmap_pdc_i(unmap_pdc),
    .unmap_keep_i(unmap_keep),
    .pdc_free_i(pdc_free), .pdc_free_pdc_i(pdc_free_pdc),
    .reopen_valid_i(reopen_valid), .reopen_ready_o(reopen_ready), .reopen_pdc_i(reopen_pdc),
    .want_o(want), .seq_issued_i(seq_issued_o), .seq_done_i,
    .waits_o(waits), .idle_o(idle_msg)
  );

  ack_event_t ack;
  always_comb begin
    ack             = '0;
    ack.nack        = ack_nack_i;
    ack.ask         = ack_ask_i;
    ack.pdc         = ack_dpdcid_i[PdcW-1:0];
    ack.dpdcid      = ack_dpdcid_i;
    ack.spdcid      = ack_spdcid_i;
    ack.fa          = {96'b0, ack_fa_i};
    ack.cack        = ack_cack_i;
    ack.psn         = ack_psn_i;
    ack.code        = ack_code_i;
    ack.return_code = ack_return_code_i;
    ack.req         = ack_req_i;
    ack.sack        = ack_sack_i;
    ack.range       = ack_range_i;
    ack.sack_base   = ack_sack_base_i;
    ack.sack_bitmap = ack_sack_bitmap_i;
    ack.data        = ack_data_i;
    ack.m           = ack_m_i;
    ack.retx        = ack_retx_i;
  end

  tx_packet_t pkt;
  assign pkt_pdc_o    = pkt.pdc;
  assign pkt_msg_o    = pkt.msg;
  assign pkt_psn_o    = pkt.psn;
  assign pkt_index_o  = pkt.index;
  assign pkt_last_o   = pkt.last;
  assign pkt_syn_o    = pkt.syn;
  assign pkt_retx_o   = pkt.retx;
  assign pkt_ar_o     = pkt.ar;
  assign pkt_failed_o = pkt.failed;
  assign pkt_close_o  = pkt.control && pkt.cp_type == CpTypeCloseCommand;
  assign pkt_clear_o  = pkt.control && pkt.cp_type == CpTypeClearCommand;
  assign pkt_ask_o    = pkt.control && pkt.cp_type == CpTypeAckRequest;
  assign pkt_clear_psn_o = pkt.clear_psn;
  assign pkt_tpdcid_o = pkt.tpdcid;

  logic                          failed;
  logic                          refused;
  logic [MsgW-1:0]               refused_msg;
  logic                          walk_valid, walk_ready, back_valid, back_ready;
  pdc_walk_t                     walk;
  pdc_back_t                     back;
  logic                          sent, queue_held, queue_pop, queue_pass, queue_end;
  logic [MsgW-1:0]               sent_msg, queue_msg;
  logic [PdcW-1:0]               queue_pdc;
  logic [PktW-1:0]               queue_last;

  logic              due_valid, due_ready, lose_valid, lose_ready, end_valid, end_ready, idle_ends;
  return_due_t       due;
  return_end_t       walk_end;
  logic [NumMsg-1:0] answered_q;
  logic              msg_read, msg_collapsed;
  logic [MsgW-1:0]   walk_msg;
  logic [PdcWindow-1:0] held;
  logic [PdcW-1:0]   lose_pdc;
  status_e           lose_status;
  logic [15:0]       lose_detail;

  logic [NumPdc-1:0] unused_stuck;
  logic              asked, asked_first;
  return_asked_t     asked_as;
  heddle_pdc_tx u_pdc_tx (
    .clk_i, .rst_ni, .tick_i, .port_i(port), .transport_i(transport), .close_i, .now_ns_i,
    .open_valid_i(open_valid), .open_ready_o(open_ready), .open_pdc_i(open_pdc_o),
    .open_again_i(open_again), .open_peer_i(open_peer),
    .enq_valid_i(enq_valid), .enq_ready_o(enq_ready), .enq_pdc_i(enq_pdc),
    .enq_msg_i(enq_msg), .enq_last_i(enq_last), .enq_read_i(enq_read),
    .due_valid_i(due_valid), .due_ready_o(due_ready), .due_i(due), .gaps_i,
    .alive_o, .full_o(pdc_full), .stuck_o(unused_stuck), .scarce_o(pdc_scarce), .held_o(held), .open_o(open_pdcs_o),
    .look_msg_i(walk_msg), .read_o(msg_read), .collapsed_o(msg_collapsed),
    .reopen_valid_o(reopen_valid), .reopen_ready_i(reopen_ready), .reopen_pdc_o(reopen_pdc),
    .want_i(want),
    .ack_valid_i, .ack_ready_o, .ack_i(ack),
    .fail_i, .fail_msg_i, .refused_i(refused), .refused_msg_i(refused_msg),
    .failed_o(failed),
    .pkt_valid_o, .pkt_ready_i, .pause_i, .pkt_o(pkt), .seq_issued_o,
    .walk_valid_o(walk_valid), .walk_ready_i(walk_ready), .walk_o(walk),
    .back_valid_i(back_valid), .back_ready_o(back_ready), .back_i(back),
    .sent_o(sent), .sent_msg_o(sent_msg),
    .asked_o(asked), .asked_first_o(asked_first), .asked_as_o(asked_as),
    .queue_pdc_i(queue_pdc), .queue_held_o(queue_held), .queue_msg_o(queue_msg),
    .queue_last_o(queue_last), .queue_pop_i(queue_pop), .queue_pass_i(queue_pass),
    .queue_end_i(queue_end),
    .stat_o, .idle_o(idle_pdc),
    .deadline_valid_o(pdc_deadline_valid), .deadline_o(pdc_deadline)
  );

  // As heddle_return_rx keeps it.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      answered_q <= '0;
    end else begin
      if (taken_i) answered_q[taken_msg_i] <= 1'b1;
      if (asked && asked_first) answered_q[sent_msg] <= 1'b0;
      if (done_valid_o && done_ready_i && !done.token) answered_q[done.msg] <= 1'b0;
    end
  end

  heddle_pdc_walk u_pdc_walk (
    .clk_i, .rst_ni, .refused_o(refused), .refused_msg_o(refused_msg),
    .walk_valid_i(walk_valid), .walk_ready_o(walk_ready), .walk_i(walk),
    .back_valid_o(back_valid), .back_ready_i(back_ready), .back_o(back),
    .sent_i(sent), .sent_msg_i(sent_msg),
    .queue_pdc_o(queue_pdc), .queue_held_i(queue_held), .queue_msg_i(queue_msg),
    .queue_last_i(queue_last), .queue_pop_o(queue_pop), .queue_pass_o(queue_pass),
    .queue_end_o(queue_end), .enq_i(enq_valid && enq_ready), .enq_msg_i(enq_msg), .enq_rma_i(enq_rma),
    .held_i(held), .msg_o(walk_msg), .answered_i(answered_q[walk_msg]),
    .failed_i(failed), .seq_issued_i(seq_issued_o), .seq_done_i,
    .read_i(msg_read), .collapsed_i(msg_collapsed), .back_decided_i, .back_done_i,
    .lose_valid_o(lose_valid), .lose_ready_i(lose_ready), .lose_pdc_o(lose_pdc),
    .lose_status_o(lose_status), .lose_detail_o(lose_detail),
    .unmap_valid_o(unmap_valid), .unmap_ready_i(unmap_ready), .unmap_pdc_o(unmap_pdc),
    .unmap_keep_o(unmap_keep),
    .pdc_free_o(pdc_free), .pdc_free_pdc_o(pdc_free_pdc),
    .done_valid_o(end_valid), .done_ready_i(end_ready), .done_o(walk_end),
    .idle_o(idle_walk)
  );

  return_settle_t settled;
  assign settled = {settle_spdcid_i, settle_msg_i, settle_refused_i, settle_fail_i, settle_code_i};
  heddle_read_ends u_read_ends (
    .clk_i, .rst_ni,
    .begin_i(asked && asked_first), .begin_msg_i(sent_msg), .begin_spdcid_i(asked_as.spdcid),
    .cut_o, .cut_msg_o, .cut_packets_o, .back_decided_i, .back_done_i,
    .end_valid_i(end_valid), .end_ready_o(end_ready), .end_i(walk_end),
    .lose_valid_i(lose_valid), .lose_ready_o(lose_ready), .lose_pdc_i(lose_pdc),
    .lose_status_i(lose_status), .lose_detail_i(lose_detail),
    .settle_i, .settled_i(settled),
    .due_valid_o(due_valid), .due_ready_i(due_ready), .due_o(due),
    .done_valid_o(walked_valid), .done_ready_i, .done_o(walked),
    .idle_o(idle_ends)
  );

  assign done          = walked_valid ? walked : straight;
  assign done_valid_o  = walked_valid || straight_valid;
  assign done_token_o  = done.token;
  assign done_msg_o    = done.msg;
  assign done_status_o = done.status;
  assign done_detail_o = done.detail;
  assign idle_o        = idle_msg && idle_walk && idle_pdc && idle_ends && !op_valid_i;

  logic unused;
  assign unused = ^{wr_packet, wr_done, open_peer, done.ctx, done.gen, asked_as};
endmodule
