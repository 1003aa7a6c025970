// SPDX-License-Identifier: Apache-2.0
// heddle_pdc_choice with the state of a PDC as flat ports for a test.

module choice_probe
  import heddle_pkg::*;
  import heddle_transport_tx_pkg::*;
(
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              event_i,
  input  logic [PdcW-1:0]   event_pdc_i,
  input  logic              more_i,
  input  logic              enq_i,
  input  logic [PdcW-1:0]   enq_pdc_i,
  input  logic              opened_i,
  input  logic [PdcW-1:0]   opened_pdc_i,
  input  logic              settled_i,
  input  logic [PdcW-1:0]   settled_pdc_i,
  input  logic              waits_i,       // The settled PDC is in back-off.
  input  logic              full_i,        // It requests no more data.
  input  logic              owed_i,        // Data are due to it.
  input  logic              probing_i,
  input  logic              closing_i,
  input  logic [6:0]        in_flight_i,   // Packets.
  input  logic              open_i,
  input  logic [PdcW-1:0]   open_pdc_i,
  input  logic              open_urgent_i,
  input  logic              ack_request_i,
  input  logic [PdcW-1:0]   ack_request_pdc_i,
  input  logic              control_sent_i,
  input  logic [NumPdc-1:0] pending_i,
  input  logic [NumPdc-1:0] closed_i,
  input  logic [NumPdc-1:0] gaps_i,
  output logic [NumPdc-1:0] full_o,
  output logic [NumPdc-1:0] stuck_o,
  output logic              valid_o,
  output logic [PdcW-1:0]   pdc_o,
  input  logic              take_i,
  output logic              idle_o
);
  tx_state_t state;
  always_comb begin
    state         = '0;
    state.state   = closing_i ? PdcClosing : PdcOpen;
    state.rud     = 1'b1;
    state.waiting = waits_i;
    state.probing = probing_i;
    state.full    = full_i;
    state.due     = $bits(state.due)'(owed_i);
    state.nxt     = 32'(in_flight_i);
    state.top     = state.nxt;
  end

  logic unused_control, unused_sends;
  heddle_pdc_choice u_choice (
    .clk_i, .rst_ni, .event_i, .event_pdc_i, .more_i, .control_sent_i, .uncut_i(1'b0), .control_o(unused_control),
    .enq_i, .enq_pdc_i, .opened_i, .opened_pdc_i, .was_closed_i(opened_i), .settled_i, .settled_pdc_i,
    .settled_state_i(state), .settled_sends_o(unused_sends), .open_i, .open_pdc_i, .open_urgent_i,
    .refused_i(1'b0), .refused_pdc_i('0), .ack_request_i, .ack_request_pdc_i, .clear_i(1'b0), .clear_pdc_i('0),
    .pending_i, .closed_i, .gaps_i, .full_o, .stuck_o, .valid_o, .pdc_o, .take_i, .idle_o
  );

  logic unused;
  assign unused = ^{unused_control, unused_sends};
endmodule
