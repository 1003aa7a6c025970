// SPDX-License-Identifier: Apache-2.0
// Memory wrapper: one write port, one synchronous read port.
//
// Coherent:    a read that meets a write to the same word in the same cycle
//              returns the new word, so a read-modify-write pipeline of two
//              stages needs no forwarding of its own. With Coherent unset, such a read
//              returns nothing that may be used.
// Initialised: with Init set, a walker writes zero to every word after reset;
//              until `ready_o` nobody may write or rely on read data. Without,
//              a word must be written before its data is used.
// Parity:      with Parity set (needs Init), each word has an even parity bit;
//              `error_o` is high with read data that fails it. The bit is
//              computed and written in the cycle after its word, so that it
//              adds nothing to the paths that end here. A word that bypasses
//              the memory is not checked.
// Latency:     read data one cycle after `raddr_i`.

`include "heddle_assert.svh"

module heddle_mem #(
  parameter  int unsigned Width  = 32,
  parameter  int unsigned Depth  = 64,    // Words, a power of two >= 2.
  parameter  bit          Init   = 1'b1,
  parameter  bit          Parity = Init,
  parameter  bit          Coherent = 1'b1,
  localparam int unsigned AddrW  = $clog2(Depth)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             wen_i,
  input  logic [AddrW-1:0] waddr_i,
  input  logic [Width-1:0] wdata_i,

  input  logic [AddrW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o,

  output logic             error_o,
  output logic             ready_o
);
  logic [Width-1:0] words [Depth];
  logic [AddrW-1:0] walk_q;
  logic             ready_q;

  logic             wen;
  logic [AddrW-1:0] waddr;
  logic [Width-1:0] wdata, rword_q, wdata_q;
  logic             bypassed_q;

  assign wen   = ready_q ? wen_i : 1'b1;
  assign waddr = ready_q ? waddr_i : walk_q;
  assign wdata = ready_q ? wdata_i : '0;

  assign rdata_o = bypassed_q ? wdata_q : rword_q;
  assign ready_o = ready_q;

  always_ff @(posedge clk_i) begin
    if (wen) words[waddr] <= wdata;
    rword_q    <= words[raddr_i];
    wdata_q    <= wdata;
    bypassed_q <= Coherent && wen && waddr == raddr_i;
  end

  if (Parity) begin : gen_parity
    logic             parity [Depth];
    logic             wen_q, wparity, rparity_q;
    logic [AddrW-1:0] waddr_q;
    logic             checked_q;  // Read data belongs to an initialised memory.
    assign wparity = ^wdata_q;
    always_ff @(posedge clk_i) begin
      wen_q   <= wen;
      waddr_q <= waddr;
      if (wen_q) parity[waddr_q] <= wparity;
      rparity_q <= wen_q && waddr_q == raddr_i ? wparity : parity[raddr_i];
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) checked_q <= 1'b0;
      else         checked_q <= ready_q;
    end
    assign error_o = checked_q && !bypassed_q && (^rword_q) != rparity_q;
  end else begin : gen_no_parity
    assign error_o = 1'b0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      walk_q  <= '0;
      ready_q <= !Init;
    end else begin
      if (!ready_q) walk_q <= walk_q + 1'b1;
      if (walk_q == AddrW'(Depth - 1)) ready_q <= 1'b1;
    end
  end

  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $error("Depth must be a power of two of at least 2");
  end
  if (Parity && !Init) begin : gen_bad_parity
    $error("Parity needs an initialised memory");
  end

  `HEDDLE_ASSERT(ParityHolds_A, !error_o)
endmodule
