// SPDX-License-Identifier: Apache-2.0
// PDCs that this end opened: messages out, return data in.
#pragma once

#include <cstdint>

#include "hw/sim/soft/transport/core.h"
#include "hw/sim/soft/transport/incoming.h"
#include "hw/sim/soft/transport/receiver.h"

namespace heddle::sim::soft {

class Initiator {
 public:
  Initiator(Core* core, Receiver* receiver)
      : core_(*core), receiver_(*receiver) {}

  struct Post {
    MessageIndex message = 0;
    uint32_t packets = 1;
    bool expects_data = false;
  };
  bool PostMessage(const Post& post, const PdcName& name, const Path& path);
  void Finish(MessageIndex message);
  bool Stuck(MessageIndex message) const;

  // The PDC is one of this end as initiator, named by the packet's dpdcid.
  void OnAck(Pdc* pdc, const IncomingAck& ack, const Datagram& datagram);
  void OnNack(Pdc* pdc, const IncomingNack& nack, const Datagram& datagram);
  void OnReturn(Pdc* pdc, const IncomingRequest& request);
  void OnControl(Pdc* pdc, const contract::wire::PdsCp& cp,
                 const Datagram& datagram);
  void OnTimer(Pdc* pdc);

  // The next request or Close Command. False: the wire has no room.
  [[nodiscard]] bool SendNew(Pdc* pdc);
  [[nodiscard]] bool SendAgain(Pdc* pdc);
  [[nodiscard]] bool SendClear(Pdc* pdc);

 private:
  Pdc* Open(const PdcName& name, const Path& path);
  uint32_t StartPsn(uint16_t pdcid);
  void MakeRoom();
  void BeginClose(Pdc* pdc);
  void CloseIfWanted(Pdc* pdc);
  void Closed(Pdc* pdc, bool answered);
  // Nothing more comes of the PDC's messages.
  void End(Pdc* pdc, contract::Status status, uint16_t detail);
  void Abandon(MessageIndex message, contract::Status status, uint16_t detail);
  // The peer knew no PDC for `psn`.
  void OnUnknown(Pdc* pdc, uint32_t psn, contract::NackCode code);
  bool MayReopen(const Pdc& pdc) const;
  void Reopen(Pdc* pdc);
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
  // Whether a SYN in the wire's room reaches the function that those before it
  // went to: another one behind the same address may not execute it, too.
  bool ReachesTheSame(Pdc* pdc, size_t bytes);
  [[nodiscard]] bool SendRequest(Pdc* pdc, const Frame& frame,
                                 const TransportClient::Built& built);
  bool SendClose(Pdc* pdc, uint32_t psn, bool retx);

  Core& core_;
  Receiver& receiver_;
  std::vector<uint32_t> last_psn_ = std::vector<uint32_t>(PdcidPool::kIds);
  std::vector<bool> used_id_ = std::vector<bool>(PdcidPool::kIds);
};

}  // namespace heddle::sim::soft
