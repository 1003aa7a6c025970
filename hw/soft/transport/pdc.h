// SPDX-License-Identifier: Apache-2.0
// State of one PDC, initiator's or target's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/accept.h"
#include "hw/soft/transport/client.h"
#include "hw/soft/transport/message_carrier.h"
#include "hw/soft/transport/send_half.h"
#include "hw/soft/transport/tombstones.h"

namespace heddle::soft::transport {

// A response that an ACK carries.
struct Response {
  contract::wire::SesResponse header;
  std::array<uint8_t, contract::kReturnDataInAck> data = {};
  uint8_t data_bytes = 0;
  bool with_data = false;  // SesResponseData, even of 0 bytes.
  uint32_t data_offset = 0;
};

// A response that waits to be cleared (UET 2.15).
struct StoredResponse {
  uint32_t psn = 0;
  bool used = false;
  bool unsent = false;  // The wire had no room for it.
  Response response;
};

// The request that was taken last, if it succeeded: what its ACK names.
struct LastSuccess {
  uint32_t psn = 0;
  uint32_t job_id = 0;
  uint32_t length = 0;
  uint16_t message_id = 0;
  bool any = false;
};

// Receiving side of one direction.
struct ReceiveHalf : rules::ReceiveState {
  uint64_t ack_ns = rules::kNever;  // When what was not acknowledged is.
  uint64_t heard_ns = 0;            // Last packet of the peer's that was legal.
  uint64_t received_at = 0;  // Of the packet that the delayed ACK is for.
  uint32_t kept = 0;         // Stored responses.
  uint32_t unsent = 0;       // Of these, those that the wire had no room for.
  LastSuccess success;

  // What the wire had no room for, or what waits for the next `Progress`.
  bool owes_ack = false;
  bool owes_nack = false;
  bool nack_retx = false;
  contract::NackCode nack_code = {};
  uint32_t nack_psn = 0;

  std::vector<StoredResponse> stored;  // Target only.

  bool owes() const { return owes_ack || owes_nack || unsent != 0; }
};

enum class PdcState : uint8_t {
  kFree,
  kSyn,  // Initiator: no ACK yet.
  kOpen,
  kClosing,  // Initiator: the Close Command is on its way.
};

struct Pdc {
  // -- touched by every packet
  PdcState state = PdcState::kFree;
  bool target = false;  // This end is the target.
  bool ordered = false;
  bool ready = false;         // In the ready queue.
  bool blocked = false;       // The wire had no room: tried again next time.
  bool busy = false;          // Counted as such.
  bool close_wanted = false;  // The peer asks for it, or room is needed.
  bool close_due = false;     // The Close Command has no PSN yet.
  bool ask_due = false;       // An ACK Request is to be sent.
  // Target: an ACK that asks the initiator to close is to be sent.
  bool close_ask_due = false;
  // Initiator, before the first ACK: a target answered under a former PDCID.
  bool reopened = false;
  bool unreachable = false;  // Its messages end at the next timer.
  bool counting = false;     // Of the packets of an ACK not all are in `held`.
  uint16_t index = 0;        // In the table.
  uint16_t id = 0;           // PDCID of this end.
  uint16_t peer_id = 0;      // Of the other; 0 until known.
  uint16_t next_ready = 0;   // In the ready queue.
  SendHalf send;
  ReceiveHalf receive;
  wire::FabricAddress peer;
  wire::Path path;
  // Where SYNs went or came from, as DatagramWire::ReceiverOf; 0: not known.
  uint64_t receiver = 0;

  // -- initiator
  MessageIndex queue_head = kNoMessage;  // Messages not completely sent.
  MessageIndex queue_tail = kNoMessage;
  uint32_t held = 0;         // Messages that wait for data only, or on hold.
  uint32_t failed = 0;       // Beside them, known until the PDC ends.
  uint64_t refused = 0;      // PSNs that the peer knew no PDC for; base una.
  uint32_t clear_told = 0;   // Last CLEAR_PSN sent.
  uint32_t clear_asked = 0;  // Highest PSN that the peer wants to be cleared.
  uint64_t absent_ns = rules::kNever;  // SYNs reach no function since then.
  PdcName name;
  uint32_t parked = 0;  // Messages on hold; part of `held`.

  // -- target: return data, by PSN modulo rules::kWindow
  uint32_t return_tail = 0;  // PSN of the next one to be queued.
  std::vector<ReturnData> returns;
  uint64_t close_asked_ns = 0;

  // -- both, rarely
  uint32_t start_psn = 0;
  // When it became idle, was heard (target), or the last of the data came that
  // messages wait for (initiator).
  uint64_t used_ns = 0;
  uint16_t chain = 0;  // Next in the hash bucket.
  uint16_t older = 0;  // List by use.
  uint16_t newer = 0;
  bool listed = false;
  bool named = false;  // Found by its name.

  static constexpr MessageIndex kNoMessage = UINT32_MAX;
  static constexpr uint32_t kCloseCommand = UINT32_MAX - 1;  // As `what`.

  // Of a target: what its initiator calls it.
  PdcIdentity identity() const { return {peer, start_psn, peer_id}; }
  bool has_new() const {
    return target ? return_tail != send.window().top()
                  : (queue_head != kNoMessage && refused == 0) || close_due;
  }
  // A request or a Clear Command said so.
  void Tell(uint32_t clear_psn) {
    clear_told = clear_psn;
    // It must not fall behind by so much that it seems to lie in front.
    if (rules::Before(clear_asked, clear_psn)) {
      clear_asked = clear_psn;
    }
  }
  bool clear_due() const {
    return rules::Before(clear_told, clear_asked) &&
           rules::Before(clear_told, send.window().clear_psn());
  }
  // Nothing to send and nothing to wait for, in this end's direction.
  bool quiet() const {
    return send.window().unanswered() == 0 && held == 0 && !has_new() &&
           queue_head == kNoMessage;
  }
};

}  // namespace heddle::soft::transport
