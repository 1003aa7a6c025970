// SPDX-License-Identifier: Apache-2.0
// Releases the ring slots of operations that are stuck, so that their ring advances, and brings back those that wait.
//
// Crowded:  nothing happens before three quarters of a context's slots are in use as the host sees them,
//           and only in contexts with a spill area, or with `early_release`: those take one in the NIC, if one is free,
//           when their oldest operation is stuck (heddle_spill_areas, heddle_spill_store).
// Round:    a context whose oldest operation is stuck is looked through in ring order, half of its ring ahead of the head,
//           until half of its slots are free or RoundMax were released. The slots of operations in a list, and of
//           messages that are stuck, are released: one is stuck when it has no PDC, its PDC is refused or silent
//           (`stuck_i`), or it waits for others of its operation. Up to InFlight are copied and marked at the same
//           time; a round ends when all are through.
// Copied:   of a message in flight only the payload in extension slots is still read, of one that waits
//           everything. That is copied to the spill area before the slots are released. `move_o` reports where payload
//           of a message is; then no read of the old place may be outstanding. Copied payload stays until the message ends.
// Kept:     an operation in its flow's list has its slots, and is read there, until they are released: then from the area.
//           When the flow has room it is offered to heddle_tx_fetch again; while its slots are being
//           released it is not. Its room is free when it left; that of payload in extension slots when its message ends.
// Marked:   before slots are released, a spill_mark is in the area, and heddle_tx_release ends the operation with a
//           completion in any case (`owe_o`). An area in the NIC has no marks.
// Refused:  a context whose spill area or ring cannot be accessed spills nothing any more.
// Held:     `busy_o` of a context holds its drain token, so host memory is left alone behind it.

