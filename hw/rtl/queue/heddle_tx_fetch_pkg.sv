// SPDX-License-Identifier: Apache-2.0
// Records between the parts of heddle_tx_fetch.

package heddle_tx_fetch_pkg;
  import heddle_contract_pkg::*;
  import heddle_pkg::*;

  localparam int unsigned HeldSlots = 128;  // Descriptors a context may hold or await.
  localparam int unsigned HeldSlotW = $clog2(HeldSlots);

  localparam int unsigned HaveW = 3;  // Counts the slots that arrived from a context's next operation on, up to more than one has.

  // The checks of a descriptor by its own slot.
  typedef struct packed {
    logic             position_ok;  // It shows its own position: it is the one that was expected.
    logic             opcode_ok;
    logic             lengths_ok;
    logic             segmented;    // All are, and its segments are in the next slot.
    logic [2:0]       slots;        // With its extension. One that makes sense counts even when the descriptor is refused, so that
                                    // payload is not taken for the next descriptor.
    logic [FlowHashW-1:0] hash;         // flow_hash.
  } tx_desc_check_t;
endpackage
