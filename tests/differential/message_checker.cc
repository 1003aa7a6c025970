// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/message_checker.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <deque>

#include "tests/differential/content.h"

namespace heddle::differential {
namespace {

bool IsTaggedSpare(uint32_t number) {
  return number >= kTaggedSpareBase && number < kClaimBase;
}

// A spare receive at a place matches any message of its kind.
Operation RuleOfSpare(const Place& place, uint32_t number) {
  const bool tagged = IsTaggedSpare(number);
  return {.verb = Verb::kReceive,
          .at = place,
          .tagged = tagged,
          .ignore = tagged ? UINT32_MAX : 0U};
}

// The message is gone when this has found it.
bool Drops(const Operation& peek) {
  return peek.verb == Verb::kDiscard ||
         (peek.verb == Verb::kClaim && peek.dropped);
}

// Answers to an invalid call.
bool IsRefusal(Fault fault, int64_t result) {
  switch (fault) {
    case Fault::kUnknownPeer:
    case Fault::kLongInject:
    case Fault::kManySegments:
      return result == -FI_EINVAL || result == -FI_EMSGSIZE;
    case Fault::kUnknownFlag:
      return result == -FI_EOPNOTSUPP || result == -FI_EBADFLAGS;
    case Fault::kStrayCancel:
      return result == -FI_ENOENT;
    default:
      return false;
  }
}

}  // namespace

MessageChecker::MessageChecker(const Stream& stream, Verdict* verdict)
    : stream_(stream), verdict_(verdict), in_peace_(RenewsInPeace(stream)) {}

void MessageChecker::Violate(const std::string& what) {
  verdict_->violations.push_back(what);
}

std::string MessageChecker::Name(uint32_t number) const {
  if (number < stream_.operations.size()) {
    return "operation " + std::to_string(number) + " (" +
           ToText(stream_.operations[number]) + ")";
  }
  if (number == kNobody) {
    return "nobody";
  }
  return number >= kClaimBase
             ? "the receive of the message of " + Name(number - kClaimBase)
             : "spare receive " + std::to_string(number - kSpareBase);
}

void MessageChecker::Feed(uint32_t side, const Event& event) {
  switch (event.kind) {
    case EventKind::kCalled:
      OnCalled(side, event);
      break;
    case EventKind::kSpare:
      AddReceive(side, event,
                 RuleOfSpare({.side = side, .endpoint = event.endpoint},
                             event.number));
      break;
    case EventKind::kClaimed:
      AddReceive(side, event, stream_.operations.at(event.number - kClaimBase));
      posted_.at(side).at(event.number).claims = true;
      break;
    case EventKind::kFound:
      found_.at(stream_.operations.at(event.number).at.index())
          .push_back({event, ends_.at(side).size()});
      break;
    case EventKind::kCompleted:
    case EventKind::kFailed:
      if (event.number < stream_.operations.size() &&
          IsPeek(stream_.operations[event.number].verb)) {
        OnNotFound(side, event);
      } else {
        OnCompletion(side, event);
      }
      break;
    case EventKind::kMiscounted:
      Violate("a counter of endpoint " + std::to_string(side) + "." +
              std::to_string(event.endpoint) + " says " +
              std::to_string(event.result) + " after " +
              std::to_string(event.bytes) + " operations");
      break;
    case EventKind::kRestarted:
      if (in_peace_) {
        Violate("side " + std::to_string(side) + " opened " +
                std::to_string(event.bytes) +
                " PDCs again, though its peer had left in order");
      }
      break;
    case EventKind::kChanged:
      ++verdict_->figures.corrupted;
      Violate("the buffer of " + Name(event.number) +
              " changed after its completion");
      break;
    default:
      break;
  }
}

void MessageChecker::AddReceive(uint32_t side, const Event& event,
                                const Operation& rule) {
  Posted& receive = posted_.at(side)[event.number];
  receive.number = event.number;
  receive.bytes = event.bytes;
  receive.rule = rule;
  receive.life = ends_.at(side).size();
  const Place at = {.side = side, .endpoint = event.endpoint};
  receives_.at(at.index()).push_back(event.number);
}

void MessageChecker::OnNotFound(uint32_t side, const Event& event) {
  const bool reset = event.result == FI_EIO && was_reset_.at(side);
  if (event.kind != EventKind::kFailed ||
      (event.result != FI_ENOMSG && !reset)) {
    Violate(Name(event.number) + " ended with error " +
            std::to_string(event.result) + ", not with a message or without");
  }
}

void MessageChecker::OnCalled(uint32_t side, const Event& event) {
  const Operation& operation = stream_.operations.at(event.number);
  ++verdict_->figures.operations;
  bool allowed = event.result == 0;
  if (operation.verb == Verb::kInvalid) {
    allowed = IsRefusal(operation.fault, event.result);
  } else if (operation.verb == Verb::kCancel) {
    Posted& receive = posted_.at(side)[static_cast<uint32_t>(event.bytes)];
    // A message may be on its way into the buffer already.
    receive.matched = receive.matched || event.result == -FI_ENOENT;
    allowed = allowed || event.result == -FI_ENOENT;
    receive.cancelled = receive.cancelled || event.result == 0;
  } else if (IsSend(operation.verb) || IsRma(operation.verb) ||
             operation.verb == Verb::kReceive) {
    allowed = allowed || event.result == -FI_EAGAIN;
    if (event.result == 0) {
      OnAccepted(side, event);
    }
  } else if (operation.verb == Verb::kClose) {
    OnClose(operation.at);
  } else if (operation.verb == Verb::kOpen) {
    closed_.at(operation.at.index()) = false;
  } else if (IsRenewal(operation.verb)) {
    OnRenewal(operation, event.time_ns);
  } else if (IsPeek(operation.verb)) {
    allowed = allowed || event.result == -FI_EAGAIN;
  } else {
    regions_changed_ = true;
  }
  if (!allowed) {
    Violate(Name(event.number) + " answered " + std::to_string(event.result));
  }
}

void MessageChecker::OnAccepted(uint32_t side, const Event& event) {
  const Operation& operation = stream_.operations.at(event.number);
  Posted& posted = posted_.at(side)[event.number];
  posted.number = event.number;
  posted.bytes = operation.bytes;
  posted.rule = operation;
  posted.life = ends_.at(side).size();
  const uint32_t at = operation.at.index();
  if (operation.verb == Verb::kReceive) {
    receives_.at(at).push_back(event.number);
  } else if (IsSend(operation.verb)) {
    messages_.at(at).at(operation.peer.index()).push_back({event.number});
  }
}

void MessageChecker::OnClose(const Place& place) {
  closed_.at(place.index()) = true;
  was_closed_.at(place.index()) = true;
  for (auto& [number, posted] : posted_.at(place.side)) {
    posted.over = posted.over || (number < stream_.operations.size() &&
                                  stream_.operations[number].at == place);
  }
  for (const uint32_t number : receives_.at(place.index())) {
    posted_.at(place.side).at(number).over = true;
  }
}

// A reset is told of when all that it ended should have been reported.
void MessageChecker::OnRenewal(const Operation& operation, uint64_t time_ns) {
  const uint32_t side = operation.at.side;
  was_renewed_.at(side) = true;
  ends_.at(side).push_back(time_ns);
  for (const auto& [number, posted] : posted_.at(side)) {
    const bool reported = number >= stream_.operations.size() ||
                          stream_.operations[number].verb == Verb::kReceive ||
                          IsReported(stream_.setup, stream_.operations[number]);
    if (operation.verb == Verb::kReset && !posted.complete && !posted.over &&
        reported) {
      Violate(Name(number) + " was ended by a reset without a word");
    }
  }
  was_reset_.at(side) = was_reset_.at(side) || operation.verb == Verb::kReset;
  for (uint32_t index = 0; index < kEndpoints; ++index) {
    const Place place = {.side = side, .endpoint = index};
    OnClose(place);
    closed_.at(place.index()) = false;
  }
}

void MessageChecker::OnCompletion(uint32_t side, const Event& event) {
  if (event.number == kNobody && event.kind == EventKind::kFailed &&
      event.endpoint > 0) {
    const Place at = {.side = side, .endpoint = event.endpoint - 1};
    ++inject_errors_.at(at.index());
    return;
  }
  const auto found = posted_.at(side).find(event.number);
  if (found == posted_.at(side).end()) {
    Violate("a completion of " + Name(event.number) +
            ", which was not accepted, on side " + std::to_string(side));
    return;
  }
  Posted& posted = found->second;
  if (posted.over) {
    Violate(Name(event.number) + " completed after its endpoint was closed");
  }
  if (posted.complete) {
    Violate(Name(event.number) + " completed twice");
    return;
  }
  posted.whole = event.kind == EventKind::kFailed && !EndsMessage(event.result);
  if (posted.rule.many && !posted.whole) {
    posted.parts.push_back(event);
    if (event.held) {
      return;
    }
  }
  posted.complete = true;
  posted.completion = event;
  const bool is_transfer =
      event.number < stream_.operations.size() &&
      stream_.operations[event.number].verb != Verb::kReceive;
  if (is_transfer && event.kind == EventKind::kCompleted &&
      !IsReported(stream_.setup, stream_.operations[event.number])) {
    Violate(Name(event.number) + " reported a completion, unasked");
  }
}

void MessageChecker::CheckReceive(const Place& place, const Posted& posted) {
  const Event& event = posted.completion;
  const bool reset = event.kind == EventKind::kFailed &&
                     event.result == FI_EIO && was_reset_.at(place.side);
  if (!event.clean && !reset) {
    ++verdict_->figures.corrupted;
    Violate("bytes behind the message in " + Name(event.number) + " changed");
  }
  if (event.kind == EventKind::kCompleted) {
    if (event.bytes > posted.bytes || event.source < 0) {
      Violate(Name(event.number) + " completed with " +
              std::to_string(event.bytes) + " bytes, sender " +
              std::to_string(event.source));
    }
    return;
  }
  const bool truncated = event.result == FI_ETRUNC &&
                         event.bytes == posted.bytes && event.beyond > 0;
  const bool cancelled = event.result == FI_ECANCELED && event.bytes == 0 &&
                         (posted.cancelled || IsTaggedSpare(posted.number));
  // A sender that was closed in the middle of a message says so; of one that
  // ended without a word its target finds out, some time later.
  const bool broken_off =
      event.result == FI_EREMOTEIO && (any_closed() || any_renewed());
  if (!truncated && !cancelled && !broken_off && !reset) {
    Violate(Name(event.number) + " failed with error " +
            std::to_string(event.result) + " after " +
            std::to_string(event.bytes) + " bytes");
  }
}

// Everything of this phase is known: which messages are owed, then who got
// them.
void MessageChecker::Settle() {
  for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
    for (uint32_t to = 0; to < stream_.setup.places(); ++to) {
      for (Message& message : messages_.at(from).at(to)) {
        message.owed = message.owed && !message.arrived &&
                       IsOwed(stream_.operations.at(message.number),
                              posted_.at(from / kEndpoints).at(message.number));
      }
    }
  }
  for (uint32_t at = 0; at < stream_.setup.places(); ++at) {
    SettlePlace({.side = at / kEndpoints, .endpoint = at % kEndpoints});
  }
  SettleTransfers();
  was_closed_ = closed_;
  was_reset_ = was_renewed_ = {};
  inject_errors_ = {};
}

