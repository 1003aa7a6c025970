// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl/rtl_open.h"

#include <cerrno>
#include <optional>
#include <utility>

#include "hw/sim/nic/nic_model.h"
#include "hw/sim/pins/host_memory.h"
#include "hw/sim/pins/mac_link.h"
#include "hw/sim/rtl/rtl_device.h"

namespace heddle::sim::rtl {
namespace {

// Ample for one read of a NIC that does nothing else.
constexpr int kReadLimitCycles = 10000;

class NoWire final : public pins::MacLink {
 public:
  bool TransmitReady() override { return true; }
  bool Receive(pins::MacBeat* /*beat*/) override { return false; }
  void Transmit(std::span<const uint8_t> /*bytes*/, bool /*last*/) override {}
};

}  // namespace

Result<std::unique_ptr<Device>> OpenRtl(const device::DeviceOptions& options,
                                        std::string* message) {
  auto device = RtlDevice::Open(options, message);
  if (!device.ok()) {
    return device.error();
  }
  return std::unique_ptr<Device>(std::move(device.value()));
}

Result<RtlOnMemory> OpenRtlOn(const device::DeviceOptions& options,
                              device::MappedMemory& memory,
                              std::string* message) {
  device::DeviceOptions own = options;
  own.memory.mapped = &memory;
  auto device = RtlDevice::Open(own, message);
  if (!device.ok()) {
    return device.error();
  }
  RtlDevice* const rtl = device.value().get();
  return RtlOnMemory{.device = std::move(device.value()),
                     .exclusively = [rtl](const std::function<void()>& work) {
                       rtl->Exclusively(work);
                     }};
}

Result<bool> ReadRtlIdentity(std::span<uint64_t> words, std::string* message) {
  device::MemoryOptions options;
  options.bus_bytes = nic::NicModel::BusBytes();
  pins::HostMemory memory(options);
  NoWire wire;
  nic::NicModel model({}, &memory, &wire, [](uint32_t /*vector*/) {});
  for (uint32_t i = 0; i < words.size(); ++i) {
    model.bar().StartRead(pins::kBar0Address + i * sizeof(uint64_t));
    std::optional<uint64_t> value;
    for (int cycle = 0; cycle < kReadLimitCycles && !value.has_value() &&
                        model.Cycle(/*tick=*/false);
         ++cycle) {
      value = model.bar().TakeRead();
    }
    if (!value.has_value()) {
      *message = "the NIC's model does not answer: " + model.failure();
      return Errno{EIO};
    }
    words[i] = *value;
  }
  return true;
}

}  // namespace heddle::sim::rtl
