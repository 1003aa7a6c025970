// SPDX-License-Identifier: Apache-2.0
// Producer side of a transmit context's ring.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "driver/base/mmio.h"
#include "driver/dma/dma_buffer.h"
#include "driver/queue/ring_position.h"
#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle {

// What a SEND says besides its payload.
struct SendFields {
  uint64_t op_context = 0;
  uint64_t header_data = 0;  // Delivered with flag `kTxFlagHeaderData`.
  uint32_t peer = 0;         // Address-vector index.
  uint16_t rx_index = 0;     // Receive context at the peer.
  // `kTxFlagCompletion`, `kTxFlagHeaderData`, `kTxFlagFence`,
  // `kTxFlagDeliveryComplete`; the payload flags are the ring's.
  uint8_t flags = 0;
};

// Hands descriptors to one transmit context.
//
// A descriptor and its extension slots are contiguous in memory: where they
// would wrap, the end of the ring is filled with `nop` descriptors, one slot
// each. `Push*` either does all of it or changes nothing.
//
// Cost: `Push*` writes its slots and nothing else; `Publish` is one barrier
// and one posted 8-byte write, so call it once per batch. No system call,
// lock, allocation or virtual call in any member but `Create`.
//
// Thread safety: none; under its endpoint's lock.
// Ownership: borrows slots, head cell and doorbell, which outlive it. The ring
// starts with a context: destroy it with the context.
class SendRing {
 public:
  // Binds an empty ring. `head_cell` is null or an 8-byte aligned word that
  // the device keeps at the released head.
  // Errors: EINVAL unless the size is one the contract allows and the slots
  // are aligned to 4 KiB.
  static Result<SendRing> Create(std::span<contract::TxDesc> slots,
                                 const uint64_t* head_cell, Doorbell tail,
                                 Doorbell operation);

  // The payload is the descriptor's last bytes: at most `kInlineBytes`.
  // False, changing nothing, when the ring has no room. One slot.
  [[nodiscard]] bool PushInline(const SendFields& fields, const void* data,
                                uint32_t bytes) noexcept {
    if (positions_.free_slots() == 0) {
      return false;
    }
    contract::TxDesc desc = Describe(fields, bytes);
    if (bytes != 0) {
      desc.flags |= contract::kTxFlagInline;
      std::memcpy(reinterpret_cast<std::byte*>(&desc) + contract::kInlineOffset,
                  data, bytes);
    }
    Append(desc);
    return true;
  }

  // The payload is in the slots that follow: at most `kInjectBytes`.
  // False, changing nothing, when the ring has no room. One slot and one per
  // 64 bytes, and the padding before a wrap.
  [[nodiscard]] bool PushInlineExt(const SendFields& fields, const void* data,
                                   uint32_t bytes) noexcept {
    const uint32_t ext_slots =
        (bytes + contract::kDescBytes - 1) / contract::kDescBytes;
    if (!MakeContiguous(1 + ext_slots)) {
      return false;
    }
    contract::TxDesc desc = Describe(fields, bytes);
    desc.flags |= contract::kTxFlagInlineExt;
    desc.ext_slots = static_cast<uint8_t>(ext_slots);
    Append(desc);
    if (bytes != 0) {
      std::memcpy(
          static_cast<void*>(&slots_[positions_.Slot(positions_.tail())]), data,
          bytes);
    }
    positions_.Append(ext_slots);
    return true;
  }

  // The payload is `bytes` at `iova`, read by the device until the operation
  // completes. False, changing nothing, when the ring has no room. One slot.
  [[nodiscard]] bool PushBuffer(const SendFields& fields, Iova iova,
                                uint32_t bytes) noexcept {
    if (positions_.free_slots() == 0) {
      return false;
    }
    contract::TxDesc desc = Describe(fields, bytes);
    if (bytes != 0) {
      desc.segments = 1;
      desc.local_iova = ToInteger(iova);
      desc.local_length = bytes;
    }
    Append(desc);
    return true;
  }

  // Position of the descriptor pushed last.
  uint16_t last_position() const noexcept { return last_position_; }

  // Shows everything pushed to the device; nothing when that was done.
  void Publish() noexcept {
    if (positions_.published() == positions_.tail()) {
      return;
    }
    Ring(tail_doorbell_,
         uint64_t{positions_.tail()} << contract::kDoorbellTailCountLsb);
    positions_.MarkPublished();
  }

  // Frees the slots before `queue_head` of a completion of this context.
  Release ReleaseTo(uint16_t queue_head) noexcept {
    return positions_.ReleaseTo(queue_head);
  }

  // As `ReleaseTo` with the value of the head cell, which also counts
  // operations without a completion. Precondition: there is a cell.
  Release ReleaseFromCell() noexcept {
    return positions_.ReleaseTo(static_cast<uint16_t>(LoadShared(head_cell_)));
  }

  // Makes the device read address-vector entries again before it sends to
  // them. Operations pushed before are published first, so that "earlier" and
  // "later" mean what the caller sees.
  void InvalidateAddressVector() noexcept {
    Publish();
    Ring(op_doorbell_,
         uint64_t{static_cast<uint8_t>(contract::DoorbellOp::kAvInvalidate)}
             << contract::kDoorbellOpOpcodeLsb);
  }

  // All in slots. A push of n slots succeeds when 2n - 1 are free, whatever
  // the position.
  uint32_t capacity() const noexcept { return positions_.capacity(); }
  uint32_t free_slots() const noexcept { return positions_.free_slots(); }
  uint16_t head() const noexcept { return positions_.head(); }
  uint16_t tail() const noexcept { return positions_.tail(); }

 private:
  SendRing(std::span<contract::TxDesc> slots, const uint64_t* head_cell,
           Doorbell tail, Doorbell operation)
      : slots_(slots.data()),
        positions_(slots.size()),
        head_cell_(head_cell),
        tail_doorbell_(tail),
        op_doorbell_(operation) {}

  static contract::TxDesc Describe(const SendFields& fields,
                                   uint32_t bytes) noexcept {
    return {.opcode = contract::Opcode::kSend,
            .flags = fields.flags,
            .peer = fields.peer,
            .length = bytes,
            .rx_index = fields.rx_index,
            .op_context = fields.op_context,
            .header_data = fields.header_data};
  }

  void Append(contract::TxDesc& desc) noexcept {
    last_position_ = positions_.tail();
    desc.position = last_position_;
    slots_[positions_.Slot(last_position_)] = desc;
    positions_.Append(1);
  }

  // Pads until `slots` fit before the end of the ring. False, changing
  // nothing, when padding and slots together do not fit.
  bool MakeContiguous(uint32_t slots) noexcept {
    const uint32_t to_end = capacity() - positions_.Slot(positions_.tail());
    const uint32_t padding = slots <= to_end ? 0 : to_end;
    if (positions_.free_slots() < padding + slots) {
      return false;
    }
    for (uint32_t i = 0; i < padding; ++i) {
      contract::TxDesc nop{.opcode = contract::Opcode::kNop};
      Append(nop);
    }
    return true;
  }

  contract::TxDesc* slots_;
  RingPositions positions_;
  uint16_t last_position_ = 0;
  const uint64_t* head_cell_;
  Doorbell tail_doorbell_;
  // Above: every post. Below: cold.
  Doorbell op_doorbell_;
};

}  // namespace heddle
