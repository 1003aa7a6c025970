// SPDX-License-Identifier: Apache-2.0
// Completion queue of the device, shared by the contexts bound to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

#include "driver/dma/dma_buffer.h"
#include "driver/queue/completion_queue.h"
#include "host/lib/backend/device.h"
#include "host/lib/backend/locking.h"
#include "host/lib/backend/objects.h"
#include "host/lib/nic/completion_flags.h"
#include "host/lib/nic/context_map.h"
#include "host/lib/nic/cq_credit.h"
#include "host/lib/nic/match_queue.h"
#include "host/lib/nic/nic.h"
#include "host/lib/nic/rx_context.h"
#include "host/lib/nic/rx_queue.h"
#include "host/lib/nic/tx_completions.h"
#include "host/lib/nic/tx_queue.h"

namespace heddle::nic {

// Address of who sent what a receive completion tells of.
inline FabricAddress SenderOf(const contract::Completion& entry) noexcept {
  const bool ipv6 = (entry.flags & contract::kCompletionFlagSourceIpv6) != 0;
  return {.lo = entry.source_fa_lo,
          .hi = ipv6 ? entry.source_fa_hi : 0,
          .ipv6 = ipv6};
}

// Thread safety: the members of the data path are called under `lock()` where
// the policy locks; Attach and Detach take it themselves.
// Ownership: owns the queue's memory; borrows the NIC and attached queues.
class Cq final : public backend::CompletionQueue, public TxCompletions {
 public:
  using Entry = contract::Completion;
  using Candidate = heddle::CompletionQueue::Candidate;

  explicit Cq(Nic& nic) : nic_(nic) {}
  // Precondition: `device` is a `BackendDevice`.
  explicit Cq(backend::Device& device);
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;
  // Precondition: nothing is attached.
  ~Cq() override;

  // As `Locking::Guard`. Memory of retired operations is unmapped after the
  // lock is left.
  template <typename Locking>
  class ReadGuard {
   public:
    explicit ReadGuard(Cq& queue) noexcept : queue_(queue) {
      if constexpr (Locking::kLocks) {
        queue.lock().lock();
      }
    }
    ~ReadGuard() {
      if constexpr (Locking::kLocks) {
        const EndedMemory ended = std::move(queue_.ended_);
        queue_.lock().unlock();
      }
    }
    ReadGuard(const ReadGuard&) = delete;
    ReadGuard& operator=(const ReadGuard&) = delete;

   private:
    Cq& queue_;
  };

  // Data path. `Peek` and `Pop` as `CompletionQueue`; between them `Retire`,
  // once, frees what the operation held.
  const contract::Completion* Peek() const noexcept { return queue_->Peek(); }
  Candidate Poll() const noexcept { return queue_->Poll(); }
  [[gnu::always_inline]] void Pop() noexcept { queue_->Pop(); }
  template <typename Locking>
  Finished Retire(const contract::Completion& entry) noexcept;
  // As `Retire`, with the answer given to `sink(kind, finished)`, once at most
  // and in a place of its own for each kind: nothing is put together in memory.
  template <typename Locking, typename Sink>
  void RetireInto(const contract::Completion& entry, Sink&& sink) noexcept;
  // As a backend's completion queue has it (backend/model.h). `TryTake` is for
  // receives whose entries end in the same word as others did: same queue,
  // success, kind, flags and pass of the ring are one compare. `TryTakeMatched`
  // likewise, of a context that matches.
  template <typename Sink>
  [[nodiscard, gnu::always_inline]] bool TryTake(const Candidate& candidate,
                                                 Sink&& sink) noexcept;
  template <typename Sink>
  [[nodiscard, gnu::always_inline]] bool TryTakeMatched(
      const Candidate& candidate, Sink&& sink) noexcept;
  template <typename Sink>
  [[nodiscard, gnu::always_inline]] bool TryTakeOther(const Entry& entry,
                                                      Sink&& sink) noexcept;
  template <typename Locking, typename Sink>
  [[gnu::always_inline]] void Take(const Entry& entry, size_t room,
                                   Sink&& sink) noexcept;
  bool IsError(const Entry& entry, bool sources) noexcept {
    return (entry.status != contract::Status::kOk ||
            strict_queues_.load(std::memory_order_relaxed) != 0) &&
           IsErrorOrStranger(entry, sources);
  }

  Result<bool> Open(size_t entries, bool interrupt) override;
  size_t capacity() const noexcept override { return queue_->capacity(); }
  int interrupt_fd() const noexcept override { return interrupt_fd_; }
  bool HasEntry() const noexcept override { return Peek() != nullptr; }
  bool HasLost() noexcept override { return FindLost().has_value(); }
  std::optional<backend::ErrorCompletion> TakeError(
      bool failed) noexcept override;
  void Arm() noexcept override { queue_->Arm(); }
  void Alert() noexcept override { queue_->Alert(); }

  void ReturnCredits() noexcept { queue_->ReturnCredits(); }

