// SPDX-License-Identifier: Apache-2.0
// A simulated NIC function in PCI.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/result.h"
#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/base/interrupt_fds.h"
#include "hw/sim/device/device_options.h"
#include "hw/sim/pci/config_space.h"
#include "hw/sim/vfio_user/function.h"
#include "hw/sim/vfio_user/function_device.h"
#include "hw/sim/vfio_user/guest_dma.h"

namespace heddle::sim::vfio_user {

// BAR0 holds the registers, BAR2 the doorbells, BAR4 the MSI-X table, whose
// entries the client interprets. All BARs are trapped: a write is an event.
//
// Thread safety: its session's thread; the device has one of its own, and a
// lock over all accesses to the client's memory.
class NicFunction final : public Function {
 public:
  // Errors: those of the device, one line in `message`.
  static Result<std::unique_ptr<NicFunction>> Open(
      const device::DeviceOptions& options, const pci::ConfigOptions& config,
      std::string* message,
      const contract::DeviceKind& kind = contract::kSoftKind);
  // The same on any device.
  using Opener =
      std::function<Result<FunctionDevice>(GuestDma& memory, std::string*)>;
  static Result<std::unique_ptr<NicFunction>> Open(
      Opener opener, const pci::ConfigOptions& config, std::string* message);

  uint64_t region_bytes(uint32_t region) const override;
  bool ReadRegion(uint32_t region, uint64_t offset,
                  std::span<std::byte> out) override;
  bool WriteRegion(uint32_t region, uint64_t offset,
                   std::span<const std::byte> bytes) override;
  uint32_t interrupts(uint32_t index) const override;
  void Connect(uint32_t index, uint32_t interrupt,
               base::OwnedFd event) override;
  void Trigger(uint32_t index, uint32_t interrupt) override;
  Result<bool> MapDma(uint64_t iova, uint64_t bytes, base::OwnedFd file,
                      uint64_t offset, bool writable) override;
  Result<size_t> UnmapDma(uint64_t first, uint64_t last) override;
  // One that does not come back reaches no memory before a reset that it
  // answers.
  Result<bool> Reset() override;

  // The client has gone: as after power-on, no memory, no interrupts. A device
  // that failed, or that does not come back from its reset, is another one from
  // now on: what the client made on it must not reach the next one's memory.
  void Detach();

  // Called with the number of virtual functions that are on, when it changes.
  void OnVirtualFunctions(std::function<void(uint16_t active)> listener) {
    on_virtual_functions_ = std::move(listener);
  }

  static constexpr uint32_t kVectors = base::InterruptFds::kVectors;
  // Readable when the device has raised the vector; then call `Forward`.
  int raised_fd(uint32_t vector) {
    return backend_.device->interrupt_fd(vector);
  }
  void Forward(uint32_t vector);

  // Of the device's accesses to the client's memory, under the device's lock.
  void Observe(GuestDma::Observer observer) {
    dma_.Observe(std::move(observer));
  }

  // Of its accesses to the client's memory, since it was asked for last.
  RefusedAccesses TakeRefused();

 private:
  explicit NicFunction(Opener opener) : opener_(std::move(opener)) {}

  // BARs and MSI-X as this class serves them for the device.
  void Describe(pci::ConfigOptions* config) const;

  bool ReadControl(uint64_t offset, std::span<std::byte> out);
  bool WriteControl(uint64_t offset, std::span<const std::byte> bytes);
  bool WriteConfig(uint64_t offset, std::span<const std::byte> bytes);
  void FollowConfig();
  Device& device() const { return *backend_.device; }

  static constexpr uint64_t kMsixBytes = 4096;
  static constexpr uint32_t kMsixPending = 2048;

  const Opener opener_;
  GuestDma dma_;  // Outlives the device.
  pci::ConfigSpace config_{{}};
  uint64_t doorbell_bytes_ = 0;  // Of BAR2.
  std::array<std::byte, kMsixBytes> msix_{};
  std::array<base::OwnedFd, kVectors> vectors_;
  base::OwnedFd error_;
  base::OwnedFd request_;
  FunctionDevice backend_;
  bool unclean_ = false;  // Its last reset failed, and there is no other.
  uint16_t virtual_functions_ = 0;  // That are on.
  std::function<void(uint16_t active)> on_virtual_functions_;
};

}  // namespace heddle::sim::vfio_user
