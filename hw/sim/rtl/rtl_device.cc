// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl/rtl_device.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>

#include "hw/contract/doorbell_page.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/clock.h"
#include "hw/sim/device/device_board.h"
#include "hw/sim/device/linger.h"

namespace heddle::sim::rtl {
namespace {

// Cycles per call: few for a poller, which looks at its queue in between.
constexpr uint32_t kPollCycles = 32;
constexpr uint32_t kThreadCycles = 128;
// Cycles of a busy NIC that count as a tick: the time-outs are made for hosts
// of real speed, and what a NIC works on takes longer here.
constexpr uint64_t kBusyTickCycles = 16;
// Ticks that an idle NIC gets for running timers before new work, which waits.
constexpr uint64_t kMostCaughtUp = 256;
constexpr uint32_t kSpinPolls = 64;
constexpr uint64_t kPollSleepNs = 200000;
constexpr uint64_t kBootLimitCycles = 20000;
// With a timer running the clock is looked at often enough for TickClock.
constexpr uint64_t kTimedSleepNs = TickClock::kMaxStep * RtlDevice::kTickNs / 2;
constexpr uint32_t kControl =
    pins::kBar0Address + contract::kBar0DeviceControlOffset;
constexpr uint64_t kResetLimitNs = 10000000000;
}  // namespace

RtlDevice::RtlDevice(const RtlDeviceOptions& options)
    : options_(options),
      owner_pid_(getpid()),
      ticks_(kTickNs, base::MonotonicNs()),
      thread_("heddle-rtl",
              {.due = [this] { return Due(); },
               .step =
                   [this] {
                     const std::lock_guard lock(mutex_);
                     RunSome(kThreadCycles);
                   },
               .wakes = [this] { return wire_->wakes(); },
               .sleep = [this](uint32_t wakes,
                               uint64_t ns) { wire_->Sleep(wakes, ns); },
               .wake = [this] { wire_->Kick(); }}) {}

Result<std::unique_ptr<RtlDevice>> RtlDevice::Open(
    const RtlDeviceOptions& options, std::string* message) {
  std::unique_ptr<RtlDevice> device(new RtlDevice(options));
  Errno error{EIO};
  if (!device->OpenWire(message, &error) || !device->Start(message)) {
    return error;
  }
  return device;
}

bool RtlDevice::OpenWire(std::string* message, Errno* error) {
  if (options_.is_udp()) {
    *error = Errno{EINVAL};
    *message =
        "simulator setting wire=udp: the device rtl has no UDP sockets; use "
        "the device soft, or the name of a one-machine wire";
    return false;
  }
  wire::SharedWireOptions attach = options_.wire;
  attach.takes_slot = true;  // The NIC forms its PDCIDs by itself.
  auto wire = wire::SharedWire::Attach(attach, message);
  if (!wire.ok()) {
    *error = wire.error();
    return false;
  }
  wire_ = std::move(wire.value());
  std::unique_ptr<frame::Capture> capture;
  if (!options_.settings.capture.empty()) {
    auto opened = frame::Capture::Open(options_.settings.capture);
    if (!opened.ok()) {
      *error = opened.error();
      *message = "capture file " + options_.settings.capture + ": " +
                 strerror(static_cast<int>(opened.error()));
      return false;
    }
    capture = std::move(opened.value());
  }
  mac_ =
      std::make_unique<pins::SharedMac>(wire_.get(), nic::NicModel::BusBytes(),
                                        options_.faults, std::move(capture));
  return true;
}

bool RtlDevice::Start(std::string* message) {
  const nic::NicNodeOptions options{
      .memory = options_.memory,
      .model = {.trace = options_.settings.trace},
      .board = device::DeviceBoard(
          options_, {.function = wire_->function(), .slot = wire_->slot()},
          kTickNs)};
  const std::lock_guard lock(mutex_);
  node_ = std::make_unique<nic::NicNode>(
      options, mac_.get(), wire_.get(),
      [this](uint32_t vector) { interrupts_.Raise(vector); },
      [this] { CycleOnce(); });
  node_->Start();
  for (uint64_t i = 0; i < kBootLimitCycles && Busy(); i += kPollCycles) {
    RunSome(kPollCycles);
  }
  Settle();
  *message = "model failed while starting: " + failure_;
  return !failed_;
}

RtlDevice::~RtlDevice() {
  if (getpid() != owner_pid_) {
    // In a child after fork: thread, locks and wire are the parent's.
    static_cast<void>(node_.release());
    static_cast<void>(mac_.release());
    static_cast<void>(wire_.release());
    thread_.Forget();
    return;
  }
  if (node_ != nullptr) {
    Linger();
  }
  thread_.Stop();
  if (node_ != nullptr && !options_.settings.statistics.empty()) {
    const std::lock_guard lock(mutex_);
    WriteStatistics();
  }
  if (mac_ != nullptr) {
    mac_->FlushCapture();
  }
}

void RtlDevice::Linger() {
  const uint64_t limit = base::MonotonicNs() + device::kLingerLimitNs;
  for (;;) {
    uint64_t quiet_at = 0;
    {
      const std::lock_guard lock(mutex_);
      RunSome(kThreadCycles);
      // No peer waits for the last ACK of a closed PDC.
      if (mac_->last_received_ns() != 0 && !failed_ &&
          node_->CountOpenPdcs() != 0) {
        quiet_at = mac_->last_received_ns() +
                   device::kLingerRtos * options_.settings.rto_ns;
      }
    }
    const uint64_t now = base::MonotonicNs();
    const uint64_t until = std::min(quiet_at, limit);
    if (now >= until) {
      return;
    }
    if (!HasWork()) {
      wire_->Sleep(until - now);
    }
  }
}

// ---------------------------------------------------------------- the model

void RtlDevice::CycleOnce() {
  nic::NicModel& model = node_->model();
  const uint64_t deadline = model.deadline_ticks().value_or(UINT32_MAX);
  bool tick = false;
  if (mac_->active()) {
    // Frames that wait go in first: they may be what a timer waits for.
  } else if (model.quiet()) {
    tick = ticks_.Due(deadline);
    if (tick) {
      ticks_.TakeWaited(deadline);
    }
  } else if (ticks_.owed() > 0 &&
             model.cycles() - ticked_at_cycle_ >= kBusyTickCycles) {
    // What has gone in gets time to arrive.
    tick = true;
    ticks_.Take();
  }
  ticked_at_cycle_ = tick ? model.cycles() : ticked_at_cycle_;
  model.Cycle(tick);
}

void RtlDevice::BeginWork() {
  nic::NicModel& model = node_->model();
  const auto deadline = model.deadline_ticks();
  if (deadline && *deadline <= TickClock::kLongTicks) {
    // Before anything begins a timer, those that run get what they have waited.
    mac_->HoldReceive(true);
    const uint64_t ticks = std::min<uint64_t>(kMostCaughtUp, *deadline - 1);
    for (uint64_t i = 0; i < ticks && ticks_.owed() > 0; ++i) {
      ticks_.Take();
      model.Cycle(/*tick=*/true);
    }
    mac_->HoldReceive(false);
  }
  ticks_.BeginWork();
}

bool RtlDevice::HasInput() const {
  nic::NicModel& model = node_->model();
  return !model.quiet() || model.management_event() || mac_->active() ||
         !model.bar().quiet();
}

bool RtlDevice::Busy() {
  const nic::NicModel& model = node_->model();
  if (model.failed()) {
    return false;
  }
  if (HasInput()) {
    return true;
  }
  const auto deadline = model.deadline_ticks();
  if (!deadline) {
    ticks_.Forget();
    return false;
  }
  return ticks_.Due(*deadline);
}

void RtlDevice::RunSome(uint32_t max_cycles) {
  AdvanceTime();
  if (node_->model().quiet() && !node_->model().deadline_ticks()) {
    ticks_.Forget();
  }
  if (quiet_ && (notified_ || HasInput())) {
    BeginWork();
  }
  AcceptNotifications();
  node_->SetLink(wire_->link_up());
  ServeReset();
  mac_->Release();
  if (Busy()) {
    wire_->NoteWork(0);  // Before frames are taken: peers see either.
  }
  const uint64_t visible = node_->memory().visible_commits();
  const uint64_t start = node_->model().cycles();
  while (Busy() && node_->model().cycles() - start < max_cycles &&
         node_->memory().visible_commits() == visible) {
    CycleOnce();
    node_->ServeFirmware();
  }
  NoteReset();
  Settle();
}

void RtlDevice::ServeReset() {
  if (wire_->TakeReset()) {
    resetting_ = true;
    node_->WriteBar(kControl, contract::kBar0DeviceControlResetMask,
                    sizeof(uint32_t));
  }
}

// Once it is over, nothing that the host made is there any more, which it must
// hear.
void RtlDevice::NoteReset() {
  if (resetting_ && (node_->ReadBar(kControl, sizeof(uint32_t)) &
                     contract::kBar0DeviceControlResetMask) == 0) {
    resetting_ = false;
    failure_ = "the function was reset from outside";
    lost_ = true;
    ReportFailure();
    interrupts_.RaiseAll();  // Whoever sleeps finds out.
  }
}

void RtlDevice::Settle() {
  const nic::NicModel& model = node_->model();
  if (model.failed() && !failed_) {
    failure_ = model.failure();
    failed_ = true;
    ReportFailure();
    mac_->FlushCapture();
    interrupts_.RaiseAll();  // Whoever sleeps finds out.
  }
  if (quiet_ && HasInput()) {
    ticks_.BeginWork();
  }
  const bool quiet = !Busy();
  uint64_t wake_at = UINT64_MAX;
  if (const auto deadline = model.deadline_ticks(); quiet && deadline) {
    wake_at = base::MonotonicNs() +
              std::min((*deadline - ticks_.Waited(*deadline)) * kTickNs,
                       kTimedSleepNs);
  }
  wake_at = std::min(wake_at, mac_->release_at_ns());
  wake_at_ns_ = wake_at;
  wire_->NoteWork(quiet ? wake_at : 0, model.cycles() - noted_cycles_);
  noted_cycles_ = model.cycles();
  if (quiet && !quiet_) {
    mac_->FlushCapture();
  }
  quiet_ = quiet;
}

void RtlDevice::AdvanceTime() {
  const uint64_t now = base::MonotonicNs();
  if (!wire_->PeersCaughtUp(now)) {
    waited_for_peers_ = true;
    return;
  }
  const uint64_t cycles = node_->model().cycles();
  uint64_t limit = TickClock::kMaxStep;
  if (!quiet_ || mac_->active()) {
    // Cycles are the time of a NIC that works, and of one with a frame, which
    // may have waited since the last look.
    limit = (cycles - counted_cycles_) / kBusyTickCycles;
    counted_cycles_ += limit * kBusyTickCycles;
  } else {
    counted_cycles_ = cycles;
  }
  if (std::exchange(waited_for_peers_, false)) {
    limit = std::min(limit, TickClock::kWaitStep);
  }
  ticks_.Advance(now, limit);
}

void RtlDevice::AcceptNotifications() {
  {
    const std::lock_guard lock(notification_mutex_);
    notified_ = false;
    std::swap(accepted_, notifications_);
  }
  for (const Notification& notification : accepted_) {
    node_->model().bar().WriteWords(
        pins::kBar2Address + notification.bar2_offset,
        std::span(notification.values).first(notification.words));
  }
  accepted_.clear();
}

uint64_t RtlDevice::Due() const {
  if (failed_) {
    return UINT64_MAX;
  }
  return !quiet_ || notified_ || wire_->HasNews() ? 0 : wake_at_ns_.load();
}

bool RtlDevice::HasWork() const {
  const uint64_t due = Due();
  return due == 0 || (due != UINT64_MAX && base::MonotonicNs() >= due);
}

void RtlDevice::Step() {
  thread_.NotePoll();
  if (HasWork()) {
    idle_polls_ = 0;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) {
      RunSome(kPollCycles);
    } else {
      sched_yield();  // To the thread that runs the model.
    }
    return;
  }
  // A caller in a loop waits for another process, which may need this CPU. To
  // sleep is better than to yield: on a busy machine a yield costs a time
  // slice, while a sleeper is woken by the frame it waits for.
  if (++idle_polls_ > kSpinPolls) {
    wire_->Sleep(kPollSleepNs);
  }
}

