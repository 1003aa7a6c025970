// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/descriptor.h"

namespace heddle::soft::engine {

using contract::Opcode;
using contract::Status;
using contract::TxDesc;

namespace {

constexpr uint8_t kKnownFlags =
    contract::kTxFlagCompletion | contract::kTxFlagInline |
    contract::kTxFlagInlineExt | contract::kTxFlagHeaderData |
    contract::kTxFlagFence | contract::kTxFlagDeliveryComplete |
    contract::kTxFlagMore;
constexpr uint32_t kMostExtensions =
    contract::kInjectBytes / contract::kDescBytes;

bool InlineIsRight(const TxDesc& descriptor) noexcept {
  return descriptor.length <= contract::kInlineBytes &&
         descriptor.segments == 0 && descriptor.ext_slots == 0;
}

bool InlineExtIsRight(const TxDesc& descriptor) noexcept {
  return descriptor.length <= contract::kInjectBytes &&
         descriptor.segments == 0 && descriptor.rsvd0 == 0 &&
         descriptor.ext_slots ==
             (descriptor.length + contract::kDescBytes - 1) /
                 contract::kDescBytes;
}

bool MemoryIsRight(const TxDesc& descriptor) noexcept {
  if (descriptor.rsvd0 != 0) {
    return false;
  }
  if (HasSegmentSlot(descriptor)) {
    return descriptor.segments <= contract::kLocalSegments &&
           descriptor.length != 0 && descriptor.ext_slots == 1;
  }
  return descriptor.segments == (descriptor.length != 0 ? 1 : 0) &&
         descriptor.local_length == descriptor.length &&
         descriptor.ext_slots == 0;
}

bool LengthsAreRight(const TxDesc& descriptor) noexcept {
  const bool in_line = (descriptor.flags & contract::kTxFlagInline) != 0;
  const bool in_slots = (descriptor.flags & contract::kTxFlagInlineExt) != 0;
  if ((descriptor.flags & ~kKnownFlags) != 0 || (in_line && in_slots)) {
    return false;
  }
  switch (descriptor.opcode) {
    case Opcode::kNop:
      if (descriptor.length != 0) {
        return false;
      }
      break;
    case Opcode::kRead:
      // The result needs a place, and carries nothing to the peer.
      if (in_line || in_slots ||
          (descriptor.flags & contract::kTxFlagHeaderData) != 0) {
        return false;
      }
      break;
    default:
      break;
  }
  return in_line    ? InlineIsRight(descriptor)
         : in_slots ? InlineExtIsRight(descriptor)
                    : MemoryIsRight(descriptor);
}

bool OpcodeIsOffered(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::kNop:
    case Opcode::kWrite:
    case Opcode::kRead:
    case Opcode::kSend:
    case Opcode::kTaggedSend:
      return true;
    case Opcode::kAtomic:
    case Opcode::kFetchingAtomic:
      break;
  }
  return false;
}

}  // namespace

DescriptorVerdict CheckDescriptor(const TxDesc& descriptor,
                                  const RingSlot& slot) noexcept {
  if (descriptor.position != slot.position) {
    return {Status::kBadPosition, 1};
  }
  DescriptorVerdict verdict;
  const bool fits =
      uint32_t{slot.index} + 1 + descriptor.ext_slots <= slot.size;
  const bool extended = (descriptor.flags & contract::kTxFlagInlineExt) != 0 ||
                        HasSegmentSlot(descriptor);
  if (extended && descriptor.ext_slots <= kMostExtensions && fits) {
    verdict.slots = static_cast<uint8_t>(1 + descriptor.ext_slots);
  }
  if (!OpcodeIsOffered(descriptor.opcode)) {
    verdict.status = Status::kBadOpcode;
  } else if (!fits || !LengthsAreRight(descriptor)) {
    verdict.status = Status::kBadLength;
  }
  return verdict;
}

bool CheckSegments(const TxDesc& descriptor,
                   const Segments& segments) noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < segments.size(); ++i) {
    if (segments[i].rsvd0 != 0) {
      return false;
    }
    if (i >= descriptor.segments &&
        (segments[i].length != 0 || segments[i].iova != 0)) {
      return false;
    }
    sum += segments[i].length;
  }
  return sum == descriptor.length;
}

}  // namespace heddle::soft::engine
