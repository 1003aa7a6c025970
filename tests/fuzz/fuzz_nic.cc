// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_nic.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>

#include "driver/base/hex.h"
#include "driver/control/device_info.h"
#include "driver/queue/doorbells.h"
#include "hw/sim/frame/route.h"
#include "hw/sim/model/model_stopped.h"

namespace heddle::fuzz {
namespace {

using contract::Completion;

bool input_began = false;

// All of libfabric's low `msg_order` bits: ROD, whose order is looked at.
constexpr uint64_t kEveryOrder = 0x1ff;
constexpr uint64_t kCycleNs = 4;
constexpr uint64_t kTick = contract::kTickCycles;
constexpr uint64_t kWireCycles = 16;
constexpr uint64_t kMac = 0x020000000001;
constexpr uint64_t kGatewayMac = 0x02ff00000001;
constexpr uint32_t kFirstPort = 1000;
constexpr uint32_t kGoodJob = 2;
constexpr uint64_t kSabotagedLimit = 5000;
constexpr uint32_t kProbeBytes = 100;
constexpr uint64_t kLineBytes = 64;
constexpr std::chrono::seconds kAdminLimit{20};

sim::nic::NicNodeOptions Options(const Form& form,
                                 const sim::frame::WireAddress& address) {
  sim::nic::NicNodeOptions options{.memory = {}, .model = {}, .board = {}};
  // Short latencies: many inputs count for more than a busy memory.
  options.memory.read_latency_cycles = 24;
  options.memory.read_jitter_cycles = 16;
  options.memory.write_delay_cycles = 8;
  options.memory.response_delay_cycles = 8;
  firmware::Board& board = options.board;
  board.fa_lo = address.lo;
  board.fa_hi = address.hi;
  board.ipv6 = form.ipv6;
  board.vlan = form.vlan;
  board.crc = form.crc;
  board.ip_protocol = form.native ? contract::kNativeIpProtocol : 0;
  board.mac = kMac;
  board.gateway_mac = kGatewayMac;
  board.tick_ns = kTick * kCycleNs;
  board.rto_ns = 2048 * kCycleNs;
  board.rto_max_ns = 8192 * kCycleNs;
  board.backoff_ns = 256 * kCycleNs;
  board.backoff_max_ns = 4096 * kCycleNs;
  board.dead_ns = 65536 * kCycleNs;
  board.ack_delay_ns = 2 * board.tick_ns;
  board.pdc_seed = 0x5eed;
  board.payload_mtu = 1024;
  board.slot = 0;
  board.write_errors = true;
  return options;
}

template <typename T>
T Must(Result<T> result, const char* what) {
  if (!result.ok()) {
    throw std::runtime_error(std::string(what) + ": " +
                             std::strerror(static_cast<int>(result.error())));
  }
  return std::move(result.value());
}

bool Covers(const std::vector<Range>& ranges, uint64_t address) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return address - range.base < range.bytes;
  });
}

}  // namespace

void BeginInput() {
  input_began = true;
}

Sabotage ChosenSabotage() {
  static constexpr const char* kNames[] = {
      "", "hang", "dma", "double", "invented", "memory", "probe", "assertion"};
  static const Sabotage chosen = [] {
    const char* name = std::getenv("HEDDLE_FUZZ_BREAK");
    for (size_t i = 0; name != nullptr && i < std::size(kNames); ++i) {
      if (std::strcmp(name, kNames[i]) == 0) {
        return static_cast<Sabotage>(i);
      }
    }
    return Sabotage::kNone;
  }();
  return input_began ? chosen : Sabotage::kNone;
}

// ------------------------------------------------------------------ the NIC

FuzzNic::FuzzNic(const Form& form)
    : form_(form),
      node_(
          Options(form, address()), this, this,
          [this](uint32_t vector) { interrupts_.Raise(vector); },
          [this] { Cycle(); }),
      points_(TakeCoveragePoints()) {
  if (const char* file = std::getenv("HEDDLE_FUZZ_CAPTURE")) {
    capture_ = Must(sim::frame::Capture::Open(file), file);
  }
  node_.Start();
  std::string error;
  Must(WaitReady(*this, kReadyLimit, error), "the NIC's start");
  admin_ = Must(AdminQueue::Create(*this, kAdminLimit), "the admin queue");
}

