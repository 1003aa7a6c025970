// SPDX-License-Identifier: Apache-2.0
// Receive contexts: doorbells, descriptor prefetch, routing of RIs, cancellation.
//
// Ordered:  a context's buffers are offered in ring order, cancelled ones skipped.
// Lookup:   `look_hit_o` and `look_ctx_o` answer {pid, ri} in the same cycle; the head buffer of
//           `head_ctx_i` is offered on `head_*_o` one cycle later and stays until
//           `pop_i` (for the same context) or cancellation.
// Checked:  a descriptor whose position is wrong, whose flags are unknown, or that host memory refuses
//           is reported by a completion (bad_position, bad_length, local_access) and skipped.
// Cancel:   doorbell op: a buffer not yet popped is withdrawn: completion `cancelled` with
//           its position; anything else is ignored (its own completion comes).
// Released: `queue_head` in events is the number of slots popped or skipped; a skip also
//           writes the head cell.
// Disabled: writing rx_ctx_cfg with enable=0 ends routing, raises the generation, drops
//           prefetched buffers. Drain: waits for reads of the context, then sends a token to
//           the accept stage and answers when it came back on `drained_i`.

`include "heddle_assert.svh"

module heddle_rx_queue
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
  input  doorbell_t        db_i,            // Pages of receive contexts only.

  input  logic             tbl_valid_i,
  input  table_req_t       tbl_req_i,
  output table_rsp_t       tbl_rsp_o,

  output logic             rd_valid_o,      // Client RdRxDesc.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  input  logic [11:0]      look_pid_i,
  input  logic [11:0]      look_ri_i,
  output logic             look_hit_o,
  output logic [RxW-1:0]   look_ctx_o,
  output logic [23:0]      look_job_o,

  input  logic [RxW-1:0]   head_ctx_i,
  output logic             head_valid_o,    // One cycle after head_ctx_i.
  output rx_buffer_t       head_o,
  output logic [15:0]      head_released_o, // queue_head once this buffer is popped.
  input  logic             pop_i,           // Takes the buffer now on head_*.

  output logic             drain_valid_o,   // Token for the accept stage.
  input  logic             drain_ready_i,
  input  logic             drained_i,

  input  logic [NumCq-1:0] credit_ok_i,
  input  logic [NumCq-1:0][GenW-1:0] cq_gen_i,
  output logic             credit_take_o,
  output logic [CqW-1:0]   credit_cq_o,
  output logic             ev_valid_o,      // Cancelled and bad buffers, head cells.
  input  logic             ev_ready_i,
  output cq_event_t        ev_o,

  output logic [NumRx-1:0]           alive_o,
  output logic [NumRx-1:0][GenW-1:0] gen_o,

  output logic             idle_o
);
endmodule
