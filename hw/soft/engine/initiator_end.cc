// SPDX-License-Identifier: Apache-2.0
// The end of messages: completions, released slots, free entries.
#include "host/lib/semantics/completion.h"
#include "hw/soft/engine/initiator.h"

namespace heddle::soft::engine {

using contract::Opcode;
using contract::Statistic;
using contract::Status;
using semantics::Outcome;
using Stage = TxMessage::Stage;

void Initiator::EndIfRetired(uint32_t index) {
  TxMessage& message = messages_[index];
  if (message.stage == Stage::kSettling) {
    FreeOrSettle(index);
    return;
  }
  if (message.stage == Stage::kHeld || !message.state.retired()) {
    return;
  }
  LeavePeer(message);
  if (message.group != kNone) {
    EndInGroup(index);
  } else {
    Complete(index, message.state.outcome());
  }
}

void Initiator::LeavePeer(TxMessage& message) noexcept {
  if (message.peer == kNone) {
    return;
  }
  Peer& peer = peers_[message.peer];
  --peer.in_flight;
  peer.reads -= message.holds ? 1 : 0;
  if (peer.waiting()) {
    peers_.Wake(message.peer);
  } else {
    peers_.Put(message.peer);
  }
  message.peer = kNone;
}

void Initiator::EndInGroup(uint32_t index) {
  TxMessage& message = messages_[index];
  const uint32_t number = message.group;
  OperationGroups::Group& group = groups_[number];
  const Outcome outcome = message.state.outcome();
  if (outcome.status != Status::kOk) {
    groups_.Fail(number, {outcome.status, outcome.detail, message.position});
  }
  if ((message.descriptor.flags & contract::kTxFlagMore) == 0) {
    group.last = index;
    message.stage = Stage::kHeld;
  } else {
    if (!Stale(message)) {
      ReleaseSlots(message);
      rings_.TellIfDue(message.context);
    }
    FreeOrSettle(index);
  }
  LeaveGroup(number);
}

void Initiator::LeaveGroup(uint32_t number) {
  if (number == kNone) {
    return;
  }
  OperationGroups::Group& group = groups_[number];
  if (--group.open != 0 || !group.ended) {
    return;
  }
  const uint32_t last = group.last;
  const OperationGroups::Failure failure = group.failure;
  groups_.Close(number);
  if (last == kNone) {
    return;  // It never left, its context being gone.
  }
  Outcome outcome = messages_[last].state.outcome();
  if (failure.status != Status::kOk) {
    outcome.status = failure.status;
    outcome.detail = failure.detail;
    outcome.length = 0;
  }
  Complete(last, outcome);
}

void Initiator::ReleaseSlots(TxMessage& message) {
  TxContext& tx = rings_[message.context];
  --tx.messages;
  if (message.slots != 0) {
    tx.messages_at[tx.Index(message.position)] = kNone;
  }
  rings_.Release(message.context, message.position, message.slots);
}

void Initiator::CountOperation(const TxContext& tx, Opcode opcode,
                               Status status) {
  switch (semantics::CountedAtInitiator(opcode)) {
    case semantics::Counted::kSend:
      parts_.counters->Count(tx.counter_send(), status);
      break;
    case semantics::Counted::kRead:
      parts_.counters->Count(tx.counter_read(), status);
      break;
    case semantics::Counted::kWrite:
      parts_.counters->Count(tx.counter_write(), status);
      break;
    default:
      break;
  }
}

void Initiator::Complete(uint32_t index, Outcome outcome) {
  TxMessage& message = messages_[index];
  if (message.ready_request) {
    EndReadyRequest(index);
    return;
  }
  const contract::TxDesc& descriptor = message.descriptor;
  if (Stale(message)) {
    parts_.queues->Release(message.ticket);
    FreeOrSettle(index);
    return;
  }
  const bool spilled = message.slots == 0;
  ReleaseSlots(message);
  if (outcome.status == Status::kOk) {
    parts_.statistics->Count(Statistic::kTxMessages);
  }
  CountOperation(rings_[message.context], descriptor.opcode, outcome.status);
  const bool asked =
      semantics::WantsCompletion(descriptor.flags, outcome.status);
  if (asked || spilled) {
    const semantics::RingPlace place = {static_cast<uint16_t>(message.context),
                                        message.position,
                                        rings_.Tell(message.context)};
    contract::Completion entry =
        semantics::TxCompletion(descriptor, outcome, place);
    entry.kind = asked ? contract::CompletionKind::kTx
                       : contract::CompletionKind::kTxSilent;
    parts_.queues->Complete(message.ticket, entry);
  } else {
    parts_.queues->Release(message.ticket);
    rings_.TellIfDue(message.context);
  }
  FreeOrSettle(index);
}

void Initiator::FinishIfSettled(uint32_t index) {
  TxMessage& message = messages_[index];
  if (!message.expects_data || message.finished) {
    return;
  }
  const Outcome outcome = message.state.outcome();
  const bool all = outcome.status == Status::kOk && outcome.length != 0 &&
                   outcome.length == message.descriptor.length;
  if (all || message.settled >= message.packets) {
    message.finished = true;
    transport_->Finish(index);
  } else if (message.refused && message.acknowledged == message.packets) {
    // A target that keeps one answer for a message does not say of which
    // packets the data will come.
    transport_->Fail(index);
  }
}

void Initiator::FreeOrSettle(uint32_t index) {
  TxMessage& message = messages_[index];
  const bool over = !message.expects_data || message.finished ||
                    message.abandoned || message.attempts == 0;
  if (over) {
    Free(index);
  } else {
    message.stage = Stage::kSettling;
  }
}

void Initiator::Free(uint32_t index) {
  TxMessage& message = messages_[index];
  message.stage = Stage::kFree;
  message.ticket = {};
  --live_;
  TxContext& tx = rings_[message.context];
  if (--tx.used >= GuaranteeOf(tx)) {
    ++shared_;
  }
  free_.Push(messages_, index);
  Unblock();
}

}  // namespace heddle::soft::engine
