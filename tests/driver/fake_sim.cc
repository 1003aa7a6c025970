// SPDX-License-Identifier: Apache-2.0
// A libheddle-sim.so for tests of the loader: opens a FakeDevice whose name
// says what the factory was given.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "driver/sim_factory.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/driver/fake_device.h"

namespace {

heddle::Device* Refuse(HeddleSimError* error, int number, const char* text) {
  error->error = number;
  std::snprintf(error->message, sizeof(error->message), "%s", text);
  return nullptr;
}

}  // namespace

// NOLINTBEGIN(readability-function-size): the factory's signature.
extern "C" __attribute__((visibility("default"))) heddle::Device*
heddle_sim_open(const char* kind, uint32_t device_abi, uint64_t contract_hash,
                const HeddleSimOption* options, size_t option_count,
                HeddleSimError* error) {
  if (device_abi != heddle::kDeviceAbi ||
      contract_hash != heddle::contract::kContractHash) {
    return Refuse(error, EPROTO, "versions differ");
  }
  auto* device = new heddle::FakeDevice();
  std::string name = kind;
  for (size_t i = 0; i < option_count; ++i) {
    const std::string option = options[i].name;
    const std::string value = options[i].value;
    if (option == "refuse") {
      delete device;
      return Refuse(error, EINVAL, "option refuse: not known");
    }
    if (option == "status") {
      device->bus.status = static_cast<uint32_t>(std::stoul(value));
    }
    name.append(" ").append(option).append("=").append(value);
  }
  device->set_name(name);
  return device;
}
// NOLINTEND(readability-function-size)

extern "C" __attribute__((visibility("default"))) int heddle_sim_identity(
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    uint64_t* words, size_t count, HeddleSimError* error) {
  if (device_abi != heddle::kDeviceAbi ||
      contract_hash != heddle::contract::kContractHash) {
    (void)Refuse(error, EPROTO, "versions differ");
    return EPROTO;
  }
  if (std::strcmp(kind, "rtl") != 0) {
    (void)Refuse(error, ENOTSUP, "fake: rtl only");
    return ENOTSUP;
  }
  heddle::FakeDevice device;
  for (size_t i = 0; i < count; ++i) {
    words[i] = device.ReadRegister64(static_cast<uint32_t>(i * 8));
  }
  return 0;
}
