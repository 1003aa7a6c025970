// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/pci_function.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace heddle::vfio {
namespace fs = std::filesystem;
namespace {

// A number of `base` that fills all of `text`.
template <typename T>
bool ParseNumber(std::string_view text, int base, T limit, T* out) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || stop != end || value > limit) {
    return false;
  }
  *out = value;
  return true;
}

// First line of a small file; empty when there is none.
std::string FirstLine(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The last part of what a link points to; empty when there is none.
std::string LinkName(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? std::string() : target.filename().string();
}

bool ReadHex(const fs::path& file, uint16_t* out) {
  std::string_view text;
  const std::string line = FirstLine(file);
  text = line;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
  }
  return ParseNumber<uint16_t>(text, 16, UINT16_MAX, out);
}

std::string DeviceNode(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(directory / "vfio-dev", error)) {
    return entry.path().filename().string();
  }
  return {};
}

// Description of the function in `directory`; nothing when it has gone.
std::optional<PciFunction> Describe(const fs::path& directory) {
  PciFunction function;
  const auto address = PciAddress::Parse(directory.filename().string());
  if (!address || !ReadHex(directory / "vendor", &function.identity.vendor) ||
      !ReadHex(directory / "device", &function.identity.device)) {
    return std::nullopt;
  }
  function.address = *address;
  function.driver = LinkName(directory / "driver");
  uint32_t group = 0;
  if (ParseNumber<uint32_t>(LinkName(directory / "iommu_group"), 10, UINT32_MAX,
                            &group)) {
    function.iommu_group = group;
  }
  const std::string node = FirstLine(directory / "numa_node");
  if (!ParseNumber<int>(node, 10, INT32_MAX, &function.numa_node)) {
    function.numa_node = -1;
  }
  function.vfio_device = DeviceNode(directory);
  function.physical_function =
      PciAddress::Parse(LinkName(directory / "physfn"));
  return function;
}

}  // namespace

std::optional<PciAddress> PciAddress::Parse(std::string_view text) {
  PciAddress address;
  if (std::count(text.begin(), text.end(), ':') == 2) {
    const size_t colon = text.find(':');
    if (!ParseNumber<uint32_t>(text.substr(0, colon), 16, UINT32_MAX,
                               &address.domain)) {
      return std::nullopt;
    }
    text.remove_prefix(colon + 1);
  }
  const size_t colon = text.find(':');
  const size_t dot = text.find('.');
  if (colon == std::string_view::npos || dot == std::string_view::npos ||
      dot < colon) {
    return std::nullopt;
  }
  constexpr uint8_t kDevices = 32;
  constexpr uint8_t kFunctions = 8;
  if (!ParseNumber<uint8_t>(text.substr(0, colon), 16, UINT8_MAX,
                            &address.bus) ||
      !ParseNumber<uint8_t>(text.substr(colon + 1, dot - colon - 1), 16,
                            kDevices - 1, &address.device) ||
      !ParseNumber<uint8_t>(text.substr(dot + 1), 16, kFunctions - 1,
                            &address.function)) {
    return std::nullopt;
  }
  return address;
}

std::string PciAddress::ToString() const {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, bus,
                device, function);
  return text.data();
}

std::string Sysfs::PathOf(const PciAddress& address) const {
  return root_ + "/bus/pci/devices/" + address.ToString();
}

std::vector<PciFunction> Sysfs::Find(const PciIdentity& identity) const {
  std::vector<PciFunction> found;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(root_ + "/bus/pci/devices", error)) {
    std::optional<PciFunction> function = Describe(entry.path());
    if (function && function->identity == identity) {
      found.push_back(std::move(*function));
    }
  }
  std::sort(found.begin(), found.end(),
            [](const PciFunction& a, const PciFunction& b) {
              return a.address < b.address;
            });
  return found;
}

Result<PciFunction> Sysfs::Look(const PciAddress& address) const {
  std::optional<PciFunction> function = Describe(PathOf(address));
  if (!function) {
    return Errno{ENODEV};
  }
  return std::move(*function);
}

Result<bool> Sysfs::WriteFile(const std::string& path, std::string_view text,
                              std::string& message) const {
  // A stream would hide the kernel's answer.
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0) {
    const ssize_t written = write(fd, text.data(), text.size());
    error = written < 0 ? errno : 0;
    close(fd);
  }
  if (error == 0) {
    return true;
  }
  message = path + ": cannot be written (" + std::strerror(error) + ")";
  if (error == EACCES || error == EPERM) {
    message += "; run as root";
  }
  return Errno{error};
}

Result<bool> Sysfs::Bind(const PciAddress& address,
                         std::string& message) const {
  const std::string name = address.ToString();
  const Result<PciFunction> before = Look(address);
  if (!before.ok()) {
    message = name + ": no such PCI function; lspci lists them";
    return before.error();
  }
  if (before.value().bound()) {
    return true;
  }
  if (!fs::exists(root_ + "/bus/pci/drivers/" + PciFunction::kDriver)) {
    message = name + ": this kernel has no driver vfio-pci; modprobe vfio-pci";
    return Errno{ENXIO};
  }
  const std::string path = PathOf(address);
  Result<bool> written =
      WriteFile(path + "/driver_override", PciFunction::kDriver, message);
  if (written.ok() && !before.value().driver.empty()) {
    written = WriteFile(path + "/driver/unbind", name, message);
  }
  if (written.ok()) {
    written = WriteFile(root_ + "/bus/pci/drivers_probe", name, message);
  }
  if (!written.ok()) {
    return written.error();
  }
  const Result<PciFunction> after = Look(address);
  if (!after.ok() || !after.value().bound()) {
    message = name +
              ": vfio-pci did not bind to it; check the kernel's log, and that "
              "the IOMMU is on (intel_iommu=on)";
    return Errno{ENXIO};
  }
  return true;
}

Result<bool> Sysfs::Unbind(const PciAddress& address,
                           std::string& message) const {
  const std::string name = address.ToString();
  const Result<PciFunction> before = Look(address);
  if (!before.ok()) {
    message = name + ": no such PCI function; lspci lists them";
    return before.error();
  }
  const std::string& driver = before.value().driver;
  if (!driver.empty() && !before.value().bound()) {
    message = name + ": driven by " + driver + ", not by vfio-pci";
    return Errno{EBUSY};
  }
  const std::string path = PathOf(address);
  Result<bool> written = true;
  if (!driver.empty()) {
    written = WriteFile(path + "/driver/unbind", name, message);
  }
  if (written.ok()) {
    written = WriteFile(path + "/driver_override", "\n", message);
  }
  if (written.ok()) {
    written = WriteFile(root_ + "/bus/pci/drivers_probe", name, message);
    // No driver may bind to it: that is no error.
    if (!written.ok() && written.error() == Errno{EINVAL}) {
      written = true;
    }
  }
  return written;
}

}  // namespace heddle::vfio
