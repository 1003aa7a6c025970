// SPDX-License-Identifier: Apache-2.0
// Packets in flight of each PDC: sent, not arrived, not known to be lost. They are counted in the cycle after the event that
// changes them, and compared in the next one.
//
// Kept:    one more for a packet that left; counted anew where an event names those in flight, or their number.
// Closed:  no more packets than the congestion window may be in flight, but always one.
// Rules:   the event for heddle_nscc, with the packets that it acknowledged and lost.
// Latency: `closed_o` three cycles after `event_i`; `closes_o`, of one PDC, and `rule_o` two cycles after it. `flight_o` one
//          cycle after `look_pdc_i`, with all events of earlier cycles but the last one.

`include "heddle_assert.svh"

module heddle_flight
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,
  output logic                 ready_o,      // Its memory is initialised.

  input  logic                 event_i,
  input  logic [PdcW-1:0]      pdc_i,
  input  logic                 limited_i,    // There is a congestion window,
  input  logic [FlightW-1:0]   allowed_i,    // of the PDC: this one.
  // At most one of these.
  input  logic                 sent_i,       // One packet left.
  input  logic                 counted_i,    // These are in flight, `left_i` before some of them were lost.
  input  logic [PdcWindow-1:0] left_i,
  input  logic [PdcWindow-1:0] flight_i,
  input  logic                 keep_i,       // A window that is closed remains so until the next event.
  input  logic                 fixed_i,      // This is their number, 0 if it is negative, PdcWindow at most.
  input  logic [31:0]          out_i,

  input  logic                 rule_i,
  input  nscc_event_t          rule_event_i, // Without `packets` and `lost`.
  input  logic                 lost_one_i,   // Unless counted: what was lost.
  input  logic                 lost_all_i,
  output logic                 rule_o,
  output nscc_event_t          rule_event_o,

  input  logic [PdcW-1:0]      look_pdc_i,
  output logic [FlightW-1:0]   flight_o,
  output logic                 event_o,      // The event of two cycles before,
  output logic [PdcW-1:0]      pdc_o,
  output logic                 closes_o,     // and whether the window is closed then.
  output logic [NumPdc-1:0]    closed_o,
  output logic                 idle_o
);
  function automatic logic [FlightW-1:0] ones(logic [PdcWindow-1:0] bits);
    logic [PdcWindow/8-1:0][3:0]  eights;
    logic [PdcWindow/16-1:0][4:0] pairs;
    logic [5:0]                   low, high;
    for (int unsigned i = 0; i < PdcWindow / 8; i++) eights[i] = ones_of_8(bits[8*i +: 8]);
    for (int unsigned i = 0; i < PdcWindow / 16; i++) pairs[i] = 5'(eights[2*i]) + 5'(eights[2*i+1]);
    low  = 6'(pairs[0]) + 6'(pairs[1]);
    high = 6'(pairs[2]) + 6'(pairs[3]);
    ones = FlightW'(low) + FlightW'(high);
  endfunction

  logic                 event_q, limited_q, sent_q, counted_q, keep_q, fixed_q, rule_q, lost_one_q, lost_all_q;
  logic [PdcW-1:0]      pdc_q;
  logic [FlightW-1:0]   allowed_q;
  logic [PdcWindow-1:0] left_set_q, flight_set_q;
  logic [31:0]          out_q;
  nscc_event_t          rule_event_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      event_q <= 1'b0;
      rule_q  <= 1'b0;
    end else begin
      event_q <= event_i;
      rule_q  <= rule_i;
    end
  end
  always_ff @(posedge clk_i) begin
    pdc_q        <= pdc_i;
    limited_q    <= limited_i;
    allowed_q    <= allowed_i;
    sent_q       <= sent_i;
    counted_q    <= counted_i;
    keep_q       <= keep_i;
    fixed_q      <= fixed_i;
    left_set_q   <= left_i;
    flight_set_q <= flight_i;
    out_q        <= out_i;
    rule_event_q <= rule_event_i;
    lost_one_q   <= lost_one_i;
    lost_all_q   <= lost_all_i;
  end

  logic [FlightW-1:0] earlier, flight, left, counted;
  logic               state_ready, look_ready, unused_state_error, unused_look_error;
  heddle_mem #(.Width(FlightW), .Depth(NumPdc)) u_state (
    .clk_i, .rst_ni, .wen_i(event_q), .waddr_i(pdc_q), .wdata_i(flight),
    .raddr_i(pdc_i), .rdata_o(earlier), .error_o(unused_state_error), .ready_o(state_ready)
  );
  heddle_mem #(.Width(FlightW), .Depth(NumPdc)) u_look (
    .clk_i, .rst_ni, .wen_i(event_q), .waddr_i(pdc_q), .wdata_i(flight),
    .raddr_i(look_pdc_i), .rdata_o(flight_o), .error_o(unused_look_error), .ready_o(look_ready)
  );
  assign ready_o = state_ready && look_ready;

  logic [FlightW-1:0] moved;
  assign left    = ones(left_set_q);
  assign counted = ones(flight_set_q);
  always_comb begin
    moved = earlier + FlightW'(sent_q);
    if (fixed_q) moved = out_q[31] ? '0 : out_q[30:FlightW-1] != '0 ? FlightW'(PdcWindow) : FlightW'(out_q[FlightW-2:0]);
  end
  assign flight = counted_q && !fixed_q ? counted : moved;

  // ---------------------------------------------------------------- comparison
  logic               settled_q, settled_keep_q, settled_limited_q, settled_counted_q, settled_rule_q, settled_one_q, settled_all_q;
  logic [PdcW-1:0]    settled_pdc_q;
  logic [FlightW-1:0] settled_allowed_q, flight_q, earlier_q, left_q, after_q;
  nscc_event_t        settled_event_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      settled_q      <= 1'b0;
      settled_rule_q <= 1'b0;
    end else begin
      settled_q      <= event_q;
      settled_rule_q <= rule_q;
    end
  end
  always_ff @(posedge clk_i) begin
    settled_pdc_q     <= pdc_q;
    settled_keep_q    <= keep_q;
    settled_limited_q <= limited_q;
    settled_allowed_q <= allowed_q;
    settled_counted_q <= counted_q;
    settled_event_q   <= rule_event_q;
    settled_one_q     <= lost_one_q;
    settled_all_q     <= lost_all_q;
    flight_q          <= flight;
    earlier_q         <= earlier;
    left_q            <= left;
    after_q           <= counted;
  end

  always_comb begin
    rule_event_o         = settled_event_q;
    rule_event_o.packets = '0;
    rule_event_o.lost    = '0;
    if (settled_event_q.ack) rule_event_o.packets = earlier_q - (settled_counted_q ? left_q : flight_q);
    if (settled_event_q.open || settled_event_q.timeout) rule_event_o.lost = '0;
    else if (settled_counted_q) rule_event_o.lost = left_q - after_q;
    else if (settled_one_q)     rule_event_o.lost = FlightW'(1);
    else if (settled_all_q)     rule_event_o.lost = earlier_q;
  end
  assign rule_o = settled_rule_q;

  logic [NumPdc-1:0] closed_q;
  assign event_o  = settled_q;
  assign pdc_o    = settled_pdc_q;
  assign closes_o = settled_limited_q && (settled_keep_q || (flight_q != '0 && flight_q >= settled_allowed_q));
  assign closed_o = closed_q;
  assign idle_o   = !event_q && !settled_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      closed_q <= '0;
    end else begin
      for (int unsigned i = 0; i < NumPdc; i++) begin
        if (settled_q && settled_pdc_q == PdcW'(i)) closed_q[i] <= closes_o;
      end
    end
  end

  if (PdcWindow != 64) begin : gen_bad_window
    $error("PdcWindow must be 64");
  end

  `HEDDLE_ASSERT(FlightBounded_A, flight_o <= FlightW'(PdcWindow))
  `HEDDLE_ASSERT(FlightShrinks_A, rule_o && rule_event_o.ack |-> rule_event_o.packets <= earlier_q)
endmodule
