// SPDX-License-Identifier: Apache-2.0
// Transmit slots that the device gives up early (contract, `spill_base`).
//
// It does so only while three quarters of the ring are in use. Below that the
// rest of `TxQueue` holds: what the head passed has ended. `ring_` is limited
// to less, so a post that needs more gets here, and from then on each slot that
// is released is looked at, until no operation is left without slots and the
// ring has come past those that were in use then.
#include <algorithm>
#include <span>
#include <utility>

#include "host/lib/nic/tx_queue.h"

namespace heddle::nic {
namespace {

// What counts as three quarters to the device.
constexpr uint32_t CrowdedSlots(uint32_t capacity) noexcept {
  return capacity - capacity / 4;
}

// Looked at in one call for a place in the ring.
constexpr uint32_t kGrantedAtOnce = 64;

// A completion whose operation lost its slots fewer slots ago says where the
// ring is; later, positions may have wrapped meanwhile.
constexpr uint32_t kRecent = 0x4000;

}  // namespace

Result<bool> TxQueue::CreateSpillArea(Device& device) {
  const size_t slots = slot_mask_ + size_t{1};
  auto memory = DmaBuffer::Create(
      device, slots * (contract::kDescBytes + sizeof(contract::SpillMark)));
  if (!memory.ok()) {
    return memory.error();
  }
  spill_ = std::make_unique<Spill>();
  spill_->memory = std::move(memory.value());
  return true;
}

void TxQueue::LimitRing() noexcept {
  if (spill_ != nullptr) {
    ring_->SetLimit(CrowdedSlots(ring_->capacity()) - 1);
  }
}

contract::SpillMark& TxQueue::MarkOf(uint16_t position) const noexcept {
  return reinterpret_cast<contract::SpillMark*>(
      spill_->memory.data() + ring_bytes())[position & slot_mask_];
}

bool TxQueue::IsGivenUp(uint16_t position) const noexcept {
  const contract::SpillMark& mark = MarkOf(position);
  return mark.given != 0 && mark.position == position;
}

bool TxQueue::MakeRoomSpilling(bool moved) noexcept {
  if (spilling() && completions_ != nullptr) {
    // The application need not read them.
    completions_->DrainSilent(this);
    moved = moved || !spilling();
  }
  if (!spilling()) {
    if (moved) {
      return true;
    }
    if (!spill_->operations.Reserve(size_t{slot_mask_} + 1 +
                                    contract::kMessageShare)) {
      return false;
    }
    // Those of operations that ended meanwhile may have come late.
    std::fill_n(&MarkOf(0), size_t{slot_mask_} + 1, contract::SpillMark{});
    spill_->active = true;
    spill_->crowded_to = ring_->head();
    spill_->granted_to = ring_->tail();
    // So that completions and released slots are looked at.
    ++obstacles_.held;
    ++copying_;
  }
  return GrantSlots();
}

// Extends the part of the ring that posts may use. A position names one
// operation, so that of one in flight is not used for another: padding takes
// it.
bool TxQueue::GrantSlots() noexcept {
  Spill& spill = *spill_;
  const uint16_t head = ring_->head();
  const uint16_t before = spill.granted_to;
  for (;;) {
    const uint32_t granted = SlotDistance(ring_->tail(), spill.granted_to);
    const uint32_t used = SlotDistance(head, spill.granted_to);
    if (granted >= kGrantedAtOnce || used == ring_->capacity() ||
        !TakeSpillCredit(used + 1)) {
      break;
    }
    const bool taken = spill.operations.Find(spill.granted_to) != nullptr;
    if (taken && granted >= kSlotsOfLongest) {
      break;
    }
    ++spill.granted_to;
    ring_->SetLimit(SlotDistance(head, spill.granted_to));
    if (taken) {
      ring_->Pad(granted + 1);
    }
  }
  return spill.granted_to != before && ring_->free_slots() != 0;
}

// Each operation has an entry of the completion queue until that is read, as
// long as `slots` are enough for those in the ring.
bool TxQueue::TakeSpillCredit(uint32_t slots) noexcept {
  Spill& spill = *spill_;
  const uint32_t entries = spill.operations.size() + slots;
  if (entries <= ring_->capacity() + spill.credits) {
    return true;
  }
  if (!credit_->TryTakeSpare(kGrantedAtOnce)) {
    return false;
  }
  spill.credits += kGrantedAtOnce;
  return true;
}

// As `LimitToSilent`, but for what was given up or is known to be complete.
uint16_t TxQueue::LimitSpilling(uint16_t queue_head) const noexcept {
  const uint16_t head = ring_->head();
  const uint16_t ahead = SlotDistance(head, queue_head);
  if (ahead > SlotDistance(head, ring_->tail())) {
    return queue_head;  // Old, or wrong: the ring tells.
  }
  for (uint16_t at = head; SlotDistance(head, at) < ahead;) {
    const contract::TxDesc& desc = descriptor(at);
    if ((desc.flags & contract::kTxFlagCompletion) != 0 &&
        desc.opcode != contract::Opcode::kNop &&
        slots_[at & slot_mask_].ticket != kComplete && !IsGivenUp(at)) {
      return at;
    }
    at = static_cast<uint16_t>(at + 1 + desc.ext_slots);
  }
  return queue_head;
}

void TxQueue::ReleaseSpilling(uint16_t queue_head) noexcept {
  Spill& spill = *spill_;
  const uint16_t head = ring_->head();
  if (SlotDistance(head, ring_->tail()) >= CrowdedSlots(ring_->capacity())) {
    spill.crowded_to = ring_->tail();
  }
  if (!std::exchange(spill.old_head, false)) {
    if (ring_->ReleaseTo(LimitSpilling(queue_head)) == Release::kBogus) {
      Break();
      return;
    }
    LookAtCell(head);
    PassSlots(head);
    ring_->SetLimit(SlotDistance(ring_->head(), spill.granted_to));
  }
  LeaveSpilling();
}

// What was released since `from` has ended, or is kept.
void TxQueue::PassSlots(uint16_t from) noexcept {
  Spill& spill = *spill_;
  const uint16_t to = ring_->head();
  spill.passed += SlotDistance(from, to);
  for (uint16_t at = from; SlotDistance(at, to) - 1U < 0x8000;) {
    const contract::TxDesc& desc = descriptor(at);
    Slot& slot = slots_[at & slot_mask_];
    // The last descriptor of an operation stands for it.
    const bool keep = IsGivenUp(at) && slot.ticket != kComplete &&
                      desc.opcode != contract::Opcode::kNop &&
                      (desc.flags & contract::kTxFlagMore) == 0;
    MarkOf(at) = {};
    if (keep) {
      const SpilledOperation kept = {
          .op_context = desc.op_context,
          .peer = desc.peer,
          .length = desc.length,
          .written_before = WrittenBefore(at),
          .passed = spill.passed,
          .position = at,
          .ticket = slot.ticket,
          .opcode = desc.opcode,
          .signaled = (desc.flags & contract::kTxFlagCompletion) != 0,
          .silent = slot.silent};
      if (!spill.operations.Add(kept)) {
        Break();  // There is room for all that a device may have.
      }
      obstacles_.held -= slot.ticket != kNoTicket ? 1 : 0;
      copying_ -= slot.copies_out ? 1 : 0;
      slot = {};
    } else {
      FinishSlot(at, 0);
    }
    at = static_cast<uint16_t>(at + 1 + desc.ext_slots);
  }
}

bool TxQueue::FinishSpilling(const contract::Completion& entry) noexcept {
  Spill& spill = *spill_;
  // What succeeds has placed all that was asked for.
  const size_t placed = entry.status == contract::Status::kOk ? SIZE_MAX : 0;
  if (const SpilledOperation* kept = spill.operations.Find(entry.position)) {
    const bool report = !kept->silent;
    const uint16_t head = ring_->head();
    spill.old_head = spill.passed - kept->passed >= kRecent ||
                     SlotDistance(head, entry.queue_head) >
                         SlotDistance(head, ring_->tail());
    registrar_->FinishReceive(kept->ticket, placed);
    spill.operations.Remove(entry.position);
    return report;
  }
  const uint16_t head = ring_->head();
  if (SlotDistance(head, entry.position) >= SlotDistance(head, ring_->tail()) ||
      descriptor(entry.position).op_context != entry.op_context) {
    // One that asked for no completion failed; its slot is gone.
    spill.old_head = true;
    return true;
  }
  Slot& slot = slots_[entry.position & slot_mask_];
  const bool report = !slot.silent;
  FinishSlot(entry.position, placed);
  slot.ticket = kComplete;
  ++obstacles_.held;
  return report;
}

void TxQueue::RetireSilent(const contract::Completion& entry) noexcept {
  if (spilling()) {
    (void)FinishSpilling(entry);
    ReleaseTo(entry.queue_head);
  }
}

void TxQueue::LeaveSpilling() noexcept {
  Spill& spill = *spill_;
  const uint16_t head = ring_->head();
  const uint32_t used = SlotDistance(head, ring_->tail());
  // Slots up to `crowded_to` may have been given up.
  const uint32_t doubtful = SlotDistance(head, spill.crowded_to);
  if (spill.operations.empty() && used < CrowdedSlots(ring_->capacity()) &&
      (doubtful == 0 || doubtful > used)) {
    spill.active = false;
    --obstacles_.held;
    --copying_;
    credit_->Return<backend::Locked>(std::exchange(spill.credits, 0));
    LimitRing();
  }
}

void TxQueue::AbandonSpilled() noexcept {
  Spill& spill = *spill_;
  while (const SpilledOperation* kept = spill.operations.oldest()) {
    registrar_->FinishReceive(kept->ticket, 0);
    spill.operations.Remove(kept->position);
  }
  if (std::exchange(spill.active, false)) {
    --obstacles_.held;
    --copying_;
    credit_->Return<backend::Locked>(std::exchange(spill.credits, 0));
  }
}

}  // namespace heddle::nic
