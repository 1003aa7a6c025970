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

void Target::Strange(const Datagram& datagram, NackCode code, uint32_t psn,
                     uint16_t dpdcid) {
  SendNack(&core_, PathBack(datagram),
           {.code = code,
            .psn = psn,
            .marked = datagram.congestion,
            .dpdcid = dpdcid});
}

Pdc* Target::Open(const IncomingRequest& request) {
  Pdc* pdc = core_.TakePdc(true);
  if (pdc == nullptr) {
    return nullptr;
  }
  pdc->state = PdcState::kOpen;
  pdc->ordered = request.ordered;
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

bool Target::Listens() {
  if (core_.client->Listens()) {
    return true;
  }
  core_.Count(Statistic::kRxRefused);
  return false;
}

void Target::OnSyn(const IncomingRequest& request) {
  const PdsRequest& header = request.header;
  const Datagram& datagram = *request.datagram;
  Pdc* pdc = core_.pdcs.BySource(datagram.source, header.spdcid);
  const uint32_t start = header.psn - header.psn_offset;
  if (pdc != nullptr &&
      (pdc->start_psn != start || pdc->ordered != request.ordered)) {
    core_.Count(Statistic::kDropPdcid);
    Strange(datagram,
            pdc->start_psn != start ? NackCode::kInvalidSyn
                                    : NackCode::kPdcModeMismatch,
            header.psn, header.spdcid);
    return;
  }
  if (!Listens()) {
    return;
  }
  if (pdc != nullptr) {
    Take(pdc, request, false);
    return;
  }
  const Tombstones::Ended ended = core_.tombstones.Find(
      {datagram.source, start, header.spdcid}, core_.now_ns);
  if (ended != Tombstones::Ended::kUnknown) {
    core_.Count(Statistic::kRxClosing);
    Strange(datagram,
            ended == Tombstones::Ended::kNow ? NackCode::kClosing
                                             : NackCode::kInvalidSyn,
            header.psn, header.spdcid);
    return;
  }
  if (header.psn_offset >= kWindow) {
    core_.Count(Statistic::kDropPsn);
    Strange(datagram, NackCode::kPsnOorWindow, header.psn, header.spdcid);
    return;
  }
  pdc = Open(request);
  if (pdc == nullptr) {
    MakeRoom();
    pdc = Open(request);
  }
  if (pdc == nullptr) {
    core_.Count(Statistic::kRxRefused);
    Strange(datagram, NackCode::kNoPdcAvail, header.psn, header.spdcid);
    return;
  }
  Take(pdc, request, true);
}

void Target::OnRequest(Pdc* pdc, const IncomingRequest& request) {
  const PdsRequest& header = request.header;
  if (pdc->peer != request.datagram->source || pdc->peer_id != header.spdcid) {
    core_.Count(Statistic::kDropPdcid);
    Strange(*request.datagram, NackCode::kPdcHdrMismatch, header.psn,
            header.spdcid);
    return;
  }
  if (pdc->ordered != request.ordered) {
    core_.Count(Statistic::kDropPdsType);
    Strange(*request.datagram, NackCode::kPdcModeMismatch, header.psn,
            header.spdcid);
    return;
  }
  if (Listens()) {
    Take(pdc, request, false);
  }
}

void Target::Take(Pdc* pdc, const IncomingRequest& request, bool fresh) {
  const Arrival& arrival = request.arrival;
  pdc->receive.heard_ns = core_.now_ns;
  pdc->send.Heard(core_.now_ns);
  const uint32_t clear =
      request.header.psn +
      static_cast<uint32_t>(int32_t{request.header.clear_psn_offset});
  if (!Before(request.header.psn, clear)) {
    receiver_.Cleared(pdc, clear);
  }
  if (receiver_.IsNew(pdc, arrival)) {
    Offer(pdc, request, fresh);
  } else if (fresh) {  // Early: the packets before it will come.
    core_.pdcs.AddName(pdc);
    core_.pdcs.Touch(pdc);
    core_.Count(Statistic::kRxPdcs);
  }
  core_.Settle(pdc);
}

void Target::Offer(Pdc* pdc, const IncomingRequest& request, bool fresh) {
  const Datagram& datagram = *request.datagram;
  const uint32_t returns = pdc->return_tail;
  offering_ = true;
  const Verdict verdict = core_.client->OnRequest(
      {.source = pdc->peer,
       .source_udp_port = datagram.source_udp_port,
       .pdc = pdc->index,
       .spdcid = pdc->peer_id,
       .ordered = pdc->ordered,
       .next_hdr = request.header.next_hdr,
       .ses = request.ses},
      Receiver::MayGuarantee(*pdc, request.arrival.psn));
  offering_ = false;
  if (verdict.kind != Verdict::Kind::kAccepted) {
    pdc->return_tail = returns;
  }
  if (verdict.kind == Verdict::Kind::kDropped) {
    core_.Count(Statistic::kDropSes);
    if (fresh) {
      core_.pdcs.Return(pdc, 0);
    }
    return;
  }
  if (fresh) {
    core_.pdcs.AddName(pdc);
    core_.Count(Statistic::kRxPdcs);
  }
  core_.pdcs.Touch(pdc);
  if (verdict.kind == Verdict::Kind::kRefused) {
    receiver_.Refused(pdc, request.arrival, verdict.nack);
    return;
  }
  pdc->path = PathBack(datagram);
  core_.Count(Statistic::kRxRequests);
  if (datagram.congestion) {
    core_.Count(Statistic::kRxEcnMarked);
  }
  receiver_.Accepted(pdc, request.arrival, verdict);
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
      pdc->close_asked_ns = core_.now_ns;
      // Lost or not sent: the next refusal asks again.
      if (receiver_.AckDelayed(pdc, contract::AckReq::kClose)) {
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
    pdc.returns.resize(kWindow);
  }
  pdc.returns[pdc.return_tail++ % kWindow] = data;
  return true;
}

bool Target::SendReturn(Pdc* pdc, const Frame& frame, size_t* bytes) {
  const std::span<uint8_t> room = core_.wire->Room();
  const auto built = core_.client->BuildReturn(
      pdc->returns[frame.psn % kWindow], room.subspan(PdsRequest::kBytes));
  PdsRequest header;
  header.type = pdc->ordered ? PdsType::kRodReq : PdsType::kRudReq;
  header.next_hdr = built.next_hdr;
  header.retx = frame.retx ? 1 : 0;
  header.ar = frame.ar ? 1 : 0;
  header.psn = frame.psn;
  const uint32_t clear = pdc->send.window().clear_psn();
  header.clear_psn_offset =
      static_cast<int16_t>(Before(clear, frame.psn) ? clear - frame.psn : 0u);
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
  core_.client->OnReturnRetired(pdc->returns[psn % kWindow]);
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
  pdc->send.Heard(core_.now_ns);
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
  if (!receiver_.IsNew(pdc, arrival)) {
    return;
  }
  if (arrival.psn != pdc->receive.window.next() || !pdc->quiet()) {
    // Packets before it are missing, or return data is not acknowledged yet:
    // the command comes again.
    receiver_.Refused(pdc, arrival, NackCode::kRcvdSesProcg);
    return;
  }
  // Everything in the forward direction is cleared with it (UET 2.16).
  receiver_.Cleared(pdc, arrival.psn - 1);
  receiver_.Accepted(pdc, {.psn = arrival.psn}, {});
  const AckOut ack{.psn = arrival.psn, .retx = arrival.retx, .plain = true};
  if (!SendAck(&core_, pdc, ack)) {
    // The command comes again, to a PDC that is gone.
  }
  Close(pdc, false);
}

void Target::OnControl(Pdc* pdc, const contract::wire::PdsCp& cp,
                       const Datagram& datagram) {
  if (pdc->peer != datagram.source || pdc->peer_id != cp.spdcid) {
    core_.Count(Statistic::kDropPdcid);
    Strange(datagram, NackCode::kPdcHdrMismatch, cp.psn, cp.spdcid);
    return;
  }
  pdc->receive.heard_ns = core_.now_ns;
  pdc->send.Heard(core_.now_ns);
  const Arrival arrival{.psn = cp.psn,
                        .ar = true,
                        .retx = cp.retx != 0,
                        .marked = datagram.congestion};
  switch (cp.cp_type) {
    case contract::CpType::kAckRequest:
      receiver_.Asked(pdc, arrival);
      break;
    case contract::CpType::kClearCommand:
      receiver_.Cleared(pdc, cp.payload);
      break;
    case contract::CpType::kCloseCommand:
      OnClose(pdc, arrival);
      break;
    case contract::CpType::kProbe:
      SendProbeAnswer(&core_, *pdc, cp.probe_opaque);
      break;
    case contract::CpType::kNegotiation:
      SendOffer(&core_, *pdc, cp.psn);
      break;
    default:  // What only a target asks for.
      core_.Count(Statistic::kDropPdsType);
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
