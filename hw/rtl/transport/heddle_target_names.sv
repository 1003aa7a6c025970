// SPDX-License-Identifier: Apache-2.0
// Which target PDC serves whom: {source FA, spdcid} has a place in one of two sets of 4 ways, by a keyed hash. Of
// heddle_accept, whose stages 0, 1 and 4 these are.
//
// Keyed:  the key keeps peers from naming themselves so that they fill the sets of another. It is taken from
//         `hash_key` once, when no PDC is open and nothing is between `look_i` and its end.
// Free:   the indices run out first. While `ready_o` is high and one is free, `pdc_o` without a hit is one, the same until it is taken.
// Closed: a PDC that is closed leaves a tombstone (heddle_tombstones).
// Latency: answers one cycle after `look_i`, `grave_*` two; no other look before the end of one that may open or close.

`include "heddle_assert.svh"

module heddle_target_names
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            tick_i,
  input  transport_cfg_t  transport_i,

  input  logic            look_i,
  input  logic            between_i,     // No look, and nothing after one that has not ended.
  input  rx_packet_t      pkt_i,         // By its name;
  input  logic            looked_i,      // in the next cycle,
  input  logic [31:0]     start_i,       // with its Start_PSN;
  input  logic            job_i,         // or by this one, of a PDC that is open:
  input  logic            job_ipv6_i,
  input  logic [127:0]    job_fa_i,
  input  logic [15:0]     job_spdcid_i,

  output logic            hit_o,
  output logic [PdcW-1:0] pdc_o,         // With hit_o its PDC, else a free one.
  output logic            room_o,        // There is an index and a way for a new one.
  output logic            grave_found_o, // Its PDC was closed not long ago.
  output logic            grave_room_o,

  input  logic            create_i,      // The name that was looked up last opens,
  input  logic            close_i,       // or closes,
  input  logic            keep_i,        // with a tombstone.
  input  logic            ipv6_i,
  input  logic [127:0]    fa_i,
  input  logic [15:0]     spdcid_i,
  input  logic [31:0]     start_psn_i,
  input  logic [PdcW-1:0] pdc_i,

  output logic [NumPdc-1:0] open_o,
  output logic [PdcW:0]   count_o,
  output logic            ready_o
);
  localparam int unsigned Tables = 2;
  localparam int unsigned Sets   = NumPdc / 2;
  localparam int unsigned Ways   = 4;
  localparam int unsigned SetW   = $clog2(Sets);
  localparam int unsigned Places = Tables * Ways;
  localparam int unsigned PlaceW = $clog2(Places);
  localparam int unsigned HashW  = Tables * SetW;
  localparam int unsigned NameW  = 128 + 16;
  localparam int unsigned KeyW   = NameW + HashW - 1;
  // Until firmware writes another: of the fraction of pi.
  localparam logic [191:0] DefaultKey = 192'h243f6a88_85a308d3_13198a2e_03707344_a4093822_299f31d0;

  // ------------------------------------------------------------------- indices
  logic [NumPdc-1:0] open_q;
  logic [PdcW:0]     count_q;
  logic              free, all_open;
  logic [PdcW-1:0]   free_pdc;
  assign open_o   = open_q;
  assign count_o  = count_q;
  assign all_open = count_q[PdcW];
  heddle_group_pick #(.NumSrc(NumPdc)) u_free (
    .clk_i, .rst_ni, .valid_i(~open_q), .drop_i(1'b0), .drop_idx_i('0), .valid_o(free), .idx_o(free_pdc),
    .take_i(create_i)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q  <= '0;
      count_q <= '0;
    end else begin
      if (create_i) open_q[pdc_i] <= 1'b1;
      if (close_i)  open_q[pdc_i] <= 1'b0;
      count_q <= count_q + (PdcW + 1)'(create_i) - (PdcW + 1)'(close_i);
    end
  end

  // ---------------------------------------------------------------------- hash
  logic [KeyW-1:0]             key_q;
  logic                        keyed_q;
  logic [NameW-1:0]            name;
  logic [Tables-1:0][SetW-1:0] set, set_q;
  assign name = job_i ? {job_fa_i, job_spdcid_i} : {pkt_i.source_fa, pkt_i.spdcid};
  heddle_toeplitz #(.DataW(NameW), .HashW(HashW)) u_hash (.key_i(key_q), .data_i(name), .hash_o(set));
  // Nothing may be in a set that the key after it does not lead to.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      key_q   <= DefaultKey[KeyW-1:0];
      keyed_q <= 1'b0;
    end else if (!keyed_q && transport_i.hash_key != '0 && count_q == '0 && between_i && !look_i) begin
      key_q   <= KeyW'(transport_i.hash_key);
      keyed_q <= 1'b1;
    end
  end

  // ---------------------------------------------------------------------- sets
  // A memory for each way, so that one is written without the others.
  typedef struct packed {
    logic         ipv6;
    logic [127:0] fa;
    logic [15:0]  spdcid;
  } name_t;
  name_t                   looked_q;
  target_way_t             written;
  logic [Places-1:0]       match, vacant, wen, way_ready, unused_error;
  logic [PlaceW-1:0]       way, way_q;
  always_comb begin
    written        = '0;
    written.valid  = create_i;
    written.ipv6   = ipv6_i;
    written.fa     = fa_i;
    written.spdcid = spdcid_i;
    written.pdc    = pdc_i;
    if (!create_i) written = '0;
  end
  logic [Places-1:0][PdcW-1:0] match_pdc;
  for (genvar p = 0; p < Places; p++) begin : gen_way
    target_way_t stored;
    heddle_mem #(.Width($bits(target_way_t)), .Depth(Sets)) u_way (
      .clk_i, .rst_ni, .wen_i(wen[p]), .waddr_i(set_q[p/Ways]), .wdata_i(written), .raddr_i(set[p/Ways]),
      .rdata_o(stored), .error_o(unused_error[p]), .ready_o(way_ready[p])
    );
    assign vacant[p]    = !stored.valid;
    assign match[p]     = stored.valid && stored.ipv6 == looked_q.ipv6 && stored.fa == looked_q.fa &&
                          stored.spdcid == looked_q.spdcid;
    assign match_pdc[p] = match[p] ? stored.pdc : '0;
    assign wen[p]       = (create_i || close_i) && way_q == PlaceW'(p);
  end

  // Of the two sets the emptier one takes a new PDC.
  logic [PdcW-1:0]          hit_pdc;
  logic [Tables-1:0][2:0]   vacancies;
  logic [Tables-1:0][1:0]   vacancy;
  logic                     table_;
  always_comb begin
    hit_pdc = '0;
    for (int unsigned p = 0; p < Places; p++) hit_pdc |= match_pdc[p];
    for (int unsigned t = 0; t < Tables; t++) begin
      vacancies[t] = ones_of_4(vacant[t*Ways +: Ways]);
      vacancy[t]   = '0;
      for (int unsigned i = 0; i < Ways; i++) begin
        if (vacant[t*Ways + i]) vacancy[t] = 2'(i);
      end
    end
    table_ = vacancies[1] > vacancies[0];
    way    = {table_, vacancy[table_]};
    if (match != '0) begin
      way = '0;
      for (int unsigned p = 0; p < Places; p++) way |= match[p] ? PlaceW'(p) : '0;
    end
  end
  assign hit_o  = match != '0;
  assign pdc_o  = hit_o ? hit_pdc : free_pdc;
  assign room_o = vacant != '0 && free;  // One that was just closed is not offered yet.

  logic look_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) look_q <= 1'b0;
    else         look_q <= look_i || job_i;
  end
  always_ff @(posedge clk_i) begin
    if (look_i || job_i) begin
      set_q    <= set;
      looked_q <= job_i ? {job_ipv6_i, job_fa_i, job_spdcid_i} : {pkt_i.ipv6, pkt_i.source_fa, pkt_i.spdcid};
    end
    if (look_q) way_q <= way;
  end

  // ---------------------------------------------------------------- tombstones
  logic graves_ready;
  heddle_tombstones u_tombstones (
    .clk_i, .rst_ni, .tick_i, .transport_i,
    .look_i(looked_i), .set_i({set_q[1][0], set_q[0]}), .fa_i(looked_q.fa), .spdcid_i(looked_q.spdcid), .start_i,
    .found_o(grave_found_o), .room_o(grave_room_o),
    .keep_i(keep_i && transport_i.safety_ticks != '0), .keep_start_i(start_psn_i),
    .ready_o(graves_ready)
  );
  assign ready_o = (&way_ready) && graves_ready && (free || all_open);

  logic unused_bits;
  assign unused_bits = ^{pkt_i, transport_i, unused_error};

  `HEDDLE_ASSERT(OpenCounted_A, 32'(count_q) == $countones(open_q))
  `HEDDLE_ASSERT(OneMatch_A, look_q |-> $onehot0(match))
  `HEDDLE_ASSERT(FreeIsTaken_A, create_i |-> free && free_pdc == pdc_i)
endmodule
