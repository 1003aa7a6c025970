// SPDX-License-Identifier: Apache-2.0
// How the fabric object opens a domain.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>

namespace heddle::ofi {

// fi_domain and fi_domain2: opens the device that `info` names and a domain on
// it. 0 or a negative errno: -FI_EINVAL (no info of ours, or flags), -FI_EBUSY,
// -FI_ENODEV, -FI_EIO, ... as the device says; why is logged.
int OpenDomain(fid_fabric* fabric, fi_info* info, uint64_t flags,
               fid_domain** domain, void* context) noexcept;

}  // namespace heddle::ofi
