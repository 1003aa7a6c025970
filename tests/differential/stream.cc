// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/stream.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <limits>
#include <sstream>

namespace heddle::differential {
namespace {

template <typename Value>
struct Named {
  Value value;
  const char* name;
};

constexpr std::array kVerbs = {
    Named<Verb>{Verb::kReceive, "receive"},
    Named<Verb>{Verb::kSend, "send"},
    Named<Verb>{Verb::kSendData, "senddata"},
    Named<Verb>{Verb::kInject, "inject"},
    Named<Verb>{Verb::kInjectData, "injectdata"},
    Named<Verb>{Verb::kCancel, "cancel"},
    Named<Verb>{Verb::kPeek, "peek"},
    Named<Verb>{Verb::kDiscard, "discard"},
    Named<Verb>{Verb::kClaim, "claim"},
    Named<Verb>{Verb::kWrite, "write"},
    Named<Verb>{Verb::kWriteData, "writedata"},
    Named<Verb>{Verb::kInjectWrite, "injectwrite"},
    Named<Verb>{Verb::kRead, "read"},
    Named<Verb>{Verb::kDeregister, "deregister"},
    Named<Verb>{Verb::kRegister, "register"},
    Named<Verb>{Verb::kClose, "close"},
    Named<Verb>{Verb::kOpen, "open"},
    Named<Verb>{Verb::kWait, "wait"},
    Named<Verb>{Verb::kUnplug, "unplug"},
    Named<Verb>{Verb::kKill, "kill"},
    Named<Verb>{Verb::kReset, "reset"},
    Named<Verb>{Verb::kReopen, "reopen"},
    Named<Verb>{Verb::kExit, "exit"},
    Named<Verb>{Verb::kInvalid, "invalid"},
    Named<Verb>{Verb::kSync, "sync"},
};

constexpr std::array kFaults = {
    Named<Fault>{Fault::kNone, "none"},
    Named<Fault>{Fault::kUnknownPeer, "unknown-peer"},
    Named<Fault>{Fault::kLongInject, "long-inject"},
    Named<Fault>{Fault::kManySegments, "many-segments"},
    Named<Fault>{Fault::kUnknownFlag, "unknown-flag"},
    Named<Fault>{Fault::kStrayCancel, "stray-cancel"},
    Named<Fault>{Fault::kBadKey, "bad-key"},
    Named<Fault>{Fault::kBeyondRegion, "beyond-region"},
    Named<Fault>{Fault::kWithoutRight, "without-right"},
};

template <typename Value, size_t kCount>
const char* NameOf(const std::array<Named<Value>, kCount>& names, Value value) {
  const auto found =
      std::find_if(names.begin(), names.end(),
                   [value](const auto& row) { return row.value == value; });
  return found == names.end() ? "?" : found->name;
}

template <typename Value, size_t kCount>
std::optional<Value> ValueOf(const std::array<Named<Value>, kCount>& names,
                             const std::string& name) {
  const auto found =
      std::find_if(names.begin(), names.end(),
                   [&name](const auto& row) { return name == row.name; });
  return found == names.end() ? std::nullopt : std::optional(found->value);
}

std::string ToText(const Place& place) {
  return std::to_string(place.side) + "." + std::to_string(place.endpoint);
}

bool ParsePlace(std::istream& in, Place* place) {
  char dot = 0;
  return in >> place->side >> dot >> place->endpoint && dot == '.' &&
         place->side < kMaxSides && place->endpoint < kEndpoints;
}

// One `key=value` of an operation.
bool ParseAttribute(const std::string& word, Operation* operation) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) {
    return false;
  }
  const std::string key = word.substr(0, equals);
  std::istringstream value(word.substr(equals + 1));
  if (key == "to") {
    return ParsePlace(value, &operation->peer);
  }
  if (key == "fault") {
    const auto fault = ValueOf(kFaults, value.str());
    operation->fault = fault.value_or(Fault::kNone);
    return fault.has_value();
  }
  const std::array<Named<uint32_t*>, 8> numbers = {{
      {&operation->bytes, "bytes"},
      {&operation->segments, "segments"},
      {&operation->pieces, "pieces"},
      {&operation->back, "back"},
      {&operation->region, "region"},
      {&operation->offset, "offset"},
      {&operation->tag, "tag"},
      {&operation->ignore, "ignore"},
  }};
  for (const auto& [member, name] : numbers) {
    if (key == name) {
      return static_cast<bool>(value >> *member);
    }
  }
  return false;
}

