// SPDX-License-Identifier: Apache-2.0
// A Device without hardware: the real firmware over the model of its bus.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/device.h"
#include "driver/result.h"
#include "firmware/control_program.h"
#include "tests/firmware/fake_management_bus.h"

namespace heddle {

// Executes admin commands for real; doorbells are recorded, data does not move.
//
// Host memory is this process, IOVA = address + `kIovaOffset`, so that a driver
// that hands out plain addresses is found out. The firmware refuses what is not
// mapped.
//
// Thread safety: as Device, by one lock; the public fields are the test's.
class FakeDevice final : public Device, private firmware::HostMemory {
 public:
  static constexpr uint64_t kIovaOffset = 0x1000'0000'0000;

  struct Rung {
    uint32_t offset;
    uint64_t value;

    bool operator==(const Rung&) const = default;
  };

  struct Pushed {
    uint32_t offset;
    contract::TxDesc slot;
    size_t rung_before;  // Doorbells.
  };

  explicit FakeDevice(firmware::Board board = firmware::TestBoard());

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override;
  uint64_t ReadRegister64(uint32_t offset) override;
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  Doorbell doorbell(uint32_t bar2_offset) override;
  PushWindow push_window(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override;
  Result<Iova> Map(void* address, size_t bytes) override;
  Result<Iova> Reserve(void* address, size_t bytes) override;
  void Unmap(Iova iova, size_t bytes) override;
  int interrupt_fd(uint32_t) override { return -1; }
  Result<bool> Reset() override;
  bool failed() const override { return !failure_text.empty(); }
  std::string failure() const override { return failure_text; }

  void set_name(const std::string& name) { name_ = name; }

  // Lets the firmware look at its events once.
  void Step();

  // Time of the firmware, and frames that it sent.
  void PassTicks(uint32_t ticks);
  size_t Questions() const;
  std::vector<std::vector<uint8_t>> TakeQuestions();
  // A frame for the firmware.
  void Receive(const std::vector<uint8_t>& frame);
  // What the firmware wrote to a table.
  template <typename T>
  T TableEntry(contract::Table table, uint32_t index) const {
    const std::lock_guard lock(mutex_);
    return bus.Table<T>(table, index);
  }

  bool IsMapped(uint64_t iova, size_t bytes) const;

  uint32_t magic = contract::kBar0MagicReset;
  uint64_t capability = contract::kCapabilitySend | contract::kCapabilityRod;
  std::string failure_text;
  // The device takes nothing and answers nothing.
  bool dead = false;
  // Reads are all ones, as of a PCI device that has gone.
  bool lost = false;
  // Answers name commands that the driver never gave.
  bool stray_answers = false;
  // Host memory refuses the device's reads.
  bool refuse_reads = false;
  // No progress hook, as hardware.
  bool is_hardware = false;
  // Errno of the next calls of `Map`; 0 for success.
  int map_error = 0;
  // `Reset` leaves the admin queue's tail as it is.
  bool reset_keeps_tail = false;
  uint32_t resets = 0;
  uint32_t bad_unmaps = 0;
  std::vector<Rung> rung;
  std::vector<Pushed> pushed;
  std::function<void()> on_map;    // Called by `Map` before all else.
  std::function<void()> on_unmap;  // Likewise, by `Unmap`.
  // {IOVA, bytes} of every mapping, in order of `Map`.
  std::vector<std::pair<uint64_t, size_t>> mappings;

  firmware::FakeSwitch ports;
  firmware::FakeManagementBus bus{*this};

 private:
  bool Read(uint64_t address, void* data, size_t bytes) override;
  bool Write(uint64_t address, const void* data, size_t bytes) override;

  std::string name_ = "fake0";
  firmware::Board board_;
  firmware::TestObjectMemory object_memory_;
  firmware::ControlProgram program_{bus, ports, object_memory_, board_};
  mutable std::recursive_mutex mutex_;
};

}  // namespace heddle
