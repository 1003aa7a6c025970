// SPDX-License-Identifier: Apache-2.0
// The fabric object: parent of domains and event queues.
#pragma once

#include <rdma/fi_domain.h>

#include "host/lib/base/fid.h"
#include "host/lib/core/getinfo.h"
#include "host/lib/core/open_objects.h"

namespace heddle::ofi {

// Thread safety: as fid_fabric, any thread; close is the application's to
// serialize. Ownership: the application, until fi_close.
class Fabric : public fid_fabric {
 public:
  // 0 or a negative errno. `attr` may be freed after the call.
  static int Open(const fi_fabric_attr* attr, fid_fabric** fabric,
                  void* context);

  static Fabric* From(fid_fabric* handle) noexcept {
    return static_cast<Fabric*>(handle);
  }
  static Fabric* From(struct fid* handle) noexcept {
    return base::FromFid<Fabric, fid_fabric>(handle);
  }

  // Domains and event queues open on it; each adds itself.
  base::UserCount& users() noexcept { return users_; }

  // -FI_EBUSY, nothing changed, while it has users; else frees it.
  int Close() noexcept;

 private:
  Fabric() : fid_fabric{}, known_(this, core::FabricName()) {}
  base::UserCount users_;
  core::OpenFabric known_;
};

}  // namespace heddle::ofi
