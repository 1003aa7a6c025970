// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/shaper.h"

#include <algorithm>
#include <cmath>

namespace heddle::sim {
namespace {

constexpr uint32_t kFractionBits = 20;
}  // namespace

Shaper::Shaper(const FaultOptions& options)
    : options_(options),
      marks_(options.seed ^ 0x65636e),
      jitter_(options.seed ^ 0x6a6974746572) {}

uint64_t Shaper::Serialize(uint64_t bytes, uint64_t now) {
  if (free_at_ < now) {
    free_at_ = now;
    free_fraction_ = 0;
  }
  constexpr double kBits = 8;
  constexpr uint64_t kOne = uint64_t{1} << kFractionBits;
  // Sums of integers do not depend on rounding.
  free_fraction_ += static_cast<uint64_t>(
      std::llround(static_cast<double>(bytes) * kBits / options_.rate *
                   static_cast<double>(kOne)));
  free_at_ += free_fraction_ / kOne;
  free_fraction_ %= kOne;
  return free_at_ + (free_fraction_ > 0 ? 1 : 0);
}

void Shaper::Push(LineFrame frame, uint64_t now) {
  while (!queue_.empty() && queue_.front().first <= now) {
    queued_bytes_ -= queue_.front().second;
    queue_.pop_front();
  }
  const uint64_t bytes = frame.bytes.size();
  // Both drawn for each frame: the fate of one does not shift that of others.
  const bool drawn = marks_.Chance(options_.ecn);
  const double share = static_cast<double>(jitter_.Next() >> 11) / 0x1p53;
  if (options_.rate > 0 && queued_bytes_ > 0 &&
      queued_bytes_ + bytes > options_.queue_bytes) {
    ++overflowed_;
    return;
  }
  const bool congested =
      options_.ecn_bytes > 0 && queued_bytes_ > options_.ecn_bytes;
  if (drawn || congested) {
    marked_ += MarkCongestion(&frame.bytes);
  }
  uint64_t departs = now;
  if (options_.rate > 0) {
    departs = Serialize(bytes, now);
    queue_.emplace_back(departs, bytes);
    queued_bytes_ += bytes;
  }
  const auto late =
      static_cast<uint64_t>(share * (static_cast<double>(options_.jitter) + 1));
  under_way_.push_back({std::move(frame), departs + options_.delay +
                                              std::min(late, options_.jitter)});
}

void Shaper::Release(uint64_t now, std::vector<LineFrame>* out) {
  while (!under_way_.empty() && under_way_.front().arrives <= now) {
    out->push_back(std::move(under_way_.front().frame));
    under_way_.pop_front();
  }
}

}  // namespace heddle::sim
