// SPDX-License-Identifier: Apache-2.0
// What a target says to a packet of a message: part of it, an error, to be sent
// again. As heddle_accept_outcome, which is tested against this.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/rules/accept.h"

namespace heddle::soft::rules {

// A packet, as a part of its message.
struct Part {
  // A deferrable send is a SEND.
  contract::SesOpcode opcode = contract::SesOpcode::kSend;
  bool known_version = true;  // Of the semantic sublayer.
  bool single = false;        // The whole message.
  bool empty = false;         // No payload, and a message of no bytes.
  bool ie = false;            // Its sender gave the message up.
  bool dc = false;            // It asks for delivery.
  // Its lengths contradict neither each other nor its message.
  bool legal = true;
};

// What it is for.
struct Aim {
  bool context = true;  // Its name has a receive context, or
  contract::ReturnCode miss = contract::ReturnCode::kBadIndex;  // this.
  bool same_generation = true;  // Of the resource index.
  bool same_job = true;         // SEND.
  contract::ReturnCode region = contract::ReturnCode::kOk;  // RMA.
  bool buffer = true;   // SEND: the context has one.
  bool reports = true;  // An entry of the completion queue is written,
  bool entry = true;    // and there is room for it.
  bool data = true;     // READ: there is room for the data that it asks for.
  // What may have to be told for certain has a place.
  bool answer = true;
};

// The message that it is of.
struct Open {
  enum class Progress : uint8_t {
    kNone,  // Not open.
    kOpen,
    kFailed,  // Its initiator gave it up.
    kOver,    // It has ended; the rest is taken for nothing.
  };
  Progress progress = Progress::kNone;
  bool rma = false;
  bool same = true;    // The packet agrees with what the first one said.
  bool stale = false;  // Its context was disabled.
  // Messages that ended are known as such: what belongs to no message is of
  // none. Else it may be of one that was refused.
  bool remembered = true;
};

// What becomes of it.
struct Answer {
  enum class Kind : uint8_t {
    kTaken,
    kBegins,     // The same, and its message takes what it needs.
    kIgnored,    // Accepted, for nothing.
    kWithdrawn,  // The same: no receiver is left for the message.
    kError,      // Accepted; the answer, `code`, must not be lost.
    kWait,       // Refused with `nack`.
  };
  Kind kind = Kind::kTaken;
  contract::ReturnCode code = contract::ReturnCode::kNull;
  contract::NackCode nack = {};
  bool violation = false;  // Error: it contradicts itself or its message.
};

constexpr Answer Violation(const Part& part) {
  return {Answer::Kind::kError,
          part.known_version ? contract::ReturnCode::kOpViolation
                             : contract::ReturnCode::kUncor,
          {},
          true};
}

constexpr bool IsRma(contract::SesOpcode opcode) {
  return opcode == contract::SesOpcode::kWrite ||
         opcode == contract::SesOpcode::kRead;
}

// Why a message cannot be for that, or kNull.
[[gnu::always_inline]] constexpr contract::ReturnCode RefusalOf(
    const Part& part, const Aim& aim) {
  using contract::ReturnCode;
  if (!aim.context) {
    return aim.miss;
  }
  if (!aim.same_generation) {
    return ReturnCode::kBadGeneration;
  }
  if (IsRma(part.opcode)) {
    return aim.region == ReturnCode::kOk ? ReturnCode::kNull : aim.region;
  }
  return aim.same_job ? ReturnCode::kNull : ReturnCode::kBadJobId;
}

constexpr Answer AnswerToNoOp(const Part& part) {
  if (!part.empty) {
    return {Answer::Kind::kError, contract::ReturnCode::kUnsupportedSize};
  }
  return part.single ? Answer{} : Violation(part);
}

// The packet begins a message: it is the first one, or unordered and of none
// that is known.
[[gnu::always_inline]] constexpr Answer AnswerToFirst(const Part& part,
                                                      const Aim& aim) {
  using contract::NackCode;
  using contract::ReturnCode;
  const bool rma = IsRma(part.opcode);
  if (!rma && part.opcode != contract::SesOpcode::kSend) {
    return {Answer::Kind::kError, ReturnCode::kUnsupportedOp};
  }
  if (!part.legal) {
    return Violation(part);
  }
  const bool entry = aim.entry || (rma && !aim.reports);
  if (part.ie && (!aim.context || !(rma || aim.buffer) || !entry)) {
    return {Answer::Kind::kIgnored};  // There is nothing to wait for.
  }
  if (const ReturnCode code = RefusalOf(part, aim); code != ReturnCode::kNull) {
    return {Answer::Kind::kError, code};
  }
  if (!aim.answer) {
    return {Answer::Kind::kWait, {}, NackCode::kNoGtdDelAvail};
  }
  if (!rma && !aim.buffer) {
    return {Answer::Kind::kWait, {}, NackCode::kNoPktBuffer};
  }
  if (!entry || (!aim.data && !part.ie)) {
    return {Answer::Kind::kWait, {}, NackCode::kNoResource};
  }
  return {Answer::Kind::kBegins};
}

// It is none of these.
constexpr Answer AnswerToOther(const Part& part, const Aim& aim,
                               const Open& message) {
  using contract::ReturnCode;
  if (message.progress == Open::Progress::kOver ||
      (message.progress == Open::Progress::kNone && part.ie)) {
    return {Answer::Kind::kIgnored};
  }
  if (message.progress == Open::Progress::kNone) {
    const ReturnCode code =
        message.remembered ? ReturnCode::kNull : RefusalOf(part, aim);
    return code == ReturnCode::kNull ? Violation(part)
                                     : Answer{Answer::Kind::kError, code};
  }
  if (message.stale && !message.rma) {
    // An initiator that requests delivery is notified that there is none.
    return part.dc && !part.ie
               ? Answer{Answer::Kind::kError, ReturnCode::kBadIndex}
               : Answer{Answer::Kind::kWithdrawn};
  }
  if (!message.same || !part.legal) {
    return Violation(part);
  }
  if (part.ie) {
    return {};
  }
  if (!aim.same_generation) {
    return {Answer::Kind::kError, ReturnCode::kBadGeneration};
  }
  if (!message.rma || message.progress != Open::Progress::kOpen) {
    return {};
  }
  // The region, or the context, may be gone since the message began.
  if (!aim.context || message.stale) {
    return {Answer::Kind::kError, aim.miss};
  }
  if (aim.region != ReturnCode::kOk) {
    return {Answer::Kind::kError, aim.region};
  }
  return aim.data
             ? Answer{}
             : Answer{Answer::Kind::kWait, {}, contract::NackCode::kNoResource};
}

// The same as a packet's of a WRITE or READ that its initiator alone tracks:
// each stands for itself.
constexpr Answer AnswerToAlone(const Part& part, const Aim& aim, bool over) {
  using contract::ReturnCode;
  if (over) {
    return {Answer::Kind::kIgnored};
  }
  if (!part.legal) {
    return Violation(part);
  }
  if (part.ie) {
    return {Answer::Kind::kIgnored};
  }
  if (const ReturnCode code = RefusalOf(part, aim); code != ReturnCode::kNull) {
    return {Answer::Kind::kError, code};
  }
  return aim.data
             ? Answer{}
             : Answer{Answer::Kind::kWait, {}, contract::NackCode::kNoResource};
}

// Unordered: may a packet be taken over a gap by a target that judges errors in
// the order of PSNs? `alone`: it stands for itself; `first`: of its message,
// which is one of several packets only where it `may` be opened; else the
// message `may` still have it.
constexpr bool InTurn(const Part& part, const Answer& answer, bool alone,
                      bool first, bool may) {
  const bool taken = answer.kind == Answer::Kind::kTaken ||
                     answer.kind == Answer::Kind::kBegins;
  if (!taken || part.ie) {
    return false;
  }
  if (alone) {
    return true;
  }
  return first ? answer.kind == Answer::Kind::kBegins && (part.single || may)
               : may;
}

// What that means for its PSN. `place`: there is one for an answer that must
// not be lost.
constexpr Said SaidOf(const Answer& answer, bool place) {
  if (answer.kind == Answer::Kind::kWait) {
    return {Said::Kind::kRefused, answer.nack};
  }
  if (answer.kind == Answer::Kind::kError && !place) {
    return {Said::Kind::kRefused, contract::NackCode::kNoGtdDelAvail};
  }
  return {};
}

}  // namespace heddle::soft::rules
