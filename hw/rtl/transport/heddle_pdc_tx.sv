// SPDX-License-Identifier: Apache-2.0
// Initiator half of the PDCs: sequence numbers, window, timers, go-back-N.
//
// One event per cycle changes the state of one PDC: opening, an ACK or NACK, a
// repositioning by heddle_pdc_walk, a timer, or the next packet. A PDC that may not
// send (window, back-off, repositioning) is not in the ready set and delays no other.
//
// Ordered:   packets of a PDC leave in PSN order; messages in queue order, never interleaved.
// Window:    at most PdcWindow packets unacknowledged; one while the peer refuses or is silent.
// Refusal:   a NACK for lack of a resource is retried without limit, after a wait that
//            doubles up to backoff_max_ticks; it shows that the peer lives.
// Silence:   nothing heard for dead_ticks while packets are outstanding ends the PDC with
//            status peer_unreachable.
// Idle:      a PDC with nothing queued or outstanding for dead_ticks is closed without a word; the
//            target forgets it after twice that time.
// Forgotten: when a target that forgot the PDC refuses packets that were sent once only, the PDC is
//            opened again: nothing of them was accepted.
// Collapse:  a message whose payload cannot be read ends with its next new packet.

`include "heddle_assert.svh"

module heddle_pdc_tx
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  port_cfg_t          port_i,

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
  output logic               reopen_valid_o,
  input  logic               reopen_ready_i,
  output logic [PdcW-1:0]    reopen_pdc_o,

  input  logic               ack_valid_i,      // heddle_accept.
  output logic               ack_ready_o,
  input  ack_event_t         ack_i,

  input  logic               fail_i,           // heddle_tx_build: payload of a message is lost.
  input  logic [MsgW-1:0]    fail_msg_i,
  output logic [NumMsg-1:0]  failed_o,

  output logic               pkt_valid_o,
  input  logic               pkt_ready_i,
  output tx_packet_t         pkt_o,
  output logic [SeqW-1:0]    seq_issued_o,     // Packets offered on `pkt` so far.

  // heddle_pdc_walk: what happened to a PDC, and where to go back to.
  output logic               walk_valid_o,
  input  logic               walk_ready_i,
  output pdc_walk_t          walk_o,
  input  logic               back_valid_i,
  output logic               back_ready_o,
  input  pdc_back_t          back_i,

  output logic               sent_o,           // Strobe: packet issued, for the walk's records.
  output logic [MsgW-1:0]    sent_msg_o,
  output logic [31:0]        sent_psn_o,
  output logic               sent_last_o,
  input  logic [PdcW-1:0]    ring_pdc_i,       // Walk's read port of the queues: data next cycle.
  input  logic [QueueW-1:0]  ring_ptr_i,
  output logic [MsgW-1:0]    ring_msg_o,
  output logic [NumPdc-1:0][QueueW-1:0] queue_tail_o,   // Next free position.
  output logic [NumPdc-1:0][QueueW-1:0] queue_sent_o,   // First position not completely sent yet.
  input  logic [NumPdc-1:0][QueueW-1:0] queue_head_i,   // Oldest position in use.

  output logic [NumStat-1:0] stat_o,
  output logic               idle_o,
  output logic               deadline_valid_o,
  output logic [31:0]        deadline_o
);
  typedef enum logic [1:0] {
    PdcClosed = 2'd0, PdcSyn = 2'd1, PdcOpen = 2'd2, PdcEnding = 2'd3
  } pdc_state_e;

  typedef struct packed {
    pdc_state_e      state;
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

  typedef struct packed {
    logic [MsgW-1:0] msg;
    logic [PktW-1:0] last;
  } ring_t;

  typedef enum logic [2:0] {
    EvNone, EvOpen, EvAck, EvBack, EvTimer, EvSend
  } event_e;

  localparam int unsigned RingW    = PdcW + QueueW;
  localparam int unsigned PktDepth = 8;
  localparam int unsigned EvDepth  = 32;

  // ----------------------------------------------------------------- time
  logic [31:0] now_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)     now_q <= '0;
    else if (tick_i) now_q <= now_q + 1'b1;
  end

  // --------------------------------------------------------- stage 0: choose
  event_e          ev, ev_q;
  logic [PdcW-1:0] pdc, pdc_q;
  logic            walk_room, walk_spare, pkt_room;  // Outputs have room for one more event.
  logic            ready_mem;

  logic [NumPdc-1:0] can_send_q, pending, may_send;
  logic              send_any;
  logic [PdcW-1:0]   send_pdc;
  logic              scan_hit_q;
  logic [PdcW-1:0]   scan_pdc_q;

  // A PDC in stage 1 is left alone: its queue position is just changing.
  always_comb begin
    may_send = can_send_q & pending;
    if (ev_q != EvNone) may_send[pdc_q] = 1'b0;
  end
  heddle_rr_pick #(.NumSrc(NumPdc)) u_next_pdc (
    .clk_i, .rst_ni, .valid_i(may_send), .take_i(ev == EvSend),
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
    end else if (back_valid_i && walk_spare) begin
      ev  = EvBack;
      pdc = back_i.pdc;
    end else if (scan_hit_q && walk_room) begin  // Rare; a flood of ACKs must not hold it up.
      ev  = EvTimer;
      pdc = scan_pdc_q;
    end else if (ack_valid_i && walk_room) begin
      ev  = EvAck;
      pdc = ack_i.pdc;
    end else if (send_any && pkt_room) begin
      ev  = EvSend;
    end
  end
  assign open_ready_o = ev == EvOpen;
  assign back_ready_o = ev == EvBack;
  assign ack_ready_o  = ev == EvAck;

  ack_event_t ack_q;
  pdc_back_t  back_q;
  logic       open_again_q;
  logic [31:0] open_psn_q;
  always_ff @(posedge clk_i) begin
    pdc_q        <= pdc;
    open_again_q <= open_again_i;
    open_psn_q   <= open_peer_i.start_psn;
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
  localparam int unsigned EntryW = $bits(ring_t);

  logic [StateW-1:0] s_raw;
  logic [IdentW-1:0] id_raw;
  pdc_t              s, d;
  identity_t         id;
  ring_t             entry;
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
  assign ready_mem = state_rdy && id_rdy && timer_rdy;

  // Queue of each PDC: a ring of messages. `cur` is the position being sent.
  logic [NumPdc-1:0][QueueW-1:0] tail_q, cur_q, sent_q;
  logic              collapse, enq;
  logic [EntryW-1:0] entry_raw;
  logic [RingW-1:0]  ring_waddr;
  ring_t             ring_wdata;
  logic              unused_ring_err, unused_ring_rdy, unused_walk_err, unused_walk_rdy;

  assign enq_ready_o = !collapse && (tail_q[enq_pdc_i] + QueueW'(1)) != queue_head_i[enq_pdc_i];
  assign enq         = enq_valid_i && enq_ready_o;
  assign ring_waddr  = collapse ? {pdc_q, cur_q[pdc_q]} : {enq_pdc_i, tail_q[enq_pdc_i]};
  assign ring_wdata  = collapse ? {entry.msg, s.index} : {enq_msg_i, enq_last_i};
  assign entry       = ring_t'(entry_raw);

  heddle_mem #(.Width(EntryW), .Depth(NumPdc * PdcQueue), .Init(1'b0)) u_ring (
    .clk_i, .rst_ni, .wen_i(enq || collapse), .waddr_i(ring_waddr), .wdata_i(ring_wdata),
    .raddr_i({pdc, cur_q[pdc]}), .rdata_o(entry_raw),
    .error_o(unused_ring_err), .ready_o(unused_ring_rdy)
  );
  heddle_mem #(.Width(MsgW), .Depth(NumPdc * PdcQueue), .Init(1'b0)) u_ring_walk (
    .clk_i, .rst_ni, .wen_i(enq), .waddr_i({enq_pdc_i, tail_q[enq_pdc_i]}), .wdata_i(enq_msg_i),
    .raddr_i({ring_pdc_i, ring_ptr_i}), .rdata_o(ring_msg_o),
    .error_o(unused_walk_err), .ready_o(unused_walk_rdy)
  );

  for (genvar p = 0; p < NumPdc; p++) begin : gen_pending
    assign pending[p] = cur_q[p] != tail_q[p];
  end

  // Messages whose payload cannot be read.
  logic [NumMsg-1:0] failed_q;
  assign failed_o = failed_q;

  // ------------------------------------------------------ stage 1: one event
  logic        msg_failed, last, fresh, known, advanced;
  logic [31:0] acked, in_flight, window, refused_in, age;
  logic        ack_in_window, nack_in_window;
  logic        resend_now, refuse_now, end_now, syn_again;
  logic        send_now, advance_queue;
  status_e     end_status;
  logic [15:0] end_detail;
  pdc_walk_t   walk_d;
  logic        walk_push;
  tx_packet_t  pkt_d;
  timer_t      timer_d, timer_cur;
  logic [31:0] rto, backoff;

  // Doubles `base` `shift` times, up to `limit`.
  function automatic logic [31:0] doubled(logic [31:0] base, logic [3:0] shift,
                                          logic [31:0] limit);
    logic [47:0] wide;
    wide    = {16'b0, base} << shift;
    doubled = (wide > {16'b0, limit}) ? limit : wide[31:0];
  endfunction

  assign rto        = doubled(port_i.rto_ticks, s.rto_shift, port_i.rto_max_ticks);
  assign backoff    = doubled(port_i.backoff_ticks, s.backoff_shift, port_i.backoff_max_ticks);
  assign msg_failed = failed_q[entry.msg];
  assign fresh      = s.nxt == s.top;
  assign last       = s.index == entry.last || (msg_failed && fresh);
  assign in_flight  = s.nxt - s.una;
  assign window     = s.probing ? 32'd1 : 32'(PdcWindow);
  assign age        = now_q - s.heard;

  // ACK and NACK: do they come from the peer, and are they about what is in flight?
  assign known          = (s.state == PdcSyn || s.state == PdcOpen) &&
                          ack_q.dpdcid == id.spdcid && ack_q.fa == id.fa &&
                          (s.state == PdcSyn || ack_q.nack || ack_q.spdcid == s.tpdcid);
  assign acked          = ack_q.cack + 32'd1;
  assign ack_in_window  = (acked - s.una) <= (s.top - s.una);
  assign nack_in_window = (ack_q.psn - s.una) < (s.top - s.una);
  assign advanced       = ack_in_window && acked != s.una;
  assign refused_in     = ack_q.psn - s.una;

  always_comb begin
    resend_now = 1'b0;
    refuse_now = 1'b0;
    end_now    = 1'b0;
    syn_again  = 1'b0;
    end_status = StatusPeerRejected;
    end_detail = {8'b0, ack_q.code};
    if (ev_q == EvAck && known && ack_q.nack) begin
      unique case (ack_q.code)
        NackCodeNoPdcAvail, NackCodeNoCccAvail, NackCodeNoBitmap, NackCodeNoPktBuffer,
        NackCodeNoGtdDelAvail, NackCodeNoSesMsgAvail, NackCodeNoResource,
        NackCodePsnOorWindow, NackCodeRcvdSesProcg:
          refuse_now = nack_in_window && !(s.waiting && s.probe_psn == ack_q.psn);
        NackCodeTrimmed, NackCodeTrimmedLasthop, NackCodeTrimmedAck, NackCodeRodOoo,
        NackCodePktNotRcvd, NackCodeAckWithData, NackCodeRcvrInferLoss:
          // Only for a packet of the present pass: others were answered already.
          resend_now = nack_in_window && refused_in < in_flight && !s.repositioning && !s.waiting;
        NackCodeInvalidSyn:
          if (s.state == PdcSyn) syn_again = !s.repositioning;
          else                   end_now = 1'b1;
        NackCodeInvDpdcid:
          if (nack_in_window) begin
            if (s.repositioning)               syn_again = 1'b0;  // Under way.
            else if (s.resent || refused_in != '0) end_now = 1'b1;
            else                               syn_again = 1'b1;
          end
        default: end_now = 1'b1;
      endcase
    end else if (ev_q == EvAck && known && ack_q.return_code > ReturnCodeOk) begin
      end_now    = 1'b1;
      end_status = StatusRemoteError;
      end_detail = {10'b0, ack_q.return_code};
    end else if (ev_q == EvTimer && timer_due && !s.waiting && s.una != s.top &&
                 age >= port_i.dead_ticks) begin
      end_now    = 1'b1;
      end_status = StatusPeerUnreachable;
      end_detail = '0;
    end
  end

  // The scan offers candidates; the timer itself decides.
  logic timer_due;
  assign timer_due = timer_cur.on && ($signed(now_q - timer_cur.at) >= 0) &&
                     (s.state == PdcSyn || s.state == PdcOpen);

  // A PDC that ended while it waited to be opened again stays ended.
  logic open_now;
  assign open_now = ev_q == EvOpen && (!open_again_q || s.state == PdcSyn);

  assign send_now = ev_q == EvSend && can_send_q[pdc_q] && pending[pdc_q];
  assign collapse = send_now && msg_failed && fresh && s.index != entry.last;
  assign advance_queue = send_now && last;

  always_comb begin
    d         = s;
    timer_d   = timer_cur;
    walk_push = 1'b0;
    walk_d    = '0;
    walk_d.pdc = pdc_q;
    unique case (ev_q)
      EvOpen: begin
        if (open_now) begin
          d           = '0;
          d.state     = PdcSyn;
          d.una       = open_psn_q;
          d.nxt       = open_psn_q;
          d.top       = open_psn_q;
          d.heard     = now_q;
          timer_d     = '0;
          walk_push   = 1'b1;
          walk_d.open = 1'b1;
          walk_d.una  = open_psn_q;
        end
      end
      EvAck: begin
        if (known && (ack_q.nack || ack_in_window)) begin
          d.heard = now_q;
          if (!ack_q.nack) begin
            d.state  = PdcOpen;
            d.tpdcid = ack_q.spdcid;
          end
          if (!ack_q.nack && advanced) begin
            d.una           = acked;
            d.rto_shift     = '0;
            d.backoff_shift = '0;
            d.waiting       = 1'b0;
            if ($signed(acked - s.probe_psn) > 0) d.probing = 1'b0;
            timer_d.at      = now_q + ((acked == s.top) ? port_i.dead_ticks : port_i.rto_ticks);
            if (acked == s.top) d.resent = 1'b0;
            walk_push       = 1'b1;
            walk_d.una      = acked;
            // The peer has more than is left to send again: skip it.
            if ($signed(s.nxt - acked) < 0 && !s.repositioning) begin
              d.repositioning    = 1'b1;
              walk_d.reposition  = 1'b1;
            end
          end
          if (resend_now || refuse_now) begin
            if (!s.repositioning) begin
              walk_push         = 1'b1;
              walk_d.una        = s.una;
              walk_d.reposition = 1'b1;
              d.repositioning   = 1'b1;
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
          if (syn_again) begin  // Nothing is sent until it is open again.
            d.state         = PdcSyn;
            d.repositioning = 1'b1;
          end
        end
      end
      EvBack: begin
        if (back_q.closed) begin
          d       = '0;
          timer_d = '0;
        end else if (s.state != PdcEnding) begin
          d.nxt           = back_q.una;
          d.index         = back_q.index;
          d.repositioning = 1'b0;
          if ($signed(back_q.una - s.una) < 0) begin
            d.repositioning   = 1'b1;
            walk_push         = 1'b1;
            walk_d.una        = s.una;
            walk_d.reposition = 1'b1;
          end
        end
      end
      EvTimer: begin
        if (timer_due) begin
          timer_d.at = now_q + rto;
          if (s.waiting) begin
            d.waiting = 1'b0;
          end else if (s.una == s.top) begin
            // Idle. What is queued in this moment starts the RTO when it is sent.
            timer_d.at = now_q + port_i.dead_ticks;
            if (!pending[pdc_q] && !s.repositioning && s.state == PdcOpen) begin
              d.repositioning = 1'b1;
              walk_push       = 1'b1;
              walk_d.una      = s.una;
              walk_d.retire   = 1'b1;
            end
          end else begin
            d.rto_shift = (s.rto_shift == '1) ? '1 : s.rto_shift + 1'b1;
            timer_d.at  = now_q + doubled(port_i.rto_ticks, d.rto_shift, port_i.rto_max_ticks);
            d.probing   = 1'b1;
            d.probe_psn = s.una;
            if (!s.repositioning) begin
              d.repositioning   = 1'b1;
              walk_push         = 1'b1;
              walk_d.una        = s.una;
              walk_d.reposition = 1'b1;
            end
          end
        end
      end
      EvSend: begin
        if (send_now) begin
          d.nxt   = s.nxt + 32'd1;
          d.top   = fresh ? s.nxt + 32'd1 : s.top;
          d.index = last ? '0 : s.index + 1'b1;
          if (!fresh) d.resent = 1'b1;
          if (s.una == s.top) begin
            d.heard    = now_q;  // Silence counts from here.
            timer_d.on = 1'b1;
            timer_d.at = now_q + rto;
          end
        end
      end
      default: ;
    endcase
    if (end_now) begin
      d.state       = PdcEnding;
      timer_d       = '0;
      walk_push     = 1'b1;
      walk_d        = '0;
      walk_d.pdc    = pdc_q;
      walk_d.fail   = 1'b1;
      walk_d.status = end_status;
      walk_d.detail = end_detail;
    end
  end
  assign state_wen = ev_q != EvNone;

  logic can_send_d;
  assign can_send_d = (d.state == PdcSyn || d.state == PdcOpen) && !d.repositioning &&
                      !d.waiting &&
                      (d.nxt - d.una) < (d.probing ? 32'd1 : 32'(PdcWindow));

  // ------------------------------------------------------------- queue positions
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tail_q     <= '0;
      cur_q      <= '0;
      sent_q     <= '0;
      can_send_q <= '0;
      failed_q   <= '0;
    end else begin
      if (enq) begin
        tail_q[enq_pdc_i]   <= tail_q[enq_pdc_i] + 1'b1;
        failed_q[enq_msg_i] <= 1'b0;
      end
      if (fail_i) failed_q[fail_msg_i] <= 1'b1;
      if (ev_q != EvNone) can_send_q[pdc_q] <= can_send_d;
      if (ev_q == EvBack && back_q.closed) begin
        // An ended PDC's queue is empty; positions stay where they are.
        cur_q[pdc_q]  <= back_q.ptr;
        sent_q[pdc_q] <= back_q.ptr;
      end else if (ev_q == EvBack && s.state != PdcEnding) begin
        cur_q[pdc_q] <= back_q.ptr;
      end else if (open_now && open_again_q) begin
        cur_q[pdc_q]  <= queue_head_i[pdc_q];
        sent_q[pdc_q] <= queue_head_i[pdc_q];
      end else if (advance_queue) begin
        cur_q[pdc_q] <= cur_q[pdc_q] + 1'b1;
        if (cur_q[pdc_q] == sent_q[pdc_q]) sent_q[pdc_q] <= sent_q[pdc_q] + 1'b1;
      end
    end
  end
  assign queue_tail_o = tail_q;
  assign queue_sent_o = sent_q;

  // --------------------------------------------------------------------- packets
  logic more;  // Another message is queued behind this one.
  assign more = (cur_q[pdc_q] + QueueW'(1)) != tail_q[pdc_q];

  always_comb begin
    pkt_d           = '0;
    pkt_d.pdc       = pdc_q;
    pkt_d.msg       = entry.msg;
    pkt_d.psn       = s.nxt;
    pkt_d.index     = s.index;
    pkt_d.last      = last;
    pkt_d.syn       = s.state == PdcSyn;
    pkt_d.retx      = !fresh;
    // The peer answers when nothing follows, and often enough to keep the window moving.
    pkt_d.ar        = (last && !more) || !fresh || s.state == PdcSyn || s.nxt[3:0] == '1;
    pkt_d.failed    = msg_failed;
    pkt_d.clear_psn = s.una - 32'd1;
    pkt_d.tpdcid    = s.tpdcid;
  end

  logic                      pkt_fifo_ready;
  logic [$clog2(PktDepth):0] pkt_count;
  heddle_fifo #(.Width($bits(tx_packet_t)), .Depth(PktDepth)) u_packets (
    .clk_i, .rst_ni, .valid_i(send_now), .ready_o(pkt_fifo_ready), .data_i(pkt_d),
    .valid_o(pkt_valid_o), .ready_i(pkt_ready_i), .data_o(pkt_o), .count_o(pkt_count)
  );
  assign pkt_room = pkt_count <= ($clog2(PktDepth)+1)'(PktDepth - 2);

  logic [SeqW-1:0] seq_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)       seq_q <= '0;
    else if (send_now) seq_q <= seq_q + 1'b1;
  end
  assign seq_issued_o = seq_q;
  assign sent_o       = send_now;
  assign sent_msg_o   = entry.msg;
  assign sent_psn_o   = s.nxt;
  assign sent_last_o  = last;

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
      if (syn_again)   reopen_q[pdc_q] <= 1'b1;
      if (reopen_take)         reopen_busy_q <= 1'b1;
      else if (reopen_ready_i) reopen_busy_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------- timers
  // A scan looks at one timer per cycle and offers those that are due.
  logic [PdcW-1:0] scan_q, scan_last_q;
  logic            scan_valid_q;
  logic [32:0]     scan_raw, timer_raw;
  timer_t          scan_timer;
  logic            timer_err, timer_rdy, scan_err, scan_rdy;
  heddle_mem #(.Width(33), .Depth(NumPdc)) u_timer (
    .clk_i, .rst_ni, .wen_i(state_wen), .waddr_i(pdc_q), .wdata_i(timer_d),
    .raddr_i(pdc), .rdata_o(timer_raw), .error_o(timer_err), .ready_o(timer_rdy)
  );
  heddle_mem #(.Width(33), .Depth(NumPdc)) u_timer_scan (
    .clk_i, .rst_ni, .wen_i(state_wen), .waddr_i(pdc_q), .wdata_i(timer_d),
    .raddr_i(scan_q), .rdata_o(scan_raw), .error_o(scan_err), .ready_o(scan_rdy)
  );
  assign timer_cur  = timer_t'(timer_raw);
  assign scan_timer = timer_t'(scan_raw);

  // Nearest deadline of a pass in which no timer changed.
  logic        pass_any_q, pass_dirty_q, clean_q, clean_any_q;
  logic [31:0] pass_at_q, clean_at_q;
  logic        pass_any;
  logic [31:0] pass_at;
  always_comb begin
    pass_any = pass_any_q;
    pass_at  = pass_at_q;
    if (scan_valid_q && scan_timer.on &&
        (!pass_any_q || $signed(scan_timer.at - pass_at_q) < 0)) begin
      pass_any = 1'b1;
      pass_at  = scan_timer.at;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      scan_q       <= '0;
      scan_last_q  <= '0;
      scan_valid_q <= 1'b0;
      scan_hit_q   <= 1'b0;
      scan_pdc_q   <= '0;
      pass_any_q   <= 1'b0;
      pass_at_q    <= '0;
      pass_dirty_q <= 1'b1;
      clean_q      <= 1'b0;
      clean_any_q  <= 1'b0;
      clean_at_q   <= '0;
    end else begin
      scan_valid_q <= scan_rdy;
      if (scan_rdy) scan_q <= scan_q + 1'b1;
      scan_last_q  <= scan_q;
      if (ev == EvTimer) scan_hit_q <= 1'b0;
      if (scan_valid_q && scan_timer.on && $signed(now_q - scan_timer.at) >= 0 &&
          (!scan_hit_q || ev == EvTimer)) begin
        scan_hit_q <= 1'b1;
        scan_pdc_q <= scan_last_q;
      end
      if (state_wen) pass_dirty_q <= 1'b1;
      if (state_wen) clean_q <= 1'b0;
      if (scan_valid_q && scan_last_q == PdcW'(NumPdc - 1)) begin
        pass_any_q   <= 1'b0;
        pass_dirty_q <= state_wen;
        if (!pass_dirty_q && !state_wen) begin
          clean_q     <= 1'b1;
          clean_any_q <= pass_any;
          clean_at_q  <= pass_at;
        end
      end else begin
        pass_any_q <= pass_any;
        pass_at_q  <= pass_at;
      end
    end
  end

  logic [31:0] until_deadline;
  assign until_deadline   = clean_at_q - now_q;
  assign deadline_valid_o = clean_q && clean_any_q;
  assign deadline_o       = ($signed(until_deadline) <= 0) ? 32'd1 : until_deadline;
  assign idle_o = ready_mem && clean_q && ev == EvNone && ev_q == EvNone && !scan_hit_q &&
                  !(|may_send) && pkt_count == '0 && walk_count == '0 && !(|reopen_q) && !reopen_busy_q &&
                  !ack_valid_i && !open_valid_i && !enq_valid_i && !back_valid_i &&
                  !(clean_any_q && $signed(until_deadline) <= 0);

  // ------------------------------------------------------------------ statistics
  always_comb begin
    stat_o = '0;
    if (ev_q == EvAck) begin
      stat_o[StatisticRxAcks]    = known && !ack_q.nack && ack_in_window;
      stat_o[StatisticRxNacks]   = known && ack_q.nack;
      stat_o[StatisticDropPdcid] = !known;
      stat_o[StatisticDropPsn]   = known && !ack_q.nack && !ack_in_window;
    end
    stat_o[StatisticTimeouts]  = ev_q == EvTimer && timer_due && !s.waiting && s.una != s.top;
    stat_o[StatisticDeadPeers] = end_now && end_status == StatusPeerUnreachable;
  end

  logic unused;
  assign unused = ^{state_err, id_err, timer_err, scan_err, unused_ring_err, unused_ring_rdy,
                    unused_walk_err, unused_walk_rdy, id.start_psn, ack_q.pdc, ack_q.req,
                    back_q.pdc, port_i, open_peer_i};

  `HEDDLE_ASSERT(PacketQueueHasRoom_A, !send_now || pkt_fifo_ready)
  `HEDDLE_ASSERT(WalkQueueHasRoom_A, !walk_push || walk_fifo_ready)
  `HEDDLE_ASSERT(WindowKept_A, send_now |-> in_flight < window)
endmodule
