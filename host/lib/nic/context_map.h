// SPDX-License-Identifier: Apache-2.0
// Which queue a completion is of.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/split_number.h"

namespace heddle::nic {

// What a queue is known by in a `ContextMap`; a member of it, so that nothing
// is allocated.
template <typename Queue>
struct ContextLink {
  Queue* next = nullptr;  // Of the same low byte.
  bool attached = false;
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

  // The queue of the entry; null when there is none.
  Queue* Find(const contract::Completion& entry) const noexcept {
    Queue* const alone = FindAlone(entry);
    return alone != nullptr ? alone : FindAmongOthers(entry);
  }

  void Attach(Queue& queue) noexcept {
    const uint8_t low = contract::LowByte(queue.context());
    // Unread entries of a detached queue must not be taken for this one's:
    // while there may be any, no queue of this low byte is found at once.
    alone_[low].store(chains_[low] == nullptr ? &queue : nullptr,
                      std::memory_order_release);
    queue.link() = {.next = chains_[low], .attached = true};
    chains_[low] = &queue;
  }

  // Entries of the queue belong to no queue from now on.
  void Detach(Queue& queue) noexcept {
    const uint8_t low = contract::LowByte(queue.context());
    queue.link().attached = false;
    alone_[low].store(nullptr, std::memory_order_release);
  }

  // Precondition: no entry of it is left.
  void Remove(const Queue& queue) noexcept {
    Queue** at = &chains_[contract::LowByte(queue.context())];
    while (*at != nullptr && *at != &queue) {
      at = &(*at)->link().next;
    }
    if (*at != nullptr) {
      *at = (*at)->link().next;
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

  Queue* FindAmongOthers(const contract::Completion& entry) const noexcept {
    const uint32_t context =
        contract::JoinBytes(entry.context, entry.context_high);
    Queue* queue = chains_[entry.context];
    while (queue != nullptr &&
           (queue->context() != context || !queue->link().attached)) {
      queue = queue->link().next;
    }
    return queue;
  }

  std::array<std::atomic<Queue*>, kLowBytes> alone_{};
  std::array<Queue*, kLowBytes> chains_{};
};

}  // namespace heddle::nic
