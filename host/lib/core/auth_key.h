// SPDX-License-Identifier: Apache-2.0
// Authorization keys of the API: they are the JobID of UET.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::core {

// A key is a uint32_t in host byte order, 1 to contract::kJobIdMax.
inline constexpr size_t kAuthKeyBytes = sizeof(uint32_t);

// JobID of a key given with `bytes` != 0; empty for none of ours.
inline std::optional<uint32_t> JobIdOf(const void* key, size_t bytes) noexcept {
  uint32_t job_id = 0;
  if (key == nullptr || bytes != kAuthKeyBytes) {
    return std::nullopt;
  }
  std::memcpy(&job_id, key, sizeof(job_id));
  return job_id != 0 && job_id <= contract::kJobIdMax ? std::optional(job_id)
                                                      : std::nullopt;
}

}  // namespace heddle::core
