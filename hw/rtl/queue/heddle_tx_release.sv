// SPDX-License-Identifier: Apache-2.0
// Ends messages: completion, release of ring slots in order, return of the table entry.
//
// Ordered:  slots of a context are released in ring order; `queue_head` of a completion is the
//           released head including its own slots if they could be released.
// Cell:     an operation without completion (flag `completion` clear and status ok, or NOP)
//           writes the head cell when a quarter of the ring was released since the last report,
//           or when the context has nothing else in flight.
// Stale:    a message whose generation is not its context's present one completes nothing: only
//           its CQ credit and table entry return.
// Token:    leaves as a cq_event token once `tx_seq_done_i` has reached `tx_seq_issued_i` as it was
//           when the token arrived, behind everything that arrived before.

`include "heddle_assert.svh"

module heddle_tx_release
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             wr_valid_i,      // Message table write, at allocation.
  input  logic [MsgW-1:0]  wr_msg_i,
  input  msg_done_t        wr_data_i,

  input  logic             done_valid_i,
  output logic             done_ready_o,
  input  tx_done_t         done_i,

  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,
  input  logic [NumTx-1:0][63:0]     head_cell_i,
  input  logic [NumTx-1:0][3:0]      ring_log2_i,
  input  logic [SeqW-1:0]  tx_seq_issued_i,
  input  logic [SeqW-1:0]  tx_seq_done_i,

  output logic             ev_valid_o,
  input  logic             ev_ready_i,
  output cq_event_t        ev_o,

  output logic             free_o,          // Strobe: table entry returns to the free list.
  output logic [MsgW-1:0]  free_msg_o,
  output logic             retire_o,        // Strobe for the context's share.
  output logic [TxW-1:0]   retire_ctx_o,
  output logic [GenW-1:0]  retire_gen_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
endmodule
