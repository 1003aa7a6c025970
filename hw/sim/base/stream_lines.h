// SPDX-License-Identifier: Apache-2.0
// Stores that bypass the caches.
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace heddle::sim::base {

inline constexpr size_t kLineBytes = 64;

// Whether `StreamLines` bypasses the caches on this architecture.
#if defined(__x86_64__)
inline constexpr bool kStreams = true;
#else
inline constexpr bool kStreams = false;
#endif

// Writes `head`, then `body`, to the lines of `kLineBytes` from `to` on, which
// is aligned to one; the rest of the last line becomes zero. For memory that
// another core read last: a cached store first fetches the line from that core,
// streamed ones write it whole to memory.
//
// Order: before a release store that follows `EndStreaming`.
inline void StreamLines(uint8_t* to, std::span<const uint8_t, 16> head,
                        std::span<const uint8_t> body) {
#if defined(__x86_64__)
  constexpr size_t kPart = sizeof(__m128i);
  const auto store = [&to](const uint8_t* from) {
    // NOLINTNEXTLINE: vectors are loaded through pointers to them.
    const auto* part = reinterpret_cast<const __m128i*>(from);
    // NOLINTNEXTLINE
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(part));
    to += kPart;
  };
  store(head.data());
  const uint8_t* from = body.data();
  size_t left = body.size();
  for (; left >= kLineBytes; left -= kLineBytes, from += kLineBytes) {
    store(from);
    store(from + kPart);
    store(from + 2 * kPart);
    store(from + 3 * kPart);
  }
  for (; left >= kPart; left -= kPart, from += kPart) {
    store(from);
  }
  alignas(kPart) uint8_t last[kPart] = {};
  if (left != 0) {
    std::memcpy(last, from, left);
    store(last);
    std::memset(last, 0, left);
  }
  while (reinterpret_cast<uintptr_t>(to) % kLineBytes != 0) {
    store(last);
  }
#else
  std::memcpy(to, head.data(), head.size());
  std::memcpy(to + head.size(), body.data(), body.size());
  const size_t bytes = head.size() + body.size();
  std::memset(to + bytes, 0, -bytes % kLineBytes);
#endif
}

// x86-64: streaming stores are weakly ordered, and a release store is a plain
// one, so `sfence` comes between. Elsewhere they are plain stores.
inline void EndStreaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace heddle::sim::base
