// SPDX-License-Identifier: Apache-2.0
// Bytes of a message that have arrived.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::semantics {

// Set of byte ranges, at most `kRanges` that do not touch. Touching ranges are
// merged, so that arrival in order needs one; a sender with W packets in flight
// needs at most W / 2 + 1.
//
// Thread safety: one thread at a time.
template <size_t kRanges>
class RangeSet {
 public:
  RangeSet() noexcept {}  // Not `= default`, which may set `ranges_`.
  enum class Added : uint8_t {
    kNew,        // None of the bytes was there.
    kDuplicate,  // All were there, or there are none; unchanged.
    kOverlap,    // Some were there; unchanged.
    kFull,       // One more range than fits; unchanged.
  };

  // Adds [begin, end), begin <= end.
  [[nodiscard]] Added Add(uint64_t begin, uint64_t end) noexcept {
    if (begin == end) {
      return Added::kDuplicate;
    }
    // First range that reaches `begin`.
    Range* const last = ranges_.data() + count_;
    Range* at = std::lower_bound(
        ranges_.data(), last, begin,
        [](const Range& range, uint64_t value) { return range.end < value; });
    if (at != last && at->begin <= begin && end <= at->end) {
      return Added::kDuplicate;
    }
    Range* const after = at != last && at->end == begin ? at + 1 : at;
    if (after != last && after->begin < end) {
      return Added::kOverlap;
    }
    const bool joins_before = after != at;
    const bool joins_after = after != last && after->begin == end;
    if (joins_before && joins_after) {
      at->end = after->end;
      std::move(after + 1, last, after);
      --count_;
    } else if (joins_before) {
      at->end = end;
    } else if (joins_after) {
      after->begin = begin;
    } else if (count_ == kRanges) {
      return Added::kFull;
    } else {
      std::move_backward(at, last, last + 1);
      *at = {begin, end};
      ++count_;
    }
    bytes_ += end - begin;
    return Added::kNew;
  }

  // All of [0, end) is there.
  bool Covers(uint64_t end) const noexcept {
    return end == 0 ||
           (count_ != 0 && ranges_[0].begin == 0 && ranges_[0].end >= end);
  }

  // End of the last range; 0 for the empty set.
  uint64_t end() const noexcept {
    return count_ == 0 ? 0 : ranges_[count_ - 1].end;
  }
  uint64_t bytes() const noexcept { return bytes_; }
  size_t count() const noexcept { return count_; }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };
  // Ascending, with gaps between. Not set beyond `count_`: most messages never
  // use it, and it is larger than all else of them.
  std::array<Range, kRanges> ranges_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace heddle::semantics
