// SPDX-License-Identifier: Apache-2.0
#include "tests/driver/fake_device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace heddle {
namespace {

void* HostAddress(uint64_t iova) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>(iova - FakeDevice::kIovaOffset);
}

uint64_t WithHalf(uint64_t whole, bool high, uint32_t half) {
  return high ? (whole & 0xffff'ffff) | uint64_t{half} << 32
              : (whole >> 32 << 32) | half;
}

}  // namespace

FakeDevice::FakeDevice(firmware::Board board) : board_(board) {
  program_.Start();
}

void FakeDevice::Step() {
  const std::lock_guard lock(mutex_);
  if (!dead && bus.HasEvent()) {
    program_.Step();
  }
}

uint32_t FakeDevice::ReadRegister32(uint32_t offset) {
  const std::lock_guard lock(mutex_);
  if (lost) {
    return std::numeric_limits<uint32_t>::max();
  }
  switch (offset) {
    case contract::kBar0MagicOffset:
      return magic;
    case contract::kBar0VersionOffset:
      return bus.version;
    case contract::kBar0ContextLimitsOffset:
      return bus.context_limits;
    case contract::kBar0TransportLimitsOffset:
      return bus.transport_limits;
    case contract::kBar0DatapathOffset:
      return bus.datapath;
    case contract::kBar0RegionLimitsOffset:
      return bus.region_limits;
    case contract::kBar0ContextCountsOffset:
      return bus.context_counts;
    case contract::kBar0QueueCountsOffset:
      return bus.queue_counts;
    case contract::kBar0RegionCountOffset:
      return bus.region_count;
    case contract::kBar0DeviceStatusOffset:
      return bus.status;
    case contract::kBar0FatalCauseOffset:
      return bus.fatal_cause;
    case contract::kBar0DeviceControlOffset:
      return bus.reset_requested ? contract::kBar0DeviceControlResetMask : 0;
    case contract::kBar0AdminTailOffset:
      return bus.admin_tail;
    default:
      return 0;
  }
}

uint64_t FakeDevice::ReadRegister64(uint32_t offset) {
  const std::lock_guard lock(mutex_);
  if (lost) {
    return std::numeric_limits<uint64_t>::max();
  }
  if (offset == contract::kBar0CapabilityOffset) {
    return capability;
  }
  if (offset == contract::kBar0AdminCommandBaseOffset) {
    return bus.admin_command_base;
  }
  // Each counter shows its own index.
  if (offset >= contract::kBar0StatisticsOffset) {
    return (offset - contract::kBar0StatisticsOffset) /
           contract::kBar0StatisticsStride;
  }
  return ReadRegister32(offset) | uint64_t{ReadRegister32(offset + 4)} << 32;
}

void FakeDevice::WriteRegister32(uint32_t offset, uint32_t value) {
  const std::lock_guard lock(mutex_);
  switch (offset) {
    case contract::kBar0AdminCommandBaseOffset:
    case contract::kBar0AdminCommandBaseOffset + 4:
      bus.admin_command_base =
          WithHalf(bus.admin_command_base,
                   offset != contract::kBar0AdminCommandBaseOffset, value);
      return;
    case contract::kBar0AdminAnswerBaseOffset:
    case contract::kBar0AdminAnswerBaseOffset + 4:
      bus.admin_answer_base =
          WithHalf(bus.admin_answer_base,
                   offset != contract::kBar0AdminAnswerBaseOffset, value);
      return;
    case contract::kBar0AdminSizeOffset:
      bus.admin_log2 = value;
      return;
    case contract::kBar0AdminTailOffset:
      bus.admin_tail = static_cast<uint16_t>(value);
      return;
    case contract::kBar0DeviceControlOffset:
      bus.reset_requested |=
          (value & contract::kBar0DeviceControlResetMask) != 0;
      return;
    default:
      return;
  }
}

void FakeDevice::WriteRegister64(uint32_t offset, uint64_t value) {
  WriteRegister32(offset, static_cast<uint32_t>(value));
  WriteRegister32(offset + 4, static_cast<uint32_t>(value >> 32));
}

