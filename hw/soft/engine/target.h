// SPDX-License-Identifier: Apache-2.0
// The target's side of the engine: requests of peers, placed and completed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "host/lib/semantics/completion.h"
#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/message_table.h"
#include "host/lib/semantics/receive_message.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/engine/engine.h"
#include "hw/soft/engine/engine_parts.h"
#include "hw/soft/engine/initiator.h"
#include "hw/soft/engine/match_contexts.h"
#include "hw/soft/engine/regions.h"
#include "hw/soft/engine/rx_rings.h"
#include "hw/soft/rules/message.h"

namespace heddle::soft::engine {

// One packet of a message of one packet needs no state; of others the first to
// arrive opens an entry, which takes all that the message will need: buffer,
// entry of the completion queue. What is missing refuses the packet, which
// changes nothing then.
//
// Thread safety: one thread at a time.
class Target : private MatchContexts::Arriving {
 public:
  using Verdict = transport::Verdict;

  Target(const EngineLimits& limits, const EngineParts& parts, uint64_t seed);

  void Connect(transport::MessageCarrier* transport) { transport_ = transport; }
  void Connect(Initiator* initiator) {
    initiator_ = initiator;
    matching_.Connect(initiator);
  }
  void SetPort(const contract::PortCfg& port);
  // Any write begins a new life. False: no such context. Throws
  // std::bad_alloc.
  bool WriteContext(uint32_t context, const contract::RxCtxCfg& cfg);
  RxRings& rings() noexcept { return rings_; }
  MatchContexts& matching() noexcept { return matching_; }
  Regions& regions() noexcept { return regions_; }

  // As TransportClient.
  Verdict OnRequest(const transport::Request& request, bool may_guarantee);
  transport::TransportClient::Built BuildReturn(
      const transport::ReturnData& data, std::span<uint8_t> out);
  void OnReturnRetired(const transport::ReturnData& data);
  void OnTargetClosed(const wire::FabricAddress& source, uint16_t spdcid,
                      bool in_error);

 private:
  struct Packet {
    const transport::Request& request;
    contract::wire::SesStd header;
    std::span<const uint8_t> payload;
    bool may_guarantee = false;
    bool deferrable = false;  // A send that contexts that match may defer.

    bool single() const noexcept { return header.som != 0 && header.eom != 0; }
    uint32_t offset() const noexcept {
      return header.som != 0 ? 0 : header.message_offset;
    }
  };

  // What is told of an operation of a peer's when it is over, and where.
  struct Report {
    uint32_t context = semantics::kNone;
    uint32_t generation = 0;
    CqTicket ticket;
    semantics::MessageNames names;
    uint16_t region_counter = 0;
  };

  struct Open {
    contract::SesOpcode opcode = contract::SesOpcode::kSend;
    uint32_t job_id = 0;
    semantics::ReceiveMessage receive{0, 0};
    Report report;
    RxBuffer buffer;  // SEND. With `landing`, where the packets are written.
    Landing landing;  // SEND to a context that matches.
    uint32_t read = semantics::kNone;  // READ.
    bool refused = false;  // Nobody is told; the rest is taken for nothing.
    bool ended = false;    // Reported; what follows is taken for nothing.
    // What follows is answered with it, if the message ended in an error.
    contract::ReturnCode code = contract::ReturnCode::kNull;
  };

  // A read whose end is to be told.
  struct Read {
    Report report;
    uint32_t length = 0;
    uint32_t records = 0;  // Return data that is not acknowledged.
    uint32_t generation = 0;
    bool asked = false;  // All its packets have come.
    bool failed = false;
    semantics::ListLink free = {};
  };

  static semantics::MessageKey KeyOf(const transport::Request& request,
                                     uint16_t message_id) noexcept;
  static RxName NameOf(const contract::wire::SesStd& header) noexcept;
  // The same, of a send of either space.
  static RxName SendNameOf(const contract::wire::SesStd& header) noexcept;
  semantics::MessagePacket PieceOf(const Packet& packet) const noexcept;

