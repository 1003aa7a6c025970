// SPDX-License-Identifier: Apache-2.0
// Which queue a completion is of.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/split_number.h"

namespace heddle::nic {

// What a queue is known by in a `ContextMap`; a member of it, so that nothing
// is allocated.
template <typename Queue>
struct ContextLink {
  Queue* next = nullptr;  // Of the same low byte.
  bool attached = false;
  bool at_once = true;
};

// Queues of one kind by their context. A completion has its context in two
// bytes that are not neighbours; most are found by the lower one alone, where
// no other context with that byte completes here.
//
// `Queue` has `context()` and a `ContextLink` by `link()`.
//
// Thread safety: as of the completion queue's members of the data path.
template <typename Queue>
class ContextMap {
 public:
  // The queue of the entry, if no other shares its low byte here; null in every
  // other case, in which `Find` knows.
  Queue* FindAlone(const contract::Completion& entry) const noexcept {
    return alone_[entry.context].load(std::memory_order_acquire);
  }

  // The queue of the entry, which is the `number`th of the completion queue;
  // null when there is none.
  Queue* Find(const contract::Completion& entry, uint64_t number) noexcept {
    Queue* const alone = FindAlone(entry);
    return alone != nullptr ? alone : FindAmongOthers(entry, number);
  }

  // `at_once`: `FindAlone` may find it. Throws std::bad_alloc, unchanged.
  void Attach(Queue& queue, bool at_once = true) {
    // So that `Remove` has room.
    former_.reserve(former_.size() + attached_ + 1);
    ++attached_;
    const uint8_t low = contract::LowByte(queue.context());
    queue.link() = {.next = chains_[low], .attached = true, .at_once = at_once};
    chains_[low] = &queue;
    Choose(low);
  }

  // Entries of the queue belong to no queue from now on.
  void Detach(Queue& queue) noexcept {
    const uint8_t low = contract::LowByte(queue.context());
    queue.link().attached = false;
    alone_[low].store(nullptr, std::memory_order_release);
  }

  // The context's number may be another queue's from now on: entries before
  // the `written`th are none of it. Precondition: detached, and the device
  // writes no more entries of it.
  void Remove(const Queue& queue, uint64_t written) noexcept {
    Queue** at = &chains_[contract::LowByte(queue.context())];
    while (*at != nullptr && *at != &queue) {
      at = &(*at)->link().next;
    }
    if (*at != nullptr) {
      *at = (*at)->link().next;
      former_.push_back({.written = written, .context = queue.context()});
      --attached_;
      Choose(contract::LowByte(queue.context()));
    }
  }

  // Calls `visit(Queue&)` for each that is attached, until it returns true.
  template <typename Visit>
  void VisitUntil(Visit visit) {
    for (Queue* const first : chains_) {
      for (Queue* queue = first; queue != nullptr; queue = queue->link().next) {
        if (queue->link().attached && visit(*queue)) {
          return;
        }
      }
    }
  }

 private:
  static constexpr size_t kLowBytes = 256;

  // A context whose entries before the `written`th were another queue's.
  struct Former {
    uint64_t written = 0;
    uint32_t context = 0;
  };

  // All entries before the `number`th have been read.
  void ForgetRead(uint64_t number) noexcept {
    for (size_t i = former_.size(); i-- != 0;) {
      if (former_[i].written <= number) {
        const uint8_t low = contract::LowByte(former_[i].context);
        former_[i] = former_.back();
        former_.pop_back();
        Choose(low);
      }
    }
  }

  // Unread entries of a former queue must not be taken for those of the one
  // that has its number, or is alone now: while there may be any, no queue of
  // this low byte is found at once.
  void Choose(uint8_t low) noexcept {
    Queue* const first = chains_[low];
    const bool alone =
        first != nullptr && first->link().next == nullptr &&
        first->link().attached && first->link().at_once &&
        std::none_of(former_.begin(), former_.end(), [&](const Former& former) {
          return contract::LowByte(former.context) == low;
        });
    alone_[low].store(alone ? first : nullptr, std::memory_order_release);
  }

  Queue* FindAmongOthers(const contract::Completion& entry,
                         uint64_t number) noexcept {
    ForgetRead(number);
    const uint32_t context =
        contract::JoinBytes(entry.context, entry.context_high);
    for (const Former& former : former_) {
      if (former.context == context && number < former.written) {
        return nullptr;
      }
    }
    Queue* queue = chains_[entry.context];
    while (queue != nullptr &&
           (queue->context() != context || !queue->link().attached)) {
      queue = queue->link().next;
    }
    return queue;
  }

  std::array<std::atomic<Queue*>, kLowBytes> alone_{};
  std::array<Queue*, kLowBytes> chains_{};
  std::vector<Former> former_;
  size_t attached_ = 0;
};

}  // namespace heddle::nic
