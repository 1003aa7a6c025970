// SPDX-License-Identifier: Apache-2.0
// Transmit context of an endpoint: posting, and what operations hold.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "driver/dma/dma_buffer.h"
#include "driver/queue/send_ring.h"
#include "host/lib/backend/locking.h"
#include "host/lib/backend/objects.h"
#include "host/lib/backend/operation.h"
#include "host/lib/nic/address_table.h"
#include "host/lib/nic/context_map.h"
#include "host/lib/nic/cq_credit.h"
#include "host/lib/nic/registration.h"
#include "host/lib/nic/spilled_operations.h"
#include "host/lib/nic/tx_completions.h"
#include "hw/contract/split_number.h"

namespace heddle::nic {

// A descriptor takes the neutral numbers as they are.
static_assert(backend::kReportSuccess == contract::kTxFlagCompletion &&
              backend::kCarryData == contract::kTxFlagHeaderData &&
              backend::kFence == contract::kTxFlagFence &&
              backend::kDeliveryComplete == contract::kTxFlagDeliveryComplete);
static_assert(static_cast<uint8_t>(backend::Opcode::kSend) ==
                  static_cast<uint8_t>(contract::Opcode::kSend) &&
              static_cast<uint8_t>(backend::Opcode::kTaggedSend) ==
                  static_cast<uint8_t>(contract::Opcode::kTaggedSend) &&
              static_cast<uint8_t>(backend::Opcode::kWrite) ==
                  static_cast<uint8_t>(contract::Opcode::kWrite) &&
              static_cast<uint8_t>(backend::Opcode::kRead) ==
                  static_cast<uint8_t>(contract::Opcode::kRead));
static_assert(backend::kInjectBytes == contract::kInjectBytes &&
              backend::kMaxMessageBytes == contract::kMaxMessageBytes);

using backend::Operation;
using backend::RemoteSegment;

// Payload of up to `contract::kInjectBytes` travels in the ring, whatever its
// memory is; the rest by the rules of `Registrar`.
//
// Thread safety: `Post` takes the lock when the policy says so; `Retire` is
// called under `lock()`; the rest is for the thread that makes or ends the
// endpoint.
// Ownership: owns ring memory and bounce buffers; borrows device and credit.
class TxQueue final : public backend::TransmitContext {
 public:
  struct Options {
    size_t operations = 0;          // Posted at a time, at least.
    uint32_t copy_limit_bytes = 0;  // Larger unregistered buffers are mapped.
    const AddressTable* peers = nullptr;  // What sends name their peer in.
    // The device takes several local segments, and operations of several
    // descriptors.
    bool scatter_gather = false;
    bool more = false;
    // What is read goes straight to its place: a counter tells of it, without
    // a completion that is read.
    bool reads_in_place = false;
    // Slots of operations that are stuck are given up, if the completion queue
    // has twice as many entries as the ring has slots.
    bool spill = false;
    // Outlives the queue. Null: every entry is read before positions come round
    // to its operation's, and silent ones as soon as they are there.
    TxCompletions* completions = nullptr;
    MapRefusalListener on_refused = {};
  };

  // Memory for a ring; `Bind` makes it usable. Errors: ENOMEM and those of
  // `Device::Map`. Throws std::bad_alloc.
  static Result<std::unique_ptr<TxQueue>> Create(Device& device,
                                                 const Options& options,
                                                 CqCredit* credit);

  // Ties the queue to transmit context `context`, created on the device with
  // the four values below. Errors: EINVAL.
  Result<bool> Bind(Device& device, uint32_t context);
  Iova ring_iova() const noexcept { return memory_.iova(); }
  Iova head_cell_iova() const noexcept { return memory_.iova() + ring_bytes(); }
  uint8_t ring_log2() const noexcept { return ring_log2_; }
  // 0 when no slots are given up.
  Iova spill_iova() const noexcept {
    return spill_ == nullptr ? Iova{} : spill_->memory.iova();
  }