sim::frame::WireAddress FuzzNic::address() const {
  return form_.ipv6 ? sim::frame::WireAddress(0xfd00000000000000, 1)
                    : sim::frame::WireAddress(0x0a000001U);
}

sim::frame::WireAddress FuzzNic::stranger() const {
  return form_.ipv6 ? sim::frame::WireAddress(0xfd00000000000000, 9)
                    : sim::frame::WireAddress(0x0a000009U);
}

void FuzzNic::Cycle() {
  ++cycle_;
  ++evaluated_;
  node_.model().Cycle(cycle_ % kTick == 0);
}

bool FuzzNic::quiet() {
  sim::nic::NicModel& model = node_.model();
  if (ChosenSabotage() == Sabotage::kHang) {
    return false;
  }
  return arriving_.empty() && sending_.empty() && model.quiet() &&
         model.bar().quiet() && !model.management_event();
}

void FuzzNic::Step() {
  CheckAlive();
  if (quiet()) {
    cycle_ += kTick - 1 - cycle_ % kTick;
  }
  Cycle();
  node_.ServeFirmware();
}

void FuzzNic::Step(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    Step();
  }
}

bool FuzzNic::StepUntil(uint64_t limit, const std::function<bool()>& done) {
  const uint64_t end = evaluated_ + limit;
  while (!done()) {
    if (evaluated_ >= end) {
      return false;
    }
    Step();
  }
  return true;
}

bool FuzzNic::Settle(uint64_t limit) {
  if (ChosenSabotage() == Sabotage::kHang) {
    limit = kSabotagedLimit;  // What never ends need not be long in doing so.
  }
  return StepUntil(limit, [this] {
    return quiet() && !node_.model().deadline_ticks().has_value();
  });
}

std::string FuzzNic::Unrest() {
  const sim::nic::NicModel& model = node_.model();
  const auto deadline = model.deadline_ticks();
  return std::string(model.quiet() ? "" : " NIC busy") +
         (deadline ? " timer in " + std::to_string(*deadline) + " ticks" : "") +
         (arriving_.empty() ? "" : " frames arriving") +
         (model.management_event() ? " event for the firmware" : "");
}

void FuzzNic::CheckAlive() const {
  if (failed()) {
    throw Broken("the model stopped: " + failure());
  }
}

void FuzzNic::Ring(uint32_t bar2_offset, uint64_t value) {
  node_.model().bar().Write(sim::pins::kBar2Address + bar2_offset, value,
                            sizeof(value));
}

void FuzzNic::Push(uint32_t bar2_offset, const std::array<uint64_t, 8>& slot,
                   bool words) {
  if (!words) {
    node_.model().bar().WriteWords(sim::pins::kBar2Address + bar2_offset, slot);
    return;
  }
  for (size_t i = 0; i < slot.size(); ++i) {
    Ring(bar2_offset + static_cast<uint32_t>(8 * i), slot[i]);
  }
}

void FuzzNic::InheritMemory() const {
  for (const Range& range : mapped_) {
    // NOLINTNEXTLINE: an IOVA of an in-process device is an address.
    madvise(reinterpret_cast<void*>(range.base), range.bytes, MADV_DOFORK);
  }
}

// ------------------------------------------------------------------ its wire

void FuzzNic::Transmit(std::span<const uint8_t> bytes, bool last) {
  sending_.insert(sending_.end(), bytes.begin(), bytes.end());
  if (!last) {
    return;
  }
  sim::frame::Frame frame = std::move(sending_);
  sending_.clear();
  if (on_sent) {
    on_sent(std::move(frame));
  } else {
    Return(std::move(frame));
  }
}

void FuzzNic::Return(sim::frame::Frame frame) {
  if (sim::frame::FindRoute(frame).ip == address()) {
    Deliver(std::move(frame));
  }
}

void FuzzNic::Deliver(sim::frame::Frame frame, bool error) {
  if (capture_ != nullptr) {
    capture_->Add(frame, cycle_ * kCycleNs);
    capture_->Flush();  // A child ends without closing it.
  }
  if (!frame.empty()) {
    arriving_.push_back({cycle_ + kWireCycles, std::move(frame), error});
  }
}