  // Completions of the queue's context come here from now on. Throw
  // std::bad_alloc, unchanged.
  void Attach(TxQueue& queue);
  void Attach(RxContext& queue);
  // Completions of the queue's context are of nobody from now on.
  void Detach(TxQueue& queue) noexcept;
  void Detach(RxContext& queue) noexcept;
  // Completions not read are of no queue, though another one may get the
  // context's number. Precondition: detached, and the device ended the context.
  void Forget(const TxQueue& queue) noexcept;
  void Forget(const RxContext& queue) noexcept;

  uint64_t EntriesRead() const noexcept override {
    return queue_->entries_read();
  }
  uint64_t EntriesWritten() const noexcept override {
    return queue_->CountWritten();
  }
  void DrainSilent(TxQueue* caller) noexcept override;

  CqCredit& credit() noexcept { return *credit_; }
  uint32_t number() const noexcept { return number_; }

 private:
  static bool IsOfReceiver(contract::CompletionKind kind) noexcept {
    return kind == contract::CompletionKind::kRx ||
           kind == contract::CompletionKind::kTarget;
  }
  // What neither sends nor receives completed: a peer's RMA operation, of which
  // nothing of ours is held, or an operation that asked for no completion.
  Finished RetireOther(const contract::Completion& entry) noexcept;
  static backend::ErrorCompletion MakeError(const Entry& entry,
                                            contract::Status status,
                                            const Finished& finished) noexcept;
  // The oldest completion that the failed device owes, as `FindLost` of its
  // queue makes it.
  std::optional<Entry> FindLost() noexcept;
  // False for an entry that `Retire` will not know.
  bool IsOfQueue(const Entry& entry) noexcept {
    const uint64_t number = queue_->entries_read();
    return entry.kind == contract::CompletionKind::kTx
               ? tx_.Find(entry, number) != nullptr
               : IsOfReceiver(entry.kind) && rx_.Find(entry, number) != nullptr;
  }
  bool IsErrorOrStranger(const Entry& entry, bool sources) noexcept;
  // Takes an entry that the queue of `usual_` has received.
  template <typename Sink>
  [[nodiscard, gnu::always_inline]] bool TryTakeUsual(const Entry& entry,
                                                      Sink&& sink) noexcept;
  // The same of a context that matches, by `usual_match_`.
  template <typename Sink>
  [[nodiscard, gnu::always_inline]] bool TryTakeUsualMatch(
      const Entry& entry, Sink&& sink) noexcept;
  // Makes those that end as `entry`, a receive of `queue` that succeeded, the
  // usual ones.
  void Accustom(const Entry& entry, RxContext& queue) noexcept;
  // Of a queue that wants messages of senders that it cannot name as errors:
  // whether this is one. The data are received all the same.
  bool IsStranger(const Entry& entry) noexcept;

  using UsualKind = heddle::CompletionQueue::Usual;

