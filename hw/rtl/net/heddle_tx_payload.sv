// SPDX-License-Identifier: Apache-2.0
// Holds the payload of frames to send until it is complete, and sums it.
//
// Complete: `rec_valid_o` offers one record per DMA request, in order, only when
//           all its beats are stored (or the read failed: then its beats are
//           dropped here and never offered on the payload output).
// Sum:      ones' complement sum of the payload's 16-bit big-endian words, as the
//           UDP checksum counts them, an odd last byte padded with zero. Bytes
//           beyond `rec_bytes` of the request are not counted: the length of each
//           request comes through `len_*`, one entry per request, in order.

`include "heddle_assert.svh"

module heddle_tx_payload
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             len_valid_i,   // Length of a payload that was requested.
  output logic             len_ready_o,
  input  logic [13:0]      len_bytes_i,

  input  logic             rsp_valid_i,   // From the DMA read engine.
  output logic             rsp_ready_o,
  input  logic [DataW-1:0] rsp_data_i,
  input  logic             rsp_last_i,
  input  logic             rsp_error_i,

  output logic             rec_valid_o,
  input  logic             rec_ready_i,
  output logic             rec_error_o,
  output logic [15:0]      rec_sum_o,

  output logic             out_valid_o,   // To the framer.
  input  logic             out_ready_i,
  output logic [DataW-1:0] out_data_o
);
endmodule
