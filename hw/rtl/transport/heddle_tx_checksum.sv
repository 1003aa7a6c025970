// SPDX-License-Identifier: Apache-2.0
// Fills checksums and the end-to-end CRC into a header stack and puts it together.
//
// Ordered. Three cycles of latency, one header stack per cycle.
// CRC:  from the IP addresses to the end of payload, the UDP checksum taken as zero.
// UDP:  the checksum covers the pseudo header, all from UDP on, and the CRC; a result of 0
//       is sent as 0xffff, because 0 means none.

`include "heddle_assert.svh"

module heddle_tx_checksum
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic        valid_i,
  output logic        ready_o,
  input  tx_raw_t     raw_i,

  output logic        valid_o,
  input  logic        ready_i,
  output frame_head_t head_o,

  output logic        idle_o
);
  // In 16-bit words of the covered bytes.
  localparam int unsigned Words     = CoveredBytes / 2;
  localparam int unsigned Ipv4First = AddressBytes / 2 - 4;  // Both addresses.
  localparam int unsigned UdpFirst  = AddressBytes / 2;
  localparam int unsigned UdpLength = UdpFirst + 2;
  localparam int unsigned UdpSum    = UdpFirst + 3;
  localparam int unsigned IpSum     = 5;                     // Of the IPv4 header.

  localparam int unsigned SumW = 16 + 7;

  logic            sum_valid_q, crc_valid_q, out_valid_q;
  logic            out_ready, crc_ready, take, crc_take, out_take;
  assign out_ready = !out_valid_q || ready_i;
  assign crc_ready = !crc_valid_q || out_ready;
  assign ready_o   = !sum_valid_q || crc_ready;
  assign take      = valid_i && ready_o;
  assign crc_take  = sum_valid_q && crc_ready;
  assign out_take  = crc_valid_q && out_ready;
  assign idle_o    = !sum_valid_q && !crc_valid_q && !out_valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sum_valid_q <= 1'b0;
      crc_valid_q <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      if (ready_o)   sum_valid_q <= valid_i;
      if (crc_ready) crc_valid_q <= sum_valid_q;
      if (out_ready) out_valid_q <= crc_valid_q;
    end
  end

  // ---------------------------------------- stage 1: sums, state of the headers
  tx_stack_t hdr;
  assign hdr = raw_i.hdr;

  logic [SumW-1:0] ip_sum, udp_sum;
  always_comb begin
    ip_sum  = '0;
    udp_sum = '0;
    if (take) begin
      for (int unsigned i = 0; i < $bits(hdr.ip) / 16; i++) begin
        ip_sum = ip_sum + SumW'(hdr.ip[$bits(hdr.ip) - 1 - 16 * i -: 16]);
      end
      for (int unsigned i = Ipv4First; i < UdpFirst; i++) begin
        ip_sum = ip_sum + SumW'(hdr.covered[CoveredW - 1 - 16 * i -: 16]);
      end
      for (int unsigned i = 0; i < Words; i++) begin
        udp_sum = udp_sum + SumW'(hdr.covered[CoveredW - 1 - 16 * i -: 16]);
      end
      udp_sum = udp_sum + SumW'(raw_i.sum) + SumW'(17)
              + SumW'(hdr.covered[CoveredW - 1 - 16 * UdpLength -: 16]);
    end
  end

  // A start from all ones inverts the first four bytes that count. What follows the headers
  // is zero here and taken back, then all is moved over the payload.
  logic                crc_en;
  logic [CoveredW-1:0] lanes;
  logic [31:0]         header_crc, power_low, power_high, power;
  logic [13:0]         count;  // Covered bytes, headers and payload.
  assign crc_en = take && hdr.trailer;
  always_comb begin
    lanes = '0;
    count = '0;
    if (crc_en) begin
      for (int unsigned i = 0; i < CoveredBytes; i++) begin
        lanes[8 * i +: 8] = hdr.covered[CoveredW - 8 * (i + 1) +: 8];
      end
      if (hdr.ipv6) lanes[31:0] = ~lanes[31:0];
      else            lanes[16 * Ipv4First +: 32] = ~lanes[16 * Ipv4First +: 32];
      count = 14'(AddressBytes) + 14'(hdr.upper_bytes) + hdr.payload_bytes;
    end
  end

  heddle_crc32c #(.DataW(CoveredW), .Back(1'b1)) u_header_crc (
    .en_i(crc_en), .crc_i('0), .data_i(lanes), .crc_o(header_crc)
  );
  heddle_crc32c_power #(.CountW(7)) u_power_low (
    .count_i(count[6:0]), .power_o(power_low)
  );
  heddle_crc32c_power #(.CountW(7), .Step(128)) u_power_high (
    .count_i(count[13:7]), .power_o(power_high)
  );
  heddle_crc32c_mul u_power (
    .en_i(crc_en), .a_i(power_low), .b_i(power_high), .product_o(power)
  );

  tx_stack_t       sum_stack_q;
  logic [SumW-1:0] ip_sum_q, udp_sum_q;
  logic [31:0]     header_crc_q, power_q, payload_crc_q;
  always_ff @(posedge clk_i) begin
    if (take) begin
      sum_stack_q   <= hdr;
      ip_sum_q      <= ip_sum;
      udp_sum_q     <= udp_sum;
      header_crc_q  <= header_crc;
      power_q       <= power;
      payload_crc_q <= raw_i.crc;
    end
  end

  // ------------------------------------------------ stage 2: CRC, IP checksum
  function automatic logic [15:0] Checksum(input logic [SumW-1:0] sum);
    logic [16:0] once;
    once     = 17'(sum[15:0]) + 17'(sum[SumW-1:16]);
    Checksum = ~(once[15:0] + 16'(once[16]));
  endfunction

  logic [31:0] moved;
  heddle_crc32c_mul u_crc (
    .en_i(crc_take && sum_stack_q.trailer), .a_i(header_crc_q), .b_i(power_q),
    .product_o(moved)
  );

  tx_stack_t       crc_stack_q;
  logic [SumW-1:0] crc_sum_q;
  logic [15:0]     ip_checksum_q;
  logic [31:0]     crc_q;
  always_ff @(posedge clk_i) begin
    if (crc_take) begin
      crc_stack_q   <= sum_stack_q;
      crc_sum_q     <= udp_sum_q;
      ip_checksum_q <= Checksum(ip_sum_q);
      crc_q         <= sum_stack_q.trailer ? ~(moved ^ payload_crc_q) : '0;
    end
  end

  // -------------------------------------------------- stage 3: UDP, the stack
  // The trailer's first byte is its least significant. Behind an odd number of bytes each
  // counts in the other half of a word, which swaps the bytes of the sum.
  logic            odd;
  logic [31:0]     words;
  logic [SumW-1:0] trailer_sum;
  logic [15:0]     udp_checksum;
  assign odd          = crc_stack_q.upper_bytes[0] ^ crc_stack_q.payload_bytes[0];
  assign words        = odd ? crc_q : {crc_q[23:16], crc_q[31:24], crc_q[7:0], crc_q[15:8]};
  assign trailer_sum  = SumW'(words[15:0]) + SumW'(words[31:16]);
  assign udp_checksum = Checksum(crc_sum_q + trailer_sum);

  localparam int unsigned TaggedBytes = EthernetBytes + VlanBytes;
  localparam int unsigned UpperW      = 8 * (CoveredBytes - AddressBytes);
  localparam int unsigned L3W         = 8 * Ipv6Bytes + UpperW;  // IP header and what follows.

  logic [$bits(crc_stack_q.ip)-1:0] ip;
  logic [CoveredW-1:0]              covered;
  logic [L3W-1:0]                   l3;
  ethernet_t                        ethernet;
  vlan_t                            tag;
  frame_head_t                      out;
  logic [7:0]                       l3_bytes;
  always_comb begin
    ip       = crc_stack_q.ip;
    covered  = crc_stack_q.covered;
    ethernet = crc_stack_q.ethernet;
    tag      = '0;
    tag.tpid = 16'h8100;
    tag.vid  = crc_stack_q.vlan;
    covered[CoveredW - 1 - 16 * UdpSum -: 16] = udp_checksum == '0 ? '1 : udp_checksum;
    ip[$bits(ip) - 1 - 16 * IpSum -: 16]      = ip_checksum_q;

    if (crc_stack_q.ipv6) begin
      l3       = {ip[$bits(ip)-1 -: 64], covered};
      l3_bytes = 8'(Ipv6Bytes) + crc_stack_q.upper_bytes;
    end else begin
      l3       = {ip, covered[CoveredW - 16 * Ipv4First - 1 : 0],
                  {(L3W - UpperW - 8 * Ipv4Bytes){1'b0}}};
      l3_bytes = 8'(Ipv4Bytes) + crc_stack_q.upper_bytes;
    end

    out               = '0;
    out.payload_bytes = crc_stack_q.payload_bytes;
    out.trailer       = crc_stack_q.trailer;
    out.crc           = crc_q;
    if (crc_stack_q.vlan != '0) begin
      out.bytes  = {ethernet.destination, ethernet.source, tag, ethernet.ethertype, l3,
                    {(HdrW - 8 * TaggedBytes - L3W){1'b0}}};
      out.length = 8'(TaggedBytes) + l3_bytes;
    end else begin
      out.bytes  = {ethernet, l3, {(HdrW - 8 * EthernetBytes - L3W){1'b0}}};
      out.length = 8'(EthernetBytes) + l3_bytes;
    end
  end

  frame_head_t out_q;
  always_ff @(posedge clk_i) begin
    if (out_take) out_q <= out;
  end
  assign valid_o = out_valid_q;
  assign head_o  = out_q;

  `HEDDLE_ASSERT(OfferHeld_A, valid_o && !ready_i |=> valid_o)
endmodule
