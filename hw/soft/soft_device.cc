// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/soft_device.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <exception>
#include <fstream>
#include <span>
#include <utility>

#include "hw/contract/doorbell_page.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/random.h"
#include "hw/sim/device/device_board.h"
#include "hw/sim/device/linger.h"
#include "hw/sim/device/statistic_names.h"
#include "hw/soft/shared/shared_datagram_wire.h"
#include "hw/soft/udp/udp_wire.h"

namespace heddle::soft {

using control::ControlRegisters;
using engine::DmaPort;
using engine::Engine;
using engine::EngineLimits;
using transport::TransportLimits;

namespace {

using contract::Table;

// Per turn: few for a poller, which looks at its queue in between.
constexpr uint32_t kPollDatagrams = 16;
constexpr uint32_t kThreadDatagrams = 64;
constexpr uint32_t kDescriptors = 64;
constexpr uint32_t kPackets = 64;
constexpr uint32_t kFirmwareSteps = 8;
// A poller that finds nothing looks at the clock every so many polls.
constexpr uint32_t kPollsPerLook = 16;
constexpr uint64_t kPollSleepNs = 200000;
// In virtual time: what a poll takes, polls in a row that take no longer, and
// how often it may become four times as long.
constexpr uint64_t kPollNs = 200;
constexpr uint32_t kPollsAtOnce = 2;
constexpr uint32_t kMaxQuadruplings = 8;
constexpr uint64_t kResetLimitNs = 10000000000;
// A power of two: more never wait, as each thread rings one after another.
constexpr size_t kWaitingDoorbells = 4096;

constexpr uint64_t kCapabilities =
    contract::kCapabilitySend | contract::kCapabilityRod |
    contract::kCapabilityRud | contract::kCapabilityInline |
    contract::kCapabilityCrc | contract::kCapabilityIpv6 |
    contract::kCapabilityVlan | contract::kCapabilityScatterGather |
    contract::kCapabilityWrite | contract::kCapabilityRead |
    contract::kCapabilityCounters | contract::kCapabilitySlowPath |
    contract::kCapabilityDeliveryComplete | contract::kCapabilityRegionEvent |
    contract::kCapabilityFence | contract::kCapabilityMore |
    contract::kCapabilityWriteErrors | contract::kCapabilitySpill |
    contract::kCapabilityClosePdcs | contract::kCapabilityCrcOrder |
    contract::kCapabilityRelative | contract::kCapabilityTrimming |
    contract::kCapabilityNativeIp | contract::kCapabilityTagged |
    contract::kCapabilityMultiRecv | contract::kCapabilityMatch |
    contract::kCapabilityWriteAfterRead | contract::kCapabilityDeferrable;

// The most that register `region_limits` may say.
constexpr uint32_t kOldRegions = 1024;

// Drivers of a contract before 1.7 use the first bank of pages alone.
control::DeviceShape MakeShape(const EngineLimits& engine,
                               const TransportLimits& transport) {
  const auto in_bank = [](uint32_t count) {
    return std::min(count, contract::kBankObjects);
  };
  return {
      .capability = kCapabilities,
      .context_limits =
          in_bank(engine.tx_contexts) << contract::kBar0ContextLimitsTxLsb |
          in_bank(engine.rx_contexts) << contract::kBar0ContextLimitsRxLsb |
          in_bank(engine.cqs) << contract::kBar0ContextLimitsCqLsb |
          sim::base::InterruptFds::kVectors
              << contract::kBar0ContextLimitsVectorsLsb,
      .transport_limits =
          engine.messages << contract::kBar0TransportLimitsMessagesLsb |
          transport.pdcs << contract::kBar0TransportLimitsPdcsLsb,
      // There are no beats; a word is as good as any width.
      .datapath = 64U << contract::kBar0DatapathWidthLsb |
                  uint32_t{contract::kPayloadMtuValues.back()}
                      << contract::kBar0DatapathPayloadMtuMaxLsb,
      .region_limits = std::min(engine.regions, kOldRegions)
                           << contract::kBar0RegionLimitsRegionsLsb |
                       in_bank(engine.counters)
                           << contract::kBar0RegionLimitsCountersLsb,
      .context_counts = engine.tx_contexts
                            << contract::kBar0ContextCountsTxLsb |
                        engine.rx_contexts << contract::kBar0ContextCountsRxLsb,
      .queue_counts = engine.cqs << contract::kBar0QueueCountsCqLsb |
                      engine.counters << contract::kBar0QueueCountsCountersLsb,
      .region_count = engine.regions};
}

// Entry of a table as its struct.
template <typename Cfg>
Cfg As(Engine::ConstEntry entry) {
  Cfg cfg;
  static_assert(sizeof(cfg) == Engine::kEntryBytes);
  std::copy(entry.begin(), entry.end(), reinterpret_cast<uint8_t*>(&cfg));
  return cfg;
}

uint32_t PageInBank(uint32_t bar2_offset) {
  return contract::PageInBank(bar2_offset / contract::kDoorbellPageBytes);
}

void SetPace(const sim::device::DeviceOptions& options, const udp::Pace& pace,
             firmware::Board* board) {
  board->ack_delay_ns = pace.ack_delay_ns;
  if (options.settings.cwnd_bytes == 0) {
    // Networks queue, mark and lose; the other wires only do if they are told.
    board->congestion = true;
    board->cwnd_bytes = pace.cwnd_bytes;
    board->base_rtt_ns = pace.base_rtt_ns;
  }
}

bool IsTransmitPage(uint32_t bar2_offset) {
  return PageInBank(bar2_offset) < contract::kRxPageFirst;
}

}  // namespace

SoftDevice::SoftDevice(const sim::device::DeviceOptions& options,
                       const Surroundings& surroundings)
    : options_(options),
      virtual_time_(surroundings.time),
      time_(virtual_time_ != nullptr ? virtual_time_->source()
                                     : sim::base::TimeSource()),
      observer_(surroundings.observer),
      owner_pid_(getpid()),
      slow_path_(kTickNs, [this] { return time_.now_ns(); }),
      host_(surroundings.memory != nullptr ? surroundings.memory : &memory_),
      thread_("heddle-soft",
              {.due = [this] { return Due(); },
               .step = [this] { ThreadStep(); },
               .wakes = [this] { return wire_->Kicks(); },
               .sleep = [this](uint32_t kicks,
                               uint64_t ns) { wire_->SleepSince(kicks, ns); },
               .wake = [this] { wire_->Kick(); }}) {
  notifications_.reserve(kWaitingDoorbells);
  accepted_.reserve(kWaitingDoorbells);
}

void SoftDevice::ReadIdentity(std::span<uint64_t> words) {
  using Registers = control::ControlRegisters;
  const control::DeviceShape shape = MakeShape({}, {});
  constexpr uint32_t kHalf = sizeof(uint32_t);
  for (uint32_t i = 0; i < words.size(); ++i) {
    const uint32_t offset = i * 2 * kHalf;
    const uint64_t low = Registers::ReadIdentity(shape, offset);
    const uint64_t high = Registers::ReadIdentity(shape, offset + kHalf);
    words[i] = low | high << 32;
  }
}

Result<std::unique_ptr<SoftDevice>> SoftDevice::Open(
    const sim::device::DeviceOptions& options, std::string* message,
    const Surroundings& surroundings) {
  std::unique_ptr<SoftDevice> device(new SoftDevice(options, surroundings));
  if (const Result<bool> opened = device->OpenWire(message); !opened.ok()) {
    return opened.error();
  }
  if (!device->Start(message)) {
    return Errno{EIO};
  }
  if (device->virtual_time_ != nullptr) {
    device->virtual_time_->Join(device.get());
  }
  return device;
}

Result<bool> SoftDevice::OpenWire(std::string* message) {
  if (options_.is_udp() && options_.settings.vlan != 0) {
    *message =
        "simulator setting vlan=" + std::to_string(options_.settings.vlan) +
        ": on the wire udp the tag is the host's; use an address of a VLAN "
        "interface instead";
    return Errno{EINVAL};
  }
  if (options_.is_udp() && options_.settings.encap == contract::Encap::kIp) {
    *message =
        "simulator setting encap=ip: the wire udp is UDP sockets; use "
        "encap=udp, or the one-machine wire (FI_HEDDLE_WIRE)";
    return Errno{EINVAL};
  }
  if (options_.is_udp()) {
    auto wire =
        udp::UdpWire::Open({.ip = options_.wire.ip,
                            .payload_mtu = options_.settings.payload_mtu,
                            .udp_port = options_.settings.udp_port,
                            .linger_ns = sim::device::kLingerLimitNs,
                            .faults = options_.faults,
                            .capture = options_.settings.capture},
                           message);
    if (!wire.ok()) {
      return wire.error();
    }
    udp_pace_ = wire.value()->pace(options_.settings.rto_ns);
    wire_ = std::move(wire.value());
    return true;
  }
  sim::wire::SharedWireOptions attach = options_.wire;
  attach.time = time_;
  auto wire =
      shared::SharedDatagramWire::Open({.wire = attach,
                                        .faults = options_.faults,
                                        .capture = options_.settings.capture,
                                        .observer = observer_},
                                       &slow_path_, message);
  if (!wire.ok()) {
    return wire.error();
  }
  wire_ = std::move(wire.value());
  return true;
}

bool SoftDevice::Start(std::string* message) {
  const std::lock_guard lock(mutex_);
  firmware::Board board = sim::device::DeviceBoard(
      options_, {.function = wire_->function(), .slot = 0}, kTickNs);
  board.payload_mtu = static_cast<uint16_t>(wire_->payload_mtu());
  if (virtual_time_ != nullptr) {
    sim::base::Random own(options_.faults.tx.seed ^ time_.now_ns());
    board.pdc_seed = static_cast<uint32_t>(own.Next());
    board.key_secret = own.Next();
  }
  if (options_.is_udp()) {
    SetPace(options_, udp_pace_, &board);
  }
  const EngineLimits engine;
  TransportLimits transport;
  // Small read results are kept like errors: with less than a window of places
  // a burst of them is refused and backs off.
  transport.guaranteed = contract::kPdcWindow;
  transport.messages = engine.messages;
  sim::base::Random seeds(board.key_secret);
  engine::InterruptSink* const interrupts = this;
  engine_ = std::make_unique<Engine>(engine, host_, interrupts, seeds.Next());
  transport_ = std::make_unique<transport::Transport>(
      transport, wire_.get(), engine_.get(), seeds.Next(), kTickNs);
  transport::MessageCarrier* carrier = transport_.get();
  if (options_.settings.read_again > 0) {
    over_answering_ = std::make_unique<OverAnswering>(
        carrier, options_.settings.read_again, options_.faults.tx.seed);
    carrier = over_answering_.get();
  }
  engine_->Connect(carrier);
  registers_ = std::make_unique<ControlRegisters>(
      MakeShape(engine, transport), kTickNs,
      ControlRegisters::Parts{
          .memory = host_,
          .tables = this,
          .slow_path = &slow_path_,
          .wire = wire_.get(),
          .now_ns = [this] { return time_.now_ns(); },
          .statistic =
              [this](contract::Statistic which) { return Statistic(which); },
          .open_pdcs = [this] { return transport_->open_pdcs(); },
          .on_reset = [this] { engine_->StopListening(); }});
  firmware_ = std::make_unique<firmware::ControlProgram>(*registers_, *wire_,
                                                         object_heap_, board);
  link_up_ = wire_->link_up();
  firmware_->SetLink(link_up_);
  firmware_->Start();
  Settle();
  const uint32_t status = static_cast<uint32_t>(
      registers_->ReadBar(contract::kBar0DeviceStatusOffset, sizeof(uint32_t)));
  *message = "control program did not start: cause " +
             std::to_string(registers_->ReadBar(contract::kBar0FatalCauseOffset,
                                                sizeof(uint32_t)));
  return (status & contract::kBar0DeviceStatusReadyMask) != 0;
}

SoftDevice::~SoftDevice() {
  if (getpid() != owner_pid_) {
    // In a child after fork: thread, locks and wire are the parent's.
    static_cast<void>(firmware_.release());
    static_cast<void>(transport_.release());
    static_cast<void>(engine_.release());
    static_cast<void>(wire_.release());
    thread_.Forget();
    return;
  }
  if (firmware_ != nullptr) {
    Linger();
  }
  if (virtual_time_ != nullptr) {
    virtual_time_->Leave(this);
  }
  if (wire_ != nullptr) {
    thread_.Stop();
    const std::lock_guard lock(mutex_);
    if (firmware_ != nullptr && !options_.settings.statistics.empty()) {
      WriteStatistics();
    }
    wire_->FlushCapture();
  }
}

void SoftDevice::Linger() {
  const uint64_t limit = time_.now_ns() + sim::device::kLingerLimitNs;
  for (;;) {
    uint64_t quiet_at = 0;
    {
      const std::lock_guard lock(mutex_);
      RunSome(kThreadDatagrams);
      // No peer waits for the last ACK of a closed PDC.
      const transport::Transport::OpenPdcs open = transport_->open_pdcs();
      if (last_received_ns_ != 0 && !failed_ &&
          open.initiator + open.target != 0) {
        quiet_at = last_received_ns_ +
                   sim::device::kLingerRtos * options_.settings.rto_ns;
      }
    }
    const uint64_t now = time_.now_ns();
    const uint64_t until = std::min(quiet_at, limit);
    if (now >= until) {
      return;
    }
    if (virtual_time_ != nullptr) {
      virtual_time_->Pause(this, until);
    } else if (const uint64_t due = std::min(until, Due()); due > now) {
      wire_->Sleep(due - now);
    }
  }
}

// ------------------------------------------------------------- its own work

void SoftDevice::RunSome(uint32_t datagrams) {
  if (failed_) {
    return;
  }
  try {
    const uint64_t now = time_.now_ns();
    (void)AcceptDoorbells();
    if (wire_->deadline_ns() <= now) {
      wire_->Flush();
    }
    wire::Datagram datagram;
    wire_->NoteWork(0, 0);  // Before frames are taken: peers see either.
    while (datagrams != 0 && wire_->Receive(&datagram)) {
      last_received_ns_ = now;
      transport_->Receive(datagram, now);
      datagrams = wire_->HasTaken() ? datagrams - 1 : 0;
    }
    Send(now);
    ServeFirmware();
    Settle();
  } catch (const std::exception& exception) {
    Fail(exception.what());
  }
}

// Sets `quiet_` to whether anything is left.
void SoftDevice::Send(uint64_t now_ns) {
  const bool descriptors = engine_->Progress(kDescriptors);
  const bool packets = transport_->Progress(now_ns, kPackets);
  wire_->Flush();
  quiet_.store(!descriptors && !packets, std::memory_order_relaxed);
}

void SoftDevice::ServeFirmware() {
  if (const bool up = wire_->link_up(); up != link_up_) {
    link_up_ = up;
    firmware_->SetLink(up);
  }
  if (wire_->TakeReset()) {
    resetting_ = true;
    registers_->WriteBar(contract::kBar0DeviceControlOffset,
                         contract::kBar0DeviceControlResetMask,
                         sizeof(uint32_t));
  }
  for (uint32_t i = 0; i < kFirmwareSteps && registers_->event(); ++i) {
    firmware_->Step();
  }
  NoteReset();
}

// Nothing that the host made is there any more, which it must hear.
void SoftDevice::NoteReset() {
  if (!resetting_ || (registers_->ReadBar(contract::kBar0DeviceControlOffset,
                                          sizeof(uint32_t)) &
                      contract::kBar0DeviceControlResetMask) != 0) {
    return;
  }
  resetting_ = false;
  failure_ = "the function was reset from outside";
  lost_ = true;
  ReportFailure();
  interrupts_.RaiseAll();  // Whoever sleeps finds out.
}

void SoftDevice::Settle() {
  const uint64_t wake_at =
      std::min({transport_->deadline_ns(), wire_->deadline_ns(),
                registers_->deadline_ns()});
  const bool quiet = quiet_.load(std::memory_order_relaxed) &&
                     !registers_->event() && !wire_->HasTaken();
  // The last store is in front of the look at who sleeps.
  wake_at_ns_.store(wake_at, std::memory_order_relaxed);
  quiet_ = quiet;
  wire_->NoteWork(quiet ? wake_at : 0, 1);
  if (quiet) {
    wire_->FlushCapture();
  }
  thread_.NoteWork(quiet ? wake_at : 0);
}

void SoftDevice::Kill() {
  const std::lock_guard lock(mutex_);
  Fail("the device was killed");
}

void SoftDevice::Fail(const std::string& why) {
  failure_ = why;
  failed_ = true;
  ReportFailure();
  wire_->FlushCapture();
  interrupts_.RaiseAll();  // Whoever sleeps finds out.
}

bool SoftDevice::AcceptDoorbells() {
  if (!notified_) {
    return false;
  }
  {
    const std::lock_guard lock(notification_mutex_);
    notified_ = false;
    std::swap(accepted_, notifications_);
  }
  for (const Ring& ring : accepted_) {
    (void)RingNow(ring.bar2_offset, ring.value);
  }
  accepted_.clear();
  return true;
}

bool SoftDevice::RingNow(uint32_t bar2_offset, uint64_t value) {
  const bool work = engine_->Doorbell(bar2_offset, value);
  if (work) {
    quiet_.store(false, std::memory_order_relaxed);
  }
  return work;
}

bool SoftDevice::HasNews() const {
  return !quiet_ || notified_ || wire_->HasNews();
}

uint64_t SoftDevice::Due() const {
  if (failed_) {
    return UINT64_MAX;
  }
  return HasNews() ? 0 : wake_at_ns_.load();
}

// Polls cost time. Polls of an idle device are four times as far apart each
// time; whatever the device does ends the pause.
void SoftDevice::Pause() {
  const uint32_t polls = idle_polls_.load(std::memory_order_relaxed);
  idle_polls_.store(polls + 1, std::memory_order_relaxed);
  const uint32_t quadruplings =
      polls < kPollsAtOnce ? 0
                           : std::min(polls - kPollsAtOnce, kMaxQuadruplings);
  virtual_time_->Pause(this, time_.now_ns() + (kPollNs << 2 * quadruplings));
}

void SoftDevice::Work() {
  idle_polls_.store(0, std::memory_order_relaxed);
  ThreadStep();
}

void SoftDevice::Step() {
  if (virtual_time_ != nullptr) {
    Pause();
    return;
  }
  thread_.NotePoll();
  // A lost count does no harm.
  const uint32_t polls = idle_polls_.load(std::memory_order_relaxed);
  idle_polls_.store(polls + 1, std::memory_order_relaxed);
  const bool look = polls % kPollsPerLook == 0;
  const uint64_t now = look ? time_.now_ns() : 0;
  if (!failed_ && (HasNews() || (look && now >= wake_at_ns_))) {
    idle_polls_.store(0, std::memory_order_relaxed);
    if (idle_since_ns_.load(std::memory_order_relaxed) != 0) {
      idle_since_ns_.store(0, std::memory_order_relaxed);
      patience_.NoteWork();
    }
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) {
      RunSome(kPollDatagrams);
    } else {
      sched_yield();  // To the thread that is in the device.
    }
    return;
  }
  if (!look) {
    return;
  }
  // A caller in a loop waits for another process, which may need this CPU.
  const uint64_t since = idle_since_ns_.load(std::memory_order_relaxed);
  if (since == 0) {
    idle_since_ns_.store(now, std::memory_order_relaxed);
  } else if (now - since <= patience_.spin_ns()) {
    return;
  } else if (patience_.MayYield()) {
    sched_yield();
    patience_.NoteYield(time_.now_ns() - now);
  } else {
    patience_.NoteSleep();
    const uint64_t wake_at = std::max(wake_at_ns_.load(), now);
    wire_->Sleep(std::min(kPollSleepNs, wake_at - now));
  }
}

