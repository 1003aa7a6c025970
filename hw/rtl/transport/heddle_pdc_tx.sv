// SPDX-License-Identifier: Apache-2.0
// Initiator half of the PDCs: sequence numbers, window, timers, what to send again.
//
// One event per cycle changes the state of one PDC: opening, an ACK or NACK, a
// repositioning by heddle_pdc_walk, a timer, or the next packet. A PDC that may not
// send (window, back-off, repositioning) is not in the ready set and delays no other.
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
//            when its target asks for it (REQ_CLOSE, Close Request), or to make room for another (the least used first). The
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
//            one. The packet that closes the window is to be answered.
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
  output logic [NumPdc-1:0]  full_o,           // It requests no more data now.
  output logic [NumPdc-1:0]  stuck_o,          // The peer refuses, or is silent.

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
  input  logic              pause_i,          // heddle_tx_build has enough for now.
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
  localparam int unsigned RangeW = $clog2(OrderedRange);

  typedef enum logic [2:0] {
    PdcClosed,
    PdcSyn,
    PdcOpen,
    PdcClosing,  // Forgotten by heddle_tx_msg; its last packet is the Close Command.
    PdcEnding,   // Sends nothing more; the walk has the rest.
    PdcReopening // Waits for its new PDCID; answers to the old one match no PDC.
  } pdc_state_e;

  typedef struct packed {
    pdc_state_e      state;
    logic            rud;        // Otherwise ROD.
    logic [31:0]     una;        // Oldest unacknowledged PSN.
    logic [31:0]     nxt;        // Next PSN to send.
    logic [31:0]     top;        // First PSN never sent.
    logic [PktW-1:0] index;      // Next packet of the current message.
    logic [15:0]     tpdcid;
    logic            repositioning;
    logic            waiting;    // Back-off runs.
    logic            resent;     // Something was sent twice since all was acknowledged.
    logic            probing;    // One packet at a time until `una` passes `probe_psn`.
    logic [31:0]     probe_psn;
    logic [3:0]      rto_shift;
    logic [3:0]      backoff_shift;
    logic [31:0]     heard;      // Tick at which the peer was last heard.
    sack_t           sack;       // RUD; ROD: `told`, with `single`.
    logic            single;     // ROD: of a pass, only what NACKs named is retransmitted.
    logic [DueW-1:0] due;        // Packets of return data that will come.
    logic            full;       // As many as may be; until two fewer are.
    logic            ask;        // The control packet that waits is an ACK Request, not a Clear Command.
    logic [RangeW-1:0] range;    // ROD: MP_Range of the target - 1, in units of RangeUnit.
  } pdc_t;

  typedef struct packed {
    logic        on;
    logic [31:0] at;
  } timer_t;

  // What the PDC's peer must show in an ACK or NACK.
  typedef struct packed {
    logic [127:0] fa;
    logic [15:0]  spdcid;
    logic [31:0]  start_psn;
  } identity_t;

  typedef enum logic [3:0] {
    EvNone, EvOpen, EvAck, EvBack, EvTimer, EvLeave, EvDue, EvLost, EvWindow, EvSend
  } event_e;

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
  event_e          ev, ev_q;
  logic            passed_valid, passed_room, passed_idle;  // heddle_passed.
  logic [PdcW-1:0] passed_pdc;
  logic [15:0]     passed_spdcid, passed_spdcid_q;
  logic [31:0]     passed_psn, passed_psn_q;
  logic [PdcW-1:0] pdc, pdc_q;
  logic            walk_room, walk_spare, pkt_room;  // Outputs have room for one more event.
  logic            ready_mem;
  logic            limited, ruled;                   // There is a congestion window; it changes.
  logic            window_valid;
  logic [PdcW-1:0] window_pdc;

  logic [NumPdc-1:0] can_send_q, closing_q, control_q, full_q, owed_q, cut_q, pending, window_closed, may_send;
  logic              send_any;
  logic [PdcW-1:0]   send_pdc;
  logic              scan_hit, clean, timer_rdy;
  logic [PdcW-1:0]   scan_pdc;
  logic [31:0]       first_at;
  logic [NumPdc-1:0] closed_window;                  // By heddle_flight: nothing more may be in flight.
  logic              counting, count_closes;         // It is two stages later; an event closes it.
  logic              flight_idle;
  logic [PdcW-1:0]   count_pdc;
  logic [FlightW-1:0] flight;                        // The PDC in stage 1 has so many, without an event just before.
  logic [1:0]        clear_q, clears_by_request_q;

  // Data that is due comes at once: with a congestion window it is no more than a queue that trims takes of some peers.
  logic [DueW-1:0] due_limit;
  assign due_limit = transport_i.cwnd_bytes != '0 ? DueW'(ReturnDueCongested) : DueW'(ReturnDue);

  assign full_o = full_q | (owed_q & gaps_i);
  // A PDC in stage 1 is left alone: its queue position is just changing.
  always_comb begin
    window_closed = closed_window;
    if (counting) window_closed[count_pdc] = count_closes;
    may_send = (can_send_q & ~window_closed & ((pending & (~full_o | cut_q)) | closing_q)) | control_q;
    if (ev_q != EvNone) may_send[pdc_q] = 1'b0;
  end
  logic [NumPdc-1:0] urgent_q;  // PDCs of a DSCP that is.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)           urgent_q <= '0;
    else if (ev == EvOpen) urgent_q[open_pdc_i] <= transport_i.urgent_dscps[open_peer_i.dscp];
  end
  heddle_class_pick #(.NumSrc(NumPdc)) u_next_pdc (
    .clk_i, .rst_ni, .valid_i(may_send), .urgent_i(urgent_q), .take_i(ev == EvSend),
    .valid_o(send_any), .idx_o(send_pdc)
  );

  always_comb begin
    ev  = EvNone;
    pdc = send_pdc;
    if (!ready_mem) begin
      ev = EvNone;
    end else if (open_valid_i && walk_room) begin
      ev  = EvOpen;
      pdc = open_pdc_i;
    end else if (due_valid_i) begin  // Before the PDC to which they belong ends.
      ev  = EvDue;
      pdc = due_i.spdcid[PdcW-1:0];
    end else if (back_valid_i && walk_spare) begin
      ev  = EvBack;
      pdc = back_i.pdc;
    end else if (scan_hit && walk_room) begin  // Rare, as is the next; a flood of ACKs must not hold it up.
      ev  = EvTimer;
      pdc = scan_pdc;
    end else if (leave_any && walk_room) begin
      ev  = EvLeave;
      pdc = leave_pdc;
    end else if (passed_valid && walk_room) begin
      ev  = EvLost;
      pdc = passed_pdc;
    end else if (ack_valid_i && walk_room && passed_room) begin
      ev  = EvAck;
      pdc = ack_i.pdc;
    end else if (window_valid) begin
      ev  = EvWindow;
      pdc = window_pdc;
    end else if (send_any && pkt_room) begin
      ev  = EvSend;
    end
  end
  assign open_ready_o = ev == EvOpen;
  assign back_ready_o = ev == EvBack;
  assign ack_ready_o  = ev == EvAck;
  assign due_ready_o  = ev == EvDue;

  ack_event_t ack_q;
  logic [31:0] acked_q, acked_two_q;  // The PSN after those that it acknowledges; after one more.
  pdc_back_t  back_q;
  logic       open_again_q, open_rud_q;
  logic [31:0] open_psn_q;
  return_due_t came_q;
  always_ff @(posedge clk_i) begin
    pdc_q        <= pdc;
    open_again_q <= open_again_i;
    open_psn_q   <= open_peer_i.start_psn;
    open_rud_q   <= open_peer_i.rud;
    came_q       <= due_i;
    passed_psn_q    <= passed_psn;
    passed_spdcid_q <= passed_spdcid;
    acked_q         <= ack_i.cack + 32'd1;
    acked_two_q     <= ack_i.cack + 32'd2;
    if (ack_valid_i)  ack_q  <= ack_i;
    if (back_valid_i) back_q <= back_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ev_q <= EvNone;
    else         ev_q <= ev;
  end

  // ------------------------------------------------------------------ memories
  localparam int unsigned StateW = $bits(pdc_t);
  localparam int unsigned IdentW = $bits(identity_t);

  logic [StateW-1:0] s_raw;
  logic [IdentW-1:0] id_raw;
  pdc_t              s, d;
  identity_t         id;
  logic              state_wen;
  logic              state_err, state_rdy, id_err, id_rdy;

  heddle_mem #(.Width(StateW), .Depth(NumPdc)) u_state (
    .clk_i, .rst_ni, .wen_i(state_wen), .waddr_i(pdc_q), .wdata_i(d),
    .raddr_i(pdc), .rdata_o(s_raw), .error_o(state_err), .ready_o(state_rdy)
  );
  heddle_mem #(.Width(IdentW), .Depth(NumPdc)) u_identity (
    .clk_i, .rst_ni, .wen_i(ev == EvOpen), .waddr_i(pdc),
    .wdata_i({open_peer_i.fa, open_peer_i.spdcid, open_peer_i.start_psn}),
    .raddr_i(pdc), .rdata_o(id_raw), .error_o(id_err), .ready_o(id_rdy)
  );
  assign s         = pdc_t'(s_raw);
  assign id        = identity_t'(id_raw);
  assign ready_mem = state_rdy && id_rdy && timer_rdy && window_rdy && nscc_rdy && flight_rdy &&
                     lost_rdy && denied_rdy && collapsed_rdy;

  // Congestion windows, as heddle_nscc said last.
  logic [FlightW-1:0] window_new, allowed;
  logic               window_err, window_rdy, nscc_rdy, flight_rdy;
  heddle_mem #(.Width(FlightW), .Depth(NumPdc)) u_window (
    .clk_i, .rst_ni, .wen_i(ev == EvWindow), .waddr_i(pdc), .wdata_i(window_new),
    .raddr_i(pdc), .rdata_o(allowed), .error_o(window_err), .ready_o(window_rdy)
  );

  // For the walk, of a PDC that changes no more until that is done.
  logic unused_held_err, unused_held_rdy;
  heddle_mem #(.Width(PdcWindow), .Depth(NumPdc), .Init(1'b0)) u_held (
    .clk_i, .rst_ni, .wen_i(restart), .waddr_i(pdc_q), .wdata_i(s.sack.held),
    .raddr_i(queue_pdc_i), .rdata_o(held_o), .error_o(unused_held_err), .ready_o(unused_held_rdy)
  );

  logic            collapse, advance, rewind, closed;
  logic [MsgW-1:0] msg;       // To send, while pending.
  logic [PktW-1:0] msg_last;
  logic            more;      // Another message is queued behind it.
  assign enq_ready_o = !collapse;
  heddle_pdc_queue u_queue (
    .clk_i, .rst_ni,
    .enq_i(enq), .enq_pdc_i, .enq_msg_i, .enq_last_i,
    .pending_o(pending), .send_pdc_i(pdc), .send_msg_o(msg), .send_last_o(msg_last),
    .more_o(more), .advance_i(advance), .rewind_i(rewind), .clear_i(closed),
    .shorten_i(collapse), .shorten_last_i(s.index),
    .walk_pdc_i(queue_pdc_i), .walk_held_o(queue_held_o), .walk_msg_o(queue_msg_o),
    .walk_last_o(queue_last_o), .walk_pop_i(queue_pop_i), .walk_pass_i(queue_pass_i), .walk_end_i(queue_end_i)
  );

  // ------------------------------------------------------ stage 1: one event
  logic        msg_failed, last, fresh, known, advanced;
  logic [31:0] acked, in_flight, window, refused_in, age;
  logic [31:0] patience, again;  // Ticks until DEAD_TIME has passed; until the next ACK Request.
  logic        ack_in_window, nack_in_window, nack_taken;
  logic        awaits;      // Data, while no packet is outstanding.
  logic        answers;     // A NACK of a packet in flight, or of an ACK Request.
  logic        resend_now, trim_now, refusal, refuse_now, end_now, end_all, syn_again, finish, close_packet;
  logic        spares;      // With end_now: nothing that is not acknowledged was accepted.
  logic        restart;     // With end_now: the target began anew.
  logic        ask_due;
  logic        step_now, send_now, retire;
  logic        closed_now;  // Its congestion window.
  status_e     end_status;
  logic [15:0] end_detail;
  pdc_walk_t   walk_d;
  logic        walk_push;
  tx_packet_t  pkt_d;
  timer_t      timer_d, timer_cur;
  logic [31:0] rto, backoff;

  assign rto        = backed_off(port_i.rto_ticks, s.rto_shift, port_i.rto_max_ticks);
  assign backoff    = backed_off(port_i.backoff_ticks, s.backoff_shift, port_i.backoff_max_ticks);
  assign close_packet = s.state == PdcClosing;
  assign msg_failed = (lost || denied) && !close_packet;
  assign fresh      = s.nxt == s.top;
  assign last       = s.index == msg_last || (msg_failed && fresh);
  assign in_flight  = s.nxt - s.una;
  assign window     = s.probing ? 32'd1 : s.rud ? 32'(PdcWindow) : 32'((32'(s.range) + 32'd1) * RangeUnit);
  assign age        = now_q - s.heard;
  assign patience   = port_i.dead_ticks - age;
  assign again      = age < port_i.rto_max_ticks ? age : port_i.rto_max_ticks;

  // A message, here and for the walk: its payload cannot be read, or the peer refused it, so that it is not worth
  // sending; it is a READ; its last packet is no request any more.
  logic lost, denied, read, collapsed, walk_lost, walk_denied, enq, collapse_now;
  logic lost_rdy, denied_rdy, collapsed_rdy;
  logic is_read, ends_early, asks;
  assign enq          = enq_valid_i && enq_ready_o;
  assign failed_o     = walk_lost || walk_denied;
  assign collapse_now = send_now && is_read && fresh && msg_failed;
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_lost (
    .clk_i, .rst_ni, .set_i(fail_i), .set_index_i(fail_msg_i), .clear_i(enq), .clear_index_i(enq_msg_i),
    .index_i({look_msg_i, msg}), .flag_o({walk_lost, lost}), .ready_o(lost_rdy)
  );
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_denied (
    .clk_i, .rst_ni, .set_i(refused_i), .set_index_i(refused_msg_i), .clear_i(enq), .clear_index_i(enq_msg_i),
    .index_i({look_msg_i, msg}), .flag_o({walk_denied, denied}), .ready_o(denied_rdy)
  );
  heddle_flags #(.Depth(NumMsg), .Reads(2)) u_collapsed (
    .clk_i, .rst_ni, .set_i(collapse_now), .set_index_i(msg), .clear_i(enq), .clear_index_i(enq_msg_i),
    .index_i({look_msg_i, msg}), .flag_o({collapsed_o, collapsed}), .ready_o(collapsed_rdy)
  );
  heddle_lookup #(.Width(1), .Depth(NumMsg)) u_read (
    .clk_i, .wen_i(enq), .waddr_i(enq_msg_i), .wdata_i(enq_read_i), .raddr_i(msg), .rdata_o(read)
  );
  heddle_lookup #(.Width(1), .Depth(NumMsg)) u_walk_read (
    .clk_i, .wen_i(enq), .waddr_i(enq_msg_i), .wdata_i(enq_read_i), .raddr_i(look_msg_i), .rdata_o(read_o)
  );
  assign is_read    = read && !close_packet;
  assign ends_early = is_read && s.index == msg_last && collapsed;
  assign asks       = is_read && !ends_early && !(fresh && msg_failed);

  // ACK and NACK: do they come from the peer, and are they about what is in flight?
  logic live;  // Waits for answers.
  assign live           = s.state == PdcSyn || s.state == PdcOpen || s.state == PdcClosing;
  // A NACK of a target without the PDC names none.
  assign known          = live && ack_q.dpdcid == id.spdcid && ack_q.fa == id.fa &&
                          (s.state == PdcSyn || ack_q.spdcid == s.tpdcid ||
                           (ack_q.nack && ack_q.spdcid == '0));
  // An error answer stands for one more packet than may be acknowledged before it is cleared. It
  // does so by `una`, which every later request carries as CLEAR_PSN (UET 2.15).
  logic        is_error, is_answer, refused, repeated;
  logic        answered;
  logic [31:0] behind;
  assign is_error       = !ack_q.nack && ack_q.return_code > ReturnCodeOk &&
                          ack_q.psn == ack_q.cack + 32'd1;
  // The same goes for the data of a small READ in its ACK.
  assign is_answer      = is_error || (!ack_q.nack && ack_q.data && ack_q.psn == ack_q.cack + 32'd1);
  assign answered       = is_answer && nack_in_window;
  assign refused        = is_error && nack_in_window;
  assign behind         = s.una - 32'd1 - ack_q.psn;
  assign repeated       = is_answer && behind < 32'(2 * RodWindow);
  assign acked          = answered ? acked_two_q : acked_q;
  assign ack_in_window  = answered ? acked_two_q - s.una <= s.top - s.una : acked_q - s.una <= s.top - s.una;
  assign nack_in_window = (ack_q.psn - s.una) < (s.top - s.una);
  assign advanced       = ack_in_window && acked != s.una;
  assign awaits         = s.state == PdcOpen && s.una == s.top && s.due != '0;
  assign answers        = nack_in_window || (awaits && behind == '0);
  assign refused_in     = ack_q.psn - s.una;

  // Of an ACK Request or a Clear Command that the peer does not know.
  logic refuses_control;
  assign refuses_control = ack_q.code == NackCodeUnexpEvent &&
                           (behind == '0 || (ack_q.spdcid == '0 && ack_q.psn == '0));

  always_comb begin
    resend_now = 1'b0;
    trim_now   = 1'b0;
    refusal    = 1'b0;
    end_now    = 1'b0;
    end_all    = 1'b0;
    syn_again  = 1'b0;
    spares     = 1'b0;
    restart    = 1'b0;
    ask_due    = 1'b0;
    finish     = 1'b0;
    end_status = StatusPeerRejected;
    end_detail = {8'b0, ack_q.code};
    nack_taken = nack_in_window || refuses_control;
    if (ev_q == EvAck && known && ack_q.nack && s.state != PdcClosing) begin
      unique case (ack_q.code)
        NackCodeNoPdcAvail, NackCodeNoCccAvail, NackCodeNoBitmap, NackCodeNoPktBuffer,
        NackCodeNoGtdDelAvail, NackCodeNoSesMsgAvail, NackCodeNoResource,
        NackCodePsnOorWindow, NackCodeRcvdSesProcg:
          refusal = nack_in_window;
        NackCodeTrimmed, NackCodeTrimmedLasthop:
          // Each is about one transmission of its packet.
          if (s.rud) trim_now = nack_in_window && !s.waiting;
          else       resend_now = nack_in_window && refused_in < in_flight && !s.repositioning && !s.waiting;
        NackCodePktNotRcvd:
          if (s.rud) begin
            resend_now = nack_in_window && refused_in < in_flight && !s.repositioning && !s.waiting && worth_again;
          end else if (nack_in_window && !s.waiting && (s.single || (fresh && !s.repositioning))) begin
            // The target has what followed; otherwise a pass that resends all of it is active.
            trim_now   = refused_in < 32'(PdcWindow);
            resend_now = !trim_now && refused_in < in_flight && !s.repositioning;
          end
        NackCodeTrimmedAck, NackCodeRodOoo, NackCodeAckWithData, NackCodeRcvrInferLoss:
          // Only for a packet of the present pass: others were answered already.
          resend_now = nack_in_window && refused_in < in_flight && !s.repositioning &&
                       !s.waiting && (!s.rud || worth_again);
        NackCodeInvalidSyn: begin  // Of an open PDC: about a late SYN, that another target received.
          syn_again  = nack_in_window && s.state == PdcSyn && !s.repositioning;
          nack_taken = nack_in_window && s.state == PdcSyn;
        end
        NackCodeInvDpdcid, NackCodePdcHdrMismatch, NackCodeClosing: begin
          nack_taken = answers;
          if (answers) begin
            if (ack_q.code == NackCodeInvDpdcid && s.state == PdcOpen) begin
              end_now    = 1'b1;
              restart    = 1'b1;
              end_status = StatusRemoteError;
              end_detail = 16'(ReturnCodeBadMkey);
            end
            else if (s.repositioning)          syn_again = 1'b0;  // In progress.
            else if (s.resent || refused_in != '0 || s.sack.held != '0) end_now = 1'b1;
            else if (s.state == PdcSyn)        syn_again = 1'b1;
            else begin
              end_now = 1'b1;
              spares  = 1'b1;
            end
          end
        end
        // Of a request; a peer refuses so also a control packet that it does not know.
        NackCodeUnexpEvent: end_now = nack_in_window && !refuses_control;
        default: begin
          end_now    = answers && !ack_q.ask;
          nack_taken = answers;
        end
      endcase
    end else if (ev_q == EvAck && known && ack_q.nack) begin
      // The command is answered also by a target that has closed the PDC.
      unique case (ack_q.code)
        NackCodeInvDpdcid, NackCodePdcHdrMismatch, NackCodeClosing, NackCodeClosingInErr:
          finish = nack_in_window;
        default: ;
      endcase
    end else if (ev_q == EvAck && known && s.state == PdcClosing) begin
      finish = ack_in_window && advanced;
    end else if (ev_q == EvTimer && timer_due && !s.waiting && (s.una != s.top || s.due != '0) &&
                 (age >= port_i.dead_ticks ||
                  (s.state == PdcClosing && s.rto_shift == 4'(CloseTries - 1)))) begin
      finish     = s.state == PdcClosing;
      end_now    = !finish;
      end_all    = 1'b1;
      end_status = StatusPeerUnreachable;
      end_detail = '0;
    end else if (ev_q == EvTimer && timer_due && !s.waiting && awaits) begin
      ask_due = age >= port_i.rto_ticks;
    end
  end

  // A target that had to drop packets says which is missing. If that was sent again before, the
  // NACK may be late; it counts when no pass is under way that it could be about.
  logic repeated_loss, worth_again;
  assign repeated_loss = refused_in < 32'(s.sack.again);
  assign worth_again   = repeated_loss ? fresh : 32'(s.sack.again) < s.top - s.una;

  // On RUD each packet may be refused by itself; one wait serves all.
  assign refuse_now = refusal && !(s.waiting && (s.rud || s.probe_psn == ack_q.psn));

  // The scan offers candidates; the timer itself decides.
  logic timer_due;
  assign timer_due = timer_cur.on && ($signed(now_q - timer_cur.at) >= 0) && live;

  // A PDC that ended while it waited to be opened again stays ended.
  logic open_now;
  assign open_now = ev_q == EvOpen && (!open_again_q || s.state == PdcSyn || s.state == PdcReopening);

  assign step_now = ev_q == EvSend && !control_q[pdc_q] && can_send_q[pdc_q] && !closed_now &&
                    ((pending[pdc_q] && !(asks && fresh && (s.full || (gaps_i[pdc_q] && s.due != '0)))) ||
                     closing_q[pdc_q]);
  assign closed_now = counting && count_pdc == pdc_q ? count_closes : closed_window[pdc_q];
  assign send_now = step_now && !(sack_step && sack_skip);
  // The target's stored answer is cleared by a command when no request will do it: there is none, or it may
  // not be sent yet.
  logic clear_now, clear_due, control_now, full_d, owed_d;
  assign full_d    = d.full && d.nxt == d.top;
  assign owed_d    = d.due != '0 && d.nxt == d.top;  // It requests no more while there is a gap.
  assign clear_now = ev_q == EvAck && known && (answered || repeated || (ack_q.ask && ack_q.req == AckReqClear)) && s.state != PdcClosing;
  // The window is known two stages later.
  assign clear_due = clear_q[1] && !(clears_by_request_q[1] && !count_closes);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) clear_q <= '0;
    else         clear_q <= {clear_q[0], clear_now};
  end
  always_ff @(posedge clk_i) begin
    clears_by_request_q[1] <= clears_by_request_q[0];
    clears_by_request_q[0] <= pending[pdc_q] && can_send_d && !full_d && !(owed_d && gaps_i[pdc_q]);
  end
  assign control_now = ev_q == EvSend && control_q[pdc_q] && s.state == PdcOpen;
  assign collapse = send_now && msg_failed && fresh && s.index != msg_last;
  assign advance  = step_now && !close_packet && last;
  assign closed   = ev_q == EvBack && back_q.kind == BackClosed;
  assign rewind   = (open_now && open_again_q) ||
                    (ev_q == EvBack && back_q.kind == BackResend && s.state != PdcEnding);

  // Nothing is queued or outstanding. What is queued in this moment keeps the PDC: the walk sees it.
  logic idle, leave;
  assign idle   = s.state == PdcOpen && s.una == s.top && !pending[pdc_q] && !s.repositioning &&
                  s.due == '0;
  assign leave  = ev_q == EvLeave && idle;
  assign retire = leave || (ev_q == EvTimer && timer_due && !s.waiting && idle);

  // ------------------------------------------------- selective acknowledgement
  logic             stale, timed_out, sack_ack, sack_lose, sack_step;
  logic             sack_news, sack_back, sack_skip, sack_above;
  logic [31:0]      next;
  logic [SackW-1:0] sack_advance;
  sack_t            sack, sack_stepped;
  logic             sack_moves, sack_pass, judged, keep_closed;
  logic [31:0]      past;
  logic [SackW-1:0]     sack_next;
  logic [PdcWindow-1:0] sack_left, sack_flight, sack_held, sack_reported;
  logic [31:0]      out;
  assign stale     = !ack_in_window && s.una - acked < 32'(2 * PdcWindow);
  assign sack_ack  = ev_q == EvAck && known && !ack_q.nack && s.rud && (ack_in_window || stale);
  assign next      = s.nxt - s.una;
  assign sack_next = $signed(next) < 0 ? '0 : reach(next);
  assign sack_step = step_now && (s.rud || s.single) && !fresh && !close_packet;
  assign timed_out = ev_q == EvTimer && timer_due && !s.waiting && s.una != s.top;
  assign sack_lose = s.rud && (timed_out || resend_now || refusal);
  // A window on ROD may be longer than the bitmap.
  assign sack_moves = sack_ack || (ev_q == EvAck && known && !ack_q.nack && s.single && ack_in_window);
  assign sack_advance = !(sack_moves && ack_in_window) ? '0 : answered ? reach(acked_two_q - s.una) : reach(acked_q - s.una);
  assign past      = passed_psn_q - s.una;  // Not if it was acknowledged meanwhile.
  assign sack_pass = ev_q == EvLost && live && s.rud && passed_spdcid_q == id.spdcid && past <= 32'(PdcWindow);
  // A closed window stays so until it is known what is lost: that leaves first.
  assign judged      = sack_ack && (s.sack.held != '0 || (ack_q.sack && ack_q.sack_bitmap != '0));
  assign keep_closed = judged && closed_now;
  function automatic logic [SackW-1:0] reach(logic [31:0] distance);
    reach = distance < 32'(PdcWindow) ? SackW'(distance) : SackW'(PdcWindow);
  endfunction
  heddle_passed u_passed (
    .clk_i, .rst_ni, .reorder_i(transport_i.reorder),
    .valid_i(judged), .always_i(keep_closed), .room_o(passed_room), .pdc_i(pdc_q), .spdcid_i(id.spdcid), .una_i(s.una),
    .advance_i(sack_advance), .held_i(sack_held),
    .valid_o(passed_valid), .ready_i(ev == EvLost), .pdc_o(passed_pdc), .spdcid_o(passed_spdcid), .psn_o(passed_psn),
    .idle_o(passed_idle)
  );
  heddle_sack_report u_report (
    .out_i(reach(s.top - s.una)), .base_i(ack_q.sack_base - s.una), .bitmap_i(ack_q.sack_bitmap), .reported_o(sack_reported)
  );
  heddle_sack u_sack (
    .state_i(s.sack), .out_i(reach(s.top - s.una)), .next_i(sack_next),
    .ack_i(sack_moves), .advance_i(sack_advance), .reported_i(ack_q.sack && s.rud ? sack_reported : '0),
    .pass_i(sack_pass), .past_i(past[SackW-1:0]),
    .lose_i(sack_lose), .anew_i(!resend_now || repeated_loss),
    .trim_i(trim_now), .trim_at_i(refused_in[SackW-2:0]),
    .state_o(sack), .news_o(sack_news), .held_o(sack_held), .back_o(sack_back), .left_o(sack_left), .flight_o(sack_flight)
  );
  heddle_sack_step u_step (
    .state_i(s.sack), .out_i(reach(s.top - s.una)), .next_i(sack_next), .state_o(sack_stepped), .skip_o(sack_skip),
    .above_o(sack_above)
  );

  always_comb begin
    d         = s;
    d.sack    = sack_step ? sack_stepped : sack;
    timer_d   = timer_cur;
    walk_push = 1'b0;
    walk_d    = '0;
    walk_d.pdc = pdc_q;
    unique case (ev_q)
      EvOpen: begin
        if (open_now) begin
          d           = '0;
          d.state     = PdcSyn;
          d.rud       = open_rud_q;
          d.una       = open_psn_q;
          d.nxt       = open_psn_q;
          d.top       = open_psn_q;
          d.heard     = now_q;
          timer_d     = '0;
          walk_push   = 1'b1;
          walk_d.kind = WalkOpen;
          walk_d.psn  = open_psn_q;
          walk_d.reads  = s.due != '0;  // What they waited for is lost with the old PDC.
          walk_d.status = StatusPeerRejected;
          walk_d.detail = 16'(NackCodeInvDpdcid);
        end
      end
      EvAck: begin
        if (known && (ack_q.nack ? nack_taken || ack_q.ask : ack_in_window)) begin
          if (s.una != s.top) d.heard = now_q;  // Else only data restart DEAD_TIME.
          if (close_packet) d.rto_shift = '0;  // The target lives, but has no room for its tombstone.
          if (!ack_q.nack && s.state == PdcSyn) begin
            d.state  = PdcOpen;
            d.tpdcid = ack_q.spdcid;
          end
          if (!ack_q.nack && advanced) begin
            d.una           = acked;
            d.rto_shift     = '0;
            d.backoff_shift = '0;
            d.waiting       = 1'b0;
            if ($signed(acked - s.probe_psn) > 0) d.probing = 1'b0;
            timer_d.at      = now_q + ((acked == s.top && s.due == '0) ? transport_i.idle_ticks
                                                                       : port_i.rto_ticks);
            if (acked == s.top) begin
              d.resent   = 1'b0;
              timer_d.on = transport_i.idle_ticks != '0 || s.due != '0;
            end
            walk_push       = 1'b1;
            walk_d.kind     = WalkAck;
            walk_d.psn      = acked;
            walk_d.refused  = refused;
            walk_d.detail   = {10'b0, ack_q.return_code};
            // The peer has more than is left to send again: skip it.
            if ($signed(s.nxt - acked) < 0 && !s.repositioning) begin
              d.repositioning = 1'b1;
              walk_d.kind     = WalkReturn;
            end
          end
          if (resend_now || refuse_now || (trim_now && refused_in < in_flight)) begin
            if (!s.repositioning) begin
              walk_push       = 1'b1;
              walk_d.kind     = WalkReturn;
              walk_d.psn      = s.una;
              d.repositioning = 1'b1;
            end
          end
          if (refuse_now) begin
            d.waiting       = 1'b1;
            d.probing       = 1'b1;
            d.probe_psn     = ack_q.psn;
            d.backoff_shift = (s.backoff_shift == '1) ? '1 : s.backoff_shift + 1'b1;
            timer_d.on      = 1'b1;
            timer_d.at      = now_q + backoff;
          end
          if (trim_now && !s.rud) d.single = 1'b1;
          if (syn_again) begin  // Nothing is sent until it is open again.
            d.state         = PdcSyn;
            d.repositioning = 1'b1;
          end
        end
        // Not a stale one.
        if (known && ack_q.sack && ack_in_window && ack_q.range != '0) begin
          d.range = ack_q.range > 8'(OrderedRange) ? RangeW'(OrderedRange - 1) : RangeW'(ack_q.range - 8'd1);
        end
        if (sack_ack) begin
          if (sack_news && !advanced && !s.waiting) begin
            d.heard     = now_q;
            d.rto_shift = '0;
            timer_d.at  = now_q + port_i.rto_ticks;
          end
        end
      end
      EvLost: begin
        if (sack_back && !s.repositioning) begin
          d.repositioning = 1'b1;
          walk_push       = 1'b1;
          walk_d.kind     = WalkReturn;
          walk_d.psn      = s.una;
        end
      end
      EvBack: begin
        unique case (back_q.kind)
          BackClosed: begin
            d       = '0;
            timer_d = '0;
          end
          BackReopen: begin
            d       = '0;
            d.state = PdcReopening;
            timer_d = '0;
          end
          BackLeave: begin
            d.state         = PdcClosing;
            d.repositioning = 1'b0;
            timer_d         = '0;
          end
          default: begin
            if (s.state != PdcEnding) begin
              d.nxt           = back_q.psn;
              d.index         = back_q.index;
              d.repositioning = 1'b0;
              if ($signed(back_q.psn - s.una) < 0) begin
                d.repositioning = 1'b1;
                walk_push       = 1'b1;
                walk_d.kind     = WalkReturn;
                walk_d.psn      = s.una;
              end
            end
          end
        endcase
      end
      EvDue: begin
        if (live && came_q.spdcid == id.spdcid) begin
          d.due   = s.due - came_q.packets;
          d.heard = now_q;
          if (d.due == '0 && s.una == s.top && !s.waiting) begin
            timer_d.on = transport_i.idle_ticks != '0;
            timer_d.at = now_q + transport_i.idle_ticks;
          end
        end
      end
      EvTimer: begin
        if (timer_due) begin
          timer_d.at = now_q + rto;
          if (s.waiting) begin
            d.waiting = 1'b0;
          end else if (s.una == s.top && s.due != '0) begin
            timer_d.at = now_q + port_i.rto_ticks;
            if (ask_due) begin
              d.ask      = 1'b1;  // Replaces a pending Clear Command, which its ACK requests again.
              timer_d.at = patience < again ? s.heard + port_i.dead_ticks : now_q + again;
            end
          end else if (s.una == s.top) begin
            // Idle. What is queued in this moment starts the RTO when it is sent.
            timer_d.at = now_q + transport_i.idle_ticks;
            timer_d.on = transport_i.idle_ticks != '0;
          end else begin
            d.rto_shift = (s.rto_shift == '1) ? '1 : s.rto_shift + 1'b1;
            timer_d.at  = now_q + backed_off(port_i.rto_ticks, d.rto_shift, port_i.rto_max_ticks);
            d.probing   = 1'b1;
            d.probe_psn = s.una;
            if (close_packet) begin
              d.nxt = s.una;
            end else if (!s.repositioning) begin
              d.repositioning = 1'b1;
              walk_push       = 1'b1;
              walk_d.kind     = WalkReturn;
              walk_d.psn      = s.una;
            end
          end
        end
      end
      EvSend: begin
        if (control_now) d.ask = 1'b0;
        if (step_now) begin
          d.nxt   = s.nxt + 32'd1;
          d.top   = fresh ? s.nxt + 32'd1 : s.top;
          d.index = last || close_packet ? '0 : s.index + 1'b1;
          if (!fresh && send_now) d.resent = 1'b1;
          if (asks && fresh) d.due = s.due + 1'b1;
          if (s.una == s.top) begin
            d.heard    = now_q;  // Silence counts from here.
            timer_d.on = 1'b1;
            timer_d.at = now_q + rto;
          end
        end
      end
      default: ;
    endcase
    if (!s.rud && (resend_now || refuse_now || timed_out)) begin
      d.single = 1'b0;
      d.sack   = '0;
    end
    if (retire) begin
      d.repositioning = 1'b1;
      walk_push       = 1'b1;
      walk_d.kind     = WalkRetire;
      walk_d.psn      = s.una;
    end
    if (finish) begin
      d.state     = PdcEnding;
      timer_d     = '0;
      walk_push   = 1'b1;
      walk_d.kind = WalkClose;
    end
    if (end_now) begin
      d.state       = PdcEnding;
      timer_d       = '0;
      walk_push     = 1'b1;
      walk_d        = '0;
      walk_d.pdc    = pdc_q;
      walk_d.kind   = end_all ? WalkFail : restart ? WalkRestart : WalkMove;
      walk_d.psn    = spares || restart ? s.una : s.top;
      walk_d.reads  = s.due != '0;
      walk_d.status = end_status;
      walk_d.detail = end_detail;
    end
    // Requests at the limit leave in pairs, of which the second one requests an ACK, which takes the place of data.
    d.full = d.due >= due_limit || (s.full && d.due > due_limit - DueW'(2));
    out    = d.nxt - d.una;
  end
  assign state_wen = ev_q != EvNone;

  logic open_window, can_send_d;
  always_comb begin
    if (d.probing)  open_window = out == '0;
    else if (d.rud) open_window = out < 32'(PdcWindow);
    else            open_window = out < 32'(RodWindow) && RangeW'(out / RangeUnit) <= d.range;
  end
  assign can_send_d = !d.repositioning && !d.waiting &&
                      ((d.state == PdcSyn || d.state == PdcOpen)
                           ? open_window
                           : (d.state == PdcClosing && d.nxt == d.una));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      can_send_q <= '0;
      closing_q  <= '0;
      control_q  <= '0;
      full_q     <= '0;
      owed_q     <= '0;
      cut_q      <= '0;
      alive_o    <= '0;
      stuck_o    <= '0;
    end else begin
      // What is due of a refused READ is known at its end, for which a packet must leave.
      if (ev_q == EvSend && fresh && !control_q[pdc_q] && !closed_now) cut_q[pdc_q] <= 1'b0;
      if (refused_i)      cut_q[queue_pdc_i] <= 1'b1;
      if (ask_due)             control_q[pdc_q] <= 1'b1;
      else if (ev_q == EvSend) control_q[pdc_q] <= 1'b0;
      // A packet of the PDC that leaves just now clears as well; one that its window stops does not.
      if (clear_due && !((send_now || control_now) && pdc_q == count_pdc)) control_q[count_pdc] <= 1'b1;
      if (ev_q != EvNone) begin
        can_send_q[pdc_q] <= can_send_d;
        closing_q[pdc_q]  <= d.state == PdcClosing;
        full_q[pdc_q]     <= full_d;
        owed_q[pdc_q]     <= owed_d;
        alive_o[pdc_q]    <= d.state == PdcSyn || d.state == PdcOpen || d.state == PdcClosing;
        stuck_o[pdc_q]    <= d.waiting || d.probing;
      end
    end
  end

  // ---------------------------------------------------------------- congestion
  // When each packet was sent; a round trip is measured of those that were sent once.
  logic                sole;
  logic [23:0]         trip;
  logic [31:0]         ack_ahead;
  logic                trims, measured, rule, rule_valid, lost_one, lost_all;
  nscc_event_t         rule_event, rule_counted;
  assign limited         = transport_i.cwnd_bytes != '0;
  assign ruled           = limited && transport_i.congestion[0] && transport_i.base_rtt_ns != '0;
  heddle_round_trip #(.Depth(NumPdc * PdcWindow)) u_round_trip (
    .clk_i, .rst_ni, .now_ns_i,
    .sent_i(send_now && ruled), .sent_place_i({pdc_q, s.nxt[$clog2(PdcWindow)-1:0]}), .sent_sole_i(fresh),
    .look_place_i({ack_i.pdc, ack_i.psn[$clog2(PdcWindow)-1:0]}), .service_time_i(ack_q.service_time),
    .sole_o(sole), .rtt_o(trip)
  );
  assign trims     = ack_q.code == NackCodeTrimmed || ack_q.code == NackCodeTrimmedLasthop;
  assign ack_ahead = ack_q.psn - s.una;
  assign measured  = nack_in_window && sole && !ack_q.retx &&
                     !s.sack.held[ack_ahead[$clog2(PdcWindow)-1:0]];
  always_comb begin
    rule               = 1'b0;
    rule_event         = '0;
    rule_event.pdc     = pdc_q;
    rule_event.now     = now_ns_i;
    if (open_now) begin
      rule             = limited;
      rule_event.open  = 1'b1;
    end else if (timed_out) begin
      rule             = ruled;
      rule_event.timeout = 1'b1;
    end else if (ev_q == EvAck && (resend_now || trim_now)) begin
      rule             = ruled;
      rule_event.trim  = trims;
    end else if (sack_pass) begin
      rule             = ruled;
    end else if (sack_ack || (ev_q == EvAck && known && !ack_q.nack && !s.rud && ack_in_window)) begin
      rule             = ruled;
      rule_event.ack   = 1'b1;
      rule_event.marked  = ack_q.m;
      if (measured) rule_event.rtt = trip;
    end
  end

  assign lost_one = ev_q == EvAck && trims && !s.rud && resend_now;
  assign lost_all = ev_q == EvAck && !trims && !s.rud && resend_now;
  heddle_flight u_flight (
    .clk_i, .rst_ni, .ready_o(flight_rdy),
    .event_i(state_wen), .pdc_i(pdc_q), .limited_i(limited), .allowed_i(allowed),
    .sent_i(send_now), .counted_i(sack_ack || sack_pass || sack_lose || (trim_now && s.rud)), .left_i(sack_left), .flight_i(sack_flight),
    .keep_i(keep_closed),
    .fixed_i(!d.rud || open_now), .out_i(out),
    .rule_i(rule), .rule_event_i(rule_event), .lost_one_i(lost_one), .lost_all_i(lost_all),
    .rule_o(rule_valid), .rule_event_o(rule_counted),
    .look_pdc_i(pdc), .flight_o(flight), .event_o(counting), .pdc_o(count_pdc), .closes_o(count_closes),
    .closed_o(closed_window), .idle_o(flight_idle)
  );

  logic        nscc_idle;
  logic [19:0] unused_bytes;
  heddle_nscc u_nscc (
    .clk_i, .rst_ni, .port_i, .transport_i,
    .event_valid_i(rule_valid), .event_i(rule_counted), .ready_o(nscc_rdy),
    .window_valid_o(window_valid), .window_ready_i(ev == EvWindow), .window_pdc_o(window_pdc),
    .window_o(window_new), .window_bytes_o(unused_bytes), .idle_o(nscc_idle)
  );

  // ---------------------------------------------------------------- who leaves
  // Idle PDCs that their target wants closed, and as many as peers wait for, at most MaxLeaving at
  // a time. Those that sent nothing since the last time around go first.
  localparam int unsigned MaxLeaving = 16;
  logic [NumPdc-1:0]         idle_q, asked_q, used_q, unwanted, unused_idle, leavers;
  logic                      leave_any, evict;
  logic [PdcW-1:0]           leave_pdc;
  logic [$clog2(MaxLeaving):0] leaving_q;  // Evictions that have not ended.
  logic [NumPdc-1:0]         evicted_q;
  assign evict       = want_i > WantW'(leaving_q) &&
                       leaving_q < ($clog2(MaxLeaving)+1)'(MaxLeaving);
  assign unwanted    = idle_q & asked_q & ~pending;
  assign unused_idle = idle_q & ~pending & ~used_q;
  always_comb begin
    leavers = unwanted;
    if (evict && unwanted == '0) leavers = unused_idle;
    if (ev_q != EvNone) leavers[pdc_q] = 1'b0;
    if (ev_q == EvLeave) leavers = '0;  // It is not counted yet.
  end
  heddle_rr_pick #(.NumSrc(NumPdc)) u_leave (
    .clk_i, .rst_ni, .valid_i(leavers), .take_i(ev == EvLeave),
    .valid_o(leave_any), .idx_o(leave_pdc)
  );
  logic evict_now, evict_end;
  assign evict_now = leave && !asked_q[pdc_q];
  assign evict_end = ev_q == EvBack && evicted_q[pdc_q] &&
                     (back_q.kind == BackClosed || back_q.kind == BackResend);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      idle_q    <= '0;
      asked_q   <= '0;
      used_q    <= '0;
      evicted_q <= '0;
      leaving_q <= '0;
    end else begin
      if (evict && (idle_q & ~pending) != '0 && unused_idle == '0) used_q <= used_q & ~idle_q;
      if (close_i) asked_q <= '1;
      if (ev_q != EvNone) begin
        idle_q[pdc_q] <= d.state == PdcOpen && d.una == d.top && !d.repositioning && d.due == '0;
        if (send_now) used_q[pdc_q] <= 1'b1;
        if (ev_q == EvAck && known && (!ack_q.nack || ack_q.ask) && ack_q.req == AckReqClose) asked_q[pdc_q] <= 1'b1;
        else if (opens) asked_q[pdc_q] <= 1'b0;
        if (evict_now)      evicted_q[pdc_q] <= 1'b1;
        else if (evict_end) evicted_q[pdc_q] <= 1'b0;
      end
      leaving_q <= leaving_q + ($clog2(MaxLeaving)+1)'(evict_now) -
                   ($clog2(MaxLeaving)+1)'(evict_end);
    end
  end

  // Those that are opened again were never closed.
  logic          opens;
  logic [PdcW:0] open_q;
  assign opens  = open_now && !open_again_q;
  assign open_o = open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else         open_q <= open_q + (PdcW + 1)'(opens) - (PdcW + 1)'(closed);
  end

  // --------------------------------------------------------------------- packets
  always_comb begin
    pkt_d           = '0;
    pkt_d.pdc       = pdc_q;
    pkt_d.msg       = msg;
    pkt_d.psn       = s.nxt;
    pkt_d.index     = s.index;
    pkt_d.last      = last && !close_packet;
    pkt_d.syn       = s.state == PdcSyn;
    pkt_d.retx      = !fresh;
    // The peer answers when nothing follows, and often enough to keep the window moving.
    pkt_d.ar        = (last && !more) || !fresh || s.state == PdcSyn || s.nxt[3:0] == '1 ||
                      close_packet || (asks && s.due == due_limit - 1'b1) ||
                      (is_read && msg_failed && fresh) ||
                      (limited && (s.nxt[2:0] == '1 || flight + 1'b1 >= allowed));
    pkt_d.control   = close_packet;
    pkt_d.cp_type   = close_packet ? CpTypeCloseCommand : CpTypeNoop;
    pkt_d.failed    = is_read ? !asks : msg_failed;
    pkt_d.clear_psn = s.una - 32'd1;
    pkt_d.tpdcid    = s.tpdcid;
    if (control_now) begin
      pkt_d.psn     = s.ask ? s.una - 32'd1 : '0;
      pkt_d.last    = 1'b0;
      pkt_d.syn     = 1'b0;
      pkt_d.retx    = 1'b0;
      pkt_d.ar      = 1'b0;
      pkt_d.control = 1'b1;
      pkt_d.cp_type = s.ask ? CpTypeAckRequest : CpTypeClearCommand;
    end
  end

  logic                      pkt_fifo_ready;
  logic [$clog2(PktDepth):0] pkt_count;
  heddle_fifo #(.Width($bits(tx_packet_t)), .Depth(PktDepth)) u_packets (
    .clk_i, .rst_ni, .valid_i(send_now || control_now), .ready_o(pkt_fifo_ready), .data_i(pkt_d),
    .valid_o(pkt_valid_o), .ready_i(pkt_ready_i), .data_o(pkt_o), .count_o(pkt_count)
  );
  assign pkt_room = pkt_count <= ($clog2(PktDepth)+1)'(PktDepth - 2) && !pause_i && hold_q == '0;
  // heddle_tx_build counts a full packet before the next one is chosen.
  logic [PauseCycles-1:0] hold_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) hold_q <= '0;
    else         hold_q <= {hold_q[0 +: PauseCycles-1], send_now && !last && !is_read};
  end

  logic [SeqW-1:0] seq_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)       seq_q <= '0;
    else if (send_now || control_now) seq_q <= seq_q + 1'b1;
  end
  assign seq_issued_o = seq_q;
  assign sent_o       = send_now && !close_packet;
  assign sent_msg_o   = msg;
  assign asked_o       = send_now && is_read && fresh;
  assign asked_first_o = s.index == '0;
  assign asked_as_o    = {id.spdcid, s.nxt, PktsW'(s.index) + PktsW'(asks)};

  // ------------------------------------------------------------------ to the walk
  logic                     walk_fifo_ready;
  logic [$clog2(EvDepth):0] walk_count;
  heddle_fifo #(.Width($bits(pdc_walk_t)), .Depth(EvDepth)) u_walk (
    .clk_i, .rst_ni, .valid_i(walk_push), .ready_o(walk_fifo_ready), .data_i(walk_d),
    .valid_o(walk_valid_o), .ready_i(walk_ready_i), .data_o(walk_o), .count_o(walk_count)
  );
  // Repositioning replaces the event it answers, so it may use the last places.
  assign walk_room  = walk_count <= ($clog2(EvDepth)+1)'(EvDepth - 8);
  assign walk_spare = walk_count <= ($clog2(EvDepth)+1)'(EvDepth - 2);

  // ------------------------------------------------------------------ SYN again
  // One at a time, held until tx_msg has opened it.
  logic [NumPdc-1:0] reopen_q;
  logic              reopen_any, reopen_take, reopen_busy_q;
  logic [PdcW-1:0]   reopen_next, reopen_pdc_q;
  heddle_rr_pick #(.NumSrc(NumPdc)) u_reopen (
    .clk_i, .rst_ni, .valid_i(reopen_q), .take_i(reopen_take),
    .valid_o(reopen_any), .idx_o(reopen_next)
  );
  assign reopen_take    = reopen_any && !reopen_busy_q;
  assign reopen_valid_o = reopen_busy_q;
  assign reopen_pdc_o   = reopen_pdc_q;
  always_ff @(posedge clk_i) begin
    if (reopen_take) reopen_pdc_q <= reopen_next;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reopen_q      <= '0;
      reopen_busy_q <= 1'b0;
    end else begin
      if (reopen_take) reopen_q[reopen_next] <= 1'b0;
      if (syn_again || (ev_q == EvBack && back_q.kind == BackReopen)) reopen_q[pdc_q] <= 1'b1;
      if (end_now) reopen_q[pdc_q] <= 1'b0;
      if (reopen_take)         reopen_busy_q <= 1'b1;
      else if (reopen_ready_i) reopen_busy_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------- timers
  heddle_timer_scan #(.Num(NumPdc)) u_timers (
    .clk_i, .rst_ni, .now_i(now_q),
    .set_i(state_wen), .set_idx_i(pdc_q), .set_on_i(timer_d.on), .set_at_i(timer_d.at),
    .get_idx_i(pdc), .get_on_o(timer_cur.on), .get_at_o(timer_cur.at),
    .due_o(scan_hit), .due_idx_o(scan_pdc), .take_i(ev == EvTimer),
    .clean_o(clean), .deadline_valid_o(deadline_valid_o), .deadline_o(first_at),
    .ready_o(timer_rdy)
  );

  logic [31:0] until_deadline;
  assign until_deadline   = first_at - now_q;
  assign deadline_o       = ($signed(until_deadline) <= 0) ? 32'd1 : until_deadline;
  assign idle_o = ready_mem && nscc_idle && clean && ev == EvNone && ev_q == EvNone && flight_idle && passed_idle && !scan_hit &&
                  !(|may_send) && !leave_any && !(evict && (idle_q & ~pending) != '0) && pkt_count == '0 && walk_count == '0 && !(|reopen_q) && !reopen_busy_q &&
                  !ack_valid_i && !open_valid_i && !enq_valid_i && !back_valid_i && !due_valid_i &&
                  !(deadline_valid_o && $signed(until_deadline) <= 0);

  // ------------------------------------------------------------------ statistics
  always_comb begin
    stat_o = '0;
    if (ev_q == EvAck) begin
      stat_o[StatisticRxAcks]    = known && !ack_q.nack && ack_in_window;
      stat_o[StatisticRxNacks]   = known && ack_q.nack && !ack_q.ask && nack_taken;
      stat_o[StatisticDropPdcid] = !known;
      stat_o[StatisticDropPsn]   = known && !ack_q.ask && !(ack_q.nack ? nack_taken : ack_in_window);
    end
    stat_o[StatisticTimeouts]  = timed_out;
    stat_o[StatisticTxSelective] = send_now && s.rud && !fresh && sack_above;
    stat_o[StatisticDeadPeers] = end_now && end_status == StatusPeerUnreachable;
    stat_o[StatisticPdcRestarts]  = restart;
    stat_o[StatisticTxPdcs]       = open_now;
    stat_o[StatisticPdcCloses]    = finish && ev_q == EvAck;
    stat_o[StatisticPdcEvictions] = evict_now;
  end

  if (PdcWindow > RangeUnit) begin : gen_bad_window
    $error("A peer's MP_Range (UET 2.14) would limit RUD: it allows 128 PSNs or more");
  end

  logic unused;
  assign unused = ^{state_err, id_err, window_err, unused_held_err, unused_held_rdy, unused_bytes, ack_ahead, out, id.start_psn, ack_q,
                    back_q.pdc, port_i, transport_i, open_peer_i};

  `HEDDLE_ASSERT(PacketQueueHasRoom_A, !(send_now || control_now) || pkt_fifo_ready)
  `HEDDLE_ASSERT(WalkQueueHasRoom_A, !walk_push || walk_fifo_ready)
  `HEDDLE_ASSERT(OpenCounted_A, open_q <= (PdcW + 1)'(NumPdc) && !(closed && open_q == '0))
  `HEDDLE_ASSERT(DueTakenOnce_A,
                 ev_q == EvDue && live && came_q.spdcid == id.spdcid |-> came_q.packets <= s.due)
  `HEDDLE_ASSERT(LeavingBounded_A, leaving_q <= ($clog2(MaxLeaving)+1)'(MaxLeaving))
  `HEDDLE_ASSERT(WindowKept_A, send_now |-> in_flight < window)
endmodule
