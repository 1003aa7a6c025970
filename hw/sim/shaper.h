// SPDX-License-Identifier: Apache-2.0
// The part of a wire that takes time: a bottleneck with a queue, and a length
// of cable behind it.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "hw/sim/faults.h"
#include "hw/sim/random.h"

namespace heddle::sim {

// Frames leave in the order in which they came: queued for `rate`, then under
// way for `delay` and a part of `jitter`, marked as `ecn` and `ecn_bytes` say.
// The same calls with the same times give the same result.
// Thread safety: none.
class Shaper {
 public:
  explicit Shaper(const FaultOptions& options);

  // Takes a frame at `now`, which never goes back; loses it if the queue is
  // full.
  void Push(LineFrame frame, uint64_t now);
  // Appends the frames whose time has come.
  void Release(uint64_t now, std::vector<LineFrame>* out);

  // When `Release` has something; UINT64_MAX if nothing is under way.
  uint64_t next() const {
    return under_way_.empty() ? UINT64_MAX : under_way_.front().arrives;
  }

  uint64_t overflowed() const { return overflowed_; }
  uint64_t marked() const { return marked_; }

 private:
  // The time at which the last of `bytes` has passed the bottleneck.
  uint64_t Serialize(uint64_t bytes, uint64_t now);

  struct UnderWay {
    LineFrame frame;
    uint64_t arrives;  // Or later, behind those before it.
  };

  const FaultOptions options_;
  Random marks_;
  Random jitter_;
  std::deque<UnderWay> under_way_;
  // Departure and size of what waits for the bottleneck.
  std::deque<std::pair<uint64_t, uint64_t>> queue_;
  uint64_t queued_bytes_ = 0;
  uint64_t free_at_ = 0;        // When the bottleneck has nothing to do,
  uint64_t free_fraction_ = 0;  // and so many 2^-20 later.
  uint64_t overflowed_ = 0;
  uint64_t marked_ = 0;
};

}  // namespace heddle::sim
