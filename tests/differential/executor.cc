// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/executor.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/differential/content.h"

namespace heddle::differential {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A full queue may stay full as long as the other side posts no receive, which
// may be for ever: then the operation is left out.
constexpr milliseconds kRetryFor{100};
constexpr milliseconds kWaitFor{400};
constexpr milliseconds kUnpluggedFor{30};
constexpr milliseconds kResetWithin{10'000};
constexpr uint32_t kSparesOfALife = 1'000;
constexpr uint32_t kSpares = 4;  // Posted at each endpoint during a sync.
constexpr uint64_t kUnknownFlagBit = uint64_t{1} << 47U;

// `count` parts of a buffer: together all of it, none equal in size.
std::vector<iovec> Split(uint8_t* buffer, size_t bytes, uint32_t count) {
  std::vector<iovec> parts;
  size_t at = 0;
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const size_t part = (bytes - at) / 2;
    parts.push_back({.iov_base = buffer + at, .iov_len = part});
    at += part;
  }
  parts.push_back({.iov_base = buffer + at, .iov_len = bytes - at});
  return parts;
}

bool IsUntouched(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](uint8_t byte) { return byte == kUntouched; });
}

// The key of a region just before operation `number`: one that nobody had
// before.
uint64_t KeyAt(const Stream& stream, uint32_t number, uint32_t owner,
               uint32_t region) {
  const auto generation = static_cast<uint32_t>(std::count_if(
      stream.operations.begin(), stream.operations.begin() + number,
      [&](const Operation& earlier) {
        return earlier.verb == Verb::kRegister && earlier.at.side == owner &&
               earlier.region == region;
      }));
  return KeyOf(owner, region,
               generation + RenewalsBefore(stream, number, owner));
}

// `count` pieces of a peer's memory; no border is one of `Split`.
std::vector<fi_rma_iov> SplitTarget(const Operation& operation, uint64_t key,
                                    size_t count) {
  std::vector<fi_rma_iov> pieces;
  uint64_t at = 0;
  for (size_t i = 0; i + 1 < count; ++i) {
    const uint64_t piece = (operation.bytes - at) / 3;
    pieces.push_back({.addr = operation.offset + at, .len = piece, .key = key});
    at += piece;
  }
  pieces.push_back(
      {.addr = operation.offset + at, .len = operation.bytes - at, .key = key});
  return pieces;
}

}  // namespace

Executor::Executor(uint32_t side, const Stream& stream, uint32_t first,
                   Surroundings surroundings)
    : side_(side),
      stream_(stream),
      surroundings_(std::move(surroundings)),
      first_(first),
      next_spare_(kSpareBase + first * kSparesOfALife) {
  Open(first);
}

void Executor::Open(uint32_t number) {
  FabricSide::Keys keys = {};
  for (uint32_t region = 0; region < kRegions; ++region) {
    keys.at(region) = KeyAt(stream_, number, side_, region);
  }
  fabric_ = std::make_unique<FabricSide>(side_, stream_, keys);
  for (uint32_t index = 0; index < kAreas; ++index) {
    // Peers may have written there already.
    told_memory_[index].assign(fabric_->area(index).size(), kUntouched);
  }
  unflushed_ = {};
}

Executor::~Executor() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
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
    }
    (void)Poll();
  }
}

void Executor::Execute(uint32_t number) {
  const Operation& operation = stream_.operations[number];
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
      break;
    case Verb::kKill:
      surroundings_.tell({.kind = EventKind::kCalled, .number = number});
      (void)raise(SIGKILL);
      return;
    default:
      if (!open) {
        return;
      }
  }
  Event event = {.kind = EventKind::kCalled, .number = number};
  if (operation.verb == Verb::kCancel) {
    const auto& receives = receives_.at(index);
    if (operation.back >= receives.size()) {
      return;
    }
    const void* const context =
        receives.at(receives.size() - 1 - operation.back);
    event.bytes = Find(context)->number;
    event.result =
        fi_cancel(&fabric_->endpoint(index)->fid, const_cast<void*>(context));
  } else {
    event.result = Call(number, operation);
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
                       KeyAt(stream_, number + 1, side_, operation.region));
    }
    case Verb::kReset:
      return Reset(number);
    default:
      return IsRma(operation.verb) ? PostRma(number, operation)
                                   : PostSend(number, operation);
  }
}

