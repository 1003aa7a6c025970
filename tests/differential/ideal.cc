// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/ideal.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <deque>
#include <random>

#include "tests/differential/content.h"

namespace heddle::differential {
namespace {

struct Buffer {
  uint32_t number = 0;
  uint64_t bytes = 0;
  Operation rule;     // Matches the messages that it may take.
  uint64_t used = 0;  // By messages, in a buffer of many.
};

// A claim whose message is not taken yet.
struct Claim {
  uint32_t number = 0;  // The operation.
  uint32_t message = 0;
  uint32_t wait = 0;  // For so many operations of its side.
};

class Ideal {
 public:
  Ideal(const Stream& stream, uint64_t seed)
      : stream_(stream),
        random_(seed),
        memory_(size_t{stream.setup.sides} * kAreas) {
    for (auto& region : memory_) {
      region.assign(kRegionBytes, kUntouched);
    }
    told_ = memory_;
    registered_.fill(true);
    open_.fill(true);
  }

  Trace Run() {
    for (uint32_t number = 0; number < stream_.operations.size(); ++number) {
      const Operation& operation = stream_.operations[number];
      if (operation.verb == Verb::kSync) {
        Settle();
        continue;
      }
      Execute(number, operation);
      if (random_() % 2 == 0) {
        Deliver();
      }
    }
    return std::move(trace_);
  }

 private:
  void Tell(uint32_t side, const Event& event) {
    trace_.sides.at(side).push_back(event);
    trace_.sides.at(side).back().time_ns = ++now_ns_;
  }

  void Execute(uint32_t number, const Operation& operation) {
    const uint32_t at = operation.at.index();
    TakeClaimed(operation.at.side, /*all=*/false);
    const bool of_endpoint = operation.verb != Verb::kRegister &&
                             operation.verb != Verb::kDeregister &&
                             operation.verb != Verb::kOpen &&
                             !IsRenewal(operation.verb);
    if (operation.verb == Verb::kWait || operation.verb == Verb::kUnplug ||
        (of_endpoint && !open_.at(at)) ||
        (operation.verb == Verb::kOpen && open_.at(at))) {
      return;
    }
    Event called = {.kind = EventKind::kCalled, .number = number};
    if (operation.verb == Verb::kInvalid) {
      called.result = operation.fault == Fault::kStrayCancel   ? -FI_ENOENT
                      : operation.fault == Fault::kUnknownFlag ? -FI_EOPNOTSUPP
                                                               : -FI_EINVAL;
    } else if (operation.verb == Verb::kCancel) {
      Cancel(number, operation);
      return;
    }
    if (IsRenewal(operation.verb)) {
      Renew(operation);
    }
    if (IsPeek(operation.verb)) {
      Peek(number, operation);
    }
    Tell(operation.at.side, called);
    if (operation.verb == Verb::kReceive) {
      Receive({number, operation.bytes, operation});
    } else if (IsSend(operation.verb)) {
      under_way_.at(at).at(operation.peer.index()).push_back(number);
    } else if (IsRma(operation.verb)) {
      Access(number, operation);
    } else if (operation.verb == Verb::kClose) {
      Close(at);
    } else if (operation.verb == Verb::kOpen) {
      open_.at(at) = true;
    } else if (operation.verb == Verb::kRegister ||
               operation.verb == Verb::kDeregister) {
      registered_.at(operation.at.side * kAreas + operation.region) =
          operation.verb == Verb::kRegister;
    }
  }

  // The first that has arrived and matches, or the end.
  auto FindArrived(const Operation& rule) {
    auto& arrived = arrived_.at(rule.at.index());
    return std::find_if(arrived.begin(), arrived.end(), [&](uint32_t message) {
      return Matches(rule, stream_.operations.at(message));
    });
  }

