// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/device/device_board.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "hw/sim/base/clock.h"

namespace heddle::sim::device {
namespace {

constexpr uint64_t kRtoMaxNs = 640000000;
constexpr uint64_t kBackoffMaxNs = 1000000;
constexpr uint64_t kAckDelayTicks = 2;
// Longer than anything stays on a wire of ours that is not told to delay.
constexpr uint64_t kPdcSafetyNs = 1000000000;
// Questions to a neighbour and the time between them: one that has a CPU
// answers within milliseconds.
constexpr uint8_t kNeighbourTries = 8;
constexpr uint64_t kNeighbourRetryNs = 100000000;
constexpr uint64_t kNeighbourReachableNs = 30000000000;
constexpr uint64_t kGatewayMac = 0x02ff00000001;  // The wire's switch.

// What peers must not guess; without a source of randomness, the time.
uint64_t Secret() {
  uint64_t secret = 0;
  return getrandom(&secret, sizeof(secret), 0) == ssize_t{sizeof(secret)}
             ? secret
             : base::RealtimeNs();
}

}  // namespace

firmware::Board DeviceBoard(const DeviceOptions& options,
                            const WirePlace& place, uint64_t tick_ns) {
  firmware::Board board{};
  board.fa_lo = options.wire.ip.lo;
  board.fa_hi = options.wire.ip.hi;
  board.ipv6 = options.wire.ip.ipv6;
  board.crc = options.wire.crc;
  board.ip_protocol = options.settings.encap == contract::Encap::kIp
                          ? options.wire.ip_protocol
                          : 0;
  board.vlan = options.settings.vlan;
  board.dscp_trimmed = options.settings.dscp_trimmed;
  board.dscp_trimmed_lasthop = options.settings.dscp_trimmed_lasthop;
  board.mac = frame::PortMac(options.wire.ip, place.function);
  board.gateway_mac = kGatewayMac;
  board.resolve_neighbours =
      options.settings.neighbours == contract::Neighbours::kResolve;
  board.neighbour_tries = kNeighbourTries;
  board.neighbour_retry_ns = kNeighbourRetryNs;
  board.neighbour_reachable_ns = kNeighbourReachableNs;
  board.tick_ns = tick_ns;
  board.rto_ns = options.settings.rto_ns;
  board.rto_max_ns = std::max(kRtoMaxNs, options.settings.rto_ns);
  board.backoff_ns = tick_ns;
  board.backoff_max_ns = kBackoffMaxNs;
  board.dead_ns = options.settings.dead_ns;
  board.pdc_idle_ns = options.settings.pdc_idle_ns;
  board.cwnd_bytes = options.settings.cwnd_bytes;
  board.base_rtt_ns = options.settings.base_rtt_ns;
  board.congestion =
      options.settings.cwnd_bytes != 0 && options.settings.base_rtt_ns != 0;
  board.ack_delay_ns = kAckDelayTicks * tick_ns;
  const fault::FaultOptions& tx = options.faults.tx;
  const fault::FaultOptions& rx = options.faults.rx;
  board.pdc_safety_ns =
      kPdcSafetyNs + tx.delay + tx.jitter + rx.delay + rx.jitter;
  // Differs from that of the last function with these PDCIDs, whose packets may
  // be in progress.
  board.pdc_seed = static_cast<uint32_t>(base::RealtimeNs() / tick_ns) ^
                   static_cast<uint32_t>(getpid()) << 16;
  board.key_secret = Secret();
  std::generate(std::begin(board.hash_key), std::end(board.hash_key), Secret);
  board.payload_mtu = static_cast<uint16_t>(options.wire.payload_mtu);
  board.slot = place.slot;
  board.write_errors = true;
  return board;
}

}  // namespace heddle::sim::device
