// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/target.h"

#include <algorithm>

namespace heddle::soft::transport {

using contract::NackCode;
using contract::NextHdr;
using contract::PdsType;
using contract::Statistic;
using contract::wire::PdsRequest;
using wire::Datagram;

namespace {

// PDCs looked at when one is to be closed.
constexpr int kCandidates = 8;

}  // namespace

Pdc* Target::Open(const IncomingRequest& request) {
  Pdc* pdc = core_.TakePdc(true);
  if (pdc == nullptr) {
    return nullptr;
  }
  pdc->state = PdcState::kOpen;
  pdc->ordered = request.arrival.packet.ordered;
  pdc->peer = request.datagram->source;
  pdc->peer_id = request.header.spdcid;
  pdc->path = PathBack(*request.datagram);
  pdc->start_psn = request.header.psn - request.header.psn_offset;
  pdc->ask_due = pdc->close_ask_due = false;
  pdc->close_asked_ns = 0;
  pdc->send.Open(pdc->start_psn, core_.settings, core_.now_ns);
  pdc->return_tail = pdc->start_psn;
  std::vector<StoredResponse> stored = std::move(pdc->receive.stored);
  pdc->receive = ReceiveHalf();
  pdc->receive.heard_ns = core_.now_ns;
  pdc->receive.window.Open(pdc->start_psn);
  pdc->receiver = FunctionBehind(&core_, *pdc);
  stored.assign(core_.limits.guaranteed, StoredResponse());
  pdc->receive.stored = std::move(stored);
  return pdc;
}

void Target::OnSyn(const IncomingRequest& request) {
  const PdsRequest& header = request.header;
  const Datagram& datagram = *request.datagram;
  const rules::Packet& packet = request.arrival.packet;
  const uint32_t start = header.psn - header.psn_offset;
  Pdc* pdc = core_.pdcs.BySource(datagram.source, header.spdcid);
  const bool fresh = pdc == nullptr;
  rules::Named named{.open = !fresh,
                     .listens = core_.client->Listens(request.ses)};
  if (fresh) {
    named.ended = core_.tombstones.Find({datagram.source, start, header.spdcid},
                                        core_.now_ns);
  } else {
    named.same_start = pdc->start_psn == start;
    named.same_mode = pdc->ordered == request.arrival.packet.ordered;
  }
  rules::Judgement judgement = rules::JudgeName(packet, named);
  if (fresh && judgement.outcome == rules::Outcome::kOffer) {
    pdc = Open(request);
    if (pdc == nullptr) {
      MakeRoom();
      pdc = Open(request);
    }
    named.room = pdc != nullptr;
    judgement = rules::JudgeName(packet, named);
  }
  if (judgement.outcome == rules::Outcome::kOffer) {
    Take(pdc, request, fresh);
  } else {
    AnswerStranger(&core_, datagram, judgement, header.psn, header.spdcid);
  }
}

void Target::OnRequest(Pdc* pdc, const IncomingRequest& request) {
  const PdsRequest& header = request.header;
  const Datagram& datagram = *request.datagram;
  const bool listens = core_.client->Listens(request.ses);
  const rules::Judgement judgement = rules::JudgeName(
      request.arrival.packet,
      {.open = true,
       .same_peer =
           pdc->peer == datagram.source && pdc->peer_id == header.spdcid,
       .same_mode = pdc->ordered == request.arrival.packet.ordered,
       .listens = listens});
  if (judgement.outcome == rules::Outcome::kOffer) {
    Take(pdc, request, false);
  } else {
    AnswerStranger(&core_, datagram, judgement, header.psn, header.spdcid);
  }
}

void Target::Take(Pdc* pdc, const IncomingRequest& request, bool fresh) {
  pdc->receive.heard_ns = core_.now_ns;
  pdc->send.Heard(core_.now_ns);
  const Receiver::Judged judged = receiver_.Judge(pdc, request.arrival);
  rules::Outcome outcome = judged.outcome;
  if (judged.offered()) {
    outcome = Offer(pdc, request, judged.place);
    if (!fresh) {
      core_.pdcs.Touch(pdc);
    }
  }
  if (fresh && rules::Opens(outcome)) {
    core_.pdcs.AddName(pdc);
    core_.pdcs.Touch(pdc);
    core_.Count(Statistic::kRxPdcs);
  } else if (fresh) {
    core_.pdcs.Return(pdc, 0);
  }
  core_.Settle(pdc);
}

rules::Outcome Target::Offer(Pdc* pdc, const IncomingRequest& request,
                             rules::Place place) {
  const Datagram& datagram = *request.datagram;
  const Arrival& arrival = request.arrival;
  const uint32_t returns = pdc->return_tail;
  offering_ = true;
  const Verdict verdict =
      core_.client->OnRequest({.source = pdc->peer,
                               .source_udp_port = datagram.source_udp_port,
                               .pdc = pdc->index,
                               .spdcid = pdc->peer_id,
                               .ordered = pdc->ordered,
                               .next_hdr = request.header.next_hdr,
                               .ses = request.ses},
                              Receiver::MayGuarantee(*pdc, arrival.packet.psn));
  offering_ = false;
  const rules::Judgement judgement =
      rules::Conclude(arrival.packet, place, pdc->receive.gap, verdict.said());
  if (judgement.outcome != rules::Outcome::kAccept) {
    pdc->return_tail = returns;
    receiver_.CarryOut(pdc, arrival, place, judgement);
    return judgement.outcome;
  }
  pdc->path = PathBack(datagram);
  core_.Count(Statistic::kRxRequests);
  if (datagram.congestion) {
    core_.Count(Statistic::kRxEcnMarked);
  }
  receiver_.Accepted(pdc, arrival, place, verdict);
  return judgement.outcome;
}

bool Target::CloseThoseThatLeft() {
  if (core_.now_ns < look_ns_) {
    return false;
  }
  look_ns_ = core_.now_ns + core_.settings.rto_ns;
  bool any = false;
  for (Pdc* pdc = core_.pdcs.Oldest(true); pdc != nullptr;) {
    Pdc* next = core_.pdcs.Newer(*pdc);
    if (pdc->receiver != 0 && core_.wire->HasLeft(pdc->receiver)) {
      core_.Count(Statistic::kPdcEvictions);
      Close(pdc, true);
      any = true;
    }
    pdc = next;
  }
  return any;
}

void Target::MakeRoom() {
  if (CloseThoseThatLeft()) {
    return;
  }
  const Settings& settings = core_.settings;
  Pdc* pdc = core_.pdcs.Oldest(true);
  for (int i = 0; i < kCandidates && pdc != nullptr; ++i) {
    Pdc* next = core_.pdcs.Newer(*pdc);
    // An initiator that still waited for something would have been heard or
    // would have given up.
    if (core_.now_ns - pdc->receive.heard_ns >= 2 * settings.dead_ns) {
      core_.Count(Statistic::kPdcEvictions);
      Close(pdc, true);
      return;
    }
    if (pdc->quiet() && core_.now_ns - pdc->close_asked_ns >= settings.rto_ns) {
      if (pdc->close_asked_ns != 0) {
        // Its initiator keeps it, for messages on hold. The others' turn.
        pdc->close_asked_ns = 0;
        core_.pdcs.Touch(pdc);
        pdc = next;
        continue;
      }
      pdc->close_asked_ns = core_.now_ns;
      // Lost or not sent: the next refusal asks again.
      if (receiver_.AckDelayed(pdc, true)) {
        core_.Settle(pdc);
      }
      return;
    }
    pdc = next;
  }
}

void Target::AskToClose(Pdc* pdc) {
  pdc->close_ask_due = true;
  core_.Settle(pdc);
}

bool Target::PostReturn(uint16_t index, const ReturnData& data) {
  Pdc& pdc = core_.pdcs[index];
  if (!offering_ || pdc.return_tail - pdc.send.window().una() >=
                        core_.limits.return_records) {
    return false;
  }
  if (pdc.returns.empty()) {
    pdc.returns.resize(rules::kWindow);
  }
  pdc.returns[pdc.return_tail++ % rules::kWindow] = data;
  return true;
}

bool Target::SendReturn(Pdc* pdc, const Frame& frame, size_t* bytes) {
  const std::span<uint8_t> room = core_.wire->Room();
  const auto built =
      core_.client->BuildReturn(pdc->returns[frame.psn % rules::kWindow],
                                room.subspan(PdsRequest::kBytes));
  PdsRequest header;
  header.type = pdc->ordered ? PdsType::kRodReq : PdsType::kRudReq;
  header.next_hdr = built.next_hdr;
  header.retx = frame.retx ? 1 : 0;
  header.ar = frame.ar ? 1 : 0;
  header.psn = frame.psn;
  const uint32_t clear = pdc->send.window().clear_psn();
  header.clear_psn_offset = static_cast<int16_t>(
      rules::Before(clear, frame.psn) ? clear - frame.psn : 0u);
  header.spdcid = pdc->id;
  header.dpdcid = pdc->peer_id;
  header.Encode(room.data());
  *bytes = PdsRequest::kBytes + built.bytes;
  return core_.wire->Send(pdc->path, *bytes) ==
         wire::DatagramWire::SendOutcome::kSent;
}

bool Target::SendNew(Pdc* pdc) {
  SendHalf& send = pdc->send;
  const uint32_t psn = send.window().top();
  const bool ar = psn + 1 == pdc->return_tail ||
                  psn % kAckRequestEvery == kAckRequestEvery - 1 ||
                  send.Asks(NominalBytes(core_.settings, core_.settings.mtu));
  size_t bytes = 0;
  if (!SendReturn(pdc, {.psn = psn, .ar = ar}, &bytes)) {
    return false;
  }
  send.NoteSent(0, NominalBytes(core_.settings, static_cast<uint32_t>(bytes)),
                core_.settings, core_.now_ns);
  core_.Count(Statistic::kTxReturnData);
  return true;
}

bool Target::SendAgain(Pdc* pdc) {
  const uint32_t psn = pdc->send.window().first_lost();
  size_t bytes = 0;
  if (!SendReturn(pdc, {.psn = psn, .ar = true, .retx = true}, &bytes)) {
    return false;
  }
  pdc->send.NoteResent(psn, core_.now_ns);
  core_.Count(Statistic::kTxRetransmissions);
  return true;
}

void Target::Retire(Pdc* pdc, uint32_t psn) {
  core_.client->OnReturnRetired(pdc->returns[psn % rules::kWindow]);
}

void Target::OnAck(Pdc* pdc, const IncomingAck& ack, const Datagram& datagram) {
  if (datagram.source != pdc->peer || ack.spdcid != pdc->peer_id) {
    core_.Count(Statistic::kDropPdcid);
    return;
  }
  if (pdc->send.Check(ack.facts) == SendHalf::Validity::kBeyond) {
    core_.Count(Statistic::kDropPsn);
    return;
  }
  core_.Count(Statistic::kRxAcks);
  pdc->receive.heard_ns = core_.now_ns;
  pdc->send.OnAck(ack.facts, core_.settings, core_.now_ns,
                  [&](uint32_t psn) { Retire(pdc, psn); });
  core_.Settle(pdc);
}

void Target::OnNack(Pdc* pdc, const IncomingNack& nack,
                    const Datagram& datagram) {
  const bool known = nack.spdcid == 0 || nack.spdcid == pdc->peer_id;
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
  if (!window.Has(window.unanswered(), nack.psn)) {
    core_.Count(Statistic::kDropPsn);
    return;
  }
  core_.Count(Statistic::kRxNacks);
  pdc->receive.heard_ns = core_.now_ns;
  pdc->send.NoteNack(core_.settings, core_.now_ns);
  switch (ClassOf(nack.code)) {
    case NackClass::kTrim:
      pdc->send.OnTrim(nack.psn, pdc->ordered, core_.now_ns);
      break;
    case NackClass::kLoss:
      pdc->send.OnLoss(nack.psn, nack.code == NackCode::kPktNotRcvd,
                       pdc->ordered, core_.now_ns);
      break;
    case NackClass::kRefusal:
      pdc->send.OnRefusal(nack.psn, pdc->ordered, core_.settings, core_.now_ns);
      break;
    case NackClass::kReopen:
    case NackClass::kFatal:  // The initiator has given the PDC up.
      Close(pdc, true);
      break;
  }
  core_.Settle(pdc);
}

void Target::Close(Pdc* pdc, bool in_error) {
  const SendWindow& window = pdc->send.window();
  for (uint32_t psn = window.una(); psn != pdc->return_tail; ++psn) {
    if (!window.Has(window.answered(), psn)) {
      Retire(pdc, psn);
    }
  }
  core_.tombstones.Add(pdc->identity(),
                       core_.now_ns + core_.settings.safety_ns);
  const wire::FabricAddress source = pdc->peer;
  const uint16_t spdcid = pdc->peer_id;
  core_.pdcs.Return(pdc, 0, in_error);
  core_.Settle(pdc);
  core_.client->OnTargetClosed(source, spdcid, in_error);
}

void Target::OnClose(Pdc* pdc, const Arrival& arrival) {
  const Receiver::Judged judged = receiver_.Judge(pdc, arrival);
  if (!judged.offered()) {
    return;
  }
  // Return data that is not acknowledged yet: the command comes again.
  rules::Said said;
  if (!pdc->quiet()) {
    said = {rules::Said::Kind::kRefused, NackCode::kRcvdSesProcg};
  }
  const rules::Judgement judgement =
      rules::Conclude(arrival.packet, judged.place, pdc->receive.gap, said);
  if (judgement.outcome != rules::Outcome::kClose) {
    receiver_.CarryOut(pdc, arrival, judged.place, judgement);
    return;
  }
  rules::Close(arrival.packet, &pdc->receive);
  const AckOut ack{.what = rules::AckFor::kTaken,
                   .psn = arrival.packet.psn,
                   .retx = arrival.packet.retx,
                   .plain = true};
  if (!SendAck(&core_, pdc, ack)) {
    // The command comes again, to a PDC that is gone.
  }
  Close(pdc, false);
}

void Target::OnControl(Pdc* pdc, const contract::wire::PdsCp& cp,
                       const Datagram& datagram) {
  const Arrival arrival{.packet = PacketOf(cp, datagram)};
  const bool same_peer =
      pdc->peer == datagram.source && pdc->peer_id == cp.spdcid;
  const rules::Judgement judgement =
      rules::JudgeName(arrival.packet, {.open = true, .same_peer = same_peer});
  if (judgement.outcome != rules::Outcome::kOffer) {
    AnswerStranger(&core_, datagram, judgement, cp.psn, cp.spdcid);
    return;
  }
  pdc->receive.heard_ns = core_.now_ns;
  pdc->send.Heard(core_.now_ns);
  switch (arrival.packet.kind) {
    case rules::PacketKind::kClose:
      OnClose(pdc, arrival);
      break;
    case rules::PacketKind::kProbe:
      SendProbeAnswer(&core_, *pdc, cp.probe_opaque);
      break;
    case rules::PacketKind::kNegotiation:
      SendOffer(&core_, *pdc, cp.psn);
      break;
    default:
      receiver_.Judge(pdc, arrival);
      break;
  }
  core_.Settle(pdc);
}

void Target::OnTimer(Pdc* pdc) {
  SendHalf& send = pdc->send;
  const Settings& settings = core_.settings;
  const uint64_t now = core_.now_ns;
  receiver_.OnTimer(pdc);
  const bool due = send.timer_ns() <= now;
  const bool waits = !send.window().empty() && !send.waiting();
  const Core::PeerState peer = core_.JudgePeer(pdc, waits);
  if (peer == Core::PeerState::kHeldUp) {
    core_.Settle(pdc);
    return;
  }
  if (peer == Core::PeerState::kGone) {
    Close(pdc, true);
    return;
  }
  if (due) {
    const SendHalf::Timer what = send.OnTimer(settings, now);
    if (what == SendHalf::Timer::kTimeout || what == SendHalf::Timer::kAsk) {
      core_.Count(Statistic::kTimeouts);
    }
    pdc->ask_due = pdc->ask_due || what == SendHalf::Timer::kAsk ||
                   what == SendHalf::Timer::kClear;
  } else if (now - pdc->receive.heard_ns >= 2 * settings.dead_ns) {
    Close(pdc, true);
    return;
  }
  core_.Settle(pdc);
}

}  // namespace heddle::soft::transport
