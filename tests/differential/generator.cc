// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/generator.h"

#include <algorithm>
#include <array>
#include <random>

namespace heddle::differential {
namespace {

constexpr uint32_t kTellingBytes = 16;  // Enough to tell messages apart.
constexpr uint32_t kInjectBytes = 192;
constexpr uint32_t kMtu = 4096;
constexpr uint32_t kManySegmentsUpTo = 16'384;
constexpr uint32_t kTags = 12;

struct Weighted {
  Verb verb;
  uint32_t weight;
};

class Generator {
 public:
  Generator(uint64_t seed, const Profile& profile)
      : profile_(profile), random_(seed) {
    stream_.setup.seed = seed;
    stream_.setup.sides = profile.sides.least;
    if (profile.sides.most > profile.sides.least) {
      stream_.setup.sides +=
          Below(profile.sides.most - profile.sides.least + 1);
    }
    stream_.setup.faults = profile.faults;
    stream_.setup.ordered = !profile.unordered || Below(3) != 0;
    stream_.setup.selective = Below(3) == 0;
    closes_ = profile.closes && Below(3) == 0;
    unplugs_ = profile.unplugs && Below(4) == 0;
    kills_ = profile.kills && Below(3) == 0;
    resets_ = profile.resets && Below(3) == 0;
    leaves_ = profile.leaves && Below(2) == 0;
    peaceful_ = leaves_ && Below(2) == 0;
    if (peaceful_) {
      stream_.setup.faults = {};
      closes_ = unplugs_ = kills_ = resets_ = false;
    }
    rma_ = profile.rma && Below(4) != 0;
    tagged_ = profile.tagged && Below(4) != 0;
    stream_.setup.read_again = profile.read_again;
    stream_.setup.rma_ordered = rma_ && Below(2) == 0;
    stream_.setup.idle_closes = Below(3) == 0;
    stream_.setup.short_rings = Below(3) == 0;
  }

  Stream Make() {
    uint32_t until_sync = 5 + Below(40);
    for (uint32_t i = 0; i < profile_.operations; ++i) {
      stream_.operations.push_back(MakeOperation());
      if (until_sync-- == 0) {
        stream_.operations.push_back({.verb = Verb::kSync});
        until_sync = 5 + Below(60);
        RenewAlone();
      }
    }
    stream_.operations.push_back({.verb = Verb::kSync});
    return stream_;
  }

 private:
  uint32_t Below(uint32_t bound) {
    return static_cast<uint32_t>(random_() % bound);
  }

  Place AnyPlace() {
    return {.side = Below(stream_.setup.sides), .endpoint = Below(kEndpoints)};
  }

  // At times a side begins anew while neither has work: its peers are left with
  // connections that nothing has tried since.
  void RenewAlone() {
    std::vector<Verb> verbs;
    if (kills_) {
      verbs.push_back(Verb::kKill);
    }
    if (resets_) {
      verbs.push_back(Verb::kReset);
    }
    if (leaves_) {
      verbs.push_back(Verb::kReopen);
      verbs.push_back(Verb::kExit);
    }
    if (verbs.empty() || Below(2) == 0) {
      return;
    }
    stream_.operations.push_back(
        {.verb = verbs.at(Below(static_cast<uint32_t>(verbs.size()))),
         .at = AnyPlace()});
    stream_.operations.push_back({.verb = Verb::kSync});
  }

  Verb AnyVerb() {
    if (profile_.read_again > 0) {
      return Below(8) == 0 ? Verb::kWait : Verb::kRead;
    }
    const uint32_t leaves = leaves_ && !peaceful_ ? 1 : 0;
    const std::array<Weighted, 24> table = {{
        {Verb::kReceive, 30},
        {Verb::kSend, 22},
        {Verb::kSendData, 6},
        {Verb::kInject, 8},
        {Verb::kInjectData, 4},
        {Verb::kCancel, 2},
        {Verb::kPeek, tagged_ ? 3U : 0U},
        {Verb::kDiscard, tagged_ ? 2U : 0U},
        {Verb::kClaim, tagged_ ? 4U : 0U},
        {Verb::kWait, 3},
        {Verb::kInvalid, 3},
        {Verb::kClose, closes_ ? 2U : 0U},
        {Verb::kOpen, closes_ ? 3U : 0U},
        {Verb::kUnplug, unplugs_ ? 2U : 0U},
        {Verb::kKill, kills_ ? 1U : 0U},
        {Verb::kReset, resets_ ? 1U : 0U},
        {Verb::kReopen, leaves},
        {Verb::kExit, leaves},
        {Verb::kWrite, rma_ ? 14U : 0U},
        {Verb::kWriteData, rma_ ? 4U : 0U},
        {Verb::kInjectWrite, rma_ && profile_.reads ? 4U : 0U},
        {Verb::kRead, rma_ && profile_.reads ? 12U : 0U},
        {Verb::kRegister, rma_ ? 1U : 0U},
        {Verb::kDeregister, rma_ ? 1U : 0U},
    }};
    uint32_t sum = 0;
    for (const Weighted& row : table) {
      sum += row.weight;
    }
    uint32_t at = Below(sum);
    for (const Weighted& row : table) {
      if (at < row.weight) {
        return row.verb;
      }
      at -= row.weight;
    }
    return Verb::kSend;
  }

  // Around every border there is, and in between.
  uint32_t AnySize(uint32_t most) {
    constexpr std::array<uint32_t, 14> kBorders = {
        0,   1,    8,        16,   64,       191,      192,
        193, 1024, kMtu - 1, kMtu, kMtu + 1, 2 * kMtu, 3 * kMtu + 5};
    uint32_t bytes = 0;
    switch (Below(4)) {
      case 0:
        bytes = kBorders.at(Below(kBorders.size()));
        break;
      case 1:
        bytes = Below(most + 1);
        break;
      default:
        bytes = Below(256);
    }
    return std::min(bytes, most);
  }