bool IsRunnable(const Operation& operation) {
  const uint64_t end = uint64_t{operation.offset} + operation.bytes;
  return operation.bytes <= kMaxMessageBytes && operation.segments >= 1 &&
         (operation.tagged || !IsPeek(operation.verb)) &&
         (!operation.many ||
          (operation.verb == Verb::kReceive && operation.segments == 1 &&
           operation.bytes >= kMinFree)) &&
         operation.segments <= 4 && operation.pieces >= 1 &&
         operation.pieces <= 4 && operation.region < kRegions &&
         (!IsRma(operation.verb) || operation.fault != Fault::kNone ||
          end <= kRegionBytes);
}

// One line of the setup; false when it is none.
bool ParseSetupLine(const std::string& line, Setup* setup) {
  std::istringstream in(line);
  std::string name;
  in >> name;
  if (name == "sides") {
    return in >> setup->sides && setup->sides >= 2 && setup->sides <= kMaxSides;
  }
  if (name == "seed") {
    return static_cast<bool>(in >> setup->seed);
  }
  if (name == "ordered") {
    return static_cast<bool>(in >> setup->ordered);
  }
  if (name == "selective") {
    return static_cast<bool>(in >> setup->selective);
  }
  if (name == "idle-closes") {
    return static_cast<bool>(in >> setup->idle_closes);
  }
  if (name == "short-rings") {
    return static_cast<bool>(in >> setup->short_rings);
  }
  if (name == "rma-ordered") {
    return static_cast<bool>(in >> setup->rma_ordered);
  }
  if (name == "read-again") {
    return static_cast<bool>(in >> setup->read_again);
  }
  WireFaults& faults = setup->faults;
  return name == "faults" && in >> faults.loss >> faults.reorder >>
                                 faults.duplicate >> faults.corrupt;
}

}  // namespace

bool IsSend(Verb verb) {
  return verb == Verb::kSend || verb == Verb::kSendData ||
         verb == Verb::kInject || verb == Verb::kInjectData;
}

bool IsPeek(Verb verb) {
  return verb == Verb::kPeek || verb == Verb::kDiscard || verb == Verb::kClaim;
}

bool Matches(const Operation& operation, const Operation& send) {
  return operation.tagged == send.tagged && operation.at == send.peer &&
         ((operation.tag ^ send.tag) & ~operation.ignore) == 0 &&
         (!operation.directed || operation.peer == send.at);
}

bool UsesTags(const Stream& stream) {
  return std::any_of(stream.operations.begin(), stream.operations.end(),
                     [](const Operation& o) { return o.tagged; });
}

bool UsesMany(const Stream& stream) {
  return std::any_of(stream.operations.begin(), stream.operations.end(),
                     [](const Operation& o) { return o.many; });
}

bool HasRoom(uint64_t free) {
  return free >= kMinFree;
}

bool IsInject(Verb verb) {
  return verb == Verb::kInject || verb == Verb::kInjectData ||
         verb == Verb::kInjectWrite;
}

bool IsRma(Verb verb) {
  return verb == Verb::kWrite || verb == Verb::kWriteData ||
         verb == Verb::kInjectWrite || verb == Verb::kRead;
}

bool HasData(Verb verb) {
  return verb == Verb::kSendData || verb == Verb::kInjectData ||
         verb == Verb::kWriteData;
}

bool IsRenewal(Verb verb) {
  return IsAbrupt(verb) || verb == Verb::kReopen || verb == Verb::kExit;
}

bool IsAbrupt(Verb verb) {
  return verb == Verb::kKill || verb == Verb::kReset;
}

History::History(const Stream& stream) {
  for (uint32_t number = 0; number < stream.operations.size(); ++number) {
    const Operation& operation = stream.operations[number];
    if (IsRenewal(operation.verb)) {
      renewals_.at(operation.at.side).push_back(number);
    } else if (operation.verb == Verb::kRegister) {
      registrations_.at(operation.at.side)
          .at(operation.region)
          .push_back(number);
    }
  }
}

uint32_t History::CountBefore(const Numbers& numbers, uint32_t number) {
  return static_cast<uint32_t>(
      std::lower_bound(numbers.begin(), numbers.end(), number) -
      numbers.begin());
}

bool Uses(const Stream& stream, bool (*uses)(Verb)) {
  return std::any_of(stream.operations.begin(), stream.operations.end(),
                     [uses](const Operation& o) { return uses(o.verb); });
}

