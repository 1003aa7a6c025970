// SPDX-License-Identifier: Apache-2.0
// One timer per entry of a table; a scan offers those that ran out.
//
// Changed by:  whoever changes the entry: `set_i` writes the timer of `set_idx_i`, `get_idx_i` reads one.
// Offers:      at most one entry at a time, some time after it ran out (a pass over all takes Num / Banks
//              cycles), and perhaps one whose timer was changed meanwhile: the taker looks at `get_o` again.
// Deadline:    known (`clean_o`) after a pass in which no timer changed.
// Latency:     `get_o` one cycle after `get_idx_i`, a write in the same cycle seen.

module heddle_timer_scan #(
  parameter  int unsigned Num   = 64,       // Timers, a power of two of at least 2 * Banks.
  localparam int unsigned Banks = 4,        // Looked at in one cycle.
  localparam int unsigned IdxW  = $clog2(Num)
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic [31:0]     now_i,            // Ticks.

  input  logic            set_i,
  input  logic [IdxW-1:0] set_idx_i,
  input  logic            set_on_i,
  input  logic [31:0]     set_at_i,

  input  logic [IdxW-1:0] get_idx_i,
  output logic            get_on_o,
  output logic [31:0]     get_at_o,

  output logic            due_o,
  output logic [IdxW-1:0] due_idx_o,
  input  logic            take_i,           // The offer was used.

  output logic            clean_o,
  output logic            deadline_valid_o, // While clean: some timer runs.
  output logic [31:0]     deadline_o,       // Tick at which the first runs out.
  output logic            ready_o
);
  localparam int unsigned BankW = $clog2(Banks);
  localparam int unsigned RowW  = IdxW - BankW;

  typedef struct packed {
    logic        on;
    logic [31:0] at;
  } timer_t;

  logic             get_ready, unused_get_error;
  logic [Banks-1:0] scan_ready, scan_error;
  timer_t           written;
  logic [Banks-1:0][32:0] scanned;
  logic [RowW-1:0]  scan_q, last_q;
  logic             valid_q;
  assign written = {set_on_i, set_at_i};

  heddle_mem #(.Width(33), .Depth(Num)) u_get (
    .clk_i, .rst_ni, .wen_i(set_i), .waddr_i(set_idx_i), .wdata_i(written),
    .raddr_i(get_idx_i), .rdata_o({get_on_o, get_at_o}),
    .error_o(unused_get_error), .ready_o(get_ready)
  );
  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    heddle_mem #(.Width(33), .Depth(Num / Banks)) u_scan (
      .clk_i, .rst_ni, .wen_i(set_i && set_idx_i[BankW-1:0] == BankW'(b)),
      .waddr_i(set_idx_i[IdxW-1:BankW]), .wdata_i(written),
      .raddr_i(scan_q), .rdata_o(scanned[b]),
      .error_o(scan_error[b]), .ready_o(scan_ready[b])
    );
  end
  assign ready_o = get_ready && (&scan_ready);

  // The one that runs out first; one that is off never does.
  function automatic timer_t nearer(timer_t a, timer_t b);
    nearer = !b.on || (a.on && $signed(b.at - a.at) >= 0) ? a : b;
  endfunction

  logic             ran_out;   // Some timer of the row, the last one of them here.
  logic [BankW-1:0] ran_out_bank;
  timer_t           timer;
  always_comb begin
    ran_out      = 1'b0;
    ran_out_bank = '0;
    timer        = '0;
    for (int unsigned b = 0; b < Banks; b++) begin
      timer = timer_t'(scanned[b]);
      if (valid_q && timer.on && $signed(now_i - timer.at) >= 0) begin
        ran_out      = 1'b1;
        ran_out_bank = BankW'(b);
      end
    end
  end

  // The nearest deadline of the pass so far, two cycles after the row was read: the nearer one of two banks first, then of
  // the row.
  timer_t low_q, high_q, row_q, pass, pass_q;
  logic   halves_valid_q, halves_last_q, row_valid_q, row_last_q, pass_dirty_q, set_q, clean_q, clean_any_q;
  logic [31:0] clean_at_q;
  assign pass = nearer(pass_q, row_q);
  always_ff @(posedge clk_i) begin
    low_q  <= nearer(timer_t'(scanned[0]), timer_t'(scanned[1]));
    high_q <= nearer(timer_t'(scanned[2]), timer_t'(scanned[3]));
    row_q  <= nearer(low_q, high_q);
  end

  logic            due_q;
  logic [IdxW-1:0] due_idx_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      scan_q       <= '0;
      last_q       <= '0;
      valid_q      <= 1'b0;
      due_q        <= 1'b0;
      due_idx_q    <= '0;
      halves_valid_q <= 1'b0;
      halves_last_q  <= 1'b0;
      row_valid_q  <= 1'b0;
      row_last_q   <= 1'b0;
      pass_q       <= '0;
      pass_dirty_q <= 1'b1;
      set_q        <= 1'b0;
      clean_q      <= 1'b0;
      clean_any_q  <= 1'b0;
      clean_at_q   <= '0;
    end else begin
      valid_q <= ready_o;
      last_q  <= scan_q;
      if (ready_o) scan_q <= scan_q + 1'b1;
      if (take_i)  due_q  <= 1'b0;
      if (ran_out && (!due_q || take_i)) begin
        due_q     <= 1'b1;
        due_idx_q <= {last_q, ran_out_bank};
      end
      set_q <= set_i;
      if (set_i) begin
        pass_dirty_q <= 1'b1;
        clean_q      <= 1'b0;
      end
      halves_valid_q <= valid_q;
      halves_last_q  <= valid_q && last_q == '1;
      row_valid_q    <= halves_valid_q;
      row_last_q     <= halves_last_q;
      if (row_last_q) begin
        pass_q       <= '0;
        pass_dirty_q <= set_i || set_q;  // Its first row was read already.
        if (!pass_dirty_q && !set_i) begin
          clean_q     <= 1'b1;
          clean_any_q <= pass.on;
          clean_at_q  <= pass.at;
        end
      end else if (row_valid_q) begin
        pass_q <= pass;
      end
    end
  end

  assign due_o            = due_q;
  assign due_idx_o        = due_idx_q;
  assign clean_o          = clean_q;
  assign deadline_valid_o = clean_q && clean_any_q;
  assign deadline_o       = clean_at_q;

  logic unused;
  assign unused = ^{scan_error, unused_get_error};
endmodule
