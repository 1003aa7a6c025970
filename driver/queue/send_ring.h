// SPDX-License-Identifier: Apache-2.0
// Producer side of a transmit context's ring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "driver/base/mmio.h"
#include "driver/dma/dma_buffer.h"
#include "driver/dma/registrar.h"
#include "driver/queue/push_window.h"
#include "driver/queue/ring_position.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// Fields of an operation besides its local buffer.
struct SendFields {
  contract::Opcode opcode = contract::Opcode::kSend;
  uint64_t op_context = 0;
  uint64_t header_data = 0;  // Delivered with flag `kTxFlagHeaderData`.
  uint32_t peer = 0;         // Address-vector index.
  uint16_t rx_index = 0;     // Receive context at the peer.
  // `kTxFlagCompletion`, `kTxFlagHeaderData`, `kTxFlagFence`,
  // `kTxFlagDeliveryComplete`, `kTxFlagMore`; the payload flags are the ring's.
  uint8_t flags = 0;
  uint64_t match_bits = 0;     // Memory key, of RMA.
  uint64_t remote_offset = 0;  // Remote address, of RMA.
};

// Posts descriptors to one transmit context.
//
// A descriptor and its extension slots are contiguous in memory: where they
// would wrap, the end of the ring is filled with `nop` descriptors, one slot
// each. `Push*` either succeeds as a whole or has no effect.
//
// Cost: `Push*` writes only its slots; `Publish` is one barrier and one posted
// 8-byte write, so call it once per batch. Where the device has a push window,
// an operation published alone on an idle ring is copied there first, one
// 64-byte store per slot: it need not be fetched (ADR 0007). No system call,
// lock, allocation or virtual call in any member but `Create`.
//
// Thread safety: none; under its endpoint's lock.
// Ownership: borrows slots, head cell and doorbell, which outlive it. The ring
// starts with a context: destroy it with the context.
class SendRing {
 public:
  // Binds an empty ring. `head_cell` is null or an 8-byte aligned word that the
  // device keeps equal to the released head; slots may be copied to `push`.
  // Errors: EINVAL unless the size is one the contract allows and the slots
  // are aligned to 4 KiB.
  static Result<SendRing> Create(std::span<contract::TxDesc> slots,
                                 const uint64_t* head_cell, Doorbell tail,
                                 const PushTarget& push = {});

  // `Push*`: false, changing nothing, when the ring has no room. `Send*`: the
  // same and `Publish`, for a ring that is open, which they do not look at;
  // with `kDirect` for one that is `direct`, too, and then they call nothing.

  // The payload is the descriptor's last bytes: at most `kInlineBytes`, and for
  // `SendInline` at least `kSendInlineMin`. One slot.
  [[nodiscard]] bool PushInline(const SendFields& fields, const void* data,
                                uint32_t bytes) noexcept {
    if (positions_.full()) {
      return false;
    }
    contract::TxDesc& slot = NextSlot();
    Describe(slot, last_position_, fields, bytes,
             {.flags = bytes != 0 ? contract::kTxFlagInline : uint8_t{0}});
    StoreInline(slot, LoadAny(data, bytes));
    positions_.Append(1);
    return true;
  }
  static constexpr uint32_t kSendInlineMin = 8;
  template <bool kDirect = false>
  [[gnu::always_inline]] void SendInline(const SendFields& fields,
                                         const void* data,
                                         size_t bytes) noexcept {
    const uint32_t position = positions_.count();
    contract::TxDesc& slot = slots_[positions_.Slot(position)];
    Describe(slot, position, fields, static_cast<uint32_t>(bytes),
             {.flags = contract::kTxFlagInline});
    StoreEnds(slot, static_cast<const std::byte*>(data), bytes);
    PublishOne<kDirect>(position, 1);
  }