bool FuzzNic::Receive(sim::pins::MacBeat* beat) {
  if (arriving_.empty() || arriving_.front().cycle > cycle_) {
    return false;
  }
  Arriving& frame = arriving_.front();
  const size_t bytes = std::min<size_t>(sim::nic::NicModel::BusBytes(),
                                        frame.bytes.size() - frame.sent);
  std::copy_n(frame.bytes.begin() + static_cast<ptrdiff_t>(frame.sent), bytes,
              beat->data.begin());
  beat->bytes = static_cast<uint32_t>(bytes);
  frame.sent += bytes;
  beat->last = frame.sent == frame.bytes.size();
  beat->error = beat->last && frame.error;
  if (beat->last) {
    arriving_.pop_front();
  }
  return true;
}

firmware::PortClaim FuzzNic::ClaimPort(const firmware::PortName& name) {
  return {.granted = true,
          .exhausted = false,
          .port = name.port != 0 ? name.port : kFirstPort + ports_++,
          .owner = 0};
}

// ------------------------------------------------------------------ its bus

uint32_t FuzzNic::ReadRegister32(uint32_t offset) {
  return static_cast<uint32_t>(
      node_.ReadBar(sim::pins::kBar0Address + offset, 4));
}
uint64_t FuzzNic::ReadRegister64(uint32_t offset) {
  return node_.ReadBar(sim::pins::kBar0Address + offset, 8);
}
void FuzzNic::WriteRegister32(uint32_t offset, uint32_t value) {
  node_.WriteBar(sim::pins::kBar0Address + offset, value, 4);
}
void FuzzNic::WriteRegister64(uint32_t offset, uint64_t value) {
  node_.WriteBar(sim::pins::kBar0Address + offset, value, 8);
}

Doorbell FuzzNic::doorbell(uint32_t bar2_offset) {
  return {.address = nullptr,
          .notify =
              [](void* cookie, uint32_t offset, uint64_t value) {
                static_cast<FuzzNic*>(cookie)->Ring(offset, value);
              },
          .cookie = this,
          .bar2_offset = bar2_offset};
}

ProgressHook FuzzNic::progress_hook() {
  return {.step = [](void* cookie) { static_cast<FuzzNic*>(cookie)->Step(); },
          .cookie = this};
}

Result<Iova> FuzzNic::Map(void* address, size_t bytes) {
  // NOLINTNEXTLINE: an IOVA of an in-process device is an address.
  const auto base = reinterpret_cast<uint64_t>(address);
  mapped_.push_back({base, bytes});
  return memory().Map(base, bytes);
}

void FuzzNic::Unmap(Iova iova, size_t bytes) {
  memory().Unmap(ToInteger(iova), bytes);
}

int FuzzNic::interrupt_fd(uint32_t vector) {
  return interrupts_.Fd(vector);
}

// ------------------------------------------------------------- watched memory

Watched::Watched(FuzzNic& nic, const char* name, size_t bytes)
    : name_(name), buffer_(Must(DmaBuffer::Create(nic, bytes), name)) {
  Accept();
}

void Watched::Accept() {
  expected_.assign(data(), data() + bytes());
}

void Watched::Accept(size_t offset, size_t bytes) {
  std::copy_n(data() + offset, bytes, expected_.data() + offset);
}

void Watched::Check(const std::vector<Range>& invited) const {
  if (std::memcmp(data(), expected_.data(), bytes()) == 0) {
    return;
  }
  for (size_t i = 0; i < bytes(); ++i) {
    if (data()[i] != expected_[i] && !Covers(invited, iova() + i)) {
      throw Broken(std::string("memory changed that the NIC was not given: ") +
                   name_ + ", byte " + std::to_string(i));
    }
  }
}

// ------------------------------------------------------------- open endpoint

