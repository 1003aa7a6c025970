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
  output logic [13:0]         rx_bytes_o,  // Added to rx_bytes.
  output logic                idle_o
);
endmodule