  // The payload is in the slots that follow: at most `kInjectBytes`, and for
  // `SendInlineExt` more than `kInlineBytes`. One slot and one per 64 bytes,
  // and the padding before a wrap.
  [[nodiscard]] bool PushInlineExt(const SendFields& fields, const void* data,
                                   uint32_t bytes) noexcept {
    const uint32_t ext_slots = ExtSlots(bytes);
    if (!MakeContiguous(1 + ext_slots)) {
      return false;
    }
    contract::TxDesc& slot = NextSlot();
    Describe(slot, last_position_, fields, bytes,
             {.flags = contract::kTxFlagInlineExt, .ext_slots = ext_slots});
    StoreBuffer(slot, Iova{}, 0);
    if (bytes != 0) {
      std::memcpy(static_cast<void*>(&slot + 1), data, bytes);
    }
    positions_.Append(1 + ext_slots);
    return true;
  }
  // Precondition: `OpenForInlineExt`.
  template <bool kDirect = false>
  [[gnu::always_inline]] void SendInlineExt(const SendFields& fields,
                                            const void* data,
                                            size_t bytes) noexcept {
    const uint32_t position = positions_.count();
    // As `OpenForInlineExt` counts, so that it is counted once.
    contract::TxDesc* const slot =
        &slots_[SlotOfLongest(position)] - kMaxExtSlots;
    const auto length = static_cast<uint32_t>(bytes);
    const uint32_t ext_slots = ExtSlots(length);
    Describe(*slot, position, fields, length,
             {.flags = contract::kTxFlagInlineExt, .ext_slots = ext_slots});
    StoreBuffer(*slot, Iova{}, 0);
    CopyMedium(reinterpret_cast<std::byte*>(slot + 1),
               static_cast<const std::byte*>(data), bytes);
    PublishOne<kDirect>(position, 1 + ext_slots);
  }

  // The local buffer is the `bytes` of all pieces, in order: at most
  // `kLocalSegments`, none empty; the device's until the operation completes.
  // One slot; two for more than one piece, and the padding before a wrap.
  [[nodiscard]] bool PushPieces(const SendFields& fields,
                                std::span<const LocalPiece> pieces,
                                uint32_t bytes) noexcept {
    if (pieces.size() <= 1) {
      return PushBuffer(fields, pieces.empty() ? Iova{} : pieces[0].iova,
                        bytes);
    }
    if (!MakeContiguous(2)) {
      return false;
    }
    contract::TxDesc& slot = NextSlot();
    Describe(slot, last_position_, fields, bytes,
             {.ext_slots = 1, .segments = static_cast<uint8_t>(pieces.size())});
    StoreBuffer(slot, Iova{}, 0);
    std::array<contract::TxSegment, contract::kLocalSegments> segments = {};
    for (size_t i = 0; i < pieces.size(); ++i) {
      segments[i] = {.iova = ToInteger(pieces[i].iova),
                     .length = pieces[i].bytes};
    }
    static_assert(sizeof(segments) == contract::kDescBytes);
    std::memcpy(static_cast<void*>(&slot + 1), segments.data(),
                sizeof(segments));
    positions_.Append(2);
    return true;
  }
  // The buffer is one piece, which may be empty.
  [[nodiscard]] bool PushBuffer(const SendFields& fields, Iova iova,
                                uint32_t bytes) noexcept {
    if (positions_.full()) {
      return false;
    }
    contract::TxDesc& slot = NextSlot();
    Describe(slot, last_position_, fields, bytes,
             {.segments = static_cast<uint8_t>(bytes != 0 ? 1 : 0)});
    StoreBuffer(slot, bytes != 0 ? iova : Iova{}, bytes);
    positions_.Append(1);
    return true;
  }
  // The buffer is one piece, which is not empty.
  template <bool kDirect = false>
  [[gnu::always_inline]] void SendBuffer(const SendFields& fields, Iova iova,
                                         size_t bytes) noexcept {
    const uint32_t position = positions_.count();
    contract::TxDesc& slot = slots_[positions_.Slot(position)];
    Describe(slot, position, fields, static_cast<uint32_t>(bytes),
             {.segments = 1});
    StoreBuffer(slot, iova, bytes);
    PublishOne<kDirect>(position, 1);
  }

