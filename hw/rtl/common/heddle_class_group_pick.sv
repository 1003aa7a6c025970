// SPDX-License-Identifier: Apache-2.0
// Choice among many requests of two classes, each as by heddle_group_pick: urgent ones first.
//
// Urgent:    while urgent requests come, one request of the other class is chosen after Share urgent ones, and one if it
//            is taken in the cycle in which the urgent class fetches its next group.
// Fair:      a request that stays is chosen after at most NumSrc-1 others of its class were taken.
// Withdrawn: a request that fell, or that was taken, may be offered once more: the taker looks again.
// Latency:   two cycles from `valid_i` to `valid_o`; then one a cycle from a group of a class.

module heddle_class_group_pick #(
  parameter  int unsigned NumSrc = 256,  // A power of two, >= 2 * Group.
  parameter  int unsigned Group  = 16,   // A power of two, >= 2.
  parameter  int unsigned Share  = 7,    // >= 1.
  localparam int unsigned IdxW   = $clog2(NumSrc)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [NumSrc-1:0] valid_i,
  input  logic [NumSrc-1:0] urgent_i,
  output logic              valid_o,
  output logic [IdxW-1:0]   idx_o,   // Meaningful while valid_o.
  input  logic              take_i
);
  localparam int unsigned ShareW = $clog2(Share + 1);

  logic              urgent, other;  // There is a request of the class.
  logic              prefers;        // The urgent class is chosen from.
  logic [ShareW-1:0] row_q;          // Urgent ones taken in a row.
  logic [IdxW-1:0]   urgent_idx, other_idx;
  assign prefers = urgent && !(other && row_q == ShareW'(Share));
  assign valid_o = urgent || other;
  assign idx_o   = prefers ? urgent_idx : other_idx;

  heddle_group_pick #(.NumSrc(NumSrc), .Group(Group)) u_urgent (
    .clk_i, .rst_ni, .valid_i(valid_i & urgent_i), .drop_i(1'b0), .drop_idx_i('0),
    .valid_o(urgent), .idx_o(urgent_idx), .take_i(take_i && prefers)
  );
  heddle_group_pick #(.NumSrc(NumSrc), .Group(Group)) u_other (
    .clk_i, .rst_ni, .valid_i(valid_i & ~urgent_i), .drop_i(1'b0), .drop_idx_i('0),
    .valid_o(other), .idx_o(other_idx), .take_i(take_i && !prefers)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_q <= '0;
    end else if (take_i) begin
      if (!prefers)                      row_q <= '0;
      else if (row_q != ShareW'(Share)) row_q <= row_q + 1'b1;
    end
  end
endmodule
