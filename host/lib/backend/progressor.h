// SPDX-License-Identifier: Apache-2.0
// Work that a polling thread lends its time to.
#pragma once

namespace heddle::backend {

// Called by a thread that found nothing to take; does a bounded amount of
// work, or returns at once when another thread is doing it. Any thread.
struct Progressor {
  void (*step)(void* cookie) = nullptr;  // Null: there is no such work.
  void* cookie = nullptr;

  bool needed() const noexcept { return step != nullptr; }
  void Step() const noexcept {
    if (step != nullptr) {
      step(cookie);
    }
  }
};

}  // namespace heddle::backend
