// SPDX-License-Identifier: Apache-2.0
// When packets left, and so how long ago the one that an ACK answers did (UET 3.1).
//
// Sole:    the answer to a packet that was sent more than once is not a measure.
// Latency: `sole_o` and `rtt_o` one cycle after `look_i`; a write in the same cycle is seen.

module heddle_round_trip #(
  parameter  int unsigned Depth  = 64,      // Places: each packet that is out has its own.
  localparam int unsigned PlaceW = $clog2(Depth)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [31:0]       now_ns_i,

  input  logic              sent_i,
  input  logic [PlaceW-1:0] sent_place_i,
  input  logic              sent_sole_i,    // For the first time.

  input  logic [PlaceW-1:0] look_place_i,
  input  logic [15:0]       service_time_i, // With the answer: 128 ns that the peer kept the packet.
  output logic              sole_o,
  output logic [23:0]       rtt_o           // ns, at least 1; saturates.
);
  localparam int unsigned StampW  = 24;
  localparam int unsigned StampNs = 6;      // Units of 64 ns.
  typedef struct packed {
    logic              sole;
    logic [StampW-1:0] at;
  } stamp_t;

  stamp_t            sent, stamp;
  logic [StampW-1:0] age;
  logic [30:0]       trip;
  logic              unused_error, unused_ready;
  assign sent = {sent_sole_i, now_ns_i[StampNs +: StampW]};
  heddle_mem #(.Width($bits(stamp_t)), .Depth(Depth), .Init(1'b0)) u_stamps (
    .clk_i, .rst_ni, .wen_i(sent_i), .waddr_i(sent_place_i), .wdata_i(sent),
    .raddr_i(look_place_i), .rdata_o(stamp), .error_o(unused_error), .ready_o(unused_ready)
  );
  assign age    = now_ns_i[StampNs +: StampW] - stamp.at;
  assign trip   = {1'b0, age, {StampNs{1'b0}}} - {8'b0, service_time_i, 7'b0};
  assign sole_o = stamp.sole;
  assign rtt_o  = trip[30] || trip == '0 ? 24'd1 : trip[30:24] != '0 ? '1 : trip[23:0];

  logic unused;
  assign unused = ^{now_ns_i, unused_error, unused_ready};
endmodule
