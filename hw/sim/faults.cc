// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/faults.h"

#include <cstddef>
#include <utility>

namespace heddle::sim {

FaultInjector::FaultInjector(const FaultOptions& options)
    : options_(options),
      active_(options.loss > 0 || options.duplicate > 0 || options.reorder > 0),
      // Not the generator of the memory model, which has the same seed.
      random_(options.seed ^ 0x6661756c74) {}

FaultDecision FaultInjector::Next() {
  FaultDecision decision;
  if (!active_) {
    return decision;
  }
  // All draws are made for each frame: a decision does not shift later ones.
  decision.lost = random_.Chance(options_.loss);
  decision.duplicated = random_.Chance(options_.duplicate) && !decision.lost;
  const bool reordered = random_.Chance(options_.reorder) && !decision.lost;
  const uint32_t overtaking = 1 + random_.Below(kMaxOvertaking);
  decision.overtaken_by = reordered ? overtaking : 0;
  lost_ += decision.lost;
  duplicated_ += decision.duplicated;
  reordered_ += reordered;
  return decision;
}

void FaultyLine::Push(Frame frame, std::vector<Frame>* out) {
  const FaultDecision decision = injector_.Next();
  const size_t waiting = held_.size();
  if (decision.duplicated) {
    out->push_back(frame);
  }
  if (decision.overtaken_by > 0) {
    held_.push_back({std::move(frame), decision.overtaken_by});
  } else if (!decision.lost) {
    out->push_back(std::move(frame));
  }
  // Frames held before this one was sent have been passed once more; a lost
  // frame counts, so that nothing is held for long on a bad line.
  for (size_t i = 0, index = 0; i < waiting; ++i) {
    if (--held_[index].remaining == 0) {
      out->push_back(std::move(held_[index].frame));
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      ++index;
    }
  }
}

void FaultyLine::Flush(std::vector<Frame>* out) {
  for (Held& held : held_) {
    out->push_back(std::move(held.frame));
  }
  held_.clear();
}

}  // namespace heddle::sim
