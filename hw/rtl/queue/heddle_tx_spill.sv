// SPDX-License-Identifier: Apache-2.0
// Gives up the ring slots of messages that are stuck, so that their ring goes on.
//
// Crowded:  nothing happens before three quarters of a context's slots are in use as the host sees them,
//           and only in contexts with a spill area.
// Oldest:   slots are given up in ring order, the oldest operation's first, while its message is stuck: it has
//           no PDC, its PDC is refused or silent (`stuck_i`), or it waits for others of its operation.
// Copied:   of a message in flight only the payload in extension slots is still read. It is copied to the
//           spill area, `move_o` says where to, and the slots are given up when no read of the old place is
//           outstanding. The copy stays until the message ends.
// Kept:     an operation that heddle_tx_fetch offers is copied as it is, and waits in its flow's list. When the
//           flow has room, it is read and offered to heddle_tx_fetch again. Its room is free when it left; that
//           of payload in extension slots when its message ends. It has its slots until then, or until it is
//           the oldest of a crowded ring: then they leave as those of a NOP.
// Marked:   before slots are given up, the area says so (spill_mark), and heddle_tx_release hears that the operation
//           has to end with a completion.
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
  input  logic [NumTx-1:0][63:0]     spill_base_i,  // 0: none.
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

  output logic             spill_valid_o,   // heddle_tx_release: give up the slots of
  input  logic             spill_ready_i,
  output logic [MsgW-1:0]  spill_msg_o,
  input  logic             spill_done_i,    // Strobe: it was tried.

  output logic             owe_o,           // Strobe: a message is about to lose its slots.
  output logic [MsgW-1:0]  owe_msg_o,

  input  logic             keep_valid_i,    // heddle_tx_fetch: copy this descriptor and its extension slots.
  input  tx_keep_t         keep_i,
  output logic             keep_done_o,     // Strobe: tried,
  output logic             keep_ok_o,       // and done.
  output logic             again_valid_o,   // This one may leave.
  output tx_again_t        again_o,
  input  logic             again_seen_i,    // It stays offered.
  input  logic             again_taken_i,   // Strobe: it left,
  input  logic             again_holds_i,   // and needs its extension slots.
  input  logic [NumTx-1:0] room_i,          // Contexts from which one more may leave.
  output logic [FlowW-1:0] flow_o,          // heddle_tx_flows.
  output logic             put_o,
  output logic [RingLog2Max-1:0] slot_o,
  output tx_wait_t         wait_o,
  input  logic [RingLog2Max-1:0] first_i,
  input  tx_wait_t         wait_i,
  output logic             pop_o,
  input  logic             some_i,
  input  logic             flow_room_i,
  input  logic             wake_valid_i,
  input  logic [FlowW-1:0] wake_flow_i,
  output logic             wake_take_o,
  output logic             renew_o,
  output logic             barred_o,
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

  output logic [NumTx-1:0] busy_o,
  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
  localparam int unsigned Beats  = (InjectBytes + DescBytes) * 8 / DataW;  // Of the longest copy.
  localparam int unsigned BeatW  = $clog2(Beats + 1);
  localparam int unsigned SlotW  = RingLog2Max;

  typedef enum logic [4:0] {
    StIdle,
    StAt,      // Which message is at the head's slot is being read,
    StInfo,    // what it is,
    StLook,    // and whether it is stuck.
    StScan,    // Looks for room in the spill area,
    StTake,    // and takes it.
    StRead, StData, StWrite, StStore, StStored,  // Copies.
    StDrop,    // Gives back the room of a copy that is not needed.
    StQuiet,   // Reads of the old place end.
    StOwe, StMark, StMarkData, StMarked,  // Its slot is marked.
    StAsk, StAnswer,
    StFree,    // Room of a message that ended.
    StPut,     // A copied descriptor joins its list.
    StStart,   // A descriptor is to be copied.
    StHead, StEntry, StLoad,  // The first of a list is looked up,
    StOffer    // and offered when it was read.
  } state_e;

  // What is under way: slots are given up, a descriptor is moved here, comes back, or leaves its slots.
  typedef enum logic [1:0] {KindGive, KindKeep, KindAgain, KindHollow} kind_e;

  typedef struct packed {
    logic [TxW-1:0]  ctx;
    logic [GenW-1:0] gen;
    logic [7:0]      owner;
    logic [15:0]     position;
    logic [2:0]      slots;
    logic            copied;  // Its payload is in its extension slots, at
    logic [63:0]     iova;
  } info_t;

  typedef struct packed {
    logic [TxW-1:0]   ctx;
    logic [GenW-1:0]  gen;
    logic [SlotW-1:0] slot;
    logic [2:0]       slots;
  } place_t;

  state_e           state_d, state_q;
  kind_e            kind_q;
  logic [TxW-1:0]   ctx_q;
  logic [MsgW-1:0]  msg_q;
  logic [SlotW-1:0] mask, head_slot;
  assign mask      = SlotW'((16'd1 << ring_log2_i[ctx_q]) - 16'd1);
  assign head_slot = head_i[ctx_q][SlotW-1:0] & mask;

  // ------------------------------------------------------------------ messages
  logic [MsgW-1:0]           at;
  logic [$bits(info_t)-1:0]  info_raw;
  info_t                     info, info_q, info_in;
  logic [PdcW-1:0]           pdc;
  logic                      at_err, at_rdy, info_err, info_rdy, pdc_err, pdc_rdy;
  logic [SlotW-1:0]          msg_slot;
  assign msg_slot = msg_done_i.position[SlotW-1:0] &
                   SlotW'((16'd1 << ring_log2_i[msg_done_i.ctx]) - 16'd1);
  // What is read of a slot may be of an earlier round; its message shows that.
  heddle_mem #(.Width(MsgW), .Depth(NumTx << SlotW), .Init(1'b0)) u_at (
    .clk_i, .rst_ni, .wen_i(msg_valid_i && msg_done_i.slots != '0),
    .waddr_i({msg_done_i.ctx, msg_slot}), .wdata_i(msg_index_i),
    .raddr_i({ctx_q, head_slot}), .rdata_o(at), .error_o(at_err), .ready_o(at_rdy)
  );
  logic        comes_again;   // Its payload is in the spill area.
  logic [63:0] again_offset;
  assign comes_again  = msg_valid_i && (msg_done_i.flags & TxFlagInlineExt) != '0 &&
                        msg_done_i.length != '0 && spill_base_i[msg_done_i.ctx] != '0 &&
                        again_offset < 64'(DescBytes) << ring_log2_i[msg_done_i.ctx];
  assign again_offset = msg_packet_i.iova - spill_base_i[msg_done_i.ctx];
  assign info_in = {msg_done_i.ctx, msg_done_i.gen, msg_done_i.owner, msg_done_i.position,
                    msg_done_i.slots,
                    (msg_done_i.flags & TxFlagInlineExt) != '0 && msg_done_i.slots > 3'd1 && !comes_again,
                    msg_packet_i.iova};
  heddle_mem #(.Width($bits(info_t)), .Depth(NumMsg), .Init(1'b0)) u_info (
    .clk_i, .rst_ni, .wen_i(msg_valid_i), .waddr_i(msg_index_i), .wdata_i(info_in),
    .raddr_i(state_q == StInfo ? at : msg_q), .rdata_o(info_raw),
    .error_o(info_err), .ready_o(info_rdy)
  );
  heddle_mem #(.Width(PdcW), .Depth(NumMsg), .Init(1'b0)) u_pdc (
    .clk_i, .rst_ni, .wen_i(enq_i), .waddr_i(enq_msg_i), .wdata_i(enq_pdc_i),
    .raddr_i(at), .rdata_o(pdc), .error_o(pdc_err), .ready_o(pdc_rdy)
  );
  assign info = info_t'(info_raw);

  logic [NumMsg-1:0] live_q;    // In the table.
  logic [NumMsg-1:0] given_q;   // Its slots were given up, or that was asked for.
  logic [NumMsg-1:0] queued_q;  // In the queue of its PDC.
  logic [NumMsg-1:0] begun_q;   // It was, and has not ended.
  logic [NumMsg-1:0] moved_q;   // Its payload is in the spill area,
  logic [NumMsg-1:0] again_q;   // and came there with its descriptor.
  logic              is_head, is_stuck;
  assign is_head  = live_q[msg_q] && !given_q[msg_q] && info.ctx == ctx_q &&
                    info.gen == gen_i[ctx_q] && alive_i[ctx_q] && info.position == head_i[ctx_q];
  assign is_stuck = !begun_q[msg_q] || (queued_q[msg_q] && stuck_i[pdc]);

  // --------------------------------------------------------- choice of a context
  logic [NumTx-1:0] kept_dirty;
  logic             look_kept;
  logic [2:0]       kept;      // Slots of an operation that waits here; 0: none starts there.
  logic [SlotW-1:0] kept_at;   // Where it waits.
  logic [15:0]      head_q;    // When `kept` was read.
  logic [NumTx-1:0] on, crowded, want, examined_q, refused_q, dirty;
  logic [NumTx-1:0] hollow_q;  // The oldest waits here and is marked: its slots leave without it.
  logic             pick_valid, pick_take;
  logic [TxW-1:0]   pick_ctx;
  always_comb begin
    on      = '0;
    crowded = '0;
    for (int unsigned i = 0; i < NumTx; i++) begin
      on[i] = alive_i[i] && spill_base_i[i] != '0;
      // Three quarters of a ring of at least 8 slots.
      if (on[i]) crowded[i] = tail_i[i] - told_i[i] >= (16'd3 << ring_log2_i[i]) >> 2;
    end
  end
  assign want = (crowded | (hollow_q & on)) & ~examined_q & ~dirty & ~kept_dirty;
  heddle_rr_pick #(.NumSrc(NumTx)) u_pick (
    .clk_i, .rst_ni, .valid_i(want), .valid_o(pick_valid), .idx_o(pick_ctx), .take_i(pick_take)
  );

  // A head that is not stuck is looked at again when anything changed.
  logic                   stir, stirred_q, let_be;
  logic [NumPdc-1:0]      stuck_q;
  logic [NumTx-1:0]       room_q;
  logic [NumTx-1:0][15:0] tail_q, told_q;
  assign stir = msg_valid_i || enq_i || pop_i || done_i || free_i || stuck_i != stuck_q ||
                tail_i != tail_q || told_i != told_q || (room_i & ~room_q) != '0;

  // ------------------------------------------------------------ room in the area
  logic             bit_wen, bit_taken;
  logic [TxW-1:0]   bit_ctx;
  logic [SlotW-1:0] bit_slot, scan_q, first_q;
  logic [NumTx-1:0][SlotW-1:0] next_q;  // Behind what was taken last.
  logic [NumTx-1:0] alive_q, restart;
  logic [NumTx-1:0][GenW-1:0] gen_q;
  always_comb begin
    restart = '0;
    if (alive_i != alive_q || gen_i != gen_q) begin
      for (int unsigned i = 0; i < NumTx; i++) begin
        restart[i] = alive_i[i] && (!alive_q[i] || gen_i[i] != gen_q[i]);
      end
    end
  end
  heddle_ring_state #(.Width(1), .NumCtx(NumTx)) u_taken (
    .clk_i, .rst_ni, .restart_i(restart), .log2_i(ring_log2_i), .dirty_o(dirty),
    .wen_i(bit_wen), .waddr_i({bit_ctx, bit_slot}), .wdata_i(state_q == StTake),
    .raddr_i({ctx_q, scan_q}), .rdata_o(bit_taken)
  );

  // Ring slots of operations that wait here.
  logic             kept_wen;
  logic [SlotW-1:0] own_slot;  // Ring slot of what is under way.
  assign own_slot  = info_q.position[SlotW-1:0] & mask;
  assign look_kept = head_q == head_i[ctx_q] && kept != '0 && alive_i[ctx_q];
  assign kept_wen  = (put_o || (state_q == StOffer && again_taken_i && again_o.holds)) &&
                     !kept_dirty[ctx_q];
  heddle_ring_state #(.Width(3 + SlotW), .NumCtx(NumTx)) u_kept (
    .clk_i, .rst_ni, .restart_i(restart), .log2_i(ring_log2_i), .dirty_o(kept_dirty),
    .wen_i(kept_wen), .waddr_i({ctx_q, own_slot}), .wdata_i(put_o ? {info_q.slots, first_q} : '0),
    .raddr_i({ctx_q, kind_q == KindAgain ? own_slot : head_slot}), .rdata_o({kept, kept_at})
  );

  logic         seen_q;       // `bit_taken` is of `scan_q`.
  logic [2:0]   run_q, left_q;
  logic [SlotW:0] looked_q;   // Slots looked at.
  logic [2:0]   extra;        // Slots of the payload.
  logic         found, nothing;
  assign extra   = kind_q == KindGive ? info_q.slots - 3'd1 : info_q.slots;
  assign found   = !bit_taken && run_q + 3'd1 == extra;
  assign nothing = looked_q > {1'b0, mask} + (SlotW + 1)'(3);

  // Messages that ended leave their room: of payload that was moved, or that came with its descriptor.
  logic   freed_q, freed_again_q, again_err, again_rdy;
  place_t again_place;
  logic [$bits(place_t)-1:0] again_raw;
  assign again_place  = {msg_done_i.ctx, msg_done_i.gen, again_offset[6 +: SlotW],
                         3'((msg_done_i.length + 32'(DescBytes - 1)) >> $clog2(DescBytes))};
  heddle_mem #(.Width($bits(place_t)), .Depth(NumMsg), .Init(1'b0)) u_again_places (
    .clk_i, .rst_ni, .wen_i(comes_again), .waddr_i(msg_index_i), .wdata_i(again_place),
    .raddr_i(free_msg_i), .rdata_o(again_raw), .error_o(again_err), .ready_o(again_rdy)
  );
  logic   job_valid, job_ready, job_pop, job_live, unused_place_err, unused_place_rdy;
  place_t job;
  logic [$bits(place_t)-1:0] place_raw;
  logic [MsgW:0] job_count;
  heddle_mem #(.Width($bits(place_t)), .Depth(NumMsg), .Init(1'b0)) u_places (
    .clk_i, .rst_ni, .wen_i(move_o), .waddr_i(msg_q),
    .wdata_i({ctx_q, info_q.gen, first_q, extra}),
    .raddr_i(free_msg_i), .rdata_o(place_raw),
    .error_o(unused_place_err), .ready_o(unused_place_rdy)
  );
  heddle_fifo #(.Width($bits(place_t)), .Depth(NumMsg)) u_jobs (
    .clk_i, .rst_ni, .valid_i(freed_q), .ready_o(job_ready), .data_i(freed_again_q ? again_raw : place_raw),
    .valid_o(job_valid), .ready_i(job_pop), .data_o(job), .count_o(job_count)
  );
  assign job_live = alive_i[job.ctx] && gen_i[job.ctx] == job.gen && !dirty[job.ctx];

  logic own;  // Of what is being copied.
  assign own      = state_q == StTake || state_q == StDrop;
  assign bit_wen  = (own && !dirty[ctx_q]) || (state_q == StFree && job_live);
  assign bit_ctx  = own ? ctx_q : job.ctx;
  assign bit_slot = (own ? first_q : job.slot) + SlotW'(left_q) - 1'b1;

  // ------------------------------------------------------------------------ copy
  logic [Beats-1:0][DataW-1:0] data_q;
  logic [BeatW-1:0] beat_q, beats;
  logic             gone_q;     // The message ended meanwhile.
  logic [SeqW-1:0]  quiet_q;
  logic [63:0]     area;
  assign area  = spill_base_i[ctx_q] + 64'({first_q, 6'b0});
  assign beats = BeatW'((32'(extra) * 32'(DescBytes * 8) + 32'(DataW - 1)) / 32'(DataW));
  always_comb begin
    rd_req_o.addr  = info_q.iova;
    rd_req_o.bytes = {5'b0, extra, 6'b0};
    rd_req_o.owner = info_q.owner;
    wr_req_o       = rd_req_o;
    wr_req_o.addr  = area;
    if (state_q == StMark) begin
      wr_req_o.addr  = spill_base_i[ctx_q] + (64'(DescBytes) << ring_log2_i[ctx_q]) +
                       64'({info_q.position[SlotW-1:0] & mask, 3'b0});
      wr_req_o.bytes = 14'($bits(spill_mark_t) / 8);
    end
    if (kind_q == KindAgain) begin
      rd_req_o.addr = area;
      if (extra > 3'd1) rd_req_o.bytes = 14'(2 * DescBytes);  // Payload is read where the frame is built.
    end
  end
  assign rd_valid_o      = state_q == StRead;
  assign rd_rsp_ready_o  = state_q == StData;
  spill_mark_t mark;
  always_comb begin
    mark          = '0;
    mark.position = info_q.position;
    mark.given    = 16'd1;
  end
  assign wr_valid_o      = state_q == StWrite || state_q == StMark;
  assign wr_data_valid_o = state_q == StStore || state_q == StMarkData;
  assign wr_data_o       = state_q == StMarkData ? DataW'(mark) : data_q[beat_q];
  assign owe_o           = state_q == StOwe && state_d == StMark && kind_q == KindGive;
  assign owe_msg_o       = msg_q;

  logic copy_ok, here;  // Its context lives.
  assign here        = alive_i[info_q.ctx] && gen_i[info_q.ctx] == info_q.gen;
  assign copy_ok     = state_q == StStored && wr_rsp_valid_i && !wr_rsp_error_i;
  assign move_o      = copy_ok && kind_q == KindGive && !gone_q && !(free_i && free_msg_i == msg_q);
  assign move_msg_o  = msg_q;
  assign move_slot_o = first_q;

  assign spill_valid_o = state_q == StAsk && !gone_q;
  assign spill_msg_o   = msg_q;
  // They take turns.
  logic choose, keep_take;
  logic [1:0] turn_q;  // Who was last, of: keep, wake.
  assign choose      = state_q == StIdle && !job_valid;
  assign keep_take   = choose && keep_valid_i && (!turn_q[0] || !(wake_valid_i || pick_valid));
  assign wake_take_o = choose && !keep_take && wake_valid_i && (!turn_q[1] || !pick_valid);
  assign pick_take   = choose && !keep_take && !wake_take_o && pick_valid;
  assign job_pop       = state_q == StFree && (left_q == 3'd1 || !job_live);

  always_comb begin
    state_d = state_q;
    let_be  = 1'b0;
    unique case (state_q)
      StIdle: begin
        if (job_valid)        state_d = StFree;
        else if (keep_take)   state_d = StStart;
        else if (wake_take_o) state_d = StHead;
        else if (pick_take)   state_d = StAt;
      end
      StStart: begin
        if (!here || refused_q[ctx_q]) state_d = StIdle;
        else if (!dirty[ctx_q] && !kept_dirty[ctx_q]) state_d = StScan;
      end
      StHead: state_d = some_i && flow_room_i && room_i[ctx_q] ? StEntry : StIdle;
      StEntry: state_d = StLoad;
      StLoad:  state_d = some_i ? StRead : StIdle;
      StOffer: begin
        if (again_taken_i) state_d = kind_q == KindAgain ? StDrop : StIdle;
        else if (!again_seen_i && (!here || (&wait_q))) state_d = StIdle;
      end
      StPut: state_d = StIdle;
      StAt:   state_d = StInfo;
      StInfo: state_d = StLook;
      StLook: begin
        let_be = refused_q[ctx_q] || !crowded[ctx_q] || !(is_head && is_stuck);
        if (look_kept) begin
          let_be = !room_i[ctx_q] || (!hollow_q[ctx_q] && (refused_q[ctx_q] || !crowded[ctx_q]));
        end
        if (let_be)           state_d = StIdle;
        else if (look_kept)   state_d = hollow_q[ctx_q] ? StOffer : StMark;
        else if (info.copied) state_d = StScan;
        else                  state_d = StOwe;
      end
      StScan: begin
        if (seen_q && found) begin
          state_d = StTake;
        end else if (nothing) begin
          let_be  = kind_q == KindGive;
          state_d = StIdle;
        end
      end
      StTake:   if (left_q == 3'd1) state_d = StRead;
      StRead:   if (rd_ready_i) state_d = StData;
      StData: begin
        if (rd_rsp_valid_i && rd_rsp_last_i) begin
          if (kind_q == KindAgain) state_d = StOffer;
          else                     state_d = rd_rsp_error_i || bad_q ? StDrop : StWrite;
        end
      end
      StWrite:  if (wr_ready_i) state_d = StStore;
      StStore:  if (wr_data_ready_i && beat_q + 1'b1 == beats) state_d = StStored;
      StStored: begin
        if (wr_rsp_valid_i) state_d = move_o ? StQuiet : copy_ok && kind_q == KindKeep && here ? StPut : StDrop;
      end
      StDrop:   if (left_q == 3'd1) state_d = StIdle;
      StQuiet:  if ($signed(seq_done_i - quiet_q) >= 0) state_d = StOwe;
      StOwe:    state_d = gone_q || (free_i && free_msg_i == msg_q) ? StIdle : StMark;
      StMark:   if (wr_ready_i) state_d = StMarkData;
      StMarkData: if (wr_data_ready_i) state_d = StMarked;
      StMarked: begin
        if (wr_rsp_valid_i) begin
          if (wr_rsp_error_i) state_d = StIdle;
          else                state_d = kind_q == KindGive ? StAsk : StOffer;
        end
      end
      StAsk:    if (gone_q) state_d = StIdle; else if (spill_ready_i) state_d = StAnswer;
      StAnswer: if (spill_done_i) state_d = StIdle;
      StFree:   if (job_pop) state_d = StIdle;
      default:  state_d = StIdle;
    endcase
  end

  // Lists.
  logic [FlowW-1:0] flow_q;
  group_t           group_q;
  logic [7:0]       wait_q;   // Cycles for which one has been offered.
  logic             bad_q;    // It could not be read.
  logic             fruitless;
  assign fruitless   = state_q == StOffer && kind_q == KindAgain && state_d == StIdle;
  assign flow_o      = flow_q;
  assign slot_o      = state_q == StEntry ? first_i : first_q;
  assign wait_o      = {info_q.position, info_q.slots, group_q};
  assign put_o       = state_q == StPut && here;
  assign pop_o       = state_q == StOffer && again_taken_i && kind_q == KindAgain;
  assign renew_o     = put_o || (state_q == StHead && some_i && flow_room_i && !room_i[ctx_q]) ||
                       pop_o || fruitless;
  assign barred_o    = !put_o && !pop_o && !room_i[ctx_q];
  assign keep_ok_o   = put_o;
  assign keep_done_o = kind_q == KindKeep && state_q != StIdle && state_q != StFree &&
                       state_d == StIdle;
  assign again_valid_o  = state_q == StOffer && here;
  assign again_o.ctx    = info_q.ctx;
  assign again_o.slot   = first_q;
  assign again_o.hollow = kind_q == KindHollow;
  assign again_o.holds  = kind_q == KindHollow ||
                          (kept != '0 && kept_at == first_q &&
                           !(hollow_q[ctx_q] && info_q.position == head_i[ctx_q]));
  assign again_o.failed = bad_q;
  assign again_o.info   = wait_o;
  assign again_o.data   = data_q[2*DescBytes*8/DataW-1:0];
  always_comb begin
    stat_o = '0;
    stat_o[StatisticTxSpilled] = put_o;
  end

  always_comb begin
    busy_o = '0;
    if (state_q != StIdle && state_q != StFree) busy_o[ctx_q] = 1'b1;
  end
  assign idle_o = state_q == StIdle && !job_valid && !freed_q && want == '0 && dirty == '0 &&
                  kept_dirty == '0 && !stir && !keep_valid_i && !wake_valid_i;
  // Room that came free also.
  assign stir_o = stir || ((state_q == StFree || state_q == StDrop) && state_d == StIdle);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      live_q     <= '0;
      given_q    <= '0;
      queued_q   <= '0;
      begun_q    <= '0;
      moved_q    <= '0;
      examined_q <= '0;
      refused_q  <= '0;
      hollow_q   <= '0;
      next_q     <= '0;
      stirred_q  <= 1'b0;
      alive_q    <= '0;
      gen_q      <= '0;
      stuck_q    <= '0;
      room_q     <= '0;
      tail_q     <= '0;
      told_q     <= '0;
      freed_q    <= 1'b0;
      freed_again_q <= 1'b0;
      again_q    <= '0;
      turn_q     <= '0;
    end else begin
      state_q <= state_d;
      alive_q <= alive_i;
      gen_q   <= gen_i;
      stuck_q <= stuck_i;
      room_q  <= room_i;
      tail_q  <= tail_i;
      told_q  <= told_i;
      freed_q <= free_i && (moved_q[free_msg_i] || again_q[free_msg_i]);
      freed_again_q <= again_q[free_msg_i];
      if (choose && (keep_take || wake_take_o || pick_take)) turn_q <= {wake_take_o, keep_take};

      if (pop_i)  queued_q[pop_msg_i] <= 1'b0;
      if (done_i) begun_q[done_msg_i] <= 1'b0;
      if (free_i) begin
        live_q[free_msg_i]  <= 1'b0;
        moved_q[free_msg_i] <= 1'b0;
        again_q[free_msg_i] <= 1'b0;
      end
      if (msg_valid_i) begin
        live_q[msg_index_i]   <= 1'b1;
        again_q[msg_index_i]  <= comes_again;
        given_q[msg_index_i]  <= msg_done_i.slots == '0;
        queued_q[msg_index_i] <= 1'b0;
        begun_q[msg_index_i]  <= 1'b0;
      end
      if (enq_i) begin
        queued_q[enq_msg_i] <= 1'b1;
        begun_q[enq_msg_i]  <= 1'b1;
      end
      if (move_o) moved_q[msg_q] <= 1'b1;
      if (spill_done_i && !gone_q) given_q[msg_q] <= 1'b1;

      stirred_q <= pick_take ? 1'b0 : stirred_q || stir_o;
      if (let_be && !stirred_q) examined_q[ctx_q] <= 1'b1;
      if (stir_o) examined_q <= '0;
      refused_q <= refused_q & ~restart;
      if (kind_q == KindHollow && state_q == StMarked && state_d == StOffer) hollow_q[ctx_q] <= 1'b1;
      if (kind_q == KindHollow && state_q == StOffer && again_taken_i)       hollow_q[ctx_q] <= 1'b0;
      for (int unsigned i = 0; i < NumTx; i++) begin
        if (restart[i]) begin
          next_q[i]   <= '0;
          hollow_q[i] <= 1'b0;
        end
      end
      if (state_q == StScan && state_d == StTake) next_q[ctx_q] <= (scan_q + 1'b1) & mask;
      if ((state_q == StData && state_d == StDrop) ||
          ((state_q == StStored || state_q == StMarked) && wr_rsp_valid_i && wr_rsp_error_i)) begin
        refused_q[ctx_q] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (pick_take) begin
      ctx_q  <= pick_ctx;
      kind_q <= KindGive;
    end
    if (keep_take) begin
      ctx_q   <= keep_i.ctx;
      kind_q  <= KindKeep;
      flow_q  <= keep_i.flow;
      group_q <= keep_i.group;
      info_q  <= {keep_i.ctx, keep_i.gen, keep_i.owner, keep_i.position, keep_i.slots, 1'b1, keep_i.iova};
    end
    if (wake_take_o) begin
      ctx_q   <= wake_flow_i[FlowW-1 -: TxW];
      kind_q  <= KindAgain;
      flow_q  <= wake_flow_i;
    end
    if (state_q == StEntry) first_q <= first_i;
    if (state_q == StLoad) begin
      info_q  <= {ctx_q, gen_i[ctx_q], owner_i[ctx_q], wait_i.position, wait_i.slots, 1'b1, 64'b0};
      group_q <= wait_i.group;
    end
    wait_q <= state_q == StOffer ? wait_q + 1'b1 : '0;
    if (state_q == StRead) bad_q <= 1'b0;
    else if (state_q == StData && rd_rsp_valid_i && rd_rsp_error_i) bad_q <= 1'b1;
    if (state_q == StInfo) msg_q <= at;
    if (state_q == StInfo) head_q <= head_i[ctx_q];
    if (state_q == StLook) begin
      info_q <= info;
      if (look_kept) begin
        info_q <= {ctx_q, gen_i[ctx_q], owner_i[ctx_q], head_q, kept, 1'b0, 64'b0};
        kind_q <= KindHollow;
      end
    end
    if (state_q == StLook || state_q == StStart) begin
      scan_q   <= next_q[ctx_q];
      looked_q <= '0;
      run_q    <= '0;
      seen_q   <= 1'b0;
      gone_q   <= 1'b0;
    end
    if (free_i && free_msg_i == msg_q) gone_q <= 1'b1;
    // A slot every two cycles. Payload does not go around the end.
    if (state_q == StScan) begin
      seen_q <= !seen_q;
      if (seen_q) begin
        looked_q <= looked_q + 1'b1;
        scan_q   <= (scan_q + 1'b1) & mask;
        run_q    <= bit_taken || scan_q == mask ? '0 : run_q + 3'd1;
        first_q  <= scan_q - SlotW'(extra) + 1'b1;
      end
    end
    if (own || state_q == StFree) left_q <= left_q - 3'd1;
    else if (state_q == StIdle)   left_q <= job.slots;
    else if (state_q == StOffer)  left_q <= again_holds_i ? 3'd1 : extra;
    else                          left_q <= extra;
    if (state_q == StData && rd_rsp_valid_i) data_q[beat_q] <= rd_rsp_data_i;
    if (state_q == StRead || state_q == StWrite) begin
      beat_q <= '0;
    end else if ((state_q == StData && rd_rsp_valid_i) ||
                 (state_q == StStore && wr_data_ready_i)) begin
      beat_q <= beat_q + 1'b1;
    end
    if (move_o) quiet_q <= seq_issued_i;
  end

  logic unused;
  assign unused = ^{at_err, at_rdy, info_err, info_rdy, pdc_err, pdc_rdy, unused_place_err,
                    unused_place_rdy, job_count, msg_packet_i, msg_done_i, info_q, keep_i, again_offset, again_err,
                    again_rdy};

  `HEDDLE_ASSERT(JobRoom_A, freed_q |-> job_ready)
  `HEDDLE_ASSERT(CopiedHasSlots_A, state_q == StScan |-> extra != '0)
endmodule