  // They post one buffer where the ring is open; false, nothing changed, where
  // only `Post` decides (backend/model.h).
  static bool IsShort(size_t bytes) noexcept {
    return bytes - SendRing::kSendInlineMin <=
           contract::kInlineBytes - SendRing::kSendInlineMin;
  }
  template <typename Locking, bool kDirect, typename Make>
  [[nodiscard, gnu::always_inline]] bool TryPostShort(
      const Make& make, const backend::Buffer& buffer) noexcept {
    const typename Locking::Guard guard(lock_);
    if (!ring_->open()) [[unlikely]] {
      return false;
    }
    ring_->SendInline<kDirect>(Count(make()), buffer.address, buffer.bytes);
    return true;
  }
  template <typename Locking, bool kDirect, typename Make>
  [[nodiscard, gnu::always_inline]] bool TryPostMedium(
      const Make& make, const backend::Buffer& buffer) noexcept {
    const typename Locking::Guard guard(lock_);
    if (buffer.bytes <= contract::kInlineBytes || !ring_->OpenForInlineExt())
        [[unlikely]] {
      return false;
    }
    ring_->SendInlineExt<kDirect>(Count(make()), buffer.address, buffer.bytes);
    return true;
  }
  template <typename Locking, bool kDirect, typename Make>
  [[nodiscard, gnu::always_inline]] bool TryPostRegistered(
      const Make& make, const backend::Buffer& buffer) noexcept {
    const Reach* reach = Registration::ReachOf(buffer.descriptor);
    if (reach == nullptr || !reach->Holds(buffer.address, buffer.bytes))
        [[unlikely]] {
      return false;
    }
    const typename Locking::Guard guard(lock_);
    if (!ring_->open()) [[unlikely]] {
      return false;
    }
    ring_->SendBuffer<kDirect>(Count(make()), reach->iova_of(buffer.address),
                               buffer.bytes);
    return true;
  }

  // Any operation, to or from pieces of the peer's memory, at most
  // `kMaxSegments`, one without the device's `more`. They are operations of
  // their own to the peer; the last carries the data, after the others are
  // done. 0, or EAGAIN when the ring, the completion queue or the bounce
  // buffers are full, EMSGSIZE for a payload too large, EINVAL for too many
  // segments, one outside its region, or sides of different lengths, EIO once
  // the device failed or broke its contract, or the error of mapping a large
  // buffer. Only 0 changes the queue.
  template <typename Locking>
  [[nodiscard]] int PostSegments(
      const Operation& operation, std::span<const Segment> local,
      std::span<const RemoteSegment> remote) noexcept;
  // To or from one piece, or of a message.
  template <typename Locking>
  [[nodiscard]] int PostSegments(const Operation& operation,
                                 std::span<const Segment> local) noexcept {
    RemoteSegment remote = {.address = operation.address, .key = operation.key};
    for (const Segment& segment : local) {
      remote.bytes += segment.bytes;
    }
    return PostSegments<Locking>(operation, local, {&remote, 1});
  }
  // The same as a backend's transmit context has it.
  template <typename Locking>
  [[nodiscard]] int Post(const Operation& operation,
                         const backend::Buffer& buffer) noexcept {
    const Segment segment = Segments::Of(buffer);
    return PostSegments<Locking>(operation, {&segment, 1});
  }
  template <typename Locking, typename... Remote>
  [[nodiscard]] int Post(const Operation& operation,
                         const backend::Payload& payload,
                         const Remote&... remote) noexcept {
    return PostSegments<Locking>(operation, Segments(payload).list(),
                                 remote...);
  }

  // Takes back what the operation of `entry` and all slots before its
  // `queue_head` hold; what was read is where it belongs afterwards. Call once
  // per completion of this context. False when the application asked not to
  // hear of success.
  template <typename Locking>
  bool Retire(const contract::Completion& entry) noexcept {
    if (entry.status != contract::Status::kOk && !WasSignaled(entry))
        [[unlikely]] {
      return RetireUnasked(entry);
    }
    if (signaled_ != 0) {
      --signaled_;
      ReturnCredit<Locking>();
    }
    return Finish(entry);
  }

  // As `Retire` of an operation in its turn that succeeded and holds nothing,
  // the most frequent one, where the application serializes. False, changing
  // nothing, for any other.
  [[nodiscard, gnu::always_inline]] bool TryRetire(
      const contract::Completion& entry) noexcept {
    if (std::bit_cast<uint64_t>(obstacles_) != 0 || signaled_ == 0 ||
        static_cast<int16_t>(entry.position - entry.queue_head) >= 0 ||
        ((entry.queue_head ^ ring_->head()) & kLookEvery) != 0 ||
        !ring_->TryReleaseTo(entry.queue_head)) [[unlikely]] {
      return false;
    }
    --signaled_;
    return true;
  }

  // The same for an entry of kind `tx_silent`: an operation that asked for no
  // completion and lost its slots.
  void RetireSilent(const contract::Completion& entry) noexcept;

  // After the device has failed: the oldest operation that is not complete,
  // as the completion in error that the device owes; `Retire` ends it. Empty
  // when there is none. From the first call on, posts answer EIO.
  std::optional<contract::Completion> FindLost() noexcept;

