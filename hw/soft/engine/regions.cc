// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/regions.h"

#include "hw/contract/memory_key.h"
#include "hw/contract/split_number.h"

namespace heddle::soft::engine {

using semantics::kNone;
using semantics::RegionSpec;

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

Regions::Answer Regions::Check(const semantics::RmaRequest& request) const {
  const uint32_t index = Find(request.key);
  const Region* const region = index == kNone ? nullptr : &regions_[index];
  const semantics::RmaAnswer answer =
      semantics::CheckRma(region == nullptr ? nullptr : &region->spec, request);
  if (region == nullptr || answer.code != contract::ReturnCode::kOk) {
    return {.code = answer.code};
  }
  return {answer.code, index, region->iova + answer.offset};
}

}  // namespace heddle::soft::engine
