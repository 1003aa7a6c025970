// SPDX-License-Identifier: Apache-2.0
// The PDC of heddle_pdc_tx that sends next: those that may, urgent ones first, each class in turn.
//
// Late:    what an event changed shows two cycles after `settled_i`, so that an offer may be late: heddle_pdc_send looks
//          again. PDCs that have just had an event are not offered.
// Queue:   a PDC that sends and has more, to which a message is appended, or whose window opens, joins a queue, which offers it from the
//          next cycle on. All others that may send are picked by heddle_group_pick. The two alternate.
// Urgent:  PDCs of urgent DSCPs are picked apart, and go first; while they do, one other PDC follows after Share of them.

`include "heddle_assert.svh"

module heddle_pdc_choice
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import heddle_transport_tx_pkg::*;
(
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              event_i,          // In this cycle, of this PDC:
  input  logic [PdcW-1:0]   event_pdc_i,
  input  logic              more_i,           // it sends, and has more;
  input  logic              control_sent_i,   // its control packet is sent, or is void;
  input  logic              uncut_i,          // what it sends may be the end of a refused READ.
  output logic              control_o,        // It has a control packet to send.
  input  logic              enq_i,            // A message was appended.
  input  logic [PdcW-1:0]   enq_pdc_i,
  input  logic              opened_i,         // This PDC may have room in its window again;
  input  logic [PdcW-1:0]   opened_pdc_i,
  input  logic              was_closed_i,     // its congestion window was closed.
  input  logic              settled_i,        // An event two cycles before left the PDC so.
  input  logic [PdcW-1:0]   settled_pdc_i,
  input  tx_state_t         settled_state_i,
  output logic              settled_sends_o,  // It will send a request.

  input  logic              open_i,           // The PDC opens.
  input  logic [PdcW-1:0]   open_pdc_i,
  input  logic              open_urgent_i,    // Its DSCP is urgent.
  input  logic              refused_i,        // A READ of the PDC was refused: a packet must leave, whatever is due.
  input  logic [PdcW-1:0]   refused_pdc_i,
  input  logic              ack_request_i,    // The PDC has an ACK Request
  input  logic [PdcW-1:0]   ack_request_pdc_i,
  input  logic              clear_i,          // or a Clear Command to send.
  input  logic [PdcW-1:0]   clear_pdc_i,

  input  logic [NumPdc-1:0] pending_i,        // A message is to be sent.
  input  logic [NumPdc-1:0] closed_i,         // The congestion window is.
  input  logic [NumPdc-1:0] gaps_i,           // In return data.
  output logic [NumPdc-1:0] full_o,           // It requests no more data now, or its window is closed.
  output logic [NumPdc-1:0] stuck_o,          // The peer refuses, or is silent.

  output logic              valid_o,
  output logic [PdcW-1:0]   pdc_o,
  input  logic              take_i,
  output logic              idle_o            // No PDC may send.
);
  localparam int unsigned Share  = 7;
  localparam int unsigned ShareW = $clog2(Share + 1);

  tx_state_t s;
  logic             can_send, full, owed;
  logic [SpanW-1:0] in_flight;
  assign s         = settled_state_i;
  assign in_flight = s.nxt[SpanW-1:0] - s.una[SpanW-1:0];
  assign can_send = !s.repositioning && !s.waiting &&
                    ((s.state == PdcSyn || s.state == PdcOpen) ? s.probing ? in_flight == '0 : window_open(s.rud, s.range, in_flight)
                                                               : s.state == PdcClosing && in_flight == '0);
  assign full     = s.full && s.nxt == s.top;
  assign owed     = s.due != '0 && s.nxt == s.top;  // It requests no more while there is a gap.
  assign settled_sends_o = pending_i[settled_pdc_i] && can_send && !full && !(owed && gaps_i[settled_pdc_i]);

  logic [NumPdc-1:0] sated;  // They request no more data now.
  logic [NumPdc-1:0] can_send_q, closing_q, control_q, full_q, owed_q, cut_q, urgent_q, may_send_bits, offered;
  // A cycle later.
  logic            changed_q, can_send_now_q, closing_now_q, full_now_q, owed_now_q, stuck_now_q;
  logic [PdcW-1:0] changed_pdc_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) changed_q <= 1'b0;
    else         changed_q <= settled_i;
  end
  always_ff @(posedge clk_i) begin
    changed_pdc_q  <= settled_pdc_i;
    can_send_now_q <= can_send;
    closing_now_q  <= s.state == PdcClosing;
    full_now_q     <= full;
    owed_now_q     <= owed;
    stuck_now_q    <= s.waiting || s.probing;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      can_send_q <= '0;
      closing_q  <= '0;
      control_q  <= '0;
      full_q     <= '0;
      owed_q     <= '0;
      cut_q      <= '0;
      urgent_q   <= '0;
      stuck_o    <= '0;
    end else begin
      for (int unsigned i = 0; i < NumPdc; i++) begin
        if (open_i && open_pdc_i == PdcW'(i)) urgent_q[i] <= open_urgent_i;
        // What is due of a refused READ is known at its end, for which a packet must leave.
        if (uncut_i && event_pdc_i == PdcW'(i))     cut_q[i] <= 1'b0;
        if (refused_i && refused_pdc_i == PdcW'(i)) cut_q[i] <= 1'b1;
        if (control_sent_i && event_pdc_i == PdcW'(i)) control_q[i] <= 1'b0;
        if ((ack_request_i && ack_request_pdc_i == PdcW'(i)) || (clear_i && clear_pdc_i == PdcW'(i))) control_q[i] <= 1'b1;
        if (changed_q && changed_pdc_q == PdcW'(i)) begin
          can_send_q[i] <= can_send_now_q;
          closing_q[i]  <= closing_now_q;
          full_q[i]     <= full_now_q;
          owed_q[i]     <= owed_now_q;
          stuck_o[i]    <= stuck_now_q;
        end
      end
    end
  end
  assign control_o     = control_q[event_pdc_i];
  assign sated         = full_q | (owed_q & gaps_i);
  assign full_o        = sated | ~(can_send_q | closing_q | stuck_o);
  assign may_send_bits = (can_send_q & ~closed_i & ((pending_i & (~sated | cut_q)) | closing_q)) | control_q;
  assign idle_o        = may_send_bits == '0 && !valid_o && !changed_q;

  // --------------------------------------------------------------------- the queue
  logic              mine, again, joins, returns, push, first, first_valid, push_ready;
  logic [PdcW-1:0]   push_pdc, first_pdc;
  logic [NumPdc-1:0] queued_q;
  logic [PdcW:0]     unused_count;
  // `more_i` comes late. A PDC that was picked may have joined just before it sent.
  assign mine     = !urgent_q[event_pdc_i] && !queued_q[event_pdc_i];
  assign again    = more_i && mine;
  assign joins    = enq_i && can_send_q[enq_pdc_i] && !queued_q[enq_pdc_i] && !urgent_q[enq_pdc_i];
  assign returns  = opened_i && pending_i[opened_pdc_i] && (was_closed_i || !can_send_q[opened_pdc_i]) &&
                    !queued_q[opened_pdc_i] && !urgent_q[opened_pdc_i];
  assign push     = (more_i && mine) || joins || returns;
  assign push_pdc = again ? event_pdc_i : joins ? enq_pdc_i : opened_pdc_i;
  heddle_fifo #(.Width(PdcW), .Depth(NumPdc)) u_queue (
    .clk_i, .rst_ni, .valid_i(push), .ready_o(push_ready), .data_i(push_pdc),
    .valid_o(first_valid), .ready_i(first), .data_o(first_pdc), .count_o(unused_count)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      queued_q <= '0;
    end else begin
      for (int unsigned i = 0; i < NumPdc; i++) begin
        if (first && first_pdc == PdcW'(i)) queued_q[i] <= 1'b0;
        if ((again && event_pdc_i == PdcW'(i)) || (!again && joins && enq_pdc_i == PdcW'(i)) ||
            (!again && !joins && returns && opened_pdc_i == PdcW'(i))) queued_q[i] <= 1'b1;
      end
    end
  end

  // ---------------------------------------------------------------------- the others
  logic              urgent, other, prefers, from_queue, queue_turn_q;
  logic [PdcW-1:0]   urgent_pdc, other_pdc;
  logic [ShareW-1:0] row_q;  // Urgent ones taken in a row.
  always_comb begin
    for (int unsigned i = 0; i < NumPdc; i++) begin
      offered[i] = may_send_bits[i] && !queued_q[i] && !(event_i && event_pdc_i == PdcW'(i));
    end
  end
  heddle_group_pick #(.NumSrc(NumPdc)) u_urgent (
    .clk_i, .rst_ni, .valid_i(offered & urgent_q), .drop_i(1'b0), .drop_idx_i('0),
    .valid_o(urgent), .idx_o(urgent_pdc), .take_i(take_i && prefers)
  );
  heddle_group_pick #(.NumSrc(NumPdc)) u_other (
    .clk_i, .rst_ni, .valid_i(offered & ~urgent_q), .drop_i(1'b0), .drop_idx_i('0),
    .valid_o(other), .idx_o(other_pdc), .take_i(take_i && !prefers && !from_queue)
  );
  assign prefers    = urgent && !((first_valid || other) && row_q == ShareW'(Share));
  assign from_queue = first_valid && (queue_turn_q || !other);
  assign first      = take_i && !prefers && from_queue;
  assign valid_o    = urgent || first_valid || other;
  assign pdc_o      = prefers ? urgent_pdc : from_queue ? first_pdc : other_pdc;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      row_q        <= '0;
      queue_turn_q <= 1'b0;
    end else if (take_i) begin
      if (!prefers)                     row_q <= '0;
      else if (row_q != ShareW'(Share)) row_q <= row_q + 1'b1;
      if (!prefers) queue_turn_q <= !from_queue;
    end
  end

  logic unused;
  assign unused = ^{s, unused_count};

  `HEDDLE_ASSERT(QueueHasRoom_A, push |-> push_ready)
  `HEDDLE_ASSERT(QueuedOnce_A, push |-> !queued_q[push_pdc])
endmodule
