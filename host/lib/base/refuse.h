// SPDX-License-Identifier: Apache-2.0
// Entries of operation tables for what an object does not do.
#pragma once

#include <rdma/fi_errno.h>

namespace heddle::base {

// Converts to a function of any type that returns `kError` and does nothing.
template <int kError>
struct Refusal {
  template <typename R, typename... A>
  using Function = R (*)(A...);

  template <typename R, typename... A>
  static R Answer(A... /*arguments*/) noexcept {
    return kError;
  }

  template <typename R, typename... A>
  constexpr operator Function<R, A...>() const noexcept {  // NOLINT: the point.
    return &Answer<R, A...>;
  }
};

// The operation is not implemented by this provider.
inline constexpr Refusal<-FI_ENOSYS> kNotImplemented;
// The endpoint is not enabled yet.
inline constexpr Refusal<-FI_EOPBADSTATE> kNotEnabled;
// The endpoint was opened without the capability.
inline constexpr Refusal<-FI_EOPNOTSUPP> kNotOffered;

}  // namespace heddle::base
