// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/completion_queue.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "host/lib/base/enumerator.h"
#include "host/lib/base/guard.h"
#include "host/lib/base/log.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/core/info_layout.h"
#include "host/lib/core/limits.h"
#include "host/lib/ofi/cq_read.h"
#include "host/lib/ofi/data_path.h"
#include "host/lib/ofi/inherited_ops.h"

namespace heddle::ofi {
namespace {

constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kNsPerMs = 1'000'000;
// A device that fails wakes nobody, so sleepers look at it this often.
constexpr int64_t kLongestWaitMs = 1000;
// Where polls alone make progress.
constexpr int kLongestWaitBetweenStepsMs = 1;

int CloseQueue(struct fid* handle) noexcept {
  return CompletionQueue::From(handle)->Close();
}

int ControlQueue(struct fid* handle, int command, void* argument) noexcept {
  return CompletionQueue::From(handle)->Control(command, argument);
}

ssize_t ReadQueueError(fid_cq* handle, fi_cq_err_entry* entry,
                       uint64_t flags) noexcept {
  return CompletionQueue::From(handle)->ReadError(entry, flags);
}

// The condition is a hint: one entry is always enough to return.
// NOLINTNEXTLINE(readability-function-size): the API's parameters.
ssize_t ReadWaitingFrom(fid_cq* handle, void* buffer, size_t count,
                        fi_addr_t* sources, const void* /*condition*/,
                        int timeout_ms) noexcept {
  return CompletionQueue::From(handle)->ReadWaiting(buffer, count, sources,
                                                    timeout_ms);
}

ssize_t ReadWaiting(fid_cq* handle, void* buffer, size_t count,
                    const void* /*condition*/, int timeout_ms) noexcept {
  return CompletionQueue::From(handle)->ReadWaiting(buffer, count, nullptr,
                                                    timeout_ms);
}

int SignalQueue(fid_cq* handle) noexcept {
  return CompletionQueue::From(handle)->Signal();
}

const char* QueueErrorText(fid_cq* handle, int prov_errno, const void* /*data*/,
                           char* buffer, size_t bytes) noexcept {
  return CompletionQueue::From(handle)->ErrorText(prov_errno, buffer, bytes);
}

fi_ops queue_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseQueue,
    .bind = base::RefuseBind,
    .control = ControlQueue,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// 0, or why the application cannot wait that way: a device cannot signal a
// condition variable.
int CheckWaitObject(const fi_cq_attr& attr) {
  switch (attr.wait_obj) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_POLLFD:
    case FI_WAIT_YIELD:
      return attr.wait_set == nullptr ? 0 : -FI_EINVAL;
    case FI_WAIT_SET:
      return attr.wait_set != nullptr ? 0 : -FI_EINVAL;
    case FI_WAIT_MUTEX_COND:
      return -FI_ENOSYS;
  }
  return -FI_EINVAL;
}

bool HasDescriptor(fi_wait_obj object) {
  return object == FI_WAIT_FD || object == FI_WAIT_POLLFD ||
         object == FI_WAIT_SET;
}

// Source: fi_cq(3), fi_cq_sread is for queues with a wait object of their own.
bool CanBlock(fi_wait_obj object) {
  return object != FI_WAIT_NONE && object != FI_WAIT_SET;
}

// Empties an eventfd that is known to be non-empty or non-blocking.
void Clear(int event_fd) {
  pollfd ready = {.fd = event_fd, .events = POLLIN, .revents = 0};
  uint64_t count = 0;
  if (poll(&ready, 1, 0) > 0) {
    (void)!read(event_fd, &count, sizeof(count));
  }
}

}  // namespace

fi_ops_cq CompletionQueue::CommonOps() noexcept {
  return {.size = sizeof(fi_ops_cq),
          .read = nullptr,
          .readfrom = nullptr,
          .readerr = ReadQueueError,
          .sread = ofi::ReadWaiting,
          .sreadfrom = ReadWaitingFrom,
          .signal = SignalQueue,
          .strerror = QueueErrorText};
}

CompletionQueue::CompletionQueue(Domain* domain, fi_ops_cq* table,
                                 void* context)
    : fid_cq{}, progressors_(&domain->progressors()), domain_(domain) {
  fid = {.fclass = FI_CLASS_CQ, .context = context, .ops = &queue_fid_ops};
  ops = table;
  domain_->users().Add();
}

CompletionQueue::~CompletionQueue() {
  if (signal_fd_ >= 0) {
    (void)close(signal_fd_);
  }
  domain_->users().Remove();
}

void CompletionQueue::EndWait() noexcept {
  domain_->Remove(this);
  if (wait_set_ != nullptr) {
    wait_set_->Remove(&fid, backend_->interrupt_fd());
  }
}

