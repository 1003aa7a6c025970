// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/event_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "host/lib/base/guard.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"

namespace heddle::ofi {
namespace {

constexpr size_t kDefaultSize = 256;
// A reader that waits steps this often where polls alone make progress.
constexpr auto kLongestWaitBetweenSteps = std::chrono::milliseconds(1);

int CloseEventQueue(struct fid* handle) noexcept {
  return EventQueue::From(handle)->Close();
}

int ControlEventQueue(struct fid* handle, int command,
                      void* argument) noexcept {
  return EventQueue::From(handle)->Control(command, argument);
}

ssize_t ReadQueue(fid_eq* handle, uint32_t* event, void* buffer, size_t bytes,
                  uint64_t flags) noexcept {
  return EventQueue::From(handle)->Read(event, buffer, bytes, flags);
}

ssize_t ReadQueueError(fid_eq* handle, fi_eq_err_entry* entry,
                       uint64_t flags) noexcept {
  return EventQueue::From(handle)->ReadError(entry, flags);
}

ssize_t WriteQueue(fid_eq* handle, uint32_t event, const void* entry,
                   size_t bytes, uint64_t flags) noexcept {
  return EventQueue::From(handle)->UserWrite(event, entry, bytes, flags);
}

// NOLINTNEXTLINE(readability-function-size): the signature is libfabric's.
ssize_t ReadQueueWaiting(fid_eq* handle, uint32_t* event, void* buffer,
                         size_t bytes, int timeout_ms,
                         uint64_t flags) noexcept {
  return EventQueue::From(handle)->ReadWaiting(event, buffer, bytes, timeout_ms,
                                               flags);
}

const char* QueueErrorText(fid_eq* /*handle*/, int prov_errno,
                           const void* /*data*/, char* buffer,
                           size_t bytes) noexcept {
  const char* text = base::ProvErrnoText(prov_errno);
  if (buffer != nullptr && bytes > 0) {
    const size_t length = std::min(strlen(text), bytes - 1);
    memcpy(buffer, text, length);
    buffer[length] = '\0';
  }
  return text;
}

fi_ops event_queue_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseEventQueue,
    .bind = base::RefuseBind,
    .control = ControlEventQueue,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops_eq queue_ops = {
    .size = sizeof(fi_ops_eq),
    .read = ReadQueue,
    .readerr = ReadQueueError,
    .write = WriteQueue,
    .sread = ReadQueueWaiting,
    .strerror = QueueErrorText,
};

}  // namespace

int EventQueue::Open(Fabric* fabric, const fi_eq_attr* attr, fid_eq** queue,
                     void* context) {
  const fi_eq_attr defaults = {};
  const fi_eq_attr& wanted = attr != nullptr ? *attr : defaults;
  if ((wanted.flags & ~(FI_WRITE | FI_AFFINITY)) != 0) {
    return -FI_EBADFLAGS;
  }
  if (wanted.wait_obj < FI_WAIT_NONE || wanted.wait_obj > FI_WAIT_POLLFD) {
    return -FI_EINVAL;
  }
  struct Deleter {
    void operator()(EventQueue* doomed) const { delete doomed; }
  };
  std::unique_ptr<EventQueue, Deleter> made(new EventQueue(fabric, wanted));
  made->fid = {
      .fclass = FI_CLASS_EQ, .context = context, .ops = &event_queue_fid_ops};
  made->ops = &queue_ops;
  const int result = made->OpenWait(wanted.wait_set);
  if (result == FI_SUCCESS) {
    *queue = made.release();
  }
  return result;
}

int EventQueue::OpenWait(fid_wait* set) {
  const bool in_set = wait_object_ == FI_WAIT_SET;
  if (wait_object_ != FI_WAIT_FD && wait_object_ != FI_WAIT_POLLFD && !in_set) {
    return FI_SUCCESS;
  }
  if (in_set && (set == nullptr || set->fid.fclass != FI_CLASS_WAIT ||
                 WaitSet::From(set)->fabric() != fabric_)) {
    return -FI_EINVAL;
  }
  event_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_fd_ < 0) {
    return -errno;
  }
  if (!in_set) {
    return FI_SUCCESS;
  }
  const int result = WaitSet::From(set)->Add(&fid, event_fd_);
  if (result == FI_SUCCESS) {
    wait_set_ = WaitSet::From(set);
  }
  return result;
}

