// SPDX-License-Identifier: Apache-2.0
// The initiator's side of the engine: from transmit descriptors to completions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/address_vector.h"
#include "hw/soft/engine/context_set.h"
#include "hw/soft/engine/engine.h"
#include "hw/soft/engine/engine_parts.h"
#include "hw/soft/engine/operation_groups.h"
#include "hw/soft/engine/peers.h"
#include "hw/soft/engine/restarts.h"
#include "hw/soft/engine/tx_message.h"
#include "hw/soft/engine/tx_rings.h"

namespace heddle::soft::engine {

// A descriptor is taken when its message fits in the table, its completion in
// the queue, and nothing of its peer is in the way; else it waits: in its
// context for the first two, which end sooner or later, for its peer beside
// the context, so that other peers' descriptors pass.
//
// Thread safety: one thread at a time.
class Initiator : public ReadySender {
 public:
  // Most messages of a context in flight to one peer.
  static constexpr uint32_t kPeerShare = (contract::kMessageShare + 1) / 8;
  // Messages that a context may always have, if half of the table is enough for
  // so many of each; else what that is enough for.
  static constexpr uint32_t kGuarantee = 32;
  // Posts of a message that never left: its PDC may end for reasons that are
  // not its own.
  static constexpr uint8_t kAttempts = 4;

  Initiator(const EngineLimits& limits, const EngineParts& parts,
            uint64_t seed);

  void Connect(transport::MessageCarrier* transport) { transport_ = transport; }
  void Connect(ReadySink* sink) { ready_sink_ = sink; }
  void SetPort(const contract::PortCfg& port);
  bool WriteContext(uint32_t context, const contract::TxCtxCfg& cfg);
  // Nothing of a life of the context that has ended, or of the present one, is
  // under way.
  bool Quiet(uint32_t context) {
    const TxContext* const tx = rings_.Find(context);
    return tx == nullptr || !tx->alive ||
           (tx->messages == 0 && tx->waiting == 0);
  }

  void Tail(uint32_t context, uint16_t tail);
  void InvalidateAddresses(uint32_t context) { addresses_.Invalidate(context); }
  // Contexts that wait for entries of the table or of queues try again.
  // Whether anything waited for that.
  bool Unblock() noexcept {
    blocked_.MoveTo(&ready_);
    return !ready_.empty() || waiting_ != 0;
  }
  bool Progress(uint32_t descriptors);
  bool idle() const noexcept {
    return live_ == 0 && waiting_ == 0 && ready_.empty() && blocked_.empty();
  }

  // As TransportClient.
  transport::TransportClient::Built BuildRequest(transport::MessageIndex index,
                                                 uint32_t packet,
                                                 std::span<uint8_t> out);
  void OnAcknowledged(transport::MessageIndex index, uint32_t packets);
  void OnResponse(transport::MessageIndex index,
                  const contract::wire::SesResponse& response,
                  std::span<const uint8_t> data, uint32_t data_offset);
  bool OnRestart(transport::MessageIndex index);
  void OnAbandoned(transport::MessageIndex index, contract::Status status,
                   uint16_t detail, bool transmitted);
  transport::Verdict OnReturnData(const transport::Request& request);

  // -- deferred messages (initiator_restart.cc)

  bool SendReady(const Deferral& deferral, uint32_t target_token) override;
  // DEFERRABLE_RTR are in flight, or wait for the transport.
  bool requests_ready() const noexcept { return ready_requests_ != 0; }
  // A context may have had messages deferred since the host reset the function,
  // so that DEFERRABLE_RTR is expected.
  bool defers() const noexcept { return defers_; }
  void StopListening() noexcept { defers_ = false; }
  // DEFERRABLE_RTR arrived. False: no message of that token is deferred by
  // `source`.
  bool OnReady(const wire::FabricAddress& source, uint32_t token,
               uint32_t target_token);

 private:
  using Order = semantics::IndexList<TxMessage, &TxMessage::order>;

  // -- taking descriptors (initiator_take.cc)

