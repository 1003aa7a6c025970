// SPDX-License-Identifier: Apache-2.0
// Ends READs: those whose requests are acknowledged wait here for their last data.
//
// Passed:   any other message goes on at once.
// Settled:  a READ goes on when each packet that will be answered was settled: its data are in host memory,
//           or it failed. The first failure is its status.
// Lost:     when a PDC ends, the READs that wait for its data end with it; `lose_ready_o` follows the last.
// Due:      each packet settled, and those of a refused READ that will not be answered, are told to
//           heddle_pdc_tx: of a READ as many as were asked for, whatever came.
// Refused:  before its end is taken, heddle_return_rx takes no more than its promised packets, and what that had
//           taken until then is settled.
// Anew:     what was settled of a READ on an earlier opening of its PDC does not count.
// A settled packet waits for nobody.
// Ready:    some time after reset (`idle_o`), before the first READ.

`include "heddle_assert.svh"

module heddle_read_ends
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic            begin_i,        // READ `begin_msg_i` is asked for on this opening of its PDC.
  input  logic [MsgW-1:0] begin_msg_i,
  input  logic [15:0]     begin_spdcid_i,
  output logic            cut_o,          // heddle_return_rx: strobe.
  output logic [MsgW-1:0] cut_msg_o,
  output logic [PktsW-1:0] cut_packets_o,
  input  logic [SeqW-1:0] back_decided_i, // Records of return data for heddle_place,
  input  logic [SeqW-1:0] back_done_i,    // and those that are over.

  input  logic            end_valid_i,    // heddle_pdc_walk.
  output logic            end_ready_o,
  input  return_end_t     end_i,
  input  logic            lose_valid_i,
  output logic            lose_ready_o,
  input  logic [PdcW-1:0] lose_pdc_i,
  input  status_e         lose_status_i,
  input  logic [15:0]     lose_detail_i,

  input  logic            settle_i,       // Strobe, heddle_place.
  input  return_settle_t  settled_i,

  output logic            due_valid_o,    // heddle_pdc_tx.
  input  logic            due_ready_i,
  output return_due_t     due_o,

  output logic            done_valid_o,
  input  logic            done_ready_i,
  output tx_done_t        done_o,

  output logic            idle_o
);
  // What a READ waits for.
  typedef struct packed {
    logic            waiting;  // It is acknowledged and not over.
    logic [PdcW-1:0] pdc;
    logic [PktsW-1:0] packets;
    status_e         status;
    logic [15:0]     detail;
  } wait_t;

  // Packets settled since its begin.
  typedef struct packed {
    logic             faulty;  // One of them failed.
    logic [PktsW-1:0] packets;
  } count_t;

  typedef struct packed {
    status_e     status;
    logic [15:0] detail;
  } fault_t;

  typedef struct packed {
    logic            faulty;
    logic [MsgW-1:0] msg;
  } over_t;

  // --------------------------------------------------------- settled packets
  // As many as heddle_place can have under way.
  localparam int unsigned Depth = 128;
  localparam int unsigned FifoW = $clog2(Depth) + 1;
  logic             in_valid, in_take, in_ready;
  return_settle_t   in, s1_q;
  logic [FifoW-1:0] in_count;
  heddle_fifo #(.Width($bits(return_settle_t)), .Depth(Depth)) u_in (
    .clk_i, .rst_ni, .valid_i(settle_i), .ready_o(in_ready), .data_i(settled_i),
    .valid_o(in_valid), .ready_i(in_take), .data_o(in), .count_o(in_count)
  );

  // Two cycles for each event: first the entry is read, while the event before it changes its own.
  typedef enum logic [1:0] {
    StIdle, StSettle, StEnd, StScan
  } state_e;
  state_e          state_d, state_q;
  logic            due_room;
  logic [MsgW-1:0] raddr, msg, scan_q;

  logic [PktsW-1:0] count;
  count_t          counted, counted_d;
  wait_t           waits, waits_d;
  fault_t          fault, fault_d;
  logic [15:0]     opening;
  logic            counts, wait_wen, fault_wen;
  logic            unused_opening_err, unused_opening_rdy;
  logic            unused_count_err, unused_count_rdy, unused_wait_err, wait_rdy;
  logic            unused_fault_err, unused_fault_rdy;
  // A READ that begins has its count cleared in a cycle in which no packet is counted, within three cycles.
  logic            begun, begun_room, clears;
  logic [MsgW-1:0] begun_msg;
  logic [2:0]      begun_count;
  heddle_fifo #(.Width(MsgW), .Depth(4)) u_begun (
    .clk_i, .rst_ni, .valid_i(begin_i), .ready_o(begun_room), .data_i(begin_msg_i),
    .valid_o(begun), .ready_i(clears), .data_o(begun_msg), .count_o(begun_count)
  );
  assign clears = begun && state_q != StSettle;
  heddle_mem #(.Width($bits(count_t)), .Depth(NumMsg), .Init(1'b0)) u_count (
    .clk_i, .rst_ni, .wen_i(counts || clears), .waddr_i(clears ? begun_msg : msg),
    .wdata_i(clears ? '0 : counted_d),
    .raddr_i(raddr), .rdata_o(counted), .error_o(unused_count_err), .ready_o(unused_count_rdy)
  );
  heddle_mem #(.Width($bits(wait_t)), .Depth(NumMsg)) u_waits (
    .clk_i, .rst_ni, .wen_i(wait_wen), .waddr_i(msg), .wdata_i(waits_d),
    .raddr_i(raddr), .rdata_o(waits), .error_o(unused_wait_err), .ready_o(wait_rdy)
  );

  heddle_mem #(.Width(16), .Depth(NumMsg), .Init(1'b0)) u_opening (
    .clk_i, .rst_ni, .wen_i(begin_i), .waddr_i(begin_msg_i), .wdata_i(begin_spdcid_i),
    .raddr_i(raddr), .rdata_o(opening), .error_o(unused_opening_err), .ready_o(unused_opening_rdy)
  );

  // heddle_return_rx obeys from the cycle after `cut_o` on, in which it has counted what it decided before.
  logic            cut_q, sampled_q, calm;
  logic [SeqW-1:0] decided_q;
  assign cut_o         = end_valid_i && end_i.read && end_i.refused != '0 && !cut_q;
  assign cut_msg_o     = end_i.done.msg;
  assign cut_packets_o = end_i.packets;
  assign calm          = sampled_q && $signed(back_done_i - decided_q) >= 0;
  always_ff @(posedge clk_i) begin
    if (!sampled_q) decided_q <= back_decided_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cut_q     <= 1'b0;
      sampled_q <= 1'b0;
    end else if (state_q == StEnd) begin
      cut_q     <= 1'b0;
      sampled_q <= 1'b0;
    end else begin
      if (cut_o) cut_q     <= 1'b1;
      if (cut_q) sampled_q <= 1'b1;
    end
  end

  logic take_settle, take_end, take_lose;
  assign take_settle = state_q != StScan && due_room && in_valid && !(begun && (state_q == StSettle || begun_count > 3'd1));
  assign take_end    = (state_q == StIdle || state_q == StSettle) && due_room && !in_valid && end_valid_i && end_i.read &&
                       (end_i.refused == '0 || calm);
  assign take_lose   = state_q == StIdle && !in_valid && lose_valid_i;
  assign in_take     = take_settle;

  always_comb begin
    raddr = in.msg;
    if (!in_valid) raddr = end_i.done.msg;
    if (take_lose) raddr = scan_q;
  end
  always_comb begin
    msg = s1_q.msg;
    if (state_q == StEnd)  msg = end_i.done.msg;
    if (state_q == StScan) msg = scan_q;
  end

  assign count             = counted.packets;
  assign counted_d.packets = count + 1'b1;
  assign counted_d.faulty  = counted.faulty || fault_wen;

  // Why the READ failed, if it did. The first time counts.
  always_comb begin
    fault_d.status = StatusRemoteError;
    fault_d.detail = 16'(s1_q.code);
    if (s1_q.refused) begin
      fault_d.status = StatusLocalAccess;
      fault_d.detail = '0;
    end
  end
  assign fault_wen = counts && !counted.faulty && (s1_q.fail || s1_q.refused);

  logic settles, ends, loses, over_push;  // The READ is over.
  assign settles   = counts && waits.waiting && count >= waits.packets - 1'b1;
  assign ends      = state_q == StEnd && count >= end_i.packets;
  assign loses     = state_q == StScan && waits.waiting && waits.pdc == lose_pdc_i;
  assign over_push = settles || ends || loses;

  assign counts    = state_q == StSettle && s1_q.spdcid == opening;
  assign wait_wen  = state_q == StEnd || settles || loses;
  always_comb begin
    waits_d = waits;
    if (state_q == StEnd) begin
      waits_d.pdc     = end_i.pdc;
      waits_d.packets = end_i.packets;
      waits_d.status  = end_i.done.status;
      waits_d.detail  = end_i.done.detail;
    end
    if (loses) begin
      waits_d.status = lose_status_i;
      waits_d.detail = lose_detail_i;
    end
    waits_d.waiting = state_q == StEnd && !ends;
  end

  always_comb begin
    state_d = StIdle;
    if (take_settle)    state_d = StSettle;
    else if (take_end)  state_d = StEnd;
    else if (take_lose) state_d = StScan;
  end
  logic [MsgW:0] waiting_q;  // READs that wait.
  assign lose_ready_o = state_q == StScan && (waiting_q == '0 || scan_q == '1);

  always_ff @(posedge clk_i) begin
    if (take_settle) s1_q <= in;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      scan_q    <= '0;
      waiting_q <= '0;
    end else begin
      state_q <= state_d;
      if (state_q == StScan) scan_q <= lose_ready_o ? '0 : scan_q + 1'b1;
      if (state_q == StEnd && !ends) waiting_q <= waiting_q + 1'b1;
      else if (settles || loses)     waiting_q <= waiting_q - 1'b1;
    end
  end

  // ------------------------------------------------------------ what is due
  // Of a refused READ more may have come than is promised.
  logic [PktsW-1:0] beyond;
  assign beyond = ends ? count - end_i.packets : '0;
  return_due_t due_d;
  logic        due_push, due_ready;
  logic [4:0]  due_count;
  always_comb begin
    due_d.spdcid  = s1_q.spdcid;
    due_d.packets = DueW'(1);
    if (state_q == StEnd) begin
      due_d.spdcid  = opening;
      due_d.packets = end_i.refused[DueW-1:0] - beyond[DueW-1:0];
    end
  end
  assign due_push = state_q == StSettle || (state_q == StEnd && due_d.packets != '0);
  heddle_fifo #(.Width($bits(return_due_t)), .Depth(16)) u_due (
    .clk_i, .rst_ni, .valid_i(due_push), .ready_o(due_ready), .data_i(due_d),
    .valid_o(due_valid_o), .ready_i(due_ready_i), .data_o(due_o), .count_o(due_count)
  );
  assign due_room = due_count <= 5'd14;

  // --------------------------------------------------------------- ended READs
  logic            over_valid, over_take, over_ready, late_valid_q, pass;
  logic            unused_wait2_err, unused_wait2_rdy;
  over_t           over, over_in, late_q;
  logic [MsgW:0]   over_count;
  wait_t           late;
  assign over_in = {counted.faulty || fault_wen, msg};
  heddle_fifo #(.Width($bits(over_t)), .Depth(NumMsg)) u_over (
    .clk_i, .rst_ni, .valid_i(over_push), .ready_o(over_ready), .data_i(over_in),
    .valid_o(over_valid), .ready_i(over_take), .data_o(over), .count_o(over_count)
  );
  heddle_mem #(.Width($bits(wait_t)), .Depth(NumMsg), .Init(1'b0)) u_late (
    .clk_i, .rst_ni, .wen_i(wait_wen), .waddr_i(msg), .wdata_i(waits_d),
    .raddr_i(over_take ? over.msg : late_q.msg), .rdata_o(late),
    .error_o(unused_wait2_err), .ready_o(unused_wait2_rdy)
  );
  heddle_mem #(.Width($bits(fault_t)), .Depth(NumMsg), .Init(1'b0)) u_fault (
    .clk_i, .rst_ni, .wen_i(fault_wen), .waddr_i(msg), .wdata_i(fault_d),
    .raddr_i(over_take ? over.msg : late_q.msg), .rdata_o(fault),
    .error_o(unused_fault_err), .ready_o(unused_fault_rdy)
  );
  assign over_take = over_valid && !late_valid_q && (!pass || done_ready_i);
  always_ff @(posedge clk_i) begin
    if (over_take) late_q <= over;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                          late_valid_q <= 1'b0;
    else if (over_take)                   late_valid_q <= 1'b1;
    else if (late_valid_q && done_ready_i) late_valid_q <= 1'b0;
  end

  // Messages that need no data pass by, but not between the two cycles of a READ.
  assign pass         = end_valid_i && !end_i.read && !late_valid_q;
  assign done_valid_o = late_valid_q || pass;
  assign end_ready_o  = state_q == StEnd || (pass && done_ready_i);
  always_comb begin
    done_o = end_i.done;
    if (late_valid_q) begin
      done_o        = '0;
      done_o.msg    = late_q.msg;
      done_o.status = late.status;
      done_o.detail = late.detail;
      if (late.status == StatusOk && late_q.faulty) begin
        done_o.status = fault.status;
        done_o.detail = fault.detail;
      end
    end
  end

  assign idle_o = wait_rdy && !begun && !settle_i && !in_valid && state_q == StIdle && !end_valid_i && !lose_valid_i &&
                  !due_valid_o && !over_valid && !late_valid_q;

  logic unused;
  assign unused = ^{unused_count_err, unused_count_rdy, unused_wait_err,
                    unused_wait2_err, unused_wait2_rdy, unused_fault_err, unused_fault_rdy, unused_opening_err,
                    unused_opening_rdy, in_count, begun_count, over_count, late, end_i, beyond, due_ready, over_ready,
                    in_ready};

  `HEDDLE_ASSERT(WaitsForNobody_A, !settle_i || in_ready)
  `HEDDLE_ASSERT(DueOnce_A, state_q == StEnd |-> end_i.refused - beyond <= PktsW'(ReturnDue))
  `HEDDLE_ASSERT(DueHasRoom_A, !due_push || due_ready)
  `HEDDLE_ASSERT(EndedHaveRoom_A, !over_push || over_ready)
  `HEDDLE_ASSERT(ReadyFirst_A, !begin_i || wait_rdy)
  `HEDDLE_ASSERT(ClearsInTime_A, !begin_i || begun_room)
endmodule
