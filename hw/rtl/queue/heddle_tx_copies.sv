// SPDX-License-Identifier: Apache-2.0
// Push windows of heddle_tx_fetch: copies of slots that stand for those in host memory, and payload that was pushed.
//
// Descriptor: the copy of the slot that is fetched next is read with `read_*`, and taken a cycle later if it is armed
//             (heddle_tx_window), shows its position, and nothing of the context is being read or failed.
// Extension:  the copy of a descriptor stands for extension slots with payload, too: they are read where they are needed, or
//             kept (`put_*`). That it is a descriptor and no payload is known when all preceding slots have left.
// Payload:    its slots are read one after the other, following the copy of their descriptor; `busy_o` meanwhile. A word that
//             the context pushes meanwhile may be one of them: `put_ok_o` is low then.

`include "heddle_assert.svh"

module heddle_tx_copies
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  localparam int unsigned PushW = $clog2(PushWindowSlots),
  localparam int unsigned Words = DescBytes / 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              clear_i,       // The context starts anew.
  input  logic [TxW-1:0]    clear_ctx_i,
  input  logic              push_i,        // Words of a slot came.
  input  logic [TxW-1:0]    push_ctx_i,
  input  logic [PushW-1:0]  push_slot_i,
  input  logic [Words-1:0]  push_words_i,
  input  logic [511:0]      push_data_i,
  input  logic              tail_i,        // A tail doorbell of `push_ctx_i`:
  input  logic [PushW-1:0]  tail_slot_i,   // from this slot on
  input  logic [15:0]       tail_step_i,   // so many.

  input  logic [TxW-1:0]    read_ctx_i,    // This slot may be fetched next.
  input  logic [PushW-1:0]  read_slot_i,
  input  logic              valid_i,       // It is: of this context,
  input  logic [TxW-1:0]    ctx_i,
  input  logic [15:0]       position_i,
  input  logic              alone_i,       // of which nothing is being read and nothing failed,
  input  logic              next_i,        // and all before it has left.
  input  logic [15:0]       ahead_i,       // Slots that are published from it on,
  input  logic [3:0]        to_end_i,      // and to the end of the ring, if fewer than 8.
  output logic              copy_o,        // Its copy stands for it,
  output tx_desc_t          desc_o,
  output logic              extended_o,    // and for its extension slots:
  output logic [3:0]        count_o,       // for so many in all.
  input  logic              passes_i,      // So many slots from it on are not needed any more.
  input  logic [3:0]        passed_i,
  output logic              busy_o,

  output logic              put_begin_o,   // heddle_tx_pushed.
  output logic              put_valid_o,
  output logic              put_last_o,
  output logic              put_ok_o,
  output logic [511:0]      put_o,

  output logic              ready_o
);
  // -------------------------------------------------------------------- windows
  // A slot is passed a cycle later: it is looked at again after two. A doorbell that covers more than the window may have mixed
  // words of two slots in one place.
  logic [NumTx-1:0][PushWindowSlots-1:0] armed;
  logic                                  passes_q;
  logic [3:0]                            passed_q;
  logic [TxW-1:0]                        passed_ctx_q;
  logic [PushW-1:0]                      passed_slot_q;
  logic [PushWindowSlots-1:0]            passed, covered;
  logic [PushWindowSlots-1:0][PushW-1:0] beyond, ahead_tail;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) passes_q <= 1'b0;
    else         passes_q <= passes_i;
  end
  always_ff @(posedge clk_i) begin
    passed_q      <= passed_i;
    passed_ctx_q  <= ctx_i;
    passed_slot_q <= position_i[PushW-1:0];
  end
  always_comb begin
    for (int unsigned i = 0; i < PushWindowSlots; i++) begin
      beyond[i]     = PushW'(i) - passed_slot_q;
      ahead_tail[i] = PushW'(i) - tail_slot_i;
      passed[i]     = passes_q && beyond[i] < passed_q;
      covered[i]    = 16'(ahead_tail[i]) < tail_step_i && tail_step_i <= 16'(PushWindowSlots);
    end
  end
  for (genvar i = 0; i < NumTx; i++) begin : gen_window
    heddle_tx_window u_window (
      .clk_i, .rst_ni, .clear_i(clear_i && clear_ctx_i == TxW'(i)),
      .push_i(push_i && push_ctx_i == TxW'(i)), .push_slot_i, .push_words_i,
      .tail_i(tail_i && push_ctx_i == TxW'(i)), .covered_i(covered),
      .passed_i(passed_ctx_q == TxW'(i) ? passed : '0), .armed_o(armed[i])
    );
  end

  // --------------------------------------------------------------------- copies
  logic             row_read, row_last_q, row_q;  // A slot of payload is read; it was, and was the last.
  logic             busy_d, busy_q, ok_q;
  logic [TxW-1:0]   row_ctx_q;
  logic [PushW-1:0] row_slot_q;
  logic [1:0]       left_q;        // Slots to read.
  logic [511:0]     raw;
  logic [Words-1:0] unused_error, unused_ready;
  logic [TxW+PushW-1:0] raddr;
  assign raddr = row_read ? {row_ctx_q, row_slot_q} : {read_ctx_i, read_slot_i};
  for (genvar w = 0; w < int'(Words); w++) begin : gen_words
    heddle_mem #(
      .Width(64), .Depth(NumTx * PushWindowSlots), .Init(1'b0),
      .Coherent(1'b0)  // A copy that is written in the cycle of its read is not used.
    ) u_word (
      .clk_i, .rst_ni, .wen_i(push_i && push_words_i[w]), .waddr_i({push_ctx_i, push_slot_i}),
      .wdata_i(push_data_i[64*w +: 64]), .raddr_i(raddr), .rdata_o(raw[64*w +: 64]),
      .error_o(unused_error[w]), .ready_o(unused_ready[w])
    );
  end
  assign ready_o = &unused_ready;

  logic [PushWindowSlots-1:0] here;
  assign here       = armed[ctx_i];
  assign desc_o     = tx_desc_t'(raw);
  assign copy_o     = valid_i && !busy_q && here[position_i[PushW-1:0]] && desc_o.position == position_i && alone_i;
  assign extended_o = (desc_o.flags & TxFlagInlineExt) != '0 && desc_o.ext_slots <= 8'd3 && next_i &&
                      16'd1 + 16'(desc_o.ext_slots) <= ahead_i &&
                      4'd1 + 4'(desc_o.ext_slots[1:0]) <= to_end_i;
  assign count_o    = extended_o ? 4'd1 + desc_o.ext_slots[3:0] : 4'd1;

  // -------------------------------------------------------------------- payload
  logic [3:1]            armed_after;  // The slots after the descriptor that are there, or not needed.
  logic [3:1][PushW-1:0] slot_after;
  always_comb begin
    for (int unsigned i = 1; i <= 3; i++) begin
      slot_after[i]  = position_i[PushW-1:0] + PushW'(i);
      armed_after[i] = here[slot_after[i]] || 32'(desc_o.ext_slots[1:0]) < i;
    end
  end
  assign put_begin_o = copy_o && extended_o && desc_o.ext_slots[1:0] != '0 && (&armed_after);
  assign busy_d      = put_begin_o || (busy_q && left_q != '0);
  assign row_read    = busy_q && left_q != '0;
  assign busy_o      = busy_q;
  assign put_valid_o = row_q;
  assign put_last_o  = row_last_q;
  assign put_ok_o    = ok_q;
  assign put_o       = raw;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      row_q  <= 1'b0;
    end else begin
      busy_q <= busy_d;
      row_q  <= row_read;
    end
  end
  always_ff @(posedge clk_i) begin
    if (put_begin_o) row_ctx_q <= ctx_i;
    row_slot_q <= put_begin_o ? position_i[PushW-1:0] + 1'b1 : row_slot_q + 1'b1;
    left_q     <= put_begin_o ? desc_o.ext_slots[1:0] : left_q - 2'(left_q != '0);
    row_last_q <= left_q == 2'd1;
    ok_q       <= (put_begin_o || ok_q) && !(push_i && push_ctx_i == (put_begin_o ? ctx_i : row_ctx_q));
  end

  logic unused_bits;
  assign unused_bits = ^{unused_error, desc_o};

  `HEDDLE_ASSERT(WholeWhenRead_A, copy_o || (put_valid_o && put_ok_o) |->
                 !$past(push_i && {push_ctx_i, push_slot_i} == raddr))
endmodule
