// SPDX-License-Identifier: Apache-2.0
// Synchronous first-in first-out queue with show-ahead output.
//
// Ordered: words leave in the order they entered, none lost or repeated.
// Latency: a word written into an empty queue is offered in the next cycle.
// `ready_o` and `valid_o` depend on registers only.

`include "heddle_assert.svh"

module heddle_fifo #(
  parameter  int unsigned Width = 32,  // Bits per word, >= 1.
  parameter  int unsigned Depth = 8,   // Words, a power of two >= 2.
  localparam int unsigned CountW = $clog2(Depth) + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              valid_i,
  output logic              ready_o,
  input  logic [Width-1:0]  data_i,

  output logic              valid_o,
  input  logic              ready_i,
  output logic [Width-1:0]  data_o,

  output logic [CountW-1:0] count_o   // Words held.
);
  localparam int unsigned PtrW = $clog2(Depth);

  logic [Width-1:0]  words [Depth];
  logic [PtrW-1:0]   wr_q, rd_q;
  logic [CountW-1:0] count_q;

  logic              push, pop;
  logic [CountW-1:0] more_q, fewer_q;  // The count and 1, less 1: `valid_i` and `ready_i` may come late in the cycle.
  assign push = valid_i && ready_o;
  assign pop  = valid_o && ready_i;

  assign ready_o = count_q != CountW'(Depth);
  assign valid_o = count_q != '0;
  assign data_o  = words[rd_q];
  assign count_o = count_q;

  always_ff @(posedge clk_i) begin
    if (push) words[wr_q] <= data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wr_q    <= '0;
      rd_q    <= '0;
      count_q <= '0;
      more_q  <= CountW'(1);
      fewer_q <= '1;
    end else begin
      if (push) wr_q <= wr_q + 1'b1;
      if (pop)  rd_q <= rd_q + 1'b1;
      if (push && !pop) begin
        count_q <= more_q;
        more_q  <= more_q + 1'b1;
        fewer_q <= count_q;
      end else if (pop && !push) begin
        count_q <= fewer_q;
        more_q  <= count_q;
        fewer_q <= fewer_q - 1'b1;
      end
    end
  end

  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $error("Depth must be a power of two of at least 2");
  end

  `HEDDLE_ASSERT(CountInRange_A, count_q <= CountW'(Depth))
endmodule
