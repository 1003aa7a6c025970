// SPDX-License-Identifier: Apache-2.0
// Cuts the data of a DMA read into words of `Bits` bits.
//
// Ordered:  words leave in address order; a request is a whole number of words,
//           and its last word leaves with its last beat.
// Latency:  0 cycles; both directions of the handshake are combinational.
// `word_error_o` is meaningful with `word_last_o`.

`include "heddle_assert.svh"

module heddle_gather #(
  parameter  int unsigned DataW  = 512,  // Bits per beat: 64, 128, 256 or 512.
  parameter  int unsigned Bits   = 512,  // Bits per word, 64 to 512, a power of two.
  localparam int unsigned WordsW = 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [WordsW-1:0] words_i,      // Words of the present request; held until its last.

  input  logic              beat_valid_i,
  output logic              beat_ready_o,
  input  logic [DataW-1:0]  beat_data_i,
  input  logic              beat_last_i,
  input  logic              beat_error_i,

  output logic              word_valid_o,
  input  logic              word_ready_i,
  output logic [Bits-1:0]   word_data_o,
  output logic              word_last_o,
  output logic              word_error_o
);
  assign word_error_o = beat_error_i;

  if (Bits > DataW) begin : gen_join
    localparam int unsigned Parts = Bits / DataW;
    localparam int unsigned PartW = $clog2(Parts);

    logic [PartW-1:0]      part_q;
    logic [Bits-DataW-1:0] held_q;  // Earlier beats, the first one lowest.
    logic                  full;
    assign full         = part_q == PartW'(Parts - 1);
    assign word_valid_o = beat_valid_i && full;
    assign beat_ready_o = !full || word_ready_i;
    assign word_data_o  = {beat_data_i, held_q};
    assign word_last_o  = beat_last_i;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        part_q <= '0;
      end else if (beat_valid_i && beat_ready_o) begin
        part_q <= part_q + 1'b1;
      end
    end

    if (Parts == 2) begin : gen_two
      always_ff @(posedge clk_i) begin
        if (beat_valid_i && beat_ready_o) held_q <= beat_data_i;
      end
    end else begin : gen_more
      always_ff @(posedge clk_i) begin
        if (beat_valid_i && beat_ready_o) held_q <= {beat_data_i, held_q[Bits-DataW-1:DataW]};
      end
    end

    logic unused;
    assign unused = ^words_i;

    `HEDDLE_ASSUME(WholeWords_M, beat_valid_i && beat_last_i |-> full)
  end else if (Bits == DataW) begin : gen_same
    assign word_valid_o = beat_valid_i;
    assign beat_ready_o = word_ready_i;
    assign word_data_o  = beat_data_i;
    assign word_last_o  = beat_last_i;

    logic unused;
    assign unused = ^{clk_i, rst_ni, words_i};
  end else begin : gen_split
    localparam int unsigned Parts = DataW / Bits;
    localparam int unsigned PartW = $clog2(Parts);

    logic [WordsW-1:0] count_q;  // Words of the request that left.
    logic              part_last;
    assign word_valid_o = beat_valid_i;
    assign word_data_o  = beat_data_i[32'(count_q[PartW-1:0]) * Bits +: Bits];
    assign word_last_o  = count_q + 1'b1 == words_i;
    assign part_last    = count_q[PartW-1:0] == PartW'(Parts - 1);
    assign beat_ready_o = word_ready_i && (part_last || word_last_o);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        count_q <= '0;
      end else if (word_valid_o && word_ready_i) begin
        count_q <= word_last_o ? '0 : count_q + 1'b1;
      end
    end

    `HEDDLE_ASSERT(LastWithLast_A, beat_valid_i && beat_ready_o |-> beat_last_i == word_last_o)
  end

  if (Bits < 64 || Bits > 512 || (Bits & (Bits - 1)) != 0) begin : gen_bad_bits
    $error("Bits must be a power of two from 64 to 512");
  end
endmodule
