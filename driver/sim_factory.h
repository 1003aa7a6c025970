// SPDX-License-Identifier: Apache-2.0
// The C entry points through which the driver knows and opens simulated
// devices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {
class Device;
}

// One setting of a simulated device, all text, e.g. {"address", "10.0.0.1"}.
struct HeddleSimOption {
  const char* name;
  const char* value;
};

// Why a device could not be opened.
struct HeddleSimError {
  int error;          // Positive errno.
  char message[256];  // One line: object, cause, cure.
};

// Symbol `heddle_sim_open` of the library of a kind of device
// (contract::DeviceKind). The options, all with defaults, are the settings that
// docs/settings.md lists as obeyed by `kind`, in lower case, and `address`, the
// local address (127.0.0.1) in place of `ip`. An unknown option, a bad value,
// or one other than the default of a setting that other kinds alone obey is
// EINVAL.
//
// Returns null and fills `error` on failure. Refused with EPROTO, both numbers
// named, when `device_abi` or `contract_hash` differ from those the library was
// built with; with ENOTSUP when it has no devices of `kind`.
extern "C" {
using HeddleSimOpen = heddle::Device*(const char* kind, uint32_t device_abi,
                                      uint64_t contract_hash,
                                      const HeddleSimOption* options,
                                      size_t option_count,
                                      HeddleSimError* error);
}

inline constexpr const char* kHeddleSimOpenSymbol = "heddle_sim_open";

// Symbol `heddle_sim_identity`: what a device of `kind` is, without opening
// one: the first `count` words of 64 bits of its BAR0 in `words`. 0, or a
// positive errno with `error` filled; refusals as above.
extern "C" {
using HeddleSimIdentity = int(const char* kind, uint32_t device_abi,
                              uint64_t contract_hash, uint64_t* words,
                              size_t count, HeddleSimError* error);
}

inline constexpr const char* kHeddleSimIdentitySymbol = "heddle_sim_identity";
