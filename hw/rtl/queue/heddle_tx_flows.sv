// SPDX-License-Identifier: Apache-2.0
// Counts each flow's messages in the table, and lists its operations that wait.
//
// Flow:     operations of a context with the same hash of peer, receive context and mode (flow_of).
// Counted:  from `take_i` until the message left the table, whatever the context's generation.
// Stuck:    the PDC of the flow's last message is (`stuck_i`), or it has none yet.
// Ordered:  operations of a flow leave its list in the order they joined it. One that joins counts from that cycle on.
// Numbered: each that waits has a number that no other of its context has, below the slots of its ring.
// Woken:    a flow whose operations wait is offered by `wake_valid_o` when one was put, and after each of its
//           messages that left the table; flows take turns.
// Released: with `forget_i` the lists of a context are empty; none joins one until their flags are cleared, a flow a cycle.
// Latency:  `look_*` in the same cycle. `head_o` one cycle after `flow_i`, `info_o` and `next_o` one after `number_i`.

`include "heddle_assert.svh"

module heddle_tx_flows
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  localparam int unsigned CountW = $clog2(MessageShare) + 1,
  localparam int unsigned SlotW  = RingLog2Max
) (
  input  logic clk_i,
  input  logic rst_ni,

  // heddle_tx_fetch: an operation of this flow is looked at, and perhaps leaves.
  input  logic [FlowW-1:0]  look_flow_i,
  output logic [CountW-1:0] look_count_o,
  output logic              look_stuck_o,
  output logic              look_waits_o,    // Others of the flow wait.
  input  logic              take_i,
  input  logic              forget_i,
  input  logic [TxW-1:0]    forget_ctx_i,
  output logic [NumTx-1:0]  waits_o,         // Operations of the context wait.
  input  logic              keep_i,          // Strobe: this one joins the list of its flow.
  input  tx_keep_t          keep_data_i,
  output logic [NumTx-1:0]  keep_ok_o,       // One of the context may.
  input  logic [NumTx-1:0][3:0] ring_log2_i,
  input  logic [NumTx-1:0]  closed_i,        // None of these contexts may.

  input  logic              msg_valid_i,     // Message table write, at allocation.
  input  logic [MsgW-1:0]   msg_index_i,
  input  logic [FlowW-1:0]  msg_flow_i,
  input  logic              msg_sends_i,     // It needs a PDC.
  input  logic              enq_i,           // It is queued on this one.
  input  logic [MsgW-1:0]   enq_msg_i,
  input  logic [PdcW-1:0]   enq_pdc_i,
  input  logic              free_i,          // It left the table.
  input  logic [MsgW-1:0]   free_msg_i,
  input  logic [NumPdc-1:0] stuck_i,

  // heddle_tx_spill.
  output logic              put_o,           // Strobe: one joined,
  output tx_keep_t          put_data_o,
  output logic [SlotW-1:0]  put_number_o,    // with this number.
  input  logic [FlowW-1:0]  flow_i,          // What follows is about this flow.
  output logic [SlotW-1:0]  head_o,          // Number of the first one.
  input  logic [SlotW-1:0]  number_i,
  output tx_wait_t          info_o,          // The operation with it,
  output logic              last_o,          // which is the last,
  output logic [SlotW-1:0]  next_o,          // or the number of the next one.
  input  logic              pop_i,           // The first one leaves. Not in the first cycle of `flow_i`.
  input  logic [SlotW-1:0]  pop_number_i,    // Its number,
  input  logic [SlotW-1:0]  pop_next_i,      // and that of the next one, if any.
  input  logic [AgainW-1:0] ahead_i,         // So many of the first are about to leave.
  output logic              some_o,          // Some wait,
  output logic              room_o,          // and one more than those may be in the table.
  output logic              wake_valid_o,
  output logic [FlowW-1:0]  wake_flow_o,
  input  logic              wake_take_i,
  input  logic              renew_i,         // Offer the flow again.
  input  logic              barred_i,        // With it: that its context has no room kept it.
  input  logic [NumTx-1:0]  open_i,          // Contexts that have.

  output logic              stir_o,          // Strobe: of the above something changed.
  output logic              ready_o,
  output logic              idle_o
);
  localparam int unsigned NumFlow = 1 << FlowW;

  // ------------------------------------------------------------- after a reset
  logic [FlowW:0]   clear_q;
  logic             clear;
  logic [FlowW-1:0] clear_flow;
  assign clear      = !clear_q[FlowW];
  assign clear_flow = clear_q[FlowW-1:0];
  assign ready_o    = !clear;

  // -------------------------------------------------------------------- counts
  // Two free-running counts: of those that were taken, and of those that ended.
  logic              free_q;
  logic [FlowW-1:0]  free_flow;
  logic [CountW-1:0] taken, taken_here, ended, ended_here, ended_free, here;
  heddle_lookup #(.Width(CountW), .Depth(NumFlow)) u_taken (
    .clk_i, .wen_i(clear || take_i), .waddr_i(clear ? clear_flow : look_flow_i),
    .wdata_i(clear ? '0 : taken + 1'b1), .raddr_i(look_flow_i), .rdata_o(taken)
  );
  heddle_lookup #(.Width(CountW), .Depth(NumFlow)) u_taken_here (
    .clk_i, .wen_i(clear || take_i), .waddr_i(clear ? clear_flow : look_flow_i),
    .wdata_i(clear ? '0 : taken + 1'b1), .raddr_i(flow_i), .rdata_o(taken_here)
  );
  heddle_lookup #(.Width(CountW), .Depth(NumFlow)) u_ended_free (
    .clk_i, .wen_i(clear || free_q), .waddr_i(clear ? clear_flow : free_flow),
    .wdata_i(clear ? '0 : ended_free + 1'b1), .raddr_i(free_flow), .rdata_o(ended_free)
  );
  heddle_lookup #(.Width(CountW), .Depth(NumFlow)) u_ended (
    .clk_i, .wen_i(clear || free_q), .waddr_i(clear ? clear_flow : free_flow),
    .wdata_i(clear ? '0 : ended_free + 1'b1), .raddr_i(look_flow_i), .rdata_o(ended)
  );
  heddle_lookup #(.Width(CountW), .Depth(NumFlow)) u_ended_here (
    .clk_i, .wen_i(clear || free_q), .waddr_i(clear ? clear_flow : free_flow),
    .wdata_i(clear ? '0 : ended_free + 1'b1), .raddr_i(flow_i), .rdata_o(ended_here)
  );
  assign look_count_o = taken - ended;
  assign here         = taken_here - ended_here;
  assign room_o       = here + CountW'(ahead_i) < CountW'(PeerShare);

  // ------------------------------------------------------- messages and their PDC
  logic             enq_q, parked_q;
  logic [PdcW-1:0]  enq_pdc_q, look_pdc;
  logic [FlowW-1:0] enq_flow, msg_flow_q;
  logic             enq_err, enq_rdy, free_err, free_rdy, named;
  heddle_mem #(.Width(FlowW), .Depth(NumMsg), .Init(1'b0)) u_enq_flow (
    .clk_i, .rst_ni, .wen_i(msg_valid_i), .waddr_i(msg_index_i), .wdata_i(msg_flow_i),
    .raddr_i(enq_msg_i), .rdata_o(enq_flow), .error_o(enq_err), .ready_o(enq_rdy)
  );
  heddle_mem #(.Width(FlowW), .Depth(NumMsg), .Init(1'b0)) u_free_flow (
    .clk_i, .rst_ni, .wen_i(msg_valid_i), .waddr_i(msg_index_i), .wdata_i(msg_flow_i),
    .raddr_i(free_msg_i), .rdata_o(free_flow), .error_o(free_err), .ready_o(free_rdy)
  );
  heddle_lookup #(.Width(1 + PdcW), .Depth(NumFlow)) u_pdc (
    .clk_i, .wen_i(clear || enq_q || parked_q),
    .waddr_i(clear ? clear_flow : enq_q ? enq_flow : msg_flow_q),
    .wdata_i({enq_q && !clear, enq_pdc_q}), .raddr_i(look_flow_i), .rdata_o({named, look_pdc})
  );
  assign look_stuck_o = !named || stuck_i[look_pdc];

  // --------------------------------------------------------------------- lists
  // One joins in three cycles: taken, what its list has is read, and put. Where another leaves meanwhile, it is read again.
  logic               keep_q, read_q, put;
  logic               joined_q;   // Where one joined is still to be offered.
  tx_keep_t           keep_data_q;
  logic [SlotW-1:0]   keep_tail, tail, next, number, used;
  logic [TxW-1:0]     ctx, keep_ctx;
  logic               head_err, head_rdy, tail_err, tail_rdy, next_err, next_rdy, info_err, info_rdy;
  logic               keep_err, keep_rdy, used_err, used_rdy;
  logic               empties;    // The only one leaves.
  logic               keep_some;  // Others wait where one joins.
  tx_wait_t           keep_info;
  logic [$bits(tx_wait_t)-1:0] info_raw;
  assign ctx          = flow_i[FlowW-1 -: TxW];
  assign keep_ctx     = keep_data_q.ctx;
  assign info_o       = tx_wait_t'(info_raw);
  assign empties      = pop_number_i == tail;
  assign last_o       = number_i == tail;
  assign next_o       = next;
  assign look_waits_o = look_waits || (keep_q && keep_data_q.flow == look_flow_i);
  assign put          = keep_q && read_q && !pop_i && !joined_q && !forget_i;
  assign keep_info    = {keep_data_q.position, keep_data_q.slots, keep_data_q.group};
  assign put_o        = put;
  assign put_data_o   = keep_data_q;
  assign put_number_o = number;

  // Whether operations of a flow wait. A context whose lists were released is swept.
  localparam int unsigned PeerFlowW = FlowW - TxW;
  logic [NumTx-1:0]     swept_q;      // Contexts that are still to be swept.
  logic                 sweep_any, sweep, sweep_last, sweeping_q, waits_ready, look_waits, free_waits;
  logic [TxW-1:0]       sweep_next, sweep_ctx_q;
  logic [PeerFlowW-1:0] sweep_q;
  logic [3:0]           waits;
  heddle_rr_pick #(.NumSrc(NumTx)) u_sweep (
    .clk_i, .rst_ni, .valid_i(swept_q), .valid_o(sweep_any), .idx_o(sweep_next), .take_i(sweep_last)
  );
  assign sweep      = sweeping_q && !(pop_i && empties);
  assign sweep_last = sweep && (&sweep_q);
  heddle_flags #(.Depth(NumFlow), .Reads(4)) u_waits (
    .clk_i, .rst_ni, .set_i(put), .set_index_i(keep_data_q.flow), .clear_i((pop_i && empties) || sweep),
    .clear_index_i(sweep ? {sweep_ctx_q, sweep_q} : flow_i),
    .index_i({free_flow, keep_data_q.flow, flow_i, look_flow_i}), .flag_o(waits), .ready_o(waits_ready)
  );
  always_ff @(posedge clk_i) begin
    if (!sweeping_q) sweep_ctx_q <= sweep_next;
  end
  assign look_waits = waits[0] && !swept_q[look_flow_i[FlowW-1 -: TxW]];
  assign some_o     = waits[1] && !swept_q[ctx];
  assign keep_some  = waits[2] && !swept_q[keep_ctx];
  assign free_waits = waits[3] && !swept_q[free_flow[FlowW-1 -: TxW]];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      swept_q    <= '0;
      sweep_q    <= '0;
      sweeping_q <= 1'b0;
    end else begin
      if (sweep) sweep_q <= sweep_q + 1'b1;
      sweeping_q <= sweeping_q ? !sweep_last : sweep_any;
      for (int unsigned i = 0; i < NumTx; i++) begin
        if (forget_i && forget_ctx_i == TxW'(i))      swept_q[i] <= 1'b1;
        else if (sweep_last && sweep_ctx_q == TxW'(i)) swept_q[i] <= 1'b0;
      end
    end
  end
  heddle_mem #(.Width(SlotW), .Depth(NumFlow), .Init(1'b0)) u_heads (
    .clk_i, .rst_ni, .wen_i((put && !keep_some) || pop_i), .waddr_i(pop_i ? flow_i : keep_data_q.flow),
    .wdata_i(pop_i ? pop_next_i : number), .raddr_i(flow_i), .rdata_o(head_o),
    .error_o(head_err), .ready_o(head_rdy)
  );
  heddle_mem #(.Width(SlotW), .Depth(NumFlow), .Init(1'b0)) u_tails (
    .clk_i, .rst_ni, .wen_i(put), .waddr_i(keep_data_q.flow), .wdata_i(number),
    .raddr_i(flow_i), .rdata_o(tail), .error_o(tail_err), .ready_o(tail_rdy)
  );
  heddle_mem #(.Width(SlotW), .Depth(NumFlow), .Init(1'b0)) u_keep_tails (
    .clk_i, .rst_ni, .wen_i(put), .waddr_i(keep_data_q.flow), .wdata_i(number),
    .raddr_i(keep_data_q.flow), .rdata_o(keep_tail), .error_o(keep_err), .ready_o(keep_rdy)
  );
  heddle_mem #(.Width(SlotW), .Depth(NumTx << SlotW), .Init(1'b0)) u_next (
    .clk_i, .rst_ni, .wen_i(put && keep_some), .waddr_i({keep_ctx, keep_tail}), .wdata_i(number),
    .raddr_i({ctx, number_i}), .rdata_o(next), .error_o(next_err), .ready_o(next_rdy)
  );
  heddle_mem #(.Width($bits(tx_wait_t)), .Depth(NumTx << SlotW), .Init(1'b0)) u_info (
    .clk_i, .rst_ni, .wen_i(put), .waddr_i({keep_ctx, number}), .wdata_i(keep_info),
    .raddr_i({ctx, number_i}), .rdata_o(info_raw), .error_o(info_err), .ready_o(info_rdy)
  );

  // Numbers: those below `fresh` were used, of these the last `spare` on the context's stack are free.
  logic [NumTx-1:0][SlotW:0] fresh_q, spare_q;
  logic [SlotW-1:0]          top;
  assign top    = spare_q[keep_ctx][SlotW-1:0] - 1'b1;
  assign number = spare_q[keep_ctx] != '0 ? used : fresh_q[keep_ctx][SlotW-1:0];
  heddle_mem #(.Width(SlotW), .Depth(NumTx << SlotW), .Init(1'b0)) u_spare (
    .clk_i, .rst_ni, .wen_i(pop_i), .waddr_i({ctx, spare_q[ctx][SlotW-1:0]}), .wdata_i(pop_number_i),
    .raddr_i({keep_ctx, top}), .rdata_o(used), .error_o(used_err), .ready_o(used_rdy)
  );
  always_comb begin
    for (int unsigned i = 0; i < NumTx; i++) begin
      waits_o[i]   = fresh_q[i] != spare_q[i] || (keep_q && keep_ctx == TxW'(i));
      keep_ok_o[i] = !keep_q && !closed_i[i] && !swept_q[i] &&
                     fresh_q[i] - spare_q[i] < (SlotW + 1)'(17'd1 << ring_log2_i[i]);
    end
  end

  // --------------------------------------------------------------- who is woken
  logic               queued_ended, queued_other, queued_ready;  // In the queue, each once.
  logic               ended_q;     // A message ended whose flow has operations that wait:
  logic [FlowW-1:0]   ended_flow_q;
  logic [FlowW:0]     queue_count, barred_q;
  logic [FlowW-1:0]   queue_in, other_flow, renew_flow_q, joined_flow_q;
  logic               renew_q, push, push_ended, queue_ready, queue_valid;
  logic [NumTx-1:0]   open_q;
  assign other_flow = renew_q ? renew_flow_q : joined_flow_q;
  assign push_ended = ended_q && !queued_ended;
  assign queue_in   = push_ended ? ended_flow_q : other_flow;
  assign push       = push_ended || ((renew_q || joined_q) && !queued_other);
  heddle_flags #(.Depth(NumFlow), .Reads(2)) u_queued (
    .clk_i, .rst_ni, .set_i(push), .set_index_i(queue_in), .clear_i(wake_take_i), .clear_index_i(wake_flow_o),
    .index_i({other_flow, ended_flow_q}), .flag_o({queued_other, queued_ended}), .ready_o(queued_ready)
  );
  heddle_fifo #(.Width(FlowW), .Depth(NumFlow)) u_queue (
    .clk_i, .rst_ni, .valid_i(push), .ready_o(queue_ready), .data_i(queue_in),
    .valid_o(queue_valid), .ready_i(wake_take_i), .data_o(wake_flow_o), .count_o(queue_count)
  );
  // When none of them may go, they are left alone until something changes.
  assign wake_valid_o = queue_valid && !renew_q && !joined_q && barred_q < queue_count;

  assign stir_o = free_q || ended_q || swept_q != '0 || enq_q || parked_q || keep_q || pop_i || closed_i != '0 || clear;
  assign idle_o = !clear && waits_ready && queued_ready && swept_q == '0 && !free_q && !ended_q && !enq_q && !parked_q && !keep_q && !renew_q && !joined_q && !wake_valid_o &&
                  open_i == open_q;

  always_ff @(posedge clk_i) begin
    enq_pdc_q  <= enq_pdc_i;
    msg_flow_q <= msg_flow_i;
    ended_flow_q <= free_flow;
    if (renew_i)  renew_flow_q <= flow_i;
    if (put)      joined_flow_q <= keep_data_q.flow;
    if (!keep_q) keep_data_q <= keep_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clear_q  <= '0;
      free_q   <= 1'b0;
      enq_q    <= 1'b0;
      parked_q <= 1'b0;
      ended_q  <= 1'b0;
      fresh_q  <= '0;
      spare_q  <= '0;
      keep_q   <= 1'b0;
      read_q   <= 1'b0;
      renew_q  <= 1'b0;
      joined_q <= 1'b0;
      barred_q <= '0;
      open_q   <= '0;
    end else begin
      if (clear) clear_q <= clear_q + 1'b1;
      free_q   <= free_i;
      enq_q    <= enq_i;
      parked_q <= msg_valid_i && msg_sends_i && !enq_i;
      open_q   <= open_i;

      ended_q  <= free_q && free_waits;
      if (put)                            joined_q <= 1'b1;
      else if (!push_ended && !renew_q)   joined_q <= 1'b0;
      if (renew_i)            renew_q <= 1'b1;
      else if (!push_ended)   renew_q <= 1'b0;
      if (open_i != open_q || push_ended || put || (renew_i && !barred_i)) barred_q <= '0;
      else if (renew_i)                                             barred_q <= barred_q + 1'b1;

      if (keep_q ? put : keep_i) keep_q <= !keep_q;
      read_q <= keep_q && !put && !pop_i;
      if (forget_i && keep_ctx == forget_ctx_i) keep_q <= 1'b0;
      for (int unsigned i = 0; i < NumTx; i++) begin
        if (forget_i && forget_ctx_i == TxW'(i)) begin
          fresh_q[i] <= '0;
          spare_q[i] <= '0;
        end else begin
          if (put && keep_ctx == TxW'(i) && spare_q[i] == '0) fresh_q[i] <= fresh_q[i] + 1'b1;
          if (put && keep_ctx == TxW'(i) && spare_q[i] != '0) spare_q[i] <= spare_q[i] - 1'b1;
          if (pop_i && ctx == TxW'(i))                        spare_q[i] <= spare_q[i] + 1'b1;
        end
      end
    end
  end

  logic unused;
  assign unused = ^{enq_err, enq_rdy, free_err, free_rdy, head_err, head_rdy, tail_err, tail_rdy,
                    next_err, next_rdy, info_err, info_rdy, keep_err, keep_rdy, used_err, used_rdy};

  `HEDDLE_ASSERT(QueueRoom_A, push |-> queue_ready)
  `HEDDLE_ASSERT(OneRenewal_A, renew_i |-> !renew_q)
  `HEDDLE_ASSERT(PopsWhatWaits_A, pop_i |-> some_o && head_o == pop_number_i)
  `HEDDLE_ASSERT(JoinsOnce_A, keep_i |-> keep_ok_o[keep_data_i.ctx])
endmodule
