// SPDX-License-Identifier: Apache-2.0
// One bit for each of many, set by one event and cleared by another, in memory.
//
// A flag is up when the bits that the two events write differ: each writes its own, so that every memory has one writer.
// Both:     one that is set and cleared in the same cycle changes.
// Latency:  reads in the same cycle, of earlier events.
// Clear:    all are down when `ready_o` comes, Depth cycles after reset; nothing may be set before.

`include "heddle_assert.svh"

module heddle_flags #(
  parameter  int unsigned Depth = 1024,  // A power of two.
  parameter  int unsigned Reads = 1,
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic                         set_i,
  input  logic [AddrW-1:0]             set_index_i,
  input  logic                         clear_i,
  input  logic [AddrW-1:0]             clear_index_i,
  input  logic [Reads-1:0][AddrW-1:0]  index_i,
  output logic [Reads-1:0]             flag_o,
  output logic                         ready_o
);
  logic [AddrW:0]   walk_q;
  logic             walk;
  logic [AddrW-1:0] up_index, down_index;
  logic             up, down;            // As they are written.
  logic             at_set, at_clear;    // Written by the other event.
  assign walk       = !walk_q[AddrW];
  assign ready_o    = !walk;
  assign up_index   = walk ? walk_q[AddrW-1:0] : set_index_i;
  assign down_index = walk ? walk_q[AddrW-1:0] : clear_index_i;
  assign up         = !walk && !at_set;
  assign down       = !walk && at_clear;

  heddle_lookup #(.Width(1), .Depth(Depth)) u_at_clear (
    .clk_i, .wen_i(walk || set_i), .waddr_i(up_index), .wdata_i(up), .raddr_i(clear_index_i), .rdata_o(at_clear)
  );
  heddle_lookup #(.Width(1), .Depth(Depth)) u_at_set (
    .clk_i, .wen_i(walk || clear_i), .waddr_i(down_index), .wdata_i(down), .raddr_i(set_index_i), .rdata_o(at_set)
  );
  for (genvar i = 0; i < Reads; i++) begin : gen_read
    logic set_bit, clear_bit;
    heddle_lookup #(.Width(1), .Depth(Depth)) u_set (
      .clk_i, .wen_i(walk || set_i), .waddr_i(up_index), .wdata_i(up), .raddr_i(index_i[i]), .rdata_o(set_bit)
    );
    heddle_lookup #(.Width(1), .Depth(Depth)) u_clear (
      .clk_i, .wen_i(walk || clear_i), .waddr_i(down_index), .wdata_i(down), .raddr_i(index_i[i]), .rdata_o(clear_bit)
    );
    assign flag_o[i] = set_bit != clear_bit;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)   walk_q <= '0;
    else if (walk) walk_q <= walk_q + 1'b1;
  end

  `HEDDLE_ASSUME(SetWhenReady_M, set_i |-> ready_o)
endmodule
