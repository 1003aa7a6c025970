// SPDX-License-Identifier: Apache-2.0
// Which entries of a table are young: marked less than `span_i` ticks ago.
//
// Sure:    an entry is young for `span_i` ticks after its mark, and not again until the next one, however often
//          the counter of ticks wraps: a pass over all entries clears those that are old. It reads one in a cycle
//          without `get_i`, every other cycle at most, and must end well within the 2^TickW ticks of a wrap.
// Latency: `young_o` one cycle after `get_i`, a mark in the same cycle seen; it stays until the next `get_i`.

module heddle_ages #(
  parameter  int unsigned Num   = 64,  // Entries, a power of two of at least 2.
  parameter  int unsigned TickW = 32,
  localparam int unsigned IdxW  = $clog2(Num)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [TickW-1:0] now_i,      // Ticks, wraps.
  input  logic [TickW-1:0] span_i,     // 0: no entry is young.

  input  logic             mark_i,
  input  logic [IdxW-1:0]  mark_idx_i,
  input  logic             get_i,
  input  logic [IdxW-1:0]  get_idx_i,
  output logic             young_o,

  output logic             ready_o
);
  typedef struct packed {
    logic             marked;
    logic [TickW-1:0] at;
  } age_t;

  age_t            written, read;
  logic            get_q, scan_q, young, young_q, clear, unused_error;
  logic [IdxW-1:0] idx_q;  // The pass has reached this entry.
  assign clear   = scan_q && read.marked && !young && !mark_i;
  assign written = mark_i ? {1'b1, now_i} : '0;

  heddle_mem #(.Width($bits(age_t)), .Depth(Num)) u_ages (
    .clk_i, .rst_ni, .wen_i(mark_i || clear), .waddr_i(mark_i ? mark_idx_i : idx_q), .wdata_i(written),
    .raddr_i(get_i ? get_idx_i : idx_q), .rdata_o(read), .error_o(unused_error), .ready_o
  );
  assign young   = read.marked && now_i - read.at < span_i;
  assign young_o = get_q ? young : young_q;

  // An entry is read and, in the next cycle, cleared; one that is marked then is read again.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      get_q   <= 1'b0;
      scan_q  <= 1'b0;
      young_q <= 1'b0;
      idx_q   <= '0;
    end else begin
      get_q   <= get_i;
      scan_q  <= ready_o && !get_i && !scan_q;
      young_q <= young_o;
      if (scan_q && !mark_i) idx_q <= idx_q + 1'b1;
    end
  end

  logic unused;
  assign unused = unused_error;
endmodule
