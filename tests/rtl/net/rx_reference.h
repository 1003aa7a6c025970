// SPDX-License-Identifier: Apache-2.0
// What heddle_rx_parser makes of a frame, from the wire layouts alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/rtl/net/rx_frames.h"

namespace heddle::test {

// Of rx_packet_t, without those that are 0.
using Fields = std::map<std::string, uint64_t>;

struct Verdict {
  // Counter of the drop; kRxFrames for a good frame.
  contract::Statistic reason = contract::Statistic::kRxFrames;
  Fields fields;
  Bytes payload;
  bool quiet = false;  // Left to the slow path.
};

// DSCPs of trimmed packets; 0: none.
struct Trims {
  uint8_t path = 0;
  uint8_t lasthop = 0;
};

// `mac_error`: the MAC found the frame damaged.
Verdict Judge(const Bytes& frame, bool mac_error, const contract::PortCfg& port,
              const Trims& trims = {});

}  // namespace heddle::test
