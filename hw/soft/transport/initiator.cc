// SPDX-License-Identifier: Apache-2.0
// Initiator: packets that leave, PDCs that open.
#include "hw/soft/transport/initiator.h"

#include <algorithm>

namespace heddle::soft::transport {

using contract::CpType;
using contract::PdsType;
using contract::Statistic;
using contract::wire::PdsRequest;
using wire::Path;

namespace {

constexpr uint16_t kEntropyMask = 0x3fff;

uint16_t EntropyPort(uint32_t value) {
  return static_cast<uint16_t>(contract::kEntropyPortFirst +
                               (value & kEntropyMask));
}

}  // namespace

// UET 2.13: random, and far from what the PDCID was used for before.
uint32_t Initiator::StartPsn(uint16_t pdcid) {
  const uint32_t random = static_cast<uint32_t>(core_.random.Next());
  PdcidPool::Past& past = core_.pdcs.ids().PastOf(pdcid);
  if (past.initiator) {
    constexpr uint32_t kFar = 1u << 16;
    return past.last_psn + kFar + random % (0u - 2 * kFar);
  }
  past.initiator = true;
  return core_.limits.first_psn.value_or(random);
}

Pdc* Initiator::Open(const PdcName& name, const Path& path) {
  Pdc* pdc = core_.TakePdc(false);
  if (pdc == nullptr) {
    MakeRoom();
    return nullptr;
  }
  pdc->ordered = name.ordered;
  pdc->peer = name.peer;
  pdc->path = path;
  pdc->path.entropy =
      EntropyPort(static_cast<uint32_t>(core_.random.Next() >> 32));
  pdc->name = name;
  pdc->held = pdc->parked = pdc->failed = 0;
  pdc->queue_head = pdc->queue_tail = Pdc::kNoMessage;
  Begin(pdc);
  core_.pdcs.AddName(pdc);
  return pdc;
}

void Initiator::Begin(Pdc* pdc) {
  pdc->state = PdcState::kSyn;
  pdc->peer_id = 0;
  pdc->start_psn = StartPsn(pdc->id);
  pdc->clear_told = pdc->clear_asked = pdc->start_psn - 1;
  pdc->close_wanted = pdc->close_due = pdc->ask_due = false;
  pdc->reopened = pdc->unreachable = false;
  pdc->receiver = 0;
  pdc->absent_ns = rules::kNever;
  pdc->refused = 0;
  pdc->send.Open(pdc->start_psn, core_.settings, core_.now_ns);
  pdc->receive = ReceiveHalf();
  pdc->receive.window.Open(pdc->start_psn);
  core_.Count(Statistic::kTxPdcs);
}

// Closes the PDC that had nothing to do for longest, so that a later `Post`
// finds one.
void Initiator::MakeRoom() {
  if (!core_.pdcs.full(false)) {
    // PDCIDs are short. Other functions of the address return some, too.
    core_.retry_ns = std::min(core_.pdcs.ids().next_free_ns(),
                              core_.now_ns + core_.settings.rto_ns);
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
  core_.messages[post.message] = {.posted = post.packets,
                                  .packets = post.packets,
                                  .pdc = pdc->index,
                                  .live = true,
                                  .expects_data = post.expects_data};
  Append(pdc, post.message);
  core_.NoteQueued(pdc);
  return true;
}

void Initiator::Append(Pdc* pdc, MessageIndex index) {
  (pdc->queue_head == Pdc::kNoMessage ? pdc->queue_head
                                      : core_.messages[pdc->queue_tail].next) =
      index;
  core_.messages[index].next = Pdc::kNoMessage;
  pdc->queue_tail = index;
}

void Initiator::Finish(MessageIndex index) {
  Message& message = core_.messages[index];
  message.finished = true;
  if (message.held) {
    message.held = message.live = false;
    Pdc* pdc = &core_.pdcs[message.pdc];
    --(message.failed ? pdc->failed : pdc->held);
    pdc->parked -= message.parked ? 1 : 0;
    CloseIfWanted(pdc);
    core_.Settle(pdc);
  }
}

void Initiator::Hold(MessageIndex index) {
  core_.messages[index].expects_data = core_.messages[index].parked = true;
}

void Initiator::Resume(MessageIndex index) {
  Message& message = core_.messages[index];
  Pdc* pdc = &core_.pdcs[message.pdc];
  --pdc->held;
  --pdc->parked;
  message.held = message.parked = message.expects_data = false;
  message.packets = message.posted;
  message.sent = message.acked = 0;
  Append(pdc, index);
  core_.Settle(pdc);
}

void Initiator::Fail(MessageIndex index) {
  Message& message = core_.messages[index];
  if (!message.held || message.failed) {
    return;
  }
  message.failed = true;
  Pdc* pdc = &core_.pdcs[message.pdc];
  --pdc->held;
  ++pdc->failed;
  CloseOnceQuiet(pdc);
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
  const uint64_t receiver = core_.wire->ReceiverOf(pdc->path, bytes);
  if (receiver != 0) {
    pdc->absent_ns = rules::kNever;
    pdc->receiver = pdc->receiver == 0 ? receiver : pdc->receiver;
    return pdc->receiver == receiver;
  }
  pdc->absent_ns = std::min(pdc->absent_ns, core_.now_ns);
  pdc->unreachable = pdc->reopened && core_.now_ns - pdc->absent_ns >=
                                          kReturnRtos * core_.settings.rto_ns;
  return true;
}

Initiator::Sent Initiator::SendRequest(Pdc* pdc, const Frame& frame,
                                       const TransportClient::Built& built,
                                       uint8_t* room) {
  PdsRequest header;
  header.type = pdc->ordered ? PdsType::kRodReq : PdsType::kRudReq;
  header.next_hdr = built.next_hdr;
  header.retx = frame.retx ? 1 : 0;
  header.ar = frame.ar ? 1 : 0;
  header.psn = frame.psn;
  const uint32_t clear = pdc->send.window().clear_psn();
  // Behind what the packet itself tells, nothing is asked for.
  const uint32_t told = rules::Before(clear, frame.psn) ? clear : frame.psn;
  header.clear_psn_offset = static_cast<int16_t>(told - frame.psn);
  header.spdcid = pdc->id;
  if (pdc->state == PdcState::kSyn) {
    header.syn = 1;
    header.psn_offset = static_cast<uint16_t>(frame.psn - pdc->start_psn);
  } else {
    header.dpdcid = pdc->peer_id;
  }
  header.Encode(room);
  if (header.syn != 0 &&
      !ReachesTheSame(pdc, PdsRequest::kBytes + built.bytes)) {
    // Not opened again: lost. The timer finds out.
    return Reopen(pdc, false) ? Sent::kMoved : Sent::kSent;
  }
  if (!pdc->ordered) {
    pdc->path.entropy = EntropyPort(pdc->path.entropy + 1u);
  }
  if (core_.wire->Send(pdc->path, PdsRequest::kBytes + built.bytes) ==
      wire::DatagramWire::SendOutcome::kBlocked) {
    return Sent::kBlocked;
  }
  if (rules::Before(pdc->clear_told, told)) {
    pdc->Tell(told);
  }
  return Sent::kSent;
}

bool Initiator::SendNew(Pdc* pdc) {
  SendHalf& send = pdc->send;
  if (pdc->close_due) {
    return SendClose(pdc, send.window().top(), false);
  }
  const MessageIndex index = pdc->queue_head;
  Message& message = core_.messages[index];
  const std::span<uint8_t> room = core_.wire->Room();
  const auto built = core_.client->BuildRequest(
      index, message.sent, room.subspan(PdsRequest::kBytes));
  const bool last = built.last || message.sent + 1 == message.packets;
  const bool follows = !last || message.next != Pdc::kNoMessage;
  const uint32_t psn = send.window().top();
  const uint32_t nominal = NominalBytes(
      core_.settings, static_cast<uint32_t>(PdsRequest::kBytes + built.bytes));
  const bool ar =
      (!follows && !built.unheard) || pdc->state == PdcState::kSyn ||
      psn % kAckRequestEvery == kAckRequestEvery - 1 || send.Asks(nominal);
  const Sent sent =
      SendRequest(pdc, {.psn = psn, .ar = ar}, built, room.data());
  if (sent != Sent::kSent) {
    return sent == Sent::kMoved;
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
    const std::span<uint8_t> room = core_.wire->Room();
    const auto built = core_.client->BuildRequest(
        what, psn - message.first_psn, room.subspan(PdsRequest::kBytes));
    const Sent sent = SendRequest(pdc, {.psn = psn, .ar = true, .retx = true},
                                  built, room.data());
    if (sent != Sent::kSent) {
      return sent == Sent::kMoved;
    }
  }
  if (window.arrived() > rules::Bit(psn - window.una())) {
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
    pdc->send.NoteSent(
        Pdc::kCloseCommand,
        NominalBytes(core_.settings, contract::wire::PdsCp::kBytes),
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

}  // namespace heddle::soft::transport
