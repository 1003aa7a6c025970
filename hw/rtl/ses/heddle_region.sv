// SPDX-License-Identifier: Apache-2.0
// Memory regions: may a peer's packet write or read, and where.
//
// Exact:    the whole key is compared. A provider key names its entry, a user key is looked for in
//           the `RegionWays` entries of its set.
// Whole:    the range of the message is checked in each packet, so that all packets of a
//           message get the same answer and none is placed when its end is outside.
// Order:    BAD_MKEY (no enabled entry of the key for this JobID and endpoint), PERM_VIOLATION,
//           BAD_ADDR, as in host/lib/semantics/rma_check.h.
// Latency:  the answer to `req_i` is there in the next cycle, and only in that cycle; not to what was
//           asked while `ready_o` was low.
// Drain:    a token goes through the accept stage and behind the writes of all packets accepted
//           before; when it came back on `drained_i`, heddle_return_tx is swept; the table port answers when the
//           return data that were to be read before have been.

`include "heddle_assert.svh"

module heddle_region
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic           tbl_valid_i,     // TableRegion.
  input  table_req_t     tbl_req_i,
  output table_rsp_t     tbl_rsp_o,

  input  rma_request_t   req_i,
  output rma_answer_t    answer_o,
  output logic           ready_o,

  output logic           drain_valid_o,   // Token for the accept stage.
  input  logic           drain_ready_i,
  input  logic           drained_i,

  output logic           sweep_valid_o,   // heddle_return_tx.
  output logic [RegionW-1:0] sweep_region_o,
  input  logic           sweep_done_i,
  input  logic [SeqW-1:0] back_issued_i,  // Packets of return data.
  input  logic [SeqW-1:0] back_done_i,    // Of these, with memory read.

  output logic           idle_o
);
  localparam int unsigned Ways = RegionWays;
  localparam int unsigned WayW = $clog2(Ways);
  localparam int unsigned Sets = NumRegion / Ways;
  localparam int unsigned SetW = $clog2(Sets);

  typedef struct packed {
    logic        enable;
    logic [63:0] key;
    logic [63:0] iova;
    logic [63:0] length;
    logic [63:0] address_base;
    logic [23:0] job_id;
    logic [11:0] pid_on_fep;
    logic [11:0] resource_index;
    logic [7:0]  flags;
    logic [7:0]  owner;
    logic [7:0]  counter;
  } entry_t;

  function automatic logic is_provider(input logic [63:0] key);
    is_provider = (key & KeyProvider) != '0;
  endfunction

  // A user key's set is folded from its six bytes.
  function automatic logic [SetW-1:0] set_of(input logic [63:0] key);
    logic [7:0] folded;
    folded = '0;
    for (int unsigned i = 0; i < KeyUserBits / 8; i++) folded = folded ^ key[8*i +: 8];
    set_of = is_provider(key) ? key[WayW +: SetW] : folded[SetW-1:0];
  endfunction

  // --------------------------------------------------------------- table port
  typedef enum logic [2:0] {
    TblIdle  = 3'd0,
    TblRead  = 3'd1,  // The memory is being read.
    TblToken = 3'd2,  // The token waits for the accept stage.
    TblDrain = 3'd3,  // The token is on its way.
    TblSweep = 3'd4,  // Return data are looked through.
    TblReads = 3'd5,  // Those on their way are read.
    TblDone  = 3'd6
  } tbl_state_e;

  tbl_state_e       tbl_d, tbl_q;
  logic             tbl_error_q, start, exists, write, read;
  logic [WayW-1:0]  tbl_way;
  logic [SetW-1:0]  tbl_set;
  region_cfg_t      written, answered, answered_q;
  entry_t           wentry, rentry;
  logic [Ways-1:0]  bank_ready, bank_error;

  assign start   = tbl_valid_i && tbl_q == TblIdle && (&bank_ready);
  assign exists  = 32'(tbl_req_i.index) < NumRegion;
  assign write   = start && exists && tbl_req_i.op == TableOpWrite;
  assign read    = start && exists && tbl_req_i.op == TableOpRead;
  assign tbl_way = tbl_req_i.index[WayW-1:0];
  assign tbl_set = tbl_req_i.index[WayW +: SetW];
  assign written = tbl_req_i.data;
  assign wentry  = {written.enable[0], written.key, written.iova, written.length,
                    written.address_base, written.job_id[23:0], written.pid_on_fep[11:0],
                    written.resource_index[11:0], written.flags, written.function_,
                    written.counter};

  always_comb begin
    tbl_d = tbl_q;
    unique case (tbl_q)
      TblIdle: begin
        if (start) begin
          tbl_d = TblDone;
          if (exists && tbl_req_i.op == TableOpRead)  tbl_d = TblRead;
          if (exists && tbl_req_i.op == TableOpDrain) tbl_d = TblToken;
        end
      end
      TblRead:  tbl_d = TblDone;
      TblToken: if (drain_ready_i) tbl_d = TblDrain;
      TblDrain: if (drained_i) tbl_d = TblSweep;
      TblSweep: if (sweep_done_i) tbl_d = TblReads;
      TblReads: if ($signed(back_done_i - issued_q) >= 0) tbl_d = TblDone;
      default:  tbl_d = TblIdle;
    endcase
  end
  assign drain_valid_o  = tbl_q == TblToken;
  assign sweep_valid_o  = tbl_q == TblSweep;
  assign sweep_region_o = tbl_req_i.index[RegionW-1:0];

  logic [SeqW-1:0] issued_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tbl_q       <= TblIdle;
      tbl_error_q <= 1'b0;
    end else begin
      tbl_q <= tbl_d;
      if (start) tbl_error_q <= !exists;
    end
  end
  always_ff @(posedge clk_i) begin
    if (tbl_q == TblRead) answered_q <= answered;
    if (tbl_q == TblSweep) issued_q <= back_issued_i;
  end

  always_comb begin
    tbl_rsp_o = '0;
    if (tbl_q == TblDone) begin
      tbl_rsp_o.done  = 1'b1;
      tbl_rsp_o.error = tbl_error_q;
      tbl_rsp_o.data  = answered_q;
    end
  end

  // ------------------------------------------------------------------- lookup
  // Each bank holds one way of all sets and judges its entry by itself, so that the ranges
  // are checked beside the keys.
  rma_request_t           req_q;
  logic [Ways-1:0]        found;
  logic [Ways-1:0][63:0]  way_iova;
  logic [Ways-1:0][5:0]   way_code;
  logic [Ways-1:0][7:0]   way_owner, way_counter;
  logic [SetW-1:0]        raddr_q;
  logic [RegionW-1:0]     region;
  logic [SetW-1:0]        raddr;
  logic [Ways-1:0][$bits(entry_t)-1:0] words;
  assign raddr   = read ? tbl_set : set_of(req_i.key);
  assign ready_o = (&bank_ready) && !read;

  always_ff @(posedge clk_i) begin
    req_q   <= req_i;
    raddr_q <= raddr;
  end

  for (genvar w = 0; w < Ways; w++) begin : gen_ways
    entry_t      e;
    logic        mine, key_ok, scope_ok;
    logic [63:0] offset;
    logic [64:0] reach;
    logic        unused_entry;
    assign unused_entry = ^e;
    heddle_mem #(.Width($bits(entry_t)), .Depth(Sets)) u_bank (
      .clk_i, .rst_ni,
      .wen_i(write && tbl_way == WayW'(w)), .waddr_i(tbl_set), .wdata_i(wentry),
      .raddr_i(raddr), .rdata_o(words[w]),
      .error_o(bank_error[w]), .ready_o(bank_ready[w])
    );
    assign e        = words[w];
    assign mine     = !is_provider(req_q.key) || req_q.key[WayW-1:0] == WayW'(w);
    assign key_ok   = e.enable && e.key == req_q.key;
    assign scope_ok = e.job_id == req_q.job_id &&
                      ((e.flags & RegionFlagEndpoint) == '0 ||
                       (((e.flags & RegionFlagRelative) != '0) == req_q.rel &&
                        e.pid_on_fep == req_q.pid_on_fep &&
                        e.resource_index == (req_q.resource_index & ~12'(RiBlock - 1))));
    assign found[w] = mine && key_ok && scope_ok;

    // Wraps for an address below the region, and is then beyond its end: a region ends below 2^64.
    assign offset = req_q.offset - e.address_base;
    assign reach  = {1'b0, offset} + 65'(req_q.length);
    assign way_iova[w]  = e.iova + offset + 64'(req_q.message_offset);
    assign way_owner[w] = e.owner;
    assign way_counter[w] = e.counter;
    always_comb begin
      way_code[w] = ReturnCodeOk;
      if ((e.flags & req_q.needs) != req_q.needs) way_code[w] = ReturnCodePermViolation;
      else if (64'(req_q.length) > e.length)      way_code[w] = ReturnCodeUnsupportedSize;
      else if (reach > {1'b0, e.length})          way_code[w] = ReturnCodeBadAddr;
    end
  end

  logic [63:0] iova;
  logic [5:0]  code;
  logic [7:0]  owner, counter;
  always_comb begin
    iova  = '0;
    code  = '0;
    owner = '0;
    counter = '0;
    region = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (found[w]) begin
        iova  = iova | way_iova[w];
        code  = code | way_code[w];
        owner = owner | way_owner[w];
        counter = counter | way_counter[w];
        region = region | {raddr_q, WayW'(w)};
      end
    end
    answer_o.code  = found == '0 ? ReturnCodeBadMkey : return_code_e'(code);
    answer_o.iova  = iova;
    answer_o.owner = owner;
    answer_o.counter = counter;
    answer_o.region = region;
  end

  always_comb begin
    rentry   = words[tbl_way];
    answered = '0;
    answered.key            = rentry.key;
    answered.iova           = rentry.iova;
    answered.length         = rentry.length;
    answered.address_base   = rentry.address_base;
    answered.job_id         = 32'(rentry.job_id);
    answered.pid_on_fep     = 16'(rentry.pid_on_fep);
    answered.resource_index = 16'(rentry.resource_index);
    answered.flags          = rentry.flags;
    answered.function_      = rentry.owner;
    answered.enable         = 8'(rentry.enable);
    answered.counter        = rentry.counter;
  end

  assign idle_o = !tbl_valid_i && tbl_q == TblIdle && (&bank_ready);

  logic unused_bits;
  assign unused_bits = ^{tbl_req_i, written, bank_error};

  if ((NumRegion & (NumRegion - 1)) != 0 || NumRegion > 1024 || NumRegion < 2 * Ways) begin
    : gen_bad_size
    $error("NumRegion must be a power of two of at most 1024");
  end

  // Firmware gives a key to one entry at a time.
  `HEDDLE_ASSERT(OneWay_A, (&bank_ready) |-> $onehot0(found))
endmodule
