// SPDX-License-Identifier: Apache-2.0
// Concurrent-assertion macros with the clock and reset every module uses.
//
// Two reasons to exist: Verilator 5.006 does not parse `default disable iff`, and
// synthesis (Yosys defines YOSYS) parses no concurrent assertion, so there they
// are empty.  Assertions state design invariants; bad input from the host or the
// wire is handled by logic, never by an assertion.

`ifndef HEDDLE_ASSERT_SVH_
`define HEDDLE_ASSERT_SVH_

`ifdef YOSYS
`define HEDDLE_ASSERT(name, prop)
`define HEDDLE_ASSUME(name, prop)
`else

// Invariant this module guarantees.
`define HEDDLE_ASSERT(name, prop) \
  name: assert property (@(posedge clk_i) disable iff (!rst_ni) (prop));

// Obligation of whoever drives this module's inputs.
`define HEDDLE_ASSUME(name, prop) \
  name: assume property (@(posedge clk_i) disable iff (!rst_ni) (prop));

`endif

`endif
