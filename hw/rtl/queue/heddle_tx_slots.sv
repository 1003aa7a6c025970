// SPDX-License-Identifier: Apache-2.0
// Descriptors of heddle_tx_fetch that arrived and have not left, by context and position, and their checks.
//
// Checked: in the cycle after it arrived. One that is read in that cycle has its check from a register beside the memory.
// Latency: one cycle after `read_ctx_i` or `next_i`. A slot is read a cycle after it arrived at the earliest.

module heddle_tx_slots
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_tx_fetch_pkg::*;
(
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  arrives_i,    // Strobe: the slot
  input  logic [TxW-1:0]        ctx_i,        // of this context
  input  logic [15:0]           position_i,   // at this position,
  input  logic [15:0]           mask_i,       // whose bits name a slot of the ring;
  input  tx_desc_t              desc_i,       // to be checked,
  input  logic [511:0]          slot_i,       // and to be kept.
  output logic                  checking_o,   // It is being checked.

  input  logic [NumTx-1:0][15:0] done_i,      // Position of the next operation of each context.
  input  logic [TxW-1:0]        read_ctx_i,   // That of this one is read,
  input  logic                  next_i,       // or in its place
  input  logic [TxW-1:0]        next_ctx_i,   // this slot.
  input  logic [HeldSlotW-1:0]  next_slot_i,
  output logic [511:0]          slot_o,
  output tx_desc_check_t        check_o,      // That of `read_ctx_i`.
  output logic                  ready_o
);
  logic                 arrived_q, beside_q, fits, slot_ready, check_ready;
  logic [1:0]           unused_error;
  logic [TxW-1:0]       ctx_q;
  logic [15:0]          position_q, mask_q;
  logic [NumTx-1:0]     beside;  // The slot that is checked is the next one of this context.
  logic [HeldSlotW-1:0] read_slot;
  tx_desc_t             desc_q;
  tx_desc_check_t       check, check_q;
  logic [$bits(tx_desc_check_t)-1:0] read_check;
  assign read_slot = done_i[read_ctx_i][HeldSlotW-1:0];
  heddle_mem #(.Width(512), .Depth(NumTx * HeldSlots), .Init(1'b0), .Coherent(1'b0)) u_slot (
    .clk_i, .rst_ni, .wen_i(arrives_i), .waddr_i({ctx_i, position_i[HeldSlotW-1:0]}), .wdata_i(slot_i),
    .raddr_i(next_i ? {next_ctx_i, next_slot_i} : {read_ctx_i, read_slot}), .rdata_o(slot_o),
    .error_o(unused_error[0]), .ready_o(slot_ready)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) arrived_q <= 1'b0;
    else         arrived_q <= arrives_i;
  end
  always_ff @(posedge clk_i) begin
    ctx_q      <= ctx_i;
    position_q <= position_i;
    mask_q     <= mask_i;
    desc_q     <= desc_i;
    check_q    <= check;
    beside_q   <= beside[read_ctx_i];
  end
  assign fits = (position_q & mask_q) + 16'(desc_q.ext_slots) <= mask_q;
  heddle_tx_check u_check (
    .desc_i(desc_q), .position_i(position_q), .fits_i(fits), .whole_i(1'b0), .failed_i(1'b0), .check_o(check)
  );
  heddle_mem #(.Width($bits(tx_desc_check_t)), .Depth(NumTx * HeldSlots), .Init(1'b0), .Coherent(1'b0)) u_checks (
    .clk_i, .rst_ni, .wen_i(arrived_q), .waddr_i({ctx_q, position_q[HeldSlotW-1:0]}), .wdata_i(check),
    .raddr_i({read_ctx_i, read_slot}), .rdata_o(read_check), .error_o(unused_error[1]), .ready_o(check_ready)
  );
  // The addresses are compared for each context, so that the comparison does not wait for the choice.
  always_comb begin
    for (int unsigned i = 0; i < NumTx; i++) begin
      beside[i] = arrived_q && ctx_q == TxW'(i) && position_q[HeldSlotW-1:0] == done_i[i][HeldSlotW-1:0];
    end
  end
  assign check_o    = beside_q ? check_q : tx_desc_check_t'(read_check);
  assign checking_o = arrived_q;
  assign ready_o    = slot_ready && check_ready;

  logic unused_bits;
  assign unused_bits = ^{unused_error, done_i};
endmodule
