// SPDX-License-Identifier: Apache-2.0
// What a RUD PDC knows of the PSNs that are out: which arrived, and which to send again.
//
// Combinational: one event changes the record. Positions count from the oldest PSN that was unacknowledged before the
// event, but those of `state_o` from the oldest one after it: an ACK's advance is the last step.
//
// Lost:      a PSN counts as lost when enough later ones arrived (heddle_passed, some cycles after the ACK), or when
//            it is told so: of all that did not arrive, or of one.
// Once:      a retransmitted PSN counts as lost anew only when so many PSNs arrived that were
//            first sent after that: once in a round trip.
// Selective: in a pass over all that is out, heddle_sack_step names what is not to be retransmitted.

module heddle_sack
  import heddle_contract_pkg::*;
  import heddle_transport_pkg::*;
(
  input  sack_t               state_i,
  input  logic [SackW-1:0]    out_i,      // PSNs that were sent.
  input  logic [SackW-1:0]    next_i,     // The one to send next.

  // At most one event.
  input  logic                ack_i,
  input  logic [SackW-1:0]    advance_i,  // ACK: so many more are acknowledged.
  input  logic [PdcWindow-1:0] reported_i, // These arrived (heddle_sack_report).
  input  logic                pass_i,     // heddle_passed: positions before `past_i` are lost, unless they arrived
  input  logic [SackW-1:0]    past_i,     // or count as lost already.
  input  logic                lose_i,     // What did not arrive is lost,
  input  logic                anew_i,     // also what was sent again.
  input  logic                trim_i,     // The one at `trim_at_i` is lost, unless it arrived.
  input  logic [SackW-2:0]    trim_at_i,

  output sack_t               state_o,
  output logic                news_o,     // ACK: something arrived of which nothing was known.
  output logic [PdcWindow-1:0] held_o,    // ACK: what arrived, before the advance.
  output logic                back_o,     // Something is lost that the pass is already past.
  output logic [PdcWindow-1:0] left_o,    // In flight before more are lost;
  output logic [PdcWindow-1:0] flight_o   // after the event.
);
  function automatic logic [SackW-1:0] less(logic [SackW-1:0] position, logic [SackW-1:0] by);
    less = position > by ? position - by : '0;
  endfunction

  // ------------------------------------------------------------------ what arrived
  logic [PdcWindow-1:0] sent, acked, arrived, held;
  assign sent    = low_positions(out_i);
  assign acked   = low_positions(advance_i);
  assign arrived = ack_i ? reported_i : '0;
  assign held    = state_i.held | arrived;

  assign held_o  = held;
  assign news_o  = ack_i && (arrived & ~state_i.held & ~acked) != '0;

  // ------------------------------------------------------------------ what is lost
  // Former retransmissions count unless a round trip ends.
  logic                 new_round, fresh, fresh_back;
  logic [PdcWindow-1:0] newly, newly_round;
  assign new_round   = (state_i.again != '0 || state_i.tried != '0) && past_i != '0 && past_i >= state_i.round;
  assign newly_round = low_positions(past_i) & ~state_i.held & ~state_i.told;
  assign newly       = newly_round & ~low_positions(state_i.again) & ~state_i.tried;
  assign fresh       = new_round ? newly_round != '0 : newly != '0;
  assign fresh_back  = new_round ? (newly_round & low_positions(next_i)) != '0 : (newly & low_positions(next_i)) != '0;
  assign back_o      = pass_i && fresh_back;

  sack_t s;  // Once these are lost.
  always_comb begin
    s = state_i;
    if (fresh && past_i > state_i.lost) s.lost = past_i;
    if (new_round) begin
      s.round = out_i;
      s.again = '0;
      s.tried = '0;
    end
  end

  // ------------------------------------------------------------------------ flight
  logic [PdcWindow-1:0] trimmed, flying, due_now, due_then;
  assign trimmed   = PdcWindow'(1) << trim_at_i;
  assign flying    = sent & ~acked & ~held;
  assign left_o    = flying & ~due_now;
  assign due_now   = due_positions(state_i.lost, state_i.again, state_i.told, state_i.tried);
  assign due_then  = due_positions(s.lost, s.again, s.told, s.tried);
  always_comb begin
    flight_o = left_o;
    if (pass_i)      flight_o = flying & ~due_then;
    else if (lose_i) flight_o = anew_i ? '0 : flying & (low_positions(state_i.again) | state_i.tried) & ~state_i.told;
    else if (trim_i) flight_o = left_o & ~trimmed;
  end

  // -------------------------------------------------------------- what is known then
  always_comb begin
    state_o = state_i;
    if (ack_i) begin
      state_o.held  = held >> advance_i;
      state_o.lost  = less(state_i.lost, advance_i);
      state_o.again = less(state_i.again, advance_i);
      state_o.round = less(state_i.round, advance_i);
      state_o.told  = (state_i.told & ~held) >> advance_i;
      state_o.tried = (state_i.tried & ~held) >> advance_i;
    end
    if (pass_i) state_o = s;
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
      state_o.told  = (state_i.told & ~trimmed) | (trimmed & ~state_i.held);
      state_o.tried = state_i.tried & ~trimmed;
    end
  end
endmodule
