// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/dma_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heddle::soft {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

// With release order, as the class's comment says.
void StoreLast(uint8_t* to, uint64_t value) {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to))
      .store(value, std::memory_order_release);
}

}  // namespace

Result<Iova> DmaMemory::Map(uint64_t iova, size_t bytes) {
  if (!ranges_.Add(iova, bytes)) {
    return Errno{EINVAL};
  }
  return Iova{iova};
}

void DmaMemory::Unmap(uint64_t iova, size_t bytes) {
  // Overlapping ranges keep their bytes, so that all runs are looked up anew.
  cache_.fill({});
  ranges_.Remove(iova, bytes);
}

uint8_t* DmaMemory::Search(uint64_t iova, uint64_t bytes,
                           std::atomic<uint64_t>& blocked) {
  static std::array<uint8_t, kWord> nothing;
  if (bytes == 0) {
    return nothing.data();
  }
  const sim::base::RangeTable::Span span = ranges_.Around(iova);
  if (span.start == span.end ||
      (bytes > span.end - iova && !ranges_.Covers(iova, bytes))) {
    blocked.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  cache_[next_] = span;
  next_ = (next_ + 1) % kCached;
  return Pointer(iova);
}

bool DmaMemory::Read(uint64_t iova, std::span<uint8_t> out) {
  const uint8_t* const from = ReadPointer(iova, out.size());
  if (from == nullptr) {
    return false;
  }
  std::copy_n(from, out.size(), out.data());
  return true;
}

bool DmaMemory::Write(uint64_t iova, std::span<const uint8_t> bytes) {
  uint8_t* const to = WritePointer(iova, bytes.size());
  if (to == nullptr) {
    return false;
  }
  std::copy_n(bytes.data(), bytes.size(), to);
  return true;
}

bool DmaMemory::Store(uint64_t iova, uint64_t value) {
  uint8_t* const to = WordPointer(iova, kWord);
  if (to == nullptr) {
    return false;
  }
  StoreLast(to, value);
  return true;
}

bool DmaMemory::Publish(uint64_t iova, std::span<const uint8_t, 64> entry) {
  uint8_t* const to = WordPointer(iova, entry.size());
  if (to == nullptr) {
    return false;
  }
  constexpr size_t kFirst = entry.size() - kWord;
  uint64_t last = 0;
  std::memcpy(&last, entry.data() + kFirst, kWord);
  std::memcpy(to, entry.data(), kFirst);
  StoreLast(to + kFirst, last);
  return true;
}

uint8_t* DmaMemory::WordPointer(uint64_t iova, uint64_t bytes) {
  if (iova % kWord != 0) {
    blocked_writes_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  return WritePointer(iova, bytes);
}

}  // namespace heddle::soft
