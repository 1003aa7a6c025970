// SPDX-License-Identifier: Apache-2.0
// Turns frames from the MAC into parsed headers and aligned payload.
//
// Verified: a packet is offered only after its whole frame arrived and Ethernet
//           type, IPv4 header and checksum, address, UDP port, length and checksum
//           (0 accepted) and the lengths of PDS and SES headers were found right;
//           every other frame is dropped and counted by its first reason.
// Unhurried: no back-pressure on the MAC; a frame that finds no room is dropped whole
//           and counted (drop_overflow).
// Aligned:  payload bytes of a packet start in lane 0 of a new beat;
//           ceil(payload_bytes/StrbW) beats per packet, in packet order.
// The L3 header's length is a variable of the parser (20 in this version: IPv6 and
// VLAN are counted drops), and so is the trailer (port_cfg.crc).
// PDS types and SES headers: rod_req/rud_req with request_std; ack with response or
// none; nack; cp. Others are drop_pds_type. SES ver != 0, a payload that contradicts
// payload_length/request_length, or length fields beyond the MTU are drop_ses.

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

  input  logic                tvalid_i,
  input  logic [DataW-1:0]    tdata_i,
  input  logic [StrbW-1:0]    tkeep_i,
  input  logic                tlast_i,
  input  logic                tuser_i,     // With tlast: bad frame.

  output logic                pkt_valid_o,
  input  logic                pkt_ready_i,
  output rx_packet_t          pkt_o,
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
  // Longest header stack: a request with a standard SES header behind IPv4.
  localparam int unsigned StackBytes =
      EthernetBytes + Ipv4Bytes + UdpBytes + PdsRequestBytes + SesStdBytes;
  localparam int unsigned StackBeats = (StackBytes + StrbW - 1) / StrbW;
  localparam int unsigned StackW     = 8 * StackBytes;
  localparam int unsigned L4W        = 8 * (UdpBytes + PdsRequestBytes + SesStdBytes);
  localparam int unsigned BeatIdxW   = $clog2(StackBeats + 1);
  localparam logic [13:0] LastPos    = ~14'(StrbW - 1);

  // Where the L4 header starts.
  logic [6:0] l4;
  assign l4 = 7'(EthernetBytes) + 7'(Ipv4Bytes);

  // --------------------------------------------------- stage 1: collect
  // `stack_q` holds the header bytes up to the beat in `beat_q`, first byte in
  // the top bits; later bytes are of an older frame.
  logic                  valid_q, last_q, bad_q, crc_q;
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
      if (!begun_q) crc_q <= port_i.crc[0];
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

  // ------------------------------------------------------------ headers
  ethernet_t         eth;
  ipv4_t             ip;
  udp_t              udp;
  pds_request_syn0_t pds;
  pds_nack_t         pds_long;    // NACK; the layout of a CP but for the names.
  pds_ack_p0_t       pds_ack;
  ses_std_som0_t     ses0;
  ses_std_som1_t     ses1;
  ses_response_t     ses_rsp;

  logic [StackW-1:0] stack;
  logic [L4W-1:0]    behind_l3;
  assign stack     = stack_q[StackBeats*DataW-1 -: StackW];
  assign behind_l3 = stack[10'(StackW - 1) - {l4, 3'b000} -: L4W];
  assign eth       = stack[StackW-1 -: 8*EthernetBytes];
  assign ip        = stack[StackW-1 - 8*EthernetBytes -: 8*Ipv4Bytes];
  assign udp       = behind_l3[L4W-1 -: 8*UdpBytes];
  assign pds       = behind_l3[L4W-1 - 8*UdpBytes -: 8*PdsRequestBytes];
  assign pds_ack   = behind_l3[L4W-1 - 8*UdpBytes -: 8*PdsAckBytes];
  assign pds_long  = behind_l3[L4W-1 - 8*UdpBytes -: 8*PdsNackBytes];
  assign ses0      = behind_l3[L4W-1 - 8*(UdpBytes+PdsRequestBytes) -: 8*SesStdBytes];
  assign ses1      = behind_l3[L4W-1 - 8*(UdpBytes+PdsRequestBytes) -: 8*SesStdBytes];
  assign ses_rsp   = behind_l3[L4W-1 - 8*(UdpBytes+PdsAckBytes) -: 8*SesResponseBytes];

  logic is_ip, ip_bad, is_req, is_ack, is_nack, is_cp, known;
  assign is_ip   = eth.ethertype == 16'h0800;
  assign ip_bad  = ip.version != 4'd4 || ip.ihl != 4'd5 || ip.flags[0] ||
                   ip.fragment_offset != '0 || ip.protocol != 8'd17;
  assign is_req  = (pds.type_ == PdsTypeRodReq || pds.type_ == PdsTypeRudReq) &&
                   pds.next_hdr == NextHdrRequestStd;
  assign is_ack  = pds.type_ == PdsTypeAck &&
                   (pds.next_hdr == NextHdrNone || pds.next_hdr == NextHdrResponse);
  assign is_nack = pds.type_ == PdsTypeNack && pds.next_hdr == NextHdrNone && !pds_long.nt;
  assign is_cp   = pds.type_ == PdsTypeCp;
  assign known   = is_req || is_ack || is_nack || is_cp;

  // UDP header, PDS header, SES header and trailer; without payload.
  logic [6:0]  fixed;
  logic [15:0] payload;   // Payload bytes; meaningful unless the frame is truncated.
  always_comb begin
    fixed = 7'(UdpBytes) + (crc_q ? 7'(CrcBytes) : '0);
    if (is_req) fixed = fixed + 7'(PdsRequestBytes) + 7'(SesStdBytes);
    else if (is_ack) begin
      fixed = fixed + 7'(PdsAckBytes);
      if (pds.next_hdr == NextHdrResponse) fixed = fixed + 7'(SesResponseBytes);
    end else if (is_nack || is_cp) begin
      fixed = fixed + 7'(PdsNackBytes);
    end
  end
  assign payload = udp.length - 16'(fixed);

  // ---------------------------------------------------- stage 1: checks
  // The first reason in `statistic` counts, so those behind drop_truncated may
  // look at bytes that are not there.
  logic        done;
  logic [NumStat-1:0] reason;  // By `statistic`.
  logic [15:0] ip_sum;
  logic [15:0] whole;   // Bytes of the frame that the lengths may use.
  rx_packet_t  pkt;
  logic        ses_bad;
  assign done  = valid_q && last_q;
  assign whole = {2'b0, bytes_q};

  heddle_beat_sum #(.DataW(8 * Ipv4Bytes)) u_ip_sum (
    .en_i   (done),
    .data_i (ip),
    .sum_o  (ip_sum)
  );

  logic [15:0] som_bytes;  // Payload of a message's first packet.
  logic [32:0] reach;      // End of the payload in its message.
  assign som_bytes = ses1.request_length < 32'(port_i.payload_mtu) ?
                     ses1.request_length[15:0] : port_i.payload_mtu;
  assign reach     = {1'b0, ses0.message_offset} + 33'(payload);

  always_comb begin
    ses_bad = 1'b0;
    if (is_req) begin
      ses_bad = ses0.ver != '0 || payload > port_i.payload_mtu;
      if (ses0.som) begin
        ses_bad = ses_bad || payload != (ses0.ie ? '0 : som_bytes);
      end else begin
        ses_bad = ses_bad || reach > {1'b0, ses0.request_length} ||
                  (payload != 16'(ses0.payload_length) && !(ses0.ie && payload == '0));
      end
    end else begin
      ses_bad = payload != '0 ||
                (is_ack && pds.next_hdr == NextHdrResponse && ses_rsp.ver != '0);
    end
  end

  always_comb begin
    reason = '0;
    if (done) begin
      reason[StatisticDropMacError] = bad_q;
      reason[StatisticDropTruncated] =
          whole < 16'(EthernetBytes) ||
          (is_ip && (whole < 16'(EthernetBytes + Ipv4Bytes) ||
                     17'(ip.total_length) + 17'(EthernetBytes) > 17'(whole) ||
                     (!ip_bad && (17'(ip.total_length) !=
                                      17'(udp.length) + 17'(Ipv4Bytes) ||
                                  udp.length < 16'(UdpBytes + PdsPrologueBytes) ||
                                  (known && udp.length < 16'(fixed))))));
      reason[StatisticDropEthertype]  = !is_ip;
      reason[StatisticDropIpHeader]   = ip_bad;
      reason[StatisticDropIpChecksum] = ip_sum != '1;
      reason[StatisticDropIpAddress]  = ip.destination != port_i.local_fa_lo[31:0];
      reason[StatisticDropUdpPort]    = udp.destination_port != port_i.udp_port;
      reason[StatisticDropPdsType]    = !known;
      reason[StatisticDropSes]        = ses_bad;
    end
  end

  always_comb begin
    pkt = '0;
    if (done) begin
      pkt.source_fa   = {96'b0, ip.source};
      pkt.source_mac  = eth.source;
      pkt.source_port = udp.source_port;
      pkt.dscp        = ip.dscp;
      pkt.ce          = ip.ecn == 2'b11;
      pkt.pds_type    = pds.type_;
      pkt.next_hdr    = pds.next_hdr;
      pkt.retx        = pds.retx;
      pkt.psn         = pds.psn;
      pkt.spdcid      = pds.spdcid;
      pkt.dpdcid      = pds.dpdcid;
      if (is_req || is_cp) begin
        pkt.ar  = pds.ar;
        pkt.syn = pds.syn;
        if (pds.syn) begin
          pkt.dpdcid     = '0;
          pkt.psn_offset = pds.dpdcid[11:0];
        end
      end
      if (is_req || is_ack) pkt.offset = pds.clear_psn_offset;
      if (is_nack || is_cp) pkt.pds_payload = pds_long.payload;
      if (is_nack) pkt.nack_code = pds_long.nack_code;
      if (is_ack) begin
        pkt.probe = pds_ack.p;
        pkt.req   = pds_ack.req;
        if (pds.next_hdr == NextHdrResponse) begin
          pkt.response    = ses_rsp.opcode;
          pkt.return_code = ses_rsp.return_code;
          pkt.message_id  = ses_rsp.message_id;
          pkt.job_id      = ses_rsp.job_id;
        end
      end
      if (is_req) begin
        pkt.opcode         = ses0.opcode;
        pkt.ses_ver        = ses0.ver;
        pkt.dc             = ses0.dc;
        pkt.ie             = ses0.ie;
        pkt.rel            = ses0.rel;
        pkt.hd             = ses0.hd;
        pkt.eom            = ses0.eom;
        pkt.som            = ses0.som;
        pkt.message_id     = ses0.message_id;
        pkt.job_id         = ses0.job_id;
        pkt.pid_on_fep     = ses0.pid_on_fep;
        pkt.resource_index = ses0.resource_index;
        pkt.buffer_offset  = ses0.buffer_offset;
        pkt.initiator      = ses0.initiator;
        pkt.match_bits     = ses0.match_bits;
        pkt.request_length = ses0.request_length;
        if (ses0.som) pkt.header_data    = ses1.header_data;
        else          pkt.message_offset = ses0.message_offset;
        pkt.payload_bytes = payload[13:0];
      end
    end
  end

  // --------------------------------------------------- stage 1: payload
  // Payload goes to the store before the frame is known to be good.
  logic [6:0]  pay_start;   // Byte of the frame.
  logic        pay_begin, feed, feed_last, feed_tail;
  logic        feeding_q;
  logic [13:0] feed_left_q, feed_left;   // Bytes from the start of this beat on.
  logic        tail_q, tail;
  logic [LaneW-1:0] lane, end_lane;
  assign pay_start = l4 + 7'(UdpBytes + PdsRequestBytes + SesStdBytes);
  assign lane      = pay_start[LaneW-1:0];
  assign pay_begin = valid_q && pos_q[13:LaneW] == (14-LaneW)'(pay_start[6:LaneW]) &&
                     is_ip && !ip_bad && is_req && udp.length > 16'(fixed) &&
                     payload <= 16'd8192;
  assign feed_left = feeding_q ? feed_left_q : payload[13:0] + 14'(lane);
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

  // ------------------------------------------------- stages 2 and 3: sum
  // From the IP addresses to the end of the datagram; the rest of the pseudo
  // header is its protocol and length.
  localparam int unsigned SumStart = EthernetBytes + 12;
  localparam int unsigned LengthEnd = EthernetBytes + Ipv4Bytes + 6;  // UDP length's end.

  logic [16:0]      sum_end, sum_left;
  logic [DataW-1:0] masked;
  assign sum_end  = 17'(udp.length) + 17'(l4);
  assign sum_left = sum_end - {3'b0, pos_q};

  always_comb begin
    masked = beat_q;
    if (valid_q) begin
      if (pos_q < 14'(SumStart)) begin
        if (pos_q + 14'(StrbW) <= 14'(SumStart)) masked = '0;
        else masked = masked & ({DataW{1'b1}} << {14'(SumStart) - pos_q, 3'b000});
      end
      if (pos_q + 14'(StrbW) >= 14'(LengthEnd)) begin
        if (sum_end <= {3'b0, pos_q}) masked = '0;
        else if (sum_left < 17'(StrbW)) masked = masked & ~({DataW{1'b1}} << {sum_left, 3'b000});
      end
    end
  end

  logic             valid2_q, last2_q, valid3_q, last3_q, done4_q;
  logic [DataW-1:0] masked2_q;
  logic [15:0]      part, part3_q, total3_q;
  heddle_beat_sum #(.DataW(DataW)) u_sum (
    .en_i   (valid2_q),
    .data_i (masked2_q),
    .sum_o  (part)
  );

  rx_packet_t  pkt2_q, pkt3_q, pkt4_q;
  logic [NumStat-1:0] reason2_q, reason3_q, reason4_q;
  logic [13:0] bytes2_q, bytes3_q, bytes4_q;
  logic [15:0] length2_q, length3_q;      // UDP length.
  logic        unsummed2_q, unsummed3_q;  // UDP checksum is zero.
  logic        enable2_q, enable3_q, enable4_q;

  logic [17:0] total_wide, pseudo_wide;
  logic [16:0] total_fold, pseudo_fold;
  logic [15:0] total, checked;
  assign total_wide  = {2'b0, total3_q} + {2'b0, part3_q};
  assign total_fold  = {1'b0, total_wide[15:0]} + {15'b0, total_wide[17:16]};
  assign total       = total_fold[15:0] + {15'b0, total_fold[16]};
  assign pseudo_wide = {2'b0, total} + {2'b0, length3_q} + 18'd17;
  assign pseudo_fold = {1'b0, pseudo_wide[15:0]} + {15'b0, pseudo_wide[17:16]};
  assign checked     = pseudo_fold[15:0] + {15'b0, pseudo_fold[16]};

  always_ff @(posedge clk_i) begin
    if (valid_q)  masked2_q <= masked;
    if (valid2_q) part3_q   <= part;
    if (done) begin
      pkt2_q      <= pkt;
      reason2_q   <= reason;
      bytes2_q    <= bytes_q;
      length2_q   <= udp.length;
      unsummed2_q <= udp.checksum == '0;
      enable2_q   <= port_i.enable[0];
    end
    if (valid2_q && last2_q) begin
      pkt3_q      <= pkt2_q;
      reason3_q   <= reason2_q;
      bytes3_q    <= bytes2_q;
      length3_q   <= length2_q;
      unsummed3_q <= unsummed2_q;
      enable3_q   <= enable2_q;
    end
    if (valid3_q && last3_q) begin
      pkt4_q    <= pkt3_q;
      reason4_q <= reason3_q | (NumStat'(checked != '1 && !unsummed3_q) << StatisticDropUdpChecksum);
      bytes4_q  <= bytes3_q;
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
      total3_q <= '0;
    end else begin
      valid2_q <= valid_q;
      last2_q  <= last_q;
      valid3_q <= valid2_q;
      last3_q  <= last2_q;
      done4_q  <= valid3_q && last3_q;
      if (valid3_q) total3_q <= last3_q ? '0 : total;
    end
  end

  // ---------------------------------------------------- stage 4: verdict
  // The last beat of the frame's payload was written a cycle ago at the latest,
  // and the first of the next frame's comes in this cycle at the earliest.
  logic        full, lost_q, good, queue_ready;
  logic [NumStat-1:0] found, drops;
  assign found = reason4_q | (NumStat'(lost_q) << StatisticDropOverflow);
  assign drops = found == '0 ? NumStat'(!queue_ready) << StatisticDropOverflow : found;
  assign good  = done4_q && enable4_q && drops == '0;

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

  logic [$clog2(QueueLen):0] unused_queue_count;
  heddle_fifo #(.Width($bits(rx_packet_t)), .Depth(QueueLen)) u_queue (
    .clk_i,
    .rst_ni,
    .valid_i (good),
    .ready_o (queue_ready),
    .data_i  (pkt4_q),
    .valid_o (pkt_valid_o),
    .ready_i (pkt_ready_i),
    .data_o  (pkt_o),
    .count_o (unused_queue_count)
  );

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
  `HEDDLE_ASSERT(VerifiedOneReason_A, $onehot0(stat_o[63:18]))
endmodule
