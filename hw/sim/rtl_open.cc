// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl_open.h"

#include <cerrno>
#include <utility>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/host_memory.h"
#include "hw/sim/mac_link.h"
#include "hw/sim/nic_model.h"
#include "hw/sim/rtl_device.h"

namespace heddle::sim {
namespace {

// Ample for one read of a NIC that does nothing else.
constexpr int kReadLimitCycles = 10000;

class NoWire final : public MacLink {
 public:
  bool TransmitReady() override { return true; }
  bool Receive(MacBeat* /*beat*/) override { return false; }
  void Transmit(std::span<const uint8_t> /*bytes*/, bool /*last*/) override {}
};

}  // namespace

Result<std::unique_ptr<Device>> OpenRtl(const DeviceOptions& options,
                                        std::string* message) {
  auto device = RtlDevice::Open(options, message);
  if (!device.ok()) {
    return device.error();
  }
  return std::unique_ptr<Device>(std::move(device.value()));
}

Result<RtlOnMemory> OpenRtlOn(const DeviceOptions& options,
                              MappedMemory& memory, std::string* message) {
  DeviceOptions own = options;
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

Result<uint64_t> RtlCapability(std::string* message) {
  MemoryOptions options;
  options.bus_bytes = NicModel::BusBytes();
  HostMemory memory(options);
  NoWire wire;
  NicModel model({}, &memory, &wire, [](uint32_t /*vector*/) {});
  model.bar().StartRead(kBar0Address + contract::kBar0CapabilityOffset);
  for (int i = 0; i < kReadLimitCycles && model.Cycle(/*tick=*/false); ++i) {
    if (const auto value = model.bar().TakeRead()) {
      return *value;
    }
  }
  *message = "the NIC's model does not answer: " + model.failure();
  return Errno{EIO};
}

}  // namespace heddle::sim
