// SPDX-License-Identifier: Apache-2.0
// Resolves the peer of an operation through the cached address vector.
//
// Parks:    a miss parks its operation until the entry arrives; operations that hit
//           another line go on. Ordered per {context, peer}.
// Checked:  an index outside the vector, an entry not valid or a read refused by the host
//           gives status bad_peer (op.status untouched when already not ok).
// Operations with status != ok, NOPs pass without a lookup; a token passes when nothing
// is parked.
// Invalidate: drops all lines of the context; entries on the way are not kept.

`include "heddle_assert.svh"

module heddle_resolve
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             op_valid_i,
  output logic             op_ready_o,
  input  tx_op_t           op_i,

  input  logic             invalidate_i,
  input  logic [TxW-1:0]   invalidate_ctx_i,

  output logic             rd_valid_o,      // Client RdAv, 32 bytes per request.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  output logic             op_valid_o,
  input  logic             op_ready_i,
  output tx_resolved_t     op_o,

  output logic             idle_o
);
endmodule
