// SPDX-License-Identifier: Apache-2.0
// Is an ordered packet ahead of the expected one reported with a NACK (ROD_OOO)? Combinational.
//
// Once:  the first packet behind a gap, and then one of each pass of a sender that went back and whose
//        retransmission of the expected packet was lost.
// Pass:  it begins with a retransmission that is not behind the packet seen last, and is one when another
//        follows behind that. A peer that sends again only what a NACK names (the reference provider, at most five
//        times) brings no second one, and is told no more.
// Full:  a packet that is none, at the end of a window of ours, shows that the sender has not gone back: the NACK was
//        lost, and is repeated. Without this the sender would wait for its timer.
// Quiet: a refusal of the expected packet opens a gap that is reported: `ahead` 0, and nothing is behind a pass.

module heddle_rod_gap
  import heddle_contract_pkg::*;
  import heddle_return_pkg::*;
(
  input  rod_gap_t        gap_i,
  input  logic [GapW-1:0] ahead_i,   // PSN of the packet - PSN expected, not 0.
  input  logic            retx_i,

  output logic            report_o,
  output rod_gap_t        gap_o      // Behind the packet.
);
  logic turns, full;
  assign full     = !retx_i && ahead_i == GapW'(PdcWindow - 1);
  assign turns    = gap_i.open && retx_i && ahead_i <= gap_i.last;
  assign report_o = !gap_i.open || (gap_i.turned && retx_i && !turns) || (full && !gap_i.refused);
  assign gap_o    = {1'b1, gap_i.refused, turns, ahead_i};
endmodule
