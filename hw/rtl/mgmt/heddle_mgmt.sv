// SPDX-License-Identifier: Apache-2.0
// Management bus: registers of space `mgmt`, mailbox DMA, and the table port.
//
// One access at a time; reads and writes of registers take one cycle; a mailbox or
// table operation runs on its own and shows `go` until it ends. Writes to
// mailbox or table registers while their operation runs are ignored.
// Owns `port_cfg` (TablePort); every other table is addressed through `tbl_*`.

`include "heddle_assert.svh"

module heddle_mgmt
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             mgmt_valid_i,
  output logic             mgmt_ready_o,
  input  logic             mgmt_write_i,
  input  logic [12:0]      mgmt_addr_i,
  input  logic [31:0]      mgmt_wdata_i,
  output logic [31:0]      mgmt_rdata_o,
  output logic             mgmt_event_o,

  // BAR0 registers.
  input  logic [63:0]      admin_command_base_i,
  input  logic [63:0]      admin_answer_base_i,
  input  logic [3:0]       admin_log2_i,
  input  logic [15:0]      admin_tail_i,
  input  logic             reset_i,
  output logic             reset_done_o,
  output logic [31:0]      device_status_o,
  output logic [31:0]      fatal_cause_o,
  input  logic [31:0]      version_i,
  input  logic [31:0]      context_limits_i,
  input  logic [31:0]      transport_limits_i,
  input  logic [31:0]      datapath_i,

  output port_cfg_t        port_o,

  // Tables of other units: `tbl_valid_o` bit by enum `table`.
  output logic [7:0]       tbl_valid_o,
  output table_req_t       tbl_req_o,
  input  table_rsp_t       tbl_rsp_i,       // OR of all units' answers (zero when not addressed).

  // Mailbox DMA.
  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,
  output logic             wr_valid_o,
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             idle_o           // No mailbox or table operation runs.
);
endmodule
