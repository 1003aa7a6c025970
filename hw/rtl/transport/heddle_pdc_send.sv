// SPDX-License-Identifier: Apache-2.0
// The next packet of a PDC of heddle_pdc_tx: whether it leaves, and the state of the PDC after it. Combinational.
//
// A choice may be late: the PDC is looked at again. A step of a pass may skip the packet instead (heddle_sack_step).

module heddle_pdc_send
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
  import heddle_transport_pkg::*;
  import heddle_transport_tx_pkg::*;
(
  input  logic             valid_i,        // The PDC was chosen.
  input  logic [PdcW-1:0]  pdc_i,
  input  logic [31:0]      now_i,
  input  tx_state_t        state_i,
  input  logic             pending_i,      // There is a message to send:
  input  logic [MsgW-1:0]  msg_i,
  input  logic [PktW-1:0]  msg_last_i,     // index of its last packet,
  input  logic             read_i,         // a READ,
  input  logic             collapsed_i,    // whose last packet requests nothing,
  input  logic             failed_i,       // not worth sending,
  input  logic             more_i,         // and another one follows it.
  input  logic             gap_i,          // The PDC has a gap in its return data.
  input  logic             control_i,      // A control packet waits.
  input  logic             closed_i,       // The congestion window is closed,
  input  logic             closes_i,       // or is so after this packet.
  input  logic             narrow_i,       // It is of less than 2 * CongestedAcks packets.
  input  logic             limited_i,      // There is one.
  input  logic [DueW-1:0]  due_limit_i,

  output logic             may_o,          // The PDC may send, its congestion window and messages apart.
  output logic             fresh_o,        // No pass is active.
  output logic             sends_o,        // The next packet leaves.
  output logic             controls_o,     // The control packet leaves.
  output logic             advances_o,     // The next packet is of the next message.
  output logic             shortens_o,     // This packet is the last one of its message now.
  output logic             collapses_o,    // It requests nothing.
  output logic             requests_o,     // A packet of a READ that is no retransmission,
  output logic             wants_data_o,   // and requests data.
  output logic             more_o,         // Another packet may follow.
  output logic [SackW-1:0] next_o,         // Position of the next packet.
  output logic             starts_o,       // Nothing was outstanding: its timer starts.
  output tx_state_t        state_o,
  output tx_packet_t       packet_o
);
  tx_state_t s;
  assign s = state_i;

  // ----------------------------------------------------------------- the packet
  logic may, close_packet, msg_failed, fresh, last, is_read, asks, step, send;
  logic             empty;  // Nothing is in flight.
  logic [SpanW-1:0] in_flight, out;
  assign empty        = s.nxt[SpanW-1:0] == s.una[SpanW-1:0];  // Earlier than by the difference.
  assign in_flight    = s.nxt[SpanW-1:0] - s.una[SpanW-1:0];
  assign out          = s.top[SpanW-1:0] - s.una[SpanW-1:0];
  assign close_packet = s.state == PdcClosing;
  assign msg_failed   = failed_i && !close_packet;
  assign fresh        = s.nxt[SpanW-1:0] == s.top[SpanW-1:0];
  assign last         = s.index == msg_last_i || (msg_failed && fresh);
  assign is_read      = read_i && !close_packet;
  assign asks         = is_read && !(s.index == msg_last_i && collapsed_i) && !(fresh && msg_failed);
  // The window and what is known of the message come last.
  logic unblocked, stopped, ready, ready_to_close, room;
  assign unblocked      = !s.repositioning && !s.waiting;
  assign room           = s.probing ? empty : window_open(s.rud, s.range, in_flight);
  assign may            = unblocked && ((s.state == PdcSyn || s.state == PdcOpen) ? room : close_packet && empty);
  assign ready          = valid_i && !control_i && !closed_i && unblocked && (s.state == PdcSyn || s.state == PdcOpen) && pending_i;
  assign ready_to_close = valid_i && !control_i && !closed_i && unblocked && close_packet;
  assign stopped        = fresh && (s.full || (gap_i && s.due != '0));
  assign step           = !(asks && stopped) && ((ready && room) || (ready_to_close && empty));

  logic             passing, skip, unused_above;
  logic [SackW-1:0] next;
  sack_t            stepped;
  assign next    = {in_flight[SpanW-1:SackW-1] != '0, in_flight[SackW-2:0]};
  assign passing = (s.rud || s.single) && !fresh && !close_packet;
  heddle_sack_step u_step (
    .state_i(s.sack), .out_i({out[SpanW-1:SackW-1] != '0, out[SackW-2:0]}),
    .next_i(next), .state_o(stepped), .skip_o(skip), .above_o(unused_above)
  );
  assign send        = step && !(passing && skip);
  assign may_o       = may;
  assign fresh_o     = fresh;
  assign sends_o     = send;
  assign controls_o  = valid_i && control_i && s.state == PdcOpen;
  assign advances_o  = step && !close_packet && last;
  assign shortens_o  = send && msg_failed && fresh && s.index != msg_last_i;
  assign collapses_o = send && is_read && fresh && msg_failed;
  assign requests_o  = send && is_read && fresh;
  assign wants_data_o = asks;
  assign more_o      = step && !close_packet && (!last || more_i);
  assign next_o      = next;
  assign starts_o    = step && out == '0;

  always_comb begin
    state_o = s;
    if (controls_o) state_o.ask = 1'b0;
    if (step) begin
      if (passing) state_o.sack = stepped;
      state_o.nxt   = s.nxt + 32'd1;
      state_o.top   = fresh ? s.nxt + 32'd1 : s.top;
      state_o.index = last || close_packet ? '0 : s.index + 1'b1;
      if (!fresh && send) state_o.resent = 1'b1;
      if (asks && fresh)  state_o.due = s.due + 1'b1;
      if (out == '0) state_o.heard = now_i;  // Silence counts from here.
    end
  end

  always_comb begin
    packet_o           = '0;
    packet_o.pdc       = pdc_i;
    packet_o.msg       = msg_i;
    packet_o.psn       = s.nxt;
    packet_o.index     = s.index;
    packet_o.last      = last && !close_packet;
    packet_o.syn       = s.state == PdcSyn;
    packet_o.retx      = !fresh;
    // The peer answers when nothing follows, and often enough to keep the window moving. A wide window cannot close without a
    // packet in flight that is to be answered: an answer to each small packet would take the place of another one.
    packet_o.ar        = (last && !more_i) || !fresh || s.state == PdcSyn || s.nxt[3:0] == '1 ||
                         close_packet || (asks && s.due == due_limit_i - 1'b1) || (is_read && msg_failed && fresh) ||
                         (limited_i && (s.nxt[$clog2(CongestedAcks)-1:0] == '1 || (closes_i && (narrow_i || !last))));
    packet_o.control   = close_packet;
    packet_o.cp_type   = close_packet ? CpTypeCloseCommand : CpTypeNoop;
    packet_o.failed    = is_read ? !asks : msg_failed;
    packet_o.clear_psn = s.una - 32'd1;
    packet_o.tpdcid    = s.tpdcid;
    if (control_i) begin
      packet_o.psn     = s.ask ? s.una - 32'd1 : '0;
      packet_o.last    = 1'b0;
      packet_o.syn     = 1'b0;
      packet_o.retx    = 1'b0;
      packet_o.ar      = 1'b0;
      packet_o.control = 1'b1;
      packet_o.cp_type = s.ask ? CpTypeAckRequest : CpTypeClearCommand;
    end
  end
endmodule
