// SPDX-License-Identifier: Apache-2.0
// Congestion windows of the PDCs: fixed, or NSCC (UET 3.1).
//
// Takes:    an event in each cycle, whatever waits. Events of a PDC that wait are merged: packets and lost
//           packets are added up (to a window at most), marks are kept, round trip and time are the newest.
// In order: PDCs take turns; of one, an opening drops what was before, and a time-out precedes what was
//           acknowledged, that what was lost. A window that changed is offered until it is taken.
// Same:     in whole numbers as hw/soft/transport/congestion.cc, whose windows it has after the same
//           events. A packet counts as one of the payload MTU.
// Latency:  14 to 44 cycles for an event.

`include "heddle_assert.svh"

module heddle_nscc
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic            clk_i,
  input  logic            rst_ni,

  input  port_cfg_t       port_i,
  input  transport_cfg_t  transport_i,

  input  logic            event_valid_i,  // Only while `ready_o`.
  input  nscc_event_t     event_i,
  output logic            ready_o,        // Its memories are initialised.

  output logic            window_valid_o,
  input  logic            window_ready_i,
  output logic [PdcW-1:0] window_pdc_o,
  output logic [FlightW-1:0] window_o,    // Packets, at least 1.
  output logic [19:0]     window_bytes_o,

  output logic            idle_o
);
  localparam int unsigned Fraction = NsccFractionBits;  // Of a window, behind the bytes.
  localparam int unsigned Average  = NsccAverageShift;  // Bits of an average behind the ns.
  localparam int unsigned WindowW  = 20 + Fraction;
  localparam int unsigned TimeW    = 24;  // ns.
  localparam int unsigned PeriodW  = 32 - NsccBaseShift;
  localparam int unsigned BytesW   = 20;  // What one event can be about.
  // Without UDP or entropy header.
  localparam logic [23:0] HeaderBytes = 24'(PdsRequestBytes + SesStdBytes + CrcBytes + NsccPacketBytes);
  localparam int unsigned FastLow  = 16 - Fraction;  // scaling_a is in 2^-16.

  typedef struct packed {
    logic [WindowW-1:0] cwnd;       // 2^-8 bytes.
    logic [31:0]        increase;
    logic [TimeW+Average-1:0] average;  // 2^-Average ns.
    logic [TimeW-1:0]   base;       // The shortest round trip,
    logic [PeriodW-1:0] period;     // as measured in this period.
    logic [31:0]        decreased_at;
    logic [31:0]        adjusted_at;
    logic [31:0]        adapted_at;
    logic               adapting;
    logic [23:0]        achieved;
    logic [BytesW-1:0]  adjust;
    logic [23:0]        fast;
    logic [23:0]        ignore;
    logic [FlightW-1:0] packets;    // Window that was offered last.
  } nscc_t;

  typedef enum logic [3:0] {
    StIdle, StTake, StLoad, StAck, StAverage, StAdapt, StJudge, StAdd, StRatio, StCut, StApply, StGain,
    StLoss, StSize, StWrite
  } state_e;

  // ------------------------------------------------------------------ constants
  // Settled long before the first event: firmware writes the tables before the port is enabled.
  logic [13:0]        packet_q;
  logic [23:0]        bytes_q, base_q, target_q, scale_q;  // base_q: of an empty network, as the firmware says.
  logic               trims_q;                             // The network trims instead of dropping.
  logic [WindowW-1:0] min_q, max_q, step_q, eta_q;
  logic [29:0]        packets_q;   // scaling_a in packets, 2^-8 bytes.
  logic [21:0]        fast_q;
  logic [40:0]        scaled;
  logic [37:0]        packets, eta_wide;
  logic [39:0]        step_wide;
  assign scaled    = 41'(bytes_q) * 41'(NsccScale);
  assign packets   = 38'(scale_q) * 38'(packet_q);
  assign step_wide = 40'(packets_q) * 40'(NsccStep);
  assign eta_wide  = 38'(packets_q) * 38'(NsccEta);
  always_ff @(posedge clk_i) begin
    packet_q  <= 14'(24'(port_i.payload_mtu) + HeaderBytes +
                     (port_i.ip_protocol != '0 ? 24'(EntropyBytes) : 24'(UdpBytes)));
    bytes_q   <= transport_i.cwnd_bytes[31:24] != '0 ? '1 : transport_i.cwnd_bytes[23:0];
    base_q    <= transport_i.base_rtt_ns[31:24] != '0 ? '1 : transport_i.base_rtt_ns[23:0];
    trims_q   <= (transport_i.dscp_trimmed | transport_i.dscp_trimmed_lasthop) != '0;
    target_q  <= trims_q ? base_q - (base_q >> NsccTrimTargetShift) : base_q;
    scale_q   <= 24'(scaled >> NsccScaleShift);
    packets_q <= 30'(packets >> FastLow);
    step_q    <= WindowW'(step_wide >> 10);
    eta_q     <= WindowW'(eta_wide >> 8);
    fast_q    <= 22'(scale_q >> NsccFastShift);
    min_q     <= {6'b0, packet_q, {Fraction{1'b0}}};
    max_q     <= bytes_q < {10'b0, packet_q} ? {6'b0, packet_q, {Fraction{1'b0}}}
               : bytes_q > {4'b0, packet_q, 6'b0} ? {packet_q, {(6 + Fraction){1'b0}}}
               : {bytes_q[19:0], {Fraction{1'b0}}};
  end

  // -------------------------------------------------------------------- events
  // Waiting events of each PDC, merged, and the PDCs that have some, each once.
  typedef struct packed {
    logic        waits;
    nscc_event_t what;
  } waiting_t;
  waiting_t    old, merged;
  nscc_event_t came_q, in_q, e_q;  // Its record is read; merged.
  logic        came_valid_q, in_valid_q, take, taken_q, stored, ready, next_valid, queue_room;
  logic        unused_old_error, unused_state_error, old_ready, state_ready;
  logic [PdcW-1:0] next_pdc;
  logic [PdcW:0]   unused_count;

  function automatic logic [FlightW-1:0] together(logic [FlightW-1:0] a, logic [FlightW-1:0] b);
    logic [FlightW:0] sum;
    sum      = {1'b0, a} + {1'b0, b};
    together = sum > (FlightW+1)'(PdcWindow) ? FlightW'(PdcWindow) : sum[FlightW-1:0];
  endfunction

  always_comb begin
    merged.waits = in_valid_q;
    merged.what  = in_q;
    if (old.waits && !in_q.open) begin
      merged.what.open    = old.what.open;
      merged.what.timeout = old.what.timeout || in_q.timeout;
      merged.what.ack     = old.what.ack || in_q.ack;
      merged.what.packets = together(old.what.packets, in_q.packets);
      merged.what.marked  = old.what.marked || in_q.marked;
      merged.what.lost    = together(old.what.lost, in_q.lost);
      merged.what.trim    = old.what.trim || in_q.trim;
      if (in_q.rtt == '0) merged.what.rtt = old.what.rtt;
    end
  end
  // An event that came goes before one that is taken.
  heddle_mem #(.Width($bits(waiting_t)), .Depth(NumPdc)) u_waiting (
    .clk_i, .rst_ni, .wen_i(in_valid_q || taken_q), .waddr_i(in_valid_q ? in_q.pdc : e_q.pdc), .wdata_i(merged),
    .raddr_i(came_valid_q ? came_q.pdc : next_pdc), .rdata_o(old), .error_o(unused_old_error), .ready_o(old_ready)
  );
  heddle_fifo #(.Width(PdcW), .Depth(NumPdc)) u_queue (
    .clk_i, .rst_ni, .valid_i(in_valid_q && !old.waits), .ready_o(queue_room), .data_i(in_q.pdc),
    .valid_o(next_valid), .ready_i(take), .data_o(next_pdc), .count_o(unused_count)
  );

  state_e state_q;
  nscc_t  s_q, d, loaded;
  assign ready   = old_ready && state_ready;
  assign ready_o = ready;
  assign take    = state_q == StIdle && next_valid && ready && !came_valid_q;
  assign taken_q = state_q == StTake;
  heddle_mem #(.Width($bits(nscc_t)), .Depth(NumPdc)) u_state (
    .clk_i, .rst_ni, .wen_i(stored), .waddr_i(e_q.pdc), .wdata_i(s_q),
    .raddr_i(e_q.pdc), .rdata_o(loaded), .error_o(unused_state_error), .ready_o(state_ready)
  );

  // ------------------------------------------------------------------- one step
  // Within the bounds.
  function automatic logic [WindowW-1:0] bounded(logic [WindowW+1:0] wanted,
                                                 logic [WindowW-1:0] least, logic [WindowW-1:0] most);
    bounded = wanted < {2'b0, least} ? least : wanted > {2'b0, most} ? most : wanted[WindowW-1:0];
  endfunction
  // At most all ones.
  function automatic logic [23:0] most24(logic [24:0] wide);
    most24 = wide[24] ? '1 : wide[23:0];
  endfunction

  logic [BytesW-1:0]  acked_q, lost_q;        // Bytes of the event.
  logic [TimeW-1:0]   base, delay_q, over_q;
  logic               shorter, anew;          // The round trip is the base; a base that was too short ends.
  logic [TimeW+1:0]   much;
  logic               congested_q, losing_q, huge_q, past, none, period_q, due, adapts_q, changed, leave;
  logic [23:0]        fast;
  logic [23:0]        factor;
  logic [43:0]        product_q;
  logic [WindowW+1:0] grown, gained_q, faster;
  logic [32:0]        gathered;
  logic [59:0]        gain;
  logic [31:0]        above;
  logic [7:0]         part;
  logic [WindowW+7:0] cut;
  logic [TimeW:0]     adapt_period;

  // Division, two bits a cycle: `rem` < `den`; the dividend goes on with the top bits of `low`.
  logic [24:0]        rem_q, rem_d;
  logic [27:0]        low_q, low_d, quotient_q, quotient_d;
  logic [23:0]        den_q;
  logic [3:0]         count_q;
  logic               divided;
  always_comb begin
    rem_d      = rem_q;
    low_d      = low_q;
    quotient_d = quotient_q;
    for (int unsigned i = 0; i < 2; i++) begin
      rem_d      = {rem_d[23:0], low_d[27]};
      low_d      = {low_d[26:0], 1'b0};
      quotient_d = {quotient_d[26:0], rem_d >= {1'b0, den_q}};
      if (rem_d >= {1'b0, den_q}) rem_d = rem_d - {1'b0, den_q};
    end
  end
  assign divided = count_q == '0;

  assign shorter  = s_q.base == '0 || e_q.rtt < s_q.base;
  assign anew     = e_q.now[31 -: PeriodW] != s_q.period && s_q.base < base_q;
  always_comb begin
    base = s_q.base;
    if (shorter)   base = e_q.rtt;
    else if (anew) base = e_q.rtt < base_q ? e_q.rtt : base_q;
  end
  assign much     = (TimeW+2)'(target_q) * (TimeW+2)'(NsccAdaptThreshold);
  assign past     = e_q.marked && s_q.ignore >= 24'(acked_q);
  assign none     = !e_q.marked && delay_q <= target_q >> NsccNoDelayShift;
  assign fast     = none ? most24({1'b0, s_q.fast} + 25'(acked_q)) : '0;
  assign due      = period_q || s_q.adjust >= BytesW'(packet_q) * BytesW'(NsccAdjustPackets);
  assign grown    = gained_q + {2'b0, quotient_q};
  assign faster   = {2'b0, s_q.cwnd} + {2'b0, product_q[FastLow +: WindowW]};
  assign gathered = {1'b0, s_q.increase} +
                    (delay_q < target_q ? 33'(product_q >> NsccUnitShift)
                                        : (33'(acked_q) << NsccFairShift) - 33'(acked_q));
  assign gain     = 60'(step_q) * 60'(s_q.increase);
  assign part     = quotient_q[7:0] > 8'(NsccMaxDecrease) ? 8'(NsccMaxDecrease) : quotient_q[7:0];
  assign factor   = delay_q < target_q && {fast, {Fraction{1'b0}}} > 32'(s_q.cwnd)
                        ? {2'b0, fast_q} : target_q - delay_q;
  assign cut      = (WindowW+8)'(s_q.cwnd) * (WindowW+8)'(part);
  assign above    = 32'(over_q) * 32'(NsccGamma);
  assign adapt_period = {1'b0, s_q.base} + {1'b0, target_q};
  assign changed  = s_q.packets != quotient_q[FlightW-1:0] || e_q.open;
  assign leave    = state_q == StWrite && divided && (!changed || !window_valid_q || window_ready_i);

  always_comb begin
    d = s_q;
    unique case (state_q)
      StLoad: begin
        d = loaded;
        if (e_q.open) begin
          d      = '0;
          d.cwnd = max_q;
        end
        if (e_q.timeout) begin
          d.cwnd     = bounded({3'b0, d.cwnd[WindowW-1:1]}, min_q, max_q);
          d.increase = '0;
          d.fast     = '0;
        end
      end
      StAck: begin
        d.achieved = most24({1'b0, s_q.achieved} + 25'(acked_q));
        if (e_q.rtt != '0) begin
          d.base   = base;
          d.period = e_q.now[31 -: PeriodW];
        end
      end
      StAverage: d.average = s_q.average + (TimeW+Average)'(delay_q) - (TimeW+Average)'(s_q.average >> Average);
      StAdapt: begin
        if (adapts_q) begin
          if (s_q.adapting && congested_q && 
              {s_q.achieved, {Fraction{1'b0}}} < 32'(max_q) >> NsccAdaptGateShift) begin
            d.cwnd     = bounded({2'b0, WindowW'({s_q.achieved[19:0], {Fraction{1'b0}}})}, min_q, max_q);
            d.ignore   = s_q.achieved;
            d.increase = '0;
          end
          d.adapting   = 1'b1;
          d.adapted_at = e_q.now;
          d.achieved   = '0;
        end
      end
      StJudge: begin
        if (past) begin
          d.ignore = s_q.ignore - 24'(acked_q);
        end else begin
          d.ignore = '0;
          d.fast   = fast;
        end
      end
      StAdd: begin
        if (delay_q < target_q && {s_q.fast, {Fraction{1'b0}}} > 32'(s_q.cwnd)) begin
          d.cwnd     = product_q[43:FastLow+WindowW] != '0 ? max_q : bounded(faster, min_q, max_q);
        end else begin
          d.increase = gathered[32] ? '1 : gathered[31:0];
        end
      end
      StRatio: begin
        d.decreased_at = e_q.now;
        d.increase     = '0;
      end
      StCut: if (divided) d.cwnd = bounded({2'b0, s_q.cwnd} - (WindowW+2)'(cut >> 8), min_q, max_q);
      StApply: d.adjust = s_q.adjust + acked_q;
      StGain: begin
        if (divided) begin
          d.cwnd     = huge_q ? max_q : bounded(grown, min_q, max_q);
          d.increase = '0;
          d.adjust   = '0;
          if (period_q) d.adjusted_at = e_q.now;
        end
      end
      StLoss: begin
        d.fast = '0;
        if (e_q.trim) d.average = s_q.average + (TimeW+Average)'(base_q) - (TimeW+Average)'(s_q.average >> Average);
        d.cwnd = s_q.cwnd > {lost_q, {Fraction{1'b0}}}
                     ? bounded({2'b0, s_q.cwnd - {lost_q, {Fraction{1'b0}}}}, min_q, max_q) : min_q;
      end
      StWrite: if (leave) d.packets = quotient_q[FlightW-1:0];
      default: ;
    endcase
  end

  logic written_q;  // The state is that of `e_q.pdc` and not stored yet.
  always_ff @(posedge clk_i) s_q <= d;
  assign stored = state_q == StIdle && written_q;

  // ----------------------------------------------------------------------- order
  logic   window_valid_q;
  state_e after;
  assign after = e_q.lost != '0 ? StLoss : StSize;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q        <= StIdle;
      window_valid_q <= 1'b0;
      written_q      <= 1'b0;
      came_valid_q   <= 1'b0;
      in_valid_q     <= 1'b0;
    end else begin
      came_valid_q <= event_valid_i;
      in_valid_q   <= came_valid_q;
      if (window_ready_i) window_valid_q <= 1'b0;
      unique case (state_q)
        StIdle: begin
          written_q <= 1'b0;
          if (take) state_q <= StTake;
        end
        StTake:    state_q <= StLoad;
        StLoad:    state_q <= e_q.ack ? StAck : after;
        StAck:     state_q <= e_q.rtt != '0 ? StAverage : StApply;
        StAverage: state_q <= StAdapt;
        StAdapt:   state_q <= losing_q ? StSize : StJudge;
        StJudge:   state_q <= past ? after
                            : !e_q.marked ? StAdd
                            : delay_q >= target_q && s_q.average[TimeW+Average-1:Average] > target_q &&
                              e_q.now - s_q.decreased_at >= 32'(s_q.base) ? StRatio : StApply;
        StAdd:     state_q <= StApply;
        StRatio:   state_q <= StCut;
        StCut:     if (divided) state_q <= StApply;
        StApply:   state_q <= StGain;
        StGain:    if (!due || divided) state_q <= after;
        StLoss:    state_q <= StAdapt;
        StSize:    state_q <= StWrite;
        StWrite: begin
          if (leave) begin
            state_q   <= StIdle;
            written_q <= 1'b1;
            if (changed) window_valid_q <= 1'b1;
          end
        end
        default:   state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    came_q <= event_i;
    in_q   <= came_q;
    if (take) e_q.pdc <= next_pdc;
    if (taken_q) e_q <= old.what;
    // The state before uses them, and does not change what they follow from.
    acked_q  <= BytesW'(e_q.packets) * BytesW'(packet_q);
    lost_q   <= BytesW'(e_q.lost) * BytesW'(packet_q);
    adapts_q <= e_q.now - s_q.adapted_at >= 32'(adapt_period);
    period_q <= e_q.now - s_q.adjusted_at >= 32'(base_q);
    gained_q <= {2'b0, s_q.cwnd} + (period_q ? {2'b0, eta_q} : '0);
    if (!divided) begin
      rem_q      <= rem_d;
      low_q      <= low_d;
      quotient_q <= quotient_d;
      count_q    <= count_q - 1'b1;
    end
    unique case (state_q)
      StIdle: losing_q <= 1'b0;
      StAck:     delay_q <= e_q.rtt - base;
      StAverage: congested_q <= !trims_q && {2'b0, delay_q} > much;
      StJudge: begin
        product_q <= 44'(acked_q) * 44'(factor);
        over_q    <= s_q.average[TimeW+Average-1:Average] - target_q;
      end
      StRatio: begin
        {rem_q, low_q} <= {1'b0, above, 20'b0};
        den_q      <= s_q.average[TimeW+Average-1:Average];
        quotient_q <= '0;
        count_q    <= 4'd4;
      end
      StApply: begin
        {rem_q, low_q} <= {1'b0, gain[51:0]};
        huge_q     <= gain[59:28] >= {12'b0, s_q.cwnd[WindowW-1:Fraction]};
        den_q      <= {4'b0, s_q.cwnd[WindowW-1:Fraction]};
        quotient_q <= '0;
        count_q    <= 4'd14;
      end
      StLoss: begin
        losing_q    <= 1'b1;
        congested_q <= 1'b1;
      end
      StSize: begin
        {rem_q, low_q} <= {13'b0, s_q.cwnd[WindowW-1:Fraction], 20'b0};
        den_q      <= {10'b0, packet_q};
        quotient_q <= '0;
        count_q    <= 4'd4;
      end
      StWrite: begin
        if (leave && changed) begin
          window_pdc_o   <= e_q.pdc;
          window_o       <= quotient_q[FlightW-1:0];
          window_bytes_o <= s_q.cwnd[WindowW-1:Fraction];
        end
      end
      default: ;
    endcase
  end
  assign window_valid_o = window_valid_q;
  assign idle_o = ready && state_q == StIdle && !written_q && !came_valid_q && !in_valid_q && !next_valid && !window_valid_q;

  logic unused;
  assign unused = ^{port_i, transport_i, unused_old_error, unused_state_error, unused_count};

  `HEDDLE_ASSERT(ReadyForEvents_A, event_valid_i |-> ready)
  `HEDDLE_ASSERT(EachWaitsOnce_A, in_valid_q && !old.waits |-> queue_room)
  `HEDDLE_ASSERT(TakenWaits_A, taken_q && !in_valid_q |-> old.waits)
endmodule
