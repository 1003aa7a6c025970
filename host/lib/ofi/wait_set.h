// SPDX-License-Identifier: Apache-2.0
// The wait set (fid_wait): one place to wait for several queues.
#pragma once

#include <rdma/fi_eq.h>

#include <mutex>
#include <vector>

#include "host/lib/base/fid.h"
#include "host/lib/ofi/fabric.h"

namespace heddle::ofi {

// Queues opened with FI_WAIT_SET add themselves.
//
// Thread safety: all members but Close, any thread.
// Ownership: the application, until fi_close.
class WaitSet : public fid_wait {
 public:
  // 0; -FI_EINVAL; -FI_ENOSYS: FI_WAIT_MUTEX_COND, which cannot be woken by
  // a descriptor; or a negative errno of epoll. Throws std::bad_alloc.
  static int Open(Fabric* fabric, const fi_wait_attr* attr, fid_wait** set);

  static WaitSet* From(fid_wait* handle) noexcept {
    return static_cast<WaitSet*>(handle);
  }
  static WaitSet* From(struct fid* handle) noexcept {
    return base::FromFid<WaitSet, fid_wait>(handle);
  }

  Fabric* fabric() noexcept { return fabric_; }

  // `descriptor` is readable when `object`, which knows kControlTryWait,
  // has something to be read. 0 or a negative errno. Throws std::bad_alloc.
  int Add(struct fid* object, int descriptor);
  // Undoes it; the descriptor is still open.
  void Remove(struct fid* object, int descriptor) noexcept;

  // fi_wait: 0 when something is to be read; -FI_ETIMEDOUT. A signal does not
  // end it. `timeout_ms` negative: no limit.
  int Wait(int timeout_ms) noexcept;
  int Control(int command, void* argument) noexcept;

  // -FI_EBUSY, nothing changed, while it has members; else frees it.
  int Close() noexcept;

 private:
  WaitSet(Fabric* fabric, fi_wait_obj wait_object, int epoll_fd);
  ~WaitSet();

  // 0, or -FI_EAGAIN when a member has something to be read.
  int TryWait() noexcept;

  Fabric* fabric_;
  fi_wait_obj wait_object_;
  int epoll_fd_;
  std::mutex mutex_;  // The members.
  std::vector<struct fid*> members_;
};

// FI_GETWAIT of an object with one descriptor that stays the same, for
// FI_WAIT_FD and FI_WAIT_POLLFD; -FI_ENODATA for others.
int GetWaitDescriptor(fi_wait_obj wait_object, int descriptor,
                      void* argument) noexcept;

}  // namespace heddle::ofi