  // Whether an operation of so many slots can be pushed.
  bool Fits(uint32_t slots) const noexcept {
    return positions_.free_slots() >= PaddingFor(slots) + slots;
  }
  // Slots of an operation with its payload in the ring.
  static uint32_t SlotsInRing(size_t bytes) noexcept {
    return 1 + (bytes <= contract::kInlineBytes
                    ? 0
                    : ExtSlots(static_cast<uint32_t>(bytes)));
  }

  // Uses up `slots` slots. Precondition: they are free.
  void Pad(uint32_t slots) noexcept {
    for (uint32_t i = 0; i < slots; ++i) {
      contract::TxDesc& slot = NextSlot();
      slot = {.opcode = contract::Opcode::kNop, .position = last_position_};
      positions_.Append(1);
    }
  }

  // Fewer slots than the ring has may be in use. Precondition: not more are.
  void SetLimit(uint32_t slots) noexcept { positions_.SetLimit(slots); }

  // Position of the descriptor pushed last.
  uint16_t last_position() const noexcept { return last_position_; }

  // Publishes all pushed slots to the device; does nothing without new ones.
  void Publish() noexcept;

  // Frees the slots before `queue_head` of a completion of this context.
  Release ReleaseTo(uint16_t queue_head) noexcept {
    return positions_.ReleaseTo(queue_head);
  }

  // As `RingPositions::TryReleaseTo`.
  [[nodiscard]] bool TryReleaseTo(uint16_t queue_head) noexcept {
    return positions_.TryReleaseTo(queue_head);
  }

  // The head cell, a value for `ReleaseTo` that also counts operations without
  // a completion. Precondition: there is a cell.
  uint16_t head_cell() const noexcept {
    return static_cast<uint16_t>(LoadShared(head_cell_));
  }
  // Frees the slots before it. A value counts once: the device does not store
  // what completions report, so it may be older than 2^16 slots. Precondition:
  // since the last call no more than `capacity()` slots were released.
  Release ReleaseFromCell() noexcept {
    const uint16_t cell = head_cell();
    return std::exchange(seen_cell_, cell) == cell ? Release::kStale
                                                   : ReleaseTo(cell);
  }

  // All in slots. A push of n slots succeeds when 2n - 1 are free, whatever
  // the position.
  uint32_t capacity() const noexcept { return positions_.capacity(); }
  uint32_t free_slots() const noexcept { return positions_.free_slots(); }
  bool full() const noexcept { return positions_.full(); }
  // There is a free slot and nothing waits for its doorbell; false while
  // `Close` holds.
  bool open() const noexcept { return positions_.open(); }
  // As many as the longest operation with payload in slots has, which goes to
  // the tail without padding: a little early, whatever its length.
  bool OpenForInlineExt() const noexcept {
    return positions_.open(kMaxExtSlots) &&
           SlotOfLongest(positions_.count()) >= kMaxExtSlots;
  }
  void Close(bool closed) noexcept { positions_.Close(closed); }
  // To publish is to store to the doorbell, and no more.
  bool direct() const noexcept { return direct_; }
  uint16_t head() const noexcept { return positions_.head(); }
  uint16_t tail() const noexcept { return positions_.tail(); }

 private:
  SendRing(std::span<contract::TxDesc> slots, const uint64_t* head_cell,
           Doorbell tail, const PushTarget& push)
      : slots_(slots.data()),
        positions_(slots.size()),
        tail_doorbell_(tail),
        head_cell_(head_cell),
        push_(push) {
    direct_ = tail.notify == nullptr && !push_.open();
  }

  // Publishes the operation of `slots` slots that was just written at the tail.
  template <bool kDirect>
  [[gnu::always_inline]] void PublishOne(uint32_t position,
                                         uint32_t slots) noexcept {
    if (!kDirect && !direct_) {
      PublishByCall(slots);
      return;
    }
    positions_.AppendPublished(position, slots);
    RingMapped(tail_doorbell_, TailCount(position + slots));
  }
  void PublishByCall(uint32_t slots) noexcept;

