// SPDX-License-Identifier: Apache-2.0
// PDCs that peers opened: requests in, return data out.
#pragma once

#include <cstdint>

#include "hw/soft/transport/core.h"
#include "hw/soft/transport/incoming.h"
#include "hw/soft/transport/receiver.h"

namespace heddle::soft::transport {

class Target {
 public:
  Target(Core* core, Receiver* receiver) : core_(*core), receiver_(*receiver) {}

  // A request with syn; finds or opens its PDC.
  void OnSyn(const IncomingRequest& request);
  // The PDC is one of this end as target, named by the packet's dpdcid.
  void OnRequest(Pdc* pdc, const IncomingRequest& request);
  void OnAck(Pdc* pdc, const IncomingAck& ack, const wire::Datagram& datagram);
  void OnNack(Pdc* pdc, const IncomingNack& nack,
              const wire::Datagram& datagram);
  void OnControl(Pdc* pdc, const contract::wire::PdsCp& cp,
                 const wire::Datagram& datagram);
  void OnTimer(Pdc* pdc);
  // Its initiator is asked to close it, once.
  void AskToClose(Pdc* pdc);
  // From within `TransportClient::OnRequest`.
  bool PostReturn(uint16_t pdc, const ReturnData& data);

  // The next packet of return data. False: the wire has no room.
  [[nodiscard]] bool SendNew(Pdc* pdc);
  [[nodiscard]] bool SendAgain(Pdc* pdc);

 private:
  // `fresh`: the PDC is not in the table yet.
  void Take(Pdc* pdc, const IncomingRequest& request, bool fresh);
  rules::Outcome Offer(Pdc* pdc, const IncomingRequest& request,
                       rules::Place place);
  Pdc* Open(const IncomingRequest& request);
  // Asks initiators of PDCs that were not used for long to close them; or
  // forgets one whose initiator is silent for good.
  void MakeRoom();
  // PDCs whose initiators have left the wire; looks once in an RTO. False:
  // none.
  bool CloseThoseThatLeft();
  void Close(Pdc* pdc, bool in_error);
  void OnClose(Pdc* pdc, const Arrival& arrival);
  void Retire(Pdc* pdc, uint32_t psn);
  struct Frame {
    uint32_t psn = 0;
    bool ar = false;
    bool retx = false;
  };
  [[nodiscard]] bool SendReturn(Pdc* pdc, const Frame& frame, size_t* bytes);

  Core& core_;
  Receiver& receiver_;
  bool offering_ = false;  // The client may post return data.
  uint64_t look_ns_ = 0;   // When `CloseThoseThatLeft` looks next.
};

}  // namespace heddle::soft::transport
