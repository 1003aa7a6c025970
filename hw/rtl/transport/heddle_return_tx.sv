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
// One event at a time changes the state of one PDC (heddle_return_next): in one cycle, an ACK, a loss and a timer in two
// (heddle_return_check first). A PDC that may not send delays no other.

`include "heddle_assert.svh"

module heddle_return_tx
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_return_pkg::*;
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
    logic         dead;
    return_data_t data;
  } record_t;

  localparam int unsigned RecordW  = $bits(record_t);
  localparam int unsigned RecordAW = PdcW + ReturnW;
  localparam int unsigned PktDepth = 8;
  // Decisions of heddle_accept that `room_o` does not know of yet.
  localparam int unsigned JobsUnderWay = 7;

  // ----------------------------------------------------------------- time
  logic [31:0] now_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)     now_q <= '0;
    else if (tick_i) now_q <= now_q + 1'b1;
  end

  // --------------------------------------------------------- stage 0: choose
  return_event_e   ev, ev_q, acts;                           // Chosen; in stage 1; it changes the PDC in this cycle.
  logic            busy, late_q;                             // First cycle of an event that needs two; the second one.
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
  logic                counting, count_closes, flight_idle; // It is two stages later; an event closes it.
  logic [PdcW-1:0]     count_pdc;
  logic [FlightW-1:0]  flight;                  // The PDC in stage 1 has so many, without an event just before.

  // Nothing is sent of the PDC in stage 1 if its next record may just change: a job that neither opens nor closes adds one.
  logic moves_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)    moves_q <= 1'b0;
    else if (!busy) moves_q <= ev != EvNone && (ev != EvJob || job_i.open || job_i.close);
  end
  assign may_send = can_send_q & ~closed_window;
  logic [NumPdc-1:0] urgent_q;  // PDCs of a DSCP that is.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      urgent_q <= '0;
    end else if (takes_job && job_i.open && !job_i.close) begin
      urgent_q[job_i.pdc] <= transport_i.urgent_dscps[job_i.route.dscp];
    end
  end
  heddle_class_group_pick #(.NumSrc(NumPdc)) u_next_pdc (
    .clk_i, .rst_ni, .valid_i(may_send), .urgent_i(urgent_q), .take_i(takes_send),
    .valid_o(send_any), .idx_o(send_pdc)
  );

  logic before_lost, before_ack, before_sweep, before_window, before_send;  // Something precedes it.
  logic may, takes_job, takes_timer, takes_lost, takes_ack, takes_sweep, takes_window, takes_send;
  assign before_lost   = job_valid_i || timer_due;
  assign before_ack    = before_lost || passed_valid;
  assign before_sweep  = before_ack || (ack_valid_i && passed_room);
  assign before_window = before_sweep || sweep_valid_i;
  assign before_send   = before_window || window_valid;
  assign may           = ready && !busy;
  assign takes_job     = may && job_valid_i;
  assign takes_timer   = may && !job_valid_i && timer_due;
  assign takes_lost    = may && !before_lost && passed_valid;
  assign takes_ack     = may && !before_ack && ack_valid_i && passed_room;
  assign takes_sweep   = may && !before_sweep && sweep_valid_i && !sweep_done_o && !pushes_now;
  assign takes_window  = may && !before_window && window_valid;
  assign takes_send    = may && !before_send && send_any && pkt_room && !(moves_q && send_pdc == pdc_q);
  always_comb begin
    ev = EvNone;
    unique case (1'b1)
      takes_job:    ev = EvJob;
      takes_timer:  ev = EvTimer;
      takes_lost:   ev = EvLost;
      takes_ack:    ev = EvAck;
      takes_sweep:  ev = EvSweep;
      takes_window: ev = EvWindow;
      takes_send:   ev = EvSend;
      default: ;
    endcase
    if (busy)                pdc = pdc_q;
    else if (job_valid_i)    pdc = job_i.pdc;
    else if (timer_due)      pdc = timer_pdc;
    else if (!before_ack)    pdc = before_sweep ? ack_i.pdc : before_window ? sweep_q[ReturnW +: PdcW]
                                                                            : window_valid ? window_pdc : send_pdc;
    else                     pdc = passed_pdc;
  end
  assign job_ready_o = takes_job;
  assign ack_ready_o = takes_ack;

  return_job_t         job_q;
  logic [31:0]         acked;  // The PSN after those that the ACK acknowledges.
  ack_event_t          ack_q;
  logic [RecordAW-1:0] swept_q;
  always_ff @(posedge clk_i) begin
    pdc_q   <= pdc;
    swept_q <= sweep_q;
    if (job_valid_i) job_q <= job_i;
    if (!busy) begin
      acked           <= ack_i.cack + 32'd1;
      passed_psn_q    <= passed_psn;
      passed_spdcid_q <= passed_spdcid;
      if (ack_valid_i) ack_q <= ack_i;
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_q   <= EvNone;
      late_q <= 1'b0;
    end else begin
      if (!busy) ev_q <= ev;
      late_q <= busy;
    end
  end
  assign busy = (ev_q == EvAck || ev_q == EvLost || ev_q == EvTimer) && !late_q;
  assign acts = busy ? EvNone : ev_q;

  // ------------------------------------------------------------------ memories
  return_state_t       s;
  return_check_t       check, check_q;
  return_change_t      change;
  return_route_t       route;
  record_t             record, record_wdata;
  logic                record_wen, state_wen, swept;
  logic [RecordAW-1:0] record_waddr;
  logic                state_rdy, route_rdy, timer_rdy;
  logic                unused_state_err, unused_route_err, unused_record_err, unused_record_rdy;

  heddle_mem #(.Width($bits(return_state_t)), .Depth(NumPdc)) u_state (
    .clk_i, .rst_ni, .wen_i(state_wen), .waddr_i(pdc_q), .wdata_i(change.state),
    .raddr_i(pdc), .rdata_o(s), .error_o(unused_state_err), .ready_o(state_rdy)
  );
  heddle_mem #(.Width($bits(return_route_t)), .Depth(NumPdc)) u_route (
    .clk_i, .rst_ni, .wen_i(change.opens), .waddr_i(pdc_q), .wdata_i(job_q.route),
    .raddr_i(pdc), .rdata_o(route), .error_o(unused_route_err), .ready_o(route_rdy)
  );
  heddle_mem #(.Width(RecordW), .Depth(NumPdc * ReturnWindow), .Init(1'b0), .Coherent(1'b0)) u_records (
    .clk_i, .rst_ni, .wen_i(record_wen), .waddr_i(record_waddr), .wdata_i(record_wdata),
    .raddr_i(sweep_valid_i ? sweep_q : {send_pdc, next_record}), .rdata_o(record),
    .error_o(unused_record_err), .ready_o(unused_record_rdy)
  );
  // Read in the cycle of the choice, of events before the one in stage 1: no send follows on one that changes it.
  heddle_lookup #(.Width(ReturnW), .Depth(NumPdc)) u_next (
    .clk_i, .wen_i(state_wen), .waddr_i(pdc_q), .wdata_i(change.state.nxt[ReturnW-1:0]), .raddr_i(send_pdc), .rdata_o(next_record)
  );
  // Congestion windows, as heddle_nscc said last.
  logic [FlightW-1:0] window_new, allowed;
  logic               unused_window_err, window_rdy, nscc_rdy, flight_rdy;
  heddle_mem #(.Width(FlightW), .Depth(NumPdc)) u_window (
    .clk_i, .rst_ni, .wen_i(takes_window), .waddr_i(pdc), .wdata_i(window_new),
    .raddr_i(pdc), .rdata_o(allowed), .error_o(unused_window_err), .ready_o(window_rdy)
  );
  assign ready = state_rdy && route_rdy && timer_rdy && window_rdy && nscc_rdy && flight_rdy;

  // ------------------------------------------------------ stage 1: one event
  return_timer_t timer;
  logic          fresh, sole, step;
  logic [23:0]   trip, trip_q;
  heddle_return_check u_check (
    .port_i, .now_i(now_q), .state_i(s), .route_i(route), .timer_i(timer), .ack_i(ack_q), .acked_i(acked), .sole_i(sole),
    .passed_spdcid_i(passed_spdcid_q), .passed_psn_i(passed_psn_q), .check_o(check)
  );
  always_ff @(posedge clk_i) begin
    check_q <= check;
    trip_q  <= trip;
  end
  heddle_return_next u_next_state (
    .port_i, .now_i(now_q), .event_i(acts), .state_i(s), .timer_i(timer), .rud_i(route.rud), .job_i(job_q), .ack_i(ack_q),
    .acked_i(acked), .check_i(check_q), .step_i(step), .change_o(change)
  );
  assign fresh     = s.nxt == s.top;
  assign swept     = acts == EvSweep && !record.dead && record.data.region == sweep_region_i;
  assign step      = acts == EvSend && can_send_q[pdc_q] && !closed_now;  // Else the choice was late.
  assign state_wen = acts != EvNone && acts != EvSweep && (acts != EvSend || step);

  logic closed_now, keep_closed;  // Its congestion window; it stays so.
  assign closed_now  = counting && count_pdc == pdc_q ? count_closes : closed_window[pdc_q];
  assign keep_closed = change.judged && closed_now;
  heddle_passed u_passed (
    .clk_i, .rst_ni, .reorder_i(transport_i.reorder),
    .valid_i(change.judged), .always_i(keep_closed), .room_o(passed_room), .pdc_i(pdc_q), .spdcid_i(route.spdcid),
    .una_i(s.una), .advance_i(change.advance), .held_i(change.held),
    .valid_o(passed_valid), .ready_i(takes_lost), .pdc_o(passed_pdc), .spdcid_o(passed_spdcid), .psn_o(passed_psn),
    .idle_o(passed_idle)
  );

  // One cycle after the event.
  logic              changed_q, can_send_now_q, pushed_q, pushes_now;
  logic [PdcW-1:0]   changed_pdc_q;
  logic [31:0]       kept_q;
  logic [NumPdc-1:0] room_q, holds_q;
  assign pushes_now = ev_q == EvJob || pushed_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      changed_q  <= 1'b0;
      pushed_q   <= 1'b0;
      can_send_q <= '0;
      room_q     <= '1;
      holds_q    <= '0;
    end else begin
      changed_q <= state_wen;
      pushed_q  <= ev_q == EvJob;
      if (changed_q) begin
        can_send_q[changed_pdc_q] <= can_send_now_q;
        holds_q[changed_pdc_q]    <= kept_q != '0;
        room_q[changed_pdc_q]     <= kept_q <= 32'(ReturnWindow - JobsUnderWay);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    changed_pdc_q  <= pdc_q;
    can_send_now_q <= change.can_send;
    kept_q         <= change.kept;
  end
  assign room_o = room_q;

  // -------------------------------------------------------------------- records
  always_comb begin
    record_wen        = change.pushes || swept;
    record_waddr      = change.pushes ? {pdc_q, job_q.open ? job_q.start_psn[ReturnW-1:0] : s.fin[ReturnW-1:0]}
                               : swept_q;
    record_wdata      = record;
    record_wdata.dead = 1'b1;
    if (change.pushes) begin
      record_wdata.dead = 1'b0;
      record_wdata.data = job_q.data;
    end
  end

  // The sweep passes over PDCs without records, and waits until it is known whether a PDC has any. It ends when its last record
  // is in stage 1.
  logic                sweep_last_q;
  logic [RecordAW-1:0] sweep_next;
  assign sweep_next = holds_q[sweep_q[ReturnW +: PdcW]]
                          ? sweep_q + 1'b1 : {sweep_q[ReturnW +: PdcW] + 1'b1, ReturnW'(0)};
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sweep_q      <= '0;
      sweep_last_q <= 1'b0;
    end else begin
      if (takes_sweep) sweep_q <= sweep_next;
      sweep_last_q <= takes_sweep && sweep_next == '0;
    end
  end
  assign sweep_done_o = sweep_last_q;

  // --------------------------------------------------------------------- reports
  assign wait_o = acts == EvJob && job_q.tell && !job_q.close;
  assign over_o = change.ends || change.advances || (acts == EvJob && job_q.close);
  always_comb begin
    wait_info_o.pdc  = pdc_q;
    wait_info_o.psn  = job_q.open ? job_q.start_psn : s.fin;
    wait_info_o.lost = !change.pushes;
    wait_info_o.ipv6 = job_q.route.ipv6;
    wait_info_o.fa   = job_q.route.fa;
    wait_info_o.read = job_q.report;
    over_info_o.pdc  = pdc_q;
    over_info_o.psn  = acked;
    over_info_o.gone = change.ends || acts == EvJob;
    over_info_o.lost = change.ends || (acts == EvJob && job_q.lost);
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
    .clk_i, .rst_ni, .valid_i(change.sends), .ready_o(pkt_fifo_ready), .data_i(pkt_d),
    .valid_o(pkt_valid_o), .ready_i(pkt_ready_i), .data_o(pkt_o), .count_o(pkt_count)
  );
  logic [SeqW-1:0] seq_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)       seq_q <= '0;
    else if (change.sends) seq_q <= seq_q + 1'b1;
  end
  assign seq_issued_o = seq_q;
  assign pkt_room = pkt_count <= ($clog2(PktDepth)+1)'(PktDepth - 2) && !pause_i && hold_q == '0;
  // heddle_tx_build counts a full packet before the next one is chosen.
  logic [PauseCycles-1:0] hold_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) hold_q <= '0;
    else         hold_q <= {hold_q[0 +: PauseCycles-1], change.sends && record.data.bytes[13:10] != '0};
  end

  // ------------------------------------------------------------------ congestion
  logic        trims, rule, rule_valid, nscc_idle;
  logic [19:0] unused_bytes;
  nscc_event_t rule_event, rule_counted;
  assign limited   = transport_i.cwnd_bytes != '0;
  assign ruled     = limited && transport_i.congestion[0] && transport_i.base_rtt_ns != '0;
  heddle_round_trip #(.Depth(NumPdc * ReturnWindow)) u_round_trip (
    .clk_i, .rst_ni, .now_ns_i,
    .sent_i(change.sends && ruled), .sent_place_i({pdc_q, s.nxt[ReturnW-1:0]}), .sent_sole_i(fresh),
    .look_place_i({ack_i.pdc, ack_i.psn[ReturnW-1:0]}), .service_time_i(ack_q.service_time),
    .sole_o(sole), .rtt_o(trip)
  );
  assign trims     = ack_q.code == NackCodeTrimmed || ack_q.code == NackCodeTrimmedLasthop;
  always_comb begin
    rule           = 1'b0;
    rule_event     = '0;
    rule_event.pdc = pdc_q;
    rule_event.now = now_ns_i;
    if (change.opens) begin
      rule               = limited;
      rule_event.open    = 1'b1;
    end else if (change.times_out) begin
      rule               = ruled;
      rule_event.timeout = 1'b1;
    end else if (change.resends || change.trims) begin
      rule               = ruled;
      rule_event.trim    = trims;
    end else if (change.passes) begin
      rule               = ruled;
    end else if (change.reports || change.acks) begin
      rule               = ruled;
      rule_event.ack     = 1'b1;
      rule_event.marked  = ack_q.m;
      rule_event.rtt     = check_q.sole ? trip_q : '0;
    end
  end
  heddle_flight u_flight (
    .clk_i, .rst_ni, .ready_o(flight_rdy),
    .event_i(state_wen), .pdc_i(pdc_q), .limited_i(limited), .allowed_i(allowed),
    .sent_i(change.sends), .counted_i(change.counted), .left_i(change.left), .flight_i(change.flight),
    .keep_i(keep_closed),
    .fixed_i(!route.rud || !change.state.open || change.opens), .out_i(change.in_flight),
    .rule_i(rule), .rule_event_i(rule_event), .lost_one_i(trims && !route.rud && change.resends),
    .lost_all_i(!trims && !route.rud && change.resends), .rule_o(rule_valid), .rule_event_o(rule_counted),
    .look_pdc_i(pdc), .flight_o(flight), .event_o(counting), .pdc_o(count_pdc), .closes_o(count_closes),
    .closed_o(closed_window), .idle_o(flight_idle)
  );
  heddle_nscc u_nscc (
    .clk_i, .rst_ni, .port_i, .transport_i,
    .event_valid_i(rule_valid), .event_i(rule_counted), .ready_o(nscc_rdy),
    .window_valid_o(window_valid), .window_ready_i(takes_window), .window_pdc_o(window_pdc),
    .window_o(window_new), .window_bytes_o(unused_bytes), .idle_o(nscc_idle)
  );

  // ---------------------------------------------------------------------- timers
  logic        clean, scan_deadline;
  logic [31:0] scan_at, until_deadline;
  heddle_timer_scan #(.Num(NumPdc)) u_timers (
    .clk_i, .rst_ni, .now_i(now_q),
    .set_i(state_wen), .set_idx_i(pdc_q), .set_on_i(change.timer.on), .set_at_i(change.timer.at),
    .get_idx_i(pdc), .get_on_o(timer.on), .get_at_o(timer.at),
    .due_o(timer_due), .due_idx_o(timer_pdc), .take_i(takes_timer),
    .clean_o(clean), .deadline_valid_o(scan_deadline), .deadline_o(scan_at), .ready_o(timer_rdy)
  );
  assign until_deadline   = scan_at - now_q;
  assign deadline_valid_o = scan_deadline;
  assign deadline_o       = ($signed(until_deadline) <= 0) ? 32'd1 : until_deadline;
  assign idle_o = ready && clean && nscc_idle && ev == EvNone && ev_q == EvNone && !changed_q && flight_idle && passed_idle && !timer_due && !(|may_send) && !send_any &&
                  pkt_count == '0 && !job_valid_i && !ack_valid_i && !sweep_valid_i &&
                  !(scan_deadline && $signed(until_deadline) <= 0);

  // ------------------------------------------------------------------ statistics
  always_comb begin
    stat_o = '0;
    if (acts == EvAck) begin
      stat_o[StatisticRxAcks]    = change.acks;
      stat_o[StatisticRxNacks]   = check_q.known && ack_q.nack && check_q.nacked;
      stat_o[StatisticDropPdcid] = !check_q.known;
      stat_o[StatisticDropPsn]   = check_q.known && !(ack_q.nack ? check_q.nacked : check_q.in_window);
    end
    stat_o[StatisticTxReturnData]      = change.sends && fresh;
    stat_o[StatisticTxRetransmissions] = change.sends && !fresh;
    stat_o[StatisticTxSelective]       = change.sends && route.rud && !fresh && change.above;
    stat_o[StatisticTimeouts]          = change.times_out;
  end

  logic unused;
  assign unused = ^{unused_state_err, unused_route_err, unused_record_err, unused_record_rdy, unused_window_err,
                    unused_bytes, ack_q, job_q, port_i, transport_i};

  `HEDDLE_ASSERT(NoDoublingIsLeft_A, step && s.una == s.top |-> s.rto_shift == '0)
  `HEDDLE_ASSERT(PassIsInWindow_A, step |-> s.nxt - s.una <= 32'(PdcWindow))
  `HEDDLE_ASSERT(SentRecordIsWhole_A, takes_send && record_wen && record_waddr == {send_pdc, next_record} |=> !change.sends)
  `HEDDLE_ASSERT(SweptRecordIsWhole_A, takes_sweep |-> !(record_wen && record_waddr == sweep_q))
  `HEDDLE_ASSERT(PacketQueueHasRoom_A, !change.sends || pkt_fifo_ready)
  `HEDDLE_ASSERT(RecordsHaveRoom_A, !change.pushes || job_q.open || (s.fin - s.una) < 32'(ReturnWindow))
endmodule
