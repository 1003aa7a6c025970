// SPDX-License-Identifier: Apache-2.0
// The pieces of a request in the local segments of its message, one after the other.
//
// Shown:   the part of the request that lies in the segment looked at, if any. `step_i` goes on to the next,
//          `clear_i` to the first, for another request.
// Whole:   the request lies inside what the segments add up to; it and its message stay until `clear_i`.
// Latency: `msg_i` is read in the cycle before.

`include "heddle_assert.svh"

module heddle_segment_cut
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic            wr_valid_i,  // Message table write of a message with segments.
  input  logic [MsgW-1:0] wr_msg_i,
  input  segments_t       wr_data_i,

  input  logic [MsgW-1:0] msg_i,
  input  logic [31:0]     offset_i,    // Of the request, in the message.
  input  logic [13:0]     bytes_i,
  input  logic            step_i,
  input  logic            clear_i,

  output logic            overlap_o,   // There is a piece:
  output logic [63:0]     iova_o,
  output logic [13:0]     bytes_o,
  output logic            last_o,      // the last of the request.
  output logic            ready_o      // The table is cleared.
);
  localparam int unsigned SegW = $clog2(LocalSegments);

  logic [$bits(segments_t)-1:0] raw;
  segments_t segments;
  logic      unused_error;
  heddle_mem #(.Width($bits(segments_t)), .Depth(NumMsg), .Init(1'b0)) u_segments (
    .clk_i, .rst_ni,
    .wen_i(wr_valid_i), .waddr_i(wr_msg_i), .wdata_i(wr_data_i),
    .raddr_i(msg_i), .rdata_o(raw), .error_o(unused_error), .ready_o(ready_o)
  );
  assign segments = segments_t'(raw);

  logic [SegW-1:0] seg_q;
  logic [32:0]     start_q;  // Of the segment, in the message.
  logic [32:0]     first, limit, reach, from, to, skip;
  assign first     = {1'b0, offset_i};
  assign limit     = first + 33'(bytes_i);
  assign reach     = start_q + {1'b0, segments.length[seg_q]};
  assign from      = start_q > first ? start_q : first;
  assign to        = reach < limit ? reach : limit;
  assign skip      = from - start_q;
  assign overlap_o = to > from;
  assign iova_o    = segments.iova[seg_q] + 64'(skip);
  assign bytes_o   = 14'(to - from);
  assign last_o    = to == limit;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      seg_q   <= '0;
      start_q <= '0;
    end else if (clear_i) begin
      seg_q   <= '0;
      start_q <= '0;
    end else if (step_i) begin
      seg_q   <= seg_q + 1'b1;
      start_q <= reach;
    end
  end

  logic unused_bits;
  assign unused_bits = unused_error;

  `HEDDLE_ASSUME(WholeRequest_M, step_i && seg_q == '1 |-> clear_i)
endmodule