OpenEndpoint::OpenEndpoint(FuzzNic& nic_in, uint32_t job_id, bool ordered)
    : nic(nic_in),
      grant(Must(nic.admin().CreateEndpoint({.port = 0, .job_id = job_id}),
                 "an endpoint")),
      tx_ring(nic, "transmit ring", kSlots * sizeof(contract::TxDesc)),
      rx_ring(nic, "receive ring", kSlots * sizeof(contract::RxDesc)),
      av(nic, "address vector", kPeers * sizeof(contract::AvEntry)),
      tx_entries(nic, "transmit completions", sizeof(Completion) << kCqLog2),
      rx_entries(nic, "receive completions", sizeof(Completion) << kCqLog2),
      cells(Must(DmaBuffer::Create(nic, kLineBytes), "cells")) {
  AdminQueue& admin = nic.admin();
  tx_cq = Must(admin.CreateCq({.base = tx_entries.iova(), .log2 = kCqLog2}),
               "a completion queue");
  rx_cq = Must(admin.CreateCq({.base = rx_entries.iova(), .log2 = kCqLog2}),
               "a completion queue");
  tx = Must(admin.CreateTx({.endpoint = grant.endpoint,
                            .ring_base = tx_ring.iova(),
                            .head_cell = ToInteger(cells.iova()),
                            .av_base = av.iova(),
                            .av_entries = kPeers,
                            .cq = static_cast<uint8_t>(tx_cq),
                            .ring_log2 = kRingLog2,
                            .msg_order = ordered ? kEveryOrder : 0}),
            "a transmit context");
  rx = Must(admin.CreateRx({.endpoint = grant.endpoint,
                            .ring_base = rx_ring.iova(),
                            .head_cell = ToInteger(cells.iova()) + 8,
                            .cq = static_cast<uint8_t>(rx_cq),
                            .ring_log2 = kRingLog2}),
            "a receive context");
}

bool OpenEndpoint::Take(const Watched& queue, uint32_t* count,
                        Completion* completion) {
  const auto entries = queue.entries<Completion>(size_t{1} << kCqLog2);
  // One lap only: an entry that was written has phase 1.
  if (*count == entries.size() || entries[*count].phase != 1) {
    return false;
  }
  *completion = entries[(*count)++];
  return true;
}

bool OpenEndpoint::TakeTx(Completion* completion) {
  return Take(tx_entries, &tx_count_, completion);
}
bool OpenEndpoint::TakeRx(Completion* completion) {
  return Take(rx_entries, &rx_count_, completion);
}

void OpenEndpoint::Destroy() {
  AdminQueue& admin = nic.admin();
  Must(admin.DestroyTx(tx), "the end of a transmit context");
  Must(admin.DestroyRx(rx), "the end of a receive context");
  Must(admin.DestroyCq(tx_cq), "the end of a completion queue");
  Must(admin.DestroyCq(rx_cq), "the end of a completion queue");
  Must(admin.DestroyEndpoint(grant.endpoint), "the end of an endpoint");
}

void OpenEndpoint::Accept() {
  tx_ring.Accept();
  rx_ring.Accept();
  av.Accept();
}

void OpenEndpoint::Check(const std::vector<Range>& invited) const {
  tx_ring.Check(invited);
  rx_ring.Check(invited);
  av.Check(invited);
  const auto with = [&](const Watched& queue, uint32_t count) {
    std::vector<Range> ranges = invited;
    ranges.push_back({queue.iova(), count * sizeof(Completion)});
    queue.Check(ranges);
  };
  with(tx_entries, tx_count_);
  with(rx_entries, rx_count_);
}

void OpenEndpoint::SetPeer(uint32_t index,
                           const sim::frame::WireAddress& address,
                           uint16_t resource_index, uint16_t pid_on_fep) {
  const auto hop = nic.admin().ResolveNextHop(
      {.lo = address.lo, .hi = address.hi, .ipv6 = address.ipv6});
  av.entries<contract::AvEntry>(kPeers)[index] = {
      .fa_lo = address.lo,
      .fa_hi = address.hi,
      .pid_on_fep = pid_on_fep,
      .resource_index = resource_index,
      .next_hop = static_cast<uint16_t>(hop.ok() ? hop.value() : 0),
      .flags = static_cast<uint8_t>(
          contract::kAvFlagValid | (address.ipv6 ? contract::kAvFlagIpv6 : 0))};
}

uint64_t OpenEndpoint::tx_released() const {
  return cells.entries<const uint64_t>(2)[0] & UINT16_MAX;
}

// ------------------------------------------------------------------ the scene

