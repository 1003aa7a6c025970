// SPDX-License-Identifier: Apache-2.0
// Round-robin arbiter for packet streams: N valid/ready sources share one sink.
//
// Atomic:  once a packet's first beat is offered, its source keeps the grant
//          until the beat with `last_i` is accepted; packets never interleave.
// Fair:    a waiting source is granted after at most NumSrc-1 other packets.
// Latency: 0 cycles.  `valid_i`->`valid_o` and `ready_i`->`ready_o` are
//          combinational; add a register slice where timing needs it.
//
// Carries control only: the parent muxes payload with `idx_o`.

`include "heddle_assert.svh"

module heddle_rr_arbiter #(
  parameter  int unsigned NumSrc = 4,  // Sources, >= 2.
  localparam int unsigned IdxW   = $clog2(NumSrc)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [NumSrc-1:0] valid_i,
  input  logic [NumSrc-1:0] last_i,
  output logic [NumSrc-1:0] ready_o,

  output logic              valid_o,
  output logic              last_o,
  output logic [IdxW-1:0]   idx_o,     // Granted source; meaningful while valid_o.
  input  logic              ready_i
);
  logic [NumSrc-1:0] above_d, above_q;  // Sources after the last winner go first.
  logic [NumSrc-1:0] grant, held_q;     // One-hot, or zero when nobody asks.
  logic              busy_d, busy_q;    // A packet has been offered, not finished.

  logic [NumSrc-1:0] candidates;
  assign candidates = |(valid_i & above_q) ? (valid_i & above_q) : valid_i;

  // x & -x isolates the lowest set bit, i.e. the next source in turn.
  assign grant = busy_q ? held_q : (candidates & (~candidates + NumSrc'(1)));

  assign valid_o = |(grant & valid_i);
  assign last_o  = |(grant & last_i);
  assign ready_o = grant & {NumSrc{ready_i}};

  always_comb begin
    idx_o = '0;
    for (int unsigned i = 0; i < NumSrc; i++) begin
      if (grant[i]) idx_o = IdxW'(i);
    end
  end

  logic packet_done;
  assign packet_done = valid_o && ready_i && last_o;

  assign busy_d  = (busy_q || valid_o) && !packet_done;
  assign above_d = packet_done ? ~(grant | (grant - NumSrc'(1))) : above_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      above_q <= '0;
      held_q  <= '0;
      busy_q  <= 1'b0;
    end else begin
      above_q <= above_d;
      held_q  <= grant;
      busy_q  <= busy_d;
    end
  end

  if (NumSrc < 2) begin : gen_bad_num_src
    $error("NumSrc must be at least 2");
  end

  `HEDDLE_ASSUME(SrcHoldsOffer_M, ($past(valid_i & ~ready_o) & ~valid_i) == '0)

  `HEDDLE_ASSERT(GrantOnehot0_A, $onehot0(grant))
  `HEDDLE_ASSERT(OfferHeld_A, valid_o && !ready_i |=> valid_o && $stable(idx_o))
  `HEDDLE_ASSERT(PacketAtomic_A, valid_o && ready_i && !last_o |=> $stable(grant))
endmodule