bool RenewsInPeace(const Stream& stream) {
  const auto disturbs = [](Verb verb) {
    return IsAbrupt(verb) || verb == Verb::kUnplug || verb == Verb::kClose;
  };
  if (stream.setup.faults != WireFaults{} || !Uses(stream, IsRenewal) ||
      Uses(stream, disturbs)) {
    return false;
  }
  const auto& operations = stream.operations;
  const auto is_sync = [&](size_t at) {
    return at >= operations.size() || operations[at].verb == Verb::kSync;
  };
  for (size_t at = 0; at < operations.size(); ++at) {
    const bool between = (at == 0 || is_sync(at - 1)) && is_sync(at + 1);
    if (IsRenewal(operations[at].verb) && !between) {
      return false;
    }
  }
  return true;
}

bool IsReported(const Setup& setup, const Operation& operation) {
  return !IsInject(operation.verb) && !(setup.selective && operation.silent);
}

std::string ToText(const Operation& operation) {
  const Operation plain;
  std::ostringstream out;
  out << NameOf(kVerbs, operation.verb);
  if (operation.verb == Verb::kSync) {
    return out.str();
  }
  out << " " << ToText(operation.at);
  if (IsSend(operation.verb) || IsRma(operation.verb) || operation.directed) {
    out << " to=" << ToText(operation.peer);
  }
  const auto number = [&out](const char* name, uint32_t value,
                             uint32_t otherwise) {
    if (value != otherwise) {
      out << " " << name << "=" << value;
    }
  };
  number("bytes", operation.bytes, plain.bytes);
  number("segments", operation.segments, plain.segments);
  number("pieces", operation.pieces, plain.pieces);
  number("back", operation.back, plain.back);
  number("region", operation.region, plain.region);
  number("offset", operation.offset, plain.offset);
  number("tag", operation.tag, plain.tag);
  number("ignore", operation.ignore, plain.ignore);
  if (operation.fault != Fault::kNone) {
    out << " fault=" << NameOf(kFaults, operation.fault);
  }
  out << (operation.registered ? " registered" : "")
      << (operation.silent ? " silent" : "")
      << (operation.tagged ? " tagged" : "")
      << (operation.directed ? " directed" : "")
      << (operation.dropped ? " dropped" : "")
      << (operation.many ? " many" : "");
  return out.str();
}

std::string ToText(const Stream& stream) {
  std::ostringstream out;
  const Setup& setup = stream.setup;
  const WireFaults& faults = setup.faults;
  out << std::setprecision(std::numeric_limits<double>::max_digits10)
      << "sides " << setup.sides << "\nseed " << setup.seed << "\nordered "
      << setup.ordered << "\nselective " << setup.selective << "\nrma-ordered "
      << setup.rma_ordered << "\nidle-closes " << setup.idle_closes
      << "\nshort-rings " << setup.short_rings << "\nread-again "
      << setup.read_again << "\nfaults " << faults.loss << " " << faults.reorder
      << " " << faults.duplicate << " " << faults.corrupt << "\n";
  for (const Operation& operation : stream.operations) {
    out << ToText(operation) << "\n";
  }
  return out.str();
}

std::optional<Operation> ParseOperation(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::string word;
  in >> word;
  const auto verb = ValueOf(kVerbs, word);
  Operation operation;
  operation.verb = verb.value_or(Verb::kSync);
  if (!verb || (*verb != Verb::kSync && !ParsePlace(in, &operation.at))) {
    return std::nullopt;
  }
  const std::array<Named<bool*>, 6> marks = {{
      {&operation.registered, "registered"},
      {&operation.silent, "silent"},
      {&operation.tagged, "tagged"},
      {&operation.directed, "directed"},
      {&operation.dropped, "dropped"},
      {&operation.many, "many"},
  }};
  while (in >> word) {
    const auto* const mark =
        std::find_if(marks.begin(), marks.end(),
                     [&word](const auto& row) { return word == row.name; });
    if (mark != marks.end()) {
      *mark->value = true;
    } else if (!ParseAttribute(word, &operation)) {
      return std::nullopt;
    }
  }
  return IsRunnable(operation) ? std::optional(operation) : std::nullopt;
}

std::optional<Stream> ParseStream(std::string_view text) {
  Stream stream;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#' ||
        ParseSetupLine(line, &stream.setup)) {
      continue;
    }
    const auto operation = ParseOperation(line);
    if (!operation || operation->at.side >= stream.setup.sides ||
        operation->peer.side >= stream.setup.sides) {
      return std::nullopt;
    }
    stream.operations.push_back(*operation);
  }
  return stream;
}

}  // namespace heddle::differential
