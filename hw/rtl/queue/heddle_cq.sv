// SPDX-License-Identifier: Apache-2.0
// Completion queues: entries, phases, credits, head cells, interrupts.
//
// Credit:   `credit_ok_o` is high while at least 4 entries are neither written nor reserved
//           (size - produced + consumed - reserved); three takers may each take one per cycle.
//           An event with `credit` set returns its reservation; with `write` it becomes an entry.
//           Events of another generation of the queue return nothing and write nothing.
// Ordered:  events of one input are written in order; entries through the one write engine,
//           so behind payload whose request was taken before.
// Interrupt: armed by the consumer doorbell with its count; when an entry beyond that count has been
//           written and its response returned, the vector is raised once.
// Token:    `drained_tx_o` / `drained_rx_o` pulse when all writes before the token returned.

`include "heddle_assert.svh"

module heddle_cq
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             db_valid_i,
  output logic             db_ready_o,
  input  doorbell_t        db_i,            // Pages of completion queues only.

  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  input  logic [2:0]                         ev_valid_i,  // 0 placement, 1 transmit, 2 receive queue.
  output logic [2:0]                         ev_ready_o,
  input  logic [2:0][$bits(cq_event_t)-1:0]  ev_i,

  output logic [NumCq-1:0]           credit_ok_o,
  output logic [NumCq-1:0][GenW-1:0] gen_o,
  input  logic [2:0]                 take_i,        // 0 accept, 1 tx_fetch, 2 rx_queue.
  input  logic [2:0][CqW-1:0]        take_cq_i,

  output logic             wr_valid_o,      // Client WrCq.
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             drained_tx_o,
  output logic             drained_rx_o,

  output logic             msix_valid_o,
  input  logic             msix_ready_i,
  output logic [VecW-1:0]  msix_vector_o,
  output logic [7:0]       msix_owner_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
endmodule
