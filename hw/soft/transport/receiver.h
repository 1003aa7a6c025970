// SPDX-License-Identifier: Apache-2.0
// Receiving side of a PDC: what is answered, and when.
#pragma once

#include <cstdint>

#include "hw/soft/transport/core.h"
#include "hw/soft/transport/outbox.h"

namespace heddle::soft::transport {

// A packet with a PSN of a PDC's receive window.
struct Arrival {
  rules::Packet packet;
  uint32_t bytes = 0;       // From the PDS header on.
  uint16_t message_id = 0;  // For the default response; 0 without.
  // Of a request that its initiator did not give up.
  bool whole = false;
  uint32_t job_id = 0;
  uint32_t request_length = 0;
};

// Initiator's and target's half alike: an initiator answers without SES header.
class Receiver {
 public:
  explicit Receiver(Core* core) : core_(*core) {}

  // What becomes of a packet by its PSN, and where that lies. All that is not
  // offered (Outcome::kOffer) or told is done; of what is offered, nothing but
  // that its CLEAR_PSN counts.
  struct Judged {
    rules::Outcome outcome = rules::Outcome::kOffer;
    rules::Place place = rules::Place::kNext;

    bool offered() const { return outcome == rules::Outcome::kOffer; }
  };
  Judged Judge(Pdc* pdc, const Arrival& arrival);
  // A packet of the PDC with source PDCID `spdcid` that the network trimmed:
  // NACKed if its PSN is missing, on ROD once for a gap, but each time if it is
  // the next one. False: outside the window, nothing was done.
  bool Trimmed(Pdc* pdc, const Arrival& arrival, const wire::Datagram& datagram,
               uint16_t spdcid);
  // Does what a judgement says that neither accepts nor offers the packet.
  void CarryOut(Pdc* pdc, const Arrival& arrival, rules::Place place,
                const rules::Judgement& judgement) {
    CarryOut(pdc, arrival, place, judgement, {pdc->path, pdc->peer_id});
  }
  // The client took it. `verdict.guaranteed` only while there is room.
  void Accepted(Pdc* pdc, const Arrival& arrival, rules::Place place,
                const Verdict& verdict);
  // Answers up to `clear_psn` are with the peer.
  void Cleared(Pdc* pdc, uint32_t clear_psn);

  // Is there room to store an answer to `psn`?
  static bool MayGuarantee(const Pdc& pdc, uint32_t psn) {
    return rules::MayStore(pdc.receive.window,
                           static_cast<uint32_t>(pdc.receive.stored.size()),
                           psn);
  }

  // The delayed ACK, or what the wire had no room for before. False: it has
  // none.
  // `close`: it asks the initiator to close the PDC.
  [[nodiscard]] bool AckDelayed(Pdc* pdc, bool close = false);
  [[nodiscard]] bool SendOwed(Pdc* pdc);
  // Sends a delayed ACK that is due, or owes it to the wire.
  void OnTimer(Pdc* pdc);

 private:
  struct Way {
    const wire::Path& path;
    uint16_t dpdcid;
  };
  // The same; a NACK goes that way.
  void CarryOut(Pdc* pdc, const Arrival& arrival, rules::Place place,
                const rules::Judgement& judgement, const Way& way);
  // False: without room.
  static bool Store(Pdc* pdc, uint32_t psn, const Response& response);
  // Of a packet that was taken; `response`: of its own, or null.
  [[gnu::always_inline]] void Acknowledge(Pdc* pdc, const Arrival& arrival,
                                          const rules::Accepted& accepted,
                                          const Response* response);
  // Answers its PSN now, with what is stored for it if anything is.
  void Answer(Pdc* pdc, const Arrival& arrival, rules::AckFor what,
              const Response* response);
  [[nodiscard]] bool SendOwedAck(Pdc* pdc);  // One.
  void Nack(Pdc* pdc, const NackOut& nack, const wire::Path& path);

  Core& core_;
};

}  // namespace heddle::soft::transport
