// SPDX-License-Identifier: Apache-2.0
// The slow path between wire and firmware: few frames, and not too often.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/wire/slow_path_sink.h"

namespace heddle::soft::control {

// Rules of docs/rtl/mgmt.md: a frame that is too long, finds
// `slow_path_frames` others waiting, or is beyond `slow_path_rate` in a window
// that begins with a frame, is dropped. Thread safety: none.
class SlowPathQueue final : public wire::SlowPathSink {
 public:
  // `now_ns` is monotonic.
  SlowPathQueue(uint64_t tick_ns, std::function<uint64_t()> now_ns)
      : window_ns_(contract::kSlowPathWindowTicks * tick_ns),
        now_ns_(std::move(now_ns)) {}

  void Accept(std::span<const uint8_t> frame) override;

  bool waits() const { return count_ != 0; }  // One does.
  // The oldest one waiting; empty when there is none.
  std::span<const uint8_t> front() const;
  void Pop();

  uint64_t accepted() const { return accepted_; }
  uint64_t dropped() const { return dropped_; }

 private:
  struct Frame {
    std::array<uint8_t, contract::kSlowPathRxBytes> bytes;
    size_t size;
  };

  const uint64_t window_ns_;
  const std::function<uint64_t()> now_ns_;
  std::array<Frame, contract::kSlowPathFrames> frames_{};
  size_t first_ = 0;
  size_t count_ = 0;
  uint64_t window_start_ns_ = 0;
  uint32_t in_window_ = 0;  // 0: no window runs.
  uint64_t accepted_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace heddle::soft::control
