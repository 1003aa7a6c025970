// SPDX-License-Identifier: Apache-2.0
// Target of PDCs: accepts or refuses each packet, in one decision.
//
// Atomic:  PSN state is written only when everything the packet needs is reserved (receive
//          buffer, completion credit, room in the queues behind); otherwise NACK and no change.
// Ordered: ROD: only the expected PSN is accepted; one NACK (ROD_OOO) per gap; duplicates are
//          acknowledged again with a default response and dropped.
// Opens a PDC on SYN ({source FA, spdcid} hashed to a set of 4 ways); NO_PDC_AVAIL without a free one.
// Passes ACK and NACK of our own PDCs on to the PDC unit.
// One packet every two cycles.

`include "heddle_assert.svh"

module heddle_accept
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t        port_i,

  input  logic             pkt_valid_i,
  output logic             pkt_ready_o,
  input  rx_packet_t       pkt_i,

  output logic [11:0]      look_pid_o,      // heddle_rx_queue.
  output logic [11:0]      look_ri_o,
  input  logic             look_hit_i,
  input  logic [RxW-1:0]   look_ctx_i,
  input  logic [23:0]      look_job_i,
  output logic [RxW-1:0]   head_ctx_o,
  input  logic             head_valid_i,
  input  rx_buffer_t       head_i,
  input  logic [15:0]      head_released_i,
  output logic             pop_o,
  input  logic [NumRx-1:0]           rx_alive_i,
  input  logic [NumRx-1:0][GenW-1:0] rx_gen_i,
  input  logic             drain_valid_i,
  output logic             drain_ready_o,

  input  logic [NumCq-1:0] credit_ok_i,
  output logic             credit_take_o,
  output logic [CqW-1:0]   credit_cq_o,

  output logic             rsp_valid_o,     // ACK and NACK to send.
  input  logic             rsp_ready_i,
  output response_t        rsp_o,

  output logic             place_valid_o,
  input  logic             place_ready_i,
  output place_t           place_o,

  output logic             ack_valid_o,     // To heddle_pdc_tx.
  input  logic             ack_ready_i,
  output ack_event_t       ack_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
endmodule