// Until the library has reported all that the reset ended, and then says so.
int64_t Executor::Reset(uint32_t number) {
  surroundings_.reset_nic();
  const auto deadline = steady_clock::now() + kResetWithin;
  bool any = false;
  while (PollAlive(&any)) {
    if (steady_clock::now() > deadline) {
      return -FI_ETIMEDOUT;
    }
  }
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    Require("fi_close", CloseEndpoint(index));
  }
  TellReads();
  Forget();
  fabric_.reset();
  Open(number + 1);
  return 0;
}

int64_t Executor::CloseEndpoint(uint32_t index) {
  const int result = fabric_->CloseEndpoint(index);
  if (result == 0) {
    receives_.at(index).clear();
    spares_.at(index) = 0;
    counted_.at(index) = 0;
    for (const auto& [context, posted] : posted_) {
      posted->over = posted->over || posted->endpoint == index;
    }
  }
  return result;
}

int64_t Executor::Retry(const std::function<int64_t()>& post) {
  const auto deadline = steady_clock::now() + kRetryFor;
  int64_t result = post();
  while (result == -FI_EAGAIN && steady_clock::now() < deadline) {
    (void)Poll();
    result = post();
  }
  return result;
}

std::unique_ptr<Executor::Posted> Executor::MakePosted(
    uint32_t number, const Operation& operation) {
  auto posted = std::make_unique<Posted>();
  posted->number = number;
  posted->endpoint = operation.at.endpoint;
  posted->reported = IsReported(stream_.setup, operation);
  return posted;
}

void Executor::Register(const Operation& operation, Posted* posted) {
  if (operation.registered && !posted->buffer.empty()) {
    Require(
        "fi_mr_reg",
        fi_mr_reg(fabric_->domain(), posted->buffer.data(),
                  posted->buffer.size(), FI_SEND | FI_RECV | FI_READ | FI_WRITE,
                  0, kNoKey + 1 + posted->number, 0, &posted->region, nullptr));
  }
}

void Executor::Keep(std::unique_ptr<Posted> posted) {
  const void* const context = &posted->context;
  if (posted->receives) {
    receives_[posted->endpoint].push_back(context);
  }
  posted_.emplace(context, std::move(posted));
}

int64_t Executor::PostReceive(uint32_t number, const Operation& operation) {
  auto posted = MakePosted(number, operation);
  posted->receives = true;
  posted->reported = true;
  posted->buffer.assign(operation.bytes, kUntouched);
  Register(operation, posted.get());
  void* const descriptor =
      posted->region == nullptr ? nullptr : fi_mr_desc(posted->region);
  auto parts =
      Split(posted->buffer.data(), operation.bytes, operation.segments);
  std::vector<void*> descriptors(parts.size(), descriptor);
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const int64_t result = Retry([&]() -> int64_t {
    return operation.segments == 1
               ? fi_recv(endpoint, posted->buffer.data(), operation.bytes,
                         descriptor, FI_ADDR_UNSPEC, &posted->context)
               : fi_recvv(endpoint, parts.data(), descriptors.data(),
                          parts.size(), FI_ADDR_UNSPEC, &posted->context);
  });
  if (result == 0) {
    Keep(std::move(posted));
  } else if (posted->region != nullptr) {
    (void)fi_close(&posted->region->fid);
  }
  return result;
}

int64_t Executor::PostSend(uint32_t number, const Operation& operation) {
  auto posted = MakePosted(number, operation);
  const uint64_t seed = stream_.setup.seed;
  posted->buffer = Content(seed, number, operation.bytes);
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const fi_addr_t peer = fabric_->AddressOfPlace(operation.peer);
  const uint64_t data = ContentData(seed, number);
  uint8_t* const bytes = posted->buffer.data();
  if (IsInject(operation.verb)) {
    const int64_t result = Retry([&]() -> int64_t {
      return operation.verb == Verb::kInject
                 ? fi_inject(endpoint, bytes, operation.bytes, peer)
                 : fi_injectdata(endpoint, bytes, operation.bytes, data, peer);
    });
    // The buffer is the caller's again: what is in it now must not arrive.
    std::fill(posted->buffer.begin(), posted->buffer.end(), kUntouched);
    return result;
  }
  Register(operation, posted.get());
  auto parts = Split(bytes, operation.bytes, operation.segments);
  std::vector<void*> descriptors(
      parts.size(),
      posted->region == nullptr ? nullptr : fi_mr_desc(posted->region));
  const fi_msg message = {.msg_iov = parts.data(),
                          .desc = descriptors.data(),
                          .iov_count = parts.size(),
                          .addr = peer,
                          .context = &posted->context,
                          .data = data};
  const bool has_data = HasData(operation.verb);
  const uint64_t flags = (has_data ? FI_REMOTE_CQ_DATA : 0) |
                         (posted->reported ? FI_COMPLETION : 0);
  const bool plain = operation.segments == 1 && !stream_.setup.selective;
  const int64_t result = Retry([&]() -> int64_t {
    if (!plain) {
      return fi_sendmsg(endpoint, &message, flags);
    }
    return has_data ? fi_senddata(endpoint, bytes, operation.bytes,
                                  descriptors[0], data, peer, &posted->context)
                    : fi_send(endpoint, bytes, operation.bytes, descriptors[0],
                              peer, &posted->context);
  });
  if (result == 0) {
    Keep(std::move(posted));
  } else if (posted->region != nullptr) {
    (void)fi_close(&posted->region->fid);
  }
  return result;
}

