// SPDX-License-Identifier: Apache-2.0
// Receive context of an endpoint: posting buffers, and what they hold.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "driver/queue/recv_ring.h"
#include "host/lib/backend/locking.h"
#include "host/lib/nic/rx_context.h"

namespace heddle::nic {

// Buffers by the rules of `Registrar`, held until their completion has been
// read, because only then are copied data moved to their owner. The device
// gives slots back as messages begin, so that receives posted later may come
// round the ring to that of a long message: what the host knows of it moves
// aside. As many receives as the ring has slots are always taken.
//
// `Post*` also fail with EAGAIN when the ring or the bounce buffers are full,
// or one receive trails by 2^16; EOPNOTSUPP for several segments in place. The
// completion queue is not counted: the device refuses a message that it could
// not report, and the sender repeats it.
class RxQueue final : public PostingContext<RxQueue, RecvRing, contract::RxDesc,
                                            ReceiveOperation> {
 public:
  using Options = RxOptions;

  // As TxQueue.
  static Result<std::unique_ptr<RxQueue>> Create(Device& device,
                                                 const Options& options);
  // As TxQueue::TryPostRegistered, of a receive whose success is reported.
  template <typename Locking>
  [[nodiscard, gnu::always_inline]] bool TryPostRegistered(
      uint64_t context, const backend::Buffer& buffer) noexcept {
    return TryPostRegistered<Locking>(context, buffer,
                                      Registration::ReachOf(buffer.descriptor));
  }
  template <typename Locking>
  [[nodiscard, gnu::always_inline]] bool TryPostRegistered(
      uint64_t context, const backend::Buffer& buffer,
      const Reach* reach) noexcept {
    if (reach == nullptr || !reach->Holds(buffer.address, buffer.bytes))
        [[unlikely]] {
      return false;
    }
    const typename Locking::Guard guard(lock());
    Slot& slot = slots_[ring_->count() & slot_mask_];
    if (!ring_->open() || slot.use.state != 0) [[unlikely]] {
      return false;
    }
    slot = {.buffer = const_cast<void*>(buffer.address), .use = kPlain};
    ring_->PushAndPublish(context, reach->iova_of(buffer.address),
                          static_cast<uint32_t>(buffer.bytes));
    return true;
  }

  // As `Retire` of a receive that holds nothing, succeeded and is reported;
  // its context is the entry's. False, changing nothing, for any other.
  [[nodiscard, gnu::always_inline]] bool TryRetire(
      const contract::Completion& entry, void** buffer) noexcept {
    Slot& slot = slots_[entry.position & slot_mask_];
    if (std::bit_cast<uint32_t>(slot.use) != std::bit_cast<uint32_t>(kPlain) ||
        !ring_->TryReleaseTo(entry.queue_head)) [[unlikely]] {
      return false;
    }
    slot.use.state = 0;
    *buffer = slot.buffer;
    return true;
  }

  // Moves received data to its owner and frees what the receive at `entry`
  // held. Call once per completion of this context.
  [[gnu::always_inline]] Finished Retire(
      const contract::Completion& entry) noexcept {
    Slot& slot = slots_[entry.position & slot_mask_];
    if ((slot.use.state & (kPosted | kShared)) != kPosted) [[unlikely]] {
      return RetireCarefully(entry);
    }
    return RetireSlot(slot, entry);
  }

  // As TxQueue::FindLost.
  std::optional<contract::Completion> FindLost() noexcept;

  // Gives back what receives hold that will never complete.
  // Precondition: the device has ended the context.
  void Abandon() noexcept;

 private:
  // Of a slot: the completion of the receive in it has not been read; it is or
  // was that of receives in `overtaken_`; the receive is being withdrawn.
  static constexpr uint8_t kPosted = 1;
  static constexpr uint8_t kShared = 2;
  static constexpr uint8_t kCancelling = 4;

  // Host-side state of a slot.
  struct Slot {
    void* buffer = nullptr;
    ReceiveUse use;
  };
  // A receive in its own slot that holds nothing and is reported.
  static constexpr ReceiveUse kPlain = {.state = kPosted, .report = true};

  // A receive whose slot another one has got.
  struct Overtaken {
    uint64_t context = 0;
    void* buffer = nullptr;
    Ticket ticket = kNoTicket;
    uint16_t position = 0;
    bool report = false;
  };

  template <typename Queue, typename Ring, typename Descriptor,
            typename Operation>
  friend class PostingContext;
  RxQueue() : PostingContext(/*matches=*/false) {}

  int Check(const ReceiveOperation& /*operation*/,
            std::span<const Segment> segments,
            size_t /*bytes*/) const noexcept {
    return segments.size() > 1 && in_place() ? EOPNOTSUPP : 0;
  }
  template <typename Locking>
  int Push(const ReceiveOperation& operation, std::span<const Segment> segments,
           size_t bytes) noexcept;
  // As `TryPostRegistered` of a buffer that is not registered and is copied.
  template <typename Locking>
  [[gnu::always_inline]] bool TryPostCopied(
      const ReceiveOperation& operation,
      const backend::Buffer& buffer) noexcept {
    if (operation.more) {
      return false;
    }
    const typename Locking::Guard guard(lock());
    Slot& slot = slots_[ring_->count() & slot_mask_];
    ReceiveUse use = {.state = kPosted, .report = operation.report};
    Iova iova = {};
    if (!ring_->open() || slot.use.state != 0 ||
        !registrar_->TryCopyReceive(const_cast<void*>(buffer.address),
                                    buffer.bytes, &use.ticket, &iova)) {
      return false;
    }
    slot = {.buffer = const_cast<void*>(buffer.address), .use = use};
    ring_->PushAndPublish(operation.context, iova,
                          static_cast<uint32_t>(buffer.bytes));
    return true;
  }
  // Whether the next slot can be had: what it holds moves aside.
  bool MakeRoom() noexcept;
  [[gnu::always_inline]] Finished RetireSlot(
      Slot& slot, const contract::Completion& entry) noexcept {
    // A `cancelled` completion does not repeat the context.
    const Finished finished = {.context = ring_->op_context_at(entry.position),
                               .buffer = slot.buffer,
                               .peers = peers(),
                               .known = true,
                               .report = slot.use.report};
    registrar_->FinishReceive(slot.use.ticket, entry.length);
    slot.use.state &= kShared;
    if (ring_->ReleaseTo(entry.queue_head) == Release::kBogus) [[unlikely]] {
      Break();
    }
    return finished;
  }

  // As `Retire` of a slot that may be shared.
  Finished RetireCarefully(const contract::Completion& entry) noexcept;
  std::optional<Finished> RetireOvertaken(
      const contract::Completion& entry) noexcept;
  contract::Completion LostAt(uint16_t position) const noexcept;
  bool CancelOldest(uint64_t context) noexcept;

  uint32_t slot_mask_ = 0;
  uint32_t lost_passed_ = 0;  // Slots that `FindLost` need not look at again.
  std::unique_ptr<Slot[]> slots_;
  std::vector<Overtaken> overtaken_;  // Oldest first; at most one per slot.
};

}  // namespace heddle::nic
