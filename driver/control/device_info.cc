// SPDX-License-Identifier: Apache-2.0
#include "driver/control/device_info.h"

#include <cerrno>

#include "driver/base/hex.h"
#include "driver/control/wait.h"

namespace heddle {
namespace {

// The value that a bus returns for a missing device.
constexpr uint32_t kAllOnes = 0xffffffffU;

constexpr uint32_t Field(uint32_t value, uint32_t mask, uint32_t lsb) {
  return (value & mask) >> lsb;
}

constexpr uint32_t kWordBytes = sizeof(uint64_t);
static_assert(contract::kBar0RegionCountOffset < kIdentityWords * kWordBytes,
              "the last register that `InfoOf` reads");

uint32_t Half(const IdentityWords& words, uint32_t offset) {
  return static_cast<uint32_t>(words[offset / kWordBytes] >>
                               (offset % kWordBytes == 0 ? 0 : 32));
}

DeviceCounts CountsOf(const IdentityWords& words) {
  using namespace contract;  // NOLINT: register fields by their full names.
  const uint32_t contexts = Half(words, kBar0ContextLimitsOffset);
  const uint32_t regions = Half(words, kBar0RegionLimitsOffset);
  DeviceCounts counts = {
      .tx_contexts =
          Field(contexts, kBar0ContextLimitsTxMask, kBar0ContextLimitsTxLsb),
      .rx_contexts =
          Field(contexts, kBar0ContextLimitsRxMask, kBar0ContextLimitsRxLsb),
      .completion_queues =
          Field(contexts, kBar0ContextLimitsCqMask, kBar0ContextLimitsCqLsb),
      .counters = Field(regions, kBar0RegionLimitsCountersMask,
                        kBar0RegionLimitsCountersLsb),
      .regions = Field(regions, kBar0RegionLimitsRegionsMask,
                       kBar0RegionLimitsRegionsLsb)};
  // Since contract 1.7: 0 where these are complete.
  if (const uint32_t more = Half(words, kBar0ContextCountsOffset); more != 0) {
    counts.tx_contexts =
        Field(more, kBar0ContextCountsTxMask, kBar0ContextCountsTxLsb);
    counts.rx_contexts =
        Field(more, kBar0ContextCountsRxMask, kBar0ContextCountsRxLsb);
  }
  if (const uint32_t more = Half(words, kBar0QueueCountsOffset); more != 0) {
    counts.completion_queues =
        Field(more, kBar0QueueCountsCqMask, kBar0QueueCountsCqLsb);
    counts.counters =
        Field(more, kBar0QueueCountsCountersMask, kBar0QueueCountsCountersLsb);
  }
  if (const uint32_t more = Half(words, kBar0RegionCountOffset); more != 0) {
    counts.regions = more;
  }
  return counts;
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
    message = device.name() + ": has contract version " +
              std::to_string(major) + ", this driver version " +
              std::to_string(contract::kContractMajor) +
              "; install the driver that belongs to the device";
    return Errno{EPROTO};
  }
  return true;
}

}  // namespace

DeviceInfo InfoOf(const IdentityWords& words) {
  using namespace contract;  // NOLINT: register fields by their full names.
  const uint32_t transport = Half(words, kBar0TransportLimitsOffset);
  const uint32_t datapath = Half(words, kBar0DatapathOffset);
  return {
      .capability = words[kBar0CapabilityOffset / kWordBytes],
      .contract_minor = Field(Half(words, kBar0VersionOffset),
                              kBar0VersionMinorMask, kBar0VersionMinorLsb),
      .counts = CountsOf(words),
      .interrupt_vectors =
          Field(Half(words, kBar0ContextLimitsOffset),
                kBar0ContextLimitsVectorsMask, kBar0ContextLimitsVectorsLsb),
      .messages = Field(transport, kBar0TransportLimitsMessagesMask,
                        kBar0TransportLimitsMessagesLsb),
      .pdcs = Field(transport, kBar0TransportLimitsPdcsMask,
                    kBar0TransportLimitsPdcsLsb),
      .datapath_bits =
          Field(datapath, kBar0DatapathWidthMask, kBar0DatapathWidthLsb),
      .payload_mtu_max_bytes = Field(datapath, kBar0DatapathPayloadMtuMaxMask,
                                     kBar0DatapathPayloadMtuMaxLsb),
      .link_up = (Half(words, kBar0DeviceStatusOffset) &
                  kBar0DeviceStatusLinkMask) != 0,
  };
}

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
  IdentityWords words;
  for (uint32_t i = 0; i < kIdentityWords; ++i) {
    words[i] = device.ReadRegister64(i * kWordBytes);
  }
  return InfoOf(words);
}

}  // namespace heddle