EventQueue::EventQueue(Fabric* fabric, const fi_eq_attr& attr)
    : fid_eq{},
      fabric_(fabric),
      size_(attr.size != 0 ? attr.size : kDefaultSize),
      writable_((attr.flags & FI_WRITE) != 0),
      wait_object_(attr.wait_obj) {
  fabric_->users().Add();
}

EventQueue::~EventQueue() {
  if (wait_set_ != nullptr) {
    wait_set_->Remove(&fid, event_fd_);
  }
  fabric_->users().Remove();
  if (event_fd_ >= 0) {
    close(event_fd_);
  }
}

int EventQueue::Close() noexcept {
  {
    const std::lock_guard lock(progress_mutex_);
    if (!progressors_.empty()) {
      return -FI_EBUSY;
    }
  }
  delete this;
  return FI_SUCCESS;
}

int EventQueue::Push(Record record, size_t most) noexcept {
  return base::Guard([&]() -> int {
    {
      const std::lock_guard lock(mutex_);
      if (records_.size() >= most) {
        return -FI_EAGAIN;
      }
      records_.push_back(std::move(record));
      if (event_fd_ >= 0 && records_.size() == 1) {
        eventfd_write(event_fd_, 1);
      }
      readable_.notify_all();
    }
    if (wait_object_ == FI_WAIT_MUTEX_COND) {
      const std::lock_guard lock(wait_mutex_);
      wait_condition_.notify_all();
    }
    return FI_SUCCESS;
  });
}

int EventQueue::MakeRecord(uint32_t event, const void* entry, size_t bytes,
                           size_t most) {
  Record record;
  record.event = event;
  const auto* first = static_cast<const uint8_t*>(entry);
  record.bytes.assign(first, first + bytes);
  return Push(std::move(record), most);
}

int EventQueue::Write(uint32_t event, const void* entry,
                      size_t bytes) noexcept {
  return base::Guard([&] { return MakeRecord(event, entry, bytes, SIZE_MAX); });
}

int EventQueue::WriteError(const fi_eq_err_entry& error) noexcept {
  return base::Guard([&] {
    Record record;
    record.is_error = true;
    record.error = error;
    if (error.err_data != nullptr) {
      const auto* first = static_cast<const uint8_t*>(error.err_data);
      record.bytes.assign(first, first + error.err_data_size);
    }
    return Push(std::move(record));
  });
}

void EventQueue::PopLocked() noexcept {
  records_.pop_front();
  if (event_fd_ >= 0 && records_.empty()) {
    eventfd_t ignored = 0;
    eventfd_read(event_fd_, &ignored);
  }
}

ssize_t EventQueue::ReadLocked(uint32_t* event, void* buffer, size_t bytes,
                               uint64_t flags) noexcept {
  if (records_.empty()) {
    return -FI_EAGAIN;
  }
  const Record& head = records_.front();
  if (head.is_error) {
    return -FI_EAVAIL;
  }
  if (bytes < head.bytes.size()) {
    return -FI_ETOOSMALL;
  }
  last_error_data_.clear();
  const size_t length = head.bytes.size();
  if (length != 0) {
    memcpy(buffer, head.bytes.data(), length);
  }
  *event = head.event;
  if ((flags & FI_PEEK) == 0) {
    PopLocked();
  }
  return static_cast<ssize_t>(length);
}

ssize_t EventQueue::ReadError(fi_eq_err_entry* entry, uint64_t flags) noexcept {
  const std::lock_guard lock(mutex_);
  if (records_.empty() || !records_.front().is_error) {
    return -FI_EAGAIN;
  }
  Record& head = records_.front();
  // Source: fi_eq(3): up to version 1.4 the entry ended with `err_data`, and
  // the provider lent its own buffer.
  const bool long_entry = FI_VERSION_GE(fabric_->api_version, FI_VERSION(1, 5));
  void* user_data = long_entry ? entry->err_data : nullptr;
  const size_t user_bytes = long_entry ? entry->err_data_size : 0;
  memcpy(entry, &head.error, offsetof(fi_eq_err_entry, err_data));
  last_error_data_ = head.bytes;
  if (user_data != nullptr && user_bytes != 0) {
    const size_t length = std::min(user_bytes, last_error_data_.size());
    memcpy(user_data, last_error_data_.data(), length);
    entry->err_data = user_data;
    entry->err_data_size = length;
  } else {
    entry->err_data =
        last_error_data_.empty() ? nullptr : last_error_data_.data();
    if (long_entry) {
      entry->err_data_size = last_error_data_.size();
    }
  }
  if ((flags & FI_PEEK) == 0) {
    PopLocked();
  }
  return sizeof(*entry);
}

