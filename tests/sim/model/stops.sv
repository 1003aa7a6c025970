// SPDX-License-Identifier: Apache-2.0
// Ends the simulation in the way it is told to.

`include "heddle_assert.svh"

module stops (
  input logic clk_i,
  input logic rst_ni,
  input logic break_i,
  input logic finish_i
);
  `HEDDLE_ASSERT(NeverBroken_A, !break_i)

  always_ff @(posedge clk_i) begin
    if (rst_ni && finish_i) $finish;
  end
endmodule
