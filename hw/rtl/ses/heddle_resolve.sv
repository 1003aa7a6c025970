// SPDX-License-Identifier: Apache-2.0
// Resolves the peer of an operation through the cached address vector.
//
// Parks:    a miss parks its operation until the entry arrives; operations that hit
//           another line go on. Ordered per {context, peer}.
// Checked:  an index outside the vector, an entry not valid or of the other address family,
//           or a read refused by the host gives status bad_peer (op.status untouched when
//           already not ok).
// Operations with status != ok, NOPs pass without a lookup; a token passes when nothing
// is parked.
// Invalidate: drops all lines of the context; entries on the way are not kept.

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
  localparam int unsigned Lines    = 64;
  localparam int unsigned LineW    = $clog2(Lines);
  localparam int unsigned Parked   = 16;  // Operations that wait.
  localparam int unsigned ParkW    = $clog2(Parked);
  localparam int unsigned PendingW = ParkW + 1;

  // What an address-vector entry says about a peer.
  typedef struct packed {
    logic            ipv6;
    logic [127:0]    fa;
    logic [11:0]     pid_on_fep;
    logic [11:0]     resource_index;
    logic [HopW-1:0] hop;
  } peer_t;

  typedef struct packed {
    logic [TxW-1:0] ctx;
    logic [31:0]    index;
    peer_t          peer;
  } line_t;

  // ------------------------------------------------------------------- lookup
  // An operation is looked up in the cycle after it was taken, and held until it
  // leaves or parks.
  logic             s1_valid_d, s1_valid_q;
  logic [LineW-1:0] in_line, s1_line_d, s1_line_q;
  tx_fetched_t      s1_q;
  tx_op_t           s1_op;
  logic             s1_done, in_take;
  line_t            s1_cached;
  logic [Lines-1:0] valid_d, valid_q;
  logic [Lines-1:0][TxW-1:0]      line_ctx_d, line_ctx_q;
  logic [Lines-1:0][PendingW-1:0] pending_d, pending_q;  // Parked operations by line.

  // Contexts start at different lines, so that their first peers do not collide.
  assign in_line = op_i.op.peer[LineW-1:0] ^ {op_i.op.ctx, {(LineW - TxW){1'b0}}};

  logic  fill;
  line_t fill_line;
  logic [LineW-1:0] head_line, look_line;
  line_t head_cached;
  logic  mem_ready, head_mem_ready;
  logic  unused_error, unused_head_error;

  heddle_mem #(
    .Width($bits(fill_line)),
    .Depth(Lines)
  ) u_lines (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (fill),
    .waddr_i(head_line),
    .wdata_i(fill_line),
    .raddr_i(in_take ? in_line : s1_line_q),
    .rdata_o(s1_cached),
    .error_o(unused_error),
    .ready_o(mem_ready)
  );

  heddle_mem #(
    .Width($bits(fill_line)),
    .Depth(Lines)
  ) u_lines_head (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .wen_i  (fill),
    .waddr_i(head_line),
    .wdata_i(fill_line),
    .raddr_i(look_line),
    .rdata_o(head_cached),
    .error_o(unused_head_error),
    .ready_o(head_mem_ready)
  );

  logic s1_pass, s1_range, s1_hit, s1_same, s1_leave, s1_park, s1_read;
  assign s1_op    = s1_q.op;
  assign s1_pass  = s1_op.token || s1_op.status != StatusOk || s1_op.opcode == OpcodeNop;
  assign s1_range = s1_op.peer < s1_q.av_entries;
  assign s1_same  = pending_q[s1_line_q] != '0;
  assign s1_hit   = valid_q[s1_line_q] && s1_cached.ctx == s1_op.ctx &&
                    s1_cached.index == s1_op.peer && !s1_same;

  // ------------------------------------------------------------------ parked
  logic [ParkW:0]   parked_count;
  logic             parked_room, head_valid, head_pop;
  logic [ParkW-1:0] park_q, head_q;                       // Slots of the queue.
  logic [Parked-1:0][LineW-1:0] park_line_q;
  logic [Parked-1:0][TxW-1:0]   park_ctx_q;
  logic [Parked-1:0] read_d, read_q;                      // Has a read of its own.
  logic [Parked-1:0] keep_d, keep_q;                      // Its entry may be cached.
  logic [Parked-1:0] back_d, back_q;                      // Its entry came.
  logic [Parked-1:0] bad_q;                               // It names no peer.
  peer_t             head_peer;
  logic [Parked-1:0][$bits(head_peer)-1:0] peer_q;
  logic              looked_q;                            // `head_cached` is of the head.
  tx_fetched_t       head;
  tx_op_t            head_op;

  heddle_fifo #(
    .Width($bits(s1_q)),
    .Depth(Parked)
  ) u_parked (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(s1_park),
    .ready_o(parked_room),
    .data_i (s1_q),
    .valid_o(head_valid),
    .ready_i(head_pop),
    .data_o (head),
    .count_o(parked_count)
  );

  logic [ParkW-1:0] next_q;
  assign head_op   = head.op;
  assign next_q    = head_q + 1'b1;
  assign head_line = park_line_q[head_q];
  assign look_line = head_pop ? park_line_q[next_q] : head_line;

  logic head_hit, head_leave, head_miss;
  logic out_ready;
  assign head_hit   = looked_q && !read_q[head_q] && valid_q[head_line] &&
                      head_cached.ctx == head_op.ctx && head_cached.index == head_op.peer;
  assign head_miss  = head_valid && looked_q && !read_q[head_q] && !head_hit;
  assign head_leave = head_valid && (back_q[head_q] || head_hit);
  assign head_pop   = head_leave && out_ready;

  assign head_peer = head_hit ? head_cached.peer : peer_t'(peer_q[head_q]);

  assign fill            = head_pop && back_q[head_q] && !bad_q[head_q] && keep_q[head_q];
  assign fill_line.ctx   = head_op.ctx;
  assign fill_line.index = head_op.peer;
  assign fill_line.peer  = head_peer;

  // -------------------------------------------------------------------- reads
  logic             rd_valid_d, rd_valid_q, rd_free, rd_head, rd_park;
  dma_req_t         rd_req_d, rd_req_q;
  logic             slot_ready, slot_valid;
  logic [ParkW-1:0] slot;       // Whose read returns next.
  logic [ParkW:0]   slot_count;
  logic             entry_valid, entry_last, entry_error;
  av_entry_t        entry;

  assign rd_free    = !rd_valid_q || rd_ready_i;
  assign rd_head    = head_miss && rd_free;
  assign rd_park    = s1_park && s1_read;
  assign rd_valid_d = rd_head || rd_park || (rd_valid_q && !rd_ready_i);
  assign rd_valid_o = rd_valid_q;
  assign rd_req_o   = rd_req_q;
  always_comb begin
    rd_req_d = rd_req_q;
    if (rd_head) begin
      rd_req_d.addr  = head.av_base + {27'b0, head_op.peer, 5'b0};
      rd_req_d.owner = head_op.owner;
    end else if (rd_park) begin
      rd_req_d.addr  = s1_q.av_base + {27'b0, s1_op.peer, 5'b0};
      rd_req_d.owner = s1_op.owner;
    end
    rd_req_d.bytes = 14'($bits(av_entry_t) / 8);
  end

  heddle_fifo #(
    .Width(ParkW),
    .Depth(Parked)
  ) u_slots (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(rd_head || rd_park),
    .ready_o(slot_ready),
    .data_i (rd_head ? head_q : park_q),
    .valid_o(slot_valid),
    .ready_i(entry_valid),
    .data_o (slot),
    .count_o(slot_count)
  );

  heddle_gather #(
    .DataW(DataW),
    .Bits (256)
  ) u_gather (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .words_i     (8'd1),
    .beat_valid_i(rd_rsp_valid_i),
    .beat_ready_o(rd_rsp_ready_o),
    .beat_data_i (rd_rsp_data_i),
    .beat_last_i (rd_rsp_last_i),
    .beat_error_i(rd_rsp_error_i),
    .word_valid_o(entry_valid),
    .word_ready_i(slot_valid),
    .word_data_o (entry),
    .word_last_o (entry_last),
    .word_error_o(entry_error)
  );

  peer_t entry_peer;
  logic  entry_bad, entry_take;
  assign entry_take                = entry_valid && slot_valid;
  assign entry_peer.ipv6           = (entry.flags & AvFlagIpv6) != '0;
  assign entry_peer.fa             = {entry.fa_hi, entry.fa_lo};
  assign entry_peer.pid_on_fep     = entry.pid_on_fep[11:0];
  assign entry_peer.resource_index = entry.resource_index[11:0];
  assign entry_peer.hop            = entry.next_hop[HopW-1:0];
  assign entry_bad = entry_error || (entry.flags & AvFlagValid) == '0 ||
                     entry_peer.ipv6 != ipv6_i || 32'(entry.next_hop) >= NumHop;

  // ------------------------------------------------------------------- leaving
  // Parked operations go first.
  assign s1_read  = !s1_same;
  assign s1_park  = s1_valid_q && !s1_pass && s1_range && !s1_hit && parked_room &&
                    (!s1_read || (rd_free && !rd_head));
  assign s1_leave = s1_valid_q && !head_leave && out_ready &&
                    (s1_op.token ? parked_count == '0 : s1_pass || !s1_range || s1_hit);
  assign s1_done  = s1_leave || s1_park;

  assign op_ready_o = (!s1_valid_q || s1_done) && mem_ready && head_mem_ready;
  assign in_take    = op_valid_i && op_ready_o;
  assign s1_valid_d = in_take || (s1_valid_q && !s1_done);
  assign s1_line_d  = in_take ? in_line : s1_line_q;

  tx_resolved_t out;
  peer_t        out_peer;
  logic         out_valid;
  logic [1:0]   out_count;
  always_comb begin
    out      = '0;
    out_peer = '0;
    if (head_leave) begin
      out.op   = head_op;
      out_peer = head_peer;
      if (!head_hit && bad_q[head_q]) out.op.status = StatusBadPeer;
    end else if (s1_valid_q) begin
      out.op   = s1_op;
      out_peer = s1_cached.peer;
      if (!s1_pass && !s1_range) out.op.status = StatusBadPeer;
    end
    out.ipv6           = out_peer.ipv6;
    out.fa             = out_peer.fa;
    out.pid_on_fep     = out_peer.pid_on_fep;
    out.resource_index = out_peer.resource_index;
    out.hop            = out_peer.hop;
  end
  assign out_valid = head_pop || s1_leave;

  heddle_fifo #(
    .Width($bits(out)),
    .Depth(2)
  ) u_out (
    .clk_i  (clk_i),
    .rst_ni (rst_ni),
    .valid_i(out_valid),
    .ready_o(out_ready),
    .data_i (out),
    .valid_o(op_valid_o),
    .ready_i(op_ready_i),
    .data_o (op_o),
    .count_o(out_count)
  );

  // --------------------------------------------------------------------- state
  always_comb begin
    valid_d    = valid_q;
    line_ctx_d = line_ctx_q;
    pending_d  = pending_q;
    read_d     = read_q;
    keep_d     = keep_q;
    back_d     = back_q;

    if (s1_park) begin
      read_d[park_q] = s1_read;
      keep_d[park_q] = 1'b1;
      back_d[park_q] = 1'b0;
      pending_d[s1_line_q] = pending_d[s1_line_q] + 1'b1;
    end
    if (rd_head) begin
      read_d[head_q] = 1'b1;
      keep_d[head_q] = 1'b1;
    end
    if (entry_take) back_d[slot] = 1'b1;
    if (head_pop) pending_d[head_line] = pending_d[head_line] - 1'b1;
    if (fill) begin
      valid_d[head_line]    = 1'b1;
      line_ctx_d[head_line] = head_op.ctx;
    end
    if (invalidate_i) begin
      for (int unsigned i = 0; i < Lines; i++) begin
        if (line_ctx_d[i] == invalidate_ctx_i) valid_d[i] = 1'b0;
      end
      for (int unsigned i = 0; i < Parked; i++) begin
        if (park_ctx_q[i] == invalidate_ctx_i) keep_d[i] = 1'b0;
      end
      if (s1_park && s1_op.ctx == invalidate_ctx_i) keep_d[park_q] = 1'b0;
    end
  end

  assign idle_o = !op_valid_i && !s1_valid_q && !head_valid && !op_valid_o && mem_ready &&
                  head_mem_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      rd_valid_q <= 1'b0;
      valid_q    <= '0;
      pending_q  <= '0;
      park_q     <= '0;
      head_q     <= '0;
      looked_q   <= 1'b0;
    end else begin
      s1_valid_q <= s1_valid_d;
      rd_valid_q <= rd_valid_d;
      valid_q    <= valid_d;
      pending_q  <= pending_d;
      if (s1_park) park_q <= park_q + 1'b1;
      if (head_pop) head_q <= next_q;
      looked_q <= head_pop ? parked_count > 1 : head_valid;
    end
  end

  always_ff @(posedge clk_i) begin
    if (in_take) s1_q <= op_i;
    s1_line_q  <= s1_line_d;
    rd_req_q   <= rd_req_d;
    read_q     <= read_d;
    keep_q     <= keep_d;
    back_q     <= back_d;
    line_ctx_q <= line_ctx_d;
    if (s1_park) begin
      park_line_q[park_q] <= s1_line_q;
      park_ctx_q[park_q]  <= s1_op.ctx;
    end
    if (entry_take) begin
      peer_q[slot] <= entry_peer;
      bad_q[slot]  <= entry_bad;
    end
  end

  logic unused;
  assign unused = ^{head.av_entries, entry, entry_last, out_count, slot_count, unused_error,
                    unused_head_error};

  `HEDDLE_ASSERT(SlotRoom_A, (rd_head || rd_park) |-> slot_ready)
  `HEDDLE_ASSERT(OneRead_A, !(rd_head && rd_park))
  `HEDDLE_ASSERT(OrderedOffer_A, op_valid_o && !op_ready_i |=> op_valid_o && $stable(op_o))
endmodule
