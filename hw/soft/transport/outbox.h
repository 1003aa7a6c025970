// SPDX-License-Identifier: Apache-2.0
// Writes packets that carry no request: ACKs, NACKs, control packets.
#pragma once

#include <cstdint>

#include "hw/soft/rules/answer.h"
#include "hw/soft/transport/core.h"

namespace heddle::soft::transport {

// The way back to where a datagram came from.
wire::Path PathBack(const wire::Datagram& datagram);

inline constexpr rules::AnswerRules kAnswerRules;

struct AckOut {
  rules::AckFor what = rules::AckFor::kNobody;
  uint32_t psn = 0;  // That is answered.
  bool syn = false;  // The packet may have opened the PDC.
  bool retx = false;
  bool marked = false;
  bool close = false;  // The initiator is asked to close the PDC.
  // SES response; null: the one stored for `psn`, the default one, or none
  // (`plain`).
  const Response* response = nullptr;
  bool plain = false;
  uint16_t message_id = 0;  // Of the default response.
};

// What is stored for `psn`, or null.
StoredResponse* FindStored(Pdc* pdc, uint32_t psn);

// All return false when the wire has no room.
[[nodiscard]] bool SendAck(Core* core, Pdc* pdc, AckOut ack);

struct NackOut {
  contract::NackCode code = {};
  uint32_t psn = 0;
  bool retx = false;
  bool marked = false;
  uint16_t spdcid = 0;  // 0 when there is no PDC.
  uint16_t dpdcid = 0;
  uint32_t expected = 0;  // ROD_OOO: the PSN missing.
};
bool SendNack(Core* core, const wire::Path& path, const NackOut& nack);

// What a packet gets that reaches none of its sender's PDCs.
void AnswerStranger(Core* core, const wire::Datagram& datagram,
                    const rules::Judgement& judgement, uint32_t psn,
                    uint16_t dpdcid);

struct CpOut {
  contract::CpType type = {};
  uint32_t psn = 0;
  uint32_t payload = 0;
  bool ar = false;
  bool retx = false;
};
[[nodiscard]] bool SendCp(Core* core, const Pdc& pdc, const CpOut& cp);

// The function that an answer would reach now, as DatagramWire::ReceiverOf.
uint64_t FunctionBehind(Core* core, const Pdc& pdc);

// The answer to a Negotiation with that PSN: no feature is on.
void SendOffer(Core* core, const Pdc& pdc, uint32_t psn);

// The answer to a probe.
void SendProbeAnswer(Core* core, const Pdc& pdc, uint16_t opaque);

}  // namespace heddle::soft::transport
