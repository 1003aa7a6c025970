// SPDX-License-Identifier: Apache-2.0
// Fills in the IPv4 and UDP checksums of a header stack.
//
// Ordered. Two cycles of latency, one header stack per cycle.
// The UDP checksum covers the pseudo header, all header bytes from UDP on and `sum`;
// a result of 0 is sent as 0xffff, because 0 means none.

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
  input  tx_raw_t     raw_i,    // Checksum fields 0, bytes beyond the length 0.

  output logic        valid_o,
  input  logic        ready_i,
  output frame_head_t head_o,

  output logic        idle_o
);
  // In 16-bit words of the frame.
  localparam int unsigned IpFirst    = EthernetBytes / 2;
  localparam int unsigned IpAddress  = IpFirst + 6;  // Part of the pseudo header.
  localparam int unsigned IpChecksum = IpFirst + 5;
  localparam int unsigned UdpFirst   = IpFirst + Ipv4Bytes / 2;
  localparam int unsigned UdpLength  = UdpFirst + 2;
  localparam int unsigned UdpSum     = UdpFirst + 3;
  localparam int unsigned Last       = HdrBytes / 2;

  localparam int unsigned SumW = 16 + 7;

  logic            sum_valid_q, out_valid_q;
  frame_head_t     sum_head_q, out_q;
  logic [SumW-1:0] ip_sum_q, udp_sum_q;

  logic sum_ready, take, sum_take;
  assign sum_ready = !out_valid_q || ready_i;
  assign ready_o   = !sum_valid_q || sum_ready;
  assign take      = valid_i && ready_o;
  assign sum_take  = sum_valid_q && sum_ready;
  assign valid_o   = out_valid_q;
  assign head_o    = out_q;
  assign idle_o    = !sum_valid_q && !out_valid_q;

  logic [SumW-1:0] ip_sum, udp_sum;
  always_comb begin
    ip_sum  = '0;
    udp_sum = '0;
    if (take) begin
      for (int unsigned i = IpFirst; i < UdpFirst; i++) begin
        ip_sum = ip_sum + SumW'(raw_i.head.bytes[HdrW - 1 - 16 * i -: 16]);
      end
      for (int unsigned i = IpAddress; i < Last; i++) begin
        udp_sum = udp_sum + SumW'(raw_i.head.bytes[HdrW - 1 - 16 * i -: 16]);
      end
      udp_sum = udp_sum + SumW'(raw_i.sum) + SumW'(17)
              + SumW'(raw_i.head.bytes[HdrW - 1 - 16 * UdpLength -: 16]);
    end
  end

  function automatic logic [15:0] Checksum(input logic [SumW-1:0] sum);
    logic [16:0] once;
    once     = 17'(sum[15:0]) + 17'(sum[SumW-1:16]);
    Checksum = ~(once[15:0] + 16'(once[16]));
  endfunction

  frame_head_t out_d;
  logic [15:0] udp_checksum;
  assign udp_checksum = Checksum(udp_sum_q);
  always_comb begin
    out_d = sum_head_q;
    out_d.bytes[HdrW - 1 - 16 * IpChecksum -: 16] = Checksum(ip_sum_q);
    out_d.bytes[HdrW - 1 - 16 * UdpSum -: 16] = udp_checksum == '0 ? '1 : udp_checksum;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sum_valid_q <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      if (ready_o)   sum_valid_q <= valid_i;
      if (sum_ready) out_valid_q <= sum_valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      sum_head_q <= raw_i.head;
      ip_sum_q   <= ip_sum;
      udp_sum_q  <= udp_sum;
    end
    if (sum_take) out_q <= out_d;
  end

  `HEDDLE_ASSERT(OfferHeld_A, valid_o && !ready_i |=> valid_o)
endmodule