Scene::Scene(const Form& form)
    : nic(form),
      victim(nic, kVictimJob, !form.rud),
      source(nic, "source", kSourceBytes),
      target(nic, "receive buffers", kTargetBytes),
      bystander(nic, "bystander", DmaBuffer::kPageBytes) {
  for (size_t i = 0; i < source.bytes(); ++i) {
    source.data()[i] = KnownByte(i);
  }
  source.Accept();
  victim.SetPeer(0, nic.address(), victim.grant.resource_index,
                 victim.grant.pid_on_fep);
  victim.SetPeer(1, nic.stranger(), victim.grant.resource_index,
                 victim.grant.pid_on_fep);
  victim.Accept();
  std::string error;
  good_ = BareEndpoint::Create(nic, nic.admin(), {.job_id = kGoodJob}, &error);
  if (good_ == nullptr) {
    throw std::runtime_error(error);
  }
  good_->AddPeer(nic.address(), good_->grant());
  good_memory_ = Must(DmaBuffer::Create(nic, 2 * DmaBuffer::kPageBytes),
                      "the good peer's memory");
  if (!nic.Settle(kSettleLimit)) {
    throw std::runtime_error("the NIC does not come to rest after its start");
  }
}

void Scene::ComeToRest(bool must) {
  if (ChosenSabotage() == Sabotage::kAssertion) {
    nic.memory().Sample({.aw_valid = true, .aw_size = 3, .aw_burst = 0});
  }
  if (ChosenSabotage() == Sabotage::kMemory) {
    bystander.data()[77] = std::byte{1};
  }
  if (!nic.Settle(must ? kSettleLimit : kQuietLimit) && must) {
    throw Broken("the NIC does not come to rest:" + nic.Unrest());
  }
  nic.CheckAlive();
}

void Scene::Probe(uint32_t tries) {
  std::byte* const sent = good_memory_.data();
  std::byte* const received = sent + DmaBuffer::kPageBytes;
  if (ChosenSabotage() == Sabotage::kProbe) {
    nic.on_sent = [](const sim::frame::Frame&) {};
  }
  // What was posted may have been taken by a forged message, and a PDC that was
  // lied to ends in error: the next try must do.
  for (uint32_t i = 0; i < tries; ++i) {
    for (uint32_t j = 0; j < kProbeBytes; ++j) {
      sent[j] = KnownByte(1000 * i + j);
      received[j] = std::byte{0};
    }
    while (good_->PollRx()) {
    }
    if (!good_->rx().TryPush(i, good_memory_.iova() + DmaBuffer::kPageBytes,
                             kProbeBytes)) {
      throw Broken("the good peer's receive ring stays full");
    }
    good_->rx().Publish();
    if (!good_->tx().PushBuffer(
            {.op_context = i, .flags = contract::kTxFlagCompletion},
            good_memory_.iova(), kProbeBytes)) {
      throw Broken("the good peer's transmit ring stays full");
    }
    good_->tx().Publish();
    std::optional<Completion> tx;
    std::optional<Completion> rx;
    nic.StepUntil(kProbeLimit, [&] {
      tx = tx ? tx : good_->PollTx();
      rx = rx ? rx : good_->PollRx();
      return tx && (rx || tx->status != contract::Status::kOk);
    });
    if (tx && rx && tx->status == contract::Status::kOk &&
        rx->status == contract::Status::kOk && rx->length == kProbeBytes &&
        std::memcmp(sent, received, kProbeBytes) == 0) {
      return;
    }
  }
  throw Broken("a message between good peers does not get through");
}

void Scene::Finish(const std::vector<Range>& announced,
                   const std::vector<Range>& invited) {
  victim.Destroy();
  nic.on_sent = [](const sim::frame::Frame&) {};
  if (!nic.Settle(kSettleLimit)) {
    throw Broken("the NIC does not come to rest when the contexts are gone:" +
                 nic.Unrest());
  }
  nic.CheckAlive();
  source.Check(invited);
  target.Check(invited);
  bystander.Check(invited);
  victim.Check(invited);
  for (const sim::pins::BlockedAccess& access : nic.memory().blocked()) {
    // A read takes whole words of the bus.
    const uint64_t first = access.write
                               ? access.address
                               : access.address / kLineBytes * kLineBytes;
    const uint64_t bytes = access.write ? access.bytes : kLineBytes;
    bool expected = false;
    // Counted, because the last byte may be that of the address space.
    for (uint64_t i = 0; i < bytes && !expected; ++i) {
      expected = Covers(announced, first + i);
    }
    if (!expected) {
      throw Broken(std::string("DMA outside mapped memory: ") +
                   (access.write ? "write of " : "read of ") +
                   std::to_string(access.bytes) + " bytes at " +
                   Hex(access.address));
    }
  }
}

}  // namespace heddle::fuzz