ProgressHook RtlDevice::progress_hook() {
  return {.step = [](void* cookie) { static_cast<RtlDevice*>(cookie)->Step(); },
          .cookie = this};
}

// ------------------------------------------------------------- host accesses

uint64_t RtlDevice::Read(uint32_t offset, uint32_t bytes) {
  thread_.Start();
  const std::lock_guard lock(mutex_);
  AcceptNotifications();
  const uint64_t value = node_->ReadBar(pins::kBar0Address + offset, bytes);
  Settle();
  return value;
}

void RtlDevice::Write(uint32_t offset, uint64_t value, uint32_t bytes) {
  thread_.Start();
  {
    const std::lock_guard lock(mutex_);
    AcceptNotifications();
    node_->WriteBar(pins::kBar0Address + offset, value, bytes);
    Settle();
  }
  wire_->Kick();
}

uint32_t RtlDevice::ReadRegister32(uint32_t offset) {
  return static_cast<uint32_t>(Read(offset, sizeof(uint32_t)));
}
uint64_t RtlDevice::ReadRegister64(uint32_t offset) {
  return Read(offset, sizeof(uint64_t));
}
void RtlDevice::WriteRegister32(uint32_t offset, uint32_t value) {
  Write(offset, value, sizeof(value));
}
void RtlDevice::WriteRegister64(uint32_t offset, uint64_t value) {
  Write(offset, value, sizeof(value));
}

