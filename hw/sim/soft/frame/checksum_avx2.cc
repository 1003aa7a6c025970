// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2; called where the CPU has it. Nothing inline from elsewhere
// is used: the linker might keep this file's copy of it for all.
#include <immintrin.h>

#include "hw/sim/soft/frame/internet_checksum.h"

namespace heddle::sim::soft {
namespace {

constexpr size_t kVector = 32;
static_assert(kChecksumBlock == 2 * kVector);

__m256i Load(const uint8_t* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}

uint64_t Run(const uint8_t* bytes, size_t count) {
  const __m256i low_half = _mm256_set1_epi64x(0xffffffff);
  __m256i even = _mm256_setzero_si256();
  __m256i odd = even;
  __m256i low = even;
  __m256i high = even;
  for (; count != 0; bytes += 2 * kVector, count -= 2 * kVector) {
    const __m256i first = Load(bytes);
    const __m256i second = Load(bytes + kVector);
    even = _mm256_add_epi64(even, _mm256_and_si256(first, low_half));
    odd = _mm256_add_epi64(odd, _mm256_srli_epi64(first, 32));
    low = _mm256_add_epi64(low, _mm256_and_si256(second, low_half));
    high = _mm256_add_epi64(high, _mm256_srli_epi64(second, 32));
  }
  const __m256i all = _mm256_add_epi64(_mm256_add_epi64(even, odd),
                                       _mm256_add_epi64(low, high));
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(all),
                                    _mm256_extracti128_si256(all, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(two)) +
         static_cast<uint64_t>(_mm_extract_epi64(two, 1));
}

}  // namespace

ChecksumFunction ChecksumOfCpu() {
  return __builtin_cpu_supports("avx2") != 0 ? &Run : nullptr;
}

}  // namespace heddle::sim::soft
