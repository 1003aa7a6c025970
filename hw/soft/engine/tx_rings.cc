// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/tx_rings.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace heddle::soft::engine {

using contract::Statistic;
using contract::Status;

namespace {

constexpr uint8_t kNeverRefused = 0xff;

}  // namespace

TxRings::TxRings(uint32_t count, HostAccess* host)
    : host_(host), contexts_(count) {}

void TxRings::Write(uint32_t context, const contract::TxCtxCfg& cfg) {
  TxContext& tx = contexts_.Make(context);
  tx.cfg = cfg;
  tx.cfg.ring_log2 = std::clamp<uint8_t>(cfg.ring_log2, contract::kRingLog2Min,
                                         contract::kRingLog2Max);
  ++tx.generation;
  tx.alive = cfg.enable != 0;
  tx.error = tx.overrun = tx.fences = false;
  tx.tail = tx.taken = tx.head = tx.told = 0;
  tx.messages = tx.waiting = 0;
  tx.group = kNone;
  const size_t slots = tx.alive ? tx.size() : 0;
  tx.ended = std::vector<uint8_t>(slots);
  tx.messages_at = std::vector<uint32_t>(slots, kNone);
  tx.places = std::vector<WaitingPlace>(2 * slots);
  tx.spilled = std::vector<uint8_t>(slots);
  tx.spill_next = 0;
  tx.spill_refused = kNeverRefused;
}

void TxRings::Publish(uint32_t context, uint16_t tail) noexcept {
  TxContext& tx = contexts_[context];
  if (!tx.alive) {
    return;
  }
  // Slots that are not released must not be published anew.
  if (static_cast<uint16_t>(tail - tx.head) > tx.size() ||
      static_cast<uint16_t>(tail - tx.tail) > tx.size()) {
    tx.overrun = true;
    tail = static_cast<uint16_t>(tx.head + tx.size());
  }
  tx.tail = tail;
}

void TxRings::Read(const TxContext& tx, uint64_t address, Fetched* out) {
  const RingSlot slot = {out->position, tx.Index(out->position), tx.size()};
  if (!host_->ReadStruct(address, &out->descriptor)) {
    out->descriptor = {};
    out->status = Status::kLocalAccess;
    out->slots = 1;
    return;
  }
  const DescriptorVerdict verdict = CheckDescriptor(out->descriptor, slot);
  out->status = verdict.status;
  out->slots = verdict.slots;
  if (verdict.status == Status::kBadPosition) {
    out->descriptor = {};
  } else if (verdict.status == Status::kOk && verdict.slots > 1) {
    out->status = ReadExtension(address + contract::kDescBytes, out);
  }
}

Status TxRings::ReadExtension(uint64_t address, Fetched* out) {
  const std::span<uint8_t> bytes(
      out->extension.data(), (out->slots - 1U) * size_t{contract::kDescBytes});
  if (!host_->Read(address, bytes)) {
    return Status::kLocalAccess;
  }
  return !HasSegmentSlot(out->descriptor) ||
                 CheckSegments(out->descriptor, SegmentsOf(out->extension))
             ? Status::kOk
             : Status::kBadLength;
}

bool TxRings::Peek(uint32_t context, Fetched* out) {
  TxContext& tx = contexts_[context];
  if (tx.taken == tx.tail) {
    return false;
  }
  out->position = tx.taken;
  Read(tx, AddressOf(tx, tx.Index(tx.taken)), out);
  if (out->slots > static_cast<uint16_t>(tx.tail - tx.taken)) {
    return false;
  }
  if (tx.error) {
    out->status = Status::kFlushed;
  } else if (tx.overrun) {
    out->status = Status::kBadPosition;
    out->descriptor = {};
  }
  return true;
}

void TxRings::Release(uint32_t context, uint16_t position,
                      uint8_t slots) noexcept {
  TxContext& tx = contexts_[context];
  if (slots == 0) {
    return;
  }
  if (position != tx.head) {
    tx.ended[tx.Index(position)] = slots;
    return;
  }
  while (slots != 0) {
    tx.head = static_cast<uint16_t>(tx.head + slots);
    slots = std::exchange(tx.ended[tx.Index(tx.head)], uint8_t{0});
  }
}

void TxRings::TellIfDue(uint32_t context) {
  TxContext& tx = contexts_[context];
  const auto untold = static_cast<uint16_t>(tx.head - tx.told);
  const bool last = tx.messages == 0 && tx.waiting == 0;
  if (untold != 0 && (last || untold > (tx.size() - 1U) >> 2U)) {
    host_->Store(tx.cfg.head_cell, Tell(context));
  }
}

