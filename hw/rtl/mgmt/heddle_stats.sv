// SPDX-License-Identifier: Apache-2.0
// Statistics: 64-bit counters fed by event strobes, read by index.
//
// Several: a counter takes the strobes of all sources in the same cycle.

`include "heddle_assert.svh"

module heddle_stats
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter int unsigned Sources = 3  // 1 to 3.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [Sources-1:0][NumStat-1:0] strobe_i,  // Each adds 1 to each counter whose bit is set.
  input  logic [13:0]        tx_bytes_i,   // Added to tx_bytes.
  input  logic [13:0]        rx_bytes_i,   // Added to rx_bytes.
  input  logic [5:0]         index_i,
  output logic [63:0]        value_o       // Same cycle.
);
  localparam logic [5:0] TxBytes = StatisticTxBytes[5:0];
  localparam logic [5:0] RxBytes = StatisticRxBytes[5:0];

  logic [NumStat-1:0][63:0] count_q;

  assign value_o = count_q[index_i];

  logic [NumStat-1:0][1:0] more;  // By so many.
  always_comb begin
    more = '0;
    if (|strobe_i) begin
      for (int unsigned i = 0; i < NumStat; i++) begin
        for (int unsigned s = 0; s < Sources; s++) more[i] = more[i] + 2'(strobe_i[s][i]);
      end
    end
  end

  if (Sources < 1 || Sources > 3) begin : gen_bad_sources
    $error("Sources must be 1 to 3");
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      if (|strobe_i) begin
        for (int unsigned i = 0; i < NumStat; i++) begin
          if (more[i] != '0) count_q[i] <= count_q[i] + 64'(more[i]);
        end
      end
      if (more[TxBytes] != '0 || tx_bytes_i != '0) begin
        count_q[TxBytes] <= count_q[TxBytes] + 64'(tx_bytes_i) + 64'(more[TxBytes]);
      end
      if (more[RxBytes] != '0 || rx_bytes_i != '0) begin
        count_q[RxBytes] <= count_q[RxBytes] + 64'(rx_bytes_i) + 64'(more[RxBytes]);
      end
    end
  end
endmodule
