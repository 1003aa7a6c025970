// SPDX-License-Identifier: Apache-2.0
// Return direction of our PDCs: accepts the data of our READs.
//
// Beside heddle_accept, in whose pipeline it takes part: `look_i` in the cycle in which the packet is in
// stage 1, `verdict_o` and `take_i` in stage 2. One packet every two cycles.
//
// Any:      each PSN in the window is accepted once, on ROD of a target that is known; duplicates are acknowledged again
//           and dropped. On RUD ACK_CCs report what came ahead of a gap, at once. On ROD a NACK names the packet that
//           is missing alone (PKT_NOT_RCVD); for more, and what heddle_rod_gap reports, it is ROD_OOO.
// Trimmed:  a packet whose PSN is missing is NACKed likewise, the expected one each time it comes; a duplicate is
//           acknowledged again, all else discarded.
// Strangers: until data were accepted, any target may send them, with a PSN that the PDC can have.
// Placed:   data of a READ that was requested on the PDC they came by, a payload MTU of them at their place or the
//           last ones, in any order; the last also in the ACK of their request, once, not in a late one of an
//           earlier message. Others are acknowledged and dropped: those of a READ that ended (in error) are
//           nobody's; the rest is counted as malformed, and a READ of this PDC fails by it.
// Control:  an ACK Request is answered by an ACK, or PKT_NOT_RCVD; a Probe by its ACK; a Close Request has a PSN
//           and is accepted like data of no READ.
// Whole:    the packets of a READ are its pieces, each once: by their number and the sum of a hash of their indices. A
//           READ fails by its last packet otherwise.
// Bounded:  a READ has no more packets than were asked for, or as `cut_i` says than come of a refused one. More are
//           dropped as malformed, and change nothing.
// Gone:     nothing of a READ is placed whose context is disabled or of another generation, or that ended.
// Owed:     what was accepted and not acknowledged within ack_delay_ticks is acknowledged then, by `late_*`.
// With congestion control (transport_i), every ACK is an ACK_CC that says how long it waited and what came; a
//           packet that met congestion is acknowledged at once.
// Settled:  each packet of a READ is reported once, whatever it brought; `decided_o` counts what is to be placed.

