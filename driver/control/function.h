// SPDX-License-Identifier: Apache-2.0
// The NIC's functions in PCI: finds them, opens one through VFIO.
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

// Access to functions; tests supply their own kernel and sysfs.
struct FunctionAccess {
  // UUID that the owner of the physical function has set for its virtual ones;
  // empty: none.
  std::string vf_token = {};
  vfio::Kernel* kernel = &vfio::Kernel::Real();
  vfio::Sysfs sysfs = vfio::Sysfs();
};

// Physical and virtual functions, by address, with any kernel driver.
std::vector<vfio::PciFunction> FindFunctions(const vfio::Sysfs& sysfs);

// Opens the function at `address` ("0000:01:00.0"), then `WaitReady`. This
// process owns it until the device is destroyed.
//
// Errors, with one line in `message` that names object, cause and cure: EINVAL
// for an invalid address, ENODEV without such a function of ours or when
// vfio-pci does not drive it, EBUSY when another process uses it, EACCES, those
// of `WaitReady` and of the kernel.
Result<OpenedDevice> OpenFunction(const std::string& address,
                                  const FunctionAccess& access,
                                  std::string& message);

// Identity of a function.
struct FunctionInfo {
  DeviceInfo device;
  std::optional<PortInfo> port;  // Empty before contract 1.4.
};

// Opens the function, reads its identity and closes it, which resets it.
// Errors: as above.
Result<FunctionInfo> ProbeFunction(const std::string& address,
                                   const FunctionAccess& access,
                                   std::string& message);

}  // namespace heddle
