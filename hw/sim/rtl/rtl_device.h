// SPDX-License-Identifier: Apache-2.0
// The device `rtl`: a Verilated NIC inside the process, on the one-machine
// wire.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/device.h"
#include "driver/result.h"
#include "hw/sim/base/interrupt_fds.h"
#include "hw/sim/device/device_options.h"
#include "hw/sim/device/progress_thread.h"
#include "hw/sim/nic/nic_node.h"
#include "hw/sim/pins/bar_driver.h"
#include "hw/sim/pins/shared_mac.h"
#include "hw/sim/rtl/tick_clock.h"
#include "hw/sim/wire/shared_wire.h"

namespace heddle::sim::rtl {

using RtlDeviceOptions = device::DeviceOptions;

// Polling threads step the model themselves; one that polls an idle device over
// and over sleeps up to 0.2 ms in it, until a doorbell or a frame. A thread of
// its own, started with the first access of the host, steps it only while
// nobody polls, and sleeps while the NIC is idle until a doorbell, a frame or
// the next deadline.
//
// Thread safety: as of Device. The model is stepped under `mutex_`.
class RtlDevice : public Device {
 public:
  // Errors: those of `SharedWire::Attach` and `Capture::Open`; EIO when the
  // model fails while starting.
  static Result<std::unique_ptr<RtlDevice>> Open(
      const RtlDeviceOptions& options, std::string* message);
  ~RtlDevice() override;

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override;
  uint64_t ReadRegister64(uint32_t offset) override;
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  Doorbell doorbell(uint32_t bar2_offset) override;
  PushWindow push_window(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override;
  Result<Iova> Map(void* address, size_t bytes) override;
  void Unmap(Iova iova, size_t bytes) override;
  int interrupt_fd(uint32_t vector) override { return interrupts_.Fd(vector); }
  Result<bool> Reset() override;
  bool failed() const override { return failed_ || lost_; }

  // Calls `work` while the device accesses no memory.
  void Exclusively(const std::function<void()>& work) {
    node_->memory().Quiesce(work);
  }
  std::string failure() const override;

  static constexpr uint64_t kTickNs = 100000;

 private:
  // A doorbell, or a slot for a push window.
  struct Notification {
    uint32_t bar2_offset;
    size_t words;
    pins::BarBeat values;
  };

  explicit RtlDevice(const RtlDeviceOptions& options);

  bool OpenWire(std::string* message, Errno* error);
  bool Start(std::string* message);
  void Notify(uint32_t bar2_offset, uint64_t value);
  void Push(uint32_t bar2_offset, const void* slot);
  void Step();
  // When the model has something to do, monotonic: 0 for now, UINT64_MAX for
  // never. Any thread.
  uint64_t Due() const;
  bool HasWork() const;

  // The rest under `mutex_`.
  // Serves late retransmissions of peers before the NIC goes away.
  void Linger();
  void RunSome(uint32_t max_cycles);
  // Whether the model has anything to do but to wait for a timer.
  bool HasInput() const;
  // Before an idle model gets its first input.
  void BeginWork();
  bool Busy();
  void CycleOnce();
  void AdvanceTime();
  void AcceptNotifications();
  void ServeReset();
  void NoteReset();
  void Settle();
  void WriteStatistics();
  uint64_t Read(uint32_t offset, uint32_t bytes);
  void Write(uint32_t offset, uint64_t value, uint32_t bytes);

  const RtlDeviceOptions options_;
  const std::string name_ = "rtl0";
  const int owner_pid_;
  std::unique_ptr<wire::SharedWire> wire_;
  std::unique_ptr<pins::SharedMac> mac_;
  std::unique_ptr<nic::NicNode> node_;

  mutable std::mutex mutex_;
  TickClock ticks_;
  uint64_t ticked_at_cycle_ = 0;   // The last tick.
  uint64_t counted_cycles_ = 0;    // Cycles that have counted as time.
  uint64_t noted_cycles_ = 0;      // Cycles that peers know of.
  bool waited_for_peers_ = false;  // At the last look at the clock.
  std::string failure_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> lost_ = false;  // Reset under its owner; it lives on.
  bool resetting_ = false;          // As the wire wanted.

  // What `HasWork` looks at.
  std::atomic<bool> quiet_ = false;
  std::atomic<uint64_t> wake_at_ns_ = UINT64_MAX;  // Next timer.
  std::atomic<bool> notified_ = false;
  std::atomic<uint32_t> idle_polls_ = 0;  // In a row.

  std::mutex notification_mutex_;
  std::vector<Notification> notifications_;
  std::vector<Notification> accepted_;  // Scratch, under `mutex_`.

  base::InterruptFds interrupts_;

  device::ProgressThread thread_;
};

}  // namespace heddle::sim::rtl
