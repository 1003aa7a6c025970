// SPDX-License-Identifier: Apache-2.0
// Receive contexts by their names, and rings whose buffers are taken in order,
// withdrawn and bad ones skipped.
#pragma once

#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/split_number.h"
#include "hw/soft/engine/completion_queues.h"
#include "hw/soft/engine/host_access.h"
#include "hw/soft/engine/lazy_table.h"

namespace heddle::soft::engine {

struct RxBuffer {
  uint64_t op_context = 0;
  uint64_t iova = 0;
  uint32_t length = 0;
  uint16_t position = 0;
};

struct RxContext {
  contract::RxCtxCfg cfg;
  uint64_t name = 0;                  // Space, PIDonFEP and RI.
  uint32_t chain = semantics::kNone;  // Next context of the same bucket.
  uint32_t generation = 0;
  bool alive = false;
  // Its ring is `MatchContexts`'s; what follows is for the others.
  bool matches = false;
  // Free-running counts: tail >= head.
  uint16_t tail = 0;
  uint16_t head = 0;  // Taken or skipped, and so released.
  uint16_t owed = 0;  // Cancellations whose completion waits for room.
  // The descriptor at `head` was read and is good.
  bool loaded = false;
  RxBuffer next;

  struct Slot {
    bool withdrawn = false;
    bool owed = false;
  };
  std::vector<Slot> slots;  // While it is alive.

  uint16_t cq() const noexcept {
    return contract::JoinBytes(cfg.cq, cfg.cq_high);
  }
  uint16_t counter_recv() const noexcept {
    return contract::JoinBytes(cfg.counter_recv, cfg.counter_recv_high);
  }
  uint16_t counter_remote_read() const noexcept {
    return contract::JoinBytes(cfg.counter_remote_read,
                               cfg.counter_remote_read_high);
  }
  uint16_t counter_remote_write() const noexcept {
    return contract::JoinBytes(cfg.counter_remote_write,
                               cfg.counter_remote_write_high);
  }
  uint16_t size() const noexcept {
    return static_cast<uint16_t>(1U << cfg.ring_log2);
  }
  Slot& SlotAt(uint16_t position) noexcept {
    return slots[position & (size() - 1U)];
  }
};

// How a request names the RI that it is for.
struct RxName {
  uint16_t pid = 0;
  uint16_t resource_index = 0;
  bool relative = false;  // Of the job, else of the address.
  uint32_t job_id = 0;    // Counts with `relative` only.
  bool tagged = false;    // In the space of tagged sends.
};

// Thread safety: one thread at a time.
class RxRings {
 public:
  RxRings(uint32_t count, HostAccess* host, CompletionQueues* queues);

  // One that was written.
  RxContext& operator[](uint32_t context) noexcept {
    return contexts_[context];
  }
  const RxContext& operator[](uint32_t context) const noexcept {
    return contexts_[context];
  }
  // A context was enabled, here or since `StopListening`.
  bool listens() const noexcept { return listens_; }
  void StopListening() noexcept { listens_ = false; }
  // Context that serves an RI, or kNone.
  uint32_t Find(const RxName& name) const noexcept;
  // The answer to a request for an RI that no context serves: BAD_JOB_ID,
  // BAD_PID or BAD_INDEX, by the first part of its name that no context has
  // with those before it (UET 4.14).
  contract::ReturnCode WhyNone(const RxName& name) const;

  // Any write begins a new life. False: no such context.
  bool Write(uint32_t context, const contract::RxCtxCfg& cfg);
  // Doorbells. False: the ring of the context is not one of these.
  bool Publish(uint32_t context, uint16_t tail);
  bool Cancel(uint32_t context, uint16_t position);
  // Room came back in queues: what waited for it is completed.
  void Work();

  // Next buffer, or null when there is none. Stays until `Take`.
  const RxBuffer* Head(uint32_t context);
  void Take(uint32_t context);
  // After the completion of what was taken: bad descriptors behind it are
  // reported without being asked for.
  void Look(uint32_t context) { Advance(context); }

 private:
  static constexpr uint32_t kBuckets = 1024;  // A power of two.

  static uint64_t NameOf(uint16_t pid, uint16_t ri, bool tagged) noexcept {
    return uint64_t{tagged ? 1U : 0U} << 32U | uint32_t{pid} << 16U | ri;
  }
  void Index();
  // Skips what is no buffer, as far as the queue has room for reports.
  void Advance(uint32_t context);
  void PayOwed(uint32_t context);
  bool Load(RxContext& rx, contract::Status* status);
  bool Report(uint32_t context, uint16_t position, contract::Status status,
              uint64_t op_context);
  void Skip(RxContext& rx);

  HostAccess* host_;
  CompletionQueues* queues_;
  LazyTable<RxContext, 1> contexts_;
  std::vector<uint32_t> buckets_;  // First context, by hash of the RI's name.
  bool behind_ = false;            // Something waits for room in a queue.
  bool listens_ = false;
};

}  // namespace heddle::soft::engine