Doorbell FakeDevice::doorbell(uint32_t bar2_offset) {
  return {.notify =
              [](void* cookie, uint32_t offset, uint64_t value) {
                auto* device = static_cast<FakeDevice*>(cookie);
                const std::lock_guard lock(device->mutex_);
                device->rung.push_back({offset, value});
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

PushWindow FakeDevice::push_window(uint32_t bar2_offset) {
  return {.copy =
              [](void* cookie, uint32_t offset, const void* slot) {
                auto* device = static_cast<FakeDevice*>(cookie);
                const std::lock_guard lock(device->mutex_);
                Pushed& push = device->pushed.emplace_back();
                push.offset = offset;
                std::memcpy(&push.slot, slot, sizeof push.slot);
                push.rung_before = device->rung.size();
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

ProgressHook FakeDevice::progress_hook() {
  if (is_hardware) {
    return {};
  }
  return {
      .step = [](void* cookie) { static_cast<FakeDevice*>(cookie)->Step(); },
      .cookie = this};
}

Result<Iova> FakeDevice::Map(void* address, size_t bytes) {
  if (on_map) {
    on_map();
  }
  const std::lock_guard lock(mutex_);
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (map_error != 0) {
    return Errno{map_error};
  }
  if (bytes == 0 || start + bytes < start) {
    return Errno{EINVAL};
  }
  mappings.emplace_back(start + kIovaOffset, bytes);
  return Iova{start + kIovaOffset};
}

Result<Iova> FakeDevice::Reserve(void* address, size_t /*bytes*/) {
  return Iova{reinterpret_cast<uintptr_t>(address) + kIovaOffset};
}

void FakeDevice::Unmap(Iova iova, size_t bytes) {
  if (on_unmap) {
    on_unmap();
  }
  const std::lock_guard lock(mutex_);
  const auto found = std::find(mappings.begin(), mappings.end(),
                               std::pair{static_cast<uint64_t>(iova), bytes});
  if (found == mappings.end()) {
    ++bad_unmaps;
    return;
  }
  mappings.erase(found);
}

Result<bool> FakeDevice::Reset() {
  const std::lock_guard lock(mutex_);
  ++resets;
  bus.admin_command_base = 0;
  WriteRegister32(contract::kBar0DeviceControlOffset,
                  contract::kBar0DeviceControlResetMask);
  if (!reset_keeps_tail) {
    bus.admin_tail = 0;
  }
  for (int i = 0; i < 1000 && bus.reset_requested; ++i) {
    Step();
  }
  if (bus.reset_requested) {
    return Errno{EIO};
  }
  return true;
}

void FakeDevice::PassTicks(uint32_t ticks) {
  const std::lock_guard lock(mutex_);
  bus.Tick(ticks);
}

size_t FakeDevice::Questions() const {
  const std::lock_guard lock(mutex_);
  return bus.slow_tx.size();
}

std::vector<std::vector<uint8_t>> FakeDevice::TakeQuestions() {
  const std::lock_guard lock(mutex_);
  return std::exchange(bus.slow_tx, {});
}

void FakeDevice::Receive(const std::vector<uint8_t>& frame) {
  const std::lock_guard lock(mutex_);
  bus.slow_rx.push_back(frame);
}

bool FakeDevice::IsMapped(uint64_t iova, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(mappings.begin(), mappings.end(), [&](const auto& range) {
    return iova >= range.first && iova + bytes <= range.first + range.second;
  });
}

bool FakeDevice::Read(uint64_t address, void* data, size_t bytes) {
  if (!IsMapped(address, bytes) || refuse_reads) {
    return false;
  }
  std::memcpy(data, HostAddress(address), bytes);
  return true;
}

bool FakeDevice::Write(uint64_t address, const void* data, size_t bytes) {
  if (!IsMapped(address, bytes)) {
    return false;
  }
  // The last eight bytes become visible last, as a device promises.
  auto* to = static_cast<std::byte*>(HostAddress(address));
  std::memcpy(to, data, bytes - 8);
  if (stray_answers) {
    to[0] ^= std::byte{0x80};  // The answer's id.
  }
  uint64_t last = 0;
  std::memcpy(&last, static_cast<const std::byte*>(data) + bytes - 8, 8);
  __atomic_store_n(reinterpret_cast<uint64_t*>(to + bytes - 8), last,
                   __ATOMIC_RELEASE);
  return true;
}

}  // namespace heddle