int CompletionQueue::Open(Domain* domain, fi_cq_attr* attr, fid_cq** queue,
                          void* context) {
  if (attr == nullptr || (attr->flags & ~FI_AFFINITY) != 0 ||
      !base::AtMost(attr->wait_cond, FI_CQ_COND_THRESHOLD) ||
      !base::AtMost(attr->wait_obj, FI_WAIT_POLLFD) ||
      !base::AtMost(attr->format, FI_CQ_FORMAT_TAGGED)) {
    return -FI_EINVAL;
  }
  if (const int refused = CheckWaitObject(*attr); refused != 0) {
    return refused;
  }
  struct Deleter {
    void operator()(CompletionQueue* doomed) const { delete doomed; }
  };
  std::unique_ptr<CompletionQueue, Deleter> made(
      domain->data_path().make_queue(domain, attr->format, context));
  if (made == nullptr) {
    return -FI_EINVAL;
  }
  const int result = made->OpenBackend(*attr);
  if (result == 0) {
    attr->size = made->backend_->capacity();
    *queue = made.release();
  }
  return result;
}

void CompletionQueue::StepNone() noexcept {
  static constinit const backend::ProgressorList none;
  progressors_ = &none;
}

int CompletionQueue::OpenBackend(const fi_cq_attr& attr) {
  wait_object_ = attr.wait_obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : attr.wait_obj;
  // Completions beyond the largest queue wait in the device: none is lost.
  const size_t size = attr.size == 0 ? core::kDefaultCqSize
                                     : std::min(attr.size, core::kMaxCqSize);
  const auto open = [&] {
    backend_ = MakeBackend();
    return backend_->Open(size, HasDescriptor(wait_object_));
  };
  Result<bool> opened = open();
  if (!opened.ok() && attr.wait_obj == FI_WAIT_UNSPEC) {
    // No interrupt is left: waiting still works, by polling.
    wait_object_ = FI_WAIT_YIELD;
    opened = open();
  }
  if (!opened.ok()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCq,
              "completion queue of %zu entries: %s; the device has %zu", size,
              domain_->Explain(opened.error()).c_str(),
              domain_->device().profile().limits.completion_queues);
    return base::ToReturnCode(opened.error());
  }
  domain_->Add(this);
  return OpenWait(attr.wait_set);
}

int CompletionQueue::OpenWait(fid_wait* set) {
  if (wait_object_ == FI_WAIT_SET) {
    ofi::WaitSet* wait_set = ofi::WaitSet::From(set);
    if (wait_set->fabric() != domain_->fabric()) {
      return -FI_EINVAL;
    }
    const int result = wait_set->Add(&fid, backend_->interrupt_fd());
    wait_set_ = result == 0 ? wait_set : nullptr;
    return result;
  }
  if (CanBlock(wait_object_)) {
    signal_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return signal_fd_ >= 0 ? 0 : -FI_EMFILE;
  }
  return 0;
}

ssize_t CompletionQueue::AnswerFailed() noexcept {
  domain_->ReportFailure();
  const backend::Locked::Guard guard(backend_->lock());
  if (backend_->HasEntry()) {
    return -FI_EAGAIN;
  }
  return backend_->HasLost() ? -FI_EAVAIL : -FI_EIO;
}

ssize_t CompletionQueue::ReadError(fi_cq_err_entry* error,
                                   uint64_t /*flags*/) noexcept {
  const auto failed = backend_->TakeError(domain_->failed());
  if (!failed.has_value()) {
    return -FI_EAGAIN;
  }
  const backend::Locked::Guard guard(backend_->lock());
  FillError(*failed, error);
  return 1;
}

void CompletionQueue::FillError(const backend::ErrorCompletion& failed,
                                fi_cq_err_entry* error) noexcept {
  const backend::Completion& done = failed.completion;
  error->op_context = ToContext(done.context);
  error->flags = done.flags;
  error->len = done.length;
  error->buf = done.buffer;
  error->data = done.data();
  error->tag = done.tag();
  error->olen = failed.excess;
  error->err = base::ToFiErrno(failed.error);
  error->prov_errno = failed.error;
  last_error_ = {.peer = failed.peer.value_or(base::SocketAddress()),
                 .has_peer = failed.peer.has_value(),
                 .detail = failed.detail,
                 .prov_errno = failed.error};
  FillErrorData(error);
  core::StoreErrorSource(domain_->api_version(), error);
}

