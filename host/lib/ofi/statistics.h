// SPDX-License-Identifier: Apache-2.0
// `heddle_statistics` (rdma/fi_ext_heddle.h) of domains and fabrics.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace heddle::ofi {

// fi_open_ops of a domain and of a fabric. 0; -FI_ENOSYS: no such name;
// -FI_EBADFLAGS; -FI_EINVAL.
int OpenDomainOps(struct fid* handle, const char* name, uint64_t flags,
                  void** ops, void* context) noexcept;
int OpenFabricOps(struct fid* handle, const char* name, uint64_t flags,
                  void** ops, void* context) noexcept;

}  // namespace heddle::ofi
