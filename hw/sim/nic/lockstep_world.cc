// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/nic/lockstep_world.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/interrupt_fds.h"
#include "hw/sim/model/recording.h"
#include "hw/sim/nic/nic_node.h"

namespace heddle::sim::nic {
namespace {

constexpr size_t kMaxNics = frame::kSlots;
constexpr uint64_t kGatewayMac = 0x02ff00000001;  // The wire's switch.
constexpr uint8_t kNeighbourTries = 4;
constexpr uint64_t kReachableRetries = 64;
constexpr uint64_t kStartLimitCycles = 20000;
constexpr uint32_t kResetLimitCycles = 1000000;

}  // namespace

class LockstepWorld::Nic : public Device {
 public:
  Nic(LockstepWorld* world, uint32_t index, const NicNodeOptions& options)
      : world_(world),
        name_("rtl" + std::to_string(index)),
        node_(
            options, world->wire_.mac(index), world->wire_.ports(index),
            [this](uint32_t vector) { interrupts_.Raise(vector); },
            [world] { world->CycleAll(); }) {}

  NicNode& node() { return node_; }
  const NicNode& node() const { return node_; }

  const std::string& name() const override { return name_; }
  uint32_t ReadRegister32(uint32_t offset) override {
    return static_cast<uint32_t>(node_.ReadBar(pins::kBar0Address + offset, 4));
  }
  uint64_t ReadRegister64(uint32_t offset) override {
    return node_.ReadBar(pins::kBar0Address + offset, 8);
  }
  void WriteRegister32(uint32_t offset, uint32_t value) override {
    node_.WriteBar(pins::kBar0Address + offset, value, 4);
  }
  void WriteRegister64(uint32_t offset, uint64_t value) override {
    node_.WriteBar(pins::kBar0Address + offset, value, 8);
  }
  Doorbell doorbell(uint32_t bar2_offset) override {
    return {.address = nullptr,
            .notify =
                [](void* cookie, uint32_t offset, uint64_t value) {
                  static_cast<Nic*>(cookie)->node_.model().bar().Write(
                      pins::kBar2Address + offset, value, sizeof(value));
                },
            .cookie = this,
            .bar2_offset = bar2_offset};
  }
  PushWindow push_window(uint32_t bar2_offset) override {
    return {.copy =
                [](void* cookie, uint32_t offset, const void* slot) {
                  pins::BarBeat words;
                  std::memcpy(words.data(), slot, sizeof(words));
                  static_cast<Nic*>(cookie)->node_.model().bar().WriteWords(
                      pins::kBar2Address + offset, words);
                },
            .cookie = this,
            .bar2_offset = bar2_offset};
  }
  ProgressHook progress_hook() override {
    return {.step =
                [](void* cookie) {
                  Nic& nic = *static_cast<Nic*>(cookie);
                  nic.world_->Step(nic.world_->options_.poll_cycles);
                  if (nic.failed()) {
                    nic.ReportFailure();
                  }
                },
            .cookie = this};
  }
  Result<Iova> Map(void* address, size_t bytes) override {
    // NOLINTNEXTLINE: an IOVA of an in-process device is an address.
    return node_.memory().Map(reinterpret_cast<uint64_t>(address), bytes);
  }
  void Unmap(Iova iova, size_t bytes) override {
    node_.memory().Unmap(static_cast<uint64_t>(iova), bytes);
  }
  int interrupt_fd(uint32_t vector) override { return interrupts_.Fd(vector); }
  Result<bool> Reset() override {
    WriteRegister32(contract::kBar0DeviceControlOffset,
                    contract::kBar0DeviceControlResetMask);
    for (uint32_t i = 0; i < kResetLimitCycles && !failed(); ++i) {
      if ((ReadRegister32(contract::kBar0DeviceControlOffset) &
           contract::kBar0DeviceControlResetMask) == 0) {
        return true;
      }
      world_->Step(1);
    }
    return Errno{EIO};
  }
  bool failed() const override { return node_.model().failed(); }
  std::string failure() const override { return node_.model().failure(); }