uint64_t Executor::KeyFor(uint32_t number, const Operation& operation) const {
  const uint32_t owner = operation.peer.side;
  if (operation.fault == Fault::kBadKey) {
    return kNoKey;
  }
  if (operation.fault == Fault::kWithoutRight) {
    return GuardKey(owner,
                    operation.verb == Verb::kRead ? kWriteOnly : kReadOnly);
  }
  return KeyAt(stream_, number, owner, operation.region);
}

int64_t Executor::PostRma(uint32_t number, const Operation& operation) {
  auto posted = MakePosted(number, operation);
  const uint64_t seed = stream_.setup.seed;
  posted->reads = operation.verb == Verb::kRead;
  posted->buffer = posted->reads
                       ? std::vector<uint8_t>(operation.bytes, kUntouched)
                       : Content(seed, number, operation.bytes);
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const fi_addr_t peer = fabric_->AddressOfPlace(operation.peer);
  const uint64_t key = KeyFor(number, operation);
  uint8_t* const bytes = posted->buffer.data();
  if (operation.verb == Verb::kInjectWrite) {
    unflushed_.at(operation.at.endpoint).at(operation.peer.index()) = true;
    return Retry([&]() -> int64_t {
      return fi_inject_write(endpoint, bytes, operation.bytes, peer,
                             operation.offset, key);
    });
  }
  Register(operation, posted.get());
  auto parts = Split(bytes, operation.bytes, operation.segments);
  std::vector<void*> descriptors(
      parts.size(),
      posted->region == nullptr ? nullptr : fi_mr_desc(posted->region));
  const auto target =
      SplitTarget(operation, key,
                  std::min<size_t>(operation.pieces, fabric_->piece_limit()));
  const fi_msg_rma message = {.msg_iov = parts.data(),
                              .desc = descriptors.data(),
                              .iov_count = parts.size(),
                              .addr = peer,
                              .rma_iov = target.data(),
                              .rma_iov_count = target.size(),
                              .context = &posted->context,
                              .data = ContentData(seed, number)};
  const uint64_t flags =
      (HasData(operation.verb) ? FI_REMOTE_CQ_DATA : 0) |
      (posted->reported ? FI_COMPLETION : 0) |
      // The checker takes a completion as a promise about later reads.
      (posted->reads ? 0 : FI_DELIVERY_COMPLETE);
  const int64_t result = Retry([&]() -> int64_t {
    return posted->reads ? fi_readmsg(endpoint, &message, flags)
                         : fi_writemsg(endpoint, &message, flags);
  });
  if (result == 0) {
    Keep(std::move(posted));
  } else if (posted->region != nullptr) {
    (void)fi_close(&posted->region->fid);
  }
  return result;
}

