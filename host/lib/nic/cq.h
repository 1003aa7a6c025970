// SPDX-License-Identifier: Apache-2.0
// Completion queue of the device, shared by the contexts bound to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "driver/dma/dma_buffer.h"
#include "driver/queue/completion_queue.h"
#include "host/lib/nic/context_map.h"
#include "host/lib/nic/cq_credit.h"
#include "host/lib/nic/locking.h"
#include "host/lib/nic/nic.h"
#include "host/lib/nic/rx_queue.h"
#include "host/lib/nic/tx_completions.h"
#include "host/lib/nic/tx_queue.h"

namespace heddle::nic {

// What a completion means to the host.
struct Finished {
  uint64_t context = 0;
  void* buffer = nullptr;  // Receive: first segment given.
  // Where the operation's peer is named; null when nobody asks.
  const AddressTable* peers = nullptr;
  bool known = false;   // False: of no operation of ours, to be ignored.
  bool report = false;  // False: the application asked not to hear of success.
};

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
class Cq : public TxCompletions {
 public:
  // `Open` makes it usable.
  explicit Cq(Nic& nic) : needs_step_(nic.needs_step()), nic_(nic) {}
  // Makes room for at least `entries`, or as many as the device can have.
  // `interrupt`: it can be armed. Errors, after which there is nothing left
  // but to destroy it: ENOSPC, ENOMEM, EIO.
  Result<bool> Open(size_t entries, bool interrupt);
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;
  // Precondition: nothing is attached.
  ~Cq();

  // Data path. `Peek` and `Pop` as `CompletionQueue`; between them `Retire`,
  // once, frees what the operation held.
  const contract::Completion* Peek() const noexcept { return queue_->Peek(); }
  [[gnu::always_inline]] void Pop() noexcept { queue_->Pop(); }
  template <typename Locking>
  Finished Retire(const contract::Completion& entry) noexcept;
  // As `Retire`, with the answer given to `sink(kind, finished)`, once at most
  // and in a place of its own for each kind: nothing is put together in memory.
  template <typename Locking, typename Sink>
  void RetireInto(const contract::Completion& entry, Sink&& sink) noexcept;
  // The queue of an entry of kind `kTx` or `kRx`, where that is seen at once;
  // null for others, which `Retire` may know.
  TxQueue* SenderOfEntry(const contract::Completion& entry) const noexcept {
    return tx_.FindAlone(entry);
  }
  RxQueue* ReceiverOfEntry(const contract::Completion& entry) const noexcept {
    return rx_.FindAlone(entry);
  }
  // False for an entry that `Retire` will not know.
  bool IsOfQueue(const contract::Completion& entry) const noexcept {
    return entry.kind == contract::CompletionKind::kTx
               ? tx_.Find(entry) != nullptr
               : IsOfReceiver(entry.kind) && rx_.Find(entry) != nullptr;
  }

  // After the device has failed, once `Peek` is null: what it owes, oldest
  // first in each queue, as `FindLost` makes it. Empty when nothing is
  // outstanding. `TakeLost` also does what `Retire` and `Pop` do.
  bool HasLost() noexcept { return FindLost().has_value(); }
  std::optional<contract::Completion> TakeLost(Finished* finished) noexcept;

  // Of the entry that `Peek` shows: when its queue wants messages of senders
  // that it cannot name as errors, and this is one, makes it a `kBadPeer`. The
  // data are received all the same. True when the entry was changed.
  bool RefuseStranger(const contract::Completion& entry) noexcept {
    return strict_queues_.load(std::memory_order_relaxed) != 0 &&
           MakeStrangerAnError(entry);
  }

  // Lends the thread to the device after an empty poll; only where it needs
  // one, which hardware does not.
  bool needs_step() const noexcept { return needs_step_; }
  void Step() const noexcept { nic_.Step(); }

  // Asks for one interrupt when there is an entry not popped.
  // Precondition: created with `interrupt`.
  void Arm() noexcept { queue_->Arm(); }
  void ReturnCredits() noexcept { queue_->ReturnCredits(); }
  // Eventfd of the interrupt; -1 without.
  int interrupt_fd() const noexcept { return interrupt_fd_; }

  // Completions of the queue's context come here from now on.
  void Attach(TxQueue& queue) noexcept;
  void Attach(RxQueue& queue) noexcept;
  // Completions of the queue's context are of nobody from now on.
  void Detach(TxQueue& queue) noexcept;
  void Detach(RxQueue& queue) noexcept;
  // Takes the context's number out of completions not read, before another
  // queue gets it. Precondition: detached, and the device ended the context.
  void Forget(const TxQueue& queue) noexcept;
  void Forget(const RxQueue& queue) noexcept;

  uint64_t EntriesRead() const noexcept override {
    return queue_->entries_read();
  }
  uint64_t EntriesWritten() const noexcept override {
    return queue_->CountWritten();
  }
  void DrainSilent(TxQueue* caller) noexcept override;

  SpinLock& lock() noexcept { return lock_; }
  CqCredit& credit() noexcept { return *credit_; }
  uint32_t number() const noexcept { return number_; }
  uint32_t capacity() const noexcept { return queue_->capacity(); }
  const Nic& nic() const noexcept { return nic_; }

 private:
  static bool IsOfReceiver(contract::CompletionKind kind) noexcept {
    return kind == contract::CompletionKind::kRx ||
           kind == contract::CompletionKind::kTarget;
  }
  // What neither sends nor receives completed: a peer's RMA operation, of which
  // nothing of ours is held, or an operation that asked for no completion.
  Finished RetireOther(const contract::Completion& entry) noexcept;
  // `receiver`: a receive context, else a transmit context. Under the lock.
  void ForgetEntries(bool receiver, uint32_t context) noexcept;
  std::optional<contract::Completion> FindLost() noexcept;
  bool MakeStrangerAnError(const contract::Completion& entry) noexcept;

  SpinLock lock_;
  const bool needs_step_;
  std::optional<CompletionQueue> queue_;
  ContextMap<TxQueue> tx_;
  ContextMap<RxQueue> rx_;
  Nic& nic_;
  std::optional<CqCredit> credit_;
  // Above: every poll. Below: cold.
  uint32_t number_ = 0;
  bool created_ = false;
  std::optional<uint32_t> vector_;
  int interrupt_fd_ = -1;
  std::atomic<uint32_t> strict_queues_{0};  // Attached and refusing strangers.
  DmaBuffer memory_;
};

template <typename Locking, typename Sink>
[[gnu::always_inline]] inline void Cq::RetireInto(
    const contract::Completion& entry, Sink&& sink) noexcept {
  using Kind = contract::CompletionKind;
  if (entry.kind == Kind::kTx) {
    TxQueue* queue = tx_.Find(entry);
    if (queue == nullptr) {
      return;
    }
    const typename Locking::Guard guard(queue->lock());
    const bool report = queue->Retire<Locking>(entry);
    sink(Kind::kTx, Finished{.context = entry.op_context,
                             .peers = queue->peers(),
                             .known = true,
                             .report = report});
  } else if (entry.kind == Kind::kRx) {
    RxQueue* queue = rx_.Find(entry);
    if (queue == nullptr) {
      return;
    }
    const typename Locking::Guard guard(queue->lock());
    const FinishedReceive finished = queue->Retire(entry);
    sink(Kind::kRx, Finished{.context = finished.context,
                             .buffer = finished.buffer,
                             .peers = queue->peers(),
                             .known = finished.known,
                             .report = finished.report});
  } else {
    sink(entry.kind, RetireOther(entry));
  }
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
