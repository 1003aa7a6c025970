// SPDX-License-Identifier: Apache-2.0
// Small memory (distributed RAM): one write port, one read port of the same cycle.
//
// Latency: 0 cycles; a read sees writes of earlier cycles.
// Not initialised: a word must be written before it is used.

module heddle_lookup #(
  parameter  int unsigned Width = 8,
  parameter  int unsigned Depth = 64,  // Words, >= 2.
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input  logic             clk_i,

  input  logic             wen_i,
  input  logic [AddrW-1:0] waddr_i,
  input  logic [Width-1:0] wdata_i,

  input  logic [AddrW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o
);
  logic [Width-1:0] words [Depth];

  always_ff @(posedge clk_i) begin
    if (wen_i) words[waddr_i] <= wdata_i;
  end
  assign rdata_o = words[raddr_i];
endmodule
