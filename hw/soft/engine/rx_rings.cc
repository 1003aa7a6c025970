// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/rx_rings.h"

#include <algorithm>
#include <cstddef>

#include "host/lib/semantics/completion.h"
#include "host/lib/semantics/index_list.h"

namespace heddle::soft::engine {

using contract::ReturnCode;
using contract::Status;
using semantics::kNone;

namespace {

// Both spaces of an RI share a bucket.
uint32_t BucketOf(uint64_t name) noexcept {
  return (static_cast<uint32_t>(name) * 0x9e3779b1U) >> 22U;
}

// Its endpoint is named in the space that `name` is of.
bool SharesSpace(const contract::RxCtxCfg& cfg, const RxName& name) noexcept {
  const bool relative = (cfg.flags & contract::kRxCtxFlagRelative) != 0;
  return relative == name.relative && (!relative || cfg.job_id == name.job_id);
}

}  // namespace

RxRings::RxRings(uint32_t count, HostAccess* host, CompletionQueues* queues)
    : host_(host),
      queues_(queues),
      contexts_(count),
      buckets_(kBuckets, kNone) {}

void RxRings::Index() {
  std::fill(buckets_.begin(), buckets_.end(), kNone);
  contexts_.ForEach([this](uint32_t i, RxContext& rx) {
    if (rx.alive) {
      uint32_t& bucket = buckets_[BucketOf(rx.name)];
      rx.chain = bucket;
      bucket = i;
    }
  });
}

uint32_t RxRings::Find(const RxName& name) const noexcept {
  const uint64_t wanted = NameOf(name.pid, name.resource_index, name.tagged);
  uint32_t at = buckets_[BucketOf(wanted)];
  while (at != kNone && (contexts_[at].name != wanted ||
                         !SharesSpace(contexts_[at].cfg, name))) {
    at = contexts_[at].chain;
  }
  return at;
}

ReturnCode RxRings::WhyNone(const RxName& name) const {
  bool space = !name.relative;
  bool pid = false;
  for (uint32_t i = 0; i < contexts_.size(); ++i) {
    const RxContext* const rx = contexts_.Find(i);
    if (rx != nullptr && rx->alive && SharesSpace(rx->cfg, name)) {
      space = true;
      pid = pid || rx->cfg.pid_on_fep == name.pid;
    }
  }
  return !space ? ReturnCode::kBadJobId
         : !pid ? ReturnCode::kBadPid
                : ReturnCode::kBadIndex;
}

bool RxRings::Write(uint32_t context, const contract::RxCtxCfg& cfg) {
  if (context >= contexts_.size()) {
    return false;
  }
  RxContext& rx = contexts_.Make(context);
  rx.cfg = cfg;
  rx.cfg.ring_log2 = std::clamp<uint8_t>(cfg.ring_log2, contract::kRingLog2Min,
                                         contract::kRingLog2Max);
  ++rx.generation;
  rx.alive = cfg.enable != 0;
  rx.matches = (cfg.flags & contract::kRxCtxFlagMatch) != 0;
  rx.name = NameOf(cfg.pid_on_fep, cfg.resource_index,
                   rx.matches && (cfg.flags & contract::kRxCtxFlagTagged) != 0);
  listens_ = listens_ || rx.alive;
  rx.tail = rx.head = rx.owed = 0;
  rx.loaded = false;
  rx.slots =
      std::vector<RxContext::Slot>(rx.alive && !rx.matches ? rx.size() : 0);
  Index();
  return true;
}

bool RxRings::Publish(uint32_t context, uint16_t tail) {
  RxContext* const found = contexts_.Find(context);
  if (found == nullptr || !found->alive || found->matches) {
    return false;
  }
  RxContext& rx = *found;
  // A count beyond the ring is cut: its slots carry wrong positions.
  const auto room = static_cast<uint16_t>(rx.size() - (rx.tail - rx.head));
  rx.tail = static_cast<uint16_t>(tail - rx.tail) > room
                ? static_cast<uint16_t>(rx.head + rx.size())
                : tail;
  Advance(context);
  return true;
}

bool RxRings::Report(uint32_t context, uint16_t position, Status status,
                     uint64_t op_context) {
  RxContext& rx = contexts_[context];
  const CqTicket ticket = queues_->Reserve(rx.cq());
  if (!ticket.valid()) {
    behind_ = true;
    return false;
  }
  // The head as it is when this slot, if it is the oldest, has been skipped.
  const bool skipped = position == rx.head;
  semantics::MessageNames names;
  queues_->Complete(ticket,
                    semantics::RxCompletion(
                        op_context, names, {.status = status},
                        {static_cast<uint16_t>(context), position,
                         static_cast<uint16_t>(rx.head + (skipped ? 1 : 0))}));
  return true;
}

bool RxRings::Cancel(uint32_t context, uint16_t position) {
  RxContext* const found = contexts_.Find(context);
  if (found == nullptr || !found->alive || found->matches) {
    return false;
  }
  RxContext& rx = *found;
  if (static_cast<uint16_t>(position - rx.head) >=
          static_cast<uint16_t>(rx.tail - rx.head) ||
      rx.SlotAt(position).withdrawn) {
    return true;
  }
  RxContext::Slot& slot = rx.SlotAt(position);
  slot.withdrawn = true;
  if (!Report(context, position, Status::kCancelled, 0)) {
    slot.owed = true;
    ++rx.owed;
  }
  if (position == rx.head) {
    rx.loaded = false;
    Advance(context);
  }
  return true;
}

bool RxRings::Load(RxContext& rx, Status* status) {
  contract::RxDesc descriptor;
  *status = Status::kOk;
  if (!host_->ReadStruct(
          rx.cfg.ring_base +
              uint64_t{rx.head & (rx.size() - 1U)} * contract::kRxDescBytes,
          &descriptor)) {
    *status = Status::kLocalAccess;
    descriptor = {};
  } else if (descriptor.position != rx.head) {
    *status = Status::kBadPosition;
    descriptor = {};
  } else if (descriptor.flags != 0) {
    *status = Status::kBadLength;
  }
  rx.next = {descriptor.op_context, descriptor.local_iova, descriptor.length,
             rx.head};
  rx.loaded = *status == Status::kOk;
  return rx.loaded;
}

void RxRings::Skip(RxContext& rx) {
  rx.SlotAt(rx.head) = {};
  ++rx.head;
  rx.loaded = false;
  host_->Store(rx.cfg.head_cell, rx.head);
}

void RxRings::Advance(uint32_t context) {
  RxContext& rx = contexts_[context];
  while (!rx.loaded && rx.head != rx.tail) {
    const RxContext::Slot slot = rx.SlotAt(rx.head);
    Status status = Status::kCancelled;
    if (!slot.withdrawn && Load(rx, &status)) {
      break;
    }
    if ((!slot.withdrawn || slot.owed) &&
        !Report(context, rx.head, status,
                slot.withdrawn ? 0 : rx.next.op_context)) {
      return;
    }
    rx.owed = static_cast<uint16_t>(rx.owed - (slot.owed ? 1 : 0));
    Skip(rx);
  }
}

void RxRings::PayOwed(uint32_t context) {
  RxContext& rx = contexts_[context];
  for (uint16_t at = rx.head; rx.owed != 0 && at != rx.tail; ++at) {
    RxContext::Slot& slot = rx.SlotAt(at);
    if (!slot.owed) {
      continue;
    }
    if (!Report(context, at, Status::kCancelled, 0)) {
      return;
    }
    slot.owed = false;
    --rx.owed;
  }
}

void RxRings::Work() {
  if (!behind_) {
    return;
  }
  behind_ = false;
  contexts_.ForEach([this](uint32_t i, const RxContext& rx) {
    if (rx.alive) {
      Advance(i);
      PayOwed(i);
    }
  });
}

const RxBuffer* RxRings::Head(uint32_t context) {
  RxContext& rx = contexts_[context];
  if (!rx.loaded) {
    Advance(context);
  }
  return rx.loaded ? &rx.next : nullptr;
}

void RxRings::Take(uint32_t context) {
  RxContext& rx = contexts_[context];
  ++rx.head;
  rx.loaded = false;
}

}  // namespace heddle::soft::engine
