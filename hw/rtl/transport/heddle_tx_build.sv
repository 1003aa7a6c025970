// SPDX-License-Identifier: Apache-2.0
// Builds frames: request packets of messages, and ACK and NACK packets.
//
// Sent:     every packet taken on `pkt` leaves as a frame, in order. When its payload must not
//           (`failed`, context disabled or of another generation) or cannot be read (DMA error), it leaves with
//           ie=1 and no payload, and so do all later packets of that message.
// Priority: responses before requests.
// Payload:  read from host memory, or inline from the message table (at most InlineBytes).
// Sequence: `seq_done_o` counts packets taken on `pkt` whose payload will no longer be read.

`include "heddle_assert.svh"

module heddle_tx_build
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t        port_i,
  input  logic             tbl_valid_i,     // TableNextHop.
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  input  logic             msg_valid_i,     // Message table write, at allocation.
  input  logic [MsgW-1:0]  msg_index_i,
  input  msg_packet_t      msg_data_i,
  input  logic             pdc_valid_i,     // PDC open.
  input  logic [PdcW-1:0]  pdc_index_i,
  input  pdc_peer_t        pdc_data_i,
  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,

  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  input  tx_packet_t       pkt_i,
  input  logic             rsp_valid_i,
  output logic             rsp_ready_o,
  input  response_t        rsp_i,

  output logic             rd_valid_o,      // Client RdPayload.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  output logic             len_valid_o,     // To heddle_tx_payload, one per read.
  input  logic             len_ready_i,
  output logic [13:0]      len_bytes_o,
  input  logic             rec_valid_i,
  output logic             rec_ready_o,
  input  logic             rec_error_i,
  input  logic [15:0]      rec_sum_i,

  output logic             head_valid_o,    // To heddle_tx_framer.
  input  logic             head_ready_i,
  output frame_head_t      head_o,

  output logic [SeqW-1:0]  seq_done_o,
  output logic             fail_o,          // Strobe: payload of a message cannot be read.
  output logic [MsgW-1:0]  fail_msg_o,
  output logic [TxW-1:0]   fail_ctx_o,
  output logic [GenW-1:0]  fail_gen_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
endmodule
