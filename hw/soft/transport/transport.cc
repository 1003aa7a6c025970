// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/transport.h"

#include <algorithm>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/transport/control_packets.h"
#include "hw/soft/transport/core.h"
#include "hw/soft/transport/incoming.h"
#include "hw/soft/transport/initiator.h"
#include "hw/soft/transport/receiver.h"
#include "hw/soft/transport/target.h"

namespace heddle::soft::transport {

using contract::NackCode;
using contract::NextHdr;
using contract::PdsType;
using contract::Statistic;
using contract::wire::PdsCp;
using contract::wire::PdsNack;
using contract::wire::PdsPrologue;
using wire::Datagram;
using wire::DatagramWire;

namespace {

// A PDC that the wire had no room for is tried again after this time at the
// latest.
constexpr uint64_t kBlockedRetryNs = 10'000;

bool IsRequest(PdsType type) {
  return type == PdsType::kRodReq || type == PdsType::kRudReq ||
         type == PdsType::kRodCcReq || type == PdsType::kRudCcReq;
}

}  // namespace

class Transport::Impl {
 public:
  Impl(const TransportLimits& limits, DatagramWire* the_wire,
       TransportClient* client, uint64_t seed)
      : core(limits, the_wire, client, seed),
        receiver(&core),
        initiator(&core, &receiver),
        target(&core, &receiver) {}

  void Dispatch(const Datagram& datagram);
  void OnAck(const Datagram& datagram);
  void OnNack(const Datagram& datagram);
  void OnControl(const Datagram& datagram);
  void OnRequest(const Datagram& datagram);
  void OnTrimmed(const Datagram& datagram);
  // The PDC of a trimmed request, or null.
  Pdc* FindTrimmed(const IncomingRequest& request);
  // The PDC named by a packet of the peer's, or null.
  Pdc* Find(uint16_t dpdcid);
  // The same, not counted, of a packet that is answered if the PDC is none of
  // its sender's: null also when this end is initiator under that PDCID, but
  // not the sender's.
  Pdc* Find(const Datagram& datagram, uint16_t spdcid, uint16_t dpdcid);
  void AnswerUnknown(const Datagram& datagram, rules::PacketKind kind,
                     uint32_t psn, uint16_t spdcid, uint16_t dpdcid);
  void RunTimers();
  // Sends one packet of the PDC.
  enum class Turn : uint8_t { kSent, kBlocked, kNothing };
  Turn TakeTurn(Pdc* pdc);
  bool SendAsk(Pdc* pdc);

