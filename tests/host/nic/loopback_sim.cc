// SPDX-License-Identifier: Apache-2.0
// Stands in for the libraries of devices: kind "rtl" is a `LoopbackDevice`.
#include <arpa/inet.h>
#include <endian.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/device/device_library.h"
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

Result<std::unique_ptr<Device>> Open(std::span<const HeddleSimOption> options,
                                     std::string* message) {
  LoopbackOptions wanted;
  std::string wire = "default";
  for (const HeddleSimOption& option : options) {
    const std::string name = option.name;
    if (name == "address") {
      if (!ReadAddress(option.value, &wanted)) {
        *message = "loopback: bad address";
        return Errno{EINVAL};
      }
    } else if (name == "wire") {
      wire = option.value;
    } else if (name == "dead_ns") {
      wanted.dead =
          std::chrono::nanoseconds(std::strtoll(option.value, nullptr, 10));
    }
  }
  return std::unique_ptr<Device>(
      std::make_unique<LoopbackDevice>(FindWire(wire), wanted));
}

constexpr sim::device::LibraryDevice kDevices[] = {
    {.kind = contract::kRtlKind,
     .open = Open,
     .read_identity = [](std::span<uint64_t> words,
                         std::string* /*message*/) -> Result<bool> {
       LoopbackDevice::ReadIdentity(words);
       return true;
     }}};

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

}  // namespace heddle::test

std::span<const heddle::sim::device::LibraryDevice>
heddle::sim::device::LibraryDevices() {
  return test::kDevices;
}