  uint32_t MessageSize(uint32_t most) {
    const bool ends = closes_ || kills_ || resets_ || leaves_;
    return std::max(AnySize(most), ends ? kTellingBytes : 0U);
  }

  Fault AnyInvalidCall() {
    constexpr std::array<Fault, 5> kCalls = {
        Fault::kUnknownPeer, Fault::kLongInject, Fault::kManySegments,
        Fault::kUnknownFlag, Fault::kStrayCancel};
    return kCalls.at(Below(kCalls.size()));
  }

  void MakeAccess(Operation* operation) {
    const bool inject = operation->verb == Verb::kInjectWrite;
    // Few bytes, often the same: what overlaps is what is hard.
    operation->bytes = AnySize(
        inject ? kInjectBytes : std::min(kRegionBytes / 2, profile_.max_bytes));
    operation->region = Below(kRegions);
    const uint32_t room = kRegionBytes - operation->bytes;
    operation->offset =
        Below(2) == 0 ? Below(std::min(room, 512U) + 1) : Below(room + 1);
    if (!inject && Below(12) == 0) {
      constexpr std::array<Fault, 3> kRefused = {
          Fault::kBadKey, Fault::kBeyondRegion, Fault::kWithoutRight};
      operation->fault = kRefused.at(Below(kRefused.size()));
      if (operation->fault == Fault::kBeyondRegion) {
        operation->bytes = std::max(operation->bytes, 1U);
        operation->offset = kRegionBytes - operation->bytes + 1;
      }
    }
  }

  // Few tags, so that several receives match a message and several messages a
  // receive.
  void AddTag(Operation* operation) {
    const bool sends = IsSend(operation->verb);
    const bool peeks = IsPeek(operation->verb);
    const bool receives = operation->verb == Verb::kReceive;
    operation->tagged =
        peeks || ((sends || receives) && tagged_ && Below(3) != 0);
    if (!operation->tagged) {
      return;
    }
    operation->tag = Below(kTags);
    if (sends) {
      return;
    }
    constexpr std::array<uint32_t, 3> kIgnored = {0, 3, UINT32_MAX};
    operation->ignore = kIgnored.at(Below(kIgnored.size()));
    operation->directed = Below(4) == 0;
    if (operation->directed) {
      operation->peer = AnyPlace();
    }
    if (operation->verb == Verb::kClaim) {
      operation->bytes = std::max(profile_.max_bytes, kTellingBytes);
      operation->back = Below(8);
      operation->dropped = Below(5) == 0;
    }
  }

  Operation MakeOperation() {
    Operation operation;
    operation.verb = AnyVerb();
    operation.at = AnyPlace();
    const bool sends = IsSend(operation.verb);
    if (sends || IsRma(operation.verb)) {
      operation.peer = AnyPlace();
      // Mostly to another side.
      const uint32_t sides = stream_.setup.sides;
      if (Below(8) != 0) {
        const uint32_t further = sides == 2 ? 0 : Below(sides - 1);
        operation.peer.side = (operation.at.side + 1 + further) % sides;
      }
    }
    if (sends) {
      operation.bytes = MessageSize(
          IsInject(operation.verb) ? kInjectBytes : profile_.max_bytes);
    } else if (IsRma(operation.verb)) {
      MakeAccess(&operation);
    } else if (operation.verb == Verb::kReceive) {
      // A truncated message is told from others by what there is of it.
      operation.bytes = std::max(
          Below(3) == 0 ? AnySize(profile_.max_bytes) : profile_.max_bytes,
          kTellingBytes);
      operation.many = tagged_ && Below(6) == 0;
      if (operation.many) {
        // For a few messages, mostly.
        operation.bytes =
            kMinFree + Below(Below(2) == 0 ? 1000 : kMaxMessageBytes / 2);
      }
    } else if (operation.verb == Verb::kCancel) {
      operation.back = Below(6);
    } else if (operation.verb == Verb::kInvalid) {
      operation.fault = AnyInvalidCall();
    } else if (operation.verb == Verb::kRegister ||
               operation.verb == Verb::kDeregister) {
      operation.region = Below(kRegions);
    }
    AddTag(&operation);
    const bool has_buffer =
        (sends || IsRma(operation.verb) || operation.verb == Verb::kReceive) &&
        !IsInject(operation.verb);
    if (has_buffer) {
      operation.registered = Below(5) == 0;
      operation.silent =
          stream_.setup.selective && operation.verb != Verb::kReceive &&
          operation.verb != Verb::kRead &&
          (profile_.reads || !IsRma(operation.verb)) && Below(2) == 0;
      if (operation.bytes <= kManySegmentsUpTo && !operation.many &&
          Below(4) == 0) {
        operation.segments = 1 + Below(4);
        operation.pieces = IsRma(operation.verb) ? 1 + Below(4) : 1;
      }
    }
    return operation;
  }

  const Profile profile_;
  std::mt19937_64 random_;
  Stream stream_;
  bool closes_ = false;
  bool unplugs_ = false;
  bool kills_ = false;
  bool resets_ = false;
  bool leaves_ = false;
  bool peaceful_ = false;  // Sides leave between two syncs only.
  bool rma_ = false;
  bool tagged_ = false;
};

}  // namespace

Stream Generate(uint64_t seed, const Profile& profile) {
  return Generator(seed, profile).Make();
}

}  // namespace heddle::differential
