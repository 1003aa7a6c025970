// SPDX-License-Identifier: Apache-2.0
#include "driver/control/open.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "driver/sim_factory.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_settings.h"

namespace heddle {
namespace {

// Directory of the object that holds this function, links resolved; empty when
// the loader does not know.
std::string OwnDirectory() {
  Dl_info info{};
  const auto here = reinterpret_cast<void*>(&OwnDirectory);
  if (dladdr(here, &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  const auto file = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string() : file.parent_path().string();
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// The first candidate that exists.
Result<void*> LoadLibrary(const std::string& kind, const std::string& path,
                          std::string& file, std::string& message) {
  const auto* const known = contract::FindKind(contract::kDeviceKinds, kind);
  if (known == nullptr || !known->is_simulated()) {
    message = "device kind " + kind + ": not simulated";
    return Errno{ENODEV};
  }
  const std::string name(known->library);
  const std::vector<std::string> candidates = SimulatorCandidates(
      name, path, getauxval(AT_SECURE) != 0, OwnDirectory());
  for (const std::string& candidate : candidates) {
    std::error_code error;
    if (std::filesystem::exists(candidate, error)) {
      file = candidate;
      break;
    }
  }
  if (file.empty()) {
    message = name + ": not found (looked for " + Join(candidates) +
              "); install it, or set FI_HEDDLE_SIM_PATH to its directory";
    return Errno{ENOENT};
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    message = file + ": cannot be loaded (" + dlerror() +
              "); install that of this version";
    return Errno{ELIBBAD};
  }
  return library;
}

// `symbol` of the library of `kind`; `file` is its name.
Result<void*> LoadSymbol(const std::string& kind, const std::string& path,
                         const char* symbol, std::string& file,
                         std::string& message) {
  const Result<void*> library = LoadLibrary(kind, path, file, message);
  if (!library.ok()) {
    return library.error();
  }
  void* address = dlsym(library.value(), symbol);
  if (address == nullptr) {
    message = file + ": has no symbol " + symbol +
              "; it has no devices of Heddle's, install that of this version";
    return Errno{ELIBBAD};
  }
  return address;
}

// The refusal of an entry point of `file`.
Errno Refusal(const std::string& file, HeddleSimError& error,
              std::string& message) {
  error.message[sizeof(error.message) - 1] = '\0';
  message = file + ": " + error.message;
  return Errno{error.error > 0 ? error.error : EIO};
}

}  // namespace

std::vector<std::string> SimulatorCandidates(const std::string& library,
                                             const std::string& path,
                                             bool secure_execution,
                                             const std::string& own_directory) {
  namespace fs = std::filesystem;
  if (!path.empty() && !secure_execution) {
    std::error_code error;
    const fs::path named(path);
    return {fs::is_directory(named, error) ? (named / library).string() : path};
  }
  // Relative names would be looked up in the working directory.
  if (own_directory.empty()) {
    return {};
  }
  const fs::path own(own_directory);
  const fs::path above = own.parent_path();
  return {(own / library).string(), (above / library).string(),
          (own / "heddle" / library).string(),
          (above / "heddle" / library).string()};
}

Result<std::unique_ptr<Device>> OpenSimulated(const std::string& kind,
                                              const SimulatorOptions& options,
                                              std::string& message) {
  std::string file;
  const Result<void*> factory =
      LoadSymbol(kind, options.path, kHeddleSimOpenSymbol, file, message);
  if (!factory.ok()) {
    return factory.error();
  }
  std::vector<HeddleSimOption> settings;
  for (const auto& [name, value] : options.settings) {
    settings.push_back({.name = name.c_str(), .value = value.c_str()});
  }
  HeddleSimError error{};
  std::unique_ptr<Device> device(reinterpret_cast<HeddleSimOpen*>(
      factory.value())(kind.c_str(), kDeviceAbi, contract::kContractHash,
                       settings.data(), settings.size(), &error));
  if (device == nullptr) {
    return Refusal(file, error, message);
  }
  return device;
}

Result<DeviceInfo> SimulatedInfo(const std::string& kind,
                                 const std::string& path,
                                 std::string& message) {
  std::string file;
  const Result<void*> entry =
      LoadSymbol(kind, path, kHeddleSimIdentitySymbol, file, message);
  if (!entry.ok()) {
    return entry.error();
  }
  HeddleSimError error{};
  IdentityWords words{};
  const int refused = reinterpret_cast<HeddleSimIdentity*>(entry.value())(
      kind.c_str(), kDeviceAbi, contract::kContractHash, words.data(),
      words.size(), &error);
  if (refused != 0) {
    return Refusal(file, error, message);
  }
  return InfoOf(words);
}

Result<OpenedDevice> OnceReady(Result<std::unique_ptr<Device>> device,
                               std::string& message) {
  if (!device.ok()) {
    return device.error();
  }
  const Result<DeviceInfo> info =
      WaitReady(*device.value(), kReadyLimit, message);
  if (!info.ok()) {
    return info.error();
  }
  return OpenedDevice{.device = std::move(device.value()),
                      .info = info.value()};
}

Result<OpenedDevice> OpenDevice(const std::string& kind,
                                const SimulatorOptions& options,
                                std::string& message) {
  return OnceReady(OpenSimulated(kind, options, message), message);
}

}  // namespace heddle
