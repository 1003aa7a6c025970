// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/executor.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <algorithm>

#include "tests/differential/content.h"

namespace heddle::differential {
namespace {

constexpr uint64_t kWaitForNs = 400'000'000;
constexpr uint64_t kUnpluggedForNs = 30'000'000;
constexpr uint64_t kResetWithinNs = 100'000'000'000;
constexpr uint32_t kSparesOfALife = 1'000;

}  // namespace

Executor::Executor(uint32_t side, const Stream& stream, uint32_t first,
                   Surroundings surroundings)
    : side_(side),
      stream_(stream),
      history_(stream),
      surroundings_(std::move(surroundings)),
      first_(first),
      tags_(UsesTags(stream)),
      next_spare_(kSpareBase + first * kSparesOfALife),
      next_tagged_spare_(kTaggedSpareBase + first * kSparesOfALife) {
  for (const Operation& operation : stream.operations) {
    spare_bytes_ = std::max(spare_bytes_, operation.bytes);
  }
  Open(first);
}

void Executor::Open(uint32_t number) {
  FabricSide::Keys keys = {};
  for (uint32_t region = 0; region < kRegions; ++region) {
    keys.at(region) = KeyAt(history_, number, side_, region);
  }
  fabric_ = std::make_unique<FabricSide>(side_, stream_, keys);
  for (uint32_t index = 0; index < kAreas; ++index) {
    // Peers may have written there already.
    told_memory_[index].assign(fabric_->area(index).size(), kUntouched);
  }
  unflushed_ = {};
  told_restarts_ = fabric_->CountRestarts();
}

Executor::~Executor() {
  for (uint32_t index = 0; index < kEndpoints && fabric_; ++index) {
    (void)CloseEndpoint(index);
  }
  Forget();
}

void Executor::Run() {
  if (first_ == 0) {
    MeetOther();  // Not before it is there, too.
  }
  for (uint32_t number = first_; number < stream_.operations.size(); ++number) {
    const Operation& operation = stream_.operations[number];
    if (operation.verb == Verb::kSync) {
      Settle();
    } else if (operation.at.side == side_) {
      Execute(number);
      if (!fabric_) {
        return;  // Another process has the rest.
      }
    }
    (void)Poll();
  }
}

void Executor::Execute(uint32_t number) {
  const Operation& operation = stream_.operations[number];
  TakeClaimed(/*all=*/false);
  const uint32_t index = operation.at.endpoint;
  const bool open = fabric_->endpoint(index) != nullptr;
  switch (operation.verb) {
    case Verb::kWait:
      Wait();
      return;
    case Verb::kUnplug:
      Unplug();
      return;
    case Verb::kOpen:
      if (open) {
        return;
      }
      break;
    case Verb::kRegister:
    case Verb::kDeregister:
    case Verb::kReset:
    case Verb::kReopen:
    case Verb::kExit:
      break;
    case Verb::kKill:
      surroundings_.tell({.kind = EventKind::kCalled,
                          .time_ns = surroundings_.now_ns(),
                          .number = number});
      surroundings_.die();
      return;
    default:
      if (!open) {
        return;
      }
  }
  Event event = {.kind = EventKind::kCalled,
                 .time_ns = surroundings_.now_ns(),
                 .number = number};
  if (operation.verb == Verb::kCancel) {
    const auto& receives = receives_.at(index);
    if (operation.back >= receives.size()) {
      return;
    }
    const void* const context =
        receives.at(receives.size() - 1 - operation.back);
    Posted* const receive = Find(context);
    event.bytes = receive->number;
    event.result =
        fi_cancel(&fabric_->endpoint(index)->fid, const_cast<void*>(context));
    receive->matched = receive->matched || event.result == -FI_ENOENT;
  } else {
    event.result = IsPeek(operation.verb) ? Peek(number, operation)
                                          : Call(number, operation);
    const bool counts =
        IsSend(operation.verb) ||
        (IsRma(operation.verb) && operation.verb != Verb::kRead);
    counted_.at(index) += counts && event.result == 0 ? 1 : 0;
  }
  surroundings_.tell(event);
}

int64_t Executor::Call(uint32_t number, const Operation& operation) {
  const uint32_t index = operation.at.endpoint;
  switch (operation.verb) {
    case Verb::kReceive:
      return PostReceive(number, operation);
    case Verb::kInvalid:
      return CallInvalid(operation);
    case Verb::kOpen:
      return fabric_->OpenEndpoint(index);
    case Verb::kClose:
      return CloseEndpoint(index);
    case Verb::kDeregister:
      return fabric_->DeregisterRegion(operation.region);
    case Verb::kRegister: {
      const int result = fabric_->DeregisterRegion(operation.region);
      return result != 0
                 ? result
                 : fabric_->RegisterRegion(
                       operation.region,
                       KeyAt(history_, number + 1, side_, operation.region));
    }
    case Verb::kReset:
      if (const int64_t result = Reset(); result != 0) {
        return result;
      }
      [[fallthrough]];
    case Verb::kReopen:
      CloseAll();
      Open(number + 1);
      return 0;
    case Verb::kExit:
      CloseAll();
      return 0;
    default:
      return IsRma(operation.verb) ? PostRma(number, operation)
                                   : PostSend(number, operation);
  }
}

// Until the library has reported all that the reset ended, and then says so.
int64_t Executor::Reset() {
  surroundings_.reset_nic();
  const uint64_t deadline_ns = surroundings_.now_ns() + kResetWithinNs;
  bool any = false;
  while (PollAlive(&any)) {
    if (surroundings_.now_ns() > deadline_ns) {
      return -FI_ETIMEDOUT;
    }
  }
  return 0;
}

void Executor::CloseAll() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    Require("fi_close", CloseEndpoint(index));
  }
  TellReads();
  Forget();
  fabric_->Close();
  fabric_.reset();
}

