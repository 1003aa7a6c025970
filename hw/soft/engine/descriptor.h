// SPDX-License-Identifier: Apache-2.0
// Transmit descriptors: whether one may be executed.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::soft::engine {

// Where in its ring a descriptor stands.
struct RingSlot {
  uint16_t position = 0;  // Free-running.
  uint16_t index = 0;     // In the ring.
  uint16_t size = 0;      // Of the ring.
};

struct DescriptorVerdict {
  // kOk, kBadPosition, kBadOpcode or kBadLength.
  contract::Status status = contract::Status::kOk;
  // Slots that the operation occupies, at least 1. Those of a refused one count
  // if it plausibly has them, so that payload is not taken for descriptors.
  uint8_t slots = 1;
};

// Everything that the descriptor alone tells; segments of the extension slot
// are `CheckSegments`'s.
DescriptorVerdict CheckDescriptor(const contract::TxDesc& descriptor,
                                  const RingSlot& slot) noexcept;

// The slots behind a descriptor: payload, or segments in the first.
using Extension = std::array<uint8_t, contract::kInjectBytes>;
using Segments = std::array<contract::TxSegment, contract::kLocalSegments>;

inline Segments SegmentsOf(const Extension& extension) noexcept {
  Segments segments;
  std::memcpy(segments.data(), extension.data(), sizeof(segments));
  return segments;
}

// The sum is the message, unused ones are zero.
bool CheckSegments(const contract::TxDesc& descriptor,
                   const Segments& segments) noexcept;

// Its payload is in memory of its own, by address.
constexpr bool HasSegmentSlot(const contract::TxDesc& descriptor) noexcept {
  return descriptor.segments > 1;
}

// Class for `tx_ctx_cfg.ordered`.
constexpr uint8_t OrderClassOf(contract::Opcode opcode) noexcept {
  switch (opcode) {
    case contract::Opcode::kWrite:
      return contract::kOrderClassWrite;
    case contract::Opcode::kRead:
      return contract::kOrderClassRead;
    case contract::Opcode::kAtomic:
    case contract::Opcode::kFetchingAtomic:
      return contract::kOrderClassAtomic;
    case contract::Opcode::kSend:
    case contract::Opcode::kTaggedSend:
      return contract::kOrderClassSend;
    case contract::Opcode::kNop:
      break;
  }
  return 0;
}

}  // namespace heddle::soft::engine
