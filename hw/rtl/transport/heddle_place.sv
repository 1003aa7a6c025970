// SPDX-License-Identifier: Apache-2.0
// Places payload in host memory and completes messages behind it.
//
// Ordered:  packets are placed in order; the completion event of a message is emitted only after
//           the write requests of all its packets were taken by the write engine, and with
//           port_cfg.write_errors after all their responses returned.
// Errors:   a refused write makes its message complete with local_access.
// Discards payload bytes beyond `bytes`, and whole packets with bytes = 0.
// Visible:  a record that asks for it is reported when its write, and so every write before it,
//           was answered; in order.
// Token:    passes when every record before it is over and every write answered. Later records do not wait for it.
// Jobs:     a return job goes on in order, when every write before it was answered, so that a READ sees them.
// Settled:  data of our READs are reported when their write was answered; in order. `back_done_o` counts their
//           records that are over.

`include "heddle_assert.svh"

module heddle_place
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_return_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t        port_i,

  input  logic             place_valid_i,
  output logic             place_ready_o,
  input  place_t           place_i,
  input  logic             pay_valid_i,
  output logic             pay_ready_o,
  input  logic [DataW-1:0] pay_data_i,

  output logic             wr_valid_o,      // heddle_rx_scatter.
  input  logic             wr_ready_i,
  output dma_req_t         wr_req_o,
  output logic             wr_segmented_o,  // Its address is an offset in the segments of `wr_msg_o`.
  output logic [MsgW-1:0]  wr_msg_o,
  output logic             wr_data_valid_o,
  input  logic             wr_data_ready_i,
  output logic [DataW-1:0] wr_data_o,
  input  logic             wr_rsp_valid_i,
  input  logic             wr_rsp_error_i,

  output logic             ev_valid_o,
  input  logic             ev_ready_i,
  output cq_event_t        ev_o,

  output logic             visible_o,       // Strobe: up to this PSN of ...
  output logic [31:0]      visible_psn_o,
  output logic [PdcW-1:0]  visible_pdc_o,

  output logic             job_valid_o,     // The oldest return job may go to heddle_return_tx.
  input  logic             job_ready_i,
  output logic             settle_o,        // Strobe.
  output return_settle_t   settled_o,
  output logic [SeqW-1:0]  back_done_o,

  output logic             idle_o
);
  // Beats of the longest packet fit.
  localparam int unsigned BeatW = 14 - $clog2(StrbW) + 1;
  function automatic logic [BeatW-1:0] Beats(input logic [13:0] bytes);
    Beats = BeatW'((15'(bytes) + 15'(StrbW - 1)) >> $clog2(StrbW));
  endfunction

  // ----------------------------------------------------------------- records
  logic   in_valid, in_done;
  place_t in;
  logic [3:0] in_count;
  heddle_fifo #(.Width($bits(place_t)), .Depth(8)) u_in (
    .clk_i, .rst_ni,
    .valid_i(place_valid_i), .ready_o(place_ready_o), .data_i(place_i),
    .valid_o(in_valid), .ready_i(in_done), .data_o(in),
    .count_o(in_count)
  );

  // Writes on the bus and records behind them; covers the latency of a write.
  localparam int unsigned Outstanding = 64;
  localparam int unsigned CountW      = $clog2(Outstanding) + 1;

  // What happens when the writes of a record have been answered.
  typedef struct packed {
    logic            waits;     // For the answer of the record's write.
    logic [PdcW-1:0] tpdc;
    logic            first;
    logic            alone;
    logic            tabled;
    logic [TableMessageW-1:0] place;
    logic            complete;
    logic            visible;
    logic [31:0]     psn;
    cq_event_t       ev;
    logic            job;
    logic [CountW-1:0] after;   // Writes that were issued before.
    logic            back;
    logic [15:0]     spdcid;
    logic            settle;
    logic [MsgW-1:0] msg;
    logic            fail;
    logic [5:0]      code;
  } finish_t;

  logic has_write, has_data, waits;
  assign has_write = in.bytes != '0;
  assign has_data  = in.stream != '0;
  assign waits     = has_write && (port_i.write_errors[0] || in.visible || in.back);

  logic beats_ready, written_ready, finish_ready;
  logic room, issue, quiet;
  assign room = beats_ready && written_ready && finish_ready;

  // A token steps aside until nothing is left of what came before; later records go on.
  assign issue       = in_valid && !in.token && room && (!has_write || wr_ready_i);
  assign wr_valid_o  = in_valid && !in.token && room && has_write;
  assign in_done     = issue || (in_valid && in.token && !token_q);
  always_comb begin
    wr_req_o.addr  = in.iova;
    wr_req_o.bytes = in.bytes;
    wr_req_o.owner = in.ev.owner;
  end
  assign wr_segmented_o = in.segmented;
  assign wr_msg_o       = in.msg;

  // ------------------------------------------------------------- payload data
  logic               beats_valid, beats_done;
  logic [2*BeatW-1:0] beats_in, beats_out;
  logic [4:0]         beats_count;
  assign beats_in = {Beats(in.stream), Beats(in.bytes)};
  heddle_fifo #(.Width(2 * BeatW), .Depth(16)) u_beats (
    .clk_i, .rst_ni,
    .valid_i(issue && has_data), .ready_o(beats_ready), .data_i(beats_in),
    .valid_o(beats_valid), .ready_i(beats_done), .data_o(beats_out),
    .count_o(beats_count)
  );

  logic [BeatW-1:0] beat_q, beats_stream, beats_write;
  logic             beat_written, beat_taken;
  assign {beats_stream, beats_write} = beats_out;
  assign beat_written    = beat_q < beats_write;
  assign wr_data_valid_o = beats_valid && pay_valid_i && beat_written;
  assign wr_data_o       = pay_data_i;
  assign pay_ready_o     = beats_valid && (!beat_written || wr_data_ready_i);
  assign beat_taken      = pay_valid_i && pay_ready_o;
  assign beats_done      = beat_taken && beat_q + 1'b1 == beats_stream;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beat_q <= '0;
    else if (beat_taken) beat_q <= beats_done ? '0 : beat_q + 1'b1;
  end

  // -------------------------------------------------------- answers of writes
  // Whether somebody waits for the answer, per write on the bus.
  logic              written_valid, written_waits, answer_ready, answer_valid, answer_error;
  logic              answer_take;
  logic [CountW-1:0] written_count, answer_count, finish_count;
  heddle_fifo #(.Width(1), .Depth(Outstanding)) u_written (
    .clk_i, .rst_ni,
    .valid_i(issue && has_write), .ready_o(written_ready), .data_i(waits),
    .valid_o(written_valid), .ready_i(wr_rsp_valid_i), .data_o(written_waits),
    .count_o(written_count)
  );
  heddle_fifo #(.Width(1), .Depth(Outstanding)) u_answer (
    .clk_i, .rst_ni,
    .valid_i(wr_rsp_valid_i && written_waits), .ready_o(answer_ready), .data_i(wr_rsp_error_i),
    .valid_o(answer_valid), .ready_i(answer_take), .data_o(answer_error),
    .count_o(answer_count)
  );

  // ------------------------------------------------------------------ finish
  logic    finish_valid, finish_done;
  finish_t finish_in, finish;
  always_comb begin
    finish_in.waits    = waits;
    finish_in.tpdc     = in.tpdc;
    finish_in.first    = in.first;
    finish_in.alone    = in.alone;
    finish_in.tabled   = in.tabled;
    finish_in.place    = in.place;
    finish_in.complete = in.complete;
    finish_in.visible  = in.visible;
    finish_in.psn      = in.psn;
    finish_in.ev       = in.ev;
    finish_in.job      = in.job;
    finish_in.after    = issued_q;
    finish_in.back     = in.back;
    finish_in.spdcid   = in.spdcid;
    finish_in.settle   = in.settle;
    finish_in.msg      = in.msg;
    finish_in.fail     = in.fail;
    finish_in.code     = in.code;
  end
  heddle_fifo #(.Width($bits(finish_t)), .Depth(Outstanding)) u_finish (
    .clk_i, .rst_ni,
    .valid_i(issue), .ready_o(finish_ready), .data_i(finish_in),
    .valid_o(finish_valid), .ready_i(finish_done), .data_o(finish),
    .count_o(finish_count)
  );

  logic [CountW-1:0] issued_q, answered_q, behind;  // Writes, modulo twice Outstanding.
  logic              job_gone_q;
  logic [NumPdc-1:0] error_q;  // A write of the message open on the target PDC was refused.
  logic              answered, error;
  assign answered    = finish_valid && (!finish.waits || answer_valid) && (!finish.job || job_gone_q) &&
                       (!finish.visible || !behind[CountW-1]) && (!finish.tabled || looked_q);
  assign error       = !finish.back &&
                       (((finish.tabled ? table_error : error_q[finish.tpdc]) && !finish.first && !finish.alone) ||
                        (finish.waits && answer_error));
  assign finish_done = answered && (!finish.complete || (ev_ready_i && !turn_q));
  assign answer_take = finish_done && finish.waits;

  assign visible_o     = finish_done && finish.visible;
  assign visible_psn_o = finish.psn;
  assign visible_pdc_o = finish.tpdc;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) error_q <= '0;
    else if (finish_done && !finish.back && !finish.alone && !finish.tabled) begin
      error_q[finish.tpdc] <= error && !finish.complete;
    end
  end

  // Those of messages of the table: read in the cycle in which the record comes to the head.
  logic looked_q, table_error, unused_error, unused_ready;
  heddle_mem #(.Width(1), .Depth(NumPdc * TableMessages), .Init(1'b0)) u_errors (
    .clk_i, .rst_ni,
    .wen_i(finish_done && finish.tabled), .waddr_i({finish.tpdc, finish.place}), .wdata_i(error && !finish.complete),
    .raddr_i({finish.tpdc, finish.place}), .rdata_o(table_error), .error_o(unused_error), .ready_o(unused_ready)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) looked_q <= 1'b0;
    else         looked_q <= finish_valid && !finish_done;
  end

  // --------------------------------------------------------------- return jobs
  assign behind      = answered_q - finish.after;
  assign job_valid_o = finish_valid && finish.job && !job_gone_q && !behind[CountW-1];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      issued_q    <= '0;
      answered_q  <= '0;
      job_gone_q  <= 1'b0;
      back_done_o <= '0;
    end else begin
      if (issue && has_write)          issued_q    <= issued_q + 1'b1;
      if (wr_rsp_valid_i)              answered_q  <= answered_q + 1'b1;
      if (finish_done)                 job_gone_q  <= 1'b0;
      else if (job_valid_o && job_ready_i) job_gone_q <= 1'b1;
      if (finish_done && finish.back)  back_done_o <= back_done_o + 1'b1;
    end
  end

  assign settle_o = finish_done && finish.settle;
  always_comb begin
    settled_o.spdcid  = finish.spdcid;
    settled_o.msg     = finish.msg;
    settled_o.refused = finish.waits && answer_error;
    settled_o.fail    = finish.fail;
    settled_o.code    = finish.code;
  end

  assign quiet = !finish_valid && !written_valid;

  // A token waits for so many records and answers; an event that is offered is not taken back for it.
  logic              token_q, turn_q;
  logic [CountW-1:0] token_records_q, token_writes_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      token_q         <= 1'b0;
      turn_q          <= 1'b0;
      token_records_q <= '0;
      token_writes_q  <= '0;
    end else if (!token_q) begin
      token_q         <= in_valid && in.token;
      token_records_q <= finish_count - CountW'(finish_done);
      token_writes_q  <= written_count - CountW'(wr_rsp_valid_i);
    end else begin
      if (token_records_q != '0) token_records_q <= token_records_q - CountW'(finish_done);
      if (token_writes_q != '0)  token_writes_q  <= token_writes_q - CountW'(wr_rsp_valid_i);
      turn_q  <= turn_q ? !ev_ready_i
                        : token_records_q == '0 && token_writes_q == '0 && (!ev_valid_o || ev_ready_i);
      token_q <= !(turn_q && ev_ready_i);
    end
  end
  always_comb begin
    ev_valid_o = turn_q || (answered && finish.complete);
    ev_o       = finish.ev;
    if (error) ev_o.entry.status = StatusLocalAccess;
    if (turn_q) begin
      ev_o       = '0;
      ev_o.token = 1'b1;
    end
  end

  assign idle_o = !place_valid_i && !in_valid && !beats_valid && quiet && !token_q;

  logic unused_bits;
  assign unused_bits = ^{port_i, in_count, beats_count, answer_count, answer_ready, unused_error, unused_ready};

  `HEDDLE_ASSERT(Ordered_A, ev_valid_o && !ev_ready_i |=> ev_valid_o)
  `HEDDLE_ASSERT(TokenAfterRecords_A, turn_q |-> token_q && token_records_q == '0 && token_writes_q == '0)
  `HEDDLE_ASSERT(BytesWithinStream_A, in_valid && !in.token |-> in.bytes <= in.stream)
  `HEDDLE_ASSUME(AnswerExpected_M, wr_rsp_valid_i |-> written_valid)
endmodule
