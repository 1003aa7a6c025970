// SPDX-License-Identifier: Apache-2.0
// Serialises a header stack and its payload into an AXI4-Stream frame.
//
// Whole:   a frame is started only when offered with its whole payload stored, so
//          `tvalid` does not drop inside a frame while the MAC is ready.
// Padded:  frames shorter than 60 bytes are padded with zeros.
// Full rate: one beat per cycle, also across frames.

`include "heddle_assert.svh"

module heddle_tx_framer
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             head_valid_i,
  output logic             head_ready_o,
  input  frame_head_t      head_i,
  input  logic             pay_valid_i,
  output logic             pay_ready_o,
  input  logic [DataW-1:0] pay_data_i,    // First byte in lane 0; starts on a new beat per frame.

  output logic             tvalid_o,
  input  logic             tready_i,
  output logic [DataW-1:0] tdata_o,
  output logic [StrbW-1:0] tkeep_o,
  output logic             tlast_o,

  output logic             frame_o,       // Strobe with the last beat taken.
  output logic [13:0]      frame_bytes_o, // Its length; valid with frame_o.
  output logic             idle_o
);
endmodule
