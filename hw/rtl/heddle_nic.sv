// SPDX-License-Identifier: Apache-2.0
// The NIC: host interface, transmit and receive paths, UET transport, management.
//
// Interfaces
// - AXI4 slave (64-bit, single beats): BAR0 at address 0, BAR2 at 0x100000.
// - AXI4 master to host memory, DataW bits; AxUSER is the owning function.
// - AXI4-Stream to and from the MAC, frames without FCS; rx `tuser` high with
//   the last beat marks a frame the MAC found bad.
// - MSI-X: one vector number per interrupt, held until taken.
// - Management bus: one 32-bit access at a time; `mgmt_ready_o` ends it.
// - `tick_i`: a pulse is one unit of every timer. `idle_o`: no unit has work;
//   then nothing happens before `deadline_o` more ticks (if `deadline_valid_o`)
//   unless an input changes.

module heddle_nic
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,         // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8,
  localparam int unsigned IdW   = 9
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             tick_i,

  // BARs: AXI4 slave.
  input  logic             s_axi_awvalid_i,
  output logic             s_axi_awready_o,
  input  logic [20:0]      s_axi_awaddr_i,
  input  logic [7:0]       s_axi_awlen_i,
  input  logic             s_axi_wvalid_i,
  output logic             s_axi_wready_o,
  input  logic [63:0]      s_axi_wdata_i,
  input  logic [7:0]       s_axi_wstrb_i,
  input  logic             s_axi_wlast_i,
  output logic             s_axi_bvalid_o,
  input  logic             s_axi_bready_i,
  output logic [1:0]       s_axi_bresp_o,
  input  logic             s_axi_arvalid_i,
  output logic             s_axi_arready_o,
  input  logic [20:0]      s_axi_araddr_i,
  input  logic [7:0]       s_axi_arlen_i,
  output logic             s_axi_rvalid_o,
  input  logic             s_axi_rready_i,
  output logic [63:0]      s_axi_rdata_o,
  output logic [1:0]       s_axi_rresp_o,
  output logic             s_axi_rlast_o,

  // Host memory: AXI4 master.
  output logic             m_axi_awvalid_o,
  input  logic             m_axi_awready_i,
  output logic [IdW-1:0]   m_axi_awid_o,
  output logic [63:0]      m_axi_awaddr_o,
  output logic [7:0]       m_axi_awlen_o,
  output logic [2:0]       m_axi_awsize_o,
  output logic [1:0]       m_axi_awburst_o,
  output logic [7:0]       m_axi_awuser_o,
  output logic             m_axi_wvalid_o,
  input  logic             m_axi_wready_i,
  output logic [DataW-1:0] m_axi_wdata_o,
  output logic [StrbW-1:0] m_axi_wstrb_o,
  output logic             m_axi_wlast_o,
  input  logic             m_axi_bvalid_i,
  output logic             m_axi_bready_o,
  input  logic [IdW-1:0]   m_axi_bid_i,
  input  logic [1:0]       m_axi_bresp_i,
  output logic             m_axi_arvalid_o,
  input  logic             m_axi_arready_i,
  output logic [IdW-1:0]   m_axi_arid_o,
  output logic [63:0]      m_axi_araddr_o,
  output logic [7:0]       m_axi_arlen_o,
  output logic [2:0]       m_axi_arsize_o,
  output logic [1:0]       m_axi_arburst_o,
  output logic [7:0]       m_axi_aruser_o,
  input  logic             m_axi_rvalid_i,
  output logic             m_axi_rready_o,
  input  logic [IdW-1:0]   m_axi_rid_i,
  input  logic [DataW-1:0] m_axi_rdata_i,
  input  logic [1:0]       m_axi_rresp_i,
  input  logic             m_axi_rlast_i,

  // MAC: AXI4-Stream.
  output logic             tx_axis_tvalid_o,
  input  logic             tx_axis_tready_i,
  output logic [DataW-1:0] tx_axis_tdata_o,   // Byte 0 of the frame in bits 7:0.
  output logic [StrbW-1:0] tx_axis_tkeep_o,
  output logic             tx_axis_tlast_o,
  input  logic             rx_axis_tvalid_i,  // No back-pressure.
  input  logic [DataW-1:0] rx_axis_tdata_i,
  input  logic [StrbW-1:0] rx_axis_tkeep_i,
  input  logic             rx_axis_tlast_i,
  input  logic             rx_axis_tuser_i,

  // MSI-X.
  output logic             msix_valid_o,
  input  logic             msix_ready_i,
  output logic [VecW-1:0]  msix_vector_o,
  output logic [7:0]       msix_owner_o,

  // Management bus and its event output.
  input  logic             mgmt_valid_i,
  output logic             mgmt_ready_o,      // High for one cycle at the end of an access.
  input  logic             mgmt_write_i,
  input  logic [12:0]      mgmt_addr_i,       // Byte address, multiple of 4.
  input  logic [31:0]      mgmt_wdata_i,
  output logic [31:0]      mgmt_rdata_o,      // Valid with mgmt_ready_o.
  output logic             mgmt_event_o,

  // Time.
  output logic             idle_o,
  output logic             deadline_valid_o,
  output logic [31:0]      deadline_o         // Ticks from now, at least 1.
);
endmodule
