// SPDX-License-Identifier: Apache-2.0
// A path to heddle_accept that drops, duplicates and reorders.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>

#include "hw/sim/base/random.h"
#include "tests/rtl/transport/accept_bench.h"

namespace heddle::test {

// Packet `piece` of a message of `length` bytes: its part of the message.
inline void SetPiece(rtl::RxPacket* packet, uint32_t piece, uint32_t mtu,
                     uint32_t length, uint64_t header_data) {
  packet->som = piece == 0;
  packet->request_length = length;
  if (piece == 0) {
    packet->header_data = header_data;
  } else {
    packet->message_offset = piece * mtu;
  }
  if (!packet->ie) {
    packet->payload_bytes =
        static_cast<uint16_t>(std::min(mtu, length - piece * mtu));
  }
}

class Path {
 public:
  Path(AcceptBench& bench, sim::base::Random& random, double trouble)
      : bench_(bench), random_(random), trouble_(trouble) {}

  void Submit(const rtl::RxPacket& packet) {
    if (random_.Chance(trouble_)) return;
    const int copies = random_.Chance(trouble_) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const uint64_t delay = random_.Chance(trouble_) ? random_.Below(200) : 5;
      flying_.emplace(bench_.cycle + delay, packet);
    }
  }
  void Deliver() {
    // As the receive buffer of the parser: a little is held, the rest lost.
    while (!flying_.empty() && flying_.begin()->first <= bench_.cycle) {
      const rtl::RxPacket& packet = flying_.begin()->second;
      if (bench_.waiting() < 8) {
        bench_.Send(packet);
        payload_bytes += packet.payload_bytes;
        if (packet.payload_bytes != 0) delivered.push_back(packet);
      }
      flying_.erase(flying_.begin());
    }
  }
  uint64_t payload_bytes = 0;
  std::deque<rtl::RxPacket>
      delivered;  // Those with payload: each has a record.

 private:
  AcceptBench& bench_;
  sim::base::Random& random_;
  double trouble_;
  std::multimap<uint64_t, rtl::RxPacket> flying_;
};

}  // namespace heddle::test
