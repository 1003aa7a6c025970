// SPDX-License-Identifier: Apache-2.0
// Places payload in host memory and completes receives behind it.
//
// Ordered:  packets are placed in order; the completion event of a message is emitted only after
//           the write requests of all its packets were taken by the write engine, and with
//           port_cfg.write_errors after all their responses returned.
// Errors:   a refused write makes its message complete with local_access.
// Discards payload bytes beyond `bytes`, and whole packets with bytes = 0.
// Token:    passes in order, when every write before it was answered.

`include "heddle_assert.svh"

module heddle_place
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t        port_i,

  input  logic             place_valid_i,
  output logic             place_ready_o,
  input  place_t           place_i,
  input  logic             pay_valid_i,
  output logic             pay_ready_o,
  input  logic [DataW-1:0] pay_data_i,

  output logic             wr_valid_o,      // Client WrPayload.
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             ev_valid_o,
  input  logic             ev_ready_i,
  output cq_event_t        ev_o,

  output logic             idle_o
);
endmodule
