// SPDX-License-Identifier: Apache-2.0
// A device for counting host code: doorbells are memory, work is done on
// demand.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "driver/device.h"
#include "tests/host/nic/loopback_device.h"

namespace heddle::bench {

// A loopback device that a post costs what it costs with hardware, one store
// for a doorbell, and that does nothing until `Step`: then everything posted
// completes at once. A poll has no device to lend its thread to.
//
// Thread safety: none; `Step` while no other member runs.
class SteppedDevice final : public Device {
 public:
  SteppedDevice(std::shared_ptr<test::LoopbackWire> wire, uint32_t ipv4);

  const std::string& name() const override { return inner_.name(); }
  uint32_t ReadRegister32(uint32_t offset) override {
    return inner_.ReadRegister32(offset);
  }
  uint64_t ReadRegister64(uint32_t offset) override {
    return inner_.ReadRegister64(offset);
  }
  // Admin commands are answered before the write returns.
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  Doorbell doorbell(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override { return {}; }
  Result<Iova> Map(void* address, size_t bytes) override {
    return inner_.Map(address, bytes);
  }
  Result<Iova> Reserve(void* address, size_t bytes) override {
    return inner_.Reserve(address, bytes);
  }
  Result<Iova> MapReserved(Iova iova, void* address, size_t bytes) override {
    return inner_.MapReserved(iova, address, bytes);
  }
  void Release(Iova iova, size_t bytes) override {
    inner_.Release(iova, bytes);
  }
  void Unmap(Iova iova, size_t bytes) override { inner_.Unmap(iova, bytes); }
  int interrupt_fd(uint32_t vector) override {
    return inner_.interrupt_fd(vector);
  }
  Result<bool> Reset() override { return inner_.Reset(); }
  bool failed() const override { return inner_.failed(); }
  std::string failure() const override { return inner_.failure(); }
  void WatchFailure(FailureHook hook) override { inner_.WatchFailure(hook); }

  // Takes the doorbells rung since the last step and serves all queues.
  void Step();

 private:
  static constexpr size_t kPages =
      contract::kBankBytes / contract::kDoorbellPageBytes;

  test::LoopbackDevice inner_;
  // First register of each page: the tail, or the consumer count.
  std::array<uint64_t, kPages> words_{};
  std::array<uint64_t, kPages> taken_{};
};

}  // namespace heddle::bench
