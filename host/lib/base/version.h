// SPDX-License-Identifier: Apache-2.0
// The product's name and version, from the file VERSION.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace heddle::base {

inline constexpr const char* kProviderName = "heddle";
inline constexpr const char* kVersionText = HEDDLE_VERSION;
inline constexpr uint32_t kProviderVersion =
    FI_VERSION(HEDDLE_VERSION_MAJOR, HEDDLE_VERSION_MINOR);

}  // namespace heddle::base
