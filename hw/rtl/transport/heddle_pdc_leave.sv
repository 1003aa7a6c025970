// SPDX-License-Identifier: Apache-2.0
// The PDC of heddle_pdc_tx that is to be closed next: idle ones whose target wants that, and as many as peers wait for, at most
// MaxLeaving at a time, first the ones that sent nothing since the last time around.

module heddle_pdc_leave
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              close_i,          // Strobe: close every PDC that is open as soon as it is idle.
  input  logic [WantW-1:0]  want_i,           // So many PDCs are missing.
  input  logic [NumPdc-1:0] pending_i,        // A message is to be sent.
  input  logic              settled_i,        // The PDC has nothing outstanding or due, or has something.
  input  logic [PdcW-1:0]   settled_pdc_i,
  input  logic              settled_idle_i,
  input  logic              wanted_i,         // Its target wants it closed.
  input  logic [PdcW-1:0]   wanted_pdc_i,

  // This PDC
  input  logic [PdcW-1:0]   pdc_i,
  input  logic              sends_i,          // sends a packet,
  input  logic              opens_i,          // opens, from closed,
  input  logic              leaves_i,         // begins to close as it was offered,
  input  logic              ends_i,           // is closed, or stays.
  output logic              evicts_o,         // It leaves for another one.

  output logic              valid_o,
  output logic [PdcW-1:0]   pdc_o,
  input  logic              take_i,
  output logic              idle_o            // None is to leave.
);
  localparam int unsigned MaxLeaving = 16;
  localparam int unsigned LeavingW   = $clog2(MaxLeaving) + 1;

  logic [NumPdc-1:0]   idle_q, wanted_q, used_q, evicted_q, rests;
  logic [LeavingW-1:0] leaving_q;  // Evictions that have not ended.
  logic                evict, evict_end;
  assign evict     = want_i > WantW'(leaving_q) && leaving_q < LeavingW'(MaxLeaving);
  assign evicts_o  = leaves_i && !wanted_q[pdc_i];
  assign evict_end = ends_i && evicted_q[pdc_i];
  assign rests     = idle_q & ~pending_i;

  // The next time around begins when all that are idle have sent something.
  logic evict_q, rest_q, unwanted_q, unused_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      evict_q    <= 1'b0;
      rest_q     <= 1'b0;
      unwanted_q <= 1'b0;
      unused_q   <= 1'b0;
    end else begin
      evict_q    <= evict;
      rest_q     <= rests != '0;
      unwanted_q <= (rests & wanted_q) != '0;
      unused_q   <= (rests & ~used_q) != '0;
    end
  end

  logic            picked, take, offered_q, offered_wanted_q;
  logic [1:0]      taken_q;
  logic [PdcW-1:0] picked_pdc, offered_pdc_q;
  heddle_group_pick #(.NumSrc(NumPdc)) u_pick (
    .clk_i, .rst_ni, .valid_i(rests & (wanted_q | ({NumPdc{evict_q && !unwanted_q}} & ~used_q))), .drop_i(1'b0), .drop_idx_i('0),
    .valid_o(picked), .idx_o(picked_pdc), .take_i(take)
  );
  // An eviction is counted two cycles after it was taken.
  assign take    = picked && !offered_q && taken_q == '0;
  assign valid_o = offered_q && (offered_wanted_q || evict_q);
  assign pdc_o   = offered_pdc_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      offered_q <= 1'b0;
      taken_q   <= '0;
    end else begin
      offered_q <= take || (valid_o && !take_i);
      taken_q   <= {taken_q[0], take_i};
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      offered_pdc_q   <= picked_pdc;
      offered_wanted_q <= wanted_q[picked_pdc];
    end
  end
  assign idle_o = !offered_q && !picked && !unwanted_q && !(evict && (rest_q || rests != '0));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q    <= '0;
      wanted_q  <= '0;
      used_q    <= '0;
      evicted_q <= '0;
      leaving_q <= '0;
    end else begin
      if (evict_q && rest_q && !unused_q) used_q <= used_q & ~idle_q;
      for (int unsigned i = 0; i < NumPdc; i++) begin
        if (settled_i && settled_pdc_i == PdcW'(i)) idle_q[i] <= settled_idle_i;
        if (sends_i && pdc_i == PdcW'(i))           used_q[i] <= 1'b1;
      end
      if (close_i)   wanted_q <= '1;
      if (wanted_i)  wanted_q[wanted_pdc_i] <= 1'b1;
      if (opens_i)   wanted_q[pdc_i] <= 1'b0;
      if (evicts_o)       evicted_q[pdc_i] <= 1'b1;
      else if (evict_end) evicted_q[pdc_i] <= 1'b0;
      leaving_q <= leaving_q + LeavingW'(evicts_o) - LeavingW'(evict_end);
    end
  end
endmodule
