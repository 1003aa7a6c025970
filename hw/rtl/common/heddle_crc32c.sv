// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli) of one beat, byte 0 in lane 0.
//
// State: the reflected register without its initial and final inversion. A CRC is
//        ~state after a start from all ones; a start from 0 gives the linear part,
//        which leading zero bytes do not change and which can be moved and joined:
//        state of A then B = state(A) * x^(8 * bytes of B) + state(B)
//        (heddle_crc32c_power, heddle_crc32c_mul; `+` is XOR).
// Back:  the result is divided by x^DataW: what is left of the state after as many
//        bytes as the beat has are taken back. Multiplied by x^(8n) it is the state
//        after the first n bytes, if all later ones are zero.
//
// Latency: 0 cycles. While `en_i` is low the result is 0 and nothing toggles.

module heddle_crc32c #(
  parameter int unsigned DataW = 512,  // A multiple of 64, at most 2048.
  parameter bit          Back  = 1'b0
) (
  input  logic             en_i,
  input  logic [31:0]      crc_i,
  input  logic [DataW-1:0] data_i,
  output logic [31:0]      crc_o
);
  localparam logic [31:0] Poly  = 32'h82f6_3b78;
  localparam int unsigned Words = DataW / 64;

  // Bits of a word that bit r of the result is the parity of, as [word][r]. The weight of
  // a data bit is the power of x that it adds.
  function automatic logic [2048*Words-1:0] Matrix(input logic back);
    logic [2047:0] block;
    logic [31:0]   weight;
    int unsigned   word, column;
    weight = back ? 32'h0000_0001 : Poly;
    for (int unsigned w = 0; w < Words; w++) begin
      word = back ? w : Words - 1 - w;
      for (int unsigned b = 0; b < 64; b++) begin
        column = back ? b : 63 - b;
        for (int unsigned r = 0; r < 32; r++) block[64 * r + column] = weight[r];
        if (back) weight = weight[31] ? ((weight ^ Poly) << 1) | 32'd1 : weight << 1;
        else      weight = weight[0] ? (weight >> 1) ^ Poly : weight >> 1;
      end
      Matrix[2048 * word +: 2048] = block;
    end
  endfunction

  localparam logic [2048*Words-1:0] Rows = Matrix(Back);

  logic [DataW-1:0] mixed;
  logic [63:0]      fold;
  always_comb begin
    mixed = data_i ^ {{(DataW - 32){1'b0}}, crc_i};
    fold  = '0;
    crc_o = '0;
    if (en_i) begin
      for (int unsigned r = 0; r < 32; r++) begin
        fold = '0;
        for (int unsigned w = 0; w < Words; w++) begin
          fold = fold ^ (mixed[64*w +: 64] & Rows[2048*w + 64*r +: 64]);
        end
        crc_o[r] = ^fold;
      end
    end
  end

  if (DataW % 64 != 0 || DataW > 2048) begin : gen_bad_width
    $error("DataW must be a multiple of 64, at most 2048");
  end
endmodule
