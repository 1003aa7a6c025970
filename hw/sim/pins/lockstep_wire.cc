// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/lockstep_wire.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace heddle::sim::pins {
namespace {

// Ethernet with VLAN, IPv6, UDP, longest PDS request, SES address.
constexpr size_t kRouteBytes = 94;
constexpr uint32_t kClaimedPorts = 65536;
constexpr uint32_t kFirstFreePort = 49152;

using firmware::PortName;

}  // namespace

class LockstepWire::Port : public MacLink, public firmware::Switch {
 public:
  Port(LockstepWire* wire, const frame::WireAddress& ip, uint8_t slot,
       const fault::FaultOptions& faults, const fault::FaultOptions& rx_faults)
      : wire_(wire),
        ip_(ip),
        slot_(slot),
        shapes_(faults.shapes()),
        injector_(faults),
        line_(faults, kHoldCycles),
        rx_line_(rx_faults, kHoldCycles) {}

  const frame::WireAddress& ip() const { return ip_; }
  uint8_t slot() const { return slot_; }
  bool Claimed(const PortName& name) const {
    return claims_.contains({name.port, name.space});
  }
  bool ClaimedInAnySpace(uint32_t port) const {
    const auto found = claims_.lower_bound({port, 0});
    return found != claims_.end() && found->first == port;
  }
  // Of both directions.
  uint64_t Sum(uint64_t (fault::FaultInjector::*count)() const) const {
    return (injector_.*count)() + (line_.injector().*count)() +
           (rx_line_.injector().*count)();
  }
  uint64_t Sum(uint64_t (fault::Shaper::*count)() const) const {
    return (line_.shaper().*count)() + (rx_line_.shaper().*count)();
  }
  uint64_t next() const {
    if (sending_ != nullptr || !arriving_.empty() || !entering_.empty()) {
      return wire_->cycle_;
    }
    const uint64_t held =
        held_.empty() ? UINT64_MAX : held_.front().since + kHoldCycles;
    return std::min({held, line_.next(), rx_line_.next()});
  }
  void SetLink(bool up) { link_up_ = up; }
  bool link_up() const { return link_up_; }
  void Arrive(const FlightPtr& flight) {
    (rx_line_.active() ? entering_ : arriving_).push_back(flight);
  }

  bool TransmitReady() override { return true; }

  void Transmit(std::span<const uint8_t> bytes, bool last) override {
    if (sending_ == nullptr) {
      sending_ = std::make_shared<Flight>();
      forwarded_ = false;
    }
    Flight& flight = *sending_;
    flight.bytes.insert(flight.bytes.end(), bytes.begin(), bytes.end());
    flight.sent_cycle.push_back(wire_->cycle_);
    flight.beat_end.push_back(static_cast<uint32_t>(flight.bytes.size()));
    wire_->beat_bytes_ = std::max(wire_->beat_bytes_, bytes.size());
    if (shapes_) {
      if (last) {
        line_.Push(std::move(std::exchange(sending_, nullptr)->bytes),
                   wire_->cycle_, &leaving_);
        LeaveShaped();
      }
      return;
    }
    if (!forwarded_ && (last || flight.bytes.size() >= kRouteBytes)) {
      forwarded_ = true;
      Decide();
    }
    if (last) {
      flight.complete = true;
      if (flight.fault.damaged()) {
        LeaveDamaged();
      }
      for (uint32_t i = 0; i < flight.copies; ++i) {
        wire_->Record(flight);
      }
      sending_.reset();
    }
  }

  bool Receive(MacBeat* beat) override {
    if (arriving_.empty()) {
      return false;
    }
    const Flight& flight = *arriving_.front();
    if (next_beat_ >= flight.sent_cycle.size() ||
        flight.sent_cycle[next_beat_] + wire_->options_.latency_cycles >
            wire_->cycle_) {
      return false;
    }
    const uint32_t start =
        next_beat_ == 0 ? 0 : flight.beat_end[next_beat_ - 1];
    beat->bytes = flight.beat_end[next_beat_] - start;
    std::memcpy(beat->data.data(), &flight.bytes[start], beat->bytes);
    beat->last = flight.complete && next_beat_ + 1 == flight.sent_cycle.size();
    beat->error = beat->last && flight.bad_fcs;
    ++next_beat_;
    if (beat->last) {
      arriving_.pop_front();
      next_beat_ = 0;
    }
    return true;
  }

  // Does what is due in the cycle that begins.
  void BeginCycle() {
    while (!held_.empty() &&
           held_.front().since + kHoldCycles <= wire_->cycle_) {
      const FlightPtr flight = std::move(held_.front().flight);
      held_.pop_front();
      wire_->Forward(flight);
      if (flight->complete) {
        wire_->Record(*flight);
      }
    }
    if (line_.next() <= wire_->cycle_) {
      line_.Release(wire_->cycle_, &leaving_);
      LeaveShaped();
    }
    Enter();
  }

