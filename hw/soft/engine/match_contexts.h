// SPDX-License-Identifier: Apache-2.0
// Receive contexts that match: their descriptors, the receives and messages
// that wait, and the payload kept in host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "host/lib/semantics/completion.h"
#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/receive_queue.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/engine_parts.h"
#include "hw/soft/engine/lazy_table.h"
#include "hw/soft/engine/restarts.h"
#include "hw/soft/engine/rx_rings.h"
#include "hw/soft/engine/unexpected_area.h"

namespace heddle::soft::engine {

// Where a message goes that came to a context that matches.
struct Landing {
  enum class Kind : uint8_t {
    kPlain,     // The context does not match.
    kReceive,   // To the receive of `delivery`.
    kKept,      // To the area, as message `kept`.
    kDeferred,  // Not now: its initiator waits.
    kNowhere,   // It was discarded.
  };
  Kind kind = Kind::kPlain;
  uint32_t kept = semantics::kNone;
  semantics::Delivery delivery = {};
  CqTicket ticket = {};
  // kReceive: it was kept before, and its bytes are here.
  UnexpectedArea::Block block = {};
  uint64_t address = 0;  // Packets are written there.
  uint32_t room = 0;     // Bytes there.
};

// `semantics::ReceiveQueue` decides; this moves the bytes and writes the
// completions. A message is kept from its first packet on, and is whole or
// still arriving. One that a receive takes while it arrives is written to the
// area until its end, and copied then.
//
// A descriptor waits in the ring while its completion has no room in the queue
// or, a receive, while the context holds as many as it may.
//
// Thread safety: one thread at a time.
class MatchContexts : public ReadySink {
 public:
  // Learns the fate of messages that are still arriving; `open` is their name.
  class Arriving {
   public:
    // A receive took it: it ends there.
    virtual void OnTaken(uint32_t open, const Landing& landing) = 0;
    // The host discarded it: nothing of it may be written any more.
    virtual void OnDiscarded(uint32_t open) = 0;

   protected:
    ~Arriving() = default;
  };

  MatchContexts(uint32_t count, const EngineParts& parts, RxRings* rings,
                Arriving* arriving, uint64_t seed);

  void Connect(ReadySender* sender) { ready_sender_ = sender; }

  // After `RxRings::Write`: a new life, without receives and messages. Throws
  // std::bad_alloc.
  void Write(uint32_t context);

  // Doorbells; nothing happens to a context that does not match.
  void Publish(uint32_t context, uint16_t tail);
  // The receive whose op_context has `handle` in its low half.
  void Cancel(uint32_t context, uint32_t handle);
  // Room may have come back in queues, or for messages of our own.
  void Work() {
    if (behind_) [[unlikely]] {
      WorkOff();
    }
  }

  // -- messages, of a context that matches

  struct Message {
    const semantics::MessageNames& names;
    uint32_t length = 0;
    uint32_t open = semantics::kNone;  // While it arrives; kNone: it is whole.
    bool given_up = false;  // By its sender: kept for no later receive.
    const Deferral* deferral = nullptr;  // It may be deferred.
    // Its first packet, which has the remote data, has not arrived.
    bool headless = false;
  };
  // Sets where the message goes, or returns the reason to refuse it, and then
  // has no effect.
  std::optional<contract::NackCode> Begin(uint32_t context,
                                          const Message& message,
                                          Landing* landing);
  // It is over with `outcome`; its bytes are at `landing.address`.
  void End(uint32_t context, const Landing& landing,
           const semantics::MessageNames& names,
           const semantics::Outcome& outcome);

  // -- deferred messages (match_deferral.cc)

  // A message that restarts under a token. False: no message of `deferral`'s
  // sender is expected under it.
  bool Restart(uint32_t target_token, const Deferral& deferral,
               const Message& message, Landing* landing);
  void OnReadyEnded(uint32_t target_token, bool accepted) override;
  // The PDC of a sender ended in error, which a sender keeps for what it
  // deferred on it: that never comes.
  void OnSenderLost(const wire::FabricAddress& source, uint16_t spdcid);

 private:
  // A message without a receive.
  struct Kept {
    semantics::MessageNames names;
    semantics::Outcome outcome;  // Once it is whole.
    uint32_t open = semantics::kNone;
    uint32_t handle = semantics::kNone;  // In the queue.
    UnexpectedArea::Block block;
    uint32_t deferred = semantics::kNone;  // Its bytes are at its sender.
    bool headless = false;                 // Peeks do not find it yet.
    semantics::ListLink free;
  };
  // A message of any context whose initiator waits.
  struct Deferred {
    enum class Stage : uint8_t {
      kFree,
      kKept,       // No receive has taken it.
      kDue,        // DEFERRABLE_RTR has to be sent.
      kRequested,  // It was.
    };
    Stage stage = Stage::kFree;
    bool discarded = false;
    bool orphaned = false;  // Its context is gone; it is requested to end.
    uint16_t life = 0;      // Part of its token.
    uint32_t context = 0;
    uint32_t kept = semantics::kNone;
    uint32_t length = 0;
    Deferral from;
    semantics::MessageNames names;
    semantics::Delivery delivery;
    CqTicket ticket;
    semantics::ListLink free;
  };
  // A receive that was cancelled and not reported yet.
  struct Owed {
    uint64_t op_context = 0;
    bool multi = false;
  };
  struct Context {
    Context(const contract::RxCtxCfg& cfg, uint16_t slots, uint64_t seed);

