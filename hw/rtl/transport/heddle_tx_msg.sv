// SPDX-License-Identifier: Apache-2.0
// Gives each operation a message table entry and queues it on its PDC.
//
// Keyed:    ROD: one PDC per {owner, peer FA, PIDonFEP, RI, DSCP, JobID, source PIDonFEP, source RI}. RUD: one per {owner, peer FA,
//           PIDonFEP, RI, DSCP, lane}, whichever endpoint of the owner sends; with the JobID if that names the target. A
//           context that refuses delays no other, since each has a PDC. The mode is for life. A key has a place in one of two
//           sets of 4 ways; there are four places for each PDC, so that PDCs run out before places do.
// Lanes:    operations that need no order take up to four PDCs of a peer in turn: the next one when the window of theirs is
//           closed or all the data due that it may have. All are on lane 0 while less than half of the PDCs are free,
//           with a congestion window, and for LaneRest ticks after a target had no PDC left.
// Parked:   an operation whose key has no PDC while none is free waits here with its table entry,
//           and so do later ones of the same key (of the same hash); others pass. Whoever has
//           waited longest gets the next free PDC. There is room for every table entry.
// Ordered:  operations of a key are queued in the order they arrive. NOPs and operations that
//           already failed go straight to `done`, and so does a drain token.
// Reopen:   a PDC whose SYN was refused gets a new PDCID and Start_PSN, after the
//           packets already on their way have left.
// One operation every two cycles; one that opens a PDC takes three more.

