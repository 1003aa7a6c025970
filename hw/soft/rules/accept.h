// SPDX-License-Identifier: Apache-2.0
// What becomes of a packet at the receiving end of a PDC: accepted, refused,
// answered, dropped. The same rules as the stages of heddle_accept, which are
// tested against them (tests/rtl/transport/heddle_accept_decide_test.cc).
//
// In this order, each from nothing but its arguments:
//   JudgeName   which PDC a packet of an initiator's names, or why none;
//   JudgePlace  its PSN in the receive window: new, or what else;
//   Conclude    what of a new one, once its client has said whether it takes
//   it; Take, ...   the receive half of the PDC behind it, and what is
//   answered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/rules/receive_window.h"
#include "hw/soft/rules/rod_gap.h"

namespace heddle::soft::rules {

enum class PacketKind : uint8_t {
  kRequest,     // Or return data.
  kAckRequest,  // Control packets, from here on.
  kClear,       // Clear Command.
  kClose,       // Close Command.
  kProbe,
  kNegotiation,
  kOther,  // Not for a target, or of no known type.
};

// What of its PDS header counts here.
struct Packet {
  PacketKind kind = PacketKind::kRequest;
  Trim trim = Trim::kNone;  // Else a request, of which nothing else is sure.
  uint32_t psn = 0;
  uint32_t clear_psn = 0;  // Of requests and Clear Commands.
  bool ordered = false;    // Of requests.
  bool syn = false;
  bool retx = false;
  bool ar = false;
  bool marked = false;  // It met congestion.

  // Only then is `clear_psn` one.
  constexpr bool clears() const {
    return kind == PacketKind::kClear ||
           (kind == PacketKind::kRequest && trim == Trim::kNone);
  }
};

// What the tables of a target say of the PDC that a packet names: with syn by
// source, PDCID and Start_PSN, else by the target's PDCID.
struct Named {
  enum class Ended : uint8_t {
    kNo,
    kNow,     // A target PDC of this incarnation had that name, and ended.
    kBefore,  // One of an earlier incarnation: nothing of it was executed here.
  };
  bool ours = true;        // Without syn: it may be a target PDC of this end's.
  bool open = false;       // It is there.
  bool same_peer = true;   // Without syn: and is the sender's.
  bool same_start = true;  // With syn: and began with this Start_PSN.
  bool same_mode = true;   // Of a request: and is ordered as that.
  bool listens = true;     // The function can receive (ADR 0014).
  bool room = true;        // One can be opened, if it is not there.
  Ended ended = Ended::kNo;
};

enum class Outcome : uint8_t {
  kDrop,       // No answer, no change.
  kStrange,    // NACK that names no PDC; no change.
  kOutside,    // NACK; no change.
  kRefuse,     // NACK, and quiet until the expected packet comes.
  kQuiet,      // Behind a gap that was reported.
  kClear,      // Answers that were stored are with the peer.
  kDuplicate,  // Acknowledged again.
  kQuery,      // The same, because the peer asks.
  kTell,       // An answer that says nothing of packets.
  kOffer,      // To be judged further: by its PSN, by its client.
  kAccept,
  kClose,  // Accepted, and the PDC is over.
};

// With a PDC that is not there: it is opened.
constexpr bool Opens(Outcome outcome) {
  return outcome == Outcome::kAccept || outcome == Outcome::kRefuse;
}

struct Judgement {
  Outcome outcome = Outcome::kOffer;
  contract::NackCode code = {};
  // What counts it; kAccept and what it was offered to count more.
  std::optional<contract::Statistic> counted;

