// SPDX-License-Identifier: Apache-2.0
// The state of a PDC after an event of heddle_return_tx. Combinational.
//
// A job and a send need one cycle. An ACK, a loss and a timer are decided by `check_i`, of the cycle before.

module heddle_return_next
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  port_cfg_t      port_i,
  input  logic [31:0]    now_i,
  input  return_event_e  event_i,
  input  return_state_t  state_i,
  input  return_timer_t  timer_i,
  input  logic           rud_i,
  input  return_job_t    job_i,
  input  ack_event_t     ack_i,
  input  logic [31:0]    acked_i,    // The PSN after those that it acknowledges.
  input  return_check_t  check_i,
  input  logic           step_i,     // EvSend: the PDC may.
  output return_change_t change_o
);
  return_state_t s, d;
  return_check_t c;
  logic          timer_on, timer_sets;  // Its timer runs; it is set to so many ticks from now.
  logic [31:0]   interval;
  assign s = state_i;
  assign c = check_i;

  // ------------------------------------------------------------------ the answer
  logic known_ack, resend_now, trim_now, refuse_now, end_now, timed_out;
  always_comb begin
    resend_now = 1'b0;
    trim_now   = 1'b0;
    refuse_now = 1'b0;
    end_now    = 1'b0;
    if (event_i == EvAck && c.known && ack_i.nack && c.nacked) begin
      unique case (ack_i.code)
        NackCodeNoBitmap, NackCodeNoPktBuffer, NackCodeNoGtdDelAvail, NackCodeNoSesMsgAvail,
        NackCodeNoResource, NackCodePsnOorWindow, NackCodeRcvdSesProcg:
          refuse_now = !s.waiting;
        NackCodeTrimmed, NackCodeTrimmedLasthop:
          // Each is about one transmission of its packet.
          if (rud_i) trim_now   = !s.waiting;
          else       resend_now = c.passed && !s.waiting;
        NackCodePktNotRcvd:
          if (rud_i) resend_now = c.passed && !s.waiting && c.worth_again;
          // The initiator has what followed; otherwise a pass that resends all of it is active.
          else       trim_now   = !s.waiting && (s.single || c.fresh);
        NackCodeRodOoo, NackCodeAckWithData, NackCodeRcvrInferLoss:
          // Only for a packet of the present pass: others were answered already.
          resend_now = c.passed && !s.waiting && (!rud_i || c.worth_again);
        default: end_now = 1'b1;
      endcase
    end else if (event_i == EvTimer && c.fired && !s.waiting && c.outstanding && c.silent) begin
      end_now = 1'b1;
    end
  end
  assign known_ack = event_i == EvAck && c.known && !ack_i.nack;
  assign timed_out = event_i == EvTimer && c.fired && !s.waiting && !end_now;

  // ------------------------------------------------- selective acknowledgement
  logic                 fresh, step, skip, above, news, back;
  logic                 reports, moves, passes, loses;
  logic [SackW-1:0]     advance;
  sack_t                sack, stepped;
  logic [PdcWindow-1:0] held, left, flight;
  assign fresh   = s.nxt == s.top;
  assign step    = step_i && (rud_i || s.single) && !fresh;
  assign reports = known_ack && rud_i && (c.in_window || c.stale);
  assign moves   = reports || (known_ack && s.single && c.in_window);
  assign advance = moves && c.in_window ? c.advance : '0;
  assign passes  = event_i == EvLost && c.loses;
  assign loses   = rud_i && (timed_out || resend_now || refuse_now);
  heddle_sack u_sack (
    .state_i(s.sack), .out_i(c.out), .next_i(c.next), .ack_i(moves), .advance_i(advance), .reported_i(c.reported),
    .pass_i(passes), .past_i(c.past), .lose_i(loses), .anew_i(!resend_now || c.repeated),
    .trim_i(trim_now), .trim_at_i(c.ahead[SackW-2:0]),
    .state_o(sack), .news_o(news), .held_o(held), .back_o(back), .left_o(left), .flight_o(flight)
  );
  heddle_sack_step u_step (
    .state_i(s.sack), .out_i(SackW'(s.top - s.una)), .next_i(SackW'(s.nxt - s.una)),
    .state_o(stepped), .skip_o(skip), .above_o(above)
  );

  // -------------------------------------------------------------------- the PDC
  always_comb begin
    d      = s;
    d.sack = step ? stepped : sack;
    timer_sets     = 1'b0;
    interval   = port_i.rto_ticks;
    timer_on   = timer_i.on;
    unique case (event_i)
      EvJob: begin
        if (job_i.close) begin
          d        = '0;
          timer_on = 1'b0;
        end else if (job_i.open) begin
          d        = '0;
          d.open   = 1'b1;
          d.una    = job_i.start_psn;
          d.nxt    = job_i.start_psn;
          d.top    = job_i.start_psn;
          d.fin    = job_i.start_psn + 32'd1;
          timer_on = 1'b0;
        end else if (s.open) begin
          d.fin    = s.fin + 32'd1;
        end
      end
      EvAck: begin
        if (c.known && (ack_i.nack ? c.nacked : c.in_window)) d.heard = now_i;
        if (known_ack && c.advances) begin
          d.una           = acked_i;
          d.rto_shift     = '0;
          d.backoff_shift = '0;
          d.waiting       = 1'b0;
          d.probing       = 1'b0;
          if (c.overtakes) d.nxt = acked_i;
          timer_on        = !c.all;
          timer_sets            = 1'b1;
        end
        if (reports && news && !c.advances && !s.waiting) begin
          d.heard     = now_i;
          d.rto_shift = '0;
          timer_sets        = 1'b1;
        end
        if (resend_now || refuse_now || (trim_now && c.passed)) d.nxt = s.una;
        if (trim_now && !rud_i) d.single = 1'b1;
        if (refuse_now) begin
          d.waiting       = 1'b1;
          d.probing       = 1'b1;
          d.backoff_shift = (s.backoff_shift == '1) ? '1 : s.backoff_shift + 1'b1;
          timer_on        = 1'b1;
          timer_sets            = 1'b1;
          interval        = c.backoff;
        end
      end
      EvLost: begin
        if (back) d.nxt = s.una;
      end
      EvTimer: begin
        if (c.fired) begin
          timer_sets     = 1'b1;
          interval = c.rto;
          if (s.waiting) begin
            d.waiting   = 1'b0;
          end else begin
            d.rto_shift = (s.rto_shift == '1) ? '1 : s.rto_shift + 1'b1;
            d.probing   = 1'b1;
            d.nxt       = s.una;
          end
        end
      end
      EvSend: begin
        if (step_i) begin
          d.nxt = s.nxt + 32'd1;
          d.top = fresh ? s.nxt + 32'd1 : s.top;
          if (s.una == s.top) begin
            d.heard  = now_i;  // Silence counts from here.
            timer_on = 1'b1;
            timer_sets     = 1'b1;  // The last ACK ended the doubling.
          end
        end
      end
      default: ;
    endcase
    if (!rud_i && (resend_now || refuse_now || timed_out)) begin
      d.single = 1'b0;
      d.sack   = '0;
    end
    if (end_now) begin
      d        = '0;
      timer_on = 1'b0;
    end
  end

  always_comb begin
    change_o.state     = d;
    change_o.timer.on  = timer_on;
    change_o.timer.at  = timer_sets ? now_i + interval : timer_i.at;
    change_o.can_send  = d.open && !d.waiting && d.nxt != d.fin && (!d.probing || d.nxt == d.una);
    change_o.kept      = d.fin - d.una;
    change_o.in_flight = d.nxt - d.una;
    change_o.opens     = event_i == EvJob && job_i.open && !job_i.close;
    change_o.pushes    = event_i == EvJob && !job_i.close && (job_i.open || s.open);
    change_o.sends     = step_i && !(step && skip);
    change_o.above     = above;
    change_o.acks      = known_ack && c.in_window;
    change_o.advances  = known_ack && c.advances;
    change_o.resends   = resend_now;
    change_o.trims     = trim_now;
    change_o.times_out = timed_out;
    change_o.ends      = end_now;
    change_o.reports   = reports;
    // A closed window stays so until it is known what is lost: that leaves first.
    change_o.judged    = reports && c.some_held;
    change_o.advance   = advance;
    change_o.passes    = passes;
    change_o.counted   = reports || passes || loses || (trim_now && rud_i);
    change_o.held      = held;
    change_o.left      = left;
    change_o.flight    = flight;
  end

  logic unused;
  assign unused = ^{port_i, job_i, ack_i, c.sole};
endmodule
