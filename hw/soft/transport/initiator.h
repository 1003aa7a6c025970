// SPDX-License-Identifier: Apache-2.0
// PDCs that this end opened: messages out, return data in.
#pragma once

#include <cstdint>

#include "hw/soft/transport/core.h"
#include "hw/soft/transport/incoming.h"
#include "hw/soft/transport/receiver.h"

namespace heddle::soft::transport {

class Initiator {
 public:
  Initiator(Core* core, Receiver* receiver)
      : core_(*core), receiver_(*receiver) {}

  struct Post {
    MessageIndex message = 0;
    uint32_t packets = 1;
    bool expects_data = false;
  };
  bool PostMessage(const Post& post, const PdcName& name,
                   const wire::Path& path);
  void Finish(MessageIndex message);
  void Hold(MessageIndex message);
  void Resume(MessageIndex message);
  void Fail(MessageIndex message);
  bool Stuck(MessageIndex message) const;

  // A packet may be of the target of that PDC.
  static bool Knows(const Pdc& pdc, const wire::FabricAddress& source,
                    uint16_t spdcid);
  // The PDC is one of this end as initiator, named by the packet's dpdcid; in
  // `OnReturn` and `OnControl` it knows the sender.
  void OnAck(Pdc* pdc, const IncomingAck& ack, const wire::Datagram& datagram);
  void OnNack(Pdc* pdc, const IncomingNack& nack,
              const wire::Datagram& datagram);
  void OnReturn(Pdc* pdc, const IncomingRequest& request);
  void OnControl(Pdc* pdc, const contract::wire::PdsCp& cp);
  void OnTimer(Pdc* pdc);
  // It closes as soon as nothing is queued or outstanding.
  void CloseOnceQuiet(Pdc* pdc);

  // The next request or Close Command. False: the wire has no room.
  [[nodiscard]] bool SendNew(Pdc* pdc);
  [[nodiscard]] bool SendAgain(Pdc* pdc);
  [[nodiscard]] bool SendClear(Pdc* pdc);

 private:
  // A restarted PDC whose SYNs reach no function ends after so many RTOs of the
  // shortest kind.
  static constexpr uint64_t kReturnRtos = 64;

  Pdc* Open(const PdcName& name, const wire::Path& path);
  // With its present PDCID, and with what is queued.
  void Begin(Pdc* pdc);
  uint32_t StartPsn(uint16_t pdcid);
  void Append(Pdc* pdc, MessageIndex message);
  void MakeRoom();
  void BeginClose(Pdc* pdc);
  void CloseIfWanted(Pdc* pdc);
  void Closed(Pdc* pdc, bool answered);
  void Release(Pdc* pdc);
  // Nothing more comes of the PDC's messages.
  void End(Pdc* pdc, contract::Status status, uint16_t detail);
  void Abandon(MessageIndex message, contract::Status status, uint16_t detail);
  // Those that wait for data only.
  // Forgets that messages of the PDC wait for data; whether any did.
  static bool TakeHeld(Pdc* pdc);
  void AbandonHeld(uint16_t pdc, contract::Status status, uint16_t detail);
  // The target, which did not restart, has no PDC for `psn`.
  void OnUnknown(Pdc* pdc, uint32_t psn, contract::NackCode code);
  bool MayReopen(const Pdc& pdc) const;
  // Another PDCID and Start_PSN; all that was sent goes again. `restarted`: the
  // target's incarnation is gone, which may have executed, acknowledged and
  // answered some of it. False, changing nothing, when no PDCID is free: what
  // is out is lost or refused again, and another try follows.
  bool Reopen(Pdc* pdc, bool restarted);
  void Restart(Pdc* pdc);
  // Messages that were sent and are not completely acknowledged go back to the
  // front of the queue, in order.
  void Requeue(Pdc* pdc, bool restarted);
  bool GoesAgain(MessageIndex message, bool restarted);
  // The same of those on hold.
  void RequeueParked(Pdc* pdc);
  void Acknowledged(Pdc* pdc, MessageIndex message, uint32_t packets);
  // Return data came before the first ACK. False: they are for who had the
  // PDCID before, and refused.
  bool OpenedBy(Pdc* pdc, const IncomingRequest& request);
  void OnErrorWithoutPdc(Pdc* pdc, const IncomingAck& ack);
  void WantClear(Pdc* pdc, uint32_t psn);
  // An answer to `psn` with a response of SES.
  void TakeResponse(const Pdc& pdc, const IncomingAck& ack);
  struct Frame {
    uint32_t psn = 0;
    bool ar = false;
    bool retx = false;
  };
  // Notes whom a SYN in the wire's room reaches. False: not the function that
  // those before it went to, which may have executed them.
  bool ReachesTheSame(Pdc* pdc, size_t bytes);
  enum class Sent : uint8_t {
    kSent,
    kBlocked,  // The wire has no room.
    kMoved,    // Not sent: the PDC begins anew.
  };
  // `room`: the wire's, with the request after its PDS header.
  [[nodiscard]] Sent SendRequest(Pdc* pdc, const Frame& frame,
                                 const TransportClient::Built& built,
                                 uint8_t* room);
  bool SendClose(Pdc* pdc, uint32_t psn, bool retx);

  Core& core_;
  Receiver& receiver_;
};

}  // namespace heddle::soft::transport
