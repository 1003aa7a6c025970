// SPDX-License-Identifier: Apache-2.0
// Loss, duplication and reordering of the frames a port sends.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "hw/sim/random.h"

namespace heddle::sim {

using Frame = std::vector<uint8_t>;  // Ethernet frame without FCS.

struct FaultOptions {
  uint64_t seed = 1;
  double loss = 0;  // Probabilities per frame sent, 0 to 1.
  double duplicate = 0;
  double reorder = 0;
};

// What happens to one frame.
struct FaultDecision {
  bool lost = false;
  bool duplicated = false;
  // Later frames of the port that overtake this one, 0 for none.
  uint32_t overtaken_by = 0;
};

// Decides from seed and frame number alone, so that a run can be repeated.
// Thread safety: none.
class FaultInjector {
 public:
  explicit FaultInjector(const FaultOptions& options);

  FaultDecision Next();

  bool active() const { return active_; }
  uint64_t lost() const { return lost_; }
  uint64_t duplicated() const { return duplicated_; }
  uint64_t reordered() const { return reordered_; }

  static constexpr uint32_t kMaxOvertaking = 4;

 private:
  const FaultOptions options_;
  const bool active_;
  Random random_;
  uint64_t lost_ = 0;
  uint64_t duplicated_ = 0;
  uint64_t reordered_ = 0;
};

// Applies the decisions to a stream of frames: what to put on the wire, in
// which order. Thread safety: none.
class FaultyLine {
 public:
  explicit FaultyLine(const FaultOptions& options) : injector_(options) {}

  // Takes the next frame sent; appends to `out` the frames that leave now.
  void Push(Frame frame, std::vector<Frame>* out);

  // Releases the frames held back for reordering, for a line that fell silent.
  void Flush(std::vector<Frame>* out);

  bool holding() const { return !held_.empty(); }
  const FaultInjector& injector() const { return injector_; }

 private:
  struct Held {
    Frame frame;
    uint32_t remaining;  // Frames that still pass it.
  };

  FaultInjector injector_;
  std::deque<Held> held_;
};

}  // namespace heddle::sim