void RtlDevice::Notify(uint32_t bar2_offset, uint64_t value) {
  if (contract::ArmsInterrupt(bar2_offset, value)) {
    thread_.Take();
  }
  {
    const std::lock_guard lock(notification_mutex_);
    notifications_.push_back({bar2_offset, 1, {value}});
    notified_ = true;
  }
  wire_->Kick();
}

// Nobody has to wake up for it: the doorbell follows.
void RtlDevice::Push(uint32_t bar2_offset, const void* slot) {
  const std::lock_guard lock(notification_mutex_);
  Notification& push = notifications_.emplace_back();
  push.bar2_offset = bar2_offset;
  push.words = push.values.size();
  std::memcpy(push.values.data(), slot, sizeof(push.values));
}

Doorbell RtlDevice::doorbell(uint32_t bar2_offset) {
  thread_.Start();
  return {.address = nullptr,
          .notify =
              [](void* cookie, uint32_t offset, uint64_t value) {
                static_cast<RtlDevice*>(cookie)->Notify(offset, value);
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

PushWindow RtlDevice::push_window(uint32_t bar2_offset) {
  return {.address = nullptr,
          .gathers = false,
          .copy =
              [](void* cookie, uint32_t offset, const void* slot) {
                static_cast<RtlDevice*>(cookie)->Push(offset, slot);
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

Result<Iova> RtlDevice::Map(void* address, size_t bytes) {
  // NOLINTNEXTLINE: an IOVA of an in-process device is an address.
  return node_->memory().Map(reinterpret_cast<uint64_t>(address), bytes);
}

void RtlDevice::Unmap(Iova iova, size_t bytes) {
  node_->memory().Unmap(static_cast<uint64_t>(iova), bytes);
}

Result<bool> RtlDevice::Reset() {
  WriteRegister32(contract::kBar0DeviceControlOffset,
                  contract::kBar0DeviceControlResetMask);
  const uint64_t deadline = base::MonotonicNs() + kResetLimitNs;
  while (!failed_ && base::MonotonicNs() < deadline) {
    if ((ReadRegister32(contract::kBar0DeviceControlOffset) &
         contract::kBar0DeviceControlResetMask) == 0) {
      return true;
    }
    Step();
  }
  return Errno{EIO};
}

std::string RtlDevice::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void RtlDevice::WriteStatistics() {
  std::ofstream file(options_.settings.statistics, std::ios::app);
  const pins::HostMemory& memory = node_->memory();
  file << node_->StatisticsText() << "blocked_reads " << memory.blocked_reads()
       << "\nblocked_writes " << memory.blocked_writes() << "\ncycles "
       << node_->model().cycles() << "\nwire_drops " << wire_->dropped()
       << "\nwire_drops_link_down " << wire_->dropped_link_down()
       << "\nwire_corrupt_peers " << wire_->corrupt_peers() << '\n'
       << mac_->faults().StatisticsText("faults_")
       << mac_->rx_faults().StatisticsText("rx_faults_");
}

}  // namespace heddle::sim::rtl