void MessageChecker::CheckMany(Posted* receive) {
  const auto unsettled =
      receive->parts.begin() + static_cast<ptrdiff_t>(receive->parts_settled);
  std::sort(unsettled, receive->parts.end(),
            [](const Event& a, const Event& b) { return a.offset < b.offset; });
  uint64_t used = 0;
  for (const Event& part : receive->parts) {
    if (part.offset < used) {
      Violate("two messages in " + Name(receive->number) + " overlap at byte " +
              std::to_string(part.offset));
    }
    if (part.offset + part.bytes > receive->bytes) {
      Violate("a message in " + Name(receive->number) + " ends at byte " +
              std::to_string(part.offset + part.bytes));
    }
    if (part.offset != 0 && !HasRoom(receive->bytes - part.offset)) {
      Violate(Name(receive->number) + " took a message at byte " +
              std::to_string(part.offset) + ", with too little free");
    }
    // A message that broke off leaves its room.
    used = std::max(used, part.offset + part.bytes +
                              (part.result == FI_EREMOTEIO ? part.beyond : 0));
  }
  const uint64_t free = receive->bytes - std::min(used, receive->bytes);
  // A cancelled one is released with the messages that it has taken by then.
  if (receive->complete && !receive->whole && !receive->cancelled &&
      HasRoom(free)) {
    Violate(Name(receive->number) + " was released with " +
            std::to_string(free) + " bytes free");
  }
  if (!receive->complete && !receive->over && !HasRoom(free)) {
    Violate(Name(receive->number) + " was not released with " +
            std::to_string(free) + " bytes free");
  }
}

