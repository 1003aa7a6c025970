// SPDX-License-Identifier: Apache-2.0
// A table whose entries exist from their first use on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::soft::engine {

// An entry that does not exist costs at most a pointer, `kChunk` of them one
// together. Those that exist stay where they are until the table ends.
//
// Thread safety: one thread at a time.
template <typename T, uint32_t kChunk>
class LazyTable {
 public:
  explicit LazyTable(uint32_t size)
      : size_(size), chunks_((size + kChunk - 1) / kChunk) {}

  // Entries that there may be.
  uint32_t size() const noexcept { return size_; }

  // Null when there is none yet, or may be none.
  T* Find(uint32_t index) noexcept {
    return Has(index) ? &(*this)[index] : nullptr;
  }
  const T* Find(uint32_t index) const noexcept {
    return Has(index) ? &(*this)[index] : nullptr;
  }

  // Precondition: index < size(). Throws std::bad_alloc.
  T& Make(uint32_t index) {
    if (chunks_[index / kChunk] == nullptr) {
      chunks_[index / kChunk] = std::make_unique<Chunk>();
    }
    return (*this)[index];
  }

  // Precondition: the entry exists.
  T& operator[](uint32_t index) noexcept {
    return (*chunks_[index / kChunk])[index % kChunk];
  }
  const T& operator[](uint32_t index) const noexcept {
    return (*chunks_[index / kChunk])[index % kChunk];
  }

  // Calls `visit(index, entry)` for each that exists, in order.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      for (uint32_t i = 0; chunks_[chunk] != nullptr && i < kChunk; ++i) {
        visit(chunk * kChunk + i, (*chunks_[chunk])[i]);
      }
    }
  }

 private:
  using Chunk = std::array<T, kChunk>;

  bool Has(uint32_t index) const noexcept {
    return index < size_ && chunks_[index / kChunk] != nullptr;
  }

  uint32_t size_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace heddle::soft::engine
