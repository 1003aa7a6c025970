// SPDX-License-Identifier: Apache-2.0
// Entries of `struct fi_ops` for objects that do not have the operation.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace heddle::base {

inline int RefuseBind(struct fid* /*handle*/, struct fid* /*other*/,
                      uint64_t /*flags*/) noexcept {
  return -FI_ENOSYS;
}

inline int RefuseControl(struct fid* /*handle*/, int /*command*/,
                         void* /*argument*/) noexcept {
  return -FI_ENOSYS;
}

// No provider-specific interface has this name.
inline int RefuseOpenOps(struct fid* /*handle*/, const char* /*name*/,
                         uint64_t /*flags*/, void** /*ops*/,
                         void* /*context*/) noexcept {
  return -FI_ENOSYS;
}

inline int RefuseSetOps(struct fid* /*handle*/, const char* /*name*/,
                        uint64_t /*flags*/, void* /*ops*/,
                        void* /*context*/) noexcept {
  return -FI_ENOSYS;
}

}  // namespace heddle::base
