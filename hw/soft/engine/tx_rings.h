// SPDX-License-Identifier: Apache-2.0
// Transmit rings: descriptors taken in order, slots released in order.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/split_number.h"
#include "hw/soft/engine/descriptor.h"
#include "hw/soft/engine/host_access.h"
#include "hw/soft/engine/lazy_table.h"
#include "hw/soft/engine/peers.h"

namespace heddle::soft::engine {

// A descriptor taken from its ring, with what was found wrong with it.
struct Fetched {
  contract::TxDesc descriptor;
  Extension extension = {};  // What its extension slots hold.
  contract::Status status = contract::Status::kOk;
  uint16_t position = 0;
  uint8_t slots = 1;  // To be released when it has ended.
  uint32_t group = kNone;
};

// A descriptor that waits for its peer. Its place is a slot of the ring, or
// behind these one of the spill area, which is as long as the ring.
struct WaitingPlace {
  uint32_t next = kNone;  // Place, for the same peer.
  uint32_t previous = kNone;
  uint32_t peer = kNone;
  uint32_t group = kNone;
  uint16_t position = 0;
  uint8_t slots = 0;  // 0: none waits here.
};

struct TxContext {
  contract::TxCtxCfg cfg;
  uint32_t generation = 0;
  bool alive = false;
  bool error = false;    // Later descriptors leave as flushed.
  bool overrun = false;  // The tail ran ahead of the ring.
  bool fences = false;   // One of its operations was a fence.
  // Free-running counts: tail >= taken >= head >= told.
  uint16_t tail = 0;
  uint16_t taken = 0;
  uint16_t head = 0;       // Released.
  uint16_t told = 0;       // Of these, told to the host.
  uint32_t messages = 0;   // In the message table, of this life.
  uint32_t used = 0;       // Entries of that table, of all its lives.
  uint32_t waiting = 0;    // Descriptors that wait for their peers.
  uint32_t group = kNone;  // Operation of several descriptors that goes on.

  // While it is alive. By slot: slots of the operation there that ended before
  // those in front of it, or 0.
  std::vector<uint8_t> ended;
  std::vector<uint32_t>
      messages_at;  // By slot: message of the operation there.
  std::vector<WaitingPlace> places;
  std::vector<uint8_t> spilled;  // By slot of the spill area: taken.
  uint32_t spill_next = 0;       // Where room is looked for first.
  // So many slots next to each other, and more, are not free there.
  uint8_t spill_refused = 0;

  uint16_t cq() const noexcept {
    return contract::JoinBytes(cfg.cq, cfg.cq_high);
  }
  uint16_t counter_send() const noexcept {
    return contract::JoinBytes(cfg.counter_send, cfg.counter_send_high);
  }
  uint16_t counter_read() const noexcept {
    return contract::JoinBytes(cfg.counter_read, cfg.counter_read_high);
  }
  uint16_t counter_write() const noexcept {
    return contract::JoinBytes(cfg.counter_write, cfg.counter_write_high);
  }
  uint16_t size() const noexcept {
    return static_cast<uint16_t>(1U << cfg.ring_log2);
  }
  bool all_taken() const noexcept { return taken == tail; }
  uint16_t Index(uint16_t position) const noexcept {
    return static_cast<uint16_t>(position & (size() - 1U));
  }
};

// Thread safety: one thread at a time.
class TxRings {
 public:
  TxRings(uint32_t count, HostAccess* host);

  uint32_t size() const noexcept { return contexts_.size(); }
  // Null for one that was never written.
  TxContext* Find(uint32_t context) noexcept { return contexts_.Find(context); }
  // One that was.
  TxContext& operator[](uint32_t context) noexcept {
    return contexts_[context];
  }
  // Calls `visit(context, TxContext&)` for each that was written.
  template <typename Visit>
  void ForEach(Visit visit) {
    contexts_.ForEach(visit);
  }

  // Any write begins a new life. Throws std::bad_alloc.
  void Write(uint32_t context, const contract::TxCtxCfg& cfg);
  // Tail doorbell.
  void Publish(uint32_t context, uint16_t tail) noexcept;

  // Next descriptor published, which `Take` takes. False: none, or slots of it
  // are not published yet.
  [[nodiscard]] bool Peek(uint32_t context, Fetched* out);
  void Take(uint32_t context, const Fetched& fetched) noexcept {
    TxContext& tx = contexts_[context];
    tx.taken = static_cast<uint16_t>(tx.taken + fetched.slots);
  }

  // An operation ended: its slots are released in ring order.
  void Release(uint32_t context, uint16_t position, uint8_t slots) noexcept;
  // An entry with the released head goes to the host.
  uint16_t Tell(uint32_t context) noexcept {
    return contexts_[context].told = contexts_[context].head;
  }
  // Stores the head cell when a quarter of the ring, or all of it, is untold.
  void TellIfDue(uint32_t context);

  // -- descriptors that wait for their peer

  // Appends a descriptor that was taken to those of the peer.
  void Wait(Peers* peers, uint32_t peer, const Fetched& fetched) noexcept;
  // First of those, read and checked anew. One that moved to the spill area has
  // no slots any more.
  void PeekWaiting(const Peer& peer, Fetched* out);
  // Takes it out.
  void LeaveWaiting(Peer* peer) noexcept;
  // The ring is so full that what is stuck has to leave it, and there is where.
  bool Crowded(uint32_t context) const noexcept {
    const TxContext& tx = contexts_[context];
    return tx.cfg.spill_base != 0 && static_cast<uint16_t>(tx.tail - tx.head) >=
                                         tx.size() - tx.size() / 4U;
  }
  // Moves the oldest descriptor, if it waits, to the spill area.
  bool SpillWaiting(uint32_t context, Peers* peers);
  // Marks the oldest descriptor as given up, releases its slots and tells the
  // host. False, changing nothing, when the area cannot be written.
  bool GiveUpOldest(uint32_t context, uint8_t slots);

 private:
  void Read(const TxContext& tx, uint64_t address, Fetched* out);
  contract::Status ReadExtension(uint64_t address, Fetched* out);
  // First of `slots` free ones of the spill area, next to each other; kNone.
  static uint32_t FindSpillRoom(TxContext& tx, uint8_t slots);
  uint64_t AddressOf(const TxContext& tx, uint32_t place) const noexcept;

  HostAccess* host_;
  LazyTable<TxContext, 1> contexts_;
};

}  // namespace heddle::soft::engine
