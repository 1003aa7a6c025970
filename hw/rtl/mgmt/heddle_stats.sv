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
endmodule