  firmware::PortClaim ClaimPort(const PortName& name) override {
    firmware::PortClaim claim{};
    uint32_t port = name.port;
    const auto taken = [this, &name](uint32_t number) {
      return std::any_of(
          wire_->ports_.begin(), wire_->ports_.end(), [&](const auto& other) {
            return other->ip() == ip_ && other->Claimed({number, name.space});
          });
    };
    if (port == 0) {
      port = kFirstFreePort;
      while (port < kClaimedPorts && taken(port)) {
        ++port;
      }
      claim.exhausted = port == kClaimedPorts;
    }
    if (port >= kClaimedPorts || taken(port)) {
      return claim;
    }
    claims_.emplace(port, name.space);
    claim.granted = true;
    claim.port = port;
    return claim;
  }

  void ReleasePort(const PortName& name) override {
    claims_.erase({name.port, name.space});
  }

 private:
  struct Held {
    FlightPtr flight;
    uint32_t remaining;  // Frames that still pass it.
    uint64_t since;
  };

  // The switch knows where the frame being sent goes: faults, then forwarding.
  void Decide() {
    Flight& flight = *sending_;
    flight.route = frame::FindRoute(flight.bytes);
    flight.sender_up = link_up_;
    flight.sender = this;
    flight.fault = injector_.Next();
    if (flight.fault.duplicated) {
      wire_->Forward(sending_);
    }
    if (!flight.fault.damaged()) {
      Leave(sending_);
    }
  }

  // The whole frame is here. A copy that left before stays good.
  void LeaveDamaged() {
    const auto damaged = std::make_shared<Flight>(*sending_);
    fault::LineFrame frame{
        .bytes = std::move(damaged->bytes), .route = {}, .bad_fcs = false};
    injector_.Apply(damaged->fault, &frame);
    damaged->bytes = std::move(frame.bytes);
    damaged->bad_fcs = frame.bad_fcs;
    damaged->copies = 0;
    Leave(damaged);
    for (uint32_t i = 0; i < damaged->copies; ++i) {
      wire_->Record(*damaged);
    }
  }

  void Leave(const FlightPtr& sent) {
    const size_t waiting = held_.size();
    if (sent->fault.overtaken_by > 0) {
      held_.push_back({sent, sent->fault.overtaken_by, wire_->cycle_});
    } else if (!sent->fault.lost) {
      wire_->Forward(sent);
    }
    for (size_t i = 0, index = 0; i < waiting; ++i) {
      if (--held_[index].remaining == 0) {
        const FlightPtr flight = held_[index].flight;
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
        wire_->Forward(flight);
        wire_->Record(*flight);
      } else {
        ++index;
      }
    }
  }

  // A flight of which `frame` is all there is, its first beat sent at `cycle`.
  FlightPtr MakeFlight(fault::LineFrame frame, uint64_t cycle) {
    auto flight = std::make_shared<Flight>();
    flight->bytes = std::move(frame.bytes);
    const size_t beat = wire_->beat_bytes_;
    for (size_t end = 0; end < flight->bytes.size();) {
      end = std::min(end + beat, flight->bytes.size());
      flight->beat_end.push_back(static_cast<uint32_t>(end));
      flight->sent_cycle.push_back(cycle++);
    }
    flight->route = frame.route;
    flight->complete = true;
    flight->bad_fcs = frame.bad_fcs;
    flight->sender_up = link_up_;
    flight->sender = this;
    return flight;
  }

  void LeaveShaped() {
    for (fault::LineFrame& frame : leaving_) {
      const FlightPtr flight = MakeFlight(std::move(frame), wire_->cycle_);
      wire_->Forward(flight);
      for (uint32_t i = 0; i < flight->copies; ++i) {
        wire_->Record(*flight);
      }
    }
    leaving_.clear();
  }

  // Takes frames that have arrived whole through the receiver's faults. What
  // comes out of them has had the wire's latency.
  void Enter() {
    const uint64_t latency = wire_->options_.latency_cycles;
    while (!entering_.empty() && entering_.front()->complete &&
           entering_.front()->sent_cycle.back() + latency <= wire_->cycle_) {
      const Flight& flight = *entering_.front();
      rx_line_.Push(fault::LineFrame{.bytes = flight.bytes,
                                     .route = flight.route,
                                     .bad_fcs = flight.bad_fcs},
                    wire_->cycle_, &leaving_);
      entering_.pop_front();
    }
    if (rx_line_.next() <= wire_->cycle_) {
      rx_line_.Release(wire_->cycle_, &leaving_);
    }
    for (fault::LineFrame& frame : leaving_) {
      arriving_.push_back(
          MakeFlight(std::move(frame), wire_->cycle_ - latency));
    }
    leaving_.clear();
  }

  LockstepWire* const wire_;
  const frame::WireAddress ip_;
  const uint8_t slot_;
  const bool shapes_;
  bool link_up_ = true;
  fault::FaultInjector injector_;  // Unless the transmitter is shaped,
  fault::FaultyLine line_;         // which this does.
  fault::FaultyLine rx_line_;
  std::vector<fault::LineFrame> leaving_;           // Scratch.
  std::deque<FlightPtr> entering_;                  // To pass `rx_line_`.
  std::set<std::pair<uint32_t, uint32_t>> claims_;  // {port, space}.
  FlightPtr sending_;
  bool forwarded_ = false;
  std::deque<Held> held_;
  std::deque<FlightPtr> arriving_;
  size_t next_beat_ = 0;  // Of the front one.
};

