// SPDX-License-Identifier: Apache-2.0
// Up to where `enough_i` later PSNs arrived: the position of the `enough_i`-th bit of `held_i` from the top.
//
// Combinational. Two steps: the group of positions in which the count from the top reaches `enough_i`, then the
// place in this group.

`include "heddle_assert.svh"

module heddle_passed
  import heddle_contract_pkg::*;
  import heddle_transport_pkg::*;
#(
  parameter int unsigned EnoughW = 4
) (
  input  logic [PdcWindow-1:0] held_i,
  input  logic [EnoughW-1:0]   enough_i,  // At least 1.
  output logic [SackW-1:0]     end_o      // 0 if fewer are set.
);
  localparam int unsigned PlaceW = 3;
  localparam int unsigned Group  = 1 << PlaceW;  // Positions.
  localparam int unsigned Groups = PdcWindow / Group;
  localparam int unsigned CountW = PlaceW + 1;

  function automatic logic [CountW-1:0] ones(logic [Group-1:0] bits);
    ones = '0;
    for (int unsigned i = 0; i < Group; i++) ones = ones + CountW'(bits[i]);
  endfunction

  // Positions of the group and above that are set, in three steps each of which covers twice as many groups.
  logic [Groups-1:0][Group-1:0]  groups;
  logic [Groups-1:0][CountW-1:0] own;
  logic [Groups-1:1][SackW-1:0]  pairs, fours;
  logic [Groups-1:0][SackW-1:0]  above;  // Without the group.
  assign groups = held_i;
  for (genvar g = 0; g < Groups; g++) begin : gen_count
    assign own[g] = ones(groups[g]);
    if (g == 0) begin : gen_first
    end else if (g + 1 < Groups) begin : gen_pair
      assign pairs[g] = SackW'(own[g]) + SackW'(own[g+1]);
    end else begin : gen_one
      assign pairs[g] = SackW'(own[g]);
    end
    if (g == 0) begin : gen_lowest
    end else if (g + 2 < Groups) begin : gen_four
      assign fours[g] = pairs[g] + pairs[g+2];
    end else begin : gen_two
      assign fours[g] = pairs[g];
    end
    if (g + 1 >= Groups) begin : gen_top
      assign above[g] = '0;
    end else if (g + 5 >= Groups) begin : gen_upper
      assign above[g] = fours[g+1];
    end else begin : gen_lower
      assign above[g] = fours[g+1] + fours[g+5];
    end
  end

  // First step.
  logic [Groups-1:0]             chosen;
  logic [Groups-1:0][SackW-1:0]  missing;  // So many of the group; one less, below 0 if none.
  logic [Groups-1:0][PlaceW-1:0] nth;
  for (genvar g = 0; g < Groups; g++) begin : gen_choose
    assign missing[g] = SackW'(enough_i) - above[g] - SackW'(1);
    assign chosen[g]  = missing[g][SackW-1:PlaceW] == '0 && missing[g] < SackW'(own[g]);
    assign nth[g]     = missing[g][PlaceW-1:0];
  end

  // Second.
  logic [Group-1:0]          members;
  logic [PlaceW-1:0]         wanted;
  logic [SackW-PlaceW-2:0]   group;
  logic [CountW-1:0]         seen;
  logic [PlaceW-1:0]         place;
  always_comb begin
    members = '0;
    wanted  = '0;
    group   = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      if (chosen[g]) begin
        members = members | groups[g];
        wanted  = wanted | nth[g];
        group   = group | (SackW-PlaceW-1)'(g);
      end
    end
  end
  always_comb begin
    place = '0;
    seen  = '0;
    for (int unsigned i = Group; i > 0; i--) begin
      if (members[i-1] && seen == CountW'(wanted)) place = place | PlaceW'(i - 1);
      seen = seen + CountW'(members[i-1]);
    end
  end
  assign end_o = {1'b0, group, place};
endmodule
