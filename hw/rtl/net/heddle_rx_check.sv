// SPDX-License-Identifier: Apache-2.0
// End-to-end CRC of received frames, one beat per cycle.
//
// It covers the frame from the IP source address to its own four bytes, which end the
// IP datagram; the UDP checksum, if there is UDP, counts as zero. A frame's output is valid two cycles
// after its last beat, in either order of the four bytes.

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
  input  logic [6:0]       l4_i,         // UDP header, or that of native IP.
  input  logic [16:0]      ip_end_i,     // End of the IP datagram, right with byte 5 of that header.
  input  logic             native_i,     // Native IP: no UDP.
  input  logic             crc_i,        // There is a CRC,
  input  logic             msb_first_i,  // its most significant byte first.

  output logic             crc_ok_o
);
  localparam int unsigned Trailer = 4;

  // ---------------------------------------------------------- stage 1: mask
  logic [16:0]      crc_end;   // Byte of the frame where the CRC starts.
  logic [DataW-1:0] covered;
  logic             ended;     // All of the beat is behind the covered bytes.
  logic [StrbW-1:0] keep, invert;  // Lanes.
  assign crc_end = ip_end_i - 17'(Trailer);

  // A start from all ones is a start from zero with the first four bytes inverted.
  logic [6:0] at;
  always_comb begin
    keep   = '1;
    invert = '0;
    ended  = 1'b0;
    at     = '0;
    if (valid_i && crc_i) begin
      if (pos_i[13:LaneW] < (14 - LaneW)'(source_i[6:LaneW])) keep = '0;
      else if (pos_i[13:LaneW] == (14 - LaneW)'(source_i[6:LaneW])) begin
        keep = {StrbW{1'b1}} << source_i[LaneW-1:0];
      end
      at = l4_i + 7'd5;
      if (pos_i[13:LaneW] >= (14 - LaneW)'(at[6:LaneW])) begin  // The IP length is there.
        ended = crc_end <= {3'b0, pos_i};
        if (crc_end >> LaneW == {3'b0, pos_i} >> LaneW) begin
          keep = keep & ~({StrbW{1'b1}} << crc_end[LaneW-1:0]);
        end
      end
      if (pos_i[13:7] == '0) begin
        for (int unsigned i = 0; i < 4; i++) begin
          at = source_i + 7'(i);
          if (at[6:LaneW] == pos_i[6:LaneW]) invert = invert | StrbW'(1) << at[LaneW-1:0];
        end
        for (int unsigned i = 6; i < 8; i++) begin  // The UDP checksum.
          at = l4_i + 7'(i);
          if (!native_i && at[6:LaneW] == pos_i[6:LaneW]) keep = keep & ~(StrbW'(1) << at[LaneW-1:0]);
        end
      end
    end
  end

  always_comb begin
    covered = '0;
    if (valid_i && crc_i) begin
      for (int unsigned i = 0; i < StrbW; i++) begin
        covered[8*i +: 8] = (beat_i[8*i +: 8] ^ {8{invert[i]}}) & {8{keep[i]}};
      end
    end
  end

  // The CRC's bytes of this beat, in their places among the four.
  logic [LaneW-3:0] word;
  logic [31:0]      sent;
  logic [3:0]       here;
  assign word = crc_end[LaneW-1:2];
  always_comb begin
    sent = '0;
    here = '0;
    if (valid_i && crc_i) begin
      sent = 32'({beat_i[{word + 1'b1, 5'd0} +: 32], beat_i[{word, 5'd0} +: 32]} >>
                 {crc_end[1:0], 3'b000});
      for (int unsigned i = 0; i < Trailer; i++) begin
        here[i] = (crc_end + 17'(i)) >> LaneW == {3'b0, pos_i} >> LaneW;
      end
    end
  end

  logic             valid2_q, last2_q, ended2_q, crc2_q, msb_first2_q;
  logic [DataW-1:0] covered2_q;
  logic [31:0]      sent2_q;
  logic [LaneW-1:0] behind2_q;   // Lanes of the last covered beat behind its covered bytes.

  // ----------------------------------------------------------- stage 2: beat
  logic [31:0] crc_beat, crc, crc_q, crc3_q;
  heddle_crc32c #(.DataW(DataW)) u_crc (
    .en_i   (valid2_q && crc2_q && !ended2_q),
    .crc_i  (crc_q),
    .data_i (covered2_q),
    .crc_o  (crc_beat)
  );
  assign crc = ended2_q ? crc_q : crc_beat;

  // What the register of a good frame holds: the state that was sent, moved over the zero
  // bytes that fill the last covered beat.
  logic [31:0] value, power, wanted, wanted3_q;
  assign value = msb_first2_q ? {sent2_q[7:0], sent2_q[15:8], sent2_q[23:16], sent2_q[31:24]}
                              : sent2_q;
  heddle_crc32c_power #(.CountW(LaneW)) u_power (
    .count_i (behind2_q),
    .power_o (power)
  );
  heddle_crc32c_mul u_wanted (
    .en_i      (valid2_q && last2_q && crc2_q),
    .a_i       (~value),
    .b_i       (power),
    .product_o (wanted)
  );

  // ---------------------------------------------------------- stage 3: frame
  assign crc_ok_o = crc3_q == wanted3_q;

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      crc2_q <= crc_i;
      if (crc_i) begin
        covered2_q   <= covered;
        ended2_q     <= ended;
        msb_first2_q <= msb_first_i;
        behind2_q    <= LaneW'(0) - crc_end[LaneW-1:0];
        for (int unsigned i = 0; i < Trailer; i++) begin
          if (here[i]) sent2_q[8*i +: 8] <= sent[8*i +: 8];
        end
      end
    end
    if (valid2_q && crc2_q) begin
      crc3_q    <= crc;
      wanted3_q <= wanted;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid2_q <= 1'b0;
      last2_q  <= 1'b0;
      crc_q    <= '0;
    end else begin
      valid2_q <= valid_i;
      last2_q  <= last_i;
      if (valid2_q && crc2_q) crc_q <= last2_q ? '0 : crc;
    end
  end
endmodule