 private:
  LockstepWorld* const world_;
  const std::string name_;
  base::InterruptFds interrupts_;
  NicNode node_;
};

LockstepWorld::LockstepWorld(const LockstepOptions& options)
    : options_(options), wire_([&options] {
        pins::LockstepWireOptions wire = options.wire;
        wire.faults.seed = options.seed;
        return wire;
      }()) {}

LockstepWorld::~LockstepWorld() = default;

Result<std::unique_ptr<LockstepWorld>> LockstepWorld::Create(
    const LockstepOptions& options, std::string* message) {
  if (options.addresses.empty() || options.addresses.size() > kMaxNics) {
    *message = "a lock-step world has 1 to 64 NICs";
    return Errno{EINVAL};
  }
  std::unique_ptr<LockstepWorld> world(new LockstepWorld(options));
  if (!options.capture.empty()) {
    auto capture = frame::Capture::Open(options.capture);
    if (!capture.ok()) {
      *message = "capture file " + options.capture + ": " +
                 strerror(static_cast<int>(capture.error()));
      return capture.error();
    }
    world->wire_.set_capture(std::move(capture.value()));
  }
  if (!world->Start(message)) {
    return Errno{EIO};
  }
  return world;
}

std::string LockstepWorld::TraceOf(uint32_t index) const {
  if (options_.trace.empty() || index == 0) {
    return options_.trace;
  }
  const std::filesystem::path file(options_.trace);
  const std::string name = file.stem().string() + "-" + std::to_string(index) +
                           file.extension().string();
  return (file.parent_path() / name).string();
}

bool LockstepWorld::Start(std::string* message) {
  constexpr uint64_t kTick = contract::kTickCycles;
  constexpr uint64_t kAckDelayTicks = 2;
  const uint64_t cycle_ns = options_.wire.cycle_ns;
  for (const frame::WireAddress& ip : options_.addresses) {
    const uint32_t index = wire_.AddPort(ip);
    NicNodeOptions options{.memory = options_.memory, .model = {}, .board = {}};
    options.memory.seed = options_.seed * kMaxNics + index;
    options.model.trace = TraceOf(index);
    options.model.trace_from_cycle = options_.trace_from_cycle;
    firmware::Board& board = options.board;
    board.fa_lo = ip.lo;
    board.fa_hi = ip.hi;
    board.ipv6 = ip.ipv6;
    board.vlan = options_.vlan;
    board.dscp_trimmed = options_.dscp_trimmed;
    board.dscp_trimmed_lasthop = options_.dscp_trimmed_lasthop;
    board.crc = options_.crc;
    board.ip_protocol = options_.ip_protocol;
    board.slot = wire_.slot(index);
    board.mac = frame::PortMac(ip, board.slot);
    board.gateway_mac = kGatewayMac;
    board.resolve_neighbours = options_.resolve_neighbours;
    board.neighbour_retry_ns = options_.neighbour_retry_cycles * cycle_ns;
    board.neighbour_reachable_ns = kReachableRetries * board.neighbour_retry_ns;
    board.neighbour_tries = kNeighbourTries;
    board.tick_ns = kTick * cycle_ns;
    board.rto_ns = options_.rto_cycles * cycle_ns;
    board.rto_max_ns = options_.rto_max_cycles * cycle_ns;
    board.backoff_ns = options_.backoff_cycles * cycle_ns;
    board.backoff_max_ns = options_.backoff_max_cycles * cycle_ns;
    board.dead_ns = options_.dead_cycles * cycle_ns;
    board.pdc_safety_ns = options_.pdc_safety_cycles * cycle_ns;
    board.pdc_idle_ns = options_.pdc_idle_cycles * cycle_ns;
    board.cwnd_bytes = options_.cwnd_bytes;
    board.base_rtt_ns =
        static_cast<uint32_t>(options_.base_rtt_cycles * cycle_ns);
    board.congestion = board.cwnd_bytes != 0 && board.base_rtt_ns != 0;
    board.ack_delay_ns = kAckDelayTicks * board.tick_ns;
    board.pdc_seed =
        static_cast<uint32_t>(base::Random(options.memory.seed).Next());
    board.payload_mtu = static_cast<uint16_t>(options_.payload_mtu);
    board.write_errors = options_.write_errors;
    nics_.push_back(std::make_unique<Nic>(this, index, options));
  }
  for (const auto& nic : nics_) {
    nic->node().Start();
  }
  for (uint64_t i = 0; i < kStartLimitCycles && !quiet(); ++i) {
    if (!failure().empty()) {
      break;
    }
    Step(1);
  }
  *message = failure();
  return message->empty();
}

Device& LockstepWorld::device(size_t nic) {
  return *nics_[nic];
}
pins::HostMemory& LockstepWorld::memory(size_t nic) {
  return nics_[nic]->node().memory();
}
NicModel& LockstepWorld::model(size_t nic) {
  return nics_[nic]->node().model();
}

void LockstepWorld::SetLink(size_t nic, bool up) {
  wire_.SetLink(static_cast<uint32_t>(nic), up);
  nics_[nic]->node().SetLink(up);
}

std::string LockstepWorld::failure() const {
  for (const auto& nic : nics_) {
    if (nic->failed()) {
      return nic->name() + ": " + nic->failure();
    }
  }
  return {};
}

bool LockstepWorld::quiet() const {
  return wire_.quiet() && NicsQuiet();
}

bool LockstepWorld::NicsQuiet() const {
  return std::all_of(nics_.begin(), nics_.end(), [](const auto& nic) {
    NicModel& model = nic->node().model();
    return model.failed() ||
           (model.quiet() && model.bar().quiet() && !model.management_event());
  });
}

bool LockstepWorld::SkipIdle() {
  const uint64_t arrival = wire_.next();
  if (arrival <= cycle_ + 1 || !NicsQuiet()) {
    return true;
  }
  const bool timer =
      std::any_of(nics_.begin(), nics_.end(), [](const auto& nic) {
        return nic->node().model().deadline_ticks().has_value();
      });
  if (!timer && arrival == UINT64_MAX) {
    return false;
  }
  const uint64_t to_tick =
      contract::kTickCycles - 1 - cycle_ % contract::kTickCycles;
  cycle_ += std::min(to_tick, arrival - cycle_ - 1);
  return true;
}

void LockstepWorld::CycleAll(bool tick) {
  ++cycle_;
  ++evaluated_;
  model::latest_cycle = evaluated_;
  wire_.BeginCycle(cycle_);
  for (const auto& nic : nics_) {
    nic->node().model().Cycle(tick);
  }
}

void LockstepWorld::CycleAll() {
  CycleAll((cycle_ + 1) % contract::kTickCycles == 0);
}

void LockstepWorld::Step(uint32_t cycles) {
  for (uint32_t i = 0; i < cycles; ++i) {
    if (!SkipIdle()) {
      return;
    }
    CycleAll();
    for (const auto& nic : nics_) {
      nic->node().ServeFirmware();
    }
  }
}

}  // namespace heddle::sim::nic
