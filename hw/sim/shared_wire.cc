// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/shared_wire.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "hw/sim/clock.h"

namespace heddle::sim {
namespace {

constexpr uint32_t kFirstFreePort = 49152;

bool HasClaim(const WirePort& port, uint32_t number) {
  return (port.claims[number / kWordBits].load(std::memory_order_acquire) >>
              (number % kWordBits) &
          1) != 0;
}

}  // namespace

SharedWire::SharedWire(std::unique_ptr<WireSegment> segment,
                       const WireAddress& ip)
    : segment_(std::move(segment)), ip_(ip), peers_(kMaxPorts) {}

Result<std::unique_ptr<SharedWire>> SharedWire::Attach(
    const SharedWireOptions& options, std::string* message) {
  const std::string name =
      options.name.empty() ? WireSegment::DefaultName() : options.name;
  auto segment = WireSegment::Open(name, message);
  if (!segment.ok()) {
    return segment.error();
  }
  std::unique_ptr<SharedWire> wire(
      new SharedWire(std::move(segment.value()), options.ip));
  wire->name_ = name;
  Errno error{};
  if (!wire->TakePort(options, &error, message)) {
    return error;
  }
  return wire;
}

void SharedWire::ClearPort(WirePort& port) {
  port.key.store(0, std::memory_order_release);
  port.working.store(0);
  port.takes_unchecked.store(0);
  for (auto& word : port.claims) {
    // Most pages of the table were never touched; a load leaves them so.
    if (word.load(std::memory_order_relaxed) != 0) {
      word.store(0, std::memory_order_relaxed);
    }
  }
}

void SharedWire::ClearDead() {
  WireSegment& wire = *segment_;
  const uint32_t count = std::min(wire->port_count.load(), kMaxPorts);
  for (uint32_t i = 0; i < count; ++i) {
    WirePort& port = wire->ports[i];
    if (port.key.load() != 0 && !port.process.Alive()) {
      ClearPort(port);
    }
  }
}

bool SharedWire::TakePort(const SharedWireOptions& options, Errno* error,
                          std::string* message) {
  WireSegment& wire = *segment_;
  const WireSegment::Lock lock(wire.operator->());
  if (!lock.held()) {
    *error = Errno{ETIMEDOUT};
    *message = "wire " + name_ + " is held by process " +
               std::to_string(lock.holder()) + ", which does not go on";
    return false;
  }
  ClearDead();
  std::bitset<kSlots> used;
  bool alone = true;
  std::optional<uint32_t> free;
  for (uint32_t i = kMaxPorts; i-- > 0;) {
    const std::optional<PortOwner> owner = ReadPort(wire->ports[i]);
    if (!owner) {
      free = i;
      continue;
    }
    alone = false;
    if (owner->address == ip_) {
      used.set(owner->slot);
    }
  }
  const uint32_t mtu = wire->payload_mtu.load();
  if (!alone && mtu != options.payload_mtu) {
    *error = Errno{EPROTO};
    *message = "wire " + name_ + " carries payload MTU " + std::to_string(mtu) +
               ", this device has " + std::to_string(options.payload_mtu);
    return false;
  }
  if (used.all()) {
    *error = Errno{EBUSY};
    *message = "address " + ip_.Text() + " has all its 64 functions on wire " +
               name_ + "; process " + std::to_string(getpid()) +
               " would be the 65th";
    return false;
  }
  if (!free) {
    *error = Errno{EBUSY};
    *message = "wire " + name_ + " has all its " + std::to_string(kMaxPorts) +
               " functions";
    return false;
  }
  wire->payload_mtu.store(options.payload_mtu);
  index_ = *free;
  Occupy(used, options.takes_unchecked);
  return true;
}

void SharedWire::Occupy(const std::bitset<kSlots>& used, bool takes_unchecked) {
  WireSegment& wire = *segment_;
  // Slots go round, so that a new function does not get what is still on its
  // way to the last one.
  uint32_t slot = wire->next_slot.load() % kSlots;
  while (used[slot]) {
    slot = (slot + 1) % kSlots;
  }
  wire->next_slot.store((slot + 1) % kSlots);
  slot_ = static_cast<uint8_t>(slot);
  WirePort& port = wire->ports[index_];
  ClearPort(port);
  port.process = ProcessId::Self();
  port.sleeping.store(0);
  port.link_down.store(0);
  port.reset_wanted.store(0);
  port.takes_unchecked.store(takes_unchecked ? 1 : 0);
  epoch_ = wire->next_epoch.fetch_add(1) + 1;
  epoch_ += epoch_ == 0 ? 1 : 0;
  const uint32_t count =
      std::max(std::min(wire->port_count.load(), kMaxPorts), index_ + 1);
  wire->port_count.store(count);
  // Discards what was sent to the place's last owner.
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t ring = wire->ring_of[i][index_].load();
    if (ring != 0 && ring <= kMaxRings) {
      FrameRingConsumer::Discard(&wire->rings[ring - 1]);
    }
  }
  WriteOwner(port, {.address = ip_, .slot = slot_, .epoch = epoch_});
  attached_ = true;
}

