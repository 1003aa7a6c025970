// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/completion_queues.h"

#include <algorithm>

namespace heddle::soft::engine {

using contract::Statistic;

CompletionQueues::CompletionQueues(uint32_t count, HostAccess* host,
                                   Statistics* statistics,
                                   InterruptSink* interrupts)
    : host_(host),
      statistics_(statistics),
      interrupts_(interrupts),
      queues_(count) {}

bool CompletionQueues::Write(uint32_t index, const contract::CqCfg& cfg) {
  if (index >= queues_.size()) {
    return false;
  }
  Queue& queue = queues_.Make(index);
  queue.cfg = cfg;
  queue.cfg.log2 = std::min<uint8_t>(cfg.log2, contract::kCqLog2Max);
  queue.ring = semantics::CompletionRing(queue.cfg.log2);
  queue.produced = 0;
  queue.armed = false;
  queue.alive = cfg.enable != 0;
  // 0 is the generation of no ticket.
  queue.generation += queue.generation + 1 == 0 ? 2 : 1;
  return true;
}

void CompletionQueues::Complete(CqTicket ticket, contract::Completion entry) {
  Queue* const live = Live(ticket);
  if (live == nullptr) {
    return;
  }
  Queue& queue = *live;
  const semantics::CompletionRing::Entry place = queue.ring.Produce();
  ++queue.produced;
  entry.phase = place.phase;
  host_->Publish(
      queue.cfg.base + uint64_t{place.index} * contract::kCompletionBytes,
      entry);
  Interrupt(queue);
}

bool CompletionQueues::Consumed(uint32_t index, uint64_t value) {
  Queue* const found = queues_.Find(index);
  if (found == nullptr || !found->alive) {
    return false;
  }
  Queue& queue = *found;
  const auto count =
      static_cast<uint32_t>(value & contract::kDoorbellCqConsumerCountMask);
  // A count of entries never written would invent credits.
  const bool returned = queue.ring.Consumed(count);
  if ((value & contract::kDoorbellCqConsumerArmMask) != 0) {
    queue.armed = true;
    queue.armed_at = count;
    Interrupt(queue);
  }
  return returned;
}

void CompletionQueues::Interrupt(Queue& queue) {
  if (queue.armed &&
      static_cast<int32_t>(queue.produced - queue.armed_at) > 0) {
    queue.armed = false;
    statistics_->Count(Statistic::kInterrupts);
    interrupts_->Raise(queue.cfg.vector);
  }
}

}  // namespace heddle::soft::engine
