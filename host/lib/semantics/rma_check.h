// SPDX-License-Identifier: Apache-2.0
// Whether a peer may touch memory, and where.
#pragma once

#include <cstdint>

#include "host/lib/semantics/region_table.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::semantics {

// What one request packet asks for (UET 4.2).
struct RmaRequest {
  contract::SesOpcode opcode = contract::SesOpcode::kWrite;
  uint64_t key = 0;
  uint64_t buffer_offset = 0;   // The same in all packets of a message.
  uint32_t request_length = 0;  // Of the whole message.
  uint32_t message_offset = 0;
  uint32_t length = 0;  // Bytes that this packet writes or reads.
  uint32_t job_id = 0;
  uint32_t endpoint = 0;    // That the packet is for.
  bool idempotent = false;  // Came as RUDI.
};

struct RmaAnswer {
  contract::ReturnCode code = contract::ReturnCode::kBadMkey;
  uint32_t region = kNone;  // With kOk.
  uint64_t address = 0;     // With kOk: of the packet's first byte.
};

// Answers in this order (UET 4.14):
//   UNSUPPORTED_OP  no RMA and no atomic;
//   BAD_MKEY        no such region for this job and endpoint;
//   OP_VIOLATION    idempotent request to a region not safe for it;
//   PERM_VIOLATION  the region does not grant what the opcode needs;
//   BAD_ADDR        bytes of the message, or of the packet, are outside.
//
// The whole message is checked in each packet, so that all its packets get one
// answer and none of it is placed when its end is outside (libfabric 117). No
// bytes need a key and access right too, and an address from the region's first
// byte to the one behind its last. Takes no reference: `Acquire` is the
// caller's, before the access begins.
RmaAnswer CheckRma(const RegionTable& table,
                   const RmaRequest& request) noexcept;

// The same for a region that its owner looked up: `region` is its name, or
// kNone when there is none, and `spec` then nothing.
RmaAnswer CheckRma(uint32_t region, const RegionSpec& spec,
                   const RmaRequest& request) noexcept;

// Access rights that an opcode needs; 0 for those that are no RMA.
uint8_t AccessOf(contract::SesOpcode opcode) noexcept;

}  // namespace heddle::semantics
