// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/address_table.h"

#include <algorithm>
#include <cerrno>

#include "driver/base/mmio.h"

namespace heddle::nic {
namespace {

constexpr size_t kEntryBytes = sizeof(contract::AvEntry);
constexpr size_t kFirstEntries = 1024;

// A virtual wire has one next hop; firmware fills its table.
constexpr uint16_t kNextHop = 0;

bool SameDoorbell(const Doorbell& a, const Doorbell& b) {
  return a.address == b.address && a.cookie == b.cookie &&
         a.bar2_offset == b.bar2_offset;
}

}  // namespace

Result<std::unique_ptr<AddressTable>> AddressTable::Create(Device& device,
                                                           size_t expected) {
  const size_t first = std::clamp<size_t>(expected, kFirstEntries, kMaxEntries);
  auto memory = GrowingMemory::Create(device, kMaxEntries * kEntryBytes,
                                      first * kEntryBytes);
  if (!memory.ok()) {
    return memory.error();
  }
  std::unique_ptr<AddressTable> table(new AddressTable());
  table->memory_ = std::move(memory.value());
  return table;
}

Result<uint32_t> AddressTable::Insert(const PeerAddress& address) {
  const std::lock_guard lock(mutex_);
  const bool reuse = !free_.empty();
  const uint32_t index =
      reuse ? free_.back() : end_.load(std::memory_order_relaxed);
  if (!reuse) {
    if (index == kMaxEntries) {
      return Errno{ENOMEM};
    }
    auto grown = memory_.Grow((size_t{index} + 1) * kEntryBytes);
    if (!grown.ok()) {
      return grown.error();
    }
    entries_.emplace_back();
    try {
      // So that Remove never allocates.
      free_.reserve(entries_.capacity());
      LinkSource(index, address);
    } catch (...) {
      entries_.pop_back();
      throw;
    }
    Write(index, address);
    end_.store(index + 1, std::memory_order_release);
    return index;
  }
  LinkSource(index, address);
  free_.pop_back();
  Write(index, address);
  InvalidateCaches();
  return index;
}

void AddressTable::Write(uint32_t index, const PeerAddress& address) noexcept {
  contract::AvEntry& entry = table()[index];
  entry.fa_lo = address.ipv4;
  entry.fa_hi = 0;
  entry.pid_on_fep = address.pid_on_fep();
  entry.resource_index = address.first_ri();
  entry.next_hop = kNextHop;
  entry.traffic_class = 0;
  __atomic_store_n(&entry.flags, contract::kAvFlagValid, __ATOMIC_RELEASE);
  entries_[index].address = address;
  entries_[index].used = true;
}

void AddressTable::LinkSource(uint32_t index, const PeerAddress& address) {
  const uint32_t first = sources_.Find(address.ipv4, address.initiator());
  entries_[index].next_same = kNoPeer;
  if (first == kNoPeer) {
    sources_.Set(address.ipv4, address.initiator(), index);
    return;
  }
  entries_[index].next_same = entries_[first].next_same;
  entries_[first].next_same = index;
}

void AddressTable::UnlinkSource(uint32_t index) noexcept {
  const PeerAddress& address = entries_[index].address;
  const uint32_t next = entries_[index].next_same;
  uint32_t at = sources_.Find(address.ipv4, address.initiator());
  if (at == index) {
    if (next == kNoPeer) {
      sources_.Erase(address.ipv4, address.initiator());
    } else {
      // The pair is present, so Set only changes it and allocates nothing.
      sources_.Set(address.ipv4, address.initiator(), next);
    }
    return;
  }
  while (entries_[at].next_same != index) {
    at = entries_[at].next_same;
  }
  entries_[at].next_same = next;
}

bool AddressTable::Remove(uint32_t index) noexcept {
  const std::lock_guard lock(mutex_);
  if (index >= entries_.size() || !entries_[index].used) {
    return false;
  }
  UnlinkSource(index);
  contract::AvEntry& entry = table()[index];
  __atomic_store_n(&entry.flags, uint8_t{0}, __ATOMIC_RELEASE);
  ++entry.generation;
  entries_[index].used = false;
  free_.push_back(index);
  InvalidateCaches();
  return true;
}

std::optional<PeerAddress> AddressTable::Lookup(uint32_t index) const noexcept {
  const std::lock_guard lock(mutex_);
  if (index >= entries_.size() || !entries_[index].used) {
    return std::nullopt;
  }
  return entries_[index].address;
}

size_t AddressTable::size() const noexcept {
  const std::lock_guard lock(mutex_);
  return entries_.size() - free_.size();
}

void AddressTable::Attach(const Doorbell& op_doorbell) {
  const std::lock_guard lock(mutex_);
  attached_.push_back(op_doorbell);
}

void AddressTable::Detach(const Doorbell& op_doorbell) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(
      attached_.begin(), attached_.end(),
      [&](const Doorbell& d) { return SameDoorbell(d, op_doorbell); });
  if (found != attached_.end()) {
    attached_.erase(found);
  }
}

void AddressTable::InvalidateCaches() noexcept {
  const auto value = static_cast<uint64_t>(contract::DoorbellOp::kAvInvalidate)
                     << contract::kDoorbellOpOpcodeLsb;
  for (const Doorbell& doorbell : attached_) {
    Ring(doorbell, value);
  }
}

}  // namespace heddle::nic
