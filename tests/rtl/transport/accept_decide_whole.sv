// SPDX-License-Identifier: Apache-2.0
// Reference: what becomes of one packet at the target, decided in one step, as heddle_accept did before it had
// stages. Combinational; nothing while `valid_i` is low. A rule that changes changes here, too.
//
// Atomic: the PSN advances exactly when all that the packet needs is there.
// Error:  a packet that the semantics refuse is accepted, its answer stored until the initiator has
//         cleared it; a second one is NACKed meanwhile. The rest of its message gets the same answer.
// Quiet:  one NACK per gap, on ROD one more per pass of the sender (heddle_rod_gap); a refusal opens a gap too, so
//         that the packets behind the refused one are not NACKed each.
// Kept:   on ROD, what heddle_rx_reorder can keep after a gap is not accepted, but offered again in its turn. A packet
//         that is missing alone is named by the NACK.
// Told:   a Probe, a Negotiation: answered, and nothing changes (UET 2.9).
// Ended:   a request for a PDCID that was used since reset, and whose PDC ended, is answered CLOSING: it may have
//          been executed. One that was never used is answered INV_DPDCID: nothing of it was.
// RUD:    a packet ahead of a gap is accepted if all it needs is there and it cannot be wrong: one of a WRITE
//         or READ that completes nothing here, one of a message that is open, a message of one packet, or the first of a
//         longer one, which is opened in the table. Every other waits until it is the expected one; so errors are judged
//         in the order of PSNs.
// Trimmed: no CRC covers the header of a trimmed request. It changes no PDC but by the gap that it opens.

