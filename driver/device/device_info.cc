// SPDX-License-Identifier: Apache-2.0
#include "driver/device/device_info.h"

#include <cerrno>
#include <cstdio>

#include "driver/device/wait.h"

namespace heddle {
namespace {

// What a bus answers for a device that is not there.
constexpr uint32_t kAllOnes = 0xffffffffU;

std::string Hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", value);
  return text;
}

constexpr uint32_t Field(uint32_t value, uint32_t mask, uint32_t lsb) {
  return (value & mask) >> lsb;
}

DeviceInfo ReadInfo(Device& device) {
  using namespace contract;  // NOLINT: register fields by their full names.
  const uint32_t contexts = device.ReadRegister32(kBar0ContextLimitsOffset);
  const uint32_t transport = device.ReadRegister32(kBar0TransportLimitsOffset);
  const uint32_t datapath = device.ReadRegister32(kBar0DatapathOffset);
  const uint32_t regions = device.ReadRegister32(kBar0RegionLimitsOffset);
  const uint32_t version = device.ReadRegister32(kBar0VersionOffset);
  const uint32_t status = device.ReadRegister32(kBar0DeviceStatusOffset);
  return {
      .capability = device.ReadRegister64(kBar0CapabilityOffset),
      .contract_minor =
          Field(version, kBar0VersionMinorMask, kBar0VersionMinorLsb),
      .tx_contexts =
          Field(contexts, kBar0ContextLimitsTxMask, kBar0ContextLimitsTxLsb),
      .rx_contexts =
          Field(contexts, kBar0ContextLimitsRxMask, kBar0ContextLimitsRxLsb),
      .completion_queues =
          Field(contexts, kBar0ContextLimitsCqMask, kBar0ContextLimitsCqLsb),
      .interrupt_vectors = Field(contexts, kBar0ContextLimitsVectorsMask,
                                 kBar0ContextLimitsVectorsLsb),
      .messages = Field(transport, kBar0TransportLimitsMessagesMask,
                        kBar0TransportLimitsMessagesLsb),
      .pdcs = Field(transport, kBar0TransportLimitsPdcsMask,
                    kBar0TransportLimitsPdcsLsb),
      .regions = Field(regions, kBar0RegionLimitsRegionsMask,
                       kBar0RegionLimitsRegionsLsb),
      .counters = Field(regions, kBar0RegionLimitsCountersMask,
                        kBar0RegionLimitsCountersLsb),
      .datapath_bits =
          Field(datapath, kBar0DatapathWidthMask, kBar0DatapathWidthLsb),
      .payload_mtu_max_bytes = Field(datapath, kBar0DatapathPayloadMtuMaxMask,
                                     kBar0DatapathPayloadMtuMaxLsb),
      .link_up = (status & kBar0DeviceStatusLinkMask) != 0,
  };
}

Result<bool> CheckIdentity(Device& device, std::string& message) {
  const uint32_t magic = device.ReadRegister32(contract::kBar0MagicOffset);
  if (magic == kAllOnes) {
    message = device.name() + ": does not answer (registers read as all " +
              "ones); it is lost or powered down, reset or rescan it";
    return Errno{EIO};
  }
  if (magic != contract::kBar0MagicReset) {
    message = device.name() + ": not a Heddle NIC (magic " + Hex(magic) +
              ", expected " + Hex(contract::kBar0MagicReset) +
              "); bind the driver to another function";
    return Errno{ENODEV};
  }
  const uint32_t major =
      Field(device.ReadRegister32(contract::kBar0VersionOffset),
            contract::kBar0VersionMajorMask, contract::kBar0VersionMajorLsb);
  if (major != contract::kContractMajor) {
    message = device.name() + ": speaks contract version " +
              std::to_string(major) + ", this driver version " +
              std::to_string(contract::kContractMajor) +
              "; install the driver that belongs to the device";
    return Errno{EPROTO};
  }
  return true;
}

}  // namespace

Result<DeviceInfo> WaitReady(Device& device, std::chrono::nanoseconds limit,
                             std::string& message) {
  if (Result<bool> identity = CheckIdentity(device, message); !identity.ok()) {
    return identity.error();
  }
  uint32_t status = 0;
  WaitFor(device, limit, [&] {
    status = device.ReadRegister32(contract::kBar0DeviceStatusOffset);
    return (status & (contract::kBar0DeviceStatusReadyMask |
                      contract::kBar0DeviceStatusFatalMask)) != 0;
  });
  if (device.failed()) {
    message = device.name() + ": failed: " + device.failure();
    return Errno{EIO};
  }
  if ((status & contract::kBar0DeviceStatusFatalMask) != 0) {
    const uint32_t cause =
        device.ReadRegister32(contract::kBar0FatalCauseOffset);
    message = device.name() + ": its firmware stopped with status " +
              Hex(cause) + "; reset the device";
    return Errno{EIO};
  }
  if ((status & contract::kBar0DeviceStatusReadyMask) == 0) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(limit).count();
    message = device.name() + ": firmware not ready after " +
              std::to_string(seconds) + " s; reset the device";
    return Errno{ETIMEDOUT};
  }
  return ReadInfo(device);
}

}  // namespace heddle
