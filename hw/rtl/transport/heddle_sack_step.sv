// SPDX-License-Identifier: Apache-2.0
// One step of a pass over what is out of a RUD PDC (heddle_sack): the next PSN is retransmitted, or passed over.
//
// Combinational. Positions count from the oldest PSN that is unacknowledged.

module heddle_sack_step
  import heddle_contract_pkg::*;
  import heddle_transport_pkg::*;
(
  input  sack_t            state_i,
  input  logic [SackW-1:0] out_i,    // PSNs that were sent.
  input  logic [SackW-1:0] next_i,   // The next one.
  output sack_t            state_o,  // After the step.
  output logic             skip_o,   // It is not to be retransmitted.
  output logic             above_o   // Something after it arrived.
);
  logic [PdcWindow-1:0] at_next;
  logic [SackW-2:0]     next;
  logic                 passed;  // More arrived after it than heddle_passed waits for.
  assign next    = next_i[SackW-2:0];
  assign at_next = next_i[SackW-1] ? '0 : PdcWindow'(1) << next;
  assign passed  = next_i < state_i.lost && next_i >= state_i.again;
  assign skip_o  = next_i[SackW-1] || state_i.held[next] || !(state_i.told[next] || (passed && !state_i.tried[next]));
  assign above_o = (state_i.held & ~low_positions(next_i) & ~at_next) != '0;
  always_comb begin
    state_o = state_i;
    if (passed) state_o.again = next_i + SackW'(1);
    if (!skip_o) begin
      state_o.round = out_i;
      state_o.told  = state_i.told & ~at_next;
      state_o.tried = state_i.tried | (state_i.told & at_next);
    end
  end
endmodule
