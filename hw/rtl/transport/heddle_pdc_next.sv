// SPDX-License-Identifier: Apache-2.0
// Second cycle of an ACK, a loss or a timer of heddle_pdc_tx: the state of the PDC after it. Combinational.

module heddle_pdc_next
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import heddle_transport_tx_pkg::*;
(
  input  port_cfg_t       port_i,
  input  transport_cfg_t  transport_i,
  input  logic [31:0]     now_i,
  input  logic [PdcW-1:0] pdc_i,
  input  tx_state_t       state_i,
  input  tx_timer_t       timer_i,
  input  ack_event_t      ack_i,
  input  tx_check_t       check_i,    // From the cycle before.
  input  logic            closed_i,   // The congestion window is closed.
  output tx_change_t      change_o
);
  tx_state_t s, d;
  tx_check_t c;
  assign s = state_i;
  assign c = check_i;

  // ------------------------------------------------------------------ the answer
  logic        closing, nacks, acks;
  logic        resend_now, trim_now, refusal, refuse_now, end_now, syn_again, finish, nack_taken, timed_out;
  logic        spares;    // With end_now: nothing that is not acknowledged was accepted.
  logic        restart;   // With end_now: the target began anew.
  logic        die;       // With end_now: the peer is silent.
  logic        ask_due;
  status_e     end_status;
  logic [15:0] end_detail;
  assign closing = s.state == PdcClosing;
  assign nacks   = c.nacks;
  assign acks    = c.acks;
  always_comb begin
    resend_now = 1'b0;
    trim_now   = 1'b0;
    refusal    = 1'b0;
    end_now    = 1'b0;
    die        = 1'b0;
    syn_again  = 1'b0;
    spares     = 1'b0;
    restart    = 1'b0;
    ask_due    = 1'b0;
    finish     = 1'b0;
    end_status = StatusPeerRejected;
    end_detail = {8'b0, ack_i.code};
    nack_taken = c.nacked || c.refuses_control;
    if (nacks && !closing) begin
      unique case (ack_i.code)
        NackCodeNoPdcAvail, NackCodeNoCccAvail, NackCodeNoBitmap, NackCodeNoPktBuffer,
        NackCodeNoGtdDelAvail, NackCodeNoSesMsgAvail, NackCodeNoResource,
        NackCodePsnOorWindow, NackCodeRcvdSesProcg:
          refusal = c.nacked;
        NackCodeTrimmed, NackCodeTrimmedLasthop:
          // Each is about one transmission of its packet.
          if (s.rud) trim_now = c.nacked && !s.waiting;
          else       resend_now = c.nacked && c.passed && !s.repositioning && !s.waiting;
        NackCodePktNotRcvd:
          if (s.rud) begin
            resend_now = c.nacked && c.passed && !s.repositioning && !s.waiting && c.worth_again;
          end else if (c.nacked && !s.waiting && (s.single || (c.fresh && !s.repositioning))) begin
            // The target has what followed; otherwise a pass that resends all of it is active.
            trim_now   = c.nearby;
            resend_now = !c.nearby && c.passed && !s.repositioning;
          end
        NackCodeTrimmedAck, NackCodeRodOoo, NackCodeAckWithData, NackCodeRcvrInferLoss:
          // Only for a packet of the present pass: others were answered already.
          resend_now = c.nacked && c.passed && !s.repositioning && !s.waiting && (!s.rud || c.worth_again);
        NackCodeInvalidSyn: begin  // Of an open PDC: about a late SYN, that another target received.
          syn_again  = c.nacked && s.state == PdcSyn && !s.repositioning;
          nack_taken = c.nacked && s.state == PdcSyn;
        end
        NackCodeInvDpdcid, NackCodePdcHdrMismatch, NackCodeClosing: begin
          nack_taken = c.answers;
          if (c.answers) begin
            if (ack_i.code == NackCodeInvDpdcid && s.state == PdcOpen) begin
              end_now    = 1'b1;
              restart    = 1'b1;
              end_status = StatusRemoteError;
              end_detail = 16'(ReturnCodeBadMkey);
            end
            else if (s.repositioning)          syn_again = 1'b0;  // In progress.
            else if (s.resent || !c.first || s.sack.held != '0) end_now = 1'b1;
            else if (s.state == PdcSyn)        syn_again = 1'b1;
            else begin
              end_now = 1'b1;
              spares  = 1'b1;
            end
          end
        end
        // Of a request; a peer refuses so also a control packet that it does not know.
        NackCodeUnexpEvent: end_now = c.nacked && !c.refuses_control;
        default: begin
          end_now    = c.answers && !ack_i.ask;
          nack_taken = c.answers;
        end
      endcase
    end else if (nacks) begin
      // The command is answered also by a target that has closed the PDC.
      unique case (ack_i.code)
        NackCodeInvDpdcid, NackCodePdcHdrMismatch, NackCodeClosing, NackCodeClosingInErr:
          finish = c.nacked;
        default: ;
      endcase
    end else if (acks && closing) begin
      finish = c.advances;
    end else if (c.fired && !s.waiting && (c.outstanding || s.due != '0) && c.silent) begin
      finish     = closing;
      end_now    = !closing;
      die        = 1'b1;
      end_status = StatusPeerUnreachable;
      end_detail = '0;
    end else if (c.fired && !s.waiting && c.awaits) begin
      ask_due = c.overdue;
    end
  end
  // On RUD each packet may be refused by itself; one wait serves all.
  assign refuse_now = refusal && !(s.waiting && (s.rud || c.reprobes));
  assign timed_out  = c.fired && !s.waiting && c.outstanding;

  // ------------------------------------------------- selective acknowledgement
  logic                 reports, moves, passes, loses, news, back;
  logic [SackW-1:0]     advance;
  sack_t                sack;
  logic [PdcWindow-1:0] held, left, flight;
  assign reports = acks && s.rud && (c.in_window || c.stale);
  // A window on ROD may be longer than the bitmap.
  assign moves   = reports || (acks && s.single && c.in_window);
  assign advance = moves && c.in_window ? c.advance : '0;
  assign passes  = c.loses;
  assign loses   = s.rud && (timed_out || resend_now || refusal);
  heddle_sack u_sack (
    .state_i(s.sack), .out_i(c.out), .next_i(c.next), .ack_i(moves), .advance_i(advance), .reported_i(c.reported),
    .pass_i(passes), .past_i(c.past), .lose_i(loses), .anew_i(!resend_now || c.repeated),
    .trim_i(trim_now), .trim_at_i(c.ahead[SackW-2:0]),
    .state_o(sack), .news_o(news), .held_o(held), .back_o(back), .left_o(left), .flight_o(flight)
  );

  // -------------------------------------------------------------------- the PDC
  logic        timer_on, timer_sets;  // Its timer runs; it is set to so many ticks from now.
  logic [31:0] interval;
  logic        walk_push;
  pdc_walk_t   walk;
  always_comb begin
    d          = s;
    d.sack     = sack;
    d.kept     = reports && c.some_held && closed_i;
    timer_on   = timer_i.on;
    timer_sets = 1'b0;
    interval   = port_i.rto_ticks;
    walk_push  = 1'b0;
    walk       = '0;
    walk.pdc   = pdc_i;
    walk.psn   = s.una;
    if (acks || nacks) begin
      if (nacks ? nack_taken || ack_i.ask : c.in_window) begin
        if (c.outstanding) d.heard = now_i;  // Else only data restart DEAD_TIME.
        if (closing) d.rto_shift = '0;       // The target lives, but has no room for its tombstone.
        if (acks && s.state == PdcSyn) begin
          d.state  = PdcOpen;
          d.tpdcid = ack_i.spdcid;
        end
        if (acks && c.advances) begin
          d.una           = c.acked;
          d.rto_shift     = '0;
          d.backoff_shift = '0;
          d.waiting       = 1'b0;
          if (c.proves) d.probing = 1'b0;
          timer_sets      = 1'b1;
          if (c.all && s.due == '0) interval = transport_i.idle_ticks;
          if (c.all) begin
            d.resent = 1'b0;
            timer_on = transport_i.idle_ticks != '0 || s.due != '0;
          end
          walk_push    = 1'b1;
          walk.kind    = WalkAck;
          walk.psn     = c.acked;
          walk.refused = c.refused;
          walk.detail  = {10'b0, ack_i.return_code};
          // The peer has more than is left to send again: skip it.
          if (c.overtakes && !s.repositioning) begin
            d.repositioning = 1'b1;
            walk.kind       = WalkReturn;
          end
        end
        if ((resend_now || refuse_now || (trim_now && c.passed)) && !s.repositioning) begin
          d.repositioning = 1'b1;
          walk_push       = 1'b1;
          walk.kind       = WalkReturn;
        end
        if (refuse_now) begin
          d.waiting       = 1'b1;
          d.probing       = 1'b1;
          d.probe_psn     = ack_i.psn;
          d.backoff_shift = (s.backoff_shift == '1) ? '1 : s.backoff_shift + 1'b1;
          timer_on        = 1'b1;
          timer_sets      = 1'b1;
          interval        = c.backoff;
        end
        if (trim_now && !s.rud) d.single = 1'b1;
        if (syn_again) begin  // Nothing is sent until it is open again.
          d.state         = PdcSyn;
          d.repositioning = 1'b1;
        end
      end
      // Not a stale one.
      if (ack_i.sack && c.in_window && ack_i.range != '0) begin
        d.range = ack_i.range > 8'(OrderedRange) ? RangeW'(OrderedRange - 1) : RangeW'(ack_i.range - 8'd1);
      end
      if (reports && news && !c.advances && !s.waiting) begin
        d.heard     = now_i;
        d.rto_shift = '0;
        timer_sets  = 1'b1;
      end
    end
    if (back && !s.repositioning) begin
      d.repositioning = 1'b1;
      walk_push       = 1'b1;
      walk.kind       = WalkReturn;
    end
    if (c.fired) begin
      timer_sets = 1'b1;
      interval   = c.rto;
      if (s.waiting) begin
        d.waiting = 1'b0;
      end else if (!c.outstanding && s.due != '0) begin
        interval = port_i.rto_ticks;
        if (ask_due) begin
          d.ask    = 1'b1;  // Replaces a pending Clear Command, which its ACK requests again.
          interval = c.patience < c.again ? c.patience : c.again;
        end
      end else if (!c.outstanding) begin
        // Idle. What is queued in this moment starts the RTO when it is sent.
        interval = transport_i.idle_ticks;
        timer_on = transport_i.idle_ticks != '0;
      end else begin
        d.rto_shift = (s.rto_shift == '1) ? '1 : s.rto_shift + 1'b1;
        d.probing   = 1'b1;
        d.probe_psn = s.una;
        if (closing) begin
          d.nxt = s.una;
        end else if (!s.repositioning) begin
          d.repositioning = 1'b1;
          walk_push       = 1'b1;
          walk.kind       = WalkReturn;
        end
      end
      if (!s.waiting && c.idle) begin
        d.repositioning = 1'b1;
        walk_push       = 1'b1;
        walk.kind       = WalkRetire;
      end
    end
    if (!s.rud && (resend_now || refuse_now || timed_out)) begin
      d.single = 1'b0;
      d.sack   = '0;
    end
    if (finish) begin
      d.state   = PdcEnding;
      timer_on  = 1'b0;
      walk_push = 1'b1;
      walk.kind = WalkClose;
    end
    if (end_now) begin
      d.state     = PdcEnding;
      timer_on    = 1'b0;
      walk_push   = 1'b1;
      walk.kind   = die ? WalkFail : restart ? WalkRestart : WalkMove;
      walk.psn    = spares || restart ? s.una : s.top;
      walk.reads  = s.due != '0;
      walk.status = end_status;
      walk.detail = end_detail;
    end
  end

  always_comb begin
    change_o.state     = d;
    change_o.timer.on  = timer_on;
    change_o.timer.at  = timer_sets ? now_i + interval : timer_i.at;
    change_o.walks     = walk_push;
    change_o.walk      = walk;
    change_o.acks      = acks && c.in_window;
    change_o.nacks     = nacks && !ack_i.ask && nack_taken;
    change_o.strays    = !ack_i.ask && ((nacks && !nack_taken) || (acks && !c.in_window));
    change_o.resends   = resend_now;
    change_o.trims     = trim_now;
    change_o.times_out = timed_out;
    change_o.asks      = ask_due;
    change_o.reopens   = syn_again;
    change_o.finishes  = finish;
    change_o.ends      = end_now;
    change_o.dies      = die && end_now;
    change_o.restarts  = restart;
    change_o.reports   = reports;
    change_o.judged    = reports && c.some_held;
    change_o.keeps     = d.kept;
    change_o.advance   = advance;
    change_o.passes    = passes;
    change_o.counted   = reports || passes || loses || (trim_now && s.rud);
    change_o.held      = held;
    change_o.left      = left;
    change_o.flight    = flight;
  end

  logic unused;
  assign unused = ^{port_i, transport_i, ack_i, c.known, c.sole, c.clears};
endmodule
