// SPDX-License-Identifier: Apache-2.0
// Ends messages: completion, release of ring slots in order, return of the table entry.
//
// Ordered:  slots of a context are released in ring order; `queue_head` of a completion is the
//           released head including its own slots if they could be released.
// Cell:     an operation without completion (flag `completion` clear and status ok, or NOP)
//           writes the head cell when a quarter of the ring was released since the last report,
//           or when the context has nothing else in flight.
// Queued:   64 ended messages may wait, so that walking over slots does not stop heddle_pdc_walk.
// Grouped:  of an operation of several descriptors, the last one is held until all have ended, and
//           speaks for them; the others are silent.
// Counted:  each operation in its context's counter of its class, with a completion or without.
// Spilled:  heddle_tx_spill has slots released before their operation ends, in any order; the head cell reports them
//           as soon as those before have left. A message ends without slots then.
// Stale:    a message whose generation is not its context's present one completes nothing: only
//           its CQ credit and table entry return.
// Token:    waits beside the messages, and leaves as a cq_event token once `tx_seq_done_i` has reached `tx_seq_issued_i` as it was
//           when the token arrived, and `back_done_i` `back_decided_i` likewise, behind everything that arrived
//           before.

`include "heddle_assert.svh"

module heddle_tx_release
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             wr_valid_i,      // Message table write, at allocation.
  input  logic [MsgW-1:0]  wr_msg_i,
  input  msg_done_t        wr_data_i,

  input  logic             done_valid_i,
  output logic             done_ready_o,
  input  tx_done_t         done_i,

  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,
  input  logic [NumTx-1:0][63:0]     head_cell_i,
  input  logic [NumTx-1:0][3:0]      ring_log2_i,
  input  logic [NumTx-1:0][$bits(tx_counters_t)-1:0] counters_i,
  input  logic [SeqW-1:0]  tx_seq_issued_i,
  input  logic [SeqW-1:0]  tx_seq_done_i,
  input  logic [SeqW-1:0]  back_decided_i,  // Return data that are to be written, and those that were.
  input  logic [SeqW-1:0]  back_done_i,

  input  logic             give_valid_i,    // Release these slots,
  output logic             give_ready_o,
  input  tx_give_t         give_i,          // unless their message is another one, or ended.
  output logic             give_done_o,     // Strobe: one was tried,
  output logic             give_ok_o,       // and done.
  input  logic             owe_i,           // Strobe: this message's slots are about to go. It ends with a completion
  input  logic [MsgW-1:0]  owe_msg_i,       // in any case, and so do those without slots.
  output logic [NumTx-1:0][15:0] head_o,    // Released,
  output logic [NumTx-1:0][15:0] told_o,    // and told to the host.

  output logic             ev_valid_o,
  input  logic             ev_ready_i,
  output cq_event_t        ev_o,

  output logic             free_o,          // Strobe: table entry returns to the free list.
  output logic [MsgW-1:0]  free_msg_o,
  output logic             retire_o,        // Strobe for the context's share.
  output logic [TxW-1:0]   retire_ctx_o,
  output logic [GenW-1:0]  retire_gen_o,
  output logic             group_o,         // Strobe: the operation of several descriptors ended:
  output logic [TxW-1:0]   group_ctx_o,
  output logic [GroupW-1:0] group_number_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
  localparam int unsigned IndexW  = RingLog2Max;
  localparam int unsigned FlightW = MsgW + 1;

  // State of a ring slot: the operation that starts there ended before those
  // in front of it.
  typedef struct packed {
    logic       done;
    logic [2:0] slots;
  } slot_t;

  logic [NumTx-1:0]             alive_q;
  logic [NumTx-1:0][GenW-1:0]   gen_q;
  logic [NumTx-1:0][15:0]       head_d, head_q;          // Slots released.
  logic [NumTx-1:0][15:0]       reported_d, reported_q;  // Of these, told to the host.
  logic [NumTx-1:0][FlightW-1:0] flight_d, flight_q;     // Messages in the table.

  // ------------------------------------------------------------ ended message
  logic      d1_valid_d, d1_valid_q, d1_finish, d0_take;
  tx_done_t  d1_done_q;
  logic [SeqW-1:0] d1_issued_q, d1_decided_q;
  msg_done_t msg, read;
  logic      msg_ready, unused_msg_error;

  // The last message of a group that became complete comes again, before others. Where a
  // context is forgotten, nothing else is taken.
  logic      d0_room, d1_again_q, again_valid, flush, flush_valid;
  logic      again_q;
  tx_done_t  again_done_q, d0_done;
  logic [MsgW-1:0] flush_msg;
  logic            d1_spill_q;    // Slots are released early, nothing ends.
  tx_give_t        d1_give_q;
  // While the oldest message of a ring walks over others, a slot in a cycle, those that end wait here.
  localparam int unsigned Waiting = 64;
  logic                     waits, ends_taken;
  tx_done_t                 ended;
  logic [$clog2(Waiting):0] unused_count;
  heddle_fifo #(.Width($bits(tx_done_t)), .Depth(Waiting)) u_ended (
    .clk_i, .rst_ni, .valid_i(done_valid_i), .ready_o(done_ready_o), .data_i(done_i),
    .valid_o(waits), .ready_i(ends_taken), .data_o(ended), .count_o(unused_count)
  );
  assign d0_room      = (!d1_valid_q || d1_finish) && msg_ready;
  assign again_valid  = again_q || flush_valid;
  assign give_ready_o = d0_room && !again_valid && !flush;
  assign ends_taken   = give_ready_o && !give_valid_i;
  assign d0_take      = d0_room && (again_valid || ((waits || give_valid_i) && !flush));
  always_comb begin
    d0_done = ended;
    if (again_q) begin
      d0_done = again_done_q;
    end else if (flush_valid) begin
      d0_done     = '0;
      d0_done.msg = flush_msg;
    end else if (give_valid_i) begin
      d0_done     = '0;
      d0_done.msg = give_i.msg;
    end
  end
  assign d1_valid_d   = d0_take || (d1_valid_q && !d1_finish);

  heddle_mem #(
    .Width($bits(read)),
    .Depth(NumMsg),
    .Init (1'b0)
  ) u_messages (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (wr_valid_i),
    .waddr_i(wr_msg_i),
    .wdata_i(wr_data_i),
    .raddr_i(d0_take ? d0_done.msg : d1_done_q.msg),
    .rdata_o(read),
    .error_o(unused_msg_error),
    .ready_o(msg_ready)
  );

  // Slots that are released early stand for a message.
  logic give_same;
  assign give_same = d1_give_q.waits ||
                     (holds_q[d1_done_q.msg] && read.ctx == d1_give_q.ctx && read.gen == d1_give_q.gen &&
                      read.position == d1_give_q.position);
  always_comb begin
    msg = read;
    if (d1_spill_q) begin
      msg.ctx      = d1_give_q.ctx;
      msg.gen      = d1_give_q.gen;
      msg.position = d1_give_q.position;
      msg.slots    = d1_give_q.slots;
    end
  end

  // -------------------------------------------------------------- slot states
  logic  mark, step;
  logic [TxW+IndexW-1:0] slot_waddr, slot_raddr;
  slot_t slot_wdata, slot;
  logic [NumTx-1:0] restart, forget, dirty;

  heddle_ring_state #(
    .Width ($bits(slot)),
    .NumCtx(NumTx)
  ) u_slots (
    .clk_i    (clk_i),
    .rst_ni   (rst_ni),
    .restart_i(restart),
    .log2_i   (ring_log2_i),
    .dirty_o  (dirty),
    .wen_i    (mark || step),
    .waddr_i  (slot_waddr),
    .wdata_i  (slot_wdata),
    .raddr_i  (slot_raddr),
    .rdata_o  (slot)
  );

  // ------------------------------------------------------------------ release
  // A message whose turn it is releases its slots and walks over those behind it
  // that ended before, one per cycle.
  logic              walk_d, walk_q;
  logic [15:0]       walk_head_d, walk_head_q;
  logic              stale, silent, ok, front, blocked, unasked;
  logic [NumMsg-1:0] owed_q;
  logic              ready, emit, live;
  logic [15:0]       mask, head, unreported;
  logic              last, cell_due;

  assign mask    = (16'd1 << ring_log2_i[msg.ctx]) - 16'd1;
  assign stale   = !alive_i[msg.ctx] || gen_i[msg.ctx] != msg.gen;
  assign blocked = dirty[msg.ctx];
  assign ok      = status == StatusOk;
  assign front   = msg.position == head_q[msg.ctx];
  // A NOP that was flushed is no news: the failure in front of it was reported.
  assign silent  = d1_spill_q || (msg.opcode == OpcodeNop ? (ok || status == StatusFlushed) :
                   (member || (unasked && !owed_q[d1_done_q.msg])));
  assign unasked = ok && (msg.flags & TxFlagCompletion) == '0;

  // ------------------------------------------------------------------- groups
  logic            grouped, member, group_last, hold, complete, held;
  logic [MsgW-1:0] held_msg;
  status_e         group_status, status;
  logic [15:0]     group_detail;
  logic [7:0]      detail;
  assign grouped    = d1_valid_q && !d1_done_q.token && !d1_again_q && !d1_spill_q && !stale &&
                      msg.group.valid;
  assign member     = grouped && (msg.flags & TxFlagMore) != '0;
  assign group_last = grouped && !member;
  assign hold       = group_last && !complete;
  assign status     = group_last ? group_status : d1_done_q.status;
  assign detail     = group_last ? group_detail[7:0] : d1_done_q.detail[7:0];

  heddle_tx_groups u_groups (
    .clk_i, .rst_ni, .forget_i(forget),
    .look_i(d1_valid_q), .ctx_i(msg.ctx), .group_i(msg.group.number),
    .update_i(grouped && d1_finish), .last_i(group_last), .members_i(msg.group.members),
    .msg_i(d1_done_q.msg), .position_i(msg.position),
    .status_i(d1_done_q.status), .detail_i(d1_done_q.detail),
    .complete_o(complete), .status_o(group_status), .detail_o(group_detail),
    .held_o(held), .held_msg_o(held_msg),
    .flush_o(flush), .flush_valid_o(flush_valid), .flush_take_i(flush_valid && d0_take && !again_q),
    .flush_msg_o(flush_msg)
  );
  assign group_o        = grouped && d1_finish && complete;
  assign group_ctx_o    = msg.ctx;
  assign group_number_o = msg.group.number;

  // A token holds no message up: it waits beside them.
  logic            token_q, token_take, token_emit;
  logic [SeqW-1:0] token_issued_q, token_decided_q;
  assign token_take = d1_valid_q && d1_done_q.token && !token_q;
  assign token_emit = token_q && !emit && !(16'(tx_seq_done_i - token_issued_q) >= 16'h8000) &&
                      !(16'(back_done_i - token_decided_q) >= 16'h8000);

  // Messages that hold their slots.
  logic [NumMsg-1:0] holds_q;
  logic              holds, reject, spilled;
  assign holds   = holds_q[d1_done_q.msg];
  assign spilled = d1_spill_q && d1_finish && !reject;

  always_comb begin
    reject      = 1'b0;
    mark        = 1'b0;
    step        = 1'b0;
    emit        = 1'b0;
    live        = 1'b0;
    walk_d      = walk_q;
    walk_head_d = walk_head_q;
    if (d1_valid_q) begin
      if (d1_done_q.token) begin
        emit = 1'b0;
      end else if (walk_q) begin
        if (slot.done && !stale) begin
          step        = 1'b1;
          walk_head_d = walk_head_q + 16'(slot.slots);
        end else begin
          emit = 1'b1;
          live = !stale;
        end
      end else if (d1_spill_q && (stale || !give_same)) begin
        reject = 1'b1;
      end else if (stale) begin
        emit = 1'b1;
      end else if (!blocked && !hold) begin
        if (!holds && !d1_spill_q) begin
          emit = 1'b1;
          live = 1'b1;
        end else if (front) begin
          walk_d      = 1'b1;
          walk_head_d = msg.position + 16'(msg.slots);
        end else begin
          mark = 1'b1;
          emit = !d1_spill_q;
          live = 1'b1;
        end
      end
    end
    if (d1_finish) walk_d = 1'b0;
  end
  assign d1_finish = (emit && ready) || (hold && !blocked) || reject || token_take || (mark && d1_spill_q);

  assign head       = walk_q ? walk_head_q : head_q[msg.ctx];
  assign unreported = head - reported_q[msg.ctx];
  assign last       = flight_q[msg.ctx] == FlightW'(1) && !(wr_valid_i && wr_data_i.ctx == msg.ctx);
  assign cell_due   = unreported != '0 && (last || d1_spill_q || unreported > (mask >> 2));

  assign slot_raddr = {msg.ctx, walk_head_d[IndexW-1:0] & mask[IndexW-1:0]};
  always_comb begin
    slot_waddr = {msg.ctx, msg.position[IndexW-1:0] & mask[IndexW-1:0]};
    slot_wdata = '0;
    if (mark) begin
      slot_wdata.done  = 1'b1;
      slot_wdata.slots = msg.slots;
    end else begin
      slot_waddr = {msg.ctx, walk_head_q[IndexW-1:0] & mask[IndexW-1:0]};
    end
  end

  // ----------------------------------------------------------------- counters
  tx_counters_t counters;
  logic [7:0]   counted;
  assign counters = tx_counters_t'(counters_i[msg.ctx]);
  always_comb begin
    unique case (msg.opcode)
      OpcodeSend, OpcodeTaggedSend:      counted = counters.send;
      OpcodeRead, OpcodeFetchingAtomic:  counted = counters.read;
      OpcodeWrite, OpcodeAtomic:         counted = counters.write;
      default:                           counted = '0;
    endcase
  end

  // ------------------------------------------------------------------- events
  cq_event_t  ev;
  logic [1:0] ev_count;
  always_comb begin
    ev = '0;
    ev.token = token_emit;
    if (d1_valid_q && !token_emit) begin
      ev.credit    = !d1_spill_q;
      ev.write     = live && !silent;
      ev.head      = live && silent && cell_due;
      ev.head_cell = head_cell_i[msg.ctx];
      ev.owner     = msg.owner;
      ev.cq        = msg.cq;
      ev.cq_gen    = msg.cq_gen;
      ev.entry.op_context     = msg.op_context;
      ev.entry.length         = ok ? msg.length : '0;
      ev.entry.message_length = msg.length;
      ev.entry.peer           = msg.peer;
      ev.entry.queue_head     = head;
      ev.entry.position       = msg.position;
      ev.entry.status         = status;
      ev.entry.opcode         = msg.opcode;
      ev.entry.context_       = 8'(msg.ctx);
      ev.entry.detail         = detail;
      ev.entry.kind           = unasked ? CompletionKindTxSilent : CompletionKindTx;
      if (live && !member && !d1_spill_q) ev.count.own = counted;
    end
  end

  heddle_fifo #(
    .Width($bits(ev)),
    .Depth(2)
  ) u_out (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(emit || token_emit),
    .ready_o(ready),
    .data_i (ev),
    .valid_o(ev_valid_o),
    .ready_i(ev_ready_i),
    .data_o (ev_o),
    .count_o(ev_count)
  );

  logic message_end;
  assign message_end  = d1_finish && !d1_done_q.token && !hold && !d1_spill_q;
  assign give_done_o  = d1_finish && d1_spill_q;
  assign give_ok_o    = spilled;
  assign head_o       = head_q;
  assign told_o       = reported_q;
  assign free_o       = message_end;
  assign free_msg_o   = d1_done_q.msg;
  assign retire_o     = message_end;
  assign retire_ctx_o = msg.ctx;
  assign retire_gen_o = msg.gen;
  always_comb begin
    stat_o = '0;
    stat_o[StatisticTxSpilled]  = spilled;
    stat_o[StatisticTxMessages] = message_end && live && ok && !member &&
                                  msg.opcode != OpcodeNop;
  end

  // -------------------------------------------------------------------- state
  always_comb begin
    restart = '0;
    forget  = '0;
    if (alive_i != alive_q || gen_i != gen_q) begin
      for (int unsigned i = 0; i < NumTx; i++) begin
        forget[i]  = alive_i[i] != alive_q[i] || gen_i[i] != gen_q[i];
        restart[i] = alive_i[i] && (!alive_q[i] || gen_i[i] != gen_q[i]);
      end
    end
  end

  always_comb begin
    head_d     = head_q;
    reported_d = reported_q;
    flight_d   = flight_q;
    if (wr_valid_i) flight_d[wr_data_i.ctx] = flight_d[wr_data_i.ctx] + 1'b1;
    if (spilled && walk_q) begin
      head_d[msg.ctx]     = head;
      reported_d[msg.ctx] = head;
    end
    if (message_end) begin
      flight_d[msg.ctx] = flight_d[msg.ctx] - 1'b1;
      if (live) begin
        head_d[msg.ctx] = head;
        if (ev.write || ev.head) reported_d[msg.ctx] = head;
      end
    end
    if (|restart) begin
      for (int unsigned i = 0; i < NumTx; i++) begin
        if (restart[i]) begin
          head_d[i]     = '0;
          reported_d[i] = '0;
        end
      end
    end
  end

  assign idle_o = !done_valid_i && !waits && !give_valid_i && !d1_valid_q && !ev_valid_o && dirty == '0 &&
                  forget == '0 && !again_q && !token_q && !flush && msg_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      alive_q    <= '0;
      gen_q      <= '0;
      head_q     <= '0;
      reported_q <= '0;
      flight_q   <= '0;
      d1_valid_q <= 1'b0;
      walk_q     <= 1'b0;
      again_q    <= 1'b0;
      token_q    <= 1'b0;
      holds_q    <= '0;
      owed_q     <= '0;
    end else begin
      if (message_end || (spilled && !d1_give_q.waits)) holds_q[d1_done_q.msg] <= 1'b0;
      if (wr_valid_i)             holds_q[wr_msg_i] <= wr_data_i.slots != '0;
      if (owe_i)      owed_q[owe_msg_i] <= 1'b1;
      if (wr_valid_i) owed_q[wr_msg_i]  <= wr_data_i.slots == '0;
      if (token_take)                token_q <= 1'b1;
      else if (token_emit && ready) token_q <= 1'b0;
      if (group_o && member) again_q <= 1'b1;
      else if (d0_take)      again_q <= 1'b0;
      alive_q    <= alive_i;
      gen_q      <= gen_i;
      head_q     <= head_d;
      reported_q <= reported_d;
      flight_q   <= flight_d;
      d1_valid_q <= d1_valid_d;
      walk_q     <= walk_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (d0_take) begin
      d1_done_q   <= d0_done;
      d1_again_q  <= again_valid;
      d1_spill_q  <= !again_valid && give_valid_i;
      d1_give_q   <= give_i;
      d1_issued_q <= tx_seq_issued_i;
      d1_decided_q <= back_decided_i;
    end
    if (token_take) begin
      token_issued_q  <= d1_issued_q;
      token_decided_q <= d1_decided_q;
    end
    walk_head_q <= walk_head_d;
    if (group_o) again_done_q <= {1'b0, msg.ctx, msg.gen, held_msg, group_status, group_detail};
  end

  logic unused;
  assign unused = ^{ev_count, d1_done_q, d1_give_q, unused_msg_error};

  `HEDDLE_ASSERT(OrderedOffer_A, ev_valid_o && !ev_ready_i |=> ev_valid_o && $stable(ev_o))
  `HEDDLE_ASSERT(GroupedLastHeld_A, group_o && member |-> held)
  `HEDDLE_ASSERT(OneInFlight_A, message_end |-> flight_q[msg.ctx] != '0)
endmodule
