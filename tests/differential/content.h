// SPDX-License-Identifier: Apache-2.0
// Bytes and data that an operation carries: known from its number alone, so
// that both ends and the checker agree on them without talking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::differential {

// What receive buffers hold before anything arrives. Also byte of regions that
// was never written.
inline constexpr uint8_t kUntouched = 0xa5;

// What operation `number` of a stream with `seed` carries.
std::vector<uint8_t> Content(uint64_t seed, uint32_t number, size_t bytes);
// Bytes from `at` on.
void CopyContent(uint64_t seed, uint32_t number, size_t at,
                 std::span<uint8_t> bytes);

// Whether `bytes` are those from `at` on.
bool IsContent(uint64_t seed, uint32_t number, size_t at,
               std::span<const uint8_t> bytes);

bool IsUntouched(std::span<const uint8_t> bytes);

// Remote completion data of the operation.
uint64_t ContentData(uint64_t seed, uint32_t number);

uint64_t Digest(std::span<const uint8_t> bytes);

}  // namespace heddle::differential
