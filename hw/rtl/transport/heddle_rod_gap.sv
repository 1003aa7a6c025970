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
// Lost:   a trimmed packet overtakes those before it, so that it comes while the gap that these close is open. The
//         first one of a pass that is not reported is remembered, and reported when it is the expected one: it may have
//         been the last that the sender's window let out. What is reported behind it leaves it: the sender ignores that if
//         it has not sent the packet again.

module heddle_rod_gap
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
(
  input  rod_gap_t        gap_i,
  input  logic [GapW-1:0] ahead_i,   // PSN of the packet - PSN expected, not 0.
  input  logic            retx_i,
  input  trim_e           trim_i,
  input  logic [GapW-1:0] psn_i,     // Of the packet, low bits.

  output logic            report_o,
  output rod_gap_t        gap_o,     // Behind the packet.

  // The packet with `psn_i` is the expected one and accepted.
  output trim_e           lost_o,    // The next one is to be reported as trimmed there.
  output rod_gap_t        closed_o   // Behind both.
);
  logic turns, full;
  assign full     = !retx_i && ahead_i == GapW'(PdcWindow - 1);
  assign turns    = gap_i.open && retx_i && ahead_i <= gap_i.last;
  assign report_o = !gap_i.open || (gap_i.turned && retx_i && !turns) || (full && !gap_i.refused);

  logic            remember, forget, behind;
  logic [GapW-1:0] distance;
  assign distance = psn_i - gap_i.lost_psn;
  assign behind   = distance != '0 && !distance[GapW-1];
  assign remember = trim_i != TrimNone && retx_i && (gap_i.lost == TrimNone || turns);
  assign forget   = (report_o && !behind) || (turns && !remember);
  always_comb begin
    gap_o          = gap_i;
    gap_o.open     = 1'b1;
    gap_o.turned   = turns;
    gap_o.last     = ahead_i;
    if (forget) begin
      gap_o.lost     = TrimNone;
      gap_o.lost_psn = '0;
    end else if (remember && !report_o) begin
      gap_o.lost     = trim_i;
      gap_o.lost_psn = psn_i;
    end
  end

  assign lost_o = gap_i.lost_psn == GapW'(psn_i + 1'b1) ? gap_i.lost : TrimNone;
  always_comb begin
    closed_o = '0;
    if (lost_o != TrimNone) begin
      closed_o.open     = 1'b1;
    end else begin
      closed_o.lost     = gap_i.lost;
      closed_o.lost_psn = gap_i.lost_psn;
    end
  end
endmodule
