// SPDX-License-Identifier: Apache-2.0
// Stands in for libheddle-sim.so in a benchmark: kind "rtl" is a
// `SteppedDevice`, and whoever measures says when it works.
#include <arpa/inet.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/calls/stepped_device.h"
#include "driver/sim_factory.h"

namespace heddle::bench {
namespace {

// Benchmarks open their devices once and never close them.
std::vector<SteppedDevice*>& Devices() {
  static std::vector<SteppedDevice*> devices;
  return devices;
}

Device* Refuse(HeddleSimError* error, int number, const char* message) {
  error->error = number;
  (void)std::snprintf(error->message, sizeof(error->message), "%s", message);
  return nullptr;
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

}  // namespace

// NOLINTBEGIN(readability-function-size): the factory's signature.
extern "C" __attribute__((visibility("default"))) Device* heddle_sim_open(
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    const HeddleSimOption* options, size_t option_count,
    HeddleSimError* error) {
  if (device_abi != kDeviceAbi || contract_hash != contract::kContractHash) {
    return Refuse(error, EPROTO, "stepped: built for another library");
  }
  if (std::string_view(kind) != "rtl") {
    return Refuse(error, ENODEV, "stepped: stands in for rtl only");
  }
  uint32_t address = 0;
  if (!FindAddress({options, option_count}, &address)) {
    return Refuse(error, EINVAL, "stepped: the address is not IPv4");
  }
  static const auto wire = std::make_shared<test::LoopbackWire>();
  auto* device = new SteppedDevice(wire, address);
  Devices().push_back(device);
  return device;
}

extern "C" __attribute__((visibility("default"))) int heddle_sim_identity(
    const char* /*kind*/, uint32_t device_abi, uint64_t contract_hash,
    uint64_t* words, size_t count, HeddleSimError* error) {
  if (device_abi != kDeviceAbi || contract_hash != contract::kContractHash) {
    (void)Refuse(error, EPROTO, "stepped: built for another library");
    return EPROTO;
  }
  test::LoopbackDevice::ReadIdentity(/*rma=*/true, {words, count});
  return 0;
}

// NOLINTEND(readability-function-size)

extern "C" __attribute__((visibility("default"))) void heddle_bench_step() {
  for (SteppedDevice* device : Devices()) {
    device->Step();
  }
}

}  // namespace heddle::bench
