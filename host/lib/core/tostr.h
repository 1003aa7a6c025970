// SPDX-License-Identifier: Apache-2.0
// libfabric structures, enumerations and flags as text (fi_tostr).
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

namespace heddle::core {

// `data` points to a value of `type`. Structures come as YAML, sets of flags
// as names separated by ", ".
std::string ToText(const void* data, fi_type type);

// A set of flags in the meaning of `type`, e.g. FI_TYPE_CAPS.
std::string FlagsText(uint64_t flags, fi_type type);

}  // namespace heddle::core
