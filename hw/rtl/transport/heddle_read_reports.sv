// SPDX-License-Identifier: Apache-2.0
// Tells the host of a target that a peer's READ is over: completion and counter.
//
// Over:     a READ is reported when the initiator has acknowledged its data, since until then memory may be read for
//           them again; or when it closed the PDC. Of a PDC that was lost nothing is reported, credits go back.
// Living:   nothing is reported of a receive context that is disabled or of another generation; so nothing is
//           behind a drain token of its context.
// Beside:   events of heddle_place pass in order; one of two events at least is theirs.
// Room:     `room_o` counts `UnderWay` READs that were accepted and are not here yet.

`include "heddle_assert.svh"

module heddle_read_reports
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             wait_i,        // heddle_return_tx: this READ waits.
  input  read_wait_t       wait_info_i,
  input  logic             over_i,        // Data before a PSN were acknowledged, or the PDC is gone.
  input  read_over_t       over_info_i,
  output logic             room_o,

  input  logic [NumRx-1:0]           rx_alive_i,
  input  logic [NumRx-1:0][GenW-1:0] rx_gen_i,
  input  logic [NumRx-1:0][$bits(rx_counters_t)-1:0] rx_counters_i,

  input  logic             ev_valid_i,    // heddle_place.
  output logic             ev_ready_o,
  input  cq_event_t        ev_i,
  output logic             ev_valid_o,
  input  logic             ev_ready_i,
  output cq_event_t        ev_o,

  output logic             idle_o
);
  localparam int unsigned Slots    = 64;
  localparam int unsigned SlotW    = $clog2(Slots);
  localparam int unsigned UnderWay = 8;

  // ----------------------------------------------------------------- who waits
  logic [Slots-1:0]           used_q, waits_q, over_q, lost_q, over_now;
  logic [Slots-1:0][PdcW-1:0] pdc_q;
  logic [Slots-1:0][31:0]     psn_q;
  logic [Slots-1:0][31:0]     distance;
  always_comb begin
    for (int unsigned i = 0; i < Slots; i++) begin
      distance[i]   = psn_q[i] - over_info_i.psn;
      over_now[i] = over_i && waits_q[i] && pdc_q[i] == over_info_i.pdc &&
                    (over_info_i.gone || distance[i][31]);
    end
  end

  // A free slot is chosen ahead, another one in the cycle in which it is used.
  logic             free_any, free_q, due_any, take, sent, offer_q;
  logic [SlotW-1:0] next_slot, free_slot_q, due_slot, slot_q;  // `slot_q` is offered.
  logic [SlotW:0]   count_q;
  logic [Slots-1:0] chosen, filled;  // Slot `free_slot_q`; the same when it is used.
  assign chosen = free_q ? Slots'(1) << free_slot_q : '0;
  assign filled = wait_i ? chosen : '0;
  heddle_rr_pick #(.NumSrc(Slots)) u_free (
    .clk_i, .rst_ni, .valid_i(~used_q & ~chosen), .valid_o(free_any), .idx_o(next_slot),
    .take_i(wait_i || !free_q)
  );
  heddle_rr_pick #(.NumSrc(Slots)) u_due (
    .clk_i, .rst_ni, .valid_i(over_q), .valid_o(due_any), .idx_o(due_slot), .take_i(take)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q      <= '0;
      waits_q     <= '0;
      over_q      <= '0;
      lost_q      <= '0;
      count_q     <= '0;
      free_q      <= 1'b0;
      free_slot_q <= '0;
    end else begin
      waits_q <= (waits_q & ~over_now) | (wait_info_i.lost ? '0 : filled);
      over_q  <= over_q | over_now | (wait_info_i.lost ? filled : '0);
      lost_q  <= (lost_q & ~filled) | (over_info_i.lost ? over_now : '0) | (wait_info_i.lost ? filled : '0);
      used_q  <= used_q | filled;
      count_q <= count_q + (SlotW+1)'(wait_i) - (SlotW+1)'(sent);
      if (take) over_q[due_slot] <= 1'b0;
      if (sent) used_q[slot_q]   <= 1'b0;
      if (wait_i || !free_q) begin
        free_q      <= free_any;
        free_slot_q <= next_slot;
      end
    end
  end
  for (genvar i = 0; i < Slots; i++) begin : gen_slot
    always_ff @(posedge clk_i) begin
      if (filled[i]) begin
        pdc_q[i] <= wait_info_i.pdc;
        psn_q[i] <= wait_info_i.psn;
      end
    end
  end
  assign room_o = count_q <= (SlotW+1)'(Slots - UnderWay);

  // -------------------------------------------------------------------- report
  // The slot's entry is read in the cycle in which it is taken, and on until its event has left.
  logic       lost, unused_error, unused_ready;
  read_wait_t entry;
  heddle_mem #(.Width($bits(read_wait_t)), .Depth(Slots), .Init(1'b0)) u_entries (
    .clk_i, .rst_ni, .wen_i(wait_i), .waddr_i(free_slot_q), .wdata_i(wait_info_i),
    .raddr_i(take ? due_slot : slot_q), .rdata_o(entry), .error_o(unused_error), .ready_o(unused_ready)
  );
  assign take = due_any && !offer_q;
  assign sent = offer_q && ev_ready_i;
  always_ff @(posedge clk_i) begin
    if (take) slot_q <= due_slot;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)   offer_q <= 1'b0;
    else if (take) offer_q <= 1'b1;
    else if (sent) offer_q <= 1'b0;
  end

  rx_counters_t counters;
  cq_event_t    report;
  assign counters = rx_counters_t'(rx_counters_i[entry.read.ctx]);
  assign lost     = lost_q[slot_q] || !rx_alive_i[entry.read.ctx] ||
                    rx_gen_i[entry.read.ctx] != entry.read.gen;
  always_comb begin
    report                      = '0;
    report.write                = entry.read.credit && !lost;
    report.credit               = entry.read.credit;
    report.owner                = entry.read.owner;
    report.cq                   = entry.read.cq;
    report.cq_gen               = entry.read.cq_gen;
    report.count.own            = lost ? '0 : counters.remote_read;
    report.entry.kind           = CompletionKindTarget;
    report.entry.opcode         = OpcodeRead;
    report.entry.context_       = 8'(entry.read.ctx);
    report.entry.queue_head     = entry.read.queue_head;
    report.entry.peer           = entry.read.initiator;
    report.entry.source_fa_hi   = entry.fa[127:64];
    report.entry.source_fa_lo   = entry.fa[63:0];
    report.entry.match_bits     = entry.read.key;
    report.entry.message_length = entry.read.bytes;
    report.entry.length         = entry.read.bytes;
    report.entry.flags          = entry.ipv6 ? CompletionFlagSourceIpv6 : '0;
  end

  assign ev_valid_o = ev_valid_i || offer_q;
  assign ev_ready_o = ev_ready_i && !offer_q;
  assign ev_o       = offer_q ? report : ev_i;
  assign idle_o     = !offer_q && !due_any && !wait_i && !over_i && !ev_valid_i;

  logic unused;
  assign unused = ^{unused_error, unused_ready, counters, distance, entry};

  `HEDDLE_ASSERT(Room_A, !wait_i || free_q)
  `HEDDLE_ASSERT(Beside_A, sent && due_any |=> !offer_q)
endmodule
