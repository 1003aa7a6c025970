// SPDX-License-Identifier: Apache-2.0
// Operations of several descriptors: what of each has ended, and how.
//
// A group's last descriptor says how many came before it. A group is complete when they and it have
// ended, in whatever order; its outcome is the failure of the first descriptor that failed.
// Outcome:  `complete_o`, `status_o` and `detail_o` say what `update_i` would lead to, in the same
//           cycle. Until then the last message of a group is held (`held_o`, `held_msg_o`).
// Forgets:  a context that restarts or ends loses its groups; the messages held are given back first,
//           one per `flush_take_i`. Nobody may look or update meanwhile (`flush_o`).

`include "heddle_assert.svh"

module heddle_tx_groups
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumTx-1:0] forget_i,        // Strobe per context.

  input  logic             look_i,          // The next are valid; otherwise a flush may go on.
  input  logic [TxW-1:0]   ctx_i,
  input  logic [GroupW-1:0] group_i,
  input  logic             update_i,        // Strobe: a descriptor of the group ended.
  input  logic             last_i,          // It was the last one, behind `members_i` others.
  input  logic [MemberW-1:0] members_i,
  input  logic [MsgW-1:0]  msg_i,
  input  logic [15:0]      position_i,
  input  status_e          status_i,
  input  logic [15:0]      detail_i,

  output logic             complete_o,
  output status_e          status_o,
  output logic [15:0]      detail_o,
  output logic             held_o,
  output logic [MsgW-1:0]  held_msg_o,

  output logic             flush_o,         // Contexts are being forgotten.
  output logic             flush_valid_o,   // This message was held.
  input  logic             flush_take_i,
  output logic [MsgW-1:0]  flush_msg_o
);
  typedef struct packed {
    logic               known;     // The last one has ended: `total`, `msg`.
    logic [MemberW-1:0] total;
    logic [MemberW-1:0] ended;     // Of those before the last.
    logic [MsgW-1:0]    msg;
    status_e            status;    // First failure, at `position`.
    logic [15:0]        detail;
    logic [15:0]        position;
  } state_t;

  logic [NumTx-1:0][NumGroup-1:0] open_q;
  logic [NumTx-1:0]               forget_q;
  logic [GroupW-1:0]              scan_q;
  logic [TxW-1:0]                 flush_ctx;

  // ------------------------------------------------------------- the group looked at
  logic [TxW-1:0]    ctx;
  logic [GroupW-1:0] group;
  logic [$bits(state_t)-1:0] raw;
  state_t            now, next;
  logic              first;      // The earliest failure so far.
  logic [15:0]       ahead;
  logic              unused_ahead;
  assign ctx   = look_i ? ctx_i : flush_ctx;
  assign group = look_i ? group_i : scan_q;
  heddle_lookup #(.Width($bits(state_t)), .Depth(NumTx * NumGroup)) u_states (
    .clk_i, .wen_i(update_i), .waddr_i({ctx, group}), .wdata_i(next),
    .raddr_i({ctx, group}), .rdata_o(raw)
  );
  assign now   = open_q[ctx][group] ? state_t'(raw) : '0;
  assign ahead = position_i - now.position;
  assign unused_ahead = ^ahead[14:0];
  assign first = status_i != StatusOk && (now.status == StatusOk || ahead[15]);

  always_comb begin
    next = now;
    if (last_i) begin
      next.known = 1'b1;
      next.total = members_i;
      next.msg   = msg_i;
    end else begin
      next.ended = now.ended + 1'b1;
    end
    if (first) begin
      next.status   = status_i;
      next.detail   = detail_i;
      next.position = position_i;
    end
  end
  assign complete_o = next.known && next.ended == next.total;
  assign status_o   = next.status;
  assign detail_o   = next.detail;
  assign held_o     = now.known;
  assign held_msg_o = now.msg;

  // -------------------------------------------------------------------------- flush
  logic step;
  always_comb begin
    flush_ctx = '0;
    for (int unsigned i = 0; i < NumTx; i++) begin
      if (forget_q[i]) flush_ctx = TxW'(i);
    end
  end
  assign flush_o       = forget_q != '0;
  assign flush_valid_o = flush_o && !look_i && now.known;
  assign flush_msg_o   = now.msg;
  assign step          = flush_o && !look_i && (!now.known || flush_take_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q   <= '0;
      forget_q <= '0;
      scan_q   <= '0;
    end else begin
      if (update_i) open_q[ctx][group] <= !complete_o;
      if (step) begin
        open_q[ctx][group] <= 1'b0;
        scan_q             <= scan_q + 1'b1;
        if (scan_q == '1) forget_q[ctx] <= 1'b0;
      end
      if (forget_i != '0) begin
        for (int unsigned i = 0; i < NumTx; i++) begin
          if (forget_i[i]) forget_q[i] <= 1'b1;
        end
        scan_q <= '0;
      end
    end
  end

  `HEDDLE_ASSUME(LookToUpdate_M, update_i |-> look_i)
  `HEDDLE_ASSERT(OneLast_A, update_i && last_i |-> !now.known)
endmodule
