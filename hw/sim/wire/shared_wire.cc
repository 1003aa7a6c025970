// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/shared_wire.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "hw/sim/base/clock.h"
#include "hw/sim/wire/unknown_pdc.h"

namespace heddle::sim::wire {
namespace {

constexpr uint32_t kFirstFreePort = 49152;
// NACKs that wait for this function: as many as a few PDCs' windows need.
constexpr size_t kMaxRefusals = 1024;

// The first bit of `words` from `from` on, else the first; `summary` has a bit
// for each word that is not 0, and at least one.
template <typename Words>
uint32_t NextBit(const Words& words, uint32_t summary, uint32_t from) {
  const uint32_t word = from / kWordBits;
  const uint64_t here = words[word] >> (from % kWordBits);
  if (here != 0) {
    return from + static_cast<uint32_t>(std::countr_zero(here));
  }
  const uint32_t later = word == 31 ? 0 : summary >> (word + 1) << (word + 1);
  const auto next =
      static_cast<uint32_t>(std::countr_zero(later != 0 ? later : summary));
  return next * kWordBits +
         static_cast<uint32_t>(std::countr_zero(words[next]));
}

}  // namespace

SharedWire::SharedWire(std::unique_ptr<WireSegment> segment,
                       const SharedWireOptions& options)
    : segment_(std::move(segment)),
      directory_(segment_->operator->()),
      ip_(options.ip),
      time_(options.time),
      crc_(options.crc),
      ip_protocol_(options.ip_protocol),
      peers_(kMaxPorts),
      gathers_news_(options.gathers_news) {
  unflushed_.reserve(kMaxPorts);
}

Result<std::unique_ptr<SharedWire>> SharedWire::Attach(
    const SharedWireOptions& options, std::string* message) {
  const std::string name =
      options.name.empty() ? WireSegment::DefaultName() : options.name;
  auto segment = WireSegment::Open(name, message);
  if (!segment.ok()) {
    return segment.error();
  }
  std::unique_ptr<SharedWire> wire(
      new SharedWire(std::move(segment.value()), options));
  wire->name_ = name;
  Errno error{};
  if (!wire->TakePort(options, &error, message)) {
    return error;
  }
  return wire;
}

void SharedWire::ClearPort(WirePort& port) {
  port.key.store(0, std::memory_order_release);
  port.work_at_ns.store(UINT64_MAX);
  port.takes_unchecked.store(0);
}

std::optional<uint32_t> SharedWire::FindFreePort(bool* alone) const {
  std::optional<uint32_t> free;
  *alone = true;
  const WireSegment& wire = *segment_;
  const uint32_t count = std::min(wire->port_count.load(), kMaxPorts);
  for (uint32_t i = count; i-- > 0;) {
    if (const auto owner = ReadPort(wire->ports[i])) {
      *alone = *alone && owner->tap;
    } else {
      free = i;
    }
  }
  return free || count == kMaxPorts ? free : std::optional(count);
}

template <typename Take>
std::optional<uint32_t> SharedWire::Reclaiming(Take take) {
  std::optional<uint32_t> taken = take();
  if (!taken) {
    directory_.ClearDead();
    taken = take();
  }
  return taken;
}

bool SharedWire::TakePort(const SharedWireOptions& options, Errno* error,
                          std::string* message) {
  WireSegment& wire = *segment_;
  const WireSegment::Lock lock(wire.operator->());
  if (!lock.held()) {
    *error = Errno{ETIMEDOUT};
    *message = "wire " + name_ + " is locked by process " +
               std::to_string(lock.holder()) + ", which makes no progress";
    return false;
  }
  bool alone = false;
  std::optional<uint32_t> free = FindFreePort(&alone);
  const uint32_t mtu = wire->payload_mtu.load();
  const bool same_mtu = options.tap || mtu == options.payload_mtu;
  if (!free || (!alone && !same_mtu)) {
    directory_.ClearDead();
    free = FindFreePort(&alone);
  }
  if (!alone && !same_mtu) {
    *error = Errno{EPROTO};
    *message = "wire " + name_ + " carries payload MTU " + std::to_string(mtu) +
               ", this device has " + std::to_string(options.payload_mtu);
    return false;
  }
  const auto address = Reclaiming([&] { return directory_.AddAddress(ip_); });
  if (!free || !address) {
    *error = Errno{EBUSY};
    *message = "wire " + name_ + ": all " +
               (free ? std::to_string(kMaxAddresses) + " addresses"
                     : std::to_string(kMaxPorts) + " functions") +
               " are in use";
    return false;
  }
  address_ = *address;
  if (!MayHaveAddress(options.tap, error, message)) {
    return false;
  }
  if (!options.tap) {
    wire->payload_mtu.store(options.payload_mtu);
  }
  index_ = *free;
  // The place among all ports depends on who else attaches, so that the only
  // function at an address does without.
  ordinal_ = directory_.IsServed(ip_) ? index_ + 1 : 0;
  Occupy(options);
  return !options.takes_slot || TakeSlot(error, message);
}

bool SharedWire::MayHaveAddress(bool tap, Errno* error, std::string* message) {
  const auto find_other = [&]() -> std::optional<uint32_t> {
    if (tap) {
      return directory_.PortAt(ip_);
    }
    const FunctionId owner = directory_.TapOf(address_);
    return owner == 0 ? std::nullopt : std::optional(PortOf(owner));
  };
  std::optional<uint32_t> other = find_other();
  if (other) {
    directory_.ClearDead();
    other = find_other();
  }
  if (!other) {
    return true;
  }
  *error = Errno{EADDRINUSE};
  *message = "wire " + name_ + ": address " + ip_.Text() + " is " +
             (tap ? "in use by" : "that of a tap,") + " process " +
             std::to_string((*segment_)->ports[*other].process.pid) +
             "; a tap does not share its address: choose another";
  return false;
}

bool SharedWire::TakeSlot(Errno* error, std::string* message) {
  const auto slot =
      Reclaiming([&] { return directory_.TakeSlot(address_, id_); });
  if (!slot) {
    *error = Errno{EBUSY};
    *message = "wire " + name_ + ": none of the " +
               std::to_string(frame::kSlots) + " slots of " +
               std::to_string(frame::kSlotBlocks * contract::kPdcidBlock) +
               " PDCIDs at " + ip_.Text() +
               " is free, and the device of process " +
               std::to_string(getpid()) + " needs one";
    return false;
  }
  slot_ = static_cast<uint8_t>(*slot);
  return true;
}

void SharedWire::Occupy(const SharedWireOptions& options) {
  WireSegment& wire = *segment_;
  WirePort& port = wire->ports[index_];
  ClearPort(port);
  port.process = base::ProcessId::Self();
  port.sleeping.store(0);
  port.link_down.store(0);
  port.reset_wanted.store(0);
  port.takes_unchecked.store(options.takes_unchecked ? 1 : 0);
  epoch_ = wire->next_epoch.fetch_add(1) + 1;
  epoch_ += epoch_ == 0 ? 1 : 0;
  const uint32_t count =
      std::max(std::min(wire->port_count.load(), kMaxPorts), index_ + 1);
  wire->port_count.store(count);
  // Discards what was sent to the place's last owner.
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t ring = wire->ring_of[index_][i].load();
    if (ring != 0 && ring <= kMaxRings) {
      FrameRingConsumer::Discard(&wire->rings[ring - 1]);
    }
  }
  const PortOwner owner{.address = ip_, .epoch = epoch_, .tap = options.tap};
  id_ = owner.id(index_);
  WriteOwner(port, owner);
  directory_.SetTap(address_, options.tap ? id_ : 0);
  attached_ = true;
}