  // Gives back what operations hold that will never complete.
  // Precondition: the device has ended the context.
  void Abandon() noexcept;

  backend::SpinLock& lock() noexcept { return lock_; }
  // Memory of retired operations; under `lock()`.
  EndedMemory& ended() noexcept { return registrar_->ended(); }
  uint32_t context() const noexcept { return context_; }
  ContextLink<TxQueue>& link() noexcept { return link_; }
  const AddressTable* peers() const noexcept { return peers_; }

  TxQueue(const TxQueue&) = delete;
  TxQueue& operator=(const TxQueue&) = delete;
  ~TxQueue();

 private:
  // Positions between two looks at the head cell.
  static constexpr uint16_t kLookEvery = 0x2000;
  // Of as many positions. A ring is shorter than one.
  static constexpr uint32_t kBlocks = 0x10000 / kLookEvery;
  static_assert(kLookEvery > 1U << contract::kRingLog2Max);

  TxQueue() = default;

  // Room for one completion; nothing to do where it is set aside.
  template <typename Locking>
  bool TakeCredit() noexcept {
    return !counts_credit_ || credit_->TryTake<Locking>();
  }
  template <typename Locking>
  void ReturnCredit(uint32_t count = 1) noexcept {
    if (counts_credit_) {
      credit_->Return<Locking>(count);
    }
  }
  void Break() noexcept {
    broken_ = true;
    obstacles_.careful = 1;
    ring_->Close(true);
  }

  static SendFields Fields(const Operation& operation) noexcept {
    return {.opcode = static_cast<contract::Opcode>(operation.opcode),
            .op_context = operation.context,
            .header_data = operation.data,
            .peer = static_cast<uint32_t>(operation.peer),
            .flags = operation.flags,
            .match_bits = operation.key,
            .remote_offset = operation.address};
  }
  // The same of one that is posted now.
  [[gnu::always_inline]] SendFields Count(const Operation& operation) noexcept {
    signaled_ += WantsCompletion(operation) ? 1 : 0;
    return Fields(operation);
  }
  static bool WantsCompletion(const Operation& operation) noexcept {
    return (operation.flags & contract::kTxFlagCompletion) != 0;
  }
  size_t ring_bytes() const noexcept {
    return size_t{contract::kDescBytes} << ring_log2_;
  }
  bool Refill() noexcept;
  // What a full queue answers; what was posted before goes to the device.
  int RefuseFull() noexcept;
  // 0, or why no queue would take the operation.
  int Check(const Operation& operation, std::span<const Segment> local,
            std::span<const RemoteSegment> remote) const noexcept;
  // Whether the slots of an operation that was checked are free.
  bool MakeRoom(const Operation& operation, size_t segments,
                std::span<const RemoteSegment> remote) noexcept;
  // Where there is room.
  template <typename Locking>
  int Push(const Operation& operation, std::span<const Segment> local,
           std::span<const RemoteSegment> remote) noexcept;
  void PushInRing(const Operation& operation, std::span<const Segment> local,
                  std::span<const RemoteSegment> remote) noexcept;
  void PushPieces(const Operation& operation, std::span<const LocalPiece> local,
                  std::span<const RemoteSegment> remote) noexcept;
  // Makes an operation's local buffer reachable.
  Registrar::Pieces Prepare(std::span<const Segment> segments, bool receive);
  void Hold(Ticket ticket, bool silent) noexcept;
  void ReleaseTo(uint16_t queue_head) noexcept;
  // Of a failed operation: slot and position are another's by now.
  bool IsOfFormer(const contract::Completion& entry) const noexcept;
  // Entries written before what is posted at the position was.
  uint64_t WrittenBefore(uint16_t position) const noexcept {
    return written_[(position / kLookEvery + kBlocks - 1) % kBlocks];
  }
  // Of a failed operation: it had asked for a completion.
  bool WasSignaled(const contract::Completion& entry) const noexcept;
  // True for a head cell that says nothing new.
  bool IsOldCell(uint16_t cell) noexcept;
  uint16_t LimitToSilent(uint16_t cell) const noexcept;
  uint16_t LimitHead(uint16_t queue_head) const noexcept;
  const contract::TxDesc& descriptor(uint16_t position) const noexcept {
    return reinterpret_cast<const contract::TxDesc*>(
        memory_.data())[position & slot_mask_];
  }
  // `Retire` but for the credit.
  bool Finish(const contract::Completion& entry) noexcept {
    bool report = true;
    if (obstacles_.held != 0) {
      report = FinishOperation(entry);
    }
    if (static_cast<int16_t>(entry.position - entry.queue_head) >= 0)
        [[unlikely]] {
      MarkComplete(entry.position);
    }
    ReleaseTo(entry.queue_head);
    return report;
  }
  // `Retire` of an operation that failed and had asked for no completion.
  bool RetireUnasked(const contract::Completion& entry) noexcept;
  bool FinishOperation(const contract::Completion& entry) noexcept;
  void FinishSlot(uint16_t position, size_t placed_bytes) noexcept;
  void MarkComplete(uint16_t position) noexcept;
  // Uses what the head cell tells; false for nothing new.
  bool TakeHeadCell() noexcept;
  // Every so many slots, the cell before they come round to it, and the
  // completion queue before they come round to failures that nobody read.
  void LookAtCell(uint16_t old_head) noexcept;

