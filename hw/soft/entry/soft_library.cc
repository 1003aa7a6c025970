// SPDX-License-Identifier: Apache-2.0
// libheddle-soft.so: the device `soft`.
#include <utility>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/device/device_library.h"
#include "hw/sim/device/settings.h"
#include "hw/soft/soft_device.h"

namespace heddle::soft::entry {
namespace {

Result<std::unique_ptr<Device>> Open(std::span<const HeddleSimOption> options,
                                     std::string* message) {
  const auto settings =
      sim::device::ParseSettings(contract::kSoftKind, options, message);
  if (!settings.ok()) {
    return settings.error();
  }
  auto device = SoftDevice::Open(settings.value(), message);
  if (!device.ok()) {
    return device.error();
  }
  return std::unique_ptr<Device>(std::move(device.value()));
}

constexpr sim::device::LibraryDevice kDevices[] = {
    {.kind = contract::kSoftKind,
     .open = Open,
     .read_identity = [](std::span<uint64_t> words,
                         std::string* /*message*/) -> Result<bool> {
       SoftDevice::ReadIdentity(words);
       return true;
     }}};

}  // namespace
}  // namespace heddle::soft::entry

std::span<const heddle::sim::device::LibraryDevice>
heddle::sim::device::LibraryDevices() {
  return soft::entry::kDevices;
}
