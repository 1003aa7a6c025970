// SPDX-License-Identifier: Apache-2.0
// Serialises a header stack, its payload and the end-to-end CRC into an AXI4-Stream frame.
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
  localparam int unsigned MinFrame = 60;             // Without FCS.
  localparam int unsigned Trailer  = 4;              // Bytes of the end-to-end CRC.
  localparam int unsigned LaneW    = $clog2(StrbW);
  // Header bits, a whole number of beats.
  localparam int unsigned StoreW   = (HdrW + DataW - 1) / DataW * DataW;

  frame_head_t head;
  assign head = head_i;

  // First byte of the header stack in lane 0.
  logic [StoreW-1:0] head_lanes;
  always_comb begin
    head_lanes = '0;
    if (head_valid_i && head_ready_o) begin
      for (int unsigned i = 0; i < HdrBytes; i++) begin
        head_lanes[8*i +: 8] = head.bytes[HdrW - 8*(i+1) +: 8];
      end
    end
  end

  logic [13:0] body, total;  // Header and payload; the trailer too.
  assign body  = {6'b0, head.length} + head.payload_bytes;
  assign total = body + (head.trailer ? 14'(Trailer) : 14'd0);

  // ------------------------------------------------ the frame in progress
  logic              busy_q;
  logic [StoreW-1:0] hdr_q;        // Header bytes not sent yet.
  logic [7:0]        hdr_left_q;   // Their number.
  logic [13:0]       pay_left_q;   // Payload bytes not taken yet.
  logic [13:0]       data_left_q;  // Header and payload bytes not sent yet.
  logic [31:0]       trailer_q;    // What was not sent of it; then 0.
  logic [13:0]       left_q;       // Bytes of the frame not sent yet.
  logic [13:0]       bytes_q;      // Length of the frame.
  logic [LaneW-1:0]  shift_q;      // Header bytes in the beat where the payload starts.
  logic [DataW-1:0]  prev_q;       // Last payload beat taken.

  logic room, last, mixed, need, emit;
  assign room  = !tvalid_o || tready_i;
  assign last  = left_q <= 14'(StrbW);
  assign mixed = hdr_left_q != '0;                      // The beat has header bytes.
  assign need  = hdr_left_q < 8'(StrbW) && pay_left_q != '0;
  assign emit  = busy_q && room && (!need || pay_valid_i);
  assign pay_ready_o  = busy_q && room && need;
  assign head_ready_o = !busy_q || (emit && last);

  logic [DataW-1:0] behind, merged, masked;
  heddle_funnel #(.DataW(DataW)) u_funnel (
    .en_i    (emit && hdr_left_q < 8'(StrbW)),
    .lo_i    (mixed ? '0 : prev_q),
    .hi_i    (pay_data_i),
    .shift_i ((LaneW + 1)'(StrbW) - {1'b0, shift_q}),
    .data_o  (behind)
  );

  always_comb begin
    merged = behind;
    masked = '0;
    if (emit) begin
      if (hdr_left_q >= 8'(StrbW)) begin
        merged = hdr_q[DataW-1:0];
      end else if (mixed) begin
        merged = (hdr_q[DataW-1:0] & ~({DataW{1'b1}} << {hdr_left_q, 3'b000})) | behind;
      end
      masked = merged;
      if (data_left_q < 14'(StrbW)) begin
        masked = merged & ~({DataW{1'b1}} << {data_left_q, 3'b000});
        masked = masked | ({{(DataW - 32){1'b0}}, trailer_q} << {data_left_q, 3'b000});
      end
    end
  end

  logic              out_valid_q, out_last_q;
  logic [DataW-1:0]  out_data_q;
  logic [StrbW-1:0]  out_keep_q;
  logic [13:0]       out_bytes_q;
  assign tvalid_o      = out_valid_q;
  assign tdata_o       = out_data_q;
  assign tkeep_o       = out_keep_q;
  assign tlast_o       = out_last_q;
  assign frame_o       = out_valid_q && tready_i && out_last_q;
  assign frame_bytes_o = out_bytes_q;
  assign idle_o        = !busy_q && !out_valid_q;

  always_ff @(posedge clk_i) begin
    if (emit) begin
      out_data_q  <= masked;
      out_keep_q  <= last ? ~({StrbW{1'b1}} << left_q) : {StrbW{1'b1}};
      out_last_q  <= last;
      out_bytes_q <= bytes_q;
      hdr_left_q  <= hdr_left_q > 8'(StrbW) ? hdr_left_q - 8'(StrbW) : '0;
      data_left_q <= data_left_q > 14'(StrbW) ? data_left_q - 14'(StrbW) : '0;
      left_q      <= left_q - 14'(StrbW);
      if (data_left_q < 14'(StrbW)) begin
        trailer_q <= trailer_q >> {14'(StrbW) - data_left_q, 3'b000};
      end
      if (mixed) hdr_q <= hdr_q >> DataW;
      if (need) begin
        prev_q     <= pay_data_i;
        pay_left_q <= pay_left_q > 14'(StrbW) ? pay_left_q - 14'(StrbW) : '0;
      end
    end
    if (head_valid_i && head_ready_o) begin
      hdr_q       <= head_lanes;
      hdr_left_q  <= head.length;
      pay_left_q  <= head.payload_bytes;
      data_left_q <= body;
      trailer_q   <= head.trailer ? head.crc : '0;
      left_q      <= total < 14'(MinFrame) ? 14'(MinFrame) : total;
      bytes_q     <= total < 14'(MinFrame) ? 14'(MinFrame) : total;
      shift_q     <= head.length[LaneW-1:0];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      if (head_ready_o) busy_q      <= head_valid_i;
      if (room)         out_valid_q <= emit;
    end
  end

  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : gen_bad_width
    $error("DataW must be 64, 128, 256 or 512");
  end

  `HEDDLE_ASSUME(PayloadStored_M, !(busy_q && need) || pay_valid_i)
  `HEDDLE_ASSERT(WholeFrame_A, tvalid_o && tready_i && !tlast_o |=> tvalid_o)
  `HEDDLE_ASSERT(OfferHeld_A, tvalid_o && !tready_i |=> tvalid_o && $stable(tdata_o))
endmodule
