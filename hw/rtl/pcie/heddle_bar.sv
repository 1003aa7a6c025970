// SPDX-License-Identifier: Apache-2.0
// Host's view of the NIC: BAR0 registers and BAR2 doorbells behind an AXI4 slave.
//
// Ordered: doorbell writes leave in bus order. A write is answered when it took
//          effect or is queued. Unmapped reads return 0, unmapped writes do nothing;
//          bursts (len != 0) and strobes that do not cover a whole 32- or 64-bit
//          register are answered SLVERR and do nothing.
// Reads:   a 64-bit register may be read in halves.

`include "heddle_assert.svh"

module heddle_bar
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic         s_axi_awvalid_i,
  output logic         s_axi_awready_o,
  input  logic [20:0]  s_axi_awaddr_i,
  input  logic [7:0]   s_axi_awlen_i,
  input  logic         s_axi_wvalid_i,
  output logic         s_axi_wready_o,
  input  logic [63:0]  s_axi_wdata_i,
  input  logic [7:0]   s_axi_wstrb_i,
  input  logic         s_axi_wlast_i,
  output logic         s_axi_bvalid_o,
  input  logic         s_axi_bready_i,
  output logic [1:0]   s_axi_bresp_o,
  input  logic         s_axi_arvalid_i,
  output logic         s_axi_arready_o,
  input  logic [20:0]  s_axi_araddr_i,
  input  logic [7:0]   s_axi_arlen_i,
  output logic         s_axi_rvalid_o,
  input  logic         s_axi_rready_i,
  output logic [63:0]  s_axi_rdata_o,
  output logic [1:0]   s_axi_rresp_o,
  output logic         s_axi_rlast_o,

  output logic         db_valid_o,
  input  logic         db_ready_i,
  output doorbell_t    db_o,

  // Registers shared with the management bus.
  output logic [63:0]  admin_command_base_o,
  output logic [63:0]  admin_answer_base_o,
  output logic [3:0]   admin_log2_o,
  output logic [15:0]  admin_tail_o,
  output logic         reset_o,             // device_control.reset
  input  logic         reset_done_i,        // Clears it.
  input  logic [31:0]  device_status_i,
  input  logic [31:0]  fatal_cause_i,
  input  logic [63:0]  capability_i,
  input  logic [31:0]  version_i,
  input  logic [31:0]  context_limits_i,
  input  logic [31:0]  transport_limits_i,
  input  logic [31:0]  datapath_i,

  output logic [5:0]   stat_index_o,        // Statistics read port, same cycle.
  input  logic [63:0]  stat_value_i,

  output logic         idle_o
);
endmodule
