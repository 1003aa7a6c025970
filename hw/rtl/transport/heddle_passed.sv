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

  // Without carry chains.
  function automatic logic under(logic [PlaceW-1:0] a, logic [CountW-1:0] b);
    under = b[0] & ~a[0];
    under = (b[1] & ~a[1]) | ((b[1] | ~a[1]) & under);
    under = (b[2] & ~a[2]) | ((b[2] | ~a[2]) & under);
    under = b[3] | under;
  endfunction
  function automatic logic [PlaceW-1:0] minus(logic [PlaceW-1:0] a, logic [PlaceW-1:0] b);
    logic borrow;
    minus[0] = a[0] ^ b[0];
    borrow   = ~a[0] & b[0];
    minus[1] = a[1] ^ b[1] ^ borrow;
    borrow   = (~a[1] & b[1]) | ((~a[1] | b[1]) & borrow);
    minus[2] = a[2] ^ b[2] ^ borrow;
  endfunction

  // Positions of the group and above that are set, in three steps each of which covers twice as many groups.
  logic [Groups-1:0][Group-1:0]  groups;
  logic [Groups-1:0][CountW-1:0] own;
  logic [Groups-1:1][SackW-1:0]  pairs, fours;
  logic [Groups-1:0][SackW-1:0]  above;  // Without the group.
  assign groups = held_i;
  for (genvar g = 0; g < Groups; g++) begin : gen_count
    assign own[g] = ones_of_8(groups[g]);
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
  logic [EnoughW-1:0]            more;     // Beyond the first.
  logic [Groups-1:0]             chosen;
  logic [Groups-1:0][SackW-1:0]  missing;  // Of those, behind the groups above; negative if there are none.
  assign more = enough_i - EnoughW'(1);
  for (genvar g = 0; g < Groups; g++) begin : gen_choose
    assign missing[g] = SackW'(more) - above[g];
    assign chosen[g]  = missing[g][SackW-1:PlaceW] == '0 && under(missing[g][PlaceW-1:0], own[g]);
  end

  // Second: the upper or the lower half of the group, then the place there.
  logic [Group-1:0]        members;
  logic [PlaceW-1:0]       wanted, rest;
  logic [SackW-PlaceW-2:0] group;
  logic [2:0]              upper;
  logic                    lower;
  logic [Group/2-1:0]      half, seen;  // Bit n: n were seen.
  logic [PlaceW-2:0]       place;
  always_comb begin
    members = '0;
    wanted  = '0;
    group   = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      members = members | (groups[g] & {Group{chosen[g]}});
      wanted  = wanted | (missing[g][PlaceW-1:0] & {PlaceW{chosen[g]}});
      group   = group | ((SackW-PlaceW-1)'(g) & {(SackW-PlaceW-1){chosen[g]}});
    end
  end
  assign upper = ones_of_4(members[Group-1:Group/2]);
  assign lower = !under(wanted, CountW'(upper));
  assign half  = lower ? members[Group/2-1:0] : members[Group-1:Group/2];
  assign rest  = lower ? minus(wanted, upper) : wanted;
  always_comb begin
    place = '0;
    seen  = (Group/2)'(1);
    for (int unsigned i = Group / 2; i > 0; i--) begin
      if (half[i-1]) begin
        if (seen[rest[PlaceW-2:0]]) place = place | (PlaceW-1)'(i - 1);
        seen = seen << 1;
      end
    end
  end
  assign end_o = chosen == '0 ? '0 : {1'b0, group, !lower, place};

  logic unused;
  assign unused = rest[PlaceW-1];
endmodule
