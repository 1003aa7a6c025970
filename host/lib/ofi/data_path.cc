// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/data_path.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace heddle::ofi {
namespace {

// Devices of our own and verbs; and one of a test.
constexpr size_t kMaxBackends = 3;

constinit std::array<const DataPath*, kMaxBackends> paths{};

}  // namespace

void AddDataPath(const DataPath& path) noexcept {
  if (FindDataPath(*path.backend) != nullptr) {
    return;
  }
  auto* const free = std::find(paths.begin(), paths.end(), nullptr);
  if (free != paths.end()) {
    *free = &path;
  }
}

const DataPath& FirstDataPath() noexcept {
  return *paths[0];
}

const DataPath* FindDataPath(const backend::Backend& backend) noexcept {
  for (const DataPath* path : paths) {
    if (path != nullptr && path->backend == &backend) {
      return path;
    }
  }
  return nullptr;
}

}  // namespace heddle::ofi
