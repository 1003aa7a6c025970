// SPDX-License-Identifier: Apache-2.0
// Which PSNs of an unordered PDC have come: all before `expected_i`, and those of `ahead_i`, whose bit i
// is PSN expected_i + i. Combinational.
//
// Run: when the expected PSN comes, the window moves behind all that follow it without a gap; so bit 0
//      is never set. A ROD PDC is the same with nothing ahead.

`include "heddle_assert.svh"

module heddle_rud_window
  import heddle_contract_pkg::*;
(
  input  logic [31:0]          expected_i,
  input  logic [PdcWindow-1:0] ahead_i,
  input  logic [31:0]          psn_i,

  output logic                 inside_o,    // The window holds a place for `psn_i`.
  output logic                 came_o,      // It is ahead, and has come.
  output logic [31:0]          expected_o,  // The window once `psn_i` has come, if it is inside.
  output logic [PdcWindow-1:0] ahead_o
);
  localparam int unsigned IndexW = $clog2(PdcWindow);

  logic [31:0]          offset;
  logic [PdcWindow-1:0] marked;
  assign offset   = psn_i - expected_i;
  assign inside_o = offset < 32'(PdcWindow);
  assign came_o   = inside_o && ahead_i[offset[IndexW-1:0]];
  assign marked   = ahead_i | (PdcWindow'(inside_o) << offset[IndexW-1:0]);

  logic [IndexW:0] run;
  always_comb begin
    run = (IndexW + 1)'(PdcWindow);
    for (int unsigned i = 0; i < PdcWindow; i++) begin
      if (!marked[PdcWindow-1-i]) run = (IndexW + 1)'(PdcWindow - 1 - i);
    end
  end
  assign expected_o = expected_i + 32'(run);
  assign ahead_o    = marked >> run;

  if ((PdcWindow & (PdcWindow - 1)) != 0) begin : gen_bad_window
    $error("PdcWindow must be a power of two");
  end
endmodule
