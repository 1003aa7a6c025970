// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/range_table.h"

#include <algorithm>
#include <iterator>

namespace heddle::sim::base {

void RangeTable::Split(uint64_t position) {
  auto it = segments_.upper_bound(position);
  if (it == segments_.begin()) {
    return;
  }
  it = std::prev(it);
  if (it->first == position || it->second.end <= position) {
    return;
  }
  segments_.emplace(position, it->second);
  it->second.end = position;
}

bool RangeTable::Add(uint64_t start, uint64_t bytes) {
  const uint64_t end = start + bytes;
  if (bytes == 0 || end < start) {
    return false;
  }
  Split(start);
  Split(end);
  uint64_t position = start;
  auto it = segments_.lower_bound(start);
  while (position < end) {
    if (it == segments_.end() || it->first > position) {
      const uint64_t gap_end =
          it == segments_.end() ? end : std::min(end, it->first);
      segments_.emplace(position, Segment{gap_end, 1});
      position = gap_end;
    } else {
      ++it->second.references;
      position = it->second.end;
      ++it;
    }
  }
  ranges_.emplace(start, bytes);
  return true;
}

bool RangeTable::Remove(uint64_t start, uint64_t bytes) {
  const auto range = ranges_.find({start, bytes});
  if (range == ranges_.end()) {
    return false;
  }
  ranges_.erase(range);
  Split(start);
  Split(start + bytes);
  auto it = segments_.lower_bound(start);
  while (it != segments_.end() && it->first < start + bytes) {
    if (--it->second.references == 0) {
      it = segments_.erase(it);
    } else {
      ++it;
    }
  }
  return true;
}

uint64_t RangeTable::Run(uint64_t start, uint64_t bytes, bool* mapped) const {
  const uint64_t end = start + bytes < start ? UINT64_MAX : start + bytes;
  auto it = segments_.upper_bound(start);
  const bool inside =
      it != segments_.begin() && std::prev(it)->second.end > start;
  *mapped = inside;
  uint64_t position = start;
  if (inside) {
    it = std::prev(it);
    while (it != segments_.end() && it->first <= position && position < end) {
      position = std::min(end, it->second.end);
      ++it;
    }
  } else {
    position = it == segments_.end() ? end : std::min(end, it->first);
  }
  return position - start;
}

RangeTable::Span RangeTable::Around(uint64_t position) const {
  auto it = segments_.upper_bound(position);
  if (it == segments_.begin() || std::prev(it)->second.end <= position) {
    return {};
  }
  it = std::prev(it);
  return {.start = it->first, .end = it->second.end};
}

bool RangeTable::Covers(uint64_t start, uint64_t bytes) const {
  bool mapped = false;
  return bytes == 0 || (Run(start, bytes, &mapped) == bytes && mapped);
}

}  // namespace heddle::sim::base