std::optional<uint16_t> SharedWire::TakePdcids() {
  const auto block =
      Reclaiming([&] { return directory_.TakeBlock(address_, id_); });
  return block ? std::optional(
                     static_cast<uint16_t>(*block * contract::kPdcidBlock))
               : std::nullopt;
}

void SharedWire::ReturnPdcids(uint16_t first) {
  directory_.ReturnBlock(address_, first / contract::kPdcidBlock, id_);
}

SharedWire::~SharedWire() {
  if (!attached_) {
    return;
  }
  const WireSegment::Lock lock(segment_->operator->());
  // Without the lock, too: no other process writes the key of a live one.
  ClearPort((*segment_)->ports[index_]);
}

firmware::PortClaim SharedWire::ClaimPort(const firmware::PortName& wanted) {
  firmware::PortClaim claim{};
  firmware::PortName name = wanted;
  const WireSegment::Lock lock(segment_->operator->());
  if (name.port >= kPortNumbers || !lock.held()) {
    claim.owner = lock.holder();
    return claim;
  }
  if (name.port == 0) {
    const auto found = Reclaiming([&] { return FindDynamicPort(name.space); });
    if (!found) {
      claim.exhausted = true;
      return claim;
    }
    name.port = *found;
  } else if (const FunctionId owner = directory_.PortOwnerOf(address_, name);
             owner != 0 && directory_.IsAlive(owner)) {
    claim.owner = (*segment_)->ports[PortOf(owner)].process.pid;
    return claim;
  }
  claim.granted = directory_.SetPort(address_, name, id_);
  claim.exhausted = !claim.granted;
  claim.port = name.port;
  return claim;
}

