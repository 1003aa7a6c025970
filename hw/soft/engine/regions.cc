// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/regions.h"

#include "hw/contract/memory_key.h"
#include "hw/contract/split_number.h"

namespace heddle::soft::engine {

using semantics::kNone;
using semantics::RegionSpec;
using semantics::RmaAnswer;

static_assert(semantics::kRemoteRead == contract::kRegionFlagRemoteRead);
static_assert(semantics::kRemoteWrite == contract::kRegionFlagRemoteWrite);

bool Regions::Write(uint32_t index, const contract::RegionCfg& cfg) {
  if (index >= regions_.size()) {
    return false;
  }
  Region& region = regions_.Make(index);
  region.spec = {
      .base = cfg.address_base,
      .length = cfg.length,
      .access = static_cast<uint8_t>(
          cfg.flags & (semantics::kRemoteRead | semantics::kRemoteWrite)),
      .virtual_address = true,
      .provider_key = (cfg.flags & contract::kRegionFlagProviderKey) != 0,
      .key = cfg.key,
      .job_id = cfg.job_id,
      .endpoint =
          (cfg.flags & contract::kRegionFlagEndpoint) != 0
              ? Endpoint(cfg.pid_on_fep, cfg.resource_index,
                         (cfg.flags & contract::kRegionFlagRelative) != 0)
              : RegionSpec::kAnyEndpoint,
  };
  region.iova = cfg.iova;
  region.counter = contract::JoinBytes(cfg.counter, cfg.counter_high);
  ++region.generation;
  // One that wraps would let peers reach what is in front of it.
  region.alive = cfg.enable != 0 &&
                 cfg.address_base + cfg.length >= cfg.address_base &&
                 cfg.iova + cfg.length >= cfg.iova;
  return true;
}

uint32_t Regions::Find(uint64_t key) const {
  if (contract::IsProviderKey(key)) {
    const uint32_t index = contract::RegionOfKey(key);
    return Holds(index, key) ? index : kNone;
  }
  const uint32_t first = contract::RegionSetOfKey(key, regions_.size());
  for (uint32_t i = first; i < first + contract::kRegionWays; ++i) {
    if (Holds(i, key)) {
      return i;
    }
  }
  return kNone;
}

RmaAnswer Regions::Check(const semantics::RmaRequest& request) const {
  const uint32_t index = Find(request.key);
  if (index == kNone) {
    return semantics::CheckRma(kNone, {}, request);
  }
  const Region& region = regions_[index];
  RmaAnswer answer = semantics::CheckRma(index, region.spec, request);
  answer.address += region.iova - region.spec.base;
  return answer;
}

}  // namespace heddle::soft::engine
