// SPDX-License-Identifier: Apache-2.0
// Initiator half of the PDCs: sequence numbers, window, timers, what to send again.
//
// One event per cycle, in three stages: the choice, which reads the PDC; then the new state of a short event (opening, return data,
// an answer of heddle_pdc_walk, leaving, the next packet: heddle_pdc_change, heddle_pdc_send), or the relation of an ACK, a loss or a
// timer to its PDC (heddle_pdc_check); then their new state (heddle_pdc_next). All are written in the third stage. The next event of the
// same PDC follows a short one at once, with the state forwarded, and one of the others two cycles later.
// A PDC that may not send (window, back-off, repositioning) is not offered (heddle_pdc_choice) and delays no other.
//
// Ordered:   packets of a PDC leave in PSN order; messages in queue order, never interleaved.
// Window:    at most PdcWindow packets unacknowledged on RUD; on ROD as many as the MP_Range of the target permits, up to
//            RodWindow, and RangeUnit if it states none. One while the peer refuses or is silent.
// Again:     on ROD all from the lost packet on, or what NACKs name of which the target has what follows; on RUD what
//            heddle_sack names. To do so a PDC goes
//            back to `una` and passes over the packets that need not be sent, one a cycle.
// Refusal:   a NACK for lack of a resource is retried without limit, after a wait that
//            doubles up to backoff_max_ticks; it shows that the peer lives.
// Silence:   nothing heard for dead_ticks while packets are outstanding ends the PDC with
//            status peer_unreachable.
// Close:     a PDC with nothing queued or outstanding is closed by a Close Command after idle_ticks,
//            when its target requests it (REQ_CLOSE, Close Request), or to make room for another (heddle_pdc_leave). The
//            command is a packet like others: it has a PSN and is sent until it is answered, CloseTries
//            times at most. An answer that the target does not know the PDC answers it too.
//            Each `close_i` is such a request for every PDC, which stands until the PDC is closed.
// Forgotten: when a target that lives but has no such PDC any more refuses packets that were sent once only, nothing of
//            them was accepted: the PDC is opened again for their messages, but for one of which a part was acknowledged.
// Restart:   INV_DPDCID says that the target began anew, and all that it had is gone. The PDC is opened again, however
//            often packets were sent, for everything that is not acknowledged (heddle_pdc_walk has the exceptions).
// Moved:     when the target ends the PDC, messages of which nothing was transmitted are kept and
//            the PDC is opened again for them.
// Collapse:  a message whose payload cannot be read ends with its next new packet. Of a READ only that one has
//            ie=1: the others are still answered.
// Congested: with a congestion window in `transport_i`, no more packets are in flight than heddle_nscc says, but always
//            one. One in CongestedAcks packets is to be answered, and one that closes the window, but for small ones in a wide window.
// Due:       at most ReturnDue packets of return data, ReturnDueCongested with a congestion window, are due on a PDC, or nothing new is sent on it; nor while any
//            are due and many came ahead of a gap (`gaps_i`), since the target keeps those. While any are due, the PDC
//            is not idle, and silence ends it. Those requested before the PDC was opened again are not due any more,
//            and what came of them does not count.
// Asked:     while data are due and no packet is outstanding, nothing that is sent could be refused by a restarted
//            target. An ACK Request of the newest acknowledged PSN is sent after an RTO without data, and repeated at
//            doubling distances up to rto_max_ticks. Its ACK does not restart DEAD_TIME.