std::optional<uint32_t> SharedWire::FindDynamicPort(uint32_t space) {
  constexpr uint32_t kRange = kPortNumbers - kFirstFreePort;
  const uint32_t start = static_cast<uint32_t>(getpid()) % kRange;
  for (uint32_t i = 0; i < kRange; ++i) {
    const uint32_t number = kFirstFreePort + (start + i) % kRange;
    if (directory_.PortOwnerOf(address_, {number, space}) == 0) {
      return number;
    }
  }
  return std::nullopt;
}

void SharedWire::ReleasePort(const firmware::PortName& name) {
  if (name.port < kPortNumbers) {
    directory_.ReleasePort(address_, name, id_);
  }
}

std::optional<uint32_t> SharedWire::FindPort(const frame::Route& route) {
  const FunctionId id = directory_.FindFunction(route);
  return id == 0 ? std::nullopt : std::optional(PortOf(id));
}

SharedWire::Peer& SharedWire::PeerAt(uint32_t index) {
  if (peers_[index] == nullptr) {
    peers_[index] = std::make_unique<Peer>();
  }
  return *peers_[index];
}

FrameRingProducer* SharedWire::ProducerTo(uint32_t index) {
  Peer& peer = PeerAt(index);
  if (!peer.producer) {
    WireSegment& wire = *segment_;
    std::atomic<uint32_t>& entry = wire->ring_of[index][index_];
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
    // The port may change hands later: that costs speed alone.
    const bool own = wire->ports[index].process == wire->ports[index_].process;
    peer.producer.emplace(&wire->rings[ring - 1], epoch_,
                          own ? FrameRingProducer::Stores::kCached
                              : FrameRingProducer::Stores::kStreamed);
    receivers_.push_back(index);
    // The receiver may have dropped the ring's last producer, or that may have
    // died before it reported a frame.
    NoteNews(index);
  }
  return &*peer.producer;
}

