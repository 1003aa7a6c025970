// SPDX-License-Identifier: Apache-2.0
// Round-robin choice among requests that may be withdrawn at any time.
//
// Fair:    a request that stays is chosen after at most NumSrc-1 others were taken.
// Latency: 0 cycles; `valid_i` -> `idx_o` is combinational.

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
  logic [NumSrc-1:0] above_q;  // Sources after the last one taken go first.
  logic [NumSrc-1:0] candidates, grant;

  assign candidates = |(valid_i & above_q) ? (valid_i & above_q) : valid_i;

  // x & -x isolates the lowest set bit, i.e. the next source in turn.
  assign grant   = candidates & (~candidates + NumSrc'(1));
  assign valid_o = |valid_i;

  // Sources whose index has `bit_index` set.
  function automatic logic [NumSrc-1:0] SourcesWith(int unsigned bit_index);
    for (int unsigned i = 0; i < NumSrc; i++) SourcesWith[i] = 1'((i >> bit_index) & 1);
  endfunction
  for (genvar b = 0; b < IdxW; b++) begin : gen_index
    localparam logic [NumSrc-1:0] Mask = SourcesWith(b);
    assign idx_o[b] = |(grant & Mask);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      above_q <= '0;
    end else if (take_i && valid_o) begin
      above_q <= ~(grant | (grant - NumSrc'(1)));
    end
  end

  if (NumSrc < 2) begin : gen_bad_num_src
    $error("NumSrc must be at least 2");
  end

  `HEDDLE_ASSERT(GrantOnehot0_A, $onehot0(grant))
endmodule
