// SPDX-License-Identifier: Apache-2.0
#include "driver/queue/completion_queue.h"

#include <bit>
#include <cerrno>

namespace heddle {

Result<CompletionQueue> CompletionQueue::Create(
    std::span<const contract::Completion> entries, Doorbell consumer) {
  const auto address = reinterpret_cast<uintptr_t>(entries.data());
  const bool size_ok = std::has_single_bit(entries.size()) &&
                       entries.size() >= size_t{1} << contract::kRingLog2Min &&
                       entries.size() <= size_t{1} << contract::kCqLog2Max;
  if (!size_ok || address % DmaBuffer::kPageBytes != 0) {
    return Errno{EINVAL};
  }
  return CompletionQueue(entries, consumer);
}

void CompletionQueue::EndBatch() noexcept {
  if (next_ == entries_ + capacity()) {
    next_ = entries_;
    uint64_t before = first_new_;
    first_new_ ^= uint64_t{1} << 63;
    // An alert at any time stays.
    (void)__atomic_compare_exchange_n(&polled_, &before, first_new_,
                                      /*weak=*/false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    ClearUsual();
    consumed_before_ += capacity();
  }
  batch_end_ = next_ + batch_;
  ReturnCredits();
}

uint64_t CompletionQueue::CountWritten() const noexcept {
  const uint64_t size = capacity();
  for (;;) {
    // The device writes no more than this and the queue's size.
    const uint64_t returned = __atomic_load_n(&returned_, __ATOMIC_ACQUIRE);
    uint64_t written = returned;
    for (uint64_t step = size; step != 0; step /= 2) {
      const uint64_t last = written + step - 1;
      const uint8_t new_phase = last / size % 2 == 0 ? 1 : 0;
      if (last < returned + size &&
          LoadPhase(entries_[last & (size - 1)]) == new_phase) {
        written += step;
      }
    }
    if (__atomic_load_n(&returned_, __ATOMIC_ACQUIRE) == returned) {
      return written;
    }
  }
}

}  // namespace heddle
