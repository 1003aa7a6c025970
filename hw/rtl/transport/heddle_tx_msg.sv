// SPDX-License-Identifier: Apache-2.0
// Gives each operation a message table entry and queues it on its PDC.
//
// Keyed:    one ROD PDC per {owner, JobID, peer FA, PIDonFEP, RI, source PIDonFEP, source RI,
//           DSCP}, found by a hash to a set of 4 ways. An unknown key opens a PDC; when none is
//           free the operation waits here.
// Ordered:  operations are queued in the order they arrive. NOPs and operations that
//           already failed go straight to `done`, and so does a drain token.
// Reopen:   a PDC whose SYN was refused gets a new PDCID and Start_PSN, after the
//           packets already on their way have left.
// One operation every two cycles.

`include "heddle_assert.svh"

module heddle_tx_msg
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  port_cfg_t       port_i,

  input  logic            op_valid_i,
  output logic            op_ready_o,
  input  tx_resolved_t    op_i,

  output logic            wr_o,             // Strobe: message table write.
  output logic [MsgW-1:0] wr_msg_o,
  output msg_packet_t     wr_packet_o,
  output msg_done_t       wr_done_o,

  output logic            open_valid_o,
  input  logic            open_ready_i,
  output logic [PdcW-1:0] open_pdc_o,
  output logic            open_again_o,     // Reopen: the queue is kept.
  output pdc_peer_t       open_peer_o,

  output logic            enq_valid_o,
  input  logic            enq_ready_i,      // Low while the PDC's queue is full.
  output logic [PdcW-1:0] enq_pdc_o,
  output logic [MsgW-1:0] enq_msg_o,
  output logic [PktW-1:0] enq_last_o,       // Index of the message's last packet.

  output logic            done_valid_o,
  input  logic            done_ready_i,
  output tx_done_t        done_o,

  input  logic            free_i,           // Strobe: table entry returns.
  input  logic [MsgW-1:0] free_msg_i,
  input  logic            unmap_valid_i,    // Forget the key of a PDC that ends.
  output logic            unmap_ready_o,
  input  logic [PdcW-1:0] unmap_pdc_i,
  input  logic            unmap_keep_i,     // Its queue is not empty: answer, but forget nothing.
  input  logic            pdc_free_i,       // Strobe: PDC may be opened again.
  input  logic [PdcW-1:0] pdc_free_pdc_i,
  input  logic            reopen_valid_i,
  output logic            reopen_ready_o,
  input  logic [PdcW-1:0] reopen_pdc_i,
  input  logic [SeqW-1:0] seq_issued_i,
  input  logic [SeqW-1:0] seq_done_i,

  output logic            idle_o
);
  localparam int unsigned Ways   = 4;
  localparam int unsigned Sets   = NumPdc;
  localparam int unsigned SetW   = $clog2(Sets);
  localparam int unsigned WayW   = $clog2(Ways);

  typedef struct packed {
    logic         ipv6;
    logic [127:0] fa;
    logic [11:0]  pid_on_fep;
    logic [11:0]  resource_index;
    logic [11:0]  source_pid;
    logic [11:0]  source_ri;
    logic [23:0]  job_id;
    logic [5:0]   dscp;
    logic [7:0]   owner;
    logic [HopW-1:0] hop;  // A PDC keeps its next hop for life.
  } key_t;

  typedef struct packed {
    key_t            key;
    logic [PdcW-1:0] pdc;
  } way_t;

  localparam int unsigned WayBits = $bits(way_t);
  localparam int unsigned PeerW   = $bits(pdc_peer_t);

  typedef enum logic [1:0] {
    StIdle, StLookup, StReopenWait, StReopen
  } state_e;

  state_e state_d, state_q;

  // ------------------------------------------------------------ free entries
  logic [MsgW:0]   fresh_q;       // Entries never used yet are handed out first.
  logic            recycled_valid, msg_take, msg_avail;
  logic [MsgW-1:0] recycled, msg;
  logic            fresh;
  assign fresh     = !fresh_q[MsgW];
  assign msg       = fresh ? fresh_q[MsgW-1:0] : recycled;
  assign msg_avail = fresh || recycled_valid;

  logic            recycle_ready;
  logic [MsgW:0]   recycle_count;
  heddle_fifo #(.Width(MsgW), .Depth(NumMsg)) u_recycled (
    .clk_i, .rst_ni,
    .valid_i(free_i), .ready_o(recycle_ready), .data_i(free_msg_i),
    .valid_o(recycled_valid), .ready_i(msg_take && !fresh), .data_o(recycled),
    .count_o(recycle_count)
  );

  logic [NumPdc-1:0] pdc_free_q;
  logic              pdc_avail, pdc_take;
  logic [PdcW-1:0]   pdc_new;
  heddle_rr_pick #(.NumSrc(NumPdc)) u_pdc_free (
    .clk_i, .rst_ni, .valid_i(pdc_free_q), .take_i(pdc_take),
    .valid_o(pdc_avail), .idx_o(pdc_new)
  );

  // --------------------------------------------------------------- key lookup
  key_t            key;
  logic [11:0]     target_ri;
  logic [SetW-1:0] set, set_q;
  assign target_ri = op_i.resource_index + 12'd1 + op_i.op.rx_index[11:0];
  assign key = {op_i.ipv6, op_i.fa, op_i.pid_on_fep, target_ri, op_i.op.source_pid,
                op_i.op.source_ri, op_i.op.job_id, op_i.op.dscp, op_i.op.owner, op_i.hop};

  logic [31:0] fold;
  assign fold = op_i.fa[31:0] ^ op_i.fa[63:32] ^ op_i.fa[95:64] ^ op_i.fa[127:96] ^
                {op_i.pid_on_fep, 8'b0, target_ri} ^ {8'b0, op_i.op.job_id} ^
                {4'b0, op_i.op.source_pid, 4'b0, op_i.op.source_ri};
  assign set = fold[SetW-1:0] ^ fold[2*SetW-1:SetW] ^ fold[3*SetW-1:2*SetW] ^
               fold[4*SetW-1:3*SetW] ^ fold[5*SetW-1:4*SetW];

  logic [Ways-1:0][WayBits-1:0] ways, ways_d;
  logic                         ways_wen, set_error, set_ready;
  heddle_mem #(.Width(Ways * WayBits), .Depth(Sets)) u_sets (
    .clk_i, .rst_ni,
    .wen_i(ways_wen), .waddr_i(set_q), .wdata_i(ways_d),
    .raddr_i(set), .rdata_o(ways),
    .error_o(set_error), .ready_o(set_ready)
  );

  logic [Sets-1:0][Ways-1:0]        used_q;     // Way holds a key.
  logic [NumPdc-1:0][SetW+WayW-1:0] place_q;    // Where a PDC's key is.

  logic            hit, way_avail;
  logic [PdcW-1:0] hit_pdc;
  logic [WayW-1:0] way_new;
  always_comb begin
    hit       = 1'b0;
    hit_pdc   = '0;
    way_avail = 1'b0;
    way_new   = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (used_q[set_q][w] && ways[w][WayBits-1:PdcW] == key) begin
        hit     = 1'b1;
        hit_pdc = ways[w][PdcW-1:0];
      end
      if (!used_q[set_q][w]) begin
        way_avail = 1'b1;
        way_new   = WayW'(w);
      end
    end
  end

  always_comb begin
    ways_d          = ways;
    ways_d[way_new] = {key, pdc_new};
  end

  // ------------------------------------------------------------ PDC identity
  logic [31:0]                 lfsr_q;        // Start_PSNs and entropy.
  logic [NumPdc-1:0][GenW-1:0] gen_q;
  logic [PdcW-1:0]             open_pdc;
  logic [GenW-1:0]             gen_sum, gen_new;
  assign open_pdc = (state_q == StReopen) ? reopen_pdc_i : pdc_new;
  assign gen_sum  = gen_q[open_pdc] + port_i.pdc_seed[GenW-1:0];
  assign gen_new  = (gen_sum == '0) ? GenW'(8) : gen_sum;  // PDCID 0 is never used.

  logic [PeerW-1:0] kept_raw;
  pdc_peer_t        peer_new, peer_again, kept;
  logic             kept_error, kept_ready;
  heddle_mem #(.Width(PeerW), .Depth(NumPdc)) u_peers (
    .clk_i, .rst_ni,
    .wen_i(open_valid_o && open_ready_i), .waddr_i(open_pdc), .wdata_i(open_peer_o),
    .raddr_i(reopen_pdc_i), .rdata_o(kept_raw),
    .error_o(kept_error), .ready_o(kept_ready)
  );
  assign kept = pdc_peer_t'(kept_raw);

  always_comb begin
    peer_new.ipv6       = op_i.ipv6;
    peer_new.fa         = op_i.fa;
    peer_new.hop        = op_i.hop;
    peer_new.dscp       = op_i.op.dscp;
    peer_new.spdcid     = {port_i.slot[SlotBits-1:0], gen_new, open_pdc};
    peer_new.start_psn  = lfsr_q ^ port_i.pdc_seed;
    peer_new.entropy    = 16'(EntropyPortFirst) | {2'b0, lfsr_q[13:0]};
    peer_new.job_id     = op_i.op.job_id;
    peer_new.pid_on_fep = op_i.pid_on_fep;
    peer_new.source_pid = op_i.op.source_pid;
    peer_new.source_ri  = op_i.op.source_ri;
    peer_again            = kept;
    peer_again.spdcid     = peer_new.spdcid;
    peer_again.start_psn  = peer_new.start_psn;
  end

  // ------------------------------------------------------------------- packets
  logic [31:0] payload_last;   // Offset of the last payload byte.
  logic [31:0] last_index;
  assign payload_last = (op_i.op.length == '0) ? '0 : op_i.op.length - 32'd1;
  always_comb begin
    unique case (1'b1)
      port_i.payload_mtu[13]: last_index = payload_last >> 13;
      port_i.payload_mtu[12]: last_index = payload_last >> 12;
      port_i.payload_mtu[11]: last_index = payload_last >> 11;
      default:                last_index = payload_last >> 10;
    endcase
  end

  // ------------------------------------------------------------------- control
  logic straight;      // Needs no PDC.
  logic looked;        // In StLookup, with the operation looked up.
  assign straight = op_i.op.token || op_i.op.status != StatusOk ||
                    op_i.op.opcode == OpcodeNop;
  assign looked   = state_q == StLookup;

  assign enq_valid_o  = looked && !straight && hit && msg_avail;
  assign done_valid_o = looked && straight && (op_i.op.token || msg_avail);
  assign op_ready_o   = (enq_valid_o && enq_ready_i) || (done_valid_o && done_ready_i);
  assign wr_o         = op_ready_o && !op_i.op.token;
  assign msg_take     = wr_o;

  logic open_new;
  assign open_new     = looked && !straight && !hit && way_avail && pdc_avail;
  assign open_valid_o = open_new || state_q == StReopen;
  assign open_again_o = state_q == StReopen;
  assign open_pdc_o   = open_pdc;
  assign open_peer_o  = open_again_o ? peer_again : peer_new;
  assign pdc_take     = open_new && open_ready_i;
  assign ways_wen     = pdc_take;

  assign reopen_ready_o = state_q == StReopen && open_ready_i;
  assign unmap_ready_o  = state_q == StIdle;

  logic [SeqW-1:0] wait_seq_q;
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (reopen_valid_i)                                      state_d = StReopenWait;
        else if (!unmap_valid_i && op_valid_i && set_ready && kept_ready) state_d = StLookup;
      end
      // Back to idle without progress when the operation has to wait, so that
      // PDCs that end can be forgotten meanwhile.
      StLookup:     state_d = StIdle;
      StReopenWait: if ($signed(seq_done_i - wait_seq_q) >= 0) state_d = StReopen;
      StReopen:     if (open_ready_i) state_d = StIdle;
      default:      state_d = StIdle;
    endcase
  end

  assign wr_msg_o    = msg;
  assign enq_pdc_o   = hit_pdc;
  assign enq_msg_o   = msg;
  assign enq_last_o  = last_index[PktW-1:0];
  assign done_o      = {op_i.op.token, op_i.op.ctx, op_i.op.gen, msg, op_i.op.status, 16'b0};
  assign wr_packet_o = {op_i.op.ctx, op_i.op.gen, op_i.op.owner, op_i.op.opcode, op_i.op.flags,
                        target_ri, op_i.op.length, op_i.op.header_data, op_i.op.match_bits,
                        op_i.op.remote_offset, op_i.op.iova, op_i.op.inline_data};
  assign wr_done_o   = {op_i.op.ctx, op_i.op.gen, op_i.op.owner, op_i.op.cq, op_i.op.cq_gen,
                        op_i.op.position, op_i.op.slots, op_i.op.opcode, op_i.op.flags,
                        op_i.op.peer, op_i.op.length, op_i.op.op_context};
  assign idle_o      = state_q == StIdle && !op_valid_i && !reopen_valid_i && !unmap_valid_i &&
                       set_ready && kept_ready;

  always_ff @(posedge clk_i) begin
    set_q <= set;
    if (state_q == StIdle) wait_seq_q <= seq_issued_i;
    if (pdc_take) place_q[pdc_new] <= {set_q, way_new};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      fresh_q    <= '0;
      pdc_free_q <= '1;
      used_q     <= '0;
      gen_q      <= '0;
      lfsr_q     <= 32'h1;
    end else begin
      state_q <= state_d;
      if (msg_take && fresh) fresh_q <= fresh_q + 1'b1;
      if (pdc_take)   pdc_free_q[pdc_new] <= 1'b0;
      if (pdc_free_i) pdc_free_q[pdc_free_pdc_i] <= 1'b1;
      if (pdc_take)   used_q[set_q][way_new] <= 1'b1;
      if (unmap_valid_i && unmap_ready_o && !unmap_keep_i) begin
        used_q[place_q[unmap_pdc_i][SetW+WayW-1:WayW]][place_q[unmap_pdc_i][WayW-1:0]] <= 1'b0;
      end
      if (open_valid_o && open_ready_i) begin
        gen_q[open_pdc] <= gen_q[open_pdc] + 1'b1;
        // Galois LFSR, x^32 + x^22 + x^2 + x + 1.
        lfsr_q <= lfsr_q[0] ? (lfsr_q >> 1) ^ 32'h80200003 : lfsr_q >> 1;
      end
    end
  end

  logic unused;
  assign unused = ^{recycle_count, set_error, kept_error, fold[31:30], last_index[31:PktW],
                    op_i.op.rx_index[15:12], op_i.op.slots, port_i};

  `HEDDLE_ASSERT(FreeListHasRoom_A, !free_i || recycle_ready)
  `HEDDLE_ASSERT(OperationHeld_A, op_valid_i && !op_ready_o |=> op_valid_i)
endmodule