FrameRingConsumer* SharedWire::ConsumerFrom(uint32_t index) {
  Peer& peer = PeerAt(index);
  if (!peer.consumer) {
    WireSegment& wire = *segment_;
    const uint32_t ring = wire->ring_of[index_][index].load();
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

void SharedWire::NoteWork(uint64_t at_ns, uint64_t done) {
  WirePort& port = (*segment_)->ports[index_];
  // Only this function writes them.
  port.work_done.store(port.work_done.load(std::memory_order_relaxed) + done,
                       std::memory_order_relaxed);
  port.work_at_ns.store(at_ns, std::memory_order_release);
}

base::ProcessId::State SharedWire::ProcessOf(uint32_t index, uint64_t now_ns) {
  Peer& peer = *peers_[index];
  if (now_ns - peer.looked_ns >= kPatienceNs) {
    const auto owner = ReadPort((*segment_)->ports[index]);
    peer.looked_ns = now_ns;
    peer.process = owner ? directory_.LookAt(owner->id(index))
                         : base::ProcessId::State::kEnded;
  }
  return peer.process;
}

bool SharedWire::ReceiverIsBehind(uint32_t index, uint64_t now_ns) {
  Peer& peer = *peers_[index];
  const WirePort& port = (*segment_)->ports[index];
  const bool pending = peer.producer->pending();
  const uint64_t consumed = peer.producer->consumed();
  const uint64_t work_at_ns = port.work_at_ns.load(std::memory_order_acquire);
  const uint64_t work_done = port.work_done.load(std::memory_order_relaxed);
  if (consumed != peer.progress_at || (pending && !peer.was_pending)) {
    peer.progress_ns = now_ns;
    peer.progress_at = consumed;
    peer.work_then = work_done;
  }
  peer.was_pending = pending;
  const bool working =
      (work_at_ns == 0 || work_at_ns < now_ns - std::min(now_ns, kLateNs)) &&
      work_done - peer.work_then < kAnswerWork;
  const uint64_t idle_ns = now_ns - peer.progress_ns;
  if ((!pending && !working) || idle_ns >= kStarvedNs) {
    return false;
  }
  return idle_ns < kPatienceNs ||
         ProcessOf(index, now_ns) != base::ProcessId::State::kEnded;
}

bool SharedWire::ReceiverCaughtUp(uint32_t index, uint64_t now_ns) {
  if (!ReceiverIsBehind(index, now_ns)) {
    return true;
  }
  Peer& peer = *peers_[index];
  const uint64_t work =
      (*segment_)->ports[index].work_done.load(std::memory_order_relaxed);
  const uint64_t left = peer.sent_before - peer.producer->consumed();
  if (!peer.taken && static_cast<int64_t>(left) <= 0) {
    peer.taken = true;
    peer.taken_work = work;
  }
  return peer.taken && work - peer.taken_work >= kAnswerWork;
}

bool SharedWire::PeersCaughtUp(uint64_t now_ns) {
  bool all = true;
  for (const uint32_t index : receivers_) {
    bool& caught_up = peers_[index]->caught_up;
    caught_up = ReceiverCaughtUp(index, now_ns) || caught_up;
    all = all && caught_up;
  }
  for (const uint32_t index : receivers_) {
    if (all) {
      Peer& peer = *peers_[index];
      peer.sent_before = peer.producer->produced();
      peer.taken = peer.caught_up = false;
    }
  }
  return all;
}

bool SharedWire::PeerIsBehind(FunctionId function, uint64_t now_ns) {
  const uint32_t index = PortOf(function);
  return directory_.IsAttached(function) && peers_[index] != nullptr &&
         peers_[index]->producer && ReceiverIsBehind(index, now_ns);
}

bool SharedWire::IsStillFull() const {
  bool blocked = false;
  for (const uint32_t index : receivers_) {
    const Peer& peer = *peers_[index];
    if (peer.blocked_since_ns == 0) {
      continue;
    }
    if (peer.stopped || peer.producer->consumed() != peer.consumed_then ||
        time_.now_ns() - peer.blocked_since_ns > kPatienceNs) {
      return false;
    }
    blocked = true;
  }
  return blocked;
}

SharedWire::SendOutcome SharedWire::Full(uint32_t index) {
  Peer& peer = *peers_[index];
  const uint64_t consumed = peer.producer->consumed();
  const uint64_t now = time_.now_ns();
  if (peer.blocked_since_ns == 0 || consumed != peer.consumed_then) {
    peer.blocked_since_ns = now;
    peer.consumed_then = consumed;
    peer.stopped = false;
  }
  const uint64_t blocked_ns = now - peer.blocked_since_ns;
  peer.stopped = peer.stopped || blocked_ns > kStarvedNs ||
                 (blocked_ns > kPatienceNs &&
                  ProcessOf(index, now) != base::ProcessId::State::kRuns);
  if (peer.stopped) {
    ++dropped_;
    return SendOutcome::kDropped;
  }
  return SendOutcome::kBlocked;
}

SharedWire::SendOutcome SharedWire::Send(std::span<const uint8_t> frame,
                                         const frame::Route& route,
                                         frame::FrameMarks marks) {
  if (route.kind == frame::Route::Kind::kAll) {
    SendToAll(frame, marks);
    return SendOutcome::kSent;
  }
  const std::optional<uint32_t> port = FindPort(route);
  if (!port && Refuse(frame, route, marks)) {
    return SendOutcome::kSent;
  }
  return SendTo(port, frame, marks);
}

bool SharedWire::Refuse(std::span<const uint8_t> frame,
                        const frame::Route& route, frame::FrameMarks marks) {
  if (route.kind != frame::Route::Kind::kBlock || marks.bad_fcs || !link_up() ||
      !directory_.IsServed(route.ip)) {
    return false;
  }
  std::optional<frame::Frame> refusal =
      RefuseUnknownPdc(frame, route.ip, crc_, ip_protocol_);
  if (!refusal || refusals_.size() == kMaxRefusals) {
    return false;
  }
  refusals_.push_back(std::move(*refusal));
  ++refused_;
  Wake(index_);
  return true;
}

SharedWire::SendOutcome SharedWire::SendTo(std::optional<uint32_t> index,
                                           std::span<const uint8_t> frame,
                                           frame::FrameMarks marks) {
  if (!link_up() ||
      (index && (*segment_)->ports[*index].link_down.load() != 0)) {
    ++dropped_;
    ++dropped_link_down_;
    return SendOutcome::kDropped;
  }
  FrameRingProducer* const producer = index ? ProducerTo(*index) : nullptr;
  if (producer == nullptr || frame.size() < frame::kMinFrameBytes ||
      frame.size() > frame::kMaxWireFrameBytes) {
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
      if (Peer& peer = *peers_[*index];
          peer.blocked_since_ns != 0 &&
          producer->consumed() != peer.consumed_then) {
        peer.blocked_since_ns = 0;
        peer.stopped = false;
      }
      gathers_news_ ? GatherNews(*index) : NoteNews(*index);
      return SendOutcome::kSent;
    case FrameRingProducer::Outcome::kFull:
      return Full(*index);
    case FrameRingProducer::Outcome::kCorrupt:
      break;
  }
  ++dropped_;
  return SendOutcome::kDropped;
}

// Each copy is on its own: one that finds no room is lost, as neighbour
// protocols expect of a wire.
void SharedWire::SendToAll(std::span<const uint8_t> frame,
                           frame::FrameMarks marks) {
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
    if (producer == nullptr || frame.size() < frame::kMinFrameBytes ||
        frame.size() > frame::kMaxWireFrameBytes ||
        producer->Push(frame, marks) != FrameRingProducer::Outcome::kSent) {
      ++dropped_;
      continue;
    }
    NoteNews(i);
  }
}

bool SharedWire::TakeReset() {
  std::atomic<uint32_t>& wanted = (*segment_)->ports[index_].reset_wanted;
  return wanted.load(std::memory_order_relaxed) != 0 && wanted.exchange(0) != 0;
}

bool SharedWire::link_up() {
  const bool up = (*segment_)->ports[index_].link_down.load() == 0;
  seen_link_up_ = up;
  link_was_read_ = true;
  return up;
}

bool SharedWire::TakesUnchecked(uint32_t port) const {
  return (*segment_)->ports[port].takes_unchecked.load(
             std::memory_order_acquire) != 0;
}

void SharedWire::TakeNews() {
  WirePort& port = (*segment_)->ports[index_];
  if (port.news_words.load(std::memory_order_relaxed) == 0) {
    return;
  }
  // A sender that sets a bit between the two sets that of its word once more.
  for (uint32_t words = port.news_words.exchange(0); words != 0;
       words &= words - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(words));
    fresh_[word] |= port.news[word].exchange(0);
    fresh_words_ |= fresh_[word] != 0 ? 1U << word : 0U;
  }
}

