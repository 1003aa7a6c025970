// SPDX-License-Identifier: Apache-2.0
// The counter object (fid_cntr).
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>
#include <memory>

#include "host/lib/backend/objects.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fork_guard.h"

namespace heddle::ofi {

// Counts what the endpoints and regions bound to it complete. The device keeps
// both values; a read is a load.
//
// Thread safety: any thread. Ownership: the application, until fi_close.
class Counter final : public fid_cntr, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(Domain* domain, fi_cntr_attr* attr, fid_cntr** counter,
                  void* context);

  static Counter* From(fid_cntr* handle) noexcept {
    return &static_cast<Counter&>(*handle);  // Never null.
  }
  static Counter* From(struct fid* handle) noexcept {
    return base::FromFid<Counter, fid_cntr>(handle);
  }

  // Endpoints and regions bound to it; each adds itself per binding.
  base::UserCount& users() noexcept { return users_; }
  backend::Counter& backend() noexcept { return *backend_; }
  Domain* domain() const noexcept { return domain_; }

  // The calls of fi_cntr(3), which defines their results.
  uint64_t Read() noexcept {
    domain_->progressors().Step();
    return backend_->value();
  }
  uint64_t ReadErrors() noexcept {
    domain_->progressors().Step();
    return backend_->errors();
  }
  // What was changed is seen by every read from now on. -FI_EIO once the
  // device has failed.
  int Change(backend::Counter::Change change, uint64_t amount) noexcept;
  int Wait(uint64_t threshold, int timeout_ms) noexcept;
  int Control(int command, void* argument) const noexcept;
  int Close() noexcept;

 private:
  void Disinherit() noexcept override;

  Counter(Domain* domain, void* context);
  ~Counter();

  std::unique_ptr<backend::Counter> backend_;
  Domain* domain_;
  base::UserCount users_;
  fi_wait_obj wait_object_ = FI_WAIT_NONE;
};

}  // namespace heddle::ofi
