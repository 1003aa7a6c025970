// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/vfio_user/nic_function.h"

#include <linux/vfio.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "driver/device.h"
#include "hw/contract/doorbell_page.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::sim::vfio_user {
namespace {

template <typename T>
T Load(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

template <typename T>
void Store(std::span<std::byte> to, T value) {
  std::memcpy(to.data(), &value, sizeof(value));
}

bool IsAligned(uint64_t offset, size_t bytes, size_t width) {
  return bytes == width && offset % width == 0;
}

// A power of two, as BARs are.
uint64_t DoorbellBytesOf(Device& device) {
  using namespace contract;  // NOLINT: register fields by their full names.
  const uint32_t contexts = device.ReadRegister32(kBar0ContextCountsOffset);
  const uint32_t queues = device.ReadRegister32(kBar0QueueCountsOffset);
  return std::bit_ceil(DoorbellBytes(std::max(
      {contexts >> kBar0ContextCountsRxLsb, contexts & kBar0ContextCountsTxMask,
       queues >> kBar0QueueCountsCountersLsb,
       queues & kBar0QueueCountsCqMask})));
}

void Signal(const base::OwnedFd& event) {
  constexpr uint64_t kOne = 1;
  // Full means that its reader has enough to wake for. The client may have made
  // it wait since it was taken.
  pollfd room = {.fd = event.get(), .events = POLLOUT, .revents = 0};
  if (event.valid() && poll(&room, 1, 0) == 1) {
    [[maybe_unused]] const ssize_t told =
        write(event.get(), &kOne, sizeof(kOne));
  }
}

}  // namespace

void NicFunction::Describe(pci::ConfigOptions* config) const {
  config->bars = {};
  config->bars[0] = {.bytes = contract::kBar0Bytes};
  config->bars[2] = {
      .bytes = doorbell_bytes_, .wide = true, .prefetchable = true};
  config->bars[4] = {.bytes = kMsixBytes};
  config->msix_vectors = kVectors;
  config->msix_bar = 4;
  config->msix_table_offset = 0;
  config->msix_pending_offset = kMsixPending;
}

Result<std::unique_ptr<NicFunction>> NicFunction::Open(
    const device::DeviceOptions& options, const pci::ConfigOptions& config,
    std::string* message, const contract::DeviceKind& kind) {
  return Open(
      [options, kind](GuestDma& memory, std::string* why) {
        return OpenFunctionDevice(kind, options, memory, why);
      },
      config, message);
}

Result<std::unique_ptr<NicFunction>> NicFunction::Open(
    Opener opener, const pci::ConfigOptions& config, std::string* message) {
  std::unique_ptr<NicFunction> function(new NicFunction(std::move(opener)));
  auto device = function->opener_(function->dma_, message);
  if (!device.ok()) {
    return device.error();
  }
  function->backend_ = std::move(device.value());
  function->doorbell_bytes_ = DoorbellBytesOf(*function->backend_.device);
  pci::ConfigOptions whole = config;
  function->Describe(&whole);
  function->config_ = pci::ConfigSpace(whole);
  return function;
}

uint64_t NicFunction::region_bytes(uint32_t region) const {
  switch (region) {
    case VFIO_PCI_BAR0_REGION_INDEX:
      return contract::kBar0Bytes;
    case VFIO_PCI_BAR2_REGION_INDEX:
      return doorbell_bytes_;
    case VFIO_PCI_BAR4_REGION_INDEX:
      return kMsixBytes;
    case VFIO_PCI_CONFIG_REGION_INDEX:
      return pci::ConfigSpace::kBytes;
    default:
      return 0;
  }
}

bool NicFunction::ReadControl(uint64_t offset, std::span<std::byte> out) {
  const auto at = static_cast<uint32_t>(offset);
  if (IsAligned(offset, out.size(), sizeof(uint64_t))) {
    Store(out, device().ReadRegister64(at));
    return true;
  }
  if (IsAligned(offset, out.size(), sizeof(uint32_t))) {
    Store(out, device().ReadRegister32(at));
    return true;
  }
  return false;
}

bool NicFunction::WriteControl(uint64_t offset,
                               std::span<const std::byte> bytes) {
  const auto at = static_cast<uint32_t>(offset);
  if (IsAligned(offset, bytes.size(), sizeof(uint64_t))) {
    device().WriteRegister64(at, Load<uint64_t>(bytes));
    return true;
  }
  if (IsAligned(offset, bytes.size(), sizeof(uint32_t))) {
    device().WriteRegister32(at, Load<uint32_t>(bytes));
    return true;
  }
  return false;
}

bool NicFunction::ReadRegion(uint32_t region, uint64_t offset,
                             std::span<std::byte> out) {
  switch (region) {
    case VFIO_PCI_BAR0_REGION_INDEX:
      return ReadControl(offset, out);
    case VFIO_PCI_BAR2_REGION_INDEX:
      std::fill(out.begin(), out.end(), std::byte{0});
      return true;
    case VFIO_PCI_BAR4_REGION_INDEX:
      std::copy_n(msix_.begin() + static_cast<long>(offset), out.size(),
                  out.begin());
      return true;
    default:
      // Of any length: clients read all of it at once. Nothing happens by
      // reading, so bytes are as good as words.
      for (size_t i = 0; i < out.size(); ++i) {
        if (!config_.Read(static_cast<uint32_t>(offset + i),
                          out.subspan(i, 1))) {
          return false;
        }
      }
      return true;
  }
}

bool NicFunction::WriteRegion(uint32_t region, uint64_t offset,
                              std::span<const std::byte> bytes) {
  switch (region) {
    case VFIO_PCI_BAR0_REGION_INDEX:
      return WriteControl(offset, bytes);
    case VFIO_PCI_BAR2_REGION_INDEX: {
      if (!IsAligned(offset, bytes.size(), sizeof(uint64_t))) {
        return false;
      }
      const Doorbell doorbell =
          device().doorbell(static_cast<uint32_t>(offset));
      doorbell.notify(doorbell.cookie, doorbell.bar2_offset,
                      Load<uint64_t>(bytes));
      return true;
    }
    case VFIO_PCI_BAR4_REGION_INDEX:
      std::copy(bytes.begin(), bytes.end(),
                msix_.begin() + static_cast<long>(offset));
      return true;
    default:
      return WriteConfig(offset, bytes);
  }
}

bool NicFunction::WriteConfig(uint64_t offset,
                              std::span<const std::byte> bytes) {
  pci::ConfigSpace::Effect effect;
  if (!config_.Write(static_cast<uint32_t>(offset), bytes, &effect)) {
    return false;
  }
  FollowConfig();
  return !effect.reset || Reset().ok();
}

void NicFunction::FollowConfig() {
  backend_.exclusively(
      [&] { dma_.set_bus_master(config_.bus_master() && !unclean_); });
  const uint16_t active = config_.active_functions();
  if (active != virtual_functions_ && on_virtual_functions_) {
    on_virtual_functions_(active);
  }
  virtual_functions_ = active;
}

uint32_t NicFunction::interrupts(uint32_t index) const {
  switch (index) {
    case VFIO_PCI_MSIX_IRQ_INDEX:
      return kVectors;
    case VFIO_PCI_ERR_IRQ_INDEX:
    case VFIO_PCI_REQ_IRQ_INDEX:
      return 1;
    default:
      return 0;
  }
}

void NicFunction::Connect(uint32_t index, uint32_t interrupt,
                          base::OwnedFd event) {
  base::OwnedFd& line = index == VFIO_PCI_MSIX_IRQ_INDEX  ? vectors_[interrupt]
                        : index == VFIO_PCI_ERR_IRQ_INDEX ? error_
                                                          : request_;
  line = std::move(event);
}

void NicFunction::Trigger(uint32_t index, uint32_t interrupt) {
  Signal(index == VFIO_PCI_MSIX_IRQ_INDEX  ? vectors_[interrupt]
         : index == VFIO_PCI_ERR_IRQ_INDEX ? error_
                                           : request_);
}

void NicFunction::Forward(uint32_t vector) {
  uint64_t times = 0;
  if (read(raised_fd(vector), &times, sizeof(times)) == sizeof(times)) {
    Signal(vectors_[vector]);
  }
}

Result<bool> NicFunction::MapDma(uint64_t iova, uint64_t bytes,
                                 base::OwnedFd file, uint64_t offset,
                                 bool writable) {
  Result<bool> done = true;
  backend_.exclusively([&] {
    done = dma_.memory().Map(iova, bytes, std::move(file), offset, writable);
  });
  return done;
}

Result<size_t> NicFunction::UnmapDma(uint64_t first, uint64_t last) {
  Result<size_t> done = size_t{0};
  backend_.exclusively([&] { done = dma_.memory().Unmap(first, last); });
  return done;
}

RefusedAccesses NicFunction::TakeRefused() {
  RefusedAccesses refused;
  backend_.exclusively([&] { refused = dma_.TakeRefused(); });
  return refused;
}

Result<bool> NicFunction::Reset() {
  msix_.fill(std::byte{0});
  config_.Reset();
  FollowConfig();
  const Result<bool> done = device().Reset();
  unclean_ = !done.ok();
  return done;
}

void NicFunction::Detach() {
  backend_.exclusively([&] {
    dma_.set_bus_master(false);
    (void)dma_.memory().Unmap(0, UINT64_MAX);
  });
  for (base::OwnedFd& vector : vectors_) {
    vector = base::OwnedFd();
  }
  error_ = base::OwnedFd();
  request_ = base::OwnedFd();
  const bool clean = Reset().ok();
  (void)TakeRefused();  // Since the memory has gone.
  if (clean && !device().failed()) {
    return;
  }
  // Without another, it reaches no memory of the next client.
  std::string message;
  auto another = opener_(dma_, &message);
  unclean_ = !another.ok();
  if (another.ok()) {
    std::swap(backend_, another.value());
  }
}

}  // namespace heddle::sim::vfio_user
