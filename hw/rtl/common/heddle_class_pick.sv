// SPDX-License-Identifier: Apache-2.0
// Round-robin choice among requests of two classes, each as by heddle_rr_pick: urgent ones first.
//
// Urgent:  while urgent requests come, one request of the other class is chosen after Share urgent ones.
// Fair:    a request that stays is chosen after at most NumSrc-1 others of its class were taken.
// Latency: 0 cycles, one LUT more than heddle_rr_pick, for the class that requested in one of the last two cycles; the
//          other is withheld meanwhile.

module heddle_class_pick #(
  parameter  int unsigned NumSrc = 16,  // Sources, >= 2.
  parameter  int unsigned Share  = 7,   // >= 1.
  localparam int unsigned IdxW   = $clog2(NumSrc)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [NumSrc-1:0] valid_i,
  input  logic [NumSrc-1:0] urgent_i,
  output logic              valid_o,
  output logic [IdxW-1:0]   idx_o,   // Meaningful while valid_o.
  input  logic              take_i   // The choice was used: its source goes last of its class now.
);
  localparam int unsigned ShareW = $clog2(Share + 1);

  logic              urgent, other;              // There is a request of the class,
  logic              urgent_q, other_q;          // and was one cycle ago.
  logic              prefers_q, prefers_d;       // The urgent class is chosen from.
  logic [ShareW-1:0] row_q, row_d;               // Urgent ones taken in a row.
  logic [IdxW-1:0]   urgent_idx, other_idx;
  assign valid_o = prefers_q ? urgent : other;
  assign idx_o   = prefers_q ? urgent_idx : other_idx;

  heddle_rr_pick #(.NumSrc(NumSrc)) u_urgent (
    .clk_i, .rst_ni, .valid_i(valid_i & urgent_i), .valid_o(urgent), .idx_o(urgent_idx), .take_i(take_i && prefers_q)
  );
  heddle_rr_pick #(.NumSrc(NumSrc)) u_other (
    .clk_i, .rst_ni, .valid_i(valid_i & ~urgent_i), .valid_o(other), .idx_o(other_idx), .take_i(take_i && !prefers_q)
  );

  always_comb begin
    row_d = row_q;
    if (take_i) row_d = !prefers_q ? '0 : row_q == ShareW'(Share) ? row_q : row_q + 1'b1;
    prefers_d = (urgent || urgent_q) && !(row_d == ShareW'(Share) && (other || other_q));
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      urgent_q  <= 1'b0;
      other_q   <= 1'b0;
      prefers_q <= 1'b0;
      row_q     <= '0;
    end else begin
      urgent_q  <= urgent;
      other_q   <= other;
      prefers_q <= prefers_d;
      row_q     <= row_d;
    end
  end
endmodule