int64_t Executor::CloseEndpoint(uint32_t index) {
  const int result = fabric_->CloseEndpoint(index);
  if (result == 0) {
    receives_.at(index).clear();
    spares_.at(index) = tagged_spares_.at(index) = 0;
    counted_.at(index) = 0;
    std::erase_if(claims_, [index](const Claim& claim) {
      return claim.posted->endpoint == index;
    });
    for (const auto& posted : posted_) {
      posted->over = posted->over || posted->endpoint == index;
    }
  }
  return result;
}

bool Executor::Poll() {
  bool any = false;
  if (!PollAlive(&any)) {
    throw SetupFailure("fi_cq_readfrom: the device has failed");
  }
  return any;
}

bool Executor::PollAlive(bool* any) {
  *any = false;
  while (true) {
    fi_cq_tagged_entry entry = {};
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    const ssize_t result = fi_cq_readfrom(fabric_->cq(), &entry, 1, &source);
    if (result == 1) {
      OnCompletion(entry, source);
    } else if (result == -FI_EAVAIL) {
      OnError();
    } else {
      if (result != -FI_EAGAIN && result != -FI_EIO) {
        Require("fi_cq_readfrom", result);
      }
      return result == -FI_EAGAIN;
    }
    *any = true;
  }
}

Executor::Posted* Executor::Find(const void* context) {
  const auto found = contexts_.find(context);
  return found == contexts_.end() ? nullptr : found->second;
}

// What is in the buffer of a receive or read, of which `event->bytes` arrived.
// Those of a message that broke off without order may be anywhere in it.
void Executor::Examine(Posted* posted, Event* event) {
  event->number = posted->number;
  posted->complete = true;
  if (!posted->receives) {
    return;
  }
  const std::span<const uint8_t> buffer(posted->buffer);
  event->digest =
      Digest(buffer.first(std::min<size_t>(event->bytes, buffer.size())));
  const bool scattered =
      event->result == FI_EREMOTEIO && !stream_.setup.ordered;
  const uint64_t reach = event->bytes + (scattered ? event->beyond : 0);
  posted->reach = std::min<size_t>(reach, buffer.size());
  posted->digest = reach == event->bytes ? event->digest
                                         : Digest(buffer.first(posted->reach));
  posted->clean = IsUntouched(buffer.subspan(posted->reach));
  event->clean = posted->clean;
}

// The same of a buffer of many messages, one of which is at `address`.
void Executor::ExamineMany(Posted* posted, Event* event, const void* address) {
  event->number = posted->number;
  const std::span<uint8_t> buffer(posted->buffer);
  if (event->result == 0 || EndsMessage(event->result)) {
    event->offset = static_cast<uint64_t>(static_cast<const uint8_t*>(address) -
                                          buffer.data());
    const size_t offset = std::min<uint64_t>(event->offset, buffer.size());
    const size_t bytes =
        std::min<uint64_t>(event->bytes, buffer.size() - offset);
    event->digest = Digest(buffer.subspan(offset, bytes));
    // As in `Examine`.
    const uint64_t reach =
        event->bytes + (event->result == FI_EREMOTEIO ? event->beyond : 0);
    const auto part = buffer.subspan(
        offset, std::min<uint64_t>(reach, buffer.size() - offset));
    posted->parts.push_back({offset, part.size(), Digest(part)});
  } else {
    event->digest = Digest({});
  }
  if (event->held) {
    return;
  }
  posted->complete = true;
  posted->reach = buffer.size();
  posted->digest = Digest(buffer);
  std::vector<uint8_t> rest(buffer.begin(), buffer.end());
  for (const Posted::Part& part : posted->parts) {
    const auto bytes = buffer.subspan(part.offset, part.bytes);
    if (Digest(bytes) != part.digest) {
      surroundings_.tell(
          {.kind = EventKind::kChanged, .number = posted->number});
    }
    std::fill_n(rest.begin() + static_cast<ptrdiff_t>(part.offset), part.bytes,
                kUntouched);
  }
  event->clean = IsUntouched(rest);
}

