// SPDX-License-Identifier: Apache-2.0
// Work that a polling thread lends its time to.
#pragma once

#include <atomic>

namespace heddle::backend {

// One such work. Ownership: who adds it to a list; outlives the list's polls.
struct Progressor {
  // Called by a thread that found nothing to take; does a bounded amount of
  // work, or returns at once when another thread is doing it. Any thread.
  // Null: there is no such work.
  void (*step)(void* cookie) = nullptr;
  void* cookie = nullptr;
  // No other thread does it: a thread that waits has to step now and then.
  bool by_polls_only = false;
  std::atomic<Progressor*> next = nullptr;
};

// The polls of a domain step it, in the order of addition.
//
// Thread safety: any thread; `Add` one at a time.
class ProgressorList {
 public:
  // `progressor` is in no list.
  void Add(Progressor* progressor) noexcept {
    std::atomic<Progressor*>* end = &first_;
    while (Progressor* last = end->load(std::memory_order_relaxed)) {
      end = &last->next;
    }
    // Pairs with the loads of `Step`: who finds it finds what it points to.
    end->store(progressor, std::memory_order_release);
  }

  // Data path.
  bool needed() const noexcept {
    return first_.load(std::memory_order_relaxed) != nullptr;
  }
  void Step() const noexcept {
    for (const Progressor* each = first_.load(std::memory_order_acquire);
         each != nullptr; each = each->next.load(std::memory_order_acquire)) {
      each->step(each->cookie);
    }
  }

  bool by_polls_only() const noexcept {
    for (const Progressor* each = first_.load(std::memory_order_acquire);
         each != nullptr; each = each->next.load(std::memory_order_acquire)) {
      if (each->by_polls_only) {
        return true;
      }
    }
    return false;
  }

 private:
  std::atomic<Progressor*> first_ = nullptr;
};

}  // namespace heddle::backend