`include "heddle_assert.svh"

module heddle_tx_msg
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,
  input  logic tick_i,

  input  port_cfg_t       port_i,
  input  transport_cfg_t  transport_i,

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
  input  logic            enq_ready_i,
  input  logic [NumPdc-1:0] full_i,         // PDCs that request no more data now, or whose window is closed.
  input  logic            scarce_i,         // Strobe: a target has no PDC left.
  output logic [PdcW-1:0] enq_pdc_o,
  output logic [MsgW-1:0] enq_msg_o,
  output logic [PktW-1:0] enq_last_o,       // Index of the message's last packet.
  output logic            enq_read_o,       // It is a READ, and data will come.
  output logic            enq_rma_o,        // It is a READ or WRITE.

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
  output logic [WantW-1:0] want_o,          // So many PDCs are missing.
  input  logic [SeqW-1:0] seq_issued_i,
  input  logic [SeqW-1:0] seq_done_i,

  output logic            waits_o,          // For the next tick.
  output logic            idle_o
);
  localparam int unsigned Tables = 2;
  localparam int unsigned Ways   = 4;
  localparam int unsigned Sets   = NumPdc / 2;
  localparam int unsigned SetW   = $clog2(Sets);
  localparam int unsigned WayW   = $clog2(Ways);
  localparam int unsigned HashW  = 10;  // Parked keys are counted by it.
  localparam int unsigned CountW = MsgW + 1;
  localparam int unsigned LaneW  = 2;
  localparam int unsigned LaneRows = 64;  // Peers share the row of their index in the address vector.
  localparam int unsigned LaneRowW = $clog2(LaneRows);
  localparam int unsigned LaneRest = 255;

  typedef struct packed {
    logic         rud;
    logic         rel;
    logic         ipv6;
    logic [127:0] fa;
    logic [11:0]  pid_on_fep;
    logic [11:0]  resource_index;
    logic [11:0]  source_pid;
    logic [11:0]  source_ri;
    logic [23:0]  job_id;
    logic [5:0]   dscp;
    logic [7:0]   owner;
    logic [LaneW-1:0] lane;
    logic [HopW-1:0] hop;  // A PDC keeps its next hop for life.
  } key_t;

  typedef struct packed {
    logic            valid;
    key_t            key;
    logic [PdcW-1:0] pdc;
  } way_t;

  typedef struct packed {
    key_t            key;
    logic [MsgW-1:0] msg;
    logic [PktW-1:0] last;
    logic            read;
    logic            rma;
  } parked_t;

  // Where the key of a PDC is.
  typedef struct packed {
    logic            table_;
    logic [SetW-1:0] row;
    logic [WayW-1:0] way;
  } place_t;

  localparam int unsigned WayBits = $bits(way_t);
  localparam int unsigned PeerW   = $bits(pdc_peer_t);

  typedef enum logic [2:0] {
    StIdle, StLookup, StOpen, StPlace, StForget, StReopenWait, StReopen
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

  logic            pdc_avail, pdc_take, pdc_waits, ids_ready;
  logic [PdcW-1:0] pdc_new;
  logic [PdcW:0]   pdc_free;
  logic [15:0]     pdcid_new, pdcid_again;
  heddle_pdc_ids u_ids (
    .clk_i, .rst_ni, .tick_i, .port_i, .transport_i,
    .valid_o(pdc_avail), .take_i(pdc_take), .pdc_o(pdc_new), .pdcid_o(pdcid_new),
    .waits_o(pdc_waits), .free_o(pdc_free),
    .free_i(pdc_free_i), .free_pdc_i(pdc_free_pdc_i), .seq_issued_i, .seq_done_i,
    .again_i(again && open_ready_i), .again_pdc_i(reopen_pdc_i), .again_pdcid_o(pdcid_again),
    .ready_o(ids_ready)
  );

  // ------------------------------------------------------------- parked ones
  logic    parked_valid, parked_room, park, unpark;
  parked_t parked, parking;
  logic [MsgW:0] parked_count;
  heddle_fifo #(.Width($bits(parked_t)), .Depth(NumMsg)) u_parked (
    .clk_i, .rst_ni,
    .valid_i(park), .ready_o(parked_room), .data_i(parking),
    .valid_o(parked_valid), .ready_i(unpark), .data_o(parked), .count_o(parked_count)
  );

  // --------------------------------------------------------------- key lookup
  // The operation, or the one parked longest.
  logic        from_parked, from_parked_q;
  key_t        op_key, key, key_q;
  logic [11:0] target_ri;
  logic        laned, plenty_q;  // Half of all PDCs are free.
  logic [LaneRows-1:0][LaneW-1:0] lanes_q;
  logic [LaneRowW-1:0] lane_row;
  logic [LaneW-1:0]    lane, kept_lane_q;  // `lane` is chosen in StIdle,
  logic                keeps_lane_q;       // unless it is kept.
  assign laned    = op_i.op.rud && transport_i.cwnd_bytes == '0;
  assign lane_row = op_i.op.peer[LaneRowW-1:0];
  always_comb begin
    lane = kept_lane_q;
    if (state_q == StIdle && !keeps_lane_q) lane = laned && plenty_q ? lanes_q[lane_row] : '0;
  end
  assign target_ri = op_i.resource_index + 12'd1 + op_i.op.rx_index[11:0];
  assign op_key = {op_i.op.rud, op_i.op.rel, op_i.ipv6, op_i.fa, op_i.pid_on_fep, target_ri,
                   op_i.op.rud ? 24'b0 : {op_i.op.source_pid, op_i.op.source_ri},
                   op_i.op.rud && !op_i.op.rel ? 24'b0 : op_i.op.job_id, op_i.op.dscp,
                   op_i.op.owner, lane, op_i.hop};
  assign key = from_parked ? parked.key : op_key;  // Meaningful in StIdle; then it is in `key_q`.

  // Keys that differ in few bits are spread evenly. Digits of pi from the 237th hexadecimal one on, by which up to 1,024
  // consecutive addresses, PIDonFEPs or indices of resources have different hashes and fill all sets.
  localparam logic [287:0] HashKey = 288'hfc166369_20d87157_4e69a458_fea3f493_3d7e0d95_748f728e_b658718b_cd588215_4aee7b54;
  localparam int unsigned  SumW    = HashW + 2 * SetW;
  logic [Tables-1:0][SetW-1:0] sets, sets_q;
  logic [HashW-1:0]            hash, hash_q;
  logic [SumW-1:0]             sums;
  heddle_toeplitz #(.DataW($bits(key_t)), .HashW(SumW)) u_hash (
    .key_i(HashKey[$bits(key_t)+SumW-2:0]), .data_i(key), .hash_o(sums)
  );
  // Not linear in the second table: keys that share few sets of the first one are spread there.
  assign sets[0] = sums[0 +: SetW];
  assign hash    = sums[2*SetW +: HashW];
  assign sets[1] = sums[SetW +: SetW] ^ (hash[SetW-1:0] & sums[0 +: SetW]);

  logic [Tables-1:0][Ways-1:0][WayBits-1:0] ways;
  logic [Tables-1:0][Ways-1:0]              ways_wen, way_error, way_ready;
  logic [WayBits-1:0]                       way_d;
  place_t                                   place_new, place_new_q, place_old;
  logic                                     place_err, place_ready;
  for (genvar t = 0; t < Tables; t++) begin : gen_table
    for (genvar w = 0; w < Ways; w++) begin : gen_way
      heddle_mem #(.Width(WayBits), .Depth(Sets)) u_way (
        .clk_i, .rst_ni,
        .wen_i(ways_wen[t][w]), .waddr_i(sets_q[t]), .wdata_i(way_d),
        .raddr_i(sets[t]), .rdata_o(ways[t][w]),
        .error_o(way_error[t][w]), .ready_o(way_ready[t][w])
      );
    end
  end
  heddle_mem #(.Width($bits(place_t)), .Depth(NumPdc), .Init(1'b0)) u_places (
    .clk_i, .rst_ni, .wen_i(pdc_take), .waddr_i(pdc_new), .wdata_i(place_new_q),
    .raddr_i(unmap_pdc_i), .rdata_o(place_old), .error_o(place_err), .ready_o(place_ready)
  );

  // Of the two sets the emptier one takes the key.
  logic                        hit, way_avail;
  logic [PdcW-1:0]             hit_pdc;
  logic [Tables-1:0][2:0]      vacant;
  logic [Tables-1:0][WayW-1:0] way_new;
  way_t                        candidate;
  always_comb begin
    hit       = 1'b0;
    hit_pdc   = '0;
    vacant    = '0;
    way_new   = '0;
    for (int unsigned t = 0; t < Tables; t++) begin
      for (int unsigned w = 0; w < Ways; w++) begin
        candidate = ways[t][w];
        if (!candidate.valid) begin
          vacant[t]  = vacant[t] + 3'd1;
          way_new[t] = WayW'(w);
        end else if (candidate.key == key_q) begin
          hit     = 1'b1;
          hit_pdc = candidate.pdc;
        end
      end
    end
    place_new.table_ = vacant[1] > vacant[0];
    place_new.row    = sets_q[place_new.table_];
    place_new.way    = way_new[place_new.table_];
    way_avail        = vacant != '0;
  end

  // Compared for each way: an index of two dimensions would be an adder.
  always_comb begin
    for (int unsigned t = 0; t < Tables; t++) begin
      for (int unsigned w = 0; w < Ways; w++) begin
        ways_wen[t][w] = (pdc_take && place_new_q.table_ == 1'(t) && place_new_q.way == WayW'(w)) ||
                         (state_q == StForget && !unmap_keep_i && place_old.table_ == 1'(t) && place_old.way == WayW'(w));
      end
    end
    way_d = state_q == StForget ? '0 : {1'b1, key_q, pdc_new};
  end

  // Parked operations by hash of their key.
  logic [CountW-1:0] same_hash, same_hash_d;
  logic              count_err, count_ready;
  heddle_mem #(.Width(CountW), .Depth(1 << HashW)) u_counts (
    .clk_i, .rst_ni, .wen_i(park || unpark), .waddr_i(hash_q), .wdata_i(same_hash_d),
    .raddr_i(hash), .rdata_o(same_hash), .error_o(count_err), .ready_o(count_ready)
  );
  assign same_hash_d = unpark ? same_hash - CountW'(1) : same_hash + CountW'(1);

  // ------------------------------------------------------------ PDC identity
  logic [31:0]      lfsr_q;        // Start_PSNs and entropy.
  logic [PeerW-1:0] kept_raw;
  pdc_peer_t        peer_new, peer_again, kept;
  logic             kept_error, kept_ready;
  heddle_mem #(.Width(PeerW), .Depth(NumPdc)) u_peers (
    .clk_i, .rst_ni,
    .wen_i(open_valid_o && open_ready_i), .waddr_i(open_pdc_o), .wdata_i(open_peer_o),
    .raddr_i(reopen_pdc_i), .rdata_o(kept_raw),
    .error_o(kept_error), .ready_o(kept_ready)
  );
  assign kept = pdc_peer_t'(kept_raw);

  always_comb begin
    peer_new.rud        = key_q.rud;
    peer_new.ipv6       = key_q.ipv6;
    peer_new.fa         = key_q.fa;
    peer_new.hop        = key_q.hop;
    peer_new.dscp       = key_q.dscp;
    peer_new.spdcid     = pdcid_new;
    peer_new.start_psn  = lfsr_q ^ port_i.pdc_seed;
    peer_new.entropy    = 16'(EntropyPortFirst) | {2'b0, lfsr_q[13:0]};
    peer_new.pid_on_fep = key_q.pid_on_fep;
    peer_new.rel        = key_q.rel;
    peer_again            = kept;
    peer_again.spdcid     = pdcid_again;
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
  logic tables_ready;
  assign tables_ready = (&way_ready) && kept_ready && ids_ready && place_ready && count_ready;

  // The oldest parked operation is looked up when that may help: it is new here, a PDC is free, or
  // a key was forgotten meanwhile. It takes turns with operations.
  logic stuck_q, turn_q;
  assign from_parked = parked_valid && (!stuck_q || pdc_avail) && (turn_q || !op_valid_i);

  logic straight;      // Needs no PDC.
  logic looked;        // In StLookup, with the operation looked up.
  logic behind;        // A parked operation may be of the same key.
  logic served;        // The operation is queued.
  assign straight = op_i.op.token || op_i.op.status != StatusOk ||
                    op_i.op.opcode == OpcodeNop;
  assign looked   = state_q == StLookup && !from_parked_q;
  assign behind   = same_hash != '0;

  logic op_enq, parked_enq, reads, rma;
  assign op_enq       = looked && !straight && hit && !behind && msg_avail;
  assign parked_enq   = state_q == StLookup && from_parked_q && hit;
  assign enq_valid_o  = op_enq || parked_enq;
  assign served       = op_enq && enq_ready_i;
  assign unpark       = parked_enq && enq_ready_i;
  assign done_valid_o = looked && straight && (op_i.op.token || msg_avail);

  logic may_open, open_next;
  assign may_open  = way_avail && pdc_avail;
  assign open_next = state_q == StLookup && !hit && may_open &&
                     (from_parked_q || (looked && !straight && !behind && !parked_valid));
  assign park     = looked && !straight && msg_avail &&
                    (behind || (!hit && (parked_valid || !may_open)));
  assign reads    = op_i.op.opcode == OpcodeRead && op_i.op.length != '0;
  assign rma      = op_i.op.opcode == OpcodeRead || op_i.op.opcode == OpcodeWrite;
  assign parking  = {op_key, msg, last_index[PktW-1:0], reads, rma};

  assign op_ready_o = served || park || (done_valid_o && done_ready_i);
  assign wr_o       = op_ready_o && !op_i.op.token;
  assign msg_take   = wr_o;

  logic ended, again;  // The PDC that was to be opened again is no more; is opened.
  assign ended = unmap_valid_i && unmap_pdc_i == reopen_pdc_i;
  assign again = state_q == StReopen && !ended;

  assign open_valid_o = state_q == StOpen || again;
  assign open_again_o = state_q == StReopen;
  assign open_pdc_o   = open_again_o ? reopen_pdc_i : pdc_new;
  assign open_peer_o  = open_again_o ? peer_again : peer_new;
  assign pdc_take     = state_q == StOpen && open_ready_i;

  assign reopen_ready_o = state_q == StReopen && (open_ready_i || ended);
  assign unmap_ready_o  = state_q == StForget;

  logic [SeqW-1:0] wait_seq_q;
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (!tables_ready)                  state_d = StIdle;
        else if (reopen_valid_i)            state_d = StReopenWait;
        else if (unmap_valid_i)             state_d = StPlace;
        else if (op_valid_i || from_parked) state_d = StLookup;
      end
      // Back to idle without progress when the operation has to wait, so that
      // PDCs that end can be forgotten meanwhile.
      StLookup:     state_d = open_next ? StOpen : StIdle;
      StOpen:       state_d = StIdle;
      StPlace:      state_d = StForget;
      StForget:     state_d = StIdle;
      StReopenWait: if ($signed(seq_done_i - wait_seq_q) >= 0) state_d = StReopen;
      // What makes room for it may be a PDC that ends.
      StReopen: begin
        if (unmap_valid_i && (ended || !open_ready_i)) state_d = StPlace;
        else if (reopen_ready_o)                       state_d = StIdle;
      end
      default:      state_d = StIdle;
    endcase
  end

  assign wr_msg_o    = msg;
  assign enq_pdc_o   = hit_pdc;
  assign enq_msg_o   = from_parked_q ? parked.msg : msg;
  assign enq_read_o  = from_parked_q ? parked.read : reads;
  assign enq_rma_o   = from_parked_q ? parked.rma : rma;
  assign enq_last_o  = from_parked_q ? parked.last : last_index[PktW-1:0];
  assign done_o      = {op_i.op.token, op_i.op.ctx, op_i.op.gen, msg, op_i.op.status, 16'b0};
  assign wr_packet_o = {op_i.op.ctx, op_i.op.gen, op_i.op.owner, op_i.op.opcode, op_i.op.flags,
                        op_i.op.job_id, op_i.op.source_pid, op_i.op.source_ri, target_ri,
                        op_i.op.length, op_i.op.header_data, op_i.op.match_bits,
                        op_i.op.remote_offset, op_i.op.iova, op_i.op.segmented,
                        op_i.op.inline_data};
  assign wr_done_o   = {op_i.op.ctx, op_i.op.gen, op_i.op.owner, op_i.op.cq, op_i.op.cq_gen,
                        op_i.op.position, op_i.op.slots, op_i.op.group, op_i.op.opcode,
                        op_i.op.flags,
                        op_i.op.peer, op_i.op.length, op_i.op.op_context};
  assign waits_o     = parked_valid && pdc_waits;
  assign idle_o      = state_q == StIdle && !op_valid_i && !reopen_valid_i && !unmap_valid_i &&
                       !(parked_valid && (!stuck_q || pdc_avail)) && tables_ready;

  always_ff @(posedge clk_i) begin
    place_new_q <= place_new;
    if (state_q == StPlace) sets_q <= {Tables{place_old.row}};
    if (state_q == StIdle) begin
      key_q         <= key;
      sets_q        <= sets;
      hash_q        <= hash;
      from_parked_q <= from_parked;
    end
    if (state_q == StIdle) wait_seq_q <= seq_issued_i;
  end

  // The lane on which an operation was queued is full: the next one to this peer takes another. One for which a PDC was
  // opened stays in its lane: the PDC would have no message, and be open until the next one came; and shows nothing yet.
  logic                queued_q;
  logic [PdcW-1:0]     queued_pdc_q;
  logic [LaneRowW-1:0] queued_row_q;
  logic [7:0]          rest_q;  // Ticks without lanes.
  always_ff @(posedge clk_i) begin
    kept_lane_q  <= lane;
    queued_pdc_q <= hit_pdc;
    queued_row_q <= lane_row;
    plenty_q     <= pdc_free >= (PdcW + 1)'(NumPdc / 2) && rest_q == '0;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      queued_q     <= 1'b0;
      lanes_q      <= '0;
      keeps_lane_q <= 1'b0;
      rest_q       <= '0;
    end else begin
      queued_q <= served && laned && !keeps_lane_q;
      for (int unsigned i = 0; i < LaneRows; i++) begin
        if (queued_q && full_i[queued_pdc_q] && queued_row_q == LaneRowW'(i)) lanes_q[i] <= lanes_q[i] + 1'b1;
      end
      if (scarce_i)                    rest_q <= 8'(LaneRest);
      else if (tick_i && rest_q != '0) rest_q <= rest_q - 1'b1;
      if (op_ready_o)                       keeps_lane_q <= 1'b0;
      else if (pdc_take && !from_parked_q)  keeps_lane_q <= 1'b1;
    end
  end

  logic [WantW-1:0] want_q;
  logic             opened_q;  // The oldest parked one has its PDC, but still counts.
  logic [WantW-1:0] provided;
  assign provided = WantW'(pdc_free) + WantW'(opened_q);
  assign want_o   = want_q > provided ? want_q - provided : '0;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      fresh_q <= '0;
      lfsr_q  <= 32'h1;
      stuck_q <= 1'b0;
      turn_q  <= 1'b0;
      want_q   <= '0;
      opened_q <= 1'b0;
    end else begin
      state_q <= state_d;
      if (msg_take && fresh) fresh_q <= fresh_q + 1'b1;
      if (state_q == StLookup) turn_q <= !from_parked_q;
      if (state_q == StForget || unpark || pdc_take) stuck_q <= 1'b0;
      else if (state_q == StLookup && from_parked_q && !hit) stuck_q <= 1'b1;
      if (unpark)                     opened_q <= 1'b0;
      else if (pdc_take && from_parked_q) opened_q <= 1'b1;
      if (park && !behind)                        want_q <= want_q + WantW'(1);
      if (unpark && same_hash == CountW'(1))      want_q <= want_q - WantW'(1);
      if (open_valid_o && open_ready_i) begin
        // Galois LFSR, x^32 + x^22 + x^2 + x + 1.
        lfsr_q <= lfsr_q[0] ? (lfsr_q >> 1) ^ 32'h80200003 : lfsr_q >> 1;
      end
    end
  end

  logic unused;
  assign unused = ^{recycle_count, parked_count, way_error, kept_error, place_err, count_err,
                    last_index[31:PktW],
                    op_i.op.rx_index[15:12], op_i.op.slots, op_i.op.more_iova, op_i.op.lengths,
                    port_i, transport_i};

  `HEDDLE_ASSERT(OrderedOnOneLane_A, enq_valid_o && !key_q.rud |-> key_q.lane == '0)
  `HEDDLE_ASSERT(OneLaneWithWindow_A, state_q == StIdle && !keeps_lane_q && transport_i.cwnd_bytes != '0 |-> lane == '0)
  `HEDDLE_ASSERT(FreeListHasRoom_A, !free_i || recycle_ready)
  `HEDDLE_ASSERT(ParkedHaveRoom_A, !park || parked_room)
  `HEDDLE_ASSERT(OperationHeld_A, op_valid_i && !op_ready_o |=> op_valid_i)
endmodule
