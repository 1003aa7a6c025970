// SPDX-License-Identifier: Apache-2.0
// Completion queues: credits, entries, interrupts.
#pragma once

#include <cstdint>

#include "host/lib/semantics/completion.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/engine.h"
#include "hw/soft/engine/host_access.h"
#include "hw/soft/engine/lazy_table.h"
#include "hw/soft/engine/statistics.h"

namespace heddle::soft::engine {

// A reserved entry of one life of a queue.
struct CqTicket {
  uint32_t generation = 0;  // 0: none.
  uint16_t cq = 0;

  bool valid() const noexcept { return generation != 0; }
};

// Each ticket is used once, by `Complete` or `Release`; one whose queue was
// written meanwhile completes nothing.
//
// Thread safety: one thread at a time.
class CompletionQueues {
 public:
  CompletionQueues(uint32_t count, HostAccess* host, Statistics* statistics,
                   InterruptSink* interrupts);

  // Any write of an entry begins a new life. False: no such queue.
  bool Write(uint32_t index, const contract::CqCfg& cfg);

  // No ticket when the queue is off or has no room.
  CqTicket Reserve(uint16_t cq) noexcept {
    Queue* const queue = queues_.Find(cq);
    return queue != nullptr && queue->alive && queue->ring.Reserve()
               ? CqTicket{queue->generation, cq}
               : CqTicket{};
  }
  void Release(CqTicket ticket) noexcept {
    if (Queue* const queue = Live(ticket)) {
      queue->ring.Unreserve();
    }
  }
  // Writes the entry, whose phase is the queue's, and interrupts if armed.
  void Complete(CqTicket ticket, contract::Completion entry);

  // Consumer doorbell. True if credits came back.
  bool Consumed(uint32_t index, uint64_t value);

 private:
  struct Queue {
    contract::CqCfg cfg;
    semantics::CompletionRing ring{contract::kRingLog2Min};
    uint32_t generation = 1;
    uint32_t produced = 0;  // Free-running.
    uint32_t armed_at = 0;
    bool armed = false;
    bool alive = false;
  };

  // Its queue, in that life; null otherwise.
  Queue* Live(CqTicket ticket) noexcept {
    Queue* const queue = ticket.valid() ? queues_.Find(ticket.cq) : nullptr;
    return queue != nullptr && queue->alive &&
                   queue->generation == ticket.generation
               ? queue
               : nullptr;
  }
  void Interrupt(Queue& queue);

  HostAccess* host_;
  Statistics* statistics_;
  InterruptSink* interrupts_;
  LazyTable<Queue, 16> queues_;
};

}  // namespace heddle::soft::engine