  Core core;
  Receiver receiver;
  Initiator initiator;
  Target target;
  uint64_t tick_ns = 1;
};

Transport::Transport(const TransportLimits& limits, DatagramWire* wire,
                     TransportClient* client, uint64_t seed, uint64_t tick_ns)
    : impl_(std::make_unique<Impl>(limits, wire, client, seed)) {
  impl_->tick_ns = std::max<uint64_t>(tick_ns, 1);
}

Transport::~Transport() = default;

void Transport::Configure(const contract::PortCfg& port,
                          const contract::TransportCfg& transport) {
  Core& core = impl_->core;
  const uint32_t seed = core.settings.pdc_seed;
  core.settings = Settings::From(port, transport, impl_->tick_ns);
  if (core.settings.pdc_seed != seed) {
    core.random =
        sim::base::Random(core.random.Next() ^ core.settings.pdc_seed);
  }
  if (transport.close == 0) {
    return;
  }
  for (uint32_t i = 0; i < core.pdcs.made(); ++i) {
    Pdc* pdc = &core.pdcs[static_cast<uint16_t>(i)];
    if (pdc->state == PdcState::kFree) {
      continue;
    }
    if (pdc->target) {
      impl_->target.AskToClose(pdc);
    } else {
      impl_->initiator.CloseOnceQuiet(pdc);
    }
  }
}

Transport::PostOutcome Transport::Post(MessageIndex message,
                                       const PdcName& name,
                                       const wire::Path& path, uint32_t packets,
                                       bool expects_data) {
  return impl_->initiator.PostMessage({message, packets, expects_data}, name,
                                      path)
             ? PostOutcome::kQueued
             : PostOutcome::kFull;
}

void Transport::Finish(MessageIndex message) {
  impl_->initiator.Finish(message);
}

void Transport::Hold(MessageIndex message) {
  impl_->initiator.Hold(message);
}

void Transport::Resume(MessageIndex message) {
  impl_->initiator.Resume(message);
}

void Transport::Fail(MessageIndex message) {
  impl_->initiator.Fail(message);
}

bool Transport::Stuck(MessageIndex message) const {
  return impl_->initiator.Stuck(message);
}

bool Transport::PostReturn(uint16_t pdc, const ReturnData& data) {
  return impl_->target.PostReturn(pdc, data);
}

wire::Path Transport::ReturnPath(uint16_t pdc) const {
  return impl_->core.pdcs[pdc].path;
}

Pdc* Transport::Impl::Find(uint16_t dpdcid) {
  Pdc* pdc = core.pdcs.ByPdcid(dpdcid);
  if (pdc == nullptr) {
    core.Count(Statistic::kDropPdcid);
  }
  return pdc;
}

Pdc* Transport::Impl::Find(const Datagram& datagram, uint16_t spdcid,
                           uint16_t dpdcid) {
  Pdc* pdc = core.pdcs.ByPdcid(dpdcid);
  const bool known =
      pdc != nullptr &&
      (pdc->target || Initiator::Knows(*pdc, datagram.source, spdcid));
  return known ? pdc : nullptr;
}

void Transport::Impl::AnswerUnknown(const Datagram& datagram,
                                    rules::PacketKind kind, uint32_t psn,
                                    uint16_t spdcid, uint16_t dpdcid) {
  using Ended = rules::Named::Ended;
  const bool ended = core.pdcs.ids().WasTarget(dpdcid);
  const rules::Judgement judgement = rules::JudgeName(
      {.kind = kind, .psn = psn},
      {.open = false, .ended = ended ? Ended::kNow : Ended::kNo});
  AnswerStranger(&core, datagram, judgement, psn, spdcid);
}

void Transport::Impl::OnAck(const Datagram& datagram) {
  IncomingAck ack;
  bool probe = false;
  if (!ReadAck(datagram.bytes, &ack, &probe)) {
    core.Count(Statistic::kDropPdsType);
    return;
  }
  if (probe) {  // Of none of ours: this end sends no Probes.
    core.Count(Statistic::kDropPdsType);
    return;
  }
  Pdc* pdc = Find(ack.dpdcid);
  if (pdc == nullptr) {
    return;
  }
  if (pdc->target) {
    target.OnAck(pdc, ack, datagram);
  } else {
    initiator.OnAck(pdc, ack, datagram);
  }
}

void Transport::Impl::OnNack(const Datagram& datagram) {
  const PdsNack header = PdsNack::Decode(datagram.bytes.data());
  Pdc* pdc = Find(header.dpdcid);
  if (pdc == nullptr) {
    return;
  }
  const IncomingNack nack{.code = header.nack_code,
                          .psn = header.nack_psn,
                          .spdcid = header.spdcid};
  if (pdc->target) {
    target.OnNack(pdc, nack, datagram);
  } else {
    initiator.OnNack(pdc, nack, datagram);
  }
}

void Transport::Impl::OnControl(const Datagram& datagram) {
  const PdsCp cp = PdsCp::Decode(datagram.bytes.data());
  if (cp.syn != 0 || !IsExecuted(cp.cp_type)) {
    core.Count(Statistic::kDropPdsType);
    return;
  }
  Pdc* pdc = Find(datagram, cp.spdcid, cp.dpdcid);
  if (pdc == nullptr) {
    AnswerUnknown(datagram,
                  IsRefused(cp.cp_type) ? rules::PacketKind::kAckRequest
                                        : rules::PacketKind::kClear,
                  cp.psn, cp.spdcid, cp.dpdcid);
  } else if (pdc->target) {
    target.OnControl(pdc, cp, datagram);
  } else {
    initiator.OnControl(pdc, cp);
  }
}

void Transport::Impl::OnRequest(const Datagram& datagram) {
  IncomingRequest request;
  if (!ReadRequest(datagram, &request)) {
    core.Count(Statistic::kDropPdsType);
    return;
  }
  const contract::wire::PdsRequest& header = request.header;
  const bool back = header.next_hdr != NextHdr::kRequestStd;
  if (header.spdcid == 0 || (back && header.syn != 0)) {
    core.Count(Statistic::kDropPdsType);
    return;
  }
  if (header.syn != 0) {
    target.OnSyn(request);
    return;
  }
  Pdc* pdc = Find(datagram, header.spdcid, header.dpdcid);
  if (pdc == nullptr || pdc->target == back) {
    AnswerUnknown(datagram, rules::PacketKind::kRequest, header.psn,
                  header.spdcid, header.dpdcid);
  } else if (pdc->target) {
    target.OnRequest(pdc, request);
  } else {
    initiator.OnReturn(pdc, request);
  }
}

Pdc* Transport::Impl::FindTrimmed(const IncomingRequest& request) {
  const contract::wire::PdsRequest& header = request.header;
  const wire::FabricAddress& source = request.datagram->source;
  Pdc* const pdc = header.syn != 0 ? core.pdcs.BySource(source, header.spdcid)
                                   : core.pdcs.ByPdcid(header.dpdcid);
  if (pdc == nullptr) {
    return nullptr;
  }
  const rules::Named named{
      .open = true,
      .same_peer = pdc->target
                       ? pdc->peer == source && pdc->peer_id == header.spdcid
                       : Initiator::Knows(*pdc, source, header.spdcid),
      .same_start = pdc->start_psn == header.psn - header.psn_offset,
      .same_mode = pdc->ordered == request.arrival.packet.ordered,
      .listens = !pdc->target || core.client->Listens(request.ses)};
  const rules::Judgement judgement =
      rules::JudgeName(request.arrival.packet, named);
  return judgement.outcome == rules::Outcome::kOffer ? pdc : nullptr;
}

// No CRC covers its header: a NACK for a missing PSN is all that it causes.
void Transport::Impl::OnTrimmed(const Datagram& datagram) {
  IncomingRequest request;
  Pdc* pdc = nullptr;
  if (IsRequest(PdsPrologue::Decode(datagram.bytes.data()).type) &&
      ReadRequest(datagram, &request)) {
    pdc = FindTrimmed(request);
  }
  if (pdc == nullptr || !receiver.Trimmed(pdc, request.arrival, datagram,
                                          request.header.spdcid)) {
    core.Count(Statistic::kDropTrimmed);
    return;
  }
  pdc->receive.heard_ns = core.now_ns;
  pdc->send.Heard(core.now_ns);
  core.Settle(pdc);
}

void Transport::Impl::Dispatch(const Datagram& datagram) {
  if (datagram.trim != wire::Trim::kNone) {
    OnTrimmed(datagram);
    return;
  }
  if (datagram.bytes.size() < PdsPrologue::kBytes) {
    core.Count(Statistic::kDropPdsType);
    return;
  }
  const auto prologue = PdsPrologue::Decode(datagram.bytes.data());
  if (IsPlainRequest(prologue, datagram.bytes.size())) {
    OnRequest(datagram);
    return;
  }
  if (const auto fault = FindFault(prologue, datagram.bytes.size())) {
    core.Count(*fault);
    return;
  }
  switch (prologue.type) {
    case PdsType::kRodReq:
    case PdsType::kRudReq:
    case PdsType::kRodCcReq:
    case PdsType::kRudCcReq:
      OnRequest(datagram);
      break;
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx:
      OnAck(datagram);
      break;
    case PdsType::kNack:
    case PdsType::kNackCcx:
      OnNack(datagram);
      break;
    case PdsType::kCp:
      OnControl(datagram);
      break;
    default:
      core.Count(Statistic::kDropPdsType);
      break;
  }
}

void Transport::Receive(const Datagram& datagram, uint64_t now_ns) {
  Core& core = impl_->core;
  core.now_ns = std::max(core.now_ns, now_ns);
  if (core.settings.enabled) {
    impl_->Dispatch(datagram);
  }
}

void Transport::Impl::RunTimers() {
  uint16_t index = 0;
  while (core.timers.Expired(core.now_ns, &index)) {
    Pdc* pdc = &core.pdcs[index];
    if (pdc->state == PdcState::kFree) {
      continue;
    }
    if (pdc->target) {
      target.OnTimer(pdc);
    } else {
      initiator.OnTimer(pdc);
    }
  }
}

bool Transport::Impl::SendAsk(Pdc* pdc) {
  const SendWindow& window = pdc->send.window();
  const uint64_t open = window.unanswered();
  const uint32_t psn =
      open == 0 ? window.una() - 1
                : window.una() + static_cast<uint32_t>(std::countr_zero(open));
  if (!SendCp(&core, *pdc,
              {.type = contract::CpType::kAckRequest, .psn = psn})) {
    return false;
  }
  pdc->ask_due = false;
  pdc->send.NoteAsked(psn);
  return true;
}

Transport::Impl::Turn Transport::Impl::TakeTurn(Pdc* pdc) {
  const auto outcome = [](bool sent) {
    return sent ? Turn::kSent : Turn::kBlocked;
  };
  if (pdc->receive.owes()) {
    return outcome(receiver.SendOwed(pdc));
  }
  if (pdc->ask_due) {
    return outcome(SendAsk(pdc));
  }
  if (pdc->close_ask_due) {
    pdc->close_ask_due = !receiver.AckDelayed(pdc, true);
    return outcome(!pdc->close_ask_due);
  }
  if (pdc->send.MayResend()) {
    return outcome(pdc->target ? target.SendAgain(pdc)
                               : initiator.SendAgain(pdc));
  }
  if (pdc->has_new() && pdc->send.MaySendNew()) {
    return outcome(pdc->target ? target.SendNew(pdc) : initiator.SendNew(pdc));
  }
  if (pdc->clear_due()) {
    return outcome(initiator.SendClear(pdc));
  }
  return Turn::kNothing;
}

bool Transport::Progress(uint64_t now_ns, uint32_t packets) {
  Core& core = impl_->core;
  core.now_ns = std::max(core.now_ns, now_ns);
  if (!core.settings.enabled) {
    return false;
  }
  if (core.timers.next_ns() <= core.now_ns) {
    impl_->RunTimers();
  }
  if (core.pdcs.ids().next_free_ns() <= core.now_ns) {
    core.pdcs.ids().Tidy(core.now_ns);
  }
  // A packet is built before the wire is asked for room.
  if (!core.blocked.empty() && !core.wire->IsStillFull()) {
    for (const uint16_t index : core.blocked) {
      core.pdcs[index].blocked = false;
      core.Settle(&core.pdcs[index]);
    }
    core.blocked.clear();
  }
  while (packets > 0) {
    Pdc* pdc = core.PopReady();
    if (pdc == nullptr) {
      break;
    }
    if (pdc->state == PdcState::kFree) {
      continue;
    }
    const auto turn = impl_->TakeTurn(pdc);
    if (turn == Impl::Turn::kBlocked) {
      pdc->blocked = true;
      core.blocked.push_back(pdc->index);
    } else if (turn == Impl::Turn::kSent) {
      --packets;
    }
    core.Settle(pdc);
  }
  return core.HasReady();
}

uint64_t Transport::deadline_ns() const {
  const Core& core = impl_->core;
  if (core.HasReady()) {
    return core.now_ns;
  }
  uint64_t deadline =
      std::min(core.timers.next_ns(), core.pdcs.ids().next_tidy_ns());
  if (core.retry_ns > core.now_ns) {
    deadline = std::min(deadline, core.retry_ns);
  }
  return core.blocked.empty()
             ? deadline
             : std::min(deadline, core.now_ns + kBlockedRetryNs);
}

bool Transport::idle() const {
  return impl_->core.busy == 0;
}

Transport::OpenPdcs Transport::open_pdcs() const {
  const PdcTable& pdcs = impl_->core.pdcs;
  return {.initiator = static_cast<uint16_t>(pdcs.open(false)),
          .target = static_cast<uint16_t>(pdcs.open(true))};
}

void Transport::Reset() {
  impl_->core.Clear();
}

uint64_t Transport::statistic(Statistic which) const {
  return impl_->core.statistics[static_cast<size_t>(which)];
}

size_t Transport::bytes_per_pdc() {
  return sizeof(Pdc) + TransportLimits().guaranteed * sizeof(StoredResponse) +
         rules::kWindow * sizeof(ReturnData);
}

}  // namespace heddle::soft::transport