`include "heddle_assert.svh"

module heddle_return_rx
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  port_cfg_t          port_i,
  input  transport_cfg_t     transport_i,
  input  logic [31:0]        now_ns_i,

  input  logic               open_i,        // heddle_tx_msg opens a PDC, perhaps again.
  input  return_open_t       open_info_i,
  input  logic [NumPdc-1:0]  alive_i,       // heddle_pdc_tx: the PDC is open.

  input  logic [NumTx-1:0]           tx_alive_i,
  input  logic [NumTx-1:0][GenW-1:0] tx_gen_i,

  input  logic               read_i,        // Message table write; of use if it is a READ.
  input  logic [MsgW-1:0]    read_msg_i,
  input  return_read_t       read_info_i,
  input  logic               asked_i,       // heddle_pdc_tx issued a packet of a READ, after its table write,
  input  logic               asked_first_i, // the first one on this opening of the PDC,
  input  logic [MsgW-1:0]    asked_msg_i,
  input  return_asked_t      asked_as_i,    // as this one.
  input  logic               cut_i,         // heddle_read_ends: no more than so many packets of a READ come.
  input  logic [MsgW-1:0]    cut_msg_i,
  input  logic [PktsW-1:0]   cut_packets_i,
  input  logic               end_i,         // Message `end_msg_i` ended, whatever it was.
  input  logic [MsgW-1:0]    end_msg_i,

  input  logic               look_i,
  input  rx_packet_t         pkt_i,         // Held from stage 1 to the end of stage 2.
  input  logic               take_i,        // The verdict takes effect.
  output return_verdict_t    verdict_o,
  output return_late_t       late_o,        // An ACK that was put off; `answer` two cycles after `late_look_i`.
  input  logic               late_look_i,   // Not while a packet is in stage 1 or 2.
  input  logic               late_take_i,   // It leaves, or there is none.
  input  logic [MsgW-1:0]    answered_msg_i, // heddle_pdc_walk: this READ
  output logic               answered_o,    // has settled packets of its present opening.
  output logic [NumPdc-1:0]  gaps_o,        // More than ReturnAhead PSNs came ahead of a gap.
  output logic [SeqW-1:0]    decided_o,     // Verdicts with `place` that took effect.
  output logic               idle_o,        // No ACK is due.
  output logic               ready_o        // Memories are initialised.
);
  localparam int unsigned IndexW = $clog2(PdcWindow);

  typedef struct packed {
    logic         rud;
    logic         ipv6;
    logic [127:0] fa;
    logic [15:0]  spdcid;
    logic [31:0]  start_psn;
  } identity_t;

  typedef struct packed {
    logic        bound;        // Data were accepted:
    logic [15:0] tpdcid;       // the target's, as the first showed it.
    logic [47:0] mac;          // This and the next two: of the last packet accepted.
    logic [15:0] entropy;
    logic [5:0]  dscp;
    logic [31:0] expected;     // Oldest PSN that did not come.
    logic [PdcWindow-1:0] ahead;  // Those that came after it, on RUD.
    rod_gap_t    gap;
    logic [3:0]  unacked;      // Packets accepted since the last ACK.
    logic [31:0] received;     // Nominal bytes accepted (UET 3.0), wraps.
    logic [15:0] received_at;  // The last of them; 128 ns.
  } state_t;

  // The window when the expected packet comes: written a cycle after `ahead`, which is before it is read.
  typedef struct packed {
    logic [PdcWindow-1:0] ahead;
    logic [IndexW-1:0]    run;    // `expected` moves by so many more than one.
    logic                 gap;
  } window_t;

  // Of a READ, since it was asked for.
  typedef struct packed {
    logic [PktsW-1:0] packets;  // That came, or failed it.
    logic [PktsW-1:0] order;    // The hash of `packets`.
    logic [PktsW-1:0] drift;    // Sum of the hashes of their order of arrival less that of their indices.
    logic             acked;    // One came in the ACK of its request.
  } count_t;

  localparam logic [3:0]  AckEvery     = 4'd15;
  localparam logic [31:0] OldestAck    = 32'hffff_8000;  // As far before the expected PSN as ack_psn_offset reaches.
  // A packet counts as what follows its IP header, with CRC, and 40 more (UET 3.0).
  localparam int unsigned NominalBytes = PdsRequestBytes + SesResponseDataBytes + 4 + 40;
  logic [31:0] nominal;
  assign nominal = port_i.ip_protocol != '0 ? 32'(EntropyBytes + NominalBytes) : 32'(UdpBytes + NominalBytes);

  // What of a READ is asked for by its message id, which is the index + 1.
  logic [MsgW-1:0] msg, msg_q;
  logic [PdcW-1:0] pdc, pdc_q;
  logic            id_fits;
  assign msg     = MsgW'(pkt_i.message_id - 16'd1);
  assign id_fits = pkt_i.message_id != '0 && pkt_i.message_id <= 16'(NumMsg);
  assign pdc     = pkt_i.dpdcid[PdcW-1:0];
  always_ff @(posedge clk_i) begin
    if (look_i)      msg_q <= msg;
    if (late_look_i) pdc_q <= late_pdc;
    else if (look_i) pdc_q <= pdc;
  end

  // ------------------------------------------------------------------ memories
  // What waits in stage 2 is read again, so that it stays on the outputs.
  logic [PdcW-1:0] pdc_raddr;
  logic [MsgW-1:0] msg_raddr;
  assign pdc_raddr = late_look_i ? late_pdc : look_i ? pdc : pdc_q;
  assign msg_raddr = look_i ? msg : msg_q;

  identity_t    id;
  state_t       s_raw, s, d;
  return_read_t read;
  count_t       count_raw, count, count_d;
  logic         write, count_up;
  return_asked_t asked;
  logic [PktsW-1:0] cut;
  logic         unused_id_err, unused_state_err, unused_read_err, unused_count_err, unused_asked_err, unused_cut_err;
  logic         unused_read_rdy, unused_count_rdy, unused_asked_rdy, unused_cut_rdy, unused_state_rdy, id_rdy;

  heddle_mem #(.Width($bits(identity_t)), .Depth(NumPdc)) u_identity (
    .clk_i, .rst_ni, .wen_i(open_i), .waddr_i(open_info_i.pdc),
    .wdata_i({open_info_i.rud, open_info_i.ipv6, open_info_i.fa, open_info_i.spdcid, open_info_i.start_psn}),
    .raddr_i(pdc_raddr), .rdata_o(id), .error_o(unused_id_err), .ready_o(id_rdy)
  );
  heddle_mem #(.Width($bits(state_t)), .Depth(NumPdc), .Init(1'b0)) u_state (
    .clk_i, .rst_ni, .wen_i(write), .waddr_i(pdc_q), .wdata_i(d),
    .raddr_i(pdc_raddr), .rdata_o(s_raw), .error_o(unused_state_err), .ready_o(unused_state_rdy)
  );
  window_t window_raw, window, window_d;
  logic    unused_window_err, unused_window_rdy;
  heddle_mem #(.Width($bits(window_t)), .Depth(NumPdc), .Init(1'b0)) u_window (
    .clk_i, .rst_ni, .wen_i(written_q), .waddr_i(written_pdc_q), .wdata_i(window_d),
    .raddr_i(pdc_raddr), .rdata_o(window_raw), .error_o(unused_window_err), .ready_o(unused_window_rdy)
  );
  heddle_mem #(.Width($bits(return_read_t)), .Depth(NumMsg), .Init(1'b0)) u_reads (
    .clk_i, .rst_ni, .wen_i(read_i), .waddr_i(read_msg_i), .wdata_i(read_info_i),
    .raddr_i(msg_raddr), .rdata_o(read), .error_o(unused_read_err), .ready_o(unused_read_rdy)
  );
  heddle_mem #(.Width($bits(return_asked_t)), .Depth(NumMsg), .Init(1'b0)) u_asked (
    .clk_i, .rst_ni, .wen_i(asked_i), .waddr_i(asked_msg_i), .wdata_i(asked_as_i),
    .raddr_i(msg_raddr), .rdata_o(asked), .error_o(unused_asked_err), .ready_o(unused_asked_rdy)
  );
  heddle_mem #(.Width(PktsW), .Depth(NumMsg), .Init(1'b0)) u_cut (
    .clk_i, .rst_ni, .wen_i(cut_i), .waddr_i(cut_msg_i), .wdata_i(cut_packets_i),
    .raddr_i(msg_raddr), .rdata_o(cut), .error_o(unused_cut_err), .ready_o(unused_cut_rdy)
  );
  heddle_mem #(.Width($bits(count_t)), .Depth(NumMsg), .Init(1'b0)) u_count (
    .clk_i, .rst_ni, .wen_i(count_up), .waddr_i(msg_q), .wdata_i(count_d),
    .raddr_i(msg_raddr), .rdata_o(count_raw), .error_o(unused_count_err), .ready_o(unused_count_rdy)
  );
  // A memory has one writer; a flag shows whether its entry is of the present opening. An opening prevails over what arrives
  // in the same cycle.
  logic opens_here, begins, begins_here;
  logic begun_q;   // The PDC's state is of its present opening.
  logic active;    // The READ was requested and has not ended.
  logic spoilt;    // It takes no more data.
  logic some_q;    // Some packets of it came.
  logic cut_short; // `cut` of them come at most.
  logic begun, some, begun_ready, active_ready, spoilt_ready, some_ready, cut_ready, answered_active, answered_some;
  assign opens_here  = open_i && open_info_i.pdc == pdc_q;
  assign begins      = asked_i && asked_first_i;
  assign begins_here = begins && asked_msg_i == msg_q;
  heddle_flags #(.Depth(NumPdc)) u_begun (
    .clk_i, .rst_ni, .set_i(write && !opens_here), .set_index_i(pdc_q), .clear_i(open_i),
    .clear_index_i(open_info_i.pdc), .index_i(pdc_raddr), .flag_o(begun), .ready_o(begun_ready)
  );
  always_ff @(posedge clk_i) begin
    begun_q <= (begun || (write && pdc_q == pdc_raddr)) && !(open_i && open_info_i.pdc == pdc_raddr);
  end
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_active (
    .clk_i, .rst_ni, .set_i(begins), .set_index_i(asked_msg_i), .clear_i(end_i), .clear_index_i(end_msg_i),
    .index_i({answered_msg_i, msg_q}), .flag_o({answered_active, active}), .ready_o(active_ready)
  );
  heddle_flags #(.Depth(NumMsg)) u_spoilt (
    .clk_i, .rst_ni, .set_i(take_i && verdict_o.fail && !begins_here), .set_index_i(msg_q), .clear_i(begins),
    .clear_index_i(asked_msg_i), .index_i(msg_q), .flag_o(spoilt), .ready_o(spoilt_ready)
  );
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_some (
    .clk_i, .rst_ni, .set_i(count_up && !begins_here), .set_index_i(msg_q), .clear_i(begins),
    .clear_index_i(asked_msg_i), .index_i({answered_msg_i, msg_raddr}), .flag_o({answered_some, some}),
    .ready_o(some_ready)
  );
  always_ff @(posedge clk_i) begin
    some_q <= (some || (count_up && msg_q == msg_raddr)) && !(begins && asked_msg_i == msg_raddr);
  end
  heddle_flags #(.Depth(NumMsg)) u_cut_short (
    .clk_i, .rst_ni, .set_i(cut_i), .set_index_i(cut_msg_i), .clear_i(begins), .clear_index_i(asked_msg_i),
    .index_i(msg_q), .flag_o(cut_short), .ready_o(cut_ready)
  );
  assign answered_o = answered_active && answered_some;
  assign ready_o    = id_rdy && begun_ready && active_ready && spoilt_ready && some_ready && cut_ready;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      gaps_o <= '0;
    end else begin
      if (written_q) gaps_o[written_pdc_q] <= (written_ahead_q >> ReturnAhead) != '0;
      if (open_i)    gaps_o[open_info_i.pdc] <= 1'b0;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                        decided_o <= '0;
    else if (take_i && verdict_o.place) decided_o <= decided_o + 1'b1;
  end

  always_comb begin
    s = s_raw;
    if (!begun_q) begin
      s          = '0;
      s.expected = id.start_psn;
    end
    window = begun_q ? window_raw : '0;
    count  = count_raw;
    if (!some_q) begin
      count       = '0;
      count.order = piece_hash('0);
    end
  end

  logic                 written_q;
  logic [PdcW-1:0]      written_pdc_q;
  logic [PdcWindow-1:0] written_ahead_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= 1'b0;
    else         written_q <= write && !opens_here;
  end
  always_ff @(posedge clk_i) begin
    written_pdc_q   <= pdc_q;
    written_ahead_q <= d.ahead;
  end
  // The lowest zero of what follows bit 0, by groups of eight bits.
  localparam int unsigned RunGroups = PdcWindow / 8;
  logic [RunGroups-1:0][7:0]        groups;
  logic [RunGroups-1:0][2:0]        lowest;
  logic [$clog2(RunGroups)-1:0]     group;
  always_comb begin
    groups = {1'b0, written_ahead_q[PdcWindow-1:1]};
    lowest = '0;
    group  = '0;
    for (int unsigned g = 0; g < RunGroups; g++) begin
      for (int unsigned i = 0; i < 8; i++) begin
        if (!groups[g][7-i]) lowest[g] = 3'(7 - i);
      end
      if (groups[RunGroups-1-g] != '1) group = $clog2(RunGroups)'(RunGroups - 1 - g);
    end
    window_d.run   = {group, lowest[group]};
    window_d.ahead = (written_ahead_q >> 1) >> window_d.run;
    window_d.gap   = written_ahead_q != '0;
  end

  // -------------------------------------------------------------------- packet
  logic        trimmed;
  logic        in_ack;  // Data of a small READ; the ACK itself is heddle_pdc_tx's.
  logic        peer, stranger, known, is_data, is_error, expected, older, duplicate, early, jumps, named, ours, fits, torn, good, gone, urgent;
  logic        is_cp, is_query, is_probe;
  logic        in_window, came;
  logic [31:0] ahead, ahead_begun, ahead_anew, cack, cack_after, ack_offset;
  assign is_cp      = pkt_i.pds_type == PdsTypeCp;
  assign is_query   = is_cp && pkt_i.next_hdr == CpTypeAckRequest;
  assign is_probe   = is_cp && pkt_i.next_hdr == CpTypeProbe;
  assign peer       = alive_i[pdc_q] && pkt_i.dpdcid == id.spdcid && pkt_i.source_fa == id.fa &&
                      pkt_i.ipv6 == id.ipv6 && (in_ack || !s.bound || pkt_i.spdcid == s.tpdcid);
  assign stranger   = !s.bound && !in_ack && !is_query && !is_probe;  // Its PSN has to be one that the PDC can have.
  assign known      = peer && !(stranger && older);
  assign trimmed    = pkt_i.trim != TrimNone;
  assign in_ack     = pkt_i.pds_type == PdsTypeAck || pkt_i.pds_type == PdsTypeAckCc;
  assign is_data    = pkt_i.next_hdr == NextHdrResponseData && pkt_i.response == SesResponseResponseWData;
  assign is_error   = pkt_i.next_hdr == NextHdrResponse && pkt_i.response == SesResponseResponse &&
                      pkt_i.return_code > ReturnCodeOk;
  // Computed for either opening, so that the window does not wait for which it is.
  assign ahead_begun = pkt_i.psn - s_raw.expected;
  assign ahead_anew  = pkt_i.psn - id.start_psn;
  assign ahead       = begun_q ? ahead_begun : ahead_anew;
  assign expected   = pkt_i.psn == s.expected;
  assign in_window  = begun_q ? ahead_begun < 32'(PdcWindow) : ahead_anew < 32'(PdcWindow);
  assign came       = in_window && s.ahead[ahead[IndexW-1:0]];
  assign older      = begun_q ? ahead_begun >= OldestAck : ahead_anew >= OldestAck;
  // On ROD what follows a gap is taken once the target is known. A sender that retransmits it goes back, and what it began with is lost.
  logic passes;
  assign passes     = !id.rud && came && pkt_i.retx;
  assign duplicate  = (came && !passes) || older;
  assign jumps      = in_window && !expected && !came && (id.rud || (s.bound && !trimmed));  // Over a gap.
  assign early      = !id.rud && !expected && !jumps && !duplicate && ahead < 32'(RodWindow);
  assign cack       = s.expected - 32'd1;

  // A packet of a READ of this PDC, in the opening that it is in; one that was asked for and did not come.
  logic [31:0]      answered;  // By an ACK.
  logic [PktsW-1:0] limit;
  assign answered = pkt_i.psn + 32'($signed(pkt_i.offset));
  assign named = id_fits && active && asked.spdcid == id.spdcid && (!in_ack || (asked.psn == answered && !count.acked));
  assign limit = cut_short ? cut : asked.packets;
  assign ours  = named && count.packets < limit;
  assign gone  = !tx_alive_i[read.ctx] || tx_gen_i[read.ctx] != read.gen;
  // As much as its request requires, at its place.
  logic [31:0]      reach, mtu_rest;
  logic [3:0]       mtu_log2;
  logic [PktsW-1:0] index, final_index, drift_after;
  logic             last_piece, final_packet;
  always_comb begin
    unique case (1'b1)
      port_i.payload_mtu[13]: mtu_log2 = 4'd13;
      port_i.payload_mtu[12]: mtu_log2 = 4'd12;
      port_i.payload_mtu[11]: mtu_log2 = 4'd11;
      default:                mtu_log2 = 4'd10;
    endcase
  end
  assign mtu_rest     = 32'(port_i.payload_mtu[13:0]) - 32'd1;
  assign index        = PktsW'(pkt_i.message_offset >> mtu_log2);
  assign final_index  = PktsW'((read.length - 32'd1) >> mtu_log2);
  assign reach        = pkt_i.message_offset + 32'(pkt_i.payload_bytes);
  assign last_piece   = index == final_index;
  assign fits         = is_data && (pkt_i.message_offset & mtu_rest) == '0 && index < asked.packets && !spoilt &&
                        (last_piece ? pkt_i.payload_bytes != '0 && reach == read.length
                                    : pkt_i.payload_bytes == port_i.payload_mtu[13:0] && !in_ack);
  logic [PktsW-1:0] hash_q, due_hash;  // The hash of the piece; the one that makes the sums equal.
  always_ff @(posedge clk_i) hash_q <= piece_hash(index);
  assign due_hash     = count.drift + count.order;
  assign drift_after  = due_hash - hash_q;
  assign final_packet = count.packets == final_index;
  assign torn         = final_packet && due_hash != hash_q;
  assign good         = ours && fits && !torn;
  assign urgent       = pkt_i.ar || pkt_i.retx || pkt_i.ce || s.unacked == AckEvery || (id.rud && (window.gap || jumps));

  logic     accept, behind, reported;
  rod_gap_t gap_after, gap_closed;
  trim_e    next_lost, lost;  // With an accepted packet: the next one, which was trimmed, is not on its way.
  heddle_rod_gap u_rod_gap (
    .gap_i(s.gap), .ahead_i(ahead[GapW-1:0]), .retx_i(pkt_i.retx), .trim_i(pkt_i.trim), .psn_i(pkt_i.psn[GapW-1:0]),
    .report_o(reported), .gap_o(gap_after), .lost_o(next_lost), .closed_o(gap_closed)
  );
  assign lost = jumps ? TrimNone : next_lost;
  // ROD: the first packet after one that is missing; that one is missing alone. A retransmission is one of a pass that
  // went back.
  logic             after_gap, alone_missing;
  logic [IndexW-1:0] one_before, two_before;
  assign one_before    = ahead[IndexW-1:0] - 1'b1;
  assign two_before    = ahead[IndexW-1:0] - IndexW'(2);
  assign after_gap     = !id.rud && jumps && !s.ahead[one_before] && (!s.gap.open || pkt_i.retx);
  assign alone_missing = !pkt_i.retx && (one_before == '0 || s.ahead[two_before]);
  logic [31:0] received_after;
  assign received_after = s.received + (32'(pkt_i.payload_bytes) + nominal);
  logic arrives;     // Its PSN is one that is missing. Bit 0 of the bitmap is never set.
  assign arrives  = id.rud || s.bound ? in_window && !came : expected;
  assign accept   = peer && !trimmed && (in_ack || (arrives && !is_query && !is_probe));
  assign behind   = known && !in_ack && !is_query && !is_probe && !id.rud && (early || (trimmed && expected));
  // The expected packet moves the window.
  logic                 moves;
  logic [31:0]          cack_moved;
  logic [PdcWindow-1:0] ahead_after;
  assign moves       = accept && expected;
  assign cack_moved  = s.expected + 32'(window.run);
  assign cack_after  = moves ? cack_moved : cack;
  assign ack_offset  = moves ? 32'd0 - 32'(window.run) : ahead + 32'd1;
  assign ahead_after = expected ? window.ahead : s.ahead | (PdcWindow'(jumps) << ahead[IndexW-1:0]);
  assign count_up   = take_i && v.settle;
  assign count_d.packets = count.packets + 1'b1;
  assign count_d.order   = piece_hash(count.packets + 1'b1);
  assign count_d.drift   = drift_after;
  assign count_d.acked   = count.acked || in_ack;
  // A packet that leaves the PDC as it is writes back its state.
  assign write    = (take_i && peer && !in_ack && !is_probe) || (late_take_i && late_o.respond);

  always_comb begin
    d = s;
    if (late_take_i) begin
      d.unacked  = '0;
    end else if (accept) begin
      d.bound    = 1'b1;
      d.tpdcid   = pkt_i.spdcid;
      d.mac      = pkt_i.source_mac;
      d.entropy  = pkt_i.source_port;
      d.dscp     = pkt_i.dscp;
      d.received = received_after;
      d.received_at = now_ns_i[22:7];
      if (expected) d.expected = cack_moved + 32'd1;
      d.ahead    = ahead_after;
      d.gap      = jumps ? s.gap : gap_closed;
      d.unacked  = urgent && lost == TrimNone ? '0 : s.unacked == AckEvery ? s.unacked : s.unacked + 1'b1;
    end else if (behind) begin
      d.gap      = gap_after;
      if (!early) begin
        d.gap      = '0;
        d.gap.open = 1'b1;
      end
    end else if (known && duplicate) begin
      d.unacked  = '0;
    end
  end

  // --------------------------------------------------------------- delayed ACKs
  logic              ruled, any_due, settled, paid;
  logic [15:0]       waited;  // Since the last packet.
  logic [31:0]       rounded, late_rounded;
  logic [PdcW-1:0]   late_pdc;
  logic [NumPdc-1:0] due;
  assign ruled        = transport_i.congestion[0];
  assign waited       = now_ns_i[22:7] - s.received_at;
  assign late_rounded = s.received + 32'd255;
  assign rounded      = accept ? received_after + 32'd255 : late_rounded;
  // d.unacked == 0, without waiting for it.
  assign settled      = accept ? urgent && lost == TrimNone : (!behind && known && duplicate) || s.unacked == '0;
  assign paid         = late_take_i || (write && settled);
  // A cycle later. A debt that was paid may be looked at once more: nothing is owed then.
  logic            owes_now_q, paid_q, pending;
  logic [PdcW-1:0] owes_pdc_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      owes_now_q <= 1'b0;
      paid_q     <= 1'b0;
    end else begin
      owes_now_q <= write && !late_take_i && (accept || behind) && !settled;
      paid_q     <= paid;
    end
  end
  always_ff @(posedge clk_i) owes_pdc_q <= pdc_q;
  heddle_ack_delay u_ack_delay (
    .clk_i, .rst_ni, .tick_i, .delay_i(port_i.ack_delay_ticks),
    .set_i(owes_now_q), .clear_i(paid_q), .pdc_i(owes_pdc_q),
    .due_o(due), .pending_o(pending)
  );
  heddle_group_pick #(.NumSrc(NumPdc)) u_due (
    .clk_i, .rst_ni, .valid_i(due), .drop_i(paid_q), .drop_idx_i(owes_pdc_q), .valid_o(any_due), .idx_o(late_pdc),
    .take_i(late_look_i)
  );
  always_comb begin
    late_o.due     = any_due;
    late_o.pending = pending || (owes_now_q && port_i.ack_delay_ticks != '0);
    // The PDC may have ended, or begun anew.
    late_o.respond = alive_i[pdc_q] && begun_q && s.unacked != '0;
    late_o.answer         = '0;
    late_o.answer.ipv6    = id.ipv6;
    late_o.answer.fa      = id.fa;
    late_o.answer.mac     = s.mac;
    late_o.answer.entropy = s.entropy;
    late_o.answer.dscp    = s.dscp;
    late_o.answer.spdcid  = id.spdcid;
    late_o.answer.dpdcid  = s.tpdcid;
    late_o.answer.kind    = ResponseNone;
    late_o.answer.cack    = cack;
    late_o.answer.cc      = id.rud || ruled;
    late_o.answer.sack_bitmap = s.ahead;
    if (ruled) begin
      late_o.answer.service_time = waited == '0 ? 16'd1 : waited;
      late_o.answer.rcvd_bytes   = late_rounded[31:8];
    end
  end

  assign idle_o = due == '0;

  // ------------------------------------------------------------------- verdict
  return_verdict_t v;
  always_comb begin
    v              = '0;
    v.rsp.ipv6     = pkt_i.ipv6;
    v.rsp.fa       = pkt_i.source_fa;
    v.rsp.mac      = pkt_i.source_mac;
    v.rsp.entropy  = pkt_i.source_port;
    v.rsp.dscp     = trimmed ? s.dscp : pkt_i.dscp;
    v.rsp.m        = pkt_i.ce;
    v.rsp.retx     = pkt_i.retx;
    v.rsp.spdcid   = id.spdcid;
    v.rsp.dpdcid   = pkt_i.spdcid;
    v.rsp.kind     = ResponseNone;
    v.rsp.cack     = cack_after;
    v.rsp.nack_psn = pkt_i.psn;
    v.rsp.cc       = id.rud || ruled;
    v.rsp.sack_bitmap = accept ? ahead_after : s.ahead;
    if (ruled) begin
      v.rsp.service_time = 16'd1;
      v.rsp.rcvd_bytes   = rounded[31:8];
    end

    // Whatever the packet carries leaves the payload queue.
    v.settle = peer && ours && !trimmed && (in_ack ? is_data : arrives && !is_query && !is_probe);
    v.place  = pkt_i.payload_bytes != '0 || v.settle;
    v.stream = pkt_i.payload_bytes;
    v.spdcid = id.spdcid;
    v.msg    = msg_q;
    v.owner  = read.owner;
    v.segmented = read.segmented;
    v.iova   = (read.segmented ? '0 : read.iova) + 64'(pkt_i.message_offset);

    if (pkt_i.dpdcid[15 -: SlotBits] != port_i.slot[SlotBits-1:0]) begin
      v.stat[trimmed ? StatisticDropTrimmed : StatisticDropPdcid] = 1'b1;  // Another function's: no answer.
    end else if (trimmed && !(known && (duplicate || expected || early || jumps))) begin
      v.stat[StatisticDropTrimmed] = 1'b1;
    end else if (!known) begin
      v.respond    = !in_ack;
      v.rsp.kind   = ResponseNack;
      v.rsp.spdcid = '0;
      v.rsp.code   = 8'(NackCodeInvDpdcid);
      v.stat[StatisticDropPdcid] = 1'b1;
    end else if (is_probe) begin
      v.respond        = 1'b1;
      v.rsp.cc         = 1'b0;
      v.rsp.probe      = 1'b1;
      v.rsp.ack_offset = pkt_i.offset;
    end else if (is_query && !duplicate) begin
      v.respond  = 1'b1;
      v.rsp.kind = ResponseNack;
      v.rsp.code = 8'(NackCodePktNotRcvd);
    end else if (accept) begin
      v.respond    = urgent && !in_ack;
      v.rsp.ack_offset = ack_offset[15:0];
      if (lost != TrimNone && !in_ack) begin  // What is accepted is acknowledged later.
        v.respond      = 1'b1;
        v.rsp.kind     = ResponseNack;
        v.rsp.retx     = 1'b1;
        v.rsp.nack_psn = pkt_i.psn + 32'd1;
        v.rsp.code     = 8'(lost == TrimLasthop ? NackCodeTrimmedLasthop : NackCodeTrimmed);
      end
      // The sender retransmits one that is missing alone, and goes back for more.
      if (after_gap && !in_ack) begin
        v.respond      = 1'b1;
        v.rsp.kind     = ResponseNack;
        v.rsp.nack_psn = alone_missing ? pkt_i.psn - 32'd1 : pkt_i.psn;
        v.rsp.code     = 8'(alone_missing ? NackCodePktNotRcvd : NackCodeRodOoo);
        if (!alone_missing) v.rsp.cack = s.expected;
      end
      v.bytes      = good && !gone ? pkt_i.payload_bytes : '0;
      v.first      = good && count.packets == '0;
      v.last       = good && final_packet;
      v.fail       = v.settle && !good;
      v.code       = is_error && !in_ack ? pkt_i.return_code : 6'(ReturnCodeUncor);
      v.stat[StatisticRxReturnData] = good;
      v.stat[StatisticDropSes]      = !good && !in_ack && !(ours && is_error) &&
                                      (named || !(is_data || is_error || is_cp));
    end else if (duplicate) begin
      v.respond        = 1'b1;
      v.rsp.ack_offset = ack_offset[15:0];
      v.stat[StatisticRxDuplicates] = !is_query;
    end else if (trimmed) begin
      v.respond  = expected || id.rud || reported;
      v.rsp.kind = ResponseNack;
      v.rsp.code = 8'(pkt_i.trim == TrimLasthop ? NackCodeTrimmedLasthop : NackCodeTrimmed);
      v.stat[StatisticRxTrimmed] = 1'b1;
    end else if (early) begin
      v.respond  = reported;
      v.rsp.kind = ResponseNack;
      v.rsp.code = 8'(NackCodeRodOoo);
      v.rsp.cack = s.expected;
      v.stat[StatisticRxOutOfOrder] = 1'b1;
    end else begin
      v.respond  = 1'b1;
      v.rsp.kind = ResponseNack;
      v.rsp.code = 8'(NackCodePsnOorWindow);
      v.stat[StatisticDropPsn] = 1'b1;
    end
  end
  assign verdict_o = v;

  logic unused;
  assign unused = ^{unused_id_err, unused_state_err, unused_read_err, unused_count_err, unused_asked_err,
                    unused_cut_err, unused_cut_rdy, unused_window_err, unused_window_rdy, unused_read_rdy, unused_count_rdy,
                    unused_asked_rdy, unused_state_rdy, ack_offset, rounded, late_rounded, now_ns_i, port_i,
                    transport_i, pkt_i};

  `HEDDLE_ASSERT(Settled_A, write && !late_take_i |-> settled == (d.unacked == '0))
  `HEDDLE_ASSERT(Arrives_A, take_i && !trimmed |-> arrives == (expected || jumps))
  `HEDDLE_ASSERT(SomeCame_A, take_i && verdict_o.settle && !look_i && !begins_here |=> some_q)
  `HEDDLE_ASSERT(AskedBeforeItEnds_A, !(asked_i && end_i && asked_msg_i == end_msg_i))
  `HEDDLE_ASSERT(CutAfterItWasAsked_A, !(asked_i && cut_i && asked_msg_i == cut_msg_i))
endmodule
