// SPDX-License-Identifier: Apache-2.0
// A soft device in another class, which overrides the members that differ.
#pragma once

#include <memory>
#include <string>

#include "driver/device.h"
#include "hw/soft/soft_device.h"

namespace heddle::test {

// Thread safety and ownership: as the device's; owns it.
class ForwardingDevice : public Device {
 public:
  const std::string& name() const override { return device_->name(); }
  uint32_t ReadRegister32(uint32_t offset) override {
    return device_->ReadRegister32(offset);
  }
  uint64_t ReadRegister64(uint32_t offset) override {
    return device_->ReadRegister64(offset);
  }
  void WriteRegister32(uint32_t offset, uint32_t value) override {
    device_->WriteRegister32(offset, value);
  }
  void WriteRegister64(uint32_t offset, uint64_t value) override {
    device_->WriteRegister64(offset, value);
  }
  Doorbell doorbell(uint32_t bar2_offset) override {
    return device_->doorbell(bar2_offset);
  }
  PushWindow push_window(uint32_t bar2_offset) override {
    return device_->push_window(bar2_offset);
  }
  ProgressHook progress_hook() override { return device_->progress_hook(); }
  Result<Iova> Map(void* address, size_t bytes) override {
    return device_->Map(address, bytes);
  }
  void Unmap(Iova iova, size_t bytes) override { device_->Unmap(iova, bytes); }
  int interrupt_fd(uint32_t vector) override {
    return device_->interrupt_fd(vector);
  }
  Result<bool> Reset() override { return device_->Reset(); }
  uint64_t now_ns() const override { return device_->now_ns(); }
  bool failed() const override { return device_->failed(); }
  std::string failure() const override { return device_->failure(); }
  void WatchFailure(FailureHook hook) override { device_->WatchFailure(hook); }

 protected:
  // Set before the first call of any member.
  std::unique_ptr<soft::SoftDevice> device_;
};

}  // namespace heddle::test
