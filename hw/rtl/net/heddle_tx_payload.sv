// SPDX-License-Identifier: Apache-2.0
// Holds the payload of frames to send until it is complete, and computes its CRC.
//
// Complete: `rec_valid_o` offers one record per DMA request, in order, only when
//           all its beats are stored (or the read failed: then its beats are
//           dropped here and never offered on the payload output).
// CRC:      raw CRC-32C state of the payload alone, started from 0 (heddle_crc32c).
//           Bytes beyond the request's length do not count: it comes through `len_*`,
//           one entry per request, in order.

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
  output logic [31:0]      rec_crc_o,

  output logic             out_valid_o,   // To the framer.
  input  logic             out_ready_i,
  output logic [DataW-1:0] out_data_o
);
  // Room for two packets of 8 KiB and the bytes of a third on its way.
  localparam int unsigned StoreBeats = 16384 / StrbW;
  localparam int unsigned RecDepth   = 64;
  localparam int unsigned RecCountW  = $clog2(RecDepth) + 1;

  // ------------------------------------------------------------- lengths
  logic        len_valid, len_pop;
  logic [13:0] len_bytes;
  logic [8:0]  unused_len_count;

  heddle_fifo #(.Width(14), .Depth(256)) u_len (
    .clk_i,
    .rst_ni,
    .valid_i (len_valid_i),
    .ready_o (len_ready_o),
    .data_i  (len_bytes_i),
    .valid_o (len_valid),
    .ready_i (len_pop),
    .data_o  (len_bytes),
    .count_o (unused_len_count)
  );

  // ------------------------------------------------------------- storage
  logic full, accept, end_q, error_q;
  logic [RecCountW-1:0] rec_count;

  // Three records may be in the pipeline of the CRC.
  assign rsp_ready_o = len_valid && !full && rec_count < RecCountW'(RecDepth - 3);
  assign accept      = rsp_valid_i && rsp_ready_o;
  assign len_pop     = accept && rsp_last_i;

  logic unused_empty;
  heddle_store #(.Width(DataW), .Depth(StoreBeats)) u_store (
    .clk_i,
    .rst_ni,
    .write_i    (accept),
    .data_i     (rsp_data_i),
    .commit_i   (end_q && !error_q),
    .rollback_i (end_q && error_q),
    .full_o     (full),
    .valid_o    (out_valid_o),
    .ready_i    (out_ready_i),
    .data_o     (out_data_o),
    .empty_o    (unused_empty)
  );

  // ----------------------------------------------------------------- CRC
  logic [13:0] left_q, left;   // Bytes of the request from this beat on.
  logic        started_q;      // Not the first beat of its request.
  logic [DataW-1:0] masked;

  assign left = started_q ? left_q : len_bytes;

  always_comb begin
    masked = rsp_data_i;
    if (accept && left < 14'(StrbW)) begin
      masked = rsp_data_i & ~({DataW{1'b1}} << {left, 3'b000});
    end
  end

  logic             beat_q;
  logic [DataW-1:0] beat_data_q;
  logic             part_end_q, part_error_q;

  // The zeros that fill the last beat are counted and then taken back.
  localparam int unsigned PadW = $clog2(StrbW);

  logic [PadW-1:0] pad_q;      // Bytes that the beat does not have.
  logic [31:0]     crc_q, crc, power, power_q, crc_total;
  logic            crc_more_q; // `crc_q` is of the same payload.

  heddle_crc32c #(.DataW(DataW)) u_crc (
    .en_i   (beat_q),
    .crc_i  (crc_more_q ? crc_q : '0),
    .data_i (beat_data_q),
    .crc_o  (crc)
  );
  heddle_crc32c_power #(.CountW(PadW), .Inverse(1'b1)) u_power (
    .count_i (pad_q),
    .power_o (power)
  );
  heddle_crc32c_mul u_pad (
    .en_i      (part_end_q),
    .a_i       (crc_q),
    .b_i       (power_q),
    .product_o (crc_total)
  );

  always_ff @(posedge clk_i) begin
    if (accept) begin
      pad_q       <= left < 14'(StrbW) ? PadW'(14'(StrbW) - left) : '0;
      beat_data_q <= masked;
      error_q     <= rsp_error_i;
      left_q      <= left > 14'(StrbW) ? left - 14'(StrbW) : '0;
    end
    if (beat_q) begin
      crc_q        <= crc;
      power_q      <= power;
      part_error_q <= error_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      started_q  <= 1'b0;
      beat_q     <= 1'b0;
      end_q      <= 1'b0;
      part_end_q <= 1'b0;
      crc_more_q <= 1'b0;
    end else begin
      if (accept) started_q <= !rsp_last_i;
      beat_q     <= accept;
      end_q      <= accept && rsp_last_i;
      part_end_q <= end_q;
      if (beat_q) crc_more_q <= !end_q;
    end
  end

  // ------------------------------------------------------------- records
  logic unused_rec_ready;
  heddle_fifo #(.Width(33), .Depth(RecDepth)) u_rec (
    .clk_i,
    .rst_ni,
    .valid_i (part_end_q),
    .ready_o (unused_rec_ready),
    .data_i  ({part_error_q, crc_total}),
    .valid_o (rec_valid_o),
    .ready_i (rec_ready_i),
    .data_o  ({rec_error_o, rec_crc_o}),
    .count_o (rec_count)
  );

  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : gen_bad_width
    $error("DataW must be 64, 128, 256 or 512");
  end

  `HEDDLE_ASSERT(CompleteRecordKept_A, !part_end_q || unused_rec_ready)
  `HEDDLE_ASSERT(CompleteStreamEnds_A, accept && rsp_last_i |-> left <= 14'(StrbW))
endmodule
