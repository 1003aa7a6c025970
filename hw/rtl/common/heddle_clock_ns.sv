// SPDX-License-Identifier: Apache-2.0
// Time in nanoseconds: ticks are exact, cycles divide them.
//
// Monotonic: cycles count until the tick that they lead up to, however many there are.

module heddle_clock_ns
  import heddle_contract_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        tick_i,
  input  logic [31:0] tick_ns_i,  // 0: no time passes.
  output logic [31:0] now_o       // Wraps.
);
  localparam int unsigned TickW = $clog2(TickCycles);

  logic [31:0] base_q, past_q, past;  // Ticks; cycles since the last.
  assign past = past_q + 32'(tick_ns_i[31:TickW]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      base_q <= '0;
      past_q <= '0;
      now_o  <= '0;
    end else begin
      if (tick_i) begin
        base_q <= base_q + tick_ns_i;
        past_q <= '0;
      end else if (past < tick_ns_i) begin
        past_q <= past;
      end
      now_o <= base_q + past_q;
    end
  end

  logic unused;
  assign unused = ^tick_ns_i[TickW-1:0];

  if (TickCycles != 1 << TickW) begin : gen_bad_tick
    $error("A tick must be a power of two of cycles");
  end
endmodule
