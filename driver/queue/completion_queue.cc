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
    phase_ ^= 1;
    consumed_before_ += capacity();
  }
  batch_end_ = next_ + batch_;
  ReturnCredits();
}

}  // namespace heddle
