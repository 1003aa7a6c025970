// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/receiver.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace heddle::soft::transport {

void Receiver::Answer(Pdc* pdc, const Arrival& arrival, rules::AckFor what,
                      const Response* response) {
  ReceiveHalf& receive = pdc->receive;
  const rules::Packet& packet = arrival.packet;
  const AckOut ack{.what = what,
                   .psn = packet.psn,
                   .syn = packet.syn,
                   .retx = packet.retx,
                   .marked = packet.marked,
                   .response = response,
                   .plain = !pdc->target,
                   .message_id = arrival.message_id};
  receive.unacked = 0;
  receive.ack_ns = rules::kNever;
  if (SendAck(&core_, pdc, ack)) {
    receive.owes_ack = receive.window.owed() != 0;
    return;
  }
  StoredResponse* const stored = FindStored(pdc, packet.psn);
  if (stored == nullptr) {
    // Later, with the default response: it loses nothing.
    receive.owes_ack = true;
    if (pdc->ordered) {  // Else the bitmap tells.
      receive.window.Owe(packet.psn);
    }
  } else if (!stored->unsent) {
    stored->unsent = true;
    ++receive.unsent;
  }
}

void Receiver::Nack(Pdc* pdc, const NackOut& nack, const wire::Path& path) {
  if (!SendNack(&core_, path, nack)) {
    pdc->receive.owes_nack = true;
    pdc->receive.nack_code = nack.code;
    pdc->receive.nack_psn = nack.psn;
    pdc->receive.nack_retx = nack.retx;
  }
}

void Receiver::CarryOut(Pdc* pdc, const Arrival& arrival, rules::Place place,
                        const rules::Judgement& judgement, const Way& way) {
  using rules::Outcome;
  ReceiveHalf& receive = pdc->receive;
  const rules::Packet& packet = arrival.packet;
  if (judgement.counted) {
    core_.Count(*judgement.counted);
  }
  const Outcome outcome = judgement.outcome;
  if (outcome == Outcome::kDuplicate || outcome == Outcome::kQuery) {
    Answer(pdc, arrival, rules::AckFor::kKnown, nullptr);
  } else if (outcome == Outcome::kOutside || outcome == Outcome::kRefuse) {
    const bool stranger =
        pdc->target && !pdc->named && outcome == Outcome::kOutside;
    Nack(pdc,
         {.code = judgement.code,
          .psn = rules::NackPsn(packet, place, judgement, receive.window),
          .retx = packet.retx,
          .marked = packet.marked,
          .spdcid = stranger ? uint16_t{0} : pdc->id,
          .dpdcid = way.dpdcid,
          .expected = receive.window.next()},
         way.path);
  }
  if (outcome == Outcome::kRefuse || outcome == Outcome::kQuiet) {
    rules::Refuse(packet, place, outcome == Outcome::kQuiet, &receive);
  }
}

Receiver::Judged Receiver::Judge(Pdc* pdc, const Arrival& arrival) {
  const ReceiveHalf& receive = pdc->receive;
  const rules::Packet& packet = arrival.packet;
  rules::Place place =
      receive.window.Find(packet.psn, pdc->ordered, rules::Reach());
  if (place == rules::Place::kOutside && packet.clears()) {
    // Stored answers alone may hold the window: the peer that has them sends
    // beyond it, and no other packet would report that.
    Cleared(pdc, packet.clear_psn);
    place = receive.window.Find(packet.psn, pdc->ordered, rules::Reach());
  }
  const rules::Judgement judgement =
      rules::JudgePlace(packet, place, receive.window, receive.gap);
  if (receive.window.holds() && packet.clears() && judgement.changes()) {
    Cleared(pdc, packet.clear_psn);
  }
  if (judgement.outcome != rules::Outcome::kOffer) {
    CarryOut(pdc, arrival, place, judgement);
  }
  return {judgement.outcome, place};
}

bool Receiver::Trimmed(Pdc* pdc, const Arrival& arrival,
                       const wire::Datagram& datagram, uint16_t spdcid) {
  const ReceiveHalf& receive = pdc->receive;
  const rules::Packet& packet = arrival.packet;
  const rules::Place place =
      receive.window.Find(packet.psn, pdc->ordered, rules::Reach());
  const rules::Judgement judgement =
      rules::JudgePlace(packet, place, receive.window, receive.gap);
  // Before its target is known, what is behind is a stranger's.
  if (judgement.outcome == rules::Outcome::kDrop ||
      (place == rules::Place::kDuplicate && pdc->state == PdcState::kSyn)) {
    return false;
  }
  // Its own DSCP says that it was trimmed, not which class it is of.
  wire::Path path = PathBack(datagram);
  path.dscp = pdc->path.dscp;
  CarryOut(pdc, arrival, place, judgement, {path, spdcid});
  return true;
}

bool Receiver::Store(Pdc* pdc, uint32_t psn, const Response& response) {
  for (StoredResponse& stored : pdc->receive.stored) {
    if (!stored.used) {
      stored = {.psn = psn, .used = true, .response = response};
      ++pdc->receive.kept;
      return true;
    }
  }
  return false;
}

