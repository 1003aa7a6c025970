// SPDX-License-Identifier: Apache-2.0
// Jobs of target PDCs that no packet requests, for heddle_accept: which PDC is next, and for what.
//
// Ack:    one that owes an ACK for longer than `ack_delay_ticks`, or whose message became visible.
// End:    one that was silent for two to three times `dead_ticks`; or `reap_i` requests its messages to end.
// Close:  each `close_i` requests it of the initiators of all PDCs once.
// Evict:  each SYN that was refused requests one PDC to close, the next one in turn that was not used since its last turn.
// Latency: a job is offered some cycles after its cause. One that is taken is offered again until its end is reported; one job
//          at a time may be taken.

`include "heddle_assert.svh"

module heddle_target_jobs
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic              clk_i,
  input  logic              rst_ni,
  input  port_cfg_t         port_i,
  input  logic              tick_i,
  input  logic              close_i,
  input  logic [NumPdc-1:0] open_i,

  input  logic              done_i,        // A packet, or a job, has passed; with it, of PDC `pdc_i`:
  input  target_job_e       done_job_i,
  input  logic [PdcW-1:0]   pdc_i,
  input  logic              write_i,       // it changed it,
  input  logic              owes_i,        // which has an ACK to send now.
  input  logic              from_peer_i,   // It was its own initiator's packet, not a stranger's that names it.
  input  logic              close_end_i,   // The PDC is gone.
  input  logic              full_i,        // A SYN was refused for want of a PDC.
  input  logic              reap_i,        // Its messages have to end before it may be closed.
  input  logic              empty_i,       // JobForget: it has no more of them.

  input  logic              visible_i,     // A message of this PDC became visible.
  input  logic [PdcW-1:0]   visible_pdc_i,

  output logic              ack_valid_o,
  output logic [PdcW-1:0]   ack_pdc_o,
  input  logic              ack_take_i,
  output logic              other_valid_o, // The rest.
  output target_job_e       other_o,
  output logic [PdcW-1:0]   other_pdc_o,
  output logic              other_reaps_o, // JobForget: of messages only.

  output logic              pending_o,     // A delayed ACK waits for its time.
  output logic [31:0]       deadline_o,    // Ticks until the period ends.
  output logic              ready_o,
  output logic              idle_o
);
  // ------------------------------------------------------------------------ Ack
  logic [NumPdc-1:0] due, seen_q;
  logic              paid, taken_q;
  logic [PdcW-1:0]   taken_pdc_q;
  assign paid = done_i && ((write_i && !owes_i) || done_job_i == JobAck);
  heddle_ack_delay u_ack_delay (
    .clk_i, .rst_ni, .tick_i, .delay_i(port_i.ack_delay_ticks),
    .set_i(done_i && write_i && owes_i && !paid), .clear_i(paid), .pdc_i, .due_o(due), .pending_o
  );
  // The job looks at the visible message after it was taken, so that one which becomes visible meanwhile needs no other. An
  // offer that is repeated until then is dropped at the end of the job.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      seen_q  <= '0;
      taken_q <= 1'b0;
    end else begin
      taken_q <= ack_take_i;
      if (taken_q)    seen_q[taken_pdc_q]   <= 1'b0;
      if (visible_i)  seen_q[visible_pdc_i] <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) taken_pdc_q <= ack_pdc_o;
  heddle_group_pick #(.NumSrc(NumPdc)) u_due (
    .clk_i, .rst_ni, .valid_i(due | seen_q), .drop_i(paid), .drop_idx_i(pdc_i),
    .valid_o(ack_valid_o), .idx_o(ack_pdc_o), .take_i(ack_take_i)
  );

  // ------------------------------------------------------------------------ End
  // Periods of dead_ticks without a packet. After two whole ones the initiator, which ends after one of silence,
  // has nothing outstanding any more. Each end of a period is followed by a pass over all PDCs, which halts at one that
  // has to end.
  logic [31:0]     period_q;
  logic            period_end, again_q, pass, old_q, aged_q;
  logic [PdcW:0]   pass_q;
  logic [PdcW-1:0] at;
  logic [1:0]      age, aged;
  assign period_end = tick_i && period_q + 32'd1 >= port_i.dead_ticks;
  assign pass       = !pass_q[PdcW];
  assign at         = pass_q[PdcW-1:0];
  assign aged       = !open_i[at] ? 2'd0 : age == 2'd3 ? age : age + 2'd1;
  always_ff @(posedge clk_i) deadline_o <= period_q < port_i.dead_ticks ? port_i.dead_ticks - period_q : 32'd1;
  heddle_lookup #(.Width(2), .Depth(NumPdc)) u_age (
    .clk_i, .wen_i((done_i && from_peer_i) || (pass && !old_q)), .waddr_i(done_i && from_peer_i ? pdc_i : at),
    .wdata_i(done_i && from_peer_i ? 2'd0 : aged), .raddr_i(at), .rdata_o(age)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      period_q <= '0;
      again_q  <= 1'b0;
      pass_q   <= '0;   // The first pass writes all ages.
      old_q    <= 1'b0;
      aged_q   <= 1'b0;
    end else begin
      if (tick_i) period_q <= period_end ? '0 : period_q + 32'd1;
      again_q <= (again_q && pass) || period_end;
      if (!pass) begin
        aged_q <= 1'b1;
        if (again_q) pass_q <= '0;
      end else if (old_q) begin
        if (done_i && pdc_i == at && (from_peer_i || close_end_i)) begin
          old_q  <= 1'b0;
          pass_q <= pass_q + 1'b1;
        end
      end else if (!(done_i && from_peer_i)) begin
        if (aged == 2'd3) old_q  <= 1'b1;
        else              pass_q <= pass_q + 1'b1;
      end
    end
  end

  // The PDC that cannot be closed before its messages have ended: one at a time, since the command is retransmitted.
  logic            reap_q;
  logic [PdcW-1:0] reap_pdc_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reap_q     <= 1'b0;
      reap_pdc_q <= '0;
    end else if (done_i && reap_i && !reap_q) begin
      reap_q     <= 1'b1;
      reap_pdc_q <= pdc_i;
    end else if (done_i && done_job_i == JobForget && empty_i && pdc_i == reap_pdc_q) begin
      reap_q     <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------- Close
  logic [PdcW:0] sweep_q;  // PDCs looked at since the last strobe.
  logic          sweeping, closes_q;
  assign sweeping = !sweep_q[PdcW];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sweep_q  <= {1'b1, PdcW'(0)};
      closes_q <= 1'b0;
    end else if (close_i) begin
      sweep_q  <= '0;
      closes_q <= 1'b0;
    end else if (sweeping && !closes_q) begin
      closes_q <= open_i[sweep_q[PdcW-1:0]];
      if (!open_i[sweep_q[PdcW-1:0]]) sweep_q <= sweep_q + 1'b1;
    end else if (done_i && done_job_i == JobClose && pdc_i == sweep_q[PdcW-1:0]) begin
      closes_q <= 1'b0;
      sweep_q  <= sweep_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------------- Evict
  logic            ask_q, lazy_q, used, used_ready;
  logic [PdcW-1:0] hand_q;
  heddle_flags #(.Depth(NumPdc)) u_used (
    .clk_i, .rst_ni, .set_i(done_i && write_i), .set_index_i(pdc_i), .clear_i(ask_q && !lazy_q && used),
    .clear_index_i(hand_q), .index_i(hand_q), .flag_o(used), .ready_o(used_ready)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ask_q  <= 1'b0;
      lazy_q <= 1'b0;
      hand_q <= '0;
    end else begin
      if (done_i && full_i) begin
        ask_q <= 1'b1;
      end else if (done_i && done_job_i == JobAsk) begin
        ask_q  <= 1'b0;
      end
      if (done_i && done_job_i == JobAsk) begin
        lazy_q <= 1'b0;
        hand_q <= hand_q + 1'b1;
      end else if (ask_q && !lazy_q) begin
        lazy_q <= open_i[hand_q] && !used;
        if (!open_i[hand_q] || used) hand_q <= hand_q + 1'b1;
      end
    end
  end

  // --------------------------------------------------------------------- choice
  assign other_valid_o = old_q || reap_q || closes_q || lazy_q;
  assign other_reaps_o = !old_q;
  always_comb begin
    if (old_q)         {other_o, other_pdc_o} = {JobForget, at};
    else if (reap_q)   {other_o, other_pdc_o} = {JobForget, reap_pdc_q};
    else if (closes_q) {other_o, other_pdc_o} = {JobClose, sweep_q[PdcW-1:0]};
    else               {other_o, other_pdc_o} = {JobAsk, hand_q};
  end
  assign ready_o = used_ready && aged_q;
  assign idle_o  = (due | seen_q) == '0 && !ack_valid_o && !pass && !again_q && !reap_q && !ask_q && !sweeping && !close_i;

  logic unused_bits;
  assign unused_bits = ^{port_i};
endmodule
