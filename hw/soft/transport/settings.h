// SPDX-License-Identifier: Apache-2.0
// Times and rules of the transport, in the units it works with.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::transport {

struct Settings {
  uint64_t rto_ns = 0;
  uint64_t rto_max_ns = 0;
  uint64_t backoff_ns = 0;
  uint64_t backoff_max_ns = 0;
  uint64_t dead_ns = 0;
  uint64_t ack_delay_ns = 0;  // 0: each packet is answered at once.
  uint64_t safety_ns = 0;
  uint64_t idle_ns = 0;  // 0: PDCs close only to make room.
  uint64_t base_rtt_ns = 0;
  uint32_t cwnd_bytes = 0;
  uint32_t mtu = 0;
  uint32_t ack_every = 1;
  uint32_t reorder = 1;
  uint32_t pdc_seed = 0;
  // Between IP and PDS header.
  uint32_t layer4_bytes = contract::wire::Udp::kBytes;
  bool congestion = false;
  bool trimming = false;  // The network trims instead of dropping.
  bool enabled = false;

  static Settings From(const contract::PortCfg& port,
                       const contract::TransportCfg& transport,
                       uint64_t tick_ns) {
    Settings s;
    s.rto_ns = std::max<uint64_t>(port.rto_ticks, 1) * tick_ns;
    s.rto_max_ns = std::max(port.rto_max_ticks * tick_ns, s.rto_ns);
    s.backoff_ns = std::max<uint64_t>(port.backoff_ticks, 1) * tick_ns;
    s.backoff_max_ns = std::max(port.backoff_max_ticks * tick_ns, s.backoff_ns);
    s.dead_ns = std::max<uint64_t>(port.dead_ticks, 1) * tick_ns;
    s.ack_delay_ns = port.ack_delay_ticks * tick_ns;
    s.safety_ns = transport.safety_ticks * tick_ns;
    s.idle_ns = transport.idle_ticks * tick_ns;
    s.base_rtt_ns = transport.base_rtt_ns;
    s.cwnd_bytes = transport.cwnd_bytes;
    s.mtu = port.payload_mtu;
    s.ack_every = std::max<uint32_t>(transport.ack_every, 1);
    s.reorder = std::max<uint32_t>(transport.reorder, 1);
    s.pdc_seed = port.pdc_seed;
    s.congestion = transport.congestion != 0;
    s.layer4_bytes = static_cast<uint32_t>(wire::Layer4Bytes(port));
    s.trimming = (transport.dscp_trimmed | transport.dscp_trimmed_lasthop) != 0;
    s.enabled = port.enable != 0;
    return s;
  }
};

}  // namespace heddle::soft::transport
