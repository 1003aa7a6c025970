// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/fault/faulty_line.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace heddle::sim::fault {

void FaultyLine::Push(frame::Frame frame, uint64_t now,
                      std::vector<LineFrame>* out) {
  const frame::Route route = frame::FindRoute(frame, ip_protocol_);
  Push({.bytes = std::move(frame), .route = route, .bad_fcs = false}, now, out);
}

void FaultyLine::Push(LineFrame frame, uint64_t now,
                      std::vector<LineFrame>* out) {
  const FaultDecision decision = injector_.Next();
  const size_t waiting = held_.size();
  if (decision.duplicated) {
    leaving_.push_back(frame);
  }
  injector_.Apply(decision, &frame);
  if (decision.overtaken_by > 0) {
    held_.push_back({std::move(frame), decision.overtaken_by, now + hold_});
  } else if (!decision.lost) {
    leaving_.push_back(std::move(frame));
  }
  // Frames held before this one was sent have been passed once more; a lost
  // frame counts, so that nothing is held for long on a bad line.
  for (size_t i = 0, index = 0; i < waiting; ++i) {
    if (--held_[index].remaining == 0) {
      leaving_.push_back(std::move(held_[index].frame));
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      ++index;
    }
  }
  Leave(now, out);
}

void FaultyLine::Release(uint64_t now, std::vector<LineFrame>* out) {
  while (!held_.empty() && held_.front().until <= now) {
    leaving_.push_back(std::move(held_.front().frame));
    held_.pop_front();
  }
  Leave(now, out);
}

uint64_t FaultyLine::next() const {
  const uint64_t held = held_.empty() ? UINT64_MAX : held_.front().until;
  return std::min(held, shaper_.next());
}

void FaultyLine::Leave(uint64_t now, std::vector<LineFrame>* out) {
  if (shapes_) {
    for (LineFrame& frame : leaving_) {
      shaper_.Push(std::move(frame), now);
    }
    shaper_.Release(now, out);
  } else {
    std::move(leaving_.begin(), leaving_.end(), std::back_inserter(*out));
  }
  leaving_.clear();
}

std::string FaultyLine::StatisticsText(const std::string& prefix) const {
  std::string text;
  const auto add = [&](const char* name, uint64_t value) {
    text.append(prefix).append(name).append(" ");
    text.append(std::to_string(value)).append("\n");
  };
  add("lost", injector_.lost());
  add("duplicated", injector_.duplicated());
  add("reordered", injector_.reordered());
  add("corrupted", injector_.corrupted());
  add("bad_fcs", injector_.bad_fcs());
  add("overflowed", shaper_.overflowed());
  add("marked", shaper_.marked());
  add("trimmed", shaper_.trimmed());
  return text;
}

}  // namespace heddle::sim::fault