void SoftDevice::StartThread() {
  if (virtual_time_ == nullptr) {
    thread_.Start();
  }
}

void SoftDevice::ThreadStep() {
  const std::lock_guard lock(mutex_);
  RunSome(kThreadDatagrams);
}

ProgressHook SoftDevice::progress_hook() {
  return {
      .step = [](void* cookie) { static_cast<SoftDevice*>(cookie)->Step(); },
      .cookie = this};
}

// ------------------------------------------------------------------ the host

void SoftDevice::Notify(uint32_t bar2_offset, uint64_t value) {
  const bool transmits = IsTransmitPage(bar2_offset);
  if (!transmits && contract::ArmsInterrupt(bar2_offset, value)) {
    thread_.Take();
  }
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock.owns_lock()) {
    if (failed_) {
      return;
    }
    try {
      const bool others = AcceptDoorbells();  // Those before this one.
      const bool work = RingNow(bar2_offset, value);
      if (transmits) {
        Send(time_.now_ns());
      }
      if (others || work) {
        Settle();
      }
    } catch (const std::exception& exception) {
      Fail(exception.what());
    }
    return;
  }
  {
    const std::lock_guard lock(notification_mutex_);
    notifications_.push_back({bar2_offset, value});
    notified_ = true;
  }
  thread_.NoteWork(0);
}

