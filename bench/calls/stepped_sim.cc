// SPDX-License-Identifier: Apache-2.0
// Stands in for libheddle-sim.so in a benchmark: kind "rtl" is a
// `SteppedDevice`, which works when the benchmark steps it.
#include <arpa/inet.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/calls/stepped_device.h"
#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/device/device_library.h"

namespace heddle::bench {
namespace {

// Benchmarks open their devices once and never close them.
std::vector<SteppedDevice*>& Devices() {
  static std::vector<SteppedDevice*> devices;
  return devices;
}

// The IPv4 address among the options, 0 without.
bool FindAddress(std::span<const HeddleSimOption> options, uint32_t* address) {
  in_addr parsed = {};
  for (const HeddleSimOption& option : options) {
    if (std::string_view(option.name) == "address" &&
        inet_pton(AF_INET, option.value, &parsed) != 1) {
      return false;
    }
  }
  *address = ntohl(parsed.s_addr);
  return true;
}

constexpr sim::device::LibraryDevice kDevices[] = {
    {.kind = contract::kRtlKind,
     .open = [](std::span<const HeddleSimOption> options,
                std::string* message) -> Result<std::unique_ptr<Device>> {
       uint32_t address = 0;
       if (!FindAddress(options, &address)) {
         *message = "stepped: the address is not IPv4";
         return Errno{EINVAL};
       }
       static const auto wire = std::make_shared<test::LoopbackWire>();
       auto device = std::make_unique<SteppedDevice>(wire, address);
       Devices().push_back(device.get());
       return std::unique_ptr<Device>(std::move(device));
     },
     .read_identity = [](std::span<uint64_t> words,
                         std::string* /*message*/) -> Result<bool> {
       test::LoopbackDevice::ReadIdentity(/*rma=*/true, words);
       return true;
     }}};

}  // namespace

extern "C" __attribute__((visibility("default"))) void heddle_bench_step() {
  for (SteppedDevice* device : Devices()) {
    device->Step();
  }
}

}  // namespace heddle::bench

std::span<const heddle::sim::device::LibraryDevice>
heddle::sim::device::LibraryDevices() {
  return bench::kDevices;
}
