// SPDX-License-Identifier: Apache-2.0
// Walks the queue of a PDC: ends messages that are acknowledged, finds the place to send
// again from, and ends every message of a PDC that failed.
//
// Ordered:  events are executed in the order heddle_pdc_tx reports them; messages end in
//           queue order.
// Returned: a message ends only after every packet issued for it has read its payload, so
//           that the owner may reuse the buffer.
// Atomic:   an idle PDC is closed only if its queue is empty at the moment it is forgotten.
// A failed PDC is forgotten by heddle_tx_msg before its queue is emptied, so nothing is
// queued behind the last message ended.
// One message every two cycles.

module heddle_pdc_walk
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic               walk_valid_i,
  output logic               walk_ready_o,
  input  pdc_walk_t          walk_i,
  output logic               back_valid_o,
  input  logic               back_ready_i,
  output pdc_back_t          back_o,

  input  logic               sent_i,           // heddle_pdc_tx issued a packet.
  input  logic [MsgW-1:0]    sent_msg_i,
  input  logic [31:0]        sent_psn_i,
  input  logic               sent_last_i,
  output logic [PdcW-1:0]    ring_pdc_o,
  output logic [QueueW-1:0]  ring_ptr_o,
  input  logic [MsgW-1:0]    ring_msg_i,
  input  logic [NumPdc-1:0][QueueW-1:0] queue_tail_i,
  input  logic [NumPdc-1:0][QueueW-1:0] queue_sent_i,
  output logic [NumPdc-1:0][QueueW-1:0] queue_head_o,
  input  logic [NumMsg-1:0]  failed_i,         // Payload of the message was lost.
  input  logic [SeqW-1:0]    seq_issued_i,
  input  logic [SeqW-1:0]    seq_done_i,

  output logic               unmap_valid_o,    // heddle_tx_msg.
  input  logic               unmap_ready_i,
  output logic [PdcW-1:0]    unmap_pdc_o,
  output logic               unmap_keep_o,
  output logic               pdc_free_o,       // Strobe: the PDC is closed.
  output logic [PdcW-1:0]    pdc_free_pdc_o,

  output logic               done_valid_o,
  input  logic               done_ready_i,
  output tx_done_t           done_o,

  output logic               idle_o
);
  typedef enum logic [2:0] {
    StIdle, StRead, StLook, StEnd, StBack, StUnmap, StQuiet, StClose
  } state_e;

  state_e    state_d, state_q;
  pdc_walk_t ev_q;

  logic [NumPdc-1:0][QueueW-1:0] head_q;
  logic [NumPdc-1:0][31:0]       head_psn_q;   // First PSN of the queue's head.
  logic [SeqW-1:0]               quiet_seq_q;

  logic [QueueW-1:0] head, limit;
  logic              more;
  assign head  = head_q[ev_q.pdc];
  // Acknowledged messages were sent completely; a failed PDC ends the others too.
  assign limit = ev_q.fail ? queue_tail_i[ev_q.pdc] : queue_sent_i[ev_q.pdc];
  assign more  = head != limit;

  logic more_behind, follows_q;
  assign more_behind = head + 1'b1 != limit;

  assign ring_pdc_o   = ev_q.pdc;
  // While the head is looked up, the ring already reads the message behind it.
  assign ring_ptr_o   = (state_q == StRead) ? head : head + 1'b1;
  assign queue_head_o = head_q;

  // Last PSN of each message that was sent completely, and its last packet issued.
  logic [MsgW-1:0] msg_q, look_msg;
  assign look_msg = (follows_q || look_again) ? msg_q : ring_msg_i;
  logic [31:0]     last_psn;
  logic [SeqW-1:0] last_seq;
  logic            unused_psn_err, unused_psn_rdy, unused_seq_err, unused_seq_rdy;
  heddle_mem #(.Width(32), .Depth(NumMsg), .Init(1'b0)) u_last_psn (
    .clk_i, .rst_ni, .wen_i(sent_i && sent_last_i), .waddr_i(sent_msg_i), .wdata_i(sent_psn_i),
    .raddr_i(look_msg), .rdata_o(last_psn), .error_o(unused_psn_err), .ready_o(unused_psn_rdy)
  );
  heddle_mem #(.Width(SeqW), .Depth(NumMsg), .Init(1'b0)) u_last_seq (
    .clk_i, .rst_ni, .wen_i(sent_i), .waddr_i(sent_msg_i), .wdata_i(seq_issued_i + 1'b1),
    .raddr_i(look_msg), .rdata_o(last_seq),
    .error_o(unused_seq_err), .ready_o(unused_seq_rdy)
  );

  logic covered;   // The head's last packet is acknowledged.
  logic returned;  // No payload read of the head is outstanding.
  logic ends, look_again;
  assign covered    = $signed(ev_q.una - last_psn) > 0;
  assign returned   = $signed(seq_done_i - last_seq) >= 0;
  assign ends       = ev_q.fail || (covered && returned);
  assign look_again = state_q == StEnd;

  logic quiet;  // Everything issued before the PDC was forgotten has read its payload.
  assign quiet = $signed(seq_done_i - quiet_seq_q) >= 0;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (walk_valid_i) state_d = (walk_i.fail || walk_i.retire) ? StUnmap : StRead;
      // The ring's word arrives in StLook, the message's records in StEnd.
      StRead: begin
        if (ev_q.open || !more) state_d = after_walk;
        else                    state_d = StLook;
      end
      StLook: state_d = StEnd;
      StEnd: begin
        if (ends) begin
          if (done_ready_i) state_d = more_behind ? StLook : after_walk;
        end else if (!covered) begin
          state_d = after_walk;
        end
      end
      StBack:  if (back_ready_i) state_d = StIdle;
      StUnmap: if (unmap_ready_i) state_d = unmap_keep_o ? StBack : StQuiet;
      StQuiet: if (quiet) state_d = StRead;
      StClose: if (back_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  state_e after_walk;
  always_comb begin
    if (ev_q.fail || ev_q.retire) after_walk = StClose;
    else if (ev_q.reposition)     after_walk = StBack;
    else                          after_walk = StIdle;
  end

  logic take, pop;
  assign take = state_q == StIdle && walk_valid_i;
  assign pop  = done_valid_o && done_ready_i;
  assign walk_ready_o = state_q == StIdle;

  assign done_valid_o  = state_q == StEnd && ends;
  always_comb begin
    done_o        = '0;
    done_o.msg    = msg_q;
    done_o.status = ev_q.fail ? ev_q.status : StatusOk;
    done_o.detail = ev_q.detail;
    if (failed_i[msg_q]) begin
      done_o.status = StatusLocalAccess;
      done_o.detail = '0;
    end
  end

  logic [31:0] index;
  assign index        = ev_q.una - head_psn_q[ev_q.pdc];
  assign back_valid_o = state_q == StBack || state_q == StClose;
  assign back_o       = {state_q == StClose, ev_q.pdc, head, ev_q.una, index[PktW-1:0]};
  assign unmap_valid_o  = state_q == StUnmap;
  assign unmap_pdc_o    = ev_q.pdc;
  // tx_msg queues nothing in the cycle in which it forgets a key.
  assign unmap_keep_o   = ev_q.retire && queue_tail_i[ev_q.pdc] != head;
  assign pdc_free_o     = state_q == StClose && back_ready_i;
  assign pdc_free_pdc_o = ev_q.pdc;
  assign idle_o         = state_q == StIdle && !walk_valid_i;

  always_ff @(posedge clk_i) begin
    if (take) ev_q <= walk_i;
    if (state_q == StLook && !follows_q) msg_q <= ring_msg_i;
    if (pop) msg_q <= ring_msg_i;
    follows_q <= pop;
    if (state_q == StUnmap) quiet_seq_q <= seq_issued_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      head_q     <= '0;
      head_psn_q <= '0;
    end else begin
      state_q <= state_d;
      if (take && walk_i.open) head_psn_q[walk_i.pdc] <= walk_i.una;
      if (pop) begin
        head_q[ev_q.pdc]     <= head + 1'b1;
        head_psn_q[ev_q.pdc] <= last_psn + 32'd1;
      end
    end
  end

  logic unused;
  assign unused = ^{index[31:PktW], unused_psn_err, unused_psn_rdy, unused_seq_err,
                    unused_seq_rdy, ev_q.open};
endmodule
