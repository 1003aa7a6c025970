// SPDX-License-Identifier: Apache-2.0
// How a simulated device is opened, whatever its kind.
#pragma once

#include <cstdint>
#include <string>

#include "hw/sim/faults.h"
#include "hw/sim/host_memory.h"
#include "hw/sim/shared_wire.h"

namespace heddle::sim {

struct DeviceOptions {
  SharedWireOptions wire;
  // Of `soft`: UDP sockets instead of the one-machine wire (`wire.name` is not
  // used), all packets to `udp_port` unless it is 0.
  bool udp = false;
  uint16_t udp_port = 0;
  bool payload_mtu_named = false;  // Else a UDP wire follows its interface.
  LineFaults faults;
  double read_again = 0;   // Of `soft`: peers' READs are answered wrongly.
  MemoryOptions memory;    // Of `rtl`.
  std::string capture;     // Files, empty for none.
  std::string trace;       // Of `rtl`.
  std::string statistics;  // Appended to.
  uint64_t rto_ns = 20000000;
  uint64_t dead_ns = 60000000000;
  uint64_t pdc_idle_ns = 0;  // 0: as `dead_ns`, which is the longest.
  uint32_t cwnd_bytes = 0;   // Congestion window; 0: none, of UDP its own.
  uint32_t base_rtt_ns = 0;  // With a window: NSCC. 0: it is fixed.
  uint16_t vlan = 0;         // Of the one-machine wire's frames; 0: untagged.
  bool native_ip = false;    // UET without UDP, as protocol `wire.ip_protocol`.
  // Of packets that the network trimmed; 0: none are.
  uint8_t dscp_trimmed = 0;
  uint8_t dscp_trimmed_lasthop = 0;
  // Neighbours are found by ARP and Neighbor Discovery; else one next hop
  // stands for everybody.
  bool resolve_neighbours = false;
};

}  // namespace heddle::sim
