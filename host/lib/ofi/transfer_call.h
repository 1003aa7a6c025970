// SPDX-License-Identifier: Apache-2.0
// What the data transfer calls of all kinds have in common.
#pragma once

#include <rdma/fi_endpoint.h>

#include <array>
#include <cstdint>

#include "host/lib/nic/region.h"
#include "host/lib/nic/tx_queue.h"
#include "host/lib/ofi/memory_region.h"

namespace heddle::ofi {

inline uint64_t FromContext(void* context) noexcept {
  return reinterpret_cast<uint64_t>(context);
}

inline nic::Segment MakeSegment(const void* buffer, size_t bytes,
                                const void* descriptor) noexcept {
  return {.address = const_cast<void*>(buffer),
          .bytes = bytes,
          .region = MemoryRegion::Find(descriptor, buffer, bytes)};
}

// The segments of a vector call. Precondition: `count` <= kMaxSegments.
inline std::array<nic::Segment, nic::kMaxSegments> MakeSegments(
    const iovec* parts, void** descriptors, size_t count) noexcept {
  std::array<nic::Segment, nic::kMaxSegments> segments;
  for (size_t i = 0; i < count; ++i) {
    segments[i] =
        MakeSegment(parts[i].iov_base, parts[i].iov_len,
                    descriptors == nullptr ? nullptr : descriptors[i]);
  }
  return segments;
}

// The device's flags of a call with flags. Levels of completion below
// FI_DELIVERY_COMPLETE need none: a completion is written when the target has
// acknowledged.
inline uint8_t DescriptorFlags(uint64_t flags, bool selective) noexcept {
  unsigned made = !selective || (flags & FI_COMPLETION) != 0
                      ? unsigned{contract::kTxFlagCompletion}
                      : 0U;
  made |= (flags & FI_REMOTE_CQ_DATA) != 0
              ? unsigned{contract::kTxFlagHeaderData}
              : 0U;
  made |= (flags & FI_FENCE) != 0 ? unsigned{contract::kTxFlagFence} : 0U;
  made |= (flags & FI_DELIVERY_COMPLETE) != 0
              ? unsigned{contract::kTxFlagDeliveryComplete}
              : 0U;
  return static_cast<uint8_t>(made);
}

}  // namespace heddle::ofi
