// SPDX-License-Identifier: Apache-2.0
// Completion queues: entries, phases, credits, head cells, interrupts.
//
// Credit:   `credit_ok_o` is high while at least 4 entries are neither written nor reserved
//           (size - produced + consumed - reserved); three takers may each take one per cycle, and are
//           seen by it in the next one.
//           An event with `credit` set returns its reservation; with `write` it becomes an entry.
//           Events of another generation of the queue return nothing and write nothing.
// Ordered:  events of one input are written in order; entries through the one write engine,
//           so behind payload whose request was taken before.
// Counted:  what an event counts goes to the counters in the same order, be there an entry or not.
// Doorbell: one in two cycles; it returns credits four cycles after it arrived.
// Interrupt: armed by the consumer doorbell with its count; when an entry beyond that count has been
//           written and its response returned, the vector is raised once.
// Token:    `drained_tx_o` / `drained_rx_o` pulse when all writes before the token returned.

`include "heddle_assert.svh"

module heddle_cq
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512   // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  doorbell_t        db_i,            // Pages of completion queues only.

  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  input  logic [2:0]                         ev_valid_i,  // 0 placement, 1 transmit, 2 receive queue.
  output logic [2:0]                         ev_ready_o,
  input  logic [2:0][$bits(cq_event_t)-1:0]  ev_i,

  output logic [NumCq-1:0]           credit_ok_o,
  output logic [NumCq-1:0]           credit_spare_o,  // At least SpareCredits less 3.
  output logic [NumCq-1:0][GenW-1:0] gen_o,
  input  logic [2:0]                 take_i,        // 0 accept, 1 tx_fetch, 2 rx_queue.
  input  logic [2:0][CqW-1:0]        take_cq_i,

  output logic             wr_valid_o,      // Client WrCq.
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             count_valid_o,   // To heddle_counter.
  input  logic             count_ready_i,
  output count_t           count_o,

  output logic             drained_tx_o,
  output logic             drained_rx_o,

  output logic             msix_valid_o,
  input  logic             msix_ready_i,
  output logic [VecW-1:0]  msix_vector_o,
  output logic [7:0]       msix_owner_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
  localparam int unsigned CountW  = CqLog2Max + 2;  // Free-running counts of entries.
  localparam int unsigned Pending = 256;            // Writes and tokens not returned.
  localparam int unsigned Beats   = 8 * CompletionBytes / DataW;
  localparam int unsigned Ahead   = 8;              // Writes not taken by the engine.

  // A write or token whose turn comes when everything before it was answered.
  typedef struct packed {
    logic            write;     // Owns a response.
    logic            entry;     // That of an entry of `cq`.
    logic            drain_tx;
    logic            drain_rx;
    logic            drain_tbl;
    logic [CqW-1:0]  cq;
    logic [GenW-1:0] gen;
  } pending_t;

  // A consumer doorbell of a queue.
  typedef struct packed {
    logic              valid;
    logic              arm;
    logic [CqW-1:0]    cq;
    logic [CountW-1:0] count;
  } consumer_t;

  // A queue that something happens to.
  typedef struct packed {
    logic           valid;
    logic [CqW-1:0] cq;
  } of_queue_t;

  function automatic logic [NumCq-1:0] OneHot(logic valid, logic [CqW-1:0] cq);
    OneHot = NumCq'(valid) << cq;
  endfunction

  // A write on its way to the engine.
  typedef struct packed {
    logic         entry;        // Otherwise a head cell.
    logic [511:0] data;
  } data_t;

  // ------------------------------------------------------------- queue state
  logic [NumCq-1:0]             alive_d, alive_q;
  logic [NumCq-1:0]             armed_d, armed_q;
  logic [NumCq-1:0]             raise_d, raise_q;        // Interrupt to raise.
  logic [NumCq-1:0][GenW-1:0]   gen_d, gen_q;
  logic [NumCq-1:0][CountW-1:0] free_d, free_q;          // Neither written nor reserved, but for
  logic [NumCq-1:0][1:0]        taken_d, taken_q;        // those of the last cycle.
  logic [NumCq-1:0][CountW-1:0] consumed_d, consumed_q;
  logic [NumCq-1:0][CountW-1:0] returned_d, returned_q;  // Entries whose write was answered.
  logic [NumCq-1:0][VecW-1:0]   vector_q;
  logic [NumCq-1:0][7:0]        owner_q;

  assign gen_o = gen_q;
  always_comb begin
    for (int unsigned i = 0; i < NumCq; i++) begin
      credit_spare_o[i] = free_q[i] >= CountW'(SpareCredits);
      credit_ok_o[i] = |free_q[i][CountW-1:3] || (free_q[i][2] && free_q[i][1:0] >= taken_q[i]);
    end
  end

  // --------------------------------------------------------------- table port
  typedef enum logic [2:0] {
    TblIdle  = 3'd0,
    TblRead  = 3'd1,  // Memory is being read.
    TblToken = 3'd2,  // Token waits for room.
    TblDrain = 3'd3,  // Token waits for the writes before it.
    TblDone  = 3'd4
  } tbl_state_e;

  tbl_state_e     tbl_d, tbl_q;
  logic           tbl_error_d, tbl_error_q;
  logic           tbl_write, tbl_token, tbl_drained;
  logic [CqW-1:0] tbl_cq;
  cq_cfg_t        tbl_cfg;
  assign tbl_cq  = tbl_req_i.index[CqW-1:0];
  assign tbl_cfg = cq_cfg_t'(tbl_req_i.data);

  // ------------------------------------------------------- events: take, look up
  logic       e0_valid, e0_take, e1_done, cfg_ready;
  logic [1:0] e0_idx;
  cq_event_t  e0_ev, e1_ev_q;
  logic       e1_valid_d, e1_valid_q, e1_rx_q;
  logic       e1_head_d, e1_head_q;  // Entry is out, head cell to come.
  cq_cfg_t    e1_cfg;

  heddle_rr_pick #(
    .NumSrc(3)
  ) u_pick (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(ev_valid_i),
    .valid_o(e0_valid),
    .idx_o  (e0_idx),
    .take_i (e0_take)
  );

  assign e0_take = e0_valid && (!e1_valid_q || e1_done) && cfg_ready && count_room &&
                   !(tbl_valid_i && tbl_q != TblDrain);
  always_comb begin
    e0_ev = '0;
    if (e0_valid) e0_ev = cq_event_t'(ev_i[e0_idx]);
    ev_ready_o         = '0;
    ev_ready_o[e0_idx] = e0_take;
  end
  assign e1_valid_d = e0_take || (e1_valid_q && !e1_done);

  logic       count_room;
  logic [2:0] count_count;
  count_t     count;
  always_comb begin
    count        = e0_ev.count;
    count.failed = e0_ev.entry.status != StatusOk;
  end
  heddle_fifo #(
    .Width($bits(count_t)),
    .Depth(4)
  ) u_counts (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(e0_take && (count.own != '0 || count.region != '0)),
    .ready_o(count_room),
    .data_i (count),
    .valid_o(count_valid_o),
    .ready_i(count_ready_i),
    .data_o (count_o),
    .count_o(count_count)
  );

  logic unused_cfg_error;
  heddle_mem #(
    .Width(512),
    .Depth(NumCq)
  ) u_cfg (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (tbl_write),
    .waddr_i(tbl_cq),
    .wdata_i(tbl_req_i.data),
    .raddr_i(e0_take ? e0_ev.cq : e1_valid_q ? e1_ev_q.cq : tbl_cq),
    .rdata_o(e1_cfg),
    .error_o(unused_cfg_error),
    .ready_o(cfg_ready)
  );

  // ------------------------------------------------------------ events: execute
  logic              e1_same, e1_entry, e1_cell, e1_push;
  logic [CountW-1:0] e1_produced, d1_produced;
  logic [15:0]       e1_slot;
  completion_t       e1_completion;
  logic              req_ready, data_ready, pending_ready;
  dma_req_t          push_req;
  data_t             push_data;
  pending_t          push_pending;

  assign e1_same  = alive_q[e1_ev_q.cq] && gen_q[e1_ev_q.cq] == e1_ev_q.cq_gen && !e1_ev_q.token;
  assign e1_entry = e1_valid_q && e1_same && e1_ev_q.write && !e1_head_q;
  assign e1_cell  = e1_valid_q && e1_same && e1_ev_q.head && !e1_entry;
  assign e1_push  = (e1_entry || e1_cell) && req_ready && data_ready && pending_ready;

  // Entries written, one copy for each reader. A table write waits until no event is here.
  logic              produced_wen;
  logic [CqW-1:0]    produced_cq;
  logic [CountW-1:0] produced;
  assign produced_wen = tbl_write || (e1_push && e1_entry);
  assign produced_cq  = tbl_write ? tbl_cq : e1_ev_q.cq;
  assign produced     = tbl_write ? '0 : e1_produced + 1'b1;
  heddle_lookup #(.Width(CountW), .Depth(NumCq)) u_produced (
    .clk_i, .wen_i(produced_wen), .waddr_i(produced_cq), .wdata_i(produced),
    .raddr_i(e1_ev_q.cq), .rdata_o(e1_produced)
  );
  heddle_lookup #(.Width(CountW), .Depth(NumCq)) u_doorbell_produced (
    .clk_i, .wen_i(produced_wen), .waddr_i(produced_cq), .wdata_i(produced),
    .raddr_i(d1_q.cq), .rdata_o(d1_produced)
  );
  assign e1_slot     = e1_produced[15:0] & ((16'd1 << e1_cfg.log2[3:0]) - 16'd1);
  always_comb begin
    e1_completion = '0;
    push_req      = '0;
    push_data     = '0;
    if (e1_valid_q) begin
      e1_completion       = e1_ev_q.entry;
      e1_completion.phase = {7'b0, !e1_produced[5'(e1_cfg.log2[3:0])]};
      push_req.owner      = e1_ev_q.owner;
      push_req.addr       = e1_ev_q.head_cell;
      push_req.bytes      = 14'd8;
      push_data.entry     = e1_entry;
      push_data.data      = {496'b0, e1_ev_q.entry.queue_head};
      if (e1_entry) begin
        push_req.addr  = e1_cfg.base + {42'b0, e1_slot, 6'b0};
        push_req.bytes = 14'(CompletionBytes);
        push_data.data = e1_completion;
      end
    end
  end

  always_comb begin
    push_pending           = '0;
    push_pending.write     = e1_entry || e1_cell;
    push_pending.entry     = e1_entry;
    push_pending.drain_tx  = e1_valid_q && e1_ev_q.token && !e1_rx_q;
    push_pending.drain_rx  = e1_valid_q && e1_ev_q.token && e1_rx_q;
    push_pending.drain_tbl = tbl_token;
    push_pending.cq        = e1_ev_q.cq;
    push_pending.gen       = e1_ev_q.cq_gen;
  end

  logic e1_token;
  assign tbl_token = tbl_q == TblToken && !e1_valid_q;
  assign e1_token  = e1_valid_q && e1_ev_q.token;
  always_comb begin
    e1_done   = 1'b0;
    e1_head_d = e1_head_q;
    if (e1_valid_q) begin
      if (e1_token) begin
        e1_done = pending_ready;
      end else if (e1_entry) begin
        e1_done   = e1_push && !e1_ev_q.head;
        e1_head_d = e1_push && e1_ev_q.head;
      end else if (e1_cell) begin
        e1_done = e1_push;
        if (e1_push) e1_head_d = 1'b0;
      end else begin
        e1_done = 1'b1;
      end
    end
  end

  // ------------------------------------------------------------------- writes
  logic [$clog2(Ahead):0] req_count, data_count;
  heddle_fifo #(
    .Width($bits(push_req)),
    .Depth(Ahead)
  ) u_requests (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(e1_push),
    .ready_o(req_ready),
    .data_i (push_req),
    .valid_o(wr_valid_o),
    .ready_i(wr_ready_i),
    .data_o (wr_req_o),
    .count_o(req_count)
  );

  data_t data;
  logic  data_valid, data_last;
  heddle_fifo #(
    .Width($bits(push_data)),
    .Depth(Ahead)
  ) u_data (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(e1_push),
    .ready_o(data_ready),
    .data_i (push_data),
    .valid_o(data_valid),
    .ready_i(wr_data_ready_i && data_last),
    .data_o (data),
    .count_o(data_count)
  );
  assign wr_data_valid_o = data_valid;

  if (Beats == 1) begin : gen_beat
    assign data_last = 1'b1;
    assign wr_data_o = data.data;

    logic unused_entry;
    assign unused_entry = data.entry;
  end else begin : gen_beats
    localparam int unsigned BeatW = $clog2(Beats);
    logic [BeatW-1:0] beat_q;
    assign data_last = !data.entry || beat_q == BeatW'(Beats - 1);
    assign wr_data_o = data.data[32'(beat_q) * DataW +: DataW];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        beat_q <= '0;
      end else if (data_valid && wr_data_ready_i) begin
        beat_q <= data_last ? '0 : beat_q + 1'b1;
      end
    end
  end

  // ---------------------------------------------------------------- responses
  pending_t head;
  logic     head_valid, head_pop, entry_back;
  logic [$clog2(Pending):0] pending_count;
  heddle_fifo #(
    .Width($bits(push_pending)),
    .Depth(Pending)
  ) u_pending (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(e1_push || e1_token || tbl_token),
    .ready_o(pending_ready),
    .data_i (push_pending),
    .valid_o(head_valid),
    .ready_i(head_pop),
    .data_o (head),
    .count_o(pending_count)
  );

  // Answers not matched yet: one may come while a token is at the head.
  logic [$clog2(Pending):0] answers_d, answers_q;
  assign head_pop     = head_valid && (!head.write || wr_rsp_valid_i || answers_q != '0);
  assign answers_d    = answers_q + ($clog2(Pending) + 1)'(wr_rsp_valid_i) -
                        ($clog2(Pending) + 1)'(head_pop && head.write);
  assign drained_tx_o = head_valid && head.drain_tx;
  assign drained_rx_o = head_valid && head.drain_rx;
  assign tbl_drained  = head_valid && head.drain_tbl;
  assign entry_back   = head_pop && head.entry && alive_q[head.cq] && gen_q[head.cq] == head.gen;

  // Not of a queue that starts anew meanwhile.
  of_queue_t back_d, back_q;
  assign back_d = {entry_back && !(tbl_write && tbl_cq == head.cq), head.cq};

  // ---------------------------------------------------------------- doorbells
  consumer_t         d1_d, d1_q, d2_d, d2_q, d3_d, d3_q;  // Decoded, looked up, taken.
  logic [CountW-1:0] d2_consumed_q, d2_produced_q, d2_step, d3_step_q;
  logic              d2_take;
  assign db_ready_o = !d1_q.valid;  // The next one looks up what this one leaves.
  assign d1_d.valid = db_valid_i && db_ready_o && db_i.offset == DoorbellCqConsumerOffset[11:0];
  assign d1_d.arm   = db_i.data[DoorbellCqConsumerArmLsb];
  assign d1_d.cq    = CqW'(32'(db_i.page) - CqPageFirst);
  assign d1_d.count = db_i.data[CountW-1:0];
  // A count beyond what was written would invent credits.
  assign d2_step = d2_q.count - d2_consumed_q;
  assign d2_take = d2_q.valid && d2_step <= d2_produced_q - d2_consumed_q;
  always_comb begin
    d2_d       = d1_q;
    d2_d.valid = d1_q.valid && alive_q[d1_q.cq] && !(tbl_write && tbl_cq == d1_q.cq);
    d3_d       = d2_q;
    d3_d.valid = d2_take && !(tbl_write && tbl_cq == d2_q.cq);
  end

  // --------------------------------------------------------------- interrupts
  logic            msix_valid_d, msix_valid_q, msix_load, raise_take, raise_valid;
  logic [VecW-1:0] msix_vector_d, msix_vector_q;
  logic [7:0]      msix_owner_d, msix_owner_q;
  logic [CqW-1:0]  raise_cq;
  of_queue_t       picked_d, picked_q;

  heddle_rr_pick #(
    .NumSrc(NumCq)
  ) u_raise (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(raise_q),
    .valid_o(raise_valid),
    .idx_o  (raise_cq),
    .take_i (raise_take)
  );
  assign msix_load     = picked_q.valid && (!msix_valid_q || msix_ready_i);
  assign msix_valid_d  = msix_load || (msix_valid_q && !msix_ready_i);
  assign msix_vector_d = msix_load ? vector_q[picked_q.cq] : msix_vector_q;
  assign msix_owner_d  = msix_load ? owner_q[picked_q.cq] : msix_owner_q;
  assign raise_take    = raise_valid && (!picked_q.valid || msix_load) && !tbl_write;
  always_comb begin
    picked_d = raise_take ? {1'b1, raise_cq} : picked_q;
    if (!raise_take && (msix_load || (tbl_write && tbl_cq == picked_q.cq))) picked_d.valid = 1'b0;
  end
  assign msix_valid_o  = msix_valid_q;
  assign msix_vector_o = msix_vector_q;
  assign msix_owner_o  = msix_owner_q;

  // Queues of which `returned` or `arm` changed: is there an entry beyond the count? The difference is taken in one
  // cycle and judged in the next, unless the queue is armed anew meanwhile.
  of_queue_t         moved_d, moved_q, rearmed_d, rearmed_q, moved_on_d, moved_on_q, rearmed_on_d, rearmed_on_q;
  logic [CountW-1:0] moved_arm, rearmed_arm, moved_ahead_q, rearmed_ahead_q;
  logic              arms;
  assign arms           = d3_q.valid && d3_q.arm;
  assign moved_d        = back_q;
  assign rearmed_d      = {arms, d3_q.cq};
  assign moved_on_d     = {moved_q.valid && !(arms && d3_q.cq == moved_q.cq), moved_q.cq};
  assign rearmed_on_d   = {rearmed_q.valid && !(arms && d3_q.cq == rearmed_q.cq), rearmed_q.cq};
  heddle_lookup #(.Width(CountW), .Depth(NumCq)) u_arm (
    .clk_i, .wen_i(arms), .waddr_i(d3_q.cq), .wdata_i(d3_q.count), .raddr_i(moved_q.cq), .rdata_o(moved_arm)
  );
  heddle_lookup #(.Width(CountW), .Depth(NumCq)) u_rearmed_arm (
    .clk_i, .wen_i(arms), .waddr_i(d3_q.cq), .wdata_i(d3_q.count), .raddr_i(rearmed_q.cq), .rdata_o(rearmed_arm)
  );
  function automatic logic Beyond(logic [CountW-1:0] ahead);
    Beyond = ahead != '0 && !ahead[CountW-1];
  endfunction

  // -------------------------------------------------------------------- state
  of_queue_t         credit_d, credit_q;  // One that an event returned.
  logic [CountW-1:0] back_returned;
  logic [NumCq-1:0]  at_table, at_credit, at_back, at_taken, at_counted, at_armed, at_reached,
                     at_raised;
  assign credit_d      = {e1_valid_q && e1_done && e1_same && e1_ev_q.credit && !e1_ev_q.write, e1_ev_q.cq};
  assign back_returned = returned_q[back_q.cq] + 1'b1;
  assign at_table      = OneHot(tbl_write, tbl_cq);
  assign at_credit     = OneHot(credit_q.valid, credit_q.cq);
  assign at_back       = OneHot(back_q.valid, back_q.cq);
  assign at_taken      = OneHot(d2_take, d2_q.cq);
  assign at_counted    = OneHot(d3_q.valid, d3_q.cq);
  assign at_armed      = d3_q.arm ? at_counted : '0;
  assign at_raised     = OneHot(raise_take, raise_cq);
  assign at_reached    = armed_q & (OneHot(moved_on_q.valid && Beyond(moved_ahead_q), moved_on_q.cq) |
                                    OneHot(rearmed_on_q.valid && Beyond(rearmed_ahead_q), rearmed_on_q.cq));

  // One adder per queue and count, or one for all where only one queue's changes in a cycle.
  always_comb begin
    alive_d = alive_q;
    gen_d   = gen_q;
    armed_d = (armed_q & ~at_reached) | at_armed;
    raise_d = (raise_q & ~at_raised) | at_reached;
    for (int unsigned i = 0; i < NumCq; i++) begin
      taken_d[i] = '0;
      for (int unsigned t = 0; t < 3; t++) taken_d[i] += 2'(take_i[t] && take_cq_i[t] == CqW'(i));
      free_d[i]     = free_q[i] - CountW'(taken_q[i]) + CountW'(at_credit[i]) +
                      (at_counted[i] ? d3_step_q : '0);
      consumed_d[i] = at_taken[i] ? d2_q.count : consumed_q[i];
      returned_d[i] = at_back[i] ? back_returned : returned_q[i];

      if (at_table[i]) begin
        alive_d[i]    = tbl_cfg.enable[0];
        gen_d[i]      = gen_q[i] + 1'b1;
        armed_d[i]    = 1'b0;
        raise_d[i]    = 1'b0;
        taken_d[i]    = '0;
        free_d[i]     = tbl_cfg.enable[0] ? CountW'(1) << tbl_cfg.log2[3:0] : '0;
        consumed_d[i] = '0;
        returned_d[i] = '0;
      end
    end
  end

  assign tbl_write = tbl_q == TblIdle && tbl_valid_i && !e1_valid_q && cfg_ready &&
                     tbl_req_i.op == TableOpWrite && 32'(tbl_req_i.index) < NumCq;
  always_comb begin
    tbl_d       = tbl_q;
    tbl_error_d = tbl_error_q;
    unique case (tbl_q)
      TblIdle: begin
        tbl_error_d = 1'b0;
        if (tbl_valid_i && !e1_valid_q && cfg_ready) begin
          tbl_d = TblDone;
          if (32'(tbl_req_i.index) >= NumCq) tbl_error_d = 1'b1;
          else if (tbl_req_i.op == TableOpRead) tbl_d = TblRead;
          else if (tbl_req_i.op == TableOpDrain) tbl_d = TblToken;
        end
      end
      TblRead:  tbl_d = TblDone;
      TblToken: if (pending_ready) tbl_d = TblDrain;
      TblDrain: if (tbl_drained) tbl_d = TblDone;
      TblDone:  tbl_d = TblIdle;
      default:  tbl_d = TblIdle;
    endcase
  end
  assign tbl_rsp_o.done  = tbl_q == TblDone;
  assign tbl_rsp_o.error = tbl_q == TblDone && tbl_error_q;
  assign tbl_rsp_o.data  = tbl_q == TblDone ? e1_cfg : '0;

  always_comb begin
    stat_o = '0;
    stat_o[StatisticInterrupts] = msix_valid_q && msix_ready_i;
  end

  assign idle_o = !db_valid_i && !tbl_valid_i && ev_valid_i == '0 && !e1_valid_q && !wr_valid_o &&
                  !data_valid && !head_valid && !raise_valid && !picked_q.valid && !msix_valid_q &&
                  cfg_ready && !count_valid_o && !d1_q.valid && !d2_q.valid && !d3_q.valid && !back_q.valid &&
                  !moved_q.valid && !rearmed_q.valid && !moved_on_q.valid && !rearmed_on_q.valid && !credit_q.valid;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tbl_q        <= TblIdle;
      tbl_error_q  <= 1'b0;
      e1_valid_q   <= 1'b0;
      e1_head_q    <= 1'b0;
      msix_valid_q <= 1'b0;
      alive_q      <= '0;
      armed_q      <= '0;
      raise_q      <= '0;
      gen_q        <= '0;
      free_q       <= '0;
      taken_q      <= '0;
      credit_q     <= '0;
      d1_q         <= '0;
      d2_q         <= '0;
      d3_q         <= '0;
      back_q       <= '0;
      moved_q      <= '0;
      rearmed_q    <= '0;
      moved_on_q   <= '0;
      rearmed_on_q <= '0;
      picked_q     <= '0;
      consumed_q   <= '0;
      returned_q   <= '0;
      answers_q    <= '0;
    end else begin
      tbl_q        <= tbl_d;
      tbl_error_q  <= tbl_error_d;
      e1_valid_q   <= e1_valid_d;
      e1_head_q    <= e1_head_d;
      msix_valid_q <= msix_valid_d;
      alive_q      <= alive_d;
      armed_q      <= armed_d;
      raise_q      <= raise_d;
      gen_q        <= gen_d;
      free_q       <= free_d;
      taken_q      <= taken_d;
      credit_q     <= credit_d;
      d1_q         <= d1_d;
      d2_q         <= d2_d;
      d3_q         <= d3_d;
      back_q       <= back_d;
      moved_q      <= moved_d;
      rearmed_q    <= rearmed_d;
      moved_on_q   <= moved_on_d;
      rearmed_on_q <= rearmed_on_d;
      picked_q     <= picked_d;
      consumed_q   <= consumed_d;
      returned_q   <= returned_d;
      answers_q    <= answers_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (e0_take) begin
      e1_ev_q <= e0_ev;
      e1_rx_q <= e0_idx == 2'd0;
    end
    if (tbl_write) begin
      vector_q[tbl_cq] <= tbl_cfg.vector_[VecW-1:0];
      owner_q[tbl_cq]  <= tbl_cfg.function_;
    end
    d2_consumed_q   <= consumed_q[d1_q.cq];
    d2_produced_q   <= d1_produced;
    d3_step_q       <= d2_step;
    moved_ahead_q   <= returned_q[moved_q.cq] - moved_arm;
    rearmed_ahead_q <= returned_q[rearmed_q.cq] - rearmed_arm;
    msix_vector_q   <= msix_vector_d;
    msix_owner_q    <= msix_owner_d;
  end

  logic unused;
  assign unused = ^{tbl_req_i.sel, tbl_cfg, e1_cfg, db_i, wr_rsp_error_i, unused_cfg_error,
                    req_count, data_count, pending_count, count_count, e1_ev_q};

  for (genvar i = 0; i < 3; i++) begin : gen_take
    `HEDDLE_ASSUME(TakeOfFree_M, take_i[i] |-> credit_ok_o[take_cq_i[i]])
  end
  `HEDDLE_ASSUME(WriteHoldsCredit_M, e1_entry |-> e1_ev_q.credit)
  `HEDDLE_ASSUME(AnswerOfWrite_M, wr_rsp_valid_i |-> answers_q < pending_count)
  `HEDDLE_ASSERT(CreditBound_A,
                 e1_entry |-> e1_produced - consumed_q[e1_ev_q.cq] <
                              CountW'(1) << e1_cfg.log2[3:0])
  `HEDDLE_ASSERT(InterruptHeld_A, msix_valid_o && !msix_ready_i |=>
                 msix_valid_o && $stable({msix_vector_o, msix_owner_o}))
endmodule