void Executor::OnFound(const Posted& posted, Event event, size_t bytes) {
  event.kind = EventKind::kFound;
  event.number = posted.number;
  event.beyond = bytes;
  event.bytes = 0;
  surroundings_.tell(event);
}

void Executor::OnCompletion(const fi_cq_tagged_entry& entry, fi_addr_t source) {
  Event event = {.kind = EventKind::kCompleted,
                 .time_ns = surroundings_.now_ns(),
                 .number = kNobody};
  event.bytes = entry.len;
  event.has_data = (entry.flags & FI_REMOTE_CQ_DATA) != 0;
  event.data = event.has_data ? entry.data : 0;
  event.source = fabric_->PlaceAt(source);
  event.tag = (entry.flags & FI_TAGGED) != 0 ? entry.tag : 0;
  Posted* const posted = Find(entry.op_context);
  if (posted != nullptr && posted->flushes) {
    posted->complete = true;
    return;
  }
  if (posted != nullptr && posted->peeks) {
    posted->complete = true;
    OnFound(*posted, event, entry.len);
    return;
  }
  if (posted == nullptr && (entry.flags & FI_REMOTE_WRITE) != 0) {
    event.kind = EventKind::kNotified;
  } else if (posted != nullptr) {
    if (!posted->receives) {
      event.bytes = event.tag = 0;
      event.source = -1;
    }
    if (posted->many) {
      event.held = (entry.flags & FI_MULTI_RECV) == 0;
      ExamineMany(posted, &event, entry.buf);
    } else {
      Examine(posted, &event);
    }
    CountSpare(*posted);
  }
  surroundings_.tell(event);
}

void Executor::CountSpare(const Posted& posted) {
  if (!posted.receives || posted.number < kSpareBase ||
      posted.number >= kClaimBase) {
    return;
  }
  auto& spares = posted.number < kTaggedSpareBase ? spares_ : tagged_spares_;
  --spares.at(posted.endpoint);
}

void Executor::OnError() {
  fi_cq_err_entry failure = {};
  Require("fi_cq_readerr", fi_cq_readerr(fabric_->cq(), &failure, 0));
  Event event = {.kind = EventKind::kFailed, .number = kNobody};
  event.result = failure.err;
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    if (failure.op_context == fabric_->endpoint_context(index)) {
      event.endpoint = index + 1;  // An injected operation of this endpoint.
    }
  }
  if (Posted* const posted = Find(failure.op_context)) {
    if (posted->flushes) {  // Its peer is closed, and tells nothing of itself.
      posted->complete = true;
      return;
    }
    event.bytes = posted->receives ? failure.len : 0;
    event.beyond = posted->receives ? failure.olen : 0;
    event.has_data = (failure.flags & FI_REMOTE_CQ_DATA) != 0;
    event.data = event.has_data ? failure.data : 0;
    event.tag =
        (failure.flags & FI_TAGGED) != 0 && posted->receives ? failure.tag : 0;
    if (posted->many) {
      event.held =
          EndsMessage(failure.err) && (failure.flags & FI_MULTI_RECV) == 0;
      ExamineMany(posted, &event, failure.buf);
    } else {
      posted->failed = true;
      Examine(posted, &event);
    }
    CountSpare(*posted);
  }
  surroundings_.tell(event);
}

void Executor::Wait() {
  const uint64_t deadline_ns = surroundings_.now_ns() + kWaitForNs;
  const auto outstanding = [this] {
    return std::any_of(posted_.begin(), posted_.end(), [](const auto& posted) {
      return posted->reported && !posted->receives && !posted->complete &&
             !posted->over;
    });
  };
  while (outstanding() && surroundings_.now_ns() < deadline_ns) {
    (void)Poll();
  }
}

void Executor::Unplug() {
  surroundings_.set_link(false);
  const uint64_t until_ns = surroundings_.now_ns() + kUnpluggedForNs;
  while (surroundings_.now_ns() < until_ns) {
    (void)Poll();
  }
  surroundings_.set_link(true);
}

}  // namespace heddle::differential
