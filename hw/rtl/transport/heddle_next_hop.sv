// SPDX-License-Identifier: Apache-2.0
// Table of next hops, written and read through the table port.
//
// Exact:    a hop that is not valid is answered so; there is no other that stands in for it.
// Latency:  lookup 1 cycle behind `hop_i`; it is void in the cycle after a table read, which
//           needs the port of the memory. Table access 1 cycle.

`include "heddle_assert.svh"

module heddle_next_hop
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic            tbl_valid_i,
  input  table_req_t      tbl_req_i,
  output table_rsp_t      tbl_rsp_o,

  input  logic [HopW-1:0] hop_i,
  output logic            found_o,   // The answer is that of last cycle's `hop_i`.
  output logic            valid_o,   // That hop may be used.
  output logic [47:0]     mac_o,
  output logic [11:0]     vlan_o,    // 0: untagged.
  output logic            ready_o    // The table is initialised.
);
  localparam int unsigned EntryW = 1 + 16 + 16 + 48;  // valid, mtu, vlan, mac.

  logic              done_q, error_q, found_q;
  logic [EntryW-1:0] entry;
  logic              parity_error;

  // -------------------------------------------------------------- table port
  next_hop_cfg_t     written, answered;
  logic              start, exists, write;
  logic [HopW-1:0]   index;
  assign written = tbl_req_i.data;
  assign start   = tbl_valid_i && tbl_req_i.sel == TableNextHop && !done_q && ready_o;
  assign exists  = 32'(tbl_req_i.index) < NumHop;
  assign index   = tbl_req_i.index[HopW-1:0];
  assign write   = start && exists && tbl_req_i.op == TableOpWrite;

  heddle_mem #(.Width(EntryW), .Depth(NumHop)) u_hops (
    .clk_i, .rst_ni,
    .wen_i(write), .waddr_i(index),
    .wdata_i({written.valid[0], written.mtu, written.vlan, written.mac[47:0]}),
    .raddr_i(start ? index : hop_i), .rdata_o(entry),
    .error_o(parity_error), .ready_o(ready_o)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      done_q  <= 1'b0;
      error_q <= 1'b0;
      found_q <= 1'b0;
    end else begin
      done_q  <= start;
      found_q <= ready_o && !start;
      if (start) error_q <= !exists;
    end
  end

  always_comb begin
    answered        = '0;
    answered.valid  = 8'(entry[EntryW-1]);
    answered.mtu    = entry[79:64];
    answered.vlan   = entry[63:48];
    answered.mac    = 64'(entry[47:0]);
    tbl_rsp_o       = '0;
    if (done_q) begin
      tbl_rsp_o.done  = 1'b1;
      tbl_rsp_o.error = error_q;
      tbl_rsp_o.data  = answered;
    end
  end

  assign found_o = found_q;
  assign valid_o = found_q && entry[EntryW-1];
  assign mac_o   = entry[47:0];
  assign vlan_o  = entry[59:48];

  logic unused_bits;
  assign unused_bits = ^{written, parity_error};
endmodule
