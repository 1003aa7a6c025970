// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/cq.h"

#include <algorithm>
#include <bit>

#include "driver/queue/doorbells.h"
#include "host/lib/nic/backend_device.h"
#include "host/lib/nic/status.h"

namespace heddle::nic {
namespace {

uint8_t SizeLog2(size_t entries) {
  const size_t size = std::bit_ceil(
      std::clamp<size_t>(entries, size_t{1} << contract::kRingLog2Min,
                         size_t{1} << contract::kCqLog2Max));
  return static_cast<uint8_t>(std::countr_zero(size));
}

}  // namespace

Cq::Cq(backend::Device& device)
    : Cq(static_cast<BackendDevice&>(device).nic()) {}

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
  auto queue = heddle::CompletionQueue::Create(
      memory_.entries<const contract::Completion>(size),
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

void Cq::Attach(TxQueue& queue) {
  const backend::Locked::Guard guard(lock());
  tx_.Attach(queue);
}

void Cq::Attach(RxContext& queue) {
  const backend::Locked::Guard guard(lock());
  queue_->ClearUsual();
  rx_.Attach(queue, !queue.refuses_strangers());
  strict_queues_ += queue.refuses_strangers() ? 1 : 0;
}

void Cq::Detach(TxQueue& queue) noexcept {
  const backend::Locked::Guard guard(lock());
  tx_.Detach(queue);
}

void Cq::Detach(RxContext& queue) noexcept {
  const backend::Locked::Guard guard(lock());
  strict_queues_ -= queue.refuses_strangers() ? 1 : 0;
  queue_->ClearUsual();
  rx_.Detach(queue);
}

std::optional<contract::Completion> Cq::FindLost() noexcept {
  std::optional<contract::Completion> lost;
  const auto look = [&lost](auto& queue) {
    const backend::Locked::Guard guard(queue.lock());
    lost = queue.FindLost();
    return lost.has_value();
  };
  tx_.VisitUntil(look);
  if (!lost.has_value()) {
    rx_.VisitUntil([&look](RxContext& queue) {
      return queue.matches() ? look(static_cast<MatchQueue&>(queue))
                             : look(static_cast<RxQueue&>(queue));
    });
  }
  return lost;
}

void Cq::Accustom(const Entry& entry, RxContext& queue) noexcept {
  if (!queue.matches()) {
    usual_ = {.queue = static_cast<RxQueue*>(&queue),
              .flags = CompletionFlags(entry.kind, entry)};
    queue_->SetUsual(entry, UsualKind::kFirst);
    return;
  }
  auto& matching = static_cast<MatchQueue&>(queue);
  const bool has_data =
      (entry.flags & contract::kCompletionFlagHeaderData) != 0;
  usual_match_ = {
      .queue = &matching,
      .flags = matching.operation_flags() | (has_data ? FI_REMOTE_CQ_DATA : 0)};
  queue_->SetUsual(entry, UsualKind::kSecond);
}

bool Cq::IsStranger(const Entry& entry) noexcept {
  if (entry.kind != contract::CompletionKind::kRx) {
    return false;
  }
  const RxContext* queue = rx_.Find(entry, queue_->entries_read());
  return queue != nullptr && queue->refuses_strangers() &&
         queue->peers()->FindSource(SenderOf(entry), entry.peer) ==
             AddressTable::kNoPeer;
}

// Once an error, always an error: the sender may be inserted meanwhile.
bool Cq::IsErrorOrStranger(const Entry& entry, bool sources) noexcept {
  if (entry.status != contract::Status::kOk) {
    return IsOfQueue(entry);
  }
  const uint64_t number = queue_->entries_read();
  if (sources && stranger_ != number && IsStranger(entry)) {
    stranger_ = number;
  }
  return stranger_ == number;
}

backend::ErrorCompletion Cq::MakeError(const Entry& entry,
                                       contract::Status status,
                                       const Finished& finished) noexcept {
  backend::ErrorCompletion error = {
      .completion = ToCompletion(entry.kind, entry, finished),
      .excess = entry.message_length > entry.length
                    ? entry.message_length - entry.length
                    : 0,
      .error = ToProvErrno(status, entry.detail),
      .detail = entry.detail,
      .peer = std::nullopt};
  if (entry.kind == contract::CompletionKind::kTx &&
      finished.peers != nullptr) {
    error.peer = finished.peers->Lookup(entry.peer);
  }
  if (entry.kind == contract::CompletionKind::kRx &&
      status == contract::Status::kBadPeer) {
    // A stranger: where it is, for fi_av_insert.
    error.peer =
        PeerAddress::OfSender(SenderOf(entry), entry.peer).socket_address();
  }
  return error;
}

std::optional<backend::ErrorCompletion> Cq::TakeError(bool failed) noexcept {
  const ReadGuard<backend::Locked> guard(*this);
  const Entry* entry = Peek();
  while (entry != nullptr && !IsOfQueue(*entry)) {
    (void)Retire<backend::Locked>(*entry);
    Pop();
    entry = Peek();
  }
  if (entry != nullptr) {
    if (!IsError(*entry, /*sources=*/false)) {
      return std::nullopt;
    }
    const contract::Status status = entry->status == contract::Status::kOk
                                        ? contract::Status::kBadPeer
                                        : entry->status;
    const Finished finished = Retire<backend::Locked>(*entry);
    const backend::ErrorCompletion error = MakeError(*entry, status, finished);
    Pop();
    return error;
  }
  const auto lost = failed ? FindLost() : std::nullopt;
  if (!lost.has_value()) {
    return std::nullopt;
  }
  return MakeError(*lost, lost->status, Retire<backend::Locked>(*lost));
}

void Cq::Forget(const TxQueue& queue) noexcept {
  const backend::Locked::Guard guard(lock());
  tx_.Remove(queue, queue_->CountWritten());
}

void Cq::Forget(const RxContext& queue) noexcept {
  const backend::Locked::Guard guard(lock());
  rx_.Remove(queue, queue_->CountWritten());
}

Finished Cq::RetireOther(const contract::Completion& entry) noexcept {
  if (entry.kind == contract::CompletionKind::kTxSilent) {
    TxQueue* queue = tx_.Find(entry, queue_->entries_read());
    if (queue != nullptr) {
      const backend::Locked::Guard guard(queue->lock());
      queue->RetireSilent(entry);
      ended_.Add(queue->ended());
    }
    return {};
  }
  if (entry.kind != contract::CompletionKind::kTarget) {
    return {};
  }
  const RxContext* queue = rx_.Find(entry, queue_->entries_read());
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
  if (!lock().try_lock()) {
    return;
  }
  while (const contract::Completion* entry = queue_->Peek()) {
    if (entry->kind == contract::CompletionKind::kTxSilent) {
      if (TxQueue* const owner = tx_.Find(*entry, queue_->entries_read());
          owner != nullptr && owner == caller) {
        owner->RetireSilent(*entry);
      } else {
        (void)RetireOther(*entry);
      }
    } else {
      break;
    }
    queue_->Pop();
  }
  // Not in batches: nobody else may ever read.
  queue_->ReturnCredits();
  if (caller != nullptr) {
    caller->ended().Add(ended_);
  }
  lock().unlock();
}

}  // namespace heddle::nic
