// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/balance.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "tests/differential/content.h"

namespace heddle::differential {

void Balance::Feed(uint32_t side, const Event& event) {
  switch (event.kind) {
    case EventKind::kCalled:
      OnCalled(side, event);
      break;
    case EventKind::kSpare:
    case EventKind::kClaimed:
      spares_.at(side).emplace_back(event.number, event.endpoint);
      break;
    case EventKind::kFound:
      OnFound(side, event);
      break;
    case EventKind::kCompleted:
    case EventKind::kFailed:
      OnCompletion(side, event);
      break;
    case EventKind::kNotified:
      notified_.at(side).insert(event.data);
      break;
    default:
      break;
  }
}

void Balance::OnCalled(uint32_t side, const Event& event) {
  const Operation& operation = stream_.operations.at(event.number);
  if (event.result != 0) {
    return;
  }
  if (operation.verb == Verb::kClose) {
    Exclude(operation.at);
    std::erase_if(unreported_.at(side), [&](uint32_t number) {
      return stream_.operations.at(number).at == operation.at;
    });
  }
  if (IsRenewal(operation.verb)) {
    for (uint32_t index = 0; index < kEndpoints; ++index) {
      Exclude({.side = side, .endpoint = index});
    }
    unreported_.at(side).clear();
  }
  if (IsSend(operation.verb)) {
    ++PairOf(operation.at, operation.peer.index()).sent;
  }
  if (operation.verb == Verb::kWriteData) {
    written_.at(operation.peer.side)
        .insert(ContentData(stream_.setup.seed, event.number));
  }
  if ((IsSend(operation.verb) || IsRma(operation.verb)) &&
      IsReported(stream_.setup, operation)) {
    unreported_.at(side).insert(event.number);
  }
}

// A dropped message counts as received.
void Balance::OnFound(uint32_t side, const Event& event) {
  const Operation& operation = stream_.operations.at(event.number);
  const bool dropped = operation.verb == Verb::kDiscard ||
                       (operation.verb == Verb::kClaim && operation.dropped);
  if (dropped && event.source >= 0) {
    const Place at = {.side = side, .endpoint = operation.at.endpoint};
    ++pairs_.at(static_cast<uint32_t>(event.source)).at(at.index()).received;
  }
}

void Balance::OnCompletion(uint32_t side, const Event& event) {
  unreported_.at(side).erase(event.number);
  const bool failed = event.kind == EventKind::kFailed;
  const auto& spares = spares_.at(side);
  uint32_t endpoint = kEndpoints;
  if (event.number < stream_.operations.size()) {
    const Operation& operation = stream_.operations[event.number];
    if (IsSend(operation.verb) && failed) {
      --PairOf(operation.at, operation.peer.index()).sent;
    }
    if (operation.verb == Verb::kWriteData && failed) {
      written_.at(operation.peer.side)
          .erase(ContentData(stream_.setup.seed, event.number));
    }
    endpoint =
        operation.verb == Verb::kReceive ? operation.at.endpoint : kEndpoints;
  } else {
    const auto spare = std::find_if(
        spares.begin(), spares.end(),
        [&](const auto& row) { return row.first == event.number; });
    endpoint = spare == spares.end() ? kEndpoints : spare->second;
  }
  if (endpoint == kEndpoints || (failed && event.result != FI_ETRUNC)) {
    return;
  }
  const uint32_t at = Place{.side = side, .endpoint = endpoint}.index();
  if (event.source >= 0) {
    ++pairs_.at(static_cast<uint32_t>(event.source)).at(at).received;
  } else {
    ++unnamed_.at(at);  // An error tells no sender.
  }
}

void Balance::Exclude(const Place& place) {
  vague_ = true;
  for (uint32_t other = 0; other < stream_.setup.places(); ++other) {
    pairs_.at(place.index()).at(other).excluded = true;
    pairs_.at(other).at(place.index()).excluded = true;
  }
}

bool Balance::settled() const {
  const bool reported =
      std::all_of(unreported_.begin(), unreported_.end(),
                  [](const auto& numbers) { return numbers.empty(); });
  for (uint32_t at = 0; at < stream_.setup.places() && reported; ++at) {
    int64_t owed = -unnamed_.at(at);
    for (const auto& from : pairs_) {
      const Pair& pair = from.at(at);
      owed += pair.excluded ? 0 : pair.sent - pair.received;
    }
    if (owed > 0) {
      return false;
    }
  }
  // An acknowledged write is seen by its target later.
  for (uint32_t side = 0; side < stream_.setup.sides && reported && !vague_;
       ++side) {
    const auto& there = notified_.at(side);
    const auto& owed = written_.at(side);
    if (!std::includes(there.begin(), there.end(), owed.begin(), owed.end())) {
      return false;
    }
  }
  return reported;
}

}  // namespace heddle::differential
