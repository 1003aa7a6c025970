// SPDX-License-Identifier: Apache-2.0
// Byte shifter over two beats: the beat that starts `shift_i` bytes into {hi, lo}.
//
// Latency: 0 cycles. While `en_i` is low the output is zero and nothing shifts.

module heddle_funnel #(
  parameter  int unsigned DataW = 512,           // Bits, a power of two of bytes.
  localparam int unsigned StrbW = DataW / 8,
  localparam int unsigned ShiftW = $clog2(StrbW) + 1
) (
  input  logic              en_i,
  input  logic [DataW-1:0]  lo_i,
  input  logic [DataW-1:0]  hi_i,
  input  logic [ShiftW-1:0] shift_i,  // Bytes, 0 (gives lo) to StrbW (gives hi).
  output logic [DataW-1:0]  data_o
);
  logic [DataW-1:0] unused_high;

  always_comb begin
    data_o      = '0;
    unused_high = '0;
    if (en_i) {unused_high, data_o} = {hi_i, lo_i} >> {shift_i, 3'b000};
  end
endmodule
