// SPDX-License-Identifier: Apache-2.0
// The NIC's functions in PCI: which there are, opening one through VFIO.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/control/admin_queue.h"
#include "driver/control/open.h"
#include "driver/result.h"
#include "driver/vfio/kernel.h"
#include "driver/vfio/pci_function.h"

namespace heddle {

// How functions are reached; tests bring their own kernel and sysfs.
struct FunctionAccess {
  // UUID that the owner of the physical function has set for its virtual ones;
  // empty: none.
  std::string vf_token = {};
  vfio::Kernel* kernel = &vfio::Kernel::Real();
  vfio::Sysfs sysfs = vfio::Sysfs();
};

// Physical and virtual functions, by address, whoever drives them.
std::vector<vfio::PciFunction> FindFunctions(const vfio::Sysfs& sysfs);

// Opens the function at `address` ("0000:01:00.0"), then `WaitReady`. It is
// this process's until the device is destroyed.
//
// Errors, with one line in `message` that names object, cause and cure: EINVAL
// for no address, ENODEV without such a function of ours or when vfio-pci does
// not drive it, EBUSY when another process uses it, EACCES, those of
// `WaitReady` and of the kernel.
Result<OpenedDevice> OpenFunction(const std::string& address,
                                  const FunctionAccess& access,
                                  std::string& message);

// What a function says of itself. Resets it.
struct FunctionInfo {
  DeviceInfo device;
  std::optional<PortInfo> port;  // Empty before contract 1.4.
};

// Opens the function for as long as it takes to ask. Errors: as above.
Result<FunctionInfo> ProbeFunction(const std::string& address,
                                   const FunctionAccess& access,
                                   std::string& message);

}  // namespace heddle
