// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512 with VPCLMULQDQ; called where the CPU has both. Nothing
// inline from elsewhere is used: the linker might keep this file's copy for
// all.
//
// A block of the message may be moved over the D bits behind it, which is what
// a multiplication by x^D does, and be added to what is there: that leaves the
// CRC as it is. In reflected order the low half of 128 bits stands D + 64 bits
// in front of where it is added, and each product is one bit off.
// Source: Gopal et al., "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction", Intel 2009.
#include <immintrin.h>

#include "hw/soft/frame/crc32c_folded.h"
#include "hw/soft/frame/crc32c_shift.h"

namespace heddle::soft::frame {
namespace {

constexpr size_t kVector = 64;
constexpr size_t kLanes = 4;  // As many multiplications are under way at once.
constexpr size_t kBlock = kLanes * kVector;
static_assert(kFoldedLeast == kBlock);
constexpr unsigned kLaneBits = 128;

// x^bits modulo the polynomial, reflected.
constexpr int64_t Power(unsigned bits) {
  uint32_t state = uint32_t{1} << 31;
  for (unsigned i = 0; i < bits; ++i) {
    state = state >> 1 ^ ((state & 1) != 0 ? kCrc32cPolynomial : 0);
  }
  return state;
}

// What moves 128 bits over `kBits`.
template <unsigned kBits>
__m128i Factors() {
  static constexpr int64_t kLow = Power(kBits + 31);
  static constexpr int64_t kHigh = Power(kBits - 33);
  return _mm_set_epi64x(kHigh, kLow);
}

__m128i Fold(__m128i value, __m128i factors, __m128i next) {
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(value, factors, 0x00),
                    _mm_clmulepi64_si128(value, factors, 0x11)),
      next);
}

__m512i Fold(__m512i value, __m512i factors, __m512i next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(
      _mm512_clmulepi64_epi128(value, factors, 0x00),
      _mm512_clmulepi64_epi128(value, factors, 0x11), next, kXorOfThree);
}

__m512i Load(const uint8_t* bytes) {
  return _mm512_loadu_si512(bytes);
}

uint32_t Run(uint32_t state, const uint8_t* bytes, size_t count) {
  // In front of the message's first bits.
  const __m512i before =
      _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i a = _mm512_xor_si512(Load(bytes), before);
  __m512i b = Load(bytes + kVector);
  __m512i c = Load(bytes + 2 * kVector);
  __m512i d = Load(bytes + 3 * kVector);
  bytes += kBlock;
  count -= kBlock;
  const __m512i far = _mm512_broadcast_i32x4(Factors<kBlock * 8>());
  for (; count >= kBlock; bytes += kBlock, count -= kBlock) {
    a = Fold(a, far, Load(bytes));
    b = Fold(b, far, Load(bytes + kVector));
    c = Fold(c, far, Load(bytes + 2 * kVector));
    d = Fold(d, far, Load(bytes + 3 * kVector));
  }
  const __m512i near = _mm512_broadcast_i32x4(Factors<kVector * 8>());
  a = Fold(Fold(Fold(a, near, b), near, c), near, d);
  for (; count >= kVector; bytes += kVector, count -= kVector) {
    a = Fold(a, near, Load(bytes));
  }
  const __m256i back = _mm512_extracti64x4_epi64(a, 1);
  const __m256i front = _mm512_castsi512_si256(a);
  const __m128i lane = Factors<kLaneBits>();
  __m128i rest = _mm256_castsi256_si128(front);
  rest = Fold(rest, lane, _mm256_extracti128_si256(front, 1));
  rest = Fold(rest, lane, _mm256_castsi256_si128(back));
  rest = Fold(rest, lane, _mm256_extracti128_si256(back, 1));
  // 128 bits with the CRC of all of it.
  uint64_t crc =
      _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(rest)));
  crc = _mm_crc32_u64(crc, static_cast<uint64_t>(_mm_extract_epi64(rest, 1)));
  constexpr size_t kWord = sizeof(uint64_t);
  for (; count >= kWord; bytes += kWord, count -= kWord) {
    uint64_t word = 0;
    __builtin_memcpy(&word, bytes, kWord);
    crc = _mm_crc32_u64(crc, word);
  }
  auto result = static_cast<uint32_t>(crc);
  for (; count > 0; ++bytes, --count) {
    result = _mm_crc32_u8(result, *bytes);
  }
  return result;
}

}  // namespace

Crc32cFunction Crc32cFolded() {
  return __builtin_cpu_supports("avx512f") != 0 &&
                 __builtin_cpu_supports("vpclmulqdq") != 0 &&
                 __builtin_cpu_supports("sse4.2") != 0
             ? &Run
             : nullptr;
}

}  // namespace heddle::soft::frame
