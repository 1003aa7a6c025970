// SPDX-License-Identifier: Apache-2.0
// What the transport asks of the messages that it carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/accept.h"
#include "hw/soft/wire/fabric_address.h"

namespace heddle::soft::transport {

// Names a message of the initiator's; UET message id - 1.
using MessageIndex = uint32_t;

// A request packet that the PDS found in order and new.
struct Request {
  wire::FabricAddress source;
  uint16_t source_udp_port = 0;
  uint16_t pdc = 0;     // Of the target: its index.
  uint16_t spdcid = 0;  // Of the sender; {source, spdcid} names the PDC.
  bool ordered = false;
  contract::NextHdr next_hdr = {};
  std::span<const uint8_t> ses;  // SES header to the end of payload.
};

// What becomes of a request. `kRefused` changes nothing: neither PSN state nor
// tables; the packet comes again.
struct Verdict {
  enum class Kind : uint8_t {
    kAccepted,
    kRefused,  // NACK with `nack`.
    kDropped,  // Not a legal packet: no answer; counted.
  };
  Kind kind = Kind::kAccepted;
  contract::NackCode nack = {};
  // Answer now, with this SES response; else success, coalesced.
  bool respond = false;
  // The response must not be lost: stored until the initiator clears it
  // (UET 2.15). Without room the transport refuses the packet before the client
  // is asked, see `TransportClient::OnRequest`.
  bool guaranteed = false;
  contract::wire::SesResponse response = {};
  // Result that travels in the ACK, at most contract::kReturnDataInAck bytes:
  // the ACK carries a SesResponseData then.
  std::span<const uint8_t> data = {};
  uint32_t data_offset = 0;

  rules::Said said() const {
    return {kind == Kind::kAccepted  ? rules::Said::Kind::kTaken
            : kind == Kind::kRefused ? rules::Said::Kind::kRefused
                                     : rules::Said::Kind::kIllegal,
            nack};
  }
};

// Return data of one read request packet, kept until acknowledged: a
// retransmission reads host memory again.
struct ReturnData {
  uint32_t region = 0;
  uint64_t address = 0;  // Host address of the first byte.
  uint32_t length = 0;
  uint32_t offset = 0;  // In the message.
  uint32_t total = 0;   // Of the message.
  uint32_t job_id = 0;
  uint16_t message_id = 0;
  // The client's, to be given back as they are.
  uint32_t region_generation = 0;
  uint32_t open_message = 0;
  uint32_t open_generation = 0;
};

// Thread safety: called by the thread that drives the transport. May call
// `Transport::Post`, `Finish` and `PostReturn` from within, nothing else of it.
class TransportClient {
 public:
  // -- initiator

  struct Built {
    contract::NextHdr next_hdr = {};
    size_t bytes = 0;  // SES header, extensions and payload.
    // The message ends with this packet, however many were posted: the rest is
    // not sent. Never of a packet in front of one that was built before.
    bool last = false;
    // Of the last packet: nobody waits to hear that it arrived, so its ACK may
    // come later.
    bool unheard = false;
  };
  // Writes packet `index` of the message behind its PDS header; again, the same
  // way, for each retransmission. Memory that cannot be read, and a message
  // that was refused or whose context is gone, give a packet with ie=1 that is
  // the last one: a PSN that was assigned is always sent.
  virtual Built BuildRequest(MessageIndex message, uint32_t index,
                             std::span<uint8_t> out) = 0;
  // So many packets more of the message are acknowledged (cumulatively, or by
  // an ACK of their own). In the end, as many as were sent; after that the
  // index may name another message, so nothing more is said of this one.
  virtual void OnAcknowledged(MessageIndex message, uint32_t packets) = 0;
  // The target answered with a response of its own; `data` is result data of an
  // ACK. Comes before `OnAcknowledged` of the same packet.
  virtual void OnResponse(MessageIndex message,
                          const contract::wire::SesResponse& response,
                          std::span<const uint8_t> data,
                          uint32_t data_offset) = 0;
  // The target's incarnation is gone, and what it acknowledged or answered of
  // the message counts no more, because another one takes its place. True: the
  // message goes again, whole, from its first packet on; what was counted of it
  // begins anew. False: the client ended it, and the index may name another one
  // when the call returns. Not asked for a message that is completely
  // acknowledged, unless it is on hold. Calls nothing of the transport from
  // within.
  [[nodiscard]] virtual bool OnRestart(MessageIndex message) = 0;
  // The PDC is gone: nothing more comes of the message. `transmitted` says
  // whether any packet of it left for the target that the PDC had last; when
  // none did the client may post it again.
  virtual void OnAbandoned(MessageIndex message, contract::Status status,
                           uint16_t detail, bool transmitted) = 0;
  // A packet of return data, new: `ses` is SesResponseData and payload, or a
  // SesResponse with an error code. It names a message of this PDC that was
  // posted with `expects_data` and is not finished; all else is dropped before.
  // Answers kAccepted, kRefused (NACK) or kDropped.
  virtual Verdict OnReturnData(const Request& request) = 0;

  // -- target

  // False while the function cannot receive the request that `ses` begins
  // (ADR 0014). It is neither taken nor answered then, so that it comes again.
  [[nodiscard]] virtual bool Listens(std::span<const uint8_t> ses) const = 0;
  // A new request; on ROD the next one. `may_guarantee` is false while the PDC
  // has no room for a guaranteed response: a client that would need one answers
  // kRefused, NO_GTD_DEL_AVAIL.
  virtual Verdict OnRequest(const Request& request, bool may_guarantee) = 0;
  // Writes the packet of `data` behind its PDS header: SesResponseData,
  // payload. For a region that has gone meanwhile it writes a SesResponse with
  // an error code instead (next_hdr response): a resend must not read memory of
  // a region that was deregistered. The packet is delivered as any other.
  virtual Built BuildReturn(const ReturnData& data, std::span<uint8_t> out) = 0;
  // Nobody needs the record any more: acknowledged, or its PDC is gone.
  virtual void OnReturnRetired(const ReturnData& data) = 0;
  // A target PDC ended: messages open on it end, `in_error` unless the
  // initiator closed it between messages.
  virtual void OnTargetClosed(const wire::FabricAddress& source,
                              uint16_t spdcid, bool in_error) = 0;

 protected:
  ~TransportClient() = default;
};

}  // namespace heddle::soft::transport