SharedWire::~SharedWire() {
  if (!attached_) {
    return;
  }
  const WireSegment::Lock lock(segment_->operator->());
  // Without the lock too: nobody else writes the key of a live process.
  ClearPort((*segment_)->ports[index_]);
}

firmware::PortClaim SharedWire::ClaimPort(uint32_t port) {
  firmware::PortClaim claim{};
  WireSegment& wire = *segment_;
  const WireSegment::Lock lock(wire.operator->());
  if (port >= kPortNumbers || !lock.held()) {
    claim.owner = lock.holder();
    return claim;
  }
  ClearDead();
  const auto owner_of = [&](uint32_t number) -> const WirePort* {
    for (const WirePort& other : wire->ports) {
      const std::optional<PortOwner> owner = ReadPort(other);
      if (owner && owner->address == ip_ && HasClaim(other, number)) {
        return &other;
      }
    }
    return nullptr;
  };
  if (port == 0) {
    constexpr uint32_t kRange = kPortNumbers - kFirstFreePort;
    const uint32_t start = static_cast<uint32_t>(getpid()) % kRange;
    for (uint32_t i = 0; i < kRange && port == 0; ++i) {
      const uint32_t number = kFirstFreePort + (start + i) % kRange;
      if (owner_of(number) == nullptr) {
        port = number;
      }
    }
    if (port == 0) {
      claim.exhausted = true;
      return claim;
    }
  } else if (const WirePort* const owner = owner_of(port)) {
    claim.owner = owner->process.pid;
    return claim;
  }
  wire->ports[index_].claims[port / kWordBits].fetch_or(
      uint64_t{1} << (port % kWordBits), std::memory_order_release);
  claim.granted = true;
  claim.port = port;
  return claim;
}

void SharedWire::ReleasePort(uint32_t port) {
  if (port < kPortNumbers) {
    (*segment_)->ports[index_].claims[port / kWordBits].fetch_and(
        ~(uint64_t{1} << (port % kWordBits)), std::memory_order_release);
  }
}