uint64_t TxRings::AddressOf(const TxContext& tx,
                            uint32_t place) const noexcept {
  return place < tx.size()
             ? tx.cfg.ring_base + uint64_t{place} * contract::kDescBytes
             : tx.cfg.spill_base +
                   uint64_t{place - tx.size()} * contract::kDescBytes;
}

void TxRings::Wait(Peers* peers, uint32_t peer,
                   const Fetched& fetched) noexcept {
  Peer& node = (*peers)[peer];
  TxContext& tx = contexts_[node.context];
  const uint32_t place = tx.Index(fetched.position);
  tx.places[place] = {kNone,         node.waiting_last, peer,
                      fetched.group, fetched.position,  fetched.slots};
  (node.waiting() ? tx.places[node.waiting_last].next : node.waiting_first) =
      place;
  node.waiting_last = place;
  ++tx.waiting;
}

void TxRings::PeekWaiting(const Peer& peer, Fetched* out) {
  TxContext& tx = contexts_[peer.context];
  const WaitingPlace& place = tx.places[peer.waiting_first];
  out->position = place.position;
  out->group = place.group;
  Read(tx, AddressOf(tx, peer.waiting_first), out);
  if (out->status == Status::kOk && out->slots != place.slots) {
    out->status = Status::kBadLength;  // Changed while it waited.
  }
  out->slots = peer.waiting_first < tx.size() ? place.slots : uint8_t{0};
}

void TxRings::LeaveWaiting(Peer* peer) noexcept {
  TxContext& tx = contexts_[peer->context];
  const uint32_t at = peer->waiting_first;
  WaitingPlace& place = tx.places[at];
  if (at >= tx.size()) {
    std::fill_n(tx.spilled.begin() + (at - tx.size()), place.slots, uint8_t{0});
    tx.spill_refused = kNeverRefused;
  }
  peer->waiting_first = place.next;
  (place.next == kNone ? peer->waiting_last : tx.places[place.next].previous) =
      kNone;
  place = {};
  --tx.waiting;
}

uint32_t TxRings::FindSpillRoom(TxContext& tx, uint8_t slots) {
  if (slots >= tx.spill_refused) {
    return kNone;
  }
  uint32_t first = tx.spill_next;
  uint32_t found = 0;
  for (uint32_t left = tx.size() + slots; left != 0 && found != slots; --left) {
    if (first + found == tx.size()) {
      first = found = 0;
    }
    if (tx.spilled[first + found] == 0) {
      ++found;
    } else {
      first += found + 1;
      found = 0;
    }
  }
  if (found != slots) {
    tx.spill_refused = slots;
    return kNone;
  }
  tx.spill_next = (first + slots) % tx.size();
  return first;
}

bool TxRings::SpillWaiting(uint32_t context, Peers* peers) {
  TxContext& tx = contexts_[context];
  const uint32_t from = tx.Index(tx.head);
  const WaitingPlace place = tx.places[from];
  if (place.slots == 0 || place.position != tx.head) {
    return false;
  }
  const uint32_t room = FindSpillRoom(tx, place.slots);
  if (room == kNone) {
    return false;
  }
  const uint32_t to = tx.size() + room;
  std::array<uint8_t, size_t{4} * contract::kDescBytes> copy;
  const std::span<uint8_t> bytes(copy.data(),
                                 size_t{place.slots} * contract::kDescBytes);
  if (!host_->Read(AddressOf(tx, from), bytes) ||
      !host_->Write(AddressOf(tx, to), bytes) ||
      !GiveUpOldest(context, place.slots)) {
    return false;
  }
  std::fill_n(tx.spilled.begin() + room, place.slots, uint8_t{1});
  tx.places[to] = place;
  tx.places[from] = {};
  Peer& peer = (*peers)[place.peer];
  (place.previous == kNone ? peer.waiting_first
                           : tx.places[place.previous].next) = to;
  (place.next == kNone ? peer.waiting_last : tx.places[place.next].previous) =
      to;
  return true;
}

bool TxRings::GiveUpOldest(uint32_t context, uint8_t slots) {
  TxContext& tx = contexts_[context];
  const contract::SpillMark mark = {.position = tx.head, .given = 1};
  const uint64_t marks =
      tx.cfg.spill_base + uint64_t{tx.size()} * contract::kDescBytes;
  if (!host_->Write(marks + uint64_t{tx.Index(tx.head)} * sizeof(mark),
                    {reinterpret_cast<const uint8_t*>(&mark), sizeof(mark)})) {
    return false;
  }
  Release(context, tx.head, slots);
  // An operation of several slots may wait for fewer than make a quarter.
  host_->Store(tx.cfg.head_cell, Tell(context));
  return true;
}

}  // namespace heddle::soft::engine
