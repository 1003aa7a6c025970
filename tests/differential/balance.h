// SPDX-License-Identifier: Apache-2.0
// Tells while a stream runs whether anything is still owed to anybody.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

// Counts only; whether what came is what should have come is the checker's
// question. Events of the sides may be fed in any interleaving.
class Balance {
 public:
  // `stream` must live as long.
  explicit Balance(const Stream& stream) : stream_(stream) {}

  void Feed(uint32_t side, const Event& event);

  // Every completion that was asked for came, as many messages as were sent,
  // and the data of each write that did not fail. Of endpoints that were closed
  // nothing is expected.
  bool settled() const;

  // Endpoints were closed, so that `settled` cannot know of injected messages
  // which may still arrive.
  bool vague() const { return vague_; }

 private:
  void OnCalled(uint32_t side, const Event& event);
  void OnFound(uint32_t side, const Event& event);
  void OnCompletion(uint32_t side, const Event& event);
  void Exclude(const Place& place);

  struct Pair {
    int64_t sent = 0;
    int64_t received = 0;
    bool excluded = false;
  };
  Pair& PairOf(const Place& from, uint32_t to) {
    return pairs_.at(from.index()).at(to);
  }

  const Stream& stream_;
  std::array<std::set<uint32_t>, kMaxSides> unreported_;
  // Data of writes to each side: on their way or there, and there.
  std::array<std::set<uint64_t>, kMaxSides> written_;
  std::array<std::set<uint64_t>, kMaxSides> notified_;
  std::array<std::vector<std::pair<uint32_t, uint32_t>>, kMaxSides> spares_;
  std::array<std::array<Pair, kMaxPlaces>, kMaxPlaces> pairs_ = {};
  std::array<int64_t, kMaxPlaces> unnamed_ = {};  // Received, sender unknown.
  bool vague_ = false;
};

}  // namespace heddle::differential
