// SPDX-License-Identifier: Apache-2.0
// Room in a completion queue, counted where operations are posted.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/lib/backend/locking.h"

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
  explicit CqCredit(uint32_t capacity) noexcept
      : limit_(capacity), least_limit_(capacity / 2) {}

  // Sets `count` entries aside, for a queue that then has nothing to count
  // because its ring holds no more. At most half of all go this way: the others
  // are never left without. False, changing nothing, else.
  [[nodiscard]] bool TryReserve(uint32_t count) noexcept {
    uint32_t limit = limit_.load(std::memory_order_relaxed);
    do {
      if (count > limit - least_limit_) {
        return false;
      }
    } while (!limit_.compare_exchange_weak(limit, limit - count,
                                           std::memory_order_relaxed));
    return true;
  }
  void ReturnReserved(uint32_t count) noexcept {
    (void)backend::Locked::FetchAdd(limit_, count);
  }

  // False, changing nothing, when every entry is spoken for.
  template <typename Locking>
  [[nodiscard]] bool TryTake() noexcept {
    if (Locking::FetchAdd(taken_, 1) < limit_.load(std::memory_order_relaxed)) {
      return true;
    }
    (void)Locking::FetchAdd(taken_, ~uint32_t{0});
    return false;
  }

  // As many at once, of those that nobody needs soon. False, changing nothing,
  // when there are fewer.
  [[nodiscard]] bool TryTakeSpare(uint32_t count) noexcept {
    const uint32_t limit = limit_.load(std::memory_order_relaxed);
    const uint32_t spare = limit - least_limit_ / 2;
    if (backend::Locked::FetchAdd(taken_, count) + count <= spare) {
      return true;
    }
    (void)backend::Locked::FetchAdd(taken_, ~count + 1);
    return false;
  }

  template <typename Locking>
  void Return(uint32_t count) noexcept {
    (void)Locking::FetchAdd(taken_, ~count + 1);
  }

 private:
  std::atomic<uint32_t> taken_{0};
  std::atomic<uint32_t> limit_;  // Entries that are not set aside.
  const uint32_t least_limit_;
};

}  // namespace heddle::nic
