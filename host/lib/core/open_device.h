// SPDX-License-Identifier: Apache-2.0
// Opens the device that a domain's name stands for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/lib/backend/device.h"
#include "host/lib/base/socket_address.h"
#include "host/lib/core/own_addresses.h"
#include "host/lib/core/settings.h"

namespace heddle::core {

// Whether `domain_name` is that of a function in PCI; else it is that of a
// simulated device.
bool IsFunctionName(const char* domain_name);

struct OpenedDevice {
  std::unique_ptr<backend::Device> device;
  base::SocketAddress address;  // Of the device; the port is 0.
};

// Opens the devices of a backend.
struct DeviceOpener {
  // Whether `domain_name` is one of its devices.
  bool (*knows)(const std::string& domain_name) = nullptr;
  // As `OpenDevice`.
  int (*open)(const char* domain_name,
              const std::optional<base::SocketAddress>& source,
              const Settings& settings, const OwnAddresses& own,
              OpenedDevice* opened) = nullptr;
};

// Takes precedence over the devices of our own. Called before the first domain
// is opened, by one thread; `opener` outlives the process.
void AddOpener(const DeviceOpener& opener);

// `source` is the address that was asked for. 0 or a negative errno, and why in
// the log: -FI_EADDRNOTAVAIL, -FI_EOPNOTSUPP, -FI_EBUSY, -FI_ENODEV, -FI_EIO,
// ... as the device says. Throws std::bad_alloc.
int OpenDevice(const char* domain_name,
               const std::optional<base::SocketAddress>& source,
               const Settings& settings, const OwnAddresses& own,
               OpenedDevice* opened);

}  // namespace heddle::core
