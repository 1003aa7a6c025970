// SPDX-License-Identifier: Apache-2.0
// Consumer side of a completion queue.
#pragma once

#include <cstdint>
#include <span>

#include "driver/base/mmio.h"
#include "driver/dma/dma_buffer.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Reads the entries that the device writes to one completion queue, in order.
//
// An entry is read only when its phase marks it as new, and none is read beyond
// the first that is not. The device needs a credit for each entry that it
// writes; credits return in batches of a quarter of the queue.
//
// Cost: `Poll` and `Peek` are a load and a compare when the queue is empty;
// `Pop` adds one posted 8-byte write per quarter queue. No system call, lock,
// allocation or virtual call in any member but `Create`.
//
// Thread safety: none but where stated; under its queue's lock.
// Ownership: borrows entries and doorbell, which outlive it.
class CompletionQueue {
 public:
  // Binds a queue that was created on the device with this memory, zeroed.
  // Errors: EINVAL unless the size is one the contract allows and the entries
  // are aligned to 4 KiB.
  static Result<CompletionQueue> Create(
      std::span<const contract::Completion> entries, Doorbell consumer);

  // The oldest entry not popped; null when the device has written none. Valid
  // until `Pop`: the device cannot reuse it before its credit is returned.
  const contract::Completion* Peek() const noexcept {
    const contract::Completion* const next = next_;
    if (next == nullptr) {
      __builtin_unreachable();  // `Create` checked it.
    }
    if (static_cast<int64_t>(LoadLast(*next) - first_new_) < 0) {
      return nullptr;
    }
    DmaReadBarrier();
    return next;
  }

  // The next entry, with the last eight bytes that it had.
  struct Candidate {
    const contract::Completion* entry;
    uint64_t last;
  };
  // As `Peek`, for pollers. After `Alert` always the next entry, which the
  // device need not have written yet: `IsUsual` and `Peek` find whether it has.
  Candidate Poll() const noexcept {
    const contract::Completion* const next = next_;
    if (next == nullptr) {
      __builtin_unreachable();  // `Create` checked it.
    }
    const uint64_t last = LoadLast(*next);
    const uint64_t first = __atomic_load_n(&polled_, __ATOMIC_RELAXED);
    if (static_cast<int64_t>(last - first) < 0) {
      return {nullptr, 0};
    }
    DmaReadBarrier();
    return {next, last};
  }
  // Makes every later `Poll` return an entry. Any thread.
  void Alert() noexcept {
    __atomic_store_n(&polled_, kAlerted, __ATOMIC_RELAXED);
  }

  // Whether the device has written the entry, in this pass of the queue, with
  // the last eight bytes that `SetUsual` was given for `kind`.
  enum class Usual : uint8_t { kFirst, kSecond };
  bool IsUsual(const Candidate& candidate, Usual kind) const noexcept {
    return candidate.last == __atomic_load_n(UsualOf(kind), __ATOMIC_RELAXED);
  }
  // Precondition: `Peek` returned the entry.
  void SetUsual(const contract::Completion& entry, Usual kind) noexcept {
    __atomic_store_n(const_cast<uint64_t*>(UsualOf(kind)), LoadLast(entry),
                     __ATOMIC_RELAXED);
  }
  // `IsUsual` is false until `SetUsual`. Any thread.
  void ClearUsual() noexcept {
    __atomic_store_n(&usual_, kNoUsual, __ATOMIC_RELAXED);
    __atomic_store_n(&second_usual_, kNoUsual, __ATOMIC_RELAXED);
  }

  // Takes the entry that `Peek` returned. Precondition: it was not null.
  [[gnu::always_inline]] void Pop() noexcept { Pop(*next_); }
  // The same, given the entry.
  [[gnu::always_inline]] void Pop(const contract::Completion& entry) noexcept {
    next_ = &entry + 1;
    if (next_ == batch_end_) [[unlikely]] {
      EndBatch();
    }
  }

  // Returns the credit of every entry popped to the device; does nothing when
  // it has them. `Pop` does so by itself; call it before waiting without
  // polling.
  void ReturnCredits() noexcept {
    if (entries_read() != returned_) {
      RingConsumer(0);
    }
  }

  // Requests one interrupt when an entry beyond those popped is written, also
  // if it has been written already. Returns credits as well.
  void Arm() noexcept { RingConsumer(contract::kDoorbellCqConsumerArmMask); }

  // At least this number of entries has been written. Cost: a load for each
  // doubling of the size. Any thread, while another one uses the queue.
  uint64_t CountWritten() const noexcept;

  // In entries.
  uint32_t capacity() const noexcept { return 4 * batch_; }
  // Free-running counts; the doorbell has the low 32 bits.
  uint64_t entries_read() const noexcept {
    return consumed_before_ + static_cast<uint64_t>(next_ - entries_);
  }
  uint32_t consumed() const noexcept {
    return static_cast<uint32_t>(entries_read());
  }
  uint32_t credits_returned() const noexcept {
    return static_cast<uint32_t>(returned_);
  }

 private:
  // The phase is the most significant byte of the last eight.
  static constexpr size_t kLastWord = sizeof(contract::Completion) / 8 - 1;
  static constexpr uint32_t kPhaseLsb = 56;
  // Less than every last word: phases are 0 and 1.
  static constexpr uint64_t kAlerted = 0;
  static constexpr uint64_t kNoUsual = UINT64_MAX;
  static_assert(offsetof(contract::Completion, phase) ==
                sizeof(contract::Completion) - 1);
  // As wide as the device's last store: two that only overlap order nothing.
  static uint64_t LoadLast(const contract::Completion& entry) noexcept {
    return LoadShared(reinterpret_cast<const uint64_t*>(&entry) + kLastWord);
  }
  const uint64_t* UsualOf(Usual kind) const noexcept {
    return kind == Usual::kFirst ? &usual_ : &second_usual_;
  }
  static uint8_t LoadPhase(const contract::Completion& entry) noexcept {
    return static_cast<uint8_t>(LoadLast(entry) >> kPhaseLsb);
  }

  CompletionQueue(std::span<const contract::Completion> entries,
                  Doorbell consumer)
      : next_(entries.data()),
        batch_end_(entries.data() + entries.size() / 4),
        entries_(entries.data()),
        batch_(static_cast<uint32_t>(entries.size() / 4)),
        consumer_(consumer) {}

  void RingConsumer(uint64_t flags) noexcept {
    __atomic_store_n(&returned_, entries_read(), __ATOMIC_RELEASE);
    Ring(consumer_,
         uint64_t{consumed()} << contract::kDoorbellCqConsumerCountLsb | flags);
  }

  void EndBatch() noexcept;

  const contract::Completion* next_;  // The oldest entry not popped.
  // `first_new_` or, for ever, `kAlerted`.
  uint64_t polled_ = uint64_t{1} << kPhaseLsb;
  // Above: every poll. Below: every entry.
  uint64_t usual_ = kNoUsual;
  uint64_t second_usual_ = kNoUsual;
  // Last word of a new entry there, at least: less this, it is not negative,
  // while an old one, of the other phase, is. One subtraction and its sign.
  uint64_t first_new_ = uint64_t{1} << kPhaseLsb;
  const contract::Completion* batch_end_;  // `next_` when a quarter is popped.
  // Above: every entry. Below: every quarter of the queue.
  const contract::Completion* entries_;
  uint64_t consumed_before_ = 0;  // This pass of the queue.
  uint64_t returned_ = 0;         // Last count rung.
  uint32_t batch_;                // A quarter.
  Doorbell consumer_;
};

}  // namespace heddle
