// SPDX-License-Identifier: Apache-2.0
// The completion queue object (fid_cq).
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "host/lib/backend/objects.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/ofi/domain.h"
#include "host/lib/ofi/fork_guard.h"
#include "host/lib/ofi/wait_set.h"

namespace heddle::ofi {

// Thread safety: by the domain's threading model; `Signal` any thread.
// Ownership: the application, until fi_close.
class CompletionQueue : public fid_cq, private ForkGuarded {
 public:
  // 0 or a negative errno. Throws std::bad_alloc.
  static int Open(Domain* domain, fi_cq_attr* attr, fid_cq** queue,
                  void* context);

  static CompletionQueue* From(fid_cq* handle) noexcept {
    return &static_cast<CompletionQueue&>(*handle);  // Never null.
  }
  static CompletionQueue* From(struct fid* handle) noexcept {
    return base::FromFid<CompletionQueue, fid_cq>(handle);
  }

  // Endpoints bound to it; each adds itself per direction.
  base::UserCount& users() noexcept { return users_; }
  backend::CompletionQueue& backend() noexcept { return *backend_; }
  Domain* domain() const noexcept { return domain_; }
  // Reads that find nothing step it.
  const backend::ProgressorList& progressors() const noexcept {
    return *progressors_;
  }
  // From now on they step none. One reader steps this queue itself, as part of
  // the domain's list, and would step the others under its lock.
  void StepNone() noexcept;

  // Calls that are the same whatever the backend: all but reading.
  static fi_ops_cq CommonOps() noexcept;

  // The calls of fi_cq(3), which defines their results. fi_cq_read and
  // fi_cq_readfrom are in cq_read.h, one instance per format.
  ssize_t ReadError(fi_cq_err_entry* entry, uint64_t flags) noexcept;
  ssize_t ReadWaiting(void* buffer, size_t count, fi_addr_t* sources,
                      int timeout_ms) noexcept;
  int Signal() noexcept;
  const char* ErrorText(int prov_errno, char* buffer, size_t bytes) noexcept;
  int Control(int command, void* argument) noexcept;
  int Close() noexcept;

  // Data path, what an empty poll answers: -FI_EAGAIN. Once the device has
  // failed: -FI_EAVAIL while operations are outstanding, which `ReadError` then
  // ends, and -FI_EIO when none is.
  ssize_t AnswerEmpty() noexcept {
    return domain_->failed() ? AnswerFailed() : -FI_EAGAIN;
  }

 protected:
  CompletionQueue(Domain* domain, fi_ops_cq* table, void* context);
  virtual ~CompletionQueue();

  // Before the backend's queue ends.
  void EndWait() noexcept;

 private:
  void Disinherit() noexcept override;

  // The backend's queue in place of the one before, if any.
  virtual backend::CompletionQueue* MakeBackend() = 0;

  ssize_t AnswerFailed() noexcept;
  // Address and cause of the error read last, for fi_cq_strerror.
  struct LastError {
    base::SocketAddress peer;
    bool has_peer = false;
    uint16_t detail = 0;
    int prov_errno = 0;
  };

  int OpenBackend(const fi_cq_attr& attr);
  // Makes what the wait object needs besides the interrupt.
  int OpenWait(fid_wait* set);
  int TryWait() noexcept;
  // Waits until something may be read, `Signal` or the deadline; false after
  // the last two.
  bool WaitOnce(int64_t deadline_ns) noexcept;
  void FillError(const backend::ErrorCompletion& failed,
                 fi_cq_err_entry* error) noexcept;
  void FillErrorData(fi_cq_err_entry* error) noexcept;

  const backend::ProgressorList* progressors_;
  backend::CompletionQueue* backend_ = nullptr;  // A part of the object.
  Domain* domain_;
  base::UserCount users_;
  fi_wait_obj wait_object_ = FI_WAIT_NONE;
  ofi::WaitSet* wait_set_ = nullptr;  // With FI_WAIT_SET.
  int signal_fd_ = -1;  // Readable once `Signal` was called; with waiting.
  LastError last_error_;
};

}  // namespace heddle::ofi
