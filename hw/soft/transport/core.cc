// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/core.h"

#include <algorithm>

namespace heddle::soft::transport {

using contract::Statistic;

namespace {

TransportLimits Checked(TransportLimits limits) {
  limits.pdcs = std::clamp<uint32_t>(limits.pdcs, 1, TransportLimits::kMaxPdcs);
  limits.return_records = std::min(limits.return_records, rules::kWindow);
  return limits;
}

}  // namespace

Core::Core(const TransportLimits& the_limits, wire::DatagramWire* the_wire,
           TransportClient* the_client, uint64_t seed)
    : limits(Checked(the_limits)),
      wire(the_wire),
      client(the_client),
      random(seed),
      messages(limits.messages),
      pdcs(the_wire, limits.pdcs, random.Next()) {}

Pdc* Core::TakePdc(bool target) {
  Pdc* pdc = pdcs.Take(target, now_ns);
  timers.Grow(pdcs.made());
  blocked.reserve(pdcs.made());
  return pdc;
}

Pdc* Core::PopReady() {
  if (ready_first_ == PdcTable::kNone) {
    return nullptr;
  }
  Pdc* pdc = &pdcs[ready_first_];
  ready_first_ = pdc->next_ready;
  pdc->ready = false;
  return pdc;
}

void Core::Clear() {
  // What of these was acknowledged is gone, and their initiators open others:
  // late SYNs of theirs must open nothing.
  const uint64_t until_ns =
      now_ns + std::max(settings.safety_ns, settings.dead_ns);
  for (uint32_t i = 0; i < pdcs.made(); ++i) {
    const Pdc& pdc = pdcs[static_cast<uint16_t>(i)];
    if (pdc.target && pdc.state != PdcState::kFree) {
      tombstones.Add(pdc.identity(), until_ns);
    }
  }
  tombstones.NewIncarnation();
  pdcs.Clear();
  timers = TimerHeap();
  std::fill(messages.begin(), messages.end(), Message());
  blocked.clear();
  ready_first_ = PdcTable::kNone;
  busy = closing = 0;
  retry_ns = rules::kNever;
}

[[gnu::always_inline]] inline bool Core::HasWork(const Pdc& pdc, bool fresh) {
  return pdc.receive.owes() || pdc.ask_due || pdc.close_ask_due ||
         pdc.send.MayResend() || (fresh && pdc.send.MaySendNew()) ||
         pdc.clear_due();
}

[[gnu::always_inline]] inline uint64_t Core::DeadlineOf(const Pdc& pdc,
                                                        bool open) const {
  if (pdc.unreachable) {
    return now_ns;
  }
  uint64_t deadline = std::min(pdc.send.timer_ns(), pdc.receive.ack_ns);
  if ((open || pdc.held != 0) && !pdc.send.waiting()) {
    deadline = std::min(deadline, pdc.send.heard_ns() + settings.dead_ns);
  }
  if (pdc.target) {
    deadline = std::min(deadline, pdc.receive.heard_ns + 2 * settings.dead_ns);
  } else if (pdc.listed && settings.idle_ns != 0) {
    deadline = std::min(deadline, pdc.used_ns + settings.idle_ns);
  }
  return deadline;
}

Core::PeerState Core::JudgePeer(Pdc* pdc, bool waits) {
  if (!waits) {
    return PeerState::kAlive;
  }
  const bool silent = now_ns - pdc->send.heard_ns() >= settings.dead_ns;
  const bool due = pdc->send.timer_ns() <= now_ns;
  if (!silent && !due) {
    return PeerState::kAlive;
  }
  // Asked of an initiator's peer, too: the wire may find out only now, and then
  // answers for the function that left.
  const bool left = due && pdc->receiver != 0 && wire->HasLeft(pdc->receiver);
  // Datagrams that wait to be received may contain the answer. Checked last:
  // a peer may answer between the two checks and no longer be behind.
  const bool behind = wire->IsBehind(pdc->receiver, now_ns);
  const bool unread = !silent && wire->HasNews();
  if (!left && (pdc->blocked || behind || unread)) {
    pdc->send.Postpone(settings, now_ns);
    return PeerState::kHeldUp;
  }
  if (!silent && !(left && pdc->target)) {
    return PeerState::kAlive;
  }
  Count(Statistic::kDeadPeers);
  return PeerState::kGone;
}

void Core::MakeReady(Pdc* pdc) {
  pdc->ready = true;
  pdc->next_ready = PdcTable::kNone;
  (ready_first_ == PdcTable::kNone ? ready_first_
                                   : pdcs[ready_last_].next_ready) = pdc->index;
  ready_last_ = pdc->index;
}

// The timer can only end later now, which it finds out when it ends.
void Core::NoteQueued(Pdc* pdc) {
  pdcs.Unlist(pdc);
  busy += pdc->busy ? 0 : 1;
  pdc->busy = true;
  if (!pdc->ready && !pdc->blocked && pdc->has_new() &&
      pdc->send.MaySendNew()) {
    MakeReady(pdc);
  }
}

void Core::Settle(Pdc* pdc) {
  if (pdc->state == PdcState::kFree) [[unlikely]] {
    timers.Set(pdc->index, rules::kNever);
    busy -= pdc->busy ? 1 : 0;
    pdc->busy = false;
    return;
  }
  const bool open = pdc->send.window().unanswered() != 0;
  const bool fresh = pdc->has_new();
  const bool quiet =
      !open && pdc->held == 0 && !fresh && pdc->queue_head == Pdc::kNoMessage;
  if (!pdc->target) {
    if (!quiet || pdc->state != PdcState::kOpen) {
      pdcs.Unlist(pdc);
    } else if (!pdc->listed) {
      pdc->used_ns = now_ns;
      pdcs.Touch(pdc);
    }
    if (pdc->held != 0 && pdc->send.timer_ns() == rules::kNever) {
      pdc->send.Watch(now_ns + settings.rto_max_ns);
    }
  }
  const bool work = HasWork(*pdc, fresh);
  if (work && !pdc->ready && !pdc->blocked) {
    MakeReady(pdc);
  }
  const bool now_busy = work || !quiet || pdc->receive.ack_ns != rules::kNever;
  busy += (now_busy ? 1u : 0u) - (pdc->busy ? 1u : 0u);
  pdc->busy = now_busy;
  timers.Set(pdc->index, DeadlineOf(*pdc, open));
}

}  // namespace heddle::soft::transport
