// SPDX-License-Identifier: Apache-2.0
// Memory regions as firmware writes them, and what peers may do with them.
#pragma once

#include <cstdint>

#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/rma_check.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/lazy_table.h"

namespace heddle::soft::engine {

// Provider keys name their entry, user keys one of `region_ways` (contract).
//
// Thread safety: one thread at a time.
class Regions {
 public:
  // A power of two of at least kRegionWays.
  explicit Regions(uint32_t count) : regions_(count) {}

  // Any write begins a new life. False: no such entry.
  bool Write(uint32_t index, const contract::RegionCfg& cfg);

  struct Answer {
    contract::ReturnCode code = contract::ReturnCode::kBadMkey;
    uint32_t region = semantics::kNone;  // With kOk.
    uint64_t address = 0;  // With kOk: of the packet's first byte in the host.
  };
  // By semantics::CheckRma.
  Answer Check(const semantics::RmaRequest& request) const;

  // Of an entry that was found.
  uint16_t counter(uint32_t region) const { return regions_[region].counter; }
  uint32_t generation(uint32_t region) const {
    return regions_[region].generation;
  }
  // That life of the entry goes on.
  bool Alive(uint32_t region, uint32_t generation) const {
    const Region* const found = regions_.Find(region);
    return found != nullptr && found->alive && found->generation == generation;
  }

  // What tells the endpoints of a job apart; `ri` is any of the endpoint's.
  static uint32_t Endpoint(uint16_t pid, uint16_t ri, bool relative) {
    return (relative ? 1U : 0U) << 31U | uint32_t{pid} << 16U |
           (ri - ri % contract::kRiBlock);
  }

 private:
  struct Region {
    semantics::RegionSpec spec;
    uint64_t iova = 0;
    uint32_t generation = 0;
    uint16_t counter = 0;
    bool alive = false;
  };

  uint32_t Find(uint64_t key) const;
  bool Holds(uint32_t index, uint64_t key) const {
    const Region* const region = regions_.Find(index);
    return region != nullptr && region->alive && region->spec.key == key;
  }

  LazyTable<Region, 64> regions_;
};

}  // namespace heddle::soft::engine
