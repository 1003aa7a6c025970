// SPDX-License-Identifier: Apache-2.0
// Transmit context of an endpoint: posting, and what operations hold.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "driver/dma/dma_buffer.h"
#include "driver/queue/send_ring.h"
#include "host/lib/nic/address_table.h"
#include "host/lib/nic/cq_credit.h"
#include "host/lib/nic/locking.h"
#include "host/lib/nic/region.h"

namespace heddle::nic {

// What one send says; the payload is given beside it.
struct SendOperation {
  uint64_t context = 0;
  uint64_t data = 0;  // With `has_data`.
  uint32_t peer = 0;
  bool has_data = false;
  bool completion = true;  // Report success; failure always is.
  bool copy_now = false;   // The payload is the caller's again at return.
  bool more = false;       // The doorbell may wait for the next post.
};

// Payload of up to `contract::kInjectBytes` travels in the ring, whatever its
// memory is; the rest by the rules of `Registrar`.
//
// Thread safety: `Post` takes the lock when the policy says so; `Retire` is
// called under `lock()`; the rest is for the thread that makes or ends the
// endpoint.
// Ownership: owns ring memory and bounce buffers; borrows device and credit.
class TxQueue {
 public:
  struct Options {
    size_t operations = 0;          // Posted at a time, at least.
    uint32_t copy_limit_bytes = 0;  // Larger unregistered buffers are mapped.
    const AddressTable* peers = nullptr;  // What sends name their peer in.
  };

  // Memory for a ring; `Bind` makes it usable. Errors: ENOMEM and those of
  // `Device::Map`. Throws std::bad_alloc.
  static Result<std::unique_ptr<TxQueue>> Create(Device& device,
                                                 const Options& options,
                                                 CqCredit* credit);

  // Ties the queue to transmit context `context`, created on the device with
  // the three values below. Errors: EINVAL.
  Result<bool> Bind(Device& device, uint32_t context);
  Iova ring_iova() const noexcept { return memory_.iova(); }
  Iova head_cell_iova() const noexcept { return memory_.iova() + ring_bytes(); }
  uint8_t ring_log2() const noexcept { return ring_log2_; }

  // 0, or EAGAIN when the ring, the completion queue or the bounce buffers
  // are full, EMSGSIZE for a payload too large, EINVAL for too many segments
  // or one outside its region, EIO once the device failed or broke its
  // contract, or the error of mapping a large buffer. Everything but 0 changes
  // nothing.
  template <typename Locking>
  [[nodiscard]] int Post(const SendOperation& operation,
                         std::span<const Segment> segments) noexcept;

  // As `Post` for one piece of at most `contract::kInlineBytes`: the path of
  // short messages.
  template <typename Locking>
  [[nodiscard]] int PostInline(const SendOperation& operation, const void* data,
                               size_t bytes) noexcept;

  // As `Post` for one piece of at most `contract::kInjectBytes`.
  template <typename Locking>
  [[nodiscard]] int PostInRing(const SendOperation& operation, const void* data,
                               size_t bytes) noexcept;

  // As `Post` for one piece, longer than goes in the ring, that is part of
  // `region`, or should be.
  template <typename Locking>
  [[nodiscard]] int PostRegistered(const SendOperation& operation,
                                   const void* data, size_t bytes,
                                   const Region& region) noexcept;

  // Takes back what the operation at `position` and all slots before
  // `queue_head` hold. Call once per completion of this context.
  template <typename Locking>
  void Retire(uint16_t position, uint16_t queue_head) noexcept {
    if (signaled_ != 0) {
      --signaled_;
      credit_->Return<Locking>(1);
    }
    if (held_ != 0) {
      FinishSlot(position);
    }
    if (static_cast<int16_t>(position - queue_head) >= 0) [[unlikely]] {
      MarkComplete(position);
    }
    const uint16_t head = ring_->head();
    Release(head, ring_->ReleaseTo(queue_head));
  }

  // After the device has failed: the oldest operation that is not complete,
  // as the completion in error that the device owes; `Retire` ends it. Empty
  // when there is none. From the first call on, posts answer EIO.
  std::optional<contract::Completion> FindLost() noexcept;

  // Gives back what operations hold that will never complete.
  // Precondition: the device has ended the context.
  void Abandon() noexcept;

  SpinLock& lock() noexcept { return lock_; }
  uint32_t context() const noexcept { return context_; }
  const AddressTable* peers() const noexcept { return peers_; }

 private:
  TxQueue() = default;

  static SendFields Fields(const SendOperation& operation) noexcept {
    return {.op_context = operation.context,
            .header_data = operation.data,
            .peer = operation.peer,
            .flags = static_cast<uint8_t>(
                (operation.completion ? contract::kTxFlagCompletion : 0) |
                (operation.has_data ? contract::kTxFlagHeaderData : 0))};
  }
  size_t ring_bytes() const noexcept {
    return size_t{contract::kDescBytes} << ring_log2_;
  }
  bool PushInRing(const SendFields& fields, std::span<const Segment> segments,
                  size_t bytes) noexcept;
  bool Refill() noexcept;
  // What a full queue answers; what was posted before goes to the device.
  int RefuseFull() noexcept;
  int PushPrepared(const SendFields& fields, std::span<const Segment> segments,
                   size_t bytes) noexcept;
  void Release(uint16_t old_head, heddle::Release outcome) noexcept;
  void FinishSlot(uint16_t position) noexcept;
  void MarkComplete(uint16_t position) noexcept;

