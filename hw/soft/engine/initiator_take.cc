// SPDX-License-Identifier: Apache-2.0
// From descriptors to messages handed to the transport.
#include <algorithm>
#include <bit>
#include <utility>

#include "hw/soft/engine/initiator.h"

namespace heddle::soft::engine {

using contract::Opcode;
using contract::Statistic;
using contract::Status;
using contract::TxDesc;

namespace {

// Errors of the descriptor itself stop its context.
bool StopsContext(Status status) noexcept {
  return status == Status::kLocalAccess || status == Status::kBadPosition ||
         status == Status::kBadOpcode || status == Status::kBadLength;
}

}  // namespace

Initiator::Initiator(const EngineLimits& limits, const EngineParts& parts,
                     uint64_t seed)
    : parts_(parts),
      rings_(std::min(limits.tx_contexts, ContextSet::kMost), parts.host),
      addresses_(rings_.size(), limits.next_hops, parts.host),
      peers_(2 * limits.messages, seed),
      groups_(limits.messages),
      free_(&messages_, limits.messages),
      first_life_(static_cast<uint16_t>(seed | 1)),
      ready_(rings_.size()),
      blocked_(rings_.size()),
      crowded_(rings_.size()) {}

void Initiator::SetPort(const contract::PortCfg& port) {
  addresses_.SetFamily(port.ipv6 != 0);
  if (std::has_single_bit(port.payload_mtu)) {
    mtu_ = port.payload_mtu;
  }
}

bool Initiator::WriteContext(uint32_t context, const contract::TxCtxCfg& cfg) {
  if (context >= rings_.size()) {
    return false;
  }
  Forget(context);
  rings_.Write(context, cfg);
  defers_ = defers_ || (cfg.enable != 0 &&
                        (cfg.flags & contract::kTxCtxFlagDeferrable) != 0);
  if (deferred_ != 0) {
    EndDeferredOf(context);
  }
  addresses_.Invalidate(context);
  Apportion();
  (void)Unblock();  // The others may have more room now.
  return true;
}

void Initiator::Apportion() noexcept {
  const uint32_t entries = free_.limit();
  uint32_t living = 0;
  rings_.ForEach([&](uint32_t /*context*/, const TxContext& tx) {
    living += tx.alive ? 1 : 0;
  });
  guarantee_ = std::min(kGuarantee, entries / 2 / std::max(living, 1U));
  shared_ = int64_t{entries} - ready_requests_;
  rings_.ForEach([&](uint32_t /*context*/, const TxContext& tx) {
    shared_ -= std::max(GuaranteeOf(tx), tx.used);
  });
}

void Initiator::Forget(uint32_t context) {
  TxContext* const found = rings_.Find(context);
  if (found == nullptr) {
    return;
  }
  TxContext& tx = *found;
  peers_.ForEachOf(context, [&](uint32_t index) {
    Peer& peer = peers_[index];
    while (peer.waiting()) {
      const uint32_t group = tx.places[peer.waiting_first].group;
      rings_.LeaveWaiting(&peer);
      --waiting_;
      LeaveGroup(group);
    }
    if (peer.awake) {
      peers_.Sleep(index);
    }
    peers_.Put(index);
  });
  if (tx.group != kNone) {
    ++groups_[tx.group].open;
    groups_[tx.group].ended = true;
    LeaveGroup(tx.group);
  }
  ready_.Remove(context);
  blocked_.Remove(context);
  crowded_.Remove(context);
}

void Initiator::Tail(uint32_t context, uint16_t tail) {
  const TxContext* const tx = rings_.Find(context);
  if (tx != nullptr && tx->alive) {
    rings_.Publish(context, tail);
    ready_.Add(context);
    MakeRoom(context);
  }
}

bool Initiator::HasRoom(const TxContext& tx) const noexcept {
  return !free_.empty(messages_) && tx.used < contract::kMessageShare &&
         (tx.used < GuaranteeOf(tx) || shared_ > 0);
}

bool Initiator::MustWait(const TxContext& tx, const Peer& peer,
                         const TxDesc& descriptor) const noexcept {
  const bool fenced = (descriptor.flags & contract::kTxFlagFence) != 0;
  const bool follows_reads =
      descriptor.opcode != Opcode::kRead &&
      (tx.cfg.ordered & OrderClassOf(descriptor.opcode)) != 0;
  return peer.unposted || peer.in_flight >= kPeerShare ||
         (fenced && peer.in_flight != 0) || (follows_reads && peer.reads != 0);
}

bool Initiator::Join(TxContext& tx, Fetched* fetched) noexcept {
  const bool more = (fetched->descriptor.flags & contract::kTxFlagMore) != 0;
  fetched->group = kNone;
  if (fetched->descriptor.opcode == Opcode::kNop ||
      (!more && tx.group == kNone)) {
    return true;
  }
  if (tx.group == kNone) {
    if (groups_.full()) {
      return false;
    }
    tx.group = groups_.Open();
  }
  fetched->group = tx.group;
  ++groups_[tx.group].open;
  if (!more) {
    groups_[tx.group].ended = true;
    tx.group = kNone;
  }
  return true;
}

bool Initiator::Reserve(const TxContext& tx, const Fetched& fetched,
                        CqTicket* ticket) noexcept {
  if ((fetched.descriptor.flags & contract::kTxFlagMore) != 0 &&
      fetched.descriptor.opcode != Opcode::kNop) {
    return true;
  }
  *ticket = parts_.queues->Reserve(tx.cq());
  return ticket->valid();
}

Initiator::Took Initiator::TakeNext(uint32_t context) {
  Fetched& fetched = fetched_;
  if (!rings_.Peek(context, &fetched)) {
    return Took::kNothing;
  }
  const bool ok = fetched.status == Status::kOk;
  if (fetched.descriptor.opcode == Opcode::kNop &&
      (ok || fetched.status == Status::kFlushed) &&
      fetched.descriptor.position == fetched.position) {
    rings_.Take(context, fetched);
    rings_.Release(context, fetched.position, fetched.slots);
    rings_.TellIfDue(context);
    return Took::kTaken;
  }
  return TakeKnown(context, &fetched);
}

Initiator::Took Initiator::TakeKnown(uint32_t context, Fetched* fetched) {
  TxContext& tx = rings_[context];
  const VectorEntry* address = nullptr;
  uint32_t peer = kNone;
  if (fetched->status == Status::kOk) {
    address = addresses_.Find(context, tx.cfg, fetched->descriptor.peer);
    if (address == nullptr) {
      fetched->status = Status::kBadPeer;
    } else {
      peer = peers_.Get(context, fetched->descriptor.peer);
      if (peer == kNone) {
        return Took::kBlocked;
      }
    }
  }
  tx.fences |= (fetched->descriptor.flags & contract::kTxFlagFence) != 0;
  const bool waits =
      peer != kNone && (peers_[peer].waiting() ||
                        MustWait(tx, peers_[peer], fetched->descriptor));
  CqTicket ticket;
  if ((!waits && (!HasRoom(tx) || !Reserve(tx, *fetched, &ticket))) ||
      !Join(tx, fetched)) {
    parts_.queues->Release(ticket);
    if (peer != kNone) {
      peers_.Put(peer);
    }
    return Took::kBlocked;
  }
  rings_.Take(context, *fetched);
  if (waits) {
    rings_.Wait(&peers_, peer, *fetched);
    ++waiting_;
    MakeRoom(context);
    return Took::kTaken;
  }
  const uint32_t index = Launch(context, *fetched, ticket);
  if (index != kNone) {
    SendTo(index, *address, peer);
  }
  MakeRoom(context);
  return Took::kTaken;
}

bool Initiator::SpillMessage(uint32_t context) {
  TxContext& tx = rings_[context];
  const uint32_t slot = tx.Index(tx.head);
  const uint32_t index = tx.messages_at[slot];
  if (index == kNone) {
    return false;
  }
  TxMessage& message = messages_[index];
  const bool stuck =
      message.stage != TxMessage::Stage::kPosted || transport_->Stuck(index);
  if (!stuck || !rings_.GiveUpOldest(context, message.slots)) {
    return false;
  }
  tx.messages_at[slot] = kNone;
  message.slots = 0;
  return true;
}

void Initiator::RelieveCrowded(uint32_t context) {
  while (rings_.SpillWaiting(context, &peers_) || SpillMessage(context)) {
    parts_.statistics->Count(Statistic::kTxSpilled);
    if (!rings_.Crowded(context)) {
      crowded_.Remove(context);
      return;
    }
  }
  crowded_.Add(context);
}

void Initiator::MakeRoomAnywhere() {
  crowded_.ForEach([this](uint32_t context) {
    if (rings_.Crowded(context)) {
      RelieveCrowded(context);
    } else {
      crowded_.Remove(context);
    }
  });
}

bool Initiator::TakeWaiting(uint32_t at) {
  Peer& peer = peers_[at];
  const uint32_t context = peer.context;
  TxContext& tx = rings_[context];
  Fetched& fetched = fetched_;
  rings_.PeekWaiting(peer, &fetched);
  const VectorEntry* address = nullptr;
  if (fetched.status == Status::kOk) {
    if (MustWait(tx, peer, fetched.descriptor)) {
      return false;
    }
    // The peer it was taken for, whatever its slot says by now.
    fetched.descriptor.peer = peer.index;
    address = addresses_.Find(context, tx.cfg, peer.index);
    fetched.status = address == nullptr ? Status::kBadPeer : Status::kOk;
  }
  CqTicket ticket;
  if (!HasRoom(tx) || !Reserve(tx, fetched, &ticket)) {
    return false;
  }
  rings_.LeaveWaiting(&peer);
  --waiting_;
  const uint32_t index = Launch(context, fetched, ticket);
  if (index != kNone) {
    SendTo(index, *address, at);
  }
  return true;
}

uint32_t Initiator::Launch(uint32_t context, const Fetched& fetched,
                           CqTicket ticket) {
  TxContext& tx = rings_[context];
  const uint32_t index = free_.Pop(messages_);
  TxMessage& message = messages_[index];
  message.Begin(fetched, mtu_);
  message.context = context;
  message.generation = tx.generation;
  message.ticket = ticket;
  message.from = {tx.cfg.job_id, tx.cfg.source_pid, tx.cfg.source_ri,
                  tx.cfg.traffic_class,
                  (tx.cfg.flags & contract::kTxCtxFlagRelative) != 0};
  if (message.slots != 0) {
    tx.messages_at[tx.Index(message.position)] = index;
  }
  if ((tx.cfg.flags & contract::kTxCtxFlagDeferrable) != 0 &&
      OrderClassOf(fetched.descriptor.opcode) == contract::kOrderClassSend &&
      fetched.descriptor.length > contract::kDeferAbove) {
    message.deferrable = true;
    message.target_token = 0;
    message.life = message.life == 0 ? first_life_
                                     : static_cast<uint16_t>(message.life + 1);
  }
  ++tx.messages;
  ++live_;
  if (tx.used++ >= GuaranteeOf(tx)) {
    --shared_;
  }
  if (fetched.status == Status::kOk) {
    parts_.statistics->Count(Statistic::kTxDescriptors);
    return index;
  }
  if (StopsContext(fetched.status)) {
    tx.error = true;
    parts_.statistics->Count(Statistic::kTxBadDescriptors);
  }
  message.state.Abandon(fetched.status, 0);
  EndIfRetired(index);
  return kNone;
}

void Initiator::SendTo(uint32_t index, const VectorEntry& address,
                       uint32_t at) {
  TxMessage& message = messages_[index];
  const TxDesc& descriptor = message.descriptor;
  const uint8_t ordered = rings_[message.context].cfg.ordered;
  message.to = address;
  message.peer = at;
  message.ordered = (ordered & OrderClassOf(descriptor.opcode)) != 0;
  // Small results are kept by the target, so they cannot change any more.
  message.holds = message.ordered && descriptor.opcode == Opcode::kRead &&
                  descriptor.length > contract::kReturnDataInAck;
  ++peers_[at].in_flight;
  peers_[at].reads += message.holds ? 1 : 0;
  Post(index);
}

void Initiator::Post(uint32_t index) {
  TxMessage& message = messages_[index];
  const VectorEntry& to = message.to;
  transport::PdcName name = {.peer = to.address,
                             .target_pid = to.pid,
                             .target_ri = to.first_ri,
                             .traffic_class = message.from.traffic_class,
                             .ordered = message.ordered,
                             .relative = message.from.relative};
  if (message.ordered || message.from.relative) {
    name.job_id = message.from.job_id;
  }
  if (message.ordered) {
    name.source_pid = message.from.pid;
    name.target_ri = message.target_ri();
  }
  wire::Path path;
  path.destination = to.address;
  path.port = PortOf(to.pid, to.first_ri);
  path.next_hop = to.next_hop;
  path.dscp = message.from.traffic_class;
  path.source_port = PortOf(message.from.pid, message.from.first_ri);
  if (message.ready_request) {
    path = message.back;
  }
  message.stage = TxMessage::Stage::kPosted;
  if (transport_->Post(index, name, path, message.packets,
                       message.expects_data) ==
      transport::MessageCarrier::PostOutcome::kFull) {
    message.stage = TxMessage::Stage::kUnposted;
    if (message.peer != kNone) {
      peers_[message.peer].unposted = true;
    }
    unposted_.PushBack(messages_, index);
    ++unposted_count_;
    return;
  }
  ++message.attempts;
}

void Initiator::RetryPosts() {
  // Each once; those that fail go to the back in the order they had.
  for (uint32_t left = unposted_count_; left != 0; --left) {
    const uint32_t index = unposted_.PopFront(messages_);
    TxMessage& message = messages_[index];
    --unposted_count_;
    if (message.peer == kNone) {
      Post(index);
      continue;
    }
    Peer& peer = peers_[message.peer];
    peer.unposted = false;
    if (Stale(message)) {
      message.abandoned = true;
      message.state.Abandon(Status::kFlushed, 0);
      EndIfRetired(index);
      continue;
    }
    Post(index);
    if (message.stage == TxMessage::Stage::kPosted && peer.waiting()) {
      peers_.Wake(message.peer);
    }
  }
}

void Initiator::TakeAwake(uint32_t* descriptors) {
  // Those that still cannot go are woken again by what they wait for, or are
  // kept for the next call when that is room.
  uint32_t kept = kNone;
  while (*descriptors != 0) {
    const uint32_t index = peers_.first_awake();
    if (index == kNone || index == kept) {
      break;
    }
    peers_.Sleep(index);
    while (*descriptors != 0 && peers_[index].waiting() && TakeWaiting(index)) {
      --*descriptors;
    }
    if (peers_[index].waiting() &&
        (*descriptors == 0 || peers_[index].in_flight == 0)) {
      peers_.Wake(index);
      kept = kept == kNone ? index : kept;
    }
    peers_.Put(index);
  }
}

bool Initiator::TakeReady(uint32_t* descriptors) {
  // One of each context in turn.
  while (!ready_.empty() && *descriptors != 0) {
    const uint32_t context = ready_.NextFrom(turn_);
    turn_ = context + 1;
    const Took took = TakeNext(context);
    *descriptors -= took == Took::kTaken ? 1 : 0;
    if (took == Took::kBlocked) {
      blocked_.Add(context);
    }
    if (took != Took::kTaken || rings_[context].all_taken()) {
      ready_.Remove(context);
    }
  }
  return !ready_.empty();
}

bool Initiator::Progress(uint32_t descriptors) {
  if (!crowded_.empty()) {
    MakeRoomAnywhere();
  }
  if (unposted_count_ != 0) {
    RetryPosts();
  }
  if (peers_.first_awake() != kNone) {
    TakeAwake(&descriptors);
  }
  return !ready_.empty() && TakeReady(&descriptors);
}

}  // namespace heddle::soft::engine
