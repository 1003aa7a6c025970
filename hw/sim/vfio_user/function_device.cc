// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/function_device.h"

#include <utility>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/rtl/rtl_open.h"
#include "hw/soft/soft_device.h"

namespace heddle::sim::vfio_user {

Result<FunctionDevice> OpenFunctionDevice(const contract::DeviceKind& kind,
                                          const device::DeviceOptions& options,
                                          GuestDma& memory,
                                          std::string* message) {
  if (kind.name == contract::kRtlKind.name) {
    auto opened = rtl::OpenRtlOn(options, memory, message);
    if (!opened.ok()) {
      return opened.error();
    }
    return FunctionDevice{.device = std::move(opened.value().device),
                          .exclusively = std::move(opened.value().exclusively)};
  }
  auto opened = soft::SoftDevice::Open(options, message, {.memory = &memory});
  if (!opened.ok()) {
    return opened.error();
  }
  soft::SoftDevice* const soft = opened.value().get();
  return FunctionDevice{
      .device = std::move(opened.value()),
      .exclusively = [soft](const std::function<void()>& work) {
        soft->Exclusively(work);
      }};
}

}  // namespace heddle::sim::vfio_user
