// SPDX-License-Identifier: Apache-2.0
// Frames as the wires carry them.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::sim::frame {

using Frame = std::vector<uint8_t>;  // Ethernet frame without FCS.
inline constexpr uint32_t kMinFrameBytes = 14;
inline constexpr uint32_t kMaxWireFrameBytes = 16384;

// What a frame's sender says of it beside the frame.
struct FrameMarks {
  bool bad_fcs = false;  // A MAC would find it damaged.
  // The CRC was left out, as it never leaves this machine's memory. Only for
  // receivers that said so.
  bool unchecked = false;
};

}  // namespace heddle::sim::frame
