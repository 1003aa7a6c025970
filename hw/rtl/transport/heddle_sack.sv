// SPDX-License-Identifier: Apache-2.0
// What a RUD PDC knows of the PSNs that are out: which arrived, and which to send again.
//
// Combinational: one event changes the record. Positions count from the oldest unacknowledged PSN.
//
// Lost:      a PSN counts as lost when `reorder_i` later ones arrived (0 counts as 1), or when
//            it is told so: of all that did not arrive, or of one.
// Once:      what was sent again counts as lost anew only when `reorder_i` PSNs arrived that were
//            first sent after that: once in a round trip.
// Selective: of a pass over all that is out, `skip_o` names what is not to be sent.

module heddle_sack
  import heddle_contract_pkg::*;
  import heddle_transport_pkg::*;
(
  input  sack_t               state_i,
  input  logic [SackW-1:0]    out_i,      // PSNs that were sent, behind an ACK's advance.
  input  logic [SackW-1:0]    next_i,     // The one to send next; so too.
  input  logic [7:0]          reorder_i,

  input  logic                ack_i,
  input  logic [SackW-1:0]    advance_i,  // So many more are acknowledged.
  input  logic                sack_i,     // The next two are valid.
  input  logic [31:0]         base_i,     // Position of bit 0 behind the advance, signed.
  input  logic [PdcWindow-1:0] bitmap_i,
  input  logic                lose_i,     // What did not arrive is lost,
  input  logic                anew_i,     // also what was sent again.
  input  logic                trim_i,     // The one at `trim_at_i` is lost, unless it arrived.
  input  logic [SackW-2:0]    trim_at_i,
  input  logic                step_i,     // The pass goes on behind `next_i`.

  output sack_t               state_o,
  output logic                news_o,     // ACK: something arrived of which nothing was known.
  output logic                back_o,     // ACK: something is lost that the pass is already past.
  output logic                skip_o,
  output logic                above_o,    // Something behind `next_i` arrived.
  output logic [SackW-1:0]    left_o,     // PSNs in flight behind the ACK, before more are lost;
  output logic [SackW-1:0]    flight_o    // behind the event.
);
  localparam int unsigned CountW = 4;

  // The first `n` positions.
  function automatic logic [PdcWindow-1:0] low(logic [SackW-1:0] n);
    low = n[SackW-1] ? '1 : (PdcWindow'(1) << n[SackW-2:0]) - PdcWindow'(1);
  endfunction

  // To be sent again, if it did not arrive.
  function automatic logic [PdcWindow-1:0] due(logic [SackW-1:0] lost, logic [SackW-1:0] again,
                                               logic [PdcWindow-1:0] told, logic [PdcWindow-1:0] tried);
    due = (low(lost) & ~low(again) & ~tried) | told;
  endfunction

  // Sent, not arrived, not waiting to be sent again.
  function automatic logic [SackW-1:0] flying(logic [PdcWindow-1:0] held, logic [SackW-1:0] out,
                                              logic [PdcWindow-1:0] waiting);
    logic [PdcWindow-1:0] set;
    set    = low(out) & ~held & ~waiting;
    flying = '0;
    for (int unsigned i = 0; i < PdcWindow; i++) flying = flying + SackW'(set[i]);
  endfunction

  function automatic logic [SackW-1:0] less(logic [SackW-1:0] position, logic [SackW-1:0] by);
    less = position > by ? position - by : '0;
  endfunction

  sack_t                s;         // Behind the advance.
  logic [PdcWindow-1:0] arrived, past;
  logic [31:0]          down;
  assign down = ~base_i + 32'd1;
  always_comb begin
    s       = state_i;
    arrived = '0;
    if (ack_i) begin
      s.held  = state_i.held >> advance_i;
      s.lost  = less(state_i.lost, advance_i);
      s.again = less(state_i.again, advance_i);
      s.round = less(state_i.round, advance_i);
      s.told  = state_i.told >> advance_i;
      s.tried = state_i.tried >> advance_i;
      if (sack_i && base_i < PdcWindow)    arrived = bitmap_i << base_i[SackW-2:0];
      else if (sack_i && down < PdcWindow) arrived = bitmap_i >> down[SackW-2:0];
      arrived = arrived & low(out_i);
    end
  end

  // Positions with so many arrived ones behind them.
  logic [PdcWindow-1:0]             held;
  logic [PdcWindow-1:0][CountW-1:0] behind;
  logic [CountW-1:0]                enough;
  logic [CountW:0]                  sum;
  assign held   = s.held | arrived;
  assign enough = reorder_i == '0 ? CountW'(1)
                : (reorder_i > 8'(2 ** CountW - 1) ? '1 : reorder_i[CountW-1:0]);
  always_comb begin
    sum = '0;
    for (int unsigned i = 0; i < PdcWindow; i++) begin
      behind[i] = i + 1 < PdcWindow ? CountW'(held[(i + 1) % PdcWindow]) : '0;
    end
    // Each covers twice as many as before, and the ones above are still of the former round.
    for (int unsigned span = 1; span < PdcWindow; span = 2 * span) begin
      for (int unsigned i = 0; i + span < PdcWindow; i++) begin
        sum       = {1'b0, behind[i]} + {1'b0, behind[i + span]};
        behind[i] = sum[CountW] ? '1 : sum[CountW-1:0];
      end
    end
    for (int unsigned i = 0; i < PdcWindow; i++) past[i] = behind[i] >= enough;
  end

  assign left_o   = flying(s.held | arrived, out_i, due(s.lost, s.again, s.told, s.tried));
  assign flight_o = flying(state_o.held, out_i, due(state_o.lost, state_o.again, state_o.told, state_o.tried));

  logic                 new_round;
  logic [SackW-1:0]     again, past_end, round_last;
  logic [PdcWindow-1:0] fresh, tried;
  assign round_last = less(s.round, SackW'(1));
  assign new_round  = (s.again != '0 || s.tried != '0) && past[round_last[SackW-2:0]];
  assign again      = new_round ? '0 : s.again;
  assign tried      = new_round ? '0 : s.tried;
  assign fresh      = past & ~held & ~low(again) & ~s.told & ~tried;
  always_comb begin
    past_end = '0;
    for (int unsigned i = 0; i < PdcWindow; i++) begin
      if (past[i]) past_end = SackW'(i + 1);
    end
  end

  logic [PdcWindow-1:0] from_next, here, due_now, at_next;
  assign from_next = state_i.held >> next_i;
  assign due_now   = due(state_i.lost, state_i.again, state_i.told, state_i.tried);
  assign here      = ~low(next_i);
  assign at_next   = PdcWindow'(1) << next_i;
  assign skip_o    = from_next[0] || (due_now & at_next) == '0;
  assign above_o   = from_next[PdcWindow-1:1] != '0;
  assign news_o    = ack_i && (arrived & ~s.held) != '0;
  assign back_o    = ack_i && (fresh & ~here) != '0;

  always_comb begin
    state_o = s;
    if (ack_i) begin
      state_o.held  = held;
      state_o.again = again;
      state_o.told  = s.told & ~held;
      state_o.tried = tried & ~held;
      if (new_round) state_o.round = out_i;
      if (fresh != '0 && past_end > s.lost) state_o.lost = past_end;
    end
    if (lose_i) begin
      if (anew_i) begin
        state_o.again   = '0;
        state_o.held[0] = 1'b0;  // An answer about it is missing at least.
        state_o.told    = '0;
        state_o.tried   = '0;
      end
      state_o.lost = out_i;
    end
    if (trim_i) begin
      state_o.told[trim_at_i]  = !state_i.held[trim_at_i];
      state_o.tried[trim_at_i] = 1'b0;
    end
    if (step_i) begin
      if (next_i < state_i.lost && next_i >= state_i.again) state_o.again = next_i + SackW'(1);
      if (!skip_o) begin
        state_o.round = out_i;
        state_o.told  = state_i.told & ~at_next;
        state_o.tried = state_i.tried | (state_i.told & at_next);
      end
    end
  end

  logic unused;
  assign unused = round_last[SackW-1];
endmodule