  void Receive(Buffer buffer) {
    auto& arrived = arrived_.at(buffer.rule.at.index());
    for (bool held = true; held;) {
      const auto found = FindArrived(buffer.rule);
      if (found == arrived.end()) {
        buffers_.at(buffer.rule.at.index()).push_back(buffer);
        return;
      }
      const uint32_t message = *found;
      arrived.erase(found);
      held = Give(message, &buffer);
    }
  }

  void Peek(uint32_t number, const Operation& operation) {
    auto& arrived = arrived_.at(operation.at.index());
    const auto found = FindArrived(operation);
    if (found == arrived.end()) {
      Tell(operation.at.side,
           {.kind = EventKind::kFailed, .number = number, .result = FI_ENOMSG});
      return;
    }
    const Operation& sent = stream_.operations.at(*found);
    const bool has_data = HasData(sent.verb);
    Tell(operation.at.side,
         {.kind = EventKind::kFound,
          .number = number,
          .beyond = sent.bytes,
          .data = has_data ? ContentData(stream_.setup.seed, *found) : 0,
          .has_data = has_data,
          .source = static_cast<int32_t>(sent.at.index()),
          .tag = sent.tag});
    if (operation.verb == Verb::kClaim) {
      claims_.at(operation.at.index())
          .push_back({number, *found, operation.back});
    }
    if (operation.verb != Verb::kPeek) {
      arrived.erase(found);
    }
  }

  void TakeClaimed(uint32_t side, bool all) {
    for (uint32_t index = 0; index < kEndpoints; ++index) {
      auto& claims = claims_.at(Place{.side = side, .endpoint = index}.index());
      for (Claim& claim : claims) {
        const Operation& operation = stream_.operations.at(claim.number);
        if (!all && claim.wait != 0) {
          --claim.wait;
          continue;
        }
        claim.wait = UINT32_MAX;
        if (operation.dropped) {
          continue;
        }
        Buffer buffer = {kClaimBase + claim.number, operation.bytes, operation};
        Tell(side, {.kind = EventKind::kClaimed,
                    .number = buffer.number,
                    .endpoint = index,
                    .bytes = buffer.bytes});
        (void)Give(claim.message, &buffer);
      }
      std::erase_if(
          claims, [](const Claim& claim) { return claim.wait == UINT32_MAX; });
    }
  }

  void Cancel(uint32_t number, const Operation& operation) {
    auto& buffers = buffers_.at(operation.at.index());
    if (operation.back >= buffers.size()) {
      return;
    }
    const auto victim = buffers.end() - 1 - operation.back;
    const uint32_t side = operation.at.side;
    Tell(side, {.kind = EventKind::kCalled,
                .number = number,
                .bytes = victim->number});
    Tell(side, {.kind = EventKind::kFailed,
                .number = victim->number,
                .result = FI_ECANCELED,
                .digest = Digest({})});
    buffers.erase(victim);
  }

  void Close(uint32_t at) {
    open_.at(at) = false;
    buffers_.at(at).clear();
    arrived_.at(at).clear();
    claims_.at(at).clear();
    for (auto& to : under_way_.at(at)) {
      to.clear();
    }
  }

  // A reset is reported to all that it ended.
  void Renew(const Operation& operation) {
    const uint32_t side = operation.at.side;
    for (uint32_t index = 0; index < kEndpoints; ++index) {
      const uint32_t at = Place{.side = side, .endpoint = index}.index();
      if (operation.verb == Verb::kReset) {
        EndAll(at);
      }
      Close(at);
      open_.at(at) = true;
    }
    for (uint32_t area = side * kAreas; area < (side + 1) * kAreas; ++area) {
      memory_.at(area).assign(kRegionBytes, kUntouched);
      told_.at(area) = memory_.at(area);
      registered_.at(area) = true;
    }
  }

