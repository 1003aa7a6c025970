// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/wait_set.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "host/lib/base/guard.h"
#include "host/lib/base/unsupported.h"

namespace heddle::ofi {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

int CloseSet(struct fid* handle) noexcept {
  return WaitSet::From(handle)->Close();
}

int ControlSet(struct fid* handle, int command, void* argument) noexcept {
  return WaitSet::From(handle)->Control(command, argument);
}

int WaitForSet(fid_wait* handle, int timeout_ms) noexcept {
  return WaitSet::From(handle)->Wait(timeout_ms);
}

fi_ops set_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseSet,
    .bind = base::RefuseBind,
    .control = ControlSet,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops_wait set_ops = {
    .size = sizeof(fi_ops_wait),
    .wait = WaitForSet,
};

}  // namespace

int WaitSet::Open(Fabric* fabric, const fi_wait_attr* attr, fid_wait** set) {
  if (attr == nullptr || set == nullptr) {
    return -FI_EINVAL;
  }
  if (attr->flags != 0) {
    return -FI_EBADFLAGS;
  }
  switch (attr->wait_obj) {
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_POLLFD:
    case FI_WAIT_YIELD:
      break;
    case FI_WAIT_MUTEX_COND:
      return -FI_ENOSYS;
    case FI_WAIT_NONE:
    case FI_WAIT_SET:
    default:
      return -FI_EINVAL;
  }
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) {
    return -errno;
  }
  const int result = base::Guard([&] {
    *set = new WaitSet(fabric, attr->wait_obj, epoll_fd);
    return FI_SUCCESS;
  });
  if (result != FI_SUCCESS) {
    close(epoll_fd);
  }
  return result;
}

WaitSet::WaitSet(Fabric* fabric, fi_wait_obj wait_object, int epoll_fd)
    : fid_wait{},
      fabric_(fabric),
      wait_object_(wait_object),
      epoll_fd_(epoll_fd) {
  fid = {.fclass = FI_CLASS_WAIT, .context = nullptr, .ops = &set_fid_ops};
  ops = &set_ops;
  fabric_->users().Add();
}

WaitSet::~WaitSet() {
  close(epoll_fd_);
  fabric_->users().Remove();
}

int WaitSet::Close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!members_.empty()) {
      return -FI_EBUSY;
    }
  }
  delete this;
  return FI_SUCCESS;
}

int WaitSet::Add(struct fid* object, int descriptor) {
  const std::lock_guard lock(mutex_);
  members_.push_back(object);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = object;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    const int error = errno;
    members_.pop_back();
    return -error;
  }
  return FI_SUCCESS;
}

void WaitSet::Remove(struct fid* object, int descriptor) noexcept {
  const std::lock_guard lock(mutex_);
  (void)epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, descriptor, nullptr);
  std::erase(members_, object);
}

int WaitSet::TryWait() noexcept {
  const std::lock_guard lock(mutex_);
  for (struct fid* member : members_) {
    const int result =
        member->ops->control(member, base::kControlTryWait, nullptr);
    if (result != FI_SUCCESS) {
      return result;
    }
  }
  return FI_SUCCESS;
}

int WaitSet::Wait(int timeout_ms) noexcept {
  const Clock::time_point deadline = Clock::now() + Milliseconds(timeout_ms);
  while (true) {
    const int result = TryWait();
    if (result != FI_SUCCESS) {
      return result == -FI_EAGAIN ? FI_SUCCESS : result;
    }
    int left_ms = -1;
    if (timeout_ms >= 0) {
      left_ms = static_cast<int>(std::max<int64_t>(
          0, std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count()));
    }
    epoll_event event;
    const int ready = epoll_wait(epoll_fd_, &event, 1, left_ms);
    if (ready == 0) {
      return TryWait() == -FI_EAGAIN ? FI_SUCCESS : -FI_ETIMEDOUT;
    }
    if (ready < 0 && errno != EINTR) {
      return -errno;
    }
  }
}

int WaitSet::Control(int command, void* argument) noexcept {
  switch (command) {
    case FI_GETWAIT:
      return GetWaitDescriptor(wait_object_, epoll_fd_, argument);
    case FI_GETWAITOBJ:
      *static_cast<fi_wait_obj*>(argument) = wait_object_;
      return FI_SUCCESS;
    case base::kControlTryWait:
      return TryWait();
    default:
      return -FI_ENOSYS;
  }
}

int GetWaitDescriptor(fi_wait_obj wait_object, int descriptor,
                      void* argument) noexcept {
  if (wait_object == FI_WAIT_FD) {
    *static_cast<int*>(argument) = descriptor;
    return FI_SUCCESS;
  }
  if (wait_object != FI_WAIT_POLLFD) {
    return -FI_ENODATA;
  }
  // Source: fi_poll(3), NOTES: `nfds` is the room of the caller, then what is
  // needed.
  auto* wait = static_cast<fi_wait_pollfd*>(argument);
  const size_t room = wait->nfds;
  wait->nfds = 1;
  wait->change_index = 1;
  if (room == 0) {
    return -FI_ETOOSMALL;
  }
  wait->fd[0] = {.fd = descriptor, .events = POLLIN, .revents = 0};
  return FI_SUCCESS;
}

}  // namespace heddle::ofi
