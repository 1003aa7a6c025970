// SPDX-License-Identifier: Apache-2.0
// State of one transmit context of heddle_tx_fetch, which names the context and the change.
//
// Positions: free-running counts of slots, tail >= requested >= fetched >= done.
// Groups:    operations of several descriptors have a number each; the next one that is free is found one a cycle.
// Choice:    `offer_o` may be two cycles old. `unread_o`, `spoiled_o`, `have_o` and `group_busy_o` are a cycle old: right when
//            the operation is looked at, a cycle after it was chosen, since none before it is on its way then.

`include "heddle_assert.svh"

module heddle_tx_context
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_tx_fetch_pkg::*;
#(
  localparam int unsigned ShareW = $clog2(MessageShare) + 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               table_i,          // The table is written: it starts anew.
  input  tx_ctx_cfg_t        cfg_i,

  input  logic               tail_i,           // A tail doorbell.
  input  logic [15:0]        tail_at_i,
  input  logic               request_i,            // Descriptors up to this one are read,
  input  logic [15:0]        request_at_i,
  input  logic               copy_i,           // or taken from the push window.
  input  logic               fetch_i,          // A read returned: it began at one, and ended before another.
  input  logic [15:0]        fetch_at_i,
  input  logic [15:0]        fetched_at_i,
  input  logic               fetch_error_i,

  input  logic               look_i,           // The next operation is looked at,
  input  logic [2:0]         look_slots_i,     // which has so many slots.
  input  logic               partial_i,        // Some of them have not arrived.
  input  logic               fence_valid_i,    // The next operation was looked at:
  input  logic               fence_i,          // it waits for those before it;
  input  logic               hold_i,           // it waits for others of its flow.
  input  logic               stir_i,           // It may go now.
  input  logic               leave_i,          // It left, up to this position,
  input  logic [15:0]        left_at_i,
  input  logic               join_i,           // as one of several of an operation,
  input  logic               more_i,           // not the last one.
  input  logic               fail_i,           // A descriptor was bad.
  input  logic               error_i,          // A payload read of this generation failed.
  input  logic [GenW-1:0]    error_gen_i,
  input  logic               take_i,           // A message has a place in the table;
  input  logic               retire_i,         // one left it.
  input  logic               waits_i,          // Operations wait in lists.
  input  logic               room_i,           // There are credit and share for one more.
  input  logic               group_i,          // This operation of several descriptors ended.
  input  logic [GroupW-1:0]  group_number_i,

  output logic               alive_o,          // Enabled.
  output logic               failed_o,         // Later operations leave as flushed.
  output logic               overrun_o,        // A doorbell was ahead of the ring.
  output logic               refused_o,        // A read failed:
  output logic               unread_o,         // the next operation begins there,
  output logic               spoiled_o,        // or after it.
  output logic [GenW-1:0]    gen_o,
  output logic [15:0]        tail_o,           // Published by the host.
  output logic [15:0]        requested_o,          // Reads issued.
  output logic [15:0]        fetched_o,        // Reads returned.
  output logic [15:0]        done_o,           // Left as operations.
  output logic [ShareW-1:0]  used_o,           // Messages in the table.
  output logic               offer_o,          // The next operation may be one that leaves.
  output logic               waiting_o,        // It is there and nothing holds it: it is offered, or will be.
  output logic [HaveW-1:0]   have_o,           // Slots that arrived, from it on; MaxHave or more.
  output logic               some_o,           // An operation of the context has not ended, or waits in a list.
  output logic               chain_o,          // The next one continues the operation of the one before.
  output logic [GroupW-1:0]  group_o,          // Group that is open, or comes next.
  output logic [MemberW-1:0] members_o,
  output logic               group_busy_o,     // The group that comes next has not ended,
  output logic               group_moves_o,    // but another one is free.
  output logic [3:0]         log2_o,           // Size of the ring,
  output logic [15:0]        mask_o,           // and the bits of a position that name a slot.
  output logic [CqW-1:0]     cq_o,
  output logic [7:0]         owner_o,
  output logic [63:0]        head_cell_o,
  output logic [63:0]        spill_base_o,
  output logic               early_o,          // `early_release`, without a spill area.
  output logic [$bits(tx_counters_t)-1:0] counters_o
);
  localparam logic [HaveW-1:0] MaxHave = '1;

  logic [NumGroup-1:0] grouped_q;              // Groups that have not ended.
  logic [15:0]         step, room, size, bad_q, arrived, reached;
  logic [ShareW-1:0]   used_more, used_less;
  logic                partial_q;              // Extension slots of the next operation are awaited,
  logic                came_q;                 // and some came since those that it has were counted.
  logic                fenced_q, held_q;       // The next operation waits for those before it, or others of its flow.
  logic                pending_q, may_q, may, lacks_number;
  assign used_more     = used_o + 1'b1;
  assign used_less     = used_o - 1'b1;
  assign size          = mask_o + 16'd1;
  assign step          = tail_at_i - tail_o;
  assign room          = size - (tail_o - done_o);
  assign lacks_number  = !chain_o && grouped_q[group_o];
  assign group_moves_o = lacks_number && grouped_q != '1;
  assign arrived       = fetched_o - done_o;
  assign reached       = done_o - bad_q;
  assign some_o        = used_o != '0 || waits_i;
  assign may           = !partial_q && !held_q && !(fenced_q && some_o) && !lacks_number && room_i;
  assign offer_o       = pending_q && may_q;
  assign waiting_o     = fetched_o != done_o && may;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      alive_o      <= 1'b0;
      failed_o     <= 1'b0;
      overrun_o    <= 1'b0;
      refused_o    <= 1'b0;
      bad_q        <= '0;
      unread_o     <= 1'b0;
      spoiled_o    <= 1'b0;
      partial_q    <= 1'b0;
      came_q       <= 1'b0;
      pending_q    <= 1'b0;
      may_q        <= 1'b0;
      have_o       <= '0;
      group_busy_o <= 1'b0;
      gen_o        <= '0;
      tail_o       <= '0;
      requested_o      <= '0;
      fetched_o    <= '0;
      done_o       <= '0;
      used_o       <= '0;
      fenced_q     <= 1'b0;
      held_q       <= 1'b0;
      chain_o      <= 1'b0;
      group_o      <= '0;
      members_o    <= '0;
      grouped_q    <= '0;
      log2_o       <= '0;
      mask_o       <= '0;
      cq_o         <= '0;
      owner_o      <= '0;
      head_cell_o  <= '0;
      spill_base_o <= '0;
      early_o      <= 1'b0;
      counters_o   <= '0;
    end else begin
      came_q       <= copy_i || fetch_i;
      have_o       <= arrived < 16'(MaxHave) ? arrived[HaveW-1:0] : MaxHave;
      unread_o     <= refused_o && reached == '0;
      spoiled_o    <= refused_o && !reached[15];
      group_busy_o <= lacks_number;
      // One that is looked at now is taken to leave.
      pending_q    <= copy_i || fetch_i || (look_i ? have_o > look_slots_i : fetched_o != done_o);
      may_q        <= may;
      if (tail_i) begin
        partial_q <= 1'b0;
        tail_o    <= tail_at_i;
        if (step > room) begin
          overrun_o <= 1'b1;
          tail_o    <= done_o + size;
        end
      end
      if (request_i || copy_i) requested_o <= request_at_i;
      if (copy_i) fetched_o <= request_at_i;
      if (fetch_i) begin
        fetched_o <= fetched_at_i;
        if (fetch_error_i && !refused_o) begin
          refused_o <= 1'b1;
          bad_q     <= fetch_at_i;
        end
      end
      if (copy_i || fetch_i)         partial_q <= 1'b0;
      else if (partial_i && !came_q) partial_q <= 1'b1;
      if (fail_i || (error_i && gen_o == error_gen_i)) failed_o <= 1'b1;
      if (leave_i)            done_o    <= left_at_i;
      if (hold_i && !stir_i)  held_q    <= 1'b1;
      else if (stir_i)        held_q    <= 1'b0;
      if (fence_valid_i)      fenced_q  <= fence_i;
      // One that does not end delays only operations that find all numbers in use.
      if (group_moves_o)      group_o   <= group_o + 1'b1;
      if (group_i)            grouped_q[group_number_i] <= 1'b0;
      if (leave_i && join_i) begin
        grouped_q[group_o] <= 1'b1;
        chain_o            <= more_i;
        members_o          <= more_i ? members_o + 1'b1 : '0;
        if (!more_i) group_o <= group_o + 1'b1;
      end
      if (take_i != retire_i) used_o <= take_i ? used_more : used_less;
      if (table_i) begin
        alive_o      <= cfg_i.enable[0];
        gen_o        <= gen_o + GenW'(alive_o || !cfg_i.enable[0]);
        failed_o     <= 1'b0;
        overrun_o    <= 1'b0;
        refused_o    <= 1'b0;
        partial_q    <= 1'b0;
        pending_q    <= 1'b0;
        fenced_q     <= 1'b0;
        held_q       <= 1'b0;
        chain_o      <= 1'b0;
        group_o      <= '0;
        members_o    <= '0;
        grouped_q    <= '0;
        tail_o       <= '0;
        requested_o      <= '0;
        fetched_o    <= '0;
        done_o       <= '0;
        log2_o       <= cfg_i.ring_log2[3:0];
        mask_o       <= (16'd1 << cfg_i.ring_log2[3:0]) - 16'd1;
        cq_o         <= cfg_i.cq[CqW-1:0];
        owner_o      <= cfg_i.function_;
        head_cell_o  <= cfg_i.head_cell;
        spill_base_o <= cfg_i.spill_base;
        early_o      <= (cfg_i.flags & TxCtxFlagEarlyRelease) != '0 && cfg_i.spill_base == '0;
        counters_o   <= {cfg_i.counter_send, cfg_i.counter_read, cfg_i.counter_write};
      end
    end
  end

  logic unused;
  assign unused = ^cfg_i;

  `HEDDLE_ASSERT(RetireOfUsed_A, retire_i |-> used_o != '0)
endmodule
