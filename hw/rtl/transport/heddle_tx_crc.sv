// SPDX-License-Identifier: Apache-2.0
// Computes the end-to-end CRC and the IPv4 checksum of a header stack and assembles it.
//
// Ordered. Two cycles of latency, one header stack per cycle.
// CRC:  from the IP addresses to the end of payload. The UDP checksum is 0 (UE
//       specification 1.0.3 3.5.10.1).

`include "heddle_assert.svh"

module heddle_tx_crc
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
  localparam int unsigned Ipv4First = AddressBytes / 2 - 4;  // Both addresses.
  localparam int unsigned UdpFirst  = AddressBytes / 2;
  localparam int unsigned IpSum     = 5;                     // Of the IPv4 header.

  localparam int unsigned SumW = 16 + 4;

  logic            sum_valid_q, out_valid_q;
  logic            out_ready, take, out_take;
  assign out_ready = !out_valid_q || ready_i;
  assign ready_o   = !sum_valid_q || out_ready;
  assign take      = valid_i && ready_o;
  assign out_take  = sum_valid_q && out_ready;
  assign idle_o    = !sum_valid_q && !out_valid_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sum_valid_q <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      if (ready_o)   sum_valid_q <= valid_i;
      if (out_ready) out_valid_q <= sum_valid_q;
    end
  end

  // ---------------------------------------- stage 1: sum, state of the headers
  tx_stack_t hdr;
  assign hdr = raw_i.hdr;

  logic [SumW-1:0] ip_sum;
  always_comb begin
    ip_sum = '0;
    if (take && !hdr.ipv6) begin
      for (int unsigned i = 0; i < $bits(hdr.ip) / 16; i++) begin
        ip_sum = ip_sum + SumW'(hdr.ip[$bits(hdr.ip) - 1 - 16 * i -: 16]);
      end
      for (int unsigned i = Ipv4First; i < UdpFirst; i++) begin
        ip_sum = ip_sum + SumW'(hdr.covered[CoveredW - 1 - 16 * i -: 16]);
      end
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

  tx_stack_t       stack_q;
  logic [SumW-1:0] ip_sum_q;
  logic [31:0]     header_crc_q, power_q, payload_crc_q;
  always_ff @(posedge clk_i) begin
    if (take) begin
      stack_q       <= hdr;
      ip_sum_q      <= ip_sum;
      header_crc_q  <= header_crc;
      power_q       <= power;
      payload_crc_q <= raw_i.crc;
    end
  end

  // ------------------------------------- stage 2: CRC, IP checksum, the stack
  function automatic logic [15:0] Checksum(input logic [SumW-1:0] sum);
    logic [16:0] once;
    once     = 17'(sum[15:0]) + 17'(sum[SumW-1:16]);
    Checksum = ~(once[15:0] + 16'(once[16]));
  endfunction

  logic [31:0] moved, crc;
  heddle_crc32c_mul u_crc (
    .en_i(out_take && stack_q.trailer), .a_i(header_crc_q), .b_i(power_q),
    .product_o(moved)
  );
  assign crc = ~(moved ^ payload_crc_q);

  localparam int unsigned TaggedBytes = EthernetBytes + VlanBytes;
  localparam int unsigned UpperW      = 8 * (CoveredBytes - AddressBytes);
  localparam int unsigned L3W         = 8 * Ipv6Bytes + UpperW;  // IP header and what follows.

  logic [$bits(stack_q.ip)-1:0] ip;
  logic [L3W-1:0]                   l3;
  ethernet_t                        ethernet;
  vlan_t                            tag;
  frame_head_t                      out;
  logic [7:0]                       l3_bytes;
  always_comb begin
    ip       = stack_q.ip;
    ethernet = stack_q.ethernet;
    tag      = '0;
    tag.tpid = 16'h8100;
    tag.vid  = stack_q.vlan;
    ip[$bits(ip) - 1 - 16 * IpSum -: 16] = Checksum(ip_sum_q);

    if (stack_q.ipv6) begin
      l3       = {ip[$bits(ip)-1 -: 64], stack_q.covered};
      l3_bytes = 8'(Ipv6Bytes) + stack_q.upper_bytes;
    end else begin
      l3       = {ip, stack_q.covered[CoveredW - 16 * Ipv4First - 1 : 0],
                  {(L3W - UpperW - 8 * Ipv4Bytes){1'b0}}};
      l3_bytes = 8'(Ipv4Bytes) + stack_q.upper_bytes;
    end

    out               = '0;
    out.payload_bytes = stack_q.payload_bytes;
    out.trailer       = stack_q.trailer;
    out.crc           = stack_q.msb_first ? {crc[7:0], crc[15:8], crc[23:16], crc[31:24]} : crc;
    if (stack_q.vlan != '0) begin
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
