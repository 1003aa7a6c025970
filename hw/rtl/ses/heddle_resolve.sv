// SPDX-License-Identifier: Apache-2.0
// Resolves the peer of an operation through the cached address vector.
//
// Parks:    a miss takes a line of its set and parks its operation until the entry arrives; operations that hit
//           another line go on. Operations to a peer that is awaited park after it: ordered per {context, peer}.
// Checked:  an index outside the vector, an entry not valid or of the other address family,
//           or a read refused by the host gives status bad_peer (op.status untouched when
//           already not ok); it is not cached, and an operation that parked after it reads for itself.
// Operations with status != ok, NOPs pass without a lookup; a token steps aside until nothing
// of its context is parked. One token at a time.
// Invalidate: drops all lines of the context; an entry on the way serves who parked before.
// Waits:    with Parked operations parked, or when all lines of a set are awaited.

`include "heddle_assert.svh"

module heddle_resolve
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  parameter  int unsigned DataW = 512   // 64, 128, 256 or 512.
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic             ipv6_i,          // Family of the port's address.
  input  logic             op_valid_i,
  output logic             op_ready_o,
  input  tx_fetched_t      op_i,

  input  logic             invalidate_i,
  input  logic [TxW-1:0]   invalidate_ctx_i,

  output logic             rd_valid_o,      // Client RdAv, 32 bytes per request.
  input  logic             rd_ready_i,
  output dma_req_t         rd_req_o,
  input  logic             rd_rsp_valid_i,
  output logic             rd_rsp_ready_o,
  input  logic [DataW-1:0] rd_rsp_data_i,
  input  logic             rd_rsp_last_i,
  input  logic             rd_rsp_error_i,

  output logic             op_valid_o,
  input  logic             op_ready_i,
  output tx_resolved_t     op_o,

  output logic             idle_o
);
  localparam int unsigned Ways    = 4;
  localparam int unsigned Sets    = 512;
  localparam int unsigned Parked  = 64;  // Operations that wait.
  localparam int unsigned WayW    = $clog2(Ways);
  localparam int unsigned SetW    = $clog2(Sets);
  localparam int unsigned ParkW   = $clog2(Parked);
  localparam int unsigned EpochW  = 32;  // Invalidations of a context.

  // What an address-vector entry says about a peer.
  typedef struct packed {
    logic            ipv6;
    logic [127:0]    fa;
    logic [11:0]     pid_on_fep;
    logic [11:0]     resource_index;
    logic [HopW-1:0] hop;
  } peer_t;

  typedef struct packed {
    logic               used;
    logic               awaited;  // `peer` is not there yet; its low bits are the first slot parked for it.
    logic [TxW-1:0]     ctx;
    logic [31-SetW:0]   tag;
    logic [EpochW-1:0]  epoch;    // The context's, when its entry was requested.
    peer_t              peer;
  } line_t;

  // A parked operation.
  typedef struct packed {
    logic [WayW-1:0]   way;       // Its line.
    logic [EpochW-1:0] epoch;
    tx_fetched_t       fetched;
  } parked_t;

  // A read that is on its way: of the operation in `slot`, for all parked from `first` on.
  typedef struct packed {
    logic [ParkW-1:0] first;
    logic [ParkW-1:0] slot;
  } request_t;

  // Contexts start at different sets, so that their first peers do not collide.
  function automatic logic [SetW-1:0] set_of(logic [TxW-1:0] ctx, logic [SetW-1:0] index);
    set_of = index ^ {ctx, {(SetW - TxW){1'b0}}};
  endfunction

  // -------------------------------------------------------------------- epochs
  // In the cycle after an invalidation the new epoch is written, and operations of its context wait.
  logic              invalid_q;
  logic [TxW-1:0]    invalid_ctx_q;
  logic [EpochW-1:0] epoch_old, epoch_new, epoch;
  logic [1:0]        epoch_ready, unused_epoch_error;
  assign epoch_new = epoch_old + 1'b1;
  heddle_mem #(.Width(EpochW), .Depth(NumTx)) u_epochs (
    .clk_i, .rst_ni, .wen_i(invalid_q), .waddr_i(invalid_ctx_q), .wdata_i(epoch_new),
    .raddr_i(in_take ? op_i.op.ctx : s1_op.ctx), .rdata_o(epoch), .error_o(unused_epoch_error[0]),
    .ready_o(epoch_ready[0])
  );
  heddle_mem #(.Width(EpochW), .Depth(NumTx)) u_epochs_next (
    .clk_i, .rst_ni, .wen_i(invalid_q), .waddr_i(invalid_ctx_q), .wdata_i(epoch_new),
    .raddr_i(invalidate_ctx_i), .rdata_o(epoch_old), .error_o(unused_epoch_error[1]), .ready_o(epoch_ready[1])
  );

  // ------------------------------------------------------------------- lookup
  // An operation is looked up in the cycle after it was taken, and held until it
  // leaves or parks.
  logic            s1_valid_q, s1_done, in_take, mems_ready;
  tx_fetched_t     s1_q;
  tx_op_t          s1_op;
  logic [SetW-1:0] s1_set, s1_read_set;
  logic [Ways-1:0] line_wen, way_ready, unused_way_error, same, hit, awaited, vacant, busy;
  logic [SetW-1:0] line_waddr;
  line_t           line_wdata;
  logic [Ways-1:0][$bits(line_t)-1:0] lines;
  assign s1_op       = s1_q.op;
  assign s1_set      = set_of(s1_op.ctx, s1_op.peer[SetW-1:0]);
  assign s1_read_set = in_take ? set_of(op_i.op.ctx, op_i.op.peer[SetW-1:0]) : s1_set;

  peer_t            s1_peer;
  logic [ParkW-1:0] s1_first;  // Slot of the line that is awaited.
  for (genvar w = 0; w < Ways; w++) begin : gen_ways
    line_t line;
    logic  unused_line;
    assign line        = line_t'(lines[w]);
    assign unused_line = ^line.peer;
    heddle_mem #(.Width($bits(line_t)), .Depth(Sets)) u_lines (
      .clk_i, .rst_ni, .wen_i(line_wen[w]), .waddr_i(line_waddr), .wdata_i(line_wdata),
      .raddr_i(s1_read_set), .rdata_o(lines[w]), .error_o(unused_way_error[w]), .ready_o(way_ready[w])
    );
    assign same[w]    = line.used && line.ctx == s1_op.ctx && line.tag == s1_op.peer[31:SetW];
    assign hit[w]     = same[w] && !line.awaited && line.epoch == epoch;
    assign awaited[w] = same[w] && line.awaited;
    assign vacant[w]  = !line.used;
    assign busy[w]    = line.used && line.awaited;
  end
  always_comb begin
    s1_peer  = '0;
    s1_first = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (hit[w])     s1_peer  = s1_peer | lines[w][$bits(peer_t)-1:0];
      if (awaited[w]) s1_first = s1_first | lines[w][ParkW-1:0];
    end
  end

  // The line that a miss takes: a vacant one, or one of the others in turn.
  logic [WayW-1:0] turn_q, new_way, awaited_way;
  logic            way_free;
  always_comb begin
    new_way     = turn_q;
    awaited_way = '0;
    way_free    = !busy[turn_q];
    for (int unsigned w = 0; w < Ways; w++) begin
      if (vacant[w]) begin
        new_way  = WayW'(w);
        way_free = 1'b1;
      end
      if (awaited[w]) awaited_way = awaited_way | WayW'(w);
    end
  end

  // ------------------------------------------------------------------ parked
  // Those of one line form a list. The slot of the first stays taken, though it has left, as long as the line is awaited.
  logic [ParkW:0]   used_q, fresh_q;  // Slots taken; never taken so far.
  logic [ParkW-1:0] slot, returned, next, last_s1, last_out;
  logic             slot_free, returned_valid, slot_back, unused_back_ready;
  logic [ParkW-1:0] slot_back_number;
  logic [ParkW:0]   unused_back_count;
  logic             s1_append, s1_miss, s1_park;
  parked_t          park, out_parked;
  logic             unused_parked_error, unused_parked_ready;
  logic [ParkW-1:0] out_raddr;
  heddle_fifo #(.Width(ParkW), .Depth(Parked)) u_returned (
    .clk_i, .rst_ni, .valid_i(slot_back), .ready_o(unused_back_ready), .data_i(slot_back_number),
    .valid_o(returned_valid), .ready_i(s1_park && fresh_q[ParkW]), .data_o(returned), .count_o(unused_back_count)
  );
  assign slot      = fresh_q[ParkW] ? returned : fresh_q[ParkW-1:0];
  assign slot_free = !fresh_q[ParkW] || returned_valid;
  assign park.way     = s1_append ? awaited_way : new_way;
  assign park.epoch   = epoch;
  assign park.fetched = s1_q;
  heddle_mem #(.Width($bits(parked_t)), .Depth(Parked), .Init(1'b0)) u_parked (
    .clk_i, .rst_ni, .wen_i(s1_park), .waddr_i(slot), .wdata_i(park),
    .raddr_i(out_raddr), .rdata_o(out_parked), .error_o(unused_parked_error), .ready_o(unused_parked_ready)
  );
  // The next of each in its list; the last of each list, by its first.
  heddle_lookup #(.Width(ParkW), .Depth(Parked)) u_next (
    .clk_i, .wen_i(s1_append), .waddr_i(last_s1), .wdata_i(slot), .raddr_i(out_q.slot), .rdata_o(next)
  );
  heddle_lookup #(.Width(ParkW), .Depth(Parked)) u_last (
    .clk_i, .wen_i(s1_park), .waddr_i(s1_append ? s1_first : slot), .wdata_i(slot),
    .raddr_i(s1_first), .rdata_o(last_s1)
  );
  heddle_lookup #(.Width(ParkW), .Depth(Parked)) u_last_out (
    .clk_i, .wen_i(s1_park), .waddr_i(s1_append ? s1_first : slot), .wdata_i(slot),
    .raddr_i(out_q.first), .rdata_o(last_out)
  );

  // -------------------------------------------------------------------- reads
  logic      rd_valid_q, rd_free, rd_again;
  dma_req_t  rd_req_d, rd_req_q;
  logic      requested_ready, requested_valid;
  request_t    requested_in, requested;
  logic [ParkW:0] requested_count;
  logic      entry_valid, entry_last, entry_error, entry_take;
  av_entry_t entry;

  assign rd_free    = !rd_valid_q || rd_ready_i;
  assign requested_in   = rd_again ? out_q : {slot, slot};
  assign rd_valid_o = rd_valid_q;
  assign rd_req_o   = rd_req_q;
  always_comb begin
    rd_req_d.addr  = (rd_again ? out_parked.fetched.av_base : s1_q.av_base) +
                     {27'b0, rd_again ? park_op.peer : s1_op.peer, 5'b0};
    rd_req_d.owner = rd_again ? park_op.owner : s1_op.owner;
    rd_req_d.bytes = 14'($bits(av_entry_t) / 8);
  end

  heddle_fifo #(.Width($bits(request_t)), .Depth(Parked)) u_requested (
    .clk_i, .rst_ni, .valid_i(rd_again || s1_miss), .ready_o(requested_ready), .data_i(requested_in),
    .valid_o(requested_valid), .ready_i(entry_take), .data_o(requested), .count_o(requested_count)
  );

  heddle_gather #(.DataW(DataW), .Bits(256)) u_gather (
    .clk_i, .rst_ni, .words_i(8'd1),
    .beat_valid_i(rd_rsp_valid_i), .beat_ready_o(rd_rsp_ready_o), .beat_data_i(rd_rsp_data_i),
    .beat_last_i(rd_rsp_last_i), .beat_error_i(rd_rsp_error_i),
    .word_valid_o(entry_valid), .word_ready_i(entry_take), .word_data_o(entry),
    .word_last_o(entry_last), .word_error_o(entry_error)
  );

  // ------------------------------------------------------------ what an entry ends
  // The operations of its line leave one after the other. An entry that was requested for in an earlier epoch, or that
  // names no peer, serves the first alone: the next one reads again.
  typedef enum logic [1:0] { OutIdle, OutLeave, OutEnd } out_state_e;
  out_state_e        out_state_q;
  request_t            out_q;           // First of the list; next to leave.
  peer_t             peer_q;
  logic              bad_q, began_q;  // The one that read has left.
  logic [EpochW-1:0] began_epoch_q;
  logic              out_ready, served, leave, last, fill;
  assign entry_take = out_state_q == OutIdle && entry_valid && requested_valid;
  assign served     = !began_q || (!bad_q && out_parked.epoch == began_epoch_q);
  assign last       = out_q.slot == last_out;
  assign leave      = out_state_q == OutLeave && served && out_ready;
  assign rd_again   = out_state_q == OutLeave && !served && rd_free;
  assign fill       = leave && last;
  always_comb begin
    out_raddr = out_q.slot;
    if (entry_take) out_raddr = requested.slot;
    else if (leave) out_raddr = next;
  end
  assign slot_back        = out_state_q == OutEnd || (leave && (out_q.slot != out_q.first || last));
  assign slot_back_number = out_state_q == OutEnd ? out_q.first : out_q.slot;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      out_state_q <= OutIdle;
    end else begin
      unique case (out_state_q)
        OutIdle:  if (entry_take) out_state_q <= OutLeave;
        OutLeave: begin
          if (fill)          out_state_q <= out_q.slot == out_q.first ? OutIdle : OutEnd;
          else if (rd_again) out_state_q <= OutIdle;
        end
        default:  out_state_q <= OutIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (entry_take) begin
      out_q                 <= requested;
      began_q               <= 1'b0;
      peer_q.ipv6           <= (entry.flags & AvFlagIpv6) != '0;
      peer_q.fa             <= {entry.fa_hi, entry.fa_lo};
      peer_q.pid_on_fep     <= entry.pid_on_fep[11:0];
      peer_q.resource_index <= entry.resource_index[11:0];
      peer_q.hop            <= entry.next_hop[HopW-1:0];
      bad_q <= entry_error || (entry.flags & AvFlagValid) == '0 ||
               ((entry.flags & AvFlagIpv6) != '0) != ipv6_i || 32'(entry.next_hop) >= NumHop;
    end else if (leave) begin
      out_q.slot <= next;
      began_q    <= 1'b1;
      if (!began_q) began_epoch_q <= out_parked.epoch;
    end
  end

  // ------------------------------------------------------------------- decision
  // Parked operations go first.
  logic                     s1_valid, s1_pass, s1_range, s1_leave, s1_aside, token_q, token_due, token_leave;
  logic [TxW-1:0]           token_ctx_q;
  logic [GenW-1:0]          token_gen_q;
  logic [NumTx-1:0][ParkW:0] parked_q;     // Operations of each context.
  assign token_due   = token_q && parked_q[token_ctx_q] == '0;
  assign token_leave = token_due && out_state_q != OutLeave && out_ready;
  assign s1_pass   = s1_op.token || s1_op.status != StatusOk || s1_op.opcode == OpcodeNop;
  assign s1_range  = s1_op.peer < s1_q.av_entries;
  assign s1_valid  = s1_valid_q && !(invalid_q && invalid_ctx_q == s1_op.ctx);
  assign s1_append = s1_valid && !s1_pass && s1_range && awaited != '0 && slot_free &&
                     !(fill && out_q.first == s1_first);
  assign s1_miss   = s1_valid && !s1_pass && s1_range && awaited == '0 && hit == '0 && way_free && slot_free &&
                     rd_free && !rd_again && !fill;
  assign s1_park   = s1_append || s1_miss;
  assign s1_leave  = s1_valid && out_state_q != OutLeave && out_ready && !token_due && !s1_op.token &&
                     (s1_pass || !s1_range || hit != '0);
  assign s1_aside  = s1_valid_q && s1_op.token && !token_q;
  assign s1_done   = s1_leave || s1_park || s1_aside;

  assign mems_ready = (&way_ready) && (&epoch_ready);
  assign op_ready_o = (!s1_valid_q || s1_done) && mems_ready;
  assign in_take    = op_valid_i && op_ready_o;

  tx_op_t park_op;
  assign park_op = out_parked.fetched.op;
  always_comb begin
    line_wen   = '0;
    line_wdata = '0;
    line_waddr = s1_set;
    line_wdata.used    = 1'b1;
    line_wdata.awaited = 1'b1;
    line_wdata.ctx     = s1_op.ctx;
    line_wdata.tag     = s1_op.peer[31:SetW];
    line_wdata.epoch   = epoch;
    line_wdata.peer    = $bits(peer_t)'(slot);
    if (s1_miss) line_wen[new_way] = 1'b1;
    if (fill) begin
      line_wen[out_parked.way] = 1'b1;
      line_waddr         = set_of(park_op.ctx, park_op.peer[SetW-1:0]);
      line_wdata.used    = !bad_q;
      line_wdata.awaited = 1'b0;
      line_wdata.ctx     = park_op.ctx;
      line_wdata.tag     = park_op.peer[31:SetW];
      line_wdata.epoch   = out_parked.epoch;
      line_wdata.peer    = peer_q;
    end
  end

  tx_resolved_t out;
  peer_t        out_peer;
  logic [1:0]   out_count;
  always_comb begin
    out_peer = out_state_q == OutLeave ? peer_q : s1_peer;
    out.op   = out_state_q == OutLeave ? park_op : s1_op;
    if (out_state_q == OutLeave ? bad_q : !s1_pass && !s1_range) out.op.status = StatusBadPeer;
    if (out_state_q != OutLeave && token_due) begin
      out.op       = '0;
      out.op.token = 1'b1;
      out.op.ctx   = token_ctx_q;
      out.op.gen   = token_gen_q;
    end
    out.ipv6           = out_peer.ipv6;
    out.fa             = out_peer.fa;
    out.pid_on_fep     = out_peer.pid_on_fep;
    out.resource_index = out_peer.resource_index;
    out.hop            = out_peer.hop;
  end

  heddle_fifo #(.Width($bits(out)), .Depth(2)) u_out (
    .clk_i, .rst_ni, .valid_i(leave || s1_leave || token_leave), .ready_o(out_ready), .data_i(out),
    .valid_o(op_valid_o), .ready_i(op_ready_i), .data_o(op_o), .count_o(out_count)
  );

  // --------------------------------------------------------------------- state
  assign idle_o = !op_valid_i && !s1_valid_q && used_q == '0 && !token_q && !op_valid_o && !invalid_q && mems_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      rd_valid_q <= 1'b0;
      invalid_q  <= 1'b0;
      turn_q     <= '0;
      used_q     <= '0;
      fresh_q    <= '0;
      token_q    <= 1'b0;
      parked_q   <= '0;
    end else begin
      s1_valid_q <= in_take || (s1_valid_q && !s1_done);
      rd_valid_q <= rd_again || s1_miss || (rd_valid_q && !rd_ready_i);
      invalid_q  <= invalidate_i;
      // Past a line that is awaited, too.
      if (s1_miss || (s1_valid_q && !way_free)) turn_q <= turn_q + 1'b1;
      used_q <= used_q + (ParkW+1)'(s1_park) - (ParkW+1)'(slot_back);
      if (s1_park && !fresh_q[ParkW]) fresh_q <= fresh_q + 1'b1;
      token_q <= s1_aside || (token_q && !token_leave);
      for (int unsigned i = 0; i < NumTx; i++) begin
        parked_q[i] <= parked_q[i] + (ParkW+1)'(s1_park && s1_op.ctx == TxW'(i)) -
                       (ParkW+1)'(leave && park_op.ctx == TxW'(i));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (in_take) s1_q <= op_i;
    if (s1_aside) begin
      token_ctx_q <= s1_op.ctx;
      token_gen_q <= s1_op.gen;
    end
    if (rd_free) rd_req_q <= rd_req_d;
    invalid_ctx_q <= invalidate_ctx_i;
  end

  logic unused;
  assign unused = ^{out_parked.fetched.av_entries, entry, entry_last, out_count, requested_count, unused_way_error,
                    unused_epoch_error, unused_parked_error, unused_parked_ready, unused_back_ready,
                    unused_back_count};

  `HEDDLE_ASSERT(RequestedRoom_A, (rd_again || s1_miss) |-> requested_ready)
  `HEDDLE_ASSERT(OneRead_A, !(rd_again && s1_miss))
  `HEDDLE_ASSERT(OneLine_A, s1_valid_q && mems_ready |-> $onehot0(hit | awaited))
  `HEDDLE_ASSERT(OneWrite_A, $onehot0(line_wen))
  `HEDDLE_ASSERT(SlotsCounted_A, used_q <= (ParkW+1)'(Parked) && !(slot_back && used_q == '0))
  `HEDDLE_ASSERT(OrderedOffer_A, op_valid_o && !op_ready_i |=> op_valid_o && $stable(op_o))
endmodule
