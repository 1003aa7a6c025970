// SPDX-License-Identifier: Apache-2.0
// Turns frames from the MAC into parsed headers and aligned payload.
//
// Verified: a packet is offered, and not squashed, only after its whole frame arrived and VLAN, Ethernet
//           type, IP header, address, UDP port and length (not of native IP, port_cfg.ip_protocol), CRC (port_cfg.crc)
//           and the lengths of PDS and SES headers were found right; every other frame
//           is dropped and counted by its first reason. ARP and neighbour discovery
//           are the slow path's: neither offered nor counted as dropped.
// Early:    a packet whose headers are right is offered two cycles after its last beat, in that cycle alone, if none
//           before it waits. `pkt_squash_o`, two cycles after it was taken: the frame is dropped, and the packet is void.
// Trimmed:  a request that the network trimmed is offered without payload, whatever its UDP length
//           says, with neither CRC nor SES judged; other trimmed packets are dropped and counted.
// Unhurried: no back-pressure on the MAC; a frame that finds no room is dropped whole
//           and counted (drop_overflow).
// Aligned:  payload bytes of a packet start in lane 0 of a new beat;
//           ceil(payload_bytes/StrbW) beats per packet, in packet order.
// PDS types and SES headers: rod_req/rud_req with request_std; ack, ack_cc with
// response or none; nack; cp. Others are drop_pds_type. SES ver != 0 and lengths that contradict each other or
// the payload MTU are drop_ses in a response; a request with them is offered, since it has an answer.
// The UDP checksum is ignored (UE specification 1.0.3 3.5.10.1).

