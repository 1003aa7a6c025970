// SPDX-License-Identifier: Apache-2.0
// Walks the queue of a PDC: ends messages that are acknowledged, finds the place to send
// again from, and ends the messages of a PDC that failed.
//
// Ordered:  events are executed in the order heddle_pdc_tx reports them; messages end in
//           queue order.
// Returned: a message ends only after every packet issued for it has read its payload, so
//           that the owner may reuse the buffer.
// Atomic:   a PDC is given up only if its queue is empty at the moment it is forgotten.
// Moved:    when a PDC ends but its peer lives, only messages of which something was
//           transmitted end with it; the others wait until it is opened again.
// Restart:  when the PDC's target began anew, messages that are not acknowledged wait until the PDC is opened again.
//           An RMA operation of which that target had acknowledged or answered anything ends with the event's status,
//           a message that was refused with its error: at once, or when the messages before it have gone again.
// A PDC whose peer is dead is forgotten by heddle_tx_msg before its queue is emptied, so nothing
// is queued behind the last message ended.
// Reads:    a READ whose requests are acknowledged is handed on like a message that ended, with the number of
//           packets it will be answered by. Those of a PDC that fails end when no data of theirs is on its way
//           to host memory.
// One message every two cycles; four at a restart.

`include "heddle_assert.svh"

module heddle_pdc_walk
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic               walk_valid_i,
  output logic               walk_ready_o,
  input  pdc_walk_t          walk_i,
  output logic               back_valid_o,
  input  logic               back_ready_i,
  output pdc_back_t          back_o,

  input  logic               sent_i,           // heddle_pdc_tx issued a packet of a message.
  input  logic [MsgW-1:0]    sent_msg_i,
  input  logic               enq_i,            // heddle_tx_msg queues a message.
  input  logic [MsgW-1:0]    enq_msg_i,
  input  logic               enq_rma_i,
  output logic [PdcW-1:0]    queue_pdc_o,      // heddle_pdc_queue.
  input  logic               queue_held_i,
  input  logic [MsgW-1:0]    queue_msg_i,
  input  logic [PktW-1:0]    queue_last_i,
  output logic               queue_pop_o,
  output logic               queue_pass_o,
  output logic               queue_end_o,
  input  logic [SeqW-1:0]    seq_issued_i,
  input  logic [SeqW-1:0]    seq_done_i,
  input  logic [PdcWindow-1:0] held_i,         // WalkRestart: bit i: PSN `psn` + i had arrived.
  output logic [MsgW-1:0]    msg_o,            // This message, in the same cycle: heddle_pdc_tx
  input  logic               failed_i,         // lost its payload, or the peer refused it,
  input  logic               read_i,           // it is a READ with data,
  input  logic               collapsed_i,      // its last packet requests nothing;
  input  logic               answered_i,       // heddle_return_rx took a packet of return data.
  input  logic [SeqW-1:0]    back_decided_i,   // Records of return data for heddle_place,
  input  logic [SeqW-1:0]    back_done_i,      // and those that are over.

  output logic               lose_valid_o,     // heddle_read_ends: READs of the PDC end.
  input  logic               lose_ready_i,
  output logic [PdcW-1:0]    lose_pdc_o,
  output status_e            lose_status_o,
  output logic [15:0]        lose_detail_o,

  output logic               refused_o,        // Strobe: the peer refused a message; cut it short.
  output logic [MsgW-1:0]    refused_msg_o,

  output logic               unmap_valid_o,    // heddle_tx_msg.
  input  logic               unmap_ready_i,
  output logic [PdcW-1:0]    unmap_pdc_o,
  output logic               unmap_keep_o,     // Its queue is not empty: do not forget it.
  output logic               pdc_free_o,       // Strobe: the PDC is closed.
  output logic [PdcW-1:0]    pdc_free_pdc_o,

  output logic               done_valid_o,
  input  logic               done_ready_i,
  output return_end_t        done_o,

  output logic               idle_o
);
  typedef enum logic [3:0] {
    StIdle, StQuiet, StReads, StLook, StSpan, StJudge, StEnd, StUnmap, StBack
  } state_e;

  state_e    state_d, state_q;
  pdc_walk_t ev_q;
  logic      kept_q;  // The PDC was not forgotten.
  logic      restart;
  assign restart = ev_q.kind == WalkRestart;

  assign queue_pdc_o = ev_q.pdc;

  // First PSN of the queue's head, and of the message behind it.
  logic [31:0] head_psn, next_psn;
  logic        psn_wen, unused_psn_err, unused_psn_rdy;
  heddle_mem #(.Width(32), .Depth(NumPdc), .Init(1'b0)) u_head_psn (
    .clk_i, .rst_ni, .wen_i(psn_wen), .waddr_i(ev_q.pdc),
    .wdata_i(ev_q.kind == WalkOpen ? ev_q.psn : next_psn),
    .raddr_i(state_q == StIdle ? walk_i.pdc : ev_q.pdc), .rdata_o(head_psn),
    .error_o(unused_psn_err), .ready_o(unused_psn_rdy)
  );
  assign next_psn = head_psn + 32'(queue_last_i) + 32'd1;

  // Last packet issued of each message.
  logic [MsgW-1:0] msg_q;
  logic [SeqW-1:0] last_seq, quiet_seq_q, quiet_back_q;
  logic            unused_seq_err, unused_seq_rdy;
  heddle_mem #(.Width(SeqW), .Depth(NumMsg), .Init(1'b0)) u_last_seq (
    .clk_i, .rst_ni, .wen_i(sent_i), .waddr_i(sent_msg_i), .wdata_i(seq_issued_i + 1'b1),
    .raddr_i(queue_msg_i), .rdata_o(last_seq),
    .error_o(unused_seq_err), .ready_o(unused_seq_rdy)
  );

  logic covered;   // The head's last packet is acknowledged.
  logic returned;  // No payload read of the head is outstanding.
  logic reached;   // Something of the head was transmitted.
  logic ends;
  logic        exactly;  // It is the last packet that the event acknowledges.
  logic [31:0] last, first;  // First PSN of a head that ends with the event: ev_q.psn - 1 - queue_last_i.
  logic [31:0] beyond;   // PSNs that the event acknowledges after the head; `head_psn` is the late one.
  assign last    = 32'(queue_last_i);
  assign first   = ev_q.psn + ~last;
  assign exactly = first == head_psn;
  assign beyond  = first - head_psn;
  assign covered = !beyond[31];
  // Its last packet is not among those under way. An old one may look as if it were, until they are done; a
  // message may wait for its acknowledgement while others send any number of packets.
  logic [SeqW-1:0] under_way, since_last;
  assign under_way  = seq_issued_i - seq_done_i;
  assign since_last = seq_issued_i - last_seq;
  assign returned   = since_last >= under_way;
  assign reached  = $signed(ev_q.psn - head_psn) > 0;
  always_comb begin
    unique case (ev_q.kind)
      WalkFail:    ends = 1'b1;
      WalkMove:    ends = reached;
      WalkRestart: ends = ends_q;
      default:     ends = covered && returned;
    endcase
  end

  // WalkRestart: what the target had of each message. Positions count from `psn`, the oldest unacknowledged; those
  // of the message that is looked at are from `from_q` on, before `to_q`.
  localparam int unsigned SpanW  = $clog2(RodWindow) + 1;
  localparam int unsigned IndexW = $clog2(PdcWindow);
  function automatic logic [PdcWindow-1:0] below(logic [SpanW-1:0] n);
    for (int unsigned i = 0; i < PdcWindow; i++) below[i] = n[SpanW-1:IndexW] != '0 || IndexW'(i) < n[IndexW-1:0];
  endfunction
  logic             rma, unused_rma_err, unused_rma_rdy;
  logic             passed_q;  // That message is not the head.
  logic             begun_q, touched, lost_q, ends_q;
  logic [SpanW-1:0] from_q, to_q;
  logic [31:0]      to;
  heddle_mem #(.Width(1), .Depth(NumMsg), .Init(1'b0)) u_rma (
    .clk_i, .rst_ni, .wen_i(enq_i), .waddr_i(enq_msg_i), .wdata_i(enq_rma_i),
    .raddr_i(queue_msg_i), .rdata_o(rma), .error_o(unused_rma_err), .ready_o(unused_rma_rdy)
  );
  assign to      = passed_q ? 32'(from_q) + 32'(queue_last_i) + 32'd1 : next_psn - ev_q.psn;
  assign touched = begun_q || (held_i & below(to_q) & ~below(from_q)) != '0;
  assign msg_o   = msg_q;
  always_ff @(posedge clk_i) begin
    to_q    <= to < RodWindow ? to[SpanW-1:0] : SpanW'(RodWindow);
    begun_q <= (reached && !passed_q) || (read_i && answered_i);
    lost_q  <= touched && rma && !failed_i && !refused_q[msg_q];
    ends_q  <= !passed_q && (refused_q[msg_q] || (touched && (rma || failed_i)));
    if (take)                                               from_q <= '0;
    else if (state_q == StEnd && (!ends_q || done_ready_i)) from_q <= to_q;
  end
  state_e after_walk;
  always_comb begin
    unique case (ev_q.kind)
      WalkMove, WalkRestart: after_walk = StUnmap;
      WalkFail, WalkReturn:  after_walk = StBack;
      default:               after_walk = StIdle;
    endcase
  end

  // The queue shows the head again before anything else looks at it.
  assign queue_pass_o = state_q == StEnd && restart && !ends_q;
  assign queue_end_o  = state_q == StLook && after_walk == StUnmap &&
                        (!queue_held_i || (restart && from_q[SpanW-1]));
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)           passed_q <= 1'b0;
    else if (queue_pass_o) passed_q <= 1'b1;
    else if (queue_end_o)  passed_q <= 1'b0;
  end

  logic quiet;  // Everything issued before the event has read its payload.
  assign quiet = $signed(seq_done_i - quiet_seq_q) >= 0 &&
                 $signed(back_done_i - quiet_back_q) >= 0;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (walk_valid_i) begin
          unique case (walk_i.kind)
            WalkFail, WalkRetire:  state_d = StUnmap;
            WalkMove, WalkRestart: state_d = StQuiet;
            WalkOpen:              state_d = walk_i.reads ? StQuiet : StLook;
            WalkClose:             state_d = StBack;
            default:               state_d = StLook;
          endcase
        end
      end
      StQuiet: if (quiet) state_d = ev_q.reads ? StReads : StLook;
      StReads: if (lose_ready_i) state_d = StLook;
      // The records of the head that is shown here arrive in StEnd.
      StLook: begin
        if (ev_q.kind == WalkOpen || !queue_held_i) state_d = after_walk;
        else if (restart)                           state_d = from_q[SpanW-1] ? after_walk : StSpan;
        else                                        state_d = StEnd;
      end
      StSpan:  state_d = StJudge;
      StJudge: state_d = StEnd;
      StEnd: begin
        if (ends) begin
          if (done_ready_i) state_d = used_up && !take ? StIdle : StLook;
        end else if (restart) begin
          state_d = StLook;
        end else if (ev_q.kind == WalkMove || !covered) begin
          state_d = take ? StLook : after_walk;
        end
      end
      StUnmap: if (unmap_ready_i) state_d = ev_q.kind == WalkFail ? StQuiet : StBack;
      StBack:  if (back_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  // The message that ends is the last that the event acknowledges: the next one begins with its PSN.
  logic used_up;
  assign used_up = ev_q.kind == WalkAck && exactly;
  // An acknowledgement follows another without a pause.
  logic over;
  assign over = state_q == StEnd && ev_q.kind == WalkAck && (ends ? used_up && done_ready_i : !covered) &&
                walk_i.kind == WalkAck;

  logic take, pop;
  assign take = walk_ready_o && walk_valid_i;
  assign pop  = done_valid_o && done_ready_i;
  assign walk_ready_o = state_q == StIdle || over;
  assign queue_pop_o  = pop;
  assign psn_wen      = pop || (state_q == StLook && ev_q.kind == WalkOpen);

  // Messages that the peer refused: in progress, or ending with this event. It may refuse each packet of
  // one; the first says what is answered.
  logic [NumMsg-1:0] refused_q;
  logic [5:0]        refused_code;
  logic [PktW-1:0]   refused_at;      // Packet.
  logic [31:0]       refused_index;   // The same, of this event.
  assign refused_index = ev_q.psn - 32'd1 - head_psn;
  logic              refused_now, refused_err, refused_rdy;
  assign refused_now   = ev_q.refused && exactly;
  assign refused_o     = state_q == StEnd && (restart ? passed_q && lost_q : ev_q.refused && !covered && reached);
  assign refused_msg_o = msg_q;
  heddle_mem #(.Width(6 + PktW), .Depth(NumMsg), .Init(1'b0)) u_refused_code (
    .clk_i, .rst_ni, .wen_i(refused_o && !refused_q[msg_q]), .waddr_i(msg_q),
    .wdata_i({ev_q.detail[5:0], restart ? PktW'(0) : refused_index[PktW-1:0]}),
    .raddr_i(queue_msg_i), .rdata_o({refused_code, refused_at}),
    .error_o(refused_err), .ready_o(refused_rdy)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      refused_q <= '0;
    end else begin
      if (refused_o) refused_q[msg_q] <= 1'b1;
      if (pop)       refused_q[msg_q] <= 1'b0;
    end
  end

  logic [PktsW-1:0] asked;  // Packets of the head that ask for data, should it be a READ.
  assign done_valid_o = state_q == StEnd && ends;
  always_comb begin
    asked         = PktsW'(queue_last_i) + PktsW'(!collapsed_i);
    done_o        = '0;
    done_o.pdc    = ev_q.pdc;
    done_o.done.msg    = msg_q;
    done_o.done.status = StatusOk;
    if (ev_q.kind == WalkFail || ev_q.kind == WalkMove || restart) begin
      done_o.done.status = ev_q.status;
      done_o.done.detail = ev_q.detail;
    end else if (read_i) begin
      done_o.read    = 1'b1;
      done_o.packets = asked;
      if (refused_q[msg_q] && PktsW'(refused_at) < asked) done_o.packets = PktsW'(refused_at);
      else if (!refused_q[msg_q] && refused_now && PktsW'(queue_last_i) < asked) begin
        done_o.packets = PktsW'(queue_last_i);
      end
      done_o.refused = asked - done_o.packets;
    end
    if (refused_q[msg_q] || refused_now) begin
      done_o.done.status = StatusRemoteError;
      done_o.done.detail = refused_q[msg_q] ? 16'(refused_code) : ev_q.detail;
    end else if (failed_i) begin
      done_o.done.status = StatusLocalAccess;
      done_o.done.detail = '0;
    end
  end

  assign lose_valid_o  = state_q == StReads;
  assign lose_pdc_o    = ev_q.pdc;
  assign lose_status_o = ev_q.status;
  assign lose_detail_o = ev_q.detail;

  logic [31:0] index;
  assign index        = ev_q.psn - head_psn;
  assign back_valid_o = state_q == StBack;
  always_comb begin
    back_o       = '0;
    back_o.pdc   = ev_q.pdc;
    back_o.psn   = ev_q.psn;
    back_o.index = index[PktW-1:0];
    unique case (ev_q.kind)
      WalkRetire: back_o.kind = kept_q ? BackResend : BackLeave;
      WalkMove, WalkRestart: back_o.kind = kept_q ? BackReopen : BackClosed;
      WalkReturn: back_o.kind = BackResend;
      default:    back_o.kind = BackClosed;
    endcase
  end
  assign unmap_valid_o  = state_q == StUnmap;
  assign unmap_pdc_o    = ev_q.pdc;
  // tx_msg queues nothing in the cycle in which it forgets a key.
  assign unmap_keep_o   = ev_q.kind != WalkFail && queue_held_i;
  assign pdc_free_o     = state_q == StBack && back_ready_i && back_o.kind == BackClosed;
  assign pdc_free_pdc_o = ev_q.pdc;
  assign idle_o         = state_q == StIdle && !walk_valid_i;

  always_ff @(posedge clk_i) begin
    if (take) ev_q <= walk_i;
    if (take) quiet_seq_q <= seq_issued_i;
    if (take) quiet_back_q <= back_decided_i;
    if (state_q == StLook) msg_q <= queue_msg_i;
    if (unmap_valid_o && unmap_ready_i) kept_q <= unmap_keep_o;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else         state_q <= state_d;
  end

  logic unused;
  assign unused = ^{beyond[30:0], index[31:PktW], refused_index[31:PktW], unused_psn_err, unused_psn_rdy, unused_seq_err,
                    unused_seq_rdy, refused_err, refused_rdy, unused_rma_err, unused_rma_rdy};

  `HEDDLE_ASSERT(RestartAfterAcks_A, state_q == StSpan && !passed_q |-> !covered)
  `HEDDLE_ASSERT(ClosedIsEmpty_A, pdc_free_o |-> !queue_held_i)
endmodule
