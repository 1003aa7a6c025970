// SPDX-License-Identifier: Apache-2.0
// Sender of a message to address-vector index, for FI_SOURCE.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "driver/control/admin_queue.h"

namespace heddle::nic {

// Maps {fabric address, initiator}, as a key, to one 32-bit index.
//
// Open addressing, at most half full. `Find` runs beside one writer without a
// lock, because libfabric lets any thread insert addresses while the data path
// reads completions under every threading model: it looks again when the
// sequence number moved meanwhile. Tables that growth replaced are kept until
// the map ends (together they are smaller than the current one), so that a
// reader never touches freed memory.
//
// Thread safety: `Find` any thread; the other members one thread at a time.
class SourceMap {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  SourceMap();

  // Key of a pair. Those of IPv4 are distinct; those of IPv6 are hashes, so
  // that who finds one has to compare the addresses.
  static uint64_t Key(const FabricAddress& address,
                      uint32_t initiator) noexcept {
    return address.ipv6 ? HashKey(address, initiator)
                        : Key(static_cast<uint32_t>(address.lo), initiator);
  }
  static uint64_t Key(uint32_t ipv4, uint32_t initiator) noexcept;

  // Index of the key, or kNone.
  uint32_t Find(uint64_t key) const noexcept;
  // Adds the key or changes its index. Throws std::bad_alloc, unchanged.
  void Set(uint64_t key, uint32_t index);
  // Takes the key out, if present.
  void Erase(uint64_t key) noexcept;

  // The same for IPv4.
  uint32_t Find(uint32_t ipv4, uint32_t initiator) const noexcept {
    return Find(Key(ipv4, initiator));
  }
  void Set(uint32_t ipv4, uint32_t initiator, uint32_t index) {
    Set(Key(ipv4, initiator), index);
  }
  void Erase(uint32_t ipv4, uint32_t initiator) noexcept {
    Erase(Key(ipv4, initiator));
  }

  size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    std::atomic<uint64_t> key{0};
    std::atomic<uint32_t> index{0};
  };
  struct Table {
    explicit Table(size_t count)
        : mask(count - 1), slots(std::make_unique<Slot[]>(count)) {}
    size_t mask;
    std::unique_ptr<Slot[]> slots;
  };

  // A key has bit 56 or 57 and none above, so it never equals one of these.
  static constexpr uint64_t kEmpty = 0;
  static constexpr uint64_t kErased = ~uint64_t{0};

  static uint64_t HashKey(const FabricAddress& address,
                          uint32_t initiator) noexcept;
  static size_t Hash(uint64_t key) noexcept;
  static Slot* FindSlot(const Table& table, uint64_t key) noexcept;
  // True when the slot taken was never used before.
  static bool Place(Table& table, uint64_t key, uint32_t index) noexcept;
  void MakeRoom();
  void BeginWrite() noexcept;
  void EndWrite() noexcept;

  std::atomic<uint32_t> sequence_{0};  // Odd while a writer is at work.
  std::atomic<const Table*> current_;
  std::vector<std::unique_ptr<Table>> tables_;  // The last one is current.
  size_t size_ = 0;                             // Pairs present.
  size_t used_ = 0;  // Slots not empty: present or erased.
};

}  // namespace heddle::nic