  // The receive half changes: so CLEAR_PSN counts, too.
  constexpr bool changes() const {
    return outcome != Outcome::kDrop && outcome != Outcome::kStrange &&
           outcome != Outcome::kOutside && outcome != Outcome::kTell;
  }
};

// All but the usual case of `JudgeName`.
[[gnu::cold, gnu::noinline]] constexpr Judgement JudgeRareName(
    const Packet& packet, Named named) {
  using contract::NackCode;
  using contract::Statistic;
  if (packet.trim != Trim::kNone) {
    return Judgement{Outcome::kDrop, {}, Statistic::kDropTrimmed};
  }
  if (packet.kind == PacketKind::kOther) {
    return Judgement{Outcome::kDrop, {}, Statistic::kDropPdsType};
  }
  if (!packet.syn && !named.ours) {
    return Judgement{Outcome::kDrop, {}, Statistic::kDropPdcid};
  }
  if (!packet.syn && !named.open) {
    // No initiator waits for the answer to a Clear Command.
    if (packet.kind == PacketKind::kClear) {
      return Judgement{Outcome::kDrop, {}, Statistic::kDropPdcid};
    }
    // INV_DPDCID says that nothing of it was executed by this incarnation.
    return named.ended == Named::Ended::kNow
               ? Judgement{Outcome::kStrange, NackCode::kClosing,
                           Statistic::kRxClosing}
               : Judgement{Outcome::kStrange, NackCode::kInvDpdcid,
                           Statistic::kDropPdcid};
  }
  if (!packet.syn && !named.same_peer) {
    return Judgement{Outcome::kStrange, NackCode::kPdcHdrMismatch,
                     Statistic::kDropPdcid};
  }
  const bool fresh = packet.syn && !named.open;
  if (packet.syn && named.open && !named.same_start) {
    return Judgement{Outcome::kStrange, NackCode::kInvalidSyn,
                     Statistic::kDropPdcid};
  }
  if (packet.kind == PacketKind::kRequest && !fresh && !named.same_mode) {
    return Judgement{Outcome::kStrange, NackCode::kPdcModeMismatch,
                     Statistic::kDropPdsType};
  }
  if (packet.kind == PacketKind::kRequest && !named.listens) {
    return Judgement{Outcome::kDrop, {}, Statistic::kRxRefused};
  }
  if (fresh && named.ended != Named::Ended::kNo) {
    return Judgement{Outcome::kStrange,
                     named.ended == Named::Ended::kNow ? NackCode::kClosing
                                                       : NackCode::kInvalidSyn,
                     Statistic::kRxClosing};
  }
  if (fresh && !named.room) {
    return Judgement{Outcome::kStrange, NackCode::kNoPdcAvail,
                     Statistic::kRxRefused};
  }
  return {};
}

// Outcome::kOffer: its PDC is there, or is opened, and its PSN is to be judged.
[[gnu::always_inline]] constexpr Judgement JudgeName(const Packet& packet,
                                                     Named named) {
  // Nearly all packets: nothing is in the way of a request.
  const bool known = named.ours && named.open && named.same_mode &&
                     named.listens &&
                     (packet.syn ? named.same_start : named.same_peer);
  if (known && packet.kind == PacketKind::kRequest) {
    return {};
  }
  return JudgeRareName(packet, named);
}

constexpr contract::NackCode TrimmedCode(Trim trim) {
  return trim == Trim::kLasthop ? contract::NackCode::kTrimmedLasthop
                                : contract::NackCode::kTrimmed;
}

// The same of `JudgePlace`.
[[gnu::cold, gnu::noinline]] constexpr Judgement JudgeRarePlace(
    const Packet& packet, Place place, const ReceiveWindow& window,
    const RodGap& gap) {
  using contract::NackCode;
  using contract::Statistic;
  const auto reported = [&] {
    return gap.Reports(packet.psn - window.next(), packet.retx);
  };
  if (packet.trim != Trim::kNone && place != Place::kDuplicate) {
    if (place == Place::kOutside) {
      return {Outcome::kDrop, {}, Statistic::kDropTrimmed};
    }
    return {place == Place::kAhead                ? Outcome::kOutside
            : place == Place::kNext || reported() ? Outcome::kRefuse
                                                  : Outcome::kQuiet,
            TrimmedCode(packet.trim), Statistic::kRxTrimmed};
  }
  switch (packet.kind) {
    case PacketKind::kClear:
      return {
          window.Clears(packet.clear_psn) ? Outcome::kClear : Outcome::kDrop,
          {},
          {}};
    case PacketKind::kProbe:
    case PacketKind::kNegotiation:
      return {Outcome::kTell, {}, {}};
    case PacketKind::kAckRequest:
      return {place == Place::kDuplicate ? Outcome::kQuery : Outcome::kOutside,
              NackCode::kPktNotRcvd,
              {}};
    case PacketKind::kRequest:
    case PacketKind::kClose:
    case PacketKind::kOther:
      break;
  }
  switch (place) {
    case Place::kDuplicate:
      return {Outcome::kDuplicate, {}, Statistic::kRxDuplicates};
    case Place::kEarly:
      return {reported() ? Outcome::kRefuse : Outcome::kQuiet,
              NackCode::kRodOoo, Statistic::kRxOutOfOrder};
    case Place::kOutside:
      return {Outcome::kOutside, NackCode::kPsnOorWindow, Statistic::kDropPsn};
    case Place::kNext:
    case Place::kAhead:
      break;
  }
  return {};
}

// `place`: of its PSN in `window`. Both ends of a PDC use it.
[[gnu::always_inline]] constexpr Judgement JudgePlace(
    const Packet& packet, Place place, const ReceiveWindow& window,
    const RodGap& gap) {
  if (place == Place::kNext && packet.kind == PacketKind::kRequest &&
      packet.trim == Trim::kNone) {
    return {};
  }
  return JudgeRarePlace(packet, place, window, gap);
}

// What the client says to a packet that is new.
struct Said {
  enum class Kind : uint8_t {
    kTaken,      // Also in vain, with an answer that says so.
    kRefused,    // NACK with `nack`: something is missing for it.
    kOutOfTurn,  // Unordered, ahead: those before it have to come first.
    kIllegal,    // No packet of the protocol's.
  };
  Kind kind = Kind::kTaken;
  contract::NackCode nack = {};
};

// The same of `Conclude`.
[[gnu::cold, gnu::noinline]] constexpr Judgement ConcludeRarely(
    const Packet& packet, Place place, const RodGap& gap, const Said& said) {
  using contract::NackCode;
  using contract::Statistic;
  const bool close = packet.kind == PacketKind::kClose;
  if (place == Place::kAhead &&
      (close || said.kind == Said::Kind::kOutOfTurn)) {
    // The sender finds the first one by what arrives after it. The second
    // shows that a whole message is missing.
    const bool reported =
        packet.retx ||
        (!gap.open() && (gap.missed() || packet.ar || packet.syn || close));
    return {reported     ? Outcome::kRefuse
            : gap.open() ? Outcome::kDrop
                         : Outcome::kQuiet,
            NackCode::kPktNotRcvd, Statistic::kRxOutOfOrder};
  }
  switch (said.kind) {
    case Said::Kind::kTaken:
      break;
    case Said::Kind::kRefused:
    case Said::Kind::kOutOfTurn:
      return {Outcome::kRefuse, said.nack,
              close ? std::nullopt : std::optional(Statistic::kRxRefused)};
    case Said::Kind::kIllegal:
      return {Outcome::kDrop, {}, Statistic::kDropSes};
  }
  return close ? Judgement{Outcome::kClose, {}, {}}
               : Judgement{Outcome::kAccept, {}, Statistic::kRxRequests};
}

// Of a packet that JudgePlace offers.
[[gnu::always_inline]] constexpr Judgement Conclude(const Packet& packet,
                                                    Place place,
                                                    const RodGap& gap,
                                                    const Said& said) {
  if (said.kind == Said::Kind::kTaken && packet.kind == PacketKind::kRequest) {
    return {Outcome::kAccept, {}, contract::Statistic::kRxRequests};
  }
  return ConcludeRarely(packet, place, gap, said);
}

// -- the receive half behind the packet

// How a receiver answers.
struct AnswerRules {
  uint32_t every = 16;  // An ACK at least for each so many packets.
  // CLEAR_PSN is answered at once by what may be acknowledged now.
  bool on_clear = false;
  // One answer can be stored, and each ACK that reaches up to it repeats it; so
  // nothing is acknowledged by name that lies behind. Else it goes with the
  // ACK that names its packet.
  bool repeats = false;
};

struct ReceiveState {
  ReceiveWindow window;
  RodGap gap;
  uint32_t unacked = 0;         // Packets accepted since the last ACK.
  uint64_t received_bytes = 0;  // Nominal (UET 3.0), of new packets.
};

// The PSN that the NACK of a judgement is about.
constexpr uint32_t NackPsn(const Packet& packet, Place place,
                           const Judgement& judgement,
                           const ReceiveWindow& window) {
  return judgement.outcome == Outcome::kRefuse && place == Place::kAhead &&
                 judgement.code == contract::NackCode::kPktNotRcvd
             ? window.next()
             : packet.psn;
}

// Outcome::kRefuse, kQuiet.
inline void Refuse(const Packet& packet, Place place, bool unreported,
                   ReceiveState* state) {
  if (unreported && place == Place::kAhead) {
    state->gap.Miss();
  } else if (place == Place::kEarly) {
    static_cast<void>(state->gap.Pass(packet.psn - state->window.next(),
                                      packet.retx, packet.psn, packet.trim));
  } else if (packet.trim != Trim::kNone) {
    state->gap.Open();
  } else {
    state->gap.Refuse();
  }
}

// Of a packet that is taken.
struct Taken {
  uint32_t bytes = 0;    // Nominal.
  bool answers = false;  // Its answer says more than that it came, and
  bool hold = false;     // is stored until the peer has it.
  bool cleared = false;  // The packet cleared an earlier one.
  bool later = false;    // It may not be told before its data can be seen.
};

enum class Due : uint8_t {
  kNow,      // The packet has an ACK of its own.
  kAsked,    // One is due, which may say of other packets as well.
  kDelayed,  // Within the ACK delay.
  kHidden,   // When its data can be seen.
  kTrimmed,  // The next one was trimmed: a NACK says so; the ACK follows.
};
struct Accepted {
  Due due = Due::kDelayed;
  Trim lost = Trim::kNone;  // With kTrimmed: how.
};

// Outcome::kAccept.
inline Accepted Take(const Packet& packet, Place place, const Taken& taken,
                     const AnswerRules& rules, ReceiveState* state) {
  const bool gap = state->window.gap();
  state->received_bytes += taken.bytes;
  state->window.Accept(packet.psn, taken.hold);
  Accepted result;
  const Trim lost =
      place == Place::kAhead ? Trim::kNone : state->gap.Accept(packet.psn + 1);
  const bool last = state->unacked + 1 >= rules.every;
  const bool repeats = rules.repeats && state->window.holds();
  if (lost != Trim::kNone && packet.ordered && !taken.answers && !repeats) {
    // What is accepted is acknowledged later then.
    state->gap.Open();
    state->unacked = taken.later ? 0 : state->unacked + (last ? 0 : 1);
    return {Due::kTrimmed, lost};
  }
  if (taken.later) {
    result.due = Due::kHidden;
  } else if (packet.syn || packet.retx || packet.marked || taken.answers ||
             gap || state->window.gap() || (taken.cleared && rules.on_clear)) {
    result.due = Due::kNow;
  } else if (packet.ar || last) {
    result.due = Due::kAsked;
  }
  state->unacked = result.due == Due::kDelayed ? state->unacked + 1 : 0;
  return result;
}

// Outcome::kClear. True: an ACK says at once what may be acknowledged now.
inline bool Clear(const Packet& packet, const AnswerRules& rules,
                  ReceiveState* state) {
  const uint32_t before = state->window.cack();
  state->window.Clear(packet.clear_psn);
  return rules.on_clear && rules::Before(before + 1, state->window.cack());
}

// Outcome::kClose: with it all is done up to the command (UET 2.16).
inline void Close(const Packet& packet, ReceiveState* state) {
  state->window.Open(packet.psn + 1);
}

// Is there a place to store an answer to `psn`, of `places`? The last one is
// for the oldest PSN missing: nothing is cleared before that is answered.
inline bool MayStore(const ReceiveWindow& window, uint32_t places,
                     uint32_t psn) {
  const uint32_t used = window.holds() ? window.held() : 0;
  return used + 1 < places || (used + 1 == places && psn == window.next());
}

}  // namespace heddle::soft::rules
