// SPDX-License-Identifier: Apache-2.0
// The C entry points of a library of simulated devices.
#include "hw/sim/device/device_library.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>

#include "driver/base/hex.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::sim::device {
namespace {

// Not empty if caller and library do not fit together.
std::string Mismatch(uint32_t device_abi, uint64_t contract_hash) {
  if (device_abi != kDeviceAbi) {
    return "library has Device ABI " + std::to_string(kDeviceAbi) +
           ", the driver " + std::to_string(device_abi) +
           "; install both from one release";
  }
  if (contract_hash != contract::kContractHash) {
    return "library has contract " + Hex(contract::kContractHash) +
           ", the driver " + Hex(contract_hash) +
           "; install both from one release";
  }
  return {};
}

int Report(HeddleSimError* error, int number, const std::string& message) {
  error->error = number;
  const size_t bytes = std::min(message.size(), sizeof(error->message) - 1);
  message.copy(error->message, bytes);
  error->message[bytes] = '\0';
  return number;
}

// Calls `work` for the devices of `kind`. 0, or an error number, which is
// reported.
template <typename Work>
int Call(const std::string& kind, uint32_t device_abi, uint64_t contract_hash,
         HeddleSimError* error, Work work) {
  try {
    std::string message = Mismatch(device_abi, contract_hash);
    if (!message.empty()) {
      return Report(error, EPROTO, message);
    }
    for (const LibraryDevice& device : LibraryDevices()) {
      if (device.kind.name == kind) {
        const Result<bool> done = work(device, &message);
        return done.ok()
                   ? 0
                   : Report(error, static_cast<int>(done.error()), message);
      }
    }
    return Report(error, ENOTSUP, "library has no device of kind " + kind);
  } catch (const std::bad_alloc&) {
    return Report(error, ENOMEM, kind + ": out of memory");
  } catch (const std::exception& exception) {
    return Report(error, EIO, kind + ": " + exception.what());
  }
}

}  // namespace
}  // namespace heddle::sim::device

extern "C" __attribute__((visibility("default"))) heddle::Device*
heddle_sim_open(  // NOLINT: name and parameters of a C symbol.
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    const HeddleSimOption* options, size_t option_count,
    HeddleSimError* error) {
  using heddle::Result;
  heddle::Device* opened = nullptr;
  heddle::sim::device::Call(
      kind, device_abi, contract_hash, error,
      [&](const auto& device, std::string* message) -> Result<bool> {
        auto made = device.open({options, option_count}, message);
        if (!made.ok()) {
          return made.error();
        }
        opened = made.value().release();
        return true;
      });
  return opened;
}

extern "C" __attribute__((visibility("default"))) int
heddle_sim_identity(  // NOLINT: name and parameters of a C symbol.
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    uint64_t* words, size_t count, HeddleSimError* error) {
  return heddle::sim::device::Call(
      kind, device_abi, contract_hash, error,
      [&](const auto& device, std::string* message) {
        return device.read_identity({words, count}, message);
      });
}
