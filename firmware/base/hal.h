// SPDX-License-Identifier: Apache-2.0
// What the control program asks of the world it runs in: the management bus of
// the NIC, the switch that grants ports, and the facts of the board.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// The NIC's management bus; offsets are those of register space `mgmt`.
// On the NIC's own core these are loads and stores; in the host build they are
// accesses on the bus of a simulated device, each of which takes clock cycles.
class RegisterBus {
 public:
  virtual uint32_t Read(uint32_t offset) = 0;
  virtual void Write(uint32_t offset, uint32_t value) = 0;

 protected:
  ~RegisterBus() = default;
};

// Requests name an endpoint by its port in a space: that of the address
// (rel=0), or that of one job at the address (rel=1). Spaces share no names
// (UET 4.13).
inline constexpr uint32_t kAddressSpace = 0;
constexpr uint32_t JobSpace(uint32_t job_id) {
  constexpr uint32_t kRelative = contract::kJobIdMax + 1;
  return kRelative | job_id;
}

struct PortName {
  uint32_t port = 0;
  uint32_t space = kAddressSpace;
};

// Outcome of `Switch::ClaimPort`.
struct PortClaim {
  bool granted;
  bool exhausted;  // No port is free (only for port 0).
  uint32_t port;   // Granted port.
  uint32_t owner;  // Process id of the present owner when not granted.
};

// Grants libfabric ports at this NIC's address; in hardware the PF, in
// simulation the wire.
class Switch {
 public:
  // Claims a name whose port is 1 to 65535, or one with a free port for 0.
  virtual PortClaim ClaimPort(const PortName& name) = 0;
  virtual void ReleasePort(const PortName& name) = 0;

 protected:
  ~Switch() = default;
};

// Memory for what the host creates. It is taken as objects are created for the
// first time, and used again for later ones; none comes back. On the NIC's own
// core it is a part of the core's RAM, in the host build the heap.
class ObjectMemory {
 public:
  // `bytes`, aligned to 8, for as long as the control program lives; null when
  // there is no more.
  virtual void* Take(uint32_t bytes) = 0;

 protected:
  ~ObjectMemory() = default;
};

// Facts the control program is started with.
struct Board {
  uint64_t fa_lo;  // Local fabric address as in contract `av_entry`.
  uint64_t fa_hi;
  uint64_t mac;  // Low 48 bits, first octet most significant.
  // MAC address of next hop 0, which stands for everybody unless neighbours
  // are resolved.
  uint64_t gateway_mac;
  // Fabric address of the gateway off the link; 0 for none.
  uint64_t gateway_fa_lo = 0;
  uint64_t gateway_fa_hi = 0;
  uint64_t tick_ns;  // Nominal length of one tick.
  uint64_t rto_ns;   // First retransmission time-out.
  uint64_t rto_max_ns;
  uint64_t backoff_ns;  // First wait after a refusal.
  uint64_t backoff_max_ns;
  uint64_t dead_ns;                 // DEAD_TIME.
  uint64_t ack_delay_ns;            // Longest wait of a coalesced ACK; 0: none.
  uint64_t neighbour_retry_ns = 0;  // Between two questions to a neighbour.
  uint64_t neighbour_reachable_ns = 0;  // For so long an answer is trusted.
  uint32_t pdc_seed;
  uint16_t payload_mtu;  // 1024, 2048, 4096 or 8192.
  uint8_t slot;          // Slot at this address, granted by the switch.
  bool write_errors;     // The host bridge reports refused writes.
  // End-to-end CRC of frames, the same at all functions of a wire.
  contract::CrcOrder crc = contract::CrcOrder::kMsbFirst;
  uint8_t ip_protocol = 0;          // Of native IP; 0: UET over UDP.
  uint16_t vlan = 0;                // VLAN of the port's frames; 0: untagged.
  bool ipv6 = false;                // Family of the local address.
  bool resolve_neighbours = false;  // By ARP or Neighbor Discovery.
  uint8_t neighbour_tries = 0;      // Questions before one is called unknown.
  uint8_t prefix_length = 0;        // Of the link; 0: all addresses are on it.
  uint64_t key_secret = 0;          // What memory keys are hidden with.
  uint64_t hash_key[3] = {};        // As in `TransportCfg`.
  uint64_t pdc_safety_ns = 0;       // Syn_Retx_Safety_Time.
  // Idle PDCs are closed after it, `dead_ns` at the latest; 0: `dead_ns`.
  uint64_t pdc_idle_ns = 0;
  uint32_t cwnd_bytes = 0;   // Congestion window; 0: the PSN window alone.
  uint32_t base_rtt_ns = 0;  // Of an empty network.
  bool congestion = false;   // NSCC.
  uint8_t reorder = 3;       // RUD: later packets that show a loss.
  uint8_t ack_every = 16;    // Packets.
  // DSCPs of packets that the network trimmed, 1 to 63; 0: none are.
  uint8_t dscp_trimmed = 0;
  uint8_t dscp_trimmed_lasthop = 0;
  // A bit for each DSCP that precedes others: EF and CS6 (RFC 4594, 2.3).
  uint64_t urgent_dscps = uint64_t{1} << 46 | uint64_t{1} << 48;
};

}  // namespace heddle::firmware
