// SPDX-License-Identifier: Apache-2.0
// Ones' complement sum of 16-bit big-endian words (lanes 0 and 1 are the first word),
// as Internet checksums count them.
//
// Latency: 0 cycles. While `en_i` is low the sum is zero and nothing is added.

module heddle_beat_sum #(
  parameter  int unsigned DataW = 512  // A multiple of 32, at most 512.
) (
  input  logic             en_i,
  input  logic [DataW-1:0] data_i,
  output logic [15:0]      sum_o
);
  // The sum of byte-swapped words is the byte-swapped sum.
  logic [35:0] wide;
  logic [17:0] folded;
  logic [16:0] folded2;
  logic [15:0] swapped;

  always_comb begin
    wide = '0;
    if (en_i) begin
      for (int unsigned i = 0; i < DataW / 32; i++) begin
        wide = wide + {4'b0, data_i[32*i +: 32]};
      end
    end
    folded  = {2'b0, wide[15:0]} + {2'b0, wide[31:16]} + {14'b0, wide[35:32]};
    folded2 = {1'b0, folded[15:0]} + {15'b0, folded[17:16]};
    swapped = folded2[15:0] + {15'b0, folded2[16]};
  end
  assign sum_o = {swapped[7:0], swapped[15:8]};
endmodule
