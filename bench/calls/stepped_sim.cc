// SPDX-License-Identifier: Apache-2.0
// Stands in for libheddle-soft.so where instructions are counted: the soft
// device in virtual time, where no thread and no clock make a run differ. It
// works when the benchmark steps it, or, with HEDDLE_BENCH_WHOLE in the
// environment, on the threads that post and poll, as it does in earnest.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/base/time_source.h"
#include "hw/sim/base/virtual_time.h"
#include "hw/sim/device/device_library.h"
#include "hw/sim/device/settings.h"
#include "tests/soft/forwarding_device.h"

namespace heddle::bench {
namespace {

class SteppedDevice;

// Devices are opened once and never closed.
struct Stepped {
  sim::base::VirtualTime time;
  std::vector<SteppedDevice*> devices;
};

Stepped& All() {
  static Stepped all;
  return all;
}

// A post costs what it costs with hardware, one store for a doorbell, and
// nothing happens until `StepAll`: then everything posted completes at once. A
// poll has no device to lend its thread to.
//
// Thread safety: none.
class SteppedDevice final : public test::ForwardingDevice {
 public:
  static Result<std::unique_ptr<Device>> Open(
      std::vector<HeddleSimOption> options, std::string* message);

  // Admin commands are answered before the write returns.
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  Doorbell doorbell(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override { return {}; }
  // The library waits for nothing: things happen at once or never.
  uint64_t now_ns() const override { return sim::base::TimeSource().now_ns(); }

  // Takes the doorbells rung since the last time.
  void TakeDoorbells();

 private:
  static constexpr size_t kPages =
      contract::kBankBytes / contract::kDoorbellPageBytes;

  SteppedDevice() = default;

  // First register of each page: the tail, or the consumer count.
  std::array<uint64_t, kPages> words_{};
  std::array<uint64_t, kPages> taken_{};
};

// Until nothing is left to do but to wait for time-outs.
void StepAll() {
  constexpr uint64_t kLongestDelayNs = 20000;
  Stepped& all = All();
  for (SteppedDevice* device : all.devices) {
    device->TakeDoorbells();
  }
  while (all.time.RunNext(all.time.now_ns() + kLongestDelayNs) != nullptr) {
  }
}

Result<std::unique_ptr<Device>> SteppedDevice::Open(
    std::vector<HeddleSimOption> options, std::string* message) {
  static const std::string wire = "stepped-" + std::to_string(getpid());
  options.push_back({.name = "wire", .value = wire.c_str()});
  const auto settings =
      sim::device::ParseSettings(contract::kSoftKind, options, message);
  if (!settings.ok()) {
    return settings.error();
  }
  auto device =
      soft::SoftDevice::Open(settings.value(), message, {.time = &All().time});
  if (!device.ok()) {
    return device.error();
  }
  if (std::getenv("HEDDLE_BENCH_WHOLE") != nullptr) {
    return std::unique_ptr<Device>(std::move(device.value()));
  }
  std::unique_ptr<SteppedDevice> made(new SteppedDevice());
  made->device_ = std::move(device.value());
  All().devices.push_back(made.get());
  return std::unique_ptr<Device>(std::move(made));
}

void SteppedDevice::WriteRegister32(uint32_t offset, uint32_t value) {
  ForwardingDevice::WriteRegister32(offset, value);
  StepAll();
}

void SteppedDevice::WriteRegister64(uint32_t offset, uint64_t value) {
  ForwardingDevice::WriteRegister64(offset, value);
  StepAll();
}

Doorbell SteppedDevice::doorbell(uint32_t bar2_offset) {
  static_assert(contract::kDoorbellTailOffset == 0 &&
                contract::kDoorbellCqConsumerOffset == 0);
  if (bar2_offset % contract::kDoorbellPageBytes != 0) {
    return ForwardingDevice::doorbell(bar2_offset);  // Cold: each write counts.
  }
  return {.address = &words_.at(bar2_offset / contract::kDoorbellPageBytes)};
}

void SteppedDevice::TakeDoorbells() {
  for (size_t page = 0; page < kPages; ++page) {
    if (words_[page] != taken_[page]) {
      taken_[page] = words_[page];
      const Doorbell bell = ForwardingDevice::doorbell(
          static_cast<uint32_t>(page) * contract::kDoorbellPageBytes);
      bell.notify(bell.cookie, bell.bar2_offset, words_[page]);
    }
  }
}

constexpr sim::device::LibraryDevice kDevices[] = {
    {.kind = contract::kSoftKind,
     .open = [](std::span<const HeddleSimOption> options,
                std::string* message) -> Result<std::unique_ptr<Device>> {
       return SteppedDevice::Open({options.begin(), options.end()}, message);
     },
     .read_identity = [](std::span<uint64_t> words,
                         std::string* /*message*/) -> Result<bool> {
       soft::SoftDevice::ReadIdentity(words);
       return true;
     }}};

}  // namespace

extern "C" __attribute__((visibility("default"))) void heddle_bench_step() {
  StepAll();
}

}  // namespace heddle::bench

std::span<const heddle::sim::device::LibraryDevice>
heddle::sim::device::LibraryDevices() {
  return bench::kDevices;
}
