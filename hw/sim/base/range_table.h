// SPDX-License-Identifier: Apache-2.0
// The set of host memory ranges that a device may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace heddle::sim::base {

// Ranges may overlap; a byte is mapped while at least one range holds it.
// Thread safety: none, the owner locks.
class RangeTable {
 public:
  // False for an empty or wrapping range.
  bool Add(uint64_t start, uint64_t bytes);

  // Removes one earlier `Add` of exactly this range; false if there is none.
  bool Remove(uint64_t start, uint64_t bytes);

  // True if every byte of [start, start + bytes) is mapped.
  bool Covers(uint64_t start, uint64_t bytes) const;

  // Length of the longest run of bytes that are all mapped or all unmapped,
  // starting at `start` and at most `bytes`; `mapped` says which.
  uint64_t Run(uint64_t start, uint64_t bytes, bool* mapped) const;

  // A run of mapped bytes around `position`, not always the longest; empty when
  // that byte is not mapped.
  struct Span {
    uint64_t start = 0;
    uint64_t end = 0;
  };
  Span Around(uint64_t position) const;

  size_t size() const { return ranges_.size(); }

 private:
  struct Segment {
    uint64_t end;
    uint32_t references;
  };

  // Makes `position` a segment boundary if it lies inside a segment.
  void Split(uint64_t position);

  std::map<uint64_t, Segment> segments_;  // By start, disjoint.
  std::multiset<std::pair<uint64_t, uint64_t>> ranges_;
};

}  // namespace heddle::sim::base
