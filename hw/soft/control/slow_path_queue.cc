// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/control/slow_path_queue.h"

#include <algorithm>

namespace heddle::soft::control {

void SlowPathQueue::Accept(std::span<const uint8_t> frame) {
  const uint64_t now = now_ns_();
  if (now - window_start_ns_ >= window_ns_) {
    in_window_ = 0;
  }
  if (frame.size() > contract::kSlowPathRxBytes || count_ == frames_.size() ||
      in_window_ == contract::kSlowPathRate) {
    ++dropped_;
    return;
  }
  if (in_window_ == 0) {
    window_start_ns_ = now;
  }
  ++in_window_;
  ++accepted_;
  Frame& slot = frames_[(first_ + count_) % frames_.size()];
  std::copy(frame.begin(), frame.end(), slot.bytes.begin());
  slot.size = frame.size();
  ++count_;
}

std::span<const uint8_t> SlowPathQueue::front() const {
  if (count_ == 0) {
    return {};
  }
  return std::span(frames_[first_].bytes).first(frames_[first_].size);
}

void SlowPathQueue::Pop() {
  if (count_ > 0) {
    first_ = (first_ + 1) % frames_.size();
    --count_;
  }
}

}  // namespace heddle::soft::control
