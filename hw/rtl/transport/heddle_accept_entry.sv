// SPDX-License-Identifier: Apache-2.0
// Third stage of a decision of heddle_accept: what the packet changes in its PDC and its message. Combinational.

`include "heddle_assert.svh"

module heddle_accept_entry
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  port_cfg_t        port_i,
  input  logic [15:0]      now_i,         // 128 ns.
  input  rx_packet_t       pkt_i,
  input  accept_class_t    class_i,
  input  accept_decision_t decision_i,
  input  target_pdc_t      entry_i,       // heddle_accept_class.
  input  target_message_t  own_i,
  input  logic [TableMessageW-1:0] place_i,
  input  rx_buffer_t       head_i,        // Context of the packet and, if it has one, its next buffer.
  input  logic [15:0]      head_released_i,
  input  logic [7:0]       region_counter_i,
  input  logic [31:0]      seen_psn_i,    // A job: the youngest message of its PDC that became visible.
  input  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] rx_counters_i,

  output accept_effect_t   effect_o,
  output target_pdc_t      after_o,       // The entry with the packet's message, if it was accepted.
  output target_pdc_t      entry_o,       // Written: with that of the expected packet,
  output target_message_t  message_o      // and that of the table.
);
  // Accepted packets between two ACKs at most.
  localparam int unsigned AckEvery = 16;
  // A request counts as what follows its IP header, with CRC, and 40 more (UET 3.0).
  localparam int unsigned NominalBytes = PdsRequestBytes + SesStdBytes + 4 + 40;
  logic [31:0] nominal;
  assign nominal = port_i.ip_protocol != '0 ? 32'(EntropyBytes + NominalBytes) : 32'(UdpBytes + NominalBytes);

  accept_class_t    c;
  accept_decision_t t;
  target_pdc_t      e, m;  // Before, and after the packet.
  assign c = class_i;
  assign t = decision_i;
  always_comb begin
    e = entry_i;
    e.stored = t.stored;
  end

  logic accepts, ended_pdc, refuses;
  assign accepts   = t.outcome == OutcomeAccept;
  assign ended_pdc = t.outcome == OutcomeClose || t.outcome == OutcomeForget;
  assign refuses   = t.refusal != ReturnCodeNull;

  logic        ends;       // The message completes here.
  logic        returned;   // Its credit goes back without a completion.
  logic        tells;      // It is a READ whose end heddle_read_reports reports.
  logic        held_credit, failed;
  logic        success;    // Its last packet, and all went well.
  logic        hides;      // The answer waits until its writes are visible.
  logic        over;       // It holds nothing any more.
  logic        ended;      // All its packets came.
  logic [31:0] last;       // PSN of its eom packet, if it has come.
  logic [31:0] beyond;     // PSNs accepted after that.
  logic [31:0] dc_younger, dc_passed;  // From this packet to `dc_last`; from there to the last PSN accepted.
  rx_counters_t counters;  // Those of its context.
  count_t      count;
  // Differences that do not wait for the decisions below: of RUD, whose message has this eom packet.
  logic [31:0] expected_last, base_before;
  assign counters      = rx_counters_t'(rx_counters_i[t.ctx]);
  assign dc_younger    = e.dc_last - pkt_i.psn;
  assign expected_last = t.expected - 32'd1;
  assign dc_passed     = expected_last - e.dc_last;
  assign beyond        = t.expected + ~t.last;  // t.expected - t.last - 1
  assign base_before   = (e.dc_ahead || !t.pieces ? pkt_i.psn : t.last) - 32'd1;
  // Does the message end, and well?
  logic fails;
  assign ended   = t.ends || (t.may_end && !beyond[31]);
  assign fails   = t.sound && !t.succeeds && ended;
  assign success = t.succeeds && ended;
  assign hides   = t.hides || (t.may_hide && success);
  logic [31:0] seen_ahead, hidden_span;
  assign seen_ahead  = seen_psn_i + ~e.hidden_base;  // seen_psn_i - hidden_base - 1
  assign hidden_span = e.hidden_last - e.hidden_base;
  always_comb begin
    m         = e;
    last      = pkt_i.psn;
    over      = 1'b0;
    failed    = e.message.state == MessageFailed;
    if (t.outcome == OutcomeJob) begin
      // What was reported of an earlier PDC of this index is not among what waits.
      if (e.hidden && seen_ahead < hidden_span) begin
        m.hidden_base = seen_psn_i;
        m.hidden      = seen_psn_i != e.hidden_last;
      end
      if (c.job == JobMark && c.held && c.stale) m.message.gone = 1'b1;
    end else if (ended_pdc) begin
      over            = c.held;
      failed          = 1'b1;
      m.message.state = MessageNone;
    end else if (accepts) begin
      m.received    = e.received + 32'(pkt_i.payload_bytes) + nominal;
      m.received_at = now_i;
      m.expected    = t.expected;
      m.ahead       = c.marked >> t.run;
      if (t.pieces) begin
        if (pkt_i.som || pkt_i.eom) begin
          m.message.last_known = pkt_i.eom;
          m.message.last_psn   = pkt_i.psn;
        end
        last = t.last;
        if (t.may_end && !beyond[31]) m.message.last_known = 1'b0;
      end
      if (t.starts || c.alone) begin
        m.message.state          = MessageOpen;
        m.message.rma            = c.is_rma;
        m.message.read           = c.is_read;
        m.message.credit         = !c.is_rma || c.reports;
        m.message.gone           = 1'b0;
        m.message.buffer         = head_i;
        if (c.is_rma) begin
          m.message.buffer.iova       = pkt_i.buffer_offset;
          m.message.buffer.position   = '0;
          m.message.buffer.length     = pkt_i.request_length;
          m.message.buffer.op_context = '0;
        end
        m.message.queue_head     = head_released_i - (c.is_rma ? 16'd1 : 16'd0);
        m.message.request_length = pkt_i.request_length;
        m.message.message_id     = pkt_i.message_id;
        m.message.job_id         = pkt_i.job_id;
        m.message.initiator      = pkt_i.initiator;
        m.message.match_bits     = pkt_i.match_bits;
        m.message.hd             = pkt_i.hd && !c.is_read;
        m.message.header_data    = m.message.hd ? pkt_i.header_data : '0;
        m.message.bytes          = '0;
        m.message.first_psn      = pkt_i.psn;
        m.message.piece_log2     = c.part_log2;
        failed                   = 1'b0;
      end
      if (c.bare) begin
        m.message.state = e.message.state;
      end else if (t.withdrawn || t.ignored || refuses) begin
        over            = c.held;
        failed          = 1'b1;
        m.message.state = t.ignored && e.message.state == MessageNone && !pkt_i.som && !c.alone ? MessageNone : MessageDiscard;
        if (!t.ignored || pkt_i.som || (e.rud && !c.discards)) m.message.code = t.refusal;
        if (e.rud) m.message.message_id = pkt_i.message_id;
        if (refuses) begin
          m.stored         = 1'b1;
          m.stored_psn     = pkt_i.psn;
          m.stored_code    = t.refusal;
          m.stored_message = pkt_i.message_id;
          m.stored_job     = pkt_i.job_id;
        end
      end else begin
        over = ended;
        if (t.sound) begin
          failed          = fails;
          m.message.bytes = t.pieces ? m.message.bytes + 32'(c.part) : c.reach;
        end else begin
          failed          = 1'b1;
          m.message.state = MessageFailed;
        end
      end
      if (ended && !c.bare) m.message.state = MessageNone;
      // An ACK that passes the PSN of one accepted ahead waits for all writes before it.
      if (c.jumps && (t.brief || t.tabled)) begin
        if (pkt_i.dc && pkt_i.eom && !m.message.read) begin
          m.dc_ahead = 1'b1;
          if (!e.dc_ahead || dc_younger[31]) m.dc_last = pkt_i.psn;
        end
      end else if (!c.jumps && e.dc_ahead) begin
        last       = expected_last;
        m.dc_ahead = dc_passed[31];
      end
      if (hides) begin
        m.hidden      = 1'b1;
        m.hidden_base = e.hidden ? e.hidden_base : base_before;
        m.hidden_last = last;
      end
      if (t.serves) m.returns = 1'b1;
    end
    tells    = m.message.read && success && t.serves && (m.message.credit || counters.remote_read != '0);

    // A failed RMA operation is the initiator's business alone.
    held_credit = m.message.credit;
    ends     = over && m.message.credit && !tells && !t.withdrawn &&
               (m.message.rma ? success : !c.stale || (t.starts && accepts));
    returned = over && m.message.credit && !tells && !ends;
    if (over) m.message.credit = 1'b0;

    // A receive counts when it completes, a peer's operation when it succeeds.
    count = '0;
    if (m.message.read) begin
      if (success && !t.serves) count.own = counters.remote_read;
    end else if (m.message.rma && success) begin
      count.own    = counters.remote_write;
      count.region = region_counter_i;
    end else if (!m.message.rma && ends) begin
      count.own    = counters.recv;
    end
  end

  // How far an ACK of the PDC would acknowledge (heddle_cack): does it include an error answer, without the packet and
  // with it?
  logic [31:0] stored, base, younger;
  logic        hidden, stored_shown, stored_hidden, clears_some;
  assign stored        = (e.stored ? e.stored_psn : e.expected) - 32'd1;
  assign base          = (e.hidden_base + 32'd1) - (e.stored ? e.stored_psn : e.expected);
  assign hidden        = e.hidden && base[31];
  assign clears_some   = hidden ? e.hidden_base != e.stored_psn : stored != e.stored_psn;
  assign younger       = pkt_i.psn - e.stored_psn;
  assign stored_shown  = e.stored && !hidden;                             // If the packet does not hide,
  assign stored_hidden = e.stored && !(e.hidden ? base[31] : younger[31]);  // and if it does.

  logic urgent;  // The answer goes at once, unless it waits for writes.
  assign urgent = pkt_i.ar || pkt_i.syn || pkt_i.retx || pkt_i.ce || t.clears || refuses || t.gaps ||
                  e.unacked == 4'(AckEvery - 1);

  logic [3:0] unacked_next;
  assign unacked_next = e.unacked == 4'(AckEvery - 1) ? e.unacked : e.unacked + 1'b1;

  // Is it answered? Packets that were accepted after an error count when that is cleared. Inside a message an initiator
  // cannot close.
  logic refuses_next, job_answers, responds;
  assign refuses_next = accepts && t.lost != TrimNone && !e.rud && !refuses && !(hides ? stored_hidden : stored_shown);
  assign job_answers  = t.outcome == OutcomeJob && e.open &&
                        (c.job == JobAck || c.job == JobClose ||
                         (c.job == JobAsk && own_i.state == MessageNone && e.table_open == '0));
  assign responds     = t.outcome == OutcomeStrange || t.outcome == OutcomeOutside || t.outcome == OutcomeTell ||
                        t.outcome == OutcomeRefuse || t.outcome == OutcomeDuplicate || t.outcome == OutcomeQuery ||
                        t.outcome == OutcomeClose || job_answers || refuses_next ||
                        (t.outcome == OutcomeReorder && (t.gap_before || (e.gap.open && t.reported))) ||
                        (t.outcome == OutcomeClear && clears_some) || (accepts && urgent && !hides);

  // -------------------------------------------------------------------- effect
  accept_effect_t f;
  target_pdc_t    n;
  always_comb begin
    f             = '0;
    f.stat        = t.stat;
    f.waited      = now_i - e.received_at;
    f.heard       = c.job == JobNone && t.outcome != OutcomeDrop && t.outcome != OutcomeForward && t.outcome != OutcomeStrange;
    f.write       = t.write;
    f.keep        = t.keep;
    f.respond     = responds;
    f.refuses_next = refuses_next;
    f.takes       = c.bare || !(t.withdrawn || t.ignored || failed || refuses);
    f.fills       = t.sound;
    f.hides       = hides;
    f.ends        = ends;
    f.returned    = returned;
    f.failed      = failed;
    f.tells       = tells;
    f.held_credit = held_credit;
    f.last        = last;
    f.count       = count;
    // Whatever the packet carries leaves the payload queue through a record, unless it is kept.
    f.place       = pkt_i.payload_bytes != '0 && c.job == JobNone && t.outcome != OutcomeReorder;
    n             = e;
    n.message     = own_i;

    unique case (t.outcome)
      OutcomeStrange: begin
        f.full    = t.code == NackCodeNoPdcAvail;
      end
      OutcomeRefuse: begin
        f.create  = c.fresh;
        n.gap     = t.gap;
        if (!c.early) begin
          n.gap         = '0;
          n.gap.open    = 1'b1;
          n.gap.refused = !c.trimmed;
        end
        f.reap    = c.is_close && c.expected && e.table_open != '0;
      end
      OutcomeQuiet: begin
        n.gap = t.gap;
        if (c.jumps) begin
          n.gap        = e.gap;
          n.gap.turned = 1'b1;
        end
      end
      OutcomeReorder: n.gap = t.gap;
      OutcomeClear, OutcomeDuplicate, OutcomeQuery: n.unacked = '0;
      OutcomeAccept: begin
        // A refused packet is not named before its error may be reported, nor one of a message whose
        // data has to be visible.
        f.names   = !refuses && !(c.jumps && pkt_i.dc);
        f.repeats = t.ignored && c.discards && !pkt_i.som && e.message.code != ReturnCodeNull;
        f.create  = c.fresh;
        n         = m;
        if (t.brief) begin
          n             = e;
          n.expected    = m.expected;
          n.ahead       = m.ahead;
          n.returns     = m.returns;
          n.received    = m.received;
          n.received_at = m.received_at;
          n.hidden      = m.hidden;
          n.hidden_base = m.hidden_base;
          n.hidden_last = m.hidden_last;
          n.dc_ahead    = m.dc_ahead;
          n.dc_last     = m.dc_last;
          n.message     = own_i;
          if (!c.jumps && !c.bare) n.message.state = MessageNone;
        end
        if (t.tabled) begin
          n.message             = own_i;
          n.table_open[place_i] = m.message.state != MessageNone;
        end
        n.mac     = pkt_i.source_mac;
        n.entropy = pkt_i.source_port;
        n.dscp    = pkt_i.dscp;
        // The packet is acknowledged later if the next one is refused, unless an error has to be reported for certain.
        n.gap     = c.jumps ? e.gap : t.lost == TrimNone || refuses_next ? t.gap_closed : '0;
        n.unacked = hides ? '0 : t.lost != TrimNone && !e.rud && !refuses && !stored_shown ? unacked_next :
                    urgent ? '0 : e.unacked + 1'b1;
        f.hand    = t.serves;
      end
      OutcomeClose: begin
        f.close   = 1'b1;
        f.bury    = 1'b1;
        f.hand    = e.returns;
        n         = '0;
        n.gen     = e.gen;
        n.used    = e.used;
      end
      OutcomeForget: begin
        if (c.in_table) begin
          n.table_open[place_i] = 1'b0;
        end else begin
          f.hand  = e.returns;
          f.close = 1'b1;
          n       = '0;
          n.gen   = e.gen;
          n.used  = e.used;
        end
      end
      OutcomeJob: begin
        if (job_answers) n.unacked = '0;
        n.hidden      = m.hidden;
        n.hidden_base = m.hidden_base;
        if (!c.in_table) n.message.gone = m.message.gone;
      end
      default: ;
    endcase

    f.opens_return = f.hand && accepts && !e.returns;
    if (accepts || ended_pdc) begin
      f.place = f.place || ends || returned || hides || f.hand;
      f.first = t.starts && !t.brief;
      f.stat[StatisticRxMessages] = ends || success;
    end
    f.stat[StatisticRxPdcs] = f.create;
    f.owes       = n.unacked != '0;
    f.table_open = n.table_open[place_i];
  end

  assign effect_o  = f;
  assign after_o   = m;
  assign entry_o   = n;
  assign message_o = m.message;

  logic unused_bits;
  assign unused_bits = ^{port_i, pkt_i, c, t, stored, base, younger, beyond, dc_younger, dc_passed, counters};
endmodule
