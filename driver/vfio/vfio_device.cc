// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio/vfio_device.h"

#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::vfio {
namespace {

constexpr uint32_t kMostVectors = 256;

Result<std::unique_ptr<Iommu>> Attach(Kernel& kernel,
                                      const PciFunction& function,
                                      const OpenOptions& options,
                                      std::string& message) {
  const std::string name = function.address.ToString();
  if (!function.bound()) {
    message = name + ": driven by " +
              (function.driver.empty() ? "nobody" : function.driver) +
              ", not by vfio-pci; heddle bind " + name;
    return Errno{ENODEV};
  }
  const bool named = options.attachment == Attachment::kIommufd;
  if (named && (function.vfio_device.empty() || !options.vf_token.empty())) {
    message = name + (function.vfio_device.empty()
                          ? ": this kernel has no device file for it; attach "
                            "it by its group"
                          : ": a VF token requires attachment by the group");
    return Errno{ENOTSUP};
  }
  const bool possible =
      !function.vfio_device.empty() && options.vf_token.empty();
  if (named || (possible && options.attachment == Attachment::kAny)) {
    Result<std::unique_ptr<Iommu>> iommu =
        AttachIommufd(kernel, function, message);
    const bool elsewhere =
        !iommu.ok() && !named &&
        (iommu.error() == Errno{ENOENT} || iommu.error() == Errno{EACCES});
    if (!elsewhere) {
      return iommu;
    }
  }
  return AttachGroup(kernel, function, options.vf_token, message);
}

}  // namespace

Result<std::unique_ptr<VfioDevice>> VfioDevice::Open(
    Kernel& kernel, const PciFunction& function, const OpenOptions& options,
    std::string& message) {
  Result<std::unique_ptr<Iommu>> iommu =
      Attach(kernel, function, options, message);
  if (!iommu.ok()) {
    return iommu.error();
  }
  std::unique_ptr<VfioDevice> device(
      new VfioDevice(kernel, function.address.ToString()));
  device->iommu_ = std::move(iommu.value());
  device->space_ = std::make_unique<AddressSpace>(*device->iommu_);
  const Result<bool> started = device->Start(message);
  if (!started.ok()) {
    message = device->name_ + ": " + message;
    return started.error();
  }
  return device;
}

Result<bool> VfioDevice::Start(std::string& message) {
  const int fd = iommu_->device_fd();
  vfio_device_info info{};
  info.argsz = sizeof(info);
  const Result<int> asked = kernel_.Control(fd, VFIO_DEVICE_GET_INFO, &info);
  if (!asked.ok()) {
    message = std::string("VFIO_DEVICE_GET_INFO: ") +
              std::strerror(static_cast<int>(asked.error()));
    return asked.error();
  }
  if ((info.flags & VFIO_DEVICE_FLAGS_PCI) == 0) {
    message = "not a PCI device; this driver needs one";
    return Errno{ENXIO};
  }
  const auto open = [&](uint32_t index, uint64_t bytes, Region* out) {
    Result<Region> region = Region::Open(kernel_, fd, index, bytes, message);
    if (region.ok()) {
      *out = std::move(region.value());
    }
    return region.ok() ? Result<bool>(true) : Result<bool>(region.error());
  };
  Result<bool> done = open(VFIO_PCI_CONFIG_REGION_INDEX, 0, &config_);
  if (done.ok()) {
    done = open(VFIO_PCI_BAR0_REGION_INDEX, contract::kBar0Bytes, &control_);
  }
  if (done.ok()) {
    done = open(VFIO_PCI_BAR2_REGION_INDEX, contract::kBankBytes, &doorbells_);
  }
  if (!done.ok()) {
    return done;
  }
  if (!SetCommand(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 0)) {
    message = "its command register keeps neither memory space nor bus master";
    return Errno{EIO};
  }
  Result<InterruptLine> vectors = InterruptLine::Open(
      kernel_, fd, VFIO_PCI_MSIX_IRQ_INDEX, kMostVectors, message);
  if (!vectors.ok()) {
    return vectors.error();
  }
  vectors_ = std::move(vectors.value());
  Result<std::unique_ptr<FaultWatch>> watch = FaultWatch::Start(
      kernel_, fd, [this](const std::string& why) { Fail(why); },
      [this] {
        return ReadRegister32(contract::kBar0MagicOffset) != UINT32_MAX;
      },
      message);
  if (!watch.ok()) {
    return watch.error();
  }
  watch_ = std::move(watch.value());
  return true;
}

