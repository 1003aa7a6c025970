// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/device_kind.h"

#include <map>
#include <mutex>

#include "driver/device/open.h"

namespace heddle::nic {

Result<uint64_t> CapabilityOf(const std::string& kind,
                              const std::string& sim_path,
                              std::string& message) {
  static std::mutex mutex;
  static std::map<std::string, uint64_t> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(kind);
  if (found != known.end()) {
    return found->second;
  }
  const auto read = SimulatedCapability(kind, sim_path, message);
  if (read.ok()) {
    known.emplace(kind, read.value());
  }
  return read;
}

}  // namespace heddle::nic