void MessageChecker::SettleReceive(const Place& place, const Posted& receive,
                                   Settling* settling) {
  CheckReceive(place, receive);
  if (receive.completion.kind == EventKind::kFailed &&
      receive.completion.result != FI_ETRUNC) {
    return;  // No message.
  }
  const Message* const message = Match(place, receive);
  if (!settling->passed_over &&
      IsPassedOver(settling->waiting, place, receive, message)) {
    Violate(Name(receive.number) + " took a message before an older receive");
    settling->passed_over = true;  // Once is enough.
  }
  if (message != nullptr && !receive.claims) {
    CheckOrder(settling->taken, {&receive, message->number});
    settling->taken.push_back({&receive, message->number});
  }
}

void MessageChecker::SettlePlace(const Place& place) {
  auto& receives = receives_.at(place.index());
  Settling settling;
  std::deque<Posted> parts;  // `settling` points to them.
  for (const uint32_t number : receives) {
    Posted& receive = posted_.at(place.side).at(number);
    if (receive.rule.many) {
      CheckMany(&receive);
      for (; receive.parts_settled != receive.parts.size();
           ++receive.parts_settled) {
        const Event& event = receive.parts[receive.parts_settled];
        const Posted& part = parts.emplace_back(Posted{
            .number = number,
            .complete = true,
            .completion = event,
            .bytes = receive.bytes - std::min(receive.bytes, event.offset),
            .rule = receive.rule,
            .life = receive.life});
        SettleReceive(place, part, &settling);
      }
    }
    if (!receive.complete) {
      if (!receive.over && receive.matched && !receive.cancelled) {
        Violate(Name(number) + " could not be cancelled, but got no message");
      }
      if (!receive.over) {
        settling.waiting.push_back(number);
      }
    } else if (!receive.rule.many || receive.whole) {
      SettleReceive(place, receive, &settling);
    }
  }
  receives = settling.waiting;
  SettleFound(place);
  for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
    auto& messages = messages_.at(from).at(place.index());
    for (Message& message : messages) {
      if (message.owed && !message.arrived) {
        ++verdict_->figures.lost;
        Violate(Name(message.number) + " did not arrive");
        message.owed = false;
      }
    }
  }
}

