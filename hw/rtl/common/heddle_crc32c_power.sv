// SPDX-License-Identifier: Apache-2.0
// A power of x modulo the CRC-32C polynomial, from a table: the factor that moves a
// raw state over `count_i` steps of zero bytes, or (Inverse) back over them.
//
// Latency: 0 cycles. Reflected, as the states of heddle_crc32c: bit 31 is x^0.

module heddle_crc32c_power #(
  parameter int unsigned CountW  = 6,    // At most 7.
  parameter int unsigned Step    = 1,    // Bytes per count; a power of 2, at most 1024.
  parameter bit          Inverse = 1'b0
) (
  input  logic [CountW-1:0] count_i,
  output logic [31:0]       power_o
);
  localparam logic [31:0] Poly    = 32'h82f6_3b78;
  localparam int unsigned Entries = 1 << CountW;

  function automatic logic [31:0] Product(input logic [31:0] a, input logic [31:0] b);
    logic [31:0] shifted;
    shifted = b;
    Product = '0;
    for (int unsigned i = 0; i < 32; i++) begin
      if (a[31-i]) Product = Product ^ shifted;
      shifted = shifted[0] ? (shifted >> 1) ^ Poly : shifted >> 1;
    end
  endfunction

  function automatic logic [32*Entries-1:0] Table(input logic inverse);
    logic [31:0] base, power;
    base = 32'h8000_0000;
    for (int unsigned i = 0; i < 8; i++) begin
      if (inverse) base = base[31] ? ((base ^ Poly) << 1) | 32'd1 : base << 1;
      else         base = base[0] ? (base >> 1) ^ Poly : base >> 1;
    end
    for (int unsigned i = 1; i < Step; i = 2 * i) base = Product(base, base);
    power = 32'h8000_0000;
    for (int unsigned i = 0; i < Entries; i++) begin
      Table[32*i +: 32] = power;
      power = Product(power, base);
    end
  endfunction

  localparam logic [32*Entries-1:0] Powers = Table(Inverse);

  assign power_o = Powers[{count_i, 5'd0} +: 32];

  if (CountW > 7 || Step > 1024 || (Step & (Step - 1)) != 0) begin : gen_bad_size
    $error("CountW must be at most 7, Step a power of 2 up to 1024");
  end
endmodule
