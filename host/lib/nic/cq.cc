// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/cq.h"

#include <algorithm>
#include <bit>

#include "driver/queue/doorbells.h"

namespace heddle::nic {
namespace {

uint8_t SizeLog2(size_t entries) {
  const size_t size = std::bit_ceil(
      std::clamp<size_t>(entries, size_t{1} << contract::kRingLog2Min,
                         size_t{1} << contract::kCqLog2Max));
  return static_cast<uint8_t>(std::countr_zero(size));
}

}  // namespace

Result<bool> Cq::Open(size_t entries, bool interrupt) {
  const uint8_t log2 = SizeLog2(entries);
  const size_t size = size_t{1} << log2;
  auto memory =
      DmaBuffer::Create(nic_.device(), size * sizeof(contract::Completion));
  if (!memory.ok()) {
    return memory.error();
  }
  memory_ = std::move(memory.value());
  if (interrupt) {
    auto vector = nic_.TakeVector();
    if (!vector.ok()) {
      return vector.error();
    }
    vector_ = vector.value();
    interrupt_fd_ = nic_.device().interrupt_fd(vector.value());
  }
  auto number = nic_.admin().CreateCq(
      {.base = ToInteger(memory_.iova()),
       .log2 = log2,
       .vector = static_cast<uint8_t>(vector_.value_or(0))});
  if (!number.ok()) {
    return number.error();
  }
  number_ = number.value();
  created_ = true;
  auto queue =
      CompletionQueue::Create(memory_.entries<const contract::Completion>(size),
                              CqConsumerDoorbell(nic_.device(), number_));
  if (!queue.ok()) {
    return queue.error();
  }
  queue_.emplace(queue.value());
  credit_.emplace(static_cast<uint32_t>(size));
  return true;
}

Cq::~Cq() {
  if (created_) {
    // On failure the device is lost; unmapping still keeps it off the memory.
    (void)nic_.admin().DestroyCq(number_);
  }
  if (vector_.has_value()) {
    nic_.ReturnVector(*vector_);
  }
}

void Cq::Attach(TxQueue& queue) noexcept {
  const Locked::Guard guard(lock_);
  tx_.Attach(queue);
}

void Cq::Attach(RxQueue& queue) noexcept {
  const Locked::Guard guard(lock_);
  strict_queues_ += queue.refuses_strangers() ? 1 : 0;
  rx_.Attach(queue);
}

void Cq::Detach(TxQueue& queue) noexcept {
  const Locked::Guard guard(lock_);
  tx_.Detach(queue);
}

void Cq::Detach(RxQueue& queue) noexcept {
  const Locked::Guard guard(lock_);
  strict_queues_ -= queue.refuses_strangers() ? 1 : 0;
  rx_.Detach(queue);
}

std::optional<contract::Completion> Cq::FindLost() noexcept {
  std::optional<contract::Completion> lost;
  const auto look = [&lost](auto& queue) {
    const Locked::Guard guard(queue.lock());
    lost = queue.FindLost();
    return lost.has_value();
  };
  tx_.VisitUntil(look);
  if (!lost.has_value()) {
    rx_.VisitUntil(look);
  }
  return lost;
}

bool Cq::MakeStrangerAnError(const contract::Completion& entry) noexcept {
  if (entry.kind != contract::CompletionKind::kRx ||
      entry.status != contract::Status::kOk) {
    return false;
  }
  const RxQueue* queue = rx_.Find(entry);
  if (queue == nullptr || !queue->refuses_strangers() ||
      queue->peers()->FindSource(SenderOf(entry), entry.peer) !=
          AddressTable::kNoPeer) {
    return false;
  }
  // The memory is ours; the device has written the entry and is done with it.
  const_cast<contract::Completion&>(entry).status = contract::Status::kBadPeer;
  return true;
}

std::optional<contract::Completion> Cq::TakeLost(Finished* finished) noexcept {
  const auto lost = FindLost();
  if (lost.has_value()) {
    *finished = Retire<Locked>(*lost);
  }
  return lost;
}

void Cq::Forget(const TxQueue& queue) noexcept {
  const Locked::Guard guard(lock_);
  ForgetEntries(/*receiver=*/false, queue.context());
  tx_.Remove(queue);
}

void Cq::Forget(const RxQueue& queue) noexcept {
  const Locked::Guard guard(lock_);
  ForgetEntries(/*receiver=*/true, queue.context());
  rx_.Remove(queue);
}

Finished Cq::RetireOther(const contract::Completion& entry) noexcept {
  if (entry.kind == contract::CompletionKind::kTxSilent) {
    TxQueue* queue = tx_.Find(entry);
    if (queue != nullptr) {
      const Locked::Guard guard(queue->lock());
      queue->RetireSilent(entry);
    }
    return {};
  }
  if (entry.kind != contract::CompletionKind::kTarget) {
    return {};
  }
  const RxQueue* queue = rx_.Find(entry);
  if (queue == nullptr) {
    return {};
  }
  // Source: fi_cq(3), what no operation of ours began has no context; an error
  // has the endpoint's.
  return {.context = entry.status == contract::Status::kOk
                         ? 0
                         : queue->owner_context(),
          .peers = queue->peers(),
          .known = true,
          .report = queue->reports_targets()};
}

// A poll waits for locks of queues, so nothing here waits for the poll's.
void Cq::DrainSilent(TxQueue* caller) noexcept {
  if (!lock_.try_lock()) {
    return;
  }
  while (const contract::Completion* entry = queue_->Peek()) {
    if (entry->kind == contract::CompletionKind::kTxSilent) {
      if (TxQueue* const owner = tx_.Find(*entry);
          owner != nullptr && owner == caller) {
        owner->RetireSilent(*entry);
      } else {
        (void)RetireOther(*entry);
      }
    } else if (entry->kind != contract::CompletionKind::kNone) {
      break;
    }
    queue_->Pop();
  }
  // Not in batches: nobody else may ever read.
  queue_->ReturnCredits();
  lock_.unlock();
}

void Cq::ForgetEntries(bool receiver, uint32_t context) noexcept {
  const uint32_t size = queue_->capacity();
  const auto entries = memory_.entries<contract::Completion>(size);
  for (uint32_t i = 0; i < size; ++i) {
    const uint32_t count = queue_->consumed() + i;
    contract::Completion& entry = entries[count & (size - 1)];
    const uint8_t new_phase = (count / size) % 2 == 0 ? 1 : 0;
    if (__atomic_load_n(&entry.phase, __ATOMIC_ACQUIRE) != new_phase) {
      return;
    }
    const bool of_kind =
        receiver ? IsOfReceiver(entry.kind)
                 : entry.kind == contract::CompletionKind::kTx ||
                       entry.kind == contract::CompletionKind::kTxSilent;
    if (of_kind &&
        contract::JoinBytes(entry.context, entry.context_high) == context) {
      entry.kind = contract::CompletionKind::kNone;
    }
  }
}

}  // namespace heddle::nic
