// SPDX-License-Identifier: Apache-2.0
// Brings operations that wait in the lists of heddle_tx_flows back to heddle_tx_fetch.
//
// Ordered:  the first ones of a flow's list, up to Batch at a time, while the flow and its context have room; flows
//           take turns. All are read ahead, and leave one after the other; the turn ends when one is not taken.
// Read:     from its ring, or from the spill area, in host memory or the NIC, when its slots were released. While they are being released it is
//           left alone. With `held_o` that may not begin.
// Freed:    its room in the area when it left; payload in extension slots keeps its own.

`include "heddle_assert.svh"

module heddle_tx_again
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW  = 512,   // 64, 128, 256 or 512.
  localparam int unsigned SlotW  = RingLog2Max,
  localparam int unsigned Batch  = AgainBatch,
  localparam int unsigned BatchW = $clog2(Batch)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,
  input  logic [NumTx-1:0][3:0]      ring_log2_i,
  input  logic [NumTx-1:0][63:0]     spill_base_i,
  input  logic [NumTx-1:0]           in_nic_i,     // The area is in the NIC:
  input  logic [NumTx-1:0][SpillAreaW-1:0] nic_area_i,  // this one.
  input  logic [NumTx-1:0][7:0]      owner_i,
  input  logic [NumTx-1:0]           room_i,    // One more may leave.

  output logic [FlowW-1:0] flow_o,              // heddle_tx_flows: in this flow
  input  logic             some_i,              // some wait,
  input  logic             flow_room_i,         // and one more than `ahead_o` may be in the table.
  output logic [BatchW:0]  ahead_o,
  input  logic [SlotW-1:0] first_i,             // Number of the first.
  output logic [SlotW-1:0] number_o,            // The operation with this number
  input  tx_wait_t         wait_i,
  input  logic             last_i,              // is the last one,
  input  logic [SlotW-1:0] next_i,              // or this one follows.
  output logic             pop_o,               // The first leaves:
  output logic [SlotW-1:0] pop_number_o,        // this one,
  output logic [SlotW-1:0] pop_next_o,          // which this one follows, if any.
  input  logic             wake_valid_i,
  input  logic [FlowW-1:0] wake_flow_i,
  output logic             wake_take_o,
  output logic             renew_o,
  output logic             barred_o,

  output logic [TxW-1:0]   ctx_o,
  output logic             busy_o,
  input  logic [SlotW-1:0] look_number_i,        // This number of the context
  output logic             held_o,              // is looked at, or was read.
  input  spill_where_t     where_i,             // One cycle after `number_o`.
  input  logic [63:0]      ring_i,              // Base of the context's ring.
  output logic             left_o,              // Strobe: it left with its slots,
  output logic [SlotW-1:0] left_slot_o,         // which start here.
  output logic             free_o,              // This room is free.
  output spill_place_t     free_place_o,
  input  logic             free_ready_i,
  output logic             stir_o,              // Strobe: it stays for now.

  output logic             again_valid_o,       // heddle_tx_fetch: this one may leave.
  output tx_again_t        again_o,
  input  logic             again_seen_i,        // It stays offered.
  input  logic             again_taken_i,       // Strobe: it left,
  input  logic             again_holds_i,       // and needs its extension slots.

  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  output logic             rd_in_nic_o,         // Instead from the area in the NIC:
  output spill_read_t      rd_nic_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i
);
  localparam int unsigned Beats = 2 * DescBytes * 8 / DataW;
  localparam int unsigned BeatW = $clog2(Beats);

  typedef enum logic [2:0] {
    AgainIdle,
    AgainHead, AgainFirst,              // The first of a list is looked up,
    AgainWhere, AgainLoad, AgainRead,   // one is looked up, and read,
    AgainNext,                          // and the next one, if there is room.
    AgainLeave                          // Those that were read leave, or stay.
  } again_e;
  again_e           state_d, state_q;
  logic [FlowW-1:0] flow_q;
  logic [TxW-1:0]   ctx_q;
  logic [GenW-1:0]  gen_q;
  logic             here;        // Its context lives.
  logic [SlotW-1:0] mask_q;
  assign here = alive_i[ctx_q] && gen_i[ctx_q] == gen_q;

  // ----------------------------------------------------- those that are looked up
  typedef struct packed {
    tx_wait_t         info;
    logic             given;     // It is in the area, at
    logic [SlotW-1:0] first;
  } item_t;
  logic [SlotW-1:0] number_q;    // Is looked up,
  logic             ahead_q;     // and its read is not requested yet.
  item_t            item_q, item;
  logic             in_nic_q;    // That area is in the NIC:
  logic [SpillAreaW-1:0] area_q;  // this one.
  logic [BatchW:0]  sought_q, came_q, left_q;  // Requested in this turn, read, and gone.
  logic [Batch-1:0][SlotW-1:0] numbers_q;
  logic [Batch-1:0] held_q, bad_q;            // Requested and not gone; could not be read.
  logic             seek, more, quits, quit_q, pop;
  logic [BatchW-1:0] at_sought, at_came, at_left, at_next;
  logic [Beats-1:0][DataW-1:0] data;  // They are of the first that has not left,
  logic             read_q;      // if it did not become that in this cycle.
  logic [7:0]       patience_q;  // Cycles for which it has been offered.
  logic             free_q;      // The room of one that left is not free yet:
  spill_place_t     place_q;
  assign at_sought  = sought_q[BatchW-1:0];
  assign at_came = came_q[BatchW-1:0];
  assign at_left = left_q[BatchW-1:0];
  assign at_next = at_left + 1'b1;
  assign seek     = state_q == AgainRead && rd_ready_i;
  assign more    = !last_i && flow_room_i && room_i[ctx_q] && !sought_q[BatchW] && here && !quit_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      AgainIdle:  if (wake_take_o) state_d = AgainHead;
      AgainHead:  state_d = some_i && flow_room_i && room_i[ctx_q] ? AgainFirst : AgainIdle;
      AgainFirst: state_d = AgainWhere;
      AgainWhere: state_d = AgainLoad;
      AgainLoad:  state_d = some_i && !where_i.pending ? AgainRead : AgainLeave;
      AgainRead:  if (rd_ready_i) state_d = AgainNext;
      AgainNext:  state_d = more ? AgainWhere : AgainLeave;
      AgainLeave: if (sought_q == (quit_q ? came_q : left_q)) state_d = AgainIdle;
      default:    state_d = AgainIdle;
    endcase
  end

  heddle_lookup #(.Width($bits(item_t)), .Depth(Batch)) u_items (
    .clk_i, .wen_i(seek), .waddr_i(at_sought), .wdata_i(item_q), .raddr_i(at_left), .rdata_o(item)
  );

  always_comb begin
    held_o = ahead_q && number_q == look_number_i;
    for (int unsigned i = 0; i < Batch; i++) begin
      if (held_q[i] && numbers_q[i] == look_number_i) held_o = 1'b1;
    end
  end

  logic fruitless, over;
  assign over        = state_q == AgainLeave && state_d == AgainIdle;
  assign fruitless   = over && left_q == '0 && (quit_q || some_i);
  assign wake_take_o = state_q == AgainIdle && wake_valid_i && !free_q;
  assign flow_o      = flow_q;
  assign ahead_o     = sought_q - left_q;
  assign number_o    = number_q;
  assign renew_o     = (state_q == AgainHead && some_i && flow_room_i && !room_i[ctx_q]) ||
                       (over && (left_q != '0 || fruitless));
  assign barred_o    = left_q == '0 && !room_i[ctx_q];
  assign ctx_o       = ctx_q;
  assign busy_o      = state_q != AgainIdle;
  assign stir_o      = fruitless && quit_q;

  // ------------------------------------------------------------------------ reads
  // Payload is read where the frame is built.
  logic [SlotW-1:0] read_slot;
  logic [BeatW-1:0] beat_q;
  logic             came;
  assign read_slot      = item_q.given ? item_q.first : item_q.info.position[SlotW-1:0] & mask_q;
  assign rd_valid_o     = state_q == AgainRead;
  assign rd_req_o.addr  = (item_q.given ? spill_base_i[ctx_q] : ring_i) + 64'({read_slot, 6'b0});
  assign rd_req_o.bytes = item_q.info.slots > 3'd1 ? 14'(2 * DescBytes) : 14'(DescBytes);
  assign rd_req_o.owner = owner_i[ctx_q];
  assign rd_in_nic_o    = in_nic_q;
  assign rd_nic_o       = {area_q, item_q.first[SpillAreaLog2-1:0], rd_req_o.bytes[7:0]};
  assign rd_rsp_ready_o = 1'b1;
  assign came           = rd_rsp_valid_i && rd_rsp_last_i;
  logic [Beats-1:0] unused_error, unused_ready;
  for (genvar i = 0; i < int'(Beats); i++) begin : gen_beat
    heddle_mem #(.Width(DataW), .Depth(Batch), .Init(1'b0)) u_data (
      .clk_i, .rst_ni, .wen_i(rd_rsp_valid_i && beat_q == BeatW'(i)), .waddr_i(at_came), .wdata_i(rd_rsp_data_i),
      .raddr_i(at_left), .rdata_o(data[i]), .error_o(unused_error[i]), .ready_o(unused_ready[i])
    );
  end

  // ------------------------------------------------------------- those that leave
  assign again_valid_o  = read_q && came_q != left_q && here && !free_q && !quit_q;
  assign quits          = came_q != left_q && !again_seen_i && (!here || (&patience_q));
  assign again_o.ctx    = ctx_q;
  assign again_o.slot   = item.given ? item.first : item.info.position[SlotW-1:0] & mask_q;
  assign again_o.holds  = !item.given;
  assign again_o.failed = bad_q[at_left];
  assign again_o.info   = item.info;
  assign again_o.data   = data;
  assign pop            = again_taken_i;
  assign pop_o          = pop;
  assign pop_number_o   = numbers_q[at_left];
  assign pop_next_o     = left_q + 1'b1 != sought_q ? numbers_q[at_next] : ahead_q ? number_q : next_i;
  assign left_o         = pop && !item.given;
  assign left_slot_o    = again_o.slot;
  assign free_o         = free_q;
  assign free_place_o   = place_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= AgainIdle;
      free_q  <= 1'b0;
      ahead_q <= 1'b0;
      held_q  <= '0;
      sought_q <= '0;
      came_q  <= '0;
      left_q  <= '0;
      quit_q  <= 1'b0;
      read_q  <= 1'b0;
    end else begin
      state_q <= state_d;
      if (pop && item.given) free_q <= 1'b1;
      else if (free_ready_i) free_q <= 1'b0;
      read_q <= !pop;
      if (state_q == AgainIdle) begin
        ahead_q <= 1'b0;
        held_q  <= '0;
        sought_q <= '0;
        came_q  <= '0;
        left_q  <= '0;
        quit_q  <= 1'b0;
      end else begin
        if (state_d == AgainWhere) ahead_q <= 1'b1;
        else if (seek)              ahead_q <= 1'b0;
        for (int unsigned i = 0; i < Batch; i++) begin
          if (seek && at_sought == BatchW'(i))       held_q[i] <= 1'b1;
          else if (pop && at_left == BatchW'(i)) held_q[i] <= 1'b0;
        end
        sought_q <= sought_q + (BatchW + 1)'(seek);
        came_q  <= came_q + (BatchW + 1)'(came);
        left_q  <= left_q + (BatchW + 1)'(pop);
        quit_q  <= quit_q || quits;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (wake_take_o) begin
      flow_q <= wake_flow_i;
      ctx_q  <= wake_flow_i[FlowW-1 -: TxW];
      gen_q  <= gen_i[wake_flow_i[FlowW-1 -: TxW]];
    end
    mask_q <= SlotW'((16'd1 << ring_log2_i[ctx_q]) - 16'd1);
    if (state_q == AgainFirst)     number_q <= first_i;
    if (state_q == AgainNext && more) number_q <= next_i;
    if (state_q == AgainLoad) begin
      item_q   <= {wait_i, where_i.given, where_i.first};
      in_nic_q <= where_i.given && in_nic_i[ctx_q];
      area_q   <= nic_area_i[ctx_q];
    end
    patience_q <= again_valid_o && !pop ? patience_q + 1'b1 : '0;
    if (rd_rsp_valid_i) beat_q <= came ? '0 : beat_q + 1'b1;
    if (state_q == AgainIdle) beat_q <= '0;
    for (int unsigned i = 0; i < Batch; i++) begin
      if (seek && at_sought == BatchW'(i)) begin
        numbers_q[i] <= number_q;
        bad_q[i]     <= 1'b0;
      end else if (rd_rsp_valid_i && rd_rsp_error_i && at_came == BatchW'(i)) begin
        bad_q[i] <= 1'b1;
      end
    end
    if (pop) place_q <= {ctx_q, gen_q, item.first, again_holds_i ? 3'd1 : item.info.slots};
  end

  logic unused;
  assign unused = ^{unused_error, unused_ready};

  `HEDDLE_ASSERT(TakenIsOffered_A, again_taken_i |-> again_valid_o)
  `HEDDLE_ASSERT(CameWasSought_A, rd_rsp_valid_i |-> came_q != sought_q)
endmodule
