// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/address_table.h"

#include <algorithm>
#include <cerrno>

#include "driver/base/mmio.h"

namespace heddle::nic {
namespace {

constexpr size_t kEntryBytes = sizeof(contract::AvEntry);
constexpr size_t kFirstEntries = 1024;

bool SameDoorbell(const Doorbell& a, const Doorbell& b) {
  return a.address == b.address && a.cookie == b.cookie &&
         a.bar2_offset == b.bar2_offset;
}

}  // namespace

Result<std::unique_ptr<AddressTable>> AddressTable::Create(Device& device,
                                                           size_t expected,
                                                           NextHops* hops) {
  const size_t first = std::clamp<size_t>(expected, kFirstEntries, kMaxEntries);
  auto memory = GrowingMemory::Create(device, kMaxEntries * kEntryBytes,
                                      first * kEntryBytes);
  if (!memory.ok()) {
    return memory.error();
  }
  std::unique_ptr<AddressTable> table(new AddressTable(hops));
  table->memory_ = std::move(memory.value());
  return table;
}

AddressTable::~AddressTable() {
  for (const Entry& entry : entries_) {
    if (entry.used) {
      ReleaseHop(entry.address);
    }
  }
}

void AddressTable::ReleaseHop(const PeerAddress& address) noexcept {
  if (hops_ != nullptr) {
    hops_->Release(address.fabric_address());
  }
}

Result<uint32_t> AddressTable::Insert(const PeerAddress& address) {
  Result<uint16_t> hop = hops_ == nullptr
                             ? Result<uint16_t>(uint16_t{0})
                             : hops_->Acquire(address.fabric_address());
  if (!hop.ok()) {
    return hop.error();
  }
  try {
    Result<uint32_t> index = InsertAt(address, hop.value());
    if (!index.ok()) {
      ReleaseHop(address);
    }
    return index;
  } catch (...) {
    ReleaseHop(address);
    throw;
  }
}

Result<uint32_t> AddressTable::InsertAt(const PeerAddress& address,
                                        uint16_t hop) {
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
    Write(index, address, hop);
    end_.store(index + 1, std::memory_order_release);
    return index;
  }
  LinkSource(index, address);
  free_.pop_back();
  Write(index, address, hop);
  InvalidateCaches();
  return index;
}

void AddressTable::Write(uint32_t index, const PeerAddress& address,
                         uint16_t hop) noexcept {
  contract::AvEntry& entry = table()[index];
  const FabricAddress fabric = address.fabric_address();
  __atomic_store_n(&entry.fa_lo, fabric.lo, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.fa_hi, fabric.hi, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.pid_on_fep, address.pid_on_fep(), __ATOMIC_RELAXED);
  entry.resource_index = address.first_ri();
  entry.next_hop = hop;
  entry.traffic_class = 0;
  const auto flags = static_cast<uint8_t>(
      contract::kAvFlagValid | (fabric.ipv6 ? contract::kAvFlagIpv6 : 0));
  __atomic_store_n(&entry.flags, flags, __ATOMIC_RELEASE);
  entries_[index].address = address;
  entries_[index].used = true;
}

void AddressTable::LinkSource(uint32_t index, const PeerAddress& address) {
  const uint64_t key =
      SourceMap::Key(address.fabric_address(), address.initiator());
  const uint32_t first = sources_.Find(key);
  entries_[index].next_same = kNoPeer;
  if (first == kNoPeer) {
    sources_.Set(key, index);
    return;
  }
  entries_[index].next_same = entries_[first].next_same;
  entries_[first].next_same = index;
}

void AddressTable::UnlinkSource(uint32_t index) noexcept {
  const PeerAddress& address = entries_[index].address;
  const uint32_t next = entries_[index].next_same;
  const uint64_t key =
      SourceMap::Key(address.fabric_address(), address.initiator());
  uint32_t at = sources_.Find(key);
  if (at == index) {
    if (next == kNoPeer) {
      sources_.Erase(key);
    } else {
      // The pair is present, so Set only changes it and allocates nothing.
      sources_.Set(key, next);
    }
    return;
  }
  while (entries_[at].next_same != index) {
    at = entries_[at].next_same;
  }
  entries_[at].next_same = next;
}

bool AddressTable::Remove(uint64_t wide_index) noexcept {
  const auto index = static_cast<uint32_t>(wide_index);
  if (index != wide_index) {
    return false;
  }
  PeerAddress address;
  {
    const std::lock_guard lock(mutex_);
    if (index >= entries_.size() || !entries_[index].used) {
      return false;
    }
    address = entries_[index].address;
    UnlinkSource(index);
    contract::AvEntry& entry = table()[index];
    __atomic_store_n(&entry.flags, uint8_t{0}, __ATOMIC_RELEASE);
    ++entry.generation;
    entries_[index].used = false;
    free_.push_back(index);
    InvalidateCaches();
  }
  ReleaseHop(address);
  return true;
}

uint32_t AddressTable::FindIpv6Source(const FabricAddress& address,
                                      uint32_t initiator) const noexcept {
  const uint32_t index = sources_.Find(SourceMap::Key(address, initiator));
  if (index == kNoPeer) {
    return kNoPeer;
  }
  // Entries never move, so this needs no lock.
  const contract::AvEntry& entry = table()[index];
  const bool same =
      __atomic_load_n(&entry.fa_lo, __ATOMIC_RELAXED) == address.lo &&
      __atomic_load_n(&entry.fa_hi, __ATOMIC_RELAXED) == address.hi &&
      __atomic_load_n(&entry.pid_on_fep, __ATOMIC_RELAXED) ==
          initiator >> PeerAddress::kRiBits;
  return same ? index : kNoPeer;
}

std::optional<PeerAddress> AddressTable::LookupPeer(
    uint64_t index) const noexcept {
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
