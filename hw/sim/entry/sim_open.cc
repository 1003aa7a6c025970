// SPDX-License-Identifier: Apache-2.0
// The C entry points of libheddle-sim.so.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "driver/sim_factory.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/device/settings.h"
#include "hw/sim/rtl/rtl_open.h"
#include "hw/soft/soft_device.h"

namespace heddle::sim::entry {
namespace {

std::string Hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%#llx",
                static_cast<unsigned long long>(value));
  return text;
}

// Not empty if caller and library do not fit together.
std::string Mismatch(uint32_t device_abi, uint64_t contract_hash) {
  if (device_abi != kDeviceAbi) {
    return "simulator has Device ABI " + std::to_string(kDeviceAbi) +
           ", the driver " + std::to_string(device_abi) +
           "; install both from one release";
  }
  if (contract_hash != contract::kContractHash) {
    return "simulator has contract " + Hex(contract::kContractHash) +
           ", the driver " + Hex(contract_hash) +
           "; install both from one release";
  }
  return {};
}

void Say(HeddleSimError* error, int number, const std::string& message) {
  error->error = number;
  const size_t bytes = std::min(message.size(), sizeof(error->message) - 1);
  message.copy(error->message, bytes);
  error->message[bytes] = '\0';
}

Device* Refuse(HeddleSimError* error, int number, const std::string& message) {
  Say(error, number, message);
  return nullptr;
}

std::string UnknownKind(const std::string& kind) {
  return "simulator has no device of kind " + kind + ", only rtl and soft";
}

// The device, now the caller's, or the reason why there is none.
template <typename Opened>
Device* Take(Result<std::unique_ptr<Opened>> device, const std::string& message,
             HeddleSimError* error) {
  return device.ok() ? device.value().release()
                     : Refuse(error, static_cast<int>(device.error()), message);
}

Device* Open(const std::string& kind, const HeddleSimOption* options,
             size_t count, HeddleSimError* error) {
  if (kind != "rtl" && kind != "soft") {
    return Refuse(error, EINVAL, UnknownKind(kind));
  }
  std::string message;
  const uint8_t device =
      kind == "soft" ? contract::kObeyedBySoft : contract::kObeyedByRtl;
  auto settings = device::ParseSettings(device, options, count, &message);
  if (!settings.ok()) {
    return Refuse(error, static_cast<int>(settings.error()), message);
  }
  return kind == "soft"
             ? Take(soft::SoftDevice::Open(settings.value(), &message), message,
                    error)
             : Take(rtl::OpenRtl(settings.value(), &message), message, error);
}

Result<bool> ReadIdentity(const std::string& kind, std::span<uint64_t> words,
                          std::string* message) {
  if (kind == "soft") {
    soft::SoftDevice::ReadIdentity(words);
    return true;
  }
  if (kind == "rtl") {
    return rtl::ReadRtlIdentity(words, message);
  }
  *message = UnknownKind(kind);
  return Errno{EINVAL};
}

}  // namespace
}  // namespace heddle::sim::entry

extern "C" __attribute__((visibility("default"))) heddle::Device*
heddle_sim_open(  // NOLINT: name and parameters of a C symbol.
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    const HeddleSimOption* options, size_t option_count,
    HeddleSimError* error) {
  using heddle::sim::entry::Refuse;
  try {
    const std::string mismatch =
        heddle::sim::entry::Mismatch(device_abi, contract_hash);
    if (!mismatch.empty()) {
      return Refuse(error, EPROTO, mismatch);
    }
    return heddle::sim::entry::Open(kind, options, option_count, error);
  } catch (const std::bad_alloc&) {
    return Refuse(error, ENOMEM, "simulator: out of memory");
  } catch (const std::exception& exception) {
    return Refuse(error, EIO, std::string("simulator: ") + exception.what());
  }
}

extern "C" __attribute__((visibility("default"))) int
heddle_sim_identity(  // NOLINT: name and parameters of a C symbol.
    const char* kind, uint32_t device_abi, uint64_t contract_hash,
    uint64_t* words, size_t count, HeddleSimError* error) {
  using heddle::sim::entry::Say;
  try {
    std::string message =
        heddle::sim::entry::Mismatch(device_abi, contract_hash);
    if (!message.empty()) {
      Say(error, EPROTO, message);
      return EPROTO;
    }
    const auto read =
        heddle::sim::entry::ReadIdentity(kind, {words, count}, &message);
    if (read.ok()) {
      return 0;
    }
    Say(error, static_cast<int>(read.error()), message);
  } catch (const std::bad_alloc&) {
    Say(error, ENOMEM, "simulator: out of memory");
  } catch (const std::exception& exception) {
    Say(error, EIO, std::string("simulator: ") + exception.what());
  }
  return error->error;
}