  // Stands in `tickets_` for an operation that completed before an older one,
  // until its slot is released.
  static constexpr Ticket kComplete = kNoTicket - 1;

  SpinLock lock_;
  bool broken_ = false;    // The device failed or broke its contract.
  uint32_t held_ = 0;      // Slots whose ticket is not kNoTicket.
  uint32_t signaled_ = 0;  // Credits taken and not given back.
  uint32_t slot_mask_ = 0;
  CqCredit* credit_ = nullptr;
  std::optional<SendRing> ring_;
  std::unique_ptr<Ticket[]> tickets_;  // By slot.
  std::optional<Registrar> registrar_;
  const AddressTable* peers_ = nullptr;
  // Above: posts and completions. Below: cold.
  uint32_t context_ = 0;
  uint8_t ring_log2_ = 0;
  DmaBuffer memory_;  // The ring, then its head cell.
};

template <typename Locking>
int TxQueue::Post(const SendOperation& operation,
                  std::span<const Segment> segments) noexcept {
  if (segments.size() > kMaxSegments) {
    return EINVAL;
  }
  size_t bytes = 0;
  size_t largest = 0;  // The sum of a few of at most this cannot wrap.
  for (const Segment& segment : segments) {
    bytes += segment.bytes;
    largest = std::max(largest, segment.bytes);
  }
  const size_t limit =
      operation.copy_now ? contract::kInjectBytes : contract::kMaxMessageBytes;
  if (bytes > limit || largest > limit) {
    return EMSGSIZE;
  }
  const SendFields fields = Fields(operation);
  const typename Locking::Guard guard(lock_);
  if (broken_) [[unlikely]] {
    return EIO;
  }
  if (operation.completion && !credit_->TryTake<Locking>()) {
    ring_->Publish();
    return EAGAIN;
  }
  const int error = bytes <= contract::kInjectBytes
                        ? (PushInRing(fields, segments, bytes) ? 0 : EAGAIN)
                        : PushPrepared(fields, segments, bytes);
  if (error == 0) {
    signaled_ += operation.completion ? 1 : 0;
  } else if (operation.completion) {
    credit_->Return<Locking>(1);
  }
  if (!operation.more || error != 0) {
    ring_->Publish();
  }
  return error;
}

template <typename Locking>
[[gnu::always_inline]] inline int TxQueue::PostInline(
    const SendOperation& operation, const void* data, size_t bytes) noexcept {
  const typename Locking::Guard guard(lock_);
  if (ring_->free_slots() == 0 && !Refill()) [[unlikely]] {
    return RefuseFull();
  }
  if (operation.completion) {
    if (!credit_->TryTake<Locking>()) [[unlikely]] {
      return RefuseFull();
    }
    ++signaled_;
  }
  // There is a free slot, so this cannot fail.
  (void)ring_->PushInline(Fields(operation), data,
                          static_cast<uint32_t>(bytes));
  if (!operation.more) {
    ring_->Publish();
  }
  return broken_ ? EIO : 0;
}

template <typename Locking>
int TxQueue::PostInRing(const SendOperation& operation, const void* data,
                        size_t bytes) noexcept {
  const SendFields fields = Fields(operation);
  const auto length = static_cast<uint32_t>(bytes);
  const typename Locking::Guard guard(lock_);
  if (operation.completion && !credit_->TryTake<Locking>()) [[unlikely]] {
    return RefuseFull();
  }
  if (!ring_->PushInlineExt(fields, data, length) &&
      !(Refill() && ring_->PushInlineExt(fields, data, length))) [[unlikely]] {
    if (operation.completion) {
      credit_->Return<Locking>(1);
    }
    return RefuseFull();
  }
  signaled_ += operation.completion ? 1 : 0;
  if (!operation.more) {
    ring_->Publish();
  }
  return broken_ ? EIO : 0;
}

template <typename Locking>
int TxQueue::PostRegistered(const SendOperation& operation, const void* data,
                            size_t bytes, const Region& region) noexcept {
  if (operation.copy_now || bytes > contract::kMaxMessageBytes) [[unlikely]] {
    return EMSGSIZE;
  }
  if (!region.Covers(data, bytes)) [[unlikely]] {
    return EINVAL;
  }
  const typename Locking::Guard guard(lock_);
  if (ring_->free_slots() == 0 && !Refill()) [[unlikely]] {
    return RefuseFull();
  }
  if (operation.completion) {
    if (!credit_->TryTake<Locking>()) [[unlikely]] {
      return RefuseFull();
    }
    ++signaled_;
  }
  // There is a free slot, so this cannot fail.
  (void)ring_->PushBuffer(Fields(operation), region.iova_of(data),
                          static_cast<uint32_t>(bytes));
  if (!operation.more) {
    ring_->Publish();
  }
  return broken_ ? EIO : 0;
}

}  // namespace heddle::nic
