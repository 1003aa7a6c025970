// SPDX-License-Identifier: Apache-2.0
// Messages that stay at their initiator until a receive takes them.
#include "hw/soft/engine/match_contexts.h"

namespace heddle::soft::engine {

using contract::ReturnCode;
using contract::Statistic;
using contract::Status;
using semantics::kNone;

namespace {

// A message ends so when its initiator does not send it.
semantics::Outcome Unfinished(uint32_t message_length) {
  return {Status::kInitiatorError,
          static_cast<uint16_t>(ReturnCode::kInitiatorErr), 0, message_length};
}

}  // namespace

uint32_t MatchContexts::Defer(uint32_t context, const Message& message) {
  const uint32_t index = free_deferred_.Pop(deferred_);
  if (index == kNone) {
    return kNone;
  }
  Deferred& deferred = deferred_[index];
  deferred.stage = Deferred::Stage::kKept;
  deferred.discarded = deferred.orphaned = false;
  deferred.life = deferred.life == 0 ? first_life_
                                     : static_cast<uint16_t>(deferred.life + 1);
  deferred.context = context;
  deferred.length = message.length;
  deferred.from = *message.deferral;
  deferred.names = message.names;
  parts_.statistics->Count(Statistic::kRxDeferred);
  return index;
}

uint32_t MatchContexts::DeferredOf(uint32_t target_token) const noexcept {
  const uint32_t index = (target_token & UINT16_MAX) - 1U;
  return index < deferred_.size() &&
                 deferred_[index].stage != Deferred::Stage::kFree &&
                 TokenOf(index) == target_token
             ? index
             : kNone;
}

void MatchContexts::FreeDeferred(uint32_t deferred) {
  due_ -= deferred_[deferred].stage == Deferred::Stage::kDue ? 1 : 0;
  deferred_[deferred].stage = Deferred::Stage::kFree;
  free_deferred_.Push(deferred_, deferred);
}

void MatchContexts::Request(uint32_t deferred) {
  Deferred& one = deferred_[deferred];
  if (ready_sender_->SendReady(one.from, TokenOf(deferred))) {
    one.stage = Deferred::Stage::kRequested;
  } else {
    one.stage = Deferred::Stage::kDue;
    ++due_;
    behind_ = true;
  }
}

void MatchContexts::RequestAll() {
  for (uint32_t i = 0; due_ != 0 && i < deferred_.size(); ++i) {
    if (deferred_[i].stage == Deferred::Stage::kDue) {
      --due_;
      Request(i);
      if (deferred_[i].stage == Deferred::Stage::kDue) {
        return;
      }
    }
  }
}

bool MatchContexts::Restart(uint32_t target_token, const Deferral& deferral,
                            const Message& message, Landing* landing) {
  const uint32_t index = DeferredOf(target_token);
  if (index == kNone) {
    return false;
  }
  const Deferred& one = deferred_[index];
  if (one.stage != Deferred::Stage::kRequested ||
      one.from.source != deferral.source ||
      one.from.initiator != deferral.initiator ||
      one.length != message.length ||
      one.names.opcode != message.names.opcode ||
      one.names.tag != message.names.tag) {
    return false;
  }
  if (one.orphaned) {
    FreeDeferred(index);
    return false;
  }
  *landing = {.kind = Landing::Kind::kNowhere, .room = message.length};
  if (!one.discarded) {
    *landing = {.kind = Landing::Kind::kReceive,
                .delivery = one.delivery,
                .ticket = one.ticket,
                .address = one.delivery.address,
                .room = static_cast<uint32_t>(one.delivery.room)};
  }
  FreeDeferred(index);
  return true;
}

void MatchContexts::OnReadyEnded(uint32_t target_token, bool accepted) {
  const uint32_t index = DeferredOf(target_token);
  if (index == kNone) {
    return;  // It has restarted already.
  }
  if (deferred_[index].orphaned) {
    FreeDeferred(index);
  } else if (!accepted) {
    Fail(index);
  }
}

void MatchContexts::Fail(uint32_t deferred) {
  const Deferred one = deferred_[deferred];
  FreeDeferred(deferred);
  if (!one.discarded && !one.orphaned) {
    End(one.context,
        {.kind = Landing::Kind::kReceive,
         .delivery = one.delivery,
         .ticket = one.ticket},
        one.names, Unfinished(one.length));
  }
}

void MatchContexts::OnSenderLost(const wire::FabricAddress& source,
                                 uint16_t spdcid) {
  // Those without a receive first: no receive takes one that is lost.
  for (const bool taken : {false, true}) {
    for (uint32_t i = 0; i < deferred_.size(); ++i) {
      const Deferred& one = deferred_[i];
      if (one.stage == Deferred::Stage::kFree ||
          taken == (one.stage == Deferred::Stage::kKept) ||
          one.from.spdcid != spdcid || one.from.source != source) {
        continue;
      }
      if (taken) {
        Fail(i);
        continue;
      }
      Context& match = *Find(one.context);
      match.kept[one.kept].deferred = kNone;
      match.kept[one.kept].outcome = Unfinished(one.length);
      FailKept(match, one.kept);
      FreeDeferred(i);
    }
  }
}

void MatchContexts::Orphan(uint32_t context) {
  // The initiator restarts, and learns that the context is gone.
  for (uint32_t i = 0; i < deferred_.size(); ++i) {
    Deferred& one = deferred_[i];
    if (one.context != context || one.stage == Deferred::Stage::kFree ||
        one.orphaned) {
      continue;
    }
    one.orphaned = true;
    if (one.stage == Deferred::Stage::kKept) {
      Request(i);
    } else if (!one.discarded) {
      parts_.queues->Release(one.ticket);
    }
  }
}

}  // namespace heddle::soft::engine
