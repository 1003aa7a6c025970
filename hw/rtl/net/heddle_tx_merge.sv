// SPDX-License-Identifier: Apache-2.0
// Lets frames of the slow path in between frames of the data path.
//
// Yields:  a slow-path frame, which has no payload, goes when the data path offers none, and
//          behind at most Patience data frames otherwise: neither waits for ever.
// Latency: 0 cycles.

`include "heddle_assert.svh"

module heddle_tx_merge
  import heddle_pkg::*;
#(
  parameter  int unsigned Patience = 4,
  localparam int unsigned CountW   = $clog2(Patience + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic        data_valid_i,
  output logic        data_ready_o,
  input  frame_head_t data_i,
  input  logic        slow_valid_i,
  output logic        slow_ready_o,
  input  frame_head_t slow_i,

  output logic        head_valid_o,
  input  logic        head_ready_i,
  output frame_head_t head_o
);
  logic [CountW-1:0] passed_q;  // Data frames that went before the waiting slow one.
  logic              held_q;    // An offer was not taken: it stays.
  logic              held_slow_q;

  logic slow;
  assign slow = held_q ? held_slow_q :
                slow_valid_i && (!data_valid_i || 32'(passed_q) == Patience);

  assign head_valid_o = slow ? slow_valid_i : data_valid_i;
  assign head_o       = slow ? slow_i : data_i;
  assign slow_ready_o = slow && head_ready_i;
  assign data_ready_o = !slow && head_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      passed_q    <= '0;
      held_q      <= 1'b0;
      held_slow_q <= 1'b0;
    end else begin
      held_q      <= head_valid_o && !head_ready_i;
      held_slow_q <= slow;
      if (!slow_valid_i || slow_ready_o) begin
        passed_q <= '0;
      end else if (data_valid_i && data_ready_o && 32'(passed_q) != Patience) begin
        passed_q <= passed_q + 1'b1;
      end
    end
  end

  `HEDDLE_ASSERT(OfferHeld_A, head_valid_o && !head_ready_i |=> head_valid_o && $stable(head_o))
endmodule
