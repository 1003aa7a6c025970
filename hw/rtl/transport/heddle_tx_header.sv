// SPDX-License-Identifier: Apache-2.0
// Builds the headers of one request, control packet, ACK or NACK, or the answer to a Negotiation; both checksums are left 0.
// In native IP (port_cfg.ip_protocol) the entropy header takes the place of UDP's.
//
// Combinational; constant while `valid_i` is low. The lengths in IP and UDP count the end-to-end
// CRC where the port has it on. A response goes to the port's VLAN.

`include "heddle_assert.svh"

module heddle_tx_header
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  port_cfg_t   port_i,
  input  logic        ect_i,       // Requests and data may be marked: ECT(0).

  input  logic        valid_i,
  input  logic        response_i,  // Build `rsp_i`, otherwise `req_i`.
  input  response_t   rsp_i,
  input  tx_request_t req_i,       // Its `ie` is final.
  input  logic [13:0] bytes_i,     // Payload the request carries, inline or behind the headers.

  output tx_stack_t   stack_o
);
  localparam int unsigned RequestBytes = PdsRequestBytes + SesStdBytes;
  localparam int unsigned ReturnBytes  = PdsRequestBytes + SesResponseDataBytes;
  localparam int unsigned FailureBytes = PdsRequestBytes + SesResponseBytes;
  localparam int unsigned AckCcLeast   = PdsAckBytes + PdsAckCcBytes;
  localparam int unsigned AckMost      = PdsAckBytes + SesResponseBytes;
  localparam int unsigned AckCcMost    = AckCcLeast + SesResponseBytes;
  localparam int unsigned OfferBytes   = PdsCpBytes - 4 + PdsNegotiationBytes;
  // An unordered PDC's target tracks PdcWindow PSNs; the least range that can be stated is 128 (UET 2.14).
  localparam logic [7:0]  UnorderedRange = 8'd1;
  localparam logic [15:0] OooUnknown = 16'hffff;

  // --------------------------------------------------------- PDS and above
  // First byte on top, as it follows the UDP or entropy header.
  localparam int unsigned UpperW = CoveredW - 8 * (AddressBytes + UdpBytes);
  logic [UpperW-1:0] upper;
  logic [7:0]        upper_bytes;
  logic [13:0]       payload_bytes;  // Behind the headers.

  logic [127:0] inline_bytes;  // First byte on top, zero from `bytes_i` on.
  always_comb begin
    inline_bytes = '0;
    for (int unsigned i = 0; i < InlineBytes; i++) begin
      if (req_i.inlined && 14'(i) < bytes_i) begin
        inline_bytes[127 - 8 * i -: 8] = req_i.inline_data[8 * i +: 8];
      end
    end
  end

  pds_request_syn0_t request;
  ses_std_som0_t     ses;
  always_comb begin
    request                  = '0;
    request.type_            = req_i.rud ? PdsTypeRudReq : PdsTypeRodReq;
    request.next_hdr         = !req_i.back ? NextHdrRequestStd :
                               bytes_i != '0 ? NextHdrResponseData : NextHdrResponse;
    request.retx             = req_i.retx;
    request.ar               = req_i.ar;
    request.syn              = req_i.syn;
    request.clear_psn_offset = req_i.clear_offset;
    request.psn              = req_i.psn;
    request.spdcid           = req_i.spdcid;
    request.dpdcid           = req_i.dpdcid;

    ses                      = '0;
    ses.opcode               = ses_opcode_e'(req_i.opcode);
    ses.dc                   = req_i.dc;
    ses.ie                   = req_i.ie;
    ses.rel                  = req_i.rel;
    ses.hd                   = req_i.hd;
    ses.eom                  = req_i.eom;
    ses.som                  = req_i.som;
    ses.message_id           = 16'(req_i.msg) + 16'd1;
    ses.job_id               = req_i.job_id;
    ses.pid_on_fep           = req_i.pid_on_fep;
    ses.resource_index       = req_i.resource_index;
    ses.buffer_offset        = req_i.buffer_offset;
    ses.initiator            = {8'b0, req_i.source_pid, req_i.source_ri};
    ses.match_bits           = req_i.match_bits;
    ses.request_length       = req_i.request_length;
    if (req_i.som) begin
      {ses.rsvd3, ses.payload_length, ses.message_offset} = req_i.header_data;
    end else begin
      ses.payload_length = req_i.asks ? req_i.bytes : bytes_i;
      ses.message_offset = req_i.message_offset;
    end
  end

  // Data of a peer's READ, or why there are none.
  ses_response_data_t returned;
  ses_response_t      failure;
  always_comb begin
    returned                         = '0;
    returned.opcode                  = SesResponseResponseWData;
    returned.return_code             = ReturnCodeOk;
    // The initiator may look for its READ by either (UET 4.8).
    returned.response_message_id     = req_i.message_id;
    returned.job_id                  = req_i.job_id;
    returned.read_request_message_id = req_i.message_id;
    returned.payload_length          = bytes_i;
    returned.modified_length         = req_i.request_length;
    returned.message_offset          = req_i.message_offset;

    failure                          = '0;
    failure.opcode                   = SesResponseResponse;
    failure.return_code              = return_code_e'(req_i.code);
    failure.message_id               = req_i.message_id;
    failure.job_id                   = req_i.job_id;
  end

  pds_cp_syn0_t  control;
  always_comb begin
    control         = '0;
    control.type_   = PdsTypeCp;
    control.cp_type = req_i.cp_type;
    control.retx    = req_i.retx;
    control.ar      = req_i.ar;
    control.syn     = req_i.syn;
    control.psn     = req_i.psn;
    control.spdcid  = req_i.spdcid;
    control.dpdcid  = req_i.dpdcid;
    if (req_i.cp_type == CpTypeClearCommand) control.payload = req_i.clear_psn;
  end

  logic [15:0] early;  // PSNs behind a gap.
  always_comb begin
    early = '0;
    for (int unsigned i = 0; i < $bits(rsp_i.sack_bitmap); i++) early = early + 16'(rsp_i.sack_bitmap[i]);
  end

  pds_ack_p0_t          ack;     // To a Probe the same with probe_opaque in place of ack_psn_offset.
  pds_ack_cc_cc_type0_t ack_cc;
  pds_nack_t            nack;
  pds_negotiation_t     features;
  logic [31:0]          feature_mask;  // The part of them that is behind pds_cp.
  pds_cp_syn0_t         offer;
  ses_response_t answer;
  always_comb begin
    ack                    = '0;
    ack.type_              = rsp_i.cc ? PdsTypeAckCc : PdsTypeAck;
    ack.next_hdr           = rsp_i.kind == ResponseAck ? NextHdrResponse : NextHdrNone;
    ack.m                  = rsp_i.m;
    ack.p                  = rsp_i.probe;
    ack.retx               = rsp_i.retx;
    ack.req                = rsp_i.req;
    ack.ack_psn_offset     = rsp_i.ack_offset;
    ack.cack_psn           = rsp_i.cack;
    ack.spdcid             = rsp_i.spdcid;
    ack.dpdcid             = rsp_i.dpdcid;

    ack_cc                 = '0;
    ack_cc.mpr             = rsp_i.rod ? 8'(OrderedRange) : UnorderedRange;
    ack_cc.sack_psn_offset = 16'sd1;
    ack_cc.sack_bitmap     = rsp_i.sack_bitmap;
    ack_cc.nscc_ooo_count  = rsp_i.service_time == '0 ? OooUnknown : early;
    ack_cc.service_time    = rsp_i.service_time;
    ack_cc.rcvd_bytes      = rsp_i.rcvd_bytes;

    answer                 = '0;
    answer.opcode          = ses_response_e'(rsp_i.response);
    answer.return_code     = return_code_e'(rsp_i.return_code);
    answer.message_id      = rsp_i.message_id;
    answer.job_id          = rsp_i.job_id;
    answer.modified_length = rsp_i.modified_length;

    nack                   = '0;
    nack.type_             = PdsTypeNack;
    nack.next_hdr          = NextHdrNone;
    nack.m                 = rsp_i.m;
    nack.retx              = rsp_i.retx;
    nack.nack_code         = nack_code_e'(rsp_i.code);
    nack.vendor_code       = rsp_i.vendor_code;
    nack.nack_psn          = rsp_i.nack_psn;
    nack.spdcid            = rsp_i.spdcid;
    nack.dpdcid            = rsp_i.dpdcid;
    if (rsp_i.code == 8'(NackCodeRodOoo)) nack.payload = rsp_i.cack;

    features               = '0;
    features.neg_type      = 8'd1;
    features.length        = 8'd2;

    offer                  = '0;
    offer.type_            = PdsTypeCp;
    offer.cp_type          = CpTypeNegotiation;
    offer.isrod            = rsp_i.rod;
    offer.psn              = rsp_i.nack_psn;
    offer.spdcid           = rsp_i.spdcid;
    offer.dpdcid           = rsp_i.dpdcid;
    {offer.payload, feature_mask} = features;
  end

  always_comb begin
    upper         = '0;
    upper_bytes   = '0;
    payload_bytes = '0;
    if (valid_i && !response_i && req_i.control) begin
      upper         = {control, {(UpperW - 8 * PdsCpBytes){1'b0}}};
      upper_bytes   = 8'(PdsCpBytes);
    end else if (valid_i && !response_i && req_i.back) begin
      upper         = bytes_i != '0 ? {request, returned, {(UpperW - 8 * ReturnBytes){1'b0}}}
                                    : {request, failure, {(UpperW - 8 * FailureBytes){1'b0}}};
      upper_bytes   = bytes_i != '0 ? 8'(ReturnBytes) : 8'(FailureBytes);
      payload_bytes = bytes_i;
    end else if (valid_i && !response_i) begin
      upper         = {request, ses, inline_bytes};
      upper_bytes   = 8'(RequestBytes) + (req_i.inlined ? bytes_i[7:0] : 8'd0);
      payload_bytes = req_i.inlined ? 14'd0 : bytes_i;
    end else if (valid_i) begin
      unique case (rsp_i.kind)
        ResponseAck: begin
          upper       = rsp_i.cc ? {ack, ack_cc, answer, {(UpperW - 8 * AckCcMost){1'b0}}}
                                 : {ack, answer, {(UpperW - 8 * AckMost){1'b0}}};
          upper_bytes = rsp_i.cc ? 8'(AckCcMost) : 8'(AckMost);
        end
        ResponseNone: begin
          upper       = rsp_i.cc ? {ack, ack_cc, {(UpperW - 8 * AckCcLeast){1'b0}}}
                                 : {ack, {(UpperW - 8 * PdsAckBytes){1'b0}}};
          upper_bytes = rsp_i.cc ? 8'(AckCcLeast) : 8'(PdsAckBytes);
        end
        ResponseOffer: begin
          upper       = {offer, feature_mask, {(UpperW - 8 * OfferBytes){1'b0}}};
          upper_bytes = 8'(OfferBytes);
        end
        default: begin
          upper       = {nack, {(UpperW - 8 * PdsNackBytes){1'b0}}};
          upper_bytes = 8'(PdsNackBytes);
        end
      endcase
    end
  end

  // ------------------------------------------- Ethernet, IP, UDP or entropy
  localparam int unsigned TrailerBytes = 4;

  logic         ipv6;
  logic [5:0]   dscp;
  logic [127:0] source, destination;
  logic [15:0]  ip_payload;
  logic         native;
  logic [7:0]   shim, protocol;
  assign ipv6        = response_i ? rsp_i.ipv6 : req_i.ipv6;
  assign dscp        = response_i ? rsp_i.dscp : req_i.dscp;
  assign source      = {port_i.local_fa_hi, port_i.local_fa_lo};
  assign destination = response_i ? rsp_i.fa : req_i.fa;
  assign native      = port_i.ip_protocol != '0;
  assign protocol    = native ? port_i.ip_protocol : 8'd17;
  assign shim        = native ? 8'(EntropyBytes) : 8'(UdpBytes);
  assign ip_payload  = 16'(shim) + 16'(upper_bytes) + 16'(payload_bytes)
                     + (port_i.crc != CrcOrderNone ? 16'(TrailerBytes) : 16'd0);

  ethernet_t ethernet;
  ipv4_t     ip4;
  ipv6_t     ip6;
  udp_t      udp;
  entropy_t  entropy;
  always_comb begin
    ethernet             = '0;
    ethernet.destination = response_i ? rsp_i.mac : req_i.mac;
    ethernet.source      = port_i.mac[47:0];
    ethernet.ethertype   = ipv6 ? 16'h86dd : 16'h0800;

    ip4                  = '0;
    ip4.version          = 4'd4;
    ip4.ihl              = 4'd5;
    ip4.dscp             = dscp;
    ip4.ecn              = {ect_i && !response_i, 1'b0};
    ip4.total_length     = 16'(Ipv4Bytes) + ip_payload;
    ip4.flags            = 3'd2;  // Don't fragment.
    ip4.ttl              = 8'd64;
    ip4.protocol         = protocol;
    ip4.source           = source[31:0];
    ip4.destination      = destination[31:0];

    ip6                  = '0;
    ip6.version          = 4'd6;
    ip6.dscp             = dscp;
    ip6.ecn              = {ect_i && !response_i, 1'b0};
    ip6.payload_length   = ip_payload;
    ip6.next_header      = protocol;
    ip6.hop_limit        = 8'd64;
    {ip6.source_hi, ip6.source_lo}           = source;
    {ip6.destination_hi, ip6.destination_lo} = destination;

    udp                  = '0;
    udp.source_port      = response_i ? rsp_i.entropy : req_i.entropy;
    udp.destination_port = port_i.udp_port;
    udp.length           = ip_payload;

    entropy              = '0;
    entropy.entropy      = udp.source_port;
  end

  // What follows the IP header.
  logic [8*UdpBytes + UpperW-1:0] l4;
  assign l4 = native ? {entropy, upper, {(8 * (UdpBytes - EntropyBytes)){1'b0}}} : {udp, upper};

  // Both IP headers end with their addresses.
  localparam int unsigned Ipv4AddressW = 64;
  logic [8*Ipv4Bytes-1:0] ip4_bytes;
  logic [8*Ipv6Bytes-1:0] ip6_bytes;
  assign ip4_bytes = ip4;
  assign ip6_bytes = ip6;

  always_comb begin
    stack_o = '0;
    if (valid_i) begin
      stack_o.ethernet      = ethernet;
      stack_o.vlan          = response_i ? port_i.vlan[11:0] : req_i.vlan;
      stack_o.ipv6          = ipv6;
      stack_o.trailer       = port_i.crc != CrcOrderNone;
      stack_o.msb_first     = port_i.crc == CrcOrderMsbFirst;
      stack_o.upper_bytes   = shim + upper_bytes;
      stack_o.payload_bytes = payload_bytes;
      if (ipv6) begin
        stack_o.ip      = {ip6_bytes[8*Ipv6Bytes-1 : 8*AddressBytes], 32'b0};
        stack_o.covered = {ip6_bytes[8*AddressBytes-1 : 0], l4};
      end else begin
        stack_o.ip      = ip4_bytes[8*Ipv4Bytes-1 : Ipv4AddressW];
        stack_o.covered = {{(8 * AddressBytes - Ipv4AddressW){1'b0}},
                           ip4_bytes[Ipv4AddressW-1 : 0], l4};
      end
    end
  end

  logic unused_bits;
  assign unused_bits = ^{port_i, rsp_i, req_i};
endmodule
