// SPDX-License-Identifier: Apache-2.0
// The window of an unordered PDC with a PSN that came: all before `expected_i` have come, and those whose bit i of
// `marked_i` is set, PSN expected_i + i. Combinational.
//
// Run: when the expected PSN comes, the window passes all that follow it without a gap; so bit 0 is never set
//      afterwards. A ROD PDC is the same with nothing ahead.

`include "heddle_assert.svh"

module heddle_rud_window
  import heddle_contract_pkg::*;
#(
  localparam int unsigned RunW = $clog2(PdcWindow) + 1
) (
  input  logic [31:0]          expected_i,
  input  logic [PdcWindow-1:0] marked_i,

  output logic [31:0]          expected_o,
  output logic [RunW-1:0]      run_o        // It moved by so many: `marked_i` shifts as far.
);
  localparam int unsigned IndexW = $clog2(PdcWindow);

  // The lowest PSN that is missing, by groups of eight.
  localparam int unsigned Groups = PdcWindow / 8;
  logic [Groups-1:0]              full;
  logic [Groups-1:0][2:0]         lowest;
  logic [$clog2(Groups)-1:0]      group;
  logic [IndexW:0]                run;
  always_comb begin
    group = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      full[g]   = &marked_i[8*g +: 8];
      lowest[g] = '0;
      for (int unsigned i = 0; i < 8; i++) begin
        if (!marked_i[8*g + 7 - i]) lowest[g] = 3'(7 - i);
      end
    end
    for (int unsigned g = 0; g < Groups; g++) begin
      if (!full[Groups-1-g]) group = $clog2(Groups)'(Groups - 1 - g);
    end
    run = &full ? (IndexW + 1)'(PdcWindow) : (IndexW + 1)'({group, lowest[group]});
  end
  assign expected_o = expected_i + 32'(run);
  assign run_o      = run;

  if ((PdcWindow & (PdcWindow - 1)) != 0) begin : gen_bad_window
    $error("PdcWindow must be a power of two");
  end
endmodule
