// SPDX-License-Identifier: Apache-2.0
// Which target PDCs owe an ACK that has waited long enough.
//
// Bounded: a debt is due at most `delay_i` ticks after it began (a delay of 1: at the next
//          tick), and at least half of that after.
// Off:     with `delay_i` 0 nothing is ever due.

`include "heddle_assert.svh"

module heddle_ack_delay
  import heddle_pkg::*;
(
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              tick_i,
  input  logic [31:0]       delay_i,   // Ticks.

  input  logic              set_i,     // PDC `pdc_i` owes an ACK; a running debt goes on.
  input  logic              clear_i,   // It was paid.
  input  logic [PdcW-1:0]   pdc_i,

  output logic [NumPdc-1:0] due_o,
  output logic              pending_o  // Some debt runs: time matters.
);
  logic [NumPdc-1:0] owed_q, old_q, due_q;
  logic [31:0]       period, count_q;
  logic              period_end;

  // Two period ends after it began a debt is due.
  assign period     = delay_i >> 1;
  assign period_end = tick_i && (count_q + 32'd1 >= period);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      owed_q  <= '0;
      old_q   <= '0;
      due_q   <= '0;
      count_q <= '0;
    end else begin
      if (tick_i) count_q <= period_end ? '0 : count_q + 32'd1;
      if (period_end && delay_i != '0) begin
        old_q <= owed_q;
        due_q <= delay_i == 32'd1 ? owed_q : (due_q | (old_q & owed_q));
      end
      if (set_i) owed_q[pdc_i] <= 1'b1;
      if (clear_i) begin
        owed_q[pdc_i] <= 1'b0;
        old_q[pdc_i]  <= 1'b0;
        due_q[pdc_i]  <= 1'b0;
      end
    end
  end

  assign due_o     = due_q;
  assign pending_o = owed_q != '0 && delay_i != '0;

  `HEDDLE_ASSERT(OneChange_A, !(set_i && clear_i))
  `HEDDLE_ASSERT(DueIsOwed_A, (due_q & ~owed_q) == '0)
endmodule
