// SPDX-License-Identifier: Apache-2.0
// Toeplitz hash, as of receive side scaling: bit i is the parity of the data under the key from its bit i on.
//
// Secret:  without the key, two data have one hash with a probability of 1 in 2^HashW.
// Latency: 0 cycles.

module heddle_toeplitz #(
  parameter  int unsigned DataW = 144,
  parameter  int unsigned HashW = 14,
  localparam int unsigned KeyW  = DataW + HashW - 1
) (
  input  logic [KeyW-1:0]  key_i,
  input  logic [DataW-1:0] data_i,
  output logic [HashW-1:0] hash_o
);
  for (genvar i = 0; i < HashW; i++) begin : gen_bit
    assign hash_o[i] = ^(data_i & key_i[i +: DataW]);
  end
endmodule
