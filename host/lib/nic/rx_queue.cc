// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/rx_queue.h"

#include <bit>

#include "driver/queue/doorbells.h"

namespace heddle::nic {
namespace {

uint8_t RingLog2(size_t operations) {
  const size_t slots = std::clamp<size_t>(std::bit_ceil(operations),
                                          size_t{1} << contract::kRingLog2Min,
                                          size_t{1} << contract::kRingLog2Max);
  return static_cast<uint8_t>(std::countr_zero(slots));
}

}  // namespace

Result<std::unique_ptr<RxQueue>> RxQueue::Create(Device& device,
                                                 const Options& options) {
  std::unique_ptr<RxQueue> queue(new RxQueue());
  queue->ring_log2_ = RingLog2(options.operations);
  queue->peers_ = options.peers;
  queue->refuses_strangers_ = options.refuse_strangers;
  queue->in_place_ = options.in_place;
  queue->reports_targets_ = options.report_targets;
  queue->owner_context_ = options.owner_context;
  const size_t slots = size_t{1} << queue->ring_log2_;
  queue->slot_mask_ = static_cast<uint32_t>(slots - 1);
  auto memory =
      DmaBuffer::Create(device, queue->ring_bytes() + sizeof(uint64_t));
  if (!memory.ok()) {
    return memory.error();
  }
  queue->memory_ = std::move(memory.value());
  auto registrar = Registrar::Create(
      device,
      {.copy_limit_bytes = options.in_place ? 0 : options.copy_limit_bytes,
       .tickets = static_cast<uint32_t>(slots),
       .slabs = {}});
  if (!registrar.ok()) {
    return registrar.error();
  }
  queue->registrar_.emplace(std::move(registrar.value()));
  queue->slots_ = std::make_unique<Slot[]>(slots);
  return queue;
}

Result<bool> RxQueue::Bind(Device& device, uint32_t context) {
  auto ring = RecvRing::Create(
      memory_.entries<contract::RxDesc>(size_t{1} << ring_log2_),
      reinterpret_cast<const uint64_t*>(memory_.data() + ring_bytes()),
      RxTailDoorbell(device, context), RxOpDoorbell(device, context));
  if (!ring.ok()) {
    return ring.error();
  }
  ring_.emplace(ring.value());
  context_ = context;
  return true;
}

int RxQueue::Push(const ReceiveOperation& operation,
                  std::span<const Segment> segments, size_t bytes) noexcept {
  if (broken_) {
    return EIO;
  }
  Slot& slot = slots_[ring_->tail() & slot_mask_];
  if (ring_->free_slots() == 0 || slot.posted) {
    return EAGAIN;
  }
  if (segments.size() > 1 && in_place_) {
    return EOPNOTSUPP;
  }
  const Prepared prepared = registrar_->PrepareReceive(segments);
  if (prepared.status != Prepared::Status::kOk) {
    return prepared.status == Prepared::Status::kFull
               ? EAGAIN
               : static_cast<int>(prepared.error);
  }
  // There is a free slot, so this cannot fail.
  (void)ring_->TryPush(operation.context, prepared.iova,
                       static_cast<uint32_t>(bytes));
  slot = {.buffer = segments.empty() ? nullptr : segments[0].address,
          .ticket = prepared.ticket,
          .posted = true,
          .report = operation.report};
  return 0;
}

int RxQueue::RefuseFull() noexcept {
  ring_->Publish();
  return broken_ ? EIO : EAGAIN;
}

bool RxQueue::CancelOldest(uint64_t context) noexcept {
  ring_->Publish();
  for (uint16_t p = ring_->head(); p != ring_->tail(); ++p) {
    Slot& slot = slots_[p & slot_mask_];
    if (slot.posted && !slot.cancelling && ring_->op_context_at(p) == context) {
      slot.cancelling = true;
      ring_->Cancel(p);
      return true;
    }
  }
  return false;
}

std::optional<contract::Completion> RxQueue::FindLost() noexcept {
  broken_ = true;
  ring_->Publish();
  // From the oldest slot there is: a message may come for a receive whose slot
  // was released with a later one's.
  for (; lost_passed_ <= slot_mask_; ++lost_passed_) {
    const auto at =
        static_cast<uint16_t>(ring_->tail() - slot_mask_ - 1 + lost_passed_);
    if (slots_[at & slot_mask_].posted) {
      return contract::Completion{.queue_head = static_cast<uint16_t>(at + 1),
                                  .position = at,
                                  .status = contract::Status::kDeviceFault,
                                  .context = static_cast<uint8_t>(context_),
                                  .kind = contract::CompletionKind::kRx};
    }
  }
  return std::nullopt;
}

void RxQueue::Abandon() noexcept {
  for (uint32_t i = 0; i <= slot_mask_; ++i) {
    if (slots_[i].posted) {
      registrar_->FinishReceive(slots_[i].ticket, 0);
      slots_[i] = {};
    }
  }
}

}  // namespace heddle::nic
