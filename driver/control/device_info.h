// SPDX-License-Identifier: Apache-2.0
// Identity of a device, and whether this driver supports it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Number of objects of each kind of a device.
struct DeviceCounts {
  uint32_t tx_contexts = 0;
  uint32_t rx_contexts = 0;
  uint32_t completion_queues = 0;
  uint32_t counters = 0;
  uint32_t regions = 0;  // Memory that peers may access.
};

struct DeviceInfo {
  uint64_t capability = 0;  // Bits `contract::kCapability*`.
  uint32_t contract_minor = 0;
  DeviceCounts counts;
  uint32_t interrupt_vectors = 0;
  uint32_t messages = 0;
  uint32_t pdcs = 0;
  uint32_t datapath_bits = 0;
  uint32_t payload_mtu_max_bytes = 0;
  bool link_up = false;

  bool Has(uint64_t capabilities) const {
    return (capability & capabilities) == capabilities;
  }
};

// BAR0 registers from offset 0 on, which identify a device.
inline constexpr size_t kIdentityWords = 8;
using IdentityWords = std::array<uint64_t, kIdentityWords>;

// Decodes them.
DeviceInfo InfoOf(const IdentityWords& words);

// Checks identity and contract version, then waits until the device's firmware
// serves the admin queue.
//
// Errors, with one line in `message` that names device, cause and cure: ENODEV
// for another kind of device, EPROTO for another contract major version (both
// numbers named), ETIMEDOUT when it does not become ready, EIO when it failed.
Result<DeviceInfo> WaitReady(Device& device, std::chrono::nanoseconds limit,
                             std::string& message);

inline constexpr std::chrono::seconds kReadyLimit{30};

// A counter since reset. Reads one register.
inline uint64_t ReadStatistic(Device& device, contract::Statistic statistic) {
  return device.ReadRegister64(contract::kBar0StatisticsOffset +
                               static_cast<uint32_t>(statistic) *
                                   contract::kBar0StatisticsStride);
}

}  // namespace heddle
