// SPDX-License-Identifier: Apache-2.0
// Which transmit context has which spill area in the NIC.
//
// Taken:    by a context when it first needs one; it has that until it ends.
// Returned: an area of a context that ended is free when no packet that was built then reads its payload. Copies of its
//           slots end before another context can take it; one that is brought back then is dropped.
// Alone:    an area is of one context at a time.

`include "heddle_assert.svh"

module heddle_spill_areas
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumTx-1:0]           over_i,      // Strobe: the context ended in this cycle.
  input  logic [SeqW-1:0]            seq_issued_i,
  input  logic [SeqW-1:0]            seq_done_i,

  input  logic                       take_i,      // Strobe: a context that lives and has none takes one,
  input  logic [TxW-1:0]             take_ctx_i,
  output logic                       free_o,      // which needs this:
  output logic [SpillAreaW-1:0]      area_first_o,  // it takes this one.

  output logic [NumTx-1:0]           has_o,
  output logic [NumTx-1:0][SpillAreaW-1:0] area_o,
  output logic                       freed_o,     // Strobe: one was returned.
  output logic                       idle_o
);
  // An area is used, its context ended, and `since_q` is the order of the last packet that may read it.
  logic [SpillAreas-1:0]      used_q, ended_q, timed_q, ends, frees;
  logic [SpillAreas-1:0][TxW-1:0]  ctx_q;
  logic [SpillAreas-1:0][SeqW-1:0] since_q, distance;
  logic [SpillAreaW-1:0]      first;
  assign area_first_o = first;
  always_comb begin
    first = '0;
    for (int a = int'(SpillAreas) - 1; a >= 0; a--) begin
      if (!used_q[a]) first = SpillAreaW'(a);
    end
    for (int unsigned a = 0; a < SpillAreas; a++) begin
      distance[a] = seq_done_i - since_q[a];
      ends[a]     = used_q[a] && over_i[ctx_q[a]];
      frees[a]    = timed_q[a] && !distance[a][SeqW-1];
    end
  end
  assign free_o  = used_q != '1;
  assign freed_o = frees != '0;
  assign idle_o  = ended_q == '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q  <= '0;
      ended_q <= '0;
      timed_q <= '0;
      has_o   <= '0;
      area_o  <= '0;
    end else begin
      timed_q <= ended_q & ~frees;
      for (int unsigned a = 0; a < SpillAreas; a++) begin
        if (frees[a])                                used_q[a] <= 1'b0;
        else if (take_i && first == SpillAreaW'(a))  used_q[a] <= 1'b1;
        if (frees[a])                                ended_q[a] <= 1'b0;
        else if (ends[a])                            ended_q[a] <= 1'b1;
      end
      for (int unsigned i = 0; i < NumTx; i++) begin
        if (take_i && take_ctx_i == TxW'(i)) begin
          has_o[i]  <= 1'b1;
          area_o[i] <= first;
        end
        if (over_i[i]) has_o[i] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned a = 0; a < SpillAreas; a++) begin
      if (take_i && first == SpillAreaW'(a)) ctx_q[a]   <= take_ctx_i;
      if (ended_q[a] && !timed_q[a])         since_q[a] <= seq_issued_i;
    end
  end

  `HEDDLE_ASSERT(TakesFree_A, take_i |-> free_o && !has_o[take_ctx_i] && !over_i[take_ctx_i])
endmodule
