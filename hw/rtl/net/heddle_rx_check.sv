// SPDX-License-Identifier: Apache-2.0
// UDP checksum and end-to-end CRC of received frames, one beat per cycle.
//
// Both cover the frame from the IP source address to the end of the datagram; the CRC
// takes the UDP checksum for zero and includes its own four bytes, which makes it a
// constant when it is right. A frame's outputs are valid two cycles after its last beat.

module heddle_rx_check #(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8,
  localparam int unsigned LaneW = $clog2(StrbW)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             valid_i,
  input  logic             last_i,
  input  logic [DataW-1:0] beat_i,
  input  logic [13:0]      pos_i,        // Of the beat in the frame.
  // Bytes of the frame, right once these bytes are in this or an earlier beat.
  input  logic [6:0]       source_i,     // IP source address.
  input  logic [6:0]       l4_i,         // UDP header.
  input  logic [15:0]      udp_bytes_i,  // UDP length.
  input  logic             crc_i,        // There is a CRC.

  output logic             sum_ok_o,
  output logic             crc_ok_o
);
  localparam logic [31:0] Poly = 32'h82f6_3b78;

  // Raw CRC behind the CRC's own bytes and n zero bytes, by n.
  function automatic logic [32*StrbW-1:0] Residues(input logic [31:0] start);
    logic [31:0] crc;
    crc = start;
    for (int unsigned i = 0; i < 32; i++) crc = crc[0] ? (crc >> 1) ^ Poly : crc >> 1;
    for (int unsigned n = 0; n < StrbW; n++) begin
      Residues[32*n +: 32] = crc;
      for (int unsigned i = 0; i < 8; i++) crc = crc[0] ? (crc >> 1) ^ Poly : crc >> 1;
    end
  endfunction

  localparam logic [32*StrbW-1:0] Residue = Residues('1);

  // ---------------------------------------------------------- stage 1: mask
  logic [16:0]      sum_end, sum_left;
  logic [DataW-1:0] masked, covered;
  logic             ended;   // All of the beat is behind the datagram.
  logic             early;   // Part of it may be in front of the UDP header's end.
  assign sum_end  = 17'(udp_bytes_i) + 17'(l4_i);
  assign sum_left = sum_end - {3'b0, pos_i};
  assign early    = pos_i[13:7] == '0;

  always_comb begin
    masked = beat_i;
    ended  = 1'b0;
    if (valid_i) begin
      if (pos_i < 14'(source_i)) begin
        if (pos_i + 14'(StrbW) <= 14'(source_i)) masked = '0;
        else masked = masked & ({DataW{1'b1}} << {14'(source_i) - pos_i, 3'b000});
      end
      if (pos_i + 14'(StrbW) >= 14'(l4_i) + 14'd6) begin  // The UDP length is there.
        ended = sum_end <= {3'b0, pos_i};
        if (ended) masked = '0;
        else if (sum_left < 17'(StrbW)) masked = masked & ~({DataW{1'b1}} << {sum_left, 3'b000});
      end
    end
  end

  // A start from all ones is a start from zero with the first four bytes inverted.
  logic [6:0] at;
  always_comb begin
    covered = masked;
    at      = '0;
    if (valid_i && crc_i && early) begin
      for (int unsigned i = 0; i < 4; i++) begin
        at = source_i + 7'(i);
        if (at[6:LaneW] == pos_i[6:LaneW]) begin
          covered[{at[LaneW-1:0], 3'b000} +: 8] = ~masked[{at[LaneW-1:0], 3'b000} +: 8];
        end
      end
      for (int unsigned i = 6; i < 8; i++) begin
        at = l4_i + 7'(i);
        if (at[6:LaneW] == pos_i[6:LaneW]) covered[{at[LaneW-1:0], 3'b000} +: 8] = '0;
      end
    end
  end

  logic             valid2_q, last2_q, last3_q, valid3_q, ended2_q, crc2_q;
  logic [DataW-1:0] masked2_q, covered2_q;
  logic [15:0]      udp_bytes2_q, udp_bytes3_q;
  logic [LaneW-1:0] behind2_q, behind3_q;   // Lanes of the last beat behind the datagram.

  // ----------------------------------------------------------- stage 2: beat
  logic [15:0] part, part3_q;
  logic [31:0] crc_beat, crc, crc_q, crc3_q;
  heddle_beat_sum #(.DataW(DataW)) u_sum (
    .en_i   (valid2_q),
    .data_i (masked2_q),
    .sum_o  (part)
  );
  heddle_crc32c #(.DataW(DataW)) u_crc (
    .en_i   (valid2_q && crc2_q && !ended2_q),
    .crc_i  (crc_q),
    .data_i (covered2_q),
    .crc_o  (crc_beat)
  );
  assign crc = ended2_q ? crc_q : crc_beat;

  // ---------------------------------------------------------- stage 3: frame
  logic [15:0] total3_q, total, checked;
  logic [17:0] total_wide, pseudo_wide;
  logic [16:0] total_fold, pseudo_fold;
  assign total_wide  = {2'b0, total3_q} + {2'b0, part3_q};
  assign total_fold  = {1'b0, total_wide[15:0]} + {15'b0, total_wide[17:16]};
  assign total       = total_fold[15:0] + {15'b0, total_fold[16]};
  // The rest of the pseudo header is the protocol and the length.
  assign pseudo_wide = {2'b0, total} + {2'b0, udp_bytes3_q} + 18'd17;
  assign pseudo_fold = {1'b0, pseudo_wide[15:0]} + {15'b0, pseudo_wide[17:16]};
  assign checked     = pseudo_fold[15:0] + {15'b0, pseudo_fold[16]};
  assign sum_ok_o    = checked == '1;
  assign crc_ok_o    = crc3_q == Residue[{behind3_q, 5'b0} +: 32];

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      masked2_q    <= masked;
      ended2_q     <= ended;
      crc2_q       <= crc_i;
      udp_bytes2_q <= udp_bytes_i;
      behind2_q    <= LaneW'(0) - sum_end[LaneW-1:0];
      if (crc_i) covered2_q <= covered;
    end
    if (valid2_q) begin
      part3_q      <= part;
      crc3_q       <= crc;
      udp_bytes3_q <= udp_bytes2_q;
      behind3_q    <= behind2_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid2_q <= 1'b0;
      last2_q  <= 1'b0;
      valid3_q <= 1'b0;
      last3_q  <= 1'b0;
      total3_q <= '0;
      crc_q    <= '0;
    end else begin
      valid2_q <= valid_i;
      last2_q  <= last_i;
      valid3_q <= valid2_q;
      last3_q  <= last2_q;
      if (valid3_q) total3_q <= last3_q ? '0 : total;
      if (valid2_q) crc_q    <= last2_q ? '0 : crc;
    end
  end
endmodule