`include "heddle_assert.svh"

module heddle_rx_parser
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t           port_i,
  input  logic [1:0][5:0]     trimmed_dscp_i,  // By the last hop, on the path; 0: none.

  input  logic                tvalid_i,
  input  logic [DataW-1:0]    tdata_i,
  input  logic [StrbW-1:0]    tkeep_i,
  input  logic                tlast_i,
  input  logic                tuser_i,     // With tlast: bad frame.

  output logic                pkt_valid_o,
  input  logic                pkt_ready_i,
  output rx_packet_t          pkt_o,
  output logic                pkt_squash_o,  // Strobe: that which was taken two cycles ago.
  output logic                pay_valid_o,
  input  logic                pay_ready_i,
  output logic [DataW-1:0]    pay_data_o,

  output logic [NumStat-1:0]  stat_o,      // Strobes; bit of enum statistic.
  output logic [13:0]         rx_bytes_o,  // Added to rx_bytes, which has no strobe.
  output logic                idle_o
);
  localparam int unsigned LaneW     = $clog2(StrbW);
  localparam int unsigned QueueLen  = 64;             // Packets offered or waiting.
  localparam int unsigned StoreBeats = 65536 / StrbW;
  // A request behind a VLAN tag and IPv6.
  localparam int unsigned StackBytes =
      EthernetBytes + VlanBytes + Ipv6Bytes + UdpBytes + PdsRequestBytes + SesStdBytes;
  localparam int unsigned StackBeats = (StackBytes + StrbW - 1) / StrbW;
  localparam int unsigned StackW     = 8 * StackBytes;
  localparam int unsigned BeatIdxW   = $clog2(StackBeats + 1);
  localparam logic [13:0] LastPos    = ~14'(StrbW - 1);

  // --------------------------------------------------- stage 1: collect
  // `stack_q` holds the header bytes up to the beat in `beat_q`, first byte in
  // the top bits; later bytes are of an older frame.
  logic                  valid_q, last_q, bad_q;
  logic                  crc_q, msb_first_q;  // `port_cfg.crc`, the same for a whole frame.
  logic [DataW-1:0]      beat_q;
  logic [13:0]           pos_q, bytes_q;  // Of the beat in the frame; bytes so far.
  logic [BeatIdxW-1:0]   index_q;         // Beat of the frame, up to StackBeats.
  logic [StackBeats*DataW-1:0] stack_q;

  logic                  begun_q;         // The next beat continues a frame.
  logic [13:0]           pos;
  logic [14:0]           bytes;
  logic [BeatIdxW-1:0]   index;
  logic [LaneW:0]        kept;
  logic [DataW-1:0]      beat_be;
  assign pos   = !begun_q ? '0 : (pos_q == LastPos ? LastPos : pos_q + 14'(StrbW));
  assign bytes = {1'b0, pos} + 15'(kept);
  assign index = !begun_q ? '0 :
                 (index_q == BeatIdxW'(StackBeats) ? index_q : index_q + 1'b1);

  always_comb begin
    kept = (LaneW + 1)'(StrbW);
    if (tvalid_i && tlast_i) begin
      kept = '0;
      for (int unsigned i = 0; i < StrbW; i++) kept = kept + (LaneW + 1)'(tkeep_i[i]);
    end
    beat_be = '0;
    if (tvalid_i && index < BeatIdxW'(StackBeats)) begin
      for (int unsigned i = 0; i < StrbW; i++) begin
        beat_be[DataW - 8*(i+1) +: 8] = tdata_i[8*i +: 8];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (tvalid_i) begin
      beat_q  <= tdata_i;
      last_q  <= tlast_i;
      bad_q   <= tlast_i && tuser_i;
      bytes_q <= bytes[14] ? '1 : bytes[13:0];
      pos_q   <= pos;
      index_q <= index;
      if (!begun_q) begin
        crc_q       <= port_i.crc != CrcOrderNone;
        msb_first_q <= port_i.crc == CrcOrderMsbFirst;
      end
      for (int unsigned i = 0; i < StackBeats; i++) begin
        if (index == BeatIdxW'(i)) stack_q[DataW*(StackBeats-1-i) +: DataW] <= beat_be;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      begun_q <= 1'b0;
    end else begin
      valid_q <= tvalid_i;
      if (tvalid_i) begun_q <= !tlast_i;
    end
  end

  // ---------------------------------------------------- stage 1: headers
  logic        done, carries, quiet, judged;
  logic [6:0]  source, l4, pay_start;
  logic [16:0] ip_end;
  logic [13:0] payload;
  logic [NumStat-1:0] reason;  // By `statistic`.
  rx_packet_t  pkt;
  assign done = valid_q && last_q;

  heddle_rx_headers u_headers (
    .port_i      (port_i),
    .trimmed_dscp_i(trimmed_dscp_i),
    .crc_i       (crc_q),
    .stack_i     (stack_q[StackBeats*DataW-1 -: StackW]),
    .done_i      (done),
    .bad_i       (bad_q),
    .bytes_i     (bytes_q),
    .source_o    (source),
    .l4_o        (l4),
    .carries_o   (carries),
    .pay_start_o (pay_start),
    .ip_end_o    (ip_end),
    .payload_o   (payload),
    .reason_o    (reason),
    .quiet_o     (quiet),
    .judged_o    (judged),
    .pkt_o       (pkt)
  );

  // --------------------------------------------------- stage 1: payload
  // Payload goes to the store before the frame is known to be good.
  logic        pay_begin, feed, feed_last, feed_tail;
  logic        feeding_q;
  logic [13:0] feed_left_q, feed_left;   // Bytes from the start of this beat on.
  logic        tail_q, tail;
  logic [LaneW-1:0] lane, end_lane;
  assign lane      = pay_start[LaneW-1:0];
  assign pay_begin = valid_q && pos_q[13:LaneW] == (14-LaneW)'(pay_start[6:LaneW]) &&
                     carries;
  assign feed_left = feeding_q ? feed_left_q : payload + 14'(lane);
  assign feed      = pay_begin || (valid_q && feeding_q);
  assign feed_last = feed_left <= 14'(StrbW) || last_q;
  assign end_lane  = lane + payload[LaneW-1:0] - 1'b1;
  assign tail      = feeding_q ? tail_q : end_lane >= lane;
  assign feed_tail = tail && feed_left <= 14'(StrbW);

  logic             out_valid, unused_out_last, unused_out_user, unused_feed_ready;
  logic [DataW-1:0] out_data;
  heddle_align #(.DataW(DataW), .UserW(1)) u_align (
    .clk_i,
    .rst_ni,
    .in_valid_i  (feed),
    .in_ready_o  (unused_feed_ready),
    .in_data_i   (beat_q),
    .in_first_i  (pay_begin),
    .in_last_i   (feed_last),
    .in_shift_i  (lane),
    .in_tail_i   (feed_tail),
    .in_user_i   (1'b0),
    .out_valid_o (out_valid),
    .out_ready_i (1'b1),
    .out_data_o  (out_data),
    .out_last_o  (unused_out_last),
    .out_user_o  (unused_out_user)
  );

  always_ff @(posedge clk_i) begin
    if (feed) begin
      feed_left_q <= feed_left - 14'(StrbW);
      tail_q      <= tail;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)   feeding_q <= 1'b0;
    else if (feed) feeding_q <= !feed_last;
  end

  // ----------------------------------------------------- stages 2 and 3: CRC
  logic               crc_ok;   // Valid in stage 3, with last3_q.
  heddle_rx_check #(.DataW(DataW)) u_check (
    .clk_i,
    .rst_ni,
    .valid_i     (valid_q),
    .last_i      (last_q),
    .beat_i      (beat_q),
    .pos_i       (pos_q),
    .source_i    (source),
    .l4_i        (l4),
    .ip_end_i    (ip_end),
    .native_i    (port_i.ip_protocol != '0),
    .crc_i       (crc_q),
    .msb_first_i (msb_first_q),
    .crc_ok_o    (crc_ok)
  );

  logic               valid2_q, last2_q, valid3_q, last3_q, done4_q;
  rx_packet_t         pkt2_q, pkt3_q, pkt4_q;
  logic [NumStat-1:0] reason2_q, reason3_q, reason4_q;
  logic [13:0]        bytes2_q, bytes3_q, bytes4_q;
  logic               enable2_q, enable3_q, enable4_q;
  logic               quiet2_q, quiet3_q, quiet4_q;
  logic               need_crc2_q, need_crc3_q;
  logic               early2, early3_q, early4_q;  // The packet of this stage is offered, or was taken, ahead of the verdict.

  always_ff @(posedge clk_i) begin
    if (done) begin
      pkt2_q      <= pkt;
      reason2_q   <= reason;
      bytes2_q    <= bytes_q;
      need_crc2_q <= judged && crc_q;
      quiet2_q    <= quiet;
      enable2_q   <= port_i.enable[0];
    end
    if (valid2_q && last2_q) begin
      pkt3_q      <= pkt2_q;
      reason3_q   <= reason2_q;
      bytes3_q    <= bytes2_q;
      need_crc3_q <= need_crc2_q;
      quiet3_q    <= quiet2_q;
      enable3_q   <= enable2_q;
    end
    if (valid3_q && last3_q) begin
      pkt4_q    <= pkt3_q;
      reason4_q <= reason3_q | (NumStat'(need_crc3_q && !crc_ok) << StatisticDropCrc);
      bytes4_q  <= bytes3_q;
      quiet4_q  <= quiet3_q;
      enable4_q <= enable3_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid2_q <= 1'b0;
      last2_q  <= 1'b0;
      valid3_q <= 1'b0;
      last3_q  <= 1'b0;
      done4_q  <= 1'b0;
      early3_q <= 1'b0;
      early4_q <= 1'b0;
    end else begin
      valid2_q <= valid_q;
      last2_q  <= last_q;
      valid3_q <= valid2_q;
      last3_q  <= last2_q;
      done4_q  <= valid3_q && last3_q;
      early3_q <= early2 && pkt_ready_i;
      early4_q <= early3_q;
    end
  end

  // ---------------------------------------------------- stage 4: verdict
  // The last beat of the frame's payload was written a cycle ago at the latest,
  // and the first of the next frame's comes in this cycle at the earliest.
  logic        full, lost_q, good, queue_ready;
  logic [NumStat-1:0] found, drops;
  assign found = reason4_q | (NumStat'(lost_q) << StatisticDropOverflow);
  assign drops = found == '0 ? NumStat'(!queue_ready && !quiet4_q && !early4_q) << StatisticDropOverflow : found;
  assign good  = done4_q && enable4_q && drops == '0 && !quiet4_q;
  assign pkt_squash_o = early4_q && (reason4_q[StatisticDropCrc] || lost_q);

  logic store_empty;
  heddle_store #(.Width(DataW), .Depth(StoreBeats)) u_store (
    .clk_i,
    .rst_ni,
    .write_i    (out_valid),
    .data_i     (out_data),
    .commit_i   (good),
    .rollback_i (done4_q && !good),
    .full_o     (full),
    .valid_o    (pay_valid_o),
    .ready_i    (pay_ready_i),
    .data_o     (pay_data_o),
    .empty_o    (store_empty)
  );

  logic       queue_valid;
  rx_packet_t queued;
  logic [$clog2(QueueLen):0] unused_queue_count;
  heddle_fifo #(.Width($bits(rx_packet_t)), .Depth(QueueLen)) u_queue (
    .clk_i,
    .rst_ni,
    .valid_i (good && !early4_q),
    .ready_o (queue_ready),
    .data_i  (pkt4_q),
    .valid_o (queue_valid),
    .ready_i (pkt_ready_i),
    .data_o  (queued),
    .count_o (unused_queue_count)
  );
  assign early2 = valid2_q && last2_q && enable2_q && !quiet2_q && reason2_q == '0 && !queue_valid &&
                  !(valid3_q && last3_q && !early3_q) && !(done4_q && !early4_q);
  assign pkt_valid_o = queue_valid || early2;
  assign pkt_o       = queue_valid ? queued : pkt2_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) lost_q <= 1'b0;
    else         lost_q <= (lost_q && !done4_q) || (out_valid && full);
  end

  always_comb begin
    stat_o = '0;
    if (done4_q) begin
      if (enable4_q) stat_o = drops & (~drops + NumStat'(1));  // The lowest bit.
      stat_o[StatisticRxFrames] = 1'b1;
    end
  end
  assign rx_bytes_o = done4_q ? bytes4_q : '0;

  assign idle_o = !begun_q && !valid_q && !valid2_q && !valid3_q && !done4_q &&
                  !pkt_valid_o && store_empty;

  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : gen_bad_width
    $error("DataW must be 64, 128, 256 or 512");
  end

  `HEDDLE_ASSERT(UnhurriedAligner_A, !feed || unused_feed_ready)
  `HEDDLE_ASSERT(EarlyIsSquashedOrGood_A, early4_q |-> done4_q && pkt_squash_o == !good)
  `HEDDLE_ASSERT(VerifiedOneReason_A, $onehot0(stat_o[63:18]))
endmodule
