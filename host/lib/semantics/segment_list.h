// SPDX-License-Identifier: Apache-2.0
// A message in pieces of memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::semantics {

// Memory, local or at a peer; `key` is what gives access to it, if anything.
struct Segment {
  uint64_t address = 0;
  uint64_t length = 0;  // Bytes.
  uint64_t key = 0;

  bool operator==(const Segment&) const = default;
};

// At most `kSegments` of them, which the message fills in order; together no
// longer than a message can be.
//
// Thread safety: one thread at a time.
template <size_t kSegments>
class SegmentList {
 public:
  // False, and unchanged, when one too many, when the sum is longer than
  // kMaxMessageBytes, or when the segment wraps.
  [[nodiscard]] bool Add(const Segment& segment) noexcept {
    if (count_ == kSegments ||
        segment.length > contract::kMaxMessageBytes - bytes_ ||
        segment.address + segment.length < segment.address) {
      return false;
    }
    segments_[count_++] = segment;
    bytes_ += segment.length;
    return true;
  }

  // Calls `visit(const Segment&)` for each piece of memory behind the bytes
  // [offset, offset + length) of the message, in order; none is empty. False,
  // and no call, when they are not all within the segments.
  template <typename Visit>
  [[nodiscard]] bool ForEach(uint64_t offset, uint64_t length,
                             Visit&& visit) const {
    if (offset > bytes_ || length > bytes_ - offset) {
      return false;
    }
    for (size_t i = 0; i < count_ && length != 0; ++i) {
      const Segment& segment = segments_[i];
      if (offset >= segment.length) {
        offset -= segment.length;
        continue;
      }
      const uint64_t bytes = std::min(length, segment.length - offset);
      visit(Segment{segment.address + offset, bytes, segment.key});
      offset = 0;
      length -= bytes;
    }
    return true;
  }

  uint64_t bytes() const noexcept { return bytes_; }
  size_t count() const noexcept { return count_; }

 private:
  std::array<Segment, kSegments> segments_ = {};
  size_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace heddle::semantics
