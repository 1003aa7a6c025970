// SPDX-License-Identifier: Apache-2.0
// Address vectors in host memory, cached.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/host_access.h"
#include "hw/soft/wire/fabric_address.h"

namespace heddle::soft::engine {

// libfabric port of an endpoint (UET 4.13).
constexpr uint16_t PortOf(uint16_t pid, uint16_t first_ri) noexcept {
  return static_cast<uint16_t>(
      first_ri / contract::kRiBlock << contract::kPidBits | pid);
}

// A peer as its entry names it.
struct VectorEntry {
  wire::FabricAddress address;
  uint16_t pid = 0;
  uint16_t first_ri = 0;
  uint16_t next_hop = 0;
};

// Entries that name no peer are not cached, so that inserting one needs no
// invalidation; changing one does.
//
// Thread safety: one thread at a time.
class AddressVector {
 public:
  AddressVector(uint32_t contexts, uint32_t next_hops, HostAccess* host)
      : host_(host), next_hops_(next_hops), lines_(kLines), epochs_(contexts) {}

  // Family of the port: entries of the other name no peer.
  void SetFamily(bool ipv6) { ipv6_ = ipv6; }
  // Forgets every entry of the context.
  void Invalidate(uint32_t context) { ++epochs_[context]; }

  // Entry `index` of the context's vector, or null when it names no peer. Valid
  // until the next call.
  const VectorEntry* Find(uint32_t context, const contract::TxCtxCfg& cfg,
                          uint32_t index) {
    Line& line = lines_[(index ^ context << 4U ^ context >> 6U) % kLines];
    if (line.valid && line.context == context && line.index == index &&
        line.epoch == epochs_[context] && line.peer.address.ipv6 == ipv6_) {
      return &line.peer;
    }
    return Load(context, cfg, index, line);
  }

 private:
  static constexpr uint32_t kLines = 1024;
  struct Line {
    VectorEntry peer;
    uint64_t epoch = 0;
    uint32_t context = 0;
    uint32_t index = 0;
    bool valid = false;
  };

  const VectorEntry* Load(uint32_t context, const contract::TxCtxCfg& cfg,
                          uint32_t index, Line& line);

  HostAccess* host_;
  uint32_t next_hops_;
  bool ipv6_ = false;
  std::vector<Line> lines_;
  std::vector<uint64_t> epochs_;  // By context.
};

}  // namespace heddle::soft::engine
