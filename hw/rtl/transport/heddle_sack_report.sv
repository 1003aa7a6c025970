// SPDX-License-Identifier: Apache-2.0
// The bitmap of an ACK_CC, turned to the positions of a PDC: bit n is about the PSN n after the oldest unacknowledged one.
//
// Combinational. Bits outside the positions that were sent belong to none.

module heddle_sack_report
  import heddle_contract_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic [SackW-1:0]     out_i,     // PSNs that were sent.
  input  logic [31:0]          base_i,    // Position of bit 0, signed.
  input  logic [PdcWindow-1:0] bitmap_i,
  output logic [PdcWindow-1:0] reported_o
);
  logic [PdcWindow-1:0] turned, reported;
  logic [SackW-1:0]     turn;
  assign turn = {1'b0, base_i[SackW-2:0]};
  always_comb begin
    turned = bitmap_i;
    for (int unsigned i = 0; i < SackW - 1; i++) begin
      if (turn[i]) turned = (turned << (1 << i)) | (turned >> (PdcWindow - (1 << i)));
    end
    reported = '0;
    if (base_i[31:SackW-1] == '0)      reported = turned & ~low_positions(turn);
    else if (base_i[31:SackW-1] == '1) reported = turned & low_positions(turn);
  end
  assign reported_o = reported & low_positions(out_i);
endmodule
