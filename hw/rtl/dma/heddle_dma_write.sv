// SPDX-License-Identifier: Apache-2.0
// DMA write engine: all writes of the NIC on one AWID, in the order taken.
//
// Ordered:  a request taken earlier is on the bus completely before one taken
//           later; with one AWID host memory commits them in that order.
// Answered: `rsp_valid_o` pulses once per request, in order per client, when all
//           its write responses returned; `rsp_error_o` if any was an error.
// Data:     first byte of a request in lane 0 of its first beat, ceil(bytes/StrbW)
//           beats; taken only after the request.
// Splits requests at 4 KiB and at 256 beats. Fair between clients per request.

`include "heddle_assert.svh"

module heddle_dma_write
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumWr-1:0]                       req_valid_i,
  output logic [NumWr-1:0]                       req_ready_o,
  input  logic [NumWr-1:0][$bits(dma_req_t)-1:0] req_i,
  input  logic [NumWr-1:0]                       data_valid_i,
  output logic [NumWr-1:0]                       data_ready_o,
  input  logic [NumWr-1:0][DataW-1:0]            data_i,
  output logic [NumWr-1:0]                       rsp_valid_o,
  output logic [NumWr-1:0]                       rsp_error_o,

  output logic                                   m_axi_awvalid_o,
  input  logic                                   m_axi_awready_i,
  output logic [8:0]                             m_axi_awid_o,
  output logic [63:0]                            m_axi_awaddr_o,
  output logic [7:0]                             m_axi_awlen_o,
  output logic [2:0]                             m_axi_awsize_o,
  output logic [1:0]                             m_axi_awburst_o,
  output logic [7:0]                             m_axi_awuser_o,
  output logic                                   m_axi_wvalid_o,
  input  logic                                   m_axi_wready_i,
  output logic [DataW-1:0]                       m_axi_wdata_o,
  output logic [StrbW-1:0]                       m_axi_wstrb_o,
  output logic                                   m_axi_wlast_o,
  input  logic                                   m_axi_bvalid_i,
  output logic                                   m_axi_bready_o,
  input  logic [8:0]                             m_axi_bid_i,
  input  logic [1:0]                             m_axi_bresp_i,

  output logic                                   error_o,      // Strobe: a request was refused.
  output logic                                   idle_o        // Nothing outstanding.
);
endmodule