VfioDevice::~VfioDevice() {
  watch_.reset();
  if (config_.bytes() != 0) {
    // From here on the function starts no access; accesses in flight end in
    // memory that is still mapped.
    [[maybe_unused]] const bool off = SetCommand(0, PCI_COMMAND_MASTER);
  }
}

bool VfioDevice::SetCommand(uint16_t set, uint16_t clear) {
  const auto command = config_.Read<uint16_t>(PCI_COMMAND);
  if (command == UINT16_MAX) {
    return false;  // The function does not answer.
  }
  const auto wanted = static_cast<uint16_t>((command | set) & ~clear);
  if (!config_.Write(PCI_COMMAND, wanted)) {
    return false;
  }
  const auto now = config_.Read<uint16_t>(PCI_COMMAND);
  return now != UINT16_MAX && (now & set) == set && (now & clear) == 0;
}

void VfioDevice::WriteRegister32(uint32_t offset, uint32_t value) {
  if (!control_.Write(offset, value)) {
    Fail("a register of BAR0 cannot be written");
  }
}

void VfioDevice::WriteRegister64(uint32_t offset, uint64_t value) {
  if (!control_.Write(offset, value)) {
    Fail("a register of BAR0 cannot be written");
  }
}

Doorbell VfioDevice::doorbell(uint32_t bar2_offset) {
  if (auto* address = doorbells_.Mapped(bar2_offset, sizeof(uint64_t))) {
    return {.address = reinterpret_cast<volatile uint64_t*>(address),
            .bar2_offset = bar2_offset};
  }
  // A page that may not be mapped: through the kernel.
  return {.notify =
              [](void* cookie, uint32_t offset, uint64_t value) {
                auto* device = static_cast<VfioDevice*>(cookie);
                if (!device->doorbells_.Write(offset, value)) {
                  device->Fail("a doorbell of BAR2 cannot be written");
                }
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

PushWindow VfioDevice::push_window(uint32_t bar2_offset) {
  auto* address = doorbells_.Mapped(
      bar2_offset, uint64_t{contract::kPushWindowSlots} * contract::kDescBytes);
  if (address == nullptr) {
    return {};
  }
  // Linux maps BARs uncached.
  return {.address = reinterpret_cast<volatile uint64_t*>(address),
          .gathers = false,
          .bar2_offset = bar2_offset};
}

void VfioDevice::Unmap(Iova iova, size_t bytes) {
  const Result<bool> done = space_->Unmap(iova, bytes);
  if (!done.ok() && done.error() == Errno{EIO}) {
    Fail("the IOMMU did not end a mapping; the function was stopped");
  }
}

Result<bool> VfioDevice::Reset() {
  if (!kernel_.Control(iommu_->device_fd(), VFIO_DEVICE_RESET, nullptr).ok() ||
      !SetCommand(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 0)) {
    return Errno{EIO};
  }
  return true;
}

void VfioDevice::Fail(const std::string& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) {
      return;
    }
    failure_ = name_ + ": " + why;
    stopping_ = true;
  }
  // Outstanding operations end in error, their memory returns to its owner: it
  // may not be touched from here on.
  [[maybe_unused]] const bool off = SetCommand(0, PCI_COMMAND_MASTER);
  failed_.store(true, std::memory_order_release);
  ReportFailure();
  for (uint32_t i = 0; i < vectors_.count(); ++i) {
    constexpr uint64_t kOne = 1;
    // Full means that its reader has enough to wake for.
    [[maybe_unused]] const ssize_t told =
        write(vectors_.fd(i), &kOne, sizeof(kOne));
  }
}

std::string VfioDevice::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

}  // namespace heddle::vfio
