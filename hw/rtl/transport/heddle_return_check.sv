// SPDX-License-Identifier: Apache-2.0
// First cycle of an ACK, a loss or a timer of heddle_return_tx: its relation to its PDC. Combinational.

module heddle_return_check
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  port_cfg_t     port_i,
  input  logic [31:0]   now_i,
  input  return_state_t state_i,
  input  return_route_t route_i,
  input  return_timer_t timer_i,
  input  ack_event_t    ack_i,
  input  logic [31:0]   acked_i,           // The PSN after those that it acknowledges.
  input  logic          sole_i,            // The packet that it names was sent once (heddle_round_trip).
  input  logic [15:0]   passed_spdcid_i,   // The loss: of this opening, up to this PSN.
  input  logic [31:0]   passed_psn_i,
  output return_check_t check_o
);
  logic [31:0]          out, next, ahead, advance, past;
  logic [PdcWindow-1:0] reported;
  assign out     = state_i.top - state_i.una;
  assign next    = state_i.nxt - state_i.una;
  assign ahead   = ack_i.psn - state_i.una;
  assign advance = acked_i - state_i.una;
  assign past    = passed_psn_i - state_i.una;  // Not if it was acknowledged meanwhile.
  heddle_sack_report u_report (
    .out_i(SackW'(out)), .base_i(ack_i.sack_base - state_i.una), .bitmap_i(ack_i.sack_bitmap), .reported_o(reported)
  );

  always_comb begin
    check_o             = '0;
    check_o.known       = state_i.open && ack_i.dpdcid == route_i.spdcid && ack_i.spdcid == route_i.dpdcid &&
                          ack_i.fa == route_i.fa;
    check_o.in_window   = advance <= out;
    check_o.advances    = check_o.in_window && acked_i != state_i.una;
    check_o.advance     = SackW'(advance);
    check_o.all         = acked_i == state_i.top;
    check_o.overtakes   = $signed(state_i.nxt - acked_i) < 0;
    check_o.stale       = !check_o.in_window && state_i.una - acked_i < 32'(2 * PdcWindow);
    check_o.nacked      = ahead < out;
    check_o.ahead       = SackW'(ahead);
    check_o.passed      = ahead < next;
    check_o.repeated    = ahead < 32'(state_i.sack.again);
    check_o.fresh       = state_i.nxt == state_i.top;
    // A NACK about what was retransmitted before may be late; it counts when no pass is active that it could be about.
    check_o.worth_again = check_o.repeated ? check_o.fresh : 32'(state_i.sack.again) < out;
    check_o.sole        = sole_i && check_o.nacked && !ack_i.retx && !state_i.sack.held[ahead[SackW-2:0]];
    check_o.some_held   = state_i.sack.held != '0 || (ack_i.sack && ack_i.sack_bitmap != '0);
    check_o.reported    = ack_i.sack && route_i.rud ? reported : '0;
    check_o.loses       = state_i.open && route_i.rud && passed_spdcid_i == route_i.spdcid && past <= 32'(PdcWindow);
    check_o.past        = SackW'(past);
    check_o.fired       = timer_i.on && $signed(now_i - timer_i.at) >= 0 && state_i.open;
    check_o.silent      = now_i - state_i.heard >= port_i.dead_ticks;
    check_o.outstanding = state_i.una != state_i.top;
    check_o.out         = SackW'(out);
    check_o.next        = SackW'(next);
    check_o.rto         = backed_off(port_i.rto_ticks,
                                  state_i.waiting || state_i.rto_shift == '1 ? state_i.rto_shift : state_i.rto_shift + 1'b1,
                                  port_i.rto_max_ticks);
    check_o.backoff     = backed_off(port_i.backoff_ticks, state_i.backoff_shift, port_i.backoff_max_ticks);
  end

  logic unused;
  assign unused = ^{port_i, state_i, ack_i, route_i};
endmodule
