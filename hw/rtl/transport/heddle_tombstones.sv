// SPDX-License-Identifier: Apache-2.0
// PDCs that were closed at the target, for safety_ticks each: a SYN of one that comes late must
// not be executed again.
//
// Sure:    a PDC closed within safety_ticks is found. Others are not, but for one chance in 2^64: what
//          is kept of the source address is a hash, and being found wrongly costs a SYN another try.
// Bounded: a PDC may be closed, once for each `look_i`, only while `room_o` grants its tombstone a place.
// Latency: answers about the PDC named with `look_i` are valid in the next cycle.

module heddle_tombstones
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned Sets = NumPdc,
  parameter  int unsigned Ways = 4,
  localparam int unsigned SetW = $clog2(Sets)
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  transport_cfg_t transport_i,

  input  logic           look_i,
  input  logic [SetW-1:0] set_i,       // By a keyed hash of the next two.
  input  logic [127:0]   fa_i,
  input  logic [15:0]    spdcid_i,
  input  logic [31:0]    start_i,      // Start_PSN. With `look_i`, as the two before.
  output logic           found_o,
  output logic           room_o,

  input  logic           keep_i,       // The PDC named last is closed; `room_o` was high, two cycles before or more.
  input  logic [31:0]    keep_start_i, // Its Start_PSN.

  output logic           ready_o
);
  localparam int unsigned WayW = $clog2(Ways);

  typedef struct packed {
    logic [15:0] fa_hash;
    logic [15:0] spdcid;
    logic [31:0] start;
  } tombstone_t;
  localparam int unsigned StoneW = $bits(tombstone_t);

  logic [31:0] now_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)     now_q <= '0;
    else if (tick_i) now_q <= now_q + 1'b1;
  end

  logic [15:0]     fa_hash, fa_hash_q, spdcid_q;
  logic [31:0]     start_q;
  logic [SetW-1:0] set_q;
  always_comb begin
    fa_hash = '0;
    for (int unsigned i = 0; i < 8; i++) fa_hash = {fa_hash[14:0], fa_hash[15]} ^ fa_i[16 * i +: 16];
  end

  logic [Ways-1:0][StoneW-1:0] stones;
  logic [Ways-1:0]             sets_ready, unused_error;
  tombstone_t                  stone, kept;
  logic [WayW-1:0]             vacant, vacant_q;
  assign kept = {fa_hash_q, spdcid_q, keep_start_i};
  for (genvar w = 0; w < Ways; w++) begin : gen_stone
    heddle_mem #(.Width(StoneW), .Depth(Sets)) u_stones (
      .clk_i, .rst_ni, .wen_i(keep_i && vacant_q == WayW'(w)), .waddr_i(set_q), .wdata_i(kept),
      .raddr_i(set_i), .rdata_o(stones[w]), .error_o(unused_error[w]), .ready_o(sets_ready[w])
    );
  end
  always_ff @(posedge clk_i) begin
    if (look_i) begin
      set_q     <= set_i;
      fa_hash_q <= fa_hash;
      spdcid_q  <= spdcid_i;
      start_q   <= start_i;
    end
  end

  // A tombstone stands as long as it is young.
  logic [Ways-1:0] young, ages_ready;
  for (genvar w = 0; w < Ways; w++) begin : gen_way
    heddle_ages #(.Num(Sets)) u_ages (
      .clk_i, .rst_ni, .now_i(now_q), .span_i(transport_i.safety_ticks),
      .mark_i(keep_i && vacant_q == WayW'(w)), .mark_idx_i(set_q), .get_i(look_i), .get_idx_i(set_i),
      .young_o(young[w]), .ready_o(ages_ready[w])
    );
  end
  assign ready_o = (&sets_ready) && (&ages_ready);

  always_comb begin
    found_o = 1'b0;
    room_o  = 1'b0;
    vacant  = '0;
    stone   = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      stone = stones[w];
      if (!young[w]) begin
        room_o = 1'b1;
        vacant = WayW'(w);
      end else if (stone.fa_hash == fa_hash_q && stone.spdcid == spdcid_q && stone.start == start_q) begin
        found_o = 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    vacant_q <= vacant;
  end

  logic unused;
  assign unused = ^{unused_error, transport_i};
endmodule