  // Copies the operation pushed last to the window.
  void CopyLast() const noexcept;

  // The slot at the tail, which is the last position from now on.
  contract::TxDesc& NextSlot() noexcept {
    last_position_ = positions_.tail();
    return slots_[positions_.Slot(last_position_)];
  }

  // Place of a descriptor's payload.
  struct PayloadPlace {
    uint8_t flags = 0;
    uint32_t ext_slots = 0;
    uint8_t segments = 0;
  };

  // Writes all of a slot but its last bytes, in place: a descriptor made
  // elsewhere and copied costs twice the stores.
  [[gnu::always_inline]] static void Describe(contract::TxDesc& slot,
                                              uint32_t position,
                                              const SendFields& fields,
                                              uint32_t bytes,
                                              PayloadPlace place) noexcept {
    // By itself: a word of two constants costs a register.
    __atomic_store_n(reinterpret_cast<uint8_t*>(&slot.opcode),
                     static_cast<uint8_t>(fields.opcode), __ATOMIC_RELAXED);
    slot.flags = static_cast<uint8_t>(fields.flags | place.flags);
    slot.position = static_cast<uint16_t>(position);
    slot.peer = fields.peer;
    slot.length = bytes;
    // As one word: the three stores cost more.
    const uint32_t places = fields.rx_index | place.ext_slots << 16 |
                            uint32_t{place.segments} << 24;
    static_assert(offsetof(contract::TxDesc, ext_slots) ==
                      offsetof(contract::TxDesc, rx_index) + 2 &&
                  offsetof(contract::TxDesc, segments) ==
                      offsetof(contract::TxDesc, rx_index) + 3);
    std::memcpy(&slot.rx_index, &places, sizeof places);
    slot.op_context = fields.op_context;
    slot.header_data = fields.header_data;
    slot.match_bits = fields.match_bits;
    slot.remote_offset = fields.remote_offset;
  }

  // The last bytes of a slot, where its payload is elsewhere: at most
  // `kMaxMessageBytes`.
  static void StoreBuffer(contract::TxDesc& slot, Iova iova,
                          uint64_t bytes) noexcept {
    slot.local_iova = ToInteger(iova);
    // One store for the length and the reserved word after it.
    std::memcpy(&slot.local_length, &bytes, sizeof bytes);
    static_assert(offsetof(contract::TxDesc, rsvd0) ==
                  offsetof(contract::TxDesc, local_length) + 4);
  }

  static constexpr uint32_t kMaxExtSlots =
      contract::kInjectBytes / contract::kDescBytes;
  // The last slot of the longest such operation at `position`.
  uint32_t SlotOfLongest(uint32_t position) const noexcept {
    return (position + kMaxExtSlots) & (positions_.capacity() - 1);
  }
  static uint32_t ExtSlots(uint32_t bytes) noexcept {
    return (bytes + contract::kDescBytes - 1) / contract::kDescBytes;
  }

  // More than `kInlineBytes` and at most `kInjectBytes`, in pieces of fixed
  // sizes, the last two of which may overlap: a call of memcpy costs more than
  // the copy.
  [[gnu::always_inline]] static void CopyMedium(std::byte* to,
                                                const std::byte* from,
                                                size_t bytes) noexcept {
    if (bytes > 32 && bytes <= 64) [[likely]] {
      CopyEnds<32>(to, from, bytes);
    } else if (bytes <= 32) {
      CopyEnds<16>(to, from, bytes);
    } else if (bytes <= 128) {
      CopyEnds<64>(to, from, bytes);
    } else {
      CopyFixed<64>(to, from);
      CopyEnds<64>(to + 64, from + 64, bytes - 64);
    }
  }
  template <size_t kBytes>
  [[gnu::always_inline]] static void CopyEnds(std::byte* to,
                                              const std::byte* from,
                                              size_t bytes) noexcept {
    CopyFixed<kBytes>(to, from);
    CopyFixed<kBytes>(to + bytes - kBytes, from + bytes - kBytes);
  }
  // By pieces of a register: one of all becomes a string instruction.
  template <size_t kBytes>
  [[gnu::always_inline]] static void CopyFixed(std::byte* to,
                                               const std::byte* from) noexcept {
    std::memcpy(to, from, 16);
    if constexpr (kBytes > 16) {
      CopyFixed<kBytes - 16>(to + 16, from + 16);
    }
  }

