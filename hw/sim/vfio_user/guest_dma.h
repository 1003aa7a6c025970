// SPDX-License-Identifier: Apache-2.0
// A client's memory as the devices reach it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "hw/sim/mapped_memory.h"
#include "hw/sim/soft/engine/dma_port.h"
#include "hw/sim/vfio_user/guest_memory.h"

namespace heddle::sim::vfio_user {

// Nothing is reached while the function is not bus master.
//
// Thread safety: as GuestMemory, the device's lock.
class GuestDma final : public soft::DmaPort, public MappedMemory {
 public:
  GuestMemory& memory() { return memory_; }
  void set_bus_master(bool on) { bus_master_ = on; }
  // Called for each access that was served; empty for nobody.
  using Observer =
      std::function<void(uint64_t iova, uint64_t bytes, bool write)>;
  void Observe(Observer observer) { observer_ = std::move(observer); }
  // Accesses that were refused.
  uint64_t blocked() const { return memory_.blocked() + blocked_; }

  // Of the device `rtl`, whose accesses come in pieces.
  std::span<uint8_t> Find(uint64_t iova, uint64_t bytes,
                          bool write) const override {
    if (!bus_master_) {
      return {};
    }
    const std::span<uint8_t> piece = memory_.Find(iova, bytes, write);
    Tell(!piece.empty(), iova, piece.size(), write);
    return piece;
  }

  // Of the device `soft`.
  [[nodiscard]] bool Read(uint64_t iova, std::span<uint8_t> out) override {
    if (!Allowed()) {
      return false;
    }
    const bool served = memory_.Read(iova, out);
    Tell(served, iova, out.size(), /*write=*/false);
    return served;
  }
  [[nodiscard]] bool Write(uint64_t iova,
                           std::span<const uint8_t> bytes) override {
    if (!Allowed()) {
      return false;
    }
    const bool served = memory_.Write(iova, bytes);
    Tell(served, iova, bytes.size(), /*write=*/true);
    return served;
  }
  [[nodiscard]] bool Store(uint64_t iova, uint64_t value) override {
    uint8_t* const to = Aligned(iova, sizeof(value), sizeof(value));
    if (to == nullptr) {
      return false;
    }
    StoreLast(to, value);
    return true;
  }
  [[nodiscard]] bool Publish(uint64_t iova,
                             std::span<const uint8_t, 64> entry) override {
    uint8_t* const to = Aligned(iova, entry.size(), entry.size());
    if (to == nullptr) {
      return false;
    }
    constexpr size_t kFront = 64 - sizeof(uint64_t);
    uint64_t last = 0;
    std::memcpy(&last, entry.data() + kFront, sizeof(last));
    std::memcpy(to, entry.data(), kFront);
    StoreLast(to + kFront, last);
    return true;
  }

 private:
  void Tell(bool served, uint64_t iova, uint64_t bytes, bool write) const {
    if (served && bytes != 0 && observer_) {
      observer_(iova, bytes, write);
    }
  }

  bool Allowed() {
    blocked_ += bus_master_ ? 0 : 1;
    return bus_master_;
  }

  // Pages are larger than any alignment asked for here, so that such bytes lie
  // in one mapping or not in any.
  uint8_t* Aligned(uint64_t iova, uint64_t bytes, uint64_t alignment) {
    if (!Allowed()) {
      return nullptr;
    }
    const std::span<uint8_t> piece = memory_.Find(iova, bytes, /*write=*/true);
    const bool fits =
        piece.size() == bytes && iova % alignment == 0 &&
        reinterpret_cast<uintptr_t>(piece.data()) % sizeof(uint64_t) == 0;
    blocked_ += fits ? 0 : 1;
    Tell(fits, iova, bytes, /*write=*/true);
    return fits ? piece.data() : nullptr;
  }

  static void StoreLast(uint8_t* to, uint64_t value) {
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to))
        .store(value, std::memory_order_release);
  }

  GuestMemory memory_;
  Observer observer_;
  bool bus_master_ = false;
  uint64_t blocked_ = 0;
};

}  // namespace heddle::sim::vfio_user
