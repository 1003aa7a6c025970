// SPDX-License-Identifier: Apache-2.0
// Enumerators that an application stored.
#pragma once

#include <cstring>
#include <type_traits>

namespace heddle::base {

// True if `stored` is an enumerator up to `last`; all of libfabric's begin with
// 0. C stores any number, which C++ must not load as the enumeration before
// this is true.
template <typename Enum>
bool AtMost(const Enum& stored, Enum last) {
  static_assert(std::is_unsigned_v<std::underlying_type_t<Enum>>);
  std::underlying_type_t<Enum> number = 0;
  std::memcpy(&number, &stored, sizeof(number));
  return number <= static_cast<std::underlying_type_t<Enum>>(last);
}

}  // namespace heddle::base
