// SPDX-License-Identifier: Apache-2.0
// Several NICs on the lock-step wire: exact in cycles, the same in each run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/frame/wire_address.h"
#include "hw/sim/nic/nic_model.h"
#include "hw/sim/pins/host_memory.h"
#include "hw/sim/pins/lockstep_wire.h"

namespace heddle::sim::nic {

struct LockstepOptions {
  std::vector<frame::WireAddress>
      addresses;      // One NIC each; equal ones share an address.
  uint64_t seed = 1;  // Of faults, memory order and PSNs.
  uint32_t payload_mtu = contract::kPayloadMtuFallback;
  pins::LockstepWireOptions wire;
  device::MemoryOptions memory;
  // Cycles that pass with each call of a progress hook: what a look at a
  // completion queue costs the host.
  uint32_t poll_cycles = 1;
  uint64_t rto_cycles = 16384;
  uint64_t rto_max_cycles = 524288;
  uint64_t backoff_cycles = 128;
  uint64_t backoff_max_cycles = 8192;
  uint64_t dead_cycles = 16777216;
  uint64_t pdc_safety_cycles = 0;  // Before a PDCID is used again.
  uint64_t pdc_idle_cycles = 0;    // Idle PDCs close; 0: as `dead_cycles`.
  uint32_t cwnd_bytes = 0;         // Congestion window; 0: none.
  uint64_t base_rtt_cycles = 0;    // With a window: NSCC. 0: it is fixed.
  // Host memory reports refused writes; receives complete behind the responses.
  bool write_errors = true;
  contract::CrcOrder crc = contract::CrcOrder::kMsbFirst;  // Of every NIC.
  uint8_t ip_protocol = 0;  // Of every NIC; 0: UET over UDP.
  uint16_t vlan = 0;        // Of every NIC; 0: untagged frames.
  // Of packets that the network trimmed; 0: none are.
  uint8_t dscp_trimmed = 0;
  uint8_t dscp_trimmed_lasthop = 0;
  // Neighbours are found by ARP and Neighbor Discovery; else one next hop
  // stands for everybody.
  bool resolve_neighbours = false;
  uint64_t neighbour_retry_cycles = 65536;
  std::string capture;  // pcap of the whole wire, empty for none.
  // FST of NIC 0, empty for none; that of NIC n has `-n` before its suffix.
  std::string trace;
  uint64_t trace_from_cycle = 0;  // Of evaluated cycles.
};

// All clocks tick together. Reads of registers and the control program's bus
// accesses advance the whole world, as do progress hooks; doorbells do not.
// Every NIC's host memory is this process.
//
// Thread safety: none, nor of its devices: one thread drives everything.
class LockstepWorld {
 public:
  // Runs until all NICs are ready. Errors: EINVAL for no or more than 64
  // addresses, the errno of creating the capture file, EIO when a model fails
  // (see `*message`).
  static Result<std::unique_ptr<LockstepWorld>> Create(
      const LockstepOptions& options, std::string* message);
  ~LockstepWorld();
  LockstepWorld(const LockstepWorld&) = delete;
  LockstepWorld& operator=(const LockstepWorld&) = delete;

  // Valid as long as the world.
  Device& device(size_t nic);
  pins::HostMemory& memory(size_t nic);
  NicModel& model(size_t nic);
  pins::LockstepWire& wire() { return wire_; }

  // Takes a NIC's link down or up: frames from and to it are lost meanwhile.
  void SetLink(size_t nic, bool up);

  // Simulated time. Grows also by the idle stretches that were skipped.
  uint64_t cycle() const { return cycle_; }
  // Cycles in which the models were evaluated, per NIC.
  uint64_t evaluated_cycles() const { return evaluated_; }

  // Advances by `cycles` evaluated or idle cycles; when everything is idle,
  // each counts to the next tick or to the next frame of a slow wire. Returns
  // at once when everything is idle for good.
  void Step(uint32_t cycles);
  // True if nothing will happen until somebody posts or a timer runs out.
  bool quiet() const;
  // Not empty once a model failed.
  std::string failure() const;

 private:
  class Nic;

  explicit LockstepWorld(const LockstepOptions& options);
  bool Start(std::string* message);
  std::string TraceOf(uint32_t index) const;
  bool NicsQuiet() const;
  // Lets an idle stretch pass, to the next tick or frame at most; false if it
  // has no end.
  bool SkipIdle();
  void CycleAll();
  void CycleAll(bool tick);

  const LockstepOptions options_;
  pins::LockstepWire wire_;
  std::vector<std::unique_ptr<Nic>> nics_;
  uint64_t cycle_ = 0;
  uint64_t evaluated_ = 0;
};

}  // namespace heddle::sim::nic
