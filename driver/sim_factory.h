// SPDX-License-Identifier: Apache-2.0
// The C entry points through which the driver identifies and opens simulated
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
// apply to `kind` in docs/settings.md, in lower case, and `address`, the local
// address (127.0.0.1) in place of `ip`. An unknown option, an invalid value, or
// one other than the default of a setting for other kinds alone is EINVAL.
//
// Returns null and fills `error` on failure: EPROTO, with both numbers in the
// message, when `device_abi` or `contract_hash` differ from those of the
// library's build; ENOTSUP when it has no devices of `kind`.
extern "C" {
using HeddleSimOpen = heddle::Device*(const char* kind, uint32_t device_abi,
                                      uint64_t contract_hash,
                                      const HeddleSimOption* options,
                                      size_t option_count,
                                      HeddleSimError* error);
}

inline constexpr const char* kHeddleSimOpenSymbol = "heddle_sim_open";

// Symbol `heddle_sim_identity`: writes the first `count` words of 64 bits of
// the BAR0 of a device of `kind` to `words`, without opening one. Returns 0, or
// a positive errno with `error` filled; errors as above.
extern "C" {
using HeddleSimIdentity = int(const char* kind, uint32_t device_abi,
                              uint64_t contract_hash, uint64_t* words,
                              size_t count, HeddleSimError* error);
}

inline constexpr const char* kHeddleSimIdentitySymbol = "heddle_sim_identity";
