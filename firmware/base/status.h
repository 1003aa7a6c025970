// SPDX-License-Identifier: Apache-2.0
// Outcome of a firmware operation, in the form `fatal_cause` carries to the
// host.
#pragma once

#include <stdint.h>

namespace heddle::firmware {

// Which part reports. Append-only, as the host may show the number.
enum class Module : uint16_t {
  kNone = 0,
  kControlProgram = 1,
  kMailbox = 2,
  kTablePort = 3,
  kPort = 4,
};

// What kind of failure it is.
enum class StatusClass : uint8_t {
  kOk = 0,
  kRefused = 1,   // Another unit reported an error.
  kTimeout = 2,   // Another unit did not finish.
  kMismatch = 3,  // Hardware and firmware do not belong together.
};

// 32 bits: module(16) | code(8) | class(8). Codes are the module's own.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(Module module, uint8_t code, StatusClass status_class)
      : value_(static_cast<uint32_t>(module) << 16 |
               static_cast<uint32_t>(code) << 8 |
               static_cast<uint32_t>(status_class)) {}

  constexpr bool ok() const { return value_ == 0; }
  constexpr StatusClass status_class() const {
    return static_cast<StatusClass>(value_ & 0xff);
  }
  constexpr uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0;
};

}  // namespace heddle::firmware