  std::optional<heddle::CompletionQueue> queue_;
  // Facts that follow from the last word of the usual entries. Attach and
  // Detach clear that word.
  struct Usual {
    RxQueue* queue = nullptr;
    uint64_t flags = 0;
  };
  Usual usual_;
  struct UsualMatch {
    MatchQueue* queue = nullptr;
    uint64_t flags = 0;
  };
  UsualMatch usual_match_;
  EndedMemory ended_;  // Memory of retired operations; under `lock()`.
  ContextMap<TxQueue> tx_;
  ContextMap<RxContext> rx_;
  Nic& nic_;
  std::optional<CqCredit> credit_;
  // Above: every poll. Below: cold.
  uint32_t number_ = 0;
  bool created_ = false;
  std::optional<uint32_t> vector_;
  int interrupt_fd_ = -1;
  std::atomic<uint32_t> strict_queues_{0};  // Attached and refusing strangers.
  // Number of the entry that was found to be a stranger's.
  uint64_t stranger_ = UINT64_MAX;
  DmaBuffer memory_;
};

template <typename Locking, typename Sink>
[[gnu::always_inline]] inline void Cq::RetireInto(
    const contract::Completion& entry, Sink&& sink) noexcept {
  using Kind = contract::CompletionKind;
  if (entry.kind == Kind::kTx) {
    TxQueue* queue = tx_.Find(entry, queue_->entries_read());
    if (queue == nullptr) {
      return;
    }
    const typename Locking::Guard guard(queue->lock());
    const bool report = queue->Retire<Locking>(entry);
    if constexpr (Locking::kLocks) {
      ended_.Add(queue->ended());
    }
    sink(Kind::kTx, Finished{.context = entry.op_context,
                             .peers = queue->peers(),
                             .known = true,
                             .report = report});
  } else if (entry.kind == Kind::kRx) {
    RxContext* queue = rx_.Find(entry, queue_->entries_read());
    if (queue == nullptr) {
      return;
    }
    const typename Locking::Guard guard(queue->lock());
    const auto retire = [&](auto& receiver) __attribute__((always_inline)) {
      const Finished finished = receiver.Retire(entry);
      if constexpr (Locking::kLocks) {
        ended_.Add(receiver.ended());
      }
      sink(Kind::kRx, finished);
    };
    if (queue->matches()) {
      retire(static_cast<MatchQueue&>(*queue));
    } else {
      retire(static_cast<RxQueue&>(*queue));
    }
  } else {
    sink(entry.kind, RetireOther(entry));
  }
}

// `peers` is null if no source was requested, or for what was sent.
inline uint64_t SourceOf(const contract::Completion& entry,
                         const Finished& finished) noexcept {
  if (entry.kind == contract::CompletionKind::kTx ||
      finished.peers == nullptr) {
    return FI_ADDR_NOTAVAIL;
  }
  const uint32_t index =
      finished.peers->FindSource(SenderOf(entry), entry.peer);
  return index == AddressTable::kNoPeer ? FI_ADDR_NOTAVAIL : index;
}

[[gnu::always_inline]] inline backend::Completion::Words DataAndTag(
    const contract::Completion& entry) noexcept {
  static_assert(offsetof(contract::Completion, match_bits) ==
                offsetof(contract::Completion, header_data) + 8);
  backend::Completion::Words words;
  std::memcpy(&words, &entry.header_data, sizeof words);
  return words;
}

[[gnu::always_inline]] inline backend::Completion ToCompletion(
    contract::CompletionKind kind, const contract::Completion& entry,
    const Finished& finished) noexcept {
  return {
      .context = finished.context,
      .flags = finished.matched ? finished.flags : CompletionFlags(kind, entry),
      .length = finished.matched ? finished.length : entry.length,
      .buffer = finished.buffer,
      .data_and_tag = DataAndTag(entry)};
}

template <typename Sink>
[[gnu::always_inline]] inline bool Cq::TryTake(const Candidate& candidate,
                                               Sink&& sink) noexcept {
  return queue_->IsUsual(candidate, UsualKind::kFirst) &&
         TryTakeUsual(*candidate.entry, sink);
}

template <typename Sink>
[[gnu::always_inline]] inline bool Cq::TryTakeMatched(
    const Candidate& candidate, Sink&& sink) noexcept {
  return queue_->IsUsual(candidate, UsualKind::kSecond) &&
         TryTakeUsualMatch(*candidate.entry, sink);
}

template <typename Sink>
[[gnu::always_inline]] inline bool Cq::TryTakeUsual(const Entry& entry,
                                                    Sink&& sink) noexcept {
  void* buffer = nullptr;
  if (!usual_.queue->TryRetire(entry, &buffer)) [[unlikely]] {
    return false;
  }
  sink(backend::Completion{.context = entry.op_context,
                           .flags = usual_.flags,
                           .length = entry.length,
                           .buffer = buffer,
                           .data_and_tag = DataAndTag(entry)},
       [] { return uint64_t{FI_ADDR_NOTAVAIL}; });
  queue_->Pop(entry);
  return true;
}

template <typename Sink>
[[gnu::always_inline]] inline bool Cq::TryTakeOther(const Entry& entry,
                                                    Sink&& sink) noexcept {
  using Kind = contract::CompletionKind;
  if (entry.kind == Kind::kRx) {
    RxContext* const receiver = rx_.FindAlone(entry);
    if (entry.status != contract::Status::kOk || receiver == nullptr) {
      return false;
    }
    Accustom(entry, *receiver);
    return receiver->matches() ? TryTakeUsualMatch(entry, sink)
                               : TryTakeUsual(entry, sink);
  }
  TxQueue* queue = tx_.FindAlone(entry);
  if (entry.kind != Kind::kTx || entry.status != contract::Status::kOk ||
      queue == nullptr || !queue->TryRetire(entry)) [[unlikely]] {
    return false;
  }
  sink(ToCompletion(Kind::kTx, entry, {.context = entry.op_context}),
       [] { return uint64_t{FI_ADDR_NOTAVAIL}; });
  queue_->Pop(entry);
  return true;
}

template <typename Sink>
[[gnu::always_inline]] inline bool Cq::TryTakeUsualMatch(const Entry& entry,
                                                         Sink&& sink) noexcept {
  uint64_t context = 0;
  void* buffer = nullptr;
  if (!usual_match_.queue->TryRetire(entry, &context, &buffer)) [[unlikely]] {
    return false;
  }
  sink(backend::Completion{.context = context,
                           .flags = usual_match_.flags,
                           .length = entry.length,
                           .buffer = buffer,
                           .data_and_tag = DataAndTag(entry)},
       [] { return uint64_t{FI_ADDR_NOTAVAIL}; });
  queue_->Pop(entry);
  return true;
}

template <typename Locking, typename Sink>
[[gnu::always_inline]] inline void Cq::Take(const Entry& entry, size_t /*room*/,
                                            Sink&& sink) noexcept {
  RetireInto<Locking>(
      entry, [&](contract::CompletionKind kind, const Finished& finished)
                 __attribute__((always_inline)) {
                   if (finished.report) {
                     sink(ToCompletion(kind, entry, finished),
                          [&] { return SourceOf(entry, finished); });
                   }
                 });
  queue_->Pop(entry);
}

template <typename Locking>
Finished Cq::Retire(const contract::Completion& entry) noexcept {
  Finished result;
  RetireInto<Locking>(
      entry, [&result](contract::CompletionKind /*kind*/,
                       const Finished& finished) { result = finished; });
  return result;
}

}  // namespace heddle::nic
