// SPDX-License-Identifier: Apache-2.0
// The stages of a decision of heddle_accept, and the decision in one step, with the fields that they depend on as ports
// of their own. Fields that no rule names come from `noise_i`.

module accept_decide_probe
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import accept_verdict_pkg::*;
(
  input  logic        ruled_i,
  input  logic        forget_i,
  input  logic [127:0] noise_i,
  input  logic        slot_i,           // dpdcid has this port's slot,
  input  logic        target_i,         // and names a target PDC
  input  logic [PdcGenW-1:0] named_gen_i,

  input  logic [4:0]  pds_type_i,
  input  logic [3:0]  next_hdr_i,
  input  logic        retx_i,
  input  logic        ar_i,
  input  logic        syn_i,
  input  logic        ce_i,
  input  logic [1:0]  trim_i,
  input  logic [31:0] psn_i,
  input  logic [11:0] psn_offset_i,
  input  logic [15:0] clear_offset_i,
  input  logic [31:0] pds_payload_i,
  input  logic [31:0] fa_i,
  input  logic [15:0] spdcid_i,
  input  logic [5:0]  opcode_i,
  input  logic [1:0]  ses_ver_i,
  input  logic        dc_i,
  input  logic        ie_i,
  input  logic        hd_i,
  input  logic        eom_i,
  input  logic        som_i,
  input  logic [15:0] message_id_i,
  input  logic [23:0] job_id_i,
  input  logic [63:0] buffer_offset_i,
  input  logic [63:0] match_bits_i,
  input  logic [31:0] message_offset_i,
  input  logic [31:0] request_length_i,
  input  logic [13:0] payload_bytes_i,
  input  logic [13:0] read_bytes_i,
  input  logic        contradicts_i,
  input  logic        other_gen_i,

  input  logic        hit_i,
  input  logic        room_i,
  input  logic        closed_i,
  input  logic        grave_i,
  input  logic        look_hit_i,
  input  logic [5:0]  look_miss_i,
  input  logic [23:0] look_job_i,
  input  logic        look_event_i,
  input  logic        listens_i,
  input  logic [5:0]  region_code_i,
  input  logic        region_owner_i,   // The region is of the context's function.
  input  logic        region_counts_i,
  input  logic        counts_read_i,
  input  logic        counts_write_i,
  input  logic        return_room_i,
  input  logic        report_room_i,
  input  logic        head_valid_i,
  input  logic        head_ctx_i,       // The context of the open message, or another one.
  input  logic        credit_i,
  input  logic        head_spare_i,
  input  logic        credit_spare_i,
  input  logic        alive_i,          // The context of the open message is.

  input  logic        e_open_i,
  input  logic [PdcGenW-1:0] e_gen_i,
  input  logic [(1 << PdcGenW)-1:0] e_used_i,
  input  logic [31:0] e_fa_i,
  input  logic [15:0] e_spdcid_i,
  input  logic [31:0] e_start_i,
  input  logic [31:0] e_expected_i,
  input  logic        e_rud_i,
  input  logic [63:0] e_ahead_i,
  input  logic        e_gap_open_i,
  input  logic        e_gap_refused_i,
  input  logic        e_gap_turned_i,
  input  logic [9:0]  e_gap_last_i,
  input  logic [1:0]  e_gap_lost_i,
  input  logic [9:0]  e_gap_lost_psn_i,
  input  logic [3:0]  e_unacked_i,
  input  logic [31:0] e_received_i,
  input  logic        e_stored_i,
  input  logic [31:0] e_stored_psn_i,
  input  logic [5:0]  e_stored_code_i,
  input  logic [1:0]  e_state_i,
  input  logic [31:0] e_first_psn_i,
  input  logic [1:0]  e_piece_log2_i,
  input  logic        e_last_known_i,
  input  logic [31:0] e_last_psn_i,
  input  logic [5:0]  e_code_i,
  input  logic        e_rma_i,
  input  logic        e_read_i,
  input  logic        e_credit_i,
  input  logic        e_gone_i,
  input  logic [31:0] e_length_i,
  input  logic [31:0] e_bytes_i,
  input  logic [15:0] e_message_id_i,
  input  logic [23:0] e_job_id_i,
  input  logic [63:0] e_match_bits_i,
  input  logic [63:0] e_iova_i,
  input  logic        e_tabled_i,       // This message is one of the table.
  input  logic        e_busy_i,         // The place of the packet's message has another one.
  input  logic        e_dc_ahead_i,
  input  logic        reorder_room_i,
  input  logic        reorder_mine_i,
  input  logic [31:0] reorder_next_i,

  output logic        agrees_o,         // Both decided the same,
  output logic        early_o,          // and a plain decision left the entry as it predicts.
  output logic        respond_o,
  output logic [1:0]  kind_o,
  output logic [7:0]  code_o,
  output logic [31:0] nack_psn_o,
  output logic        names_pdc_o,
  output logic        retx_o,
  output logic        m_o,
  output logic [31:0] cack_o,
  output logic [15:0] ack_offset_o,
  output logic [1:0]  req_o,
  output logic        cc_o,
  output logic [63:0] sack_o,
  output logic [23:0] rcvd_bytes_o,
  output logic [5:0]  response_o,
  output logic [5:0]  return_code_o,
  output logic        write_o,
  output logic        create_o,
  output logic        close_o,
  output logic        bury_o,
  output logic        take_o,
  output logic        credit_o,
  output logic        hand_o,
  output logic        visible_o,
  output logic        reorder_o,
  output logic [63:0] stat_o,

  output logic        n_open_o,
  output logic [31:0] n_expected_o,
  output logic [63:0] n_ahead_o,
  output logic        n_gap_open_o,
  output logic        n_gap_refused_o,
  output logic        n_gap_turned_o,
  output logic [9:0]  n_gap_last_o,
  output logic [1:0]  n_gap_lost_o,
  output logic [9:0]  n_gap_lost_psn_o,
  output logic [3:0]  n_unacked_o,
  output logic [31:0] n_received_o,
  output logic        n_stored_o,
  output logic [31:0] n_stored_psn_o,
  output logic [5:0]  n_stored_code_o
);
  localparam logic [PdcW-1:0] Pdc = 5;
  localparam logic [RxW-1:0]  Ctx = 3;

  port_cfg_t   port;
  rx_packet_t  pkt;
  target_pdc_t entry;
  target_message_t held, message;
  logic [TableMessageW-1:0] place;
  rma_answer_t region;
  rx_buffer_t  head;
  logic [NumRx-1:0]                          alive;
  logic [NumRx-1:0][GenW-1:0]                gens;
  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] counters;
  rx_counters_t counts;

  always_comb begin
    port      = '0;
    port.slot = 8'd1;

    pkt                 = '0;
    pkt.source_fa       = 128'(fa_i);
    pkt.ce              = ce_i;
    pkt.pds_type        = pds_type_e'(pds_type_i);
    pkt.next_hdr        = next_hdr_i;
    pkt.retx            = retx_i;
    pkt.ar              = ar_i;
    pkt.syn             = syn_i;
    pkt.offset          = clear_offset_i;
    pkt.psn             = psn_i;
    pkt.spdcid          = spdcid_i;
    pkt.dpdcid          = {slot_i ? SlotBits'(1) : SlotBits'(0), target_i ? RoleTarget : RoleInitiator, named_gen_i, Pdc};
    pkt.psn_offset      = psn_offset_i;
    pkt.pds_payload     = pds_payload_i;
    pkt.opcode          = opcode_i;
    pkt.ses_ver         = ses_ver_i;
    pkt.dc              = dc_i;
    pkt.ie              = ie_i;
    pkt.hd              = hd_i;
    pkt.eom             = eom_i;
    pkt.som             = som_i;
    pkt.message_id      = message_id_i;
    pkt.job_id          = job_id_i;
    pkt.buffer_offset   = buffer_offset_i;
    pkt.match_bits      = match_bits_i;
    pkt.message_offset  = message_offset_i;
    pkt.request_length  = request_length_i;
    pkt.payload_bytes   = payload_bytes_i;
    pkt.read_bytes      = read_bytes_i;
    pkt.contradicts     = contradicts_i;
    pkt.other_gen       = other_gen_i;
    pkt.trim            = trim_e'(trim_i);

    pkt.source_mac      = noise_i[47:0];
    pkt.source_port     = noise_i[63:48];
    pkt.dscp            = noise_i[5:0];
    pkt.initiator       = noise_i[95:64];
    pkt.header_data     = noise_i[127:64];

    held                 = '0;
    entry                = '0;
    entry.open           = e_open_i;
    entry.gen            = e_gen_i;
    entry.used           = e_used_i;
    entry.fa             = 128'(e_fa_i);
    entry.spdcid         = e_spdcid_i;
    entry.start_psn      = e_start_i;
    entry.expected       = e_expected_i;
    entry.rud            = e_rud_i;
    entry.ahead          = e_ahead_i;
    entry.gap.open       = e_gap_open_i;
    entry.gap.refused    = e_gap_refused_i;
    entry.gap.turned     = e_gap_turned_i;
    entry.gap.last       = e_gap_last_i;
    entry.gap.lost       = trim_e'(e_gap_lost_i);
    entry.gap.lost_psn   = e_gap_lost_psn_i;
    entry.unacked        = e_unacked_i;
    entry.received       = e_received_i;
    entry.stored         = e_stored_i;
    entry.stored_psn     = e_stored_psn_i;
    entry.stored_code    = return_code_e'(e_stored_code_i);
    held.state          = message_state_e'(e_state_i);
    held.first_psn      = e_first_psn_i;
    held.piece_log2     = e_piece_log2_i;
    held.last_known     = e_last_known_i;
    held.last_psn       = e_last_psn_i;
    held.code           = return_code_e'(e_code_i);
    held.rma            = e_rma_i;
    held.read           = e_read_i;
    held.credit         = e_credit_i;
    held.gone           = e_gone_i;
    held.buffer.ctx     = Ctx;
    held.buffer.length  = '1;
    held.buffer.iova    = e_iova_i;
    held.buffer.owner   = noise_i[7:0];
    held.buffer.cq      = noise_i[8 +: CqW];
    held.hd             = noise_i[13];
    held.header_data    = noise_i[127:64];
    held.queue_head     = noise_i[29:14];
    if (noise_i[30]) held.buffer.length = noise_i[95:64];
    entry.mac           = noise_i[127:80];
    entry.entropy       = noise_i[79:64];
    entry.dscp          = noise_i[69:64];
    entry.hidden        = noise_i[31];
    entry.hidden_base   = e_expected_i + 32'($signed(noise_i[36:32]));
    entry.hidden_last   = e_expected_i + 32'($signed(noise_i[41:37]));
    entry.returns       = noise_i[42];
    entry.stored_message = noise_i[15:0];
    entry.stored_job    = noise_i[39:16];
    held.request_length = e_length_i;
    held.bytes          = e_bytes_i;
    held.message_id     = e_message_id_i;
    held.job_id         = e_job_id_i;
    held.match_bits     = e_match_bits_i;

    place   = message_id_i[TableMessageW-1:0];
    message = held;
    if (!e_tabled_i || e_message_id_i[TableMessageW-1:0] != place) begin
      message            = '0;
      message.message_id = ~message_id_i;
    end
    if (e_tabled_i) begin
      entry.table_open[e_message_id_i[TableMessageW-1:0]] = 1'b1;
    end else begin
      entry.message = held;
    end
    if (e_busy_i) entry.table_open[place] = 1'b1;
    entry.dc_ahead = e_dc_ahead_i;
    entry.dc_last  = e_expected_i + 32'd7 + 32'($signed(noise_i[47:43]));

    region         = '0;
    region.code    = return_code_e'(region_code_i);
    region.owner   = region_owner_i ? 8'd0 : 8'd1;
    region.counter = 8'(region_counts_i);
    head           = '0;
    head.ctx       = head_ctx_i ? Ctx : Ctx + RxW'(1);
    head.length    = '1;
    if (noise_i[48]) head.length = noise_i[127:96];
    head.iova      = {noise_i[63:0]} & ~64'd7;
    head.cq        = noise_i[49 +: CqW];
    head.position  = noise_i[79:64];
    head.op_context = noise_i[100:37];
    region.iova    = noise_i[120:57];
    region.region  = noise_i[54 +: RegionW];

    counts              = '0;
    counts.remote_read  = 8'(counts_read_i);
    counts.remote_write = 8'(counts_write_i);
    for (int unsigned i = 0; i < NumRx; i++) begin
      alive[i]    = i != 32'(Ctx) || alive_i;
      gens[i]     = '0;
      counters[i] = counts;
    end
  end

  verdict_t verdict, reference;
  accept_decide_stages u_stages (
    .port_i(port), .ruled_i, .now_i(noise_i[15:0]), .forget_i, .pkt_i(pkt),
    .pdc_i(Pdc), .hit_i, .room_i, .closed_i, .grave_i, .entry_i(entry),
    .looked_i(!syn_i), .place_i(place), .message_i(message), .named_i(!syn_i && message.message_id == message_id_i),
    .look_hit_i, .look_miss_i(return_code_e'(look_miss_i)), .look_job_i, .look_event_i, .listens_i,
    .region_i(region), .return_room_i, .report_room_i,
    .head_valid_i, .head_i(head), .head_released_i(noise_i[105:90]), .head_spare_i,
    .rx_alive_i(alive), .rx_gen_i(gens), .rx_counters_i(counters), .credit_ok_i({NumCq{credit_i}}),
    .credit_spare_i({NumCq{credit_spare_i}}),
    .reorder_i({reorder_room_i, reorder_mine_i, reorder_next_i}), .verdict_o(verdict)
  );
  accept_decide_whole u_whole (
    .port_i(port), .ruled_i, .now_i(noise_i[15:0]), .valid_i(1'b1), .forget_i, .pkt_i(pkt),
    .pdc_i(Pdc), .hit_i, .room_i, .closed_i, .grave_i, .entry_i(entry),
    .looked_i(!syn_i), .place_i(place), .message_i(message), .named_i(!syn_i && message.message_id == message_id_i),
    .look_hit_i, .look_miss_i(return_code_e'(look_miss_i)), .look_job_i, .look_event_i, .listens_i,
    .region_i(region), .return_room_i, .report_room_i,
    .head_valid_i, .head_i(head), .head_released_i(noise_i[105:90]), .head_spare_i,
    .rx_alive_i(alive), .rx_gen_i(gens), .rx_counters_i(counters), .credit_ok_i({NumCq{credit_i}}),
    .credit_spare_i({NumCq{credit_spare_i}}),
    .reorder_i({reorder_room_i, reorder_mine_i, reorder_next_i}), .verdict_o(reference)
  );

  // Fields of no use may differ.
  function automatic verdict_t useful(verdict_t all);
    useful = all;
    if (!all.respond) useful.rsp     = '0;
    if (!all.place)   useful.record  = '0;
    if (!all.hand)    useful.job     = '0;
    if (!all.forward) useful.ack     = '0;
    if (!all.write)   useful.entry   = '0;
    if (!all.keep)    useful.message = '0;
    if (forget_i)     useful.heard   = 1'b0;
  endfunction
  verdict_t staged, whole;
  logic     accepts, keeps_state;
  assign staged      = useful(verdict);
  assign whole       = useful(reference);
  // A PDC that ends comes again for its messages of the table.
  assign agrees_o    = staged == whole || (u_stages.class_.defers && !verdict.write && !verdict.respond && !verdict.place);
  assign accepts     = u_stages.decision.accepts;
  assign keeps_state = verdict.entry.message.state == (accepts && u_stages.decision.idles ? MessageNone : entry.message.state);
  assign early_o     = !(u_stages.decision.plain && verdict.write) ||
                       (keeps_state && verdict.entry.expected == (accepts ? u_stages.decision.expected : entry.expected) &&
                        verdict.entry.ahead == (accepts ? u_stages.after.ahead : entry.ahead) &&
                        (accepts || verdict.entry.message == entry.message) && verdict.entry.table_open == entry.table_open &&
                        verdict.entry.open && verdict.entry.gen == entry.gen && verdict.entry.rud == entry.rud &&
                        verdict.entry.start_psn == entry.start_psn);

  assign respond_o     = verdict.respond;
  assign kind_o        = verdict.rsp.kind;
  assign code_o        = verdict.rsp.code;
  assign nack_psn_o    = verdict.rsp.nack_psn;
  assign names_pdc_o   = verdict.rsp.spdcid != '0;
  assign retx_o        = verdict.rsp.retx;
  assign m_o           = verdict.rsp.m;
  assign cack_o        = verdict.rsp.cack;
  assign ack_offset_o  = verdict.rsp.ack_offset;
  assign req_o         = verdict.rsp.req;
  assign cc_o          = verdict.rsp.cc;
  assign sack_o        = verdict.rsp.sack_bitmap;
  assign rcvd_bytes_o  = verdict.rsp.rcvd_bytes;
  assign response_o    = verdict.rsp.response;
  assign return_code_o = verdict.rsp.return_code;
  assign write_o       = verdict.write;
  assign create_o      = verdict.create;
  assign close_o       = verdict.close;
  assign bury_o        = verdict.bury;
  assign take_o        = verdict.take;
  assign credit_o      = verdict.credit;
  assign hand_o        = verdict.hand;
  assign visible_o     = verdict.record.visible;
  assign reorder_o     = verdict.reorder;
  assign stat_o        = verdict.stat;

  assign n_open_o         = verdict.entry.open;
  assign n_expected_o     = verdict.entry.expected;
  assign n_ahead_o        = verdict.entry.ahead;
  assign n_gap_open_o     = verdict.entry.gap.open;
  assign n_gap_refused_o  = verdict.entry.gap.refused;
  assign n_gap_turned_o   = verdict.entry.gap.turned;
  assign n_gap_last_o     = verdict.entry.gap.last;
  assign n_gap_lost_o     = verdict.entry.gap.lost;
  assign n_gap_lost_psn_o = verdict.entry.gap.lost_psn;
  assign n_unacked_o      = verdict.entry.unacked;
  assign n_received_o     = verdict.entry.received;
  assign n_stored_o       = verdict.entry.stored;
  assign n_stored_psn_o   = verdict.entry.stored_psn;
  assign n_stored_code_o  = verdict.entry.stored_code;

  logic unused;
  assign unused = ^{verdict};
endmodule
