// SPDX-License-Identifier: Apache-2.0
// Moves the first byte of each packet of a stream from any lane to lane 0.
//
// Aligned:   output beat k holds the bytes from `in_shift_i` + k x StrbW on.
// Full rate: one input beat per cycle, also across packets; but a packet of one
//            input beat or from lane 0 waits a cycle behind one with a tail.
// Latency:   1 cycle; `in_ready_o` is combinational from `out_ready_i`,
//            `in_first_i`, `in_last_i` and `in_shift_i`.

`include "heddle_assert.svh"

module heddle_align #(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  parameter  int unsigned UserW = 1,    // Bits that go with the end of a packet.
  localparam int unsigned LaneW = $clog2(DataW / 8)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [DataW-1:0] in_data_i,
  input  logic             in_first_i,
  input  logic             in_last_i,
  input  logic [LaneW-1:0] in_shift_i,  // Lane of the packet's first byte; with in_first_i.
  input  logic             in_tail_i,   // With in_last_i: bytes remain in lanes from in_shift_i on.
  input  logic [UserW-1:0] in_user_i,   // With in_last_i.

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [DataW-1:0] out_data_o,
  output logic             out_last_o,
  output logic [UserW-1:0] out_user_o   // With out_last_o.
);
  logic [DataW-1:0] prev_q, out_data_q;
  logic [LaneW-1:0] shift_q;
  logic             flush_q;       // The rest of a packet is in `prev_q`.
  logic             out_valid_q, out_last_q;
  logic [UserW-1:0] user_q, out_user_q;

  logic room, whole, emits, take, put;
  assign room  = !out_valid_q || out_ready_i;
  // The beat needs nothing of its predecessor.
  assign whole = in_first_i ? in_shift_i == '0 || in_last_i : shift_q == '0;
  assign emits = whole || !in_first_i;
  assign in_ready_o = room && !(flush_q && emits);
  assign take  = in_valid_i && in_ready_o;
  assign put   = room && (flush_q || (in_valid_i && emits));

  logic tail;
  assign tail = take && in_last_i && in_tail_i && !whole;

  logic [DataW-1:0] lo, shifted;
  logic [LaneW:0]   amount;
  assign lo     = !flush_q && whole ? in_data_i : prev_q;
  assign amount = {1'b0, flush_q || !in_first_i ? shift_q : in_shift_i};

  heddle_funnel #(.DataW(DataW)) u_funnel (
    .en_i    (put),
    .lo_i    (lo),
    .hi_i    (in_data_i),
    .shift_i (amount),
    .data_o  (shifted)
  );

  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_data_q;
  assign out_last_o  = out_last_q;
  assign out_user_o  = out_user_q;

  always_ff @(posedge clk_i) begin
    if (take) begin
      prev_q <= in_data_i;
      if (in_first_i) shift_q <= in_shift_i;
      if (in_last_i)  user_q  <= in_user_i;
    end
    if (put) begin
      out_data_q <= shifted;
      out_last_q <= flush_q || (in_last_i && !tail);
      out_user_q <= flush_q ? user_q : in_user_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      flush_q     <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      if (room) begin
        out_valid_q <= put;
        flush_q     <= tail;
      end
    end
  end

  `HEDDLE_ASSERT(OfferHeld_A, out_valid_o && !out_ready_i |=> out_valid_o && $stable(out_data_o))
endmodule
