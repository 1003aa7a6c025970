// SPDX-License-Identifier: Apache-2.0
// Messages of heddle_accept that hold a buffer of a receive context that is gone, found before its drain token passes.
//
// Generations come again. So before the token of a receive context passes, each message that holds a buffer
// of a context that is gone is marked, and takes nothing of what has its generation later. Packets pass
// meanwhile, once what was looked up before is decided (`settled_o`); those that wait have the time between two marks.
//
// Open:    messages that have not ended are counted, for the deadline of heddle_accept.
// Latency: a PDC, or a message of the table, is judged in two cycles.

`include "heddle_assert.svh"

module heddle_target_marks
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
#(
  localparam int unsigned TableW = PdcW + TableMessageW
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              drain_i,       // The token of a receive context waits.
  input  logic              between_i,     // No packet is between its lookup and its decision.
  input  logic              waits_i,       // A packet waits.
  input  logic [NumPdc-1:0] open_i,
  input  logic [NumRx-1:0]           rx_alive_i,
  input  logic [NumRx-1:0][GenW-1:0] rx_gen_i,

  input  logic              entry_wen_i,   // The message of a PDC becomes `entry_message_i`,
  input  logic [PdcW-1:0]   entry_pdc_i,
  input  target_message_t   entry_before_i,  // and was this.
  input  target_message_t   entry_message_i,
  input  logic              table_wen_i,   // one of the table `table_message_i`.
  input  logic [TableW-1:0] table_index_i,
  input  target_message_t   table_message_i,
  input  logic              table_opened_i,
  input  logic              table_ended_i,

  output logic              marking_o,     // The token has to wait.
  output logic              settled_o,     // Packets may pass meanwhile.
  output logic              valid_o,       // This one is to be marked:
  output logic              tabled_o,      // of the table.
  output logic [PdcW-1:0]   pdc_o,
  output logic [TableMessageW-1:0] place_o,
  input  logic              done_i,        // It is.

  output logic              open_o,        // A message that holds a buffer, or one of the table, has not ended.
  output logic              ready_o
);
  localparam int unsigned MarkGap = 64;  // Cycles.
  typedef struct packed {
    logic            holds;  // A buffer, not marked.
    logic [RxW-1:0]  ctx;
    logic [GenW-1:0] gen;
  } holding_t;

  // The message looked at: of a PDC, then, if any is open there, of the table.
  typedef struct packed {
    logic              done;
    logic              tabled;
    logic [TableW-1:0] index;
  } mark_t;
  mark_t           mark_q, mark_d;
  holding_t        entry_holding, table_holding, holding, holding_own, holding_table;
  logic [TableW:0] table_count_q;  // Messages open in the table.
  logic [PdcW:0]   entry_count_q;  // PDCs whose message holds a buffer.
  logic [$clog2(MarkGap)-1:0] gap_q;
  logic            holding_ready, held_ready, stale_q, judged_q, fresh_q;
  logic [1:0]      unused_error;
  logic entry_held, entry_holds, table_holds;
  assign entry_held    = entry_before_i.state == MessageOpen || entry_before_i.state == MessageFailed;
  assign entry_holds   = entry_message_i.state == MessageOpen || entry_message_i.state == MessageFailed;
  assign table_holds   = table_message_i.state == MessageOpen || table_message_i.state == MessageFailed;
  assign entry_holding = {entry_holds && !entry_message_i.gone, entry_message_i.buffer.ctx, entry_message_i.buffer.gen};
  assign table_holding = {table_holds && !table_message_i.gone, table_message_i.buffer.ctx, table_message_i.buffer.gen};
  heddle_mem #(.Width($bits(holding_t)), .Depth(NumPdc)) u_holding (
    .clk_i, .rst_ni, .wen_i(entry_wen_i), .waddr_i(entry_pdc_i), .wdata_i(entry_holding),
    .raddr_i(mark_d.index[PdcW-1:0]), .rdata_o(holding_own), .error_o(unused_error[0]), .ready_o(holding_ready)
  );
  heddle_mem #(.Width($bits(holding_t)), .Depth(NumPdc * TableMessages)) u_held (
    .clk_i, .rst_ni, .wen_i(table_wen_i), .waddr_i(table_index_i), .wdata_i(table_holding),
    .raddr_i(mark_d.index), .rdata_o(holding_table), .error_o(unused_error[1]), .ready_o(held_ready)
  );
  assign holding = mark_q.tabled ? holding_table : holding_own;
  assign ready_o = holding_ready && held_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      table_count_q <= '0;
      entry_count_q <= '0;
      open_o        <= 1'b0;
    end else begin
      table_count_q <= table_count_q + (TableW + 1)'(table_opened_i) - (TableW + 1)'(table_ended_i);
      if (entry_wen_i && entry_held != entry_holds) begin
        entry_count_q <= entry_holds ? entry_count_q + 1'b1 : entry_count_q - 1'b1;
      end
      open_o <= table_count_q != '0 || entry_count_q != '0;
    end
  end

  assign marking_o = drain_i && !mark_q.done;
  assign settled_o = fresh_q;
  assign tabled_o  = mark_q.tabled;
  assign pdc_o     = mark_q.tabled ? mark_q.index[TableW-1:TableMessageW] : mark_q.index[PdcW-1:0];
  assign place_o   = mark_q.index[TableMessageW-1:0];
  assign valid_o   = judged_q && stale_q && (!waits_i || gap_q == '0);
  always_comb begin
    mark_d = mark_q;
    if (!drain_i) begin
      mark_d = '0;
    end else if (judged_q && (!stale_q || done_i)) begin
      mark_d.index = mark_q.index + 1'b1;
      if (mark_q.index == (mark_q.tabled ? TableW'(NumPdc * TableMessages - 1) : TableW'(NumPdc - 1))) begin
        mark_d.index  = '0;
        mark_d.tabled = 1'b1;
        mark_d.done   = mark_q.tabled || table_count_q == '0;
      end
    end
  end
  // One is judged in the cycle after its word was read, and left or marked in the next ones.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mark_q   <= '0;
      fresh_q  <= 1'b0;
      judged_q <= 1'b0;
      gap_q    <= '0;
    end else begin
      mark_q   <= mark_d;
      fresh_q  <= marking_o && (fresh_q || between_i);
      judged_q <= marking_o && fresh_q && mark_d == mark_q;
      if (done_i)           gap_q <= '1;
      else if (gap_q != '0) gap_q <= gap_q - 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    stale_q <= open_i[pdc_o] && holding.holds && (!rx_alive_i[holding.ctx] || rx_gen_i[holding.ctx] != holding.gen);
  end

  logic unused_bits;
  assign unused_bits = ^{unused_error, entry_before_i, entry_message_i, table_message_i};

  `HEDDLE_ASSERT(CountsWhatOpened_A, entry_wen_i && entry_held && !entry_holds |-> entry_count_q != '0)
  `HEDDLE_ASSERT(MarkedAfterOldLookups_A, marking_o && !fresh_q |-> mark_q == '0)
endmodule
