// SPDX-License-Identifier: Apache-2.0
// Initiator: PDCs that end, and those that open again.
#include <bit>
#include <utility>

#include "hw/soft/transport/initiator.h"

namespace heddle::soft::transport {

using contract::NackCode;
using contract::Statistic;
using contract::Status;

// A target that did not restart has no such PDC (any more). What it refused so
// was not executed, and may go again if no other copy can have been
// (UET 2.17). INVALID_SYN covers all copies; the others cover one.
void Initiator::OnUnknown(Pdc* pdc, uint32_t psn, NackCode code) {
  const bool syn = pdc->state == PdcState::kSyn;
  const SendWindow& window = pdc->send.window();
  const bool dropped =
      (code == NackCode::kClosing || code == NackCode::kPdcHdrMismatch) && !syn;
  const bool taken = code == NackCode::kInvalidSyn && syn;
  if ((!dropped && !taken) || (dropped && pdc->send.resent()) ||
      !window.Has(window.unanswered(), psn) || !MayReopen(*pdc)) {
    End(pdc, Status::kPeerRejected, static_cast<uint16_t>(code));
    return;
  }
  // An ordered target takes nothing behind the oldest; of an unordered one each
  // packet has to be heard of.
  pdc->refused |= rules::Bit(psn - window.una());
  if (pdc->ordered ? psn == window.una()
                   : (window.unanswered() & ~pdc->refused) == 0) {
    Reopen(pdc, false);
  }
}

bool Initiator::MayReopen(const Pdc& pdc) const {
  const SendWindow& window = pdc.send.window();
  if (pdc.held != 0 || pdc.failed != 0 ||
      (window.answered() | window.arrived()) != 0) {
    return false;
  }
  const uint32_t what = window.packet(window.una()).what;
  return what != Pdc::kCloseCommand &&
         core_.messages[what].first_psn == window.una();
}

bool Initiator::Reopen(Pdc* pdc, bool restarted) {
  const uint64_t rest_ns = core_.now_ns + core_.settings.safety_ns;
  core_.pdcs.ids().PastOf(pdc->id).last_psn = pdc->send.window().top();
  if (!core_.pdcs.Rename(pdc, core_.now_ns, rest_ns)) {
    return false;
  }
  const bool known = pdc->reopened || pdc->state == PdcState::kOpen;
  const uint64_t receiver = pdc->receiver;
  Requeue(pdc, restarted);
  if (pdc->queue_head == Pdc::kNoMessage) {
    core_.pdcs.Return(pdc, 0);  // No peer received the new PDCID.
    return true;
  }
  Begin(pdc);
  // Of a wire that tells who is there.
  pdc->reopened = known && receiver != 0;
  return true;
}

void Initiator::Restart(Pdc* pdc) {
  if (!Reopen(pdc, true)) {
    return;  // The next refusal tries again.
  }
  core_.Count(Statistic::kPdcRestarts);
  if (TakeHeld(pdc)) {
    // The rest of their data is gone with the memory that it was read from.
    AbandonHeld(pdc->index, Status::kRemoteError,
                static_cast<uint16_t>(contract::ReturnCode::kBadMkey));
  }
  core_.retry_ns = core_.now_ns + 1;  // As in `End`.
}

bool Initiator::GoesAgain(MessageIndex index, bool restarted) {
  Message& message = core_.messages[index];
  if (restarted) {
    message.live = false;
    if (!core_.client->OnRestart(index)) {
      return false;
    }
    message.live = true;
    message.packets = message.posted;
    message.expects_data = message.expects_data && !message.parked;
    message.parked = false;
  }
  message.sent = message.acked = 0;
  return true;
}

void Initiator::Requeue(Pdc* pdc, bool restarted) {
  const SendWindow& window = pdc->send.window();
  MessageIndex next = pdc->queue_head;
  const MessageIndex tail = pdc->queue_tail;
  pdc->queue_head = pdc->queue_tail = Pdc::kNoMessage;
  if (pdc->parked != 0) {
    RequeueParked(pdc);
  }
  // PSNs are in the order of messages. One that is answered may be of a message
  // that is complete, although an earlier one is not.
  MessageIndex last = Pdc::kNoMessage;
  for (uint64_t set = window.unanswered(); set != 0; set &= set - 1) {
    const uint32_t psn =
        window.una() + static_cast<uint32_t>(std::countr_zero(set));
    const MessageIndex what = window.packet(psn).what;
    if (what != last && what != next) {
      last = what;
      if (GoesAgain(what, restarted)) {
        Append(pdc, what);
      }
    }
  }
  if (next != Pdc::kNoMessage && core_.messages[next].sent != 0) {
    const MessageIndex partial = next;
    next = partial == tail ? Pdc::kNoMessage : core_.messages[partial].next;
    if (GoesAgain(partial, restarted)) {
      Append(pdc, partial);
    }
  }
  if (next != Pdc::kNoMessage) {
    (pdc->queue_head == Pdc::kNoMessage
         ? pdc->queue_head
         : core_.messages[pdc->queue_tail].next) = next;
    pdc->queue_tail = tail;
  }
}

// They are older than all others. The order is right as long as fewer than 2^32
// packets follow the oldest.
void Initiator::RequeueParked(Pdc* pdc) {
  const uint32_t una = pdc->send.window().una();
  for (MessageIndex i = 0; i < core_.messages.size(); ++i) {
    Message& message = core_.messages[i];
    if (!message.held || !message.parked || message.pdc != pdc->index) {
      continue;
    }
    message.held = false;
    --pdc->held;
    --pdc->parked;
    if (!GoesAgain(i, true)) {
      continue;
    }
    MessageIndex* at = &pdc->queue_head;
    while (*at != Pdc::kNoMessage &&
           una - core_.messages[*at].first_psn > una - message.first_psn) {
      at = &core_.messages[*at].next;
    }
    message.next = *at;
    *at = i;
    if (message.next == Pdc::kNoMessage) {
      pdc->queue_tail = i;
    }
  }
}

void Initiator::Abandon(MessageIndex index, Status status, uint16_t detail) {
  Message& message = core_.messages[index];
  message.live = false;
  // Last: the client may use the index again at once.
  core_.client->OnAbandoned(index, status, detail, message.sent != 0);
}

bool Initiator::TakeHeld(Pdc* pdc) {
  pdc->parked = 0;
  return std::exchange(pdc->held, 0) + std::exchange(pdc->failed, 0) != 0;
}

void Initiator::AbandonHeld(uint16_t pdc, Status status, uint16_t detail) {
  for (MessageIndex i = 0; i < core_.messages.size(); ++i) {
    if (core_.messages[i].held && core_.messages[i].pdc == pdc) {
      core_.messages[i].held = false;
      Abandon(i, status, detail);
    }
  }
}

void Initiator::End(Pdc* pdc, Status status, uint16_t detail) {
  // What the client posts from within opens another PDC.
  core_.pdcs.RemoveName(pdc);
  core_.pdcs.Unlist(pdc);
  const SendWindow& window = pdc->send.window();
  MessageIndex next = pdc->queue_head;
  const MessageIndex partial = next;
  pdc->queue_head = Pdc::kNoMessage;
  MessageIndex last = Pdc::kNoMessage;
  // Sent ones first, in order; a partially sent one leads the queue.
  for (uint64_t set = window.unanswered(); set != 0; set &= set - 1) {
    const uint32_t psn =
        window.una() + static_cast<uint32_t>(std::countr_zero(set));
    const MessageIndex what = window.packet(psn).what;
    if (what != last && what != partial && what != Pdc::kCloseCommand) {
      last = what;
      Abandon(what, status, detail);
    }
  }
  if (TakeHeld(pdc)) {
    AbandonHeld(pdc->index, status, detail);
  }
  while (next != Pdc::kNoMessage) {
    const MessageIndex index = next;
    next = core_.messages[index].next;
    Abandon(index, status, detail);
  }
  if (pdc->state == PdcState::kClosing) {
    --core_.closing;
  }
  Release(pdc);
  // The client has not posted yet what these messages held up, and a timer,
  // which runs after its turn, may have been the last event.
  core_.retry_ns = core_.now_ns + 1;
}

void Initiator::Release(Pdc* pdc) {
  core_.pdcs.ids().PastOf(pdc->id).last_psn = pdc->send.window().top();
  core_.pdcs.Return(pdc, core_.now_ns + core_.settings.safety_ns);
}

void Initiator::BeginClose(Pdc* pdc) {
  core_.pdcs.RemoveName(pdc);
  pdc->state = PdcState::kClosing;
  pdc->close_due = true;
  ++core_.closing;
}

void Initiator::CloseIfWanted(Pdc* pdc) {
  if (pdc->close_wanted && pdc->state == PdcState::kOpen && !pdc->counting &&
      pdc->quiet()) {
    BeginClose(pdc);
  }
}

void Initiator::CloseOnceQuiet(Pdc* pdc) {
  pdc->close_wanted = true;
  CloseIfWanted(pdc);
  core_.Settle(pdc);
}

void Initiator::Closed(Pdc* pdc, bool answered) {
  if (answered) {
    core_.Count(Statistic::kPdcCloses);
  }
  --core_.closing;
  if (TakeHeld(pdc)) {
    AbandonHeld(pdc->index, Status::kRemoteError, 0);  // Their errors stay.
  }
  Release(pdc);
}

}  // namespace heddle::soft::transport
