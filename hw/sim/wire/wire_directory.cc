// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/wire_directory.h"

#include <algorithm>

namespace heddle::sim::wire {
namespace {

// Single blocks come from the lower slots as long as there are any, so that
// whole ones are left.
constexpr uint32_t kSingleBlocks = frame::kPdcidBlocks / 4 * 3;

using firmware::PortName;

// Never 0: the space of a job is not.
uint64_t Packed(const PortName& name) {
  return uint64_t{name.space} << 32 | name.port;
}

}  // namespace

bool WireDirectory::IsAttached(FunctionId id) const {
  const uint32_t port = PortOf(id);
  return port < kMaxPorts && IsOwnedBy(memory_->ports[port], id);
}

base::ProcessId::State WireDirectory::LookAt(FunctionId id) const {
  if (id == 0 || PortOf(id) >= kMaxPorts) {
    return base::ProcessId::State::kEnded;
  }
  WirePort& port = memory_->ports[PortOf(id)];
  // A newcomer takes the key away before it writes its process.
  uint64_t key = port.key.load(std::memory_order_acquire);
  const base::ProcessId::State state = port.process.Look();
  if (!IsAttached(id)) {
    return base::ProcessId::State::kEnded;
  }
  if (state == base::ProcessId::State::kEnded) {
    port.key.compare_exchange_strong(key, 0);
  }
  return state;
}

void WireDirectory::ClearDead() const {
  const uint32_t count = std::min(memory_->port_count.load(), kMaxPorts);
  for (uint32_t i = 0; i < count; ++i) {
    if (const auto owner = ReadPort(memory_->ports[i])) {
      (void)IsAlive(owner->id(i));
    }
  }
}

std::optional<uint32_t> WireDirectory::FindAddress(
    const frame::WireAddress& address) {
  const uint32_t count = std::min(memory_->address_count.load(), kMaxAddresses);
  if (last_address_ < count && ReadAddress(Entry(last_address_)) == address) {
    return last_address_;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (ReadAddress(Entry(i)) == address) {
      last_address_ = i;
      return i;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> WireDirectory::AddAddress(
    const frame::WireAddress& address) {
  if (const auto known = FindAddress(address)) {
    return known;
  }
  const uint32_t count = std::min(memory_->address_count.load(), kMaxAddresses);
  if (count < kMaxAddresses) {
    WriteAddress(Entry(count), address);
    memory_->address_count.store(count + 1);
    return count;
  }
  for (uint32_t i = 0; i < kMaxAddresses; ++i) {
    const auto old = ReadAddress(Entry(i));
    if (!old || !IsServed(*old)) {
      WriteAddress(Entry(i), address);
      return i;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> WireDirectory::PortAt(
    const frame::WireAddress& address) const {
  const uint32_t count = std::min(memory_->port_count.load(), kMaxPorts);
  for (uint32_t i = 0; i < count; ++i) {
    const std::optional<PortOwner> owner = ReadPort(memory_->ports[i]);
    if (owner && owner->address == address) {
      return i;
    }
  }
  return std::nullopt;
}

FunctionId WireDirectory::OwnerOf(const Name& name) const {
  const FunctionId id = name.load(std::memory_order_acquire);
  return IsAttached(id) ? id : 0;
}

FunctionId WireDirectory::FindFunction(const frame::Route& route) {
  if (route.kind == frame::Route::Kind::kMac) {
    const uint32_t port = frame::FunctionOfMac(route.mac);
    const auto owner =
        port < kMaxPorts ? ReadPort(memory_->ports[port]) : std::nullopt;
    const bool same =
        owner && frame::PortMac(owner->address, static_cast<uint16_t>(port)) ==
                     route.mac;
    return same ? owner->id(port) : 0;
  }
  if (route.kind == frame::Route::Kind::kNone ||
      route.kind == frame::Route::Kind::kAll) {
    return 0;
  }
  if (route.kind == frame::Route::Kind::kBlock && route.block == last_block_ &&
      route.ip == last_ip_ && OwnerOf(*last_name_) == last_owner_) {
    return last_owner_;  // As most are.
  }
  const std::optional<uint32_t> address = FindAddress(route.ip);
  if (!address) {
    return 0;
  }
  const bool by_block = route.kind == frame::Route::Kind::kBlock;
  const WireAddressMemory& entry = Entry(*address);
  const bool whole =
      route.kind == frame::Route::Kind::kAddress || OwnerOf(entry.tap) != 0;
  const Name* const name = whole      ? &entry.tap
                           : by_block ? &entry.blocks[route.block]
                                      : nullptr;
  const FunctionId id = name != nullptr ? name->load(std::memory_order_acquire)
                                        : FindPort(*address, route);
  const uint32_t port = PortOf(id);
  const auto owner = id != 0 && port < kMaxPorts
                         ? ReadPort(memory_->ports[port])
                         : std::nullopt;
  // Nonsense in the tables takes no frame away from its address.
  if (!owner || owner->id(port) != id || owner->address != route.ip) {
    return 0;
  }
  if (by_block) {
    last_ip_ = route.ip;
    last_block_ = route.block;
    last_name_ = name;
    last_owner_ = id;
  }
  return id;
}

FunctionId WireDirectory::TapOf(uint32_t address) const {
  return OwnerOf(Entry(address).tap);
}

void WireDirectory::SetTap(uint32_t address, FunctionId owner) const {
  Entry(address).tap.store(owner, std::memory_order_release);
}

template <typename Visit>
WireJobName* WireDirectory::ProbeJobNames(uint32_t address, uint32_t port,
                                          Visit visit) const {
  constexpr uint32_t kMix = 0x9e3779b1;  // Keeps ports in a row apart.
  for (uint32_t i = 0; i < kMaxJobNames; ++i) {
    WireJobName& entry =
        Entry(address).job_names[(port * kMix + i) % kMaxJobNames];
    if (visit(entry)) {
      return &entry;
    }
    if (entry.name.load(std::memory_order_acquire) == 0) {
      break;
    }
  }
  return nullptr;
}

FunctionId WireDirectory::PortOwnerOf(uint32_t address,
                                      const PortName& name) const {
  if (name.space == firmware::kAddressSpace) {
    return OwnerOf(Entry(address).ports[name.port]);
  }
  FunctionId owner = 0;
  const bool known =
      ProbeJobNames(address, name.port, [&](const WireJobName& entry) {
        // The owner first: one that came with another name shows that name.
        owner = OwnerOf(entry.owner);
        return entry.name.load(std::memory_order_acquire) == Packed(name);
      }) != nullptr;
  return known ? owner : 0;
}

FunctionId WireDirectory::FindPort(uint32_t address,
                                   const frame::Route& route) const {
  const FunctionId owner = PortOwnerOf(address, route.name());
  return owner != 0 ? owner : AnyOwnerOf(address, route.port);
}

FunctionId WireDirectory::AnyOwnerOf(uint32_t address, uint32_t port) const {
  FunctionId owner = OwnerOf(Entry(address).ports[port]);
  if (owner == 0) {
    ProbeJobNames(address, port, [&](const WireJobName& entry) {
      const FunctionId found = OwnerOf(entry.owner);
      const uint64_t name = entry.name.load(std::memory_order_acquire);
      owner = static_cast<uint32_t>(name) == port ? found : 0;
      return owner != 0;
    });
  }
  return owner;
}

bool WireDirectory::SetPort(uint32_t address, const PortName& name,
                            FunctionId owner) const {
  if (name.space == firmware::kAddressSpace) {
    Entry(address).ports[name.port].store(owner, std::memory_order_release);
    return true;
  }
  WireJobName* entry =
      ProbeJobNames(address, name.port, [&](const WireJobName& at) {
        return at.name.load(std::memory_order_relaxed) == Packed(name);
      });
  if (entry == nullptr) {
    entry = ProbeJobNames(address, name.port, [&](const WireJobName& at) {
      return OwnerOf(at.owner) == 0;
    });
  }
  if (entry == nullptr) {
    return false;
  }
  entry->owner.store(0, std::memory_order_release);
  entry->name.store(Packed(name), std::memory_order_release);
  entry->owner.store(owner, std::memory_order_release);
  return true;
}

void WireDirectory::ReleasePort(uint32_t address, const PortName& name,
                                FunctionId owner) const {
  if (name.space == firmware::kAddressSpace) {
    Release(Entry(address).ports[name.port], owner);
    return;
  }
  WireJobName* const entry =
      ProbeJobNames(address, name.port, [&](const WireJobName& at) {
        return at.name.load(std::memory_order_acquire) == Packed(name);
      });
  if (entry != nullptr) {
    Release(entry->owner, owner);
  }
}

bool WireDirectory::Take(Name& name, FunctionId owner) const {
  FunctionId before = name.load(std::memory_order_acquire);
  return !IsAttached(before) && name.compare_exchange_strong(before, owner);
}

void WireDirectory::Release(Name& name, FunctionId owner) {
  name.compare_exchange_strong(owner, 0);
}

std::optional<uint32_t> WireDirectory::TakeBlock(uint32_t address,
                                                 FunctionId owner) const {
  WireAddressMemory& entry = Entry(address);
  const auto search = [&](uint32_t first,
                          uint32_t end) -> std::optional<uint32_t> {
    const uint32_t count = end - first;
    const uint32_t start = entry.next_block.fetch_add(1);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t block = first + (start + i) % count;
      if (Take(entry.blocks[block], owner)) {
        entry.next_block.store(start + i + 1);
        return block;
      }
    }
    return std::nullopt;
  };
  const auto block = search(0, kSingleBlocks);
  return block ? block : search(kSingleBlocks, frame::kPdcidBlocks);
}

void WireDirectory::ReturnBlock(uint32_t address, uint32_t block,
                                FunctionId owner) const {
  Release(Entry(address).blocks[block], owner);
}

std::optional<uint32_t> WireDirectory::TakeSlot(uint32_t address,
                                                FunctionId owner) const {
  WireAddressMemory& entry = Entry(address);
  const uint32_t start = entry.next_slot.fetch_add(1);
  for (uint32_t i = 0; i < frame::kSlots; ++i) {
    // From the top: single blocks come from below.
    const uint32_t slot = frame::kSlots - 1 - (start + i) % frame::kSlots;
    uint32_t taken = 0;
    while (taken < frame::kSlotBlocks &&
           Take(entry.blocks[slot * frame::kSlotBlocks + taken], owner)) {
      ++taken;
    }
    if (taken == frame::kSlotBlocks) {
      entry.next_slot.store(start + i + 1);
      return slot;
    }
    while (taken-- > 0) {
      Release(entry.blocks[slot * frame::kSlotBlocks + taken], owner);
    }
  }
  return std::nullopt;
}

}  // namespace heddle::sim::wire