`include "heddle_assert.svh"

module heddle_tx_spill
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512   // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,
  input  logic [NumTx-1:0][3:0]      ring_log2_i,
  input  logic [NumTx-1:0][63:0]     spill_base_i,  // 0: none,
  input  logic [NumTx-1:0]           early_i,       // and one in the NIC may take its place.
  input  logic [NumTx-1:0][7:0]      owner_i,
  input  logic [NumTx-1:0][15:0]     tail_i,        // Published by the host,
  input  logic [NumTx-1:0][15:0]     head_i,        // released,
  input  logic [NumTx-1:0][15:0]     told_i,        // and told to the host.

  input  logic             msg_valid_i,      // Message table write, at allocation.
  input  logic [MsgW-1:0]  msg_index_i,
  input  msg_packet_t      msg_packet_i,
  input  msg_done_t        msg_done_i,
  input  logic             enq_i,           // Strobe: a message was queued on its PDC,
  input  logic [MsgW-1:0]  enq_msg_i,
  input  logic [PdcW-1:0]  enq_pdc_i,
  input  logic             pop_i,           // left its queue,
  input  logic [MsgW-1:0]  pop_msg_i,
  input  logic             done_i,          // ended,
  input  logic [MsgW-1:0]  done_msg_i,
  input  logic             free_i,          // left the table.
  input  logic [MsgW-1:0]  free_msg_i,
  input  logic [NumPdc-1:0] stuck_i,        // The PDC sends nothing new.

  output logic             give_valid_o,    // heddle_tx_release: release these slots.
  input  logic             give_ready_i,
  output tx_give_t         give_o,
  input  logic             give_done_i,     // Strobe: it was tried,
  input  logic             give_ok_i,       // and done.

  output logic             owe_o,           // Strobe: a message is about to lose its slots.
  output logic [MsgW-1:0]  owe_msg_o,

  input  logic             put_i,           // heddle_tx_flows, strobe: this operation waits,
  input  tx_keep_t         put_data_i,
  input  logic [RingLog2Max-1:0] put_number_i,  // with this number.
  output logic [NumTx-1:0] closed_o,        // None of these contexts may.
  output logic [FlowW-1:0] flow_o,          // In this flow
  input  logic             some_i,          // some wait,
  input  logic             flow_room_i,     // and one more may be in the table.
  input  logic [RingLog2Max-1:0] first_i,   // Number of the first.
  output logic [RingLog2Max-1:0] number_o,  // The one with this number.
  input  tx_wait_t         wait_i,
  input  logic             last_i,
  input  logic [RingLog2Max-1:0] next_i,
  output logic             pop_o,           // The first leaves.
  output logic [RingLog2Max-1:0] pop_number_o,
  output logic [RingLog2Max-1:0] pop_next_o,
  output logic [AgainW-1:0] ahead_o,
  input  logic             wake_valid_i,
  input  logic [FlowW-1:0] wake_flow_i,
  output logic             wake_take_o,
  output logic             renew_o,
  output logic             barred_o,

  output logic             again_valid_o,   // heddle_tx_fetch: this one may leave.
  output tx_again_t        again_o,
  input  logic             again_seen_i,    // It stays offered.
  input  logic             again_taken_i,   // Strobe: it left,
  input  logic             again_holds_i,   // and needs its extension slots.
  input  logic [NumTx-1:0] room_i,          // Contexts from which one more may leave.
  output logic             stir_o,          // Strobe: something changed for which operations may wait.

  output logic             move_o,          // Strobe: payload of a message is in the spill area, from
  output logic [MsgW-1:0]  move_msg_o,
  output logic [RingLog2Max-1:0] move_slot_o,  // this slot of it on.
  input  logic [SeqW-1:0]  seq_issued_i,
  input  logic [SeqW-1:0]  seq_done_i,

  output logic             rd_valid_o,      // Client RdSpill.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,
  output logic             wr_valid_o,      // Client WrSpill.
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic [NumTx-1:0] in_nic_o,        // The context has an area in the NIC:
  output logic [NumTx-1:0][SpillAreaW-1:0] nic_area_o,  // this one.
  input  logic             pay_valid_i,     // heddle_tx_gather reads payload there.
  input  spill_read_t      pay_i,
  output logic             pay_rsp_valid_o,
  input  logic             pay_rsp_ready_i,
  output logic [DataW-1:0] pay_rsp_data_o,
  output logic             pay_rsp_last_o,

  output logic [NumTx-1:0] busy_o,
  output logic             idle_o
);
  localparam int unsigned InFlight    = 32;   // Operations that are copied and marked at the same time.
  localparam int unsigned RoundMax = 256;  // Other contexts wait for a round.
  localparam int unsigned SlotW    = RingLog2Max;

  typedef struct packed {
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [15:0]     position;
    logic [2:0]      slots;
    logic            copied;  // Its payload is in its extension slots, at
    logic [63:0]     iova;
  } info_t;

  // ------------------------------------------------------------------ messages
  typedef enum logic [3:0] {
    RoundIdle,
    RoundBegin,  // Reads the parameters of its context.
    RoundScan,   // Looks through the ring.
    RoundArea,   // Takes an area in the NIC.
    RoundBook,   // One that waits is no longer brought back.
    RoundSeek,   // Looks for room in the spill area,
    RoundTake,   // and takes it.
    RoundIssue,
    RoundWait    // Those in flight end.
  } round_e;
  round_e           round_d, round_q;
  logic [TxW-1:0]   ctx_q;     // The context of the round.
  logic [GenW-1:0]  round_gen_q;
  logic [SlotW-1:0] mask_q;
  logic [3:0]       log2_q;
  logic [63:0]      area_q;
  logic             no_area_q; // It has none yet.
  logic             in_nic_q;  // It is in the NIC.
  logic [SpillAreaW-1:0] nic_area_q;
  logic [SlotW-1:0] room_mask_q;  // Slots of the area.
  logic [7:0]       owner_q;
  logic [15:0]      pos_q;     // Looked at next.
  logic             here_q;    // The context lives, and is not being cleaned.
  logic [MsgW-1:0]  at, msg_q;
  logic             same_read; // A message in flight is looked up instead.
  spill_item_t      item_q, sent;
  logic [63:0]      iova_q;    // Where it is copied from.

  logic [$bits(info_t)-1:0]  info_raw;
  info_t                     info, info_in;
  logic [PdcW-1:0]           pdc;
  logic                      at_err, at_rdy, info_err, info_rdy, pdc_err, pdc_rdy;
  logic [SlotW-1:0]          msg_slot;
  assign msg_slot = msg_done_i.position[SlotW-1:0] &
                   SlotW'((16'd1 << ring_log2_i[msg_done_i.ctx]) - 16'd1);
  // What is read of a slot may be of an earlier round; its message shows that.
  heddle_mem #(.Width(MsgW), .Depth(NumTx << SlotW), .Init(1'b0)) u_at (
    .clk_i, .rst_ni, .wen_i(msg_valid_i && msg_done_i.slots != '0),
    .waddr_i({msg_done_i.ctx, msg_slot}), .wdata_i(msg_index_i),
    .raddr_i({ctx_q, pos_q[SlotW-1:0] & mask_q}), .rdata_o(at), .error_o(at_err), .ready_o(at_rdy)
  );
  logic        comes_again;   // Its payload is in the spill area.
  logic [63:0] again_offset;
  assign comes_again  = msg_valid_i && (msg_done_i.flags & TxFlagInlineExt) != '0 &&
                        msg_done_i.length != '0 && msg_done_i.slots == '0;
  assign again_offset = msg_packet_i.iova - spill_base_i[msg_done_i.ctx];
  assign info_in = {msg_done_i.ctx, msg_done_i.gen, msg_done_i.position, msg_done_i.slots,
                    (msg_done_i.flags & TxFlagInlineExt) != '0 && msg_done_i.slots > 3'd1 && !comes_again,
                    msg_packet_i.iova};
  heddle_mem #(.Width($bits(info_t)), .Depth(NumMsg), .Init(1'b0)) u_info (
    .clk_i, .rst_ni, .wen_i(msg_valid_i), .waddr_i(msg_index_i), .wdata_i(info_in),
    .raddr_i(same_read ? sent.msg : at), .rdata_o(info_raw),
    .error_o(info_err), .ready_o(info_rdy)
  );
  heddle_mem #(.Width(PdcW), .Depth(NumMsg), .Init(1'b0)) u_pdc (
    .clk_i, .rst_ni, .wen_i(enq_i), .waddr_i(enq_msg_i), .wdata_i(enq_pdc_i),
    .raddr_i(at), .rdata_o(pdc), .error_o(pdc_err), .ready_o(pdc_rdy)
  );
  assign info = info_t'(info_raw);

  // The message that is looked at is in the table, its slots were released, it is in the queue of its PDC, and it
  // was there and has not ended.
  logic live, sent_live, given, queued, begun;
  logic live_ready, given_ready, queued_ready, begun_ready;
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_live (
    .clk_i, .rst_ni, .set_i(msg_valid_i), .set_index_i(msg_index_i), .clear_i(free_i), .clear_index_i(free_msg_i),
    .index_i({sent.msg, msg_q}), .flag_o({sent_live, live}), .ready_o(live_ready)
  );
  heddle_flags #(.Depth(NumMsg)) u_given (
    .clk_i, .rst_ni, .set_i(give_done_i && give_ok_i && !give_o.waits), .set_index_i(give_o.msg),
    .clear_i(msg_valid_i), .clear_index_i(msg_index_i), .index_i(msg_q), .flag_o(given), .ready_o(given_ready)
  );
  heddle_flags #(.Depth(NumMsg)) u_queued (
    .clk_i, .rst_ni, .set_i(enq_i), .set_index_i(enq_msg_i), .clear_i(pop_i), .clear_index_i(pop_msg_i),
    .index_i(msg_q), .flag_o(queued), .ready_o(queued_ready)
  );
  heddle_flags #(.Depth(NumMsg)) u_begun (
    .clk_i, .rst_ni, .set_i(enq_i), .set_index_i(enq_msg_i), .clear_i(done_i), .clear_index_i(done_msg_i),
    .index_i(msg_q), .flag_o(begun), .ready_o(begun_ready)
  );

  // ------------------------------------------------------- operations that wait
  typedef struct packed {
    logic [2:0]       slots;   // 0: none that has its slots starts there.
    logic [SlotW-1:0] number;
  } kept_t;
  logic [TxW-1:0]   again_ctx;
  logic [SlotW-1:0] left_slot;
  logic             again_held, again_busy, again_stir;

  // Both memories are written for one of: one joins, one left with its slots, one in flight is through
  // (in the area, or as before), one is taken for the round.
  logic             left, through_want, through, through_ok, book_want, book;
  logic             kept_wen, where_wen;
  logic [TxW-1:0]   write_ctx;
  logic [SlotW-1:0] write_slot, write_number, put_slot;
  kept_t            kept_in, kept;
  spill_where_t     where_in, where;
  logic             where_err, where_rdy;
  logic [NumTx-1:0] kept_dirty, dirty, restart;
  assign put_slot = put_data_i.position[SlotW-1:0] &
                    SlotW'((16'd1 << ring_log2_i[put_data_i.ctx]) - 16'd1);
  assign through  = through_want && !put_i && !left;
  assign book     = book_want && !put_i && !left && !through_want;
  always_comb begin
    write_ctx    = ctx_q;
    write_slot   = item_q.position[SlotW-1:0] & mask_q;
    write_number = item_q.number;
    kept_in      = '0;
    where_in     = {1'b1, 1'b0, SlotW'(0)};
    kept_wen     = book;
    where_wen    = book;
    if (put_i) begin
      write_ctx    = put_data_i.ctx;
      write_slot   = put_slot;
      write_number = put_number_i;
      kept_in      = {put_data_i.slots, put_number_i};
      where_in     = '0;
      kept_wen     = 1'b1;
      where_wen    = 1'b1;
    end else if (left) begin
      write_ctx    = again_ctx;
      write_slot   = left_slot;
      kept_wen     = 1'b1;
      where_wen    = 1'b0;
    end else if (through_want) begin
      write_slot   = sent.position[SlotW-1:0] & mask_q;
      write_number = sent.number;
      kept_in      = {sent.slots, sent.number};
      where_in     = {1'b0, through_ok, sent.first};
      kept_wen     = here_q && !through_ok;
      where_wen    = here_q;
    end
    if (kept_dirty[write_ctx]) kept_wen = 1'b0;
  end
  heddle_ring_state #(.Width($bits(kept_t)), .NumCtx(NumTx)) u_kept (
    .clk_i, .rst_ni, .restart_i(restart), .log2_i(ring_log2_i), .dirty_o(kept_dirty),
    .wen_i(kept_wen), .waddr_i({write_ctx, write_slot}), .wdata_i(kept_in),
    .raddr_i({ctx_q, pos_q[SlotW-1:0] & mask_q}), .rdata_o(kept)
  );
  heddle_mem #(.Width($bits(spill_where_t)), .Depth(NumTx << SlotW), .Init(1'b0)) u_where (
    .clk_i, .rst_ni, .wen_i(where_wen), .waddr_i({write_ctx, write_number}), .wdata_i(where_in),
    .raddr_i({again_ctx, number_o}), .rdata_o(where), .error_o(where_err), .ready_o(where_rdy)
  );
  assign closed_o = kept_dirty;

  // Rings of the contexts, as those that wait reported them.
  logic [51:0] ring_page, again_page;
  heddle_lookup #(.Width(52), .Depth(NumTx)) u_ring (
    .clk_i, .wen_i(put_i), .waddr_i(put_data_i.ctx), .wdata_i(put_data_i.ring[63:12]),
    .raddr_i(ctx_q), .rdata_o(ring_page)
  );
  heddle_lookup #(.Width(52), .Depth(NumTx)) u_again_ring (
    .clk_i, .wen_i(put_i), .waddr_i(put_data_i.ctx), .wdata_i(put_data_i.ring[63:12]),
    .raddr_i(again_ctx), .rdata_o(again_page)
  );

  // --------------------------------------------------------- choice of a context
  logic [NumTx-1:0] crowded_q, want, examined_q, refused_q;
  logic             area_free, area_freed, areas_idle, take_area;
  logic [SpillAreaW-1:0] area_first;
  logic             pick_valid, pick_take;
  logic [TxW-1:0]   pick_ctx;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      crowded_q <= '0;
    end else begin
      for (int unsigned i = 0; i < NumTx; i++) begin
        // Three quarters of a ring of at least 8 slots.
        crowded_q[i] <= alive_i[i] && (spill_base_i[i] != '0 || early_i[i]) && !refused_q[i] &&
                        tail_i[i] - told_i[i] >= (16'd3 << ring_log2_i[i]) >> 2;
      end
    end
  end
  assign want      = crowded_q & ~examined_q & ~dirty & ~kept_dirty & (~early_i | in_nic_o | {NumTx{area_free}});
  assign pick_take = round_q == RoundIdle && pick_valid;
  heddle_rr_pick #(.NumSrc(NumTx)) u_pick (
    .clk_i, .rst_ni, .valid_i(want), .valid_o(pick_valid), .idx_o(pick_ctx), .take_i(pick_take)
  );

  // A head that is not stuck is looked at again when anything changed.
  logic                   stir, stirred_q, let_be;
  logic [NumPdc-1:0]      stuck_q;
  logic [NumTx-1:0]       room_q;
  logic [NumTx-1:0][15:0] tail_q, told_q;
  assign stir = msg_valid_i || enq_i || pop_i || done_i || free_i || stuck_i != stuck_q || put_i ||
                tail_i != tail_q || told_i != told_q || (room_i & ~room_q) != '0;

  // ------------------------------------------------------------ room in the area
  logic             found, nothing, taken, room_freed, room_idle;
  logic             drop_want, drop_take, back_want, back_take;
  logic [SlotW-1:0] first;
  spill_place_t     again_place, drop, back;
  logic [NumTx-1:0] alive_q;
  logic [NumTx-1:0][GenW-1:0] gen_q;
  logic [NumTx-1:0] over;
  always_comb begin
    restart = '0;
    over    = '0;
    if (alive_i != alive_q || gen_i != gen_q) begin
      for (int unsigned i = 0; i < NumTx; i++) begin
        restart[i] = alive_i[i] && (!alive_q[i] || gen_i[i] != gen_q[i]);
        over[i]    = alive_q[i] && (!alive_i[i] || gen_i[i] != gen_q[i]);
      end
    end
  end
  heddle_spill_areas u_areas (
    .clk_i, .rst_ni, .over_i(over), .seq_issued_i, .seq_done_i,
    .take_i(take_area), .take_ctx_i(ctx_q), .free_o(area_free),
    .has_o(in_nic_o), .area_o(nic_area_o), .area_first_o(area_first), .freed_o(area_freed), .idle_o(areas_idle)
  );
  assign again_place = {msg_done_i.ctx, msg_done_i.gen, again_offset[6 +: SlotW],
                        3'((msg_done_i.length + 32'(DescBytes - 1)) >> $clog2(DescBytes))};
  heddle_tx_spill_room u_room (
    .clk_i, .rst_ni, .alive_i, .gen_i, .ring_log2_i, .restart_i(restart), .dirty_o(dirty),
    .ctx_i(ctx_q), .mask_i(room_mask_q), .here_i(here_q), .find_i(find), .soon_i(finds_kept), .slots_i(item_q.extra),
    .seek_i(round_q == RoundSeek), .found_o(found), .nothing_o(nothing), .take_i(round_q == RoundTake),
    .taken_o(taken), .first_o(first),
    .msg_valid_i, .msg_index_i, .msg_here_i(comes_again), .msg_place_i(again_place),
    .move_i(move_o), .move_msg_i(sent.msg), .move_place_i(drop), .free_i, .free_msg_i,
    .back_valid_i(back_want), .back_ready_o(back_take), .back_i(back),
    .drop_valid_i(drop_want), .drop_ready_o(drop_take), .drop_i(drop), .freed_o(room_freed), .idle_o(room_idle)
  );

  // -------------------------------------------------------------------- a round
  // Two stages read who starts at a slot, and its message. After a find the rest is looked at again.
  logic              one_valid_q, two_valid_q;
  logic              rewind;     // Looks again at a slot that was left, or whose message was not read.
  logic              full;       // As many as can be are in flight.
  logic [15:0]       rewind_pos;
  logic [2:0]        found_slots;
  logic [15:0]       one_pos_q, two_pos_q, start_q, head_q, tail_here_q, half_q, ahead;
  logic              far_q;      // As far ahead of the head as it looks.
  logic              enough_q;   // Half of the slots are free,
  logic [$clog2(RoundMax):0] given_q;  // or so many were released in this round.
  kept_t             kept_q;
  logic              finds_kept, finds_msg, find;
  logic              gone_q;     // The message found ended meanwhile.
  logic              nothing_q;  // There is no room for it.
  logic              issue, launch, failed, none, same;
  spill_item_t       issued;
  logic              copy_valid, copy_grant, copy_rsp_ready, again_read, again_rsp_ready, offered_q;
  logic              tag_ready, tag_valid, tag_again, tag_in_nic, in_nic_tag;
  logic              again_in_nic, nic_read, again_rsp_valid, nic_rsp_valid;
  spill_read_t       again_nic, tag_nic;
  localparam int unsigned RowBeats = DescBytes * 8 / DataW;
  localparam int unsigned RowBeatW = RowBeats > 1 ? $clog2(RowBeats) : 1;
  logic                 st_valid;
  logic [SpillRowW-1:0] st_row;
  logic [RowBeatW-1:0]  st_beat;
  logic [DataW-1:0]     st_data;
  logic [$clog2(InFlight)+1:0] tag_count;
  dma_req_t          copy_req, again_req;
  assign ahead      = pos_q - head_q;
  assign finds_kept = kept_q.slots != '0;
  assign finds_msg  = live && !given && info.ctx == ctx_q && info.gen == round_gen_q &&
                      info.position == two_pos_q && info.slots != '0 &&
                      (!begun || (queued && stuck_i[pdc]));
  assign find       = round_q == RoundScan && two_valid_q && !left && (finds_kept || finds_msg);
  assign found_slots = finds_kept ? kept_q.slots : info.slots;
  assign rewind     = left || (same_read && one_valid_q) || (find && (full || no_area_q));
  assign rewind_pos = two_valid_q && (left || find) ? two_pos_q : one_valid_q ? one_pos_q : pos_q;
  assign book_want  = round_q == RoundBook && here_q && !(again_busy && again_ctx == ctx_q && again_held);
  assign issue      = round_q == RoundIssue && here_q && !nothing_q && !(!item_q.waits && (gone_q || (free_i && free_msg_i == item_q.msg)));
  assign take_area  = round_q == RoundArea && area_free && here_q && alive_i[ctx_q] && gen_i[ctx_q] == round_gen_q;
  assign owe_o      = issue && !item_q.waits;
  assign owe_msg_o  = item_q.msg;
  // One that keeps its slots after all has to be through, too, if it was booked or has room.
  assign launch     = round_q == RoundIssue && (issue || item_q.waits || (item_q.copied && !nothing_q));
  always_comb begin
    issued = item_q;
    if (nothing_q) issued.copied = 1'b0;
  end

  always_comb begin
    round_d = round_q;
    let_be  = 1'b0;
    unique case (round_q)
      RoundIdle:  if (pick_take) round_d = RoundBegin;
      RoundBegin: round_d = RoundScan;
      RoundScan: begin
        if (!here_q || refused_q[ctx_q]) begin
          round_d = RoundWait;
        end else if (find && no_area_q) begin
          round_d = RoundArea;
        end else if (find && !full) begin
          round_d = finds_kept ? RoundBook : info.copied ? RoundSeek : RoundIssue;
        end else if (two_valid_q && !find && !left && two_pos_q == start_q) begin
          let_be  = 1'b1;  // The oldest is not stuck.
          round_d = RoundIdle;
        end else if ((enough_q || (far_q && none)) && !one_valid_q && !two_valid_q) begin
          round_d = RoundWait;
        end
      end
      // Without a free one it waits for that.
      RoundArea: begin
        let_be  = here_q && !take_area;
        round_d = take_area ? RoundScan : here_q ? RoundIdle : RoundWait;
      end
      // One that is being brought back is left alone, and later ones are for the next round.
      RoundBook: begin
        if (book)            round_d = RoundSeek;
        else if (!book_want) begin
          let_be  = none;
          round_d = RoundWait;
        end
      end
      RoundSeek: begin
        if (found)        round_d = RoundTake;
        else if (nothing) round_d = RoundIssue;
      end
      RoundTake:  if (taken) round_d = RoundIssue;
      RoundIssue: begin
        let_be  = nothing_q && none;
        round_d = nothing_q ? RoundWait : RoundScan;
      end
      RoundWait:  if (none) round_d = RoundIdle;
      default:    round_d = RoundIdle;
    endcase
  end
  heddle_tx_spill_copy #(.DataW(DataW), .InFlight(InFlight)) u_copy (
    .clk_i, .rst_ni, .ctx_i(ctx_q), .gen_i(round_gen_q), .here_i(here_q), .refused_i(refused_q[ctx_q]),
    .log2_i(log2_q), .area_i(area_q), .in_nic_i(in_nic_q), .nic_area_i(nic_area_q), .owner_i(owner_q),
    .launch_i(launch), .void_i(!issue), .item_i(issued), .iova_i(iova_q), .full_o(full), .none_o(none),
    .sent_o(sent), .look_o(same_read), .same_i(same), .through_o(through_want), .through_ok_o(through_ok),
    .through_ready_i(through), .drop_o(drop_want), .drop_ready_i(drop_take), .failed_o(failed), .move_o,
    .seq_issued_i, .seq_done_i, .give_valid_o, .give_ready_i, .give_o, .give_done_i,
    .rd_valid_o(copy_valid), .rd_ready_i(copy_grant && rd_ready_i && tag_ready), .rd_req_o(copy_req),
    .rd_rsp_valid_i(rd_rsp_valid_i && tag_valid && !tag_again), .rd_rsp_ready_o(copy_rsp_ready),
    .rd_rsp_data_i, .rd_rsp_last_i, .rd_rsp_error_i,
    .wr_valid_o, .wr_ready_i, .wr_req_o, .wr_data_valid_o, .wr_data_ready_i, .wr_data_o,
    .wr_rsp_valid_i, .wr_rsp_error_i,
    .st_valid_o(st_valid), .st_row_o(st_row), .st_beat_o(st_beat), .st_data_o(st_data)
  );
  assign same        = sent_live && info.ctx == ctx_q && info.gen == round_gen_q &&
                       info.position == sent.position && !(free_i && free_msg_i == sent.msg) && here_q;
  assign move_msg_o  = sent.msg;
  assign move_slot_o = sent.first;
  assign drop        = {ctx_q, round_gen_q, sent.first, sent.extra};

  heddle_tx_again #(.DataW(DataW)) u_again (
    .clk_i, .rst_ni, .alive_i, .gen_i, .ring_log2_i, .spill_base_i, .in_nic_i(in_nic_o), .nic_area_i(nic_area_o),
    .owner_i, .room_i,
    .flow_o, .some_i, .flow_room_i, .ahead_o, .first_i, .number_o, .wait_i, .last_i, .next_i,
    .pop_o, .pop_number_o, .pop_next_o,
    .wake_valid_i, .wake_flow_i, .wake_take_o, .renew_o, .barred_o,
    .ctx_o(again_ctx), .busy_o(again_busy), .look_number_i(item_q.number), .held_o(again_held), .where_i(where), .ring_i({again_page, 12'b0}),
    .left_o(left), .left_slot_o(left_slot), .free_o(back_want), .free_place_o(back), .free_ready_i(back_take),
    .stir_o(again_stir), .again_valid_o, .again_o, .again_seen_i, .again_taken_i, .again_holds_i,
    .rd_valid_o(again_read), .rd_ready_i(!copy_grant && (again_in_nic || rd_ready_i) && tag_ready), .rd_req_o(again_req),
    .rd_in_nic_o(again_in_nic), .rd_nic_o(again_nic),
    .rd_rsp_valid_i(again_rsp_valid), .rd_rsp_ready_o(again_rsp_ready),
    .rd_rsp_data_i(tag_in_nic ? pay_rsp_data_o : rd_rsp_data_i),
    .rd_rsp_last_i(tag_in_nic ? pay_rsp_last_o : rd_rsp_last_i), .rd_rsp_error_i(!tag_in_nic && rd_rsp_error_i)
  );

  // --------------------------------------------------------------- reads of both
  // One that comes again goes first, but not before a request that is offered already.
  assign copy_grant     = copy_valid && (!again_read || offered_q);
  assign rd_valid_o     = (copy_grant || (again_read && !again_in_nic)) && tag_ready;
  assign rd_req_o       = copy_grant ? copy_req : again_req;
  assign rd_rsp_ready_o = tag_valid && !tag_in_nic && (tag_again ? again_rsp_ready : copy_rsp_ready);
  assign nic_read       = !copy_grant && again_read && again_in_nic;
  heddle_fifo #(.Width(2 + $bits(spill_read_t)), .Depth(2 * InFlight)) u_tags (
    .clk_i, .rst_ni, .valid_i((rd_valid_o && rd_ready_i) || nic_read), .ready_o(tag_ready),
    .data_i({!copy_grant, nic_read, again_nic}), .valid_o(tag_valid),
    .ready_i(tag_in_nic ? nic_rsp_valid && again_rsp_ready && pay_rsp_last_o
                        : rd_rsp_valid_i && rd_rsp_ready_o && rd_rsp_last_i),
    .data_o({tag_again, in_nic_tag, tag_nic}), .count_o(tag_count)
  );
  assign tag_in_nic      = tag_valid && in_nic_tag;
  assign again_rsp_valid = tag_in_nic ? nic_rsp_valid : rd_rsp_valid_i && tag_valid && tag_again;
  heddle_spill_store #(.DataW(DataW)) u_store (
    .clk_i, .rst_ni, .wr_valid_i(st_valid), .wr_row_i(st_row), .wr_beat_i(st_beat), .wr_data_i(st_data),
    .rd_valid_i({tag_in_nic, pay_valid_i}), .rd_i({tag_nic, pay_i}),
    .rsp_valid_o({nic_rsp_valid, pay_rsp_valid_o}), .rsp_ready_i({again_rsp_ready, pay_rsp_ready_i}),
    .rsp_data_o(pay_rsp_data_o), .rsp_last_o(pay_rsp_last_o)
  );

  always_comb begin
    busy_o = '0;
    if (round_q != RoundIdle) busy_o[ctx_q] = 1'b1;
    if (again_busy)           busy_o[again_ctx] = 1'b1;
  end
  assign idle_o = round_q == RoundIdle && !again_busy && room_idle && live_ready && given_ready &&
                  queued_ready && begun_ready && areas_idle && !tag_valid && !pay_valid_i &&
                  want == '0 && dirty == '0 && kept_dirty == '0 && !stir && !wake_valid_i;
  // Room that came free also.
  assign stir_o = stir || room_freed || again_stir || area_freed;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      round_q       <= RoundIdle;
      one_valid_q   <= 1'b0;
      two_valid_q   <= 1'b0;
      offered_q     <= 1'b0;
      examined_q    <= '0;
      refused_q     <= '0;
      stirred_q     <= 1'b0;
      alive_q       <= '0;
      gen_q         <= '0;
      stuck_q       <= '0;
      room_q        <= '0;
      tail_q        <= '0;
      told_q        <= '0;
    end else begin
      round_q       <= round_d;
      alive_q       <= alive_i;
      gen_q         <= gen_i;
      stuck_q       <= stuck_i;
      room_q        <= room_i;
      tail_q        <= tail_i;
      told_q        <= told_i;
      offered_q     <= copy_grant && rd_valid_o && !rd_ready_i;
      // The ring is looked through while the round scans.
      one_valid_q <= round_q == RoundScan && round_d == RoundScan && !rewind && !far_q && !enough_q;
      two_valid_q <= round_q == RoundScan && round_d == RoundScan && !rewind && one_valid_q;

      stirred_q <= pick_take ? 1'b0 : stirred_q || stir_o;
      if (let_be && !stirred_q) examined_q[ctx_q] <= 1'b1;
      if (stir_o) examined_q <= '0;
      refused_q <= refused_q & ~restart;
      if (failed) refused_q[ctx_q] <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (pick_take) ctx_q <= pick_ctx;
    head_q      <= head_i[ctx_q];
    tail_here_q <= tail_i[ctx_q];
    if (round_q == RoundBegin) begin
      // As it was when it was chosen.
      round_gen_q <= gen_q[ctx_q];
      here_q      <= alive_i[ctx_q] && gen_i[ctx_q] == gen_q[ctx_q] && !dirty[ctx_q] && !kept_dirty[ctx_q];
      log2_q      <= ring_log2_i[ctx_q];
      mask_q      <= SlotW'((16'd1 << ring_log2_i[ctx_q]) - 16'd1);
      half_q      <= 16'd1 << ring_log2_i[ctx_q] >> 1;
      area_q      <= spill_base_i[ctx_q];
      no_area_q   <= early_i[ctx_q] && !in_nic_o[ctx_q];
      in_nic_q    <= early_i[ctx_q];
      nic_area_q  <= nic_area_o[ctx_q];
      room_mask_q <= early_i[ctx_q] && ring_log2_i[ctx_q] > 4'(SpillAreaLog2) ?
                     SlotW'((16'd1 << SpillAreaLog2) - 16'd1) : SlotW'((16'd1 << ring_log2_i[ctx_q]) - 16'd1);
      owner_q     <= owner_i[ctx_q];
      start_q     <= head_i[ctx_q];
      pos_q       <= head_i[ctx_q];
      far_q       <= 1'b0;
      enough_q    <= 1'b0;
      given_q     <= '0;
    end else begin
      here_q   <= here_q && alive_i[ctx_q] && gen_i[ctx_q] == round_gen_q;
      far_q    <= !ahead[15] && ahead >= half_q;
      if (take_area) begin
        no_area_q  <= 1'b0;
        nic_area_q <= area_first;
      end
      enough_q <= tail_here_q - head_q <= half_q || given_q[$clog2(RoundMax)];
      if (launch) given_q <= given_q + 1'b1;
    end
    one_pos_q <= pos_q;
    two_pos_q <= one_pos_q;
    msg_q     <= at;
    kept_q    <= kept;
    if (round_q == RoundScan) begin
      if (find && !full && !no_area_q) pos_q <= two_pos_q + 16'(found_slots);
      else if (rewind)                 pos_q <= rewind_pos;
      else if (!far_q && !enough_q) pos_q <= pos_q + 16'd1;
    end
    if (find) begin
      item_q.waits    <= finds_kept;
      item_q.number   <= kept_q.number;
      item_q.msg      <= msg_q;
      item_q.position <= two_pos_q;
      item_q.slots    <= found_slots;
      item_q.copied   <= finds_kept || info.copied;
      item_q.extra    <= finds_kept ? kept_q.slots : info.slots - 3'd1;
      iova_q          <= finds_kept ? {ring_page, 12'b0} + 64'({two_pos_q[SlotW-1:0] & mask_q, 6'b0}) : info.iova;
      nothing_q       <= 1'b0;
      gone_q          <= free_i && free_msg_i == msg_q;
    end else if (free_i && free_msg_i == item_q.msg) begin
      gone_q <= 1'b1;
    end
    if (round_q == RoundSeek) nothing_q    <= nothing && !found;
    if (round_q == RoundTake) item_q.first <= first;
  end

  logic unused;
  assign unused = ^{at_err, at_rdy, info_err, info_rdy, pdc_err, pdc_rdy, where_err, where_rdy, msg_packet_i, msg_done_i,
                    put_data_i, again_offset, tag_count, sent};
endmodule
