// SPDX-License-Identifier: Apache-2.0
// Receive context that matches: posting receives, and what they hold.
#pragma once

#include <rdma/fabric.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "driver/queue/match_ring.h"
#include "host/lib/backend/operation.h"
#include "host/lib/nic/rx_context.h"

namespace heddle::nic {

using backend::MatchOperation;

// A descriptor takes the neutral numbers as they are.
static_assert(static_cast<uint8_t>(backend::MatchOp::kPeek) ==
                  static_cast<uint8_t>(contract::MatchOp::kPeek) &&
              static_cast<uint8_t>(backend::MatchOp::kClaim) ==
                  static_cast<uint8_t>(contract::MatchOp::kClaim) &&
              static_cast<uint8_t>(backend::MatchOp::kDiscard) ==
                  static_cast<uint8_t>(contract::MatchOp::kDiscard) &&
              static_cast<uint8_t>(backend::MatchOp::kReceiveClaimed) ==
                  static_cast<uint8_t>(contract::MatchOp::kReceiveClaimed) &&
              static_cast<uint8_t>(backend::MatchOp::kDiscardClaimed) ==
                  static_cast<uint8_t>(contract::MatchOp::kDiscardClaimed));

// The device releases a slot as soon as it has taken the descriptor, and holds
// the receive. Here a receive is a handle, whose name is the descriptor's
// `op_context`: index in the table, and a count of its uses, so that a name is
// not used again for long. Buffers are held by the rules of `Registrar`; those
// of FI_MULTI_RECV are never copied. A handle whose claim has completed waits
// for the receive that names it by context.
//
// `Post*` also fail with EAGAIN when all handles are used, the ring or the
// bounce buffers full; ENOMSG when no message is claimed under the context;
// EINVAL for a source that is not in the address table, or a buffer of many
// messages that has no byte; EOPNOTSUPP for one of several segments.
class MatchQueue final
    : public PostingContext<MatchQueue, MatchRing, contract::MatchDesc,
                            MatchOperation> {
 public:
  // Receives that a context holds whatever its `operations`: no ring limits
  // them, and programs post more than they request.
  static constexpr size_t kMinReceives = 8192;

  // As TxQueue.
  static Result<std::unique_ptr<MatchQueue>> Create(Device& device,
                                                    const RxOptions& options);
  Iova unexpected_iova() const noexcept { return unexpected_.iova(); }
  // Most receives, peeks and claims at a time.
  uint32_t receives() const noexcept { return receives_; }

  // As TxQueue::TryPostRegistered, of one message whose success is reported.
  template <typename Locking>
  [[nodiscard, gnu::always_inline]] bool TryPostRegistered(
      const MatchOperation& operation, const backend::Buffer& buffer) noexcept {
    const Reach* reach = Registration::ReachOf(buffer.descriptor);
    if (reach == nullptr || !reach->Holds(buffer.address, buffer.bytes) ||
        !IsSource(operation.source)) [[unlikely]] {
      return false;
    }
    const typename Locking::Guard guard(lock());
    if (free_count_ == 0 || !ring_->open()) [[unlikely]] {
      return false;
    }
    PushOpen(operation, buffer, kPlain,
             [&] { return reach->iova_of(buffer.address); });
    return true;
  }

  // As `Retire` of a receive of one message that holds nothing, succeeded and
  // is reported. False, changing nothing, for any other.
  [[nodiscard, gnu::always_inline]] bool TryRetire(
      const contract::Completion& entry, uint64_t* context,
      void** buffer) noexcept {
    Handle* const handle = Find(entry);
    if (handle == nullptr || std::bit_cast<uint32_t>(handle->use) !=
                                 std::bit_cast<uint32_t>(kPlain)) [[unlikely]] {
      return false;
    }
    *context = handle->context;
    *buffer = handle->buffer;
    Release(*handle);
    return true;
  }

  // Moves received data to its owner and frees what the receive of `entry`
  // held, unless it takes more messages. Call once per completion of this
  // context.
  Finished Retire(const contract::Completion& entry) noexcept;

  // As TxQueue::FindLost.
  std::optional<contract::Completion> FindLost() noexcept;

  // Frees what receives hold that will never complete.
  // Precondition: the device has ended the context.
  void Abandon() noexcept;

  // Flags of successful receives of one message, without those of `entry`.
  uint64_t operation_flags() const noexcept { return operation_flags_; }

 private:
  // State of a handle: its receive is not complete; is being withdrawn; takes
  // many messages; reports the length of a message that stays elsewhere; claims
  // one, and has claimed it.
  static constexpr uint8_t kPosted = 1;
  static constexpr uint8_t kCancelling = 2;
  static constexpr uint8_t kMany = 4;
  static constexpr uint8_t kLooks = 8;
  static constexpr uint8_t kClaims = 16;
  static constexpr uint8_t kClaimed = 32;

  using Use = ReceiveUse;
  // A receive of one message that holds nothing and is reported.
  static constexpr Use kPlain = {.state = kPosted, .report = true};

  struct Handle {
    uint64_t context = 0;
    void* buffer = nullptr;
    uint64_t order = 0;  // By posting.
    uint32_t name = 0;
    Use use;
  };
  static constexpr uint32_t kIndexBits = 16;
  static constexpr uint32_t kIndexMask = (1U << kIndexBits) - 1;

  template <typename Queue, typename Ring, typename Descriptor,
            typename Operation>
  friend class PostingContext;
  MatchQueue() : PostingContext(/*matches=*/true) {}

  // True for any source, and for one in the address table.
  bool IsSource(uint64_t source) const noexcept {
    return source == backend::kAnySource || directory_->Contains(source);
  }
  // Precondition: there is one.
  Handle& TakeHandle() noexcept {
    Handle& handle = handles_[free_[--free_count_]];
    handle.order = next_order_++;
    return handle;
  }
  void Release(Handle& handle) noexcept {
    handle.use.state = 0;
    free_[free_count_++] = static_cast<uint16_t>(handle.name & kIndexMask);
    handle.name += 1U << kIndexBits;
  }
  // The handle of an entry; null for a name that is not in use.
  Handle* Find(const contract::Completion& entry) const noexcept {
    const uint64_t index = entry.op_context & kIndexMask;
    if (index >= receives_ || handles_[index].name != entry.op_context)
        [[unlikely]] {
      return nullptr;
    }
    return &handles_[index];
  }
  // The oldest handle with `context` and these bits of its state; null without.
  Handle* FindOldest(uint64_t context, uint8_t state) noexcept;
  bool CancelOldest(uint64_t context) noexcept;

  // Writes all of a slot but its position. Fields that are constant for any
  // source are stored together.
  [[gnu::always_inline]] void Describe(
      const MatchOperation& operation, uint32_t name, Iova iova, uint32_t bytes,
      contract::MatchDesc& slot) const noexcept {
    const auto opcode = static_cast<contract::MatchOp>(operation.match);
    const uint32_t many = operation.many ? contract::kMatchFlagMultiRecv : 0;
    slot.length = bytes;
    slot.op_context = name;
    slot.local_iova = ToInteger(iova);
    slot.match_bits = operation.tag;
    slot.ignore_bits = operation.ignore;
    if (operation.source == backend::kAnySource) [[likely]] {
      slot.opcode = opcode;
      slot.flags = static_cast<uint8_t>(contract::kMatchFlagAnySource | many);
      slot.source_fa_lo = 0;
      slot.source_fa_hi = 0;
      slot.initiator = 0;
      slot.min_free = operation.min_free;
      return;
    }
    const AddressTable::Origin from = directory_->OriginOf(operation.source);
    slot.opcode = opcode;
    slot.flags = static_cast<uint8_t>(
        (from.address.ipv6 ? contract::kMatchFlagSourceIpv6 : 0) | many);
    slot.source_fa_lo = from.address.lo;
    slot.source_fa_hi = from.address.hi;
    slot.initiator = from.initiator;
    slot.min_free = operation.min_free;
  }

  // A receive of one message, where there is a handle and the ring is open.
  // `iova` is called last, which saves registers.
  template <typename GetIova>
  [[gnu::always_inline]] void PushOpen(const MatchOperation& operation,
                                       const backend::Buffer& buffer, Use use,
                                       const GetIova& iova) noexcept {
    Handle& handle = TakeHandle();
    handle.context = operation.context;
    handle.buffer = const_cast<void*>(buffer.address);
    handle.use = use;
    ring_->PushAndPublish([&](contract::MatchDesc &
                              slot) __attribute__((always_inline)) {
      Describe(operation, handle.name, iova(),
               static_cast<uint32_t>(buffer.bytes), slot);
    });
  }
  // As `TryPostRegistered` of a buffer that is not registered and is copied.
  template <typename Locking>
  [[gnu::always_inline]] bool TryPostCopied(
      const MatchOperation& operation, const backend::Buffer& buffer) noexcept {
    if (operation.match != backend::MatchOp::kReceive || operation.many ||
        operation.more || !IsSource(operation.source)) {
      return false;
    }
    const typename Locking::Guard guard(lock());
    Use use = {.state = kPosted, .report = operation.report};
    Iova iova = {};
    if (free_count_ == 0 || !ring_->open() ||
        !registrar_->TryCopyReceive(const_cast<void*>(buffer.address),
                                    buffer.bytes, &use.ticket, &iova)) {
      return false;
    }
    PushOpen(operation, buffer, use, [&] { return iova; });
    return true;
  }

  int Check(const MatchOperation& operation, std::span<const Segment> segments,
            size_t bytes) const noexcept;
  // Whether there are a handle, which a receive of a claim has already, and a
  // slot.
  bool MakeRoom(bool has_handle) noexcept {
    return (has_handle || free_count_ != 0) && ring_->MakeRoom();
  }
  template <typename Locking>
  int Push(const MatchOperation& operation, std::span<const Segment> segments,
           size_t bytes) noexcept;
  uint32_t free_count_ = 0;
  uint32_t receives_ = 0;
  std::unique_ptr<Handle[]> handles_;
  std::unique_ptr<uint16_t[]> free_;
  uint64_t next_order_ = 0;
  const AddressTable* directory_ = nullptr;
  uint64_t operation_flags_ = 0;
  // Above: posts and completions. Below: cold.
  uint32_t lost_passed_ = 0;  // Handles that `FindLost` need not look at again.
  DmaBuffer unexpected_;
};

}  // namespace heddle::nic
