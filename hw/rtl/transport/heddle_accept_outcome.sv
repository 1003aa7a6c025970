// SPDX-License-Identifier: Apache-2.0
// Second stage of a decision of heddle_accept: accept or refuse. Combinational.
//
// Atomic: the PSN advances exactly when all that the packet needs is there.
// Error:  a packet that the semantics refuse is accepted, its answer stored until the initiator has
//         cleared it; a second one is NACKed meanwhile. The rest of its message gets the same answer.
// Once:   one NACK per gap, on ROD one more per pass of the sender (heddle_rod_gap); a refusal opens a gap too, so
//         that the packets after the refused one are not NACKed each.
// Kept:   on ROD, what heddle_rx_reorder can keep after a gap is not accepted, but offered again in its turn. A packet
//         that is missing alone is named by the NACK.
// RUD:    a packet ahead of a gap is accepted if all it needs is there and it cannot be wrong: one of a WRITE
//         or READ that completes nothing here, one of a message that is open, a message of one packet, or the first of a
//         longer one, which is opened in the table. Every other waits until it is the expected one; so errors are judged
//         in the order of PSNs.

`include "heddle_assert.svh"

module heddle_accept_outcome
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic          ruled_i,         // Congestion control is on.
  input  rx_packet_t    pkt_i,
  input  accept_class_t class_i,
  input  target_pdc_t   entry_i,         // heddle_accept_class.
  input  logic          looked_i,        // The table was read for the packet.
  input  logic [RxW-1:0] ctx_i,          // The packet's.
  input  logic          return_room_i,   // heddle_return_tx takes one more packet to return,
  input  logic          report_room_i,   // heddle_read_reports one more READ.
  input  logic          head_valid_i,    // The context has a buffer;
  input  logic          head_spare_i,    // it has enough of them for a message ahead of a gap;
  input  logic          credit_ok_i,     // its completion queue has a credit,
  input  logic          credit_spare_i,  // and has some to spare.
  input  reorder_t      reorder_i,

  output accept_decision_t decision_o
);
  accept_class_t c;
  target_pdc_t   e;
  assign c = class_i;
  assign e = entry_i;

  logic [31:0] clear_ahead;
  logic        clears, stored;
  assign clear_ahead = c.clear_psn - e.stored_psn;
  assign clears      = c.may_clear && e.stored && !clear_ahead[31];
  assign stored      = e.stored && !clears;

  // --------------------------------------------------------------------- PSN
  logic [31:0]          expected_after;
  logic [$clog2(PdcWindow):0] run;
  heddle_rud_window u_window (
    .expected_i(e.expected), .marked_i(c.marked), .expected_o(expected_after), .run_o(run)
  );

  logic     reported;  // If it is early.
  rod_gap_t gap_after, gap_closed;
  trim_e    lost;
  heddle_rod_gap u_rod_gap (
    .gap_i(e.gap), .ahead_i(c.ahead[GapW-1:0]), .retx_i(pkt_i.retx), .trim_i(pkt_i.trim), .psn_i(pkt_i.psn[GapW-1:0]),
    .report_o(reported), .gap_o(gap_after), .lost_o(lost), .closed_o(gap_closed)
  );

  // An ordered packet ahead that heddle_rx_reorder keeps. A gap precedes it if packets are missing after the last one that
  // was kept; one that is missing alone is retransmitted alone, else the sender goes back. With congestion control the one
  // PDC would be favored: none is.
  logic        reorders, alone_missing, gap_before;
  logic [31:0] kept_next, missing_from, missing;
  assign kept_next     = reorder_i.next - e.expected;
  assign missing_from  = reorder_i.mine && !kept_next[31] ? reorder_i.next : e.expected;
  assign missing       = pkt_i.psn - missing_from;
  assign reorders      = reorder_i.room && c.early && c.in_window && !e.gap.refused && !ruled_i;
  assign alone_missing = gap_before && missing == 32'd1;
  assign gap_before    = !missing[31] && missing != '0 && (reorder_i.mine || !e.gap.open);

  // A trimmed request of an open PDC, whose answer can be of use.
  logic trim_known;
  assign trim_known = c.trim_named && (c.duplicate || c.expected || c.early || c.jumps);

  // ----------------------------------------------------------------- message
  // Outcome for its message, if the packet is the expected one.
  logic         starts, ignored, broken, withdrawn;
  return_code_e refusal;
  logic         refuses;    // It is one.
  logic         short_of_buffer, short_of_store;
  logic         single;     // RUD, ahead: a message of one packet.
  logic         opens;      // RUD, ahead: it opens a message in the table.
  logic         tabled;     // The message of the table changes with it.
  logic         brief;      // One of these, or alone: the message of the entry stays what it is.
  logic         may_open_here;
  logic         all_there;  // Context, and the buffer and credit that the message would need.
  logic         is_first;   // A first packet, as it has to be.
  logic         may_start;  // It starts its message if they are.
  logic         gives_up;   // Its sender gave the message up, and they are not: there is nothing to wait for.
  assign all_there = c.look_hit && (c.is_rma || head_valid_i) && ((c.is_rma && !c.reports) || credit_ok_i);
  assign is_first  = !c.other_ver && !c.is_no_op && !c.alone && pkt_i.som && (!c.held || c.jumps) && c.length_ok &&
                     (c.is_rma || c.is_send);
  assign may_start = is_first && c.look_hit && !pkt_i.other_gen && (c.is_rma ? c.region_ok : c.job_ok);
  assign gives_up  = is_first && pkt_i.ie && !all_there;
  assign starts          = may_start && all_there;
  assign short_of_buffer = may_start && !pkt_i.ie && !c.is_rma && !head_valid_i;
  assign single    = c.jumps && starts && pkt_i.eom;
  assign may_open_here = looked_i && !c.in_use && !(e.message.state != MessageNone && c.same) &&
                         (c.is_rma || head_spare_i) && ((c.is_rma && !c.reports) || credit_spare_i);
  assign opens     = c.jumps && starts && !pkt_i.eom && may_open_here;
  assign tabled    = (c.in_table || opens) && !brief;

  always_comb begin
    refusal   = ReturnCodeNull;
    ignored   = 1'b0;
    broken    = 1'b0;
    withdrawn = 1'b0;
    if (c.other_ver) begin
      broken = 1'b1;
    end else if (c.is_no_op) begin
      if (c.sized)      refusal = ReturnCodeUnsupportedSize;
      else if (!c.bare) broken  = 1'b1;
    end else if (c.alone) begin
      if (c.discards)                          ignored = 1'b1;
      else if (!c.length_ok)                   broken = 1'b1;
      else if (pkt_i.ie)                       ignored = 1'b1;
      else if (!c.look_hit)                    refusal = c.look_miss;
      else if (pkt_i.other_gen)                refusal = ReturnCodeBadGeneration;
      else if (!c.region_ok)                   refusal = c.region_code;
    end else if (pkt_i.som && c.held && !c.jumps) begin
      broken = 1'b1;
    end else if (pkt_i.som) begin
      if (!c.is_send && !c.is_rma)                        refusal = ReturnCodeUnsupportedOp;
      else if (!c.length_ok)                              broken = 1'b1;
      else if (!c.look_hit)                               refusal = c.look_miss;
      else if (pkt_i.other_gen)                           refusal = ReturnCodeBadGeneration;
      else if (c.is_rma && !c.region_ok)                  refusal = c.region_code;
      else if (!c.is_rma && !c.job_ok)                    refusal = ReturnCodeBadJobId;
    end else if (!c.held) begin
      ignored = c.discards || pkt_i.ie;
      broken  = !ignored;
    end else if (c.stale && !e.message.rma) begin
      if (pkt_i.dc && !pkt_i.ie) refusal = ReturnCodeBadIndex;  // Not delivered.
      else                       withdrawn = 1'b1;
    end else if (c.mismatch || !c.length_ok) begin
      broken = 1'b1;
    end else if (pkt_i.other_gen && !pkt_i.ie) begin
      refusal = ReturnCodeBadGeneration;
    end else if (e.message.rma && e.message.state == MessageOpen && !pkt_i.ie) begin
      // The region, or the context, may be gone since the message began.
      if (!c.look_hit || c.stale || !c.ctx_ok)  refusal = c.look_miss;
      else if (!c.region_ok)                    refusal = c.region_code;
    end
    if (gives_up) begin
      ignored = 1'b1;
      refusal = ReturnCodeNull;
    end
    if (broken) refusal = c.other_ver ? ReturnCodeUncor : ReturnCodeOpViolation;
  end
  assign refuses        = refusal != ReturnCodeNull;
  assign short_of_store = refuses && stored;

  assign brief = (c.alone && !refuses && !broken && !ignored) || single || c.bare;

  // A packet of a READ that heddle_return_tx answers.
  logic serves, no_return, right;  // Right: nothing is wrong with it.
  assign right     = !broken && !ignored && !withdrawn && !refuses;
  assign serves    = c.asks && !pkt_i.ie && right && (starts || c.alone || e.message.state == MessageOpen);
  assign no_return = c.asks && !pkt_i.ie && (!return_room_i || (c.told && !report_room_i));

  // Accepted or not, apart for a packet that starts its message, which is known last. Ahead of a gap, after its eom packet
  // a message has none, and it has one of them.
  logic in_turn, short_of_return, accepts_first, accepts_other, accepts;
  assign in_turn         = c.is_request && !c.settled && !c.trimmed && !c.unlooked && !c.duplicate && !c.early &&
                           !(c.may_open && c.closed);
  assign accepts_first   = !no_return && (c.expected || (c.jumps && !pkt_i.ie && (pkt_i.eom || may_open_here)));
  assign short_of_return = no_return && right && (c.alone || e.message.state == MessageOpen);
  assign accepts_other   = !(may_start && !pkt_i.ie) && !short_of_store && !short_of_return &&
                           (c.expected || (c.jumps && !pkt_i.ie && right &&
                                           (c.alone || (!pkt_i.som && c.held && !c.past_last))));
  assign accepts         = in_turn && (starts ? accepts_first : accepts_other);

  // ----------------------------------------------------------------- outcome
  accept_outcome_e    outcome;
  nack_code_e         code;
  logic [NumStat-1:0] stat;
  always_comb begin
    outcome = c.outcome;
    code    = c.code;
    stat    = c.stat;
    if (c.may_open && c.closed) begin
      outcome = OutcomeStrange;
      code    = NackCodeClosing;
      stat    = '0;
      stat[StatisticRxClosing] = 1'b1;
    end else if (c.settled) begin
      outcome = c.outcome;
    end else if (c.trimmed && !trim_known) begin
      stat[StatisticDropTrimmed] = 1'b1;
    end else if (c.trimmed && !c.duplicate) begin
      if (c.expected || (c.early && reported)) outcome = OutcomeRefuse;
      else if (c.early)                        outcome = OutcomeQuiet;
      else                                     outcome = OutcomeOutside;
      code = pkt_i.trim == TrimLasthop ? NackCodeTrimmedLasthop : NackCodeTrimmed;
      stat[StatisticRxTrimmed] = 1'b1;
    end else if (c.is_clear) begin
      outcome = clears ? OutcomeClear : OutcomeDrop;
    end else if (c.is_query) begin
      outcome = c.duplicate ? OutcomeQuery : OutcomeOutside;
      code    = NackCodePktNotRcvd;
    end else if (c.unlooked && !c.duplicate) begin
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (c.duplicate) begin
      outcome = OutcomeDuplicate;
      stat[StatisticRxDuplicates] = 1'b1;
    end else if (c.early && reorders && c.is_request) begin
      outcome = OutcomeReorder;
      code    = NackCodeRodOoo;  // Or PKT_NOT_RCVD: heddle_accept_answer.
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (c.early) begin
      outcome = reported ? OutcomeRefuse : OutcomeQuiet;
      code    = NackCodeRodOoo;
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (accepts) begin
      outcome = OutcomeAccept;
      stat[StatisticRxRequests]   = 1'b1;
      stat[StatisticRxEcnMarked]  = pkt_i.ce;
      stat[StatisticRxRma]        = c.is_rma;
      stat[StatisticRxRmaRefused] = c.is_rma && refuses;
      stat[StatisticDropSes]      = broken;
    end else if (c.jumps) begin
      // The sender finds the first one by what arrives after it. The second shows that a whole message is missing.
      if (pkt_i.retx || (!e.gap.open && (e.gap.turned || pkt_i.ar || pkt_i.syn || !c.is_request))) outcome = OutcomeRefuse;
      else if (!e.gap.open)                                                                        outcome = OutcomeQuiet;
      code    = NackCodePktNotRcvd;  // The expected one.
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (!c.expected) begin
      outcome = OutcomeOutside;
      code    = NackCodePsnOorWindow;
      stat[StatisticDropPsn] = 1'b1;
    end else if (c.is_close) begin
      // Without a tombstone the PDC stays until the command comes again, and with messages that have no end.
      outcome = c.grave && e.table_open == '0 ? OutcomeClose : OutcomeRefuse;
      code    = NackCodeNoResource;
    end else begin
      outcome = OutcomeRefuse;
      code    = short_of_store ? NackCodeNoGtdDelAvail :
                short_of_buffer ? NackCodeNoPktBuffer : NackCodeNoResource;
      stat[StatisticRxRefused] = 1'b1;
    end
  end

  // Bytes of a RUD message, in any order.
  logic whole_begun, whole_new;
  assign whole_begun = e.message.bytes + 32'(c.part) == e.message.request_length;
  assign whole_new   = 32'(c.part) == pkt_i.request_length;

  // An initiator may leave something out; in the table a message ends with its last byte, whatever is missing of those
  // before it.
  logic pieces, sound, whole, reads;
  assign pieces = e.rud && !brief;
  assign sound  = accepts && !c.bare && right && !pkt_i.ie &&
                  (starts || c.alone || e.message.state != MessageFailed);
  assign whole  = starts || c.alone ? whole_new : whole_begun;
  assign reads  = starts || c.alone ? c.is_read : e.message.read;

  always_comb begin
    decision_o               = '0;
    decision_o.outcome       = outcome;
    decision_o.code          = code;
    decision_o.stat          = stat;
    decision_o.refusal       = refusal;
    decision_o.starts        = starts;
    decision_o.ignored       = ignored;
    decision_o.withdrawn     = withdrawn;
    decision_o.brief         = brief;
    decision_o.tabled        = tabled;
    decision_o.serves        = serves;
    decision_o.clears        = clears;
    decision_o.stored        = stored;
    decision_o.write         = outcome == OutcomeRefuse || outcome == OutcomeQuiet || outcome == OutcomeReorder ||
                               outcome == OutcomeClear || outcome == OutcomeDuplicate || outcome == OutcomeQuery ||
                               outcome == OutcomeClose || outcome == OutcomeForget || outcome == OutcomeJob || accepts;
    // A message of one packet leaves the entry without one, or leaves it alone; a packet that is not accepted leaves it alone.
    decision_o.plain         = !c.fresh && (!accepts ? !c.is_close && c.job == JobNone :
                               !refuses && !ignored && !withdrawn && !tabled && !e.stored &&
                               (c.jumps || e.gap == '0) && (brief || (pkt_i.som && pkt_i.eom && c.expected)));
    decision_o.accepts       = accepts;
    decision_o.idles         = !(brief && (c.jumps || c.bare));
    decision_o.keep          = (accepts && tabled) || ((outcome == OutcomeForget || outcome == OutcomeJob) && c.in_table);
    decision_o.take          = accepts && starts && !c.is_rma;
    decision_o.credit        = accepts && starts && (!c.is_rma || c.reports);
    decision_o.reported      = reported;
    decision_o.gap           = gap_after;
    decision_o.gap_closed    = gap_closed;
    decision_o.lost          = lost;
    decision_o.gap_before    = gap_before;
    decision_o.alone_missing = alone_missing;
    decision_o.missing       = missing_from;
    decision_o.ctx           = starts || c.alone ? ctx_i : e.message.buffer.ctx;
    decision_o.expected      = expected_after;
    decision_o.run           = run;
    decision_o.gaps          = e.ahead != '0 || (c.marked & (c.marked + 1'b1)) != '0;
    decision_o.pieces        = pieces;
    decision_o.sound         = sound;
    decision_o.ends          = accepts && ((!pieces && pkt_i.eom) || (sound && tabled && whole));
    decision_o.may_end       = accepts && pieces && (pkt_i.som || pkt_i.eom ? pkt_i.eom : e.message.last_known);
    decision_o.last          = pkt_i.som || pkt_i.eom ? pkt_i.psn : e.message.last_psn;
    decision_o.succeeds      = sound && (whole || !pieces);
    // An ACK that passes the PSN of a message accepted ahead waits for all writes before it.
    decision_o.hides         = accepts && !c.jumps && e.dc_ahead;
    decision_o.may_hide      = pkt_i.dc && !reads && !(c.jumps && (brief || tabled));
  end

  logic unused_bits;
  assign unused_bits = ^{pkt_i, c, e, kept_next, clear_ahead};
endmodule
