// SPDX-License-Identifier: Apache-2.0
// A few bits of state per ring slot of each context, zero when a context starts.
//
// Clean:    `restart_i` marks a context dirty; its ring is then cleaned one slot per
//           cycle without a write. While dirty its words must not be written or relied on.
// Coherent: a read that meets a write to the same word returns the new word.
// Latency:  read data one cycle after `raddr_i`.

`include "heddle_assert.svh"

module heddle_ring_state
  import heddle_contract_pkg::*;
#(
  parameter  int unsigned Width  = 1,   // Bits per slot.
  parameter  int unsigned NumCtx = 16,  // Contexts, a power of two >= 2.
  parameter  int unsigned Reads  = 1,   // Read ports, >= 1.
  localparam int unsigned CtxW   = $clog2(NumCtx),
  localparam int unsigned AddrW  = CtxW + RingLog2Max
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic [NumCtx-1:0]            restart_i,  // With `log2_i` already new.
  input  logic [NumCtx-1:0][3:0]       log2_i,     // Ring size.
  output logic [NumCtx-1:0]            dirty_o,    // From the cycle after `restart_i`.

  input  logic                         wen_i,
  input  logic [AddrW-1:0]             waddr_i,    // {context, slot}
  input  logic [Width-1:0]             wdata_i,
  input  logic [Reads-1:0][AddrW-1:0]  raddr_i,
  output logic [Reads-1:0][Width-1:0]  rdata_o
);
  logic [NumCtx-1:0]     dirty_d, dirty_q;
  logic                  any, on_q, clean, clean_last;
  logic [CtxW-1:0]       first, ctx_q;
  logic [RingLog2Max:0]  slot_q;

  heddle_rr_pick #(
    .NumSrc(NumCtx)
  ) u_first (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(dirty_q),
    .valid_o(any),
    .idx_o  (first),
    .take_i (clean_last)
  );

  assign dirty_o    = dirty_q;
  assign clean      = on_q && !wen_i;
  assign clean_last = clean && 32'(slot_q) + 1 == 32'd1 << log2_i[ctx_q];

  always_comb begin
    dirty_d = dirty_q;
    if (clean_last) dirty_d[ctx_q] = 1'b0;
    dirty_d = dirty_d | restart_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      dirty_q <= '0;
      on_q    <= 1'b0;
    end else begin
      dirty_q <= dirty_d;
      // A restart in the middle starts again at slot 0.
      on_q    <= on_q ? !clean_last && !restart_i[ctx_q] : any;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!on_q) begin
      ctx_q  <= first;
      slot_q <= '0;
    end else if (clean) begin
      slot_q <= slot_q + 1'b1;
    end
  end

  logic [AddrW-1:0] waddr;
  logic [Width-1:0] wdata;
  assign waddr = wen_i ? waddr_i : {ctx_q, slot_q[RingLog2Max-1:0]};
  assign wdata = wen_i ? wdata_i : '0;

  for (genvar i = 0; i < Reads; i++) begin : gen_read
    logic unused_error, unused_ready;
    heddle_mem #(
      .Width(Width),
      .Depth(1 << AddrW),
      .Init (1'b0)
    ) u_mem (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .wen_i  (wen_i || clean),
      .waddr_i(waddr),
      .wdata_i(wdata),
      .raddr_i(raddr_i[i]),
      .rdata_o(rdata_o[i]),
      .error_o(unused_error),
      .ready_o(unused_ready)
    );
  end

  `HEDDLE_ASSUME(WriteOfClean_M, wen_i |-> !dirty_q[waddr_i[AddrW-1:RingLog2Max]])
endmodule