bool SharedWire::Receive(frame::Frame* frame, frame::FrameMarks* marks) {
  if (!refusals_.empty()) {
    *frame = std::move(refusals_.front());
    refusals_.pop_front();
    if (marks != nullptr) {
      *marks = {};
    }
    return true;
  }
  // Before the search, so that what arrives during it is news.
  const uint32_t wake = (*segment_)->ports[index_].wake.load();
  TakeNews();
  while (fresh_words_ != 0) {
    const uint32_t source = NextBit(fresh_, fresh_words_, next_source_);
    FrameRingConsumer* const consumer = ConsumerFrom(source);
    const auto outcome = consumer != nullptr
                             ? consumer->Pop(frame, marks)
                             : FrameRingConsumer::Outcome::kEmpty;
    Peer& peer = *peers_[source];
    const bool came = outcome == FrameRingConsumer::Outcome::kFrame;
    if (came) {
      peer.corrupt = false;
      next_source_ = (source + 1) % kMaxPorts;
      if (consumer->TakeProducerWait()) {
        Wake(source);
      }
      if (!consumer->empty()) {
        return true;
      }
    } else if (outcome == FrameRingConsumer::Outcome::kCorrupt) {
      corrupt_peers_ += peer.corrupt ? 0 : 1;
      peer.corrupt = true;
    }
    uint64_t& word = fresh_[source / kWordBits];
    word &= ~(uint64_t{1} << (source % kWordBits));
    fresh_words_ &= ~(word == 0 ? 1U << (source / kWordBits) : 0U);
    if (came) {
      if (fresh_words_ == 0) {
        seen_wake_.store(wake, std::memory_order_release);
      }
      return true;
    }
  }
  seen_wake_.store(wake, std::memory_order_release);
  return false;
}

