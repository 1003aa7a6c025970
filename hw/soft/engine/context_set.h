// SPDX-License-Identifier: Apache-2.0
// A set of context numbers.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace heddle::soft::engine {

// Every member function but `MoveTo` and `ForEach` takes constant time, however
// many contexts there may be.
//
// Thread safety: one thread at a time.
class ContextSet {
 public:
  // Numbers below `size`, at most `kMost`.
  static constexpr uint32_t kMost = 64 * 64;
  explicit ContextSet(uint32_t size) : words_((size + 63) / 64) {}

  bool empty() const noexcept { return summary_ == 0; }

  void Add(uint32_t context) noexcept {
    words_[context / 64] |= uint64_t{1} << context % 64;
    summary_ |= uint64_t{1} << context / 64;
  }
  void Remove(uint32_t context) noexcept {
    const uint32_t word = context / 64;
    words_[word] &= ~(uint64_t{1} << context % 64);
    if (words_[word] == 0) {
      summary_ &= ~(uint64_t{1} << word);
    }
  }

  // The lowest member from `context` on, else the lowest of all. Precondition:
  // not empty.
  uint32_t NextFrom(uint32_t context) const noexcept {
    const uint32_t word = context / 64;
    if (word < words_.size()) {
      const uint64_t here = words_[word] >> context % 64 << context % 64;
      if (here != 0) {
        return First(word, here);
      }
    }
    const uint64_t behind =
        word < 63 ? summary_ >> (word + 1) << (word + 1) : 0;
    const auto next = static_cast<uint32_t>(
        std::countr_zero(behind != 0 ? behind : summary_));
    return First(next, words_[next]);
  }

  // Makes all members those of `other`, too; none is left here.
  void MoveTo(ContextSet* other) noexcept {
    for (; summary_ != 0; summary_ &= summary_ - 1) {
      const auto word = static_cast<uint32_t>(std::countr_zero(summary_));
      other->words_[word] |= words_[word];
      other->summary_ |= uint64_t{1} << word;
      words_[word] = 0;
    }
  }

  // Calls `visit(context)` for each; it may remove that one.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (uint64_t left = summary_; left != 0; left &= left - 1) {
      const auto word = static_cast<uint32_t>(std::countr_zero(left));
      for (uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(First(word, bits));
      }
    }
  }

 private:
  static uint32_t First(uint32_t word, uint64_t bits) noexcept {
    return word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
  }

  std::vector<uint64_t> words_;
  uint64_t summary_ = 0;  // By word: it has members.
};

}  // namespace heddle::soft::engine
