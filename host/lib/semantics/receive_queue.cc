// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/receive_queue.h"

#include <algorithm>

namespace heddle::semantics {

ReceiveQueue::ReceiveQueue(const Limits& limits, uint64_t hash_seed)
    : posted_(limits.receives, hash_seed),
      unexpected_(limits.unexpected, limits.unexpected_bytes, hash_seed),
      free_(&receives_, limits.receives),
      room_(limits.receives) {
  lengths_.reserve(limits.unexpected);
}

uint32_t ReceiveQueue::Take(const ReceiveSpec& spec) noexcept {
  const uint32_t receive = free_.Pop(receives_);
  if (receive != kNone) {
    Receive& made = receives_[receive];
    made = {};
    made.op_context = spec.op_context;
    made.buffer = spec.buffer;
    made.length = spec.length;
    made.min_free = spec.min_free;
    made.multi = spec.multi;
    --room_;
  }
  return receive;
}

Delivery ReceiveQueue::Give(uint32_t receive, uint64_t message,
                            uint64_t length) noexcept {
  Receive& to = receives_[receive];
  const uint64_t free = to.length - to.used;
  const Delivery delivery = {
      receive, to.op_context, message, to.buffer + to.used,
      free,    to.used,       to.multi};
  ++to.under_way;
  to.used += std::min(length, free);
  const uint64_t left = to.length - to.used;
  const bool more = to.multi && left != 0 && left >= to.min_free;
  if (!more && to.posted != kNone) {
    (void)posted_.Remove(to.posted);
    to.posted = kNone;
  }
  return delivery;
}

Delivery ReceiveQueue::GiveUnexpected(uint32_t receive,
                                      uint32_t handle) noexcept {
  const uint64_t message = unexpected_.cookie(handle);
  (void)unexpected_.Remove(handle);
  return Give(receive, message, lengths_[handle]);
}

ReceiveQueue::PostAnswer ReceiveQueue::Post(const ReceiveSpec& spec) noexcept {
  const uint32_t receive = Take(spec);
  if (receive == kNone) {
    return {PostStatus::kFull, {}};
  }
  const uint32_t handle = unexpected_.Find(spec.rule);
  if (handle == kNone || spec.multi) {
    // As many places as receives: never full here.
    receives_[receive].posted = posted_.Post(spec.rule, receive);
  }
  if (handle == kNone) {
    return {PostStatus::kPosted, {}};
  }
  return {PostStatus::kMatched, GiveUnexpected(receive, handle)};
}

std::optional<Delivery> ReceiveQueue::MatchNext(uint32_t receive) noexcept {
  if (receive >= receives_.size() || receives_[receive].posted == kNone) {
    return std::nullopt;
  }
  const uint32_t handle =
      unexpected_.Find(posted_.rule(receives_[receive].posted));
  if (handle == kNone) {
    return std::nullopt;
  }
  return GiveUnexpected(receive, handle);
}

std::optional<Delivery> ReceiveQueue::Match(const Arrival& arrival) noexcept {
  const uint32_t posted = posted_.Find(arrival.envelope);
  if (posted == kNone) {
    return std::nullopt;
  }
  return Give(posted_.cookie(posted), arrival.message, arrival.length);
}

uint32_t ReceiveQueue::Keep(const Arrival& arrival) noexcept {
  const uint32_t handle =
      unexpected_.Add(arrival.envelope, arrival.message, arrival.buffered);
  if (handle != kNone) {
    if (handle >= lengths_.size()) {
      lengths_.resize(handle + 1);  // Reserved.
    }
    lengths_[handle] = arrival.length;
  }
  return handle;
}

ReceiveQueue::ArriveAnswer ReceiveQueue::Arrive(
    const Arrival& arrival) noexcept {
  if (const std::optional<Delivery> delivery = Match(arrival)) {
    return {ArriveStatus::kMatched, *delivery};
  }
  return {Keep(arrival) != kNone ? ArriveStatus::kUnexpected
                                 : ArriveStatus::kRefused,
          {}};
}

ReceiveQueue::FinishStatus ReceiveQueue::Finish(uint32_t receive) noexcept {
  if (receive >= receives_.size() || receives_[receive].under_way == 0) {
    return FinishStatus::kNotFound;
  }
  Receive& done = receives_[receive];
  --done.under_way;
  if (done.under_way != 0 || done.posted != kNone) {
    return FinishStatus::kHeld;
  }
  const bool cancelled = done.cancelled;
  free_.Push(receives_, receive);
  ++room_;
  return cancelled ? FinishStatus::kCancelled : FinishStatus::kReleased;
}

ReceiveQueue::Withdrawn ReceiveQueue::Withdraw(uint32_t receive) noexcept {
  Receive& out = receives_[receive];
  (void)posted_.Remove(out.posted);
  out.posted = kNone;
  Withdrawn withdrawn = {out.op_context, CancelStatus::kPending, out.multi};
  if (out.under_way != 0) {
    out.cancelled = true;
    return withdrawn;
  }
  free_.Push(receives_, receive);
  ++room_;
  withdrawn.status = CancelStatus::kCancelled;
  return withdrawn;
}

ReceiveQueue::Withdrawn ReceiveQueue::CancelWhere(uint64_t op_context,
                                                  uint64_t mask) noexcept {
  for (uint32_t at = posted_.oldest(); at != kNone; at = posted_.Next(at)) {
    const auto receive = posted_.cookie(at);
    if (((receives_[receive].op_context ^ op_context) & mask) == 0) {
      return Withdraw(receive);
    }
  }
  return {};
}

std::optional<Peeked> ReceiveQueue::Peek(const MatchRule& rule,
                                         PeekAction action,
                                         uint64_t context) noexcept {
  const uint32_t handle = unexpected_.Find(rule);
  if (handle == kNone) {
    return std::nullopt;
  }
  const Peeked peeked = {unexpected_.cookie(handle),
                         unexpected_.envelope(handle), lengths_[handle]};
  if (action == PeekAction::kClaim) {
    (void)unexpected_.Claim(handle, context);
  } else if (action == PeekAction::kDiscard) {
    (void)unexpected_.Remove(handle);
  }
  return peeked;
}

ReceiveQueue::PostAnswer ReceiveQueue::ReceiveClaimed(
    const ReceiveSpec& spec) noexcept {
  const uint32_t handle = unexpected_.FindClaimed(spec.op_context);
  if (handle == kNone) {
    return {PostStatus::kNotFound, {}};
  }
  const uint32_t receive = Take(spec);
  if (receive == kNone) {
    return {PostStatus::kFull, {}};
  }
  return {PostStatus::kMatched, GiveUnexpected(receive, handle)};
}

std::optional<uint64_t> ReceiveQueue::DiscardClaimed(
    uint64_t context) noexcept {
  const uint32_t handle = unexpected_.FindClaimed(context);
  if (handle == kNone) {
    return std::nullopt;
  }
  const uint64_t message = unexpected_.cookie(handle);
  (void)unexpected_.Remove(handle);
  return message;
}

std::optional<ReceiveQueue::Withdrawn> ReceiveQueue::FlushReceive() noexcept {
  const uint32_t at = posted_.oldest();
  if (at == kNone) {
    return std::nullopt;
  }
  return Withdraw(posted_.cookie(at));
}

std::optional<uint64_t> ReceiveQueue::FlushMessage() noexcept {
  const uint32_t handle = unexpected_.oldest() != kNone
                              ? unexpected_.oldest()
                              : unexpected_.oldest_claimed();
  if (handle == kNone) {
    return std::nullopt;
  }
  const uint64_t message = unexpected_.cookie(handle);
  (void)unexpected_.Remove(handle);
  return message;
}

}  // namespace heddle::semantics