bool MessageChecker::IsPassedOver(const std::vector<uint32_t>& waiting,
                                  const Place& place, const Posted& receive,
                                  const Message* message) const {
  // A message that its sender began before it ended keeps its receive.
  if (any_renewed() || receive.claims) {
    return false;
  }
  return std::any_of(waiting.begin(), waiting.end(), [&](uint32_t number) {
    const Posted& older = posted_.at(place.side).at(number);
    if (older.claims || older.rule.tagged != receive.rule.tagged ||
        MayFailLater(place, older)) {
      return false;
    }
    return message == nullptr
               ? !older.rule.tagged
               : Matches(older.rule, stream_.operations.at(message->number));
  });
}

bool MessageChecker::MayFailLater(const Place& place,
                                  const Posted& receive) const {
  for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
    const auto& messages = messages_.at(from).at(place.index());
    if (closed_.at(from) &&
        std::any_of(messages.begin(), messages.end(), [&](const Message& m) {
          return !m.arrived &&
                 Matches(receive.rule, stream_.operations.at(m.number));
        })) {
      return true;
    }
  }
  return false;
}

void MessageChecker::CheckOrder(const std::vector<Taken>& taken,
                                const Taken& now) {
  const Operation& message = stream_.operations.at(now.message);
  // Untagged ones arrive in the order of receives: `Identify` looks at that.
  if (!message.tagged || !stream_.setup.ordered || any_closed() ||
      any_renewed()) {
    return;
  }
  for (const Taken& older : taken) {
    if (older.message > now.message &&
        stream_.operations.at(older.message).at == message.at &&
        Matches(older.receive->rule, message)) {
      Violate(Name(now.receive->number) + " took " + Name(now.message) +
              ", which the older receive " + Name(older.receive->number) +
              " matches; that took " + Name(older.message));
      return;
    }
  }
}

