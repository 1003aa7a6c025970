// SPDX-License-Identifier: Apache-2.0
// Assumptions about a network of UDP sockets. All of them are for speed: no
// rule of the protocol depends on them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/soft/udp/interface.h"

namespace heddle::soft::udp {

// So many entropies in a row share a source port: datagrams of one port leave
// joined, although a PDC changes its entropy with each packet.
constexpr uint32_t kEntropyRun = 32;

struct Pace {
  // NSCC: the window of a PDC is one and a half times the bytes that pass in
  // the round trip of an empty network.
  uint32_t cwnd_bytes = 0;
  uint32_t base_rtt_ns = 0;
  // Longest wait of an ACK that was not requested.
  uint64_t ack_delay_ns = 0;
};

// `receive_bytes`: of a socket's receive buffer, as the kernel counts it.
inline Pace PaceOf(const Interface& interface, uint32_t receive_bytes,
                   uint64_t rto_ns) {
  constexpr uint32_t kRoundTripNs = 100'000;  // Through two kernels.
  // 10 Gbit/s; less than the receive buffer that kernels grant a socket
  // unasked.
  constexpr uint32_t kWindowBytes = 187'500;
  // 40 Gbit/s. The peer's kernel is this one, and grants as much.
  constexpr uint32_t kLoopbackWindowBytes = 750'000;
  // An ACK costs as much as a small message: 16 of those, sent in turns with
  // their answers, take less time, and the last of them requests it.
  constexpr uint64_t kAckDelayNs = 200'000;
  constexpr uint64_t kAckDelaysPerRto = 16;
  Pace pace{.cwnd_bytes = kWindowBytes,
            .base_rtt_ns = kRoundTripNs,
            .ack_delay_ns = std::min(kAckDelayNs, rto_ns / kAckDelaysPerRto)};
  if (interface.loopback) {
    // The kernel counts up to twice the bytes of a datagram.
    pace.cwnd_bytes =
        std::clamp(receive_bytes / 2, kWindowBytes, kLoopbackWindowBytes);
  }
  return pace;
}

}  // namespace heddle::soft::udp