ssize_t EventQueue::UserWrite(uint32_t event, const void* entry, size_t bytes,
                              uint64_t flags) noexcept {
  if (!writable_ || (entry == nullptr && bytes != 0)) {
    return -FI_EINVAL;
  }
  if (flags != 0) {
    return -FI_EBADFLAGS;
  }
  const int result =
      base::Guard([&] { return MakeRecord(event, entry, bytes, size_); });
  return result == FI_SUCCESS ? static_cast<ssize_t>(bytes) : result;
}

int EventQueue::AddUser(const backend::ProgressorList& progressors) noexcept {
  return base::Guard([&] {
    const std::lock_guard lock(progress_mutex_);
    progressors_.push_back(&progressors);
    return FI_SUCCESS;
  });
}

void EventQueue::RemoveUser(
    const backend::ProgressorList& progressors) noexcept {
  const std::lock_guard lock(progress_mutex_);
  progressors_.erase(std::ranges::find(progressors_, &progressors));
}

// One of several readers does it for all.
bool EventQueue::Step() noexcept {
  const std::unique_lock lock(progress_mutex_, std::try_to_lock);
  bool by_polls_only = false;
  if (lock.owns_lock()) {
    for (const backend::ProgressorList* each : progressors_) {
      each->Step();
      by_polls_only = by_polls_only || each->by_polls_only();
    }
  }
  return by_polls_only || !lock.owns_lock();
}

ssize_t EventQueue::Read(uint32_t* event, void* buffer, size_t bytes,
                         uint64_t flags) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!records_.empty()) {
      return ReadLocked(event, buffer, bytes, flags);
    }
  }
  Step();
  const std::lock_guard lock(mutex_);
  return ReadLocked(event, buffer, bytes, flags);
}

ssize_t EventQueue::ReadWaiting(uint32_t* event, void* buffer, size_t bytes,
                                int timeout_ms, uint64_t flags) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto deadline =
      timeout_ms < 0 ? Clock::time_point::max()
                     : Clock::now() + std::chrono::milliseconds(timeout_ms);
  const auto ready = [this] { return !records_.empty(); };
  std::unique_lock lock(mutex_);
  while (!ready()) {
    lock.unlock();
    const bool again = Step();
    lock.lock();
    if (again) {
      const auto soon = Clock::now() + kLongestWaitBetweenSteps;
      if (readable_.wait_until(lock, std::min(soon, deadline), ready) ||
          Clock::now() >= deadline) {
        break;
      }
    } else if (timeout_ms < 0) {
      readable_.wait(lock, ready);
    } else {
      readable_.wait_until(lock, deadline, ready);
      break;
    }
  }
  return ReadLocked(event, buffer, bytes, flags);
}

int EventQueue::Control(int command, void* argument) noexcept {
  switch (command) {
    case FI_GETWAIT:
      if (wait_object_ == FI_WAIT_MUTEX_COND) {
        *static_cast<fi_mutex_cond*>(argument) = {
            wait_mutex_.native_handle(), wait_condition_.native_handle()};
        return FI_SUCCESS;
      }
      return GetWaitDescriptor(wait_object_, event_fd_, argument);
    case FI_GETWAITOBJ:
      *static_cast<fi_wait_obj*>(argument) = wait_object_;
      return FI_SUCCESS;
    case base::kControlTryWait: {
      const std::lock_guard lock(mutex_);
      return records_.empty() ? FI_SUCCESS : -FI_EAGAIN;
    }
    default:
      return -FI_ENOSYS;
  }
}

}  // namespace heddle::ofi
