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
    Tell(operation.at.side, called);
    if (operation.verb == Verb::kReceive) {
      buffers_.at(at).push_back({number, operation.bytes});
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
    if (buffers.empty()) {
      return;
    }
    const uint32_t number = messages.front();
    const Operation& operation = stream_.operations.at(number);
    const uint64_t placed =
        std::min<uint64_t>(operation.bytes, buffers.front().bytes);
    const uint64_t seed = stream_.setup.seed;
    Event event = {.kind = EventKind::kCompleted,
                   .number = buffers.front().number,
                   .bytes = placed,
                   .beyond = operation.bytes - placed,
                   .has_data = HasData(operation.verb),
                   .source = static_cast<int32_t>(from),
                   .digest = Digest(Content(seed, number, placed))};
    event.data = event.has_data ? ContentData(seed, number) : 0;
    if (event.beyond != 0) {
      event.kind = EventKind::kFailed;
      event.result = FI_ETRUNC;
      event.source = -1;
    }
    Tell(to / kEndpoints, event);
    messages.pop_front();
    buffers.pop_front();
    Succeed(number);
  }

  bool AnyUnderWay(uint32_t to) const {
    return std::any_of(under_way_.begin(), under_way_.end(),
                       [to](const auto& from) { return !from.at(to).empty(); });
  }

  void Settle() {
    for (uint32_t to = 0; to < stream_.setup.places(); ++to) {
      while (AnyUnderWay(to)) {
        if (open_.at(to)) {
          const Buffer spare = {next_spare_++, kMaxMessageBytes};
          Tell(to / kEndpoints, {.kind = EventKind::kSpare,
                                 .number = spare.number,
                                 .endpoint = to % kEndpoints,
                                 .bytes = spare.bytes});
          buffers_.at(to).push_back(spare);
        }
        Deliver();
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
  std::array<bool, kMaxPlaces> open_ = {};
  std::array<bool, kMaxSides* kAreas> registered_ = {};
  std::vector<std::vector<uint8_t>> memory_;
  std::vector<std::vector<uint8_t>> told_;
  std::vector<Event> results_;
  uint32_t next_spare_ = kSpareBase;
};

}  // namespace

Trace RunIdeally(const Stream& stream, uint64_t seed) {
  return Ideal(stream, seed).Run();
}

}  // namespace heddle::differential