void MessageChecker::SettleFound(const Place& place) {
  const auto is_due = [](const Message& m) { return m.owed && !m.arrived; };
  for (const auto& [event, life] : found_.at(place.index())) {
    const Operation& peek = stream_.operations.at(event.number);
    // If several fit, one that must arrive: an earlier life may have had
    // others.
    Message* known = nullptr;
    for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
      if (static_cast<uint32_t>(event.source) != from) {
        continue;
      }
      for (Message& message : messages_.at(from).at(place.index())) {
        const Operation& sent = stream_.operations.at(message.number);
        const bool fits =
            Matches(peek, sent) && sent.tag == event.tag &&
            sent.bytes == event.beyond &&
            event.has_data == HasData(sent.verb) &&
            (!event.has_data ||
             event.data == ContentData(stream_.setup.seed, message.number)) &&
            !(Drops(peek) && message.arrived && message.life <= life);
        if (fits &&
            (known == nullptr || (is_due(message) && !is_due(*known)))) {
          known = &message;
        }
      }
    }
    if (known == nullptr) {
      ++verdict_->figures.corrupted;
      Violate(Name(event.number) + " found a message of " +
              std::to_string(event.beyond) + " bytes that was not there");
    } else if (Drops(peek) && !known->arrived) {
      // One that was not acknowledged may have come to the next life, too.
      known->arrived = true;
      known->life = life;
      ++verdict_->figures.messages;
    }
  }
  found_.at(place.index()).clear();
}

bool MessageChecker::IsContent(const Message& message,
                               const Posted& receive) const {
  const Operation& operation = stream_.operations.at(message.number);
  const Event& event = receive.completion;
  if (operation.bytes != event.bytes + event.beyond ||
      operation.tagged != receive.rule.tagged ||
      (event.kind == EventKind::kCompleted && operation.tag != event.tag)) {
    return false;
  }
  const uint64_t seed = stream_.setup.seed;
  if (event.kind == EventKind::kCompleted &&
      (event.has_data != HasData(operation.verb) ||
       (event.has_data && event.data != ContentData(seed, message.number)))) {
    return false;
  }
  return Digest(Content(seed, message.number, event.bytes)) == event.digest;
}

// The oldest message without a receive that `receive` may hold.
MessageChecker::Message* MessageChecker::Identify(const Place& place,
                                                  const Posted& receive) {
  for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
    const int32_t source = receive.completion.source;
    if (source >= 0 && static_cast<uint32_t>(source) != from) {
      continue;
    }
    auto& messages = messages_.at(from).at(place.index());
    const auto is_sent = [&](const Message& m) {
      return !m.arrived && IsContent(m, receive);
    };
    auto found =
        std::find_if(messages.begin(), messages.end(), [&](const Message& m) {
          return is_sent(m) &&
                 Matches(receive.rule, stream_.operations.at(m.number));
        });
    if (found == messages.end()) {
      found = std::find_if(messages.begin(), messages.end(), is_sent);
      if (found == messages.end()) {
        continue;
      }
      Violate(Name(receive.number) + " took " + Name(found->number) +
              ", which does not match it");
    }
    const auto later =
        std::find_if(found, messages.end(), [this](const Message& m) {
          return m.arrived && !stream_.operations.at(m.number).tagged;
        });
    if (stream_.setup.ordered && !receive.rule.tagged &&
        later != messages.end()) {
      Violate(Name(found->number) + " arrived after " + Name(later->number) +
              ", which was sent later");
    }
    return &*found;
  }
  return nullptr;
}

MessageChecker::Message* MessageChecker::Match(const Place& place,
                                               const Posted& receive) {
  Message* const message = Identify(place, receive);
  if (message == nullptr) {
    if (!CameAgain(place, receive)) {
      Blame(place, receive);
    }
    return nullptr;
  }
  message->arrived = true;
  message->life = receive.life;
  if (WasAcknowledgedBefore(*message, place, receive)) {
    ++verdict_->figures.duplicated;
    Violate(Name(receive.number) + " got " + Name(message->number) +
            ", which the incarnation before had acknowledged");
    return message;
  }
  ++verdict_->figures.messages;
  return message;
}