  // What had come of a message may be in its buffer.
  void EndAll(uint32_t at) {
    for (const Buffer& buffer : buffers_.at(at)) {
      Tell(at / kEndpoints, {.kind = EventKind::kFailed,
                             .number = buffer.number,
                             .result = FI_EIO,
                             .digest = Digest({}),
                             .clean = random_() % 2 == 0});
    }
    for (const auto& messages : under_way_.at(at)) {
      for (const uint32_t number : messages) {
        Fail(number, FI_EIO);
      }
    }
  }

  void Fail(uint32_t number, int64_t error) {
    const Operation& operation = stream_.operations.at(number);
    if (!open_.at(operation.at.index())) {
      return;
    }
    if (IsInject(operation.verb)) {
      Tell(operation.at.side, {.kind = EventKind::kFailed,
                               .number = kNobody,
                               .endpoint = operation.at.endpoint + 1,
                               .result = error});
    } else {
      Tell(operation.at.side,
           {.kind = EventKind::kFailed, .number = number, .result = error});
    }
  }

  void Succeed(uint32_t number) {
    const Operation& operation = stream_.operations.at(number);
    if (IsReported(stream_.setup, operation) &&
        open_.at(operation.at.index())) {
      Tell(operation.at.side,
           {.kind = EventKind::kCompleted, .number = number});
    }
  }

  void Access(uint32_t number, const Operation& operation) {
    const uint32_t region = operation.peer.side * kAreas + operation.region;
    if (operation.fault != Fault::kNone || !registered_.at(region) ||
        !open_.at(operation.peer.index())) {
      const bool has_key =
          operation.fault == Fault::kWithoutRight ||
          (operation.fault == Fault::kBeyondRegion && registered_.at(region));
      Fail(number, has_key ? FI_EACCES : FI_EKEYREJECTED);
      return;
    }
    auto& memory = memory_.at(region);
    const auto first = memory.begin() + operation.offset;
    if (operation.verb == Verb::kRead) {
      results_.push_back({.kind = EventKind::kResult,
                          .number = number,
                          .content = {first, first + operation.bytes}});
    } else {
      const auto content = Content(stream_.setup.seed, number, operation.bytes);
      std::copy(content.begin(), content.end(), first);
    }
    if (HasData(operation.verb)) {
      Tell(operation.peer.side,
           {.kind = EventKind::kNotified,
            .data = ContentData(stream_.setup.seed, number),
            .has_data = true});
    }
    Succeed(number);
  }

  // Moves what can be moved, senders in random order.
  void Deliver() {
    for (uint32_t to = 0; to < stream_.setup.places(); ++to) {
      std::vector<uint32_t> senders;
      for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
        senders.insert(senders.end(), under_way_.at(from).at(to).size(), from);
      }
      std::shuffle(senders.begin(), senders.end(), random_);
      for (const uint32_t from : senders) {
        DeliverOne(from, to);
      }
    }
  }

  void DeliverOne(uint32_t from, uint32_t to) {
    auto& messages = under_way_.at(from).at(to);
    auto& buffers = buffers_.at(to);
    if (!open_.at(to)) {
      Fail(messages.front(), FI_EHOSTUNREACH);
      messages.pop_front();
      return;
    }
    // Tagged ones do not wait for a receive, nor for untagged ones that do.
    for (auto message = messages.begin(); message != messages.end();
         ++message) {
      const uint32_t number = *message;
      const Operation& operation = stream_.operations.at(number);
      const auto buffer = std::find_if(
          buffers.begin(), buffers.end(),
          [&](const Buffer& b) { return Matches(b.rule, operation); });
      if (buffer == buffers.end() && !operation.tagged) {
        continue;
      }
      messages.erase(message);
      if (buffer == buffers.end()) {
        arrived_.at(to).push_back(number);
      } else if (!Give(number, &*buffer)) {
        buffers.erase(buffer);
      }
      Succeed(number);
      return;
    }
  }

