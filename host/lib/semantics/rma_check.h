// SPDX-License-Identifier: Apache-2.0
// Whether a peer may touch memory, and where.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::semantics {

// What peers may do; fetching atomics need both (libfabric 292).
inline constexpr uint8_t kRemoteRead = 1;
inline constexpr uint8_t kRemoteWrite = 2;

// Memory that peers may reach.
struct RegionSpec {
  static constexpr uint32_t kAnyEndpoint = 0xffffffff;

  uint64_t base = 0;    // As peers address the first byte.
  uint64_t length = 0;  // Bytes; `base + length` is at most 2^64 - 1.
  uint8_t access = 0;
  uint64_t key = 0;
  uint32_t job_id = 0;               // Peers of other jobs do not find it.
  uint32_t endpoint = kAnyEndpoint;  // The one that it serves.
};

// Access rights that an opcode needs; 0 for those that are no RMA.
uint8_t AccessOf(contract::SesOpcode opcode) noexcept;

// What one request packet asks for (UET 4.2).
struct RmaRequest {
  contract::SesOpcode opcode = contract::SesOpcode::kWrite;
  uint64_t key = 0;
  uint64_t buffer_offset = 0;   // The same in all packets of a message.
  uint32_t request_length = 0;  // Of the whole message.
  uint32_t message_offset = 0;
  uint32_t length = 0;  // Bytes that this packet writes or reads.
  uint32_t job_id = 0;
  uint32_t endpoint = 0;  // That the packet is for.
};

struct RmaAnswer {
  contract::ReturnCode code = contract::ReturnCode::kBadMkey;
  uint64_t offset = 0;  // With kOk: of the packet's first byte in the region.
};

// `region` is the one of the request's key, or null when there is none. Answers
// in this order (UET 4.14):
//   UNSUPPORTED_OP    no RMA and no atomic;
//   BAD_MKEY          no such region for this job and endpoint;
//   PERM_VIOLATION    the region does not grant what the opcode needs;
//   UNSUPPORTED_SIZE  the message is longer than the region;
//   BAD_ADDR          bytes of the message, or of the packet, are outside.
//
// The whole message is checked in each packet, so that all its packets get one
// answer and none of it is placed when its end is outside (libfabric 117). No
// bytes need a key and access right too, and an address from the region's first
// byte to the one after its last.
RmaAnswer CheckRma(const RegionSpec* region,
                   const RmaRequest& request) noexcept;

}  // namespace heddle::semantics
