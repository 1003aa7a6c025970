// SPDX-License-Identifier: Apache-2.0
// Takes the header stack of a received frame apart and judges it. Combinational.
//
// The stack is Ethernet, at most one 802.1Q tag, IPv4 or IPv6, UDP or the entropy header of native IP
// (port_cfg.ip_protocol), PDS, SES. Bytes of
// `stack_i` that have not arrived yet are of an older frame: an output is valid once the
// bytes that it depends on are there, `reason_o`, `quiet_o`, `judged_o` and `pkt_o` with
// `done_i`, and are zero without.
// The first reason in `statistic` counts, so those behind drop_truncated may look at bytes
// that are not there; a frame of another VLAN has no reason behind drop_truncated but that.
// A packet is trimmed by its DSCP alone, never by a length: then neither its UDP length nor what
// is behind the PDS header of a request counts, and other packets have the reason drop_trimmed.

module heddle_rx_headers
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  // Longest stack: a request with a standard SES header behind a tag and IPv6.
  localparam int unsigned StackBytes =
      EthernetBytes + VlanBytes + Ipv6Bytes + UdpBytes + PdsRequestBytes + SesStdBytes,
  localparam int unsigned StackW = 8 * StackBytes
) (
  input  port_cfg_t          port_i,
  input  logic [1:0][5:0]    trimmed_dscp_i,  // By the last hop, on the path; 0: none.
  input  logic               crc_i,       // The frame carries the end-to-end CRC.
  input  logic [StackW-1:0]  stack_i,     // First byte in the top bits.
  input  logic               done_i,      // The whole frame is there.
  input  logic               bad_i,       // MAC error.
  input  logic [13:0]        bytes_i,     // Length of the frame.

  output logic [6:0]         source_o,    // Byte of the frame where the IP source address starts.
  output logic [6:0]         l4_o,        // And what follows the IP header.
  output logic               carries_o,   // Payload of a legal MTU starts at pay_start_o.
  output logic [6:0]         pay_start_o,
  output logic [16:0]        ip_end_o,    // Behind the IP datagram, by its length.
  output logic [13:0]        payload_o,   // With carries_o: its bytes; meaningful unless the frame is truncated.

  output logic [NumStat-1:0] reason_o,    // By `statistic`; without CRC and overflow.
  output logic               quiet_o,     // ARP or neighbour discovery: the slow path's.
  output logic               judged_o,    // A wrong CRC is a reason.
  output rx_packet_t         pkt_o
);
  localparam logic [15:0] TypeIpv4 = 16'h0800;
  localparam logic [15:0] TypeArp  = 16'h0806;
  localparam logic [15:0] TypeVlan = 16'h8100;
  localparam logic [15:0] TypeIpv6 = 16'h86dd;
  localparam logic [7:0]  NextUdp    = 8'd17;
  localparam logic [7:0]  NextIcmpv6 = 8'd58;
  localparam logic [7:0]  NeighborSolicitation  = 8'd135;
  localparam logic [7:0]  NeighborAdvertisement = 8'd136;

  localparam int unsigned L4W = 8 * UdpBytes;
  localparam int unsigned L3W = 8 * Ipv6Bytes + L4W;
  localparam int unsigned V4W = 8 * (Ipv6Bytes - Ipv4Bytes);  // An IPv4 header is so much shorter.
  localparam int unsigned UpperW = 8 * (PdsRequestBytes + SesStdBytes);

  // ------------------------------------------------------------ layers 2, 3
  ethernet_t   eth;
  vlan_t       tag;
  ipv4_t       v4;
  ipv6_t       v6;
  logic        has_tag, is_v4, is_v6;
  logic [15:0] ethertype;
  logic           native;
  logic [7:0]     protocol;  // Of UET.
  logic [L3W-1:0] l3;
  logic [L4W-1:0] l4;
  assign native    = port_i.ip_protocol != '0;
  assign protocol  = native ? port_i.ip_protocol : NextUdp;
  assign eth       = stack_i[StackW-1 -: 8*EthernetBytes];
  assign tag       = stack_i[StackW-1 - 8*(EthernetBytes-2) -: 8*VlanBytes];
  assign has_tag    = eth.ethertype == TypeVlan;
  assign ethertype = has_tag ? stack_i[StackW-1 - 8*(EthernetBytes+VlanBytes-2) -: 16] :
                     eth.ethertype;
  assign is_v4     = ethertype == TypeIpv4;
  assign is_v6     = ethertype == TypeIpv6;
  assign l3        = has_tag ? stack_i[StackW-1 - 8*(EthernetBytes+VlanBytes) -: L3W] :
                     stack_i[StackW-1 - 8*EthernetBytes -: L3W];
  assign v4        = l3[L3W-1 -: 8*Ipv4Bytes];
  assign v6        = l3[L3W-1 -: 8*Ipv6Bytes];
  assign l4        = is_v6 ? l3[L4W-1:0] : l3[L3W-1 - 8*Ipv4Bytes -: L4W];

  logic [6:0]  l3_at;
  assign l3_at    = 7'(EthernetBytes) + (has_tag ? 7'(VlanBytes) : '0);
  assign l4_o     = l3_at + (is_v6 ? 7'(Ipv6Bytes) : 7'(Ipv4Bytes));
  assign source_o = l3_at + (is_v6 ? 7'd8 : 7'd12);

  logic v4_bad, v6_bad, is_ip, arp, neighbor, other_vlan;
  assign v4_bad     = v4.version != 4'd4 || v4.ihl != 4'd5 || v4.flags[0] ||
                      v4.fragment_offset != '0 || v4.protocol != protocol;
  assign v6_bad     = v6.version != 4'd6 || v6.next_header != protocol;
  assign is_ip       = (is_v4 && !v4_bad) || (is_v6 && !v6_bad);
  assign arp        = ethertype == TypeArp;
  assign neighbor   = is_v6 && v6.version == 4'd6 && v6.next_header == NextIcmpv6 &&
                      v6.payload_length != '0 &&
                      (l4[L4W-1 -: 8] == NeighborSolicitation ||
                       l4[L4W-1 -: 8] == NeighborAdvertisement);
  assign other_vlan = (has_tag ? tag.vid : '0) != port_i.vlan[11:0];

  // UET 3.4: what a switch keeps of the PDS header.
  localparam int unsigned TrimmedBytes = 16;
  trim_e      trim;
  logic       trimmed;
  logic [5:0] dscp;
  assign dscp    = is_v6 ? v6.dscp : v4.dscp;
  assign trimmed = is_ip && trim != TrimNone;
  always_comb begin
    trim = TrimNone;
    if (dscp != '0 && dscp == trimmed_dscp_i[1]) trim = TrimLasthop;
    if (dscp != '0 && dscp == trimmed_dscp_i[0]) trim = TrimPath;
  end

  logic [6:0]  shim;    // UDP or entropy header.
  assign shim     = native ? 7'(EntropyBytes) : 7'(UdpBytes);
  assign ip_end_o = is_v6 ? 17'(v6.payload_length) + 17'(l4_o) : 17'(v4.total_length) + 17'(l3_at);

  // ------------------------------------------------------------ layers 4, 5
  // The entropy header is as much shorter than UDP's as a tag is long: PDS and SES have three places
  // behind either IP header.
  logic [UpperW-1:0] upper;
  always_comb begin
    unique case ({has_tag, native})
      2'b01:   upper = is_v6 ? stack_i[UpperW-1 + 64 -: UpperW] : stack_i[UpperW-1 + 64 + V4W -: UpperW];
      2'b10:   upper = is_v6 ? stack_i[UpperW-1 -: UpperW] : stack_i[UpperW-1 + V4W -: UpperW];
      default: upper = is_v6 ? stack_i[UpperW-1 + 32 -: UpperW] : stack_i[UpperW-1 + 32 + V4W -: UpperW];
    endcase
  end

  udp_t              udp;
  pds_request_syn0_t pds;
  pds_nack_t         pds_long;    // NACK; the layout of a CP but for the names.
  pds_ack_p0_t       pds_ack;
  pds_ack_cc_cc_type0_t pds_cc;   // Behind an ACK's header.
  ses_std_som0_t     ses0;
  ses_std_som1_t     ses1;
  ses_response_t     ses_rsp;
  ses_response_data_t ses_data;
  assign udp      = l4[L4W-1 -: 8*UdpBytes];
  assign pds      = upper[UpperW-1 -: 8*PdsRequestBytes];
  assign pds_ack  = upper[UpperW-1 -: 8*PdsAckBytes];
  assign pds_long = upper[UpperW-1 -: 8*PdsNackBytes];
  assign ses0     = upper[UpperW-1 - 8*PdsRequestBytes -: 8*SesStdBytes];
  assign ses1     = upper[UpperW-1 - 8*PdsRequestBytes -: 8*SesStdBytes];
  assign pds_cc   = upper[UpperW-1 - 8*PdsAckBytes -: 8*PdsAckCcBytes];
  // An ACK's header is as long as a request's.
  assign ses_rsp  = is_pds_cc ?
      upper[UpperW-1 - 8*(PdsAckBytes+PdsAckCcBytes) -: 8*SesResponseBytes] :
      upper[UpperW-1 - 8*PdsAckBytes -: 8*SesResponseBytes];
  assign ses_data = is_pds_cc ?
      upper[UpperW-1 - 8*(PdsAckBytes+PdsAckCcBytes) -: 8*SesResponseDataBytes] :
      upper[UpperW-1 - 8*PdsAckBytes -: 8*SesResponseDataBytes];

  // A request of the return direction carries data of a READ, or says why there are none; an ACK may
  // carry those of a small one.
  logic is_pds_req, is_pds_ack, is_pds_cc, is_req, is_read, is_return, is_ack, is_nack, is_cp, known;
  logic has_response, has_data;
  assign is_pds_req   = pds.type_ == PdsTypeRodReq || pds.type_ == PdsTypeRudReq;
  assign is_pds_cc    = pds.type_ == PdsTypeAckCc;
  assign is_pds_ack   = pds.type_ == PdsTypeAck || is_pds_cc;
  assign has_response = !trimmed && (is_pds_req || is_pds_ack) && pds.next_hdr == NextHdrResponse;
  assign has_data     = !trimmed && (is_pds_req || is_pds_ack) && pds.next_hdr == NextHdrResponseData;
  assign is_req    = !trimmed && is_pds_req && pds.next_hdr == NextHdrRequestStd;
  assign is_read   = is_req && ses0.opcode == SesOpcodeRead;
  assign is_return = is_pds_req && (has_response || has_data);
  assign is_ack    = is_pds_ack && (pds.next_hdr == NextHdrNone || has_response || has_data);
  assign is_nack = pds.type_ == PdsTypeNack && pds.next_hdr == NextHdrNone && !pds_long.nt;
  assign is_cp   = pds.type_ == PdsTypeCp;
  assign known   = is_req || is_return || is_ack || is_nack || is_cp;

  // What `length` counts besides payload: its own header, PDS header, SES header and trailer.
  logic [6:0]  trailer, fixed;
  logic [15:0] length, payload;
  assign trailer = crc_i ? 7'(CrcBytes) : '0;
  always_comb begin
    fixed = shim + trailer + (native && !is_v6 ? 7'(Ipv4Bytes) : '0);
    if (is_req) fixed = fixed + 7'(PdsRequestBytes) + 7'(SesStdBytes);
    else if (is_ack || is_return) begin
      fixed = fixed + 7'(PdsAckBytes);
      if (is_pds_cc)    fixed = fixed + 7'(PdsAckCcBytes);
      if (has_response) fixed = fixed + 7'(SesResponseBytes);
      if (has_data)     fixed = fixed + 7'(SesResponseDataBytes);
    end else if (is_cp && pds.next_hdr == CpTypeNegotiation) begin
      fixed = fixed + 7'(PdsCpBytes + 4);  // pds_negotiation, of which pds_cp has four bytes.
    end else if (is_nack || is_cp) begin
      fixed = fixed + 7'(PdsNackBytes);
    end else begin
      fixed = fixed + 7'(PdsPrologueBytes);
    end
  end
  assign length      = !native ? udp.length : is_v6 ? v6.payload_length : v4.total_length;
  assign payload     = length - 16'(fixed);
  assign payload_o   = payload[13:0];
  // Payload beyond any MTU is not kept: its request contradicts the port's, and is answered without it.
  assign carries_o   = is_ip && (is_req || has_data) && length > 16'(fixed) && payload <= 16'(MaxPayload);
  assign pay_start_o = l4_o + shim + (has_data ? 7'(PdsAckBytes + SesResponseDataBytes)
                                               : 7'(PdsRequestBytes + SesStdBytes))
                            + (is_pds_cc ? 7'(PdsAckCcBytes) : 7'd0);

  // ----------------------------------------------------------------- verdict
  logic [15:0] ip_sum;
  logic [16:0] whole;   // Bytes of the frame that the lengths may use.
  logic        eth_short, ip_short, ses_bad, ses_wrong;
  assign whole     = {3'b0, bytes_i};
  assign eth_short = whole < 17'(EthernetBytes) ||
                     (has_tag && whole < 17'(EthernetBytes + VlanBytes));
  assign ip_short  = (is_v4 || is_v6) &&
                     (whole < 17'(l4_o) || ip_end_o > whole ||
                      (trimmed ? ip_end_o < 17'(l4_o) + 17'(shim) + 17'(TrimmedBytes) :
                       is_ip && ((!native && ip_end_o != 17'(udp.length) + 17'(l4_o)) ||
                                 length < 16'(fixed))));

  heddle_beat_sum #(.DataW(8 * Ipv4Bytes)) u_ip_sum (
    .en_i   (done_i && is_v4),
    .data_i (v4),
    .sum_o  (ip_sum)
  );

  logic [15:0] som_bytes;  // Payload of a message's first packet, or what it asks for.
  logic [15:0] asked;      // By a packet of a READ.
  logic [32:0] reach;      // End of the payload in its message.
  logic [32:0] end_of_data;
  assign som_bytes = ses1.request_length < 32'(port_i.payload_mtu) ?
                     ses1.request_length[15:0] : port_i.payload_mtu;
  assign asked       = ses0.som ? som_bytes : 16'(ses0.payload_length);
  assign reach       = {1'b0, ses0.message_offset} + (is_read ? 33'(asked) : 33'(payload));
  logic        to_end;     // A READ's packet asks for the last bytes.
  assign to_end      = ses0.som ? 32'(asked) == ses0.request_length : reach == {1'b0, ses0.request_length};
  assign end_of_data = {1'b0, ses_data.message_offset} + 33'(payload);

  // A request of another version, or that contradicts itself, has an answer, which the target gives.
  always_comb begin
    ses_bad   = 1'b0;
    ses_wrong = 1'b0;
    if (is_read) begin
      ses_wrong = payload != '0 || asked > port_i.payload_mtu ||
                  (!ses0.som && (reach > {1'b0, ses0.request_length} || (asked == '0 && !ses0.ie)));
    end else if (is_req) begin
      ses_wrong = payload > port_i.payload_mtu;
      if (ses0.som) begin
        ses_wrong = ses_wrong || payload != (ses0.ie ? '0 : som_bytes);
      end else begin
        ses_wrong = ses_wrong || reach > {1'b0, ses0.request_length} ||
                    (payload != 16'(ses0.payload_length) && !(ses0.ie && payload == '0));
      end
    end else if (has_data) begin
      ses_bad = ses_data.ver != '0 || payload > port_i.payload_mtu ||
                payload != 16'(ses_data.payload_length) ||
                end_of_data > {1'b0, ses_data.modified_length};
    end else begin
      ses_bad = payload != '0 || (has_response && ses_rsp.ver != '0);
    end
  end

  logic unused_udp_checksum;
  assign unused_udp_checksum = ^udp.checksum;

  always_comb begin
    reason_o = '0;
    quiet_o  = 1'b0;
    judged_o = 1'b0;
    if (done_i) begin
      reason_o[StatisticDropMacError]  = bad_i;
      reason_o[StatisticDropTruncated] = eth_short || (ip_short && !other_vlan);
      if (other_vlan) begin
        reason_o[StatisticDropVlan] = 1'b1;
      end else if (arp || neighbor) begin
        quiet_o = 1'b1;
      end else begin
        judged_o = is_ip && !trimmed;
        reason_o[StatisticDropEthertype]  = !is_v4 && !is_v6;
        reason_o[StatisticDropIpHeader]   = !is_ip;
        reason_o[StatisticDropIpChecksum] = is_v4 && ip_sum != '1;
        reason_o[StatisticDropIpAddress]  =
            is_v6 != port_i.ipv6[0] ||
            (is_v6 ? {v6.destination_hi, v6.destination_lo} !=
                     {port_i.local_fa_hi, port_i.local_fa_lo} :
                     v4.destination != port_i.local_fa_lo[31:0]);
        reason_o[StatisticDropUdpPort]    = !native && udp.destination_port != port_i.udp_port;
        reason_o[StatisticDropPdsType]    = !known && !trimmed;
        reason_o[StatisticDropSes]        = ses_bad && !trimmed;
        reason_o[StatisticDropTrimmed]    = trimmed && !is_pds_req;
      end
    end
  end

  // ------------------------------------------------------------------ packet
  always_comb begin
    pkt_o = '0;
    if (done_i) begin
      pkt_o.ipv6        = is_v6;
      pkt_o.source_fa   = is_v6 ? {v6.source_hi, v6.source_lo} : {96'b0, v4.source};
      pkt_o.source_mac  = eth.source;
      pkt_o.source_port = udp.source_port;  // Native IP: the entropy, at the same place.
      pkt_o.dscp        = dscp;
      pkt_o.ce          = (is_v6 ? v6.ecn : v4.ecn) == 2'b11;
      pkt_o.pds_type    = pds.type_;
      pkt_o.next_hdr    = pds.next_hdr;
      pkt_o.retx        = pds.retx;
      pkt_o.psn         = pds.psn;
      pkt_o.spdcid      = pds.spdcid;
      pkt_o.dpdcid      = pds.dpdcid;
      pkt_o.trim        = trimmed ? trim : TrimNone;
      if (is_pds_req || is_cp) begin
        pkt_o.ar  = pds.ar;
        pkt_o.syn = pds.syn;
        if (pds.syn) begin
          pkt_o.dpdcid     = '0;
          pkt_o.psn_offset = pds.dpdcid[11:0];
        end
      end
      if (is_pds_req || is_ack || is_cp) pkt_o.offset = pds.clear_psn_offset;
      if (is_nack || is_cp) pkt_o.pds_payload = pds_long.payload;
      if (is_nack) pkt_o.nack_code = pds_long.nack_code;
      if (is_ack) begin
        pkt_o.m     = pds_ack.m;
        pkt_o.probe = pds_ack.p;
        pkt_o.req   = pds_ack.req;
      end
      if (is_ack && is_pds_cc) begin
        pkt_o.sack_offset = pds_cc.sack_psn_offset;
        pkt_o.match_bits  = pds_cc.sack_bitmap;
        pkt_o.nack_code   = pds_cc.mpr;
        if (pds_cc.cc_type == '0) begin
          pkt_o.header_data = {pds_cc.service_time, pds_cc.rc, pds_cc.rcv_cwnd_pend,
                               pds_cc.rcvd_bytes, pds_cc.nscc_ooo_count};
        end
      end
      if (has_response) begin
        pkt_o.response    = ses_rsp.opcode;
        pkt_o.return_code = ses_rsp.return_code;
        pkt_o.message_id  = ses_rsp.message_id;
        pkt_o.job_id      = ses_rsp.job_id;
      end
      if (has_data) begin
        pkt_o.response       = ses_data.opcode;
        pkt_o.return_code    = ses_data.return_code;
        pkt_o.message_id     = ses_data.read_request_message_id;
        pkt_o.job_id         = ses_data.job_id;
        pkt_o.message_offset = ses_data.message_offset;
        pkt_o.request_length = ses_data.modified_length;
        pkt_o.payload_bytes  = payload[13:0];
      end
      if (is_req) begin
        pkt_o.opcode         = ses0.opcode;
        pkt_o.ses_ver        = ses0.ver;
        pkt_o.dc             = ses0.dc;
        pkt_o.ie             = ses0.ie;
        pkt_o.rel            = ses0.rel;
        pkt_o.hd             = ses0.hd;
        // The last packet of a READ follows from its length: a peer may leave eom out (UET 4.14).
        pkt_o.eom            = ses0.eom || (is_read && !ses0.ie && to_end);
        pkt_o.som            = ses0.som;
        pkt_o.message_id     = ses0.message_id;
        pkt_o.job_id         = ses0.job_id;
        pkt_o.pid_on_fep     = ses0.pid_on_fep;
        pkt_o.resource_index = ses0.resource_index;
        pkt_o.buffer_offset  = ses0.buffer_offset;
        pkt_o.initiator      = ses0.initiator;
        pkt_o.match_bits     = ses0.match_bits;
        pkt_o.request_length = ses0.request_length;
        if (ses0.som) pkt_o.header_data    = ses1.header_data;
        else          pkt_o.message_offset = ses0.message_offset;
        pkt_o.payload_bytes = carries_o ? payload[13:0] : '0;
        if (is_read) pkt_o.read_bytes = asked[13:0];
        pkt_o.contradicts = ses_wrong;
        pkt_o.other_gen   = ses0.ri_generation != '0;
      end
    end
  end
endmodule
