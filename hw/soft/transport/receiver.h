// SPDX-License-Identifier: Apache-2.0
// Receiving side of a PDC: what is answered, and when.
#pragma once

#include <cstdint>

#include "hw/soft/transport/core.h"
#include "hw/soft/transport/outbox.h"

namespace heddle::soft::transport {

// A packet with a PSN of a PDC's receive window.
struct Arrival {
  uint32_t psn = 0;
  bool ar = false;
  bool syn = false;
  bool retx = false;
  bool marked = false;
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

  // What of a packet that is no news. True: it is new, nothing was done yet.
  bool IsNew(Pdc* pdc, const Arrival& arrival);
  // A packet of the PDC with source PDCID `spdcid` that the network trimmed:
  // NACKed if its PSN is missing, on ROD once for a gap, but each time if it is
  // the next one. False: outside the window, nothing was done.
  bool Trimmed(Pdc* pdc, const Arrival& arrival, const wire::Datagram& datagram,
               uint16_t spdcid);
  // The client took it. `verdict.guaranteed` only while there is room.
  void Accepted(Pdc* pdc, const Arrival& arrival, const Verdict& verdict);
  void Refused(Pdc* pdc, const Arrival& arrival, contract::NackCode code);
  // An ACK Request.
  void Asked(Pdc* pdc, const Arrival& arrival);
  // CLEAR_PSN came.
  void Cleared(Pdc* pdc, uint32_t clear_psn);

  // Is there room to store an answer to `psn`? The last place is for the oldest
  // PSN missing: nothing is cleared before that is answered.
  static bool MayGuarantee(const Pdc& pdc, uint32_t psn);

  // The delayed ACK, or what the wire had no room for before. False: it has
  // none.
  [[nodiscard]] bool AckDelayed(Pdc* pdc,
                                contract::AckReq req = contract::AckReq::kNone);
  [[nodiscard]] bool SendOwed(Pdc* pdc);
  // Sends a delayed ACK that is due, or owes it to the wire.
  void OnTimer(Pdc* pdc);

 private:
  // Answers PSN `psn` now, with what is stored for it if anything is.
  void Answer(Pdc* pdc, const Arrival& arrival, const Response* response);
  [[nodiscard]] bool SendOwedAck(Pdc* pdc);  // One.
  void Nack(Pdc* pdc, const Arrival& arrival, contract::NackCode code);
  void Nack(Pdc* pdc, const Arrival& arrival, contract::NackCode code,
            const wire::Path& path, uint16_t dpdcid);
  static StoredResponse* Stored(Pdc* pdc, uint32_t psn);

  Core& core_;
};

}  // namespace heddle::soft::transport