// What the sender saw complete before the side began anew was acknowledged by
// the life that ended.
bool MessageChecker::WasAcknowledgedBefore(const Message& message,
                                           const Place& place,
                                           const Posted& receive) const {
  const uint32_t sender = stream_.operations.at(message.number).at.side;
  const Posted& sent = posted_.at(sender).at(message.number);
  return receive.life > 0 && sent.complete &&
         sent.completion.kind == EventKind::kCompleted &&
         sent.completion.time_ns < ends_.at(place.side).at(receive.life - 1);
}

bool MessageChecker::CameAgain(const Place& place, const Posted& receive) {
  for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
    for (Message& message : messages_.at(from).at(place.index())) {
      if (!message.arrived || !IsContent(message, receive)) {
        continue;
      }
      // What the incarnation before received but did not acknowledge may go
      // to the new one, too.
      const bool acknowledged = WasAcknowledgedBefore(message, place, receive);
      if (message.life < receive.life && !acknowledged) {
        message.life = receive.life;
        return true;
      }
      ++verdict_->figures.duplicated;
      Violate(Name(receive.number) + " got " + Name(message.number) +
              " once more" +
              (acknowledged ? ", though it was acknowledged before" : ""));
      return true;
    }
  }
  return false;
}

// Says what is most likely wrong with a message that nobody sent.
void MessageChecker::Blame(const Place& place, const Posted& receive) {
  const Event& event = receive.completion;
  for (uint32_t from = 0; from < stream_.setup.places(); ++from) {
    for (Message& message : messages_.at(from).at(place.index())) {
      const Operation& operation = stream_.operations.at(message.number);
      if (!message.arrived && operation.tagged == receive.rule.tagged &&
          (event.source < 0 || static_cast<uint32_t>(event.source) == from) &&
          operation.bytes == event.bytes + event.beyond) {
        ++verdict_->figures.corrupted;
        message.arrived = true;
        Violate(Name(receive.number) + " got " + Name(message.number) +
                " with other bytes or data than were sent");
        return;
      }
    }
  }
  ++verdict_->figures.corrupted;
  Violate(Name(receive.number) + " got " + std::to_string(event.bytes) +
          " bytes that nobody sent");
}

// Whether something happened since the last sync that lets an accepted transfer
// fail. That a side began anew before is no cause: what is sent then reaches
// it.
bool MessageChecker::MayFail(const Operation& operation) const {
  return was_closed_.at(operation.at.index()) ||
         was_closed_.at(operation.peer.index()) ||
         was_renewed_.at(operation.peer.side);
}

// Whether an accepted message must arrive.
bool MessageChecker::IsOwed(const Operation& operation,
                            const Posted& posted) const {
  if (was_closed_.at(operation.peer.index())) {
    return false;
  }
  if (posted.complete) {
    // What was reported as sent has arrived, whatever became of its sender.
    return posted.completion.kind == EventKind::kCompleted;
  }
  const bool may_have_failed =
      inject_errors_.at(operation.at.index()) != 0 && MayFail(operation);
  return !was_closed_.at(operation.at.index()) && !may_have_failed;
}

bool MessageChecker::any_closed() const {
  return std::any_of(was_closed_.begin(), was_closed_.end(),
                     [](bool closed) { return closed; });
}

void MessageChecker::SettleTransfers() {
  for (const uint32_t errors : inject_errors_) {
    if (errors != 0 && !any_closed() && !regions_changed_ && !any_renewed()) {
      Violate("an injected operation failed without a cause");
    }
  }
  for (auto& of_side : posted_) {
    for (auto& [number, posted] : of_side) {
      if (number >= stream_.operations.size() || posted.settled) {
        continue;
      }
      const Operation& operation = stream_.operations[number];
      if (!IsSend(operation.verb) && !IsRma(operation.verb)) {
        continue;
      }
      const bool reported = IsReported(stream_.setup, operation);
      if (!posted.complete && !posted.over && reported) {
        Violate(Name(number) + " did not complete");
      }
      if (posted.complete && posted.completion.kind == EventKind::kFailed &&
          IsSend(operation.verb) && !MayFail(operation)) {
        Violate(Name(number) + " failed without a cause, error " +
                std::to_string(posted.completion.result));
      }
      posted.settled = posted.complete || posted.over || reported;
    }
  }
}

}  // namespace heddle::differential
