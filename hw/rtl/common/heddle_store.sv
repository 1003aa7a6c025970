// SPDX-License-Identifier: Apache-2.0
// Queue of words in a memory whose newest words can be taken back.
//
// Whole:   words are offered only after `commit_i`; `rollback_i` forgets all words
//          since the last commit. Either acts before a write of the same cycle.
// Ordered: committed words leave in the order they entered.
// Latency: 2 cycles from commit to `valid_o`, then one word per cycle.
// `full_o` depends on registers only; a word written while it is high is lost.

`include "heddle_assert.svh"

module heddle_store #(
  parameter  int unsigned Width = 512,
  parameter  int unsigned Depth = 256  // Words, a power of two >= 4.
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             write_i,
  input  logic [Width-1:0] data_i,
  input  logic             commit_i,
  input  logic             rollback_i,
  output logic             full_o,

  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o,

  output logic             empty_o     // No word, committed or not.
);
  localparam int unsigned PtrW = $clog2(Depth);

  // One bit more than an address, so that full and empty differ.
  logic [PtrW:0] wr_q, commit_q, fetch_q, free_q;
  logic [PtrW:0] wr_base, wr_next, commit_next;
  logic          valid_q;

  assign wr_base     = rollback_i ? commit_q : wr_q;
  assign full_o      = wr_q - free_q == (PtrW + 1)'(Depth);
  logic write;
  assign write       = write_i && !full_o;
  assign wr_next     = wr_base + (PtrW + 1)'(write);
  assign commit_next = commit_i ? wr_q : commit_q;

  logic pop, fetch;
  assign pop   = valid_q && ready_i;
  assign fetch = fetch_q != commit_q && (!valid_q || ready_i);

  // A word that waits to be taken is read again each cycle.
  logic [PtrW-1:0] raddr;
  assign raddr = valid_q && !ready_i ? free_q[PtrW-1:0] : fetch_q[PtrW-1:0];

  logic unused_error, unused_ready;
  heddle_mem #(
    .Width (Width),
    .Depth (Depth),
    .Init  (1'b0)
  ) u_mem (
    .clk_i,
    .rst_ni,
    .wen_i   (write),
    .waddr_i (wr_base[PtrW-1:0]),
    .wdata_i (data_i),
    .raddr_i (raddr),
    .rdata_o (data_o),
    .error_o (unused_error),
    .ready_o (unused_ready)
  );

  assign valid_o = valid_q;
  assign empty_o = wr_q == free_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wr_q     <= '0;
      commit_q <= '0;
      fetch_q  <= '0;
      free_q   <= '0;
      valid_q  <= 1'b0;
    end else begin
      wr_q     <= wr_next;
      commit_q <= commit_next;
      if (fetch) fetch_q <= fetch_q + 1'b1;
      if (pop)   free_q  <= free_q + 1'b1;
      valid_q <= fetch || (valid_q && !ready_i);
    end
  end

  if (Depth < 4 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $error("Depth must be a power of two of at least 4");
  end

  `HEDDLE_ASSUME(CommitOrRollback_M, !(commit_i && rollback_i))
  `HEDDLE_ASSERT(OrderedPointers_A, wr_q - free_q <= (PtrW + 1)'(Depth))
endmodule
