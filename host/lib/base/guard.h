// SPDX-License-Identifier: Apache-2.0
// No exception crosses the C ABI.
#pragma once

#include <rdma/fi_errno.h>

#include <new>
#include <utility>

namespace heddle::base {

// Returns what `call` returns; -FI_ENOMEM when memory ran out in it.
template <typename Call>
auto Guard(Call&& call) noexcept -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (...) {
    return -FI_EOTHER;
  }
}

}  // namespace heddle::base
