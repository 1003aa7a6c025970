// SPDX-License-Identifier: Apache-2.0
// Slow path: neighbour frames between the MAC and firmware.
//
// Takes:    good frames of ARP, and ICMPv6 neighbor solicitations and advertisements directly
//           behind the IPv6 header, in the VLAN of the port (0: untagged or priority-tagged).
//           Their contents are firmware's to check. A frame of these that is longer than
//           SlowPathRxBytes, finds no room, or exceeds the rate limit is dropped and counted;
//           nothing is counted for other frames and for those the MAC found bad.
// Limited:  SlowPathRate frames per window of SlowPathWindowTicks; a window begins with the
//           first frame that comes when none runs.
// Sends:    one frame at a time, of at most SlowPathTxBytes, as a header stack without payload.
// No back-pressure on the MAC.

`include "heddle_assert.svh"

module heddle_slow_path
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  port_cfg_t         port_i,

  // From the MAC.
  input  logic              tvalid_i,
  input  logic [DataW-1:0]  tdata_i,
  input  logic [StrbW-1:0]  tkeep_i,
  input  logic              tlast_i,
  input  logic              tuser_i,     // With tlast: bad frame.

  // Frame for firmware, from heddle_mgmt.
  output logic [13:0]       rx_bytes_o,  // Length of the waiting frame; 0: none.
  input  logic              rx_pop_i,
  input  logic [5:0]        rx_word_i,
  output logic [31:0]       rx_data_o,   // The word of the cycle before.

  // Frame from firmware.
  input  logic              tx_wen_i,
  input  logic [5:0]        tx_word_i,
  input  logic [31:0]       tx_data_i,
  output logic [31:0]       tx_data_o,   // Word `tx_word_i`, same cycle.
  input  logic              tx_go_i,     // Ignored while `tx_busy_o`, as are writes.
  input  logic [13:0]       tx_bytes_i,
  output logic [13:0]       tx_bytes_o,  // Of the last frame.
  output logic              tx_busy_o,

  output logic              head_valid_o,
  input  logic              head_ready_i,
  output frame_head_t       head_o,

  output logic [NumStat-1:0] stat_o,
  output logic              idle_o,
  output logic              deadline_valid_o,
  output logic [31:0]       deadline_o   // Ticks until the window ends.
);
  localparam int unsigned LaneW     = $clog2(StrbW);
  localparam int unsigned SlotBeats = SlowPathRxBytes / StrbW;
  localparam int unsigned BeatW     = $clog2(SlotBeats);
  localparam int unsigned SlotW     = $clog2(SlowPathFrames);
  localparam int unsigned WordsLog2 = $clog2(StrbW / 4);        // Words of a beat.

  localparam logic [15:0] EtherArp  = 16'h0806;
  localparam logic [15:0] EtherIpv6 = 16'h86dd;
  localparam logic [15:0] EtherVlan = 16'h8100;
  localparam logic [7:0]  NextIcmp  = 8'd58;

  // ------------------------------------------------------ bytes that decide
  // Offsets in a frame; 16-bit fields are at even ones, so they do not cross beats.
  localparam int unsigned TypeAt     = 12;
  localparam int unsigned TagAt      = 14;  // Behind an outer 0x8100.
  localparam int unsigned InnerAt    = 16;
  localparam int unsigned NextAt     = EthernetBytes + 6;
  localparam int unsigned IcmpAt     = EthernetBytes + Ipv6Bytes;

  // Beats of the frame so far; sticks at SlotBeats, where the frame is too long.
  logic [BeatW:0]   beat_q;
  logic             begun_q;
  logic [BeatW:0]   beat;
  logic [LaneW:0]   kept;
  assign beat = begun_q ? beat_q : '0;

  always_comb begin
    kept = '0;
    if (tvalid_i && tlast_i) begin
      for (int unsigned i = 0; i < StrbW; i++) kept = kept + (LaneW + 1)'(tkeep_i[i]);
    end
  end

  logic [15:0] type_q, tag_q, inner_q;
  logic [7:0]  next_q, next_tagged_q, icmp_q, icmp_tagged_q;

  // Bytes behind the end of a short frame may decide too: firmware checks lengths.
  always_ff @(posedge clk_i) begin
    if (tvalid_i) begin
      if (!begun_q) begin
        {type_q, tag_q, inner_q}                                <= '0;
        {next_q, next_tagged_q, icmp_q, icmp_tagged_q}          <= '0;
      end
      if (32'(beat) == TypeAt / StrbW) begin
        type_q <= {tdata_i[8*(TypeAt % StrbW) +: 8], tdata_i[8*(TypeAt % StrbW) + 8 +: 8]};
      end
      if (32'(beat) == TagAt / StrbW) begin
        tag_q <= {tdata_i[8*(TagAt % StrbW) +: 8], tdata_i[8*(TagAt % StrbW) + 8 +: 8]};
      end
      if (32'(beat) == InnerAt / StrbW) begin
        inner_q <= {tdata_i[8*(InnerAt % StrbW) +: 8], tdata_i[8*(InnerAt % StrbW) + 8 +: 8]};
      end
      if (32'(beat) == NextAt / StrbW) next_q <= tdata_i[8*(NextAt % StrbW) +: 8];
      if (32'(beat) == (NextAt + VlanBytes) / StrbW) begin
        next_tagged_q <= tdata_i[8*((NextAt + VlanBytes) % StrbW) +: 8];
      end
      if (32'(beat) == IcmpAt / StrbW) icmp_q <= tdata_i[8*(IcmpAt % StrbW) +: 8];
      if (32'(beat) == (IcmpAt + VlanBytes) / StrbW) begin
        icmp_tagged_q <= tdata_i[8*((IcmpAt + VlanBytes) % StrbW) +: 8];
      end
    end
  end

  // ------------------------------------------------------------- end of frame
  logic        done_q, bad_q, stored_q;   // The frame ended; its whole length was stored.
  logic [13:0] bytes_q;
  logic        room;

  // Registered stages: beats are stored as they come, the frame is judged a cycle later.
  logic [SlotW:0]  write_q, read_q;       // Free-running slot counts.
  logic            keep, has_tag, ours, neighbour, wanted, limited;
  logic [15:0]     ethertype;
  logic [7:0]      icmp;
  logic            is_icmp;
  assign room      = (SlotW + 1)'(write_q - read_q) != (SlotW + 1)'(SlowPathFrames);
  assign has_tag    = type_q == EtherVlan;
  assign ethertype = has_tag ? inner_q : type_q;
  assign ours      = (has_tag ? tag_q[11:0] : '0) == port_i.vlan[11:0];
  assign is_icmp   = (has_tag ? next_tagged_q : next_q) == NextIcmp;
  assign icmp      = has_tag ? icmp_tagged_q : icmp_q;
  assign neighbour = ethertype == EtherArp ||
                     (ethertype == EtherIpv6 && is_icmp &&
                      (icmp == Icmpv6TypeNeighborSolicitation ||
                       icmp == Icmpv6TypeNeighborAdvertisement));
  assign wanted    = done_q && !bad_q && ours && neighbour && port_i.enable[0];
  assign keep      = wanted && stored_q && !limited;

  // The slot that this frame fills: the next one, unless the frame before it is being kept in
  // the cycle in which this one's first beat comes.
  logic [SlotW:0] slot;
  logic           slot_free, lost_q, lost;
  assign slot      = keep ? write_q + 1'b1 : write_q;
  assign slot_free = keep ? (SlotW + 1)'(slot - read_q) != (SlotW + 1)'(SlowPathFrames) : room;
  assign lost      = (begun_q && lost_q) || !slot_free || beat == (BeatW + 1)'(SlotBeats);

  logic                    store;
  logic [SlotW+BeatW-1:0]  store_at;
  assign store    = tvalid_i && !lost;
  assign store_at = {slot[SlotW-1:0], beat[BeatW-1:0]};

  logic [SlowPathFrames-1:0][13:0] length_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
      done_q  <= 1'b0;
      write_q <= '0;
      read_q  <= '0;
    end else begin
      if (tvalid_i) begun_q <= !tlast_i;
      done_q <= tvalid_i && tlast_i;
      if (keep) write_q <= write_q + 1'b1;
      if (rx_pop_i && write_q != read_q) read_q <= read_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (tvalid_i) begin
      beat_q <= beat == (BeatW + 1)'(SlotBeats) ? beat : beat + 1'b1;
      lost_q <= lost;
      if (tlast_i) begin
        bad_q    <= tuser_i;
        stored_q <= !lost;
        bytes_q  <= (14'(beat) << LaneW) + 14'(kept);
      end
    end
    if (keep) length_q[write_q[SlotW-1:0]] <= bytes_q;
  end

  // -------------------------------------------------------------- rate limit
  localparam int unsigned RateW   = $clog2(SlowPathRate + 1);
  localparam int unsigned WindowW = $clog2(SlowPathWindowTicks + 1);
  logic [RateW-1:0]   taken_q;   // Frames of this window.
  logic [WindowW-1:0] window_q;  // Ticks until it ends; 0: none runs.
  assign limited = window_q != '0 && 32'(taken_q) == SlowPathRate;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      taken_q  <= '0;
      window_q <= '0;
    end else begin
      if (tick_i && window_q != '0) window_q <= window_q - 1'b1;
      if (keep) begin
        if (window_q == '0) begin
          window_q <= WindowW'(SlowPathWindowTicks);
          taken_q  <= RateW'(1);
        end else begin
          taken_q  <= taken_q + 1'b1;
        end
      end
    end
  end
  assign deadline_valid_o = window_q != '0;
  assign deadline_o       = 32'(window_q);

  // ---------------------------------------------------------------- to firmware
  logic [DataW-1:0] beat_out;
  logic [WordsLog2-1:0] word_q;  // Of the beat.
  logic             mem_error, mem_ready;
  heddle_mem #(.Width(DataW), .Depth(SlowPathFrames * SlotBeats), .Init(1'b0)) u_frames (
    .clk_i, .rst_ni,
    .wen_i(store), .waddr_i(store_at), .wdata_i(tdata_i),
    .raddr_i({read_q[SlotW-1:0], rx_word_i[5 -: BeatW]}), .rdata_o(beat_out),
    .error_o(mem_error), .ready_o(mem_ready)
  );
  always_ff @(posedge clk_i) word_q <= rx_word_i[WordsLog2-1:0];
  assign rx_data_o  = beat_out[32*word_q +: 32];
  assign rx_bytes_o = write_q != read_q ? length_q[read_q[SlotW-1:0]] : '0;

  // -------------------------------------------------------------- from firmware
  localparam int unsigned TxWords = SlowPathTxBytes / 4;
  logic [TxWords-1:0][31:0] tx_q;
  logic [13:0]              tx_bytes_q;
  logic                     tx_busy_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tx_q       <= '0;
      tx_bytes_q <= '0;
      tx_busy_q  <= 1'b0;
    end else if (tx_busy_q) begin
      tx_busy_q <= !head_ready_i;
    end else begin
      if (tx_wen_i && 32'(tx_word_i) < TxWords) tx_q[tx_word_i] <= tx_data_i;
      if (tx_go_i && tx_bytes_i != '0) begin
        tx_busy_q  <= 1'b1;
        tx_bytes_q <= 32'(tx_bytes_i) > SlowPathTxBytes ? 14'(SlowPathTxBytes) : tx_bytes_i;
      end
    end
  end

  assign tx_busy_o    = tx_busy_q;
  assign tx_bytes_o   = tx_bytes_q;
  assign tx_data_o    = 32'(tx_word_i) < TxWords ? tx_q[tx_word_i] : '0;
  assign head_valid_o = tx_busy_q;
  always_comb begin
    head_o = '0;
    for (int unsigned i = 0; i < SlowPathTxBytes; i++) begin
      if (tx_busy_q && 14'(i) < tx_bytes_q) begin
        head_o.bytes[HdrW - 8*(i+1) +: 8] = tx_q[i/4][8*(i%4) +: 8];
      end
    end
    head_o.length = tx_bytes_q[7:0];
  end

  always_comb begin
    stat_o = '0;
    stat_o[StatisticSlowPathRx]    = keep;
    stat_o[StatisticSlowPathDrops] = wanted && !keep;
    stat_o[StatisticSlowPathTx]    = head_valid_o && head_ready_i;
  end

  // A frame that waits for firmware is an event, not work of this unit.
  assign idle_o = !begun_q && !done_q && !tx_busy_q;

  logic unused_bits;
  assign unused_bits = ^{port_i, mem_error, mem_ready, tag_q};

  if (HdrBytes < SlowPathTxBytes || (SlowPathFrames & (SlowPathFrames - 1)) != 0) begin : gen_bad
    $error("SlowPathTxBytes must fit a header stack, SlowPathFrames be a power of two");
  end

  `HEDDLE_ASSERT(OfferHeld_A, head_valid_o && !head_ready_i |=> head_valid_o && $stable(head_o))
endmodule
