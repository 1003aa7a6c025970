// SPDX-License-Identifier: Apache-2.0
// Stands in for libheddle-soft.so: its device reaches memory through a model of
// an IOMMU. Addresses of the device are not those of the process, none is used
// twice, and the process ends when the device touches unmapped memory.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/device/device_library.h"
#include "hw/sim/device/settings.h"
#include "hw/soft/dma_memory.h"
#include "hw/soft/engine/dma_port.h"
#include "hw/soft/soft_device.h"
#include "tests/soft/forwarding_device.h"

namespace heddle::sim {
namespace {

constexpr uint64_t kPage = 4096;

// Prints and ends the test program: nobody could tell it from a lucky pass.
[[noreturn]] void Violation(const char* what, uint64_t iova, uint64_t bytes) {
  std::fprintf(stderr, "iommu: %s: %llu bytes at %#llx\n", what,
               static_cast<unsigned long long>(bytes),
               static_cast<unsigned long long>(iova));
  std::_Exit(EXIT_FAILURE);
}

// Mappings are exact to the byte, and an unmapped page is between any two.
//
// Thread safety: none; the device's lock.
class IommuMemory final : public soft::engine::DmaPort {
 public:
  uint64_t Reserve(const void* address, size_t bytes) {
    const auto start = reinterpret_cast<uint64_t>(address);
    const uint64_t iova = next_ + start % kPage;
    next_ += (start % kPage + bytes + 2 * kPage - 1) / kPage * kPage;
    return iova;
  }

  Iova Map(uint64_t iova, void* address, size_t bytes) {
    const auto start = reinterpret_cast<uint64_t>(address);
    mapped_[iova] = {.address = start, .bytes = bytes};
    if (!memory_.Map(start, bytes).ok()) {
      Violation("mapping that wraps", iova, bytes);
    }
    return Iova{iova};
  }

  void Unmap(uint64_t iova, size_t bytes) {
    const auto found = mapped_.find(iova);
    if (found == mapped_.end() || found->second.bytes != bytes) {
      Violation("no such mapping is there to end", iova, bytes);
    }
    memory_.Unmap(found->second.address, bytes);
    mapped_.erase(found);
  }

  size_t mappings() const { return mapped_.size(); }

  [[nodiscard]] bool Read(uint64_t iova, std::span<uint8_t> out) override {
    return memory_.Read(Translate(iova, out.size()), out);
  }
  [[nodiscard]] bool Write(uint64_t iova,
                           std::span<const uint8_t> bytes) override {
    return memory_.Write(Translate(iova, bytes.size()), bytes);
  }
  [[nodiscard]] bool Store(uint64_t iova, uint64_t value) override {
    return memory_.Store(Translate(iova, sizeof(value)), value);
  }
  [[nodiscard]] bool Publish(uint64_t iova,
                             std::span<const uint8_t, 64> entry) override {
    return memory_.Publish(Translate(iova, entry.size()), entry);
  }

 private:
  struct Mapping {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };

  // An access may go on into the mapping behind, if that is so in the process.
  uint64_t Translate(uint64_t iova, uint64_t bytes) const {
    if (bytes == 0) {
      return 0;
    }
    auto entry = mapped_.upper_bound(iova);
    if (entry != mapped_.begin()) {
      --entry;
      const uint64_t address = entry->second.address + (iova - entry->first);
      uint64_t end = entry->first + entry->second.bytes;
      while (end > iova && end - iova < bytes) {
        ++entry;
        if (entry == mapped_.end() || entry->first != end ||
            entry->second.address != address + (end - iova)) {
          break;
        }
        end += entry->second.bytes;
      }
      if (end > iova && end - iova >= bytes) {
        return address;
      }
    }
    Violation("access to what is not mapped", iova, bytes);
  }

  soft::DmaMemory memory_;
  std::map<uint64_t, Mapping> mapped_;  // By IOVA.
  uint64_t next_ = uint64_t{1} << 32;
};

class IommuDevice final : public test::ForwardingDevice {
 public:
  static Result<std::unique_ptr<Device>> Open(
      const device::DeviceOptions& options, std::string* message) {
    std::unique_ptr<IommuDevice> made(new IommuDevice());
    auto device =
        soft::SoftDevice::Open(options, message, {.memory = &made->memory_});
    if (!device.ok()) {
      return device.error();
    }
    made->device_ = std::move(device.value());
    return std::unique_ptr<Device>(std::move(made));
  }

  ~IommuDevice() override {
    device_.reset();
    // A child that was forked unmaps nothing.
    if (memory_.mappings() != 0 && getpid() == owner_) {
      Violation("mappings were not ended", 0, memory_.mappings());
    }
  }

  Result<Iova> Map(void* address, size_t bytes) override {
    const auto start = reinterpret_cast<uintptr_t>(address);
    if (bytes == 0 || start + (bytes - 1) < start) {
      return Errno{EINVAL};
    }
    std::optional<Iova> iova;
    device_->Exclusively([&] {
      iova = memory_.Map(memory_.Reserve(address, bytes), address, bytes);
    });
    return *iova;
  }
  Result<Iova> Reserve(void* address, size_t bytes) override {
    std::optional<uint64_t> iova;
    device_->Exclusively([&] { iova = memory_.Reserve(address, bytes); });
    return Iova{*iova};
  }
  Result<Iova> MapReserved(Iova iova, void* address, size_t bytes) override {
    device_->Exclusively(
        [&] { memory_.Map(static_cast<uint64_t>(iova), address, bytes); });
    return iova;
  }
  void Unmap(Iova iova, size_t bytes) override {
    device_->Exclusively(
        [&] { memory_.Unmap(static_cast<uint64_t>(iova), bytes); });
  }

 private:
  IommuDevice() = default;

  const pid_t owner_ = getpid();
  IommuMemory memory_;
};

Result<std::unique_ptr<Device>> Open(std::span<const HeddleSimOption> options,
                                     std::string* message) {
  const auto settings =
      device::ParseSettings(contract::kSoftKind, options, message);
  return settings.ok() ? IommuDevice::Open(settings.value(), message)
                       : settings.error();
}

constexpr device::LibraryDevice kDevices[] = {
    {.kind = contract::kSoftKind,
     .open = Open,
     .read_identity = [](std::span<uint64_t> words,
                         std::string* /*message*/) -> Result<bool> {
       soft::SoftDevice::ReadIdentity(words);
       return true;
     }}};

}  // namespace

std::span<const device::LibraryDevice> device::LibraryDevices() {
  return kDevices;
}

}  // namespace heddle::sim
