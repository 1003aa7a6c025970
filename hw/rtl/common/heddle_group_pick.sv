// SPDX-License-Identifier: Apache-2.0
// Choice among many requests in two levels: a group, then all of its members that requested, one after another.
//
// Fair:      groups take turns, so that a request that stays is chosen after at most NumSrc-1 others were taken.
// Withdrawn: a request that falls must be named by `drop_i` in its last cycle, else it may still be chosen.
//            One that is taken must fall before the next is taken.
// Latency:   two cycles from `valid_i` to `valid_o`; then one a cycle from a group.

`include "heddle_assert.svh"

module heddle_group_pick #(
  parameter  int unsigned NumSrc = 256,  // A power of two, >= 2 * Group.
  parameter  int unsigned Group  = 16,   // A power of two, >= 2.
  localparam int unsigned IdxW   = $clog2(NumSrc)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [NumSrc-1:0] valid_i,
  input  logic              drop_i,
  input  logic [IdxW-1:0]   drop_idx_i,
  output logic              valid_o,
  output logic [IdxW-1:0]   idx_o,   // Meaningful while valid_o.
  input  logic              take_i
);
  localparam int unsigned NumGroup = NumSrc / Group;
  localparam int unsigned GroupW   = $clog2(NumGroup);
  localparam int unsigned MemberW  = $clog2(Group);

  logic [NumGroup-1:0]            some_q;      // Members of the group requested.
  logic [NumGroup-1:0][Group-1:0] groups;
  logic                           group_valid;
  logic [GroupW-1:0]              group, group_q;
  logic [Group-1:0]               members_q, members;
  logic [MemberW-1:0]             member;
  logic [Group-1:0]               lowest;  // One bit of `members_q`.
  assign groups = valid_i;

  heddle_rr_pick #(.NumSrc(NumGroup)) u_group (
    .clk_i, .rst_ni, .valid_i(some_q), .valid_o(group_valid), .idx_o(group), .take_i(!valid_o)
  );

  // The lowest one: each member looks at those before it.
  always_comb begin
    member = '0;
    for (int unsigned i = 0; i < Group; i++) begin
      lowest[i] = members_q[i] && (members_q & Group'((1 << i) - 1)) == '0;
      member    = member | (MemberW'(i) & {MemberW{lowest[i]}});
    end
  end
  assign valid_o = members_q != '0;
  assign idx_o   = {group_q, member};

  // Whom a take or a drop removes, found beside the choice of the group.
  logic [Group-1:0] taken, dropped;
  logic             drops_own, drops_next;
  always_comb begin
    taken      = take_i ? lowest : '0;
    dropped    = Group'(1) << drop_idx_i[MemberW-1:0];
    drops_own  = drop_i && drop_idx_i[IdxW-1:MemberW] == group_q;
    drops_next = drop_i && drop_idx_i[IdxW-1:MemberW] == group;
    if (valid_o) members = members_q & ~taken & ~(drops_own ? dropped : '0);
    else         members = (group_valid ? groups[group] : '0) & ~(drops_next ? dropped : '0);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      some_q    <= '0;
      members_q <= '0;
    end else begin
      for (int unsigned i = 0; i < NumGroup; i++) some_q[i] <= groups[i] != '0;
      members_q <= members;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!valid_o) group_q <= group;
  end

  `HEDDLE_ASSUME(TakesWhatIsOffered_M, take_i |-> valid_o)
endmodule
