// SPDX-License-Identifier: Apache-2.0
// fi_getinfo: which devices there are and which of them meet the hints.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "host/lib/core/info_layout.h"

namespace heddle::core {

// Arguments of fi_getinfo(3). `layout` is that of the caller's structures.
struct InfoRequest {
  uint32_t version;
  const char* node;
  const char* service;
  uint64_t flags;
  const fi_info* hints;
  const InfoLayout* layout;
};

// 0 and a list in `*info`, best first, or a negative errno and null. Opens no
// device. Thread-safe. Why a device is missing is logged at level info.
//
// -FI_ENOSYS: version newer than kApiVersion. -FI_ENODATA: nothing matches,
// FI_SOURCE without node and service, or a name that cannot be resolved.
// -FI_EINVAL: a setting has a bad value, or a service stands beside a node in
// the format FI_ADDR_STR. -FI_ENOMEM.
int GetInfo(const InfoRequest& request, fi_info** info) noexcept;

// Name of the one fabric: everything on our wire reaches everything else.
std::string FabricName();

}  // namespace heddle::core