  // Answers.
  static Verdict Refuse(contract::NackCode code) noexcept;
  Verdict Error(const Packet& packet, contract::ReturnCode code);
  [[gnu::always_inline]] static rules::Part PartOf(
      const Packet& packet) noexcept {
    const contract::wire::SesStd& header = packet.header;
    return {.opcode = header.opcode,
            .known_version = header.ver == 0,
            .single = packet.single(),
            .empty = header.request_length == 0 && packet.payload.empty(),
            .ie = header.ie != 0,
            .dc = header.dc != 0};
  }
  // Name, generation and JobID; `context`: the one of that name, or kNone.
  [[gnu::always_inline]] rules::Aim AimOf(const Packet& packet,
                                          uint32_t context) const {
    const contract::wire::SesStd& header = packet.header;
    rules::Aim aim{.context = context != semantics::kNone,
                   .same_generation = header.ri_generation == 0};
    if (!aim.context) {
      aim.miss = rings_.WhyNone(NameOf(header));
    } else {
      aim.same_job = rings_[context].cfg.job_id == header.job_id;
    }
    return aim;
  }
  Verdict Illegal(const Packet& packet);
  // The answer to the rest of a message that ended with `code`.
  static Verdict Rest(const Packet& packet, contract::ReturnCode code);
  // A receive that took `bytes` only of what was sent.
  static Verdict Cut(const Packet& packet, uint32_t bytes);
  bool Contradicts(const Packet& packet) const noexcept;
  Verdict OnContradiction(const Packet& packet);
  Verdict OnNoOp(const Packet& packet);

  // Messages of several packets.
  uint32_t OpenMessage(const Packet& packet, uint64_t room);
  // Takes the packet for its message; `place` says what of it goes where. The
  // message may be over after that: `CloseIfOver`.
  Verdict Account(const Packet& packet, uint32_t handle,
                  semantics::ReceiveMessage::Verdict* place);
  // The same, and puts what of it goes somewhere to `address`. That memory
  // refuses it is an error that must not be lost, if the peer is to be `told`:
  // without room for the answer the packet is refused, as if it had not come.
  Verdict AccountAndWrite(const Packet& packet, uint32_t handle,
                          uint64_t address, bool told);
  void CloseIfOver(const Packet& packet, uint32_t handle);
  // The packet's message is not taken, for which `verdict` is the answer. What
  // is left of an unordered one shares its fate, whatever changes until then.
  Verdict Deny(const Packet& packet, const Verdict& verdict);
  Verdict PartOfDenied(const Packet& packet, uint32_t handle);
  void End(Open& open);
  void Close(uint32_t handle);

  // Who is told (target_report.cc).
  Report ReportTo(const Packet& packet, uint32_t context) noexcept;
  bool Stale(const Report& report) const noexcept;
  void EndReceive(const Report& report, const RxBuffer& buffer,
                  const semantics::Outcome& outcome);
  void EndRma(const Report& report, uint32_t length);

  // SEND (target_send.cc).
  Verdict OnSend(const Packet& packet);
  Verdict OnPartOfSend(const Packet& packet);
  // The first packet of a message takes these.
  struct Start {
    uint32_t context = semantics::kNone;
    const RxBuffer* head = nullptr;
    CqTicket ticket = {};
  };
  // The caller sets the context, or kNone. Takes nothing but an entry of
  // the queue, and no answer but kBegins keeps it.
  [[gnu::always_inline]] rules::Answer BeginSend(const Packet& packet,
                                                 bool legal, Start* start);
  Verdict NotBegun(const Packet& packet, const rules::Answer& answer);
  // Puts a message of one packet to a buffer of `room` bytes; `end` takes the
  // outcome.
  template <typename End>
  [[gnu::always_inline]] Verdict PlaceWhole(const Packet& packet,
                                            uint64_t address, uint32_t room,
                                            End&& end) {
    using contract::Status;
    const uint32_t length = packet.header.request_length;
    semantics::Outcome outcome = {Status::kOk, 0, std::min(length, room),
                                  length};
    if (packet.header.ie != 0) {
      constexpr auto kError = contract::ReturnCode::kInitiatorErr;
      outcome = {Status::kInitiatorError, static_cast<uint16_t>(kError), 0,
                 length};
    } else if (outcome.length != 0 &&
               !parts_.host->Write(address,
                                   packet.payload.first(outcome.length))) {
      outcome = {Status::kLocalAccess, 0, 0, length};
    } else if (length > room) {
      outcome.status = Status::kTruncated;
    }
    end(outcome);
    if (outcome.status == Status::kLocalAccess && packet.header.dc != 0) {
      return Error(packet, contract::ReturnCode::kHostUnsuccessCmpl);
    }
    return outcome.status == Status::kTruncated ? Cut(packet, outcome.length)
                                                : Verdict{};
  }
  Verdict WholeSend(const Packet& packet);
  Verdict PartOfSend(const Packet& packet, uint32_t handle);
  // Handle of the message that it begins, or kNone with a verdict.
  uint32_t OpenSend(const Packet& packet, Verdict* verdict);

