// SPDX-License-Identifier: Apache-2.0
// Reorder buffer: keeps packets of an ordered PDC that came after a missing one, and offers them to heddle_accept
// again, one by one, when they are the expected ones.
//
// Stands between heddle_rx_parser and {heddle_accept, heddle_place}. heddle_accept decides about each packet; what it
// keeps has a slot here, by its PSN, and leaves no record. A packet that is offered again is judged as one that arrives.
//
// One PDC:   at a time, until nothing of it is kept. Packets of others that want the buffer in vain, Patience of them
//            without progress of the PDC, end its use: what was kept is dropped, and the initiator retransmits it.
// Line rate: payload that is kept is written while other payload is read, or passes.
// In order:  payload leaves in the order in which heddle_accept decided; that which passes, in the order of arrival.
// Rules:     what is kept is as long as a slot at most, and 1 KiB at least or the rest of a message; a READ counts with what
//            it requests. So 64 slots last for a round trip of 64 KiB, and each packet may pass heddle_accept twice.

`include "heddle_assert.svh"

module heddle_rx_reorder
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
#(
  parameter int unsigned DataW = 512  // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  input  rx_packet_t       pkt_i,
  input  logic             pkt_squash_i,    // heddle_rx_parser: heddle_accept decides nothing about the last packet that it took.
  input  logic             pay_valid_i,
  output logic             pay_ready_o,
  input  logic [DataW-1:0] pay_data_i,

  output logic             pkt_valid_o,     // heddle_accept.
  input  logic             pkt_ready_i,
  output rx_packet_t       pkt_o,
  output logic             pay_valid_o,     // heddle_place.
  input  logic             pay_ready_i,
  output logic [DataW-1:0] pay_data_o,

  input  rx_packet_t       look_pkt_i,      // heddle_accept: the packet that it decides in the next cycle, after those before it,
  input  logic [PdcW-1:0]  look_pdc_i,      // of this PDC.
  output reorder_t         look_o,          // In the same cycle.
  input  reorder_verdict_t verdict_i,       // In the order of the packets,
  input  rx_packet_t       decided_pkt_i,   // of this one.

  output logic             idle_o
);
  localparam int unsigned Slots     = PdcWindow;
  localparam int unsigned SlotW     = $clog2(Slots);
  localparam int unsigned SlotBytes = 4096;
  localparam int unsigned KeptBytes = 1024;  // At least.
  localparam int unsigned StrbW     = DataW / 8;
  localparam int unsigned BeatW     = 14 - $clog2(StrbW) + 1;  // Beats of the longest packet.
  localparam int unsigned PlaceW    = $clog2(SlotBytes / StrbW);
  localparam int unsigned Queued    = 32;    // Packets decided whose payload has not left.
  localparam int unsigned QueuedW   = $clog2(Queued) + 1;
  localparam int unsigned Patience  = 64;
  // A packet is offered again while no more than so many wait to leave: the others wait here, not in heddle_rx_parser.
  localparam int unsigned OfferedAhead = 2;

  function automatic logic [BeatW-1:0] Beats(input logic [13:0] bytes);
    Beats = BeatW'((15'(bytes) + 15'(StrbW - 1)) >> $clog2(StrbW));
  endfunction

  // ---------------------------------------------------------------- what is kept
  logic                        used_q;      // By this PDC.
  logic [PdcW-1:0]             pdc_q;
  logic [31:0]                 next_q;      // The PSN after the last one kept.
  logic [31:0]                 expected_q;  // The PSN that it expects.
  logic [Slots-1:0]            kept_q, filling_q, draining_q;
  logic [$clog2(Patience)-1:0] denied_q;

  // heddle_accept has one of these, if `again_q`; it has up to two packets that it has not decided.
  logic             again_q, offered_q, wants_q;
  logic [SlotW-1:0] offered_slot_q;
  typedef struct packed {
    logic             again;
    logic [SlotW-1:0] slot;
  } undecided_t;
  undecided_t       entered, oldest;
  logic             undecided, undecided_ready;
  logic [1:0]       undecided_count;

  logic             keep, drop, due, taken, taken_again, begin_offer, fill_done, out_done;
  logic [SlotW-1:0] look_slot, decided_slot, expected_slot, passed_slot;
  logic [13:0]      look_bytes;
  logic             long_enough, fits, is_read;
  assign look_slot   = look_pkt_i.psn[SlotW-1:0];
  assign decided_slot = decided_pkt_i.psn[SlotW-1:0];
  assign is_read     = look_pkt_i.opcode == SesOpcodeRead;
  assign look_bytes  = is_read ? look_pkt_i.read_bytes : look_pkt_i.payload_bytes;
  assign long_enough = look_bytes >= 14'(KeptBytes) || !look_pkt_i.som;
  assign fits        = look_pkt_i.payload_bytes <= 14'(SlotBytes);
  always_comb begin
    look_o.mine = used_q && pdc_q == look_pdc_i;
    look_o.next = next_q;
    look_o.room = (!used_q || look_o.mine) && !oldest.again && !look_pkt_i.syn && long_enough && fits &&
                  !kept_q[look_slot] && !filling_q[look_slot] && !draining_q[look_slot];
  end

  logic has_payload;
  assign has_payload = decided_pkt_i.payload_bytes != '0;
  assign keep        = verdict_i.decided && verdict_i.keep;
  assign drop        = (verdict_i.ended && verdict_i.pdc == pdc_q) ||
                       (verdict_i.decided && verdict_i.early && wants_q && denied_q == '1);

  // ----------------------------------------------------------------- offered again
  logic               room;
  logic [QueuedW-1:0] arrive_count, leave_count;
  assign expected_slot = expected_q[SlotW-1:0];
  assign passed_slot   = SlotW'(verdict_i.expected[SlotW-1:0] - 1'b1);
  assign due           = used_q && kept_q[expected_slot];
  assign begin_offer   = due && !offered_q && !again_q && leave_count <= QueuedW'(OfferedAhead);
  assign taken         = pkt_valid_o && pkt_ready_i;
  assign taken_again   = taken && offered_q;
  assign entered       = {offered_q, offered_slot_q};
  heddle_fifo #(.Width($bits(undecided_t)), .Depth(2)) u_undecided (
    .clk_i, .rst_ni, .valid_i(taken), .ready_o(undecided_ready), .data_i(entered),
    .valid_o(undecided), .ready_i(verdict_i.decided || pkt_squash_i), .data_o(oldest), .count_o(undecided_count)
  );

  // The queues of payload have room for the packet, and those that heddle_accept has.
  assign pkt_valid_o = (offered_q || pkt_valid_i) && room;
  assign pkt_ready_o = pkt_ready_i && !offered_q && room;

  rx_packet_t record;
  logic       unused_record_error, unused_record_ready;
  heddle_mem #(.Width($bits(rx_packet_t)), .Depth(Slots), .Init(1'b0)) u_records (
    .clk_i, .rst_ni, .wen_i(keep), .waddr_i(decided_slot), .wdata_i(decided_pkt_i),
    .raddr_i(offered_q ? offered_slot_q : expected_slot), .rdata_o(record),
    .error_o(unused_record_error), .ready_o(unused_record_ready)
  );
  assign pkt_o = offered_q ? record : pkt_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q     <= 1'b0;
      kept_q     <= '0;
      filling_q  <= '0;
      draining_q <= '0;
      denied_q   <= '0;
      again_q    <= 1'b0;
      offered_q  <= 1'b0;
    end else begin
      if (taken_again)                            again_q <= 1'b1;
      else if (verdict_i.decided && oldest.again) again_q <= 1'b0;
      if (begin_offer) begin
        offered_q                 <= 1'b1;
        kept_q[expected_slot]     <= 1'b0;
        draining_q[expected_slot] <= 1'b1;
      end else if (taken_again) begin
        offered_q <= 1'b0;
      end
      if (verdict_i.decided && oldest.again && !has_payload) draining_q[oldest.slot] <= 1'b0;
      if (read_done) draining_q[reads.slot]  <= 1'b0;
      if (fill_done) filling_q[arrive.slot] <= 1'b0;

      if (used_q && kept_q == '0 && !offered_q && !again_q) used_q <= 1'b0;
      if (verdict_i.moved && used_q && verdict_i.pdc == pdc_q && verdict_i.expected != expected_q) begin
        kept_q[passed_slot] <= 1'b0;  // Another copy of it was accepted.
        denied_q            <= '0;
      end
      if (keep) begin
        used_q                  <= 1'b1;
        kept_q[decided_slot]    <= 1'b1;
        filling_q[decided_slot] <= has_payload;
        if (!used_q) denied_q <= '0;
      end else if (verdict_i.decided && verdict_i.early && wants_q) begin
        denied_q <= denied_q + 1'b1;
      end
      if (drop) begin
        kept_q   <= '0;
        denied_q <= '0;
      end
    end
  end

  logic [31:0] farther;
  assign farther = decided_pkt_i.psn - next_q;
  always_ff @(posedge clk_i) begin
    if (begin_offer) offered_slot_q <= expected_slot;
    wants_q <= used_q && pdc_q != look_pdc_i && long_enough && fits;
    if (keep) begin
      pdc_q <= verdict_i.pdc;
      if (!used_q || !farther[31]) next_q <= decided_pkt_i.psn + 32'd1;
    end
    if (keep || (verdict_i.moved && verdict_i.pdc == pdc_q)) expected_q <= verdict_i.expected;
  end

  // ---------------------------------------------------------------------- payload
  // Two queues of what was decided: of what arrives (kept, or it passes), and of what leaves (from a slot, or it passes).
  typedef struct packed {
    logic             stored;  // In this slot.
    logic [SlotW-1:0] slot;
    logic [BeatW-1:0] beats;
  } move_t;
  move_t              arrives, leaves, arrive, leave;
  logic               arrive_valid, leave_valid, arrive_done, arrive_ready, leave_ready;
  always_comb begin
    arrives.stored = verdict_i.keep;
    arrives.slot   = decided_slot;
    arrives.beats  = Beats(decided_pkt_i.payload_bytes);
    leaves         = arrives;
    leaves.stored  = oldest.again;
    leaves.slot    = oldest.slot;
  end
  heddle_fifo #(.Width($bits(move_t)), .Depth(Queued)) u_arrives (
    .clk_i, .rst_ni, .valid_i(verdict_i.decided && has_payload && !oldest.again), .ready_o(arrive_ready), .data_i(arrives),
    .valid_o(arrive_valid), .ready_i(arrive_done), .data_o(arrive), .count_o(arrive_count)
  );
  heddle_fifo #(.Width($bits(move_t)), .Depth(Queued)) u_leaves (
    .clk_i, .rst_ni, .valid_i(verdict_i.decided && has_payload && !verdict_i.keep), .ready_o(leave_ready), .data_i(leaves),
    .valid_o(leave_valid), .ready_i(out_done), .data_o(leave), .count_o(leave_count)
  );
  // For those that are undecided, and the next.
  assign room = arrive_count <= QueuedW'(Queued - 3) && leave_count <= QueuedW'(Queued - 3);

  // Payload to keep is written as it comes.
  logic             filling, passing, unused_data_error, unused_data_ready;
  logic [BeatW-1:0] fill_q, out_q, read_q;
  logic [DataW-1:0] stored, out_data;
  assign filling   = arrive_valid && arrive.stored && pay_valid_i;
  assign fill_done = filling && fill_q + 1'b1 == arrive.beats;
  heddle_mem #(.Width(DataW), .Depth(Slots << PlaceW), .Init(1'b0)) u_data (
    .clk_i, .rst_ni, .wen_i(filling), .waddr_i({arrive.slot, fill_q[PlaceW-1:0]}), .wdata_i(pay_data_i),
    .raddr_i({reads.slot, read_q[PlaceW-1:0]}), .rdata_o(stored),
    .error_o(unused_data_error), .ready_o(unused_data_ready)
  );

  // Payload in slots is read ahead, also of the packet after the one that leaves.
  localparam int unsigned ReadAhead = 4;
  localparam int unsigned AheadW    = $clog2(ReadAhead) + 1;
  logic               read, reading_q, read_valid, read_ready, read_done, ahead_valid, ahead_ready;
  move_t              reads;
  logic [2:0]         read_count;
  logic [AheadW-1:0]  ahead_count;
  heddle_fifo #(.Width($bits(move_t)), .Depth(4)) u_reads (
    .clk_i, .rst_ni, .valid_i(verdict_i.decided && has_payload && oldest.again), .ready_o(read_ready), .data_i(leaves),
    .valid_o(read_valid), .ready_i(read_done), .data_o(reads), .count_o(read_count)
  );
  assign read      = read_valid && !filling_q[reads.slot] &&
                     ahead_count + AheadW'(reading_q) < AheadW'(ReadAhead);
  assign read_done = read && read_q + 1'b1 == reads.beats;
  heddle_fifo #(.Width(DataW), .Depth(ReadAhead)) u_ahead (
    .clk_i, .rst_ni, .valid_i(reading_q), .ready_o(ahead_ready), .data_i(stored),
    .valid_o(ahead_valid), .ready_i(leave_valid && leave.stored && pay_ready_i), .data_o(out_data), .count_o(ahead_count)
  );

  logic moved;
  assign passing     = leave_valid && !leave.stored && arrive_valid && !arrive.stored;
  assign pay_valid_o = leave_valid && leave.stored ? ahead_valid : passing && pay_valid_i;
  assign pay_data_o  = leave.stored ? out_data : pay_data_i;
  assign pay_ready_o = arrive_valid && (arrive.stored || (passing && pay_ready_i));
  assign moved       = pay_valid_o && pay_ready_i;
  assign out_done    = moved && out_q + 1'b1 == leave.beats;
  assign arrive_done = arrive.stored ? fill_done : out_done && !leave.stored;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_q    <= '0;
      out_q     <= '0;
      read_q    <= '0;
      reading_q <= 1'b0;
    end else begin
      if (filling) fill_q <= fill_done ? '0 : fill_q + 1'b1;
      if (moved)   out_q  <= out_done ? '0 : out_q + 1'b1;
      if (read)    read_q <= read_done ? '0 : read_q + 1'b1;
      reading_q <= read;
    end
  end

  assign idle_o = !arrive_valid && !leave_valid && !offered_q && !again_q && !due;

  logic unused_bits;
  assign unused_bits = ^{unused_record_error, unused_record_ready, unused_data_error, unused_data_ready, look_pkt_i, decided_pkt_i, farther, read_count, undecided, undecided_ready, undecided_count, reads, leave};

  `HEDDLE_ASSERT(ArrivesHasRoom_A, verdict_i.decided && has_payload && !oldest.again |-> arrive_ready)
  `HEDDLE_ASSERT(LeavesHasRoom_A, verdict_i.decided && has_payload && !verdict_i.keep |-> leave_ready)
  `HEDDLE_ASSERT(ReadsHaveRoom_A, verdict_i.decided && has_payload && oldest.again |-> read_ready)
  `HEDDLE_ASSERT(DecidesWhatEntered_A, verdict_i.decided |-> undecided)
  `HEDDLE_ASSERT(SquashesTheOnlyOne_A, pkt_squash_i |-> undecided_count == 2'd1 && !oldest.again && !verdict_i.decided)
  `HEDDLE_ASSERT(TwoUndecided_A, taken |-> undecided_ready)
  `HEDDLE_ASSERT(ReadAheadHasRoom_A, reading_q |-> ahead_ready)
  `HEDDLE_ASSERT(KeptOnce_A, keep |-> !oldest.again && !kept_q[decided_slot] && !filling_q[decided_slot] && !draining_q[decided_slot])
  `HEDDLE_ASSERT(KeptOfOne_A, keep |-> !used_q || verdict_i.pdc == pdc_q)
endmodule
