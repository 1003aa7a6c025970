// SPDX-License-Identifier: Apache-2.0
// One client of the DMA read engine: splits its requests, holds the ring of beats
// in which their data arrives in any order, and returns it in order and aligned.
//
// Ordered:  data leaves in the order of requests.
// Reserved: a burst is offered only while a tag and room for all its beats are free.
// Aligned:  the first byte of a request is in lane 0 of its first beat.
// A tag is the burst's number modulo 2^TagW; the parent returns each beat with
// the place in the ring that the burst got plus the beat's number.

`include "heddle_assert.svh"

module heddle_dma_read_client
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW     = 512,   // 64, 128, 256 or 512.
  parameter  int unsigned TagW      = 6,     // log2 of bursts outstanding or buffered; 1 to 7.
  parameter  int unsigned RingBytes = 32768, // A power of two, at least 4096.
  parameter  int unsigned LongBytes = 512,   // A power of two, below 256 beats.
  localparam int unsigned StrbW  = DataW / 8,
  localparam int unsigned LaneW  = $clog2(StrbW),
  localparam int unsigned Beats  = RingBytes / StrbW,
  localparam int unsigned BeatW  = $clog2(Beats)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic                        req_valid_i,
  output logic                        req_ready_o,
  input  logic [$bits(dma_req_t)-1:0] req_i,

  // Burst to issue.
  output logic                        burst_valid_o,
  input  logic                        burst_ready_i,
  output logic [TagW-1:0]             burst_tag_o,
  output logic [BeatW-1:0]            burst_base_o,  // First beat in the ring.
  output logic [63:0]                 burst_addr_o,
  output logic [7:0]                  burst_len_o,   // Beats - 1.
  output logic [7:0]                  burst_owner_o,
  output logic                        burst_long_o,  // More than LongBytes.

  // Beat from the host.
  input  logic                        beat_valid_i,
  input  logic [BeatW-1:0]            beat_place_i,
  input  logic [DataW-1:0]            beat_data_i,
  input  logic                        beat_last_i,   // Last beat of burst `beat_tag_i`.
  input  logic [TagW-1:0]             beat_tag_i,
  input  logic                        beat_error_i,  // With beat_last_i: any beat was refused.

  output logic                        rsp_valid_o,
  input  logic                        rsp_ready_i,
  output logic [DataW-1:0]            rsp_data_o,
  output logic                        rsp_last_o,
  output logic                        rsp_error_o,

  output logic                        refused_o,     // Strobe: a request with an error was returned.
  output logic                        idle_o
);
  localparam int unsigned Tags       = 1 << TagW;
  localparam int unsigned SplitBytes = 256 * StrbW < 4096 ? 256 * StrbW : 4096;
  localparam int unsigned SplitW     = $clog2(SplitBytes);

  // ------------------------------------------------------------- split
  logic        busy_q, begun_q;
  logic [63:0] addr_q;
  logic [13:0] left_q;
  logic [7:0]  owner_q;
  logic [LaneW-1:0] lane_q;    // Of the request's first byte.
  logic        tail_q;         // Last beat holds bytes from that lane on.

  dma_req_t req;
  assign req = req_i;
  logic [LaneW-1:0] end_lane;  // Of the request's last byte.
  assign end_lane = req.addr[LaneW-1:0] + req.bytes[LaneW-1:0] - 1'b1;

  logic [SplitW:0]  to_split;
  logic [13:0]      burst, span;
  logic             last_burst, issue;
  logic [8:0]       beats;
  assign to_split   = (SplitW + 1)'(SplitBytes) - {1'b0, addr_q[SplitW-1:0]};
  assign last_burst = left_q <= 14'(to_split);
  assign burst      = last_burst ? left_q : 14'(to_split);
  assign span       = burst + 14'(addr_q[LaneW-1:0]) - 14'd1;
  assign beats      = 9'(span >> LaneW) + 9'd1;

  logic [TagW-1:0]  tag_q;
  logic [TagW:0]    tags_free_q;
  logic [BeatW-1:0] alloc_q;
  logic [BeatW:0]   room_q;
  assign burst_valid_o = busy_q && tags_free_q != '0 && (BeatW + 1)'(beats) <= room_q;
  assign burst_tag_o   = tag_q;
  assign burst_base_o  = alloc_q;
  assign burst_addr_o  = addr_q;
  assign burst_len_o   = 8'(span >> LaneW);
  assign burst_owner_o = owner_q;
  assign burst_long_o  = left_q > 14'(LongBytes) && addr_q[SplitW-1:$clog2(LongBytes)] != '1;
  assign issue         = burst_valid_o && burst_ready_i;
  assign req_ready_o   = !busy_q || (issue && last_burst);

  always_ff @(posedge clk_i) begin
    if (req_valid_i && req_ready_o) begin
      addr_q  <= req.addr;
      left_q  <= req.bytes;
      owner_q <= req.owner;
      lane_q  <= req.addr[LaneW-1:0];
      tail_q  <= end_lane >= req.addr[LaneW-1:0];
    end else if (issue) begin
      addr_q <= addr_q + 64'(burst);
      left_q <= left_q - burst;
    end
  end

  // ------------------------------------------------ bursts, oldest first
  logic             head_valid, head_pop, head_first, head_last, head_tail;
  logic [8:0]       head_beats;
  logic [LaneW-1:0] head_lane;
  logic             unused_order_ready;
  logic [TagW:0]    unused_order_count;

  heddle_fifo #(.Width(12 + LaneW), .Depth(Tags)) u_order (
    .clk_i,
    .rst_ni,
    .valid_i (issue),
    .ready_o (unused_order_ready),
    .data_i  ({!begun_q, last_burst, tail_q, lane_q, beats}),
    .valid_o (head_valid),
    .ready_i (head_pop),
    .data_o  ({head_first, head_last, head_tail, head_lane, head_beats}),
    .count_o (unused_order_count)
  );

  logic [Tags-1:0] done_q, error_q;  // By tag; a tag in use is cleared when it is taken.
  logic [TagW-1:0] head_tag_q;

  // ------------------------------------------------------------- drain
  // Beat `fetch_q` of the ring is read, then offered to the aligner.
  logic             fetch, advance;
  logic             fetched_q, first_q, last_q, tail2_q, refused_q;
  logic [LaneW-1:0] lane2_q;
  logic [BeatW-1:0] fetch_q, held_q;
  logic [8:0]       count_q;       // Beats of the head burst fetched.
  logic             burst_end;
  logic             align_ready;
  logic             error_so_far_q;
  assign advance   = !fetched_q || align_ready;
  assign fetch     = head_valid && done_q[head_tag_q] && advance;
  assign burst_end = count_q == head_beats - 9'd1;
  assign head_pop  = fetch && burst_end;

  logic head_error;
  assign head_error = error_so_far_q || error_q[head_tag_q];

  logic [DataW-1:0] ring_data;
  logic unused_error, unused_ready;
  heddle_mem #(.Width(DataW), .Depth(Beats), .Init(1'b0)) u_ring (
    .clk_i,
    .rst_ni,
    .wen_i   (beat_valid_i),
    .waddr_i (beat_place_i),
    .wdata_i (beat_data_i),
    .raddr_i (advance ? fetch_q : held_q),
    .rdata_o (ring_data),
    .error_o (unused_error),
    .ready_o (unused_ready)
  );

  heddle_align #(.DataW(DataW), .UserW(1)) u_align (
    .clk_i,
    .rst_ni,
    .in_valid_i  (fetched_q),
    .in_ready_o  (align_ready),
    .in_data_i   (ring_data),
    .in_first_i  (first_q),
    .in_last_i   (last_q),
    .in_shift_i  (lane2_q),
    .in_tail_i   (tail2_q),
    .in_user_i   (refused_q),
    .out_valid_o (rsp_valid_o),
    .out_ready_i (rsp_ready_i),
    .out_data_o  (rsp_data_o),
    .out_last_o  (rsp_last_o),
    .out_user_o  (rsp_error_o)
  );

  logic free_beat;
  assign free_beat = fetched_q && align_ready;

  always_ff @(posedge clk_i) begin
    if (fetch) begin
      first_q   <= head_first && count_q == '0;
      last_q    <= head_last && burst_end;
      tail2_q   <= head_tail;
      lane2_q   <= head_lane;
      refused_q <= head_error;
      held_q    <= fetch_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q         <= 1'b0;
      begun_q        <= 1'b0;
      tag_q          <= '0;
      tags_free_q    <= (TagW + 1)'(Tags);
      alloc_q        <= '0;
      room_q         <= (BeatW + 1)'(Beats);
      head_tag_q     <= '0;
      fetched_q      <= 1'b0;
      fetch_q        <= '0;
      count_q        <= '0;
      error_so_far_q <= 1'b0;
    end else begin
      if (req_ready_o) busy_q <= req_valid_i;
      if (issue) begin
        begun_q <= !last_burst;
        tag_q   <= tag_q + 1'b1;
        alloc_q <= alloc_q + BeatW'(beats);
      end
      tags_free_q <= tags_free_q - (TagW + 1)'(issue) + (TagW + 1)'(head_pop);
      room_q      <= room_q - (issue ? (BeatW + 1)'(beats) : '0) + (BeatW + 1)'(free_beat);
      if (advance) fetched_q <= fetch;
      if (fetch) begin
        fetch_q <= fetch_q + 1'b1;
        count_q <= burst_end ? '0 : count_q + 9'd1;
      end
      if (head_pop) begin
        head_tag_q     <= head_tag_q + 1'b1;
        error_so_far_q <= head_error && !head_last;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      done_q  <= '0;
      error_q <= '0;
    end else begin
      if (issue) done_q[tag_q] <= 1'b0;
      if (beat_valid_i && beat_last_i) begin
        done_q[beat_tag_i]  <= 1'b1;
        error_q[beat_tag_i] <= beat_error_i;
      end
    end
  end

  assign refused_o = head_pop && head_last && head_error;
  assign idle_o    = !busy_q && !head_valid && !fetched_q && !rsp_valid_o;

  `HEDDLE_ASSERT(Long_A, burst_long_o == (burst > 14'(LongBytes)))
  `HEDDLE_ASSERT(ReservedRoom_A, room_q <= (BeatW + 1)'(Beats))
  `HEDDLE_ASSERT(ReservedTag_A, !issue || unused_order_ready)
  `HEDDLE_ASSUME(RequestHasBytes_M, !req_valid_i || (req.bytes != '0 && req.bytes <= 14'd8192))
endmodule
