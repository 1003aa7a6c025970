// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/receiver.h"

#include <algorithm>
#include <bit>

namespace heddle::soft::transport {

using contract::AckReq;
using contract::NackCode;
using contract::Statistic;

namespace {

NackCode TrimmedCode(wire::Trim trim) {
  return trim == wire::Trim::kLasthop ? NackCode::kTrimmedLasthop
                                      : NackCode::kTrimmed;
}

}  // namespace

StoredResponse* Receiver::Stored(Pdc* pdc, uint32_t psn) {
  if (pdc->receive.kept == 0) {
    return nullptr;
  }
  for (StoredResponse& stored : pdc->receive.stored) {
    if (stored.used && stored.psn == psn) {
      return &stored;
    }
  }
  return nullptr;
}

bool Receiver::MayGuarantee(const Pdc& pdc, uint32_t psn) {
  const size_t room = pdc.receive.stored.size() - pdc.receive.kept;
  return room > 1 || (room == 1 && psn == pdc.receive.window.next());
}

void Receiver::Answer(Pdc* pdc, const Arrival& arrival,
                      const Response* response) {
  ReceiveHalf& receive = pdc->receive;
  StoredResponse* stored = Stored(pdc, arrival.psn);
  AckOut ack{.psn = arrival.psn,
             .retx = arrival.retx,
             .marked = arrival.marked,
             .response = response,
             .plain = !pdc->target,
             .message_id = arrival.message_id};
  if (stored != nullptr) {
    ack.response = &stored->response;
    ack.req = AckReq::kClear;
  }
  receive.unacked = 0;
  receive.ack_ns = kNever;
  if (SendAck(&core_, pdc, ack)) {
    receive.owes_ack = receive.window.owed() != 0;
  } else if (stored == nullptr) {
    // Later, with the default response: it loses nothing.
    receive.owes_ack = true;
    if (pdc->ordered) {  // Else the bitmap tells.
      receive.window.Owe(arrival.psn);
    }
  } else if (!stored->unsent) {
    stored->unsent = true;
    ++receive.unsent;
  }
}

void Receiver::Nack(Pdc* pdc, const Arrival& arrival, NackCode code) {
  Nack(pdc, arrival, code, pdc->path, pdc->peer_id);
}

void Receiver::Nack(Pdc* pdc, const Arrival& arrival, NackCode code,
                    const wire::Path& path, uint16_t dpdcid) {
  const NackOut nack{.code = code,
                     .psn = arrival.psn,
                     .retx = arrival.retx,
                     .marked = arrival.marked,
                     .spdcid = pdc->id,
                     .dpdcid = dpdcid,
                     .expected = pdc->receive.window.next()};
  if (!SendNack(&core_, path, nack)) {
    pdc->receive.owes_nack = true;
    pdc->receive.nack_code = code;
    pdc->receive.nack_psn = arrival.psn;
    pdc->receive.nack_retx = arrival.retx;
  }
}

bool Receiver::IsNew(Pdc* pdc, const Arrival& arrival) {
  ReceiveHalf& receive = pdc->receive;
  switch (receive.window.Find(arrival.psn, pdc->ordered)) {
    case ReceiveWindow::Place::kNew:
      return true;
    case ReceiveWindow::Place::kDuplicate:
      core_.Count(Statistic::kRxDuplicates);
      Answer(pdc, arrival, nullptr);
      break;
    case ReceiveWindow::Place::kEarly:
      core_.Count(Statistic::kRxOutOfOrder);
      if (receive.gap.Pass(arrival.psn - receive.window.next(), arrival.retx,
                           arrival.psn, wire::Trim::kNone)) {
        Nack(pdc, arrival, NackCode::kRodOoo);
      }
      break;
    case ReceiveWindow::Place::kOutside:
      core_.Count(Statistic::kDropPsn);
      Nack(pdc, arrival, NackCode::kPsnOorWindow);
      break;
  }
  return false;
}

bool Receiver::Trimmed(Pdc* pdc, const Arrival& arrival,
                       const wire::Datagram& datagram, uint16_t spdcid) {
  ReceiveHalf& receive = pdc->receive;
  const auto place = receive.window.Find(arrival.psn, pdc->ordered);
  // Before its target is known, what is behind is a stranger's.
  if (place == ReceiveWindow::Place::kOutside ||
      (place == ReceiveWindow::Place::kDuplicate &&
       pdc->state == PdcState::kSyn)) {
    return false;
  }
  if (place == ReceiveWindow::Place::kDuplicate) {
    core_.Count(Statistic::kRxDuplicates);
    Answer(pdc, arrival, nullptr);
    return true;
  }
  core_.Count(Statistic::kRxTrimmed);
  bool reports = true;
  if (place == ReceiveWindow::Place::kEarly) {
    reports = receive.gap.Pass(arrival.psn - receive.window.next(),
                               arrival.retx, arrival.psn, datagram.trim);
  } else if (pdc->ordered) {
    receive.gap.Open();
  }
  if (reports) {
    // Its own DSCP says that it was trimmed, not which class it is of.
    wire::Path path = PathBack(datagram);
    path.dscp = pdc->path.dscp;
    Nack(pdc, arrival, TrimmedCode(datagram.trim), path, spdcid);
  }
  return true;
}

void Receiver::Accepted(Pdc* pdc, const Arrival& arrival,
                        const Verdict& verdict) {
  ReceiveHalf& receive = pdc->receive;
  receive.received_bytes += NominalBytes(core_.settings, arrival.bytes);
  receive.received_at = core_.now_ns;
  ++receive.unacked;
  receive.success = {.psn = arrival.psn,
                     .job_id = arrival.job_id,
                     .length = arrival.request_length,
                     .message_id = arrival.message_id,
                     .any = arrival.whole && !verdict.respond};
  Response response;
  if (verdict.respond) {
    response.header = verdict.response;
    response.with_data = !verdict.data.empty();
    response.data_bytes = static_cast<uint8_t>(
        std::min(verdict.data.size(), response.data.size()));
    std::copy_n(verdict.data.begin(), response.data_bytes,
                response.data.begin());
    response.data_offset = verdict.data_offset;
  }
  bool hold = false;
  if (verdict.guaranteed) {
    for (StoredResponse& stored : receive.stored) {
      if (!stored.used) {
        stored = {.psn = arrival.psn, .used = true, .response = response};
        ++receive.kept;
        hold = true;
        break;
      }
    }
  }
  receive.window.Accept(arrival.psn, hold);
  const wire::Trim lost = receive.gap.Accept(receive.window.next());
  const Settings& settings = core_.settings;
  const bool gap = !pdc->ordered && receive.window.gap();
  const bool asked = arrival.ar || receive.unacked >= settings.ack_every ||
                     settings.ack_delay_ns == 0;
  // An ACK that says nothing but how far all has come is also that of the
  // packets that arrive until the next `Progress`.
  const bool own =
      arrival.syn || arrival.retx || arrival.marked || verdict.respond || gap;
  if (lost != wire::Trim::kNone && pdc->ordered && !verdict.respond) {
    // What is accepted is acknowledged later then.
    receive.gap.Open();
    Nack(pdc, {.psn = receive.window.next(), .retx = true}, TrimmedCode(lost));
    receive.owes_ack = true;
  } else if (own || (asked && receive.window.cack() != arrival.psn)) {
    Answer(pdc, arrival, verdict.respond ? &response : nullptr);
  } else if (asked) {
    receive.owes_ack = true;
  } else {
    receive.ack_ns =
        std::min(receive.ack_ns, core_.now_ns + settings.ack_delay_ns);
  }
}

void Receiver::Refused(Pdc* pdc, const Arrival& arrival, NackCode code) {
  core_.Count(Statistic::kRxRefused);
  // What follows an ordered packet that was refused is not NACKed each.
  if (!pdc->ordered || !pdc->receive.gap.open() || arrival.retx) {
    Nack(pdc, arrival, code);
  }
  pdc->receive.gap.Refuse();
}

void Receiver::Asked(Pdc* pdc, const Arrival& arrival) {
  if (pdc->receive.window.Find(arrival.psn, pdc->ordered) ==
      ReceiveWindow::Place::kDuplicate) {
    Answer(pdc, arrival, nullptr);
  } else {
    Nack(pdc, arrival, NackCode::kPktNotRcvd);
  }
}

void Receiver::Cleared(Pdc* pdc, uint32_t clear_psn) {
  ReceiveHalf& receive = pdc->receive;
  if (receive.window.complete()) {
    return;  // Nothing is held.
  }
  const uint32_t count = clear_psn - receive.window.cack();
  if (count == 0 || count > kWindow) {
    return;
  }
  for (StoredResponse& stored : receive.stored) {
    if (stored.used && !Before(clear_psn, stored.psn)) {
      --receive.kept;
      receive.unsent -= stored.unsent ? 1 : 0;
      stored.used = stored.unsent = false;
    }
  }
  if (!receive.window.Clear(clear_psn)) {
    return;
  }
  // The source learns in time what is acknowledged now; and at once the next
  // answer that is held, since it may take them only in order.
  if (receive.ack_ns == kNever) {
    receive.ack_ns = core_.now_ns + core_.settings.ack_delay_ns;
  }
  StoredResponse* const next = Stored(pdc, receive.window.cack() + 1);
  if (next != nullptr && !next->unsent) {
    next->unsent = true;
    ++receive.unsent;
  }
}

bool Receiver::AckDelayed(Pdc* pdc, AckReq req) {
  // Its PSN is never one with a stored response: those are above `cack`.
  const AckOut ack{
      .psn = pdc->receive.window.cack(), .req = req, .plain = !pdc->target};
  if (!SendAck(&core_, pdc, ack)) {
    return false;
  }
  pdc->receive.unacked = 0;
  pdc->receive.ack_ns = kNever;
  return true;
}

void Receiver::OnTimer(Pdc* pdc) {
  if (pdc->receive.ack_ns <= core_.now_ns && !AckDelayed(pdc)) {
    pdc->receive.owes_ack = true;
    pdc->receive.ack_ns = kNever;
  }
}

bool Receiver::SendOwedAck(Pdc* pdc) {
  ReceiveHalf& receive = pdc->receive;
  ReceiveWindow& window = receive.window;
  if (window.owed() == 0) {
    if (!AckDelayed(pdc)) {
      return false;
    }
  } else {  // It says how far all has come as well.
    const uint32_t psn = window.cack() + 1 +
                         static_cast<uint32_t>(std::countr_zero(window.owed()));
    if (!SendAck(&core_, pdc, {.psn = psn, .plain = !pdc->target})) {
      return false;
    }
    window.Pay(psn);
    receive.unacked = 0;
    receive.ack_ns = kNever;
  }
  receive.owes_ack = window.owed() != 0;
  return true;
}

bool Receiver::SendOwed(Pdc* pdc) {
  ReceiveHalf& receive = pdc->receive;
  while (receive.owes_ack) {
    if (!SendOwedAck(pdc)) {
      return false;
    }
  }
  // What it is about may have come meanwhile.
  if (receive.owes_nack &&
      receive.window.Find(receive.nack_psn, pdc->ordered) !=
          ReceiveWindow::Place::kDuplicate) {
    const NackOut nack{.code = receive.nack_code,
                       .psn = receive.nack_psn,
                       .retx = receive.nack_retx,
                       .spdcid = pdc->id,
                       .dpdcid = pdc->peer_id,
                       .expected = receive.window.next()};
    if (!SendNack(&core_, pdc->path, nack)) {
      return false;
    }
  }
  receive.owes_nack = false;
  if (receive.unsent == 0) {
    return true;
  }
  for (StoredResponse& stored : receive.stored) {
    if (stored.unsent) {
      const AckOut ack{.psn = stored.psn,
                       .req = AckReq::kClear,
                       .response = &stored.response};
      if (!SendAck(&core_, pdc, ack)) {
        return false;
      }
      stored.unsent = false;
      --receive.unsent;
    }
  }
  return true;
}

}  // namespace heddle::soft::transport
