// SPDX-License-Identifier: Apache-2.0
// Initiator: packets that arrive, timers.
#include <algorithm>

#include "hw/soft/transport/initiator.h"

namespace heddle::soft::transport {

using contract::NackCode;
using contract::NextHdr;
using contract::Statistic;
using contract::Status;
using contract::wire::PdsRequest;
using contract::wire::SesResponse;
using contract::wire::SesResponseData;
using wire::Datagram;

void Initiator::TakeResponse(const Pdc& pdc, const IncomingAck& ack) {
  const SendWindow& window = pdc.send.window();
  if (!window.Has(window.unanswered(), ack.facts.psn)) {
    return;
  }
  const uint32_t what = window.packet(ack.facts.psn).what;
  SesResponse response;
  std::span<const uint8_t> data;
  uint32_t data_offset = 0;
  if (what != Pdc::kCloseCommand &&
      ReadResponse(ack, &response, &data, &data_offset)) {
    core_.client->OnResponse(what, response, data, data_offset);
  }
}

void Initiator::Acknowledged(Pdc* pdc, MessageIndex index, uint32_t packets) {
  Message& message = core_.messages[index];
  message.acked += packets;
  if (message.sent == message.packets && message.acked == message.packets) {
    if (message.expects_data && !message.finished) {
      message.held = true;
      ++pdc->held;
      pdc->parked += message.parked ? 1 : 0;
      pdc->used_ns = core_.now_ns;
    } else {
      message.live = false;
    }
  }
  // Last: the client may use the index again at once.
  core_.client->OnAcknowledged(index, packets);
}

// The target holds an answer to `psn`, which was sent.
void Initiator::WantClear(Pdc* pdc, uint32_t psn) {
  if (!pdc->send.window().Contains(psn)) {
    return;
  }
  if (rules::Before(pdc->clear_asked, psn)) {
    pdc->clear_asked = psn;
  }
  if (!rules::Before(pdc->clear_told, psn)) {
    pdc->clear_told = psn - 1;  // What was told is lost.
  }
}

// An error, and the target opened nothing for it.
void Initiator::OnErrorWithoutPdc(Pdc* pdc, const IncomingAck& ack) {
  SesResponse response;
  std::span<const uint8_t> data;
  uint32_t offset = 0;
  const bool error = ReadResponse(ack, &response, &data, &offset) &&
                     response.return_code > contract::ReturnCode::kOk;
  if (error && pdc->send.window().Contains(ack.facts.psn)) {
    End(pdc, Status::kRemoteError, static_cast<uint16_t>(response.return_code));
    core_.Settle(pdc);
  }
}

void Initiator::OnAck(Pdc* pdc, const IncomingAck& ack,
                      const Datagram& datagram) {
  const bool syn = pdc->state == PdcState::kSyn;
  if (datagram.source != pdc->peer || (!syn && ack.spdcid != pdc->peer_id)) {
    core_.Count(Statistic::kDropPdcid);
    return;
  }
  // Before the first ACK, a stale one is for who had the PDCID before.
  const SendHalf::Validity validity = pdc->send.Check(ack.facts);
  if (validity == SendHalf::Validity::kBeyond ||
      (syn && validity == SendHalf::Validity::kStale)) {
    core_.Count(Statistic::kDropPsn);
    return;
  }
  core_.Count(Statistic::kRxAcks);
  TakeResponse(*pdc, ack);
  if (syn && ack.spdcid == 0) {
    OnErrorWithoutPdc(pdc, ack);
    return;
  }
  if (syn) {
    pdc->state = PdcState::kOpen;
    pdc->peer_id = ack.spdcid;
  }
  pdc->refused = 0;
  if (ack.req == contract::AckReq::kClear) {
    WantClear(pdc, ack.facts.psn);
  } else if (ack.req == contract::AckReq::kClose) {
    pdc->close_wanted = true;
  }
  bool closed = false;
  uint32_t message = Pdc::kNoMessage;
  uint32_t packets = 0;
  const SendWindow& window = pdc->send.window();
  pdc->counting = true;
  pdc->send.OnAck(ack.facts, core_.settings, core_.now_ns, [&](uint32_t psn) {
    const uint32_t what = window.packet(psn).what;
    if (what == Pdc::kCloseCommand) {
      closed = true;
      return;
    }
    if (what != message && packets != 0) {
      Acknowledged(pdc, message, packets);
      packets = 0;
    }
    message = what;
    ++packets;
  });
  if (packets != 0) {
    Acknowledged(pdc, message, packets);
  }
  pdc->counting = false;
  if (closed) {
    Closed(pdc, true);
  } else {
    CloseIfWanted(pdc);
  }
  core_.Settle(pdc);
}

void Initiator::OnNack(Pdc* pdc, const IncomingNack& nack,
                       const Datagram& datagram) {
  const bool known = nack.spdcid == 0 || pdc->state == PdcState::kSyn ||
                     nack.spdcid == pdc->peer_id;
  if (datagram.source != pdc->peer || !known) {
    core_.Count(Statistic::kDropPdcid);
    return;
  }
  if (pdc->send.RefusesControl(nack.code, nack.psn, nack.spdcid)) {
    core_.Count(Statistic::kRxNacks);
    pdc->send.OnLoss(nack.psn, true, pdc->ordered, core_.now_ns);
    core_.Settle(pdc);
    return;
  }
  const SendWindow& window = pdc->send.window();
  const NackClass what = ClassOf(nack.code);
  const bool gone = what == NackClass::kReopen || what == NackClass::kFatal;
  // From behind the window: an ACK Request asked so, when all is answered; and
  // INV_DPDCID may be about a copy of what was answered before.
  const bool restarted =
      nack.code == NackCode::kInvDpdcid && pdc->state == PdcState::kOpen &&
      nack.psn - (window.una() - 1) <= window.top() - window.una();
  const bool asked = gone && nack.code != NackCode::kUnexpEvent &&
                     nack.psn == window.una() - 1 && window.unanswered() == 0 &&
                     (pdc->held != 0 || !window.empty());
  // Of a late SYN: not of the target that the PDC is open at.
  const bool late =
      nack.code == NackCode::kInvalidSyn && pdc->state == PdcState::kOpen;
  if (late ||
      (!restarted && !asked && !window.Has(window.unanswered(), nack.psn))) {
    core_.Count(Statistic::kDropPsn);
    return;
  }
  core_.Count(Statistic::kRxNacks);
  pdc->send.NoteNack(core_.settings, core_.now_ns);
  if (restarted) {
    Restart(pdc);
  } else if (gone && pdc->state == PdcState::kClosing) {
    Closed(pdc, false);  // The target has closed before.
  } else if (what == NackClass::kTrim) {
    pdc->send.OnTrim(nack.psn, pdc->ordered, core_.now_ns);
  } else if (what == NackClass::kLoss) {
    pdc->send.OnLoss(nack.psn, nack.code == NackCode::kPktNotRcvd, pdc->ordered,
                     core_.now_ns);
  } else if (what == NackClass::kRefusal) {
    pdc->send.OnRefusal(nack.psn, pdc->ordered, core_.settings, core_.now_ns);
  } else if (what == NackClass::kReopen) {
    OnUnknown(pdc, nack.psn, nack.code);
  } else {
    End(pdc, Status::kPeerRejected, static_cast<uint16_t>(nack.code));
  }
  core_.Settle(pdc);
}

bool Initiator::Knows(const Pdc& pdc, const wire::FabricAddress& source,
                      uint16_t spdcid) {
  return source == pdc.peer &&
         (pdc.state == PdcState::kSyn || spdcid == pdc.peer_id);
}

bool Initiator::OpenedBy(Pdc* pdc, const IncomingRequest& request) {
  const PdsRequest& header = request.header;
  const rules::Place place =
      pdc->receive.window.Find(header.psn, pdc->ordered, rules::Reach());
  if (place != rules::Place::kDuplicate && place != rules::Place::kOutside) {
    pdc->state = PdcState::kOpen;
    pdc->peer_id = header.spdcid;
    return true;
  }
  core_.Count(Statistic::kDropPsn);
  SendNack(&core_, PathBack(*request.datagram),
           {.code = NackCode::kInvDpdcid,
            .psn = header.psn,
            .marked = request.datagram->congestion,
            .dpdcid = header.spdcid});
  return false;
}

void Initiator::OnReturn(Pdc* pdc, const IncomingRequest& request) {
  const PdsRequest& header = request.header;
  if (request.arrival.packet.ordered != pdc->ordered) {
    core_.Count(Statistic::kDropPdcid);
    return;
  }
  if (pdc->state == PdcState::kSyn && !OpenedBy(pdc, request)) {
    return;
  }
  pdc->send.Heard(core_.now_ns);
  const Receiver::Judged judged = receiver_.Judge(pdc, request.arrival);
  if (judged.offered()) {
    Verdict verdict;
    const auto ses = request.ses;
    uint32_t id = 0;
    if (header.next_hdr == NextHdr::kResponseData &&
        ses.size() >= SesResponseData::kBytes) {
      id = SesResponseData::Decode(ses.data()).read_request_message_id;
    } else if (header.next_hdr == NextHdr::kResponse &&
               ses.size() >= SesResponse::kBytes) {
      id = SesResponse::Decode(ses.data()).message_id;
    }
    const Message* message = id != 0 && id <= core_.messages.size()
                                 ? &core_.messages[id - 1]
                                 : nullptr;
    if (message != nullptr && message->live && message->expects_data &&
        !message->finished && message->pdc == pdc->index) {
      pdc->used_ns = core_.now_ns;
      verdict = core_.client->OnReturnData(
          {.source = pdc->peer,
           .source_udp_port = request.datagram->source_udp_port,
           .pdc = pdc->index,
           .spdcid = header.spdcid,
           .ordered = pdc->ordered,
           .next_hdr = header.next_hdr,
           .ses = ses});
    } else {
      // No message expects it: acknowledged, and ignored otherwise.
      core_.Count(Statistic::kDropSes);
    }
    const rules::Judgement judgement = rules::Conclude(
        request.arrival.packet, judged.place, pdc->receive.gap, verdict.said());
    if (judgement.outcome != rules::Outcome::kAccept) {
      receiver_.CarryOut(pdc, request.arrival, judged.place, judgement);
    } else {
      core_.Count(Statistic::kRxReturnData);
      verdict.respond = verdict.guaranteed = false;
      receiver_.Accepted(pdc, request.arrival, judged.place, verdict);
    }
  }
  CloseIfWanted(pdc);
  core_.Settle(pdc);
}

void Initiator::OnControl(Pdc* pdc, const contract::wire::PdsCp& cp) {
  if (pdc->state == PdcState::kSyn) {
    core_.Count(Statistic::kDropPdcid);
    return;
  }
  pdc->send.Heard(core_.now_ns);
  Arrival arrival{.packet = {.kind = rules::PacketKind::kAckRequest,
                             .psn = cp.psn,
                             .ordered = pdc->ordered,
                             .retx = cp.retx != 0,
                             .ar = true}};
  switch (cp.cp_type) {
    case contract::CpType::kAckRequest:
      receiver_.Judge(pdc, arrival);
      break;
    case contract::CpType::kClearRequest:
      WantClear(pdc, cp.payload);
      break;
    case contract::CpType::kCloseRequest:
      arrival.packet.kind = rules::PacketKind::kRequest;
      if (const auto judged = receiver_.Judge(pdc, arrival); judged.offered()) {
        receiver_.Accepted(pdc, arrival, judged.place, {});
        pdc->close_wanted = true;
      }
      break;
    case contract::CpType::kProbe:
      SendProbeAnswer(&core_, *pdc, cp.probe_opaque);
      break;
    default:  // What only an initiator asks for.
      core_.Count(Statistic::kDropPdcid);
      break;
  }
  CloseIfWanted(pdc);
  core_.Settle(pdc);
}

void Initiator::OnTimer(Pdc* pdc) {
  SendHalf& send = pdc->send;
  const Settings& settings = core_.settings;
  const uint64_t now = core_.now_ns;
  if (pdc->unreachable) {
    core_.Count(Statistic::kDeadPeers);
    End(pdc, Status::kPeerUnreachable, 0);
    core_.Settle(pdc);
    return;
  }
  receiver_.OnTimer(pdc);
  // Also while all is answered, but what the target keeps holds its CACK back.
  const bool out = !send.window().empty();
  const bool waits = (out || pdc->held != 0) && !send.waiting();
  const bool due = send.timer_ns() <= now;
  const Core::PeerState peer = core_.JudgePeer(pdc, waits);
  if (peer == Core::PeerState::kHeldUp) {
    core_.Settle(pdc);
    return;
  }
  // One that takes for answered what it was not asked: it lives, and will not
  // send them.
  const bool starved = !out && pdc->held != pdc->parked &&
                       now - pdc->used_ns >= settings.dead_ns;
  if (peer == Core::PeerState::kGone || starved) {
    End(pdc, Status::kPeerUnreachable, 0);
  } else if (due && !out && pdc->held != 0) {
    pdc->ask_due = true;  // Does the target still know the PDC?
    send.Watch(now + settings.rto_max_ns);
  } else if (due) {
    const SendHalf::Timer what = send.OnTimer(settings, now);
    if (what == SendHalf::Timer::kTimeout || what == SendHalf::Timer::kAsk) {
      core_.Count(Statistic::kTimeouts);
    }
    pdc->ask_due = pdc->ask_due || what == SendHalf::Timer::kAsk;
    if (pdc->state == PdcState::kSyn && pdc->reopened &&
        pdc->absent_ns != rules::kNever) {
      // The last SYN goes when the time is over, not when the RTO is.
      const uint64_t end = pdc->absent_ns + kReturnRtos * settings.rto_ns;
      send.Watch(std::min(send.timer_ns(), std::max(end, now + 1)));
    }
    if (what == SendHalf::Timer::kClear) {
      // Nobody answers a Clear Command: it may be lost, or the ACK behind it.
      pdc->clear_told = send.window().una() - 1;
      pdc->ask_due = true;
    }
  } else if (pdc->listed && settings.idle_ns != 0 &&
             now - pdc->used_ns >= settings.idle_ns) {
    BeginClose(pdc);
  }
  core_.Settle(pdc);
}

}  // namespace heddle::soft::transport
