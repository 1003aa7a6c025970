// SPDX-License-Identifier: Apache-2.0
// Builds frames: request packets of messages, control packets of PDCs, data of peers' READs, ACK and NACK.
//
// Sent:     every packet taken on `pkt` leaves as a frame, in order, unless its next hop is
//           not valid (counted, drop_no_hop), its peer is of the other address family or the
//           port is disabled. When its payload must not
//           (`failed`, context disabled or of another generation) or cannot be read (DMA
//           error), it leaves with ie=1 and no payload, and so do all later packets of that
//           message whose payload was not read before.
//           A READ has no payload; it leaves with ie=1 only where `failed` says so.
// Returned: return data leave in order among themselves, as an error response where memory cannot be read or the
//           region is gone. Requests and return data take turns.
// Priority: responses before requests and return data.
// Payload:  read from host memory, or inline from the message table (at most InlineBytes). A read names the
//           number under which its payload was pushed, if it was.
// Paused:   `pause_o` indicates that enough payload is in flight to hide the latency of the host's memory.
// Sequence: `seq_done_o` counts packets taken on `pkt` whose payload will no longer be read, `back_done_o` those
//           taken on `back`.

`include "heddle_assert.svh"

module heddle_tx_build
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t        port_i,
  input  logic             ect_i,           // Requests and data may be marked.
  input  logic             tbl_valid_i,     // TableNextHop.
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  input  logic             msg_valid_i,     // Message table write, at allocation.
  input  logic [MsgW-1:0]  msg_index_i,
  input  msg_packet_t      msg_data_i,
  input  logic             move_i,          // Strobe: payload of a message is in its context's spill area,
  input  logic [MsgW-1:0]  move_msg_i,
  input  logic [RingLog2Max-1:0] move_slot_i,  // from this slot on.
  input  logic [NumTx-1:0][63:0] spill_base_i,
  input  logic             msg_spilled_i,   // With msg_valid_i: payload in extension slots was in that area before.
  input  logic [NumTx-1:0] in_nic_i,        // The context's area is in the NIC:
  input  logic [NumTx-1:0][SpillAreaW-1:0] nic_area_i,  // this one.
  input  logic             pdc_valid_i,     // PDC open.
  input  logic [PdcW-1:0]  pdc_index_i,
  input  pdc_peer_t        pdc_data_i,
  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,

  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  input  tx_packet_t       pkt_i,
  input  logic             back_valid_i,    // heddle_return_tx.
  output logic             back_ready_o,
  input  return_packet_t   back_i,
  input  logic             rsp_valid_i,
  output logic             rsp_ready_o,
  input  response_t        rsp_i,

  output logic             rd_valid_o,      // To heddle_tx_pushed.
  input  logic             rd_ready_i,
  output payload_req_t     rd_req_o,
  output logic             len_valid_o,     // To heddle_tx_payload, one per read.
  input  logic             len_ready_i,
  output logic [13:0]      len_bytes_o,
  input  logic             rec_valid_i,
  output logic             rec_ready_o,
  input  logic             rec_error_i,
  input  logic [31:0]      rec_crc_i,

  output logic             head_valid_o,    // To heddle_tx_framer.
  input  logic             head_ready_i,
  output frame_head_t      head_o,

  output logic [SeqW-1:0]  seq_done_o,
  output logic [SeqW-1:0]  back_done_o,
  output logic             pause_o,         // Enough payload is in flight: a retransmission would wait for it.
  output logic             fail_o,          // Strobe: payload of a message cannot be read.
  output logic [MsgW-1:0]  fail_msg_o,
  output logic [TxW-1:0]   fail_ctx_o,
  output logic [GenW-1:0]  fail_gen_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
  // ------------------------------------------------------------------ tables
  logic            s1_valid_q, s1_take, s1_done, tables_ready;
  tx_packet_t      s1_q;
  return_packet_t  s1_data_q;
  logic            s1_back_q, s0_back, s0_room;  // A packet of return data.

  msg_packet_t     msg;
  pdc_peer_t       peer;
  logic            msg_spilled, msg_ready, pdc_ready, msg_error, pdc_error;

  // A word that waits in stage 1 is read again, so that it stays on the output.
  heddle_mem #(.Width($bits(msg_packet_t) + 1), .Depth(NumMsg), .Init(1'b0)) u_msg (
    .clk_i, .rst_ni,
    .wen_i(msg_valid_i), .waddr_i(msg_index_i), .wdata_i({msg_spilled_i, msg_data_i}),
    .raddr_i(s1_take ? pkt_i.msg : s1_q.msg), .rdata_o({msg_spilled, msg}),
    .error_o(msg_error), .ready_o(msg_ready)
  );

  heddle_mem #(.Width($bits(pdc_peer_t)), .Depth(NumPdc), .Init(1'b0)) u_pdc (
    .clk_i, .rst_ni,
    .wen_i(pdc_valid_i), .waddr_i(pdc_index_i), .wdata_i(pdc_data_i),
    .raddr_i(s1_take ? pkt_i.pdc : s1_q.pdc), .rdata_o(peer),
    .error_o(pdc_error), .ready_o(pdc_ready)
  );

  // The hop of each PDC once more, so that its entry is read in the same cycle as the PDC.
  logic [NumPdc-1:0][HopW-1:0] pdc_hop_q;
  logic [PdcW-1:0]             hop_pdc;
  logic [HopW-1:0]             hop;
  always_ff @(posedge clk_i) begin
    if (pdc_valid_i) pdc_hop_q[pdc_index_i] <= pdc_data_i.hop;
  end
  assign hop_pdc = s1_take ? pkt_i.pdc : s1_q.pdc;
  assign hop     = pdc_valid_i && pdc_index_i == hop_pdc ? pdc_data_i.hop : pdc_hop_q[hop_pdc];

  logic        hop_found, hop_valid, hop_ready;
  logic [47:0] hop_mac;
  logic [11:0] hop_vlan;
  heddle_next_hop u_next_hop (
    .clk_i, .rst_ni,
    .tbl_valid_i, .tbl_req_i, .tbl_rsp_o,
    .hop_i(hop), .found_o(hop_found), .valid_o(hop_valid), .mac_o(hop_mac), .vlan_o(hop_vlan),
    .ready_o(hop_ready)
  );

  assign tables_ready = msg_ready && pdc_ready && hop_ready;
  assign s0_room      = tables_ready && (!s1_valid_q || s1_done);
  assign s0_back      = back_valid_i && (!pkt_valid_i || !s1_back_q);
  assign pkt_ready_o  = s0_room && !s0_back;
  assign back_ready_o = s0_room && s0_back;
  assign s1_take      = pkt_valid_i && pkt_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) s1_valid_q <= 1'b0;
    else if (!s1_valid_q || s1_done) s1_valid_q <= s1_take || back_ready_o;
  end
  always_ff @(posedge clk_i) begin
    if (s1_take) s1_q <= pkt_i;
    if (back_ready_o) s1_data_q <= back_i;
    if (s1_take || back_ready_o) s1_back_q <= back_ready_o;
  end

  // ------------------------------------------------- stage 1: what to send
  logic [NumMsg-1:0] failed_q;  // Messages whose payload cannot be read.

  logic [3:0]  mtu_log2;
  always_comb begin
    unique case (port_i.payload_mtu)
      16'd1024: mtu_log2 = 4'd10;
      16'd2048: mtu_log2 = 4'd11;
      16'd8192: mtu_log2 = 4'd13;
      default:  mtu_log2 = 4'd12;
    endcase
  end

  logic [31:0] offset, rest;
  logic [13:0] mtu, bytes;
  assign offset = 32'(s1_q.index) << mtu_log2;
  assign rest   = msg.length - offset;
  assign mtu    = 14'd1 << mtu_log2;
  assign bytes  = rest < 32'(mtu) ? rest[13:0] : mtu;

  logic        is_send, is_read, stale;
  tx_request_t request;
  logic [31:0] clear_offset, back_clear;
  assign is_send      = msg.opcode == OpcodeSend;
  assign stale        = !s1_q.control && (!alive_i[msg.ctx] || gen_i[msg.ctx] != msg.gen);
  assign is_read      = msg.opcode == OpcodeRead;
  assign clear_offset = s1_q.clear_psn - s1_q.psn;
  assign back_clear   = s1_data_q.clear_psn - s1_data_q.psn;
  always_comb begin
    request                = '0;
    if (s1_valid_q && s1_back_q) begin
      request.back           = 1'b1;
      request.rud            = s1_data_q.route.rud;
      request.drop           = s1_data_q.route.ipv6 != port_i.ipv6[0] || !port_i.enable[0];
      request.code           = s1_data_q.dead ? 6'(ReturnCodeBadMkey) : 6'(ReturnCodeHostUnsuccessCmpl);
      request.read           = !request.drop && !s1_data_q.dead;
      request.bytes          = request.read ? s1_data_q.data.bytes : '0;
      request.mac            = s1_data_q.route.mac;
      request.vlan           = port_i.vlan[11:0];
      request.ipv6           = s1_data_q.route.ipv6;
      request.fa             = s1_data_q.route.fa;
      request.dscp           = s1_data_q.route.dscp;
      request.entropy        = s1_data_q.route.entropy;
      request.retx           = s1_data_q.retx;
      request.ar             = s1_data_q.ar;
      request.clear_offset   = back_clear[15:0];
      request.psn            = s1_data_q.psn;
      request.spdcid         = s1_data_q.route.spdcid;
      request.dpdcid         = s1_data_q.route.dpdcid;
      request.message_id     = s1_data_q.data.message_id;
      request.job_id         = s1_data_q.data.job_id;
      request.message_offset = s1_data_q.data.message_offset;
      request.request_length = s1_data_q.data.message_bytes;
    end else if (s1_valid_q) begin
      request.drop           = !hop_valid || peer.ipv6 != port_i.ipv6[0] || !port_i.enable[0];
      request.control        = s1_q.control;
      request.cp_type        = s1_q.cp_type;
      request.clear_psn      = s1_q.clear_psn;
      request.stale          = stale;
      request.ie             = !s1_q.control &&
                               (s1_q.failed || (!is_read && (failed_q[s1_q.msg] || stale)));
      request.asks           = !s1_q.control && is_read && !request.ie;
      request.inlined        = !s1_q.control && (msg.flags & TxFlagInline) != '0 &&
                               msg.length <= InlineBytes;
      request.read           = !request.drop && !request.ie && !request.inlined &&
                               !s1_q.control && bytes != '0 && !is_read;
      request.bytes          = s1_q.control ? '0 : bytes;
      request.msg            = s1_q.msg;
      request.ctx            = msg.ctx;
      request.gen            = msg.gen;
      request.mac            = hop_mac;
      request.vlan           = hop_vlan;
      request.ipv6           = peer.ipv6;
      request.fa             = peer.fa;
      request.dscp           = peer.dscp;
      request.entropy        = entropy;
      request.retx           = s1_q.retx;
      request.ar             = s1_q.ar;
      request.syn            = s1_q.syn;
      request.rud            = peer.rud;
      request.clear_offset   = clear_offset[15:0];
      request.psn            = s1_q.psn;
      request.spdcid         = peer.spdcid;
      request.dpdcid         = s1_q.syn ? {4'b0, syn_offset[11:0]} : s1_q.tpdcid;
      request.opcode         = msg_opcode[5:0];
      request.dc             = (msg.flags & TxFlagDeliveryComplete) != '0;
      request.hd             = (msg.flags & TxFlagHeaderData) != '0;
      request.eom            = s1_q.last;
      request.som            = s1_q.index == '0;
      request.rel            = peer.rel;
      request.job_id         = msg.job_id;
      request.pid_on_fep     = peer.pid_on_fep;
      request.resource_index = msg.resource_index;
      request.buffer_offset  = is_send || msg.opcode == OpcodeTaggedSend ? '0 : msg.remote_offset;
      request.source_pid     = msg.source_pid;
      request.source_ri      = msg.source_ri;
      request.match_bits     = is_send ? '0 : msg.match_bits;
      request.header_data    = request.hd ? msg.header_data : '0;
      request.message_offset = offset;
      request.request_length = msg.length;
      request.inline_data    = msg.inline_data;
    end
  end

  // Packets of a RUD PDC may take any path.
  logic [15:0] entropy;
  assign entropy = peer.rud ? 16'(EntropyPortFirst) | {2'b0, peer.entropy[13:0] + s1_q.psn[13:0]}
                            : peer.entropy;

  logic [7:0]  msg_opcode;
  logic [31:0] syn_offset;
  assign msg_opcode = 8'(msg.opcode);
  assign syn_offset = s1_q.psn - peer.start_psn;

  // ------------------------------------- packets that wait for their payload
  logic        push, pending_ready, rd_ready, len_ready;
  logic        pending_valid, pending_pop;
  tx_request_t pending;
  assign push    = s1_valid_q && (hop_found || s1_back_q) && pending_ready && rd_ready && len_ready;
  assign s1_done = push;

  // As many as keep the read latency of the host full.
  localparam int unsigned Pending = 64;
  logic [$clog2(Pending):0] pending_count;
  heddle_fifo #(.Width($bits(tx_request_t)), .Depth(Pending)) u_pending (
    .clk_i, .rst_ni,
    .valid_i(push), .ready_o(pending_ready), .data_i(request),
    .valid_o(pending_valid), .ready_i(pending_pop), .data_o(pending),
    .count_o(pending_count)
  );

  // Payload that was in slots of the ring may have moved.
  logic [NumMsg-1:0]      moved_q;
  logic [RingLog2Max-1:0] moved_slot;
  logic [63:0]            payload;
  logic                   moved_err, moved_rdy;
  heddle_mem #(.Width(RingLog2Max), .Depth(NumMsg), .Init(1'b0)) u_moved (
    .clk_i, .rst_ni, .wen_i(move_i), .waddr_i(move_msg_i), .wdata_i(move_slot_i),
    .raddr_i(s1_take ? pkt_i.msg : s1_q.msg), .rdata_o(moved_slot),
    .error_o(moved_err), .ready_o(moved_rdy)
  );
  assign payload = moved_q[s1_q.msg] ? spill_base_i[msg.ctx] + 64'({moved_slot, 6'b0}) : msg.iova;

  payload_req_t rd_req;
  always_comb begin
    rd_req.pushed            = '0;
    if (!s1_back_q && (msg.flags & TxFlagInlineExt) != '0) rd_req.pushed = msg.inline_data[PushTagW-1:0];
    rd_req.gather.segmented  = msg.segmented && !s1_back_q;
    rd_req.gather.msg        = s1_q.msg;
    rd_req.gather.offset     = offset;
    // No field of a descriptor selects this: only payload that was copied there is read there.
    rd_req.gather.in_nic     = !s1_back_q && (moved_q[s1_q.msg] || msg_spilled) && in_nic_i[msg.ctx];
    rd_req.gather.row        = {nic_area_i[msg.ctx], moved_q[s1_q.msg] ? moved_slot[SpillAreaLog2-1:0] : msg.iova[6 +: SpillAreaLog2]};
    rd_req.gather.read.addr  = s1_back_q ? s1_data_q.data.iova : payload + 64'(offset);
    rd_req.gather.read.bytes = request.bytes;
    rd_req.gather.read.owner = s1_back_q ? s1_data_q.data.owner : msg.owner;
  end

  logic [2:0] rd_count, len_count;
  heddle_fifo #(.Width($bits(payload_req_t)), .Depth(4)) u_rd (
    .clk_i, .rst_ni,
    .valid_i(push && request.read), .ready_o(rd_ready), .data_i(rd_req),
    .valid_o(rd_valid_o), .ready_i(rd_ready_i), .data_o(rd_req_o),
    .count_o(rd_count)
  );
  heddle_fifo #(.Width(14), .Depth(4)) u_len (
    .clk_i, .rst_ni,
    .valid_i(push && request.read), .ready_o(len_ready), .data_i(request.bytes),
    .valid_o(len_valid_o), .ready_i(len_ready_i), .data_o(len_bytes_o),
    .count_o(len_count)
  );

  // ------------------------------------------- stage 2: choose and serialise
  logic raw_valid_q, raw_ready, raw_next;
  assign raw_ready = !raw_valid_q || raw_next;

  logic known;  // Nothing will be read for the oldest packet any more.
  logic rsp_take, newly_failed;
  assign known       = pending_valid && (!pending.read || rec_valid_i);
  assign rsp_ready_o = raw_ready;
  assign rsp_take    = rsp_valid_i && raw_ready;
  assign pending_pop = known && raw_ready && !rsp_valid_i;
  assign rec_ready_o = pending_pop && pending.read;

  logic read_failed;
  assign read_failed  = pending.read && rec_error_i;
  assign newly_failed = pending_pop && !pending.back && (pending.stale || read_failed) &&
                        !failed_q[pending.msg];
  assign fail_o       = newly_failed;
  assign fail_msg_o   = pending.msg;
  assign fail_ctx_o   = pending.ctx;
  assign fail_gen_o   = pending.gen;

  // Payload that was read for a message that failed meanwhile cannot be taken back. It
  // leaves with ie=1, but not in a som packet: that has no length field for its payload.
  tx_request_t final_request;
  logic [13:0] final_bytes;
  always_comb begin
    final_request    = pending;
    final_request.ie = pending.ie || read_failed ||
                       (failed_q[pending.msg] && !pending.control && !pending.asks &&
                        !pending.back && !(pending.read && pending.som));
    final_bytes = '0;
    if (pending.read) begin
      if (!rec_error_i) final_bytes = pending.bytes;
    end else if (pending.inlined && !final_request.ie) begin
      final_bytes = pending.bytes;
    end
  end

  logic        head_fire;
  tx_stack_t   raw_stack;
  assign head_fire = (rsp_take && port_i.enable[0]) || (pending_pop && !pending.drop);
  heddle_tx_header u_header (
    .port_i, .ect_i,
    .valid_i(head_fire), .response_i(rsp_valid_i), .rsp_i,
    .req_i(final_request), .bytes_i(final_bytes),
    .stack_o(raw_stack)
  );

  tx_raw_t raw_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) raw_valid_q <= 1'b0;
    else if (raw_ready) raw_valid_q <= head_fire;
  end
  always_ff @(posedge clk_i) begin
    if (head_fire) begin
      raw_q.hdr <= raw_stack;
      raw_q.crc <= raw_stack.payload_bytes != '0 ? rec_crc_i : '0;
    end
  end

  logic crc_idle;
  heddle_tx_crc u_crc (
    .clk_i, .rst_ni,
    .valid_i(raw_valid_q), .ready_o(raw_next), .raw_i(raw_q),
    .valid_o(head_valid_o), .ready_i(head_ready_i), .head_o,
    .idle_o(crc_idle)
  );

  // Payload that is not on its way to the wire. A retransmitted packet leaves after it, so it is no more than reads of
  // 250 cycles need.
  localparam int unsigned RunAhead  = 20480;
  localparam int unsigned RunAheadW = 14 + $clog2(Pending + 8);
  logic [RunAheadW-1:0] ahead_q, ahead;
  assign ahead = ahead_q + (push && request.read ? RunAheadW'(request.bytes) : '0)
                         - (pending_pop && read_failed ? RunAheadW'(pending.bytes) : '0)
                         - (head_valid_o && head_ready_i ? RunAheadW'(head_o.payload_bytes) : '0);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ahead_q <= '0;
      pause_o <= 1'b0;
    end else begin
      ahead_q <= ahead;
      pause_o <= ahead > RunAheadW'(RunAhead);
    end
  end

  // ------------------------------------------------------------------- state
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      failed_q   <= '0;
      moved_q    <= '0;
      seq_done_o <= '0;
      back_done_o <= '0;
    end else begin
      if (msg_valid_i)  failed_q[msg_index_i] <= 1'b0;
      if (msg_valid_i)  moved_q[msg_index_i] <= 1'b0;
      if (move_i)       moved_q[move_msg_i] <= 1'b1;
      if (newly_failed) failed_q[pending.msg] <= 1'b1;
      if (pending_pop && !pending.back) seq_done_o  <= seq_done_o + 1'b1;
      if (pending_pop && pending.back)  back_done_o <= back_done_o + 1'b1;
    end
  end

  always_comb begin
    stat_o = '0;
    stat_o[StatisticDropNoHop]         = push && !hop_valid && !s1_back_q;
    stat_o[StatisticTxRequests]        = head_fire && !rsp_valid_i && !pending.control &&
                                         !pending.back && !pending.retx;
    stat_o[StatisticTxRetransmissions] = head_fire && !rsp_valid_i && !pending.control &&
                                         !pending.back && pending.retx;
    stat_o[StatisticTxClears]          = head_fire && !rsp_valid_i && pending.control &&
                                         pending.cp_type == CpTypeClearCommand;
    stat_o[StatisticTxAcks]            = head_fire && rsp_valid_i &&
                                         (rsp_i.kind == ResponseAck || rsp_i.kind == ResponseNone);
    stat_o[StatisticTxNacks]           = head_fire && rsp_valid_i && rsp_i.kind == ResponseNack;
  end

  assign idle_o = tables_ready && !pkt_valid_i && !back_valid_i && !rsp_valid_i && !s1_valid_q && !pending_valid
               && !rd_valid_o && !len_valid_o && !raw_valid_q && crc_idle;

  logic unused_bits;
  assign unused_bits = ^{port_i, peer, clear_offset, back_clear, s1_data_q, syn_offset, msg_opcode, rest, msg_error,
                         pdc_error, moved_err, moved_rdy, pending_count, rd_count, len_count};

  `HEDDLE_ASSERT(RecordExpected_A, rec_ready_o |-> rec_valid_i)
  `HEDDLE_ASSUME(NoPacketOfFreedMessage_M, !(newly_failed && msg_valid_i
                                             && msg_index_i == pending.msg))
endmodule