    semantics::ReceiveQueue queue;
    UnexpectedArea area;
    std::vector<Kept> kept;
    semantics::FreeList<Kept, &Kept::free> free;
    // Free-running counts: tail >= head.
    uint16_t tail = 0;
    uint16_t head = 0;            // Taken, and so released.
    std::vector<bool> withdrawn;  // By slot: cancelled before it was taken.
    std::vector<Owed> owed;
    // A receive of many messages that may match more of those kept, which
    // waits for room for their completions. No later message passes it.
    uint32_t matching = semantics::kNone;
  };

  Context* Find(uint32_t context) noexcept {
    std::unique_ptr<Context>* const found = contexts_.Find(context);
    return found == nullptr ? nullptr : found->get();
  }
  void WorkOff();
  CqTicket Reserve(uint32_t context) noexcept;
  contract::Status Load(uint32_t context, contract::MatchDesc* descriptor);
  // Whatever can go on does.
  void Advance(uint32_t context);
  bool PayOwed(uint32_t context);
  bool MatchMore(uint32_t context);
  bool TakeNext(uint32_t context);
  void Execute(uint32_t context, const contract::MatchDesc& descriptor,
               CqTicket ticket);
  void Receive(uint32_t context, const contract::MatchDesc& descriptor,
               CqTicket ticket);
  // The first message that the rule matches is.
  static bool IsHeadless(Context& match, const semantics::MatchRule& rule);
  void Look(uint32_t context, const contract::MatchDesc& descriptor,
            CqTicket ticket);
  // A receive has taken a message that was kept.
  void Deliver(uint32_t context, const semantics::Delivery& delivery,
               CqTicket ticket);
  void Discard(Context& match, uint32_t kept);
  // A kept message will not be whole: only the receive that claimed it takes
  // it, and completes with its outcome.
  void FailKept(Context& match, uint32_t kept);
  // Copies what the area has of a message to its receive.
  void Copy(Context& match, const Landing& landing, uint64_t area,
            semantics::Outcome* outcome);
  // The receive is over, which frees it.
  void Finish(uint32_t context, const Landing& landing,
              const semantics::MessageNames& names, semantics::Outcome outcome);
  // A completion that is about no message.
  void Tell(uint32_t context, CqTicket ticket, uint64_t op_context,
            contract::Status status, uint8_t flags = 0);
  static contract::Completion EntryOf(uint32_t context, uint64_t op_context,
                                      const semantics::MessageNames& names,
                                      const semantics::Outcome& outcome);

  // As `Begin` of a message that no receive takes.
  std::optional<contract::NackCode> Keep(uint32_t context,
                                         const Message& message,
                                         semantics::Arrival arrival,
                                         Landing* landing);
  // Keeps the message at its sender; kNone without room.
  uint32_t Defer(uint32_t context, const Message& message);
  // Its receive is known, or it was discarded.
  void Request(uint32_t deferred);
  void RequestAll();
  void FreeDeferred(uint32_t deferred);
  // The initiator does not send the message: its receive ends.
  void Fail(uint32_t deferred);
  // All of a context that ended.
  void Orphan(uint32_t context);
  uint32_t TokenOf(uint32_t deferred) const noexcept {
    return uint32_t{deferred_[deferred].life} << 16U | (deferred + 1);
  }
  // The one with this token, or kNone.
  uint32_t DeferredOf(uint32_t target_token) const noexcept;

  // Messages deferred at a time; below 2^16.
  static constexpr uint32_t kMaxDeferred = 16384;

  EngineParts parts_;
  RxRings* rings_;
  Arriving* arriving_;
  uint64_t seed_;
  LazyTable<std::unique_ptr<Context>, 16> contexts_;
  bool behind_ = false;  // Something waits for room in a queue.
  ReadySender* ready_sender_ = nullptr;
  std::vector<Deferred> deferred_;
  semantics::FreeList<Deferred, &Deferred::free> free_deferred_;
  uint32_t due_ = 0;
  uint16_t first_life_;  // Each entry begins with it; part of tokens.
  std::vector<uint8_t> copy_;
};

}  // namespace heddle::soft::engine
