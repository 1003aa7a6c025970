// SPDX-License-Identifier: Apache-2.0
// Free PDCs of the initiator, and the PDCID that each gets when it is opened.
//
// Safe:    a PDCID is not given out again within safety_ticks of the end of its last use.
// Fair:    the PDC that has been free longest comes first; one whose next PDCID must still wait goes
//          to the end of the line.
// Latency: a PDC is offered a few cycles after the one before was taken.

`include "heddle_assert.svh"

module heddle_pdc_ids
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  port_cfg_t          port_i,
  input  transport_cfg_t     transport_i,

  output logic               valid_o,
  input  logic               take_i,       // The PDC offered is opened.
  output logic [PdcW-1:0]    pdc_o,
  output logic [15:0]        pdcid_o,
  output logic               waits_o,      // A free PDC is there whose PDCID is too young.
  output logic [PdcW:0]      free_o,       // PDCs on offer, now or soon; 0 while such ones are there.

  input  logic               free_i,       // Strobe: PDC `free_pdc_i` is closed.
  input  logic [PdcW-1:0]    free_pdc_i,
  input  logic [SeqW-1:0]    seq_issued_i, // Packets that will leave, and that have left.
  input  logic [SeqW-1:0]    seq_done_i,

  input  logic               again_i,      // PDC `again_pdc_i` goes on under another PDCID.
  input  logic [PdcW-1:0]    again_pdc_i,
  output logic [15:0]        again_pdcid_o,

  output logic               ready_o
);
  logic [31:0] now_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)     now_q <= '0;
    else if (tick_i) now_q <= now_q + 1'b1;
  end

  // A PDC that is closed waits until its last packets have left; copies of its Close Command may
  // be under way in the NIC.
  typedef struct packed {
    logic [SeqW-1:0] seq;
    logic [PdcW-1:0] pdc;
  } closed_t;
  closed_t       closed_new, closed;
  logic          closed_valid, closed_room, free;
  logic [PdcW:0] closed_count;
  assign closed_new = {seq_issued_i, free_pdc_i};
  heddle_fifo #(.Width($bits(closed_t)), .Depth(NumPdc)) u_closed (
    .clk_i, .rst_ni,
    .valid_i(free_i), .ready_o(closed_room), .data_i(closed_new),
    .valid_o(closed_valid), .ready_i(free), .data_o(closed), .count_o(closed_count)
  );
  assign free = closed_valid && $signed(seq_done_i - closed.seq) >= 0 && !again_i;

  // ------------------------------------------------------------------- in line
  logic [PdcW:0]   fresh_q;  // PDCs never used yet come first.
  logic            fresh, leave_out, line_valid, line_pop, line_room, pick, put_back;
  logic [PdcW-1:0] line_pdc, pdc_q;
  logic [PdcW:0]   line_count, fresh_count;
  assign fresh = !fresh_q[PdcW];
  assign leave_out = fresh_q == '0 && port_i.slot[SlotBits-1:0] == '0;  // PDCID 0 would be its.
  heddle_fifo #(.Width(PdcW), .Depth(NumPdc)) u_line (
    .clk_i, .rst_ni,
    .valid_i(free || put_back), .ready_o(line_room), .data_i(free ? closed.pdc : pdc_q),
    .valid_o(line_valid), .ready_i(line_pop), .data_o(line_pdc), .count_o(line_count)
  );

  // --------------------------------------------------------------- generations
  // Of the last use. Opening is the one that writes.
  logic [PdcGenW-1:0] gen, gen_next, again_gen, again_next, free_gen;
  logic [NumPdc-1:0]  used_q;   // `gen` was written; known a cycle after the PDC was opened.
  logic               opened_q;
  logic [PdcW-1:0]    opened_pdc_q;
  logic [PdcW-1:0]    opened_pdc;
  logic [PdcGenW-1:0] opened_gen;

  assign opened_pdc = again_i ? again_pdc_i : pdc_q;
  assign opened_gen = again_i ? again_next : gen_next;
  heddle_lookup #(.Width(PdcGenW), .Depth(NumPdc)) u_gen (
    .clk_i, .wen_i(take_i || again_i), .waddr_i(opened_pdc), .wdata_i(opened_gen),
    .raddr_i(pdc_q), .rdata_o(gen)
  );
  heddle_lookup #(.Width(PdcGenW), .Depth(NumPdc)) u_again_gen (
    .clk_i, .wen_i(take_i || again_i), .waddr_i(opened_pdc), .wdata_i(opened_gen),
    .raddr_i(again_pdc_i), .rdata_o(again_gen)
  );
  heddle_lookup #(.Width(PdcGenW), .Depth(NumPdc)) u_free_gen (
    .clk_i, .wen_i(take_i || again_i), .waddr_i(opened_pdc), .wdata_i(opened_gen),
    .raddr_i(closed.pdc), .rdata_o(free_gen)
  );
  assign gen_next   = used_q[pdc_q] ? gen + 1'b1 : port_i.pdc_seed[PdcGenW-1:0];
  assign again_next = used_q[again_pdc_i] ? again_gen + 1'b1 : port_i.pdc_seed[PdcGenW-1:0];
  assign pdc_o         = pdc_q;
  assign pdcid_o       = {port_i.slot[SlotBits-1:0], RoleInitiator, gen_next, pdc_q};
  assign again_pdcid_o = {port_i.slot[SlotBits-1:0], RoleInitiator, again_next, again_pdc_i};

  // ---------------------------------------------------------------- when used
  logic young;  // As read in StRead.
  heddle_ages #(.Num(NumPdc << PdcGenW)) u_ended (
    .clk_i, .rst_ni, .now_i(now_q), .span_i(transport_i.safety_ticks), .mark_i(free || again_i),
    .mark_idx_i(free ? {free_gen, closed.pdc} : {again_gen, again_pdc_i}),
    .get_i(state_q == StRead), .get_idx_i({gen_next, pdc_q}), .young_o(young), .ready_o
  );

  // -------------------------------------------------------------------- offer
  typedef enum logic [1:0] { StNone, StRead, StLook, StOffer } state_e;
  state_e state_q;
  assign pick     = state_q == StNone && ready_o && (fresh || line_valid);
  assign line_pop = pick && !fresh;
  assign put_back = state_q == StLook && young && !free;
  assign valid_o  = state_q == StOffer;
  assign fresh_count = (PdcW + 1)'(NumPdc) - fresh_q;
  assign free_o = waits_o ? '0 : fresh_count + closed_count + line_count +
                                 (PdcW + 1)'(state_q != StNone);

  always_ff @(posedge clk_i) begin
    opened_pdc_q <= opened_pdc;
    if (pick) pdc_q <= fresh ? fresh_q[PdcW-1:0] : line_pdc;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StNone;
      fresh_q <= '0;
      used_q  <= '0;
      opened_q <= 1'b0;
      waits_o <= 1'b0;
    end else begin
      unique case (state_q)
        StNone: if (pick && !leave_out) state_q <= StRead;
        StRead: state_q <= StLook;
        StLook: begin
          if (!young)        state_q <= StOffer;
          else if (put_back) state_q <= StNone;
        end
        default: if (take_i) state_q <= StNone;
      endcase
      if (pick && fresh) fresh_q <= fresh_q + 1'b1;
      opened_q <= take_i || again_i;
      if (opened_q) used_q[opened_pdc_q] <= 1'b1;
      if (put_back)     waits_o <= 1'b1;
      else if (valid_o) waits_o <= 1'b0;
    end
  end

  logic unused;
  assign unused = ^{port_i, transport_i};

  `HEDDLE_ASSERT(LineHasRoom_A, !(free || put_back) || line_room)
  `HEDDLE_ASSERT(ClosedHasRoom_A, !free_i || closed_room)
  `HEDDLE_ASSERT(TakesAnOffer_A, !take_i || valid_o)
endmodule
