// SPDX-License-Identifier: Apache-2.0
// Transmit contexts: doorbells, scheduling, descriptor fetch and checks.
//
// Fair:     contexts with work take turns, one read of up to 8 descriptors each.
// Ordered:  a context's operations leave in ring order. A completion credit and
//           one of the context's message share (MessageShare; each context is
//           guaranteed 32, the rest of the table is shared) are taken for each
//           operation before it leaves.
// Segments: a descriptor with more than one takes two cycles more, in which its extension slot is read and checked.
// Checked:  opcode, flags, lengths, slots and position (heddle_tx_check), when its slot arrives; a bad descriptor leaves with
//           its status and puts the context into error: later ones leave as `flushed`.
//           `ctx_error_i` puts a context into error as well. Other contexts go on.
// Pushed:   words written to the push window collect until the context's next tail doorbell.
//           A copy stands for its slot in host memory only if each of its eight words came
//           exactly once since the tail doorbell before, the doorbell covers its slot, it
//           shows the position that is fetched next, nothing of the context is being read,
//           and nothing was written over it. Otherwise it is forgotten and the slot is read.
//           Where such copies of all extension slots with a descriptor's payload are there, too, they leave on
//           `put_*` and the operation with their number. Otherwise its payload is read where it is needed.
// Fenced:   a fenced operation leaves when the context has no other in the table, and none waits.
// Grouped:  descriptors of one operation (flag `more`) get its number, the last one their count. A
//           context may have NumGroup such operations in flight or waiting.
// Bounded:  in a context with a spill area, or with `early_release`, an operation waits while its flow has more messages in the table than are
//           left of the share or, if it is stuck, PeerShare. One of a stuck flow, or after others of
//           it, leaves for the flow's list (`keep_o`) and lets later ones pass; `again_i` brings it back to the same
//           checks. A descriptor that fails them then puts the context into error.
// Disabled: writing tx_ctx_cfg with enable=0 stops the context, raises its generation,
//           and drops what it had fetched. Writing enable=1 starts it at position 0.
// Drain:    answered when the token (sent behind everything of the context) came back
//           on `drained_i`.

