// SPDX-License-Identifier: Apache-2.0
// The device `soft`: the NIC's functional model, for use in earnest.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "driver/device.h"
#include "driver/result.h"
#include "firmware/control_program.h"
#include "hw/sim/base/interrupt_fds.h"
#include "hw/sim/base/time_source.h"
#include "hw/sim/base/virtual_time.h"
#include "hw/sim/device/device_options.h"
#include "hw/sim/device/object_heap.h"
#include "hw/sim/device/progress_thread.h"
#include "hw/sim/frame/frame_observer.h"
#include "hw/soft/control/control_registers.h"
#include "hw/soft/control/slow_path_queue.h"
#include "hw/soft/control/tables.h"
#include "hw/soft/dma_memory.h"
#include "hw/soft/engine/engine.h"
#include "hw/soft/over_answering.h"
#include "hw/soft/poll_patience.h"
#include "hw/soft/transport/transport.h"
#include "hw/soft/udp/pace.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft {

// What is around a device. All of it outlives the device.
struct Surroundings {
  // Not null: the host memory of a device that `Map` does not serve, accessed
  // under its lock.
  engine::DmaPort* memory = nullptr;
  // Not null: the device joins it and has no thread of its own; the thread that
  // polls pauses. Everything random then follows from the seed of its faults.
  // Its wire is the one-machine wire, with devices of the same time alone.
  sim::base::VirtualTime* time = nullptr;
  sim::frame::FrameObserver* observer =
      nullptr;  // Sees the frames of the one-machine wire.
};

// Whoever polls an empty queue moves the device on; a doorbell of a transmit
// page sends at once, on the thread that rang, unless another one is in the
// device. One that polls an idle device over and over sleeps up to 0.2 ms in
// it, until a doorbell or a frame. A thread of its own, started with the first
// access of the host, works only while nobody polls or a completion queue is
// armed, and sleeps until a doorbell, a frame or the next deadline.
//
// Thread safety: as of Device. One lock, `mutex_`, is over all that is not
// atomic; `Unmap` takes it, too, so that no access is under way when it returns
// (dma_memory.h).
class SoftDevice final : public Device,
                         private sim::base::VirtualTime::Worker,
                         private control::Tables,
                         private engine::InterruptSink {
 public:
  // Errors: those of the wire; EIO, with the cause, when the control program
  // does not come up. Throws std::bad_alloc.
  static Result<std::unique_ptr<SoftDevice>> Open(
      const sim::device::DeviceOptions& options, std::string* message,
      const Surroundings& surroundings = {});
  ~SoftDevice() override;

  // What BAR0 says that such a device is, from offset 0 on.
  static void ReadIdentity(std::span<uint64_t> words);

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override;
  uint64_t ReadRegister64(uint32_t offset) override;
  void WriteRegister32(uint32_t offset, uint32_t value) override;
  void WriteRegister64(uint32_t offset, uint64_t value) override;
  heddle::Doorbell doorbell(uint32_t bar2_offset) override;
  ProgressHook progress_hook() override;
  Result<Iova> Map(void* address, size_t bytes) override;
  void Unmap(Iova iova, size_t bytes) override;
  int interrupt_fd(uint32_t vector) override { return interrupts_.Fd(vector); }
  Result<bool> Reset() override;
  bool failed() const override { return failed_ || lost_; }
  std::string failure() const override;
  uint64_t now_ns() const override { return time_.now_ns(); }

  // Ends the device as the death of its process does: peers get nothing more,
  // not even what it would send at its end.
  void Kill();

  // Calls `work` while the device accesses no memory.
  template <typename Work>
  void Exclusively(Work work) {
    const std::lock_guard lock(mutex_);
    work();
  }

  // Finer than any time-out that matters to a host.
  static constexpr uint64_t kTickNs = 10000;

 private:
  struct Ring {
    uint32_t bar2_offset;
    uint64_t value;
  };

  SoftDevice(const sim::device::DeviceOptions& options,
             const Surroundings& surroundings);

  Result<bool> OpenWire(std::string* message);
  bool Start(std::string* message);
  void Notify(uint32_t bar2_offset, uint64_t value);
  void Step();
  // `Step` in virtual time.
  void Pause();
  // Without the lock: something to do now; when.
  bool HasNews() const;
  uint64_t Due() const;
  void Linger();

  // Under `mutex_`.
  void RunSome(uint32_t datagrams);
  void Send(uint64_t now_ns);
  // Those that found the device busy; whether there were any.
  bool AcceptDoorbells();
  // Whether that gives the device something to do.
  bool RingNow(uint32_t bar2_offset, uint64_t value);
  void ServeFirmware();
  void NoteReset();
  void Settle();
  void Fail(const std::string& why);
  uint64_t Statistic(contract::Statistic which) const;
  void WriteStatistics() const;
  uint64_t ReadBar(uint32_t offset, uint32_t bytes);
  void WriteBar(uint32_t offset, uint64_t value, uint32_t bytes);

  bool Write(contract::Table table, uint32_t index,
             engine::Engine::ConstEntry entry) override;
  bool Read(contract::Table table, uint32_t index,
            engine::Engine::Entry entry) const override;
  engine::Engine::DrainState Drain(contract::Table table,
                                   uint32_t index) override;
  void Raise(uint8_t vector) override;

  void ThreadStep();
  void StartThread();

  // As a worker of virtual time.
  uint64_t due_ns() const override { return Due(); }
  void Work() override;

  const sim::device::DeviceOptions options_;
  sim::base::VirtualTime* const virtual_time_;  // Null: the host's.
  const sim::base::TimeSource time_;
  sim::frame::FrameObserver* const observer_;
  const std::string name_ = "soft0";
  const int owner_pid_;

  // What a poller looks at.
  std::atomic<bool> quiet_ = false;
  std::atomic<bool> notified_ = false;
  std::atomic<uint64_t> wake_at_ns_ = UINT64_MAX;  // Next deadline.
  std::atomic<uint32_t> idle_polls_ = 0;           // In a row.
  std::atomic<uint64_t> idle_since_ns_ = 0;
  PollPatience patience_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> lost_ = false;  // Reset under its owner; it lives on.
  std::unique_ptr<wire::DatagramWire> wire_;
  udp::Pace udp_pace_;  // With the wire udp.

  mutable std::mutex mutex_;
  // What firmware wrote; the transport wants both at once.
  contract::PortCfg port_{};
  contract::TransportCfg transport_cfg_{};
  bool link_up_ = true;
  uint64_t last_received_ns_ = 0;  // 0: nothing came yet.
  bool resetting_ = false;         // As the wire wanted.
  uint64_t interrupts_raised_ = 0;
  std::string failure_;
  control::SlowPathQueue slow_path_;
  DmaMemory memory_;
  engine::DmaPort* const host_;  // `memory_`, or what `Open` was given.
  // Built from the top, ended from the bottom.
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<OverAnswering> over_answering_;  // With `read_again`.
  std::unique_ptr<control::ControlRegisters> registers_;
  sim::device::ObjectHeap object_heap_;
  std::unique_ptr<firmware::ControlProgram> firmware_;

  // Doorbells that found the device busy.
  std::mutex notification_mutex_;
  std::vector<Ring> notifications_;
  std::vector<Ring> accepted_;  // Scratch, under `mutex_`.

  sim::base::InterruptFds interrupts_;
  sim::device::ProgressThread thread_;
};

}  // namespace heddle::soft
