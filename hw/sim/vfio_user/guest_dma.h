// SPDX-License-Identifier: Apache-2.0
// A client's memory as the devices reach it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "hw/sim/device/mapped_memory.h"
#include "hw/sim/vfio_user/guest_memory.h"
#include "hw/sim/vfio_user/refused_accesses.h"
#include "hw/soft/engine/dma_port.h"

namespace heddle::sim::vfio_user {

// Nothing is reached while the function is not bus master; a real one would not
// ask. Each access that is refused to a bus master is counted.
//
// Thread safety: as GuestMemory, the device's lock.
class GuestDma final : public soft::engine::DmaPort,
                       public device::MappedMemory {
 public:
  GuestMemory& memory() { return memory_; }
  void set_bus_master(bool on) { bus_master_ = on; }
  // Called for each access that was served; empty for nobody.
  using Observer =
      std::function<void(uint64_t iova, uint64_t bytes, bool write)>;
  void Observe(Observer observer) { observer_ = std::move(observer); }
  // Since it was asked for last.
  RefusedAccesses TakeRefused() { return std::exchange(refused_, {}); }

  // Of the device `rtl`, whose accesses come in pieces; it says what it could
  // not do without one.
  std::span<uint8_t> Find(uint64_t iova, uint64_t bytes,
                          bool write) const override {
    if (!bus_master_) {
      return {};
    }
    const std::span<uint8_t> piece = memory_.Find(iova, bytes, write);
    Tell(!piece.empty(), iova, piece.size(), write);
    return piece;
  }
  void NoteRefused(uint64_t iova, uint64_t bytes, bool write) override {
    if (bus_master_) {
      refused_.Add({.iova = iova, .bytes = bytes, .write = write});
    }
  }

  // Of the device `soft`.
  [[nodiscard]] bool Read(uint64_t iova, std::span<uint8_t> out) override {
    const bool served = bus_master_ && memory_.Read(iova, out);
    Tell(served, iova, out.size(), /*write=*/false);
    return Counted(served, iova, out.size(), /*write=*/false);
  }
  [[nodiscard]] bool Write(uint64_t iova,
                           std::span<const uint8_t> bytes) override {
    const bool served = bus_master_ && memory_.Write(iova, bytes);
    Tell(served, iova, bytes.size(), /*write=*/true);
    return Counted(served, iova, bytes.size(), /*write=*/true);
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

  bool Counted(bool served, uint64_t iova, uint64_t bytes, bool write) {
    if (!served) {
      NoteRefused(iova, bytes, write);
    }
    return served;
  }

  // Pages are larger than any alignment asked for here, so that such bytes lie
  // in one mapping or not in any.
  uint8_t* Aligned(uint64_t iova, uint64_t bytes, uint64_t alignment) {
    const std::span<uint8_t> piece =
        bus_master_ ? memory_.Find(iova, bytes, /*write=*/true)
                    : std::span<uint8_t>();
    const bool fits =
        piece.size() == bytes && iova % alignment == 0 &&
        reinterpret_cast<uintptr_t>(piece.data()) % sizeof(uint64_t) == 0;
    Tell(fits, iova, bytes, /*write=*/true);
    return Counted(fits, iova, bytes, /*write=*/true) ? piece.data() : nullptr;
  }

  static void StoreLast(uint8_t* to, uint64_t value) {
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to))
        .store(value, std::memory_order_release);
  }

  GuestMemory memory_;
  Observer observer_;
  bool bus_master_ = false;
  RefusedAccesses refused_;
};

}  // namespace heddle::sim::vfio_user
