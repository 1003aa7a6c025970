// SPDX-License-Identifier: Apache-2.0
// Return direction of target PDCs: keeps what READs asked for, numbers and sends it, and sends it again
// until it is acknowledged.
//
// Ordered:  data of a PDC leave in the order in which they were asked for.
// Again:    on ROD all from the lost packet on, or what NACKs (PKT_NOT_RCVD) name; on RUD what heddle_sack names. To do so a PDC goes back to `una` and
//           passes over the packets that need not be sent, one a cycle.
// Kept:     a record until the initiator has acknowledged it; `room_o` says who may be given one more.
//           Host memory is read again for each transmission.
// Window:   all records of the PDC; one packet while the initiator refuses or is silent.
// Congested: with a congestion window in `transport_i`, no more packets are in flight than heddle_nscc says, but
//           always one. The packet that closes the window is to be answered.
// Silence:  an initiator that is not heard for dead_ticks while data are outstanding loses them.
// Reports:  a READ that its host is told of waits in heddle_read_reports for the acknowledgement of its last data.
// Region:   after a sweep no packet reads memory of the region: what is left of its records leaves as an
//           error response.
//
// One event per cycle changes the state of one PDC. What may not send delays no other.

`include "heddle_assert.svh"

module heddle_return_tx
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  port_cfg_t         port_i,
  input  transport_cfg_t    transport_i,
  input  logic [31:0]       now_ns_i,

  input  logic              job_valid_i,     // heddle_accept.
  output logic              job_ready_o,
  input  return_job_t       job_i,
  output logic [NumPdc-1:0] room_o,          // With jobs under way accounted for.

  output logic              wait_o,          // heddle_read_reports: a READ waits to be over,
  output read_wait_t        wait_info_o,
  output logic              over_o,          // and these are.
  output read_over_t        over_info_o,

  input  logic              ack_valid_i,     // ACK, NACK for our target PDCs.
  output logic              ack_ready_o,
  input  ack_event_t        ack_i,

  input  logic              sweep_valid_i,   // Held until `sweep_done_o`.
  input  logic [RegionW-1:0] sweep_region_i,
  output logic              sweep_done_o,    // One cycle: what follows on `pkt` is swept.

  output logic              pkt_valid_o,     // heddle_tx_build.
  input  logic              pkt_ready_i,
  input  logic              pause_i,          // heddle_tx_build has enough for now.
  output return_packet_t    pkt_o,
  output logic [SeqW-1:0]   seq_issued_o,    // Packets offered on `pkt` so far.

  output logic [NumStat-1:0] stat_o,
  output logic              idle_o,
  output logic              deadline_valid_o,
  output logic [31:0]       deadline_o
);
  typedef struct packed {
    logic        open;
    logic [31:0] una;       // Oldest unacknowledged PSN.
    logic [31:0] nxt;       // Next to send.
    logic [31:0] top;       // First never sent.
    logic [31:0] fin;       // First without data.
    logic        waiting;   // Back-off runs.
    logic        probing;   // One packet at a time until `una` moves.
    logic [3:0]  rto_shift;
    logic [3:0]  backoff_shift;
    logic [31:0] heard;     // Tick at which the initiator was last heard.
    sack_t       sack;      // RUD; ROD: `told`, with `single`.
    logic        single;    // ROD: of a pass, only what NACKs named is retransmitted.
  } state_t;

  typedef struct packed {
    logic         dead;
    return_data_t data;
  } record_t;

  typedef enum logic [2:0] {
    EvNone, EvJob, EvTimer, EvLost, EvAck, EvSweep, EvWindow, EvSend
  } event_e;

  localparam int unsigned RecordW  = $bits(record_t);
  localparam int unsigned RecordAW = PdcW + ReturnW;
  localparam int unsigned PktDepth = 8;
  // Decisions of heddle_accept that `room_o` does not know of yet.
  localparam int unsigned JobsUnderWay = 6;

  // ----------------------------------------------------------------- time
  logic [31:0] now_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)     now_q <= '0;
    else if (tick_i) now_q <= now_q + 1'b1;
  end

  // --------------------------------------------------------- stage 0: choose
  event_e          ev, ev_q;
  logic            passed_valid, passed_room, passed_idle;  // heddle_passed.
  logic [PdcW-1:0] passed_pdc;
  logic [15:0]     passed_spdcid, passed_spdcid_q;
  logic [31:0]     passed_psn, passed_psn_q;
  logic [PdcW-1:0] pdc, pdc_q;
  logic            ready, pkt_room, timer_due;
  logic [PdcW-1:0] timer_pdc;
  logic            limited, ruled;  // There is a congestion window; it changes.
  logic            window_valid;
  logic [PdcW-1:0] window_pdc;

  logic [NumPdc-1:0]   can_send_q, may_send;
  logic                send_any;
  logic [PdcW-1:0]     send_pdc;
  logic [ReturnW-1:0]  next_record;             // That `nxt` of the PDC names.
  logic [RecordAW-1:0] sweep_q;
  logic [NumPdc-1:0]   closed_window;           // By heddle_flight: nothing more may be in flight.
  logic                counting, unused_closes; // It is one stage later.
  logic [PdcW-1:0]     unused_count_pdc;
  logic [FlightW-1:0]  flight;                  // The PDC in stage 1 has so many, without an event just before.

  // A PDC in stage 1 is left alone if its next record may just change: a job that neither opens nor closes adds one.
  logic moves_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) moves_q <= 1'b0;
    else         moves_q <= ev != EvNone && (ev != EvJob || job_i.open || job_i.close);
  end
  always_comb begin
    may_send = can_send_q & ~closed_window;
    if (moves_q) may_send[pdc_q] = 1'b0;
  end
  logic [NumPdc-1:0] urgent_q;  // PDCs of a DSCP that is.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      urgent_q <= '0;
    end else if (ev == EvJob && job_i.open && !job_i.close) begin
      urgent_q[job_i.pdc] <= transport_i.urgent_dscps[job_i.route.dscp];
    end
  end
  heddle_class_pick #(.NumSrc(NumPdc)) u_next_pdc (
    .clk_i, .rst_ni, .valid_i(may_send), .urgent_i(urgent_q), .take_i(ev == EvSend),
    .valid_o(send_any), .idx_o(send_pdc)
  );

  always_comb begin
    ev  = EvNone;
    pdc = send_pdc;
    if (!ready) begin
      ev = EvNone;
    end else if (job_valid_i) begin
      ev  = EvJob;
      pdc = job_i.pdc;
    end else if (timer_due) begin
      ev  = EvTimer;
      pdc = timer_pdc;
    end else if (passed_valid) begin
      ev  = EvLost;
      pdc = passed_pdc;
    end else if (ack_valid_i && passed_room) begin
      ev  = EvAck;
      pdc = ack_i.pdc;
    end else if (sweep_valid_i && !sweep_done_o) begin
      ev  = EvSweep;
      pdc = sweep_q[ReturnW +: PdcW];
    end else if (window_valid) begin
      ev  = EvWindow;
      pdc = window_pdc;
    end else if (send_any && pkt_room) begin
      ev  = EvSend;
    end
  end
  assign job_ready_o = ev == EvJob;
  assign ack_ready_o = ev == EvAck;

  return_job_t         job_q;
  logic [31:0]         acked;  // The PSN after those that the ACK acknowledges.
  ack_event_t          ack_q;
  logic [RecordAW-1:0] swept_q;
  always_ff @(posedge clk_i) begin
    pdc_q   <= pdc;
    swept_q <= sweep_q;
    acked   <= ack_i.cack + 32'd1;
    passed_psn_q    <= passed_psn;
    passed_spdcid_q <= passed_spdcid;
    if (job_valid_i) job_q <= job_i;
    if (ack_valid_i) ack_q <= ack_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ev_q <= EvNone;
    else         ev_q <= ev;
  end

  // ------------------------------------------------------------------ memories
  state_t              s, d;
  return_route_t       route;
  record_t             record, record_wdata;
  logic                record_wen, state_wen, opens, pushes, swept;
  logic [RecordAW-1:0] record_waddr;
  logic                state_rdy, route_rdy, timer_rdy;
  logic                unused_state_err, unused_route_err, unused_record_err, unused_record_rdy;

  heddle_mem #(.Width($bits(state_t)), .Depth(NumPdc)) u_state (
    .clk_i, .rst_ni, .wen_i(state_wen), .waddr_i(pdc_q), .wdata_i(d),
    .raddr_i(pdc), .rdata_o(s), .error_o(unused_state_err), .ready_o(state_rdy)
  );
  heddle_mem #(.Width($bits(return_route_t)), .Depth(NumPdc)) u_route (
    .clk_i, .rst_ni, .wen_i(opens), .waddr_i(pdc_q), .wdata_i(job_q.route),
    .raddr_i(pdc), .rdata_o(route), .error_o(unused_route_err), .ready_o(route_rdy)
  );
  heddle_mem #(.Width(RecordW), .Depth(NumPdc * ReturnWindow), .Init(1'b0)) u_records (
    .clk_i, .rst_ni, .wen_i(record_wen), .waddr_i(record_waddr), .wdata_i(record_wdata),
    .raddr_i(ev == EvSweep ? sweep_q : {pdc, next_record}), .rdata_o(record),
    .error_o(unused_record_err), .ready_o(unused_record_rdy)
  );
  // Read in the cycle of the choice, of events before the one in stage 1: no send follows on one that changes it.
  heddle_lookup #(.Width(ReturnW), .Depth(NumPdc)) u_next (
    .clk_i, .wen_i(state_wen), .waddr_i(pdc_q), .wdata_i(d.nxt[ReturnW-1:0]), .raddr_i(pdc), .rdata_o(next_record)
  );
  // Congestion windows, as heddle_nscc said last.
  logic [FlightW-1:0] window_new, allowed;
  logic               unused_window_err, window_rdy, nscc_rdy, flight_rdy;
  heddle_mem #(.Width(FlightW), .Depth(NumPdc)) u_window (
    .clk_i, .rst_ni, .wen_i(ev == EvWindow), .waddr_i(pdc), .wdata_i(window_new),
    .raddr_i(pdc), .rdata_o(allowed), .error_o(unused_window_err), .ready_o(window_rdy)
  );
  assign ready = state_rdy && route_rdy && timer_rdy && window_rdy && nscc_rdy && flight_rdy;

  // ------------------------------------------------------ stage 1: one event
  logic        timer_on, timer_on_d, fired;
  logic [31:0] timer_at, timer_at_d;
  logic [31:0] rto, backoff, in_flight, out, ack_ahead;
  logic        known, advanced, in_window, nacked_in_window, taken, resend_now, trim_now, refuse_now, end_now, send_now;

  // Doubles `base` `shift` times, up to `limit`.
  function automatic logic [31:0] doubled(logic [31:0] base, logic [3:0] shift, logic [31:0] limit);
    logic [47:0] wide;
    wide    = {16'b0, base} << shift;
    doubled = (wide > {16'b0, limit}) ? limit : wide[31:0];
  endfunction

  assign backoff   = doubled(port_i.backoff_ticks, s.backoff_shift, port_i.backoff_max_ticks);
  assign in_flight = s.nxt - s.una;
  assign fired     = ev_q == EvTimer && timer_on && $signed(now_q - timer_at) >= 0 && s.open;

  assign known = s.open && ack_q.dpdcid == route.spdcid && ack_q.spdcid == route.dpdcid &&
                 ack_q.fa == route.fa;
  assign in_window        = (acked - s.una) <= (s.top - s.una);
  assign advanced         = in_window && acked != s.una;
  assign ack_ahead        = ack_q.psn - s.una;
  assign nacked_in_window = ack_ahead < (s.top - s.una);
  assign taken            = ack_q.nack ? nacked_in_window : in_window;

  always_comb begin
    resend_now = 1'b0;
    trim_now   = 1'b0;
    refuse_now = 1'b0;
    end_now    = 1'b0;
    if (ev_q == EvAck && known && ack_q.nack && nacked_in_window) begin
      unique case (ack_q.code)
        NackCodeNoBitmap, NackCodeNoPktBuffer, NackCodeNoGtdDelAvail, NackCodeNoSesMsgAvail,
        NackCodeNoResource, NackCodePsnOorWindow, NackCodeRcvdSesProcg:
          refuse_now = !s.waiting;
        NackCodeTrimmed, NackCodeTrimmedLasthop:
          // Each is about one transmission of its packet.
          if (route.rud) trim_now = !s.waiting;
          else           resend_now = (ack_q.psn - s.una) < in_flight && !s.waiting;
        NackCodePktNotRcvd:
          if (route.rud) resend_now = ack_ahead < in_flight && !s.waiting && worth_again;
          // The initiator has what followed; otherwise a pass that resends all of it is active.
          else           trim_now   = !s.waiting && (s.single || fresh);
        NackCodeRodOoo, NackCodeAckWithData, NackCodeRcvrInferLoss:
          // Only for a packet of the present pass: others were answered already.
          resend_now = (ack_q.psn - s.una) < in_flight && !s.waiting && (!route.rud || worth_again);
        default: end_now = 1'b1;
      endcase
    end else if (fired && !s.waiting && s.una != s.top && now_q - s.heard >= port_i.dead_ticks) begin
      end_now = 1'b1;
    end
  end

  logic fresh, step_now;
  assign fresh    = s.nxt == s.top;
  assign step_now = ev_q == EvSend && can_send_q[pdc_q] && !closed_window[pdc_q];
  assign send_now = step_now && !(sack_step && sack_skip);
  assign opens    = ev_q == EvJob && job_q.open && !job_q.close;
  assign pushes   = ev_q == EvJob && !job_q.close && (job_q.open || s.open);
  assign swept    = ev_q == EvSweep && !record.dead && record.data.region == sweep_region_i;

  // ------------------------------------------------- selective acknowledgement
  logic             stale, timed_out, sack_ack, sack_lose, sack_step, repeated_loss, worth_again;
  logic             sack_news, sack_back, sack_skip, sack_above;
  logic [31:0]      next;
  sack_t            sack;
  logic             sack_moves, sack_pass, judged, keep_closed;
  logic [SackW-1:0] sack_advance;
  logic [31:0]      past;
  logic [PdcWindow-1:0] sack_left, sack_flight, sack_held;
  // A NACK about what was sent again before may be late; it counts when no pass is under way that it could be about.
  assign repeated_loss = (ack_q.psn - s.una) < 32'(s.sack.again);
  assign worth_again   = repeated_loss ? fresh : 32'(s.sack.again) < s.top - s.una;
  assign stale         = !in_window && s.una - acked < 32'(2 * PdcWindow);
  assign sack_ack      = ev_q == EvAck && known && !ack_q.nack && route.rud && (in_window || stale);
  assign next          = s.nxt - s.una;
  assign sack_step     = step_now && (route.rud || s.single) && !fresh;
  assign timed_out     = fired && !s.waiting && !end_now;
  assign sack_lose     = route.rud && (timed_out || resend_now || refuse_now);
  assign sack_moves    = sack_ack || (ev_q == EvAck && known && !ack_q.nack && s.single && in_window);
  assign sack_advance  = sack_moves && in_window ? SackW'(acked - s.una) : '0;
  assign past          = passed_psn_q - s.una;  // Not if it was acknowledged meanwhile.
  assign sack_pass     = ev_q == EvLost && s.open && route.rud && passed_spdcid_q == route.spdcid && past <= 32'(PdcWindow);
  // A closed window stays so until it is known what is lost: that leaves first.
  assign judged      = sack_ack && (s.sack.held != '0 || (ack_q.sack && ack_q.sack_bitmap != '0));
  assign keep_closed = judged && closed_window[pdc_q];
  heddle_passed u_passed (
    .clk_i, .rst_ni, .reorder_i(transport_i.reorder),
    .valid_i(judged), .always_i(keep_closed), .room_o(passed_room), .pdc_i(pdc_q), .spdcid_i(route.spdcid), .una_i(s.una),
    .advance_i(sack_advance), .held_i(sack_held),
    .valid_o(passed_valid), .ready_i(ev == EvLost), .pdc_o(passed_pdc), .spdcid_o(passed_spdcid), .psn_o(passed_psn),
    .idle_o(passed_idle)
  );
  heddle_sack u_sack (
    .state_i(s.sack), .out_i(SackW'(s.top - s.una)),
    .next_i($signed(next) < 0 ? '0 : SackW'(next)),
    .ack_i(sack_moves), .advance_i(sack_advance),
    .sack_i(ack_q.sack && route.rud), .base_i(ack_q.sack_base - s.una), .bitmap_i(ack_q.sack_bitmap),
    .pass_i(sack_pass), .past_i(past[SackW-1:0]),
    .lose_i(sack_lose), .anew_i(!resend_now || repeated_loss), .step_i(sack_step),
    .trim_i(trim_now), .trim_at_i(ack_ahead[SackW-2:0]),
    .state_o(sack), .news_o(sack_news), .held_o(sack_held), .back_o(sack_back), .skip_o(sack_skip),
    .above_o(sack_above), .left_o(sack_left), .flight_o(sack_flight)
  );

  always_comb begin
    d          = s;
    d.sack     = sack;
    timer_on_d = timer_on;
    timer_at_d = timer_at;
    rto        = doubled(port_i.rto_ticks, s.rto_shift, port_i.rto_max_ticks);
    unique case (ev_q)
      EvJob: begin
        if (job_q.close) begin
          d          = '0;
          timer_on_d = 1'b0;
        end else if (job_q.open) begin
          d          = '0;
          d.open     = 1'b1;
          d.una      = job_q.start_psn;
          d.nxt      = job_q.start_psn;
          d.top      = job_q.start_psn;
          d.fin      = job_q.start_psn + 32'd1;
          timer_on_d = 1'b0;
        end else if (s.open) begin
          d.fin      = s.fin + 32'd1;
        end
      end
      EvAck: begin
        if (known && taken) d.heard = now_q;
        if (known && !ack_q.nack && advanced) begin
          d.una           = acked;
          d.rto_shift     = '0;
          d.backoff_shift = '0;
          d.waiting       = 1'b0;
          d.probing       = 1'b0;
          if ($signed(s.nxt - acked) < 0) d.nxt = acked;
          timer_on_d      = acked != s.top;
          timer_at_d      = now_q + port_i.rto_ticks;
        end
        if (sack_ack && sack_news && !advanced && !s.waiting) begin
          d.heard     = now_q;
          d.rto_shift = '0;
          timer_at_d  = now_q + port_i.rto_ticks;
        end
        if (resend_now || refuse_now || (trim_now && ack_ahead < in_flight)) d.nxt = s.una;
        if (trim_now && !route.rud) d.single = 1'b1;
        if (refuse_now) begin
          d.waiting       = 1'b1;
          d.probing       = 1'b1;
          d.backoff_shift = (s.backoff_shift == '1) ? '1 : s.backoff_shift + 1'b1;
          timer_on_d      = 1'b1;
          timer_at_d      = now_q + backoff;
        end
      end
      EvLost: begin
        if (sack_back) d.nxt = s.una;
      end
      EvTimer: begin
        if (fired) begin
          timer_at_d = now_q + rto;
          if (s.waiting) begin
            d.waiting   = 1'b0;
          end else begin
            d.rto_shift = (s.rto_shift == '1) ? '1 : s.rto_shift + 1'b1;
            timer_at_d  = now_q + doubled(port_i.rto_ticks, d.rto_shift, port_i.rto_max_ticks);
            d.probing   = 1'b1;
            d.nxt       = s.una;
          end
        end
      end
      EvSend: begin
        if (step_now) begin
          d.nxt = s.nxt + 32'd1;
          d.top = fresh ? s.nxt + 32'd1 : s.top;
          if (s.una == s.top) begin
            d.heard    = now_q;  // Silence counts from here.
            timer_on_d = 1'b1;
            timer_at_d = now_q + rto;
          end
        end
      end
      default: ;
    endcase
    if (!route.rud && (resend_now || refuse_now || timed_out)) begin
      d.single = 1'b0;
      d.sack   = '0;
    end
    if (end_now) begin
      d          = '0;
      timer_on_d = 1'b0;
    end
    out = d.nxt - d.una;
  end
  assign state_wen = ev_q != EvNone && ev_q != EvSweep;

  logic can_send_d;
  assign can_send_d = d.open && !d.waiting && d.nxt != d.fin &&
                      (!d.probing || d.nxt == d.una);

  logic [NumPdc-1:0] room_q, holds_q;
  logic [31:0]       held;
  assign held = d.fin - d.una;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      can_send_q <= '0;
      room_q     <= '1;
      holds_q    <= '0;
    end else if (state_wen) begin
      can_send_q[pdc_q] <= can_send_d;
      holds_q[pdc_q]    <= held != '0;
      room_q[pdc_q]     <= held <= 32'(ReturnWindow - JobsUnderWay);
    end
  end
  assign room_o = room_q;

  // -------------------------------------------------------------------- records
  always_comb begin
    record_wen        = pushes || swept;
    record_waddr      = pushes ? {pdc_q, job_q.open ? job_q.start_psn[ReturnW-1:0] : s.fin[ReturnW-1:0]}
                               : swept_q;
    record_wdata      = record;
    record_wdata.dead = 1'b1;
    if (pushes) begin
      record_wdata.dead = 1'b0;
      record_wdata.data = job_q.data;
    end
  end

  // The sweep passes over PDCs without records. It ends behind its last record, which is then in stage 1.
  logic                sweep_last_q;
  logic [RecordAW-1:0] sweep_next;
  assign sweep_next = holds_q[sweep_q[ReturnW +: PdcW]]
                          ? sweep_q + 1'b1 : {sweep_q[ReturnW +: PdcW] + 1'b1, ReturnW'(0)};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sweep_q      <= '0;
      sweep_last_q <= 1'b0;
    end else begin
      if (ev == EvSweep) sweep_q <= sweep_next;
      sweep_last_q <= ev == EvSweep && sweep_next == '0;
    end
  end
  assign sweep_done_o = sweep_last_q;

  // --------------------------------------------------------------------- reports
  assign wait_o = ev_q == EvJob && job_q.tell && !job_q.close;
  assign over_o = end_now || (ev_q == EvJob && job_q.close) ||
                  (ev_q == EvAck && known && !ack_q.nack && advanced);
  always_comb begin
    wait_info_o.pdc  = pdc_q;
    wait_info_o.psn  = job_q.open ? job_q.start_psn : s.fin;
    wait_info_o.lost = !pushes;
    wait_info_o.ipv6 = job_q.route.ipv6;
    wait_info_o.fa   = job_q.route.fa;
    wait_info_o.read = job_q.report;
    over_info_o.pdc  = pdc_q;
    over_info_o.psn  = acked;
    over_info_o.gone = end_now || ev_q == EvJob;
    over_info_o.lost = end_now || (ev_q == EvJob && job_q.lost);
  end

  // --------------------------------------------------------------------- packets
  return_packet_t            pkt_d;
  logic                      pkt_fifo_ready;
  logic [$clog2(PktDepth):0] pkt_count;
  always_comb begin
    pkt_d           = '0;
    pkt_d.pdc       = pdc_q;
    pkt_d.psn       = s.nxt;
    pkt_d.retx      = !fresh;
    // The initiator answers when nothing follows, and often enough to keep the window moving.
    pkt_d.ar        = s.nxt + 32'd1 == s.fin || !fresh || s.probing || s.nxt[2:0] == '1 ||
                      (limited && flight + 1'b1 >= allowed);
    pkt_d.dead      = record.dead;
    pkt_d.clear_psn = s.una - 32'd1;
    pkt_d.route     = route;
    pkt_d.data      = record.data;
  end
  heddle_fifo #(.Width($bits(return_packet_t)), .Depth(PktDepth)) u_packets (
    .clk_i, .rst_ni, .valid_i(send_now), .ready_o(pkt_fifo_ready), .data_i(pkt_d),
    .valid_o(pkt_valid_o), .ready_i(pkt_ready_i), .data_o(pkt_o), .count_o(pkt_count)
  );
  logic [SeqW-1:0] seq_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)       seq_q <= '0;
    else if (send_now) seq_q <= seq_q + 1'b1;
  end
  assign seq_issued_o = seq_q;
  assign pkt_room = pkt_count <= ($clog2(PktDepth)+1)'(PktDepth - 2) && !pause_i && hold_q == '0;
  // heddle_tx_build counts a full packet before the next one is chosen.
  logic [PauseCycles-1:0] hold_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) hold_q <= '0;
    else         hold_q <= {hold_q[0 +: PauseCycles-1], send_now && record.data.bytes[13:10] != '0};
  end

  // ------------------------------------------------------------------ congestion
  logic        sole, trims, measured, rule, rule_valid, nscc_idle;
  logic [23:0] trip;
  logic [19:0] unused_bytes;
  nscc_event_t rule_event, rule_counted;
  assign limited   = transport_i.cwnd_bytes != '0;
  assign ruled     = limited && transport_i.congestion[0] && transport_i.base_rtt_ns != '0;
  heddle_round_trip #(.Depth(NumPdc * ReturnWindow)) u_round_trip (
    .clk_i, .rst_ni, .now_ns_i,
    .sent_i(send_now && ruled), .sent_place_i({pdc_q, s.nxt[ReturnW-1:0]}), .sent_sole_i(fresh),
    .look_place_i({ack_i.pdc, ack_i.psn[ReturnW-1:0]}), .service_time_i(ack_q.service_time),
    .sole_o(sole), .rtt_o(trip)
  );
  assign trims     = ack_q.code == NackCodeTrimmed || ack_q.code == NackCodeTrimmedLasthop;
  assign measured  = nacked_in_window && sole && !ack_q.retx && !s.sack.held[ack_ahead[$clog2(PdcWindow)-1:0]];
  always_comb begin
    rule           = 1'b0;
    rule_event     = '0;
    rule_event.pdc = pdc_q;
    rule_event.now = now_ns_i;
    if (opens) begin
      rule               = limited;
      rule_event.open    = 1'b1;
    end else if (timed_out) begin
      rule               = ruled;
      rule_event.timeout = 1'b1;
    end else if (resend_now || trim_now) begin
      rule               = ruled;
      rule_event.trim    = trims;
    end else if (sack_pass) begin
      rule               = ruled;
    end else if (sack_ack || (ev_q == EvAck && known && !ack_q.nack && in_window)) begin
      rule               = ruled;
      rule_event.ack     = 1'b1;
      rule_event.marked  = ack_q.m;
      rule_event.rtt     = measured ? trip : '0;
    end
  end
  heddle_flight u_flight (
    .clk_i, .rst_ni, .ready_o(flight_rdy),
    .event_i(state_wen), .pdc_i(pdc_q), .limited_i(limited), .allowed_i(allowed),
    .sent_i(send_now), .counted_i(sack_ack || sack_pass || sack_lose || (trim_now && route.rud)), .left_i(sack_left), .flight_i(sack_flight),
    .keep_i(keep_closed),
    .fixed_i(!route.rud || !d.open || opens), .out_i(out),
    .rule_i(rule), .rule_event_i(rule_event), .lost_one_i(trims && !route.rud && resend_now),
    .lost_all_i(!trims && !route.rud && resend_now), .rule_o(rule_valid), .rule_event_o(rule_counted),
    .look_pdc_i(pdc), .flight_o(flight), .event_o(counting), .pdc_o(unused_count_pdc), .closes_o(unused_closes),
    .closed_o(closed_window)
  );
  heddle_nscc u_nscc (
    .clk_i, .rst_ni, .port_i, .transport_i,
    .event_valid_i(rule_valid), .event_i(rule_counted), .ready_o(nscc_rdy),
    .window_valid_o(window_valid), .window_ready_i(ev == EvWindow), .window_pdc_o(window_pdc),
    .window_o(window_new), .window_bytes_o(unused_bytes), .idle_o(nscc_idle)
  );

  // ---------------------------------------------------------------------- timers
  logic        clean, scan_deadline;
  logic [31:0] scan_at, until_deadline;
  heddle_timer_scan #(.Num(NumPdc)) u_timers (
    .clk_i, .rst_ni, .now_i(now_q),
    .set_i(state_wen), .set_idx_i(pdc_q), .set_on_i(timer_on_d), .set_at_i(timer_at_d),
    .get_idx_i(pdc), .get_on_o(timer_on), .get_at_o(timer_at),
    .due_o(timer_due), .due_idx_o(timer_pdc), .take_i(ev == EvTimer),
    .clean_o(clean), .deadline_valid_o(scan_deadline), .deadline_o(scan_at), .ready_o(timer_rdy)
  );
  assign until_deadline   = scan_at - now_q;
  assign deadline_valid_o = scan_deadline;
  assign deadline_o       = ($signed(until_deadline) <= 0) ? 32'd1 : until_deadline;
  assign idle_o = ready && clean && nscc_idle && ev == EvNone && ev_q == EvNone && !counting && passed_idle && !timer_due && !(|may_send) &&
                  pkt_count == '0 && !job_valid_i && !ack_valid_i && !sweep_valid_i &&
                  !(scan_deadline && $signed(until_deadline) <= 0);

  // ------------------------------------------------------------------ statistics
  always_comb begin
    stat_o = '0;
    if (ev_q == EvAck) begin
      stat_o[StatisticRxAcks]    = known && !ack_q.nack && in_window;
      stat_o[StatisticRxNacks]   = known && ack_q.nack && taken;
      stat_o[StatisticDropPdcid] = !known;
      stat_o[StatisticDropPsn]   = known && !taken;
    end
    stat_o[StatisticTxReturnData]      = send_now && fresh;
    stat_o[StatisticTxRetransmissions] = send_now && !fresh;
    stat_o[StatisticTxSelective]       = send_now && route.rud && !fresh && sack_above;
    stat_o[StatisticTimeouts]          = timed_out;
  end

  logic unused;
  assign unused = ^{unused_state_err, unused_route_err, unused_record_err, unused_record_rdy, unused_window_err,
                    unused_bytes, unused_closes, unused_count_pdc, ack_ahead, out, ack_q, job_q, port_i, transport_i};

  `HEDDLE_ASSERT(PacketQueueHasRoom_A, !send_now || pkt_fifo_ready)
  `HEDDLE_ASSERT(RecordsHaveRoom_A, !pushes || job_q.open || (s.fin - s.una) < 32'(ReturnWindow))
endmodule
