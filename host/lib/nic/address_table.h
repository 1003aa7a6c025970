// SPDX-License-Identifier: Apache-2.0
// The address vector as the device reads it, and the way back from a sender.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "driver/device.h"
#include "driver/result.h"
#include "host/lib/backend/objects.h"
#include "host/lib/nic/growing_memory.h"
#include "host/lib/nic/next_hops.h"
#include "host/lib/nic/peer_address.h"
#include "host/lib/nic/source_map.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::nic {

// Peers by index: dense from 0 in insertion order; removed indices are given
// out again. The same address may be inserted several times; a message from it
// is then reported with the oldest index still present.
//
// A removed or reused entry raises its generation, and every transmit context
// attached is told to forget what it cached.
//
// The next hop of a new entry's address is asked of the device, once per
// address, and given back when no entry names it any more.
//
// Thread safety: any thread; `Contains` and `FindSource` take no lock, and an
// insertion that waits for a neighbour holds none.
// Ownership: owns the table's memory; borrows the device and the next hops,
// which outlive it.
class AddressTable final : public backend::Peers {
 public:
  // Most peers; the address range of that many entries is reserved.
  static constexpr uint32_t kMaxEntries = 1U << 21;
  static constexpr uint32_t kNoPeer = SourceMap::kNone;

  // Room for `expected` entries from the start; grows up to `kMaxEntries`.
  // With `hops` null, hop 0 stands for everybody.
  // Errors: ENOMEM and those of `Device::Map`.
  static Result<std::unique_ptr<AddressTable>> Create(Device& device,
                                                      size_t expected,
                                                      NextHops* hops = nullptr);
  ~AddressTable() override;
  AddressTable(const AddressTable&) = delete;
  AddressTable& operator=(const AddressTable&) = delete;

  // Index of the new peer. Errors: ENOMEM; EHOSTUNREACH and others of
  // `NextHops::Acquire`. Throws std::bad_alloc, unchanged.
  Result<uint32_t> Insert(const PeerAddress& address);
  Result<uint32_t> Insert(const base::SocketAddress& address) override {
    return Insert(PeerAddress::Of(address));
  }

  bool Remove(uint64_t index) noexcept override;

  std::optional<PeerAddress> LookupPeer(uint64_t index) const noexcept;
  std::optional<base::SocketAddress> Lookup(
      uint64_t index) const noexcept override {
    const auto peer = LookupPeer(index);
    return peer.has_value() ? std::optional(peer->socket_address())
                            : std::nullopt;
  }

  // Data path: whether a descriptor may name `index`.
  bool Contains(uint64_t index) const noexcept {
    return index < end_.load(std::memory_order_acquire) &&
           (LoadFlags(index) & contract::kAvFlagValid) != 0;
  }

  // Data path: where the peer sends from. Precondition: `Contains(index)`.
  struct Origin {
    FabricAddress address;
    uint32_t initiator = 0;
  };
  Origin OriginOf(uint64_t index) const noexcept {
    // Entries never move, so this needs no lock.
    const contract::AvEntry& entry = table()[index];
    return {
        .address = {.lo = __atomic_load_n(&entry.fa_lo, __ATOMIC_RELAXED),
                    .hi = __atomic_load_n(&entry.fa_hi, __ATOMIC_RELAXED),
                    .ipv6 = (LoadFlags(index) & contract::kAvFlagIpv6) != 0},
        .initiator =
            uint32_t{__atomic_load_n(&entry.pid_on_fep, __ATOMIC_RELAXED)}
                << PeerAddress::kRiBits |
            entry.resource_index};
  }

  // Data path: index of the endpoint at {address, initiator}, or kNoPeer. Of
  // two IPv6 peers whose keys are equal, which is as unlikely as a collision of
  // 56 random bits, only one is found.
  uint32_t FindSource(const FabricAddress& address,
                      uint32_t initiator) const noexcept {
    return address.ipv6
               ? FindIpv6Source(address, initiator)
               : FindSource(static_cast<uint32_t>(address.lo), initiator);
  }
  uint32_t FindSource(uint32_t ipv4, uint32_t initiator) const noexcept {
    return sources_.Find(ipv4, initiator);
  }

  // `op_doorbell` is the operation doorbell of a transmit context that reads
  // this table, from Attach to Detach. Attach throws std::bad_alloc.
  void Attach(const Doorbell& op_doorbell);
  void Detach(const Doorbell& op_doorbell) noexcept;

  Iova iova() const noexcept { return memory_.iova(); }
  size_t size() const noexcept;

 private:
  // Host-side state of an index.
  struct Entry {
    PeerAddress address;
    uint32_t next_same = kNoPeer;  // Later index of the same address.
    bool used = false;
  };

  explicit AddressTable(NextHops* hops) : hops_(hops) {}

  contract::AvEntry* table() const noexcept {
    return static_cast<contract::AvEntry*>(memory_.data());
  }
  uint8_t LoadFlags(uint64_t index) const noexcept {
    return __atomic_load_n(&table()[index].flags, __ATOMIC_RELAXED);
  }
  Result<uint32_t> InsertAt(const PeerAddress& address, uint16_t hop);
  void Write(uint32_t index, const PeerAddress& address, uint16_t hop) noexcept;
  void ReleaseHop(const PeerAddress& address) noexcept;
  uint32_t FindIpv6Source(const FabricAddress& address,
                          uint32_t initiator) const noexcept;
  void LinkSource(uint32_t index, const PeerAddress& address);
  void UnlinkSource(uint32_t index) noexcept;
  void InvalidateCaches() noexcept;

  NextHops* const hops_;
  mutable std::mutex mutex_;
  GrowingMemory memory_;
  std::atomic<uint32_t> end_{0};  // Indices ever given out.
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;  // Removed indices; capacity covers entries_.
  SourceMap sources_;
  std::vector<Doorbell> attached_;
};

}  // namespace heddle::nic
