// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/profile.h"

#include <map>
#include <mutex>

#include "driver/control/open.h"

namespace heddle::nic {

backend::DeviceProfile ProfileOf(const DeviceInfo& info) {
  return {
      .has = {.reads = info.Has(contract::kCapabilityRead),
              .writes = info.Has(contract::kCapabilityWrite),
              .fences = info.Has(contract::kCapabilityFence),
              .delivery_complete =
                  info.Has(contract::kCapabilityDeliveryComplete),
              .region_events = info.Has(contract::kCapabilityRegionEvent),
              .counters = info.Has(contract::kCapabilityCounters),
              .remote_segments = info.Has(contract::kCapabilityMore),
              .relative_addressing = info.Has(contract::kCapabilityRelative),
              .matching = info.Has(contract::kCapabilityMatch),
              .tagged = info.Has(contract::kCapabilityMatch |
                                 contract::kCapabilityTagged),
              .multi_recv = info.Has(contract::kCapabilityMatch |
                                     contract::kCapabilityMultiRecv),
              .write_after_read =
                  info.Has(contract::kCapabilityWriteAfterRead)},
      .limits = {.tx_contexts = info.counts.tx_contexts,
                 .rx_contexts = info.counts.rx_contexts,
                 .completion_queues = info.counts.completion_queues,
                 .counters = info.counts.counters,
                 .regions = info.counts.regions}};
}

Result<backend::DeviceProfile> SimulatedProfile(const std::string& kind,
                                                const std::string& sim_path,
                                                std::string& message) {
  static std::mutex mutex;
  static std::map<std::string, backend::DeviceProfile> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(kind);
  if (found != known.end()) {
    return found->second;
  }
  const auto read = SimulatedInfo(kind, sim_path, message);
  if (!read.ok()) {
    return read.error();
  }
  return known.emplace(kind, ProfileOf(read.value())).first->second;
}

}  // namespace heddle::nic
