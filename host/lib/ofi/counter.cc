// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/counter.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <optional>

#include "host/lib/base/enumerator.h"
#include "host/lib/base/log.h"
#include "host/lib/base/status.h"
#include "host/lib/base/unsupported.h"
#include "host/lib/ofi/inherited_ops.h"

namespace heddle::ofi {
namespace {

using Change = backend::Counter::Change;
using Clock = std::chrono::steady_clock;

int CloseCounter(struct fid* handle) noexcept {
  return Counter::From(handle)->Close();
}

int ControlCounter(struct fid* handle, int command, void* argument) noexcept {
  return Counter::From(handle)->Control(command, argument);
}

uint64_t ReadCounter(fid_cntr* handle) noexcept {
  return Counter::From(handle)->Read();
}

uint64_t ReadCounterErrors(fid_cntr* handle) noexcept {
  return Counter::From(handle)->ReadErrors();
}

template <Change kChange>
int ChangeCounter(fid_cntr* handle, uint64_t amount) noexcept {
  return Counter::From(handle)->Change(kChange, amount);
}

int WaitForCounter(fid_cntr* handle, uint64_t threshold,
                   int timeout_ms) noexcept {
  return Counter::From(handle)->Wait(threshold, timeout_ms);
}

fi_ops counter_fid_ops = {
    .size = sizeof(fi_ops),
    .close = CloseCounter,
    .bind = base::RefuseBind,
    .control = ControlCounter,
    .ops_open = base::RefuseOpenOps,
    .tostr = nullptr,
    .ops_set = base::RefuseSetOps,
};

fi_ops_cntr counter_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = ReadCounter,
    .readerr = ReadCounterErrors,
    .add = ChangeCounter<Change::kAdd>,
    .set = ChangeCounter<Change::kSet>,
    .wait = WaitForCounter,
    .adderr = ChangeCounter<Change::kAddErrors>,
    .seterr = ChangeCounter<Change::kSetErrors>,
};

// 0, or the reason why the application cannot wait that way: the device writes
// the cell without an interrupt.
int CheckWaitObject(fi_wait_obj object) {
  switch (object) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_YIELD:
      return 0;
    case FI_WAIT_FD:
    case FI_WAIT_POLLFD:
    case FI_WAIT_SET:
    case FI_WAIT_MUTEX_COND:
      base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCntr,
                "counter: the device raises no interrupt for a counter; open "
                "it with FI_WAIT_UNSPEC or FI_WAIT_YIELD, which poll");
      return -FI_ENOSYS;
  }
  return -FI_EINVAL;
}

}  // namespace

Counter::Counter(Domain* domain, void* context) : fid_cntr{}, domain_(domain) {
  fid = {.fclass = FI_CLASS_CNTR, .context = context, .ops = &counter_fid_ops};
  ops = &counter_ops;
  domain_->users().Add();
}

Counter::~Counter() {
  backend_.reset();
  domain_->users().Remove();
}

int Counter::Open(Domain* domain, fi_cntr_attr* attr, fid_cntr** counter,
                  void* context) {
  if (attr != nullptr &&
      (!base::AtMost(attr->events, FI_CNTR_EVENTS_COMP) ||
       !base::AtMost(attr->wait_obj, FI_WAIT_POLLFD) || attr->flags != 0)) {
    return -FI_EINVAL;
  }
  const fi_wait_obj wanted = attr == nullptr ? FI_WAIT_NONE : attr->wait_obj;
  if (const int refused = CheckWaitObject(wanted); refused != 0) {
    return refused;
  }
  if (!domain->device().profile().has.counters) {
    return -FI_ENOSYS;
  }
  struct Deleter {
    void operator()(Counter* doomed) const { delete doomed; }
  };
  std::unique_ptr<Counter, Deleter> made(new Counter(domain, context));
  made->wait_object_ = wanted == FI_WAIT_NONE ? FI_WAIT_NONE : FI_WAIT_YIELD;
  auto backend = domain->device().OpenCounter();
  if (!backend.ok()) {
    base::Log(base::LogLevel::kWarn, base::LogSubsystem::kCntr,
              "counter: %s; the device has %zu: close an unused one",
              std::strerror(static_cast<int>(backend.error())),
              domain->device().profile().limits.counters);
    return base::ToReturnCode(backend.error());
  }
  made->backend_ = std::move(backend.value());
  *counter = made.release();
  return 0;
}

int Counter::Change(backend::Counter::Change change, uint64_t amount) noexcept {
  return -backend_->Execute(change, amount);
}

int Counter::Wait(uint64_t threshold, int timeout_ms) noexcept {
  if (wait_object_ == FI_WAIT_NONE) {
    return -FI_ENOSYS;
  }
  const uint64_t errors = backend_->errors();
  const auto deadline =
      timeout_ms < 0
          ? std::nullopt
          : std::optional(Clock::now() + std::chrono::milliseconds(timeout_ms));
  // Time and health are looked at every so many polls: both cost more.
  constexpr uint32_t kPollsPerCheck = 64;
  while (true) {
    for (uint32_t i = 0; i < kPollsPerCheck; ++i) {
      if (backend_->value() >= threshold) {
        return 0;
      }
      if (backend_->errors() != errors) {
        return -FI_EAVAIL;
      }
      domain_->progressors().Step();
    }
    if (domain_->device().failed()) {
      domain_->ReportFailure();
      return -FI_EIO;
    }
    if (deadline.has_value() && Clock::now() >= *deadline) {
      return -FI_ETIMEDOUT;
    }
    (void)sched_yield();
  }
}

int Counter::Control(int command, void* argument) const noexcept {
  switch (command) {
    case FI_GETWAITOBJ:
      *static_cast<fi_wait_obj*>(argument) = wait_object_;
      return 0;
    case FI_GETWAIT:
      return -FI_ENODATA;
    default:
      return -FI_ENOSYS;
  }
}

int Counter::Close() noexcept {
  if (users_.in_use()) {
    return -FI_EBUSY;
  }
  delete this;
  return 0;
}

void Counter::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
  ops = &inherited_cntr_ops;
}

}  // namespace heddle::ofi
