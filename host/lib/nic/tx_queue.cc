// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/tx_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "driver/queue/doorbells.h"

namespace heddle::nic {
namespace {

// A send with extension slots takes up to four; two each on average.
constexpr size_t kSlotsPerOperation = 2;

uint8_t RingLog2(size_t operations) {
  const size_t slots = std::clamp<size_t>(
      std::bit_ceil(operations * kSlotsPerOperation),
      size_t{1} << contract::kRingLog2Min, size_t{1} << contract::kRingLog2Max);
  return static_cast<uint8_t>(std::countr_zero(slots));
}

}  // namespace

Result<std::unique_ptr<TxQueue>> TxQueue::Create(Device& device,
                                                 const Options& options,
                                                 CqCredit* credit) {
  std::unique_ptr<TxQueue> queue(new TxQueue());
  queue->ring_log2_ = RingLog2(options.operations);
  queue->credit_ = credit;
  queue->peers_ = options.peers;
  const size_t slots = size_t{1} << queue->ring_log2_;
  queue->slot_mask_ = static_cast<uint32_t>(slots - 1);
  auto memory =
      DmaBuffer::Create(device, queue->ring_bytes() + sizeof(uint64_t));
  if (!memory.ok()) {
    return memory.error();
  }
  queue->memory_ = std::move(memory.value());
  auto registrar =
      Registrar::Create(device, {.copy_limit_bytes = options.copy_limit_bytes,
                                 .tickets = static_cast<uint32_t>(slots),
                                 .slabs = {}});
  if (!registrar.ok()) {
    return registrar.error();
  }
  queue->registrar_.emplace(std::move(registrar.value()));
  queue->tickets_ = std::make_unique<Ticket[]>(slots);
  std::fill_n(queue->tickets_.get(), slots, kNoTicket);
  return queue;
}

Result<bool> TxQueue::Bind(Device& device, uint32_t context) {
  auto ring = SendRing::Create(
      memory_.entries<contract::TxDesc>(size_t{1} << ring_log2_),
      reinterpret_cast<const uint64_t*>(memory_.data() + ring_bytes()),
      TxTailDoorbell(device, context), TxOpDoorbell(device, context),
      TxPushWindow(device, context));
  if (!ring.ok()) {
    return ring.error();
  }
  ring_.emplace(ring.value());
  context_ = context;
  return true;
}

bool TxQueue::PushInRing(const SendFields& fields,
                         std::span<const Segment> segments,
                         size_t bytes) noexcept {
  std::array<std::byte, contract::kInjectBytes> gathered;
  const void* data = gathered.data();
  if (segments.size() == 1) {
    data = segments[0].address;
  } else {
    size_t offset = 0;
    for (const Segment& segment : segments) {
      if (segment.bytes != 0) {
        std::memcpy(&gathered[offset], segment.address, segment.bytes);
        offset += segment.bytes;
      }
    }
  }
  const auto push = [&] {
    const auto length = static_cast<uint32_t>(bytes);
    return bytes <= contract::kInlineBytes
               ? ring_->PushInline(fields, data, length)
               : ring_->PushInlineExt(fields, data, length);
  };
  return push() || (Refill() && push());
}

int TxQueue::PushPrepared(const SendFields& fields,
                          std::span<const Segment> segments,
                          size_t bytes) noexcept {
  if (ring_->free_slots() == 0 && !Refill()) {
    return EAGAIN;
  }
  for (const Segment& segment : segments) {
    if (segment.region != nullptr && segment.bytes != 0 &&
        !segment.region->Covers(segment.address, segment.bytes)) {
      return EINVAL;
    }
  }
  const Prepared prepared = registrar_->PrepareSend(segments);
  if (prepared.status != Prepared::Status::kOk) {
    return prepared.status == Prepared::Status::kFull
               ? EAGAIN
               : static_cast<int>(prepared.error);
  }
  // There is a free slot, so this cannot fail.
  (void)ring_->PushBuffer(fields, prepared.iova, static_cast<uint32_t>(bytes));
  if (prepared.ticket != kNoTicket) {
    tickets_[ring_->last_position() & slot_mask_] = prepared.ticket;
    ++held_;
  }
  return 0;
}

bool TxQueue::Refill() noexcept {
  const uint16_t head = ring_->head();
  Release(head, ring_->ReleaseFromCell());
  return ring_->head() != head;
}

int TxQueue::RefuseFull() noexcept {
  ring_->Publish();
  return EAGAIN;
}

void TxQueue::Release(uint16_t old_head, heddle::Release outcome) noexcept {
  if (outcome == heddle::Release::kBogus) {
    broken_ = true;
    return;
  }
  for (uint16_t p = old_head; held_ != 0 && p != ring_->head(); ++p) {
    FinishSlot(p);
  }
}

void TxQueue::FinishSlot(uint16_t position) noexcept {
  Ticket& ticket = tickets_[position & slot_mask_];
  if (ticket != kNoTicket) {
    if (ticket != kComplete) {
      registrar_->FinishSend(ticket);
    }
    ticket = kNoTicket;
    --held_;
  }
}

void TxQueue::MarkComplete(uint16_t position) noexcept {
  Ticket& ticket = tickets_[position & slot_mask_];
  if (ticket == kNoTicket) {
    ticket = kComplete;
    ++held_;
  }
}

std::optional<contract::Completion> TxQueue::FindLost() noexcept {
  broken_ = true;
  ring_->Publish();
  // Operations that asked for no completion are done before this.
  const auto released = static_cast<uint16_t>(LoadShared(
      reinterpret_cast<const uint64_t*>(memory_.data() + ring_bytes())));
  const auto* slots = reinterpret_cast<const contract::TxDesc*>(memory_.data());
  for (uint16_t at = ring_->head(); at != ring_->tail();) {
    const contract::TxDesc& desc = slots[at & slot_mask_];
    const auto after = static_cast<uint16_t>(at + 1 + desc.ext_slots);
    const bool done = tickets_[at & slot_mask_] == kComplete ||
                      ((desc.flags & contract::kTxFlagCompletion) == 0 &&
                       static_cast<int16_t>(released - after) >= 0);
    if (desc.opcode != contract::Opcode::kNop && !done) {
      return contract::Completion{.op_context = desc.op_context,
                                  .length = desc.length,
                                  .message_length = desc.length,
                                  .peer = desc.peer,
                                  .queue_head = after,
                                  .position = at,
                                  .status = contract::Status::kDeviceFault,
                                  .opcode = desc.opcode,
                                  .context = static_cast<uint8_t>(context_),
                                  .kind = contract::CompletionKind::kTx};
    }
    at = after;
  }
  return std::nullopt;
}

void TxQueue::Abandon() noexcept {
  for (uint32_t slot = 0; held_ != 0 && slot <= slot_mask_; ++slot) {
    FinishSlot(static_cast<uint16_t>(slot));
  }
  credit_->Return<Locked>(signaled_);
  signaled_ = 0;
}

}  // namespace heddle::nic
