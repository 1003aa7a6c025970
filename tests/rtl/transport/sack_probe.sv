// SPDX-License-Identifier: Apache-2.0
// heddle_sack with its report and step, and heddle_passed, for a test, which is the unit between them: it keeps the record of one PDC.

module sack_probe
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [7:0]           reorder_i,
  input  sack_t                state_i,
  input  logic [SackW-1:0]     out_i,
  input  logic [SackW-1:0]     next_i,
  input  logic                 ack_i,
  input  logic [SackW-1:0]     advance_i,
  input  logic                 sack_i,
  input  logic [31:0]          base_i,
  input  logic [PdcWindow-1:0] bitmap_i,
  input  logic                 pass_i,
  input  logic [SackW-1:0]     past_i,
  input  logic                 lose_i,
  input  logic                 anew_i,
  input  logic                 trim_i,
  input  logic [SackW-2:0]     trim_at_i,
  input  logic                 step_i,
  output sack_t                state_o,
  output logic                 news_o,
  output logic                 back_o,
  output logic                 skip_o,
  output logic                 above_o,
  output logic [PdcWindow-1:0] left_o,
  output logic [PdcWindow-1:0] flight_o,

  input  logic [PdcW-1:0]      pdc_i,
  input  logic [15:0]          spdcid_i,
  input  logic [31:0]          una_i,
  input  logic                 always_i,
  output logic                 room_o,
  output logic                 passed_o,
  input  logic                 passed_ready_i,
  output logic [PdcW-1:0]      passed_pdc_o,
  output logic [15:0]          passed_spdcid_o,
  output logic [31:0]          passed_psn_o,
  output logic                 idle_o
);
  logic [PdcWindow-1:0] held, reported;
  sack_t                changed, stepped;
  heddle_sack_report u_report (.out_i, .base_i, .bitmap_i, .reported_o(reported));
  heddle_sack u_sack (
    .state_i, .out_i, .next_i, .ack_i, .advance_i, .reported_i(sack_i ? reported : '0), .pass_i, .past_i, .lose_i, .anew_i,
    .trim_i, .trim_at_i, .state_o(changed), .news_o, .held_o(held), .back_o, .left_o, .flight_o
  );
  heddle_sack_step u_step (.state_i, .out_i, .next_i, .state_o(stepped), .skip_o, .above_o);
  assign state_o = step_i ? stepped : changed;
  heddle_passed u_passed (
    .clk_i, .rst_ni, .reorder_i, .valid_i(ack_i), .always_i, .room_o, .pdc_i, .spdcid_i, .una_i, .advance_i, .held_i(held),
    .valid_o(passed_o), .ready_i(passed_ready_i), .pdc_o(passed_pdc_o), .spdcid_o(passed_spdcid_o),
    .psn_o(passed_psn_o), .idle_o
  );
endmodule