LockstepWire::LockstepWire(const LockstepWireOptions& options)
    : options_(options) {}

LockstepWire::~LockstepWire() = default;

uint32_t LockstepWire::AddPort(const frame::WireAddress& ip) {
  const auto functions =
      std::count_if(ports_.begin(), ports_.end(),
                    [&ip](const auto& port) { return port->ip() == ip; });
  fault::FaultOptions faults = options_.faults;
  fault::FaultOptions rx_faults = options_.rx_faults;
  // Ports and directions fail independently.
  faults.seed += ports_.size() * 0x10001;
  rx_faults.seed = base::Random(faults.seed ^ rx_faults.seed).Next();
  ports_.push_back(std::make_unique<Port>(
      this, ip, static_cast<uint8_t>(functions), faults, rx_faults));
  return static_cast<uint32_t>(ports_.size() - 1);
}

MacLink* LockstepWire::mac(uint32_t port) {
  return ports_[port].get();
}

firmware::Switch* LockstepWire::ports(uint32_t port) {
  return ports_[port].get();
}

uint8_t LockstepWire::slot(uint32_t port) const {
  return ports_[port]->slot();
}

void LockstepWire::BeginCycle(uint64_t cycle) {
  cycle_ = cycle;
  for (const auto& port : ports_) {
    port->BeginCycle();
  }
}

uint64_t LockstepWire::next() const {
  uint64_t next = UINT64_MAX;
  for (const auto& port : ports_) {
    next = std::min(next, port->next());
  }
  return next;
}

template <typename Count>
uint64_t LockstepWire::Sum(Count count) const {
  uint64_t sum = 0;
  for (const auto& port : ports_) {
    sum += port->Sum(count);
  }
  return sum;
}

uint64_t LockstepWire::lost() const {
  return Sum(&fault::FaultInjector::lost);
}
uint64_t LockstepWire::corrupted() const {
  return Sum(&fault::FaultInjector::corrupted);
}
uint64_t LockstepWire::bad_fcs() const {
  return Sum(&fault::FaultInjector::bad_fcs);
}
uint64_t LockstepWire::overflowed() const {
  return Sum(&fault::Shaper::overflowed);
}
uint64_t LockstepWire::marked() const {
  return Sum(&fault::Shaper::marked);
}
uint64_t LockstepWire::trimmed() const {
  return Sum(&fault::Shaper::trimmed);
}

void LockstepWire::SetLink(uint32_t port, bool up) {
  ports_[port]->SetLink(up);
}
bool LockstepWire::link_up(uint32_t port) const {
  return ports_[port]->link_up();
}

void LockstepWire::set_capture(std::unique_ptr<frame::Capture> capture) {
  capture_ = std::move(capture);
}

LockstepWire::Port* LockstepWire::Find(const frame::Route& route) {
  Port* refuses = nullptr;  // Has the port in another space.
  for (const auto& port : ports_) {
    if (route.kind == frame::Route::Kind::kMac &&
        frame::PortMac(port->ip(), port->slot()) == route.mac) {
      return port.get();
    }
    if (route.kind == frame::Route::Kind::kMac || port->ip() != route.ip) {
      continue;
    }
    // Each function of this wire shares its address.
    if (route.kind == frame::Route::Kind::kAddress) {
      continue;
    }
    if (route.kind == frame::Route::Kind::kBlock
            ? port->slot() == route.block / frame::kSlotBlocks
            : port->Claimed(route.name())) {
      return port.get();
    }
    if (route.kind == frame::Route::Kind::kPort &&
        port->ClaimedInAnySpace(route.port)) {
      refuses = port.get();
    }
  }
  return refuses;
}

void LockstepWire::Forward(const FlightPtr& flight) {
  const frame::Route& route = flight->route;
  if (route.kind == frame::Route::Kind::kAll) {
    ForwardToAll(flight);
    return;
  }
  Port* const port =
      route.kind == frame::Route::Kind::kNone ? nullptr : Find(route);
  if (port == nullptr) {
    ++dropped_;
    return;
  }
  if (!flight->sender_up || !port->link_up()) {
    ++lost_link_down_;
    return;
  }
  ++frames_;
  ++flight->copies;
  port->Arrive(flight);
}

void LockstepWire::ForwardToAll(const FlightPtr& flight) {
  if (!flight->sender_up) {
    ++lost_link_down_;
    return;
  }
  ++frames_;
  ++flight->copies;
  for (const auto& port : ports_) {
    if (port.get() != flight->sender && port->link_up()) {
      port->Arrive(flight);
    }
  }
}

void LockstepWire::Record(const Flight& flight) {
  if (capture_ != nullptr) {
    capture_->Add(flight.bytes, cycle_ * options_.cycle_ns);
  }
}

}  // namespace heddle::sim::pins
