// SPDX-License-Identifier: Apache-2.0
// Target of PDCs: accepts or refuses each packet, in one decision.
//
// Atomic:  the PSN advances only when everything the packet needs is reserved (receive
//          buffer, completion credit); otherwise NACK. A packet waits for room in the
//          queues behind.
// Ordered: ROD: only the expected PSN is accepted; NACKs (ROD_OOO) as heddle_rod_gap says; duplicates are
//          acknowledged again with a default response and dropped.
// Reorder: what follows a gap on ROD may be kept by heddle_rx_reorder, which offers it again.
// RUD:     what heddle_accept_decide takes ahead of a gap is placed at once; ACKs say what came.
// Trimmed: a request that the network trimmed is NACKed with its PSN, if that is missing, on an open PDC; one per gap on
//          ROD, but the expected one each time. A duplicate is acknowledged again; all else is discarded and counted.
// Listens: until the function listens (heddle_rx_queue), requests of an open PDC or with SYN are dropped without an
//          answer; the initiator retransmits them.
// Opens a PDC on SYN; {source FA, spdcid} has a place in one of two sets of 4 ways, by a keyed hash. Without a free PDC:
// NO_PDC_AVAIL, and the initiator of another one, the least used first, is asked to close it.
// A closed PDC leaves a tombstone (heddle_tombstones): its SYNs are answered CLOSING.
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
// One packet every two cycles.

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

  output logic [PdcW-1:0]  reorder_pdc_o,   // heddle_rx_reorder: PDC of `back_pkt_o`, while `back_look_o`.
  input  reorder_t         reorder_i,       // Answered at once.
  output reorder_verdict_t reorder_o,

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
  output logic [PdcW:0]    open_o,          // So many PDCs are open.
  output logic             idle_o
);
  // --------------------------------------------------- which PDC serves whom
  // Four places for each PDC, in two tables with a hash each: the indices run out first. The key keeps peers from
  // naming themselves so that they fill the sets of another.
  localparam int unsigned Tables = 2;
  localparam int unsigned Sets   = NumPdc / 2;
  localparam int unsigned Ways   = 4;
  localparam int unsigned SetW   = $clog2(Sets);
  localparam int unsigned WayW   = $bits(target_way_t);

  localparam int unsigned HashW  = Tables * SetW;
  localparam int unsigned NameW  = 128 + 16;
  localparam int unsigned KeyW   = NameW + HashW - 1;
  // Until firmware writes another: of the fraction of pi.
  localparam logic [191:0] DefaultKey = 192'h243f6a88_85a308d3_13198a2e_03707344_a4093822_299f31d0;

  logic [PdcW:0] count_q;  // PDCs that are open.

  // ------------------------------------------------------------------ pipeline
  // Stage 0 reads the set, stage 1 the entry and the buffer, stage 2 decides. A packet
  // enters stage 0 as another leaves stage 2.
  logic       p1_valid_q, p2_valid_q, p0_take, p2_done;
  logic       tables_ready, entries_ready, room_behind;
  rx_packet_t pkt_q;      // Of stage 1 or 2, whichever is taken.

  assign pkt_ready_o = tables_ready && !p1_valid_q && (!p2_valid_q || p2_done) &&
                       !job_wanted && job_q == JobNone && region_ready_i && (!drain_valid_i || marking);
  assign p0_take     = pkt_valid_i && pkt_ready_o;
  assign p2_done     = p2_valid_q && room_behind;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      p1_valid_q <= 1'b0;
      p2_valid_q <= 1'b0;
    end else begin
      p1_valid_q <= p0_take;
      if (p1_valid_q)   p2_valid_q <= 1'b1;
      else if (p2_done) p2_valid_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (p0_take) pkt_q <= pkt_i;
  end

  // ---------------------------------------------------------- stage 0 and 1: set
  logic [Tables-1:0]                       set_wen, set_error, set_ready;
  logic [Tables-1:0][SetW-1:0]             set, set_q;
  logic [Tables-1:0][Ways-1:0][WayW-1:0]   set_rdata, set_wdata, set_data_q, kept_ways;
  logic [NameW-1:0]                        name;
  logic [KeyW-1:0]                         key_q;
  logic                                    keyed_q;
  assign name = job_q != JobNone ? {entry.fa, entry.spdcid} : {pkt_i.source_fa, pkt_i.spdcid};
  heddle_toeplitz #(.DataW(NameW), .HashW(HashW)) u_hash (.key_i(key_q), .data_i(name), .hash_o(set));
  // Nothing may be in a set that the key after it does not lead to.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      key_q   <= DefaultKey[KeyW-1:0];
      keyed_q <= 1'b0;
    end else if (!keyed_q && transport_i.hash_key != '0 && count_q == '0 && !p0_take && !p1_valid_q && !p2_valid_q) begin
      key_q   <= KeyW'(transport_i.hash_key);
      keyed_q <= 1'b1;
    end
  end
  for (genvar t = 0; t < Tables; t++) begin : gen_table
    heddle_mem #(.Width(Ways * WayW), .Depth(Sets)) u_sets (
      .clk_i, .rst_ni,
      .wen_i(set_wen[t] || forget), .waddr_i(set_q[t]),
      .wdata_i(forget ? kept_ways[t] : set_wdata[t]), .raddr_i(set[t]), .rdata_o(set_rdata[t]),
      .error_o(set_error[t]), .ready_o(set_ready[t])
    );
  end

  // Of the two sets the emptier one takes a new PDC.
  typedef struct packed {
    logic                    table_;
    logic [$clog2(Ways)-1:0] way;
  } place_of_t;
  logic                                hit, way_free;
  place_of_t                           way, hit_way;
  logic [Tables-1:0][2:0]              vacant;
  logic [Tables-1:0][$clog2(Ways)-1:0] free_way;
  logic [PdcW-1:0]                     hit_pdc;
  target_way_t                         candidate;
  always_comb begin
    hit       = 1'b0;
    hit_way   = '0;
    hit_pdc   = '0;
    vacant    = '0;
    free_way  = '0;
    candidate = '0;
    if (p1_valid_q) begin
      for (int unsigned t = 0; t < Tables; t++) begin
        for (int unsigned i = 0; i < Ways; i++) begin
          candidate = set_rdata[t][i];
          if (!candidate.valid) begin
            vacant[t]   = vacant[t] + 3'd1;
            free_way[t] = 2'(i);
          end else if (candidate.ipv6 == pkt_q.ipv6 && candidate.fa == pkt_q.source_fa &&
                       candidate.spdcid == pkt_q.spdcid) begin
            hit     = 1'b1;
            hit_way = {t[0], 2'(i)};
            hit_pdc = candidate.pdc;
          end
        end
      end
    end
    way_free   = vacant != '0;
    way.table_ = vacant[1] > vacant[0];
    way.way    = free_way[way.table_];
    if (hit) way = hit_way;
  end

  // Tombstones, in the same stages.
  logic grave_found, grave_room, graves_ready;
  heddle_tombstones u_tombstones (
    .clk_i, .rst_ni, .tick_i, .transport_i,
    .look_i(p0_take), .set_i({set[1][0], set[0]}), .fa_i(pkt_i.source_fa), .spdcid_i(pkt_i.spdcid),
    .start_i(pkt_i.psn - 32'(pkt_i.psn_offset)),
    .found_o(grave_found), .room_o(grave_room),
    .keep_i(p2_done && verdict.bury && transport_i.safety_ticks != '0),
    .keep_start_i(entry.start_psn),
    .ready_o(graves_ready)
  );
  assign tables_ready = (&set_ready) && entries_ready && holding_ready && held_ready && graves_ready && back_ready_i;

  // -------------------------------------------------------------- free indices
  logic [NumPdc-1:0] open_q;
  logic              index_free;
  logic [PdcW-1:0]   free_pdc;
  verdict_t          verdict;
  heddle_rr_pick #(.NumSrc(NumPdc)) u_free (
    .clk_i, .rst_ni,
    .valid_i(~open_q), .take_i(p2_done && verdict.create),
    .valid_o(index_free), .idx_o(free_pdc)
  );

  // ------------------------------------------------------- stage 1 and 2: entry
  logic                    hit_q, room_q, entry_error;
  place_of_t               way_q;
  logic [PdcW-1:0]         pdc, pdc_q;
  logic [RxW-1:0]          ctx_q;
  logic                    look_hit_q, look_event_q, listens_q;
  return_code_e            look_miss_q;
  logic [23:0]             look_job_q;
  rma_answer_t             region_q;
  reorder_t                reorder_q;
  target_pdc_t             entry;

  assign pdc = !pkt_q.syn ? pkt_q.dpdcid[PdcW-1:0] : (hit ? hit_pdc : free_pdc);

  // Messages of the table: of the packet that enters stage 0, by the PDC that it names and its message ID. A SYN names
  // none, and opens none. A job has the one at `job_place` in the cycle after its PDC's entry.
  localparam int unsigned TableW = PdcW + TableMessageW;
  logic                     looked_q, named_q, job_keep, unused_message_error, unused_message_ready;
  logic [TableMessageW-1:0] place_q, job_place, job_first;
  target_message_t          message, message_q, job_message;
  heddle_mem #(.Width($bits(target_message_t)), .Depth(NumPdc * TableMessages), .Init(1'b0)) u_messages (
    .clk_i, .rst_ni,
    .wen_i(message_wen), .waddr_i(message_waddr), .wdata_i(written_message),
    .raddr_i(job_q != JobNone ? {job_pdc_q, job_place}
                              : {pkt_i.dpdcid[PdcW-1:0], pkt_i.message_id[TableMessageW-1:0]}),
    .rdata_o(message), .error_o(unused_message_error), .ready_o(unused_message_ready)
  );
  always_ff @(posedge clk_i) begin
    if (p1_valid_q) begin
      looked_q <= !pkt_q.syn;
      named_q  <= !pkt_q.syn && message.message_id == pkt_q.message_id;
      place_q  <= pkt_q.message_id[TableMessageW-1:0];
    end
    if (p1_valid_q || job_q != JobNone) message_q <= message;
  end

  // What waits in stage 2 is read again, so that it stays on the output.
  heddle_mem #(.Width($bits(target_pdc_t)), .Depth(NumPdc)) u_entries (
    .clk_i, .rst_ni,
    .wen_i((p2_done && verdict.write) || job_end), .waddr_i(job_end ? job_pdc_q : pdc_q),
    .wdata_i(written_entry),
    .raddr_i(job_q != JobNone ? job_pdc_q : p1_valid_q ? pdc : pdc_q), .rdata_o(entry),
    .error_o(entry_error), .ready_o(entries_ready)
  );
  assign look_rel_o = pkt_q.rel;
  assign look_job_o = pkt_q.job_id;
  assign look_pid_o = pkt_q.pid_on_fep;
  assign look_ri_o  = pkt_q.resource_index;
  assign head_ctx_o = p1_valid_q ? look_ctx_i : ctx_q;

  always_ff @(posedge clk_i) begin
    if (p0_take || job_q != JobNone) set_q <= set;
    if (p1_valid_q) begin
      set_data_q <= set_rdata;
      hit_q      <= hit;
      way_q      <= way;
      room_q     <= way_free && index_free;
      pdc_q      <= pdc;
      ctx_q      <= look_ctx_i;
      look_hit_q <= look_hit_i;
      look_miss_q <= look_miss_i;
      look_job_q <= look_job_i;
      look_event_q <= look_event_i;
      listens_q    <= listens_i;
      region_q     <= region_i;
      reorder_q    <= reorder_i;
    end
  end

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

  // ------------------------------------------------------------ stage 2: decide
  heddle_accept_decide u_decide (
    .port_i, .ruled_i(ruled), .now_i(now_ns_i[22:7]), .valid_i(p2_valid_q || job_q == JobForget), .forget_i(job_q == JobForget),
    .pkt_i(pkt_q),
    .pdc_i(job_q == JobForget ? job_pdc_q : pdc_q), .hit_i(hit_q), .room_i(room_q),
    .closed_i(grave_found), .grave_i(grave_room), .entry_i(entry),
    .looked_i(looked_q), .place_i(job_q == JobForget ? job_place_q : place_q),
    .message_i(message_q), .named_i(job_q == JobForget ? job_ends_q : named_q),
    .look_hit_i(look_hit_q), .look_miss_i(look_miss_q), .look_job_i(look_job_q),
    .look_event_i(look_event_q),
    .listens_i(listens_q),
    .region_i(region_q), .return_room_i(return_room_i[job_q == JobForget ? job_pdc_q : pdc_q]),
    .report_room_i,
    .head_valid_i, .head_i, .head_released_i, .head_spare_i,
    .rx_alive_i, .rx_gen_i, .rx_counters_i, .credit_ok_i, .credit_spare_i,
    .reorder_i(reorder_q), .verdict_o(verdict)
  );

  target_way_t written_way;
  always_comb begin
    written_way        = '0;
    written_way.valid  = verdict.create;
    written_way.ipv6   = pkt_q.ipv6;
    written_way.fa     = pkt_q.source_fa;
    written_way.spdcid = pkt_q.spdcid;
    written_way.pdc    = pdc_q;
    set_wdata          = set_data_q;
    set_wdata[way_q.table_][way_q.way] = verdict.create ? written_way : '0;
    set_wen = '0;
    set_wen[way_q.table_] = p2_done && (verdict.create || verdict.close);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= '0;
    end else if (p2_done) begin
      if (verdict.create) open_q[pdc_q] <= 1'b1;
      if (verdict.close)  open_q[pdc_q] <= 1'b0;
    end else if (forget) begin
      open_q[job_pdc_q] <= 1'b0;
    end
  end

  logic          opened, ended;  // One of them.
  assign opened = p2_done && verdict.create;
  assign ended  = (p2_done && verdict.close) || forget;
  assign open_o = count_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else         count_q <= count_q + (PdcW + 1)'(opened) - (PdcW + 1)'(ended);
  end

  // ------------------------------------------------- what no packet asks for
  // Between packets a job reads the entry of a PDC, then its set, and changes both.
  typedef enum logic [2:0] {
    JobNone   = 3'd0,
    JobAck    = 3'd1,  // Sends the ACK that was put off, or waited for visible data.
    JobForget = 3'd2,  // Ends the PDC.
    JobAsk    = 3'd3,  // Asks the initiator to close it.
    JobMark   = 3'd4,  // Marks its message if the context is gone.
    JobBack   = 3'd5,  // Sends an ACK that heddle_return_rx put off: of none of these PDCs.
    JobClose  = 3'd6   // As JobAsk, in the midst of a message too.
  } job_e;

  job_e              job_q;
  logic [1:0]        job_step_q;
  logic [PdcW-1:0]   job_pdc_q;
  logic              job_reads, job_aged_q, job_decides, job_reaps_q, job_ends_q, message_wen;
  logic [TableMessageW-1:0] job_place_q, mark_place;
  logic [TableW-1:0] message_waddr;
  logic              job_wanted, job_start, job_end, forget, any_due, any_old, asks, job_answers;
  logic              marks, marking, back_end, closes;
  logic [PdcW-1:0]   due_pdc, old_pdc, ask_pdc, mark_pdc, close_pdc;
  logic [NumPdc-1:0] due;
  target_pdc_t       job_entry;

  // Goes before the next packet, so that a busy peer cannot put it off.
  assign job_wanted = any_due || back_late_i.due || any_old || reap_q || closes || asks || marks;
  assign job_start  = job_q == JobNone && job_wanted && !p1_valid_q && !p2_valid_q;
  assign back_end   = job_step_q == 2'd3 && job_q == JobBack && rsp_room;
  assign job_end    = job_step_q == 2'd3 && job_q != JobBack && (!job_reads || job_aged_q) &&
                      (job_q == JobForget ? place_room && job_room : rsp_room);
  assign job_reads = job_q == JobForget || (job_q == JobMark && mark_q.tabled);
  // While a PDC has messages in the table, one of them ends each time.
  assign job_decides = job_end && job_q == JobForget && (job_ends_q || !job_reaps_q);
  assign forget      = job_decides && !job_ends_q;
  // Inside a message an initiator cannot close.
  assign job_answers = job_end && entry.open && (job_q == JobAck || job_q == JobClose ||
                                   (job_q == JobAsk && entry.message.state == MessageNone && entry.table_open == '0));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      job_q      <= JobNone;
      job_step_q <= '0;
    end else if (job_start) begin
      job_q      <= marks ? JobMark : any_due ? JobAck : back_late_i.due ? JobBack : any_old || reap_q ? JobForget :
                    closes ? JobClose : JobAsk;
      job_step_q <= 2'd1;
    end else if (job_end || back_end) begin
      job_q      <= JobNone;
      job_step_q <= '0;
    end else if (job_q != JobNone && job_step_q != 2'd3) begin
      job_step_q <= job_step_q + 2'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (job_start) begin
      job_pdc_q   <= marks ? mark_pdc : any_due ? due_pdc : any_old ? old_pdc : reap_q ? reap_pdc_q :
                     closes ? close_pdc : ask_pdc;
      job_reaps_q <= !any_old;
    end
    // In step 3 the entry is there.
    job_aged_q <= job_step_q == 2'd3 && !job_end;
    if (job_step_q >= 2'd2 && !job_aged_q) begin
      job_ends_q  <= entry.table_open != '0;
      job_place_q <= job_place;
    end
  end
  always_comb begin
    job_first = '0;
    for (int unsigned i = TableMessages; i > 0; i--) begin
      if (entry.table_open[i-1]) job_first = TableMessageW'(i - 1);
    end
  end
  assign job_place = job_q == JobMark ? mark_place : job_aged_q ? job_place_q : job_first;

  // The PDC that cannot be closed before its messages have ended: one at a time, since the command is retransmitted.
  logic            reap_q;
  logic [PdcW-1:0] reap_pdc_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reap_q     <= 1'b0;
      reap_pdc_q <= '0;
    end else if (p2_done && verdict.reap && !reap_q) begin
      reap_q     <= 1'b1;
      reap_pdc_q <= pdc_q;
    end else if (job_end && job_q == JobForget && job_reaps_q && !job_ends_q) begin
      reap_q     <= 1'b0;
    end
  end

  always_comb begin
    job_entry = entry;
    if (job_answers) job_entry.unacked = '0;
    // What was reported of an earlier PDC of this index is not among what waits.
    if (entry.hidden && seen_psn - entry.hidden_base - 32'd1 <
                        entry.hidden_last - entry.hidden_base) begin
      job_entry.hidden_base = seen_psn;
      job_entry.hidden      = seen_psn != entry.hidden_last;
    end
    if (job_q == JobMark && !mark_q.tabled && Holds(entry.message.state) &&
        (!rx_alive_i[entry.message.buffer.ctx] || rx_gen_i[entry.message.buffer.ctx] != entry.message.buffer.gen)) begin
      job_entry.message.gone = 1'b1;
    end
    if (job_decides) job_entry = verdict.entry;
    job_message      = verdict.message;
    job_keep         = job_q == JobForget && job_ends_q;
    if (job_q == JobMark && mark_q.tabled && entry.table_open[mark_place] && Holds(message_q.state) &&
        (!rx_alive_i[message_q.buffer.ctx] || rx_gen_i[message_q.buffer.ctx] != message_q.buffer.gen)) begin
      job_message      = message_q;
      job_message.gone = 1'b1;
      job_keep         = 1'b1;
    end
  end

  // ----------------------------------------------------------- contexts that end
  // Generations come again. So before the token of a receive context goes on, each message that holds a buffer
  // of a context that is gone is marked, and takes nothing of what has its generation later. Packets go on
  // meanwhile: what was looked up before is decided first, and those that wait have the time between two marks.
  localparam int unsigned MarkGap = 64;  // Cycles.
  typedef struct packed {
    logic            holds;  // A buffer, not marked.
    logic [RxW-1:0]  ctx;
    logic [GenW-1:0] gen;
  } holding_t;
  function automatic logic Holds(input message_state_e state);
    Holds = state == MessageOpen || state == MessageFailed;
  endfunction
  target_pdc_t written_entry;
  holding_t    holding_in, holding_message_in, holding, holding_own, holding_message;
  logic        unused_holding_error, holding_ready, unused_held_error, held_ready, stale_q, judged_q, fresh_q;
  // The message looked at: of a PDC, then, if any is open there, of the table.
  typedef struct packed {
    logic              done;
    logic              tabled;
    logic [TableW-1:0] index;
  } mark_t;
  mark_t           mark_q, mark_d;
  logic [TableW:0] table_count_q;  // Messages open in the table.
  logic            table_opened, table_ended;
  target_message_t written_message;
  logic [$clog2(MarkGap)-1:0] gap_q;
  assign written_entry    = job_end ? job_entry : verdict.entry;
  assign written_message  = job_end ? job_message : verdict.message;
  assign message_wen      = (p2_done && verdict.keep) || (job_end && job_keep);
  assign message_waddr    = job_end ? {job_pdc_q, job_place} : {pdc_q, place_q};
  heddle_mem #(.Width($bits(holding_t)), .Depth(NumPdc)) u_holding (
    .clk_i, .rst_ni,
    .wen_i((p2_done && verdict.write) || job_end), .waddr_i(job_end ? job_pdc_q : pdc_q),
    .wdata_i(holding_in),
    .raddr_i(mark_d.index[PdcW-1:0]), .rdata_o(holding_own),
    .error_o(unused_holding_error), .ready_o(holding_ready)
  );
  heddle_mem #(.Width($bits(holding_t)), .Depth(NumPdc * TableMessages)) u_held (
    .clk_i, .rst_ni,
    .wen_i(message_wen), .waddr_i(message_waddr), .wdata_i(holding_message_in),
    .raddr_i(mark_d.index), .rdata_o(holding_message), .error_o(unused_held_error), .ready_o(held_ready)
  );
  assign holding_in = {!written_entry.message.gone && Holds(written_entry.message.state),
                       written_entry.message.buffer.ctx, written_entry.message.buffer.gen};
  assign holding_message_in = {!written_message.gone && Holds(written_message.state),
                               written_message.buffer.ctx, written_message.buffer.gen};
  assign holding = mark_q.tabled ? holding_message : holding_own;

  assign table_opened = p2_done && verdict.keep && verdict.entry.table_open[place_q] && !entry.table_open[place_q];
  assign table_ended  = (p2_done && verdict.keep && !verdict.entry.table_open[place_q] && entry.table_open[place_q]) ||
                        (job_decides && job_ends_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) table_count_q <= '0;
    else         table_count_q <= table_count_q + (TableW + 1)'(table_opened) - (TableW + 1)'(table_ended);
  end

  assign marking    = drain_valid_i && drain_rx_i && !mark_q.done;
  assign mark_pdc   = mark_q.tabled ? mark_q.index[TableW-1:TableMessageW] : mark_q.index[PdcW-1:0];
  assign mark_place = mark_q.index[TableMessageW-1:0];
  assign marks      = judged_q && stale_q && (!pkt_valid_i || gap_q == '0);
  always_comb begin
    mark_d = mark_q;
    if (!drain_valid_i) begin
      mark_d = '0;
    end else if (judged_q && (!stale_q || (job_end && job_q == JobMark))) begin
      mark_d.index = mark_q.index + 1'b1;
      if (mark_q.index == (mark_q.tabled ? TableW'(NumPdc * TableMessages - 1) : TableW'(NumPdc - 1))) begin
        mark_d.index  = '0;
        mark_d.tabled = 1'b1;
        mark_d.done   = mark_q.tabled || table_count_q == '0;
      end
    end
  end
  // A PDC is judged in the cycle after its word was read, and left or marked in the next ones.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mark_q   <= '0;
      fresh_q  <= 1'b0;
      judged_q <= 1'b0;
      gap_q    <= '0;
    end else begin
      mark_q   <= mark_d;
      fresh_q  <= marking && (fresh_q || (!p1_valid_q && (!p2_valid_q || p2_done)));
      judged_q <= marking && fresh_q && mark_d == mark_q;
      if (job_end && job_q == JobMark) gap_q <= '1;
      else if (gap_q != '0)            gap_q <= gap_q - 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    stale_q <= open_q[mark_pdc] && holding.holds &&
               (!rx_alive_i[holding.ctx] || rx_gen_i[holding.ctx] != holding.gen);
  end

  // ------------------------------------------------------------ visible messages
  // The youngest one reported of each PDC; those before it are visible too.
  logic [NumPdc-1:0] seen_q;
  logic [31:0]       seen_psn;
  logic              seen_error, seen_ready;
  heddle_mem #(.Width(32), .Depth(NumPdc)) u_seen (
    .clk_i, .rst_ni,
    .wen_i(visible_i), .waddr_i(visible_pdc_i), .wdata_i(visible_psn_i),
    .raddr_i(job_pdc_q), .rdata_o(seen_psn),
    .error_o(seen_error), .ready_o(seen_ready)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      seen_q <= '0;
    end else begin
      if (job_end && job_q == JobAck) seen_q[job_pdc_q]     <= 1'b0;
      if (visible_i) seen_q[visible_pdc_i] <= 1'b1;
    end
  end

  // ------------------------------------------------------------ delayed ACKs
  logic      owes, paid, own_pending;
  assign pending_o = own_pending || back_late_i.pending;
  response_t late;
  assign owes = p2_done && verdict.write && verdict.entry.unacked != '0;
  assign paid = (p2_done && verdict.write && verdict.entry.unacked == '0) ||
                (job_end && job_q == JobAck) || forget || job_answers;

  heddle_ack_delay u_ack_delay (
    .clk_i, .rst_ni, .tick_i, .delay_i(port_i.ack_delay_ticks),
    .set_i(owes), .clear_i(paid), .pdc_i(job_end ? job_pdc_q : pdc_q),
    .due_o(due), .pending_o(own_pending)
  );
  heddle_rr_pick #(.NumSrc(NumPdc)) u_due (
    .clk_i, .rst_ni, .valid_i(due | seen_q), .take_i(job_start && !marks && any_due), .valid_o(any_due),
    .idx_o(due_pdc)
  );

  logic        ruled;   // Congestion control is on.
  logic [15:0] waited;  // Since the last packet.
  assign ruled  = transport_i.congestion[0];
  assign waited = now_ns_i[22:7] - entry.received_at;
  response_t   late_to;
  response_t   asking;
  logic [31:0] late_cack;
  always_comb begin
    late_to         = '0;
    late_to.ipv6    = entry.ipv6;
    late_to.fa      = entry.fa;
    late_to.mac     = entry.mac;
    late_to.entropy = entry.entropy;
    late_to.dscp    = entry.dscp;
    late_to.spdcid  = {port_i.slot[SlotBits-1:0], RoleTarget, entry.gen, job_pdc_q};
    late_to.dpdcid  = entry.spdcid;
    late_to.message_id = entry.message.message_id;
  end
  heddle_standing u_standing (
    .entry_i(job_entry), .rsp_i(late_to), .syn_i(1'b0), .ruled_i(ruled), .cack_o(late_cack), .rsp_o(late)
  );
  always_comb begin
    asking = late;
    if (ruled && waited != '0) asking.service_time = waited;
    if ((job_q == JobAsk || job_q == JobClose) && late.req == AckReqNone) asking.req = AckReqClose;
  end

  // ------------------------------------------------------------ forgotten PDCs
  // Periods of dead_ticks without a packet. After two whole ones the initiator, which gives up
  // after one of silence, has nothing outstanding any more.
  logic [NumPdc-1:0] silent_q, silent_two_q, old_q;
  logic [31:0]       period_q;
  logic              period_end;
  heddle_rr_pick #(.NumSrc(NumPdc)) u_old (
    .clk_i, .rst_ni, .valid_i(old_q), .take_i(job_start && !marks && !any_due && !back_late_i.due), .valid_o(any_old),
    .idx_o(old_pdc)
  );

  assign period_end = tick_i && period_q + 32'd1 >= port_i.dead_ticks;
  always_comb begin
    kept_ways = set_rdata;
    for (int unsigned t = 0; t < Tables; t++) begin
      for (int unsigned i = 0; i < Ways; i++) begin
        if (set_rdata[t][i][PdcW-1:0] == job_pdc_q) kept_ways[t][i] = '0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      silent_q     <= '0;
      silent_two_q <= '0;
      old_q        <= '0;
      period_q     <= '0;
    end else begin
      if (tick_i) period_q <= period_end ? '0 : period_q + 32'd1;
      if (period_end) begin
        silent_q     <= open_q;
        silent_two_q <= silent_q & open_q;
        old_q        <= silent_two_q & open_q;
      end
      if (forget) old_q[job_pdc_q] <= 1'b0;
      // Its own initiator's packet, not a stranger's that names it.
      if (p2_done && verdict.heard) begin
        silent_q[pdc_q]     <= 1'b0;
        silent_two_q[pdc_q] <= 1'b0;
        old_q[pdc_q]        <= 1'b0;
      end
    end
  end

  // ------------------------------------------------------------- room for others
  // Each SYN refused asks one PDC, first those that were not used since the last time around.
  logic [NumPdc-1:0] used_q, lazy;
  logic              ask_q, any_lazy;
  assign lazy = open_q & ~used_q;
  assign asks = ask_q && any_lazy;
  heddle_rr_pick #(.NumSrc(NumPdc)) u_ask (
    .clk_i, .rst_ni, .valid_i(lazy), .take_i(job_start && !marks && !any_due && !back_late_i.due && !any_old && !reap_q && !closes),
    .valid_o(any_lazy), .idx_o(ask_pdc)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q <= '0;
      ask_q  <= 1'b0;
    end else begin
      if (ask_q && !any_lazy)               used_q <= '0;
      if (p2_done && verdict.write)         used_q[pdc_q] <= 1'b1;
      if (job_end && job_q == JobAsk) begin
        used_q[job_pdc_q] <= 1'b1;
        ask_q             <= 1'b0;
      end
      if (p2_done && verdict.full)          ask_q <= 1'b1;
    end
  end

  // --------------------------------------------------------- all asked to close
  logic [PdcW:0] sweep_q;  // PDCs looked at since the last strobe.
  logic          sweeping;
  assign sweeping  = !sweep_q[PdcW];
  assign close_pdc = sweep_q[PdcW-1:0];
  assign closes    = sweeping && open_q[close_pdc];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      sweep_q <= {1'b1, PdcW'(0)};
    else if (close_i) sweep_q <= '0;
    else if (sweeping && (!closes || (job_end && job_q == JobClose))) sweep_q <= sweep_q + 1'b1;
  end

  assign reorder_pdc_o = pdc;
  always_comb begin
    reorder_o          = '0;
    reorder_o.decided  = p2_done;
    reorder_o.keep     = verdict.reorder;
    reorder_o.early    = verdict.stat[StatisticRxOutOfOrder];
    reorder_o.moved    = p2_done && verdict.write;
    reorder_o.ended    = (p2_done && verdict.close) || forget;
    reorder_o.pdc      = job_q == JobForget ? job_pdc_q : pdc_q;
    reorder_o.expected = verdict.entry.expected;
  end

  assign pop_o         = p2_done && verdict.take;
  assign credit_take_o = p2_done && verdict.credit;
  assign credit_cq_o   = head_i.cq;
  assign stat_o        = p2_done ? verdict.stat | (back ? back_i.stat : '0) : '0;

  // ---------------------------------------------------------- data of our READs
  // Also the ACK of a small READ, which brings them, and control packets about their PSNs.
  logic   back;
  place_t back_record;
  assign back = pkt_q.dpdcid[PdcRoleBit] == RoleInitiator && !pkt_q.syn && !pkt_q.probe &&
                (((pkt_q.pds_type == PdsTypeRodReq || pkt_q.pds_type == PdsTypeRudReq) &&
                  (pkt_q.next_hdr != NextHdrRequestStd || pkt_q.trim != TrimNone)) ||
                 (pkt_q.pds_type == PdsTypeCp &&
                  (pkt_q.next_hdr == CpTypeAckRequest || pkt_q.next_hdr == CpTypeProbe ||
                   pkt_q.next_hdr == CpTypeCloseRequest)) ||
                 ((pkt_q.pds_type == PdsTypeAck || pkt_q.pds_type == PdsTypeAckCc) &&
                  pkt_q.next_hdr == NextHdrResponseData));
  assign back_look_o = p1_valid_q;
  assign back_pkt_o  = pkt_q;
  assign back_take_o = p2_done && back;
  assign back_late_look_o = job_start && !marks && !any_due && back_late_i.due;
  assign back_late_take_o = back_end;
  always_comb begin
    back_record          = '0;
    back_record.stream   = back_i.stream;
    back_record.bytes    = back_i.bytes;
    back_record.iova     = back_i.iova;
    back_record.spdcid   = back_i.spdcid;
    back_record.ev.owner = back_i.owner;
    back_record.back     = 1'b1;
    back_record.segmented = back_i.segmented;
    back_record.settle   = back_i.settle;
    back_record.msg      = back_i.msg;
    back_record.fail     = back_i.fail;
    back_record.code     = back_i.code;
  end

  // -------------------------------------------------------------------- outputs
  logic       rsp_room, place_room, ack_room, job_room, placing, responding;
  logic [2:0] rsp_count, place_count, ack_count, job_count;
  place_t     placed, token;
  assign room_behind = rsp_room && place_room && ack_room && job_room;
  assign placing     = back ? back_i.place : verdict.place;
  assign responding  = back ? back_i.respond : verdict.respond;

  heddle_fifo #(.Width($bits(response_t)), .Depth(4)) u_rsp (
    .clk_i, .rst_ni,
    .valid_i((p2_done && responding) || job_answers || (back_end && back_late_i.respond)),
    .ready_o(rsp_room),
    .data_i(job_q == JobBack ? back_late_i.answer : job_q != JobNone ? asking : back ? back_i.rsp : verdict.rsp),
    .valid_o(rsp_valid_o), .ready_i(rsp_ready_i), .data_o(rsp_o),
    .count_o(rsp_count)
  );

  // A token follows every packet that was decided before it came.
  assign drain_ready_o = !p1_valid_q && !p2_valid_q && place_room && job_q != JobForget && !marking;
  always_comb begin
    token          = '0;
    token.token    = 1'b1;
    token.ev.token = 1'b1;
    placed         = p2_valid_q && back ? back_record :
                     p2_valid_q || job_decides ? verdict.record : token;
  end
  heddle_fifo #(.Width($bits(place_t)), .Depth(4)) u_place (
    .clk_i, .rst_ni,
    .valid_i((p2_done && placing) || (job_decides && verdict.place) ||
             (drain_valid_i && drain_ready_o)),
    .ready_o(place_room), .data_i(placed),
    .valid_o(place_valid_o), .ready_i(place_ready_i), .data_o(place_o),
    .count_o(place_count)
  );
  heddle_fifo #(.Width($bits(return_job_t)), .Depth(4)) u_jobs (
    .clk_i, .rst_ni,
    .valid_i((p2_done || forget) && verdict.hand), .ready_o(job_room), .data_i(verdict.job),
    .valid_o(job_valid_o), .ready_i(job_ready_i), .data_o(job_o),
    .count_o(job_count)
  );
  heddle_fifo #(.Width($bits(ack_event_t)), .Depth(4)) u_ack (
    .clk_i, .rst_ni,
    .valid_i(p2_done && verdict.forward), .ready_o(ack_room), .data_i(verdict.ack),
    .valid_o(ack_valid_o), .ready_i(ack_ready_i), .data_o(ack_o),
    .count_o(ack_count)
  );

  assign idle_o = tables_ready && seen_ready && !any_old && !any_due && !back_late_i.due && !reap_q && !ask_q && !sweeping && !close_i && job_q == JobNone &&
                  !pkt_valid_i && !p1_valid_q && !p2_valid_q &&
                  !drain_valid_i && !rsp_valid_o && !place_valid_o && !ack_valid_o && !job_valid_o;

  logic unused_bits;
  assign unused_bits = ^{port_i, transport_i, now_ns_i, set_error, entry_error, unused_message_error, unused_message_ready, unused_holding_error, unused_held_error, seen_error, late_cack, rsp_count,
                         place_count, ack_count, job_count, back_i};

  `HEDDLE_ASSERT(StagesAlternate_A, !(p1_valid_q && p2_valid_q))
  `HEDDLE_ASSERT(Atomic_A, pop_o |-> head_valid_i && verdict.write)
  `HEDDLE_ASSERT(OpenCounted_A, 32'(count_q) == $countones(open_q))
  `HEDDLE_ASSERT(MarkedAfterOldLookups_A, marking && !fresh_q |-> mark_q == '0)
  `HEDDLE_ASSERT(OpenAgrees_A, p2_valid_q |-> entry.open == open_q[pdc_q])
endmodule
