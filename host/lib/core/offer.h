// SPDX-License-Identifier: Apache-2.0
// Hints against what a device offers.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <optional>
#include <string>

#include "host/lib/backend/device_profile.h"
#include "host/lib/core/info_memory.h"

namespace heddle::core {

// A device that fi_getinfo knows of.
struct DeviceOffer {
  std::string domain_name;  // "rtl0"
  std::string fabric_name;
  std::string provider_name;
  // Families of addresses that it can have here.
  bool ipv4 = true;
  bool ipv6 = true;
  backend::DeviceProfile profile;
  size_t unexpected_bytes = 0;  // FI_HEDDLE_UNEXPECTED_BYTES.
};

// Why a device is left out: the first attribute that does not fit.
struct Refusal {
  std::string attribute;  // "tx_attr->iov_limit"
  std::string wanted;
  std::string offered;
};

// Empty when `offer` meets `hints`; addresses and names are not resolved here.
std::optional<Refusal> FindRefusal(const Hints& hints,
                                   const DeviceOffer& offer);

// The answer for hints that were not refused, without its addresses and their
// format; null without memory.
InfoPointer MakeInfo(const Hints& hints, uint32_t version,
                     const DeviceOffer& offer);

}  // namespace heddle::core
