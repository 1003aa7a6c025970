// SPDX-License-Identifier: Apache-2.0
// Initiator: packets that leave, PDCs that open.
#include "hw/sim/soft/transport/initiator.h"

#include <algorithm>

namespace heddle::sim::soft {

using contract::CpType;
using contract::PdsType;
using contract::Statistic;
namespace wire = contract::wire;

namespace {

constexpr uint16_t kEntropyMask = 0x3fff;

uint16_t EntropyPort(uint32_t value) {
  return static_cast<uint16_t>(contract::kEntropyPortFirst +
                               (value & kEntropyMask));
}

}  // namespace

// UET 2.13: random, and far from what the PDCID was used for before.
uint32_t Initiator::StartPsn(uint16_t pdcid) {
  const uint16_t id = pdcid & (PdcidPool::kIds - 1);
  const uint32_t random = static_cast<uint32_t>(core_.random.Next());
  if (used_id_[id]) {
    constexpr uint32_t kFar = 1u << 16;
    return last_psn_[id] + kFar + random % (0u - 2 * kFar);
  }
  used_id_[id] = true;
  return core_.limits.first_psn.value_or(random);
}

Pdc* Initiator::Open(const PdcName& name, const Path& path) {
  const Settings& settings = core_.settings;
  Pdc* pdc = core_.pdcs.Take(false, settings.slot_bits, core_.now_ns);
  if (pdc == nullptr) {
    MakeRoom();
    return nullptr;
  }
  pdc->state = PdcState::kSyn;
  pdc->ordered = name.ordered;
  pdc->peer = name.peer;
  pdc->peer_id = 0;
  pdc->path = path;
  pdc->path.entropy =
      EntropyPort(static_cast<uint32_t>(core_.random.Next() >> 32));
  pdc->name = name;
  pdc->start_psn = StartPsn(pdc->id);
  pdc->clear_told = pdc->clear_asked = pdc->start_psn - 1;
  pdc->close_wanted = pdc->close_due = false;
  pdc->ask_due = false;
  pdc->held = 0;
  pdc->receiver = 0;
  pdc->refused = 0;
  pdc->queue_head = pdc->queue_tail = Pdc::kNoMessage;
  pdc->send.Open(pdc->start_psn, settings, core_.now_ns);
  pdc->receive = ReceiveHalf();
  pdc->receive.window.Open(pdc->start_psn);
  core_.pdcs.AddName(pdc);
  core_.Count(Statistic::kTxPdcs);
  return pdc;
}

// Closes the PDC that had nothing to do for longest, so that a later `Post`
// finds one.
void Initiator::MakeRoom() {
  if (!core_.pdcs.full(false)) {
    core_.retry_ns = core_.pdcs.next_pdcid_ns();  // PDCIDs are short.
  }
  Pdc* oldest = core_.pdcs.Oldest(false);
  const uint32_t at_once = std::max<uint32_t>(1, core_.limits.pdcs / 16);
  if (oldest != nullptr && core_.closing < at_once) {
    core_.Count(Statistic::kPdcEvictions);
    BeginClose(oldest);
    core_.Settle(oldest);
  }
}

bool Initiator::PostMessage(const Post& post, const PdcName& name,
                            const Path& path) {
  Pdc* pdc = core_.pdcs.ByName(name);
  if (pdc == nullptr) {
    pdc = Open(name, path);
    if (pdc == nullptr) {
      return false;
    }
  }
  core_.messages[post.message] = {.packets = post.packets,
                                  .pdc = pdc->index,
                                  .live = true,
                                  .expects_data = post.expects_data};
  if (pdc->queue_head == Pdc::kNoMessage) {
    pdc->queue_head = post.message;
  } else {
    core_.messages[pdc->queue_tail].next = post.message;
  }
  pdc->queue_tail = post.message;
  core_.Settle(pdc);
  return true;
}

void Initiator::Finish(MessageIndex index) {
  Message& message = core_.messages[index];
  message.finished = true;
  if (message.held) {
    message.held = message.live = false;
    Pdc* pdc = &core_.pdcs[message.pdc];
    --pdc->held;
    CloseIfWanted(pdc);
    core_.Settle(pdc);
  }
}

bool Initiator::Stuck(MessageIndex index) const {
  const Message& message = core_.messages[index];
  if (!message.live) {
    return false;
  }
  const Pdc& pdc = core_.pdcs[message.pdc];
  return pdc.send.stuck() || pdc.refused != 0;
}

bool Initiator::ReachesTheSame(Pdc* pdc, size_t bytes) {
  const uint32_t receiver = core_.wire->ReceiverOf(pdc->path, bytes);
  if (pdc->receiver == 0) {
    pdc->receiver = receiver;
  }
  return pdc->receiver == receiver;
}

bool Initiator::SendRequest(Pdc* pdc, const Frame& frame,
                            const TransportClient::Built& built) {
  wire::PdsRequest header;
  header.type = pdc->ordered ? PdsType::kRodReq : PdsType::kRudReq;
  header.next_hdr = built.next_hdr;
  header.retx = frame.retx ? 1 : 0;
  header.ar = frame.ar ? 1 : 0;
  header.psn = frame.psn;
  const uint32_t clear = pdc->send.window().clear_psn();
  // Behind what the packet itself tells, nothing is asked for.
  const uint32_t told = Before(clear, frame.psn) ? clear : frame.psn;
  header.clear_psn_offset = static_cast<int16_t>(told - frame.psn);
  header.spdcid = pdc->id;
  if (pdc->state == PdcState::kSyn) {
    header.syn = 1;
    header.psn_offset = static_cast<uint16_t>(frame.psn - pdc->start_psn);
  } else {
    header.dpdcid = pdc->peer_id;
  }
  header.Encode(core_.wire->Room().data());
  if (header.syn != 0 &&
      !ReachesTheSame(pdc, wire::PdsRequest::kBytes + built.bytes)) {
    return true;  // Lost: the timer finds out.
  }
  if (!pdc->ordered) {
    pdc->path.entropy = EntropyPort(pdc->path.entropy + 1u);
  }
  if (core_.wire->Send(pdc->path, wire::PdsRequest::kBytes + built.bytes) ==
      DatagramWire::SendOutcome::kBlocked) {
    return false;
  }
  if (Before(pdc->clear_told, told)) {
    pdc->Tell(told);
  }
  return true;
}

bool Initiator::SendNew(Pdc* pdc) {
  SendHalf& send = pdc->send;
  if (pdc->close_due) {
    return SendClose(pdc, send.window().top(), false);
  }
  const MessageIndex index = pdc->queue_head;
  Message& message = core_.messages[index];
  const auto built = core_.client->BuildRequest(
      index, message.sent,
      core_.wire->Room().subspan(wire::PdsRequest::kBytes));
  const bool last = built.last || message.sent + 1 == message.packets;
  const bool follows = !last || message.next != Pdc::kNoMessage;
  const uint32_t psn = send.window().top();
  const uint32_t nominal = NominalBytes(
      static_cast<uint32_t>(wire::PdsRequest::kBytes + built.bytes));
  const bool prompt = !built.unheard || core_.settings.congestion;
  const bool ar = (!follows && prompt) || pdc->state == PdcState::kSyn ||
                  psn % kAckRequestEvery == kAckRequestEvery - 1 ||
                  send.Asks(nominal);
  if (!SendRequest(pdc, {.psn = psn, .ar = ar}, built)) {
    return false;
  }
  if (message.sent == 0) {
    message.first_psn = psn;
  }
  ++message.sent;
  if (last) {
    message.packets = message.sent;
    pdc->queue_head = message.next;
  }
  send.NoteSent(index, nominal, core_.settings, core_.now_ns);
  core_.Count(Statistic::kTxRequests);
  return true;
}

bool Initiator::SendAgain(Pdc* pdc) {
  SendWindow& window = pdc->send.window();
  const uint32_t psn = window.first_lost();
  const uint32_t what = window.packet(psn).what;
  if (what == Pdc::kCloseCommand) {
    if (!SendClose(pdc, psn, true)) {
      return false;
    }
  } else {
    const Message& message = core_.messages[what];
    const auto built = core_.client->BuildRequest(
        what, psn - message.first_psn,
        core_.wire->Room().subspan(wire::PdsRequest::kBytes));
    if (!SendRequest(pdc, {.psn = psn, .ar = true, .retx = true}, built)) {
      return false;
    }
  }
  if (window.arrived() > Bit(psn - window.una())) {
    core_.Count(Statistic::kTxSelective);
  }
  pdc->send.NoteResent(psn, core_.now_ns);
  core_.Count(Statistic::kTxRetransmissions);
  return true;
}

bool Initiator::SendClose(Pdc* pdc, uint32_t psn, bool retx) {
  const CpOut cp{
      .type = CpType::kCloseCommand, .psn = psn, .ar = true, .retx = retx};
  if (!SendCp(&core_, *pdc, cp)) {
    return false;
  }
  if (!retx) {
    pdc->close_due = false;
    pdc->send.NoteSent(Pdc::kCloseCommand, NominalBytes(wire::PdsCp::kBytes),
                       core_.settings, core_.now_ns);
  }
  return true;
}

bool Initiator::SendClear(Pdc* pdc) {
  const uint32_t clear = pdc->send.window().clear_psn();
  if (!SendCp(&core_, *pdc,
              {.type = CpType::kClearCommand, .payload = clear})) {
    return false;
  }
  core_.Count(Statistic::kTxClears);
  pdc->Tell(clear);
  return true;
}

void Initiator::BeginClose(Pdc* pdc) {
  core_.pdcs.RemoveName(pdc);
  pdc->state = PdcState::kClosing;
  pdc->close_due = true;
  ++core_.closing;
}

void Initiator::CloseIfWanted(Pdc* pdc) {
  if (pdc->close_wanted && pdc->state == PdcState::kOpen && pdc->quiet()) {
    BeginClose(pdc);
  }
}

void Initiator::Closed(Pdc* pdc, bool answered) {
  if (answered) {
    core_.Count(Statistic::kPdcCloses);
  }
  --core_.closing;
  last_psn_[pdc->id & (PdcidPool::kIds - 1)] = pdc->send.window().top();
  core_.pdcs.Return(pdc, core_.now_ns + core_.settings.safety_ns);
}

}  // namespace heddle::sim::soft
