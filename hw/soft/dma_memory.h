// SPDX-License-Identifier: Apache-2.0
// Host memory as the soft device reaches it: this process's own, within the
// mapped ranges only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/sim/base/range_table.h"
#include "hw/soft/engine/dma_port.h"

namespace heddle::soft {

// An IOVA is an address of this process. An access with a byte outside the
// mapped ranges touches nothing, is counted, and fails; one of no bytes
// succeeds anywhere.
//
// Order: what one thread of the device stores becomes visible to the host no
// later than the last word of a completion (or a cell) stored after it, when
// the host reads that word with acquire order. On x86-64 any order of stores
// does; on aarch64 plain stores may pass each other, so that word alone is a
// release store, which everything before it in program order stays in front of.
// What other threads of the device stored before it is covered, too: the
// device's lock was handed over in between, and release is cumulative.
//
// Thread safety: none but the counters, which any thread may read. The owner
// keeps `Map` and `Unmap` apart from accesses: so none is under way in `Unmap`,
// and none begins in the range after it. A pointer is good until the next
// `Unmap`: not longer than the owner's lock is held.
class DmaMemory final : public engine::DmaPort {
 public:
  // Errors: EINVAL for an empty or wrapping range.
  Result<Iova> Map(uint64_t iova, size_t bytes);
  // Ends one mapping of exactly this range, if there is one.
  void Unmap(uint64_t iova, size_t bytes);
  // Ranges mapped now.
  size_t ranges() const { return ranges_.size(); }

  // The bytes themselves; null if one of them is not mapped. For `bytes` of 0
  // an arbitrary pointer that is not null.
  [[nodiscard]] const uint8_t* ReadPointer(uint64_t iova, uint64_t bytes) {
    return Find(iova, bytes, blocked_reads_);
  }
  [[nodiscard]] uint8_t* WritePointer(uint64_t iova, uint64_t bytes) {
    return Find(iova, bytes, blocked_writes_);
  }

  [[nodiscard]] bool Read(uint64_t iova, std::span<uint8_t> out) override;
  [[nodiscard]] bool Write(uint64_t iova,
                           std::span<const uint8_t> bytes) override;
  // Also refused, as if unmapped: an address that is not a multiple of 8.
  [[nodiscard]] bool Store(uint64_t iova, uint64_t value) override;
  [[nodiscard]] bool Publish(uint64_t iova,
                             std::span<const uint8_t, 64> entry) override;

  // True if all bytes are mapped; counts nothing.
  bool Covers(uint64_t iova, uint64_t bytes) const {
    return ranges_.Covers(iova, bytes);
  }

  uint64_t blocked_reads() const { return blocked_reads_; }
  uint64_t blocked_writes() const { return blocked_writes_; }

 private:
  // Mapped runs that were used last: rings, queues and buffers of a fast path
  // are few.
  static constexpr size_t kCached = 8;

  uint8_t* Find(uint64_t iova, uint64_t bytes, std::atomic<uint64_t>& blocked) {
    for (const sim::base::RangeTable::Span& span : cache_) {
      if (iova >= span.start && iova < span.end && bytes <= span.end - iova) {
        return Pointer(iova);
      }
    }
    return Search(iova, bytes, blocked);
  }
  uint8_t* WordPointer(uint64_t iova, uint64_t bytes);
  uint8_t* Search(uint64_t iova, uint64_t bytes,
                  std::atomic<uint64_t>& blocked);
  static uint8_t* Pointer(uint64_t iova) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an IOVA is an address here.
    return reinterpret_cast<uint8_t*>(iova);
  }

  std::array<sim::base::RangeTable::Span, kCached> cache_{};
  size_t next_ = 0;  // Entry of the cache to be replaced.
  sim::base::RangeTable ranges_;
  std::atomic<uint64_t> blocked_reads_ = 0;
  std::atomic<uint64_t> blocked_writes_ = 0;
};

}  // namespace heddle::soft
