// SPDX-License-Identifier: Apache-2.0
// NICs on the lock-step wire, for the measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bench/system/measurements.h"
#include "tests/system/harness/lockstep_nodes.h"

namespace heddle::bench {

constexpr uint64_t kLimitCycles = 20000000;

struct Variant {
  bool write_errors = true;  // The bridge reports them.
  bool push = true;
  size_t nodes = 2;
  bool ordered = true;         // All operations on ROD; otherwise on RUD.
  bool spill = false;          // Transmit contexts have a spill area.
  bool early_release = false;  // They may use one in the NIC.
  bool ipv6 = false;
  uint32_t av_entries = 64;
  double loss = 0;      // Probability for each frame, by `Conditions::seed`.
  bool steady = false;  // Host memory takes the same time for all.
  sim::fault::FaultOptions rx_faults = {};  // On each receiver; in cycles.
  uint32_t cwnd_bytes = 0;                  // With the next: NSCC.
  uint64_t base_rtt_cycles = 0;
  uint8_t dscp_trimmed = 0;
};

// Address of a node.
sim::frame::WireAddress AddressOf(size_t node, bool ipv6);

// Throws std::runtime_error.
std::unique_ptr<LockstepNodes> Open(const Conditions& conditions,
                                    const Variant& variant = {});

// Throws std::runtime_error unless `done`.
void Require(bool done, LockstepNodes& nodes, const char* what);

// Key of a region that is all of the node's `memory`, for writes and reads.
uint64_t Register(LockstepNodes& nodes, size_t node, const DmaBuffer& memory);

// A WRITE or READ between local memory and the start of a peer's region; or a
// SEND, without key.
struct RmaAccess {
  contract::Opcode opcode{};
  Iova local{};
  uint32_t bytes = 0;
  uint64_t key = 0;
};

// Pushes it after the earlier ones; returns whether the ring had room.
bool PushRma(BareEndpoint& endpoint, const SendFields& fields,
             const RmaAccess& access);

}  // namespace heddle::bench