heddle::Doorbell SoftDevice::doorbell(uint32_t bar2_offset) {
  StartThread();
  return {.address = nullptr,
          .notify =
              [](void* cookie, uint32_t offset, uint64_t value) {
                static_cast<SoftDevice*>(cookie)->Notify(offset, value);
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

uint64_t SoftDevice::ReadBar(uint32_t offset, uint32_t bytes) {
  StartThread();
  const std::lock_guard lock(mutex_);
  return failed_ ? ~uint64_t{0} : registers_->ReadBar(offset, bytes);
}

void SoftDevice::WriteBar(uint32_t offset, uint64_t value, uint32_t bytes) {
  StartThread();
  const std::lock_guard lock(mutex_);
  registers_->WriteBar(offset, value, bytes);
  // The host waits for the answer anyway.
  RunSome(kPollDatagrams);
}

uint32_t SoftDevice::ReadRegister32(uint32_t offset) {
  return static_cast<uint32_t>(ReadBar(offset, sizeof(uint32_t)));
}
uint64_t SoftDevice::ReadRegister64(uint32_t offset) {
  return ReadBar(offset, sizeof(uint64_t));
}
void SoftDevice::WriteRegister32(uint32_t offset, uint32_t value) {
  WriteBar(offset, value, sizeof(value));
}
void SoftDevice::WriteRegister64(uint32_t offset, uint64_t value) {
  WriteBar(offset, value, sizeof(value));
}

Result<Iova> SoftDevice::Map(void* address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  // NOLINTNEXTLINE: an IOVA of an in-process device is an address.
  return memory_.Map(reinterpret_cast<uint64_t>(address), bytes);
}

void SoftDevice::Unmap(Iova iova, size_t bytes) {
  const std::lock_guard lock(mutex_);
  memory_.Unmap(static_cast<uint64_t>(iova), bytes);
}

Result<bool> SoftDevice::Reset() {
  WriteRegister32(contract::kBar0DeviceControlOffset,
                  contract::kBar0DeviceControlResetMask);
  const uint64_t deadline = time_.now_ns() + kResetLimitNs;
  while (!failed_ && time_.now_ns() < deadline) {
    if ((ReadRegister32(contract::kBar0DeviceControlOffset) &
         contract::kBar0DeviceControlResetMask) == 0) {
      return true;
    }
    Step();
  }
  return Errno{EIO};
}

std::string SoftDevice::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

// ---------------------------------------------------------------- its parts

bool SoftDevice::Write(Table table, uint32_t index, Engine::ConstEntry entry) {
  switch (table) {
    case Table::kPort:
      if (index != 0 || !engine_->WriteTable(table, index, entry)) {
        return false;
      }
      port_ = As<contract::PortCfg>(entry);
      wire_->Configure(port_);
      transport_->Configure(port_, transport_cfg_);
      return true;
    case Table::kTransport:
      if (index != 0) {
        return false;
      }
      transport_cfg_ = As<contract::TransportCfg>(entry);
      wire_->SetTransport(transport_cfg_);
      transport_->Configure(port_, transport_cfg_);
      transport_cfg_.close = 0;  // It was for the PDCs of this moment.
      return true;
    case Table::kNextHop:
      if (!engine_->WriteTable(table, index, entry)) {
        return false;
      }
      wire_->SetNextHop(index, As<contract::NextHopCfg>(entry));
      return true;
    default:
      return engine_->WriteTable(table, index, entry);
  }
}

bool SoftDevice::Read(Table table, uint32_t index, Engine::Entry entry) const {
  if (table != Table::kTransport) {
    return engine_->ReadTable(table, index, entry);
  }
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&transport_cfg_);
  std::copy_n(bytes, entry.size(), entry.begin());
  return index == 0;
}

Engine::DrainState SoftDevice::Drain(Table table, uint32_t index) {
  return engine_->Drain(table, index);
}

void SoftDevice::Raise(uint8_t vector) {
  ++interrupts_raised_;
  interrupts_.Raise(vector);
}

uint64_t SoftDevice::Statistic(contract::Statistic which) const {
  using contract::Statistic;
  const uint64_t own =
      which == Statistic::kInterrupts      ? interrupts_raised_
      : which == Statistic::kSlowPathRx    ? slow_path_.accepted()
      : which == Statistic::kSlowPathDrops ? slow_path_.dropped()
      : which == Statistic::kSlowPathTx    ? registers_->slow_path_sent()
                                           : 0;
  return own + engine_->statistic(which) + transport_->statistic(which) +
         wire_->statistic(which);
}

void SoftDevice::WriteStatistics() const {
  std::ofstream file(options_.settings.statistics, std::ios::app);
  for (const sim::device::StatisticName& statistic :
       sim::device::kStatisticNames) {
    file << statistic.name << ' ' << Statistic(statistic.value) << '\n';
  }
  file << "blocked_reads " << memory_.blocked_reads() << "\nblocked_writes "
       << memory_.blocked_writes() << '\n'
       << wire_->StatisticsText();
}

}  // namespace heddle::soft
