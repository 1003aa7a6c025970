// SPDX-License-Identifier: Apache-2.0
// The share of the checker that knows calls, completions and messages. Why an
// access to a region may fail is MemoryChecker's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/differential/checker.h"
#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

// Fed with the events of one side up to its next sync, then with the others',
// then told to `Settle`; and so on. Thread safety: none.
class MessageChecker {
 public:
  // Both must live as long.
  MessageChecker(const Stream& stream, Verdict* verdict);

  void Feed(uint32_t side, const Event& event);

  // Checks what the sides did since the last time.
  void Settle();

 private:
  // An operation that a call accepted, or a spare receive.
  struct Posted {
    uint32_t number = 0;
    bool complete = false;
    bool cancelled = false;  // A call asked for that.
    bool matched = false;    // A call to cancel it came too late.
    bool over = false;       // Its endpoint was closed.
    bool settled = false;    // Its outcome was checked.
    Event completion = {};
    // One for each message in a buffer of many. The first are settled.
    std::vector<Event> parts = {};
    size_t parts_settled = 0;
    bool whole = false;   // It ended as a whole, without a message.
    uint64_t bytes = 0;   // The receive buffer has so many.
    Operation rule = {};  // Messages that a receive may take match it.
    bool claims = false;  // It receives what a claim has kept.
    // How often its side had begun anew before it was posted.
    size_t life = 0;
  };
  // A message on its way from one place to another.
  struct Message {
    uint32_t number = 0;
    bool owed = true;  // It must arrive.
    bool arrived = false;
    size_t life = 0;  // As of the receive that got it.
  };
  // A receive and the message that it took.
  struct Taken {
    const Posted* receive = nullptr;
    uint32_t message = 0;
  };
  using Numbers = std::map<uint32_t, Posted>;

  void OnCalled(uint32_t side, const Event& event);
  void OnAccepted(uint32_t side, const Event& event);
  void OnClose(const Place& place);
  void OnRenewal(const Operation& operation, uint64_t time_ns);
  void OnCompletion(uint32_t side, const Event& event);
  void AddReceive(uint32_t side, const Event& event, const Operation& rule);
  void OnNotFound(uint32_t side, const Event& event);
  void CheckReceive(const Place& place, const Posted& posted);
  // How the messages lie in a buffer of many, and whether it was released in
  // time. Sorts those that are not settled by place.
  void CheckMany(Posted* receive);
  bool MayFail(const Operation& operation) const;
  bool IsOwed(const Operation& operation, const Posted& posted) const;

  // Whether a life of its target before that of `receive` acknowledged it.
  bool WasAcknowledgedBefore(const Message& message, const Place& place,
                             const Posted& receive) const;

  void SettlePlace(const Place& place);
  // A receive, or one message of a buffer of many, is complete; `waiting`:
  // those that are not, of the ones posted before.
  struct Settling {
    std::vector<uint32_t> waiting;
    std::vector<Taken> taken;
    bool passed_over = false;
  };
  void SettleReceive(const Place& place, const Posted& receive,
                     Settling* settling);
  // Peeks find messages that were sent, and some of them drop theirs.
  void SettleFound(const Place& place);
  // The receives that wait, among those posted before, would have had it.
  bool IsPassedOver(const std::vector<uint32_t>& waiting, const Place& place,
                    const Posted& receive, const Message* message) const;
  // Whether `receive` may have a message whose sender was closed before it left
  // whole: a deferred one, which fails later.
  bool MayFailLater(const Place& place, const Posted& receive) const;
  // If two messages of one sender both match the older of two receives, it
  // takes the one sent first (libfabric 231).
  void CheckOrder(const std::vector<Taken>& taken, const Taken& now);
  // The message that it took, or null.
  Message* Match(const Place& place, const Posted& receive);
  Message* Identify(const Place& place, const Posted& receive);
  bool IsContent(const Message& message, const Posted& receive) const;
  // Whether it holds a message that came before; a violation where that must
  // not be.
  bool CameAgain(const Place& place, const Posted& receive);
  void Blame(const Place& place, const Posted& receive);
  void SettleTransfers();
  bool any_closed() const;
  // At any time of the stream.
  bool any_renewed() const {
    return std::any_of(ends_.begin(), ends_.end(),
                       [](const auto& times) { return !times.empty(); });
  }
  void Violate(const std::string& what);
  std::string Name(uint32_t number) const;

  const Stream& stream_;
  Verdict* const verdict_;
  std::array<Numbers, kMaxSides> posted_;
  // Receives of each place in the order of posting.
  std::array<std::vector<uint32_t>, kMaxPlaces> receives_;
  std::array<std::array<std::vector<Message>, kMaxPlaces>, kMaxPlaces>
      messages_;
  std::array<bool, kMaxPlaces> closed_ = {};      // Now.
  std::array<bool, kMaxPlaces> was_closed_ = {};  // At some time since a sync.
  std::array<bool, kMaxSides> was_reset_ = {};    // Since a sync.
  std::array<uint32_t, kMaxPlaces> inject_errors_ = {};
  // Answers to peeks since a sync.
  struct Found {
    Event event;
    size_t life = 0;  // As `Posted::life`.
  };
  std::array<std::vector<Found>, kMaxPlaces> found_;
  // Since the stream began: injected operations may fail much later.
  bool regions_changed_ = false;
  std::array<bool, kMaxSides> was_renewed_ = {};  // Since a sync.
  // When each life of a side began to end.
  std::array<std::vector<uint64_t>, kMaxSides> ends_;
  const bool in_peace_;
};

}  // namespace heddle::differential