bool SharedWire::HasNews() const {
  // An order that came between the look at it and `Receive` has no other sign:
  // `Receive` has seen its wake.
  const WirePort& port = (*segment_)->ports[index_];
  return port.wake.load() != seen_wake_ ||
         port.reset_wanted.load(std::memory_order_relaxed) != 0 ||
         (link_was_read_ && (port.link_down.load(std::memory_order_relaxed) ==
                             0) != seen_link_up_);
}

uint32_t SharedWire::wakes() const {
  return (*segment_)->ports[index_].wake.load();
}

void SharedWire::GatherNews(uint32_t index) {
  Peer& peer = *peers_[index];
  if (peer.unflushed == 0) {
    unflushed_.push_back(index);
  }
  if (++peer.unflushed % kGatheredFrames == 0) {
    AnnounceNews(index);
    (*segment_)->ports[index].wake.fetch_add(1);
  }
}

void SharedWire::FlushNews() {
  for (const uint32_t index : unflushed_) {
    peers_[index]->unflushed = 0;
    NoteNews(index);
  }
  unflushed_.clear();
}

void SharedWire::NoteNews(uint32_t index) {
  AnnounceNews(index);
  Wake(index);
}

void SharedWire::AnnounceNews(uint32_t index) {
  peers_[index]->producer->Publish();
  WirePort& port = (*segment_)->ports[index];
  const uint32_t word = index_ / kWordBits;
  port.news[word].fetch_or(uint64_t{1} << (index_ % kWordBits));
  // After the bit: a receiver that sees this one takes that, too.
  if ((port.news_words.load() >> word & 1) == 0) {
    port.news_words.fetch_or(1U << word);
  }
}

void SharedWire::Wake(uint32_t index) {
  WakePort((*segment_)->ports[index]);
}

void SharedWire::Sleep(uint32_t wakes, uint64_t timeout_ns) {
  WirePort& port = (*segment_)->ports[index_];
  const timespec timeout = base::ToTimespec(timeout_ns);
  port.sleeping.store(1);
  if (port.wake.load() == wakes) {
    syscall(SYS_futex, &port.wake, FUTEX_WAIT, wakes, &timeout, nullptr, 0);
  }
}

}  // namespace heddle::sim::wire
