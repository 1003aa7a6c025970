// SPDX-License-Identifier: Apache-2.0
// DMA write engine: all writes of the NIC on one AWID, in the order taken.
//
// Ordered:  a request taken earlier is on the bus completely before one taken
//           later; with one AWID host memory commits them in that order.
// Answered: `rsp_valid_o` pulses once per request, in order per client, when all
//           its write responses returned; `rsp_error_o` if any was an error.
// Data:     first byte of a request in lane 0 of its first beat, ceil(bytes/StrbW)
//           beats; taken only after the request.
// Splits requests at 4 KiB and at 256 beats. Fair between clients per request.

`include "heddle_assert.svh"

module heddle_dma_write
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumWr-1:0]                       req_valid_i,
  output logic [NumWr-1:0]                       req_ready_o,
  input  logic [NumWr-1:0][$bits(dma_req_t)-1:0] req_i,
  input  logic [NumWr-1:0]                       data_valid_i,
  output logic [NumWr-1:0]                       data_ready_o,
  input  logic [NumWr-1:0][DataW-1:0]            data_i,
  output logic [NumWr-1:0]                       rsp_valid_o,
  output logic [NumWr-1:0]                       rsp_error_o,

  output logic                                   m_axi_awvalid_o,
  input  logic                                   m_axi_awready_i,
  output logic [8:0]                             m_axi_awid_o,
  output logic [63:0]                            m_axi_awaddr_o,
  output logic [7:0]                             m_axi_awlen_o,
  output logic [2:0]                             m_axi_awsize_o,
  output logic [1:0]                             m_axi_awburst_o,
  output logic [7:0]                             m_axi_awuser_o,
  output logic                                   m_axi_wvalid_o,
  input  logic                                   m_axi_wready_i,
  output logic [DataW-1:0]                       m_axi_wdata_o,
  output logic [StrbW-1:0]                       m_axi_wstrb_o,
  output logic                                   m_axi_wlast_o,
  input  logic                                   m_axi_bvalid_i,
  output logic                                   m_axi_bready_o,
  input  logic [8:0]                             m_axi_bid_i,
  input  logic [1:0]                             m_axi_bresp_i,

  output logic                                   error_o,      // Strobe: a request was refused.
  output logic                                   idle_o        // Nothing outstanding.
);
  localparam int unsigned LaneW      = $clog2(StrbW);
  localparam int unsigned SplitBytes = 256 * StrbW < 4096 ? 256 * StrbW : 4096;
  localparam int unsigned SplitW     = $clog2(SplitBytes);
  localparam int unsigned ClientW    = $clog2(NumWr);
  localparam int unsigned MaxBursts  = 128;  // Outstanding.
  localparam int unsigned Ahead      = 4;    // Requests whose data is still to come.

  // ------------------------------------------------------------- take
  logic               take, offered, unused_last;
  logic [NumWr-1:0]   grant;
  logic [ClientW-1:0] winner;
  logic               cmd_ready, next;

  heddle_rr_arbiter #(.NumSrc(NumWr)) u_arbiter (
    .clk_i,
    .rst_ni,
    .valid_i (req_valid_i),
    .last_i  ({NumWr{1'b1}}),
    .ready_o (grant),
    .valid_o (offered),
    .last_o  (unused_last),
    .idx_o   (winner),
    .ready_i (next && cmd_ready)
  );
  assign req_ready_o = grant;
  assign take        = offered && next && cmd_ready;

  dma_req_t req;
  assign req = req_i[winner];

  // ---------------------------------------------------- address bursts
  logic               busy_q;
  logic [63:0]        addr_q;
  logic [13:0]        left_q;
  logic [7:0]         owner_q;
  logic [ClientW-1:0] client_q;

  logic [SplitW:0]    to_split;   // Bytes to the next split.
  logic [13:0]        burst;      // Bytes of this burst.
  logic [13:0]        span;       // The same, from the start of the first beat on.
  logic               last_burst, aw_ready, track_ready, aw_push;
  logic [7:0]         aw_len;
  assign to_split   = (SplitW + 1)'(SplitBytes) - {1'b0, addr_q[SplitW-1:0]};
  assign last_burst = left_q <= 14'(to_split);
  assign burst      = last_burst ? left_q : 14'(to_split);
  assign span       = burst + 14'(addr_q[LaneW-1:0]) - 14'd1;
  assign aw_len     = 8'(span >> LaneW);
  assign aw_push    = busy_q && aw_ready && track_ready;
  assign next       = !busy_q || (aw_push && last_burst);

  always_ff @(posedge clk_i) begin
    if (take) begin
      addr_q   <= req.addr;
      left_q   <= req.bytes;
      owner_q  <= req.owner;
      client_q <= winner;
    end else if (aw_push) begin
      addr_q <= addr_q + 64'(burst);
      left_q <= left_q - burst;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)   busy_q <= 1'b0;
    else if (next) busy_q <= take;
  end

  logic [1:0] unused_aw_count;
  heddle_fifo #(.Width(80), .Depth(2)) u_aw (
    .clk_i,
    .rst_ni,
    .valid_i (busy_q && track_ready),
    .ready_o (aw_ready),
    .data_i  ({addr_q, aw_len, owner_q}),
    .valid_o (m_axi_awvalid_o),
    .ready_i (m_axi_awready_i),
    .data_o  ({m_axi_awaddr_o, m_axi_awlen_o, m_axi_awuser_o}),
    .count_o (unused_aw_count)
  );
  assign m_axi_awid_o    = '0;
  assign m_axi_awsize_o  = 3'(LaneW);
  assign m_axi_awburst_o = 2'b01;

  // -------------------------------------------------------------- data
  logic               cmd_valid, cmd_pop;
  logic [ClientW-1:0] cmd_client;
  logic [SplitW-1:0]  cmd_addr;
  logic [13:0]        cmd_bytes;
  logic [$clog2(Ahead):0] unused_cmd_count;

  heddle_fifo #(.Width(ClientW + SplitW + 14), .Depth(Ahead)) u_cmd (
    .clk_i,
    .rst_ni,
    .valid_i (take),
    .ready_o (cmd_ready),
    .data_i  ({winner, req.addr[SplitW-1:0], req.bytes}),
    .valid_o (cmd_valid),
    .ready_i (cmd_pop),
    .data_o  ({cmd_client, cmd_addr, cmd_bytes}),
    .count_o (unused_cmd_count)
  );

  // Beats on the bus start `lead` bytes before the request's first byte, so each
  // holds the end of one data beat and the start of the next.
  logic [LaneW-1:0]  lead;
  logic              started_q;       // Not the first bus beat of the request.
  logic [14:0]       bus_left_q, bus_left;    // From the start of this bus beat on.
  logic [13:0]       data_left_q, data_left;  // Bytes of data beats not taken yet.
  logic [SplitW-LaneW-1:0] place_q, place;    // Beats since the last split.
  assign lead      = cmd_addr[LaneW-1:0];
  assign bus_left  = started_q ? bus_left_q : 15'(cmd_bytes) + 15'(lead);
  assign data_left = started_q ? data_left_q : cmd_bytes;
  assign place     = started_q ? place_q : cmd_addr[SplitW-1:LaneW];

  logic room, beat, beat_last, need;
  assign room      = !m_axi_wvalid_o || m_axi_wready_i;
  assign need      = data_left != '0;
  assign beat      = cmd_valid && room && (!need || data_valid_i[cmd_client]);
  assign beat_last = bus_left <= 15'(StrbW);
  assign cmd_pop   = beat && beat_last;

  always_comb begin
    data_ready_o = '0;
    data_ready_o[cmd_client] = cmd_valid && room && need;
  end

  logic [DataW-1:0] data, prev_q, shifted;
  assign data = data_i[cmd_client];

  heddle_funnel #(.DataW(DataW)) u_funnel (
    .en_i    (beat),
    .lo_i    (prev_q),
    .hi_i    (data),
    .shift_i ((LaneW + 1)'(StrbW) - {1'b0, lead}),
    .data_o  (shifted)
  );

  logic [StrbW-1:0] strobes;
  always_comb begin
    strobes = {StrbW{1'b1}};
    if (!started_q) strobes = strobes << lead;
    if (beat_last)  strobes = strobes & ~({StrbW{1'b1}} << bus_left);
  end

  logic             w_valid_q, w_last_q;
  logic [DataW-1:0] w_data_q;
  logic [StrbW-1:0] w_strb_q;
  assign m_axi_wvalid_o = w_valid_q;
  assign m_axi_wdata_o  = w_data_q;
  assign m_axi_wstrb_o  = w_strb_q;
  assign m_axi_wlast_o  = w_last_q;

  always_ff @(posedge clk_i) begin
    if (beat) begin
      w_data_q    <= shifted;
      w_strb_q    <= strobes;
      w_last_q    <= beat_last || place == '1;
      place_q     <= place + 1'b1;
      bus_left_q  <= bus_left - 15'(StrbW);
      data_left_q <= data_left > 14'(StrbW) ? data_left - 14'(StrbW) : '0;
      if (need) prev_q <= data;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      started_q <= 1'b0;
      w_valid_q <= 1'b0;
    end else begin
      if (beat) started_q <= !beat_last;
      if (room) w_valid_q <= beat;
    end
  end

  // --------------------------------------------------------- responses
  logic               track_valid, track_last;
  logic [ClientW-1:0] track_client;
  logic [$clog2(MaxBursts):0] unused_track_count;

  heddle_fifo #(.Width(ClientW + 1), .Depth(MaxBursts)) u_track (
    .clk_i,
    .rst_ni,
    .valid_i (busy_q && aw_ready),
    .ready_o (track_ready),
    .data_i  ({client_q, last_burst}),
    .valid_o (track_valid),
    .ready_i (m_axi_bvalid_i),
    .data_o  ({track_client, track_last}),
    .count_o (unused_track_count)
  );
  assign m_axi_bready_o = 1'b1;

  logic             refused_q, refused;  // A burst of the request was refused.
  logic             answer;
  logic [NumWr-1:0] rsp_valid_q, rsp_error_q;
  assign refused = refused_q || m_axi_bresp_i[1];
  assign answer  = m_axi_bvalid_i && track_valid && track_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      refused_q   <= 1'b0;
      rsp_valid_q <= '0;
      rsp_error_q <= '0;
    end else begin
      if (m_axi_bvalid_i && track_valid) refused_q <= refused && !track_last;
      rsp_valid_q <= NumWr'(answer) << track_client;
      rsp_error_q <= NumWr'(answer && refused) << track_client;
    end
  end
  assign rsp_valid_o = rsp_valid_q;
  assign rsp_error_o = rsp_error_q;
  assign error_o     = rsp_error_q != '0;

  assign idle_o = !busy_q && !m_axi_awvalid_o && !cmd_valid && !w_valid_q && !track_valid &&
                  rsp_valid_q == '0;

  logic unused_bus;
  assign unused_bus = ^{m_axi_bid_i, m_axi_bresp_i[0]};

  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : gen_bad_width
    $error("DataW must be 64, 128, 256 or 512");
  end

  `HEDDLE_ASSUME(ResponseExpected_M, !m_axi_bvalid_i || track_valid)
  `HEDDLE_ASSUME(RequestHasBytes_M, !take || (req.bytes != '0 && req.bytes <= 14'd8192))
  `HEDDLE_ASSERT(AnsweredOnce_A, $onehot0(rsp_valid_o))
  `HEDDLE_ASSERT(DataAfterRequest_A, data_ready_o == '0 || cmd_valid)
  `HEDDLE_ASSERT(OfferHeld_A, m_axi_wvalid_o && !m_axi_wready_i |=>
                 m_axi_wvalid_o && $stable(m_axi_wdata_o))
endmodule