  // At most `kInlineBytes` of payload, then zeros. Two words, not an array,
  // which would be put together in memory first.
  struct InlineWords {
    uint64_t first = 0;
    uint64_t second = 0;
  };
  static_assert(sizeof(InlineWords) == contract::kInlineBytes);

  [[gnu::always_inline]] static void StoreInline(
      contract::TxDesc& slot, const InlineWords& words) noexcept {
    auto* const to =
        reinterpret_cast<std::byte*>(&slot) + contract::kInlineOffset;
    std::memcpy(to, &words.first, sizeof(words.first));
    std::memcpy(to + sizeof(words.first), &words.second, sizeof(words.second));
  }

  // The same of 8 bytes at least: the first and the last, which may overlap.
  [[gnu::always_inline]] static void StoreEnds(contract::TxDesc& slot,
                                               const std::byte* from,
                                               size_t bytes) noexcept {
    auto* const to =
        reinterpret_cast<std::byte*>(&slot) + contract::kInlineOffset;
    constexpr uint64_t kNone = 0;
    std::memcpy(to + 8, &kNone, 8);
    std::memcpy(to, from, 8);
    std::memcpy(to + bytes - 8, from + bytes - 8, 8);
  }
  [[gnu::always_inline]] static InlineWords LoadAny(const void* data,
                                                    uint32_t bytes) noexcept {
    InlineWords words;
    if (bytes >= sizeof(words.first)) {
      std::memcpy(&words, data, bytes);
    } else if (bytes != 0) {
      words.first = LoadFew(static_cast<const std::byte*>(data), bytes);
    }
    return words;
  }

  // 1 to 7 bytes as the low ones of a word.
  static uint64_t LoadFew(const std::byte* from, uint32_t bytes) noexcept {
    if (bytes >= 4) {
      uint32_t first = 0;
      uint32_t last = 0;  // May overlap `first`, with the same bits.
      std::memcpy(&first, from, 4);
      std::memcpy(&last, from + bytes - 4, 4);
      return first | uint64_t{last} << (8 * (bytes - 4));
    }
    const uint32_t middle = bytes / 2;
    return std::to_integer<uint64_t>(from[0]) |
           std::to_integer<uint64_t>(from[middle]) << (8 * middle) |
           std::to_integer<uint64_t>(from[bytes - 1]) << (8 * (bytes - 1));
  }

  // One operation waits for its doorbell, and all before it were released: the
  // device is idle, as far as this context goes. A backlog is better fetched
  // eight at a time.
  bool IsAlone() const noexcept {
    const uint16_t published = positions_.published();
    return last_position_ == published &&
           (positions_.head() == published ||
            (head_cell_ != nullptr &&
             static_cast<uint16_t>(LoadShared(head_cell_)) == published));
  }

  uint32_t PaddingFor(uint32_t slots) const noexcept {
    const uint32_t to_end = capacity() - positions_.Slot(positions_.tail());
    return slots <= to_end ? 0 : to_end;
  }
  // Pads until `slots` fit before the end of the ring. False, changing
  // nothing, when padding and slots together do not fit.
  bool MakeContiguous(uint32_t slots) noexcept {
    const bool fits = Fits(slots);
    Pad(fits ? PaddingFor(slots) : 0);
    return fits;
  }

  contract::TxDesc* slots_;
  RingPositions positions_;
  uint16_t last_position_ = 0;
  uint16_t seen_cell_ = 0;  // By `ReleaseFromCell`.
  bool direct_;
  Doorbell tail_doorbell_;
  const uint64_t* head_cell_;
  PushPort push_;
};

}  // namespace heddle
