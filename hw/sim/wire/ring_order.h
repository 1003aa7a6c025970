// SPDX-License-Identifier: Apache-2.0
// What a ring orders, told to ThreadSanitizer; nothing in other builds.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

#include <array>
#endif

namespace heddle::sim::wire {

// ThreadSanitizer knows memory by its address, and each device of a process
// maps a wire anew: it misses that the release store of a ring's tail is
// acquired elsewhere. So the record's position names the pair; records of
// different rings that share a name are ordered without need, which is
// harmless.
#if defined(__SANITIZE_THREAD__)
inline void* RingOrderName(uint64_t position) {
  static std::array<uint64_t, 1024> names;
  return &names[position / 16 % names.size()];
}
inline void RingRelease(uint64_t position) {
  __tsan_release(RingOrderName(position));
}
inline void RingAcquire(uint64_t position) {
  __tsan_acquire(RingOrderName(position));
}
#else
inline void RingRelease(uint64_t /*position*/) {}
inline void RingAcquire(uint64_t /*position*/) {}
#endif

}  // namespace heddle::sim::wire