  // Whether the buffer takes further messages.
  bool Give(uint32_t number, Buffer* buffer) {
    const Operation& operation = stream_.operations.at(number);
    const uint32_t from = operation.at.index();
    const uint32_t to = operation.peer.index();
    const uint64_t placed =
        std::min<uint64_t>(operation.bytes, buffer->bytes - buffer->used);
    const uint64_t seed = stream_.setup.seed;
    Event event = {.kind = EventKind::kCompleted,
                   .number = buffer->number,
                   .bytes = placed,
                   .beyond = operation.bytes - placed,
                   .offset = buffer->used,
                   .has_data = HasData(operation.verb),
                   .source = static_cast<int32_t>(from),
                   .tag = operation.tag,
                   .digest = Digest(Content(seed, number, placed))};
    event.data = event.has_data ? ContentData(seed, number) : 0;
    if (event.beyond != 0) {
      event.kind = EventKind::kFailed;
      event.result = FI_ETRUNC;
      event.source = -1;
    }
    buffer->used += placed;
    event.held = buffer->rule.many && HasRoom(buffer->bytes - buffer->used);
    Tell(to / kEndpoints, event);
    return event.held;
  }

  bool AnyUnderWay(uint32_t to) const {
    return std::any_of(under_way_.begin(), under_way_.end(),
                       [to](const auto& from) { return !from.at(to).empty(); });
  }

  void PostSpare(uint32_t to, bool tagged) {
    uint32_t& next = tagged ? next_tagged_spare_ : next_spare_;
    const Operation rule = {
        .at = {.side = to / kEndpoints, .endpoint = to % kEndpoints},
        .tagged = tagged,
        .ignore = tagged ? UINT32_MAX : 0U};
    const Buffer spare = {next++, kMaxMessageBytes, rule};
    Tell(to / kEndpoints, {.kind = EventKind::kSpare,
                           .number = spare.number,
                           .endpoint = to % kEndpoints,
                           .bytes = spare.bytes});
    Receive(spare);
  }

  void Settle() {
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      TakeClaimed(side, /*all=*/true);
    }
    for (uint32_t to = 0; to < stream_.setup.places(); ++to) {
      while (AnyUnderWay(to)) {
        if (open_.at(to)) {
          PostSpare(to, /*tagged=*/false);
        }
        Deliver();
      }
      while (!arrived_.at(to).empty()) {
        PostSpare(to, /*tagged=*/true);
      }
    }
    for (const Event& result : results_) {
      Tell(stream_.operations.at(result.number).at.side, result);
    }
    results_.clear();
    for (uint32_t index = 0; index < memory_.size(); ++index) {
      if (memory_[index] != told_[index]) {
        Tell(index / kAreas, {.kind = EventKind::kMemory,
                              .region = index % kAreas,
                              .content = memory_[index]});
      }
    }
    told_ = memory_;
    for (uint32_t side = 0; side < stream_.setup.sides; ++side) {
      Tell(side, {.kind = EventKind::kSettled});
    }
  }

  const Stream& stream_;
  std::mt19937_64 random_;
  Trace trace_;
  uint64_t now_ns_ = 0;
  std::array<std::deque<Buffer>, kMaxPlaces> buffers_;
  std::array<std::array<std::deque<uint32_t>, kMaxPlaces>, kMaxPlaces>
      under_way_;
  // Tagged messages without a receive, in the order of arrival, and those that
  // are claimed.
  std::array<std::deque<uint32_t>, kMaxPlaces> arrived_;
  std::array<std::vector<Claim>, kMaxPlaces> claims_;
  std::array<bool, kMaxPlaces> open_ = {};
  std::array<bool, kMaxSides* kAreas> registered_ = {};
  std::vector<std::vector<uint8_t>> memory_;
  std::vector<std::vector<uint8_t>> told_;
  std::vector<Event> results_;
  uint32_t next_spare_ = kSpareBase;
  uint32_t next_tagged_spare_ = kTaggedSpareBase;
};

}  // namespace

Trace RunIdeally(const Stream& stream, uint64_t seed) {
  return Ideal(stream, seed).Run();
}

}  // namespace heddle::differential