`include "heddle_assert.svh"

module accept_decide_whole
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import accept_verdict_pkg::*;
(
  input  port_cfg_t   port_i,
  input  logic        ruled_i,       // Congestion control is on.
  input  logic [15:0] now_i,         // 128 ns.
  input  logic        valid_i,
  input  logic        forget_i,      // With valid_i: no packet; the PDC's initiator is gone.
  input  rx_packet_t  pkt_i,

  input  logic [PdcW-1:0] pdc_i,     // Of the packet: known by SYN, named by dpdcid, or free.
  input  logic        hit_i,         // SYN: the PDC exists.
  input  logic        room_i,        // SYN: there is an index and a way for a new one.
  input  logic        closed_i,      // SYN: its PDC was closed not long ago.
  input  logic        grave_i,       // A tombstone of the packet's PDC has a place.
  input  target_pdc_t entry_i,       // Its entry.
  input  logic        looked_i,      // The table was read for it, no SYN:
  input  logic [TableMessageW-1:0] place_i,  // this place,
  input  target_message_t message_i, // which has this message,
  input  logic        named_i,       // the packet's own by its ID, or one that ends before its PDC.

  input  logic        look_hit_i,    // The packet's name has a receive context,
  input  return_code_e look_miss_i,  // or this is the answer; BAD_INDEX if it has one.
  input  logic [23:0] look_job_i,
  input  logic        look_event_i,  // It reports every RMA operation.
  input  logic        listens_i,     // A receive context was enabled since the reset.
  input  rma_answer_t region_i,      // RMA: may the packet write or read, and where.
  input  logic        return_room_i, // heddle_return_tx takes one more packet to return,
  input  logic        report_room_i, // heddle_read_reports one more READ.
  input  logic        head_valid_i,  // That context has a buffer.
  input  rx_buffer_t  head_i,        // Context and, if it has one, its next buffer.
  input  logic [15:0] head_released_i,
  input  logic        head_spare_i,  // It has enough of them for a message ahead of a gap;
  input  logic [NumRx-1:0]           rx_alive_i,
  input  logic [NumRx-1:0][GenW-1:0] rx_gen_i,
  input  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] rx_counters_i,
  input  logic [NumCq-1:0]           credit_ok_i,
  input  logic [NumCq-1:0]           credit_spare_i,  // the completion queue of credits.
  input  reorder_t    reorder_i,

  output verdict_t    verdict_o
);
  // Accepted packets between two ACKs at most.
  localparam int unsigned AckEvery = 16;
  // A request counts as what follows its IP header, with CRC, and 40 more (UET 3.0).
  localparam int unsigned NominalBytes = PdsRequestBytes + SesStdBytes + 4 + 40;
  logic [31:0] nominal;
  assign nominal = port_i.ip_protocol != '0 ? 32'(EntropyBytes + NominalBytes) : 32'(UdpBytes + NominalBytes);

  // ------------------------------------------------------------ kind of packet
  logic is_request, is_data, is_rud, is_ack, is_nack, is_query, is_close, is_clear, trimmed;
  logic is_probe, is_offer, is_ask;  // Probe, Negotiation; what a target asks for.
  logic is_back;                     // For a PDC of ours,
  assign trimmed    = pkt_i.trim != TrimNone;
  assign is_back    = !pkt_i.syn && pkt_i.dpdcid[PdcRoleBit] == RoleInitiator;
  assign is_data    = is_back && (((is_rud || pkt_i.pds_type == PdsTypeRodReq) &&
                                   (pkt_i.next_hdr != NextHdrRequestStd || trimmed)) ||
                                  is_query || is_probe);  // heddle_return_rx judges it.
  assign is_rud     = pkt_i.pds_type == PdsTypeRudReq;
  assign is_request = (is_rud || pkt_i.pds_type == PdsTypeRodReq) &&
                      (pkt_i.next_hdr == NextHdrRequestStd || trimmed);
  assign is_ack     = (pkt_i.pds_type == PdsTypeAck || pkt_i.pds_type == PdsTypeAckCc) &&
                      !pkt_i.probe;
  assign is_nack    = pkt_i.pds_type == PdsTypeNack;
  always_comb begin
    is_query = 1'b0;
    is_close = 1'b0;
    is_clear = 1'b0;
    is_probe = 1'b0;
    is_offer = 1'b0;
    is_ask   = 1'b0;
    if (pkt_i.pds_type == PdsTypeCp && !pkt_i.syn) begin
      is_probe = pkt_i.next_hdr == CpTypeProbe;
      is_offer = pkt_i.next_hdr == CpTypeNegotiation;
      is_ask   = is_back && (pkt_i.next_hdr == CpTypeClearRequest || pkt_i.next_hdr == CpTypeCloseRequest);
      is_query = pkt_i.next_hdr == CpTypeAckRequest;
      is_close = pkt_i.next_hdr == CpTypeCloseCommand;
      is_clear = pkt_i.next_hdr == CpTypeClearCommand;
    end
  end

  // --------------------------------------------------------------------- PDC
  logic            our_slot, ours, fresh;
  logic [PdcGenW-1:0] gen, next_gen, named_gen;  // The last: by dpdcid.
  logic [31:0]     start;
  target_pdc_t     e;  // The entry, or what it is when the packet opens the PDC; `message` is the packet's, if there is one.
  target_message_t own;  // That of the entry.
  logic            in_use, in_table;
  logic [15:0]     tpdcid, known_tpdcid;

  assign our_slot = pkt_i.dpdcid[15 -: SlotBits] == port_i.slot[SlotBits-1:0];
  assign ours     = our_slot && (is_ack || is_nack || is_ask || pkt_i.dpdcid[PdcRoleBit] == RoleTarget);
  assign start    = pkt_i.psn - 32'(pkt_i.psn_offset);
  assign fresh    = pkt_i.syn && !hit_i && !forget_i;
  assign next_gen  = entry_i.gen + 1'b1;
  assign named_gen = pkt_i.dpdcid[PdcW +: PdcGenW];
  assign gen      = fresh ? next_gen : entry_i.gen;

  // CLEAR_PSN travels with every request and in Clear Commands.
  logic [31:0] clear_psn, clear_ahead;
  logic        clears;
  assign clear_psn   = is_clear ? pkt_i.pds_payload : pkt_i.psn + 32'($signed(pkt_i.offset));
  assign clear_ahead = clear_psn - entry_i.stored_psn;
  assign clears      = ((is_request && !trimmed) || is_clear) && !fresh && entry_i.stored && !clear_ahead[31] &&
                       !forget_i;  // Changed on purpose: this is no packet.

  always_comb begin
    e = entry_i;
    if (clears) e.stored = 1'b0;
    if (fresh) begin
      e           = '0;
      e.open      = 1'b1;
      e.gen       = next_gen;
      e.used      = entry_i.used;
      e.used[next_gen] = 1'b1;
      e.fa        = pkt_i.source_fa;
      e.ipv6      = pkt_i.ipv6;
      e.spdcid    = pkt_i.spdcid;
      e.start_psn = start;
      e.expected  = start;
      e.rud       = is_rud;
      e.message.state     = MessageNone;
    end
    own = e.message;
    if (in_table) e.message = message_i;
  end
  // The message is one of the table; if not, the packet may open it there, over a gap.
  assign in_use   = entry_i.table_open[place_i] && !fresh;
  assign in_table = named_i && in_use;
  assign tpdcid       = {port_i.slot[SlotBits-1:0], RoleTarget, gen, pdc_i};
  assign known_tpdcid = fresh ? '0 : tpdcid;  // Of an answer that does not open the PDC.

  // --------------------------------------------------------------------- PSN
  logic [31:0] ahead, ack_offset;
  logic        expected, duplicate, early, jumps, in_window, came;
  logic [31:0]          expected_after;
  logic [PdcWindow-1:0] ahead_after;
  logic [PdcWindow-1:0] marked;
  logic [$clog2(PdcWindow):0] run;
  assign in_window = ahead < 32'(PdcWindow);
  assign came      = in_window && e.ahead[ahead[$clog2(PdcWindow)-1:0]];
  assign marked    = e.ahead | (PdcWindow'(in_window) << ahead[$clog2(PdcWindow)-1:0]);
  heddle_rud_window u_window (
    .expected_i(e.expected), .marked_i(marked), .expected_o(expected_after), .run_o(run)
  );
  assign ahead_after = marked >> run;
  assign ahead      = pkt_i.psn - e.expected;
  assign expected   = ahead == '0;
  assign duplicate  = came || ahead >= 32'hffff_8000;  // As far as ack_psn_offset reaches.
  assign early      = !e.rud && !expected && ahead < 32'(RodWindow);
  assign jumps      = e.rud && !expected && in_window;    // Over a gap.

  logic     reported;  // If it is early.
  rod_gap_t gap_after, gap_closed;
  trim_e    lost;         // With an accepted packet: the next one, which was trimmed, is not on its way.
  heddle_rod_gap u_rod_gap (
    .gap_i(e.gap), .ahead_i(ahead[GapW-1:0]), .retx_i(pkt_i.retx), .trim_i(pkt_i.trim), .psn_i(pkt_i.psn[GapW-1:0]),
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
  assign reorders      = reorder_i.room && early && in_window && !e.gap.refused && !ruled_i;
  assign alone_missing = gap_before && missing == 32'd1;
  assign gap_before    = !missing[31] && missing != '0 && (reorder_i.mine || !e.gap.open);

  // A trimmed request of an open PDC, whose answer can be of use.
  logic trim_known;
  assign trim_known = is_request && is_rud == e.rud && listens_i &&
                      (duplicate || expected || early || jumps) &&
                      (pkt_i.syn ? hit_i && start == e.start_psn
                                 : ours && entry_i.open && named_gen == entry_i.gen && pkt_i.ipv6 == e.ipv6 &&
                                   pkt_i.source_fa == e.fa && pkt_i.spdcid == e.spdcid);

  // What answers without news say, and how they name a PSN that they acknowledge.
  response_t   addressed, standing, standing_after, about;
  logic [31:0] cack, cack_after, offset_after;
  logic to_error, to_error_after;
  heddle_cack u_cack (.entry_i(e), .cack_o(cack), .to_error_o(to_error));
  heddle_standing u_standing (
    .entry_i(e), .rsp_i(addressed), .syn_i(pkt_i.syn), .ruled_i, .cack_i(cack), .to_error_i(to_error), .rsp_o(standing)
  );
  assign ack_offset = pkt_i.psn - cack;
  always_comb begin
    about = standing;
    if (standing.req == AckReqNone && ack_offset[31]) about.ack_offset = ack_offset[15:0];
  end

  // ----------------------------------------------------------------- message
  // What the packet is to its message, if it is the expected one.
  logic        held, starts, ignored, broken, withdrawn;
  logic        stale;      // The held buffer's context was disabled: it never completes.
  logic [31:0] base, reach;
  logic [13:0] part;       // Bytes that the packet carries or asks for.
  logic        fits, length_ok;
  return_code_e refusal, region_code;
  logic        is_send, is_write, is_read, is_rma, is_no_op, asks, reports, told;
  logic        other_ver;  // Of the semantic sublayer.
  logic        bare;       // A NO_OP as it has to be: nothing depends on it but its PSN.
  logic        short_of_buffer, short_of_credit, short_of_store, short_of_return;
  logic        same;       // The packet names the message of the entry.
  logic        discards;   // It is of a message that has ended.
  logic        alone;      // RUD: a packet of a WRITE or READ that only its initiator tracks.
  logic        single;     // RUD, ahead: a message of one packet.
  logic        opens;      // RUD, ahead: it opens a message in the table.
  logic        tabled;     // The message of the table changes with it.
  logic        brief;      // One of these: the message of the entry stays what it is.
  logic        takes_ahead;
  rx_counters_t here;      // Counters of the packet's context.
  logic        counted;    // The write counts when all its packets came.

  logic all_there;  // Context, and the buffer and credit that the message would need.
  assign all_there = look_hit_i && (is_rma || head_valid_i) &&
                     ((is_rma && !reports) || credit_ok_i[head_i.cq]);
  assign held  = e.message.state == MessageOpen || e.message.state == MessageFailed;
  assign stale = e.message.gone || !rx_alive_i[e.message.buffer.ctx] || rx_gen_i[e.message.buffer.ctx] != e.message.buffer.gen;
  assign base  = pkt_i.som ? '0 : (e.rud ? pkt_i.message_offset : e.message.bytes);
  assign part  = is_read ? pkt_i.read_bytes : pkt_i.payload_bytes;
  assign reach = base + 32'(part);
  assign fits  = reach >= base && reach <= pkt_i.request_length;
  // Packets of a message that come in any order may not leave a hole: the PSN says where each belongs.
  logic        in_place, part_whole;
  logic [1:0]  part_log2;     // Of a whole piece, in KiB.
  logic [31:0] piece_offset;
  assign part_log2    = part[13] ? 2'd3 : part[12] ? 2'd2 : part[11] ? 2'd1 : 2'd0;
  assign part_whole   = part == (14'd1024 << part_log2);
  assign piece_offset = (pkt_i.psn - e.message.first_psn) << (5'd10 + 5'(e.message.piece_log2));
  assign in_place     = pkt_i.som ? pkt_i.eom || part_whole
                                  : pkt_i.message_offset == piece_offset &&
                                    (pkt_i.eom || (part_whole && part_log2 == e.message.piece_log2));
  // A packet of a failed message says nothing about lengths.
  assign length_ok = pkt_i.ie || (!pkt_i.som && e.message.state == MessageFailed && !alone) ||
                     (fits && !pkt_i.contradicts && pkt_i.eom == (reach == pkt_i.request_length) &&
                      (alone || (e.rud ? in_place : pkt_i.som || pkt_i.message_offset == e.message.bytes)));

  // A deferrable send is executed as a send: its offset is two tokens (UET 4.14).
  assign is_send     = pkt_i.opcode == SesOpcodeSend || pkt_i.opcode == SesOpcodeDeferrableSend;
  assign is_no_op    = pkt_i.opcode == SesOpcodeNoOp;
  assign other_ver   = pkt_i.ses_ver != '0;
  assign bare        = is_no_op && !other_ver && pkt_i.som && pkt_i.eom && pkt_i.request_length == '0 &&
                       pkt_i.payload_bytes == '0;
  // Another function's region is none of this context's.
  assign is_write    = pkt_i.opcode == SesOpcodeWrite;
  assign is_read     = pkt_i.opcode == SesOpcodeRead;
  assign is_rma      = is_write || is_read;
  assign asks        = is_read && pkt_i.read_bytes != '0;
  assign reports     = (is_write && pkt_i.hd) || (is_rma && look_event_i);
  assign told        = is_read && (reports || here.remote_read != '0);
  assign region_code = region_i.owner != head_i.owner ? ReturnCodeBadMkey : region_i.code;

  assign same     = pkt_i.message_id == e.message.message_id;
  assign discards = e.message.state == MessageDiscard && (!e.rud || (same && !pkt_i.som));
  // A write of several packets that counts is one message.
  assign here     = rx_counters_t'(rx_counters_i[head_i.ctx]);
  assign counted  = (here.remote_write != '0 || region_i.counter != '0) &&
                    !(pkt_i.som && pkt_i.eom);
  assign alone    = e.rud && (is_write ? !reports && !counted : is_read && !told) &&
                    !(held && (same || !jumps));
  assign single   = jumps && starts && pkt_i.eom;
  assign opens    = jumps && starts && !pkt_i.eom && looked_i && !in_use &&
                    !(e.message.state != MessageNone && same) && (is_rma || head_spare_i) &&
                    ((is_rma && !reports) || credit_spare_i[head_i.cq]);
  assign tabled   = (in_table || opens) && !brief;

  always_comb begin
    refusal         = ReturnCodeNull;
    starts          = 1'b0;
    ignored         = 1'b0;
    broken          = 1'b0;
    withdrawn       = 1'b0;
    short_of_buffer = 1'b0;
    short_of_credit = 1'b0;
    if (other_ver) begin
      broken = 1'b1;
    end else if (is_no_op) begin
      if (pkt_i.request_length != '0 || pkt_i.payload_bytes != '0) refusal = ReturnCodeUnsupportedSize;
      else if (!bare)                                              broken  = 1'b1;
    end else if (alone) begin
      if (discards)                          ignored = 1'b1;
      else if (!length_ok)                   broken = 1'b1;
      else if (pkt_i.ie)                     ignored = 1'b1;
      else if (!look_hit_i)                  refusal = look_miss_i;
      else if (pkt_i.other_gen)              refusal = ReturnCodeBadGeneration;
      else if (region_code != ReturnCodeOk)  refusal = region_code;
    end else if (pkt_i.som && held && !jumps) begin
      broken = 1'b1;
    end else if (pkt_i.som) begin
      if (!is_send && !is_rma)                        refusal = ReturnCodeUnsupportedOp;
      else if (!length_ok)                            broken = 1'b1;
      // Its sender gave the message up: there is nothing to wait for.
      else if (pkt_i.ie && !all_there)                ignored = 1'b1;
      else if (!look_hit_i)                           refusal = look_miss_i;
      else if (pkt_i.other_gen)                       refusal = ReturnCodeBadGeneration;
      else if (is_rma && region_code != ReturnCodeOk) refusal = region_code;
      else if (is_rma && reports && !credit_ok_i[head_i.cq]) short_of_credit = 1'b1;
      else if (is_rma)                                starts = 1'b1;
      else if (look_job_i != pkt_i.job_id)            refusal = ReturnCodeBadJobId;
      else if (!head_valid_i)                         short_of_buffer = 1'b1;
      else if (!credit_ok_i[head_i.cq])               short_of_credit = 1'b1;
      else                                            starts = 1'b1;
    end else if (!held) begin
      ignored = discards || pkt_i.ie;
      broken  = !ignored;
    end else if (stale && !e.message.rma) begin
      if (pkt_i.dc && !pkt_i.ie) refusal = ReturnCodeBadIndex;  // Not delivered.
      else                       withdrawn = 1'b1;
    end else if (!same || pkt_i.job_id != e.message.job_id ||
                 !(e.message.read ? is_read : e.message.rma ? is_write : is_send) ||
                 (e.message.rma && (pkt_i.match_bits != e.message.match_bits ||
                            pkt_i.buffer_offset != e.message.buffer.iova)) ||
                 pkt_i.request_length != e.message.request_length || !length_ok) begin
      broken = 1'b1;
    end else if (pkt_i.other_gen && !pkt_i.ie) begin
      refusal = ReturnCodeBadGeneration;
    end else if (e.message.rma && e.message.state == MessageOpen && !pkt_i.ie) begin
      // The region, or the context, may be gone since the message began.
      if (!look_hit_i || stale || head_i.ctx != e.message.buffer.ctx) refusal = look_miss_i;
      else if (region_code != ReturnCodeOk)                   refusal = region_code;
    end
    if (broken) refusal = other_ver ? ReturnCodeUncor : ReturnCodeOpViolation;
  end
  assign short_of_store = refusal != ReturnCodeNull && e.stored;

  // An old SYN, from before the PDC was acknowledged: the table was not read for it.
  logic unlooked;
  assign unlooked = is_request && !looked_i && e.table_open != '0 && !(held && same);

  // Behind its eom packet a message has none, and it has one of them.
  logic [31:0] to_last;
  assign to_last = e.message.last_psn - pkt_i.psn;
  always_comb begin
    takes_ahead = is_request && !pkt_i.ie && !withdrawn && !broken && !ignored &&
                  refusal == ReturnCodeNull && !short_of_return;
    if (!alone && pkt_i.som) takes_ahead = takes_ahead && (single || opens);
    else if (!alone) begin
      takes_ahead = takes_ahead && held && !(e.message.last_known && (pkt_i.eom || to_last[31]));
    end
  end
  assign brief = (alone && refusal == ReturnCodeNull && !broken && !ignored) || single || bare;

  // A packet of a READ that goes on to heddle_return_tx.
  logic serves;
  assign serves = asks && !pkt_i.ie && !broken && !ignored && !withdrawn && refusal == ReturnCodeNull &&
                  (starts || alone || e.message.state == MessageOpen);
  assign short_of_return = serves && (!return_room_i || (told && !report_room_i));

  // ----------------------------------------------------------------- outcome
  accept_outcome_e outcome;
  nack_code_e  code;
  logic [NumStat-1:0] stat;
  always_comb begin
    outcome = OutcomeDrop;
    code    = NackCodeInvDpdcid;
    stat    = '0;
    if (!valid_i) begin
      outcome = OutcomeDrop;
    end else if (forget_i) begin
      outcome = OutcomeForget;
    end else if (is_ack || is_nack || is_ask) begin
      if (ours) outcome = OutcomeForward;
      else      stat[StatisticDropPdcid] = 1'b1;
    end else if (is_data) begin
      outcome = OutcomeDrop;
    end else if (trimmed && !trim_known) begin
      stat[StatisticDropTrimmed] = 1'b1;
    end else if (trimmed && !duplicate) begin
      if (expected || (early && reported)) outcome = OutcomeRefuse;
      else if (early)                      outcome = OutcomeQuiet;
      else if (jumps)                      outcome = OutcomeOutside;
      code = pkt_i.trim == TrimLasthop ? NackCodeTrimmedLasthop : NackCodeTrimmed;
      stat[StatisticRxTrimmed] = 1'b1;
    end else if (!is_request && !is_query && !is_close && !is_clear && !is_probe && !is_offer) begin
      stat[StatisticDropPdsType] = 1'b1;
    end else if (!pkt_i.syn && !ours) begin
      // Another function's or an initiator's, whose PDC must not end by an answer of ours.
      stat[StatisticDropPdcid] = 1'b1;
    end else if (!pkt_i.syn && (!entry_i.open ||
                                named_gen != entry_i.gen)) begin
      // A Clear Command is not acknowledged, so its PSN means nothing to its sender.
      outcome = is_clear ? OutcomeDrop : OutcomeStrange;
      if (!is_clear && entry_i.used[named_gen]) begin
        code = NackCodeClosing;
        stat[StatisticRxClosing] = 1'b1;
      end else begin
        stat[StatisticDropPdcid] = 1'b1;
      end
    end else if (!pkt_i.syn && (pkt_i.ipv6 != e.ipv6 || pkt_i.source_fa != e.fa ||
                                pkt_i.spdcid != e.spdcid)) begin
      outcome = OutcomeStrange;
      code    = NackCodePdcHdrMismatch;
      stat[StatisticDropPdcid] = 1'b1;
    end else if (pkt_i.syn && hit_i && start != e.start_psn) begin
      outcome = OutcomeStrange;
      code    = NackCodeInvalidSyn;
      stat[StatisticDropPdcid] = 1'b1;
    end else if (is_request && is_rud != e.rud) begin
      outcome = OutcomeStrange;
      code    = NackCodePdcModeMismatch;
      stat[StatisticDropPdsType] = 1'b1;
    end else if (is_request && !listens_i) begin
      stat[StatisticRxRefused] = 1'b1;
    end else if (fresh && closed_i) begin
      outcome = OutcomeStrange;
      code    = NackCodeClosing;
      stat[StatisticRxClosing] = 1'b1;
    end else if (fresh && !room_i) begin
      outcome = OutcomeStrange;
      code    = NackCodeNoPdcAvail;
      stat[StatisticRxRefused] = 1'b1;
    end else if (is_clear) begin
      outcome = clears ? OutcomeClear : OutcomeDrop;
    end else if (is_probe || is_offer) begin
      outcome = OutcomeTell;
    end else if (is_query) begin
      outcome = duplicate ? OutcomeQuery : OutcomeOutside;
      code    = NackCodePktNotRcvd;
    end else if (unlooked && !duplicate) begin
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (duplicate) begin
      outcome = OutcomeDuplicate;
      stat[StatisticRxDuplicates] = 1'b1;
    end else if (early && reorders && is_request) begin
      outcome = OutcomeReorder;
      code    = alone_missing ? NackCodePktNotRcvd : NackCodeRodOoo;
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (early) begin
      outcome = reported ? OutcomeRefuse : OutcomeQuiet;
      code    = NackCodeRodOoo;
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (jumps && !takes_ahead) begin
      // The sender finds the first one by what arrives after it. The second shows that a whole message is missing.
      if (pkt_i.retx || (!e.gap.open && (e.gap.turned || pkt_i.ar || pkt_i.syn || !is_request))) outcome = OutcomeRefuse;
      else if (!e.gap.open)                                                                      outcome = OutcomeQuiet;
      code    = NackCodePktNotRcvd;  // The expected one.
      stat[StatisticRxOutOfOrder] = 1'b1;
    end else if (!expected && !jumps) begin
      outcome = OutcomeOutside;
      code    = NackCodePsnOorWindow;
      stat[StatisticDropPsn] = 1'b1;
    end else if (is_close) begin
      // Without a tombstone the PDC stays until the command comes again, and with messages that have no end.
      outcome = grave_i && e.table_open == '0 ? OutcomeClose : OutcomeRefuse;
      code    = NackCodeNoResource;
    end else if (short_of_buffer || short_of_credit || short_of_store || short_of_return) begin
      outcome = OutcomeRefuse;
      code    = short_of_store ? NackCodeNoGtdDelAvail :
                short_of_buffer ? NackCodeNoPktBuffer : NackCodeNoResource;
      stat[StatisticRxRefused] = 1'b1;
    end else begin
      outcome = OutcomeAccept;
      stat[StatisticRxRequests]   = 1'b1;
      stat[StatisticRxEcnMarked]  = pkt_i.ce;
      stat[StatisticRxRma]        = is_rma;
      stat[StatisticRxRmaRefused] = is_rma && refusal != ReturnCodeNull;
      stat[StatisticDropSes]      = broken;
    end
  end

  // --------------------------------------------- message of an accepted packet
  target_pdc_t m;          // The message after the packet.
  logic        ends;       // It completes here.
  logic        returned;   // Its credit goes back without a completion.
  logic        tells;      // It is a READ whose end heddle_read_reports tells.
  logic        held_credit;
  logic        failed;
  logic [31:0] room;       // Of the buffer, from `base` on.
  logic [13:0] bytes;      // To place.
  logic [31:0] limit;      // Bytes that can have been placed.
  logic        success;    // Its last packet, and all went well.
  logic        hides;      // The answer waits until its writes are visible.
  logic        over;       // It holds nothing any more.
  logic [31:0] last;       // PSN of its eom packet, if it has come.
  logic [31:0] beyond;     // PSNs accepted behind that.
  logic [31:0] dc_younger, dc_passed;  // From this packet to `dc_last`; from there to the last PSN accepted.
  assign dc_younger = e.dc_last - pkt_i.psn;
  logic        ended;      // All its packets came.
  rx_counters_t counters;  // Of its context.
  count_t      count;
  always_comb begin
    m        = e;
    last     = pkt_i.psn;
    beyond   = '0;
    dc_passed = '0;
    ended    = 1'b0;
    over     = 1'b0;
    success  = 1'b0;
    hides    = 1'b0;
    ends     = 1'b0;
    returned = 1'b0;
    failed   = e.message.state == MessageFailed;
    bytes    = '0;
    room     = '0;
    if (outcome == OutcomeClose || outcome == OutcomeForget) begin
      over    = held;
      failed  = 1'b1;
      m.message.state = MessageNone;
    end else if (outcome == OutcomeAccept) begin
      m.received    = e.received + 32'(pkt_i.payload_bytes) + nominal;
      m.received_at = now_i;
      m.expected = expected_after;
      m.ahead    = ahead_after;
      ended      = pkt_i.eom;
      if (e.rud && !brief) begin
        if (pkt_i.som || pkt_i.eom) begin
          m.message.last_known = pkt_i.eom;
          m.message.last_psn   = pkt_i.psn;
        end
        last   = m.message.last_psn;
        beyond = m.expected - m.message.last_psn - 32'd1;
        ended  = m.message.last_known && !beyond[31];
        if (ended) m.message.last_known = 1'b0;
      end
      if (starts || alone) begin
        m.message.state          = MessageOpen;
        m.message.rma            = is_rma;
        m.message.read           = is_read;
        m.message.credit         = !is_rma || reports;
        m.message.gone           = 1'b0;
        m.message.buffer         = head_i;
        if (is_rma) begin
          m.message.buffer.iova       = pkt_i.buffer_offset;
          m.message.buffer.position   = '0;
          m.message.buffer.length     = pkt_i.request_length;
          m.message.buffer.op_context = '0;
        end
        m.message.queue_head     = head_released_i - (is_rma ? 16'd1 : 16'd0);
        m.message.request_length = pkt_i.request_length;
        m.message.message_id     = pkt_i.message_id;
        m.message.job_id         = pkt_i.job_id;
        m.message.initiator      = pkt_i.initiator;
        m.message.match_bits     = pkt_i.match_bits;
        m.message.hd             = pkt_i.hd && !is_read;
        m.message.header_data    = m.message.hd ? pkt_i.header_data : '0;
        m.message.bytes          = '0;
        m.message.first_psn      = pkt_i.psn;
        m.message.piece_log2     = part_log2;
        failed           = 1'b0;
      end
      if (bare) begin
        m.message.state = e.message.state;
      end else if (withdrawn || ignored || refusal != ReturnCodeNull) begin
        over     = held;
        failed   = 1'b1;
        m.message.state  = ignored && e.message.state == MessageNone && !pkt_i.som && !alone ? MessageNone : MessageDiscard;
        if (!ignored || pkt_i.som || (e.rud && !discards)) m.message.code = refusal;
        if (e.rud) m.message.message_id = pkt_i.message_id;
        if (refusal != ReturnCodeNull) begin
          m.stored         = 1'b1;
          m.stored_psn     = pkt_i.psn;
          m.stored_code    = refusal;
          m.stored_message = pkt_i.message_id;
          m.stored_job     = pkt_i.job_id;
        end
      end else begin
        failed  = failed || pkt_i.ie;
        over    = ended;
        if (failed) begin
          m.message.state = MessageFailed;
        end else begin
          room = m.message.buffer.length > base ? m.message.buffer.length - base : '0;
          bytes = room < 32'(pkt_i.payload_bytes) ? room[13:0] : pkt_i.payload_bytes;
          m.message.bytes = e.rud && !brief ? m.message.bytes + 32'(part) : reach;
          // In the table it ends with its last byte, whatever is missing of those before it.
          if (tabled && !failed && m.message.bytes == m.message.request_length) ended = 1'b1;
          over    = ended;
          // An initiator may have left something out.
          failed  = e.rud && !brief && ended && m.message.bytes != m.message.request_length;
        end
        success = ended && !failed;
        hides   = success && pkt_i.dc && !m.message.read;
      end
      if (ended && !bare) m.message.state = MessageNone;
      // An ACK that passes the PSN of one accepted ahead waits for all writes before it.
      if (jumps && (brief || tabled)) begin
        hides = 1'b0;
        if (pkt_i.dc && pkt_i.eom && !m.message.read) begin
          m.dc_ahead = 1'b1;
          if (!e.dc_ahead || dc_younger[31]) m.dc_last = pkt_i.psn;
        end
      end else if (!jumps && e.dc_ahead) begin
        hides      = 1'b1;
        last       = m.expected - 32'd1;
        dc_passed  = last - e.dc_last;
        m.dc_ahead = dc_passed[31];
      end
      if (hides) begin
        m.hidden      = 1'b1;
        m.hidden_base = e.hidden ? e.hidden_base : (e.dc_ahead ? pkt_i.psn : last) - 32'd1;
        m.hidden_last = last;
      end
      if (serves) m.returns = 1'b1;
    end
    counters = rx_counters_t'(rx_counters_i[m.message.buffer.ctx]);
    tells    = m.message.read && success && serves && (m.message.credit || counters.remote_read != '0);

    // A failed RMA operation is the initiator's business alone.
    held_credit = m.message.credit;
    ends     = over && m.message.credit && !tells && !withdrawn &&
               (m.message.rma ? success : !stale || (starts && outcome == OutcomeAccept));
    returned = over && m.message.credit && !tells && !ends;
    if (over) m.message.credit = 1'b0;
    limit = failed ? m.message.bytes : m.message.request_length;

    // A receive counts when it completes, a peer's operation when it succeeds.
    count    = '0;
    if (m.message.read) begin
      if (success && !serves) count.own = counters.remote_read;
    end else if (m.message.rma && success) begin
      count.own    = counters.remote_write;
      count.region = region_i.counter;
    end else if (!m.message.rma && ends) begin
      count.own    = counters.recv;
    end
  end

  heddle_cack u_cack_after (.entry_i(m), .cack_o(cack_after), .to_error_o(to_error_after));
  heddle_standing u_standing_after (
    .entry_i(m), .rsp_i(addressed), .syn_i(pkt_i.syn), .ruled_i, .cack_i(cack_after), .to_error_i(to_error_after),
    .rsp_o(standing_after)
  );
  assign offset_after = pkt_i.psn - cack_after;

  logic        takes;   // The packet is accepted as its initiator means it.
  assign takes = bare || !(withdrawn || ignored || failed || refusal != ReturnCodeNull);
  logic        is_deferrable;
  assign is_deferrable = pkt_i.opcode == SesOpcodeDeferrableSend;

  logic [31:0] placed;  // By the message.
  assign placed = limit < m.message.buffer.length ? limit : m.message.buffer.length;

  logic urgent;  // The answer goes at once.
  assign urgent = !hides && (pkt_i.ar || pkt_i.syn || pkt_i.retx || pkt_i.ce || clears ||
                             refusal != ReturnCodeNull || (e.ahead | m.ahead) != '0 ||
                             e.unacked == 4'(AckEvery - 1));

  // ----------------------------------------------------------------- verdict
  always_comb begin
    addressed            = '0;
    addressed.ipv6       = pkt_i.ipv6;
    addressed.fa         = pkt_i.source_fa;
    addressed.mac        = pkt_i.source_mac;
    addressed.entropy    = pkt_i.source_port;
    addressed.dscp       = trimmed ? e.dscp : pkt_i.dscp;
    addressed.m          = pkt_i.ce;
    addressed.retx       = pkt_i.retx;
    addressed.spdcid     = tpdcid;
    addressed.dpdcid     = pkt_i.spdcid;
    addressed.nack_psn   = outcome == OutcomeRefuse && jumps ? e.expected :
                           outcome == OutcomeReorder && alone_missing ? missing_from : pkt_i.psn;
    addressed.code       = 8'(code);
    addressed.message_id = is_query ? pkt_i.pds_payload[15:0] : pkt_i.message_id;
  end

  verdict_t v;
  always_comb begin
    v = '0;
    if (valid_i) begin
      v.stat           = stat;
      v.rsp            = addressed;
      v.entry          = e;
      v.entry.message  = own;
      v.message        = m.message;

      // Whatever the packet carries leaves the payload queue through a record.
      v.place          = pkt_i.payload_bytes != '0 && !forget_i;
      v.record.stream  = forget_i ? '0 : pkt_i.payload_bytes;
      v.record.tpdc    = pdc_i;

      v.heard          = outcome != OutcomeDrop && outcome != OutcomeForward && outcome != OutcomeStrange;

      unique case (outcome)
        OutcomeForward: begin
          v.forward         = 1'b1;
        end
        OutcomeStrange: begin
          v.respond         = 1'b1;
          v.rsp.kind        = ResponseNack;
          v.rsp.spdcid      = '0;
          v.full            = code == NackCodeNoPdcAvail;
        end
        OutcomeOutside: begin
          v.respond         = 1'b1;
          v.rsp.kind        = ResponseNack;
          v.rsp.spdcid      = known_tpdcid;
        end
        OutcomeRefuse: begin
          v.respond         = 1'b1;
          v.rsp.kind        = ResponseNack;
          v.write           = 1'b1;
          v.create          = fresh;
          v.entry.gap       = gap_after;
          if (!early) begin
            v.entry.gap         = '0;
            v.entry.gap.open    = 1'b1;
            v.entry.gap.refused = !trimmed;
          end
          if (code == NackCodeRodOoo) v.rsp.cack = e.expected;
          v.reap            = is_close && expected && e.table_open != '0;
        end
        OutcomeQuiet: begin
          v.write           = 1'b1;
          v.entry.gap       = gap_after;
          if (jumps) begin
            v.entry.gap        = e.gap;
            v.entry.gap.turned = 1'b1;
          end
        end
        OutcomeReorder: begin
          v.respond         = gap_before || (e.gap.open && reported);
          v.rsp.kind        = ResponseNack;
          if (!alone_missing) v.rsp.cack = e.expected;
          v.write           = 1'b1;
          v.entry.gap       = gap_after;
          v.place           = 1'b0;
          v.reorder         = 1'b1;
        end
        OutcomeClear: begin
          // What was accepted behind the error counts now.
          v.respond         = cack != entry_i.stored_psn;
          v.rsp             = standing;
          v.write           = 1'b1;
          v.entry.unacked   = '0;
        end
        OutcomeDuplicate, OutcomeQuery: begin
          v.respond         = 1'b1;
          v.rsp             = about;
          if (is_close) v.rsp.kind = ResponseNone;
          v.write           = 1'b1;
          v.entry.unacked   = '0;
        end
        OutcomeTell: begin
          v.respond         = 1'b1;
          v.rsp.kind        = is_probe ? ResponseNone : ResponseOffer;
          v.rsp.probe       = is_probe;
          v.rsp.rod         = !e.rud;
          v.rsp.cack        = cack;
          v.rsp.ack_offset  = pkt_i.offset;
        end
        OutcomeAccept: begin
          v.respond         = urgent;
          v.rsp             = standing_after;
          // A refused packet is not named before its error may be told, nor one of a message whose
          // data has to be visible.
          if (standing_after.req == AckReqNone && refusal == ReturnCodeNull &&
              !(jumps && pkt_i.dc)) begin
            v.rsp.ack_offset = offset_after[15:0];
          end
          if (ignored && discards && !pkt_i.som && e.message.code != ReturnCodeNull &&
              standing_after.req == AckReqNone) begin
            v.rsp.response        = SesResponseResponse;
            v.rsp.return_code     = e.message.code;
            v.rsp.job_id          = pkt_i.job_id;
          end else if (takes && standing_after.req == AckReqNone) begin
            v.rsp.return_code     = ReturnCodeOk;
            v.rsp.job_id          = pkt_i.job_id;
            v.rsp.modified_length = bare ? '0 : placed;
            // What is cut says how short, but for a deferrable send, which that would put off.
            if (!bare && placed != m.message.request_length) begin
              if (is_deferrable) v.rsp.modified_length = '0;
              v.rsp.response    = is_deferrable ? SesResponseDefaultResponse : SesResponseResponse;
              v.rsp.return_code = is_deferrable ? ReturnCodeNull : ReturnCodeOk;
            end
          end
          v.write           = 1'b1;
          v.create          = fresh;
          v.entry           = m;
          if (brief) begin
            v.entry          = e;
            v.entry.expected = m.expected;
            v.entry.ahead    = m.ahead;
            v.entry.returns  = m.returns;
            v.entry.received    = m.received;
            v.entry.received_at = m.received_at;
            v.entry.hidden      = m.hidden;
            v.entry.hidden_base = m.hidden_base;
            v.entry.hidden_last = m.hidden_last;
            v.entry.dc_ahead    = m.dc_ahead;
            v.entry.dc_last     = m.dc_last;
            v.entry.message     = own;
            if (!jumps && !bare) v.entry.message.state = MessageNone;
          end
          if (tabled) begin
            v.entry.message             = own;
            v.entry.table_open[place_i] = m.message.state != MessageNone;
            v.keep                      = 1'b1;
          end
          v.entry.mac       = pkt_i.source_mac;
          v.entry.entropy   = pkt_i.source_port;
          v.entry.dscp      = pkt_i.dscp;
          v.entry.gap       = jumps ? e.gap : lost != TrimNone ? '0 : gap_closed;
          v.entry.unacked   = urgent || hides ? '0 : e.unacked + 1'b1;
          // What is accepted is acknowledged later then, unless that has to be told for certain.
          if (lost != TrimNone && !e.rud && standing_after.req == AckReqNone && refusal == ReturnCodeNull) begin
            v.respond         = 1'b1;
            v.rsp             = addressed;
            v.rsp.kind        = ResponseNack;
            v.rsp.retx        = 1'b1;
            v.entry.gap       = gap_closed;
            v.rsp.nack_psn    = pkt_i.psn + 32'd1;
            v.rsp.code        = 8'(lost == TrimLasthop ? NackCodeTrimmedLasthop : NackCodeTrimmed);
            if (!hides) v.entry.unacked = e.unacked == 4'(AckEvery - 1) ? e.unacked : e.unacked + 1'b1;
          end
          v.take            = starts && !is_rma;
          v.credit          = starts && (!is_rma || reports);
          v.hand            = serves;
        end
        OutcomeClose: begin
          v.respond         = 1'b1;
          v.rsp.kind        = ResponseNone;
          v.rsp.cc          = e.rud || ruled_i;
          v.rsp.cack        = pkt_i.psn;
          v.write           = 1'b1;
          v.close           = 1'b1;
          v.bury            = 1'b1;
          v.hand            = e.returns;
          v.entry           = '0;
          v.entry.gen       = e.gen;
          v.entry.used      = e.used;
        end
        OutcomeForget: begin
          v.write           = 1'b1;
          if (in_table) begin
            v.entry.table_open[place_i] = 1'b0;
            v.keep          = 1'b1;
          end else begin
            v.hand          = e.returns;
            v.close         = 1'b1;
            v.entry         = '0;
            v.entry.gen     = e.gen;
            v.entry.used    = e.used;
          end
        end
        default: ;
      endcase

      v.stat[StatisticRxPdcs] = v.create;
      if (outcome == OutcomeAccept || outcome == OutcomeClose || outcome == OutcomeForget) begin
        v.place           = v.place || ends || returned || hides || v.hand || count != '0;
        v.record.job      = v.hand;
        v.record.bytes    = bytes;
        v.record.iova     = m.message.rma ? region_i.iova : m.message.buffer.iova + 64'(base);
        v.record.first    = starts && !brief;
        v.record.alone    = brief;
        v.record.tabled   = tabled || (forget_i && in_table);
        v.record.place    = place_i;
        v.record.complete = ends || returned || count != '0;
        v.record.visible  = hides;
        v.record.psn      = last;

        v.record.ev.write  = ends;
        v.record.ev.credit = ends || returned;
        v.record.ev.owner  = m.message.buffer.owner;
        v.record.ev.cq     = m.message.buffer.cq;
        v.record.ev.cq_gen = m.message.buffer.cq_gen;
        v.record.ev.count  = count;
        v.stat[StatisticRxMessages] = ends || success;
      end

      v.record.ev.entry.kind           = m.message.rma ? CompletionKindTarget : CompletionKindRx;
      v.record.ev.entry.opcode         = m.message.read ? OpcodeRead : m.message.rma ? OpcodeWrite : OpcodeSend;
      v.record.ev.entry.context_       = 8'(m.message.buffer.ctx);
      v.record.ev.entry.position       = m.message.buffer.position;
      v.record.ev.entry.queue_head     = m.message.queue_head;
      v.record.ev.entry.peer           = m.message.initiator;
      v.record.ev.entry.source_fa_hi   = e.fa[127:64];
      v.record.ev.entry.source_fa_lo   = e.fa[63:0];
      v.record.ev.entry.match_bits     = m.message.match_bits;
      v.record.ev.entry.header_data    = m.message.header_data;
      v.record.ev.entry.message_length = m.message.request_length;
      v.record.ev.entry.length         = placed;
      v.record.ev.entry.op_context     = m.message.buffer.op_context;
      v.record.ev.entry.flags          = (m.message.hd ? CompletionFlagHeaderData : '0) |
                                         (e.ipv6 ? CompletionFlagSourceIpv6 : '0);
      if (failed) begin
        v.record.ev.entry.status = StatusInitiatorError;
        v.record.ev.entry.detail = 8'(ReturnCodeInitiatorErr);
      end else if (m.message.request_length > m.message.buffer.length) begin
        v.record.ev.entry.status = StatusTruncated;
      end

      v.ack.nack        = is_nack || is_ask;
      v.ack.ask         = is_ask;
      v.ack.pdc         = pkt_i.dpdcid[PdcW-1:0];
      v.ack.dpdcid      = pkt_i.dpdcid;
      v.ack.spdcid      = pkt_i.spdcid;
      v.ack.fa          = pkt_i.source_fa;
      v.ack.cack        = pkt_i.psn;
      v.ack.psn         = is_nack ? pkt_i.psn : pkt_i.psn + 32'($signed(pkt_i.offset));
      v.ack.req         = !is_ask ? pkt_i.req :
                          pkt_i.next_hdr == CpTypeCloseRequest ? AckReqClose : AckReqClear;
      v.ack.code        = pkt_i.nack_code;
      v.ack.return_code = pkt_i.return_code;
      v.ack.m           = pkt_i.m;
      v.ack.retx        = pkt_i.retx;
      if (pkt_i.pds_type == PdsTypeAckCc) begin
        v.ack.sack         = 1'b1;
        v.ack.range        = pkt_i.nack_code;
        v.ack.sack_base    = pkt_i.psn + 32'($signed(pkt_i.sack_offset));
        v.ack.sack_bitmap  = pkt_i.match_bits;
        v.ack.service_time = pkt_i.header_data[63:48];
        v.ack.rcvd_bytes   = pkt_i.header_data[39:16];
      end
      v.ack.data        = is_ack && pkt_i.next_hdr == NextHdrResponseData;

      v.job.close               = v.hand && outcome != OutcomeAccept;
      v.job.open                = v.hand && !v.job.close && !e.returns;
      v.job.lost                = outcome == OutcomeForget;
      v.job.tell                = v.hand && outcome == OutcomeAccept && tells;
      v.job.report.ctx          = m.message.buffer.ctx;
      v.job.report.gen          = m.message.buffer.gen;
      v.job.report.owner        = m.message.buffer.owner;
      v.job.report.credit       = held_credit;
      v.job.report.cq           = m.message.buffer.cq;
      v.job.report.cq_gen       = m.message.buffer.cq_gen;
      v.job.report.queue_head   = m.message.queue_head;
      v.job.report.initiator    = m.message.initiator;
      v.job.report.key          = m.message.match_bits;
      v.job.report.bytes        = m.message.request_length;
      v.job.pdc                 = pdc_i;
      v.job.start_psn           = e.start_psn;
      v.job.route.rud           = e.rud;
      v.job.route.ipv6          = pkt_i.ipv6;
      v.job.route.fa            = pkt_i.source_fa;
      v.job.route.mac           = pkt_i.source_mac;
      v.job.route.dscp          = pkt_i.dscp;
      v.job.route.entropy       = pkt_i.source_port;
      v.job.route.spdcid        = tpdcid;
      v.job.route.dpdcid        = pkt_i.spdcid;
      v.job.data.iova           = region_i.iova;
      v.job.data.bytes          = pkt_i.read_bytes;
      v.job.data.owner          = region_i.owner;
      v.job.data.region         = region_i.region;
      v.job.data.message_id     = pkt_i.message_id;
      v.job.data.message_offset = pkt_i.message_offset;
      v.job.data.message_bytes  = pkt_i.request_length;
      v.job.data.job_id         = pkt_i.job_id;
    end
  end
  assign verdict_o = v;

  logic unused_bits;
  assign unused_bits = ^{port_i, pkt_i, entry_i, kept_next, clear_ahead, ack_offset, offset_after, room, beyond, dc_younger, dc_passed,
                         to_last, counters, here};
endmodule
