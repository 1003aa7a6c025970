// SPDX-License-Identifier: Apache-2.0
// A libheddle-sim.so for tests of the loader: opens a FakeDevice whose name
// says what the factory was given.
#include <cerrno>
#include <string>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/device/device_library.h"
#include "tests/driver/fake_device.h"

namespace heddle {
namespace {

Result<std::unique_ptr<Device>> Open(std::span<const HeddleSimOption> options,
                                     std::string* message) {
  auto device = std::make_unique<FakeDevice>();
  std::string name = "rtl";
  for (const HeddleSimOption& option : options) {
    const std::string key = option.name;
    if (key == "refuse") {
      *message = "option refuse: not known";
      return Errno{EINVAL};
    }
    if (key == "status") {
      device->bus.status = static_cast<uint32_t>(std::stoul(option.value));
    }
    name.append(" ").append(key).append("=").append(option.value);
  }
  device->set_name(name);
  return std::unique_ptr<Device>(std::move(device));
}

Result<bool> ReadIdentity(std::span<uint64_t> words, std::string* /*message*/) {
  FakeDevice device;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = device.ReadRegister64(static_cast<uint32_t>(i * 8));
  }
  return true;
}

constexpr sim::device::LibraryDevice kDevices[] = {
    {.kind = contract::kRtlKind, .open = Open, .read_identity = ReadIdentity}};

}  // namespace
}  // namespace heddle

std::span<const heddle::sim::device::LibraryDevice>
heddle::sim::device::LibraryDevices() {
  return kDevices;
}
