// SPDX-License-Identifier: Apache-2.0
// Which slots of the spill areas are in use: finds room for heddle_tx_spill, and frees it.
//
// Found:   with `find_i`, the search begins where it ended last, and looks at a slot per two cycles while `seek_i` is
//          high, until `found_o` or `nothing_o`. Room is contiguous, and does not go around the end.
// Taken:   after `found_o` with `take_i`, a slot a cycle, until `taken_o`.
// Freed:   room of a message's payload when it leaves the table, if it was moved there (`move_i`), or came from there with
//          a descriptor that waited; that of others by `back_*` and `drop_*`; all of a context when it starts.

`include "heddle_assert.svh"

module heddle_tx_spill_room
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
#(
  localparam int unsigned SlotW = RingLog2Max
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [NumTx-1:0]           alive_i,
  input  logic [NumTx-1:0][GenW-1:0] gen_i,
  input  logic [NumTx-1:0][3:0]      ring_log2_i,
  input  logic [NumTx-1:0]           restart_i,  // The context starts;
  output logic [NumTx-1:0]           dirty_o,    // its room is being cleaned.

  // The context of the round, constant while one looks for room.
  input  logic [TxW-1:0]   ctx_i,
  input  logic [SlotW-1:0] mask_i,
  input  logic             here_i,        // It lives, and is not being cleaned.
  input  logic             find_i,        // Strobe: room for `slots_i` of it will be looked for,
  input  logic             soon_i,        // in the next cycle but one; else in the next.
  input  logic [2:0]       slots_i,       // Not in the cycle of `find_i`.
  input  logic             seek_i,
  output logic             found_o,
  output logic             nothing_o,
  input  logic             take_i,
  output logic             taken_o,
  output logic [SlotW-1:0] first_o,       // The room that was found.

  input  logic             msg_valid_i,   // Message table write, at allocation.
  input  logic [MsgW-1:0]  msg_index_i,
  input  logic             msg_here_i,    // Its payload is here:
  input  spill_place_t     msg_place_i,
  input  logic             move_i,        // Strobe: the payload of this message is here now.
  input  logic [MsgW-1:0]  move_msg_i,
  input  spill_place_t     move_place_i,
  input  logic             free_i,        // This message left the table.
  input  logic [MsgW-1:0]  free_msg_i,
  input  logic             back_valid_i,  // This room is not used any more.
  output logic             back_ready_o,
  input  spill_place_t     back_i,
  input  logic             drop_valid_i,
  output logic             drop_ready_o,
  input  spill_place_t     drop_i,

  output logic             freed_o,       // Strobe: there is more room.
  output logic             idle_o
);
  // ------------------------------------------------------------- a bit per slot
  logic             wen, taken, own, step, live;
  logic [TxW-1:0]   wr_ctx;
  logic [SlotW-1:0] wr_slot, scan_q;
  heddle_ring_state #(.Width(1), .NumCtx(NumTx)) u_taken (
    .clk_i, .rst_ni, .restart_i, .log2_i(ring_log2_i), .dirty_o,
    .wen_i(wen), .waddr_i({wr_ctx, wr_slot}), .wdata_i(own),
    .raddr_i({ctx_i, scan_q}), .rdata_o(taken)
  );

  // --------------------------------------------------------------------- search
  logic [NumTx-1:0][SlotW-1:0] next_q;  // Behind what was taken last.
  logic                        seen_q;  // `taken` is of `scan_q`.
  logic [2:0]                  run_q, left_q;
  logic [SlotW:0]              looked_q, enough_q;  // Slots looked at, and how many there are.
  logic                        fits;
  assign fits      = seen_q && !taken && run_q + 3'd1 == slots_i;
  assign found_o   = seek_i && fits;
  assign nothing_o = looked_q > enough_q;
  assign taken_o   = left_q == 3'd1;
  assign own       = take_i && here_i;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_q <= '0;
    end else begin
      for (int unsigned i = 0; i < NumTx; i++) begin
        if (restart_i[i])                     next_q[i] <= '0;
        else if (found_o && ctx_i == TxW'(i)) next_q[i] <= (scan_q + 1'b1) & mask_i;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    enough_q <= {1'b0, mask_i} + (SlotW + 1)'(3);
    if (find_i) begin
      scan_q   <= next_q[ctx_i];
      looked_q <= '0;
      run_q    <= '0;
      seen_q   <= soon_i;
    end
    // A slot every two cycles.
    if (seek_i) begin
      seen_q <= !seen_q;
      if (seen_q) begin
        looked_q <= looked_q + 1'b1;
        scan_q   <= (scan_q + 1'b1) & mask_i;
        run_q    <= taken || scan_q == mask_i ? '0 : run_q + 3'd1;
        first_o  <= scan_q - SlotW'(slots_i) + 1'b1;
      end
      left_q <= slots_i;
    end
    if (take_i) left_q <= left_q - 3'd1;
  end

  // ------------------------------------------------------------- what is freed
  // Three sources: messages that ended, whose payload was moved or came with its descriptor; operations that left their list;
  // copies that are not needed.
  logic         freed_q, moved, moved_q, moved_ready, freed, came;
  logic         came_err, came_rdy, place_err, place_rdy;
  spill_place_t job_in, job_next, job_q;
  logic [$bits(spill_place_t)-1:0] came_raw, place_raw;
  heddle_flags #(.Depth(NumMsg)) u_moved (
    .clk_i, .rst_ni, .set_i(move_i), .set_index_i(move_msg_i), .clear_i(free_i), .clear_index_i(free_msg_i),
    .index_i(free_msg_i), .flag_o(moved), .ready_o(moved_ready)
  );
  heddle_mem #(.Width($bits(spill_place_t) + 1), .Depth(NumMsg), .Init(1'b0)) u_came (
    .clk_i, .rst_ni, .wen_i(msg_valid_i), .waddr_i(msg_index_i), .wdata_i({msg_here_i, msg_place_i}),
    .raddr_i(free_msg_i), .rdata_o({came, came_raw}), .error_o(came_err), .ready_o(came_rdy)
  );
  heddle_mem #(.Width($bits(spill_place_t)), .Depth(NumMsg), .Init(1'b0)) u_places (
    .clk_i, .rst_ni, .wen_i(move_i), .waddr_i(move_msg_i), .wdata_i(move_place_i),
    .raddr_i(free_msg_i), .rdata_o(place_raw), .error_o(place_err), .ready_o(place_rdy)
  );
  logic            job_ready, job_valid, job_valid_q, job_load, job_pop;
  logic [2:0]      job_step_q;   // Slots of it that are free.
  logic [MsgW+1:0] job_count;
  assign freed        = freed_q && (moved_q || came);
  assign back_ready_o = back_valid_i && !freed && job_ready;
  assign drop_ready_o = drop_valid_i && !freed && !back_valid_i && job_ready;
  always_comb begin
    job_in = drop_i;
    if (freed)             job_in = came ? came_raw : place_raw;
    else if (back_valid_i) job_in = back_i;
  end
  heddle_fifo #(.Width($bits(spill_place_t)), .Depth(2 * NumMsg)) u_jobs (
    .clk_i, .rst_ni, .valid_i(freed || back_valid_i || drop_valid_i), .ready_o(job_ready), .data_i(job_in),
    .valid_o(job_valid), .ready_i(job_load), .data_o(job_next), .count_o(job_count)
  );
  assign live     = alive_i[job_q.ctx] && gen_i[job_q.ctx] == job_q.gen && !dirty_o[job_q.ctx];
  assign step     = job_valid_q && !own;
  assign job_pop  = step && (job_step_q + 3'd1 >= job_q.slots || !live);
  assign job_load = job_valid && (!job_valid_q || job_pop);

  assign wen     = own || (step && live);
  assign wr_ctx  = own ? ctx_i : job_q.ctx;
  assign wr_slot = own ? first_o + SlotW'(left_q) - 1'b1 : job_q.slot + SlotW'(job_step_q);

  assign freed_o = job_pop;
  assign idle_o  = !job_valid && !job_valid_q && !freed_q && !back_valid_i && moved_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      freed_q     <= 1'b0;
      job_valid_q <= 1'b0;
      job_step_q  <= '0;
    end else begin
      freed_q     <= free_i;
      job_valid_q <= job_load || (job_valid_q && !job_pop);
      if (step) job_step_q <= job_pop ? '0 : job_step_q + 3'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    moved_q <= moved;
    if (job_load) job_q <= job_next;
  end

  logic unused;
  assign unused = ^{came_err, came_rdy, place_err, place_rdy, job_count};

  `HEDDLE_ASSERT(JobRoom_A, freed |-> job_ready)
  `HEDDLE_ASSERT(TakesWhatWasFound_A, take_i |-> left_q != '0)
endmodule
