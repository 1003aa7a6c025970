// SPDX-License-Identifier: Apache-2.0
// Payloads that were pushed with their descriptors: kept until overwritten, in place of a read from host memory.
//
// Numbered: payload that begins on `put_begin_i` has the number shown on `put_tag_o` then, which no other gets.
//           The NumPushed latest are kept; one that was overwritten, or came damaged, has no data.
// Exact:    a request is answered from here if its number's data are here and no earlier read is outstanding,
//           else by a read. Either way it is answered once, in order, each first byte in lane 0.
// Whole:    data that are being read out are not overwritten; what would overwrite them is not kept.
// Latency:  0 cycles for requests without a number and for the answers of reads; from here the first beat comes a
//           cycle after the request.

`include "heddle_assert.svh"

module heddle_tx_pushed
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512   // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  output logic [PushTagW-1:0] put_tag_o,   // heddle_tx_fetch: number of the payload that begins next.
  input  logic             put_begin_i,    // Strobe: it comes.
  input  logic             put_valid_i,    // Strobe: its next 64 bytes, at most 3 times,
  input  logic             put_last_i,     // the last,
  input  logic             put_ok_i,       // and they are all its own.
  input  logic [511:0]     put_i,

  input  logic             req_valid_i,    // From heddle_tx_build.
  output logic             req_ready_o,
  input  payload_req_t     req_i,

  output logic             rd_valid_o,     // To heddle_tx_gather.
  input  logic             rd_ready_i,
  output gather_req_t      rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  output logic             out_valid_o,    // To heddle_tx_payload.
  input  logic             out_ready_i,
  output logic [DataW-1:0] out_data_o,
  output logic             out_last_o,
  output logic             out_error_o,

  output logic [NumStat-1:0] stat_o,
  output logic             idle_o
);
  localparam int unsigned StrbW = DataW / 8;
  localparam int unsigned Beats = 512 / DataW;  // A row has so many.
  localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1;
  localparam int unsigned RowW  = 2;            // Rows of a payload: 3, as many as extension slots.
  localparam int unsigned LeftW = $clog2(InjectBytes) + 1;
  localparam int unsigned ReadW = 9;            // Outstanding reads: more than the frame builder waits for.

  // --------------------------------------------------------------------- payloads
  logic [PushTagW-1:0]  next_q;    // Number that comes next; its low bits are its place.
  logic [RowW-1:0]      put_row_q;
  logic                 put_hurt_q, put_barred;
  logic [NumPushed-1:0] whole_q;   // All of it is there.
  logic [PushedW-1:0]   put_place_q;  // The payload that comes has this place.
  logic [PushedW-1:0]   place;
  logic                 serves;    // Data are being read out.
  logic [RowW-1:0]      read_row;
  logic [PushTagW-1:0]  tag;
  logic [511:0]         row;
  logic                 tags_ready, rows_ready, tag_error, row_error;

  assign put_tag_o  = next_q;
  assign place      = req_i.pushed[PushedW-1:0];
  assign put_barred = serves && place == put_place_q;

  heddle_mem #(.Width(PushTagW), .Depth(NumPushed), .Init(1'b0)) u_tags (
    .clk_i, .rst_ni,
    .wen_i(put_begin_i), .waddr_i(next_q[PushedW-1:0]), .wdata_i(next_q),
    .raddr_i(place), .rdata_o(tag), .error_o(tag_error), .ready_o(tags_ready)
  );
  heddle_mem #(.Width(512), .Depth(NumPushed << RowW), .Init(1'b0)) u_rows (
    .clk_i, .rst_ni,
    .wen_i(put_valid_i && !put_barred), .waddr_i({put_place_q, put_row_q}), .wdata_i(put_i),
    .raddr_i({place, read_row}), .rdata_o(row), .error_o(row_error), .ready_o(rows_ready)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_q  <= PushTagW'(1);
      whole_q <= '0;
    end else if (put_begin_i) begin
      next_q  <= next_q + 1'b1;
      whole_q[next_q[PushedW-1:0]] <= 1'b0;
    end else if (put_valid_i && put_last_i) begin
      whole_q[put_place_q] <= put_ok_i && !put_hurt_q && !put_barred;
    end
  end
  always_ff @(posedge clk_i) begin
    if (put_begin_i) begin
      put_place_q <= next_q[PushedW-1:0];
      put_row_q   <= '0;
      put_hurt_q  <= 1'b0;
    end else if (put_valid_i) begin
      put_row_q  <= put_row_q + 1'b1;
      put_hurt_q <= put_hurt_q || put_barred;
    end
  end

  // --------------------------------------------------------------------- requests
  typedef enum logic [1:0] {
    ReqPass  = 2'd0,  // To be looked up, or to be read.
    ReqLook  = 2'd1,  // Its number and its first bytes were read here.
    ReqServe = 2'd2,  // It is answered from here.
    ReqRead  = 2'd3   // It is to be read and was shown.
  } state_e;

  state_e               state_d, state_q;
  logic [ReadW-1:0]     reads_d, reads_q;
  logic                 fire, looks, found, take, last, row_ends;
  logic [LeftW-1:0]     left_d, left_q, left;      // Bytes of the request.
  logic [RowW-1:0]      row_d, row_q;
  logic [BeatW-1:0]     beat_d, beat_q;

  assign looks  = req_i.pushed != '0 && reads_q == '0;
  assign found  = state_q == ReqLook && whole_q[place] && tag == req_i.pushed;
  assign serves = found || state_q == ReqServe;

  assign rd_req_o    = req_i.gather;
  assign rd_valid_o  = req_valid_i && reads_q != '1 &&
                       ((state_q == ReqPass && !looks) || (state_q == ReqLook && !found) || state_q == ReqRead);
  assign fire        = rd_valid_o && rd_ready_i;
  assign req_ready_o = serves ? take && last : fire;

  assign left     = state_q == ReqServe ? left_q : LeftW'(req_i.gather.read.bytes);
  assign last     = left <= LeftW'(StrbW);
  assign take     = serves && out_ready_i;
  assign row_ends = beat_q == BeatW'(Beats - 1);
  always_comb begin
    state_d = state_q;
    left_d  = left_q;
    row_d   = row_q;
    beat_d  = beat_q;
    unique case (state_q)
      ReqPass: if (req_valid_i) state_d = looks ? ReqLook : fire ? ReqPass : ReqRead;
      ReqLook: state_d = found ? ReqServe : fire ? ReqPass : ReqRead;
      ReqRead: if (fire) state_d = ReqPass;
      default: ;
    endcase
    if (serves) left_d = left;
    if (take) begin
      left_d = left - LeftW'(StrbW);
      beat_d = row_ends ? '0 : beat_q + 1'b1;
      if (row_ends) row_d = row_q + 1'b1;
      if (last) begin
        state_d = ReqPass;
        row_d   = '0;
        beat_d  = '0;
      end
    end
    reads_d = reads_q + ReadW'(fire) -
                  ReadW'(rd_rsp_valid_i && rd_rsp_ready_o && rd_rsp_last_i);
  end
  assign read_row = row_d;

  // ---------------------------------------------------------------------- answers
  assign rd_rsp_ready_o = !serves && out_ready_i;
  assign out_valid_o = serves || rd_rsp_valid_i;
  assign out_data_o  = serves ? row[beat_q * DataW +: DataW] : rd_rsp_data_i;
  assign out_last_o  = serves ? last : rd_rsp_last_i;
  assign out_error_o = !serves && rd_rsp_error_i;

  always_comb begin
    stat_o = '0;
    stat_o[StatisticTxPushedPayloads] = take && last;
  end
  assign idle_o = state_q == ReqPass && !req_valid_i && reads_q == '0 && tags_ready && rows_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= ReqPass;
      reads_q <= '0;
      row_q       <= '0;
      beat_q      <= '0;
    end else begin
      state_q     <= state_d;
      reads_q <= reads_d;
      row_q       <= row_d;
      beat_q      <= beat_d;
    end
  end
  always_ff @(posedge clk_i) begin
    left_q <= left_d;
  end

  logic unused_errors;
  assign unused_errors = tag_error ^ row_error;

  `HEDDLE_ASSERT(AnswerOfRead_A, rd_rsp_valid_i |-> reads_q != '0 && !serves)
  `HEDDLE_ASSERT(WithinPayload_A, serves && state_q == ReqLook |-> req_i.gather.read.bytes <= 14'(InjectBytes))
  `HEDDLE_ASSERT(OrderedOffer_A, rd_valid_o && !rd_ready_i |=> rd_valid_o && $stable(rd_req_o))
  `HEDDLE_ASSERT(OrderedOut_A, out_valid_o && !out_ready_i |=> out_valid_o && $stable(out_data_o))
endmodule
