// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/source_map.h"

#include <initializer_list>
#include <utility>

namespace heddle::nic {
namespace {

constexpr size_t kFirstSlots = 64;

}  // namespace

SourceMap::SourceMap() {
  tables_.push_back(std::make_unique<Table>(kFirstSlots));
  current_.store(tables_.back().get(), std::memory_order_release);
}

uint64_t SourceMap::Key(uint32_t ipv4, uint32_t initiator) noexcept {
  // Bit 56 tells {0.0.0.0, 0} from an empty slot.
  return (uint64_t{1} << 56U) | (uint64_t{ipv4} << 24U) |
         (initiator & 0xffffffU);
}

uint64_t SourceMap::HashKey(const FabricAddress& address,
                            uint32_t initiator) noexcept {
  // Each step is a bijection of what came before and the new word (the
  // finalizer of MurmurHash3), so that neighbours never meet.
  uint64_t hash = 0;
  for (const uint64_t word : {address.hi, address.lo, uint64_t{initiator}}) {
    hash ^= word;
    hash = (hash ^ hash >> 33U) * 0xff51afd7ed558ccdULL;
    hash = (hash ^ hash >> 33U) * 0xc4ceb9fe1a85ec53ULL;
    hash ^= hash >> 33U;
  }
  return (uint64_t{1} << 57U) | hash >> 8U;
}

size_t SourceMap::Hash(uint64_t key) noexcept {
  // Multiplicative hashing; neighbours in address and port spread well.
  return static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> 32U);
}

SourceMap::Slot* SourceMap::FindSlot(const Table& table,
                                     uint64_t key) noexcept {
  for (size_t i = Hash(key) & table.mask;; i = (i + 1) & table.mask) {
    Slot& slot = table.slots[i];
    const uint64_t found = slot.key.load(std::memory_order_acquire);
    if (found == key) {
      return &slot;
    }
    if (found == kEmpty) {
      return nullptr;
    }
  }
}

void SourceMap::BeginWrite() noexcept {
  // Stores to slots are releases and loads acquires: a reader that sees one
  // also sees this.
  sequence_.fetch_add(1, std::memory_order_relaxed);
}

void SourceMap::EndWrite() noexcept {
  sequence_.fetch_add(1, std::memory_order_release);
}

uint32_t SourceMap::Find(uint64_t key) const noexcept {
  for (;;) {
    const uint32_t before = sequence_.load(std::memory_order_acquire);
    const Slot* slot = FindSlot(*current_.load(std::memory_order_acquire), key);
    const uint32_t index =
        slot == nullptr ? kNone : slot->index.load(std::memory_order_acquire);
    if (before % 2 == 0 &&
        sequence_.load(std::memory_order_relaxed) == before) {
      return index;
    }
  }
}

bool SourceMap::Place(Table& table, uint64_t key, uint32_t index) noexcept {
  size_t i = Hash(key) & table.mask;
  uint64_t found = table.slots[i].key.load(std::memory_order_relaxed);
  while (found != kEmpty && found != kErased) {
    i = (i + 1) & table.mask;
    found = table.slots[i].key.load(std::memory_order_relaxed);
  }
  table.slots[i].index.store(index, std::memory_order_release);
  table.slots[i].key.store(key, std::memory_order_release);
  return found == kEmpty;
}

void SourceMap::MakeRoom() {
  Table& old = *tables_.back();
  std::vector<std::pair<uint64_t, uint32_t>> pairs;
  pairs.reserve(size_);
  for (size_t i = 0; i <= old.mask; ++i) {
    const uint64_t key = old.slots[i].key.load(std::memory_order_relaxed);
    if (key != kEmpty && key != kErased) {
      pairs.emplace_back(key,
                         old.slots[i].index.load(std::memory_order_relaxed));
    }
  }
  // Mostly erased slots: the same table, swept. Else one of twice the size.
  Table* target = &old;
  if (size_ * 4 > old.mask + 1) {
    tables_.reserve(tables_.size() + 1);
    tables_.push_back(std::make_unique<Table>((old.mask + 1) * 2));
    target = tables_.back().get();
  }
  BeginWrite();
  for (size_t i = 0; target == &old && i <= old.mask; ++i) {
    old.slots[i].key.store(kEmpty, std::memory_order_release);
  }
  for (const auto& [key, index] : pairs) {
    (void)Place(*target, key, index);
  }
  current_.store(target, std::memory_order_release);
  EndWrite();
  used_ = size_;
}

void SourceMap::Set(uint64_t key, uint32_t index) {
  if (Slot* slot = FindSlot(*tables_.back(), key); slot != nullptr) {
    slot->index.store(index, std::memory_order_release);
    return;
  }
  if ((used_ + 1) * 2 > tables_.back()->mask + 1) {
    MakeRoom();
  }
  BeginWrite();
  used_ += Place(*tables_.back(), key, index) ? 1 : 0;
  EndWrite();
  ++size_;
}

void SourceMap::Erase(uint64_t key) noexcept {
  Slot* slot = FindSlot(*tables_.back(), key);
  if (slot != nullptr) {
    BeginWrite();
    slot->key.store(kErased, std::memory_order_release);
    EndWrite();
    --size_;
  }
}

}  // namespace heddle::nic