`include "heddle_assert.svh"

module heddle_pdc_tx
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import heddle_transport_tx_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  port_cfg_t          port_i,
  input  transport_cfg_t     transport_i,
  input  logic               close_i,          // Strobe: close each PDC as soon as it is idle.
  input  logic [31:0]        now_ns_i,

  input  logic               open_valid_i,     // heddle_tx_msg.
  output logic               open_ready_o,
  input  logic [PdcW-1:0]    open_pdc_i,
  input  logic               open_again_i,
  input  pdc_peer_t          open_peer_i,
  input  logic               enq_valid_i,
  output logic               enq_ready_o,
  input  logic [PdcW-1:0]    enq_pdc_i,
  input  logic [MsgW-1:0]    enq_msg_i,
  input  logic [PktW-1:0]    enq_last_i,
  input  logic               enq_read_i,       // Its packets ask for data.
  output logic               reopen_valid_o,
  input  logic               reopen_ready_i,
  output logic [PdcW-1:0]    reopen_pdc_o,
  input  logic [WantW-1:0]   want_i,           // So many PDCs are missing.

  input  logic               ack_valid_i,      // heddle_accept.
  output logic               ack_ready_o,
  input  ack_event_t         ack_i,

  input  logic               due_valid_i,      // Return data came, or will not.
  output logic               due_ready_o,
  input  return_due_t        due_i,
  input  logic [NumPdc-1:0]  gaps_i,           // heddle_return_rx.
  output logic [NumPdc-1:0]  alive_o,          // Return data are welcome.
  output logic [NumPdc-1:0]  full_o,           // It requests no more data now, or its window is closed.
  output logic [NumPdc-1:0]  stuck_o,          // The peer refuses, or is silent.
  output logic               scarce_o,         // Strobe: a target has no PDC left for this NIC or another.

  input  logic               fail_i,           // heddle_tx_build: payload of a message is lost.
  input  logic [MsgW-1:0]    fail_msg_i,
  input  logic               refused_i,        // heddle_pdc_walk: the peer refused a message.
  input  logic [MsgW-1:0]    refused_msg_i,
  input  logic [MsgW-1:0]    look_msg_i,       // Asynchronous read: of this message
  output logic               failed_o,         // its payload is lost, or it was refused,
  output logic               read_o,           // it is a READ with data,
  output logic               collapsed_o,      // its last packet requests nothing.

  output logic               pkt_valid_o,
  input  logic               pkt_ready_i,
  input  logic               pause_i,          // heddle_tx_build has enough for now.
  output tx_packet_t         pkt_o,
  output logic [SeqW-1:0]    seq_issued_o,     // Packets offered on `pkt` so far.

  // heddle_pdc_walk: what happened to a PDC, and where to go back to.
  output logic               walk_valid_o,
  input  logic               walk_ready_i,
  output pdc_walk_t          walk_o,
  input  logic               back_valid_i,
  output logic               back_ready_o,
  input  pdc_back_t          back_i,

  output logic               sent_o,           // Strobe: packet of a message issued.
  output logic [MsgW-1:0]    sent_msg_o,
  output logic               asked_o,          // Strobe: it is of a READ, and no retransmission,
  output logic               asked_first_o,    // the first one on this opening of the PDC.
  output return_asked_t      asked_as_o,
  input  logic [PdcW-1:0]    queue_pdc_i,      // heddle_pdc_queue, for the walk.
  output logic               queue_held_o,
  output logic [MsgW-1:0]    queue_msg_o,
  output logic [PktW-1:0]    queue_last_o,
  input  logic               queue_pop_i,
  input  logic               queue_pass_i,
  input  logic               queue_end_i,
  output logic [PdcWindow-1:0] held_o,         // What had arrived ahead, when the PDC's target began anew.

  output logic [NumStat-1:0] stat_o,
  output logic [PdcW:0]      open_o,           // PDCs that are not closed.
  output logic               idle_o,
  output logic               deadline_valid_o,
  output logic [31:0]        deadline_o
);
  localparam int unsigned PktDepth = 8;
  // A dead peer must not keep what others wait for. The target forgets by itself.
  localparam int unsigned CloseTries = 5;
  // The walk is slower than ACKs come; each PDC may be answered at once.
  localparam int unsigned EvDepth  = 2 * NumPdc;

  // ----------------------------------------------------------------- time
  logic [31:0] now_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)     now_q <= '0;
    else if (tick_i) now_q <= now_q + 1'b1;
  end

  // --------------------------------------------------------- stage 0: choose
  tx_event_e       ev, ev_q;
  logic [PdcW-1:0] pdc, pdc_q;
  logic            long_q, short_q;                          // The event in stage 1 needs two cycles, or one.
  logic            ready, ready_q;
  logic            late_sent_q;                              // In stage 2: a packet left,
  logic [PdcW-1:0] late_pdc_q;                               // of this PDC.
  logic            sent_last_q;                              // The last event was a packet.
  logic            walk_room, walk_spare, pkt_room;          // Outputs have room for one more event.
  logic            passed_valid, passed_room, passed_idle;   // heddle_passed.
  logic [PdcW-1:0] passed_pdc;
  logic [15:0]     passed_spdcid, passed_spdcid_q;
  logic [31:0]     passed_psn, passed_psn_q;
  logic            scan_hit, leave_any, window_valid, send_any;
  logic [PdcW-1:0] scan_pdc, leave_pdc, window_pdc, send_pdc;

  // The PDC in stage 1 has no state yet. ACKs and packets alternate: of one PDC, a packet and then an ACK take three cycles, the other
  // way round four.
  function automatic logic meets(logic in_stage_1, logic [PdcW-1:0] other, logic [PdcW-1:0] own);
    meets = in_stage_1 && other == own;
  endfunction
  logic may_open, may_due, may_back, may_timer, may_leave, may_lost, may_ack, may_window, may_step;
  assign may_open   = open_valid_i && walk_room && !meets(long_q, pdc_q, open_pdc_i);
  assign may_due    = due_valid_i && !meets(long_q, pdc_q, due_i.spdcid[PdcW-1:0]);
  assign may_back   = back_valid_i && walk_spare && !meets(long_q, pdc_q, back_i.pdc);
  assign may_timer  = scan_hit && walk_room && !meets(long_q, pdc_q, scan_pdc);
  assign may_leave  = leave_any && walk_room && !meets(long_q, pdc_q, leave_pdc);
  assign may_lost   = passed_valid && walk_room && !meets(long_q, pdc_q, passed_pdc);
  assign may_ack    = ack_valid_i && walk_room && passed_room && !meets(long_q, pdc_q, ack_i.pdc) &&
                      (sent_last_q || !(send_any && pkt_room));
  assign may_window = window_valid && !meets(long_q, pdc_q, window_pdc);
  assign may_step   = send_any && pkt_room && !meets(long_q || short_q, pdc_q, send_pdc);

  // Return data before the PDC to which they belong ends. A timer and an eviction are rare; a flood of ACKs must not hold them up.
  logic before_timer, before_ack, before_window;  // Something precedes it.
  logic takes_open, takes_due, takes_back, takes_timer, takes_leave, takes_lost, takes_ack, takes_window, takes_send;
  assign before_timer  = !ready_q || may_open || may_due || may_back;
  assign before_ack    = before_timer || may_timer || may_leave || may_lost;
  assign before_window = before_ack || may_ack;
  assign takes_open    = ready_q && may_open;
  assign takes_due     = ready_q && !may_open && may_due;
  assign takes_back    = ready_q && !may_open && !may_due && may_back;
  assign takes_timer   = !before_timer && may_timer;
  assign takes_leave   = !before_timer && !may_timer && may_leave;
  assign takes_lost    = !before_timer && !may_timer && !may_leave && may_lost;
  assign takes_ack     = !before_ack && may_ack;
  assign takes_window  = !before_window && may_window;
  assign takes_send    = !before_window && !may_window && may_step;
  always_comb begin
    ev = TxEvNone;
    unique case (1'b1)
      takes_open:   ev = TxEvOpen;
      takes_due:    ev = TxEvDue;
      takes_back:   ev = TxEvBack;
      takes_timer:  ev = TxEvTimer;
      takes_leave:  ev = TxEvLeave;
      takes_lost:   ev = TxEvLost;
      takes_ack:    ev = TxEvAck;
      takes_window: ev = TxEvWindow;
      takes_send:   ev = TxEvSend;
      default: ;
    endcase
    pdc = ({PdcW{takes_open}} & open_pdc_i) | ({PdcW{takes_due}} & due_i.spdcid[PdcW-1:0]) | ({PdcW{takes_back}} & back_i.pdc) |
          ({PdcW{takes_timer}} & scan_pdc) | ({PdcW{takes_leave}} & leave_pdc) | ({PdcW{takes_lost}} & passed_pdc) |
          ({PdcW{takes_ack}} & ack_i.pdc) | ({PdcW{takes_window}} & window_pdc) | ({PdcW{!before_window && !may_window}} & send_pdc);  // Or no event.
  end
  assign open_ready_o = takes_open;
  assign back_ready_o = takes_back;
  assign ack_ready_o  = takes_ack;
  assign due_ready_o  = takes_due;

  logic        uncounted_q;     // A packet of the PDC that was offered left two cycles before the next one.
  logic        send_pending_q;  // The PDC that was offered had a message to send, which was read.
  logic        forward_q;  // The event before, in stage 2, was of the same PDC.
  ack_event_t  ack_q;
  logic [31:0] acked_q, acked_two_q;  // The PSN after those that it acknowledges; after one more.
  pdc_back_t   back_q;
  logic        open_again_q, open_rud_q;
  logic [31:0] open_psn_q;
  return_due_t due_q;
  always_ff @(posedge clk_i) begin
    pdc_q           <= pdc;
    forward_q       <= short_q && pdc == pdc_q;
    send_pending_q  <= pending[send_pdc];
    uncounted_q     <= late_sent_q && late_pdc_q == send_pdc;
    open_again_q    <= open_again_i;
    open_psn_q      <= open_peer_i.start_psn;
    open_rud_q      <= open_peer_i.rud;
    due_q           <= due_i;
    passed_psn_q    <= passed_psn;
    passed_spdcid_q <= passed_spdcid;
    acked_q         <= ack_i.cack + 32'd1;
    acked_two_q     <= ack_i.cack + 32'd2;
    ack_q           <= ack_i;
    back_q          <= back_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ev_q    <= TxEvNone;
      sent_last_q <= 1'b0;
      long_q  <= 1'b0;
      short_q <= 1'b0;
      ready_q <= 1'b0;
    end else begin
      ev_q    <= ev;
      sent_last_q <= takes_send;
      long_q  <= takes_timer || takes_lost || takes_ack;
      short_q <= takes_open || takes_due || takes_back || takes_leave || takes_window || takes_send;
      ready_q <= ready;
    end
  end

  // ------------------------------------------------------------------ memories
  tx_state_t    stored, s, written, written_short;  // As read; with what stage 2 writes; that; of a short event.
  tx_timer_t    stored_timer, timer, written_timer;
  tx_identity_t id;
  logic         state_wen;
  logic         unused_state_err, state_rdy, unused_id_err, id_rdy, timer_rdy;
  heddle_mem #(.Width($bits(tx_state_t)), .Depth(NumPdc)) u_state (
    .clk_i, .rst_ni, .wen_i(state_wen), .waddr_i(late_pdc_q), .wdata_i(written),
    .raddr_i(pdc), .rdata_o(stored), .error_o(unused_state_err), .ready_o(state_rdy)
  );
  heddle_mem #(.Width($bits(tx_identity_t)), .Depth(NumPdc)) u_identity (
    .clk_i, .rst_ni, .wen_i(takes_open), .waddr_i(open_pdc_i),
    .wdata_i({open_peer_i.fa, open_peer_i.spdcid, open_peer_i.start_psn}),
    .raddr_i(pdc), .rdata_o(id), .error_o(unused_id_err), .ready_o(id_rdy)
  );
  // Congestion windows less one packet, as heddle_nscc reported last.
  logic [FlightW-1:0] window_new, window_less, below;
  logic               unused_window_err, window_rdy, nscc_rdy, flight_rdy;
  heddle_mem #(.Width(FlightW), .Depth(NumPdc)) u_window (
    .clk_i, .rst_ni, .wen_i(takes_window), .waddr_i(window_pdc), .wdata_i(window_less),
    .raddr_i(pdc), .rdata_o(below), .error_o(unused_window_err), .ready_o(window_rdy)
  );

  assign window_less = window_new == '0 ? '0 : window_new - 1'b1;

  logic              lost_rdy, denied_rdy, collapsed_rdy;
  logic              advance, rewind, closed, shorten_q;
  logic [NumPdc-1:0] pending;
  logic [MsgW-1:0]   msg;       // To send, while pending.
  logic [PktW-1:0]   msg_last;
  logic              more;      // Another message is queued after it.
  logic              enq;
  logic [MsgW-1:0]   late_msg_q;
  logic [PktW-1:0]   late_index_q;
  assign ready = state_rdy && id_rdy && timer_rdy && window_rdy && nscc_rdy && flight_rdy && lost_rdy && denied_rdy && collapsed_rdy;
  assign enq_ready_o = !shorten_q;
  assign enq         = enq_valid_i && enq_ready_o;
  heddle_pdc_queue u_queue (
    .clk_i, .rst_ni,
    .enq_i(enq), .enq_pdc_i, .enq_msg_i, .enq_last_i,
    .pending_o(pending), .next_pdc_i(send_pdc), .pdc_i(pdc_q), .send_msg_o(msg), .send_last_o(msg_last),
    .more_o(more), .advance_i(advance), .rewind_i(rewind), .clear_i(closed),
    .shorten_i(shorten_q), .shorten_msg_i(late_msg_q), .shorten_last_i(late_index_q),
    .walk_pdc_i(queue_pdc_i), .walk_held_o(queue_held_o), .walk_msg_o(queue_msg_o),
    .walk_last_o(queue_last_o), .walk_pop_i(queue_pop_i), .walk_pass_i(queue_pass_i), .walk_end_i(queue_end_i)
  );

  // A message, here and for the walk: its payload cannot be read, or the peer refused it, so that it is not worth
  // sending; it is a READ; its last packet is no request any more.
  logic lost, denied, read, collapsed, walk_lost, walk_denied, collapse_q;
  assign failed_o = walk_lost || walk_denied;
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_lost (
    .clk_i, .rst_ni, .set_i(fail_i), .set_index_i(fail_msg_i), .clear_i(enq), .clear_index_i(enq_msg_i),
    .index_i({look_msg_i, msg}), .flag_o({walk_lost, lost}), .ready_o(lost_rdy)
  );
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_denied (
    .clk_i, .rst_ni, .set_i(refused_i), .set_index_i(refused_msg_i), .clear_i(enq), .clear_index_i(enq_msg_i),
    .index_i({look_msg_i, msg}), .flag_o({walk_denied, denied}), .ready_o(denied_rdy)
  );
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_collapsed (
    .clk_i, .rst_ni, .set_i(collapse_q), .set_index_i(late_msg_q), .clear_i(enq), .clear_index_i(enq_msg_i),
    .index_i({look_msg_i, msg}), .flag_o({collapsed_o, collapsed}), .ready_o(collapsed_rdy)
  );
  heddle_lookup #(.Width(1), .Depth(NumMsg)) u_read (
    .clk_i, .wen_i(enq), .waddr_i(enq_msg_i), .wdata_i(enq_read_i), .raddr_i(msg), .rdata_o(read)
  );
  heddle_lookup #(.Width(1), .Depth(NumMsg)) u_walk_read (
    .clk_i, .wen_i(enq), .waddr_i(enq_msg_i), .wdata_i(enq_read_i), .raddr_i(look_msg_i), .rdata_o(read_o)
  );

  // ------------------------------------------------------ stage 1: one event
  assign s     = forward_q ? written_short : stored;
  assign timer = forward_q ? written_timer : stored_timer;

  // Data that is due comes at once: with a congestion window it is no more than a queue that trims takes of some peers.
  logic [DueW-1:0] due_limit;
  logic            limited, ruled;   // There is a congestion window; it changes.
  assign limited   = transport_i.cwnd_bytes != '0;
  assign ruled     = limited && transport_i.congestion[0] && transport_i.base_rtt_ns != '0;
  assign due_limit = limited ? DueW'(ReturnDueCongested) : DueW'(ReturnDue);

  // Packets in flight, with one that left two cycles before and is not counted yet.
  logic [FlightW-1:0] flight;
  logic [NumPdc-1:0]  closed_window;  // By heddle_flight: nothing more may be in flight.
  logic               settled_q, closed_now, closes_now;
  logic [PdcW-1:0]    settled_pdc_q;
  assign closed_now = limited && (stored.kept || (uncounted_q ? flight >= below : flight > below));
  assign closes_now = uncounted_q ? flight + 1'b1 >= below : flight >= below;

  logic       control, may, fresh, send_now, control_now, shortens, collapses, requests, wants_data, send_more, starts;
  logic [SackW-1:0] send_next;
  tx_state_t  sent_state;
  tx_packet_t packet;
  heddle_pdc_send u_send (
    .valid_i(ev_q == TxEvSend), .pdc_i(pdc_q), .now_i(now_q), .state_i(stored), .pending_i(send_pending_q), .msg_i(msg),
    .msg_last_i(msg_last), .read_i(read), .collapsed_i(collapsed), .failed_i(lost || denied), .more_i(more), .gap_i(gaps_i[pdc_q]),
    .control_i(control), .closed_i(closed_now), .closes_i(closes_now), .narrow_i(below < FlightW'(2 * CongestedAcks - 1)), .limited_i(limited), .due_limit_i(due_limit),
    .may_o(may), .fresh_o(fresh), .sends_o(send_now), .controls_o(control_now), .advances_o(advance),
    .shortens_o(shortens), .collapses_o(collapses), .requests_o(requests), .wants_data_o(wants_data), .more_o(send_more), .next_o(send_next),
    .starts_o(starts), .state_o(sent_state), .packet_o(packet)
  );

  logic      opens, leaves, dies, reopens, takes_return, stops, rests, change_walks;
  tx_state_t changed_state;
  pdc_walk_t change_walk;
  heddle_pdc_change u_change (
    .now_i(now_q), .event_i(ev_q), .pdc_i(pdc_q), .state_i(s), .spdcid_i(id.spdcid), .pending_i(pending[pdc_q]),
    .open_again_i(open_again_q), .open_rud_i(open_rud_q), .open_psn_i(open_psn_q), .due_i(due_q), .back_i(back_q),
    .state_o(changed_state), .opens_o(opens), .leaves_o(leaves), .closes_o(closed), .rewinds_o(rewind), .dies_o(dies),
    .reopens_o(reopens), .takes_due_o(takes_return), .stops_o(stops), .rests_o(rests), .walks_o(change_walks), .walk_o(change_walk)
  );

  tx_check_t   check;
  logic        sole;
  logic [23:0] trip;
  heddle_pdc_check #(.CloseTries(CloseTries)) u_check (
    .port_i, .now_i(now_q), .event_i(ev_q), .state_i(s), .identity_i(id), .timer_i(timer), .pending_i(pending[pdc_q]), .ack_i(ack_q),
    .acked_i(acked_q), .acked_two_i(acked_two_q), .sole_i(sole), .passed_spdcid_i(passed_spdcid_q),
    .passed_psn_i(passed_psn_q), .check_o(check)
  );

  // --------------------------------------------- stage 2: the new state is written
  tx_event_e          late_ev_q;
  tx_state_t          late_q;   // After a short event; before another one.
  tx_timer_t          late_timer_q;
  tx_check_t          check_q;
  ack_event_t         late_ack_q;
  logic               late_long_q, late_again_q, late_opened_q, late_dies_q, late_reopens_q, late_walks_q, late_closed_q;
  logic               timer_sets_q, timer_rests_q;
  logic [SackW-1:0]   late_next_q;
  logic [15:0]        late_spdcid_q;
  logic [23:0]        trip_q;
  logic [FlightW-1:0] late_allowed_q;
  pdc_walk_t          late_walk_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      late_ev_q      <= TxEvNone;
      late_long_q    <= 1'b0;
      late_sent_q    <= 1'b0;
      late_opened_q  <= 1'b0;
      late_dies_q    <= 1'b0;
      late_reopens_q <= 1'b0;
      late_walks_q   <= 1'b0;
      shorten_q      <= 1'b0;
      collapse_q     <= 1'b0;
    end else begin
      late_ev_q      <= ev_q;
      late_long_q    <= long_q;
      late_sent_q    <= send_now;
      late_opened_q  <= opens;
      late_dies_q    <= dies;
      late_reopens_q <= reopens;
      late_walks_q   <= change_walks;
      shorten_q      <= shortens;
      collapse_q     <= collapses;
    end
  end
  always_ff @(posedge clk_i) begin
    late_pdc_q     <= pdc_q;
    late_q         <= long_q ? s : ev_q == TxEvSend ? sent_state : changed_state;
    late_timer_q   <= timer;
    check_q        <= check;
    late_ack_q     <= ack_q;
    late_closed_q  <= closed_now;
    late_spdcid_q  <= id.spdcid;
    trip_q         <= trip;
    late_allowed_q <= below + 1'b1;
    late_walk_q    <= change_walk;
    late_again_q   <= !fresh;
    late_next_q    <= send_next;
    late_msg_q     <= msg;
    late_index_q   <= stored.index;
    // For a short event.
    timer_sets_q   <= starts || rests;
    timer_rests_q  <= rests;
    if (stops)       late_timer_q.on <= 1'b0;
    else if (starts) late_timer_q.on <= 1'b1;
    else if (rests)  late_timer_q.on <= transport_i.idle_ticks != '0;
  end

  // A retransmission: something after it arrived.
  logic above;
  assign above = late_q.rud && late_again_q && (late_q.sack.held & ~low_positions(late_next_q + 1'b1)) != '0;

  tx_change_t change;
  heddle_pdc_next u_next (
    .port_i, .transport_i, .now_i(now_q), .pdc_i(late_pdc_q), .state_i(late_q), .timer_i(late_timer_q),
    .ack_i(late_ack_q), .check_i(check_q), .closed_i(late_closed_q), .change_o(change)
  );
  // Requests at the limit leave in pairs, of which the second one requests an ACK, which takes the place of data.
  always_comb begin
    written_short      = late_q;
    written_short.full = late_q.due >= due_limit || (late_q.full && late_q.due > due_limit - DueW'(2));
    // The ACK that left nothing outstanding ended the doubling of the RTO.
    written_timer      = late_timer_q;
    if (timer_sets_q) written_timer.at = now_q + (timer_rests_q ? transport_i.idle_ticks : port_i.rto_ticks);
  end
  assign state_wen = late_ev_q != TxEvNone;
  assign written   = late_long_q ? change.state : written_short;

  logic      walk_push, ends, reopen_late;
  pdc_walk_t walk_d;
  assign walk_push   = late_long_q ? change.walks : late_walks_q;
  assign walk_d      = late_long_q ? change.walk : late_walk_q;
  assign ends        = change.ends || change.finishes;
  assign reopen_late = change.reopens || late_reopens_q;

  // Return data of a PDC are welcome until the walk has the event that ends it.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) alive_o <= '0;
    else begin
      for (int unsigned i = 0; i < NumPdc; i++) begin
        if (late_opened_q && late_pdc_q == PdcW'(i))               alive_o[i] <= 1'b1;
        else if ((ends || late_dies_q) && late_pdc_q == PdcW'(i)) alive_o[i] <= 1'b0;
      end
    end
  end

  // For the walk, of a PDC that changes no more until that is done.
  logic unused_held_err, unused_held_rdy;
  heddle_mem #(.Width(PdcWindow), .Depth(NumPdc), .Init(1'b0)) u_held (
    .clk_i, .rst_ni, .wen_i(change.restarts), .waddr_i(late_pdc_q), .wdata_i(late_q.sack.held),
    .raddr_i(queue_pdc_i), .rdata_o(held_o), .error_o(unused_held_err), .ready_o(unused_held_rdy)
  );

  heddle_passed u_passed (
    .clk_i, .rst_ni, .reorder_i(transport_i.reorder),
    .valid_i(change.judged), .always_i(change.keeps), .room_o(passed_room), .pdc_i(late_pdc_q), .spdcid_i(late_spdcid_q),
    .una_i(late_q.una), .advance_i(change.advance), .held_i(change.held),
    .valid_o(passed_valid), .ready_i(takes_lost), .pdc_o(passed_pdc), .spdcid_o(passed_spdcid), .psn_o(passed_psn),
    .idle_o(passed_idle)
  );

  // ------------------------------------------------------ a cycle later: who sends next
  tx_state_t settled_state_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) settled_q <= 1'b0;
    else         settled_q <= state_wen;
  end
  always_ff @(posedge clk_i) begin
    settled_pdc_q   <= late_pdc_q;
    settled_state_q <= written;
  end

  // The target's stored answer is cleared by a command when no request will do it: there is none, or it may not be sent yet.
  // The congestion window is known two cycles after stage 2.
  logic            counting, count_closes, flight_idle;
  logic [PdcW-1:0] count_pdc;
  logic                 clear_now, clear_due, clear_due_q, settled_sends, by_request_q;
  logic [1:0]           clear_q, left_q;
  logic [PdcW-1:0]      clear_pdc_q;
  logic [1:0][PdcW-1:0] left_pdc_q;
  assign clear_now = (check_q.acks || check_q.nacks) && check_q.clears && late_q.state != PdcClosing;
  // A packet of the PDC that leaves meanwhile clears as well; one that its window stops does not.
  assign clear_due = clear_due_q && !(left_q[0] && left_pdc_q[0] == clear_pdc_q) && !(left_q[1] && left_pdc_q[1] == clear_pdc_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clear_q     <= '0;
      clear_due_q <= 1'b0;
      left_q      <= '0;
    end else begin
      clear_q     <= {clear_q[0], clear_now};
      clear_due_q <= clear_q[1] && !(by_request_q && !count_closes);
      left_q      <= {left_q[0], send_now || control_now};
    end
  end
  always_ff @(posedge clk_i) begin
    by_request_q <= settled_sends;
    clear_pdc_q  <= count_pdc;
    left_pdc_q   <= {left_pdc_q[0], pdc_q};
  end

  logic choice_idle;
  heddle_pdc_choice u_choice (
    .clk_i, .rst_ni,
    .event_i(ev_q != TxEvNone), .event_pdc_i(pdc_q), .more_i(send_more), .control_sent_i(ev_q == TxEvSend && control),
    .uncut_i(ev_q == TxEvSend && fresh && !control && may && !closed_now), .control_o(control),
    .enq_i(enq), .enq_pdc_i, .opened_i((check_q.acks && check_q.advances) || change.passes), .opened_pdc_i(late_pdc_q),
    .was_closed_i(late_closed_q), .settled_i(settled_q), .settled_pdc_i(settled_pdc_q), .settled_state_i(settled_state_q),
    .settled_sends_o(settled_sends),
    .open_i(takes_open), .open_pdc_i, .open_urgent_i(transport_i.urgent_dscps[open_peer_i.dscp]),
    .refused_i, .refused_pdc_i(queue_pdc_i), .ack_request_i(change.asks), .ack_request_pdc_i(late_pdc_q), .clear_i(clear_due),
    .clear_pdc_i(clear_pdc_q),
    .pending_i(pending), .closed_i(closed_window), .gaps_i, .full_o, .stuck_o,
    .valid_o(send_any), .pdc_o(send_pdc), .take_i(takes_send), .idle_o(choice_idle)
  );

  logic leave_idle, evicts, settled_rests, wants_close;
  assign settled_rests = settled_state_q.state == PdcOpen && settled_state_q.una == settled_state_q.top &&
                         !settled_state_q.repositioning && settled_state_q.due == '0;
  assign scarce_o      = wants_close || (check_q.nacks && late_ack_q.code == NackCodeNoPdcAvail);
  assign wants_close   = (check_q.acks || (check_q.nacks && late_ack_q.ask)) && late_ack_q.req == AckReqClose;
  heddle_pdc_leave u_leave (
    .clk_i, .rst_ni, .close_i, .want_i, .pending_i(pending), .settled_i(settled_q), .settled_pdc_i(settled_pdc_q),
    .settled_idle_i(settled_rests), .wanted_i(wants_close), .wanted_pdc_i(late_pdc_q),
    .pdc_i(pdc_q), .sends_i(send_now), .opens_i(opens && !open_again_q), .leaves_i(leaves),
    .ends_i(ev_q == TxEvBack && (back_q.kind == BackClosed || back_q.kind == BackResend)), .evicts_o(evicts),
    .valid_o(leave_any), .pdc_o(leave_pdc), .take_i(takes_leave), .idle_o(leave_idle)
  );

  // Those that are opened again were never closed.
  logic [PdcW:0] open_q;
  assign open_o = open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else         open_q <= open_q + (PdcW + 1)'(opens && !open_again_q) - (PdcW + 1)'(closed);
  end

  // ---------------------------------------------------------------- congestion
  // When each packet was sent; a round trip is measured of those that were sent once.
  logic        trims, rule, rule_valid, nscc_idle;
  nscc_event_t rule_event, rule_counted;
  logic [19:0] unused_bytes;
  heddle_round_trip #(.Depth(NumPdc * PdcWindow)) u_round_trip (
    .clk_i, .rst_ni, .now_ns_i,
    .sent_i(send_now && ruled), .sent_place_i({pdc_q, stored.nxt[$clog2(PdcWindow)-1:0]}), .sent_sole_i(fresh),
    .look_place_i({ack_i.pdc, ack_i.psn[$clog2(PdcWindow)-1:0]}), .service_time_i(ack_q.service_time),
    .sole_o(sole), .rtt_o(trip)
  );
  assign trims = late_ack_q.code == NackCodeTrimmed || late_ack_q.code == NackCodeTrimmedLasthop;
  always_comb begin
    rule           = 1'b0;
    rule_event     = '0;
    rule_event.pdc = late_pdc_q;
    rule_event.now = now_ns_i;
    if (late_opened_q) begin
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
    end else if (change.reports || (change.acks && !late_q.rud)) begin
      rule               = ruled;
      rule_event.ack     = 1'b1;
      rule_event.marked  = late_ack_q.m;
      rule_event.rtt     = check_q.sole ? trip_q : '0;
    end
  end
  heddle_flight u_flight (
    .clk_i, .rst_ni, .ready_o(flight_rdy),
    .event_i(state_wen), .pdc_i(late_pdc_q), .limited_i(limited), .allowed_i(late_allowed_q),
    .sent_i(late_sent_q), .counted_i(change.counted), .left_i(change.left), .flight_i(change.flight),
    .keep_i(change.keeps),
    .fixed_i(!written.rud || late_opened_q), .out_i(written.nxt - written.una),
    .rule_i(rule), .rule_event_i(rule_event), .lost_one_i(trims && !late_q.rud && change.resends),
    .lost_all_i(!trims && !late_q.rud && change.resends), .rule_o(rule_valid), .rule_event_o(rule_counted),
    .look_pdc_i(pdc), .flight_o(flight), .event_o(counting), .pdc_o(count_pdc), .closes_o(count_closes),
    .closed_o(closed_window), .idle_o(flight_idle)
  );
  heddle_nscc u_nscc (
    .clk_i, .rst_ni, .port_i, .transport_i,
    .event_valid_i(rule_valid), .event_i(rule_counted), .ready_o(nscc_rdy),
    .window_valid_o(window_valid), .window_ready_i(takes_window), .window_pdc_o(window_pdc),
    .window_o(window_new), .window_bytes_o(unused_bytes), .idle_o(nscc_idle)
  );

  // --------------------------------------------------------------------- packets
  logic                      pkt_fifo_ready;
  logic [$clog2(PktDepth):0] pkt_count;
  heddle_fifo #(.Width($bits(tx_packet_t)), .Depth(PktDepth)) u_packets (
    .clk_i, .rst_ni, .valid_i(send_now || control_now), .ready_o(pkt_fifo_ready), .data_i(packet),
    .valid_o(pkt_valid_o), .ready_i(pkt_ready_i), .data_o(pkt_o), .count_o(pkt_count)
  );
  assign pkt_room = pkt_count <= ($clog2(PktDepth)+1)'(PktDepth - 2) && !pause_i && hold_q == '0;
  // heddle_tx_build counts a full packet before the next one is chosen.
  logic [PauseCycles-1:0] hold_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) hold_q <= '0;
    else         hold_q <= {hold_q[0 +: PauseCycles-1], send_now && !packet.last && !read};
  end

  logic [SeqW-1:0] seq_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)       seq_q <= '0;
    else if (send_now || control_now) seq_q <= seq_q + 1'b1;
  end
  assign seq_issued_o  = seq_q;
  assign sent_o        = send_now && !packet.control;
  assign sent_msg_o    = msg;
  assign asked_o       = requests;
  assign asked_first_o = stored.index == '0;
  assign asked_as_o    = {id.spdcid, stored.nxt, PktsW'(stored.index) + PktsW'(wants_data)};

  // ------------------------------------------------------------------ to the walk
  logic                     walk_fifo_ready;
  logic [$clog2(EvDepth):0] walk_count;
  heddle_fifo #(.Width($bits(pdc_walk_t)), .Depth(EvDepth)) u_walk (
    .clk_i, .rst_ni, .valid_i(walk_push), .ready_o(walk_fifo_ready), .data_i(walk_d),
    .valid_o(walk_valid_o), .ready_i(walk_ready_i), .data_o(walk_o), .count_o(walk_count)
  );
  // Repositioning replaces the event it answers, so it may use the last places. Two more events are on their way.
  assign walk_room  = walk_count <= ($clog2(EvDepth)+1)'(EvDepth - 8);
  assign walk_spare = walk_count <= ($clog2(EvDepth)+1)'(EvDepth - 3);

  // ------------------------------------------------------------------ SYN again
  // One at a time, held until tx_msg has opened it.
  logic [NumPdc-1:0] reopen_q;
  logic              reopen_any, reopen_take, reopen_busy_q, reopen_first_q;
  logic [PdcW-1:0]   reopen_next, reopen_pdc_q;
  heddle_group_pick #(.NumSrc(NumPdc)) u_reopen (
    .clk_i, .rst_ni, .valid_i(reopen_busy_q ? '0 : reopen_q), .drop_i(1'b0), .drop_idx_i('0), .take_i(reopen_take),
    .valid_o(reopen_any), .idx_o(reopen_next)
  );
  assign reopen_take    = reopen_any && !reopen_busy_q;
  assign reopen_valid_o = reopen_busy_q && !reopen_first_q;
  assign reopen_pdc_o   = reopen_pdc_q;
  always_ff @(posedge clk_i) begin
    if (reopen_take) reopen_pdc_q <= reopen_next;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reopen_q      <= '0;
      reopen_busy_q <= 1'b0;
      reopen_first_q <= 1'b0;
    end else begin
      reopen_first_q <= reopen_take;
      for (int unsigned i = 0; i < NumPdc; i++) begin
        if (reopen_first_q && reopen_pdc_q == PdcW'(i)) reopen_q[i] <= 1'b0;
        if (reopen_late && late_pdc_q == PdcW'(i))      reopen_q[i] <= 1'b1;
        if (change.ends && late_pdc_q == PdcW'(i))      reopen_q[i] <= 1'b0;
      end
      if (reopen_take)         reopen_busy_q <= 1'b1;
      else if (reopen_valid_o && reopen_ready_i) reopen_busy_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------- timers
  logic        clean;
  logic [31:0] first_at, until_deadline;
  tx_timer_t   set_timer;
  assign set_timer = late_long_q ? change.timer : written_timer;
  heddle_timer_scan #(.Num(NumPdc)) u_timers (
    .clk_i, .rst_ni, .now_i(now_q),
    .set_i(state_wen), .set_idx_i(late_pdc_q), .set_on_i(set_timer.on), .set_at_i(set_timer.at),
    .get_idx_i(pdc), .get_on_o(stored_timer.on), .get_at_o(stored_timer.at),
    .due_o(scan_hit), .due_idx_o(scan_pdc), .take_i(takes_timer),
    .clean_o(clean), .deadline_valid_o, .deadline_o(first_at), .ready_o(timer_rdy)
  );
  assign until_deadline = first_at - now_q;
  assign deadline_o     = ($signed(until_deadline) <= 0) ? 32'd1 : until_deadline;
  assign idle_o = ready_q && nscc_idle && clean && ev == TxEvNone && ev_q == TxEvNone && late_ev_q == TxEvNone && !settled_q && clear_q == '0 && !clear_due_q &&
                  flight_idle && passed_idle && !scan_hit && choice_idle && leave_idle && pkt_count == '0 && walk_count == '0 &&
                  reopen_q == '0 && !reopen_any && !reopen_busy_q &&
                  !ack_valid_i && !open_valid_i && !enq_valid_i && !back_valid_i && !due_valid_i &&
                  !(deadline_valid_o && $signed(until_deadline) <= 0);

  // ------------------------------------------------------------------ statistics
  always_comb begin
    stat_o = '0;
    stat_o[StatisticRxAcks]       = change.acks;
    stat_o[StatisticRxNacks]      = change.nacks;
    stat_o[StatisticDropPdcid]    = late_ev_q == TxEvAck && !check_q.known;
    stat_o[StatisticDropPsn]      = change.strays;
    stat_o[StatisticTimeouts]     = change.times_out;
    stat_o[StatisticTxSelective]  = late_sent_q && above;
    stat_o[StatisticDeadPeers]    = change.dies;
    stat_o[StatisticPdcRestarts]  = change.restarts;
    stat_o[StatisticTxPdcs]       = opens;
    stat_o[StatisticPdcCloses]    = change.finishes && late_ev_q == TxEvAck;
    stat_o[StatisticPdcEvictions] = evicts;
  end

  if (PdcWindow > RangeUnit) begin : gen_bad_window
    $error("A peer's MP_Range (UET 2.14) would limit RUD: it allows 128 PSNs or more");
  end

  logic unused;
  assign unused = ^{unused_state_err, unused_id_err, unused_window_err, unused_held_err, unused_held_rdy, unused_bytes, id.start_psn,
                    ack_q, late_ack_q, counting, port_i, transport_i, open_peer_i};

  `HEDDLE_ASSERT(PacketQueueHasRoom_A, !(send_now || control_now) || pkt_fifo_ready)
  `HEDDLE_ASSERT(WalkQueueHasRoom_A, !walk_push || walk_fifo_ready)
  `HEDDLE_ASSERT(OpenCounted_A, open_q <= (PdcW + 1)'(NumPdc) && !(closed && open_q == '0))
  `HEDDLE_ASSERT(DueTakenOnce_A, takes_return |-> due_q.packets <= s.due)
  `HEDDLE_ASSERT(SendsWhatWasRead_A, ev_q == TxEvSend |-> !forward_q)
  `HEDDLE_ASSERT(InOrder_A, ev_q == TxEvSend && may |-> stored.nxt - stored.una <= 32'(RodWindow) && stored.top - stored.nxt <= 32'(RodWindow) && stored.top - stored.una <= 32'(RodWindow))
  `HEDDLE_ASSERT(NoDoublingIsLeft_A, starts |-> stored.rto_shift == '0)
  `HEDDLE_ASSERT(WindowKept_A, send_now && stored.state != PdcClosing |->
                 stored.nxt - stored.una < (stored.probing ? 32'd1 : stored.rud ? 32'(PdcWindow) : 32'((32'(stored.range) + 32'd1) * RangeUnit)))
endmodule
