// SPDX-License-Identifier: Apache-2.0
// Messages of each PDC in order: linked lists over the message table.
//
//   head ─► ... ─► message being sent ─► ... ─► tail
//    └─ heddle_pdc_walk takes them away         └─ heddle_tx_msg appends
//
// Ordered: messages are sent and taken away in the order they were appended.
// Bounded: a list is as long as it likes; all of them share the NumMsg entries.
// Writers: each memory has one. Where two may change a pointer (appending to an empty list, and
//          sending or taking away), there is a memory for each and a bit that names the valid one.
// Latency: the message to send comes one cycle after its PDC was named, as heddle_pdc_tx's state.

`include "heddle_assert.svh"

module heddle_pdc_queue
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic              enq_i,          // Appends; not together with `shorten_i`.
  input  logic [PdcW-1:0]   enq_pdc_i,
  input  logic [MsgW-1:0]   enq_msg_i,
  input  logic [PktW-1:0]   enq_last_i,     // Index of its last packet.

  output logic [NumPdc-1:0] pending_o,      // There is a message to send.
  input  logic [PdcW-1:0]   next_pdc_i,     // Perhaps the next cycle sends a message of this PDC.
  input  logic [PdcW-1:0]   pdc_i,          // The rest is about this PDC; the message, if it was named in the cycle before.
  output logic [MsgW-1:0]   send_msg_o,     // Its message to send, while pending.
  output logic [PktW-1:0]   send_last_o,
  output logic              more_o,         // Another one follows that.
  input  logic              advance_i,      // It was sent: go on to the one behind it.
  input  logic              rewind_i,       // Go back to the head.
  input  logic              clear_i,        // The PDC is closed; its list is empty.
  input  logic              shorten_i,      // Packet `shorten_last_i` is the last one of `shorten_msg_i` now.
  input  logic [MsgW-1:0]   shorten_msg_i,
  input  logic [PktW-1:0]   shorten_last_i,

  input  logic [PdcW-1:0]   walk_pdc_i,
  output logic              walk_held_o,    // The list is not empty; same cycle, as the head.
  output logic [MsgW-1:0]   walk_msg_o,     // Its head, or the message that was passed to.
  output logic [PktW-1:0]   walk_last_o,    // Of the message that was shown a cycle before.
  input  logic              walk_pop_i,     // Takes away the head that was shown a cycle before.
  input  logic              walk_pass_i,    // Shows the message behind the one that was shown; none if that was the last.
  input  logic              walk_end_i      // Shows the head again. It alone is taken away.
);
  // ----------------------------------------------------------------- positions
  logic [NumPdc-1:0] held_q;         // The list is not empty.
  logic [NumPdc-1:0] pending_q;
  logic [NumPdc-1:0] head_walked_q;  // The head was set by the walk, not by appending.
  logic [NumPdc-1:0] cur_moved_q;    // The message to send was set by the sender.

  logic            enq_first;        // The list was empty.
  assign enq_first = enq_i && !held_q[enq_pdc_i];

  // Tail, and what is behind each message.
  logic [MsgW-1:0] enq_tail, send_tail, walk_tail, send_next, walk_next;
  logic            unused_next_err, unused_next_rdy, unused_walk_err, unused_walk_rdy;
  logic            unused_last_err, unused_last_rdy, unused_walk_last_err, unused_walk_last_rdy;
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_enq_tail (
    .clk_i, .wen_i(enq_i), .waddr_i(enq_pdc_i), .wdata_i(enq_msg_i),
    .raddr_i(enq_pdc_i), .rdata_o(enq_tail)
  );
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_send_tail (
    .clk_i, .wen_i(enq_i), .waddr_i(enq_pdc_i), .wdata_i(enq_msg_i),
    .raddr_i(pdc_i), .rdata_o(send_tail)
  );
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_walk_tail (
    .clk_i, .wen_i(enq_i), .waddr_i(enq_pdc_i), .wdata_i(enq_msg_i),
    .raddr_i(walk_pdc_i), .rdata_o(walk_tail)
  );
  heddle_mem #(.Width(MsgW), .Depth(NumMsg), .Init(1'b0)) u_send_next (
    .clk_i, .rst_ni, .wen_i(enq_i && !enq_first), .waddr_i(enq_tail), .wdata_i(enq_msg_i),
    .raddr_i(cur), .rdata_o(send_next), .error_o(unused_next_err), .ready_o(unused_next_rdy)
  );
  heddle_mem #(.Width(MsgW), .Depth(NumMsg), .Init(1'b0)) u_walk_next (
    .clk_i, .rst_ni, .wen_i(enq_i && !enq_first), .waddr_i(enq_tail), .wdata_i(enq_msg_i),
    .raddr_i(shown), .rdata_o(walk_next), .error_o(unused_walk_err), .ready_o(unused_walk_rdy)
  );
  heddle_mem #(.Width(PktW), .Depth(NumMsg), .Init(1'b0)) u_last (
    .clk_i, .rst_ni, .wen_i(enq_i || shorten_i),
    .waddr_i(shorten_i ? shorten_msg_i : enq_msg_i), .wdata_i(shorten_i ? shorten_last_i : enq_last_i),
    .raddr_i(cur), .rdata_o(send_last_o), .error_o(unused_last_err), .ready_o(unused_last_rdy)
  );

  heddle_mem #(.Width(PktW), .Depth(NumMsg), .Init(1'b0)) u_walk_last (
    .clk_i, .rst_ni, .wen_i(enq_i || shorten_i),
    .waddr_i(shorten_i ? shorten_msg_i : enq_msg_i), .wdata_i(shorten_i ? shorten_last_i : enq_last_i),
    .raddr_i(shown), .rdata_o(walk_last_o),
    .error_o(unused_walk_last_err), .ready_o(unused_walk_last_rdy)
  );

  // ---------------------------------------------------------------------- head
  logic [MsgW-1:0] head, head_first, head_walked;  // Of the walk's PDC.
  logic [MsgW-1:0] send_head, send_first, send_walked;  // Of the sender's.
  logic            pop_end, pop_meets;  // The head was the tail; a message comes just now.
  logic [MsgW-1:0] pop_head;
  assign pop_end   = head == walk_tail;
  assign pop_meets = enq_i && enq_pdc_i == walk_pdc_i;
  assign pop_head  = pop_end ? enq_msg_i : walk_next;
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_head_first (
    .clk_i, .wen_i(enq_first), .waddr_i(enq_pdc_i), .wdata_i(enq_msg_i),
    .raddr_i(walk_pdc_i), .rdata_o(head_first)
  );
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_head_walked (
    .clk_i, .wen_i(walk_pop_i), .waddr_i(walk_pdc_i), .wdata_i(pop_head),
    .raddr_i(walk_pdc_i), .rdata_o(head_walked)
  );
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_send_first (
    .clk_i, .wen_i(enq_first), .waddr_i(enq_pdc_i), .wdata_i(enq_msg_i),
    .raddr_i(pdc_i), .rdata_o(send_first)
  );
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_send_walked (
    .clk_i, .wen_i(walk_pop_i), .waddr_i(walk_pdc_i), .wdata_i(pop_head),
    .raddr_i(pdc_i), .rdata_o(send_walked)
  );
  assign head      = head_walked_q[walk_pdc_i] ? head_walked : head_first;
  assign send_head = head_walked_q[pdc_i] ? send_walked : send_first;

  // What the walk looks at: the head, or what it came to behind it.
  logic [MsgW-1:0] shown, passed_to_q;
  logic            passed_q, past_end_q;
  assign shown       = passed_q ? passed_to_q : head;
  assign walk_held_o = passed_q ? !past_end_q : held_q[walk_pdc_i];
  assign walk_msg_o  = shown;
  always_ff @(posedge clk_i) begin
    if (walk_pass_i) begin
      passed_to_q <= walk_next;
      past_end_q  <= shown == walk_tail;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)          passed_q <= 1'b0;
    else if (walk_pass_i) passed_q <= 1'b1;
    else if (walk_end_i)  passed_q <= 1'b0;
  end

  // ----------------------------------------------------------- message to send
  logic [MsgW-1:0] cur, cur_q, cur_first, cur_moved, cur_next;
  logic            send_held, send_meets, cur_end, cur_some;
  assign send_held  = held_q[pdc_i];
  assign send_meets = enq_i && enq_pdc_i == pdc_i;
  assign cur_end    = cur_q == send_tail;
  always_comb begin
    cur_next = send_next;
    cur_some = 1'b1;
    if (rewind_i) begin
      cur_next = send_held ? send_head : enq_msg_i;
      cur_some = send_held || send_meets;
    end else if (cur_end) begin
      cur_next = enq_msg_i;
      cur_some = send_meets;
    end
  end
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_cur_first (
    .clk_i, .wen_i(enq_i && !pending_q[enq_pdc_i]), .waddr_i(enq_pdc_i), .wdata_i(enq_msg_i),
    .raddr_i(next_pdc_i), .rdata_o(cur_first)
  );
  heddle_lookup #(.Width(MsgW), .Depth(NumPdc)) u_cur_moved (
    .clk_i, .wen_i(advance_i || rewind_i), .waddr_i(pdc_i), .wdata_i(cur_next),
    .raddr_i(next_pdc_i), .rdata_o(cur_moved)
  );
  assign cur        = cur_moved_q[next_pdc_i] ? cur_moved : cur_first;
  assign send_msg_o = cur_q;
  assign more_o     = !cur_end;
  assign pending_o  = pending_q;
  always_ff @(posedge clk_i) cur_q <= cur;

  logic unused;
  assign unused = ^{unused_next_err, unused_next_rdy, unused_walk_err, unused_walk_rdy,
                    unused_last_err, unused_last_rdy, unused_walk_last_err, unused_walk_last_rdy};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      held_q        <= '0;
      pending_q     <= '0;
      head_walked_q <= '0;
      cur_moved_q   <= '0;
    end else begin
      if (enq_i) begin
        held_q[enq_pdc_i] <= 1'b1;
        if (enq_first) head_walked_q[enq_pdc_i] <= 1'b0;
        pending_q[enq_pdc_i] <= 1'b1;
        if (!pending_q[enq_pdc_i]) cur_moved_q[enq_pdc_i] <= 1'b0;
      end
      if (walk_pop_i) begin
        held_q[walk_pdc_i]        <= !pop_end || pop_meets;
        head_walked_q[walk_pdc_i] <= 1'b1;
      end
      for (int unsigned i = 0; i < NumPdc; i++) begin
        if ((advance_i || rewind_i) && pdc_i == PdcW'(i)) begin
          pending_q[i]   <= cur_some;
          cur_moved_q[i] <= 1'b1;
        end
        if (clear_i && pdc_i == PdcW'(i)) pending_q[i] <= 1'b0;
      end
    end
  end

  `HEDDLE_ASSERT(OneLastIndex_A, !(enq_i && shorten_i))
  `HEDDLE_ASSERT(PopsWhatIsThere_A, walk_pop_i |-> walk_held_o && !passed_q)
  `HEDDLE_ASSERT(ClosedEmpty_A, clear_i |-> !held_q[pdc_i])
endmodule
