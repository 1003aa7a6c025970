// SPDX-License-Identifier: Apache-2.0
// Product of two raw CRC-32C states modulo the polynomial, reflected (bit 31 is x^0):
// a state times a factor of heddle_crc32c_power is the state moved over zero bytes.
//
// Latency: 0 cycles. While `en_i` is low the result is 0 and nothing toggles.

module heddle_crc32c_mul (
  input  logic        en_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  output logic [31:0] product_o
);
  localparam logic [31:0] Poly = 32'h82f6_3b78;

  // What bit i of the product's lower half, x^(62-i), is modulo the polynomial.
  function automatic logic [31*32-1:0] Reduction(input logic [31:0] x32);
    logic [31:0] weight;
    weight = x32;
    for (int unsigned i = 0; i < 31; i++) begin
      Reduction[32*(30-i) +: 32] = weight;
      weight = weight[0] ? (weight >> 1) ^ x32 : weight >> 1;
    end
  endfunction

  localparam logic [31*32-1:0] Reduced = Reduction(Poly);

  logic [62:0] wide;  // Bit 62 is x^0.
  always_comb begin
    wide      = '0;
    product_o = '0;
    if (en_i) begin
      for (int unsigned i = 0; i < 32; i++) begin
        wide = wide ^ ({63{a_i[i]}} & ({31'b0, b_i} << i));
      end
      product_o = wide[62:31];
      for (int unsigned i = 0; i < 31; i++) begin
        product_o = product_o ^ ({32{wide[i]}} & Reduced[32*i +: 32]);
      end
    end
  end
endmodule
