// SPDX-License-Identifier: Apache-2.0
// Stands in for libheddle-sim.so: kinds "rtl" and "soft" are a
// `LoopbackDevice`, the latter with RMA.
#include <arpa/inet.h>
#include <endian.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "driver/sim_factory.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/host/nic/loopback_device.h"

namespace heddle::test {
namespace {

std::mutex mutex;
std::map<std::pair<pid_t, std::string>, std::weak_ptr<LoopbackWire>> wires;

// The wire of that name; it goes with its last device. A forked child has its
// own: a thread of the parent may have held the lock of one that was inherited.
std::shared_ptr<LoopbackWire> FindWire(const std::string& name) {
  const std::lock_guard lock(mutex);
  std::weak_ptr<LoopbackWire>& found = wires[{getpid(), name}];
  std::shared_ptr<LoopbackWire> wire = found.lock();
  if (wire == nullptr) {
    wire = std::make_shared<LoopbackWire>();
    found = wire;
  }
  return wire;
}

// False when `text` is no IP address.
bool ReadAddress(const char* text, LoopbackOptions* options) {
  in_addr ipv4 = {};
  uint64_t words[2] = {};
  if (inet_pton(AF_INET, text, &ipv4) == 1) {
    options->ipv4 = ntohl(ipv4.s_addr);
    return true;
  }
  if (inet_pton(AF_INET6, text, words) != 1) {
    return false;
  }
  options->ipv6 = {
      .lo = be64toh(words[1]), .hi = be64toh(words[0]), .ipv6 = true};
  return true;
}

Device* Refuse(HeddleSimError* error, int number, const char* message) {
  error->error = number;
  (void)std::snprintf(error->message, sizeof(error->message), "%s", message);
  return nullptr;
}

}  // namespace

// For tests of the API, by dlsym: fails every device of the process.
extern "C" __attribute__((visibility("default"))) void
heddle_loopback_fail_all() {
  const std::lock_guard lock(mutex);
  for (const auto& [name, weak] : wires) {
    if (const std::shared_ptr<LoopbackWire> wire = weak.lock()) {
      const std::lock_guard wire_lock(wire->mutex);
      for (LoopbackDevice* device : wire->devices) {
        device->Fail("asked to by the test");
      }
    }
  }
}

// Likewise: DSCP of the youngest device's transmit context.
extern "C" __attribute__((visibility("default"))) uint8_t heddle_loopback_dscp(
    uint32_t context) {
  const std::lock_guard lock(mutex);
  for (const auto& [name, weak] : wires) {
    if (const std::shared_ptr<LoopbackWire> wire = weak.lock()) {
      const std::lock_guard wire_lock(wire->mutex);
      if (!wire->devices.empty()) {
        return wire->devices.back()->dscp(context);
      }
    }
  }
  return 0xff;
}

// NOLINTNEXTLINE(readability-function-size): parameters of a C symbol.
extern "C" __attribute__((visibility("default"))) Device* heddle_sim_open(
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    const HeddleSimOption* options, size_t option_count,
    HeddleSimError* error) {
  if (device_abi != kDeviceAbi || contract_hash != contract::kContractHash) {
    return Refuse(error, EPROTO, "loopback: built for another library");
  }
  const std::string wanted_kind = kind;
  if (wanted_kind != "rtl" && wanted_kind != "soft") {
    return Refuse(error, ENODEV, "loopback: stands in for rtl and soft only");
  }
  LoopbackOptions wanted;
  wanted.rma = wanted_kind == "soft";
  std::string wire = "default";
  for (size_t i = 0; i < option_count; ++i) {
    const std::string name = options[i].name;
    if (name == "address") {
      if (!ReadAddress(options[i].value, &wanted)) {
        return Refuse(error, EINVAL, "loopback: bad address");
      }
    } else if (name == "wire") {
      wire = options[i].value;
    } else if (name == "dead_ns") {
      wanted.dead =
          std::chrono::nanoseconds(std::strtoll(options[i].value, nullptr, 10));
    }
  }
  return new LoopbackDevice(FindWire(wire), wanted);
}

extern "C" __attribute__((visibility("default"))) int heddle_sim_identity(
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    uint64_t* words, size_t count, HeddleSimError* error) {
  if (device_abi != kDeviceAbi || contract_hash != contract::kContractHash) {
    (void)Refuse(error, EPROTO, "loopback: built for another library");
    return EPROTO;
  }
  LoopbackDevice::ReadIdentity(std::string(kind) == "soft", {words, count});
  return 0;
}

}  // namespace heddle::test