std::optional<uint32_t> SharedWire::FindPort(const Route& route) {
  if (route.kind == Route::Kind::kNone || route.kind == Route::Kind::kAll) {
    return std::nullopt;
  }
  WireSegment& wire = *segment_;
  const uint32_t count = std::min(wire->port_count.load(), kMaxPorts);
  const bool by_slot = route.kind == Route::Kind::kSlot;
  if (by_slot && last_found_ < count) {
    const std::optional<PortOwner> owner = ReadPort(wire->ports[last_found_]);
    if (owner && owner->slot == route.slot && owner->address == route.ip) {
      return last_found_;
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const std::optional<PortOwner> owner = ReadPort(wire->ports[i]);
    if (owner && route.kind == Route::Kind::kMac &&
        PortMac(owner->address, owner->slot) == route.mac) {
      return i;
    }
    if (!owner || route.kind == Route::Kind::kMac ||
        owner->address != route.ip) {
      continue;
    }
    if (by_slot ? owner->slot == route.slot
                : HasClaim(wire->ports[i], route.port)) {
      last_found_ = i;
      return i;
    }
  }
  return std::nullopt;
}

uint32_t SharedWire::FunctionAt(const Route& route) {
  const std::optional<uint32_t> index = FindPort(route);
  const std::optional<PortOwner> owner =
      index ? ReadPort((*segment_)->ports[*index]) : std::nullopt;
  return owner ? owner->epoch : 0;
}

bool SharedWire::HasLeft(uint32_t function) const {
  const WireSegment& wire = *segment_;
  const uint32_t count = std::min(wire->port_count.load(), kMaxPorts);
  for (uint32_t i = 0; i < count; ++i) {
    const WirePort& port = wire->ports[i];
    const std::optional<PortOwner> owner = ReadPort(port);
    if (owner && owner->epoch == function) {
      return !port.process.Alive();
    }
  }
  return true;
}

FrameRingProducer* SharedWire::ProducerTo(uint32_t index) {
  Peer& peer = peers_[index];
  if (!peer.producer) {
    WireSegment& wire = *segment_;
    std::atomic<uint32_t>& entry = wire->ring_of[index_][index];
    uint32_t ring = entry.load();
    if (ring == 0) {
      ring = wire->ring_count.fetch_add(1) + 1;
      if (ring == 0 || ring > kMaxRings) {
        wire->ring_count.store(kMaxRings);
        return nullptr;
      }
      entry.store(ring);
    }
    if (ring > kMaxRings) {
      return nullptr;
    }
    peer.producer.emplace(&wire->rings[ring - 1], epoch_);
    receivers_.push_back(index);
    Wake(index);  // It may have given up on the ring's last producer.
  }
  return &*peer.producer;
}

FrameRingConsumer* SharedWire::ConsumerFrom(uint32_t index) {
  Peer& peer = peers_[index];
  if (!peer.consumer) {
    WireSegment& wire = *segment_;
    const uint32_t ring = wire->ring_of[index][index_].load();
    if (ring == 0) {
      return nullptr;
    }
    if (ring > kMaxRings) {
      corrupt_peers_ += peer.corrupt ? 0 : 1;
      peer.corrupt = true;
      return nullptr;
    }
    peer.consumer.emplace(&wire->rings[ring - 1]);
  }
  return peer.consumer ? &*peer.consumer : nullptr;
}

void SharedWire::SetWorking(bool working) {
  (*segment_)->ports[index_].working.store(working ? 1 : 0,
                                           std::memory_order_release);
}

bool SharedWire::ReceiverIsBehind(uint32_t index, uint64_t now_ns) {
  Peer& peer = peers_[index];
  const bool pending = peer.producer->pending();
  const uint64_t consumed = peer.producer->consumed();
  if (consumed != peer.progress_at || (pending && !peer.was_pending)) {
    peer.progress_ns = now_ns;
    peer.progress_at = consumed;
  }
  peer.was_pending = pending;
  const bool working = (*segment_)->ports[index].working.load() != 0;
  return (pending || working) && now_ns - peer.progress_ns < kPatienceNs;
}

bool SharedWire::PeerIsBehind(uint64_t now_ns) {
  bool behind = false;
  for (const uint32_t index : receivers_) {
    behind = ReceiverIsBehind(index, now_ns) || behind;
  }
  return behind;
}

bool SharedWire::PeerIsBehind(uint32_t function, uint64_t now_ns) {
  for (const uint32_t index : receivers_) {
    const auto owner = ReadPort((*segment_)->ports[index]);
    if (owner && owner->epoch == function) {
      return ReceiverIsBehind(index, now_ns);
    }
  }
  return false;
}

bool SharedWire::IsStillFull() const {
  bool blocked = false;
  for (const uint32_t index : receivers_) {
    const Peer& peer = peers_[index];
    if (peer.blocked_since_ns == 0) {
      continue;
    }
    if (peer.stopped || peer.producer->consumed() != peer.consumed_then ||
        MonotonicNs() - peer.blocked_since_ns > kPatienceNs) {
      return false;
    }
    blocked = true;
  }
  return blocked;
}

SharedWire::SendOutcome SharedWire::Full(Peer& peer) {
  const uint64_t consumed = peer.producer->consumed();
  const uint64_t now = MonotonicNs();
  if (peer.blocked_since_ns == 0 || consumed != peer.consumed_then) {
    peer.blocked_since_ns = now;
    peer.consumed_then = consumed;
    peer.stopped = false;
  }
  peer.stopped = peer.stopped || now - peer.blocked_since_ns > kPatienceNs;
  if (peer.stopped) {
    ++dropped_;
    return SendOutcome::kDropped;
  }
  return SendOutcome::kBlocked;
}

SharedWire::SendOutcome SharedWire::Send(std::span<const uint8_t> frame,
                                         const Route& route, FrameMarks marks) {
  if (route.kind == Route::Kind::kAll) {
    SendToAll(frame, marks);
    return SendOutcome::kSent;
  }
  return SendTo(FindPort(route), frame, marks);
}

SharedWire::SendOutcome SharedWire::SendTo(std::optional<uint32_t> index,
                                           std::span<const uint8_t> frame,
                                           FrameMarks marks) {
  if (!link_up() ||
      (index && (*segment_)->ports[*index].link_down.load() != 0)) {
    ++dropped_;
    ++dropped_link_down_;
    return SendOutcome::kDropped;
  }
  FrameRingProducer* const producer = index ? ProducerTo(*index) : nullptr;
  if (producer == nullptr || frame.size() < kMinFrameBytes ||
      frame.size() > kMaxWireFrameBytes) {
    ++dropped_;
    return SendOutcome::kDropped;
  }
  FrameRingProducer::Outcome outcome = producer->Push(frame, marks);
  if (outcome == FrameRingProducer::Outcome::kFull) {
    producer->Wait();
    outcome = producer->Push(frame, marks);
  }
  switch (outcome) {
    case FrameRingProducer::Outcome::kSent:
      // A small frame may still fit into the ring of a stopped receiver.
      if (peers_[*index].blocked_since_ns != 0 &&
          producer->consumed() != peers_[*index].consumed_then) {
        peers_[*index].blocked_since_ns = 0;
        peers_[*index].stopped = false;
      }
      Wake(*index);
      return SendOutcome::kSent;
    case FrameRingProducer::Outcome::kFull:
      return Full(peers_[*index]);
    case FrameRingProducer::Outcome::kCorrupt:
      break;
  }
  ++dropped_;
  return SendOutcome::kDropped;
}

// Each copy is on its own: one that finds no room is lost, as neighbour
// protocols expect of a wire.
void SharedWire::SendToAll(std::span<const uint8_t> frame, FrameMarks marks) {
  if (!link_up()) {
    ++dropped_;
    ++dropped_link_down_;
    return;
  }
  WireSegment& wire = *segment_;
  const uint32_t count = std::min(wire->port_count.load(), kMaxPorts);
  for (uint32_t i = 0; i < count; ++i) {
    if (i == index_ || !ReadPort(wire->ports[i]) ||
        wire->ports[i].link_down.load() != 0) {
      continue;
    }
    FrameRingProducer* const producer = ProducerTo(i);
    if (producer == nullptr || frame.size() < kMinFrameBytes ||
        frame.size() > kMaxWireFrameBytes ||
        producer->Push(frame, marks) != FrameRingProducer::Outcome::kSent) {
      ++dropped_;
      continue;
    }
    Wake(i);
  }
}

bool SharedWire::TakeReset() {
  std::atomic<uint32_t>& wanted = (*segment_)->ports[index_].reset_wanted;
  return wanted.load(std::memory_order_relaxed) != 0 && wanted.exchange(0) != 0;
}

bool SharedWire::link_up() const {
  return (*segment_)->ports[index_].link_down.load() == 0;
}

bool SharedWire::TakesUnchecked(uint32_t port) const {
  return (*segment_)->ports[port].takes_unchecked.load(
             std::memory_order_acquire) != 0;
}

bool SharedWire::Receive(Frame* frame, FrameMarks* marks) {
  WireSegment& wire = *segment_;
  // Before the search, so that what arrives during it is news.
  const uint32_t wake = wire->ports[index_].wake.load();
  const uint32_t count = std::min(wire->port_count.load(), kMaxPorts);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t source = (next_source_ + i) % count;
    FrameRingConsumer* const consumer = ConsumerFrom(source);
    if (consumer == nullptr) {
      continue;
    }
    switch (consumer->Pop(frame, marks)) {
      case FrameRingConsumer::Outcome::kFrame:
        peers_[source].corrupt = false;
        next_source_ = (source + 1) % count;
        if (consumer->TakeProducerWait()) {
          Wake(source);
        }
        return true;
      case FrameRingConsumer::Outcome::kEmpty:
        break;
      case FrameRingConsumer::Outcome::kCorrupt:
        corrupt_peers_ += peers_[source].corrupt ? 0 : 1;
        peers_[source].corrupt = true;
        break;
    }
  }
  seen_wake_ = wake;
  return false;
}

bool SharedWire::HasNews() const {
  return wakes() != seen_wake_;
}

uint32_t SharedWire::wakes() const {
  return (*segment_)->ports[index_].wake.load();
}

void SharedWire::Wake(uint32_t index) {
  WakePort((*segment_)->ports[index]);
}

void SharedWire::Sleep(uint32_t wakes, uint64_t timeout_ns) {
  WirePort& port = (*segment_)->ports[index_];
  const timespec timeout = ToTimespec(timeout_ns);
  port.sleeping.store(1);
  if (port.wake.load() == wakes) {
    syscall(SYS_futex, &port.wake, FUTEX_WAIT, wakes, &timeout, nullptr, 0);
  }
}

}  // namespace heddle::sim
