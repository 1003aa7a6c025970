// SPDX-License-Identifier: Apache-2.0
// Brings operations that wait in the lists of heddle_tx_flows back to heddle_tx_fetch.
//
// Ordered:  the first of a flow's list, when the flow and its context have room; flows take turns.
// Read:     from its ring, or from the spill area when its slots were released. While they are being released it is
//           left alone. From the cycle of `has_o` on that may not begin.
// Freed:    its room in the area when it left; payload in extension slots keeps its own.

`include "heddle_assert.svh"

module heddle_tx_again
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,   // 64, 128, 256 or 512.
  localparam int unsigned SlotW = RingLog2Max
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,
  input  logic [NumTx-1:0][3:0]      ring_log2_i,
  input  logic [NumTx-1:0][63:0]     spill_base_i,
  input  logic [NumTx-1:0][7:0]      owner_i,
  input  logic [NumTx-1:0]           room_i,    // One more may leave.

  output logic [FlowW-1:0] flow_o,              // heddle_tx_flows: in this flow
  input  logic             some_i,              // some wait,
  input  logic             flow_room_i,         // and one more may be in the table.
  input  logic [SlotW-1:0] first_i,             // Number of the first.
  output logic [SlotW-1:0] number_o,            // the operation with this number
  input  tx_wait_t         wait_i,
  output logic             pop_o,               // leaves.
  input  logic             wake_valid_i,
  input  logic [FlowW-1:0] wake_flow_i,
  output logic             wake_take_o,
  output logic             renew_o,
  output logic             barred_o,

  output logic [TxW-1:0]   ctx_o,
  output logic             busy_o,
  output logic             has_o,               // It looks at `number_o` of the context, or read it.
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
    AgainHead, AgainFirst, AgainWhere, AgainLoad,  // The first of a list is looked up,
    AgainRead, AgainData,                          // read,
    AgainOffer                                     // and offered.
  } again_e;
  again_e           state_d, state_q;
  logic [FlowW-1:0] flow_q;
  logic [TxW-1:0]   ctx_q;
  logic [GenW-1:0]  gen_q;
  logic [SlotW-1:0] number_q, slot;
  tx_wait_t         wait_q;
  logic             given_q;     // It is in the area, at
  logic [SlotW-1:0] first_q;
  logic             here;        // Its context lives.
  logic [Beats-1:0][DataW-1:0] data_q;
  logic [BeatW-1:0] beat_q;
  logic [7:0]       patience_q;  // Cycles for which one has been offered.
  logic             bad_q;       // It could not be read.
  logic             fruitless;
  logic             free_q;
  spill_place_t     place_q;
  assign here = alive_i[ctx_q] && gen_i[ctx_q] == gen_q;
  assign slot = wait_q.position[SlotW-1:0] & SlotW'((16'd1 << ring_log2_i[ctx_q]) - 16'd1);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      AgainIdle:  if (wake_take_o) state_d = AgainHead;
      AgainHead:  state_d = some_i && flow_room_i && room_i[ctx_q] ? AgainFirst : AgainIdle;
      AgainFirst: state_d = AgainWhere;
      AgainWhere: state_d = AgainLoad;
      AgainLoad:  state_d = some_i && !where_i.pending ? AgainRead : AgainIdle;
      AgainRead:  if (rd_ready_i) state_d = AgainData;
      AgainData:  if (rd_rsp_valid_i && rd_rsp_last_i) state_d = AgainOffer;
      AgainOffer: begin
        if (again_taken_i || (!again_seen_i && (!here || (&patience_q)))) state_d = AgainIdle;
      end
      default: state_d = AgainIdle;
    endcase
  end

  assign wake_take_o = state_q == AgainIdle && wake_valid_i && !free_q;
  assign fruitless   = state_d == AgainIdle &&
                       ((state_q == AgainLoad && some_i) || (state_q == AgainOffer && !again_taken_i));
  assign flow_o      = flow_q;
  assign number_o    = number_q;
  assign pop_o       = state_q == AgainOffer && again_taken_i;
  assign renew_o     = (state_q == AgainHead && some_i && flow_room_i && !room_i[ctx_q]) || pop_o || fruitless;
  assign barred_o    = !pop_o && !room_i[ctx_q];
  assign ctx_o       = ctx_q;
  assign busy_o      = state_q != AgainIdle;
  assign has_o       = busy_o && state_q != AgainHead && state_q != AgainFirst;
  assign left_o      = pop_o && !given_q;
  assign left_slot_o = slot;
  assign free_o       = free_q;
  assign free_place_o = place_q;
  assign stir_o      = fruitless && state_q == AgainOffer;

  assign again_valid_o  = state_q == AgainOffer && here;
  assign again_o.ctx    = ctx_q;
  assign again_o.slot   = given_q ? first_q : slot;
  assign again_o.holds  = !given_q;
  assign again_o.failed = bad_q;
  assign again_o.info   = wait_q;
  assign again_o.data   = data_q;

  // Payload is read where the frame is built.
  assign rd_valid_o     = state_q == AgainRead;
  assign rd_req_o.addr  = (given_q ? spill_base_i[ctx_q] : ring_i) + 64'({again_o.slot, 6'b0});
  assign rd_req_o.bytes = wait_q.slots > 3'd1 ? 14'(2 * DescBytes) : 14'(DescBytes);
  assign rd_req_o.owner = owner_i[ctx_q];
  assign rd_rsp_ready_o = state_q == AgainData;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= AgainIdle;
      free_q  <= 1'b0;
    end else begin
      state_q <= state_d;
      if (pop_o && given_q)  free_q <= 1'b1;
      else if (free_ready_i) free_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (wake_take_o) begin
      flow_q <= wake_flow_i;
      ctx_q  <= wake_flow_i[FlowW-1 -: TxW];
      gen_q  <= gen_i[wake_flow_i[FlowW-1 -: TxW]];
    end
    if (state_q == AgainFirst) number_q <= first_i;
    if (state_q == AgainLoad) begin
      wait_q  <= wait_i;
      given_q <= where_i.given;
      first_q <= where_i.first;
    end
    patience_q <= state_q == AgainOffer ? patience_q + 1'b1 : '0;
    if (state_q == AgainRead) begin
      beat_q <= '0;
      bad_q  <= 1'b0;
    end else if (state_q == AgainData && rd_rsp_valid_i) begin
      for (int unsigned i = 0; i < Beats; i++) begin
        if (beat_q == BeatW'(i)) data_q[i] <= rd_rsp_data_i;
      end
      beat_q <= beat_q + 1'b1;
      if (rd_rsp_error_i) bad_q <= 1'b1;
    end
    if (pop_o) place_q <= {ctx_q, gen_q, first_q, again_holds_i ? 3'd1 : wait_q.slots};
  end

  `HEDDLE_ASSERT(TakenIsOffered_A, again_taken_i |-> again_valid_o)
endmodule
