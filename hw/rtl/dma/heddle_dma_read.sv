// SPDX-License-Identifier: Apache-2.0
// DMA read engine: many tagged AXI4 reads outstanding, each client served in order.
//
// Long:      payload bursts of more than LongBytes share one id: the host returns them one after another, so the
//            first is complete when its own beats are there, not those of all that are outstanding.
// Ordered:   a client's data returns in the order of its requests, whatever
//            order the host returns tags in; clients do not wait for each other.
// Aligned:   the first byte of a request is in lane 0 of its first beat.
// Reserved:  a read is issued only when room for all of its data is free.
// Errors:    `rsp_error_o` with `rsp_last_o` tells that any part was refused;
//            the data of such a request is undefined but complete in length.
// Splits requests at 4 KiB and at 256 beats.

`include "heddle_assert.svh"

module heddle_dma_read
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512,  // 64, 128, 256 or 512.
  localparam int unsigned StrbW = DataW / 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumRd-1:0]                       req_valid_i,
  output logic [NumRd-1:0]                       req_ready_o,
  input  logic [NumRd-1:0][$bits(dma_req_t)-1:0] req_i,

  output logic [NumRd-1:0]                       rsp_valid_o,
  input  logic [NumRd-1:0]                       rsp_ready_i,
  output logic [NumRd-1:0][DataW-1:0]            rsp_data_o,
  output logic [NumRd-1:0]                       rsp_last_o,   // Last beat of a request.
  output logic [NumRd-1:0]                       rsp_error_o,

  output logic                                   m_axi_arvalid_o,
  input  logic                                   m_axi_arready_i,
  output logic [8:0]                             m_axi_arid_o,
  output logic [63:0]                            m_axi_araddr_o,
  output logic [7:0]                             m_axi_arlen_o,
  output logic [2:0]                             m_axi_arsize_o,
  output logic [1:0]                             m_axi_arburst_o,
  output logic [7:0]                             m_axi_aruser_o,
  input  logic                                   m_axi_rvalid_i,
  output logic                                   m_axi_rready_o,
  input  logic [8:0]                             m_axi_rid_i,
  input  logic [DataW-1:0]                       m_axi_rdata_i,
  input  logic [1:0]                             m_axi_rresp_i,
  input  logic                                   m_axi_rlast_i,

  output logic                                   error_o,      // Strobe: a request was refused.
  output logic                                   idle_o        // Nothing outstanding or buffered.
);
  localparam int unsigned LaneW = $clog2(StrbW);
  localparam int unsigned IdW   = 6;                // Of one client.
  localparam int unsigned PlaceW = 15 - LaneW;      // Beats of the largest ring.
  localparam int unsigned ClientW = $clog2(NumRd);

  // Upper bits of AXI ids: the client's number, for payload also these.
  localparam logic [2:0]  MoreId    = 3'd6;  // Tags of 2^IdW and more.
  localparam logic [2:0]  LongId    = 3'd7;
  localparam int unsigned LongBytes = 512;
  localparam int unsigned LongDepth = 32768 / LongBytes;  // As many have room in the ring.

  // Bursts per client as log2.
  function automatic int unsigned tag_bits(input int unsigned client);
    case (client)
      RdPayload: tag_bits = 7;
      RdTxDesc:  tag_bits = 5;
      RdRxDesc:  tag_bits = 4;
      RdAv:      tag_bits = 6;
      RdSpill:   tag_bits = 4;
      default:   tag_bits = 1;
    endcase
  endfunction

  function automatic int unsigned ring_bytes(input int unsigned client);
    case (client)
      RdPayload: ring_bytes = 32768;
      RdTxDesc:  ring_bytes = 16384;
      default:   ring_bytes = 4096;
    endcase
  endfunction

  // ------------------------------------------------------------ clients
  logic [NumRd-1:0]             burst_valid, burst_ready, burst_long, refused, client_idle;
  logic [NumRd-1:0][IdW:0]      burst_tag;
  logic [NumRd-1:0][PlaceW-1:0] burst_base;
  logic [NumRd-1:0][63:0]       burst_addr;
  logic [NumRd-1:0][7:0]        burst_len, burst_owner;

  logic [NumRd-1:0]             beat_valid;
  logic [PlaceW-1:0]            beat_place;
  logic [DataW-1:0]             beat_data;
  logic                         beat_last, beat_error;
  logic [IdW:0]                 beat_tag;

  for (genvar g = 0; g < NumRd; g++) begin : gen_client
    localparam int unsigned TagW  = tag_bits(g);
    localparam int unsigned BeatW = $clog2(ring_bytes(g)) - LaneW;
    logic [TagW-1:0]  tag;
    logic [BeatW-1:0] base;
    assign burst_tag[g]  = (IdW + 1)'(tag);
    assign burst_base[g] = PlaceW'(base);

    heddle_dma_read_client #(
      .DataW     (DataW),
      .TagW      (TagW),
      .RingBytes (ring_bytes(g)),
      .LongBytes (LongBytes)
    ) u_client (
      .clk_i,
      .rst_ni,
      .req_valid_i   (req_valid_i[g]),
      .req_ready_o   (req_ready_o[g]),
      .req_i         (req_i[g]),
      .burst_valid_o (burst_valid[g]),
      .burst_ready_i (burst_ready[g]),
      .burst_tag_o   (tag),
      .burst_base_o  (base),
      .burst_addr_o  (burst_addr[g]),
      .burst_len_o   (burst_len[g]),
      .burst_owner_o (burst_owner[g]),
      .burst_long_o  (burst_long[g]),
      .beat_valid_i  (beat_valid[g]),
      .beat_place_i  (beat_place[BeatW-1:0]),
      .beat_data_i   (beat_data),
      .beat_last_i   (beat_last),
      .beat_tag_i    (beat_tag[TagW-1:0]),
      .beat_error_i  (beat_error),
      .rsp_valid_o   (rsp_valid_o[g]),
      .rsp_ready_i   (rsp_ready_i[g]),
      .rsp_data_o    (rsp_data_o[g]),
      .rsp_last_o    (rsp_last_o[g]),
      .rsp_error_o   (rsp_error_o[g]),
      .refused_o     (refused[g]),
      .idle_o        (client_idle[g])
    );
  end

  // -------------------------------------------------------------- issue
  logic               tables_ready, ar_ready, offered, issue, unused_last;
  logic [ClientW-1:0] winner;

  heddle_rr_arbiter #(.NumSrc(NumRd)) u_arbiter (
    .clk_i,
    .rst_ni,
    .valid_i (burst_valid),
    .last_i  ({NumRd{1'b1}}),
    .ready_o (burst_ready),
    .valid_o (offered),
    .last_o  (unused_last),
    .idx_o   (winner),
    .ready_i (ar_ready && tables_ready)
  );
  assign issue = offered && ar_ready && tables_ready;

  // Ids that are not LongId have one burst at a time.
  logic [8:0] issue_id;
  logic       is_payload, is_long, long_issue;
  assign is_payload = winner == ClientW'(RdPayload);
  assign is_long    = is_payload && burst_long[RdPayload];
  assign long_issue = issue && is_long;
  assign issue_id   = is_long ? {LongId, IdW'(0)}
                              : {is_payload && burst_tag[winner][IdW] ? MoreId : 3'(winner), burst_tag[winner][IdW-1:0]};

  logic [1:0] unused_ar_count;
  heddle_fifo #(.Width(89), .Depth(2)) u_ar (
    .clk_i,
    .rst_ni,
    .valid_i (offered && tables_ready),
    .ready_o (ar_ready),
    .data_i  ({issue_id, burst_addr[winner], burst_len[winner], burst_owner[winner]}),
    .valid_o (m_axi_arvalid_o),
    .ready_i (m_axi_arready_i),
    .data_o  ({m_axi_arid_o, m_axi_araddr_o, m_axi_arlen_o, m_axi_aruser_o}),
    .count_o (unused_ar_count)
  );
  assign m_axi_arsize_o  = 3'(LaneW);
  assign m_axi_arburst_o = 2'b01;

  // ------------------------------------------------------------- return
  // By id: place of a burst's first beat, and how far the burst is. Long ones: in order.
  logic [PlaceW-1:0] base, long_base;
  logic [IdW:0]      long_tag;
  logic              at_error, next_error, unused_long_ready, unused_long_valid;
  logic [7:0]        at_count, next_count;
  logic              r_valid_q, r_last_q, r_error_q, r_long;
  logic [DataW-1:0]  r_data_q;
  logic [8:0]        r_id_q;
  logic [1:0]        table_ready, unused_error;
  logic [$clog2(LongDepth):0] unused_long_count;

  heddle_mem #(.Width(PlaceW), .Depth(512)) u_base (
    .clk_i,
    .rst_ni,
    .wen_i   (issue && !is_long),
    .waddr_i (issue_id),
    .wdata_i (burst_base[winner]),
    .raddr_i (m_axi_rid_i),
    .rdata_o (base),
    .error_o (unused_error[0]),
    .ready_o (table_ready[0])
  );

  heddle_mem #(.Width(9), .Depth(512)) u_progress (
    .clk_i,
    .rst_ni,
    .wen_i   (r_valid_q),
    .waddr_i (r_id_q),
    .wdata_i ({next_error, next_count}),
    .raddr_i (m_axi_rid_i),
    .rdata_o ({at_error, at_count}),
    .error_o (unused_error[1]),
    .ready_o (table_ready[1])
  );
  assign tables_ready = &table_ready;

  heddle_fifo #(.Width(PlaceW + IdW + 1), .Depth(LongDepth)) u_long (
    .clk_i,
    .rst_ni,
    .valid_i (long_issue),
    .ready_o (unused_long_ready),
    .data_i  ({burst_base[winner], burst_tag[winner]}),
    .valid_o (unused_long_valid),
    .ready_i (r_valid_q && r_long && r_last_q),
    .data_o  ({long_base, long_tag}),
    .count_o (unused_long_count)
  );

  assign r_long     = r_id_q[8:6] == LongId;
  assign beat_error = at_error || r_error_q;
  assign next_error = beat_error && !r_last_q;
  assign next_count = r_last_q ? '0 : at_count + 8'd1;

  assign beat_data  = r_data_q;
  assign beat_last  = r_last_q;
  assign beat_place = (r_long ? long_base : base) + PlaceW'(at_count);
  assign beat_tag   = r_long ? long_tag : {r_id_q[8:6] == MoreId, r_id_q[IdW-1:0]};
  always_comb begin
    for (int unsigned i = 0; i < NumRd; i++) begin
      beat_valid[i] = r_valid_q && (r_id_q[8:6] == 3'(i) || (i == RdPayload && r_id_q[8:6] >= MoreId));
    end
  end
  assign m_axi_rready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (m_axi_rvalid_i) begin
      r_data_q  <= m_axi_rdata_i;
      r_id_q    <= m_axi_rid_i;
      r_last_q  <= m_axi_rlast_i;
      r_error_q <= m_axi_rresp_i[1];
    end
  end

  // Refused requests not reported yet: several clients may find one in a cycle.
  logic [7:0] reports_q, found;
  always_comb begin
    found = '0;
    for (int unsigned i = 0; i < NumRd; i++) found = found + 8'(refused[i]);
  end
  assign error_o = reports_q != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      r_valid_q <= 1'b0;
      reports_q <= '0;
    end else begin
      r_valid_q <= m_axi_rvalid_i;
      reports_q <= reports_q + found - 8'(error_o);
    end
  end

  assign idle_o = &client_idle && !m_axi_arvalid_o && !r_valid_q && tables_ready && !error_o;

  logic unused_bus;
  assign unused_bus = ^{m_axi_rresp_i[0], burst_long};

  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : gen_bad_width
    $error("DataW must be 64, 128, 256 or 512");
  end

  if (NumRd > MoreId) begin : gen_bad_clients
    $error("Two of eight numbers are those of payload's other ids");
  end

  `HEDDLE_ASSERT(LongRoom_A, !long_issue || unused_long_ready)
  `HEDDLE_ASSUME(LongExpected_M, !(r_valid_q && r_long) || unused_long_valid)
  `HEDDLE_ASSERT(OfferHeld_A, m_axi_arvalid_o && !m_axi_arready_i |=>
                 m_axi_arvalid_o && $stable(m_axi_araddr_o))
endmodule