  // SEND and TAGGED_SEND to contexts that match (target_match.cc).
  bool Matches(uint32_t context) const noexcept {
    return context != semantics::kNone && rings_[context].matches;
  }
  Verdict OnTaggedSend(const Packet& packet);
  rules::Answer BeginMatch(const Packet& packet, bool legal,
                           uint32_t context) const;
  Verdict WholeMatch(const Packet& packet, uint32_t context);
  uint32_t OpenMatch(const Packet& packet, bool legal, uint32_t context,
                     Verdict* verdict);
  // Where the message goes, set by `Begin` or `Restart` of `MatchContexts`.
  // False, with a verdict: it is not taken.
  bool Land(const Packet& packet, uint32_t context,
            const MatchContexts::Message& message, Landing* landing,
            Verdict* verdict);
  static Verdict Defer(const Packet& packet);
  Verdict OnReady(const Packet& packet);
  void EndMatch(Open& open);
  void OnTaken(uint32_t open, const Landing& landing) override;
  void OnDiscarded(uint32_t open) override;

  // RMA (target_rma.cc).
  // Also BAD_INDEX: no receive context serves the RI.
  Regions::Answer Check(const Packet& packet, uint32_t length) const;
  // Who is told of the operation, with an entry of the queue if one is to be
  // written. False, with a verdict: it has to wait.
  bool Prepare(const Packet& packet, uint32_t region, Report* report,
               Verdict* verdict);
  Verdict OnWrite(const Packet& packet);
  Verdict WholeWrite(const Packet& packet, const Regions::Answer& access);
  Verdict PartOfWrite(const Packet& packet, uint32_t handle,
                      const Regions::Answer& access);
  Verdict OnRead(const Packet& packet);
  Verdict SmallRead(const Packet& packet, const Regions::Answer& access);
  uint32_t AskedBytes(const Packet& packet) const noexcept;
  // A packet of a read that may not be. `handle`: its message, or kNone.
  Verdict DenyRead(const Packet& packet, uint32_t handle,
                   contract::ReturnCode code);
  // Read that the packet is part of, kNone if nobody is to be told of its end;
  // `*handle`: of its message, which may be opened. False, with a verdict: it
  // has to wait.
  bool Follow(const Packet& packet, const Regions::Answer& access,
              uint32_t* handle, uint32_t* read, Verdict* verdict);
  // Its return data, if there are any, are posted.
  Verdict Asked(const Packet& packet, uint32_t handle, uint32_t read);
  void EndReadIfOver(uint32_t read);

  EngineParts parts_;
  transport::MessageCarrier* transport_ = nullptr;
  Initiator* initiator_ = nullptr;
  RxRings rings_;
  MatchContexts matching_;
  Regions regions_;
  semantics::MessageTable table_;
  std::vector<Open> open_;  // By handle, as far as any was used.
  std::vector<Read> reads_;
  semantics::FreeList<Read, &Read::free> free_reads_;
  uint32_t mtu_ = 1024;
  uint8_t small_[contract::kReturnDataInAck] = {};
};

}  // namespace heddle::soft::engine
