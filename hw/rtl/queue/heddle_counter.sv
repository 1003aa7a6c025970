// SPDX-License-Identifier: Apache-2.0
// Counters, and their cells in host memory.
//
// Behind:  what `count_i` counts is visible when its write was taken by the write engine; a record
//          must come after the write requests of its data were taken.
// Echo:    `echo` is written after what the doorbells it counts changed.
// Merged:  a counter's next write waits for the answer to the one before, and then shows everything
//          counted meanwhile; so counters hold up nothing, however fast they count.
// Words:   each word of a cell is written alone, so that a reader never sees half of one.
// Started: writing `counter_cfg` starts a counter at 0 and writes nothing to its cell. One that is
//          off counts nothing.
// Drain:   answered when no write of the counter is on the bus and no record waits.

`include "heddle_assert.svh"

module heddle_counter
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512   // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  doorbell_t        db_i,            // Pages of counters only.

  input  logic             tbl_valid_i,     // TableCounter.
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  input  logic             count_valid_i,
  output logic             count_ready_o,
  input  count_t           count_i,

  output logic             wr_valid_o,      // Client WrCounter.
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
  localparam int unsigned IndexW  = $clog2(NumCounter);
  localparam int unsigned Words   = 3;    // Of a cell: value, errors, echo.
  localparam int unsigned WordW   = 2;
  localparam int unsigned Ahead   = 4;    // Writes not taken by the engine.
  localparam int unsigned Pending = 256;  // Writes not answered; three of every counter fit.
  localparam logic [WordW-1:0] Value  = 2'd0;
  localparam logic [WordW-1:0] Errors = 2'd1;
  localparam logic [WordW-1:0] Echo   = 2'd2;

  typedef struct packed {
    logic [63:0] iova;
    logic [7:0]  owner;
  } place_t;

  typedef struct packed {
    logic [IndexW-1:0] index;
    logic              last;   // Of the writes of one showing.
  } pending_t;

  // What is done to a counter.
  typedef struct packed {
    logic              show;   // Hand it to the writer; otherwise change it.
    logic              echo;   // A doorbell asked.
    logic              assigns; // Otherwise adds.
    logic [WordW-1:0]  word;
    logic [63:0]       data;
    logic [IndexW-1:0] index;
  } step_t;

  logic [NumCounter-1:0]            alive_q;
  logic [NumCounter-1:0]            flight_q;  // A showing is not answered yet.
  logic [NumCounter-1:0][Words-1:0] dirty_q;   // Words that are not shown.

  // ------------------------------------------------------- choice of the next step
  logic  ready;           // The memories are.
  logic  region_q;        // The record's first counter is counted.
  logic  s1_valid_q, s0_take, s0_show, s0_doorbell, s0_count;
  step_t s0, s1_q;
  logic  tbl_start, write;
  logic [NumCounter-1:0] showable;
  logic [IndexW-1:0]     show_index, tbl_index;
  logic  show_valid, writer_free;

  always_comb begin
    showable = '0;
    if (dirty_q != '0) begin
      for (int unsigned i = 0; i < NumCounter; i++) showable[i] = dirty_q[i] != '0 && !flight_q[i];
    end
  end
  heddle_rr_pick #(.NumSrc(NumCounter)) u_show (
    .clk_i, .rst_ni,
    .valid_i(showable), .valid_o(show_valid), .idx_o(show_index), .take_i(s0_show)
  );

  // A number is an index plus 1.
  logic [7:0] number;
  logic       counts, more;
  assign number = (region_q || count_i.own == '0) ? count_i.region : count_i.own;
  assign counts = number != '0 && number <= 8'(NumCounter);
  assign more   = !region_q && count_i.own != '0 && count_i.region != '0;

  logic is_change;
  assign is_change = db_i.offset == DoorbellCounterSetOffset[11:0] ||
                     db_i.offset == DoorbellCounterAddOffset[11:0] ||
                     db_i.offset == DoorbellCounterSetErrorsOffset[11:0] ||
                     db_i.offset == DoorbellCounterAddErrorsOffset[11:0];

  assign s0_show     = ready && !tbl_start && show_valid && writer_free &&
                       !(s1_valid_q && s1_q.show);
  assign s0_doorbell = ready && !tbl_start && !s0_show && db_valid_i;
  assign s0_count    = ready && !tbl_start && !s0_show && !db_valid_i && count_valid_i;
  assign db_ready_o    = s0_doorbell;
  assign count_ready_o = s0_count && !more;

  always_comb begin
    s0 = '0;
    if (s0_show) begin
      s0.show  = 1'b1;
      s0.index = show_index;
    end else if (s0_doorbell) begin
      s0.echo  = 1'b1;
      s0.index = IndexW'(32'(db_i.page) - CounterPageFirst);
      s0.data  = db_i.data;
      s0.assigns = db_i.offset == DoorbellCounterSetOffset[11:0] ||
                 db_i.offset == DoorbellCounterSetErrorsOffset[11:0];
      s0.word  = db_i.offset == DoorbellCounterSetErrorsOffset[11:0] ||
                 db_i.offset == DoorbellCounterAddErrorsOffset[11:0] ? Errors : Value;
    end else if (s0_count) begin
      s0.index = IndexW'(number - 8'd1);
      s0.data  = 64'd1;
      s0.word  = count_i.failed ? Errors : Value;
    end
  end
  assign s0_take = s0_show || (s0_doorbell && is_change && alive_q[s0.index]) ||
                   (s0_count && counts && alive_q[s0.index]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      region_q   <= 1'b0;
    end else begin
      s1_valid_q <= s0_take;
      if (s0_count) region_q <= more;
    end
  end
  always_ff @(posedge clk_i) begin
    if (s0_take) s1_q <= s0;
  end

  // --------------------------------------------------------------------- change
  logic [Words-1:0][63:0] words, changed;
  place_t                 place;
  counter_cfg_t           tbl_cfg;
  logic                   change, words_ready, place_ready, words_error, place_error;
  assign tbl_cfg   = counter_cfg_t'(tbl_req_i.data);
  assign tbl_index = tbl_req_i.index[IndexW-1:0];
  assign change    = s1_valid_q && !s1_q.show;
  assign ready     = words_ready && place_ready;

  always_comb begin
    changed = words;
    changed[s1_q.word] = s1_q.assigns ? s1_q.data : words[s1_q.word] + s1_q.data;
    if (s1_q.echo) changed[Echo] = words[Echo] + 64'd1;
  end

  heddle_mem #(.Width(Words * 64), .Depth(NumCounter)) u_words (
    .clk_i, .rst_ni,
    .wen_i(change || write), .waddr_i(write ? tbl_index : s1_q.index),
    .wdata_i(write ? '0 : changed), .raddr_i(s0.index), .rdata_o(words),
    .error_o(words_error), .ready_o(words_ready)
  );
  heddle_mem #(.Width($bits(place_t)), .Depth(NumCounter)) u_places (
    .clk_i, .rst_ni,
    .wen_i(write), .waddr_i(tbl_index), .wdata_i({tbl_cfg.cell_, tbl_cfg.function_}),
    .raddr_i(s0_show ? s0.index : tbl_index), .rdata_o(place),
    .error_o(place_error), .ready_o(place_ready)
  );

  // ------------------------------------------------------------------------ show
  // Words and place were read together, so an echo never runs ahead of its change.
  logic                   show, push, last, req_ready, data_ready, pending_ready;
  logic [Words-1:0]       left_q, left;
  logic [Words-1:0][63:0] words_q;
  logic [IndexW-1:0]      index_q;
  place_t                 place_q;
  logic [WordW-1:0]       word;
  dma_req_t               req;
  pending_t               pending_in;
  assign show        = s1_valid_q && s1_q.show;
  assign writer_free = left_q == '0;
  assign push        = left_q != '0 && req_ready && data_ready && pending_ready;

  always_comb begin
    word = left_q[Value] ? Value : left_q[Errors] ? Errors : Echo;
    left = left_q;
    left[word] = 1'b0;
    last = left == '0;
    req.addr  = place_q.iova + 64'({word, 3'b0});
    req.bytes = 14'd8;
    req.owner = place_q.owner;
    pending_in = {index_q, last};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)   left_q <= '0;
    else if (show) left_q <= dirty_q[s1_q.index];
    else if (push) left_q <= left;
  end
  always_ff @(posedge clk_i) begin
    if (show) begin
      words_q <= words;
      place_q <= place;
      index_q <= s1_q.index;
    end
  end

  logic [63:0]              data;
  logic                     data_valid, pending_valid;
  pending_t                 pending;
  logic [$clog2(Ahead):0]   req_count, data_count;
  logic [$clog2(Pending):0] pending_count;
  heddle_fifo #(.Width($bits(dma_req_t)), .Depth(Ahead)) u_requests (
    .clk_i, .rst_ni,
    .valid_i(push), .ready_o(req_ready), .data_i(req),
    .valid_o(wr_valid_o), .ready_i(wr_ready_i), .data_o(wr_req_o), .count_o(req_count)
  );
  heddle_fifo #(.Width(64), .Depth(Ahead)) u_data (
    .clk_i, .rst_ni,
    .valid_i(push), .ready_o(data_ready), .data_i(words_q[word]),
    .valid_o(data_valid), .ready_i(wr_data_ready_i), .data_o(data), .count_o(data_count)
  );
  heddle_fifo #(.Width($bits(pending_t)), .Depth(Pending)) u_pending (
    .clk_i, .rst_ni,
    .valid_i(push), .ready_o(pending_ready), .data_i(pending_in),
    .valid_o(pending_valid), .ready_i(wr_rsp_valid_i), .data_o(pending),
    .count_o(pending_count)
  );
  assign wr_data_valid_o = data_valid;
  assign wr_data_o       = DataW'(data);

  // ----------------------------------------------------------------------- state
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      alive_q  <= '0;
      flight_q <= '0;
      dirty_q  <= '0;
    end else begin
      if (wr_rsp_valid_i && pending.last) flight_q[pending.index] <= 1'b0;
      if (show) begin
        flight_q[s1_q.index] <= 1'b1;
        dirty_q[s1_q.index]  <= '0;
      end
      if (change) begin
        dirty_q[s1_q.index][s1_q.word] <= 1'b1;
        if (s1_q.echo) dirty_q[s1_q.index][Echo] <= 1'b1;
      end
      if (write) begin
        alive_q[tbl_index] <= tbl_cfg.enable[0];
        dirty_q[tbl_index] <= '0;
      end
    end
  end

  // ------------------------------------------------------------------ table port
  typedef enum logic [1:0] {
    TblIdle  = 2'd0,
    TblRead  = 2'd1,  // The memory is being read.
    TblDrain = 2'd2,
    TblDone  = 2'd3
  } tbl_state_e;

  tbl_state_e   tbl_d, tbl_q;
  logic         tbl_error_q, exists;
  counter_cfg_t answered, answered_q;

  // Between steps, when every record that came before is counted.
  assign exists    = 32'(tbl_req_i.index) < NumCounter;
  assign tbl_start = tbl_valid_i && tbl_q == TblIdle && ready && !s1_valid_q && !count_valid_i;
  assign write     = tbl_start && exists && tbl_req_i.op == TableOpWrite;

  always_comb begin
    tbl_d = tbl_q;
    unique case (tbl_q)
      TblIdle: begin
        if (tbl_start) begin
          tbl_d = TblDone;
          if (exists && tbl_req_i.op == TableOpRead)  tbl_d = TblRead;
          if (exists && tbl_req_i.op == TableOpDrain) tbl_d = TblDrain;
        end
      end
      TblRead:  tbl_d = TblDone;
      TblDrain: if (!flight_q[tbl_index] && dirty_q[tbl_index] == '0) tbl_d = TblDone;
      default:  tbl_d = TblIdle;
    endcase
  end

  always_comb begin
    answered           = '0;
    answered.cell_     = place.iova;
    answered.function_ = place.owner;
    answered.enable    = 8'(alive_q[tbl_index]);
    tbl_rsp_o          = '0;
    if (tbl_q == TblDone) begin
      tbl_rsp_o.done  = 1'b1;
      tbl_rsp_o.error = tbl_error_q;
      tbl_rsp_o.data  = answered_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tbl_q       <= TblIdle;
      tbl_error_q <= 1'b0;
    end else begin
      tbl_q <= tbl_d;
      if (tbl_start) tbl_error_q <= !exists;
    end
  end
  always_ff @(posedge clk_i) begin
    if (tbl_q == TblRead) answered_q <= answered;
  end

  always_comb begin
    stat_o = '0;
    stat_o[StatisticCounterUpdates[5:0]] = push;
  end

  assign idle_o = ready && !db_valid_i && !tbl_valid_i && !count_valid_i && !s1_valid_q &&
                  dirty_q == '0 && left_q == '0 && !pending_valid;

  logic unused_bits;
  assign unused_bits = ^{tbl_req_i, tbl_cfg, wr_rsp_error_i, words_error, place_error, req_count,
                         data_count, pending_count};

  if (NumCounter > 64 || (NumCounter & (NumCounter - 1)) != 0) begin : gen_bad_count
    $error("NumCounter must be a power of two of at most 64");
  end

  `HEDDLE_ASSERT(WriterFree_A, show |-> left_q == '0)
  `HEDDLE_ASSERT(MergedAlone_A, show |-> !flight_q[s1_q.index])
  `HEDDLE_ASSERT(RoomForAnswers_A, left_q != '0 |-> pending_ready)
  `HEDDLE_ASSUME(AnswerOfWrite_M, wr_rsp_valid_i |-> pending_valid)
endmodule
