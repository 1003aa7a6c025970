// SPDX-License-Identifier: Apache-2.0
// Stands in for libheddle-sim.so: kind "rtl" is a `LoopbackDevice`.
#include <arpa/inet.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "driver/sim_factory.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/host/nic/loopback_device.h"

namespace heddle::test {
namespace {

// The wire of that name; it goes with its last device.
std::shared_ptr<LoopbackWire> FindWire(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<LoopbackWire>> wires;
  const std::lock_guard lock(mutex);
  std::shared_ptr<LoopbackWire> wire = wires[name].lock();
  if (wire == nullptr) {
    wire = std::make_shared<LoopbackWire>();
    wires[name] = wire;
  }
  return wire;
}

Device* Refuse(HeddleSimError* error, int number, const char* message) {
  error->error = number;
  (void)std::snprintf(error->message, sizeof(error->message), "%s", message);
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Device* heddle_sim_open(
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    const HeddleSimOption* options, size_t option_count,
    HeddleSimError* error) {
  if (device_abi != kDeviceAbi || contract_hash != contract::kContractHash) {
    return Refuse(error, EPROTO, "loopback: built for another library");
  }
  if (std::string(kind) != "rtl") {
    return Refuse(error, ENODEV, "loopback: stands in for rtl only");
  }
  LoopbackOptions wanted;
  std::string wire = "default";
  for (size_t i = 0; i < option_count; ++i) {
    const std::string name = options[i].name;
    if (name == "address") {
      in_addr address = {};
      if (inet_pton(AF_INET, options[i].value, &address) != 1) {
        return Refuse(error, EINVAL, "loopback: bad address");
      }
      wanted.ipv4 = ntohl(address.s_addr);
    } else if (name == "wire") {
      wire = options[i].value;
    } else if (name == "dead_ns") {
      wanted.dead =
          std::chrono::nanoseconds(std::strtoll(options[i].value, nullptr, 10));
    }
  }
  return new LoopbackDevice(FindWire(wire), wanted);
}

}  // namespace heddle::test
