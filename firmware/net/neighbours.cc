// SPDX-License-Identifier: Apache-2.0
#include "firmware/net/neighbours.h"

#include "firmware/net/port.h"

namespace heddle::firmware {
namespace {

constexpr uint32_t kIpv4Bits = 32;
constexpr uint32_t kHalfBits = 64;
constexpr uint64_t kLinkLocal = 0xfe80;  // fe80::/16 of fe80::/10.
constexpr uint32_t kLinkLocalShift = 48;

// True when the top `bits` of `width`-bit values are equal.
constexpr bool SamePrefix(uint64_t a, uint64_t b, uint32_t bits,
                          uint32_t width) {
  if (bits == 0) {
    return true;
  }
  const uint32_t shift = bits < width ? width - bits : 0;
  return a >> shift == b >> shift;
}

// Times wrap: `due` has come when it is not ahead of `now`.
constexpr bool HasCome(uint32_t due, uint32_t now) {
  return static_cast<int32_t>(now - due) >= 0;
}

// Half the range of a wrapping time, so that it can be told from the past.
uint32_t TicksWithin(uint64_t ns, uint64_t tick_ns) {
  constexpr uint32_t kMost = 0x40000000;
  uint32_t ticks = 0;
  return TicksOf(ns, tick_ns, ticks) && ticks < kMost ? ticks : kMost;
}

}  // namespace

Neighbours::Neighbours(TablePort& tables, SlowPath& slow_path, Timer& timer,
                       const Board& board)
    : tables_(tables),
      slow_path_(slow_path),
      timer_(timer),
      board_(board),
      self_{
          .address = {.lo = board.fa_lo, .hi = board.fa_hi, .ipv6 = board.ipv6},
          .mac = board.mac & kMacMask,
          .vlan = board.vlan} {}

Status Neighbours::Start() {
  retry_ticks_ = TicksWithin(board_.neighbour_retry_ns, board_.tick_ns);
  reachable_ticks_ = TicksWithin(board_.neighbour_reachable_ns, board_.tick_ns);
  Abandon();
  for (uint32_t i = kFirstHop; i < kHops; ++i) {
    if (hops_[i].state == State::kFree) {
      continue;
    }
    hops_[i] = {};
    const Status status =
        tables_.Write(contract::Table::kNextHop, i, contract::NextHopCfg{});
    if (!status.ok()) {
      return status;
    }
  }
  dirty_ = 0;
  hops_[0] = {};
  timer_.Start(0);
  contract::NextHopCfg gateway{};
  if (!board_.resolve_neighbours) {
    gateway = {.mac = board_.gateway_mac & kMacMask,
               .vlan = board_.vlan,
               .mtu = board_.payload_mtu,
               .valid = 1};
  }
  return tables_.Write(contract::Table::kNextHop, 0, gateway);
}

bool Neighbours::IsUnicast(const FabricAddress& address) const {
  return address.ipv6 == ipv6() && address.is_unicast();
}

bool Neighbours::IsOnLink(const FabricAddress& address) const {
  const uint32_t bits = board_.prefix_length;
  if (!self_.address.ipv6) {
    return SamePrefix(address.lo, self_.address.lo, bits, kIpv4Bits);
  }
  if (address.hi >> kLinkLocalShift == kLinkLocal) {
    return true;
  }
  return SamePrefix(address.hi, self_.address.hi, bits, kHalfBits) &&
         (bits <= kHalfBits || SamePrefix(address.lo, self_.address.lo,
                                          bits - kHalfBits, kHalfBits));
}

Neighbours::Outcome Neighbours::Resolve(uint16_t id,
                                        const FabricAddress& address,
                                        uint32_t& hop) {
  if (!board_.resolve_neighbours) {
    ++hops_[0].uses;
    hop = 0;
    return Outcome::kKnown;
  }
  const FabricAddress gateway{
      .lo = board_.gateway_fa_lo, .hi = board_.gateway_fa_hi, .ipv6 = ipv6()};
  const FabricAddress& target = IsOnLink(address) ? address : gateway;
  if (target.lo == 0 && target.hi == 0) {
    return Outcome::kNoRoute;
  }
  Neighbour* neighbour = Find(target);
  if (neighbour == nullptr) {
    neighbour = Allocate(target);
  }
  if (neighbour == nullptr) {
    return Outcome::kFull;
  }
  if (neighbour->state == State::kReachable &&
      HasCome(neighbour->confirmed + reachable_ticks_, timer_.Now())) {
    neighbour->state = State::kStale;
  }
  const bool in_use = neighbour->uses != 0 && neighbour->usable();
  if (neighbour->state == State::kStale || !neighbour->usable()) {
    BeginAsking(*neighbour);
  }
  // What is not in the table yet must not be answered.
  if (neighbour->dirty || (!in_use && neighbour->asking)) {
    return Wait(id, *neighbour);
  }
  ++neighbour->uses;
  hop = IndexOf(*neighbour);
  return Outcome::kKnown;
}

Neighbours::Outcome Neighbours::Wait(uint16_t id, Neighbour& neighbour) {
  for (Waiting& waiting : waiting_) {
    if (waiting.stage == Waiting::Stage::kFree) {
      waiting = {.id = id,
                 .hop = static_cast<uint16_t>(IndexOf(neighbour)),
                 .stage = Waiting::Stage::kAsking};
      ++neighbour.waiting;
      ++pending_;
      return Outcome::kPending;
    }
  }
  return Outcome::kFull;
}

bool Neighbours::Release(uint32_t hop) {
  if (hop >= kHops || hops_[hop].uses == 0) {
    return false;
  }
  if (--hops_[hop].uses == 0) {
    hops_[hop].released = ++releases_;
  }
  return true;
}

Neighbours::Neighbour* Neighbours::Find(const FabricAddress& address) {
  for (uint32_t i = kFirstHop; i < kHops; ++i) {
    if (hops_[i].state != State::kFree && hops_[i].address == address) {
      return &hops_[i];
    }
  }
  return nullptr;
}

// A free place, else that of the neighbour unused for longest: packets that
// still name its hop are the more likely to have left.
Neighbours::Neighbour* Neighbours::Allocate(const FabricAddress& address) {
  Neighbour* place = nullptr;
  for (uint32_t i = kFirstHop; i < kHops; ++i) {
    Neighbour& candidate = hops_[i];
    if (candidate.state == State::kFree) {
      place = &candidate;
      break;
    }
    const bool unused = candidate.uses == 0 && candidate.waiting == 0;
    if (unused &&
        (place == nullptr || HasCome(candidate.released, place->released))) {
      place = &candidate;
    }
  }
  if (place == nullptr) {
    return nullptr;
  }
  Forget(*place);
  place->address = address;
  place->state = State::kIncomplete;
  if (address == self_.address) {
    place->state = State::kSelf;
    place->mac = self_.mac;
    dirty_ += place->dirty ? 0 : 1;
    place->dirty = true;
  }
  return place;
}

// Makes the place free; its hop is no longer valid once that is written.
void Neighbours::Forget(Neighbour& neighbour) {
  const bool was_written = neighbour.state != State::kFree;
  dirty_ -= neighbour.dirty ? 1 : 0;
  neighbour = {};
  neighbour.dirty = was_written;
  dirty_ += was_written ? 1 : 0;
}

void Neighbours::BeginAsking(Neighbour& neighbour) {
  if (neighbour.asking) {
    return;
  }
  neighbour.asking = true;
  neighbour.tries = board_.neighbour_tries == 0 ? 1 : board_.neighbour_tries;
  Ask(neighbour, timer_.Now());
  SetAlarm();
}

void Neighbours::Ask(Neighbour& neighbour, uint32_t now) {
  SlowPath::Frame frame;
  BuildQuestion(self_, neighbour.address, frame);
  // A question that cannot be sent counts: the next one may.
  (void)slow_path_.Send(frame);
  --neighbour.tries;
  neighbour.due = now + retry_ticks_;
}

void Neighbours::SetAlarm() {
  const uint32_t now = timer_.Now();
  uint32_t left = 0;
  for (const Neighbour& neighbour : hops_) {
    if (!neighbour.asking) {
      continue;
    }
    const uint32_t ticks =
        HasCome(neighbour.due, now) ? 1 : neighbour.due - now;
    left = left == 0 || ticks < left ? ticks : left;
  }
  timer_.Start(left);
}

void Neighbours::ServeTimer() {
  const uint32_t now = timer_.Now();
  for (Neighbour& neighbour : hops_) {
    if (!neighbour.asking || !HasCome(neighbour.due, now)) {
      continue;
    }
    if (neighbour.tries != 0) {
      Ask(neighbour, now);
    } else {
      GiveUp(neighbour);
    }
  }
  SetAlarm();
}

void Neighbours::GiveUp(Neighbour& neighbour) {
  neighbour.asking = false;
  if (neighbour.uses == 0) {
    Settle(neighbour, contract::AdminStatus::kNotFound);
    Forget(neighbour);
  }
}

// Ends the wait of all commands for the neighbour.
void Neighbours::Settle(Neighbour& neighbour, contract::AdminStatus status) {
  for (Waiting& waiting : waiting_) {
    if (waiting.stage == Waiting::Stage::kAsking &&
        waiting.hop == IndexOf(neighbour)) {
      waiting.status = status;
      waiting.stage = Waiting::Stage::kAnswered;
      neighbour.uses += status == contract::AdminStatus::kOk ? 1 : 0;
    }
  }
  neighbour.waiting = 0;
}

void Neighbours::ServeFrame() {
  SlowPath::Frame frame;
  NeighbourPacket packet;
  if (!slow_path_.Receive(frame) ||
      !ParseNeighbourPacket(frame, self_, packet)) {
    return;
  }
  if (packet.tells) {
    // Nobody becomes known by talking: the table holds whom we asked for.
    Neighbour* const neighbour = Find(packet.sender);
    if (neighbour != nullptr && neighbour->state != State::kSelf) {
      Learn(*neighbour, packet);
    }
  }
  if (packet.asks && packet.target == self_.address &&
      !(packet.sender == self_.address)) {
    BuildAnswer(self_, packet, frame);
    (void)slow_path_.Send(frame);
  }
}

void Neighbours::Learn(Neighbour& neighbour, const NeighbourPacket& packet) {
  const bool answers = packet.solicited && neighbour.asking;
  if (neighbour.state != State::kIncomplete && packet.mac != neighbour.mac) {
    if (!packet.replaces) {
      // Somebody else claims the address: doubt what is known (RFC 4861,
      // 7.2.5).
      neighbour.state = State::kStale;
      return;
    }
    neighbour.state = State::kStale;
  }
  if (!neighbour.usable()) {
    neighbour.state = State::kStale;
  }
  if (packet.mac != neighbour.mac) {
    neighbour.mac = packet.mac;
    dirty_ += neighbour.dirty ? 0 : 1;
    neighbour.dirty = true;
  }
  if (answers) {
    Confirm(neighbour);
  }
}

void Neighbours::Confirm(Neighbour& neighbour) {
  neighbour.state = State::kReachable;
  neighbour.confirmed = timer_.Now();
  neighbour.asking = false;
  SetAlarm();
}

Status Neighbours::Flush() {
  for (uint32_t i = kFirstHop; i < kHops && dirty_ != 0; ++i) {
    Neighbour& neighbour = hops_[i];
    if (!neighbour.dirty) {
      continue;
    }
    contract::NextHopCfg hop{};
    if (neighbour.usable()) {
      hop = {.mac = neighbour.mac,
             .vlan = board_.vlan,
             .mtu = board_.payload_mtu,
             .valid = 1};
    }
    const Status status = tables_.Write(contract::Table::kNextHop, i, hop);
    if (!status.ok()) {
      return status;
    }
    neighbour.dirty = false;
    --dirty_;
  }
  if (pending_ == 0) {
    return {};
  }
  for (Neighbour& neighbour : hops_) {
    if (neighbour.waiting != 0 && neighbour.usable() && !neighbour.asking) {
      Settle(neighbour, contract::AdminStatus::kOk);
    }
  }
  return {};
}

void Neighbours::Abandon() {
  for (Waiting& waiting : waiting_) {
    waiting = {};
  }
  pending_ = 0;
  for (Neighbour& neighbour : hops_) {
    neighbour.waiting = 0;
  }
}

bool Neighbours::TakeAnswer(contract::AdminAnswer& answer) {
  if (pending_ == 0) {
    return false;
  }
  for (Waiting& waiting : waiting_) {
    if (waiting.stage == Waiting::Stage::kAnswered) {
      const bool found = waiting.status == contract::AdminStatus::kOk;
      answer = {.id = waiting.id,
                .status = waiting.status,
                .detail = found ? 0
                                : static_cast<uint32_t>(offsetof(
                                      contract::AdminResolveNextHop, fa_lo)),
                .object = found ? waiting.hop : uint32_t{0}};
      waiting = {};
      --pending_;
      return true;
    }
  }
  return false;
}

}  // namespace heddle::firmware
