// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/match_contexts.h"

#include <algorithm>
#include <span>

namespace heddle::soft::engine {

using contract::MatchDesc;
using contract::MatchOp;
using contract::NackCode;
using contract::Opcode;
using contract::Statistic;
using contract::Status;
using semantics::Delivery;
using semantics::kNone;
using semantics::MessageNames;
using semantics::Outcome;
using semantics::ReceiveQueue;

namespace {

constexpr size_t kCopyBytes = 16384;  // At a time.

bool IsTagged(const contract::RxCtxCfg& cfg) noexcept {
  return (cfg.flags & contract::kRxCtxFlagTagged) != 0;
}

uint32_t Entries(uint32_t requested) noexcept {
  return std::clamp(requested, 1U, contract::kMatchEntriesMax);
}

bool Has(const MatchDesc& descriptor, uint8_t flag) noexcept {
  return (descriptor.flags & flag) != 0;
}

semantics::MatchRule RuleOf(const MatchDesc& descriptor) noexcept {
  return {.tag = descriptor.match_bits,
          .ignore = descriptor.ignore_bits,
          .any_source = Has(descriptor, contract::kMatchFlagAnySource),
          .source = {descriptor.source_fa_lo, descriptor.source_fa_hi,
                     descriptor.initiator,
                     Has(descriptor, contract::kMatchFlagSourceIpv6)}};
}

semantics::ReceiveSpec SpecOf(const MatchDesc& descriptor) noexcept {
  return {.rule = RuleOf(descriptor),
          .op_context = descriptor.op_context,
          .buffer = descriptor.local_iova,
          .length = descriptor.length,
          .multi = Has(descriptor, contract::kMatchFlagMultiRecv),
          .min_free = descriptor.min_free};
}

// kOk, kBadOpcode or kBadLength.
Status Check(const MatchDesc& descriptor, bool tagged) noexcept {
  constexpr uint8_t kKnown = contract::kMatchFlagAnySource |
                             contract::kMatchFlagSourceIpv6 |
                             contract::kMatchFlagMultiRecv;
  if (static_cast<uint8_t>(descriptor.opcode) >
      static_cast<uint8_t>(MatchOp::kDiscardClaimed)) {
    return Status::kBadOpcode;
  }
  const bool multi = Has(descriptor, contract::kMatchFlagMultiRecv);
  const bool fits =
      (descriptor.flags & ~kKnown) == 0 &&
      (multi ? descriptor.opcode == MatchOp::kReceive && descriptor.length != 0
             : descriptor.min_free == 0) &&
      (tagged || (descriptor.match_bits == 0 && descriptor.ignore_bits == 0));
  return fits ? Status::kOk : Status::kBadLength;
}

}  // namespace

MatchContexts::Context::Context(const contract::RxCtxCfg& cfg, uint16_t slots,
                                uint64_t seed)
    : queue({.receives = Entries(cfg.receives),
             .unexpected = Entries(cfg.unexpected_messages)},
            seed),
      area(cfg.unexpected_bytes),
      free(&kept, Entries(cfg.unexpected_messages)),
      withdrawn(slots) {}

MatchContexts::MatchContexts(uint32_t count, const EngineParts& parts,
                             RxRings* rings, Arriving* arriving, uint64_t seed)
    : parts_(parts),
      rings_(rings),
      arriving_(arriving),
      seed_(seed),
      contexts_(count),
      free_deferred_(&deferred_, kMaxDeferred),
      first_life_(static_cast<uint16_t>(seed | 1)) {}

void MatchContexts::Write(uint32_t context) {
  const RxContext& rx = (*rings_)[context];
  if (Find(context) != nullptr) {
    Orphan(context);
  }
  if (rx.alive && rx.matches) {
    copy_.resize(kCopyBytes);
    contexts_.Make(context) =
        std::make_unique<Context>(rx.cfg, rx.size(), seed_);
  } else if (std::unique_ptr<Context>* const found = contexts_.Find(context)) {
    found->reset();
  }
}

CqTicket MatchContexts::Reserve(uint32_t context) noexcept {
  const CqTicket ticket = parts_.queues->Reserve((*rings_)[context].cq());
  behind_ = behind_ || !ticket.valid();
  return ticket;
}

// -- descriptors

void MatchContexts::Publish(uint32_t context, uint16_t tail) {
  Context* const match = Find(context);
  if (match == nullptr) {
    return;
  }
  // A count beyond the ring is cut: its slots carry wrong positions.
  const uint16_t size = (*rings_)[context].size();
  const auto room = static_cast<uint16_t>(size - (match->tail - match->head));
  match->tail = static_cast<uint16_t>(tail - match->tail) > room
                    ? static_cast<uint16_t>(match->head + size)
                    : tail;
  Advance(context);
}

void MatchContexts::Cancel(uint32_t context, uint32_t handle) {
  Context* const match = Find(context);
  if (match == nullptr) {
    return;
  }
  const ReceiveQueue::Withdrawn withdrawn =
      match->queue.CancelWhere(handle, UINT32_MAX);
  if (withdrawn.status == ReceiveQueue::CancelStatus::kCancelled) {
    match->owed.push_back({withdrawn.op_context, withdrawn.multi});
    Advance(context);
  }
  if (withdrawn.status != ReceiveQueue::CancelStatus::kNotFound) {
    return;
  }
  // It may still be in the ring.
  const RxContext& rx = (*rings_)[context];
  for (uint16_t at = match->head; at != match->tail; ++at) {
    MatchDesc descriptor;
    const uint32_t slot = at & (rx.size() - 1U);
    if (!match->withdrawn[slot] &&
        parts_.host->ReadStruct(
            rx.cfg.ring_base + uint64_t{slot} * contract::kMatchDescBytes,
            &descriptor) &&
        descriptor.position == at && descriptor.opcode == MatchOp::kReceive &&
        static_cast<uint32_t>(descriptor.op_context) == handle) {
      match->withdrawn[slot] = true;
      return;
    }
  }
}

void MatchContexts::WorkOff() {
  behind_ = false;
  RequestAll();
  contexts_.ForEach([this](uint32_t i, const std::unique_ptr<Context>& match) {
    if (match != nullptr) {
      Advance(i);
    }
  });
}

void MatchContexts::Advance(uint32_t context) {
  Context& match = *Find(context);
  const uint16_t before = match.head;
  // In this order: what is owed is bounded by the receives that there may be,
  // and a receive that still matches messages is older than those in the ring.
  while ((match.owed.empty() || PayOwed(context)) &&
         (match.matching == kNone || MatchMore(context)) &&
         match.head != match.tail && TakeNext(context)) {
  }
  if (match.head != before) {
    parts_.host->Store((*rings_)[context].cfg.head_cell, match.head);
  }
}

bool MatchContexts::PayOwed(uint32_t context) {
  Context& match = *Find(context);
  size_t paid = 0;
  for (; paid != match.owed.size(); ++paid) {
    const CqTicket ticket = Reserve(context);
    if (!ticket.valid()) {
      break;
    }
    const Owed& owed = match.owed[paid];
    Tell(context, ticket, owed.op_context, Status::kCancelled,
         owed.multi ? contract::kCompletionFlagBufferReleased : uint8_t{0});
  }
  match.owed.erase(match.owed.begin(),
                   match.owed.begin() + static_cast<std::ptrdiff_t>(paid));
  return match.owed.empty();
}

bool MatchContexts::MatchMore(uint32_t context) {
  Context& match = *Find(context);
  while (match.matching != kNone) {
    const CqTicket ticket = Reserve(context);
    if (!ticket.valid()) {
      return false;
    }
    const auto delivery = match.queue.MatchNext(match.matching);
    if (delivery) {
      Deliver(context, *delivery, ticket);
    } else {
      parts_.queues->Release(ticket);
      match.matching = kNone;
    }
  }
  return true;
}

Status MatchContexts::Load(uint32_t context, MatchDesc* descriptor) {
  const RxContext& rx = (*rings_)[context];
  const uint16_t head = Find(context)->head;
  Status status = Status::kLocalAccess;
  if (parts_.host->ReadStruct(
          rx.cfg.ring_base +
              uint64_t{head & (rx.size() - 1U)} * contract::kMatchDescBytes,
          descriptor)) {
    status = descriptor->position == head ? Check(*descriptor, IsTagged(rx.cfg))
                                          : Status::kBadPosition;
  }
  if (status == Status::kLocalAccess || status == Status::kBadPosition) {
    *descriptor = {};
  }
  return status;
}

bool MatchContexts::TakeNext(uint32_t context) {
  Context& match = *Find(context);
  MatchDesc descriptor;
  Status status = Load(context, &descriptor);
  const uint32_t slot = match.head & ((*rings_)[context].size() - 1U);
  if (status == Status::kOk && match.withdrawn[slot]) {
    status = Status::kCancelled;
  }
  const bool ok = status == Status::kOk;
  const bool receives = descriptor.opcode == MatchOp::kReceive ||
                        descriptor.opcode == MatchOp::kReceiveClaimed;
  if (ok && receives && match.queue.room() == 0) {
    return false;
  }
  // A receive that nothing can match yet completes later.
  CqTicket ticket;
  if (!ok || descriptor.opcode != MatchOp::kReceive ||
      match.queue.unexpected() != 0) {
    ticket = Reserve(context);
    if (!ticket.valid()) {
      return false;
    }
  }
  match.withdrawn[slot] = false;
  ++match.head;
  if (ok) {
    Execute(context, descriptor, ticket);
  } else {
    const bool released = status == Status::kCancelled &&
                          Has(descriptor, contract::kMatchFlagMultiRecv);
    Tell(context, ticket, descriptor.op_context, status,
         released ? contract::kCompletionFlagBufferReleased : uint8_t{0});
  }
  return true;
}

void MatchContexts::Execute(uint32_t context, const MatchDesc& descriptor,
                            CqTicket ticket) {
  Context& match = *Find(context);
  switch (descriptor.opcode) {
    case MatchOp::kReceive:
      Receive(context, descriptor, ticket);
      return;
    case MatchOp::kReceiveClaimed: {
      const ReceiveQueue::PostAnswer answer =
          match.queue.ReceiveClaimed(SpecOf(descriptor));
      if (answer.status == ReceiveQueue::PostStatus::kMatched) {
        Deliver(context, answer.delivery, ticket);
      } else {
        Tell(context, ticket, descriptor.op_context, Status::kNoMessage);
      }
      return;
    }
    case MatchOp::kPeek:
    case MatchOp::kClaim:
    case MatchOp::kDiscard:
    case MatchOp::kDiscardClaimed:
      Look(context, descriptor, ticket);
      return;
  }
}

void MatchContexts::Receive(uint32_t context, const MatchDesc& descriptor,
                            CqTicket ticket) {
  Context& match = *Find(context);
  const ReceiveQueue::PostAnswer answer = match.queue.Post(SpecOf(descriptor));
  if (answer.status != ReceiveQueue::PostStatus::kMatched) {
    parts_.queues->Release(ticket);
    return;
  }
  const Delivery& delivery = answer.delivery;
  match.matching = delivery.multi ? delivery.receive : kNone;
  Deliver(context, delivery, ticket);
}

bool MatchContexts::IsHeadless(Context& match,
                               const semantics::MatchRule& rule) {
  const auto first = match.queue.Peek(rule, ReceiveQueue::PeekAction::kLook, 0);
  return first && match.kept[static_cast<uint32_t>(first->message)].headless;
}

void MatchContexts::Look(uint32_t context, const MatchDesc& descriptor,
                         CqTicket ticket) {
  using Action = ReceiveQueue::PeekAction;
  Context& match = *Find(context);
  std::optional<uint64_t> message;
  if (descriptor.opcode == MatchOp::kDiscardClaimed) {
    message = match.queue.DiscardClaimed(descriptor.op_context);
  } else if (!IsHeadless(match, RuleOf(descriptor))) {
    const Action action = descriptor.opcode == MatchOp::kClaim ? Action::kClaim
                          : descriptor.opcode == MatchOp::kDiscard
                              ? Action::kDiscard
                              : Action::kLook;
    const auto peeked =
        match.queue.Peek(RuleOf(descriptor), action, descriptor.op_context);
    if (peeked) {
      message = peeked->message;
    }
  }
  if (!message) {
    Tell(context, ticket, descriptor.op_context, Status::kNoMessage);
    return;
  }
  const auto kept = static_cast<uint32_t>(*message);
  const Kept& found = match.kept[kept];
  parts_.queues->Complete(
      ticket, EntryOf(context, descriptor.op_context, found.names,
                      {.message_length = found.outcome.message_length}));
  if (descriptor.opcode == MatchOp::kDiscard ||
      descriptor.opcode == MatchOp::kDiscardClaimed) {
    Discard(match, kept);
  }
}

// -- messages

std::optional<NackCode> MatchContexts::Begin(uint32_t context,
                                             const Message& message,
                                             Landing* landing) {
  Context& match = *Find(context);
  const RxContext& rx = (*rings_)[context];
  if (match.matching != kNone && !MatchMore(context)) {
    return NackCode::kNoResource;
  }
  semantics::Arrival arrival = {
      .envelope = {IsTagged(rx.cfg) ? message.names.tag : 0,
                   message.names.source},
      .length = message.length};
  if (const CqTicket ticket = Reserve(context); ticket.valid()) {
    if (const auto delivery = match.queue.Match(arrival)) {
      *landing = {.kind = Landing::Kind::kReceive,
                  .delivery = *delivery,
                  .ticket = ticket,
                  .address = delivery->address,
                  .room = static_cast<uint32_t>(delivery->room)};
      return std::nullopt;
    }
    parts_.queues->Release(ticket);
  } else if (match.queue.Expects(arrival.envelope)) {
    return NackCode::kNoResource;
  }
  if (message.given_up) {
    landing->kind = Landing::Kind::kNowhere;
    return std::nullopt;
  }
  return Keep(context, message, arrival, landing);
}

std::optional<NackCode> MatchContexts::Keep(uint32_t context,
                                            const Message& message,
                                            semantics::Arrival arrival,
                                            Landing* landing) {
  Context& match = *Find(context);
  const RxContext& rx = (*rings_)[context];
  const uint32_t kept = match.free.Pop(match.kept);
  if (kept == kNone) {
    return NackCode::kNoPktBuffer;
  }
  Kept& keep = match.kept[kept];
  keep.deferred = kNone;
  keep.block = message.length == 0 || (message.deferral != nullptr &&
                                       message.length > rx.cfg.copy_limit)
                   ? UnexpectedArea::Block{}
                   : match.area.Take(message.length);
  if (keep.block.bytes != message.length) {
    keep.deferred = message.deferral != nullptr && !message.headless
                        ? Defer(context, message)
                        : kNone;
    if (keep.deferred == kNone) {
      match.free.Push(match.kept, kept);
      return NackCode::kNoPktBuffer;
    }
    deferred_[keep.deferred].kept = kept;
  }
  keep.names = message.names;
  keep.headless = message.headless;
  keep.outcome = {.length = message.length, .message_length = message.length};
  keep.open = keep.deferred == kNone ? message.open : kNone;
  arrival.message = kept;
  // There is a place: as many as in `kept`.
  keep.handle = match.queue.Keep(arrival);
  *landing = {.kind = keep.deferred == kNone ? Landing::Kind::kKept
                                             : Landing::Kind::kDeferred,
              .kept = kept,
              .address = rx.cfg.unexpected_base + keep.block.offset,
              .room = message.length};
  parts_.statistics->Count(Statistic::kRxUnexpected);
  return std::nullopt;
}

void MatchContexts::End(uint32_t context, const Landing& landing,
                        const MessageNames& names, const Outcome& outcome) {
  Context& match = *Find(context);
  switch (landing.kind) {
    case Landing::Kind::kPlain:
    case Landing::Kind::kDeferred:
    case Landing::Kind::kNowhere:
      break;
    case Landing::Kind::kKept: {
      Kept& keep = match.kept[landing.kept];
      keep.open = kNone;
      keep.headless = false;
      keep.names = names;
      keep.outcome = outcome;
      if (outcome.status != Status::kOk &&
          outcome.status != Status::kLocalAccess) {
        FailKept(match, landing.kept);
      }
      break;
    }
    case Landing::Kind::kReceive:
      Finish(context, landing, names, outcome);
      Advance(context);
      break;
  }
}

void MatchContexts::Deliver(uint32_t context, const Delivery& delivery,
                            CqTicket ticket) {
  Context& match = *Find(context);
  const auto index = static_cast<uint32_t>(delivery.message);
  Kept& keep = match.kept[index];
  const Landing landing = {
      .kind = Landing::Kind::kReceive,
      .delivery = delivery,
      .ticket = ticket,
      .block = keep.block,
      .address = (*rings_)[context].cfg.unexpected_base + keep.block.offset,
      .room = keep.block.bytes};
  const uint32_t open = keep.open;
  match.free.Push(match.kept, index);
  if (keep.deferred != kNone) {
    deferred_[keep.deferred].delivery = delivery;
    deferred_[keep.deferred].ticket = ticket;
    Request(keep.deferred);
    return;
  }
  if (open != kNone) {
    arriving_->OnTaken(open, landing);
  } else {
    Finish(context, landing, keep.names, keep.outcome);
  }
}

void MatchContexts::Discard(Context& match, uint32_t kept) {
  Kept& keep = match.kept[kept];
  match.area.Give(keep.block);
  if (keep.open != kNone) {
    arriving_->OnDiscarded(keep.open);
  }
  if (keep.deferred != kNone) {
    deferred_[keep.deferred].discarded = true;
    Request(keep.deferred);
  }
  match.free.Push(match.kept, kept);
}

void MatchContexts::FailKept(Context& match, uint32_t kept) {
  if (match.queue.Drop(match.kept[kept].handle)) {
    Discard(match, kept);
  }
}

void MatchContexts::Copy(Context& match, const Landing& landing, uint64_t area,
                         Outcome* outcome) {
  const UnexpectedArea::Block& block = landing.block;
  const auto length = static_cast<uint32_t>(
      outcome->status == Status::kOk
          ? std::min<uint64_t>(block.bytes, landing.delivery.room)
          : 0);
  outcome->length = length;
  for (uint32_t done = 0; done != length;) {
    const std::span<uint8_t> part(
        copy_.data(), std::min<size_t>(copy_.size(), length - done));
    if (!parts_.host->Read(area + block.offset + done, part) ||
        !parts_.host->Write(landing.delivery.address + done, part)) {
      outcome->status = Status::kLocalAccess;
      outcome->length = 0;
      break;
    }
    done += static_cast<uint32_t>(part.size());
  }
  match.area.Give(block);
}

void MatchContexts::Finish(uint32_t context, const Landing& landing,
                           const MessageNames& names, Outcome outcome) {
  Context& match = *Find(context);
  const RxContext& rx = (*rings_)[context];
  const Delivery& delivery = landing.delivery;
  if (landing.block.bytes != 0) {
    Copy(match, landing, rx.cfg.unexpected_base, &outcome);
  }
  if (outcome.status == Status::kOk && outcome.message_length > delivery.room) {
    outcome.status = Status::kTruncated;
  }
  const ReceiveQueue::FinishStatus ended = match.queue.Finish(delivery.receive);
  contract::Completion entry =
      EntryOf(context, delivery.op_context, names, outcome);
  if (delivery.multi) {
    entry.flags |= contract::kCompletionFlagBufferOffset;
    entry.queue_head = static_cast<uint16_t>(delivery.offset);
    entry.position = static_cast<uint16_t>(delivery.offset >> 16U);
    if (ended != ReceiveQueue::FinishStatus::kHeld) {
      entry.flags |= contract::kCompletionFlagBufferReleased;
    }
  }
  parts_.statistics->Count(Statistic::kRxMessages);
  parts_.counters->Count(rx.counter_recv(), outcome.status);
  parts_.queues->Complete(landing.ticket, entry);
}

void MatchContexts::Tell(uint32_t context, CqTicket ticket, uint64_t op_context,
                         Status status, uint8_t flags) {
  MessageNames names;
  names.opcode =
      IsTagged((*rings_)[context].cfg) ? Opcode::kTaggedSend : Opcode::kSend;
  contract::Completion entry =
      EntryOf(context, op_context, names, {.status = status});
  entry.op_context = op_context;  // Cancelled receives report it, too.
  entry.flags = flags;            // No message, so no tag.
  parts_.queues->Complete(ticket, entry);
}

contract::Completion MatchContexts::EntryOf(uint32_t context,
                                            uint64_t op_context,
                                            const MessageNames& names,
                                            const Outcome& outcome) {
  return semantics::RxCompletion(op_context, names, outcome,
                                 {static_cast<uint16_t>(context), 0, 0});
}

}  // namespace heddle::soft::engine