int64_t Executor::CallInvalid(const Operation& operation) {
  fid_ep* const endpoint = fabric_->endpoint(operation.at.endpoint);
  const fi_addr_t peer = fabric_->AddressOfPlace(operation.peer);
  std::vector<uint8_t> bytes(fabric_->inject_size() + 1);
  std::vector<iovec> parts(5, {.iov_base = bytes.data(), .iov_len = 1});
  switch (operation.fault) {
    case Fault::kUnknownPeer:
      return fi_inject(endpoint, bytes.data(), 1, 99'999);
    case Fault::kLongInject:
      return fi_inject(endpoint, bytes.data(), bytes.size(), peer);
    case Fault::kManySegments:
      return fi_sendv(endpoint, parts.data(), nullptr, parts.size(), peer,
                      nullptr);
    case Fault::kUnknownFlag: {
      fi_msg message = {};
      message.msg_iov = parts.data();
      message.iov_count = 1;
      message.addr = peer;
      return fi_sendmsg(endpoint, &message, kUnknownFlagBit);
    }
    case Fault::kStrayCancel:
      return fi_cancel(&endpoint->fid, &parts);
    default:
      return 0;
  }
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
    fi_cq_data_entry entry = {};
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
  const auto found = posted_.find(context);
  return found == posted_.end() ? nullptr : found->second.get();
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
  posted->digest = Digest(buffer);
  event->digest =
      Digest(buffer.first(std::min<size_t>(event->bytes, buffer.size())));
  const bool scattered =
      event->result == FI_EREMOTEIO && !stream_.setup.ordered;
  const uint64_t reach = event->bytes + (scattered ? event->beyond : 0);
  event->clean =
      IsUntouched(buffer.subspan(std::min<size_t>(reach, buffer.size())));
}

void Executor::OnCompletion(const fi_cq_data_entry& entry, fi_addr_t source) {
  Event event = {.kind = EventKind::kCompleted, .number = kNobody};
  event.bytes = entry.len;
  event.has_data = (entry.flags & FI_REMOTE_CQ_DATA) != 0;
  event.data = event.has_data ? entry.data : 0;
  event.source = fabric_->PlaceAt(source);
  Posted* const posted = Find(entry.op_context);
  if (posted != nullptr && posted->flushes) {
    posted->complete = true;
    return;
  }
  if (posted == nullptr && (entry.flags & FI_REMOTE_WRITE) != 0) {
    event.kind = EventKind::kNotified;
  } else if (posted != nullptr) {
    if (!posted->receives) {
      event.bytes = 0;
      event.source = -1;
    }
    Examine(posted, &event);
    if (posted->receives && posted->number >= kSpareBase) {
      --spares_.at(posted->endpoint);
    }
  }
  surroundings_.tell(event);
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
    posted->failed = true;
    Examine(posted, &event);
    if (posted->receives && posted->number >= kSpareBase) {
      --spares_.at(posted->endpoint);
    }
  }
  surroundings_.tell(event);
}

void Executor::Wait() {
  const auto deadline = steady_clock::now() + kWaitFor;
  const auto outstanding = [this] {
    return std::any_of(posted_.begin(), posted_.end(), [](const auto& row) {
      const Posted& posted = *row.second;
      return posted.reported && !posted.receives && !posted.complete &&
             !posted.over;
    });
  };
  while (outstanding() && steady_clock::now() < deadline) {
    (void)Poll();
  }
}

void Executor::Unplug() {
  surroundings_.set_link(false);
  const auto until = steady_clock::now() + kUnpluggedFor;
  while (steady_clock::now() < until) {
    (void)Poll();
  }
  surroundings_.set_link(true);
}

// Receives for whatever is still on its way, so that both sides can come to
// rest whatever the stream posted.
void Executor::PostSpares() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    fid_ep* const endpoint = fabric_->endpoint(index);
    while (endpoint != nullptr && spares_.at(index) < kSpares) {
      auto posted = std::make_unique<Posted>();
      posted->number = next_spare_++;
      posted->endpoint = index;
      posted->receives = true;
      posted->reported = true;
      posted->buffer.assign(kMaxMessageBytes, kUntouched);
      const int64_t result =
          fi_recv(endpoint, posted->buffer.data(), posted->buffer.size(),
                  nullptr, FI_ADDR_UNSPEC, &posted->context);
      if (result == -FI_EAGAIN) {
        break;  // There are enough.
      }
      surroundings_.tell({.kind = EventKind::kSpare,
                          .number = posted->number,
                          .endpoint = index,
                          .result = result,
                          .bytes = posted->buffer.size()});
      Require("fi_recv", result);
      ++spares_.at(index);
      Keep(std::move(posted));
    }
  }
}

bool Executor::Counted() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    const uint64_t expected = counted_.at(index);
    const uint64_t ended = fabric_->EndedTransfers(index).value_or(expected);
    if (ended > expected) {
      surroundings_.tell({.kind = EventKind::kMiscounted,
                          .endpoint = index,
                          .result = static_cast<int64_t>(ended),
                          .bytes = expected});
      counted_.at(index) = ended;
    }
    if (ended < expected) {
      return false;
    }
  }
  return true;
}

