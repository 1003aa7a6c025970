// SPDX-License-Identifier: Apache-2.0
// Room in a completion queue, counted where operations are posted.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/lib/nic/locking.h"

namespace heddle::nic {

// Refuses a send early when its completion would find the queue full. The
// protection is the device's: it keeps a credit per entry and writes none
// without (contract, `cq_consumer`). So this count may err on the side of
// admitting: a send that fails without having asked for a completion takes an
// entry and no credit.
//
// Thread safety: any thread under `Locked`; else the application serializes.
class CqCredit {
 public:
  explicit CqCredit(uint32_t capacity) noexcept : capacity_(capacity) {}

  // False, changing nothing, when every entry is spoken for.
  template <typename Locking>
  [[nodiscard]] bool TryTake() noexcept {
    if (Locking::FetchAdd(taken_, 1) < capacity_) {
      return true;
    }
    (void)Locking::FetchAdd(taken_, ~uint32_t{0});
    return false;
  }

  template <typename Locking>
  void Return(uint32_t count) noexcept {
    (void)Locking::FetchAdd(taken_, ~count + 1);
  }

 private:
  std::atomic<uint32_t> taken_{0};
  uint32_t capacity_;
};

}  // namespace heddle::nic
