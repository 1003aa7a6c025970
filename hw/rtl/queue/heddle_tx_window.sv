// SPDX-License-Identifier: Apache-2.0
// Slots of one transmit context's push window (heddle_tx_fetch): which hold a copy that stands for the slot in host memory.
//
// Armed:  each of its words came exactly once since the tail doorbell before, and a doorbell covers it; until it is passed,
//         or written over.

module heddle_tx_window
  import heddle_contract_pkg::*;
#(
  localparam int unsigned SlotW = $clog2(PushWindowSlots),
  localparam int unsigned Words = DescBytes / 8
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       clear_i,
  input  logic                       push_i,
  input  logic [SlotW-1:0]           push_slot_i,
  input  logic [Words-1:0]           push_words_i,
  input  logic                       tail_i,     // A tail doorbell; it covers these slots.
  input  logic [PushWindowSlots-1:0] covered_i,
  input  logic [PushWindowSlots-1:0] passed_i,   // Not needed any more.
  output logic [PushWindowSlots-1:0] armed_o
);
  logic [PushWindowSlots-1:0] armed_q;
  assign armed_o = armed_q;

  for (genvar i = 0; i < PushWindowSlots; i++) begin : gen_slot
    logic             here;
    logic [Words-1:0] came_q;   // Words since the last tail doorbell.
    logic             twice_q;  // One of them came more than once.
    assign here = push_i && push_slot_i == SlotW'(i);
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        came_q     <= '0;
        twice_q    <= 1'b0;
        armed_q[i] <= 1'b0;
      end else if (clear_i) begin
        came_q     <= '0;
        twice_q    <= 1'b0;
        armed_q[i] <= 1'b0;
      end else begin
        if (passed_i[i]) armed_q[i] <= 1'b0;
        if (tail_i) begin
          if (covered_i[i] && (&came_q) && !twice_q) armed_q[i] <= 1'b1;
          came_q  <= '0;
          twice_q <= 1'b0;
        end
        if (here) begin
          armed_q[i] <= 1'b0;
          came_q     <= came_q | push_words_i;
          if ((came_q & push_words_i) != '0) twice_q <= 1'b1;
        end
      end
    end
  end
endmodule