void CompletionQueue::FillErrorData(fi_cq_err_entry* error) noexcept {
  const size_t bytes = last_error_.has_peer ? last_error_.peer.size() : 0;
  // Source: fi_cq(3), `err_data_size` exists since version 1.5; with room
  // given by the caller the data are copied, else lent until the next read.
  const bool has_size = FI_VERSION_GE(domain_->api_version(), FI_VERSION(1, 5));
  if (has_size && error->err_data_size != 0) {
    error->err_data_size = std::min(error->err_data_size, bytes);
    if (error->err_data != nullptr) {
      std::memcpy(error->err_data, last_error_.peer.data(),
                  error->err_data_size);
    }
    return;
  }
  // The API lends it without const.
  error->err_data =
      bytes != 0 ? const_cast<void*>(last_error_.peer.data()) : nullptr;
  if (has_size) {
    error->err_data_size = bytes;
  }
}

const char* CompletionQueue::ErrorText(int prov_errno, char* buffer,
                                       size_t bytes) noexcept {
  const char* text = base::ProvErrnoText(prov_errno);
  if (buffer == nullptr || bytes == 0) {
    return text;
  }
  const backend::Locked::Guard guard(backend_->lock());
  if (last_error_.prov_errno != prov_errno || !last_error_.has_peer) {
    (void)std::snprintf(buffer, bytes, "%s", text);
    return buffer;
  }
  const base::SocketAddress::Chars peer = last_error_.peer.ToChars();
  if (last_error_.detail != 0) {
    (void)std::snprintf(buffer, bytes, "%s (peer %s, code %u)", text, peer.text,
                        last_error_.detail);
  } else {
    (void)std::snprintf(buffer, bytes, "%s (peer %s)", text, peer.text);
  }
  return buffer;
}

int CompletionQueue::TryWait() noexcept {
  const backend::Locked::Guard guard(backend_->lock());
  if (HasDescriptor(wait_object_) && !backend_->HasEntry()) {
    // Armed before the second look: what is written after it raises the
    // interrupt.
    Clear(backend_->interrupt_fd());
    backend_->Arm();
  }
  return backend_->HasEntry() ? -FI_EAGAIN : 0;
}

bool CompletionQueue::WaitOnce(int64_t deadline_ns) noexcept {
  const int64_t left_ns =
      deadline_ns == kNever ? kLongestWaitMs * kNsPerMs : deadline_ns - NowNs();
  if (left_ns <= 0) {
    return false;
  }
  int wait_ms = static_cast<int>(
      std::min((left_ns + kNsPerMs - 1) / kNsPerMs, kLongestWaitMs));
  if (wait_object_ == FI_WAIT_YIELD) {
    (void)sched_yield();
    wait_ms = 0;
  } else if (TryWait() != 0) {
    wait_ms = 0;
  }
  if (progressors_->by_polls_only()) {
    wait_ms = std::min(wait_ms, kLongestWaitBetweenStepsMs);
  }
  pollfd fds[] = {
      {.fd = signal_fd_, .events = POLLIN, .revents = 0},
      {.fd = backend_->interrupt_fd(), .events = POLLIN, .revents = 0}};
  (void)poll(fds, 2, wait_ms);
  if ((fds[0].revents & POLLIN) != 0) {
    Clear(signal_fd_);
    return false;
  }
  return true;
}

ssize_t CompletionQueue::ReadWaiting(void* buffer, size_t count,
                                     fi_addr_t* sources,
                                     int timeout_ms) noexcept {
  if (!CanBlock(wait_object_)) {
    return -FI_ENOSYS;
  }
  const int64_t deadline_ns =
      timeout_ms < 0 ? kNever : NowNs() + timeout_ms * kNsPerMs;
  ssize_t result = ops->readfrom(this, buffer, count, sources);
  while (result == -FI_EAGAIN && WaitOnce(deadline_ns)) {
    result = ops->readfrom(this, buffer, count, sources);
  }
  return result;
}

int CompletionQueue::Signal() noexcept {
  if (!CanBlock(wait_object_)) {
    return -FI_ENOSYS;
  }
  const uint64_t one = 1;
  return write(signal_fd_, &one, sizeof(one)) == ssize_t{sizeof(one)}
             ? 0
             : -FI_EAGAIN;
}

int CompletionQueue::Control(int command, void* argument) noexcept {
  switch (command) {
    case FI_GETWAIT:
      return ofi::GetWaitDescriptor(wait_object_, backend_->interrupt_fd(),
                                    argument);
    case FI_GETWAITOBJ:
      *static_cast<fi_wait_obj*>(argument) = wait_object_;
      return 0;
    case base::kControlTryWait:
      return wait_object_ == FI_WAIT_NONE ? -FI_EINVAL : TryWait();
    default:
      return -FI_ENOSYS;
  }
}

int CompletionQueue::Close() noexcept {
  if (users_.in_use()) {
    return -FI_EBUSY;
  }
  delete this;
  return 0;
}

void CompletionQueue::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
  ops = &inherited_cq_ops;
}

}  // namespace heddle::ofi