  enum class Took : uint8_t {
    kTaken,
    kNothing,  // None is published.
    kBlocked,  // Wait for `Unblock`.
  };
  Took TakeNext(uint32_t context);
  Took TakeKnown(uint32_t context, Fetched* fetched);
  // Of a descriptor that waits first at its peer. False: not yet.
  bool TakeWaiting(uint32_t peer);
  void TakeAwake(uint32_t* descriptors);
  bool TakeReady(uint32_t* descriptors);
  bool MustWait(const TxContext& tx, const Peer& peer,
                const contract::TxDesc& descriptor) const noexcept;
  bool HasRoom(const TxContext& tx) const noexcept;
  // Entries of the table that the context has for itself.
  uint32_t GuaranteeOf(const TxContext& tx) const noexcept {
    return tx.alive ? guarantee_ : 0;
  }
  // Shares the table among the contexts that live now.
  void Apportion() noexcept;
  // Joins the operation of several descriptors, if it is part of one.
  bool Join(TxContext& tx, Fetched* fetched) noexcept;
  // Gives it an entry of the table; there is room. kNone when it failed and is
  // over already.
  uint32_t Launch(uint32_t context, const Fetched& fetched, CqTicket ticket);
  void SendTo(uint32_t index, const VectorEntry& address, uint32_t peer);
  // An entry for the completion, if the descriptor has one of its own.
  bool Reserve(const TxContext& tx, const Fetched& fetched,
               CqTicket* ticket) noexcept;
  void Post(uint32_t index);
  void RetryPosts();
  void Forget(uint32_t context);  // Its life ends.
  // Descriptors that are stuck leave a crowded ring: those that wait for the
  // spill area; of messages in flight the table holds a copy anyway.
  void MakeRoom(uint32_t context) {
    if (rings_.Crowded(context)) [[unlikely]] {
      RelieveCrowded(context);
    }
  }
  void RelieveCrowded(uint32_t context);
  // Of contexts that were crowded: their oldest may be stuck by now.
  void MakeRoomAnywhere();
  // The oldest descriptor is of a message that is stuck, which has no slots
  // any more.
  bool SpillMessage(uint32_t context);

  // -- the end of messages (initiator_end.cc)

  bool Stale(const TxMessage& message) noexcept {
    if (message.ready_request) {
      return false;
    }
    const TxContext& tx = rings_[message.context];
    return !tx.alive || tx.generation != message.generation;
  }
  void EndIfRetired(uint32_t index);
  void EndInGroup(uint32_t index);
  void FinishIfSettled(uint32_t index);
  void LeavePeer(TxMessage& message) noexcept;
  void ReleaseSlots(TxMessage& message);
  void Complete(uint32_t index, semantics::Outcome outcome);
  void CountOperation(const TxContext& tx, contract::Opcode opcode,
                      contract::Status status);
  void FreeOrSettle(uint32_t index);
  void Free(uint32_t index);
  void LeaveGroup(uint32_t group);

  // -- deferred messages (initiator_restart.cc)

  // Its target answered that it does not take the message now.
  static bool Defers(const TxMessage& message,
                     const contract::wire::SesResponse& response) noexcept;
  // Whether that packet of a deferred message is the one that ends it early.
  static bool CutShort(TxMessage& message, uint32_t packet) noexcept;
  // All packets of a deferred message are acknowledged.
  void AwaitReady(uint32_t index);
  void Resend(uint32_t index);
  // Before it restarts or ends.
  void LeaveDeferred(TxMessage& message) noexcept {
    if (message.stage == TxMessage::Stage::kDeferred) {
      message.stage = TxMessage::Stage::kPosted;
      --deferred_;
    }
  }
  void EndDeferred(uint32_t index);
  void EndReadyRequest(uint32_t index);
  // Those of a context that ended.
  void EndDeferredOf(uint32_t context);

  // -- packets (initiator_packets.cc)

  void FailLocally(TxMessage& message);
  bool Carries(const TxMessage& message) const noexcept {
    return message.stage != TxMessage::Stage::kFree &&
           message.stage != TxMessage::Stage::kUnposted;
  }
  transport::Verdict PlaceReturned(
      uint32_t index, const contract::wire::SesResponseData& header,
      std::span<const uint8_t> payload);

  EngineParts parts_;
  transport::MessageCarrier* transport_ = nullptr;
  ReadySink* ready_sink_ = nullptr;
  TxRings rings_;
  AddressVector addresses_;
  Peers peers_;
  OperationGroups groups_;
  std::vector<TxMessage> messages_;
  semantics::FreeList<TxMessage, &TxMessage::order> free_;
  Order unposted_;
  // Room beyond the contexts' guarantees; below 0 while contexts use what has
  // become the guarantee of later ones.
  int64_t shared_ = 0;
  uint32_t guarantee_ = 0;
  uint32_t live_ = 0;            // Table entries in use.
  uint32_t ready_requests_ = 0;  // DEFERRABLE_RTR among them.
  uint32_t deferred_ = 0;        // Deferred by their targets among them.
  bool defers_ = false;
  uint16_t first_life_;   // Each entry begins with it; part of tokens.
  uint32_t waiting_ = 0;  // Descriptors that wait for peers.
  uint32_t unposted_count_ = 0;
  ContextSet ready_;  // Contexts to be looked at.
  ContextSet blocked_;
  ContextSet crowded_;
  uint32_t turn_ = 0;
  uint32_t mtu_ = 1024;
  Fetched fetched_;
};

}  // namespace heddle::soft::engine
