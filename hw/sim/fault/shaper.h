// SPDX-License-Identifier: Apache-2.0
// The part of a wire that takes time: a bottleneck with a queue, and a length
// of cable behind it.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "hw/sim/base/random.h"
#include "hw/sim/fault/faults.h"

namespace heddle::sim::fault {

// Frames leave in the order in which they came, but for trimmed ones: queued
// for `rate`, then under way for `delay` and a part of `jitter`, marked as
// `ecn` and `ecn_bytes` say. The same calls with the same times give the same
// result. Thread safety: none.
class Shaper {
 public:
  explicit Shaper(const FaultOptions& options);

  // Takes a frame at `now`, which never goes back; trims or loses it if the
  // queue is full.
  void Push(LineFrame frame, uint64_t now);
  // Appends the frames whose time has come.
  void Release(uint64_t now, std::vector<LineFrame>* out);

  // When `Release` has something; UINT64_MAX if nothing is under way. While
  // frames wait, one that has not passed the bottleneck is.
  uint64_t next() const {
    return under_way_.empty() ? UINT64_MAX : under_way_.front().arrives;
  }

  uint64_t overflowed() const { return overflowed_; }
  uint64_t marked() const { return marked_; }
  uint64_t trimmed() const { return trimmed_; }

 private:
  struct Waiting {
    LineFrame frame;
    uint64_t came;
    uint64_t late;  // Its part of the jitter.
  };
  // Of the bottleneck. The frame that passes it counts until it has passed.
  struct Queue {
    std::deque<Waiting> frames;
    uint64_t bytes = 0;
  };

  // Begins with what the bottleneck is free for at `now`.
  void Serve(uint64_t now);
  // The time at which the last of `bytes` has passed the bottleneck.
  uint64_t Serialize(uint64_t bytes, uint64_t now);

  struct UnderWay {
    LineFrame frame;
    uint64_t arrives;  // Or later, behind those before it.
  };

  const FaultOptions options_;
  base::Random marks_;
  base::Random jitter_;
  std::deque<UnderWay> under_way_;
  Queue data_;  // All but
  Queue left_;  // what is left of trimmed frames, which goes first.
  Queue* passing_ = nullptr;    // Of the frame that passes the bottleneck,
  uint64_t passing_bytes_ = 0;  // so long,
  uint64_t passed_at_ = 0;      // until then.
  uint64_t free_at_ = 0;        // When the bottleneck has nothing to do,
  uint64_t free_fraction_ = 0;  // and so many 2^-20 later.
  uint64_t overflowed_ = 0;
  uint64_t marked_ = 0;
  uint64_t trimmed_ = 0;
};

}  // namespace heddle::sim::fault
