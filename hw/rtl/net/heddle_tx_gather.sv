// SPDX-License-Identifier: Apache-2.0
// Payload of frames from several places in host memory: one read per piece of a packet, and their
// data as if it were one. Payload in a spill area in the NIC is read there instead.
//
// Ordered:  payload leaves in the order of requests, each with its first byte in lane 0 and no gap.
// Whole:    a request whose message has segments must lie inside what they add up to.
// Error:    a request fails if any of its reads was refused; as many beats leave either way.
// Latency:  0 cycles, and a beat each cycle, for requests without segments. A request with segments takes one
//           cycle more, and one for each of the segments up to its end; its data, one beat more at most.

`include "heddle_assert.svh"

module heddle_tx_gather
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             wr_valid_i,      // Message table write of a message with segments.
  input  logic [MsgW-1:0]  wr_msg_i,
  input  segments_t        wr_data_i,

  input  logic             req_valid_i,
  output logic             req_ready_o,
  input  gather_req_t      req_i,

  output logic             rd_valid_o,      // Client RdPayload.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  output logic             nic_valid_o,     // heddle_spill_store. Stays until its last beat.
  output spill_read_t      nic_o,
  input  logic             nic_rsp_valid_i,
  output logic             nic_rsp_ready_o,
  input  logic [DataW-1:0] nic_rsp_data_i,
  input  logic             nic_rsp_last_i,

  output logic             out_valid_o,     // One payload per request.
  input  logic             out_ready_i,
  output logic [DataW-1:0] out_data_o,
  output logic             out_last_o,
  output logic             out_error_o,

  output logic             idle_o
);
  localparam int unsigned LaneW  = $clog2(StrbW);
  localparam int unsigned Pieces = 256;  // Reads outstanding; no less than the engine allows.

  typedef struct packed {
    logic [13:0] bytes;
    logic        last;    // Of its request.
    logic        in_nic;  // Read there, from this row on.
    logic [SpillRowW-1:0] row;
  } piece_t;

  // ----------------------------------------------------------------------- split
  logic        split_q;        // The pieces shown are those of the request.
  logic        cut_ready, overlap, step, piece_ready, fire;
  logic [63:0] piece_iova;
  piece_t      piece;
  logic [13:0] shown_bytes;
  logic        shown_last;
  heddle_segment_cut u_cut (
    .clk_i, .rst_ni, .wr_valid_i, .wr_msg_i, .wr_data_i,
    .msg_i(req_i.msg), .offset_i(req_i.offset), .bytes_i(req_i.read.bytes),
    .step_i(step), .clear_i(req_ready_o),
    .overlap_o(overlap), .iova_o(piece_iova), .bytes_o(shown_bytes), .last_o(shown_last),
    .ready_o(cut_ready)
  );

  always_comb begin
    rd_req_o     = req_i.read;
    piece.bytes  = req_i.read.bytes;
    piece.last   = 1'b1;
    piece.in_nic = req_i.in_nic;
    piece.row    = req_i.row;
    if (split_q) begin
      rd_req_o.addr  = piece_iova;
      rd_req_o.bytes = shown_bytes;
      piece.bytes    = shown_bytes;
      piece.last     = shown_last;
      piece.in_nic   = 1'b0;
    end
  end
  assign rd_valid_o  = req_valid_i && piece_ready && (split_q ? overlap : !req_i.segmented && !req_i.in_nic);
  assign fire        = (rd_valid_o && rd_ready_i) || (req_valid_i && piece_ready && req_i.in_nic && !req_i.segmented);
  assign step        = split_q && (fire || !overlap);
  assign req_ready_o = fire && piece.last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                             split_q <= 1'b0;
    else if (req_ready_o)                    split_q <= 1'b0;
    else if (req_valid_i && req_i.segmented) split_q <= 1'b1;
  end

  // ------------------------------------------------------------------------ join
  piece_t head;
  logic   head_valid, head_pop;
  logic [$clog2(Pieces):0] piece_count;
  heddle_fifo #(.Width($bits(piece_t)), .Depth(Pieces)) u_pieces (
    .clk_i, .rst_ni,
    .valid_i(fire), .ready_o(piece_ready), .data_i(piece),
    .valid_o(head_valid), .ready_i(head_pop), .data_o(head), .count_o(piece_count)
  );

  // `kept_q` holds `fill_q` bytes that came before the beat, and nothing above them.
  logic             begun_q;          // The piece's first beat was taken.
  logic [13:0]      left_q, left;
  logic [LaneW:0]   bytes;            // Of this beat.
  logic [LaneW-1:0] fill_q;
  logic [LaneW+1:0] sum;
  logic [DataW-1:0] kept_q, masked, low, high;
  logic             flush_q;          // What is kept is the payload's last beat.
  logic             error_q, error, full, ends, takes, take, moves;
  logic             in_nic, came, came_last;
  assign left   = begun_q ? left_q : head.bytes;
  assign bytes  = left < 14'(StrbW) ? (LaneW + 1)'(left) : (LaneW + 1)'(StrbW);
  assign sum    = (LaneW + 2)'(fill_q) + (LaneW + 2)'(bytes);
  assign full   = sum >= (LaneW + 2)'(StrbW);
  assign in_nic      = head_valid && head.in_nic;
  assign came        = in_nic ? nic_rsp_valid_i : rd_rsp_valid_i;
  assign came_last   = in_nic ? nic_rsp_last_i : rd_rsp_last_i;
  assign nic_valid_o = in_nic;
  assign nic_o       = {head.row, head.bytes[7:0]};
  assign ends   = came_last && head.last;
  assign error  = error_q || (!in_nic && rd_rsp_last_i && rd_rsp_error_i);
  assign moves  = fill_q != '0 || !head.last;

  // Nothing shifts for payload in one piece.
  always_comb begin
    masked = in_nic ? nic_rsp_data_i : rd_rsp_data_i;
    low    = masked;
    high   = '0;
    if (came && moves) begin
      if (bytes != (LaneW + 1)'(StrbW)) masked = masked & ~({DataW{1'b1}} << {bytes, 3'b000});
      {high, low} = {{DataW{1'b0}}, masked} << {fill_q, 3'b000};
      low         = low | kept_q;
    end
  end

  assign out_valid_o    = flush_q || (came && head_valid && (full || ends));
  assign out_data_o     = flush_q ? kept_q : low;
  assign out_last_o     = flush_q || (ends && sum <= (LaneW + 2)'(StrbW));
  assign out_error_o    = flush_q ? error_q : error;
  assign takes           = head_valid && !flush_q && (out_ready_i || !(full || ends));
  assign rd_rsp_ready_o  = takes && !in_nic;
  assign nic_rsp_ready_o = takes && in_nic;
  assign take            = came && takes;
  assign head_pop        = take && came_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
      fill_q  <= '0;
      kept_q  <= '0;
      flush_q <= 1'b0;
      error_q <= 1'b0;
    end else begin
      if (take) begin
        begun_q <= !came_last;
        error_q <= error;
        fill_q  <= sum[LaneW-1:0];
        if (moves) kept_q <= full ? high : low;
      end
      if (take && ends) begin
        flush_q <= sum > (LaneW + 2)'(StrbW);
        if (sum <= (LaneW + 2)'(StrbW)) begin
          fill_q  <= '0;
          kept_q  <= '0;
          error_q <= 1'b0;
        end
      end
      if (flush_q && out_ready_i) begin
        flush_q <= 1'b0;
        fill_q  <= '0;
        kept_q  <= '0;
        error_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) left_q <= left - 14'(bytes);
  end

  assign idle_o = !req_valid_i && !head_valid && !flush_q && cut_ready;

  logic unused_bits;
  assign unused_bits = ^piece_count;

  `HEDDLE_ASSERT(OrderedOffer_A, out_valid_o && !out_ready_i |=> out_valid_o && $stable(out_data_o))
  `HEDDLE_ASSERT(PieceEnds_A, take && came_last |-> left <= 14'(StrbW))
endmodule
