// SPDX-License-Identifier: Apache-2.0
// Posting to a receive context of either kind; for the sources of the two.
#pragma once

#include "host/lib/nic/rx_context.h"

namespace heddle::nic {

template <typename Queue, typename Ring, typename Descriptor,
          typename Operation>
template <typename Locking>
int PostingContext<Queue, Ring, Descriptor, Operation>::PostSegments(
    const Operation& operation, std::span<const Segment> segments) noexcept {
  auto& queue = static_cast<Queue&>(*this);
  size_t bytes = 0;
  if (const int error = CountBytes(segments, &bytes); error != 0) {
    return error;
  }
  if (const int error = queue.Check(operation, segments, bytes); error != 0) {
    return error;
  }
  const MappingGuard<Locking> guard(lock(), *registrar_);
  const int error = queue.template Push<Locking>(operation, segments, bytes);
  if (!operation.more || error != 0) {
    ring_->Publish();
  }
  return error;
}

}  // namespace heddle::nic
