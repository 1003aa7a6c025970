// SPDX-License-Identifier: Apache-2.0
// Picks the next set bit after the last one taken, round robin.
//
// Fair:    a bit that stays set is offered after at most Width-1 others.
// Latency: 0 cycles from `set_i` to `valid_o` and `index_o`; `take_i` moves the start.

`include "heddle_assert.svh"

module heddle_first #(
  parameter  int unsigned Width  = 64,  // A power of two >= 2.
  localparam int unsigned IndexW = $clog2(Width)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [Width-1:0]  set_i,
  input  logic              take_i,   // The bit on `index_o` was taken.
  output logic              valid_o,
  output logic [IndexW-1:0] index_o
);
  logic [Width-1:0] above_q;  // Bits after the last one taken go first.

  logic [Width-1:0] candidates, lowest;
  assign candidates = |(set_i & above_q) ? (set_i & above_q) : set_i;
  assign lowest     = candidates & (~candidates + Width'(1));
  assign valid_o    = |set_i;

  always_comb begin
    index_o = '0;
    if (valid_o) begin
      for (int unsigned i = 0; i < Width; i++) begin
        if (lowest[i]) index_o = index_o | IndexW'(i);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)     above_q <= '0;
    else if (take_i) above_q <= ~(lowest | (lowest - Width'(1)));
  end

  `HEDDLE_ASSERT(OfferedIsSet_A, !valid_o || set_i[index_o])
endmodule
