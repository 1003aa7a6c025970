// SPDX-License-Identifier: Apache-2.0
// libheddle-sim.so: the device `rtl`.
#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/device/device_library.h"
#include "hw/sim/device/settings.h"
#include "hw/sim/rtl/rtl_open.h"

namespace heddle::sim::entry {
namespace {

Result<std::unique_ptr<Device>> Open(std::span<const HeddleSimOption> options,
                                     std::string* message) {
  const auto settings =
      device::ParseSettings(contract::kRtlKind, options, message);
  return settings.ok() ? rtl::OpenRtl(settings.value(), message)
                       : settings.error();
}

constexpr device::LibraryDevice kDevices[] = {
    {.kind = contract::kRtlKind,
     .open = Open,
     .read_identity = rtl::ReadRtlIdentity}};

}  // namespace
}  // namespace heddle::sim::entry

std::span<const heddle::sim::device::LibraryDevice>
heddle::sim::device::LibraryDevices() {
  return entry::kDevices;
}
