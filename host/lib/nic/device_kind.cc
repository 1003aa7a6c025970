// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/device_kind.h"

#include <map>
#include <mutex>

#include "driver/device/open.h"

namespace heddle::nic {

DeviceKind KindOf(const DeviceInfo& info) {
  return {.capability = info.capability,
          .limits = {.tx_contexts = info.counts.tx_contexts,
                     .rx_contexts = info.counts.rx_contexts,
                     .completion_queues = info.counts.completion_queues,
                     .counters = info.counts.counters,
                     .regions = info.counts.regions}};
}

Result<DeviceKind> SimulatedKind(const std::string& kind,
                                 const std::string& sim_path,
                                 std::string& message) {
  static std::mutex mutex;
  static std::map<std::string, DeviceKind> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(kind);
  if (found != known.end()) {
    return found->second;
  }
  const auto read = SimulatedInfo(kind, sim_path, message);
  if (!read.ok()) {
    return read.error();
  }
  return known.emplace(kind, KindOf(read.value())).first->second;
}

}  // namespace heddle::nic
