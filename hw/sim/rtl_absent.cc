// SPDX-License-Identifier: Apache-2.0
// In the place of rtl_open.cc where no model of the NIC is built.
#include <cerrno>

#include "hw/sim/rtl_open.h"

namespace heddle::sim {

Result<std::unique_ptr<Device>> OpenRtl(const DeviceOptions& /*options*/,
                                        std::string* message) {
  *message = "this simulator was built without the device rtl";
  return Errno{ENOTSUP};
}

}  // namespace heddle::sim
