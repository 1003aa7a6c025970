// SPDX-License-Identifier: Apache-2.0
// Value-or-errno for the control path; std::expected is C++23.
#pragma once

#include <utility>
#include <variant>

namespace heddle {

// A positive POSIX error number, e.g. `Errno{EINVAL}`.
enum class Errno : int {};

// Either a `T` or the error. The data path does not use it: a full ring is an
// expected result there, not an error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T state) : state_(std::move(state)) {}  // NOLINT: implicit by design.
  Result(Errno state) : state_(state) {}         // NOLINT: implicit by design.

  bool ok() const { return std::holds_alternative<T>(state_); }

  // Precondition: ok(). Throws std::bad_variant_access otherwise.
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }

  // Precondition: !ok().
  Errno error() const { return std::get<Errno>(state_); }

 private:
  std::variant<T, Errno> state_;
};

}  // namespace heddle
