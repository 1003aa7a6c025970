// SPDX-License-Identifier: Apache-2.0
// A function of the NIC in PCI, through Linux VFIO.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "driver/device.h"
#include "driver/result.h"
#include "driver/vfio/address_space.h"
#include "driver/vfio/fault_watch.h"
#include "driver/vfio/interrupts.h"
#include "driver/vfio/iommu.h"
#include "driver/vfio/kernel.h"
#include "driver/vfio/pci_function.h"
#include "driver/vfio/region.h"

namespace heddle::vfio {

enum class Attachment : uint8_t {
  kAny,  // iommufd where kernel and rights allow it, else the group.
  kGroup,
  kIommufd,
};

struct OpenOptions {
  Attachment attachment = Attachment::kAny;
  // UUID that the owner of the physical function has set, or empty. Only a
  // group takes one.
  std::string vf_token = {};
};

// As Device. The device becomes `failed()` on an error that the kernel reports,
// on the kernel's request to release the function, when the function does not
// respond, and when a mapping cannot be ended: it is no longer bus master, and
// all interrupts are raised, so that sleeping threads check it.
class VfioDevice final : public Device {
 public:
  // Errors, with a line in `message` that names object, cause and cure: those
  // of `AttachGroup` and `AttachIommufd`, ENXIO when it is not such a NIC.
  // After an error nothing stays open, mapped or masked.
  static Result<std::unique_ptr<VfioDevice>> Open(Kernel& kernel,
                                                  const PciFunction& function,
                                                  const OpenOptions& options,
                                                  std::string& message);
  ~VfioDevice() override;

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override {
    return control_.Read<uint32_t>(offset);
  }
  uint64_t ReadRegister64(uint32_t offset) override {
    return control_.Read<uint64_t>(offset);
  }
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  Doorbell doorbell(uint32_t bar2_offset) override;
  PushWindow push_window(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override { return {}; }
  Result<Iova> Map(void* address, size_t bytes) override {
    return space_->Map(address, bytes);
  }
  Result<Iova> Reserve(void* address, size_t bytes) override {
    return space_->Reserve(address, bytes);
  }
  Result<Iova> MapReserved(Iova iova, void* address, size_t bytes) override {
    return space_->MapReserved(iova, address, bytes);
  }
  void Release(Iova iova, size_t bytes) override {
    space_->Release(iova, bytes);
  }
  std::string Explain(Errno error, size_t bytes) const override {
    return space_->Explain(error, bytes);
  }
  void Unmap(Iova iova, size_t bytes) override;
  int interrupt_fd(uint32_t vector) override { return vectors_.fd(vector); }
  // EIO: the function cannot be reset, or did not respond after it.
  Result<bool> Reset() override;
  bool failed() const override {
    return failed_.load(std::memory_order_acquire);
  }
  std::string failure() const override;

  const char* attachment() const { return iommu_->kind(); }
  // Its accounting, for tests.
  const AddressSpace& address_space() const { return *space_; }

 private:
  VfioDevice(Kernel& kernel, std::string name)
      : kernel_(kernel), name_(std::move(name)) {}

  Result<bool> Start(std::string& message);
  bool SetCommand(uint16_t set, uint16_t clear);
  void Fail(const std::string& why);

  Kernel& kernel_;
  const std::string name_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  bool stopping_ = false;
  std::string failure_;
  // Built from the top, ended from the bottom.
  std::unique_ptr<Iommu> iommu_;
  std::unique_ptr<AddressSpace> space_;
  Region config_;
  Region control_;    // BAR0.
  Region doorbells_;  // BAR2.
  InterruptLine vectors_;
  std::unique_ptr<FaultWatch> watch_;
};

}  // namespace heddle::vfio
