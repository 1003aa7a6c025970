// SPDX-License-Identifier: Apache-2.0
// First stage of a decision of heddle_accept: what a packet is to its PDC and to its message. Combinational; of
// what can be reserved it uses nothing.
//
// Early:   `entry_i` may be older than `whole_i` by packets whose decision was `plain` (accept_decision_t): it has
//          their `expected` and `ahead`, and no message if they left none. No more is used here.
// Probe, Negotiation: answered, and nothing changes (UET 2.9).
// Ended:   a request for a PDCID that was used since reset, and whose PDC ended, is answered CLOSING: it may have
//          been executed. One that was never used is answered INV_DPDCID: nothing of it was.
// Trimmed: no CRC covers the header of a trimmed request. It changes no PDC but by the gap that it opens.

`include "heddle_assert.svh"

module heddle_accept_class
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  port_cfg_t       port_i,
  input  target_job_e     job_i,         // No packet, but this; of PDC `pdc_i` then, and the message at `place_i` if `named_i`.
  input  logic            reaps_i,       // JobForget: of messages only.
  input  rx_packet_t      pkt_i,

  input  logic [PdcW-1:0] pdc_i,         // The packet's: known by SYN, named by dpdcid, or free.
  input  logic            hit_i,         // SYN: the PDC exists.
  input  logic            room_i,        // SYN: there is an index and a way for a new one.
  input  logic            closed_i,      // SYN: its PDC was closed not long ago.
  input  logic            grave_i,       // A tombstone of the packet's PDC has a place.
  input  target_pdc_t     entry_i,       // Its entry, early,
  input  target_pdc_t     whole_i,       // and whole.
  input  logic            looked_i,      // The table was read for it, no SYN:
  input  logic [TableMessageW-1:0] place_i,  // this place,
  input  target_message_t message_i,     // which has this message,
  input  logic            named_i,       // the packet's own by its ID, or one that ends before its PDC.

  input  logic            look_hit_i,    // The packet's name has a receive context,
  input  return_code_e    look_miss_i,   // or this is the answer; BAD_INDEX if it has one.
  input  logic [RxW-1:0]  look_ctx_i,
  input  logic [7:0]      look_owner_i,
  input  logic [23:0]     look_job_i,
  input  logic            look_event_i,  // It reports every RMA operation.
  input  logic            listens_i,     // A receive context was enabled since the reset.
  input  rma_answer_t     region_i,      // RMA: may the packet write or read, and where.
  input  logic [NumRx-1:0]           rx_alive_i,
  input  logic [NumRx-1:0][GenW-1:0] rx_gen_i,
  input  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] rx_counters_i,

  output accept_class_t   class_o,
  output target_pdc_t     entry_o,       // The entry, or what it is when the packet opens the PDC, with the packet's message;
  output target_message_t own_o          // that of the entry.
);
  // ------------------------------------------------------------ kind of packet
  logic is_request, is_data, is_rud, is_ack, is_nack, is_query, is_close, is_clear, trimmed;
  logic is_probe, is_offer, is_ask;  // Probe, Negotiation; requests of a target.
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
  logic               ours, fresh;
  logic [PdcGenW-1:0] gen, next_gen, named_gen;  // The last: by dpdcid.
  logic [31:0]        start;
  logic               starts_alike, sender_alike, generation_alike, mode_alike;
  assign ours      = pkt_i.dpdcid[15 -: SlotBits] == port_i.slot[SlotBits-1:0] &&
                     (is_ack || is_nack || is_ask || pkt_i.dpdcid[PdcRoleBit] == RoleTarget);
  assign start     = pkt_i.psn - 32'(pkt_i.psn_offset);
  assign fresh     = pkt_i.syn && !hit_i && job_i == JobNone;
  assign next_gen  = entry_i.gen + 1'b1;
  assign named_gen = pkt_i.dpdcid[PdcW +: PdcGenW];
  assign gen       = fresh ? next_gen : entry_i.gen;
  assign starts_alike     = start == entry_i.start_psn;
  assign sender_alike     = pkt_i.ipv6 == entry_i.ipv6 && pkt_i.source_fa == entry_i.fa && pkt_i.spdcid == entry_i.spdcid;
  assign generation_alike = entry_i.open && named_gen == entry_i.gen;
  assign mode_alike       = fresh || is_rud == entry_i.rud;

  // --------------------------------------------------------------------- PSN
  logic        rud, in_window, came, expected, duplicate, early, jumps;
  logic [31:0] ahead;
  logic [PdcWindow-1:0] arrived;  // Its bit, if it is in the window.
  assign rud       = fresh ? is_rud : entry_i.rud;
  assign ahead     = fresh ? 32'(pkt_i.psn_offset) : pkt_i.psn - entry_i.expected;
  assign arrived   = PdcWindow'(1) << ahead[$clog2(PdcWindow)-1:0];
  assign in_window = ahead < 32'(PdcWindow);
  assign came      = in_window && entry_i.ahead[ahead[$clog2(PdcWindow)-1:0]] && !fresh;
  assign expected  = ahead == '0;
  assign duplicate = came || ahead >= 32'hffff_8000;  // As far as ack_psn_offset reaches.
  assign early     = !rud && !expected && ahead < 32'(RodWindow);
  assign jumps     = rud && !expected && in_window;    // Over a gap.

  // ----------------------------------------------------------------- message
  // The packet's own is one of the table, or that of the expected packet. If it is none, the packet may open one in the
  // table, over a gap.
  logic            in_use, in_table, held, stale, same, discards, alone, failed;
  target_message_t own, msg;
  assign in_use   = entry_i.table_open[place_i] && !fresh;
  assign in_table = named_i && entry_i.table_open[place_i];  // No packet that is fresh has one.
  always_comb begin
    own = entry_i.message;
    if (fresh) begin
      own       = '0;
      own.state = MessageNone;
    end
    msg = in_table ? message_i : own;
  end
  assign held     = msg.state == MessageOpen || msg.state == MessageFailed;
  assign failed   = msg.state == MessageFailed;
  assign stale    = msg.gone || !rx_alive_i[msg.buffer.ctx] || rx_gen_i[msg.buffer.ctx] != msg.buffer.gen;
  assign same     = pkt_i.message_id == msg.message_id;
  assign discards = msg.state == MessageDiscard && (!rud || (same && !pkt_i.som));

  // A deferrable send is executed as a send: its offset is two tokens (UET 4.14).
  logic         is_send, is_write, is_read, is_rma, is_no_op, asks, reports, told, sized;
  logic         other_ver;  // The semantic sublayer has another version.
  logic         bare;       // A NO_OP as it has to be: nothing depends on it but its PSN.
  rx_counters_t here;       // Counters of the packet's context.
  logic         counted;    // The write counts when all its packets came.
  assign is_send   = pkt_i.opcode == SesOpcodeSend || pkt_i.opcode == SesOpcodeDeferrableSend;
  assign is_no_op  = pkt_i.opcode == SesOpcodeNoOp;
  assign other_ver = pkt_i.ses_ver != '0;
  assign sized     = pkt_i.request_length != '0 || pkt_i.payload_bytes != '0;
  assign bare      = is_no_op && !other_ver && pkt_i.som && pkt_i.eom && !sized;
  assign is_write  = pkt_i.opcode == SesOpcodeWrite;
  assign is_read   = pkt_i.opcode == SesOpcodeRead;
  assign is_rma    = is_write || is_read;
  assign asks      = is_read && pkt_i.read_bytes != '0;
  assign reports   = (is_write && pkt_i.hd) || (is_rma && look_event_i);
  assign here      = rx_counters_t'(rx_counters_i[look_ctx_i]);
  assign told      = is_read && (reports || here.remote_read != '0);
  // A write of several packets that counts is one message.
  assign counted   = (here.remote_write != '0 || region_i.counter != '0) && !(pkt_i.som && pkt_i.eom);
  // RUD: a packet of a WRITE or READ that only its initiator tracks.
  assign alone     = rud && (is_write ? !reports && !counted : is_read && !told) && !(held && (same || !jumps));

  // --------------------------------------------------------------- its lengths
  // A packet at another offset than its message has reached is refused; so its own offset limits it, too.
  logic [31:0] base, reach, own_base, own_reach;
  logic [13:0] part;
  logic        fits, length_ok;
  assign base  = pkt_i.som ? '0 : (rud ? pkt_i.message_offset : msg.bytes);
  assign part  = is_read ? pkt_i.read_bytes : pkt_i.payload_bytes;
  assign reach = base + 32'(part);
  assign own_base  = pkt_i.som ? '0 : pkt_i.message_offset;
  assign own_reach = own_base + 32'(part);
  assign fits  = own_reach >= own_base && own_reach <= pkt_i.request_length;
  // Packets of a message that come in any order may not leave a hole: the PSN gives each its place.
  logic        in_place, part_whole;
  logic [1:0]  part_log2;     // Size of a whole piece, in KiB.
  logic [1:0]  piece_ok;      // In the message of the entry, in that of the table.
  assign part_log2    = part[13] ? 2'd3 : part[12] ? 2'd2 : part[11] ? 2'd1 : 2'd0;
  assign part_whole   = part == (14'd1024 << part_log2);
  // message_offset is (psn - first_psn) << (10 + piece_log2).
  for (genvar t = 0; t < 2; t++) begin : gen_piece
    logic [31:0] first_psn;
    logic [1:0]  log2;
    logic [21:0] piece, pieces;  // Pieces before it: by its PSN, by its offset.
    assign first_psn   = t == 0 ? own.first_psn : message_i.first_psn;
    assign log2        = t == 0 ? own.piece_log2 : message_i.piece_log2;
    assign piece       = (pkt_i.psn[21:0] - first_psn[21:0]) & (22'h3fffff >> log2);
    assign pieces      = pkt_i.message_offset[31:10] >> log2;
    assign piece_ok[t] = piece == pieces && pkt_i.message_offset[9:0] == '0 &&
                         (pkt_i.message_offset[12:10] & ~(3'b111 << log2)) == '0 &&
                         (pkt_i.eom || (part_whole && part_log2 == log2));
    logic unused_psn;
    assign unused_psn = ^first_psn;
  end
  assign in_place     = pkt_i.som ? pkt_i.eom || part_whole
                                  : piece_ok[in_table];
  // The lengths of a packet of a failed message are not judged.
  assign length_ok = pkt_i.ie || (!pkt_i.som && failed && !alone) ||
                     (fits && !pkt_i.contradicts && pkt_i.eom == (own_reach == pkt_i.request_length) &&
                      (alone || (rud ? in_place : pkt_i.som || pkt_i.message_offset == msg.bytes)));

  // While a PDC that ends has messages in the table, one of them ends each time.
  logic [TableMessageW-1:0] first;
  always_comb begin
    first = '0;
    for (int unsigned i = TableMessages; i > 0; i--) begin
      if (entry_i.table_open[i-1]) first = TableMessageW'(i - 1);
    end
  end

  logic        mismatch;
  logic [31:0] to_last;
  assign mismatch = !same || pkt_i.job_id != msg.job_id ||
                    !(msg.read ? is_read : msg.rma ? is_write : is_send) ||
                    (msg.rma && (pkt_i.match_bits != msg.match_bits || pkt_i.buffer_offset != msg.buffer.iova)) ||
                    pkt_i.request_length != msg.request_length;
  assign to_last  = msg.last_psn - pkt_i.psn;

  // ----------------------------------------------------------------- outcome
  // The packet and the identity of its PDC settle some.
  logic               settled, may_open;
  accept_outcome_e    outcome;
  nack_code_e         code;
  logic [NumStat-1:0] stat;
  always_comb begin
    settled  = 1'b1;
    may_open = 1'b0;
    outcome = OutcomeDrop;
    code    = NackCodeInvDpdcid;
    stat    = '0;
    if (job_i == JobForget) begin
      if (in_table || (entry_i.table_open == '0 && !reaps_i)) outcome = OutcomeForget;
    end else if (job_i != JobNone) begin
      outcome = OutcomeJob;
    end else if (is_ack || is_nack || is_ask) begin
      if (ours) outcome = OutcomeForward;
      else      stat[StatisticDropPdcid] = 1'b1;
    end else if (is_data) begin
      outcome = OutcomeDrop;
    end else if (trimmed) begin
      settled = 1'b0;
    end else if (!is_request && !is_query && !is_close && !is_clear && !is_probe && !is_offer) begin
      stat[StatisticDropPdsType] = 1'b1;
    end else if (!pkt_i.syn && !ours) begin
      // Another function's or an initiator's, whose PDC must not end by an answer of ours.
      stat[StatisticDropPdcid] = 1'b1;
    end else if (!pkt_i.syn && !generation_alike) begin
      // A Clear Command is not acknowledged, so its PSN means nothing to its sender.
      outcome = is_clear ? OutcomeDrop : OutcomeStrange;
      if (!is_clear && entry_i.used[named_gen]) begin
        code = NackCodeClosing;
        stat[StatisticRxClosing] = 1'b1;
      end else begin
        stat[StatisticDropPdcid] = 1'b1;
      end
    end else if (!pkt_i.syn && !sender_alike) begin
      outcome = OutcomeStrange;
      code    = NackCodePdcHdrMismatch;
      stat[StatisticDropPdcid] = 1'b1;
    end else if (pkt_i.syn && hit_i && !starts_alike) begin
      outcome = OutcomeStrange;
      code    = NackCodeInvalidSyn;
      stat[StatisticDropPdcid] = 1'b1;
    end else if (is_request && !mode_alike) begin
      outcome = OutcomeStrange;
      code    = NackCodePdcModeMismatch;
      stat[StatisticDropPdsType] = 1'b1;
    end else if (is_request && !listens_i) begin
      stat[StatisticRxRefused] = 1'b1;
    end else if (fresh && !room_i) begin
      may_open = 1'b1;
      outcome = OutcomeStrange;
      code    = NackCodeNoPdcAvail;
      stat[StatisticRxRefused] = 1'b1;
    end else if (is_probe || is_offer) begin
      outcome = OutcomeTell;
    end else begin
      may_open = fresh;
      settled  = 1'b0;
    end
  end

  always_comb begin
    class_o             = '0;
    class_o.settled     = settled;
    class_o.outcome     = outcome;
    class_o.code        = code;
    class_o.stat        = stat;
    class_o.job         = job_i;
    class_o.defers      = job_i == JobForget && !in_table && entry_i.table_open != '0;
    class_o.first       = first;
    class_o.trimmed     = trimmed;
    class_o.trim_named  = is_request && mode_alike && listens_i &&
                          (pkt_i.syn ? hit_i && starts_alike : ours && generation_alike && sender_alike);
    class_o.is_request  = is_request;
    class_o.is_ack      = is_ack;
    class_o.is_nack     = is_nack;
    class_o.is_ask      = is_ask;
    class_o.is_query    = is_query;
    class_o.is_close    = is_close;
    class_o.is_clear    = is_clear;
    class_o.is_probe    = is_probe;
    class_o.is_send     = is_send;
    class_o.is_rma      = is_rma;
    class_o.is_read     = is_read;
    class_o.is_no_op    = is_no_op;
    class_o.bare        = bare;
    class_o.sized       = sized;
    class_o.other_ver   = other_ver;
    class_o.fresh       = fresh;
    class_o.tpdcid      = {port_i.slot[SlotBits-1:0], RoleTarget, gen, pdc_i};
    // CLEAR_PSN travels with every request and in Clear Commands.
    class_o.may_clear   = ((is_request && !trimmed) || is_clear) && !fresh && job_i == JobNone;
    class_o.clear_psn   = is_clear ? pkt_i.pds_payload : pkt_i.psn + 32'($signed(pkt_i.offset));
    class_o.ahead       = ahead;
    class_o.in_window   = in_window;
    class_o.marked      = (fresh ? '0 : entry_i.ahead) | (in_window ? arrived : '0);
    class_o.duplicate   = duplicate;
    class_o.expected    = expected;
    class_o.early       = early;
    class_o.jumps       = jumps;
    class_o.in_use      = in_use;
    class_o.in_table    = in_table;
    class_o.held        = held;
    class_o.stale       = stale;
    class_o.same        = same;
    class_o.discards    = discards;
    class_o.alone       = alone;
    class_o.mismatch    = mismatch;
    class_o.length_ok   = length_ok;
    class_o.base        = base;
    class_o.reach       = reach;
    class_o.part        = part;
    class_o.part_log2   = part_log2;
    class_o.past_last   = msg.last_known && (pkt_i.eom || to_last[31]);
    class_o.unlooked    = is_request && !looked_i && !fresh && entry_i.table_open != '0 && !(held && same);
    class_o.look_hit    = look_hit_i;
    class_o.look_miss   = look_miss_i;
    class_o.job_ok      = look_job_i == pkt_i.job_id;
    class_o.ctx_ok      = look_ctx_i == msg.buffer.ctx;
    // Another function's region is none of this context's.
    class_o.region_code = region_i.owner != look_owner_i ? ReturnCodeBadMkey : region_i.code;
    class_o.region_ok   = region_i.owner == look_owner_i && region_i.code == ReturnCodeOk;
    class_o.asks        = asks;
    class_o.reports     = reports;
    class_o.told        = told;
    class_o.may_open    = may_open;
    class_o.closed      = closed_i;
    class_o.grave       = grave_i;
  end

  always_comb begin
    entry_o = whole_i;
    if (fresh) begin
      entry_o           = '0;
      entry_o.open      = 1'b1;
      entry_o.gen       = next_gen;
      entry_o.used      = entry_i.used;
      entry_o.used[next_gen] = 1'b1;
      entry_o.fa        = pkt_i.source_fa;
      entry_o.ipv6      = pkt_i.ipv6;
      entry_o.spdcid    = pkt_i.spdcid;
      entry_o.start_psn = start;
      entry_o.expected  = start;
      entry_o.rud       = is_rud;
      entry_o.message.state = MessageNone;
    end
    own_o = entry_o.message;
    if (in_table) entry_o.message = message_i;
  end

  logic unused_bits;
  assign unused_bits = ^{port_i, pkt_i, entry_i, msg, to_last, here, region_i};
endmodule