`include "heddle_assert.svh"

module heddle_tx_fetch
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_tx_fetch_pkg::*;
#(
  parameter  int unsigned DataW = 512   // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  doorbell_t        db_i,            // Pages of transmit contexts only.
  input  push_t            push_i,          // With db_i of a push window.

  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  output logic             rd_valid_o,      // Client RdTxDesc.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  output logic             op_valid_o,
  input  logic             op_ready_i,
  output tx_fetched_t      op_o,

  input  logic [PushTagW-1:0] put_tag_i,    // heddle_tx_pushed: number of the next payload.
  output logic             put_begin_o,     // Strobe: it comes.
  output logic             put_valid_o,     // Strobe: its next slot,
  output logic             put_last_o,      // the last,
  output logic             put_ok_o,        // and nothing was written over any.
  output logic [511:0]     put_o,

  output logic             av_invalidate_o, // Strobe: forget the address vector of ...
  output logic [TxW-1:0]   av_ctx_o,

  input  logic [NumCq-1:0] credit_ok_i,     // At least 4 credits are free.
  input  logic [NumCq-1:0][GenW-1:0] cq_gen_i,
  output logic             credit_take_o,   // Strobe: one credit of ...
  output logic [CqW-1:0]   credit_cq_o,

  input  logic             retire_i,        // Strobe: a message of {ctx, gen} left the table.
  input  logic [TxW-1:0]   retire_ctx_i,
  input  logic [GenW-1:0]  retire_gen_i,
  input  logic             ctx_error_i,     // Strobe: a payload read of {ctx, gen} failed.
  input  logic [TxW-1:0]   ctx_error_ctx_i,
  input  logic [GenW-1:0]  ctx_error_gen_i,
  input  logic             group_i,         // Strobe: an operation of several descriptors ended.
  input  logic [TxW-1:0]   group_ctx_i,
  input  logic [GroupW-1:0] group_number_i,
  input  logic             drained_i,       // Strobe: drain token came back.
  input  logic [NumTx-1:0] busy_i,          // Slots are being copied: the token is not sent yet.

  output logic [FlowW-1:0] look_flow_o,     // heddle_tx_flows: of this flow, an operation
  input  logic [$clog2(MessageShare):0] look_count_i,
  input  logic             look_stuck_i,
  input  logic             look_waits_i,
  output logic             take_o,          // leaves. Strobe.
  output logic             forget_o,        // Strobe: the lists of
  output logic [TxW-1:0]   forget_ctx_o,
  input  logic [NumTx-1:0] waits_i,         // Operations of the context wait there.
  input  logic             flows_ready_i,
  input  logic             stir_i,          // Strobe: what was held may leave now.
  output logic             keep_o,          // Strobe: this one joins its flow's list.
  output tx_keep_t         keep_data_o,
  input  logic [NumTx-1:0] keep_ok_i,       // One of the context may.
  input  logic             again_valid_i,   // This one may go now; of a context that lives.
  input  tx_again_t        again_i,
  output logic             again_seen_o,    // It is being looked at: it stays.
  output logic             again_taken_o,   // Strobe: it left,
  output logic             again_holds_o,   // and needs its extension slots until its message ends.
  output logic [NumTx-1:0] room_o,          // The context has credit and share for one more.

  output logic [NumTx-1:0]           alive_o,  // Enabled.
  output logic [NumTx-1:0][GenW-1:0] gen_o,
  output logic [NumTx-1:0][63:0]     head_cell_o,
  output logic [NumTx-1:0][3:0]      ring_log2_o,
  output logic [NumTx-1:0][63:0]     spill_base_o,
  output logic [NumTx-1:0]           early_o,      // `early_release`, without a spill area.
  output logic [NumTx-1:0][7:0]      owner_o,
  output logic [NumTx-1:0][15:0]     tail_o,       // Published.
  output logic [NumTx-1:0][$bits(tx_counters_t)-1:0] counters_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
  localparam int unsigned Slots     = HeldSlots;
  localparam int unsigned SlotW     = HeldSlotW;
  localparam int unsigned Burst     = 8;    // Descriptors per read.
  localparam int unsigned Records   = 32;   // Reads outstanding.
  localparam int unsigned PushW     = $clog2(PushWindowSlots);
  localparam int unsigned Words     = DescBytes / 8;  // Of a copy.
  localparam int unsigned WordW     = $clog2(Words);
  localparam int unsigned Guarantee = 32;   // Messages of a context that others cannot use up.
  localparam int unsigned Shared    = NumMsg - NumTx * Guarantee;
  localparam int unsigned ShareW    = $clog2(MessageShare) + 1;
  localparam int unsigned SharedW   = $clog2(Shared) + 1;

  // What is needed when a read's data, or a token, comes to the head.
  typedef struct packed {
    logic            token;
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [15:0]     position;
    logic [3:0]      count;
  } record_t;

  // Contexts (heddle_tx_context). Counts are free-running positions: tail >= requested >= fetched >= done.
  logic [NumTx-1:0]             alive, failed, overrun, refused, unread, spoiled, some, chain;
  logic [NumTx-1:0]             offered, waiting;
  logic [NumTx-1:0][HaveW-1:0]  have;
  logic [NumTx-1:0][GenW-1:0]   gen;
  logic [NumTx-1:0][15:0]       tail, requested, fetched, done, mask;
  logic [NumTx-1:0][ShareW-1:0] used;                  // Messages in the table.
  logic [SharedW-1:0]           shared_d, shared_q;    // Of these, beyond the guarantees.
  logic [NumTx-1:0][GroupW-1:0]   group;
  logic [NumTx-1:0][MemberW-1:0]  members;
  logic [NumTx-1:0]             number_busy;  // The number of the next group is taken,
  logic [NumTx-1:0]             number_next;  // but another one is free.
  logic [NumTx-1:0][CqW-1:0]    cq;

  assign alive_o = alive;
  assign gen_o   = gen;
  assign tail_o  = tail;

  // --------------------------------------------------------------- table port
  typedef enum logic [2:0] {
    TblIdle  = 3'd0,
    TblRead  = 3'd1,  // Memory is being read.
    TblToken = 3'd2,  // Token waits for the read queue.
    TblDrain = 3'd3,  // Token is on its way.
    TblDone  = 3'd4
  } tbl_state_e;

  tbl_state_e     tbl_d, tbl_q;
  logic           tbl_error_d, tbl_error_q;
  logic           quiet;  // No context is between choice and effect.
  logic           hold;   // No new choices.
  logic           tbl_write;
  logic [TxW-1:0] tbl_ctx;
  tx_ctx_cfg_t    tbl_cfg;
  logic           rec_in_valid, rec_in_ready, token_in;
  assign tbl_ctx = tbl_req_i.index[TxW-1:0];
  assign tbl_cfg = tx_ctx_cfg_t'(tbl_req_i.data);

  // ---------------------------------------------------- choice of what to fetch
  logic           cfg_ready;
  logic           f1_valid_d, f1_valid_q;
  logic [TxW-1:0] f1_ctx_d, f1_ctx_q;
  logic           f1_look;     // The window was read for it.
  logic           f1_go;       // Becomes a request.
  logic           f1_copy;     // Or is taken from the push window.
  logic [NumTx-1:0] f0_want, alone;
  logic           f0_valid, f0_take;
  logic [TxW-1:0] f0_ctx;
  logic [TxW-1:0] cfg_raddr;
  tx_ctx_cfg_t    f1_cfg;
  logic [5:0]     rec_count;

  always_comb begin
    for (int unsigned i = 0; i < NumTx; i++) begin
      alone[i]   = fetched[i] == requested[i] && !refused[i];
      f0_want[i] = alive[i] && tail[i] != requested[i] && requested[i] - done[i] <= 16'(Slots - Burst) &&
                   !(f1_valid_q && f1_ctx_q == TxW'(i));
    end
  end

  heddle_rr_pick #(
    .NumSrc(NumTx)
  ) u_fetch_pick (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(f0_want),
    .valid_o(f0_valid),
    .idx_o  (f0_ctx),
    .take_i (f0_take)
  );

  assign f0_take   = f0_valid && (!f1_valid_q || f1_go || f1_copy) && !hold && cfg_ready &&
                     rec_count < 6'(Records - 2);
  assign cfg_raddr = f0_take ? f0_ctx : f1_valid_q ? f1_ctx_q : tbl_ctx;

  logic unused_cfg_error, unused_emit_error;
  heddle_mem #(
    .Width(512),
    .Depth(NumTx),
    .Coherent(1'b0)   // It is written while nothing is chosen.
  ) u_cfg_fetch (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (tbl_write),
    .waddr_i(tbl_ctx),
    .wdata_i(tbl_req_i.data),
    .raddr_i(cfg_raddr),
    .rdata_o(f1_cfg),
    .error_o(unused_cfg_error),
    .ready_o(cfg_ready)
  );

  // Positions of the context that was chosen, as they were a cycle ago: of what is published, and of what has left, there
  // may be more.
  logic [15:0] f1_requested_q, f1_mask_q, f1_tail_q, f1_done_q;
  logic        f1_alone_q;  // Nothing of it is being read, nothing failed.
  always_ff @(posedge clk_i) begin
    f1_requested_q <= requested[f1_ctx_d];
    f1_mask_q      <= mask[f1_ctx_d];
    f1_tail_q      <= tail[f1_ctx_d];
    f1_done_q      <= done[f1_ctx_d];
    f1_alone_q     <= alone[f1_ctx_d];
  end

  // Length of the read: not beyond what is published, ring end or 512 bytes. A context is chosen when it has room for the longest.
  // A bit per descriptor, so that the least of several counts is their conjunction.
  function automatic logic [Burst-1:0] descriptors(logic [15:0] count);
    for (int unsigned i = 0; i < Burst; i++) descriptors[i] = count[15:3] != '0 || 32'(count[2:0]) > i;
  endfunction
  logic [15:0] f1_ahead, f1_slot;
  logic [63:0] f1_addr;
  logic [3:0]  f1_to_end, f1_to_line, f1_count;
  logic [Burst-1:0] f1_descriptors;
  always_comb begin
    f1_slot    = f1_requested_q & f1_mask_q;
    f1_to_end  = (f1_slot ^ f1_mask_q) >> 3 == '0 ? {1'b0, f1_mask_q[2:0] ^ f1_slot[2:0]} + 4'd1 : 4'(Burst);
    f1_addr    = f1_cfg.ring_base + {42'b0, f1_slot, 6'b0};
    f1_ahead   = f1_tail_q - f1_requested_q;
    f1_to_line = 4'd8 - {1'b0, f1_addr[8:6]};
    f1_descriptors = descriptors(f1_ahead) & descriptors(16'(f1_to_end)) & descriptors(16'(f1_to_line));
    f1_count   = '0;
    for (int unsigned i = 0; i < Burst; i++) begin
      if (f1_descriptors[i]) f1_count = 4'(i + 1);
    end
  end

  // ------------------------------------------------------------ the push window
  logic             db_tail, db_av, push;
  logic [TxW-1:0]   db_ctx;
  logic [15:0]      db_step;
  logic             copies_busy, copies_ready, f1_copy_ext;
  logic [3:0]       f1_copy_count, f1_passed;
  tx_desc_t         copy;
  logic [NumTx-1:0] pushed_d, pushed_q;  // The next operation's payload was pushed.
  assign push      = db_valid_i && db_i.offset >= PushWindowOffset[11:0] && alive[db_ctx];
  assign f1_look   = !copies_busy;
  assign f1_passed = f1_copy ? f1_copy_count : f1_count;
  heddle_tx_copies u_copies (
    .clk_i, .rst_ni,
    .clear_i(tbl_write), .clear_ctx_i(tbl_ctx),
    .push_i(push), .push_ctx_i(db_ctx), .push_slot_i(db_i.offset[WordW+3 +: PushW]), .push_words_i(push_i.words),
    .push_data_i(push_i.data), .tail_i(db_tail), .tail_slot_i(tail[db_ctx][PushW-1:0]), .tail_step_i(db_step),
    .read_ctx_i(cfg_raddr), .read_slot_i(requested[cfg_raddr][PushW-1:0]),
    .valid_i(f1_valid_q), .ctx_i(f1_ctx_q), .position_i(f1_requested_q), .alone_i(f1_alone_q),
    .next_i(f1_done_q == f1_requested_q), .ahead_i(f1_ahead), .to_end_i(f1_to_end),
    .copy_o(f1_copy), .desc_o(copy), .extended_o(f1_copy_ext), .count_o(f1_copy_count),
    .passes_i(f1_go || f1_copy), .passed_i(f1_passed), .busy_o(copies_busy),
    .put_begin_o, .put_valid_o, .put_last_o, .put_ok_o, .put_o, .ready_o(copies_ready)
  );
  always_comb begin
    for (int unsigned i = 0; i < NumTx; i++) begin
      pushed_d[i] = pushed_q[i] && !(s1_left && !s1_again_q && s1_ctx_q == TxW'(i));
      if (put_begin_o && f1_ctx_q == TxW'(i)) pushed_d[i] = 1'b1;
      if (tbl_write && tbl_ctx == TxW'(i))    pushed_d[i] = 1'b0;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) pushed_q <= '0;
    else         pushed_q <= pushed_d;
  end

  // ------------------------------------------------------------------- requests
  logic     rd_valid_d, rd_valid_q;
  dma_req_t rd_req_d, rd_req_q;
  record_t  rec_in, rec;
  logic [TxW-1:0] rec_in_ctx;
  logic     rec_valid, rec_pop;
  assign f1_go      = f1_valid_q && f1_look && !f1_copy && (!rd_valid_q || rd_ready_i);
  assign f1_valid_d = f0_take || (f1_valid_q && !f1_go && !f1_copy);
  assign f1_ctx_d   = f0_take ? f0_ctx : f1_ctx_q;
  assign rd_valid_d = f1_go || (rd_valid_q && !rd_ready_i);
  assign rd_valid_o = rd_valid_q;
  assign rd_req_o   = rd_req_q;
  always_comb begin
    rd_req_d = rd_req_q;
    if (f1_go) begin
      rd_req_d.addr  = f1_addr;
      rd_req_d.bytes = {4'b0, f1_count, 6'b0};
      rd_req_d.owner = f1_cfg.function_;
    end
  end

  assign token_in        = tbl_q == TblToken && !f1_valid_q && !busy_i[tbl_ctx];
  assign rec_in_valid    = f1_go || token_in;
  assign rec_in.token    = !f1_valid_q;
  assign rec_in_ctx      = f1_valid_q ? f1_ctx_q : tbl_ctx;
  assign rec_in.ctx      = rec_in_ctx;
  assign rec_in.gen      = gen[rec_in_ctx];
  assign rec_in.position = f1_requested_q;
  assign rec_in.count    = f1_count;

  heddle_fifo #(
    .Width($bits(rec_in)),
    .Depth(Records)
  ) u_records (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(rec_in_valid),
    .ready_o(rec_in_ready),
    .data_i (rec_in),
    .valid_o(rec_valid),
    .ready_i(rec_pop),
    .data_o (rec),
    .count_o(rec_count)
  );

  // -------------------------------------------------------- descriptors arrive
  logic         word_valid, word_last, word_error;
  logic [511:0] word;
  logic [3:0]   word_q;      // Descriptors of this read that arrived.
  logic         commit;      // A read is complete and its context still the same.

  heddle_gather #(
    .DataW(DataW),
    .Bits (512)
  ) u_gather (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .words_i     (8'(rec.count)),
    .beat_valid_i(rd_rsp_valid_i),
    .beat_ready_o(rd_rsp_ready_o),
    .beat_data_i (rd_rsp_data_i),
    .beat_last_i (rd_rsp_last_i),
    .beat_error_i(rd_rsp_error_i),
    .word_valid_o(word_valid),
    .word_ready_i(rec_valid && !rec.token && !f1_copy),
    .word_data_o (word),
    .word_last_o (word_last),
    .word_error_o(word_error)
  );

  logic word_take, rec_same, token_take;
  // A pushed descriptor has the buffer's write port for itself.
  assign word_take = word_valid && rec_valid && !rec.token && !f1_copy;
  assign rec_same  = alive[rec.ctx] && gen[rec.ctx] == rec.gen;
  assign commit    = word_take && word_last && rec_same;
  assign rec_pop   = (word_take && word_last) || token_take;

  // ------------------------------------------------------ choice of what leaves
  logic             s1_valid_d, s1_valid_q;
  logic [TxW-1:0]   s1_ctx_d, s1_ctx_q;
  logic [NumTx-1:0] s0_want, room_q;
  logic             shared_ok;
  logic             s0_valid, s0_take;
  logic [TxW-1:0]   s0_ctx;
  logic             slots_ready, emit_cfg_ready;
  tx_desc_t         desc;        // In later cycles, that of the first.
  logic [511:0]     ring_raw, slot_raw;  // Read: a descriptor, or its segments.
  tx_ctx_cfg_t      s1_cfg;
  logic             out_valid, out_ready;
  tx_op_t           out;
  tx_fetched_t      leaving;
  logic [2:0]       out_count;

  assign shared_ok = shared_q < SharedW'(Shared);
  always_comb begin
    for (int unsigned i = 0; i < NumTx; i++) begin
      room_o[i] = credit_ok_i[cq[i]] &&
                  (used[i] < ShareW'(Guarantee) ||
                   (used[i] < ShareW'(MessageShare) && shared_ok));
    end
  end
  always_comb begin
    for (int unsigned i = 0; i < NumTx; i++) begin
      s0_want[i] = offered[i] && !(s1_valid_q && s1_ctx_q == TxW'(i)) && !(again_valid_i && again_i.ctx == TxW'(i));
    end
  end

  heddle_rr_pick #(
    .NumSrc(NumTx)
  ) u_emit_pick (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(s0_want),
    .valid_o(s0_valid),
    .idx_o  (s0_ctx),
    .take_i (s0_take)
  );

  assign token_take = rec_valid && rec.token && !s1_valid_q && out_ready;
  logic s0_free, again_take, s1_again_q;
  assign s0_free    = !s1_seek && !hold && !(rec_valid && rec.token) && out_count < 3'd3 &&
                      flows_ready_i;
  assign again_take = again_valid_i && room_q[again_i.ctx] && s0_free && !(s1_valid_q && s1_again_q);
  assign s0_take    = s0_valid && !again_take && s0_free;
  assign s1_valid_d = s0_take || again_take || s1_seek;
  assign s1_ctx_d   = again_take ? again_i.ctx : s0_take ? s0_ctx : s1_ctx_q;

  // A descriptor whose payload follows it has no local address: its number stands there.
  tx_desc_t copy_numbered;
  always_comb begin
    copy_numbered = copy;
    if (f1_copy_ext) copy_numbered.local_iova = put_tag_i;
  end

  logic             arrives, checking;
  logic [TxW-1:0]   arrival_ctx;
  logic [15:0]      arrival_position;
  logic [SlotW-1:0] arrival_slot;
  assign arrives          = f1_copy || (word_take && rec_same);
  assign arrival_ctx      = f1_copy ? f1_ctx_q : rec.ctx;
  assign arrival_position = f1_copy ? f1_requested_q : rec.position + 16'(word_q);
  assign arrival_slot     = arrival_position[SlotW-1:0];
  heddle_tx_slots u_slots (
    .clk_i, .rst_ni,
    .arrives_i(arrives), .ctx_i(arrival_ctx), .position_i(arrival_position),
    .mask_i(mask[arrival_ctx]), .desc_i(f1_copy ? copy : tx_desc_t'(word)), .slot_i(f1_copy ? copy_numbered : word),
    .checking_o(checking), .done_i(done), .read_ctx_i(s0_ctx), .next_i(s1_seek), .next_ctx_i(s1_ctx_q), .next_slot_i(s1_next),
    .slot_o(ring_raw), .check_o(ring_check), .ready_o(slots_ready)
  );

  // One that waited is checked while it is offered. In the spill area it has the slots that it had in the ring.
  tx_desc_t       again_desc;
  logic           again_fits;
  tx_desc_check_t ring_check, again_check, again_check_q, kept_check_q, check;
  assign again_desc = again_i.data[0];
  assign again_fits = 8'(again_i.info.slots) == 8'd1 + again_desc.ext_slots;
  heddle_tx_check u_again_check (
    .desc_i(again_desc), .position_i(again_i.info.position), .fits_i(again_fits), .whole_i(1'b1), .failed_i(again_i.failed),
    .check_o(again_check)
  );
  assign check = s1_again_q ? again_check_q : s1_later ? kept_check_q : ring_check;

  heddle_mem #(
    .Width(512),
    .Depth(NumTx),
    .Coherent(1'b0)   // It is written while nothing is chosen.
  ) u_cfg_emit (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (tbl_write),
    .waddr_i(tbl_ctx),
    .wdata_i(tbl_req_i.data),
    .raddr_i(s1_seek ? s1_ctx_q : again_take ? again_i.ctx : s0_ctx),
    .rdata_o(s1_cfg),
    .error_o(unused_emit_error),
    .ready_o(emit_cfg_ready)
  );

  // ------------------------------------------------------------------- segments
  logic        s1_seek;      // Its segments are read next.
  logic        s1_read_q;    // They are there, and checked.
  logic        s1_second_q;  // They were.
  logic        s1_later;
  tx_desc_t    s1_desc_q;
  logic [SlotW-1:0] s1_next;
  logic        segments_ok, segments_ok_q;
  assign s1_later = s1_read_q || s1_second_q;
  assign slot_raw = s1_again_q ? again_i.data[s1_later] : ring_raw;
  assign desc     = s1_later ? s1_desc_q : tx_desc_t'(slot_raw);
  assign s1_next = s1_position_q[SlotW-1:0] + 1'b1;
  assign s1_seek = s1_read_q || (s1_found && !s1_second_q && check.segmented && !s1_dropped && !s1_wait);

  // ------------------------------------------------------------ check and leave
  logic [15:0] s1_position_q, s1_slot_q;
  logic [2:0]  s1_slots;
  logic        s1_failed_q, s1_overrun_q;
  logic        s1_ext;
  logic        s1_unread, s1_spoiled;  // Its read, or one before it, failed.
  logic        s1_dropped;             // Whatever it is, it does nothing.
  logic        position_ok;
  logic        s1_go, s1_wait, s1_bad, s1_fence, s1_more, s1_joins, s1_unnumbered, s1_found, s1_clear;
  status_e     s1_status;

  always_ff @(posedge clk_i) begin
    if (!s1_seek) begin
      s1_position_q <= again_take ? again_i.info.position : done[s0_ctx];
      s1_slot_q     <= again_take ? 16'(again_i.slot) : done[s0_ctx] & mask[s0_ctx];
      s1_failed_q   <= failed[s0_ctx];
      s1_overrun_q  <= overrun[s0_ctx];
    end
  end
  assign s1_ext      = (desc.flags & TxFlagInlineExt) != '0;
  assign s1_unread   = !s1_again_q && unread[s1_ctx_q];
  assign s1_spoiled  = !s1_again_q && spoiled[s1_ctx_q];
  assign s1_dropped  = !s1_again_q && (s1_failed_q || s1_overrun_q || spoiled[s1_ctx_q]);
  assign position_ok = check.position_ok && !s1_spoiled;
  assign s1_slots    = s1_spoiled ? 3'd1 : check.slots;

  always_comb begin
    s1_status = StatusOk;
    if (s1_again_q && again_i.failed) s1_status = StatusLocalAccess;
    else if (!s1_again_q && s1_failed_q) s1_status = StatusFlushed;
    else if (s1_unread) s1_status = StatusLocalAccess;
    else if ((!s1_again_q && s1_overrun_q) || !position_ok) s1_status = StatusBadPosition;
    else if (!check.opcode_ok) s1_status = StatusBadOpcode;
    else if (!check.lengths_ok || (s1_second_q && !segments_ok_q)) s1_status = StatusBadLength;
  end

  // An offer that came too late finds nothing, or no room. Slots that are published but have not arrived are waited for.
  assign s1_found      = s1_valid_q && (s1_again_q || have[s1_ctx_q] != '0);
  assign s1_wait       = !s1_again_q && s1_slots > have[s1_ctx_q];
  assign s1_unnumbered = !s1_again_q && number_busy[s1_ctx_q];
  assign s1_clear      = s1_found && !s1_seek && !s1_wait && !s1_fence && !s1_unnumbered;
  assign s1_go         = s1_clear && !s1_behind && out_ready && room_o[s1_ctx_q];
  // A fence waits for the whole context.
  assign s1_fence = !s1_again_q && position_ok && (desc.flags & TxFlagFence) != '0 && some[s1_ctx_q];
  assign s1_more  = (desc.flags & TxFlagMore) != '0;
  assign s1_joins = position_ok && desc.opcode != OpcodeNop && (s1_more || chain[s1_ctx_q]);
  assign s1_bad  = s1_status != StatusOk && s1_status != StatusFlushed;
  assign s1_left = s1_go || s1_pass;

  // After others of its flow: in its list, or in the ring until it may go.
  logic s1_pass;     // To the list.
  logic s1_left;
  logic s1_full, s1_behind, s1_stays;
  assign s1_full   = look_count_i >= ShareW'(PeerShare) &&
                     (look_stuck_i || (ShareW + 1)'(look_count_i) + (ShareW + 1)'(used[s1_ctx_q]) >
                                      (ShareW + 1)'(MessageShare));
  assign s1_behind = !s1_again_q && (s1_cfg.spill_base != '0 || early_o[s1_ctx_q]) && s1_status == StatusOk &&
                     desc.opcode != OpcodeNop && (look_waits_i || s1_full);
  assign s1_stays  = s1_clear && s1_behind;
  assign s1_pass   = s1_stays && look_stuck_i && keep_ok_i[s1_ctx_q];
  always_comb begin
    keep_data_o          = '0;
    keep_data_o.ctx      = s1_ctx_q;
    keep_data_o.flow     = look_flow_o;
    keep_data_o.position = s1_position_q;
    keep_data_o.slots    = s1_slots;
    keep_data_o.ring     = s1_cfg.ring_base;
    keep_data_o.group    = {s1_joins, group[s1_ctx_q], members[s1_ctx_q]};
  end
  assign keep_o        = s1_pass;
  assign look_flow_o   = flow_at(s1_ctx_q, position_ok ? check.hash : '0, s1_operation.rud);
  assign take_o        = s1_go;
  assign forget_o      = tbl_write;
  assign forget_ctx_o  = tbl_ctx;
  assign again_seen_o  = again_take || (s1_valid_q && s1_again_q);
  assign again_taken_o = s1_go && s1_again_q;
  assign again_holds_o = s1_status == StatusOk && s1_ext && desc.length != '0;

  tx_op_t s1_operation;
  heddle_tx_operation u_operation (
    .ctx_i(s1_ctx_q), .gen_i(gen[s1_ctx_q]), .cfg_i(s1_cfg), .cq_gen_i(cq_gen_i[s1_cfg.cq[CqW-1:0]]),
    .position_i(s1_position_q), .slots_i(!s1_again_q ? s1_slots : again_i.holds ? again_i.info.slots : '0),
    .group_i(s1_again_q ? again_i.info.group : {s1_joins, group[s1_ctx_q], members[s1_ctx_q]}),
    .desc_i(desc), .position_ok_i(position_ok), .status_i(s1_status),
    .addr_i((s1_again_q && !again_i.holds ? s1_cfg.spill_base : s1_cfg.ring_base) + {42'b0, s1_slot_q, 6'b0}),
    .ext_kept_i(!s1_again_q || again_holds_o), .pushed_i(pushed_q[s1_ctx_q] && !s1_again_q),
    .segments_i(slot_raw), .segmented_i(s1_second_q), .segments_ok_o(segments_ok), .op_o(s1_operation)
  );
  always_comb begin
    out = s1_operation;
    if (!s1_valid_q) begin
      out       = '0;
      out.token = 1'b1;
      out.ctx   = rec.ctx;
      out.gen   = rec.gen;
    end
  end
  assign out_valid = s1_go || token_take;
  assign leaving   = {s1_cfg.av_base, s1_cfg.av_entries, out};

  heddle_fifo #(
    .Width($bits(leaving)),
    .Depth(4)
  ) u_out (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(out_valid),
    .ready_o(out_ready),
    .data_i (leaving),
    .valid_o(op_valid_o),
    .ready_i(op_ready_i),
    .data_o (op_o),
    .count_o(out_count)
  );

  assign credit_take_o = s1_go;
  assign credit_cq_o   = s1_cfg.cq[CqW-1:0];

  // ---------------------------------------------------------------- doorbells
  assign db_ready_o = 1'b1;
  assign db_ctx     = TxW'(32'(db_i.page) - TxPageFirst);
  assign db_tail    = db_valid_i && db_i.offset == DoorbellTailOffset[11:0] && alive[db_ctx];
  assign db_av      = db_valid_i && db_i.offset == DoorbellOpOffset[11:0] &&
                      db_i.data[7:0] == DoorbellOpAvInvalidate;
  assign db_step    = db_i.data[15:0] - tail[db_ctx];

  assign av_invalidate_o = tbl_write || db_av;
  assign av_ctx_o        = tbl_write ? tbl_ctx : db_ctx;

  // ------------------------------------------------------------- context state
  for (genvar i = 0; i < NumTx; i++) begin : gen_context
    logic f1_here, s1_here;
    assign f1_here = f1_ctx_q == TxW'(i);
    assign s1_here = s1_ctx_q == TxW'(i);
    heddle_tx_context u_context (
      .clk_i, .rst_ni,
      .table_i(tbl_write && tbl_ctx == TxW'(i)), .cfg_i(tbl_cfg),
      .tail_i(db_tail && db_ctx == TxW'(i)), .tail_at_i(db_i.data[15:0]),
      .request_i(f1_go && f1_here), .request_at_i(f1_requested_q + 16'(f1_passed)), .copy_i(f1_copy && f1_here),
      .fetch_i(commit && rec.ctx == TxW'(i)), .fetch_at_i(rec.position), .fetched_at_i(rec.position + 16'(rec.count)),
      .fetch_error_i(word_error),
      .look_i(s1_found && s1_here && !s1_again_q), .look_slots_i(s1_slots),
      .partial_i(s1_found && s1_here && s1_wait), .fence_valid_i(s1_found && s1_here && !s1_again_q),
      .fence_i(s1_fence), .hold_i(s1_stays && s1_here && !s1_pass), .stir_i,
      .leave_i(s1_left && s1_here && !s1_again_q), .left_at_i(s1_position_q + 16'(s1_slots)), .join_i(s1_joins),
      .more_i(s1_more), .fail_i(s1_go && s1_here && s1_bad),
      .error_i(ctx_error_i && ctx_error_ctx_i == TxW'(i)), .error_gen_i(ctx_error_gen_i),
      .take_i(s1_go && s1_here), .retire_i(retire_i && retire_ctx_i == TxW'(i)), .waits_i(waits_i[i]), .room_i(room_o[i]),
      .group_i(group_i && group_ctx_i == TxW'(i)), .group_number_i,
      .alive_o(alive[i]), .failed_o(failed[i]), .overrun_o(overrun[i]), .refused_o(refused[i]),
      .unread_o(unread[i]), .spoiled_o(spoiled[i]), .gen_o(gen[i]), .tail_o(tail[i]), .requested_o(requested[i]), .fetched_o(fetched[i]),
      .done_o(done[i]), .used_o(used[i]), .offer_o(offered[i]),
      .waiting_o(waiting[i]), .have_o(have[i]), .some_o(some[i]), .chain_o(chain[i]), .group_o(group[i]),
      .members_o(members[i]), .group_busy_o(number_busy[i]), .group_moves_o(number_next[i]),
      .log2_o(ring_log2_o[i]), .mask_o(mask[i]), .cq_o(cq[i]), .owner_o(owner_o[i]), .head_cell_o(head_cell_o[i]),
      .spill_base_o(spill_base_o[i]), .early_o(early_o[i]), .counters_o(counters_o[i])
    );
  end

  // Messages beyond the guarantees.
  logic [SharedW-1:0] shared_more, shared_less;
  logic               shares, unshares, unshares_alone;
  assign shared_more    = shared_q + 1'b1;
  assign shared_less    = shared_q - 1'b1;
  assign shares         = used[s1_ctx_q] >= ShareW'(Guarantee);
  assign unshares_alone = used[retire_ctx_i] > ShareW'(Guarantee);
  assign unshares       = retire_i && (unshares_alone || (s1_go && s1_ctx_q == retire_ctx_i && shares));
  assign shared_d       = (s1_go && shares) == unshares ? shared_q : unshares ? shared_less : shared_more;

  // --------------------------------------------------------------- table state
  // While slots of the context are being copied, others go on.
  assign hold      = tbl_valid_i && tbl_q != TblDrain && !(tbl_q == TblToken && busy_i[tbl_ctx]);
  assign quiet     = !f1_valid_q && !copies_busy && !s1_valid_q && cfg_ready && emit_cfg_ready;
  assign tbl_write = tbl_q == TblIdle && tbl_valid_i && quiet &&
                     tbl_req_i.op == TableOpWrite && 32'(tbl_req_i.index) < NumTx;
  always_comb begin
    tbl_d       = tbl_q;
    tbl_error_d = tbl_error_q;
    unique case (tbl_q)
      TblIdle: begin
        tbl_error_d = 1'b0;
        if (tbl_valid_i && quiet) begin
          tbl_d = TblDone;
          if (32'(tbl_req_i.index) >= NumTx) tbl_error_d = 1'b1;
          else if (tbl_req_i.op == TableOpRead) tbl_d = TblRead;
          else if (tbl_req_i.op == TableOpDrain) tbl_d = TblToken;
        end
      end
      TblRead:  tbl_d = TblDone;
      TblToken: if (token_in && rec_in_ready) tbl_d = TblDrain;
      TblDrain: if (drained_i) tbl_d = TblDone;
      TblDone:  tbl_d = TblIdle;
      default:  tbl_d = TblIdle;
    endcase
  end

  assign tbl_rsp_o.done  = tbl_q == TblDone;
  assign tbl_rsp_o.error = tbl_q == TblDone && tbl_error_q;
  assign tbl_rsp_o.data  = tbl_q == TblDone ? f1_cfg : '0;

  always_comb begin
    stat_o = '0;
    stat_o[StatisticTxDescriptors[5:0]]    = s1_go && s1_status == StatusOk;
    stat_o[StatisticTxBadDescriptors[5:0]] = s1_go && s1_bad;
    stat_o[StatisticTxPushed[5:0]]         = f1_copy;
  end

  assign idle_o = !db_valid_i && !tbl_valid_i && !f0_valid && !f1_valid_q && !copies_busy && !rd_valid_q &&
                  !rec_valid && !s0_valid && waiting == '0 && !checking && number_next == '0 && !again_valid_i && flows_ready_i && !s1_valid_q && !op_valid_o && cfg_ready &&
                  slots_ready && emit_cfg_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tbl_q       <= TblIdle;
      tbl_error_q <= 1'b0;
      shared_q    <= '0;
      s1_again_q  <= 1'b0;
      f1_valid_q  <= 1'b0;
      rd_valid_q  <= 1'b0;
      s1_valid_q  <= 1'b0;
      s1_read_q   <= 1'b0;
      s1_second_q <= 1'b0;
      room_q      <= '0;
      word_q      <= '0;
    end else begin
      tbl_q       <= tbl_d;
      tbl_error_q <= tbl_error_d;
      shared_q    <= shared_d;
      s1_again_q  <= again_take || (s1_seek && s1_again_q);
      f1_valid_q  <= f1_valid_d;
      rd_valid_q  <= rd_valid_d;
      s1_valid_q  <= s1_valid_d;
      s1_read_q   <= s1_seek && !s1_read_q;
      s1_second_q <= s1_read_q;
      room_q      <= room_o;
      if (word_take) word_q <= word_last ? '0 : word_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    f1_ctx_q <= f1_ctx_d;
    rd_req_q <= rd_req_d;
    s1_ctx_q <= s1_ctx_d;
    if (s1_seek) begin
      s1_desc_q    <= desc;
      kept_check_q <= check;
    end
    again_check_q <= again_check;
    segments_ok_q <= segments_ok;
  end

  logic unused;
  assign unused = ^{tbl_req_i.sel, retire_gen_i, tbl_cfg, s1_cfg, copy, copies_ready,
                    unused_cfg_error, unused_emit_error};

  // Memories without coherence.
  `HEDDLE_ASSERT(NothingChosenAtWrite_A, tbl_write |-> !f0_take && !s0_take && !again_take && !s1_valid_q && !f1_valid_q)
  `HEDDLE_ASSERT(ReadAfterItArrived_A, s1_found && !s1_again_q && !s1_second_q |->
                 !$past(arrives && arrival_ctx == (s1_seek ? s1_ctx_q : s0_ctx) &&
                        arrival_slot == (s1_seek ? s1_next : done[s0_ctx][SlotW-1:0])))
  `HEDDLE_ASSERT(BufferRoom_A, f1_go |-> f1_count != '0 && f1_requested_q + 16'(f1_count) - done[f1_ctx_q] <= 16'(Slots))
  `HEDDLE_ASSERT(RecordRoom_A, rec_in_valid && !token_in |-> rec_in_ready)
  `HEDDLE_ASSERT(OrderedOffer_A, op_valid_o && !op_ready_i |=> op_valid_o && $stable(op_o))
  `HEDDLE_ASSERT(CreditTaken_A, credit_take_o |-> credit_ok_i[credit_cq_o])
endmodule
