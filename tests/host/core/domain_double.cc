// SPDX-License-Identifier: Apache-2.0
// Stands for the domain side in tests of objects below it.
#include <rdma/fi_errno.h>

#include "host/lib/ofi/domain_open.h"
#include "host/lib/ofi/statistics.h"

namespace heddle::ofi {

int OpenDomain(fid_fabric* /*fabric*/, fi_info* /*info*/, uint64_t /*flags*/,
               fid_domain** /*domain*/, void* /*context*/) noexcept {
  return -FI_ENODEV;
}

int OpenFabricOps(struct fid* /*handle*/, const char* /*name*/,
                  uint64_t /*flags*/, void** /*ops*/,
                  void* /*context*/) noexcept {
  return -FI_ENOSYS;
}

}  // namespace heddle::ofi
