// SPDX-License-Identifier: Apache-2.0
// Spill areas in the NIC: rows of a slot each, written a beat at a time, with two readers that take turns.
//
// Coherent: a read that begins after a write returns it.
// Whole:    a read that began is answered before another begins. Reader 0 goes first.
// Steady:   a request, and a beat that is not taken, stay as they are; reading a row does not change it.
// Latency:  the first beat two cycles after a request at the earliest, then one a cycle.

`include "heddle_assert.svh"

module heddle_spill_store
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned Beats = DescBytes * 8 / DataW,
  localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic                 wr_valid_i,
  input  logic [SpillRowW-1:0] wr_row_i,
  input  logic [BeatW-1:0]     wr_beat_i,
  input  logic [DataW-1:0]     wr_data_i,

  input  logic [1:0]           rd_valid_i,
  input  logic [1:0][$bits(spill_read_t)-1:0] rd_i,
  output logic [1:0]           rsp_valid_o,
  input  logic [1:0]           rsp_ready_i,
  output logic [DataW-1:0]     rsp_data_o,
  output logic                 rsp_last_o
);
  localparam int unsigned StrbW = DataW / 8;

  logic                 busy_q, begin_read, take, row_ends, who_q;
  logic [SpillRowW-1:0] row_q, row;
  logic [BeatW-1:0]     beat_q;
  logic [7:0]           left_q;
  spill_read_t          first;
  logic [Beats-1:0][DataW-1:0] word;
  logic [Beats-1:0]     unused_error, unused_ready;

  assign first      = rd_i[rd_valid_i[0] ? 0 : 1];
  assign begin_read = !busy_q && rd_valid_i != '0;
  assign rsp_last_o = left_q <= 8'(StrbW);
  assign take       = busy_q && rsp_ready_i[who_q];
  assign row_ends   = beat_q == BeatW'(Beats - 1);
  assign row        = begin_read ? first.row : take && row_ends ? row_q + 1'b1 : row_q;
  assign rsp_data_o = word[beat_q];
  always_comb begin
    rsp_valid_o        = '0;
    rsp_valid_o[who_q] = busy_q;
  end

  for (genvar i = 0; i < int'(Beats); i++) begin : gen_beat
    heddle_mem #(.Width(DataW), .Depth(1 << SpillRowW), .Init(1'b0)) u_words (
      .clk_i, .rst_ni, .wen_i(wr_valid_i && wr_beat_i == BeatW'(i)), .waddr_i(wr_row_i), .wdata_i(wr_data_i),
      .raddr_i(row), .rdata_o(word[i]), .error_o(unused_error[i]), .ready_o(unused_ready[i])
    );
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                  busy_q <= 1'b0;
    else if (begin_read)          busy_q <= 1'b1;
    else if (take && rsp_last_o)  busy_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    row_q <= row;
    if (begin_read) begin
      who_q  <= !rd_valid_i[0];
      left_q <= first.bytes;
      beat_q <= '0;
    end else if (take) begin
      left_q <= left_q - 8'(StrbW);
      beat_q <= row_ends ? '0 : beat_q + 1'b1;
    end
  end

  logic unused;
  assign unused = ^{unused_error, unused_ready};

  `HEDDLE_ASSERT(ReadsSomething_A, begin_read |-> first.bytes != '0)
  `HEDDLE_ASSERT(RequestStays_A, busy_q |-> rd_valid_i[who_q])
endmodule
