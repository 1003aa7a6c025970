// SPDX-License-Identifier: Apache-2.0
// How far an ACK of a target PDC acknowledges. Combinational.
//
// Held: everything accepted, but not a packet whose error answer the initiator has not cleared yet (UET 2.15), nor one
//       whose data is not visible yet, nor what follows.

`include "heddle_assert.svh"

module heddle_cack
  import heddle_contract_pkg::*;
  import heddle_pkg::*;
  import heddle_transport_pkg::*;
(
  input  target_pdc_t entry_i,
  output logic [31:0] cack_o,
  output logic        to_error_o  // Up to the packet with the error answer, which goes with it.
);
  logic [31:0] stored, base;
  logic        hidden;
  assign stored     = (entry_i.stored ? entry_i.stored_psn : entry_i.expected) - 32'd1;
  assign base       = entry_i.hidden_base - stored;
  assign hidden     = entry_i.hidden && base[31];
  assign cack_o     = hidden ? entry_i.hidden_base : stored;
  assign to_error_o = entry_i.stored && !hidden;

  logic unused_bits;
  assign unused_bits = ^{entry_i, base};
endmodule
