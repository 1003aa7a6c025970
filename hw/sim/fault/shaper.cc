// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/fault/shaper.h"

#include <algorithm>
#include <cmath>

namespace heddle::sim::fault {
namespace {

constexpr uint32_t kFractionBits = 20;
constexpr uint64_t kLeftShare = 4;  // Of the queue's room.

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

void Shaper::Serve(uint64_t now) {
  for (;;) {
    if (passing_ != nullptr) {
      if (passed_at_ > now) {
        return;
      }
      passing_->bytes -= passing_bytes_;
      passing_ = nullptr;
    }
    Queue& queue = left_.frames.empty() ? data_ : left_;
    if (queue.frames.empty()) {
      return;
    }
    Waiting waiting = std::move(queue.frames.front());
    queue.frames.pop_front();
    passing_ = &queue;
    passing_bytes_ = waiting.frame.bytes.size();
    // One that waited for the bottleneck begins when the one before it ended.
    passed_at_ = Serialize(passing_bytes_, waiting.came);
    under_way_.push_back(
        {std::move(waiting.frame), passed_at_ + options_.delay + waiting.late});
  }
}

void Shaper::Push(LineFrame frame, uint64_t now) {
  Serve(now);
  // Both drawn for each frame: the fate of one does not shift that of others.
  const bool drawn = marks_.Chance(options_.ecn);
  const double share = static_cast<double>(jitter_.Next() >> 11) / 0x1p53;
  const uint64_t late = std::min(
      static_cast<uint64_t>(share * (static_cast<double>(options_.jitter) + 1)),
      options_.jitter);
  const bool full = options_.rate > 0 && data_.bytes > 0 &&
                    data_.bytes + frame.bytes.size() > options_.queue_bytes;
  const bool trimmed =
      full && options_.trim &&
      TrimRequest(options_.trim_dscp, &frame.bytes, options_.ip_protocol);
  if (full && (!trimmed || left_.bytes + frame.bytes.size() >
                               options_.queue_bytes / kLeftShare)) {
    ++overflowed_;
    return;
  }
  const bool congested =
      options_.ecn_bytes > 0 && data_.bytes > options_.ecn_bytes;
  if (trimmed) {
    ++trimmed_;
  } else if (drawn || congested) {
    marked_ += MarkCongestion(&frame.bytes, options_.ip_protocol);
  }
  if (options_.rate == 0) {
    under_way_.push_back({std::move(frame), now + options_.delay + late});
    return;
  }
  Queue& queue = trimmed ? left_ : data_;
  queue.bytes += frame.bytes.size();
  queue.frames.push_back({std::move(frame), now, late});
  Serve(now);
}

void Shaper::Release(uint64_t now, std::vector<LineFrame>* out) {
  Serve(now);
  while (!under_way_.empty() && under_way_.front().arrives <= now) {
    out->push_back(std::move(under_way_.front().frame));
    under_way_.pop_front();
  }
}

}  // namespace heddle::sim::fault
