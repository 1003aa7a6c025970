// SPDX-License-Identifier: Apache-2.0
// One deadline per PDC, nearest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/soft/rules/psn.h"

namespace heddle::soft::transport {

// Binary heap whose entries may be early: a deadline that moves away stays
// where it is until it is reached, so that the timer that every packet restarts
// costs nothing. `Expired` tells such an entry from a real one.
class TimerHeap {
 public:
  // There are timers of each index below `timers`; they are never fewer.
  void Grow(size_t timers) {
    if (timers > timers_.size()) {
      timers_.resize(timers);
      heap_.reserve(timers);
    }
  }

  // Timer `index` ends at `at_ns`; rules::kNever: not.
  void Set(uint16_t index, uint64_t at_ns) {
    Timer& timer = timers_[index];
    timer.deadline = at_ns;
    if (at_ns < timer.queued) {
      Hasten(index);
    }
  }

  // Takes the next timer that ended at `now_ns` or before. False: none. It is
  // off afterwards.
  bool Expired(uint64_t now_ns, uint16_t* index) {
    while (!heap_.empty() && heap_[0].at <= now_ns) {
      const uint16_t first = heap_[0].index;
      Timer& timer = timers_[first];
      const uint64_t at = timer.deadline;
      if (at <= now_ns || at == rules::kNever) {
        Remove();
        if (at != rules::kNever) {
          timer.deadline = rules::kNever;
          *index = first;
          return true;
        }
      } else {
        heap_[0].at = timer.queued = at;
        Down(0);
      }
    }
    return false;
  }

  // No timer ends earlier.
  uint64_t next_ns() const {
    return heap_.empty() ? rules::kNever : heap_[0].at;
  }

 private:
  struct Entry {
    uint64_t at;
    uint16_t index;
  };
  struct Timer {
    uint64_t deadline = rules::kNever;
    uint64_t queued = rules::kNever;  // Its entry ends then.
    uint32_t place = 0;               // That has.
  };

  // Its deadline is earlier than its entry.
  void Hasten(uint16_t index) {
    Timer& timer = timers_[index];
    if (timer.queued == rules::kNever) {
      timer.place = static_cast<uint32_t>(heap_.size());
      heap_.push_back({timer.deadline, index});
    }
    heap_[timer.place].at = timer.queued = timer.deadline;
    Up(timer.place);
  }
  void Move(size_t to, Entry entry) {
    heap_[to] = entry;
    timers_[entry.index].place = static_cast<uint32_t>(to);
  }
  void Up(size_t at) {
    const Entry entry = heap_[at];
    while (at > 0 && entry.at < heap_[(at - 1) / 2].at) {
      Move(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    Move(at, entry);
  }
  void Down(size_t at) {
    const Entry entry = heap_[at];
    for (size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) {
        ++child;
      }
      if (heap_[child].at >= entry.at) {
        break;
      }
      Move(at, heap_[child]);
      at = child;
    }
    Move(at, entry);
  }
  void Remove() {
    timers_[heap_[0].index].queued = rules::kNever;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      heap_[0] = last;
      Down(0);
    }
  }

  std::vector<Entry> heap_;
  std::vector<Timer> timers_;
};

}  // namespace heddle::soft::transport
