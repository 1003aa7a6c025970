// SPDX-License-Identifier: Apache-2.0
// DMA read engine: many tagged AXI4 reads outstanding, each client served in order.
//
// Ordered:   a client's data returns in the order of its requests, whatever
//            order the host returns tags in; clients do not wait for each other.
// Aligned:   the first byte of a request is in lane 0 of its first beat.
// Reserved:  a read is issued only when room for all of its data is free.
// Errors:    `rsp_error_o` with `rsp_last_o` tells that any part was refused;
//            the data of such a request is undefined but complete in length.
// Splits requests at 4 KiB and at 256 beats.

`include "heddle_assert.svh"

module heddle_dma_read
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumRd-1:0]                       req_valid_i,
  output logic [NumRd-1:0]                       req_ready_o,
  input  logic [NumRd-1:0][$bits(dma_req_t)-1:0] req_i,

  output logic [NumRd-1:0]                       rsp_valid_o,
  input  logic [NumRd-1:0]                       rsp_ready_i,
  output logic [NumRd-1:0][DataW-1:0]            rsp_data_o,
  output logic [NumRd-1:0]                       rsp_last_o,   // Last beat of a request.
  output logic [NumRd-1:0]                       rsp_error_o,

  output logic                                   m_axi_arvalid_o,
  input  logic                                   m_axi_arready_i,
  output logic [8:0]                             m_axi_arid_o,
  output logic [63:0]                            m_axi_araddr_o,
  output logic [7:0]                             m_axi_arlen_o,
  output logic [2:0]                             m_axi_arsize_o,
  output logic [1:0]                             m_axi_arburst_o,
  output logic [7:0]                             m_axi_aruser_o,
  input  logic                                   m_axi_rvalid_i,
  output logic                                   m_axi_rready_o,
  input  logic [8:0]                             m_axi_rid_i,
  input  logic [DataW-1:0]                       m_axi_rdata_i,
  input  logic [1:0]                             m_axi_rresp_i,
  input  logic                                   m_axi_rlast_i,

  output logic                                   error_o,      // Strobe: a request was refused.
  output logic                                   idle_o        // Nothing outstanding or buffered.
);
endmodule
