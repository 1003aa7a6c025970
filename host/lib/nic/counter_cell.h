// SPDX-License-Identifier: Apache-2.0
// Counter of completed operations, kept by the device in host memory.
#pragma once

#include <cstdint>
#include <memory>

#include "driver/base/mmio.h"
#include "driver/dma/dma_buffer.h"
#include "driver/queue/doorbells.h"
#include "host/lib/backend/locking.h"
#include "host/lib/backend/objects.h"
#include "host/lib/nic/nic.h"

namespace heddle::nic {

// Thread safety: any thread.
// Ownership: owns the cell; borrows the NIC. Contexts and regions that count
// here end before.
class Counter final : public backend::Counter {
 public:
  // Errors: ENOSPC, EOPNOTSUPP, ENOMEM, EIO. Throws std::bad_alloc.
  static Result<std::unique_ptr<Counter>> Create(Nic& nic);
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() override;

  // The device executes it before this returns.
  [[nodiscard]] int Execute(Change change, uint64_t amount) noexcept override;

  // As the contract's fields name it: number plus 1.
  uint16_t reference() const noexcept {
    return static_cast<uint16_t>(number_ + 1);
  }

 private:
  explicit Counter(Nic& nic) : nic_(nic) {}
  const contract::CounterCell& cell() const noexcept {
    return *reinterpret_cast<const contract::CounterCell*>(memory_.data());
  }

  Nic& nic_;
  DmaBuffer memory_;
  uint32_t number_ = 0;
  bool created_ = false;
  backend::SpinLock lock_;  // Doorbells are rung in the order of their count.
  uint64_t issued_ = 0;     // Changes asked for.
};

}  // namespace heddle::nic
