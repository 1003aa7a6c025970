// SPDX-License-Identifier: Apache-2.0
// Opens a device that runs in the process, from the library of its kind.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/control/device_info.h"
#include "driver/device.h"
#include "driver/result.h"

namespace heddle {

struct SimulatorOptions {
  // Value of FI_HEDDLE_SIM_PATH: the directory of the libraries, or one of
  // them, for any kind. Empty, or a process in secure-execution mode: the
  // places relative to our own library.
  std::string path = {};
  // Settings of the device by name, as docs/settings.md lists them.
  std::vector<std::pair<std::string, std::string>> settings = {};
};

// Paths of `library`, that of a kind (contract::DeviceKind), to try in order.
// `own_directory` contains the library of this code.
std::vector<std::string> SimulatorCandidates(const std::string& library,
                                             const std::string& path,
                                             bool secure_execution,
                                             const std::string& own_directory);

// Opens a simulated device of `kind`. Its library stays loaded for the life of
// the process: its devices' code must outlive any of them.
//
// Errors, with one line in `message` that names object, cause and cure: ENODEV
// for a kind that is not simulated, ENOENT without its library, ELIBBAD when
// that cannot be loaded or has no factory, and those of the factory (EPROTO,
// EINVAL, ...).
Result<std::unique_ptr<Device>> OpenSimulated(const std::string& kind,
                                              const SimulatorOptions& options,
                                              std::string& message);

// Identity of simulated devices of `kind`, without opening one. Errors, with
// one line in `message`: as above.
Result<DeviceInfo> SimulatedInfo(const std::string& kind,
                                 const std::string& path, std::string& message);

struct OpenedDevice {
  std::unique_ptr<Device> device;
  DeviceInfo info;
};

// The opened device, once it is ready (`WaitReady`). Errors: the opening's,
// those of `WaitReady`.
Result<OpenedDevice> OnceReady(Result<std::unique_ptr<Device>> device,
                               std::string& message);

// `OpenSimulated`, then `OnceReady`.
Result<OpenedDevice> OpenDevice(const std::string& kind,
                                const SimulatorOptions& options,
                                std::string& message);

}  // namespace heddle