inline void Receiver::Acknowledge(Pdc* pdc, const Arrival& arrival,
                                  const rules::Accepted& accepted,
                                  const Response* response) {
  ReceiveHalf& receive = pdc->receive;
  switch (accepted.due) {
    case rules::Due::kNow:
      Answer(pdc, arrival, rules::AckFor::kTaken, response);
      break;
    case rules::Due::kAsked:
      // One that says nothing but how far all has come is also that of the
      // packets that arrive until the next `Progress`.
      if (receive.window.cack() == arrival.packet.psn) {
        receive.owes_ack = true;
      } else {
        Answer(pdc, arrival, rules::AckFor::kTaken, nullptr);
      }
      break;
    case rules::Due::kTrimmed:
      receive.owes_ack = true;
      Nack(pdc,
           {.code = rules::TrimmedCode(accepted.lost),
            .psn = receive.window.next(),
            .retx = true,
            .spdcid = pdc->id,
            .dpdcid = pdc->peer_id},
           pdc->path);
      break;
    case rules::Due::kDelayed:
    case rules::Due::kHidden:
      if (!receive.owes_ack) {
        receive.ack_ns = std::min(receive.ack_ns,
                                  core_.now_ns + core_.settings.ack_delay_ns);
      }
      break;
  }
}

void Receiver::Accepted(Pdc* pdc, const Arrival& arrival, rules::Place place,
                        const Verdict& verdict) {
  ReceiveHalf& receive = pdc->receive;
  const rules::Packet& packet = arrival.packet;
  receive.received_at = core_.now_ns;
  receive.success = {.psn = packet.psn,
                     .job_id = arrival.job_id,
                     .length = arrival.request_length,
                     .message_id = arrival.message_id,
                     .any = arrival.whole && !verdict.respond};
  std::optional<Response> response;
  bool hold = false;
  if (verdict.respond) {
    response.emplace();
    response->header = verdict.response;
    response->with_data = !verdict.data.empty();
    response->data_bytes = static_cast<uint8_t>(
        std::min(verdict.data.size(), response->data.size()));
    std::copy_n(verdict.data.begin(), response->data_bytes,
                response->data.begin());
    response->data_offset = verdict.data_offset;
    hold = verdict.guaranteed && Store(pdc, packet.psn, *response);
  }
  const Settings& settings = core_.settings;
  const rules::Accepted accepted = rules::Take(
      packet, place,
      {.bytes = NominalBytes(settings, arrival.bytes),
       .answers = verdict.respond,
       .hold = hold},
      {.every = settings.ack_delay_ns == 0 ? 1 : settings.ack_every}, &receive);
  Acknowledge(pdc, arrival, accepted, response ? &*response : nullptr);
}

void Receiver::Cleared(Pdc* pdc, uint32_t clear_psn) {
  ReceiveHalf& receive = pdc->receive;
  if (!receive.window.Clears(clear_psn)) {
    return;
  }
  for (StoredResponse& stored : receive.stored) {
    if (stored.used && !rules::Before(clear_psn, stored.psn)) {
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
  if (receive.ack_ns == rules::kNever) {
    receive.ack_ns = core_.now_ns + core_.settings.ack_delay_ns;
  }
  StoredResponse* const next = FindStored(pdc, receive.window.cack() + 1);
  if (next != nullptr && !next->unsent) {
    next->unsent = true;
    ++receive.unsent;
  }
}

bool Receiver::AckDelayed(Pdc* pdc, bool close) {
  const AckOut ack{.close = close, .plain = !pdc->target};
  if (!SendAck(&core_, pdc, ack)) {
    return false;
  }
  pdc->receive.unacked = 0;
  pdc->receive.ack_ns = rules::kNever;
  return true;
}

void Receiver::OnTimer(Pdc* pdc) {
  if (pdc->receive.ack_ns <= core_.now_ns && !AckDelayed(pdc)) {
    pdc->receive.owes_ack = true;
    pdc->receive.ack_ns = rules::kNever;
  }
}

bool Receiver::SendOwedAck(Pdc* pdc) {
  ReceiveHalf& receive = pdc->receive;
  rules::ReceiveWindow& window = receive.window;
  if (window.owed() == 0) {
    if (!AckDelayed(pdc)) {
      return false;
    }
  } else {  // It says how far all has come as well.
    const uint32_t psn = window.cack() + 1 +
                         static_cast<uint32_t>(std::countr_zero(window.owed()));
    if (!SendAck(&core_, pdc,
                 {.what = rules::AckFor::kKnown,
                  .psn = psn,
                  .plain = !pdc->target})) {
      return false;
    }
    window.Pay(psn);
    receive.unacked = 0;
    receive.ack_ns = rules::kNever;
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
      receive.window.Find(receive.nack_psn, pdc->ordered, rules::Reach()) !=
          rules::Place::kDuplicate) {
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
      const AckOut ack{.what = rules::AckFor::kKnown,
                       .psn = stored.psn,
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
