// SPDX-License-Identifier: Apache-2.0
// Statistics: 64-bit counters fed by event strobes, read by index.

`include "heddle_assert.svh"

module heddle_stats
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumStat-1:0] strobe_i,     // Adds 1 to each counter whose bit is set.
  input  logic [13:0]        tx_bytes_i,   // Added to tx_bytes.
  input  logic [13:0]        rx_bytes_i,   // Added to rx_bytes.
  input  logic [5:0]         index_i,
  output logic [63:0]        value_o       // Same cycle.
);
  localparam logic [5:0] TxBytes = StatisticTxBytes[5:0];
  localparam logic [5:0] RxBytes = StatisticRxBytes[5:0];

  logic [NumStat-1:0][63:0] count_q;

  assign value_o = count_q[index_i];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      if (|strobe_i) begin
        for (int unsigned i = 0; i < NumStat; i++) begin
          if (strobe_i[i]) count_q[i] <= count_q[i] + 64'd1;
        end
      end
      if (strobe_i[TxBytes] || tx_bytes_i != '0) begin
        count_q[TxBytes] <= count_q[TxBytes] + 64'(tx_bytes_i) +
                                     64'(strobe_i[TxBytes]);
      end
      if (strobe_i[RxBytes] || rx_bytes_i != '0) begin
        count_q[RxBytes] <= count_q[RxBytes] + 64'(rx_bytes_i) +
                                     64'(strobe_i[RxBytes]);
      end
    end
  end
endmodule
