// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/transport/core.h"

#include <algorithm>
#include <bit>

namespace heddle::sim::soft {

using contract::Statistic;

namespace {

TransportLimits Checked(TransportLimits limits) {
  limits.pdcs = std::clamp<uint32_t>(limits.pdcs, 1, TransportLimits::kMaxPdcs);
  limits.return_records = std::min(limits.return_records, kWindow);
  return limits;
}

}  // namespace

Core::Core(const TransportLimits& the_limits, DatagramWire* the_wire,
           TransportClient* the_client, uint64_t seed)
    : limits(Checked(the_limits)),
      wire(the_wire),
      client(the_client),
      random(seed),
      messages(limits.messages),
      pdcs(limits.pdcs, random.Next()),
      timers(2 * size_t{limits.pdcs}),
      ready(std::bit_ceil(2 * size_t{limits.pdcs})) {
  blocked.reserve(2 * size_t{limits.pdcs});
}

bool Core::HasWork(const Pdc& pdc) {
  return pdc.receive.owes() || pdc.ask_due || pdc.send.MayResend() ||
         (pdc.has_new() && pdc.send.MaySendNew()) || pdc.clear_due();
}

uint64_t Core::DeadlineOf(const Pdc& pdc) const {
  uint64_t deadline = std::min(pdc.send.timer_ns(), pdc.receive.ack_ns);
  const bool waits = pdc.send.window().unanswered() != 0 || pdc.held != 0;
  if (waits && !pdc.send.waiting()) {
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
  const bool left = due && pdc->receiver != 0 && wire->HasLeft(pdc->receiver);
  if (!left && !silent && !due) {
    return PeerState::kAlive;
  }
  if (!left && (pdc->blocked || wire->IsBehind(pdc->receiver, now_ns))) {
    pdc->send.Postpone(settings, now_ns);
    return PeerState::kHeldUp;
  }
  if (!left && !silent) {
    return PeerState::kAlive;
  }
  Count(Statistic::kDeadPeers);
  return PeerState::kGone;
}

void Core::Settle(Pdc* pdc) {
  if (pdc->state == PdcState::kFree) {
    timers.Set(pdc->index, kNever);
    busy -= pdc->busy ? 1 : 0;
    pdc->busy = false;
    return;
  }
  const bool quiet = pdc->quiet();
  if (!pdc->target) {
    if (!quiet || pdc->state != PdcState::kOpen) {
      pdcs.Unlist(pdc);
    } else if (!pdc->listed) {
      pdc->used_ns = now_ns;
      pdcs.Touch(pdc);
    }
    if (pdc->held != 0 && pdc->send.timer_ns() == kNever) {
      pdc->send.Watch(now_ns + settings.rto_max_ns);
    }
  }
  const bool work = HasWork(*pdc);
  if (work && !pdc->ready && !pdc->blocked) {
    pdc->ready = true;
    ready[ready_tail++ & (ready.size() - 1)] = pdc->index;
  }
  const bool now_busy = work || !quiet || pdc->receive.ack_ns != kNever;
  busy += (now_busy ? 1u : 0u) - (pdc->busy ? 1u : 0u);
  pdc->busy = now_busy;
  timers.Set(pdc->index, DeadlineOf(*pdc));
}

}  // namespace heddle::sim::soft
