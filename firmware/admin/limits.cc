// SPDX-License-Identifier: Apache-2.0
#include "firmware/admin/limits.h"

#include "firmware/base/field.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

Limits Limits::Read(RegisterBus& bus) {
  using namespace contract;  // NOLINT: register fields by their full names.
  const uint32_t contexts = bus.Read(kMgmtContextLimitsOffset);
  const uint32_t regions = bus.Read(kMgmtRegionLimitsOffset);
  Limits limits;
  limits.tx_contexts =
      GetField(contexts, kBar0ContextLimitsTxMask, kBar0ContextLimitsTxLsb);
  limits.rx_contexts =
      GetField(contexts, kBar0ContextLimitsRxMask, kBar0ContextLimitsRxLsb);
  limits.cqs =
      GetField(contexts, kBar0ContextLimitsCqMask, kBar0ContextLimitsCqLsb);
  limits.vectors = GetField(contexts, kBar0ContextLimitsVectorsMask,
                            kBar0ContextLimitsVectorsLsb);
  limits.counters = GetField(regions, kBar0RegionLimitsCountersMask,
                             kBar0RegionLimitsCountersLsb);
  limits.regions = GetField(regions, kBar0RegionLimitsRegionsMask,
                            kBar0RegionLimitsRegionsLsb);
  // Devices of more than one bank say more in registers of contract 1.7.
  if (const uint32_t counts = bus.Read(kMgmtContextCountsOffset); counts != 0) {
    limits.tx_contexts =
        GetField(counts, kBar0ContextCountsTxMask, kBar0ContextCountsTxLsb);
    limits.rx_contexts =
        GetField(counts, kBar0ContextCountsRxMask, kBar0ContextCountsRxLsb);
  }
  if (const uint32_t counts = bus.Read(kMgmtQueueCountsOffset); counts != 0) {
    limits.cqs =
        GetField(counts, kBar0QueueCountsCqMask, kBar0QueueCountsCqLsb);
    limits.counters = GetField(counts, kBar0QueueCountsCountersMask,
                               kBar0QueueCountsCountersLsb);
  }
  if (const uint32_t count = bus.Read(kMgmtRegionCountOffset); count != 0) {
    limits.regions = count;
  }
  limits.capability = bus.Read(kMgmtCapabilityOffset);
  return limits;
}

bool Limits::legal() const {
  constexpr uint32_t kMostRegions = 65536;
  return (regions & (regions - 1)) == 0 && regions <= kMostRegions;
}

}  // namespace heddle::firmware
