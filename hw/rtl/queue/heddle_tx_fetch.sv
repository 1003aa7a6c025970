// SPDX-License-Identifier: Apache-2.0
// Transmit contexts: doorbells, scheduling, descriptor fetch and checks.
//
// Fair:     contexts with work take turns, one read of up to 8 descriptors each.
// Ordered:  a context's operations leave in ring order. A completion credit and
//           one of the context's message share (MessageShare; each context is
//           guaranteed 32, the rest of the table is shared) are taken for each
//           operation before it leaves.
// Checked:  opcode, flags, lengths, slots and position; a bad descriptor leaves with
//           its status and puts the context into error: later ones leave as `flushed`.
//           `ctx_error_i` puts a context into error as well. Other contexts go on.
// Disabled: writing tx_ctx_cfg with enable=0 stops the context, raises its generation,
//           and drops what it had fetched. Writing enable=1 starts it at position 0.
// Drain:    answered when the token (sent behind everything of the context) came back
//           on `drained_i`.

`include "heddle_assert.svh"

module heddle_tx_fetch
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
  input  doorbell_t        db_i,            // Pages of transmit contexts only.

  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  output logic             rd_valid_o,      // Client RdTxDesc.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  output logic             op_valid_o,
  input  logic             op_ready_i,
  output tx_op_t           op_o,

  output logic             av_invalidate_o, // Strobe: forget the address vector of ...
  output logic [TxW-1:0]   av_ctx_o,

  input  logic [NumCq-1:0] credit_ok_i,     // At least 4 credits are free.
  input  logic [NumCq-1:0][GenW-1:0] cq_gen_i,
  output logic             credit_take_o,   // Strobe: one credit of ...
  output logic [CqW-1:0]   credit_cq_o,

  input  logic             retire_i,        // Strobe: a message of {ctx, gen} left the table.
  input  logic [TxW-1:0]   retire_ctx_i,
  input  logic [GenW-1:0]  retire_gen_i,
  input  logic             ctx_error_i,     // Strobe: a payload read of {ctx, gen} failed.
  input  logic [TxW-1:0]   ctx_error_ctx_i,
  input  logic [GenW-1:0]  ctx_error_gen_i,
  input  logic             drained_i,       // Strobe: drain token came back.

  output logic [NumTx-1:0]           alive_o,  // Enabled.
  output logic [NumTx-1:0][GenW-1:0] gen_o,
  output logic [NumTx-1:0][63:0]     head_cell_o,
  output logic [NumTx-1:0][3:0]      ring_log2_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
endmodule
