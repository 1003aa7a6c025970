// SPDX-License-Identifier: Apache-2.0
// In the place of rtl_open.cc where no model of the NIC is built.
#include <cerrno>

#include "hw/sim/rtl/rtl_open.h"

namespace heddle::sim::rtl {
namespace {

constexpr const char* kAbsent =
    "this simulator was built without the device rtl";

}  // namespace

Result<std::unique_ptr<Device>> OpenRtl(
    const device::DeviceOptions& /*options*/, std::string* message) {
  *message = kAbsent;
  return Errno{ENOTSUP};
}

Result<RtlOnMemory> OpenRtlOn(const device::DeviceOptions& /*options*/,
                              device::MappedMemory& /*memory*/,
                              std::string* message) {
  *message = kAbsent;
  return Errno{ENOTSUP};
}

Result<bool> ReadRtlIdentity(std::span<uint64_t> /*words*/,
                             std::string* message) {
  *message = kAbsent;
  return Errno{ENOTSUP};
}

}  // namespace heddle::sim::rtl
