// SPDX-License-Identifier: Apache-2.0
// Receive contexts: doorbells, descriptor prefetch, routing of RIs, cancellation.
//
// Ordered:  a context's buffers are offered in ring order, cancelled ones skipped.
// Lookup:   `look_hit_o` and `look_ctx_o` answer {rel, with it the job, pid, ri} in the same cycle,
//           `look_miss_o` says what is wrong with a name without a context; the head buffer of
//           `head_ctx_i` is offered on `head_*_o` one cycle later and stays until
//           `pop_i` (for the same context) or cancellation.
// Checked:  a descriptor whose position is wrong, whose flags are unknown, or that host memory refuses
//           is reported by a completion (bad_position, bad_length, local_access) and skipped.
// Cancel:   doorbell op: a buffer not yet popped is withdrawn: completion `cancelled` with
//           its position; anything else is ignored (its own completion comes).
// Released: `queue_head` in events is the number of slots popped or skipped; a skip also
//           writes the head cell.
// Disabled: writing rx_ctx_cfg with enable=0 ends routing, raises the generation, drops
//           prefetched buffers. Drain: waits for reads of the context, then sends a token to
//           the accept stage and answers when it came back on `drained_i`.
// Listens:  from the first write that enables a context on, until the host asks for a reset.

`include "heddle_assert.svh"

module heddle_rx_queue
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512   // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  doorbell_t        db_i,            // Pages of receive contexts only.

  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,
  input  logic             reset_i,         // The host's reset is in progress.

  output logic             rd_valid_o,      // Client RdRxDesc.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  input  logic             look_rel_i,
  input  logic [23:0]      look_job_i,
  input  logic [11:0]      look_pid_i,
  input  logic [11:0]      look_ri_i,
  output logic             look_hit_o,
  output return_code_e     look_miss_o,     // BAD_INDEX with look_hit_o.
  output logic [RxW-1:0]   look_ctx_o,
  output logic [23:0]      look_job_o,
  output logic             look_event_o,    // Every RMA operation of a peer is reported.
  output logic             listens_o,       // A context is, or was since the reset, enabled.

  input  logic [RxW-1:0]   head_ctx_i,
  output logic             head_valid_o,    // One cycle after head_ctx_i.
  output rx_buffer_t       head_o,
  output logic [15:0]      head_released_o, // queue_head once this buffer is popped.
  output logic             head_spare_o,    // At least SpareBuffers buffers are prefetched, this one included.
  input  logic             pop_i,           // Takes the buffer now on head_*.

  output logic             drain_valid_o,   // Token for the accept stage.
  input  logic             drain_ready_i,
  input  logic             drained_i,

  input  logic [NumCq-1:0] credit_ok_i,
  input  logic [NumCq-1:0][GenW-1:0] cq_gen_i,
  output logic             credit_take_o,
  output logic [CqW-1:0]   credit_cq_o,
  output logic             ev_valid_o,      // Cancelled and bad buffers, head cells.
  input  logic             ev_ready_i,
  output cq_event_t        ev_o,

  output logic [NumRx-1:0]           alive_o,
  output logic [NumRx-1:0][GenW-1:0] gen_o,
  output logic [NumRx-1:0][$bits(rx_counters_t)-1:0] counters_o,

  output logic             idle_o
);
  localparam int unsigned Slots   = 256;  // Buffers a context may hold or await.
  localparam int unsigned SlotW   = $clog2(Slots);
  localparam int unsigned Burst   = 16;   // Descriptors per read.
  localparam int unsigned Records = 32;   // Reads outstanding.
  localparam int unsigned IndexW  = RingLog2Max;
  localparam int unsigned Cancels = 16;   // Cancellations waiting for the worker.
  localparam int unsigned OwedW   = RingLog2Max + 1;

  typedef enum logic [1:0] {
    BufOk       = 2'd0,
    BufPosition = 2'd1,
    BufLength   = 2'd2,
    BufRefused  = 2'd3
  } buf_state_e;

  // State of a ring slot that the host withdrew.
  typedef struct packed {
    logic owed;   // Its completion is still to be written.
    logic away;   // Withdrawn.
  } slot_t;

  // Prefetched buffer.
  typedef struct packed {
    buf_state_e  state;
    logic [31:0] length;
    logic [63:0] iova;
    logic [63:0] op_context;
  } buffer_t;

  // What is needed when a read's data, or a token, comes to the head.
  typedef struct packed {
    logic            token;
    logic [RxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [15:0]     position;
    logic [4:0]      count;
  } record_t;

  typedef struct packed {
    logic [RxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [15:0]     position;
  } cancel_t;

  // Contexts. Counts are free-running positions: tail >= asked >= fetched >= head.
  logic [NumRx-1:0]           alive_d, alive_q;
  logic [NumRx-1:0]           check_d, check_q;      // Head may have to be skipped.
  logic [NumRx-1:0][GenW-1:0] gen_d, gen_q;
  logic [NumRx-1:0][15:0]     tail_d, tail_q;        // Published by the host.
  logic [NumRx-1:0][15:0]     asked_d, asked_q;      // Reads issued.
  logic [NumRx-1:0][15:0]     fetched_d, fetched_q;  // Reads returned.
  logic [NumRx-1:0][15:0]     head_d, head_q;        // Popped or skipped.
  logic [NumRx-1:0][11:0]     pid_q, ri_q;
  logic [NumRx-1:0][23:0]     job_q;
  logic [NumRx-1:0]           relative_q;  // Named in its job.
  logic [NumRx-1:0]           event_q;     // region_event.
  logic [NumRx-1:0][3:0]      log2_q;
  logic [NumRx-1:0][CqW-1:0]  cq_q;
  logic [NumRx-1:0][7:0]      owner_q;
  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] counters_q;
  logic [NumRx-1:0][63:0]     cell_q;
  logic [NumRx-1:0]           restart, dirty;
  logic                       listens_d, listens_q;

  logic [NumRx-1:0][15:0]      scan_d, scan_q;      // Where to look for owed completions.
  logic [NumRx-1:0][OwedW-1:0] owed_d, owed_q;      // Slots with `owed`.

  assign alive_o = alive_q;
  assign gen_o   = gen_q;
  assign counters_o = counters_q;
  assign listens_o  = listens_q;

  // ------------------------------------------------------------------- lookup
  logic [NumRx-1:0] look_space, look_pid;  // The space of the name, and its PIDonFEP there.
  always_comb begin
    look_hit_o = 1'b0;
    look_ctx_o = '0;
    for (int unsigned i = 0; i < NumRx; i++) begin
      look_space[i] = alive_q[i] && relative_q[i] == look_rel_i &&
                      (!look_rel_i || job_q[i] == look_job_i);
      look_pid[i]   = look_space[i] && pid_q[i] == look_pid_i;
      if (look_pid[i] && ri_q[i] == look_ri_i) begin
        look_hit_o = 1'b1;
        look_ctx_o = RxW'(i);
      end
    end
    look_miss_o = ReturnCodeBadIndex;
    if (look_rel_i && look_space == '0) look_miss_o = ReturnCodeBadJobId;
    else if (look_pid == '0)            look_miss_o = ReturnCodeBadPid;
  end
  assign look_job_o   = job_q[look_ctx_o];
  assign look_event_o = event_q[look_ctx_o];

  // --------------------------------------------------------------- table port
  typedef enum logic [2:0] {
    TblIdle   = 3'd0,
    TblRead   = 3'd1,  // Memory is being read.
    TblToken  = 3'd2,  // Token waits for the read queue.
    TblReads  = 3'd3,  // Token waits for the reads.
    TblAccept = 3'd4,  // Token waits for the accept stage; reads of others go on.
    TblDrain  = 3'd5,  // Token is on its way.
    TblDone   = 3'd6
  } tbl_state_e;

  tbl_state_e     tbl_d, tbl_q;
  logic           tbl_error_d, tbl_error_q;
  logic           quiet;  // No context is between choice and effect.
  logic           hold;   // No new choices.
  logic           tbl_write;
  logic [RxW-1:0] tbl_ctx;
  rx_ctx_cfg_t    tbl_cfg;
  logic           rec_in_valid, rec_in_ready, token_in, token_out;
  assign tbl_ctx = tbl_req_i.index[RxW-1:0];
  assign tbl_cfg = rx_ctx_cfg_t'(tbl_req_i.data);

  // ---------------------------------------------------- choice of what to fetch
  logic           cfg_ready;
  logic           f1_valid_d, f1_valid_q;
  logic [RxW-1:0] f1_ctx_d, f1_ctx_q;
  logic           f1_go;       // Becomes a request.
  logic [NumRx-1:0] f0_want;
  logic           f0_valid, f0_take;
  logic [RxW-1:0] f0_ctx;
  rx_ctx_cfg_t    f1_cfg;
  logic [5:0]     rec_count;

  always_comb begin
    f0_want = '0;
    if (tail_q != asked_q) begin
      for (int unsigned i = 0; i < NumRx; i++) begin
        f0_want[i] = alive_q[i] && tail_q[i] != asked_q[i] && !dirty[i] &&
                     asked_q[i] - head_q[i] <= 16'(Slots - Burst) &&
                     !(f1_valid_q && f1_ctx_q == RxW'(i));
      end
    end
  end

  heddle_rr_pick #(
    .NumSrc(NumRx)
  ) u_fetch_pick (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(f0_want),
    .valid_o(f0_valid),
    .idx_o  (f0_ctx),
    .take_i (f0_take)
  );

  assign f0_take = f0_valid && (!f1_valid_q || f1_go) && !hold && cfg_ready &&
                   rec_count < 6'(Records - 2);

  logic unused_cfg_error;
  heddle_mem #(
    .Width(512),
    .Depth(NumRx)
  ) u_cfg (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (tbl_write),
    .waddr_i(tbl_ctx),
    .wdata_i(tbl_req_i.data),
    .raddr_i(f0_take ? f0_ctx : f1_valid_q ? f1_ctx_q : tbl_ctx),
    .rdata_o(f1_cfg),
    .error_o(unused_cfg_error),
    .ready_o(cfg_ready)
  );

  // Length of the read: not beyond what is published, ring end or 512 bytes.
  logic [15:0] f1_asked, f1_ahead, f1_to_end, f1_slot, f1_mask;
  logic [63:0] f1_addr;
  logic [4:0]  f1_to_line, f1_count;
  always_comb begin
    f1_asked   = asked_q[f1_ctx_q];
    f1_mask    = (16'd1 << log2_q[f1_ctx_q]) - 16'd1;
    f1_slot    = f1_asked & f1_mask;
    f1_to_end  = f1_mask - f1_slot + 16'd1;
    f1_addr    = f1_cfg.ring_base + {43'b0, f1_slot, 5'b0};
    f1_ahead   = tail_q[f1_ctx_q] - f1_asked;
    f1_to_line = 5'd16 - {1'b0, f1_addr[8:5]};
    f1_count   = 5'(Burst);
    if (f1_ahead < 16'(f1_count)) f1_count = f1_ahead[4:0];
    if (f1_to_end < 16'(f1_count)) f1_count = f1_to_end[4:0];
    if (f1_to_line < f1_count) f1_count = f1_to_line;
  end

  logic     rd_valid_d, rd_valid_q;
  dma_req_t rd_req_d, rd_req_q;
  record_t  rec_in, rec;
  logic [RxW-1:0] rec_in_ctx;
  logic     rec_valid, rec_pop;
  assign f1_go      = f1_valid_q && (!rd_valid_q || rd_ready_i);
  assign f1_valid_d = f0_take || (f1_valid_q && !f1_go);
  assign f1_ctx_d   = f0_take ? f0_ctx : f1_ctx_q;
  assign rd_valid_d = f1_go || (rd_valid_q && !rd_ready_i);
  assign rd_valid_o = rd_valid_q;
  assign rd_req_o   = rd_req_q;
  always_comb begin
    rd_req_d = rd_req_q;
    if (f1_go) begin
      rd_req_d.addr  = f1_addr;
      rd_req_d.bytes = {4'b0, f1_count, 5'b0};
      rd_req_d.owner = f1_cfg.function_;
    end
  end

  assign token_in        = tbl_q == TblToken && !f1_valid_q;
  assign rec_in_valid    = f1_go || token_in;
  assign rec_in_ctx      = f1_valid_q ? f1_ctx_q : tbl_ctx;
  assign rec_in.token    = !f1_valid_q;
  assign rec_in.ctx      = rec_in_ctx;
  assign rec_in.gen      = gen_q[rec_in_ctx];
  assign rec_in.position = f1_asked;
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
  // Words are stored as they come. When the read turns out to be refused, its
  // slots are marked before they count as fetched.
  logic         word_valid, word_last, word_error, word_take;
  rx_desc_t     word;
  logic [4:0]   word_q;      // Descriptors of this read that arrived, or were marked.
  logic         fix_q;       // Marking.
  logic         fix_last, rec_end, commit;
  logic [15:0]  word_position;
  assign word_position = rec.position + 16'(word_q);

  heddle_gather #(
    .DataW(DataW),
    .Bits (256)
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
    .word_ready_i(rec_valid && !rec.token && !fix_q),
    .word_data_o (word),
    .word_last_o (word_last),
    .word_error_o(word_error)
  );

  assign word_take = word_valid && rec_valid && !rec.token && !fix_q;
  assign fix_last  = fix_q && word_q + 1'b1 == rec.count;
  assign rec_end   = (word_take && word_last && !word_error) || fix_last;
  assign rec_pop   = rec_end || token_out;
  assign commit    = rec_end && alive_q[rec.ctx] && gen_q[rec.ctx] == rec.gen;

  buffer_t store;
  always_comb begin
    store = '0;
    if (fix_q) begin
      store.state = BufRefused;
    end else if (word.position != word_position) begin
      store.state = BufPosition;
    end else begin
      store.state      = (word.flags != '0 || word.rsvd0 != '0) ? BufLength : BufOk;
      store.length     = word.length;
      store.iova       = word.local_iova;
      store.op_context = word.op_context;
    end
  end

  logic                 store_wen;
  logic [RxW+SlotW-1:0] store_addr;
  assign store_wen  = word_take || fix_q;
  assign store_addr = {rec.ctx, word_position[SlotW-1:0]};

  // --------------------------------------------------------------------- head
  logic [RxW-1:0] look_q;
  logic [15:0]    look_head_q;
  buffer_t        look_buf;
  slot_t          look_slot;
  logic           unused_head_error, head_ready;

  heddle_mem #(
    .Width($bits(store)),
    .Depth(NumRx * Slots),
    .Init (1'b0)
  ) u_buffers (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (store_wen),
    .waddr_i(store_addr),
    .wdata_i(store),
    .raddr_i({head_ctx_i, head_q[head_ctx_i][SlotW-1:0]}),
    .rdata_o(look_buf),
    .error_o(unused_head_error),
    .ready_o(head_ready)
  );

  assign head_valid_o = alive_q[look_q] && look_head_q == head_q[look_q] &&
                        fetched_q[look_q] != look_head_q && look_buf.state == BufOk &&
                        !look_slot.away;
  assign head_o.ctx        = look_q;
  assign head_o.gen        = gen_q[look_q];
  assign head_o.owner      = owner_q[look_q];
  assign head_o.cq         = cq_q[look_q];
  assign head_o.cq_gen     = cq_gen_i[cq_q[look_q]];
  assign head_o.position   = look_head_q;
  assign head_o.length     = look_buf.length;
  assign head_o.iova       = look_buf.iova;
  assign head_o.op_context = look_buf.op_context;
  assign head_released_o   = look_head_q + 16'd1;

  // Cancelled ones and ones in error count, too.
  logic [15:0] prefetched;
  assign prefetched   = fetched_q[look_q] - look_head_q;
  assign head_spare_o = head_valid_o && prefetched >= 16'(SpareBuffers);

  logic pop;
  assign pop = pop_i && head_valid_o;

  // ------------------------------------------------------- worker: choice of job
  // Cancels, skips of withdrawn and bad heads, and the search for completions
  // owed share one worker: a job is looked up in the cycle after it was chosen.
  typedef enum logic [1:0] {
    JobCancel = 2'd0,
    JobSkip   = 2'd1,
    JobScan   = 2'd2
  } job_e;

  logic             w0_take, w1_valid_d, w1_valid_q, w1_done;
  job_e             w0_job, w1_job_q;
  logic [RxW-1:0]   w0_ctx, w1_ctx_q;
  logic [15:0]      w0_position, w1_position_q;
  logic [NumRx-1:0] skip_want, scan_want;
  logic             skip_valid, scan_valid;
  logic [RxW-1:0]   skip_ctx, scan_ctx;

  cancel_t cancel_in, cancel;
  logic    cancel_in_valid, cancel_in_ready, cancel_valid, cancel_take, cancel_drop, cancel_go;
  logic [$clog2(Cancels):0] cancel_count;

  always_comb begin
    skip_want = '0;
    scan_want = '0;
    if (|check_q) begin
      for (int unsigned i = 0; i < NumRx; i++) begin
        skip_want[i] = check_q[i] && fetched_q[i] != head_q[i] && credit_ok_i[cq_q[i]];
      end
    end
    if (owed_q != '0) begin
      for (int unsigned i = 0; i < NumRx; i++) begin
        scan_want[i] = owed_q[i] != '0 && credit_ok_i[cq_q[i]];
      end
    end
  end

  heddle_rr_pick #(
    .NumSrc(NumRx)
  ) u_skip_pick (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(skip_want),
    .valid_o(skip_valid),
    .idx_o  (skip_ctx),
    .take_i (w0_take && w0_job == JobSkip)
  );

  heddle_rr_pick #(
    .NumSrc(NumRx)
  ) u_scan_pick (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(scan_want),
    .valid_o(scan_valid),
    .idx_o  (scan_ctx),
    .take_i (w0_take && w0_job == JobScan)
  );

  heddle_fifo #(
    .Width($bits(cancel_in)),
    .Depth(Cancels)
  ) u_cancels (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(cancel_in_valid),
    .ready_o(cancel_in_ready),
    .data_i (cancel_in),
    .valid_o(cancel_valid),
    .ready_i(cancel_take || cancel_drop),
    .data_o (cancel),
    .count_o(cancel_count)
  );

  assign cancel_drop = cancel_valid && (!alive_q[cancel.ctx] || gen_q[cancel.ctx] != cancel.gen);
  assign cancel_go   = cancel_valid && !cancel_drop && !dirty[cancel.ctx];
  assign w0_take     = (cancel_go || skip_valid || scan_valid) && !w1_valid_q && !hold;
  assign cancel_take = w0_take && cancel_go;
  always_comb begin
    if (cancel_go) begin
      w0_job      = JobCancel;
      w0_ctx      = cancel.ctx;
      w0_position = cancel.position;
    end else if (skip_valid) begin
      w0_job      = JobSkip;
      w0_ctx      = skip_ctx;
      w0_position = head_q[skip_ctx];
    end else begin
      w0_job      = JobScan;
      w0_ctx      = scan_ctx;
      w0_position = scan_q[scan_ctx];
      if (16'(w0_position - head_q[scan_ctx]) >= 16'(tail_q[scan_ctx] - head_q[scan_ctx])) begin
        w0_position = head_q[scan_ctx];
      end
    end
  end
  assign w1_valid_d = w0_take || (w1_valid_q && !w1_done);

  // -------------------------------------------------------- worker: execute job
  buf_state_e            w1_state;
  logic [63:0]           w1_context;
  slot_t                 w1_slot, w1_slot_d;
  logic                  unused_w1_error, w1_mem_ready;
  logic                  w1_alive, w1_open, w1_head, w1_credit, w1_go, w1_drop;
  logic                  mark, skip, report, slot_wen;
  logic [RxW-1:0]        wr_ctx;
  logic [15:0]           wr_mask, wr_position, head_mask;
  logic [RxW+IndexW-1:0] wr_bit, head_bit, job_bit;
  logic [15:0]           job_mask;

  assign wr_ctx      = w1_valid_q ? w1_ctx_q : w0_ctx;
  assign wr_position = w1_valid_q ? w1_position_q : w0_position;
  assign job_mask    = (16'd1 << log2_q[wr_ctx]) - 16'd1;
  assign job_bit     = {wr_ctx, wr_position[IndexW-1:0] & job_mask[IndexW-1:0]};
  assign wr_mask     = (16'd1 << log2_q[w1_ctx_q]) - 16'd1;
  assign wr_bit      = {w1_ctx_q, w1_position_q[IndexW-1:0] & wr_mask[IndexW-1:0]};
  assign head_mask   = (16'd1 << log2_q[head_ctx_i]) - 16'd1;
  assign head_bit    = {head_ctx_i, head_q[head_ctx_i][IndexW-1:0] & head_mask[IndexW-1:0]};

  heddle_ring_state #(
    .Width ($bits(w1_slot)),
    .NumCtx(NumRx),
    .Reads (2)
  ) u_slots (
    .clk_i    (clk_i),
    .rst_ni   (rst_ni),
    .restart_i(restart),
    .log2_i   (log2_q),
    .dirty_o  (dirty),
    .wen_i    (slot_wen),
    .waddr_i  (wr_bit),
    .wdata_i  (w1_slot_d),
    .raddr_i  ({job_bit, head_bit}),
    .rdata_o  ({w1_slot, look_slot})
  );

  heddle_mem #(
    .Width($bits(store.state) + $bits(store.op_context)),
    .Depth(NumRx * Slots),
    .Init (1'b0)
  ) u_buffers_job (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (store_wen),
    .waddr_i(store_addr),
    .wdata_i({store.state, store.op_context}),
    .raddr_i({wr_ctx, wr_position[SlotW-1:0]}),
    .rdata_o({w1_state, w1_context}),
    .error_o(unused_w1_error),
    .ready_o(w1_mem_ready)
  );

  // A cancel withdraws a buffer that is published and neither taken (now) nor
  // withdrawn already; its completion is owed when the queue has no credit. The
  // head is skipped when it is withdrawn or bad.
  logic ev_ready, popped_now;
  assign popped_now = pop && look_q == w1_ctx_q && look_head_q == w1_position_q;
  assign w1_alive   = alive_q[w1_ctx_q];
  assign w1_open    = 16'(w1_position_q - head_q[w1_ctx_q]) <
                      16'(tail_q[w1_ctx_q] - head_q[w1_ctx_q]) && !popped_now;
  assign w1_head    = w1_position_q == head_q[w1_ctx_q] && !popped_now;
  assign w1_credit  = credit_ok_i[cq_q[w1_ctx_q]];
  always_comb begin
    mark      = 1'b0;
    skip      = 1'b0;
    report    = 1'b0;
    w1_slot_d = '0;
    if (w1_valid_q && w1_alive && w1_open && !dirty[w1_ctx_q]) begin
      unique case (w1_job_q)
        JobCancel: begin
          mark           = !w1_slot.away;
          report         = mark && w1_credit;
          w1_slot_d.away = 1'b1;
          w1_slot_d.owed = !w1_credit;
        end
        JobSkip: begin
          skip   = w1_head && (w1_slot.away || w1_state != BufOk);
          report = skip && (w1_slot.owed || !w1_slot.away);
        end
        default: begin
          mark           = w1_slot.owed;
          report         = mark;
          w1_slot_d.away = 1'b1;
        end
      endcase
    end
  end
  assign w1_go    = (mark || skip) && ev_ready && (!report || w1_credit);
  // Never waits for a credit: doorbells that return credits queue behind cancels.
  assign w1_drop  = report && !w1_credit;
  assign w1_done  = w1_valid_q && (w1_go || w1_drop || !(mark || skip));
  assign slot_wen = w1_go && (mark || w1_slot.away);

  assign credit_take_o = w1_go && report;
  assign credit_cq_o   = cq_q[w1_ctx_q];

  cq_event_t  ev;
  logic       ev_offer;
  logic [1:0] ev_count;
  always_comb begin
    ev = '0;
    if (w1_valid_q) begin
      ev.write     = report;
      ev.credit    = report;
      ev.head      = skip;
      ev.head_cell = cell_q[w1_ctx_q];
      ev.owner     = owner_q[w1_ctx_q];
      ev.cq        = cq_q[w1_ctx_q];
      ev.cq_gen    = cq_gen_i[cq_q[w1_ctx_q]];
      ev.entry.queue_head = head_q[w1_ctx_q] + 16'(skip);
      ev.entry.position   = w1_position_q;
      ev.entry.context_   = 8'(w1_ctx_q);
      ev.entry.kind       = CompletionKindRx;
      ev.entry.opcode     = OpcodeSend;
      if (mark || w1_slot.away) begin
        ev.entry.status = StatusCancelled;
      end else begin
        ev.entry.op_context = w1_context;
        unique case (w1_state)
          BufPosition: ev.entry.status = StatusBadPosition;
          BufLength:   ev.entry.status = StatusBadLength;
          default:     ev.entry.status = StatusLocalAccess;
        endcase
      end
    end
  end
  assign ev_offer = w1_go && (report || skip);

  heddle_fifo #(
    .Width($bits(ev)),
    .Depth(2)
  ) u_events (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(ev_offer),
    .ready_o(ev_ready),
    .data_i (ev),
    .valid_o(ev_valid_o),
    .ready_i(ev_ready_i),
    .data_o (ev_o),
    .count_o(ev_count)
  );

  // ---------------------------------------------------------------- doorbells
  logic [RxW-1:0] db_ctx;
  logic           db_tail, db_cancel;
  logic [15:0]    db_step, db_free, db_size;
  assign db_ctx     = RxW'(32'(db_i.page) - RxPageFirst);
  assign db_tail    = db_valid_i && db_i.offset == DoorbellTailOffset[11:0] && alive_q[db_ctx];
  assign db_cancel  = db_valid_i && db_i.offset == DoorbellOpOffset[11:0] &&
                      db_i.data[7:0] == DoorbellOpCancel && alive_q[db_ctx];
  assign db_ready_o = !db_cancel || cancel_in_ready;
  assign db_size    = 16'd1 << log2_q[db_ctx];
  assign db_step    = db_i.data[15:0] - tail_q[db_ctx];
  assign db_free    = db_size - (tail_q[db_ctx] - head_q[db_ctx]);

  // What is published by later doorbells is not meant.
  assign cancel_in_valid    = db_cancel && 16'(cancel_in.position - head_q[db_ctx]) <
                              16'(tail_q[db_ctx] - head_q[db_ctx]);
  assign cancel_in.ctx      = db_ctx;
  assign cancel_in.gen      = gen_q[db_ctx];
  assign cancel_in.position = db_i.data[DoorbellOpArgumentLsb +: 16];

  // ------------------------------------------------------------- context state
  always_comb begin
    alive_d   = alive_q;
    check_d   = check_q;
    gen_d     = gen_q;
    tail_d    = tail_q;
    asked_d   = asked_q;
    fetched_d = fetched_q;
    head_d    = head_q;

    scan_d    = scan_q;
    owed_d    = owed_q;

    if (w1_done && w1_job_q == JobSkip && w1_head && !w1_drop) check_d[w1_ctx_q] = 1'b0;
    if (db_tail) begin
      // A count beyond the ring is cut: its slots carry wrong positions.
      tail_d[db_ctx] = db_step > db_free ? head_q[db_ctx] + db_size : db_i.data[15:0];
    end
    if (f1_go) asked_d[f1_ctx_q] = f1_asked + 16'(f1_count);
    if (commit) begin
      fetched_d[rec.ctx] = rec.position + 16'(rec.count);
      check_d[rec.ctx]   = 1'b1;
    end
    if (pop) begin
      head_d[look_q]  = look_head_q + 16'd1;
      check_d[look_q] = 1'b1;
    end
    if (w1_go) begin
      check_d[w1_ctx_q] = 1'b1;
      if (skip) head_d[w1_ctx_q] = w1_position_q + 16'd1;
      if (w1_slot.owed) owed_d[w1_ctx_q] = owed_q[w1_ctx_q] - 1'b1;
      else if (mark && w1_slot_d.owed) owed_d[w1_ctx_q] = owed_q[w1_ctx_q] + 1'b1;
    end
    if (w1_done && w1_job_q == JobScan && !w1_drop) scan_d[w1_ctx_q] = w1_position_q + 16'd1;

    if (tbl_write) begin
      alive_d[tbl_ctx]   = tbl_cfg.enable[0];
      gen_d[tbl_ctx]     = gen_q[tbl_ctx] + GenW'(alive_q[tbl_ctx] || !tbl_cfg.enable[0]);
      check_d[tbl_ctx]   = 1'b0;
      owed_d[tbl_ctx]    = '0;
      tail_d[tbl_ctx]    = '0;
      asked_d[tbl_ctx]   = '0;
      fetched_d[tbl_ctx] = '0;
      head_d[tbl_ctx]    = '0;
    end
  end
  assign listens_d = !reset_i && (listens_q || (tbl_write && tbl_cfg.enable[0]));

  // The ring size is known one cycle after the write.
  logic           restart_q;
  logic [RxW-1:0] restart_ctx_q;
  always_comb begin
    restart                = '0;
    restart[restart_ctx_q] = restart_q;
  end

  // --------------------------------------------------------------- table state
  assign hold      = tbl_valid_i && tbl_q != TblReads && tbl_q != TblAccept && tbl_q != TblDrain;
  assign quiet     = !f1_valid_q && !w1_valid_q && !restart_q && cfg_ready;
  assign tbl_write = tbl_q == TblIdle && tbl_valid_i && quiet &&
                     tbl_req_i.op == TableOpWrite && 32'(tbl_req_i.index) < NumRx;
  // Behind the reads, and behind the events that the context caused.
  assign token_out     = tbl_q == TblReads && rec_valid && rec.token && !w1_valid_q && !ev_valid_o;
  assign drain_valid_o = tbl_q == TblAccept;
  always_comb begin
    tbl_d       = tbl_q;
    tbl_error_d = tbl_error_q;
    unique case (tbl_q)
      TblIdle: begin
        tbl_error_d = 1'b0;
        if (tbl_valid_i && quiet) begin
          tbl_d = TblDone;
          if (32'(tbl_req_i.index) >= NumRx) tbl_error_d = 1'b1;
          else if (tbl_req_i.op == TableOpRead) tbl_d = TblRead;
          else if (tbl_req_i.op == TableOpDrain) tbl_d = TblToken;
        end
      end
      TblRead:  tbl_d = TblDone;
      TblToken: if (token_in && rec_in_ready) tbl_d = TblReads;
      TblReads: if (token_out) tbl_d = TblAccept;
      TblAccept: if (drain_ready_i) tbl_d = TblDrain;
      TblDrain: if (drained_i) tbl_d = TblDone;
      TblDone:  tbl_d = TblIdle;
      default:  tbl_d = TblIdle;
    endcase
  end

  assign tbl_rsp_o.done  = tbl_q == TblDone;
  assign tbl_rsp_o.error = tbl_q == TblDone && tbl_error_q;
  assign tbl_rsp_o.data  = tbl_q == TblDone ? f1_cfg : '0;

  assign idle_o = !db_valid_i && !tbl_valid_i && !f0_valid && !f1_valid_q && !rd_valid_q &&
                  !rec_valid && !skip_valid && !scan_valid && !cancel_valid &&
                  !w1_valid_q && !ev_valid_o && !restart_q && dirty == '0 && cfg_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tbl_q       <= TblIdle;
      tbl_error_q <= 1'b0;
      alive_q     <= '0;
      listens_q   <= 1'b0;
      check_q     <= '0;
      gen_q       <= '0;
      tail_q      <= '0;
      asked_q     <= '0;
      fetched_q   <= '0;
      head_q      <= '0;
      f1_valid_q  <= 1'b0;
      rd_valid_q  <= 1'b0;
      w1_valid_q  <= 1'b0;
      word_q      <= '0;
      fix_q       <= 1'b0;
      restart_q   <= 1'b0;
      scan_q      <= '0;
      owed_q      <= '0;
      pid_q       <= '0;
      ri_q        <= '0;
      job_q       <= '0;
      event_q     <= '0;
      counters_q  <= '0;
      log2_q      <= '0;
      cq_q        <= '0;
      owner_q     <= '0;
      cell_q      <= '0;
    end else begin
      tbl_q       <= tbl_d;
      tbl_error_q <= tbl_error_d;
      alive_q     <= alive_d;
      listens_q   <= listens_d;
      check_q     <= check_d;
      gen_q       <= gen_d;
      tail_q      <= tail_d;
      asked_q     <= asked_d;
      fetched_q   <= fetched_d;
      head_q      <= head_d;
      f1_valid_q  <= f1_valid_d;
      rd_valid_q  <= rd_valid_d;
      w1_valid_q  <= w1_valid_d;
      if (word_take) begin
        word_q <= word_last ? '0 : word_q + 1'b1;
        fix_q  <= word_last && word_error;
      end else if (fix_q) begin
        word_q <= fix_last ? '0 : word_q + 1'b1;
        fix_q  <= !fix_last;
      end
      restart_q <= tbl_write && tbl_cfg.enable[0];
      scan_q    <= scan_d;
      owed_q    <= owed_d;
      if (tbl_write) begin
        pid_q[tbl_ctx]   <= tbl_cfg.pid_on_fep[11:0];
        ri_q[tbl_ctx]    <= tbl_cfg.resource_index[11:0];
        job_q[tbl_ctx]   <= tbl_cfg.job_id[23:0];
        relative_q[tbl_ctx] <= (tbl_cfg.flags & RxCtxFlagRelative) != '0;
        event_q[tbl_ctx] <= (tbl_cfg.flags & RxCtxFlagRegionEvent) != '0;
        counters_q[tbl_ctx] <= {tbl_cfg.counter_recv, tbl_cfg.counter_remote_read,
                                tbl_cfg.counter_remote_write};
        log2_q[tbl_ctx]  <= tbl_cfg.ring_log2[3:0];
        cq_q[tbl_ctx]    <= tbl_cfg.cq[CqW-1:0];
        owner_q[tbl_ctx] <= tbl_cfg.function_;
        cell_q[tbl_ctx]  <= tbl_cfg.head_cell;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    f1_ctx_q    <= f1_ctx_d;
    rd_req_q    <= rd_req_d;
    look_q      <= head_ctx_i;
    look_head_q <= head_q[head_ctx_i];
    if (!w1_valid_q) begin
      w1_ctx_q      <= w0_ctx;
      w1_position_q <= w0_position;
      w1_job_q      <= w0_job;
    end
    restart_ctx_q <= tbl_ctx;
  end

  logic unused;
  assign unused = ^{tbl_req_i.sel, tbl_cfg, f1_cfg, db_i, job_mask, wr_mask, head_mask, wr_position,
                    ev_count, cancel_count, look_slot.owed, unused_cfg_error, unused_head_error, head_ready, unused_w1_error,
                    w1_mem_ready};

  `HEDDLE_ASSERT(RecordRoom_A, rec_in_valid && !token_in |-> rec_in_ready)
  `HEDDLE_ASSERT(OrderedOffer_A, ev_valid_o && !ev_ready_i |=> ev_valid_o && $stable(ev_o))
  `HEDDLE_ASSERT(CreditTaken_A, credit_take_o |-> credit_ok_i[credit_cq_o])
  `HEDDLE_ASSUME(PopOfOffered_M, pop_i |-> head_valid_o)
  `HEDDLE_ASSERT(OneTaker_A, !(pop && w1_go && skip && look_q == w1_ctx_q))
endmodule
