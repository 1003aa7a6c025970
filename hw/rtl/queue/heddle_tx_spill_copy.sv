// SPDX-License-Identifier: Apache-2.0
// Copies, marks and releases the slots that heddle_tx_spill found, many at a time.
//
// Ordered:  all are of one context, and go through in the order in which they were launched.
// Copied:   the slots that are still needed are in the area before the mark is written.
// Marked:   a spill_mark is in the area before the slots are released, unless the area is in the NIC.
// Moved:    payload of a message is announced (`move_o`) only if its message has not ended, and its old place is released when
//           no read of it is outstanding.
// Through:  one that waits is reported (`through_o`) when it may be brought back, from the area or from its ring.
// Failed:   one that cannot be read, copied or marked keeps its slots and gives its room back; `failed_o` reports that it is
//           the host's fault. One that is launched with `void_i` goes the same way, without fault.

`include "heddle_assert.svh"

module heddle_tx_spill_copy
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW    = 512,  // 64, 128, 256 or 512.
  parameter  int unsigned InFlight = 32,   // A power of two.
  localparam int unsigned RowBeats = DescBytes * 8 / DataW,
  localparam int unsigned RowBeatW = RowBeats > 1 ? $clog2(RowBeats) : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // The context; it changes only while none is in flight.
  input  logic [TxW-1:0]   ctx_i,
  input  logic [GenW-1:0]  gen_i,
  input  logic             here_i,       // It lives,
  input  logic             refused_i,    // and its memory cannot be accessed.
  input  logic [3:0]       log2_i,
  input  logic [63:0]      area_i,       // Its area in host memory,
  input  logic             in_nic_i,     // or this one in the NIC.
  input  logic [SpillAreaW-1:0] nic_area_i,
  input  logic [7:0]       owner_i,

  input  logic             launch_i,
  input  logic             void_i,
  input  spill_item_t      item_i,
  input  logic [63:0]      iova_i,       // Where it is copied from.
  output logic             full_o,       // No more.
  output logic             none_o,       // None is in flight.

  output spill_item_t      sent_o,       // The following are about this one.
  output logic             look_o,       // Strobe: is its message still there?
  input  logic             same_i,       // It is; one cycle later.
  output logic             through_o,    // It may be brought back,
  output logic             through_ok_o, // from the area.
  input  logic             through_ready_i,
  output logic             drop_o,       // Its room is free.
  input  logic             drop_ready_i,
  output logic             failed_o,     // Strobe.
  output logic             move_o,       // Strobe: its payload is in the area.
  input  logic [SeqW-1:0]  seq_issued_i,
  input  logic [SeqW-1:0]  seq_done_i,

  output logic             give_valid_o,
  input  logic             give_ready_i,
  output tx_give_t         give_o,
  input  logic             give_done_i,  // Strobe: it was tried.

  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             st_valid_o,   // heddle_spill_store.
  output logic [SpillRowW-1:0] st_row_o,
  output logic [RowBeatW-1:0]  st_beat_o,
  output logic [DataW-1:0] st_data_o
);
  localparam int unsigned Beats  = (InjectBytes + DescBytes) * 8 / DataW;  // Of the longest copy.
  localparam int unsigned PlaceW = Beats > 1 ? $clog2(Beats) : 1;
  localparam int unsigned CountW = $clog2(InFlight) + 1;
  localparam int unsigned ItemW  = $bits(spill_item_t);

  logic [CountW-1:0] flight_q, rd_count, wr_count, ack_count, give_count;
  logic              dropped;
  assign full_o = flight_q[CountW-1];
  assign none_o = flight_q == '0;

  // ----------------------------------------------------------------------- reads
  spill_item_t reading, writing;
  logic        reads_ready, rd_out_valid, rd_out_ready, rd_void, wr_in_ready, wr_out_valid, wr_out_ready, wr_void;
  heddle_fifo #(.Width(ItemW + 65), .Depth(InFlight)) u_reads (
    .clk_i, .rst_ni, .valid_i(launch_i), .ready_o(reads_ready), .data_i({void_i, iova_i, item_i}),
    .valid_o(rd_out_valid), .ready_i(rd_out_ready), .data_o({rd_void, rd_req_o.addr, reading}), .count_o(rd_count)
  );
  assign rd_req_o.bytes = {5'b0, reading.extra, 6'b0};
  assign rd_req_o.owner = owner_i;
  assign rd_valid_o     = rd_out_valid && reading.copied && !rd_void && wr_in_ready;
  assign rd_out_ready   = wr_in_ready && (rd_void || !reading.copied || rd_ready_i);
  heddle_fifo #(.Width(ItemW + 1), .Depth(InFlight)) u_writes (
    .clk_i, .rst_ni, .valid_i(rd_out_valid && rd_out_ready), .ready_o(wr_in_ready), .data_i({rd_void, reading}),
    .valid_o(wr_out_valid), .ready_i(wr_out_ready), .data_o({wr_void, writing}), .count_o(wr_count)
  );

  // ---------------------------------------------------------------------- writes
  typedef enum logic [2:0] {WriteIdle, WriteCollect, WriteCopy, WriteData, WriteMark, WriteMarkData, WriteEnd, WriteFail} write_e;
  write_e            write_d, write_q;
  logic [PlaceW-1:0] beat_q, last_beat;
  logic              bad_q, wrote, ack_in, ack_in_ready;
  spill_mark_t       mark;
  logic [RingLog2Max-1:0] mask;
  logic [DataW-1:0]  copied;
  assign mask      = RingLog2Max'((16'd1 << log2_i) - 16'd1);
  assign last_beat = PlaceW'((32'(writing.extra) * 32'(DescBytes * 8) + 32'(DataW - 1)) / 32'(DataW) - 1);
  // The next copy's data come when those of this one have left.
  heddle_lookup #(.Width(DataW), .Depth(1 << PlaceW)) u_data (
    .clk_i, .wen_i(write_q == WriteCollect && rd_rsp_valid_i), .waddr_i(beat_q), .wdata_i(rd_rsp_data_i),
    .raddr_i(beat_q), .rdata_o(copied)
  );
  assign rd_rsp_ready_o = write_q == WriteCollect;
  always_comb begin
    wr_req_o.addr  = area_i + 64'({writing.first, 6'b0});
    wr_req_o.bytes = {5'b0, writing.extra, 6'b0};
    wr_req_o.owner = owner_i;
    if (write_q == WriteMark) begin
      wr_req_o.addr  = area_i + (64'(DescBytes) << log2_i) + 64'({writing.position[RingLog2Max-1:0] & mask, 3'b0});
      wr_req_o.bytes = 14'($bits(spill_mark_t) / 8);
    end
    mark          = '0;
    mark.position = writing.position;
    mark.given    = 16'd1;
  end
  assign wr_valid_o      = write_q == WriteCopy || write_q == WriteMark;
  assign wr_data_valid_o = (write_q == WriteData && !in_nic_i) || write_q == WriteMarkData;
  assign wr_data_o       = write_q == WriteMarkData ? DataW'(mark) : copied;
  assign wrote           = in_nic_i || wr_data_ready_i;
  // Rows of the area in the NIC.
  assign st_valid_o      = write_q == WriteData && in_nic_i;
  assign st_row_o        = {nic_area_i, writing.first[SpillAreaLog2-1:0] + SpillAreaLog2'(32'(beat_q) / RowBeats)};
  assign st_beat_o       = RowBeatW'(32'(beat_q) % RowBeats);
  assign st_data_o       = copied;
  assign ack_in          = write_q == WriteFail || write_q == WriteEnd || (write_q == WriteMarkData && wr_data_ready_i);
  assign wr_out_ready    = ack_in;
  always_comb begin
    write_d = write_q;
    unique case (write_q)
      WriteIdle: begin
        if (wr_out_valid) begin
          if (writing.copied && !wr_void)               write_d = WriteCollect;
          else if (wr_void || !here_i || refused_i)     write_d = WriteFail;
          else                                          write_d = in_nic_i ? WriteEnd : WriteMark;
        end
      end
      WriteCollect: begin
        if (rd_rsp_valid_i && rd_rsp_last_i) begin
          write_d = bad_q || rd_rsp_error_i || !here_i || refused_i ? WriteFail : in_nic_i ? WriteData : WriteCopy;
        end
      end
      WriteCopy:     if (wr_ready_i) write_d = WriteData;
      WriteData:     if (wrote && beat_q == last_beat) write_d = in_nic_i ? WriteEnd : WriteMark;
      WriteMark:     if (wr_ready_i) write_d = WriteMarkData;
      WriteMarkData: if (wr_data_ready_i) write_d = WriteIdle;
      WriteEnd, WriteFail: write_d = WriteIdle;
      default:       write_d = WriteIdle;
    endcase
  end

  // --------------------------------------------------------------------- answers
  typedef enum logic [2:0] {
    SentIdle, SentCopy, SentMark,
    SentSame, SentMove,   // Whether the message whose payload was copied is there.
    SentThrough, SentDrop, SentGive
  } sent_e;
  sent_e sent_d, sent_q;
  logic  ack_valid, ack_ready, ack_void, failed, lost_q;
  logic  error_valid, error_ready, error_pop, error;
  logic [CountW:0] error_count;
  heddle_fifo #(.Width(ItemW + 2), .Depth(InFlight)) u_answers (
    .clk_i, .rst_ni, .valid_i(ack_in), .ready_o(ack_in_ready), .data_i({wr_void, write_q == WriteFail, writing}),
    .valid_o(ack_valid), .ready_i(ack_ready), .data_o({ack_void, failed, sent_o}), .count_o(ack_count)
  );
  heddle_fifo #(.Width(1), .Depth(2 * InFlight)) u_errors (
    .clk_i, .rst_ni, .valid_i(wr_rsp_valid_i), .ready_o(error_ready), .data_i(wr_rsp_error_i),
    .valid_o(error_valid), .ready_i(error_pop), .data_o(error), .count_o(error_count)
  );
  logic give_in_ready, give_out_valid, fence_in, fence_wait, asked_q;
  logic [SeqW-1:0] quiet;
  tx_give_t        give_in;
  assign error_pop    = (sent_q == SentCopy || sent_q == SentMark) && error_valid;
  assign look_o       = sent_q == SentSame;
  assign through_o    = sent_q == SentThrough;
  assign through_ok_o = !lost_q;
  assign move_o       = sent_q == SentMove && same_i;
  assign drop_o       = sent_q == SentDrop && sent_o.copied;
  assign dropped      = sent_q == SentDrop && (drop_ready_i || !sent_o.copied);
  assign failed_o     = dropped && lost_q && !ack_void && here_i;
  assign ack_ready    = dropped || (sent_q == SentGive && give_in_ready);
  always_comb begin
    sent_d = sent_q;
    unique case (sent_q)
      SentIdle: begin
        if (ack_valid) begin
          if (failed) sent_d = sent_o.waits ? SentThrough : SentDrop;
          else if (!in_nic_i)    sent_d = sent_o.copied ? SentCopy : SentMark;
          else if (sent_o.waits) sent_d = SentThrough;
          else                   sent_d = sent_o.copied ? SentSame : SentGive;
        end
      end
      SentCopy: if (error_valid) sent_d = SentMark;
      SentMark: begin
        if (error_valid) begin
          if (sent_o.waits)         sent_d = SentThrough;
          else if (error || lost_q) sent_d = SentDrop;
          else                      sent_d = sent_o.copied ? SentSame : SentGive;
        end
      end
      SentSame:    sent_d = SentMove;
      SentMove:    sent_d = same_i ? SentGive : SentDrop;
      SentThrough: if (through_ready_i) sent_d = lost_q ? SentDrop : SentGive;
      SentDrop, SentGive: if (ack_ready) sent_d = SentIdle;
      default: sent_d = SentIdle;
    endcase
  end

  // --------------------------------------------------------------------- release
  assign fence_in = sent_o.copied && !sent_o.waits;
  assign give_in  = {sent_o.waits, sent_o.msg, ctx_i, gen_i, sent_o.position, sent_o.slots};
  heddle_fifo #(.Width($bits(tx_give_t) + 1 + SeqW), .Depth(InFlight)) u_gives (
    .clk_i, .rst_ni, .valid_i(sent_q == SentGive), .ready_o(give_in_ready), .data_i({seq_issued_i, fence_in, give_in}),
    .valid_o(give_out_valid), .ready_i(give_done_i), .data_o({quiet, fence_wait, give_o}), .count_o(give_count)
  );
  assign give_valid_o = give_out_valid && !asked_q && (!fence_wait || $signed(seq_done_i - quiet) >= 0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flight_q <= '0;
      write_q  <= WriteIdle;
      sent_q   <= SentIdle;
      asked_q  <= 1'b0;
    end else begin
      flight_q <= flight_q + CountW'(launch_i) - CountW'(give_done_i) - CountW'(dropped);
      write_q  <= write_d;
      sent_q   <= sent_d;
      if (give_done_i)                       asked_q <= 1'b0;
      else if (give_valid_o && give_ready_i) asked_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_q == WriteIdle || write_q == WriteCopy || (write_q == WriteCollect && write_d != WriteCollect)) begin
      beat_q <= '0;
    end else if ((write_q == WriteCollect && rd_rsp_valid_i) || (write_q == WriteData && wrote)) begin
      beat_q <= beat_q + 1'b1;
    end
    if (write_q == WriteIdle)                                               bad_q <= 1'b0;
    else if (write_q == WriteCollect && rd_rsp_valid_i && rd_rsp_error_i)   bad_q <= 1'b1;
    if (sent_q == SentIdle)      lost_q <= failed;
    else if (error_pop && error) lost_q <= 1'b1;
  end

  logic unused;
  assign unused = ^{rd_count, wr_count, ack_count, give_count, error_count};

  `HEDDLE_ASSERT(FlightRoom_A, launch_i |-> reads_ready)
  `HEDDLE_ASSERT(AnswerRoom_A, ack_in |-> ack_in_ready)
  `HEDDLE_ASSERT(ErrorRoom_A, wr_rsp_valid_i |-> error_ready)
  `HEDDLE_ASSERT(CopiedHasSlots_A, launch_i && item_i.copied |-> item_i.extra != '0)
endmodule
