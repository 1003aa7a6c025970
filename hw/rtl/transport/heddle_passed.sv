// SPDX-License-Identifier: Apache-2.0
// Up to which PSN packets are lost after an ACK: those that did not arrive before the `reorder_i`-th PSN from the top
// that did.
//
// Three steps: how many arrived in each group of positions; the group in which the count from the top reaches `reorder_i`; the
// place in this group.
// Offers:    each ACK that passes some, or `always_i`, in order, from the fifth cycle after it on. The PDC may have
//            ended meanwhile: `spdcid_o` names its opening.

`include "heddle_assert.svh"

module heddle_passed
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [7:0]           reorder_i,   // 0 counts as 1, more than 15 as 15.

  input  logic                 valid_i,     // An ACK, two cycles or less after it was chosen by `room_o`.
  input  logic                 always_i,    // It is offered in any case.
  output logic                 room_o,
  input  logic [PdcW-1:0]      pdc_i,
  input  logic [15:0]          spdcid_i,
  input  logic [31:0]          una_i,       // PSN of position 0.
  input  logic [SackW-1:0]     advance_i,   // Positions before this one are acknowledged.
  input  logic [PdcWindow-1:0] held_i,      // These arrived.

  output logic                 valid_o,
  input  logic                 ready_i,
  output logic [PdcW-1:0]      pdc_o,
  output logic [15:0]          spdcid_o,
  output logic [31:0]          psn_o,       // PSNs before it are lost, unless they arrived.
  output logic                 idle_o
);
  localparam int unsigned EnoughW = 4;
  localparam int unsigned Depth   = 16;
  // From the choice of an ACK until it is in the queue.
  localparam int unsigned UnderWay = 7;
  localparam int unsigned PlaceW = 3;
  localparam int unsigned Group  = 1 << PlaceW;  // Positions.
  localparam int unsigned Groups = PdcWindow / Group;
  localparam int unsigned CountW = PlaceW + 1;

  typedef struct packed {
    logic             offered;
    logic [PdcW-1:0]  pdc;
    logic [15:0]      spdcid;
    logic [31:0]      una;
    logic [SackW-1:0] advance;
  } ack_t;
  typedef struct packed {
    logic [PdcW-1:0] pdc;
    logic [15:0]     spdcid;
    logic [31:0]     psn;
  } passed_t;

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
  logic [Groups-1:0][Group-1:0]  groups_q;  // The ACK's.
  logic [Groups-1:0][Group-1:0]  counted_groups_q;
  logic [Groups-1:0][CountW-1:0] own_d, own_q;
  logic [Groups-1:1][SackW-1:0]  pairs, fours;
  logic [Groups-1:0][SackW-1:0]  above;  // Without the group.
  for (genvar g = 0; g < Groups; g++) begin : gen_count
    assign own_d[g] = ones_of_8(groups_q[g]);
    if (g == 0) begin : gen_first
    end else if (g + 1 < Groups) begin : gen_pair
      assign pairs[g] = SackW'(own_q[g]) + SackW'(own_q[g+1]);
    end else begin : gen_one
      assign pairs[g] = SackW'(own_q[g]);
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

  // Second step.
  logic [EnoughW-1:0]            more_q;   // How many arrived, beyond the first.
  logic [Groups-1:0]             chosen;
  logic [Groups-1:0][SackW-1:0]  missing;  // How many are left for this group and those below; negative if none.
  for (genvar g = 0; g < Groups; g++) begin : gen_choose
    assign missing[g] = SackW'(more_q) - above[g];
    assign chosen[g]  = missing[g][SackW-1:PlaceW] == '0 && under(missing[g][PlaceW-1:0], own_q[g]);
  end
  always_ff @(posedge clk_i) begin
    if (reorder_i == '0)                        more_q <= '0;
    else if (reorder_i > 8'(2 ** EnoughW - 1)) more_q <= EnoughW'(2 ** EnoughW - 2);
    else                                        more_q <= reorder_i[EnoughW-1:0] - EnoughW'(1);
  end

  logic [Group-1:0]        members;
  logic [PlaceW-1:0]       wanted, rest;
  logic [SackW-PlaceW-2:0] group;
  logic [2:0]              upper;
  logic                    lower;
  logic [Group/2-1:0]      half, seen;  // Bit n: n were seen.
  logic [PlaceW-2:0]       place;
  logic [Groups-1:0]             chosen_q;
  logic [Groups-1:0][Group-1:0]  candidates_q;
  logic [Groups-1:0][PlaceW-1:0] nth_q;
  ack_t                          ack_q, counted_ack_q, chosen_ack_q, placed_ack_q;
  logic                          valid_q, counted_valid_q, chosen_valid_q, placed_valid_q;
  logic [SackW-1:0]              place_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q         <= 1'b0;
      counted_valid_q <= 1'b0;
      chosen_valid_q  <= 1'b0;
      placed_valid_q  <= 1'b0;
    end else begin
      valid_q         <= valid_i;
      counted_valid_q <= valid_q;
      chosen_valid_q  <= counted_valid_q;
      placed_valid_q  <= chosen_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    groups_q     <= held_i;
    ack_q        <= {always_i, pdc_i, spdcid_i, una_i, advance_i};
    own_q        <= own_d;
    counted_groups_q <= groups_q;
    counted_ack_q <= ack_q;
    chosen_q     <= chosen;
    candidates_q <= counted_groups_q;
    chosen_ack_q <= counted_ack_q;
    placed_ack_q <= chosen_ack_q;
    place_q      <= {1'b0, group, !lower, place};
    for (int unsigned g = 0; g < Groups; g++) nth_q[g] <= missing[g][PlaceW-1:0];
  end

  // Third: the upper or the lower half of the group, then the place there.
  always_comb begin
    members = '0;
    wanted  = '0;
    group   = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      members = members | (candidates_q[g] & {Group{chosen_q[g]}});
      wanted  = wanted | (nth_q[g] & {PlaceW{chosen_q[g]}});
      group   = group | ((SackW-PlaceW-1)'(g) & {(SackW-PlaceW-1){chosen_q[g]}});
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

  passed_t                passed, offered;
  logic                   queue_room;
  logic [$clog2(Depth):0] count;
  assign passed = {placed_ack_q.pdc, placed_ack_q.spdcid, placed_ack_q.una + 32'(place_q)};
  heddle_fifo #(.Width($bits(passed_t)), .Depth(Depth)) u_queue (
    .clk_i, .rst_ni, .valid_i(placed_valid_q && (placed_ack_q.offered || place_q > placed_ack_q.advance)), .ready_o(queue_room), .data_i(passed),
    .valid_o, .ready_i, .data_o(offered), .count_o(count)
  );
  assign pdc_o    = offered.pdc;
  assign spdcid_o = offered.spdcid;
  assign psn_o    = offered.psn;
  assign room_o   = count <= ($clog2(Depth)+1)'(Depth - UnderWay);
  assign idle_o   = !valid_q && !counted_valid_q && !chosen_valid_q && !placed_valid_q && count == '0;

  logic unused;
  assign unused = ^{rest[PlaceW-1], missing};

  `HEDDLE_ASSERT(QueueHasRoom_A, placed_valid_q |-> queue_room)
endmodule
