// SPDX-License-Identifier: Apache-2.0
// What the control program asks of the world it runs in: the management bus of
// the NIC, the switch that grants ports, and the facts of the board.
#pragma once

#include <stddef.h>
#include <stdint.h>

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
  // Claims `port` (1 to 65535), or a free one for 0.
  virtual PortClaim ClaimPort(uint32_t port) = 0;
  virtual void ReleasePort(uint32_t port) = 0;

 protected:
  ~Switch() = default;
};

// Facts the control program is started with.
struct Board {
  uint64_t fa_lo;  // Local fabric address as in contract `av_entry`.
  uint64_t fa_hi;
  uint64_t mac;          // Low 48 bits, first octet most significant.
  uint64_t gateway_mac;  // MAC address of next hop 0.
  uint64_t tick_ns;      // Nominal length of one tick.
  uint64_t rto_ns;       // First retransmission time-out.
  uint64_t rto_max_ns;
  uint64_t backoff_ns;  // First wait after a refusal.
  uint64_t backoff_max_ns;
  uint64_t dead_ns;  // DEAD_TIME.
  uint32_t pdc_seed;
  uint16_t payload_mtu;  // 1024, 2048, 4096 or 8192.
  uint8_t slot;          // Slot at this address, granted by the switch.
  bool write_errors;     // The host bridge reports refused writes.
};

}  // namespace heddle::firmware
