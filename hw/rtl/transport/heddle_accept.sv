// SPDX-License-Identifier: Apache-2.0
// Target of PDCs: accepts or refuses each packet.
//
// Atomic:  the PSN advances only when everything the packet needs is reserved (receive
//          buffer, completion credit); otherwise NACK. A packet enters when the queues of what it leaves have room.
// Ordered: ROD: only the expected PSN is accepted; NACKs (ROD_OOO) as heddle_rod_gap says; duplicates are
//          acknowledged again with a default response and dropped.
// Reorder: what follows a gap on ROD may be kept by heddle_rx_reorder, which offers it again.
// RUD:     packets that heddle_accept_outcome takes ahead of a gap are placed at once; ACKs report all that came.
// Trimmed: a request that the network trimmed is NACKed with its PSN, if that is missing, on an open PDC; one per gap on
//          ROD, but the expected one each time. A duplicate is acknowledged again; all else is discarded and counted.
// Listens: until the function listens (heddle_rx_queue), requests of an open PDC or with SYN are dropped without an
//          answer; the initiator retransmits them.
// Opens a PDC on SYN (heddle_target_names). Without a free PDC: NO_PDC_AVAIL, and the initiator of another one, the least
// used first, is requested to close it (heddle_target_jobs). A closed PDC leaves a tombstone: its SYNs are answered CLOSING.
// Passes ACK and NACK on: of our own PDCs to the PDC unit, of target PDCs to heddle_return_tx.
// Return:  data of our READs are heddle_return_rx's to judge; its verdict takes effect here in their turn.
//          A READ is handed to heddle_return_tx packet by packet, behind what was accepted before it.
// With congestion control (transport_i), every ACK is an ACK_CC that says how long it waited and what came.
// Owes no ACK for longer than ack_delay_ticks: what was accepted and not acknowledged by then is.
// Table:   messages of RUD PDCs that were opened ahead of a gap, TableMessages for each; they end before their PDC is
//          closed or released.
// Visible: a message with dc=1 is acknowledged when heddle_place has reported its writes.
// Gone:    a message whose receive context was drained takes nothing more, whatever the context is by then.
// RMA:     the region table is asked for every request; its answer is part of the decision. A drain
//          token lets no packet pass between the answer and the placement.
// Close:   each `close_i` asks the initiators of all PDCs once, in the midst of a message too: they close when nothing
//          is left to send.
// Forgets a PDC that was silent for two to three times dead_ticks, when its initiator has ended it
// long since or is gone; a message that is open ends with initiator_error.
// One packet every two cycles, through these stages:
//   0  the sets of its name are read;
//   1  its PDC's entry, message, receive context and region;
//   2  heddle_accept_class and heddle_return_rx judge it;
//   3  heddle_accept_outcome decides: buffer and credit are taken; ACKs and NACKs of our PDCs are queued;
//   4  heddle_accept_entry: what changes is written;
//   5  heddle_accept_answer: record and return job are queued,
//   6  and the answer.
// Squash:  a packet enters ahead of the verdict on its frame, which is there in stage 2. Nothing is written until then.
// Forward: stage 2 gets what stage 4 writes for the same PDC, if that is plain (accept_decision_t); else it reads the
//          entry again. A packet that may open or close a PDC lets none enter before it is in stage 4.

