// SPDX-License-Identifier: Apache-2.0
// Table of next hops, written and read through the table port.
//
// Falls back to hop 0, the gateway, where the wanted hop is not valid.
// Latency: lookup 0 cycles, table access 1 cycle.

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
  output logic            valid_o,   // Low: neither the hop nor the gateway.
  output logic [47:0]     mac_o
);
  localparam int unsigned EntryW = 1 + 16 + 16 + 48;  // valid, mtu, vlan, mac.

  logic [NumHop-1:0][EntryW-1:0] hops_q;
  logic                          done_q, error_q;
  logic [EntryW-1:0]             read_q;

  // -------------------------------------------------------------- table port
  next_hop_cfg_t     written, answered;
  logic              start, exists;
  logic [HopW-1:0]   index;
  assign written = tbl_req_i.data;
  assign start   = tbl_valid_i && tbl_req_i.sel == TableNextHop && !done_q;
  assign exists  = tbl_req_i.index < 16'(NumHop);
  assign index   = tbl_req_i.index[HopW-1:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      hops_q  <= '0;
      done_q  <= 1'b0;
      error_q <= 1'b0;
      read_q  <= '0;
    end else begin
      done_q <= start;
      if (start) begin
        error_q <= !exists;
        read_q  <= hops_q[index];
        if (exists && tbl_req_i.op == TableOpWrite) begin
          hops_q[index] <= {written.valid[0], written.mtu, written.vlan, written.mac[47:0]};
        end
      end
    end
  end

  always_comb begin
    answered           = '0;
    answered.valid     = 8'(read_q[EntryW-1]);
    answered.mtu       = read_q[79:64];
    answered.vlan      = read_q[63:48];
    answered.mac       = 64'(read_q[47:0]);
    tbl_rsp_o.done     = done_q;
    tbl_rsp_o.error    = error_q;
    tbl_rsp_o.data     = answered;
  end

  // ------------------------------------------------------------------ lookup
  logic [EntryW-1:0] wanted, gateway, found;
  assign wanted  = hops_q[hop_i];
  assign gateway = hops_q[0];
  assign found   = wanted[EntryW-1] ? wanted : gateway;
  assign valid_o = found[EntryW-1];
  assign mac_o   = found[47:0];

  logic unused_bits;
  assign unused_bits = ^{written, found};
endmodule