  // -- slots given up early (tx_spill.cc)

  struct Spill {
    SpilledOperations operations;  // In flight, without slots.
    bool active = false;    // Slots may have been given up; what is released is
                            // looked at.
    bool old_head = false;  // Of the completion that is being retired.
    uint16_t crowded_to = 0;  // Where the ring ended when that was possible.
    uint16_t granted_to = 0;  // Positions that posts may use.
    uint32_t passed = 0;      // Slots released so far.
    uint32_t credits = 0;     // Taken for those beyond the ring's slots.
    DmaBuffer memory;         // Slots, then their marks.
  };

  bool spilling() const noexcept { return spill_ != nullptr && spill_->active; }
  Result<bool> CreateSpillArea(Device& device);
  void LimitRing() noexcept;
  contract::SpillMark& MarkOf(uint16_t position) const noexcept;
  bool IsGivenUp(uint16_t position) const noexcept;
  bool MakeRoomSpilling(bool moved) noexcept;
  bool GrantSlots() noexcept;
  bool TakeSpillCredit(uint32_t slots) noexcept;
  uint16_t LimitSpilling(uint16_t queue_head) const noexcept;
  void ReleaseSpilling(uint16_t queue_head) noexcept;
  void PassSlots(uint16_t from) noexcept;
  bool FinishSpilling(const contract::Completion& entry) noexcept;
  void LeaveSpilling() noexcept;
  void AbandonSpilled() noexcept;

  // Those of one with several pieces at the peer, wherever the ring ends: the
  // payload is in at most six extension slots, or each has one.
  static constexpr uint32_t kSlotsOfLongest = 16;

  // Stands in `slots_` for an operation that completed before an older one,
  // until its slot is released.
  static constexpr Ticket kComplete = kNoTicket - 1;

  // What the descriptor of a slot holds.
  struct Slot {
    Ticket ticket = kNoTicket;
    // Its completion moves data to the application, so the slot stays until
    // that is read.
    bool copies_out = false;
    bool silent = false;  // With `copies_out`: success is not reported.
  };

  backend::SpinLock lock_;
  bool broken_ = false;        // The device failed or broke its contract.
  bool counts_credit_ = true;  // Completions may outnumber those set aside.
  bool scatter_gather_ = false;
  bool more_ = false;
  bool reads_in_place_ = false;
  // What keeps completions from the shortest way; looked at as a whole.
  struct Obstacles {
    uint32_t held = 0;    // Slots whose ticket is not kNoTicket.
    uint8_t careful = 1;  // 0: neither broken nor counting credit.
    std::array<uint8_t, 3> none{};
  };
  Obstacles obstacles_;
  uint32_t copying_ = 0;    // Of these, slots that copy out. One more in both
                            // while spilling.
  uint32_t signaled_ = 0;   // Credits taken and not given back.
  uint16_t seen_cell_ = 0;  // Value of the head cell that was used.
  uint32_t slot_mask_ = 0;
  CqCredit* credit_ = nullptr;
  std::optional<SendRing> ring_;
  std::unique_ptr<Slot[]> slots_;
  std::optional<Registrar> registrar_;
  const AddressTable* peers_ = nullptr;
  // Above: posts and completions. Below: cold.
  uint32_t context_ = 0;
  ContextLink<TxQueue> link_;
  uint8_t ring_log2_ = 0;
  TxCompletions* completions_ = nullptr;
  // By block: entries of the completion queue that had been written when the
  // ring's head came there.
  std::array<uint64_t, kBlocks> written_{};
  DmaBuffer memory_;  // The ring, then its head cell.
  std::unique_ptr<Spill> spill_;
};

}  // namespace heddle::nic
