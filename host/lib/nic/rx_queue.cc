// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/rx_queue.h"

#include <algorithm>

#include "host/lib/nic/posting_context.h"

namespace heddle::nic {

Result<std::unique_ptr<RxQueue>> RxQueue::Create(Device& device,
                                                 const Options& options) {
  std::unique_ptr<RxQueue> queue(new RxQueue());
  const auto made = queue->CreateRing(device, options, contract::kRxDescBytes);
  if (!made.ok()) {
    return made.error();
  }
  const size_t slots = queue->slots();
  queue->slot_mask_ = static_cast<uint32_t>(slots - 1);
  auto registrar = queue->CreateRegistrar(device, options, slots);
  if (!registrar.ok()) {
    return registrar.error();
  }
  queue->registrar_.emplace(std::move(registrar.value()));
  queue->slots_ = std::make_unique<Slot[]>(slots);
  queue->overtaken_.reserve(slots);
  return queue;
}

template <typename Locking>
int RxQueue::Push(const ReceiveOperation& operation,
                  std::span<const Segment> segments, size_t bytes) noexcept {
  if (broken_) {
    return EIO;
  }
  Slot* slot = &slots_[ring_->tail() & slot_mask_];
  if ((ring_->full() || slot->use.state != 0) && !MakeRoom()) {
    return EAGAIN;
  }
  const uint32_t left = registrar_->times_left();
  const Prepared prepared = registrar_->PrepareReceive(segments);
  if (prepared.status != Prepared::Status::kOk) {
    return ErrorOf(prepared);
  }
  if (Locking::kLocks && registrar_->times_left() != left) {
    // Other threads may have posted meanwhile.
    if (broken_ || !MakeRoom()) {
      registrar_->FinishReceive(prepared.ticket, 0);
      return broken_ ? EIO : EAGAIN;
    }
    slot = &slots_[ring_->tail() & slot_mask_];
  }
  *slot = {.buffer = segments.empty() ? nullptr : segments[0].address,
           .use = {.ticket = prepared.ticket,
                   .state = static_cast<uint8_t>(slot->use.state | kPosted),
                   .report = operation.report}};
  // There is a free slot, so this cannot fail.
  (void)ring_->TryPush(operation.context, prepared.iova,
                       static_cast<uint32_t>(bytes));
  return 0;
}

template int
PostingContext<RxQueue, RecvRing, contract::RxDesc, ReceiveOperation>::
    PostSegments<backend::Locked>(const ReceiveOperation&,
                                  std::span<const Segment>) noexcept;
template int
PostingContext<RxQueue, RecvRing, contract::RxDesc, ReceiveOperation>::
    PostSegments<backend::Unlocked>(const ReceiveOperation&,
                                    std::span<const Segment>) noexcept;

bool RxQueue::MakeRoom() noexcept {
  const uint16_t position = ring_->tail();
  Slot& slot = slots_[position & slot_mask_];
  // Positions wrap: a completion must tell the two apart.
  const bool known = std::any_of(
      overtaken_.begin(), overtaken_.end(),
      [&](const Overtaken& old) { return old.position == position; });
  if (known || ring_->full()) {
    return false;
  }
  if ((slot.use.state & kPosted) == 0) {
    return true;
  }
  if (overtaken_.size() > slot_mask_) {
    return false;
  }
  overtaken_.push_back(
      {.context = ring_->op_context_at(position),
       .buffer = slot.buffer,
       .ticket = slot.use.ticket,
       .position = static_cast<uint16_t>(position - slot_mask_ - 1),
       .report = slot.use.report});
  slot.use.state = kShared;
  return true;
}

Finished RxQueue::RetireCarefully(const contract::Completion& entry) noexcept {
  if (const auto finished = RetireOvertaken(entry)) {
    return *finished;
  }
  Slot& slot = slots_[entry.position & slot_mask_];
  if ((slot.use.state & kPosted) == 0) {
    // Nothing was given there: not ours to free or to report.
    Break();
    return {};
  }
  return RetireSlot(slot, entry);
}

std::optional<Finished> RxQueue::RetireOvertaken(
    const contract::Completion& entry) noexcept {
  const auto old = std::find_if(overtaken_.begin(), overtaken_.end(),
                                [&](const Overtaken& receive) {
                                  return receive.position == entry.position;
                                });
  if (old == overtaken_.end()) {
    return std::nullopt;
  }
  const Finished finished = {.context = old->context,
                             .buffer = old->buffer,
                             .peers = peers(),
                             .known = true,
                             .report = old->report};
  registrar_->FinishReceive(old->ticket, entry.length);
  // The head that the entry tells may be as old as the slot.
  overtaken_.erase(old);
  const uint32_t slot = entry.position & slot_mask_;
  const bool shared = std::any_of(
      overtaken_.begin(), overtaken_.end(), [&](const Overtaken& receive) {
        return (receive.position & slot_mask_) == slot;
      });
  slots_[slot].use.state &=
      shared ? uint8_t{UINT8_MAX} : static_cast<uint8_t>(~kShared);
  return finished;
}

bool RxQueue::CancelOldest(uint64_t context) noexcept {
  ring_->Publish();
  for (uint16_t p = ring_->head(); p != ring_->tail(); ++p) {
    Slot& slot = slots_[p & slot_mask_];
    if ((slot.use.state & kPosted) != 0 &&
        (slot.use.state & kCancelling) == 0 &&
        ring_->op_context_at(p) == context) {
      slot.use.state |= kCancelling;
      ring_->Cancel(p);
      return true;
    }
  }
  return false;
}

contract::Completion RxQueue::LostAt(uint16_t position) const noexcept {
  return {.queue_head = static_cast<uint16_t>(position + 1),
          .position = position,
          .status = contract::Status::kDeviceFault,
          .context = contract::LowByte(context()),
          .context_high = contract::HighByte(context()),
          .kind = contract::CompletionKind::kRx};
}

std::optional<contract::Completion> RxQueue::FindLost() noexcept {
  Break();
  ring_->Publish();
  if (!overtaken_.empty()) {
    return LostAt(overtaken_.front().position);
  }
  // From the oldest slot there is: a message may come for a receive whose slot
  // was released with a later one's.
  for (; lost_passed_ <= slot_mask_; ++lost_passed_) {
    const auto at =
        static_cast<uint16_t>(ring_->tail() - slot_mask_ - 1 + lost_passed_);
    if ((slots_[at & slot_mask_].use.state & kPosted) != 0) {
      return LostAt(at);
    }
  }
  return std::nullopt;
}

void RxQueue::Abandon() noexcept {
  for (const Overtaken& old : overtaken_) {
    registrar_->FinishReceive(old.ticket, 0);
  }
  overtaken_.clear();
  for (uint32_t i = 0; i <= slot_mask_; ++i) {
    if ((slots_[i].use.state & kPosted) != 0) {
      registrar_->FinishReceive(slots_[i].use.ticket, 0);
      slots_[i] = {};
    }
  }
  const EndedMemory ended = std::move(registrar_->ended());
}

}  // namespace heddle::nic