// An injected write may end before it is visible. But the end of a write with
// FI_DELIVERY_COMPLETE says that all that its target accepted before is visible
// as well (heddle_place; the model stores at once). This one changes nothing.
int64_t Executor::PostFlush(uint32_t index, const Place& peer) {
  auto posted = std::make_unique<Posted>();
  posted->number = kNobody;
  posted->endpoint = index;
  posted->flushes = true;
  posted->buffer.assign(1, kUntouched);
  const iovec source = {.iov_base = posted->buffer.data(), .iov_len = 1};
  const fi_rma_iov target = {
      .addr = 0, .len = 1, .key = GuardKey(peer.side, kWriteOnly)};
  fi_msg_rma message = {};
  message.msg_iov = &source;
  message.iov_count = 1;
  message.addr = fabric_->AddressOfPlace(peer);
  message.rma_iov = &target;
  message.rma_iov_count = 1;
  message.context = &posted->context;
  const int64_t result = fi_writemsg(fabric_->endpoint(index), &message,
                                     FI_DELIVERY_COMPLETE | FI_COMPLETION);
  if (result == 0) {
    ++counted_.at(index);
    Keep(std::move(posted));
  }
  return result;
}

bool Executor::Flushed() {
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    for (uint32_t at = 0; at < kPlaces; ++at) {
      bool& unflushed = unflushed_.at(index).at(at);
      if (!unflushed || fabric_->endpoint(index) == nullptr) {
        continue;
      }
      const int64_t result = PostFlush(
          index, {.side = at / kEndpoints, .endpoint = at % kEndpoints});
      if (result == -FI_EAGAIN) {
        return false;
      }
      Require("fi_writemsg", result);
      unflushed = false;
    }
  }
  return std::none_of(posted_.begin(), posted_.end(), [](const auto& row) {
    const Posted& posted = *row.second;
    return posted.flushes && !posted.complete && !posted.over;
  });
}

void Executor::Settle() {
  bool said = false;
  while (!said || !surroundings_.may_go_on()) {
    PostSpares();
    if (!said && Counted() && Flushed()) {
      surroundings_.say_settling();
      said = true;
    }
    if (!Poll()) {
      std::this_thread::yield();
    }
  }
  (void)Poll();  // What came between the last look and the word to go on.
  TellReads();
  TellMemory();
  Forget();
  surroundings_.tell({.kind = EventKind::kSettled});
  MeetOther();  // What it does next must not be seen as done before.
}

void Executor::MeetOther() {
  surroundings_.say_settling();
  while (!surroundings_.may_go_on()) {
    (void)Poll();
  }
}

void Executor::TellReads() {
  for (const auto& [context, posted] : posted_) {
    if (posted->reads && posted->complete && !posted->failed) {
      surroundings_.tell({.kind = EventKind::kResult,
                          .number = posted->number,
                          .content = posted->buffer});
    }
  }
}

// What others wrote into the regions.
void Executor::TellMemory() {
  for (uint32_t index = 0; index < kAreas; ++index) {
    const std::vector<uint8_t>& now = fabric_->area(index);
    std::vector<uint8_t>& told = told_memory_.at(index);
    const auto first = std::mismatch(now.begin(), now.end(), told.begin());
    if (first.first == now.end()) {
      continue;
    }
    const auto last = std::mismatch(now.rbegin(), now.rend(), told.rbegin());
    surroundings_.tell(
        {.kind = EventKind::kMemory,
         .region = index,
         .offset = static_cast<uint64_t>(first.first - now.begin()),
         .content = std::vector<uint8_t>(first.first, last.first.base())});
    told = now;
  }
}

// Frees what is complete or was closed; what the device may still use stays.
void Executor::Forget() {
  for (auto row = posted_.begin(); row != posted_.end();) {
    Posted& posted = *row->second;
    if (posted.complete && posted.receives &&
        Digest(posted.buffer) != posted.digest) {
      surroundings_.tell(
          {.kind = EventKind::kChanged, .number = posted.number});
    }
    if (!posted.complete && !posted.over) {
      ++row;
      continue;
    }
    if (posted.region != nullptr) {
      (void)fi_close(&posted.region->fid);
    }
    auto& receives = receives_.at(posted.endpoint);
    receives.erase(std::remove(receives.begin(), receives.end(), row->first),
                   receives.end());
    row = posted_.erase(row);
  }
}

}  // namespace heddle::differential
