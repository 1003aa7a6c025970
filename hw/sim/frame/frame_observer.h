// SPDX-License-Identifier: Apache-2.0
// Sees the frames of a port.
#pragma once

#include <cstdint>
#include <span>

namespace heddle::sim::frame {

// Called by the thread that moves the port.
class FrameObserver {
 public:
  enum class Way : uint8_t { kSent, kReceived };

  // A frame behind the faults of its direction, without FCS.
  virtual void Add(std::span<const uint8_t> frame, Way way) = 0;

 protected:
  ~FrameObserver() = default;
};

}  // namespace heddle::sim::frame
