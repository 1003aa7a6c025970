// SPDX-License-Identifier: Apache-2.0
// Takes the place of rtl_open.cc in `heddle-nicd` without a model of the NIC.
#include <cerrno>

#include "hw/sim/rtl/rtl_open.h"

namespace heddle::sim::rtl {

Result<RtlOnMemory> OpenRtlOn(const device::DeviceOptions& /*options*/,
                              device::MappedMemory& /*memory*/,
                              std::string* message) {
  *message = "this build has no device rtl";
  return Errno{ENOTSUP};
}

}  // namespace heddle::sim::rtl
