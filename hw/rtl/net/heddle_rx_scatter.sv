// SPDX-License-Identifier: Apache-2.0
// Data of READs to several places in host memory: one write per piece of a packet.
//
// Ordered:  pieces are written in the order of requests, and of segments inside one; so each request is
//           answered in turn, once, when all its pieces were: with an error if any of them was refused.
// Whole:    a request whose message has segments must lie inside what they add up to.
// Taken:    a request with segments is taken before its pieces are written: its data must not wait for that,
//           since the write engine takes only a few requests whose data has not come.
// Latency:  0 cycles, and a beat each cycle, for requests without segments. A request with segments takes one
//           cycle more, and one for each of the segments up to its end; its data, one beat more per piece.

`include "heddle_assert.svh"

module heddle_rx_scatter
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             seg_wr_i,        // Message table write of a message with segments.
  input  logic [MsgW-1:0]  seg_msg_i,
  input  segments_t        seg_data_i,

  input  logic             req_valid_i,     // heddle_place.
  output logic             req_ready_o,
  input  dma_req_t         req_i,
  input  logic             req_segmented_i, // The address is an offset in the segments of `req_msg_i`.
  input  logic [MsgW-1:0]  req_msg_i,
  input  logic             data_valid_i,
  output logic             data_ready_o,
  input  logic [DataW-1:0] data_i,
  output logic             rsp_valid_o,
  output logic             rsp_error_o,

  output logic             wr_valid_o,      // Client WrPayload.
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             idle_o
);
  localparam int unsigned LaneW  = $clog2(StrbW);
  localparam int unsigned Pieces = 16;   // Writes whose data is still to come; more than the engine takes.
  localparam int unsigned Writes = 256;  // Writes to be answered; no less than the engine allows.

  typedef struct packed {
    logic [13:0] bytes;
    logic        last;    // Of its request.
  } piece_t;

  // ----------------------------------------------------------------------- split
  logic            split_q;    // The pieces shown are those of the request taken, in `req_q`.
  dma_req_t        req_q;
  logic [MsgW-1:0] msg_q;
  logic            cut_ready, overlap, step, room, piece_ready, write_ready, fire, hold, done;
  logic [63:0]     piece_iova;
  piece_t          shown, piece;
  heddle_segment_cut u_cut (
    .clk_i, .rst_ni,
    .wr_valid_i(seg_wr_i), .wr_msg_i(seg_msg_i), .wr_data_i(seg_data_i),
    .msg_i(split_q ? msg_q : req_msg_i), .offset_i(req_q.addr[31:0]), .bytes_i(req_q.bytes),
    .step_i(step), .clear_i(done),
    .overlap_o(overlap), .iova_o(piece_iova), .bytes_o(shown.bytes), .last_o(shown.last),
    .ready_o(cut_ready)
  );

  always_comb begin
    wr_req_o    = req_i;
    piece.bytes = req_i.bytes;
    piece.last  = 1'b1;
    if (split_q) begin
      wr_req_o       = req_q;
      wr_req_o.addr  = piece_iova;
      wr_req_o.bytes = shown.bytes;
      piece          = shown;
    end
  end
  assign room        = piece_ready && write_ready;
  assign wr_valid_o  = room && (split_q ? overlap : req_valid_i && !req_segmented_i);
  assign fire        = wr_valid_o && wr_ready_i;
  assign step        = split_q && (fire || !overlap);
  assign hold        = !split_q && req_valid_i && req_segmented_i;
  assign done        = split_q && fire && piece.last;
  assign req_ready_o = hold || (fire && !split_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)   split_q <= 1'b0;
    else if (done) split_q <= 1'b0;
    else if (hold) split_q <= 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (hold) begin
      req_q <= req_i;
      msg_q <= req_msg_i;
    end
  end

  // ------------------------------------------------------------------------ data
  piece_t head;
  logic   head_valid, head_pop;
  logic [$clog2(Pieces):0] piece_count;
  heddle_fifo #(.Width($bits(piece_t)), .Depth(Pieces)) u_pieces (
    .clk_i, .rst_ni,
    .valid_i(fire), .ready_o(piece_ready), .data_i(piece),
    .valid_o(head_valid), .ready_i(head_pop), .data_o(head), .count_o(piece_count)
  );

  // `kept_q` holds `fill_q` bytes that the pieces before left of their last beat, and anything above them.
  logic             begun_q;          // A beat of the piece has left.
  logic [13:0]      left_q, left;     // Bytes of the piece.
  logic [LaneW:0]   bytes;            // Of this beat.
  logic [LaneW-1:0] fill_q;
  logic [DataW-1:0] kept_q, mixed, rest;
  logic             enough, shifts, leaves, ends;
  assign left   = begun_q ? left_q : head.bytes;
  assign ends   = left <= 14'(StrbW);
  assign bytes  = ends ? (LaneW + 1)'(left) : (LaneW + 1)'(StrbW);
  assign enough = (LaneW + 1)'(fill_q) >= bytes;  // Without another beat.
  assign shifts = head_valid && (fill_q != '0 || (ends && !head.last));

  // Nothing shifts for data that go to one place. Behind the last piece the rest of a beat is nobody's.
  logic [2*DataW-1:0] both;
  always_comb begin
    both  = {{DataW{1'b0}}, data_i};
    mixed = data_i;
    rest  = '0;
    if (shifts) begin
      both = {{DataW{1'b0}}, kept_q & ~({DataW{1'b1}} << {fill_q, 3'b000})};
      if (!enough) both = both | ({{DataW{1'b0}}, data_i} << {fill_q, 3'b000});
      mixed = both[DataW-1:0];
      rest  = DataW'(both >> {bytes, 3'b000});
    end
  end

  assign wr_data_valid_o = head_valid && (enough || data_valid_i);
  assign wr_data_o       = mixed;
  assign leaves          = wr_data_valid_o && wr_data_ready_i;
  assign data_ready_o    = head_valid && !enough && wr_data_ready_i;
  assign head_pop        = leaves && ends;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
      fill_q  <= '0;
      kept_q  <= '0;
    end else if (leaves) begin
      begun_q <= !ends;
      // A beat taken adds StrbW, which the width drops.
      fill_q  <= ends && head.last ? '0 : fill_q - bytes[LaneW-1:0];
      if (shifts) kept_q <= rest;
    end
  end
  always_ff @(posedge clk_i) begin
    if (leaves) left_q <= left - 14'(bytes);
  end

  // --------------------------------------------------------------------- answers
  logic answer_last, error_q, answer_valid;
  logic [$clog2(Writes):0] write_count;
  heddle_fifo #(.Width(1), .Depth(Writes)) u_writes (
    .clk_i, .rst_ni,
    .valid_i(fire), .ready_o(write_ready), .data_i(piece.last),
    .valid_o(answer_valid), .ready_i(wr_rsp_valid_i), .data_o(answer_last), .count_o(write_count)
  );
  assign rsp_valid_o = wr_rsp_valid_i && answer_last;
  assign rsp_error_o = wr_rsp_error_i || error_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)             error_q <= 1'b0;
    else if (wr_rsp_valid_i) error_q <= !answer_last && rsp_error_o;
  end

  assign idle_o = !req_valid_i && !split_q && !head_valid && !answer_valid && cut_ready;

  logic unused_bits;
  assign unused_bits = ^{piece_count, write_count, both, req_q};

  `HEDDLE_ASSERT(OrderedOffer_A, wr_valid_o && !wr_ready_i |=> wr_valid_o && $stable(wr_req_o))
  `HEDDLE_ASSUME(AnswerExpected_M, wr_rsp_valid_i |-> answer_valid)
endmodule