`include "heddle_assert.svh"

module heddle_accept
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t        port_i,
  input  transport_cfg_t   transport_i,
  input  logic             close_i,         // Strobe: ask the initiator of each PDC to close it.
  input  logic [31:0]      now_ns_i,
  input  logic             tick_i,

  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  input  rx_packet_t       pkt_i,
  input  logic             pkt_squash_i,    // Two cycles after it was taken: the packet is void.

  output logic             look_rel_o,      // heddle_rx_queue.
  output logic [23:0]      look_job_o,
  output logic [11:0]      look_pid_o,
  output logic [11:0]      look_ri_o,
  input  logic             look_hit_i,
  input  return_code_e     look_miss_i,
  input  logic [RxW-1:0]   look_ctx_i,
  input  logic [23:0]      look_job_i,
  input  logic             look_event_i,
  input  logic             listens_i,       // As of the lookup.
  output logic [RxW-1:0]   head_ctx_o,
  input  logic             head_valid_i,
  input  rx_buffer_t       head_i,
  input  logic [15:0]      head_released_i,
  input  logic             head_spare_i,    // There are more than the missing packets need.
  output logic             pop_o,
  input  logic [NumRx-1:0]           rx_alive_i,
  input  logic [NumRx-1:0][GenW-1:0] rx_gen_i,
  input  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] rx_counters_i,
  input  logic             drain_valid_i,
  input  logic             drain_rx_i,      // Of a receive context: its open messages are marked first.
  output logic             drain_ready_o,

  output logic [PdcW-1:0]  reorder_pdc_o,   // heddle_rx_reorder: PDC of `back_pkt_o` in stage 2.
  input  reorder_t         reorder_i,       // Answered at once.
  output reorder_verdict_t reorder_o,       // In the next cycle or later, of this packet:
  output rx_packet_t       decided_pkt_o,

  output rma_request_t     region_o,        // heddle_region: answered in the next cycle.
  input  rma_answer_t      region_i,
  input  logic             region_ready_i,

  input  logic [NumCq-1:0] credit_ok_i,
  input  logic [NumCq-1:0] credit_spare_i,
  output logic             credit_take_o,
  output logic [CqW-1:0]   credit_cq_o,

  output logic             back_look_o,     // heddle_return_rx.
  output rx_packet_t       back_pkt_o,
  output logic             back_take_o,
  input  return_verdict_t  back_i,
  input  return_late_t     back_late_i,     // Its delayed ACKs leave from here, too.
  output logic             back_late_look_o,
  output logic             back_late_take_o,
  input  logic             back_ready_i,
  input  logic [NumPdc-1:0] return_room_i,  // heddle_return_tx; a job goes when heddle_place says so.
  input  logic             report_room_i,   // heddle_read_reports.
  output logic             job_valid_o,
  input  logic             job_ready_i,
  output return_job_t      job_o,

  output logic             rsp_valid_o,     // ACK and NACK to send.
  input  logic             rsp_ready_i,
  output response_t        rsp_o,

  output logic             place_valid_o,
  input  logic             place_ready_i,
  output place_t           place_o,
  input  logic             visible_i,       // Strobe: the messages up to this PSN of ...
  input  logic [31:0]      visible_psn_i,
  input  logic [PdcW-1:0]  visible_pdc_i,

  output logic             ack_valid_o,     // To heddle_pdc_tx, or heddle_return_tx by its role.
  input  logic             ack_ready_i,
  output ack_event_t       ack_o,

  output logic [NumStat-1:0] stat_o,
  output logic             pending_o,       // A delayed ACK waits for its time.
  output logic             deadline_valid_o,  // A message is open, whose initiator may be silent.
  output logic [31:0]      deadline_o,        // Ticks until the silence is judged.
  output logic [PdcW:0]    open_o,          // So many PDCs are open.
  output logic             idle_o
);
  // ------------------------------------------------------------------ pipeline
  // Packets are two cycles apart, so stages 1 and 2 share registers, 3 and 4, 5 and 6.
  logic             p1_valid_q, p2_valid_q, p3_valid_q, p4_valid_q, p5_valid_q, p6_valid_q;
  rx_packet_t       pkt_q, pkt3_q, pkt5_q;
  accept_class_t    class_d, class_q, class5_q;
  accept_decision_t decision_d, decision_q, decision5_q;
  accept_effect_t   effect_d, effect_q;
  target_job_e      job_q;     // In stages 1 and 2 is this, no packet.
  logic             p0_ready, p0_take, p0_job, p2_hold, p2_done, again_q;
  logic             between;   // No packet is in stages 1 to 4.
  logic             room_q;    // For what leaves.
  logic             changing;  // A packet may open or close a PDC.
  logic             hit_q, is_close, names_ready, entries_ready, marks_ready, jobs_ready, marking, mark_settled;
  logic             job_first, job_again_q;  // A job enters next; one that has to come again at once.
  logic [1:0]       back_step_q;             // An ACK of heddle_return_rx is looked at.

  assign is_close    = pkt_q.pds_type == PdsTypeCp && pkt_q.next_hdr == CpTypeCloseCommand;
  assign changing    = (p2_valid_q && (job_q == JobNone ? (pkt_q.syn && !hit_q) || is_close : job_q == JobForget)) ||
                       (p3_valid_q && (class_q.fresh || class_q.is_close || class_q.job == JobForget)) ||
                       (p4_valid_q && (class_q.fresh || class_q.job == JobForget));
  assign p0_ready    = names_ready && entries_ready && marks_ready && jobs_ready && back_ready_i && region_ready_i &&
                       room_q && !p1_valid_q && !p2_hold && !changing && back_step_q == '0;
  assign pkt_ready_o = p0_ready && !job_first && !job_again_q && (!drain_valid_i || (marking && mark_settled));
  assign p0_take     = pkt_valid_i && pkt_ready_o;
  assign p2_done     = p2_valid_q && !p2_hold && !pkt_squash_i;
  assign between     = !p1_valid_q && !p2_valid_q && !p3_valid_q && !p4_valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      p1_valid_q <= 1'b0;
      p2_valid_q <= 1'b0;
      p3_valid_q <= 1'b0;
      p4_valid_q <= 1'b0;
      p5_valid_q <= 1'b0;
      p6_valid_q <= 1'b0;
      again_q    <= 1'b0;
    end else begin
      p1_valid_q <= p0_take || p0_job;
      p2_valid_q <= p1_valid_q || (p2_hold && !pkt_squash_i);
      p3_valid_q <= p2_done;
      p4_valid_q <= p3_valid_q;
      p5_valid_q <= p4_valid_q;
      p6_valid_q <= p5_valid_q;
      again_q    <= p2_hold && !again_q && !pkt_squash_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (p0_take) pkt_q <= pkt_i;
  end

  // ------------------------------------------------------- stages 0 and 1: reads
  logic              hit, name_room, name_room_q, grave_found, grave_room;
  logic [NumPdc-1:0] open;
  logic [PdcW-1:0]   name_pdc, pdc, pdc_q, pdc3_q, job_pdc_q;
  target_pdc_t       entry, entry_d, entry3_q, next_entry;
  heddle_target_names u_names (
    .clk_i, .rst_ni, .tick_i, .transport_i,
    .look_i(p0_take), .between_i(between), .pkt_i,
    .looked_i(p1_valid_q && job_q == JobNone), .start_i(pkt_q.psn - 32'(pkt_q.psn_offset)),
    .job_i(p2_valid_q && job_q == JobForget), .job_ipv6_i(entry.ipv6), .job_fa_i(entry.fa), .job_spdcid_i(entry.spdcid),
    .hit_o(hit), .pdc_o(name_pdc), .room_o(name_room), .grave_found_o(grave_found), .grave_room_o(grave_room),
    .create_i(p4_valid_q && effect_d.create), .close_i(p4_valid_q && effect_d.close),
    .keep_i(p4_valid_q && effect_d.bury), .ipv6_i(pkt3_q.ipv6), .fa_i(pkt3_q.source_fa), .spdcid_i(pkt3_q.spdcid),
    .start_psn_i(entry3_q.start_psn), .pdc_i(pdc3_q),
    .open_o(open), .count_o(open_o), .ready_o(names_ready)
  );
  assign pdc = job_q != JobNone ? job_pdc_q : pkt_q.syn ? name_pdc : pkt_q.dpdcid[PdcW-1:0];

  logic entry_error;
  heddle_mem #(.Width($bits(target_pdc_t)), .Depth(NumPdc)) u_entries (
    .clk_i, .rst_ni, .wen_i(p4_valid_q && decision_q.write), .waddr_i(pdc3_q), .wdata_i(next_entry),
    .raddr_i(p1_valid_q ? pdc : pdc_q), .rdata_o(entry),
    .error_o(entry_error), .ready_o(entries_ready)
  );

  // Messages of the table: of the packet that enters stage 0, by the PDC that it names and its message ID. A SYN names
  // none, and opens none. A job has the one at `job_place`.
  logic                     looked_q, looked3_q, named_q, unused_message_error, unused_message_ready;
  logic [TableMessageW-1:0] place_q, place3_q, place5_q, job_place, job_place_q, again_place_q;
  logic [PdcW-1:0]          job_pdc;
  target_message_t          message, message_q, next_message;
  heddle_mem #(.Width($bits(target_message_t)), .Depth(NumPdc * TableMessages), .Init(1'b0)) u_messages (
    .clk_i, .rst_ni, .wen_i(p4_valid_q && decision_q.keep), .waddr_i({pdc3_q, place3_q}), .wdata_i(next_message),
    .raddr_i(p2_hold ? {pdc_q, place_q} : job_first ? {job_pdc, job_place}
                              : {pkt_i.dpdcid[PdcW-1:0], pkt_i.message_id[TableMessageW-1:0]}),
    .rdata_o(message), .error_o(unused_message_error), .ready_o(unused_message_ready)
  );

  logic [RxW-1:0] ctx_q;
  logic           look_hit_q, look_event_q, listens_q;
  return_code_e   look_miss_q;
  logic [23:0]    look_job_q;
  rma_answer_t    region_q, region3_q, region5_q;
  assign look_rel_o = pkt_q.rel;
  assign look_job_o = pkt_q.job_id;
  assign look_pid_o = pkt_q.pid_on_fep;
  assign look_ri_o  = pkt_q.resource_index;
  assign head_ctx_o = p1_valid_q ? look_ctx_i : ctx_q;
  always_comb begin
    region_o                = '0;
    region_o.key            = pkt_i.match_bits;
    region_o.offset         = pkt_i.buffer_offset;
    region_o.length         = pkt_i.request_length;
    region_o.message_offset = pkt_i.message_offset;
    region_o.job_id         = pkt_i.job_id;
    region_o.rel            = pkt_i.rel;
    region_o.pid_on_fep     = pkt_i.pid_on_fep;
    region_o.resource_index = pkt_i.resource_index;
    region_o.needs          = pkt_i.opcode == SesOpcodeRead ? RegionFlagRemoteRead :
                                                              RegionFlagRemoteWrite;
  end
  always_ff @(posedge clk_i) begin
    if (p1_valid_q) begin
      hit_q         <= hit;
      name_room_q   <= name_room;
      pdc_q         <= pdc;
      looked_q      <= !pkt_q.syn;
      place_q       <= job_q != JobNone ? job_place_q : pkt_q.message_id[TableMessageW-1:0];
      ctx_q         <= look_ctx_i;
      look_hit_q    <= look_hit_i;
      look_miss_q   <= look_miss_i;
      look_job_q    <= look_job_i;
      look_event_q  <= look_event_i;
      listens_q     <= listens_i;
      region_q      <= region_i;
    end
    if (p1_valid_q || again_q) begin
      named_q   <= job_q != JobNone ? job_named_q : !pkt_q.syn && message.message_id == pkt_q.message_id;
      message_q <= message;
    end
  end

  // ------------------------------------------------------------ stage 2: class
  // The packet in stage 4 may be of the same PDC: what it writes is forwarded, or read again. The table is read a
  // cycle before the entry.
  logic             alike, alike_q, missed_q, back, back3_q, back5_q, return_room_q, job_named_q, job_reaps_q;
  logic [PdcW-1:0]  pdc5_q;
  logic [CqW-1:0]   cq3_q;
  target_pdc_t      early, after_d, after_q;
  target_message_t  own_d, own3_q;
  reorder_t         reorder_q;
  return_verdict_t  returned3_q, returned5_q;
  assign alike   = alike_q && decision_q.write;
  assign p2_hold = (alike && !decision_q.plain) || (p2_valid_q && (missed_q || again_q));
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      alike_q  <= 1'b0;
      missed_q <= 1'b0;
    end else begin
      alike_q  <= p1_valid_q && p3_valid_q && pdc3_q == pdc;
      missed_q <= p1_valid_q && p4_valid_q && decision_q.keep &&
                  pdc3_q == (job_q != JobNone ? job_pdc_q : pkt_q.dpdcid[PdcW-1:0]);
    end
  end
  always_comb begin
    early = entry;
    if (alike_q && decision_q.accepts) begin
      early.expected = decision_q.expected;
      early.ahead    = after_d.ahead;
      if (decision_q.idles) early.message.state = MessageNone;
    end
  end
  heddle_accept_class u_class (
    .port_i, .job_i(job_q), .reaps_i(job_reaps_q), .pkt_i(pkt_q), .pdc_i(pdc_q), .hit_i(hit_q), .room_i(name_room_q),
    .closed_i(grave_found), .grave_i(grave_room), .entry_i(early), .whole_i(alike ? next_entry : entry),
    .looked_i(looked_q), .place_i(place_q), .message_i(message_q), .named_i(named_q),
    .look_hit_i(look_hit_q), .look_miss_i(look_miss_q), .look_ctx_i(ctx_q), .look_owner_i(head_i.owner),
    .look_job_i(look_job_q), .look_event_i(look_event_q), .listens_i(listens_q), .region_i(region_q),
    .rx_alive_i, .rx_gen_i, .rx_counters_i, .class_o(class_d), .entry_o(entry_d), .own_o(own_d)
  );

  // Data of our READs. Also the ACK of a small READ, which brings them, and control packets about their PSNs.
  assign back = job_q == JobNone && pkt_q.dpdcid[PdcRoleBit] == RoleInitiator && !pkt_q.syn && !pkt_q.probe &&
                (((pkt_q.pds_type == PdsTypeRodReq || pkt_q.pds_type == PdsTypeRudReq) &&
                  (pkt_q.next_hdr != NextHdrRequestStd || pkt_q.trim != TrimNone)) ||
                 (pkt_q.pds_type == PdsTypeCp &&
                  (pkt_q.next_hdr == CpTypeAckRequest || pkt_q.next_hdr == CpTypeProbe ||
                   pkt_q.next_hdr == CpTypeCloseRequest)) ||
                 ((pkt_q.pds_type == PdsTypeAck || pkt_q.pds_type == PdsTypeAckCc) &&
                  pkt_q.next_hdr == NextHdrResponseData));
  assign back_look_o = p1_valid_q && job_q == JobNone;
  assign back_pkt_o  = pkt_q;
  assign back_take_o = p2_done && back;

  assign reorder_pdc_o = pdc_q;
  always_ff @(posedge clk_i) begin
    if (p2_valid_q) begin
      pkt3_q        <= pkt_q;
      pdc3_q        <= pdc_q;
      place3_q      <= place_q;
      class_q       <= class_d;
      entry3_q      <= entry_d;
      own3_q        <= own_d;
      looked3_q     <= looked_q;
      cq3_q         <= head_i.cq;
      region3_q     <= region_q;
      reorder_q     <= reorder_i;
      return_room_q <= return_room_i[pdc_q];
      back3_q       <= back;
      returned3_q   <= back_i;
    end
  end

  // ---------------------------------------------------------- stage 3: outcome
  rx_buffer_t  head4_q;
  logic [15:0] released4_q;
  logic        ruled;   // Congestion control is on.
  assign ruled = transport_i.congestion[0];
  heddle_accept_outcome u_outcome (
    .ruled_i(ruled), .pkt_i(pkt3_q), .class_i(class_q), .entry_i(entry3_q), .looked_i(looked3_q),
    .ctx_i(head_i.ctx), .return_room_i(return_room_q), .report_room_i, .head_valid_i, .head_spare_i,
    .credit_ok_i(credit_ok_i[cq3_q]), .credit_spare_i(credit_spare_i[cq3_q]), .reorder_i(reorder_q),
    .decision_o(decision_d)
  );
  ack_event_t heard;
  logic       forwards;
  heddle_accept_forward u_forward (.pkt_i(pkt3_q), .class_i(class_q), .valid_o(forwards), .ack_o(heard));
  assign pop_o         = p3_valid_q && decision_d.take;
  assign credit_take_o = p3_valid_q && decision_d.credit;
  assign credit_cq_o   = cq3_q;
  assign decided_pkt_o = pkt3_q;
  always_comb begin
    reorder_o          = '0;
    reorder_o.decided  = p3_valid_q && class_q.job == JobNone;
    reorder_o.keep     = decision_d.outcome == OutcomeReorder;
    reorder_o.early    = decision_d.stat[StatisticRxOutOfOrder];
    reorder_o.moved    = p3_valid_q && decision_d.write;
    reorder_o.ended    = p3_valid_q && (decision_d.outcome == OutcomeClose ||
                                        (decision_d.outcome == OutcomeForget && !class_q.in_table));
    reorder_o.pdc      = pdc3_q;
    reorder_o.expected = decision_d.outcome == OutcomeAccept ? decision_d.expected : entry3_q.expected;
  end
  always_ff @(posedge clk_i) begin
    if (p3_valid_q) begin
      decision_q  <= decision_d;
      head4_q     <= head_i;
      released4_q <= head_released_i;
    end
  end

  // ------------------------------------------------------------ stage 4: entry
  logic [31:0] seen_psn_q;  // The job has seen messages up to this PSN.
  heddle_accept_entry u_entry (
    .port_i, .now_i(now_ns_i[22:7]), .pkt_i(pkt3_q), .class_i(class_q), .decision_i(decision_q), .entry_i(entry3_q),
    .own_i(own3_q), .place_i(place3_q), .head_i(head4_q), .head_released_i(released4_q),
    .region_counter_i(region3_q.counter), .seen_psn_i(seen_psn_q), .rx_counters_i,
    .effect_o(effect_d), .after_o(after_d), .entry_o(next_entry), .message_o(next_message)
  );
  always_ff @(posedge clk_i) begin
    if (p4_valid_q) begin
      pkt5_q      <= pkt3_q;
      pdc5_q      <= pdc3_q;
      place5_q    <= place3_q;
      class5_q    <= class_q;
      decision5_q <= decision_q;
      effect_q    <= effect_d;
      after_q     <= after_d;
      region5_q   <= region3_q;
      back5_q     <= back3_q;
      returned5_q <= returned3_q;
    end
  end

  // ------------------------------------------------------ stages 5 and 6: answer
  response_t   answer;
  place_t      record, back_record;
  return_job_t handed;
  logic [31:0] cack, cack_q;
  logic        to_error, to_error_q, places;
  heddle_cack u_cack (.entry_i(after_q), .cack_o(cack), .to_error_o(to_error));
  always_ff @(posedge clk_i) begin
    cack_q     <= cack;
    to_error_q <= to_error;
  end
  heddle_accept_answer u_answer (
    .ruled_i(ruled), .pkt_i(pkt5_q), .class_i(class5_q), .decision_i(decision5_q), .effect_i(effect_q),
    .after_i(after_q), .cack_i(cack_q), .to_error_i(to_error_q), .pdc_i(pdc5_q), .place_i(place5_q), .region_i(region5_q),
    .rsp_o(answer), .place_o(places), .record_o(record), .job_o(handed)
  );
  always_comb begin
    back_record           = '0;
    back_record.stream    = returned5_q.stream;
    back_record.bytes     = returned5_q.bytes;
    back_record.iova      = returned5_q.iova;
    back_record.spdcid    = returned5_q.spdcid;
    back_record.ev.owner  = returned5_q.owner;
    back_record.back      = 1'b1;
    back_record.segmented = returned5_q.segmented;
    back_record.settle    = returned5_q.settle;
    back_record.msg       = returned5_q.msg;
    back_record.fail      = returned5_q.fail;
    back_record.code      = returned5_q.code;
  end
  assign stat_o = p5_valid_q ? effect_q.stat | (back5_q ? returned5_q.stat : '0) : '0;

  // ---------------------------------------------------------------------- jobs
  // A job enters in place of a packet, so that a busy peer cannot put it off; one at a time. The end of a PDC comes again
  // for each message that it has in the table, and lets nothing enter between. An ACK of heddle_return_rx, which is of none
  // of these PDCs, leaves while no packet is here.
  logic              mark_valid, mark_tabled, due_valid, other_valid, other_reaps, jobs_idle, own_pending;
  logic              job_wanted, job_wanted_q, job_busy, back_start, back_end;
  logic [PdcW-1:0]   mark_pdc, due_pdc, other_pdc;
  logic [TableMessageW-1:0] mark_place;
  target_job_e       other, job;
  assign job_busy    = ((p1_valid_q || p2_valid_q) && job_q != JobNone) ||
                       ((p3_valid_q || p4_valid_q) && class_q.job != JobNone) || (p5_valid_q && class5_q.job != JobNone);
  assign job_wanted  = job_again_q || mark_valid || due_valid || back_late_i.due || other_valid;
  assign job_first   = job_wanted_q && !job_busy;
  assign job         = job_again_q ? JobForget : mark_valid ? JobMark : due_valid ? JobAck : back_late_i.due ? JobBack : other;
  assign job_pdc     = job_again_q ? job_pdc_q : mark_valid ? mark_pdc : due_valid ? due_pdc : other_pdc;
  assign job_place   = job_again_q ? again_place_q : mark_place;
  assign p0_job      = p0_ready && job_first && job_wanted && job != JobBack &&
                       (job != JobForget || (between && !p5_valid_q));
  assign back_start  = p0_ready && job_first && job_wanted && job == JobBack && between && !p5_valid_q;
  assign back_end    = back_step_q == 2'd3 && room_q;
  assign back_late_look_o = back_start;
  assign back_late_take_o = back_end;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      job_q        <= JobNone;
      job_wanted_q <= 1'b0;
      job_again_q  <= 1'b0;
      back_step_q  <= '0;
    end else begin
      job_wanted_q <= job_wanted;
      if (p0_take)     job_q <= JobNone;
      else if (p0_job) job_q <= job;
      if (p3_valid_q && class_q.job == JobForget) job_again_q <= class_q.defers;
      if (back_start)                                     back_step_q <= 2'd1;
      else if (back_end)                                  back_step_q <= '0;
      else if (back_step_q != '0 && back_step_q != 2'd3)  back_step_q <= back_step_q + 2'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (p0_job) begin
      job_pdc_q   <= job_pdc;
      job_place_q <= job_place;
      job_named_q <= job_again_q || (job == JobMark && mark_tabled);
      job_reaps_q <= job_again_q ? job_reaps_q : other_reaps;
    end
    if (p3_valid_q) again_place_q <= class_q.first;
  end
  heddle_target_jobs u_jobs_due (
    .clk_i, .rst_ni, .port_i, .tick_i, .close_i, .open_i(open),
    .done_i(p5_valid_q), .done_job_i(class5_q.job), .pdc_i(pdc5_q), .write_i(effect_q.write), .owes_i(effect_q.owes),
    .from_peer_i(effect_q.heard), .close_end_i(effect_q.close), .full_i(effect_q.full), .reap_i(effect_q.reap),
    .empty_i(!class5_q.defers && !class5_q.in_table), .visible_i, .visible_pdc_i,
    .ack_valid_o(due_valid), .ack_pdc_o(due_pdc), .ack_take_i(p0_job && job == JobAck),
    .other_valid_o(other_valid), .other_o(other), .other_pdc_o(other_pdc), .other_reaps_o(other_reaps),
    .pending_o(own_pending), .deadline_o, .ready_o(jobs_ready), .idle_o(jobs_idle)
  );
  assign pending_o = own_pending || back_late_i.pending;

  heddle_target_marks u_marks (
    .clk_i, .rst_ni, .drain_i(drain_valid_i && drain_rx_i), .between_i(between), .waits_i(pkt_valid_i), .open_i(open),
    .rx_alive_i, .rx_gen_i,
    .entry_wen_i(p4_valid_q && decision_q.write), .entry_pdc_i(pdc3_q), .entry_before_i(own3_q),
    .entry_message_i(next_entry.message),
    .table_wen_i(p4_valid_q && decision_q.keep), .table_index_i({pdc3_q, place3_q}), .table_message_i(next_message),
    .table_opened_i(p5_valid_q && effect_q.keep && effect_q.table_open && !class5_q.in_use),
    .table_ended_i(p5_valid_q && effect_q.keep && !effect_q.table_open && class5_q.in_use),
    .marking_o(marking), .settled_o(mark_settled), .valid_o(mark_valid), .tabled_o(mark_tabled), .pdc_o(mark_pdc), .place_o(mark_place),
    .done_i(p5_valid_q && class5_q.job == JobMark),
    .open_o(deadline_valid_o), .ready_o(marks_ready)
  );

  // The youngest message of each PDC that was reported as visible; those before it are visible too.
  logic [31:0] seen_psn;
  logic        seen_error, seen_ready;
  heddle_mem #(.Width(32), .Depth(NumPdc)) u_seen (
    .clk_i, .rst_ni, .wen_i(visible_i), .waddr_i(visible_pdc_i), .wdata_i(visible_psn_i),
    .raddr_i(job_pdc), .rdata_o(seen_psn), .error_o(seen_error), .ready_o(seen_ready)
  );
  always_ff @(posedge clk_i) begin
    if (p1_valid_q && job_q != JobNone) seen_psn_q <= seen_psn;
  end

  // -------------------------------------------------------------------- outputs
  // Room for a packet that enters, and for three before it that were not counted.
  localparam int unsigned OutDepth = 8;
  localparam int unsigned OutLimit = OutDepth - 4;
  localparam int unsigned JobLimit = 2;  // heddle_return_tx counts on no more than these and four.
  localparam int unsigned OutW     = $clog2(OutDepth) + 1;
  logic            rsp_room, place_room, ack_room, job_room, placing, responding;
  logic [OutW-1:0] rsp_count, place_count, ack_count, job_count;
  place_t          placed, token;
  assign placing    = back5_q ? returned5_q.place : places;
  assign responding = back5_q ? returned5_q.respond : effect_q.respond;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) room_q <= 1'b0;
    else         room_q <= rsp_count <= OutW'(OutLimit) && place_count <= OutW'(OutLimit) &&
                           ack_count <= OutW'(OutLimit) && job_count <= OutW'(JobLimit);
  end

  heddle_fifo #(.Width($bits(response_t)), .Depth(OutDepth)) u_rsp (
    .clk_i, .rst_ni, .valid_i((p6_valid_q && responding) || (back_end && back_late_i.respond)), .ready_o(rsp_room),
    .data_i(back_step_q != '0 ? back_late_i.answer : back5_q ? returned5_q.rsp : answer),
    .valid_o(rsp_valid_o), .ready_i(rsp_ready_i), .data_o(rsp_o), .count_o(rsp_count)
  );

  // A token follows every packet that was decided before it came.
  assign drain_ready_o = between && !p5_valid_q && !p6_valid_q && room_q && !job_again_q && !marking;
  always_comb begin
    token          = '0;
    token.token    = 1'b1;
    token.ev.token = 1'b1;
    placed         = !p5_valid_q ? token : back5_q ? back_record : record;
  end
  heddle_fifo #(.Width($bits(place_t)), .Depth(OutDepth)) u_place (
    .clk_i, .rst_ni, .valid_i((p5_valid_q && placing) || (drain_valid_i && drain_ready_o)),
    .ready_o(place_room), .data_i(placed),
    .valid_o(place_valid_o), .ready_i(place_ready_i), .data_o(place_o), .count_o(place_count)
  );
  heddle_fifo #(.Width($bits(return_job_t)), .Depth(OutDepth)) u_jobs (
    .clk_i, .rst_ni, .valid_i(p5_valid_q && effect_q.hand), .ready_o(job_room), .data_i(handed),
    .valid_o(job_valid_o), .ready_i(job_ready_i), .data_o(job_o), .count_o(job_count)
  );
  heddle_fifo #(.Width($bits(ack_event_t)), .Depth(OutDepth)) u_ack (
    .clk_i, .rst_ni, .valid_i(p3_valid_q && forwards), .ready_o(ack_room), .data_i(heard),
    .valid_o(ack_valid_o), .ready_i(ack_ready_i), .data_o(ack_o), .count_o(ack_count)
  );

  assign idle_o = names_ready && entries_ready && marks_ready && jobs_ready && back_ready_i && seen_ready && jobs_idle &&
                  !back_late_i.due && back_step_q == '0 && !job_again_q && !pkt_valid_i && between && !p5_valid_q && !p6_valid_q &&
                  !job_wanted_q && !drain_valid_i && !rsp_valid_o && !place_valid_o && !ack_valid_o && !job_valid_o;

  logic unused_bits;
  assign unused_bits = ^{port_i, transport_i, now_ns_i, entry_error, unused_message_error, unused_message_ready,
                         seen_error, returned5_q};

  `HEDDLE_ASSERT(StagesAlternate_A, !(p1_valid_q && p2_valid_q) && !(p2_valid_q && p3_valid_q))
  `HEDDLE_ASSERT(SquashedInStageTwo_A, pkt_squash_i |-> p2_valid_q && !again_q && job_q == JobNone)
  `HEDDLE_ASSERT(Atomic_A, pop_o |-> head_valid_i && decision_d.write)
  `HEDDLE_ASSERT(OutputsHaveRoom_A, p5_valid_q |-> place_room && job_room)
  `HEDDLE_ASSERT(AnswerHasRoom_A, p6_valid_q || back_end |-> rsp_room)
  `HEDDLE_ASSERT(ForwardHasRoom_A, p3_valid_q |-> ack_room)
  `HEDDLE_ASSERT(OneAnswer_A, !(p6_valid_q && back_end))
  `HEDDLE_ASSERT(PlainIsEarly_A, p4_valid_q && decision_q.write && decision_q.plain |->
                 next_entry.expected == (decision_q.accepts ? decision_q.expected : entry3_q.expected) &&
                 next_entry.ahead == (decision_q.accepts ? after_d.ahead : entry3_q.ahead) &&
                 next_entry.message.state == (decision_q.accepts && decision_q.idles ? MessageNone : own3_q.state) &&
                 next_entry.table_open == entry3_q.table_open && next_entry.gen == entry3_q.gen && next_entry.open)
  `HEDDLE_ASSERT(OpenAgrees_A, p2_done |-> entry.open == open[pdc_q])
endmodule
