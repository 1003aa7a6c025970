// SPDX-License-Identifier: Apache-2.0
// heddle reset: a function back to its power-on state.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "driver/control/device_info.h"
#include "tools/heddle/command.h"
#include "tools/heddle/device_choice.h"

namespace heddle::tool {

int ResetDevice(const DeviceCommandOptions& options) {
  const OpenedDevice opened = OpenChosen(options.device);
  Device& device = *opened.device;
  if (!device.Reset().ok()) {
    throw CommandError(device.name() + ": does not come back from reset (" +
                       device.failure() + "); power the machine off and on");
  }
  std::string message;
  if (!WaitReady(device, kReadyLimit, message).ok()) {
    throw CommandError(message);
  }
  if (options.json) {
    const nlohmann::ordered_json out = {{"device", device.name()},
                                        {"reset", true}};
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    std::printf("%s: reset, ready again\n", device.name().c_str());
  }
  return kOk;
}

}  // namespace heddle::tool
