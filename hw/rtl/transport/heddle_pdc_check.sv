// SPDX-License-Identifier: Apache-2.0
// First cycle of an ACK, a loss or a timer of heddle_pdc_tx: its relation to its PDC. Combinational.

module heddle_pdc_check
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import heddle_transport_tx_pkg::*;
#(
  parameter int unsigned CloseTries = 5    // Close Commands without an answer.
) (
  input  port_cfg_t    port_i,
  input  logic [31:0]  now_i,
  input  tx_event_e    event_i,
  input  tx_state_t    state_i,
  input  tx_identity_t identity_i,
  input  tx_timer_t    timer_i,
  input  logic         pending_i,          // A message is to be sent.
  input  ack_event_t   ack_i,
  input  logic [31:0]  acked_i,            // The PSN after those that it acknowledges,
  input  logic [31:0]  acked_two_i,        // and the one after that.
  input  logic         sole_i,             // The packet that it names was sent once (heddle_round_trip).
  input  logic [15:0]  passed_spdcid_i,    // The loss: of this opening, up to this PSN.
  input  logic [31:0]  passed_psn_i,
  output tx_check_t    check_o
);
  tx_state_t s;
  logic      live;  // Waits for answers.
  assign s    = state_i;
  assign live = s.state == PdcSyn || s.state == PdcOpen || s.state == PdcClosing;

  logic [31:0]          out, next, ahead, advance, advance_two, behind, past, age;
  logic [PdcWindow-1:0] reported;
  assign out         = s.top - s.una;
  assign next        = s.nxt - s.una;
  assign ahead       = ack_i.psn - s.una;
  assign behind      = s.una - 32'd1 - ack_i.psn;
  assign advance     = acked_i - s.una;
  assign advance_two = acked_two_i - s.una;
  assign past        = passed_psn_i - s.una;  // Not if it was acknowledged meanwhile.
  assign age         = now_i - s.heard;
  heddle_sack_report u_report (
    .out_i(positions(out)), .base_i(ack_i.sack_base - s.una), .bitmap_i(ack_i.sack_bitmap), .reported_o(reported)
  );

  // An error answer stands for one more packet than may be acknowledged before it is cleared. It does so by `una`, which
  // every later request carries as CLEAR_PSN (UET 2.15). The same goes for the data of a small READ in its ACK.
  logic known, is_error, is_answer, answered, awaits, fresh, repeated;
  logic own;  // It names the target's PDCID; a NACK of a target without the PDC names none.
  assign own       = s.state == PdcSyn || ack_i.spdcid == s.tpdcid || (ack_i.nack && ack_i.spdcid == '0);
  assign known     = live && own && ack_i.dpdcid == identity_i.spdcid && ack_i.fa == identity_i.fa;
  assign is_error  = !ack_i.nack && ack_i.return_code > ReturnCodeOk && ack_i.psn == acked_i;
  assign is_answer = is_error || (!ack_i.nack && ack_i.data && ack_i.psn == acked_i);
  assign answered  = is_answer && advance < out;
  assign awaits    = s.state == PdcOpen && s.una == s.top && s.due != '0;
  assign fresh     = s.nxt == s.top;
  assign repeated  = ahead < 32'(s.sack.again);

  always_comb begin
    check_o           = '0;
    check_o.known     = known;
    check_o.acks      = event_i == TxEvAck && known && !ack_i.nack;
    check_o.nacks     = event_i == TxEvAck && known && ack_i.nack;
    check_o.in_window = answered || advance <= out;
    check_o.advances  = answered || (advance <= out && advance != '0);
    check_o.acked     = answered ? acked_two_i : acked_i;
    check_o.advance   = answered ? positions(advance_two) : positions(advance);
    check_o.all       = answered ? acked_two_i == s.top : acked_i == s.top;
    check_o.overtakes = answered ? $signed(s.nxt - acked_two_i) < 0 : $signed(s.nxt - acked_i) < 0;
    check_o.proves    = answered ? $signed(acked_two_i - s.probe_psn) > 0 : $signed(acked_i - s.probe_psn) > 0;
    check_o.stale     = !check_o.in_window && s.una - acked_i < 32'(2 * PdcWindow);
    check_o.refused   = is_error && answered;
    check_o.clears    = answered || (is_answer && behind < 32'(2 * RodWindow)) ||
                        (ack_i.ask && ack_i.req == AckReqClear);
    check_o.nacked    = ahead < out;
    check_o.ahead     = SackW'(ahead);
    check_o.nearby    = ahead < 32'(PdcWindow);
    check_o.first     = ahead == '0;
    check_o.passed    = ahead < next;
    check_o.reprobes  = s.probe_psn == ack_i.psn;
    check_o.repeated  = repeated;
    // A target that had to drop packets reports which one is missing. If that was retransmitted before, the NACK may be
    // late; it counts when no pass is active that it could be about.
    check_o.worth_again = repeated ? fresh : 32'(s.sack.again) < out;
    check_o.answers   = check_o.nacked || (awaits && behind == '0);
    check_o.refuses_control = ack_i.code == NackCodeUnexpEvent &&
                              (behind == '0 || (ack_i.spdcid == '0 && ack_i.psn == '0));
    check_o.sole      = sole_i && check_o.nacked && !ack_i.retx && !s.sack.held[ahead[SackW-2:0]];
    check_o.some_held = s.sack.held != '0 || (ack_i.sack && ack_i.sack_bitmap != '0);
    check_o.reported  = ack_i.sack && s.rud ? reported : '0;
    check_o.loses     = event_i == TxEvLost && live && s.rud && passed_spdcid_i == identity_i.spdcid && past <= 32'(PdcWindow);
    check_o.past      = SackW'(past);
    // The scan offers candidates; the timer itself decides.
    check_o.fired     = event_i == TxEvTimer && timer_i.on && $signed(now_i - timer_i.at) >= 0 && live;
    check_o.silent    = age >= port_i.dead_ticks ||
                        (s.state == PdcClosing && s.rto_shift == 4'(CloseTries - 1));
    check_o.overdue   = age >= port_i.rto_ticks;
    check_o.again     = age < port_i.rto_max_ticks ? age : port_i.rto_max_ticks;
    check_o.patience  = port_i.dead_ticks - age;
    check_o.fresh     = fresh;
    check_o.outstanding = s.una != s.top;
    check_o.awaits    = awaits;
    // A message that is queued in this moment keeps the PDC: the walk sees it.
    check_o.idle      = s.state == PdcOpen && s.una == s.top && !pending_i && !s.repositioning && s.due == '0;
    check_o.out       = positions(out);
    check_o.next      = positions(next);
    check_o.rto       = backed_off(port_i.rto_ticks,
                                   s.waiting || s.rto_shift == '1 ? s.rto_shift : s.rto_shift + 1'b1,
                                   port_i.rto_max_ticks);
    check_o.backoff   = backed_off(port_i.backoff_ticks, s.backoff_shift, port_i.backoff_max_ticks);
  end

  logic unused;
  assign unused = ^{port_i, ack_i, identity_i, s};
endmodule
