// SPDX-License-Identifier: Apache-2.0
// The rules of hw/soft/rules, put together for a target of the RTL's limits.
#pragma once

#include <cstdint>
#include <optional>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/accept.h"
#include "hw/soft/rules/answer.h"
#include "hw/soft/rules/message.h"
#include "tests/rtl/transport/accept_case.h"

namespace heddle::test {

namespace rules = soft::rules;

// The rule that a model gets wrong, to see that this is found.
enum class Mutant : uint8_t {
  kNone,
  kWindowOf63,
  kEarlyOf511,
  kBehindOf32767,
  kAckEach15,
  kNamesBehindStored,
  kClearsUnanswered,
  kClearWhereNothingChanges,
  kTwoStoredAnswers,
  kForgetsClosed,
  kTakesWithoutListening,
  kIgnoresPeer,
  kIgnoresStart,
  kIgnoresMode,
  kIgnoresRoom,
  kIgnoresOurs,
  kTrimsSwapped,
  kIgnoresRetx,
  kIgnoresMark,
  kIgnoresAr,
  kIgnoresSyn,
  kRefusalIsNoGap,
  kErrorIsNotStored,
  kNacksTheOneAhead,
  kTakesOutOfTurn,
  kIgnoresGeneration,
  kIgnoresRegion,
  kIgnoresJob,
  kIgnoresIe,
  kIgnoresDc,
  kIgnoresStale,
  kIgnoresBuffer,
  kIgnoresCredit,
  kIgnoresData,
  kRefusesTheRest,
  kForgetsEnded,
  kBitmapShifted,
  kCountsNoBytes,
  kClosesWithoutTombstone,
  kKeepsAfterRefusal,
  kKeepsUnderControl,
  kKeepsBeyondTheWindow,
  kGapBeginsAtExpected,
  kGoesBackForOne,
  kNacksEachKept,
  kIgnoresPass,
  kLast = kIgnoresPass,
};

// What of a verdict both can say.
struct AcceptResult {
  bool respond = false;
  uint8_t kind = 0;  // ResponseKind, and what belongs to it:
  uint8_t code = 0;
  uint32_t nack_psn = 0;
  bool names_pdc = false;
  bool retx = false, m = false;
  uint32_t cack = 0;
  uint16_t ack_offset = 0;
  uint8_t req = 0;
  bool cc = false;
  uint64_t sack = 0;
  uint32_t rcvd_bytes = 0;
  uint8_t stored_code = 0;  // Of the response of an ACK with req = clear.
  bool write = false, create = false, close = false, bury = false;
  bool take = false, credit = false;
  bool serves = false;  // The data that it asks for are returned.
  bool kept = false;    // By heddle_rx_reorder.
  uint64_t stat = 0;
  // With `write`, the entry behind it.
  bool open = false;
  uint32_t expected = 0;
  uint64_t ahead = 0;
  rules::RodGap::State gap;
  uint8_t unacked = 0;
  uint32_t received = 0;
  bool stored = false;
  uint32_t stored_psn = 0;

  bool operator==(const AcceptResult&) const = default;
};

class AcceptModel {
 public:
  explicit AcceptModel(Mutant mutant = Mutant::kNone) : mutant_(mutant) {
    reach_.above_cack = 0;
    reach_.window -= Is(Mutant::kWindowOf63) ? 1 : 0;
    reach_.early -= Is(Mutant::kEarlyOf511) ? 1 : 0;
    reach_.behind -= Is(Mutant::kBehindOf32767) ? 1 : 0;
    answers_.every = Is(Mutant::kAckEach15) ? 15 : 16;
    answers_.on_clear = !Is(Mutant::kClearsUnanswered);
    answers_.repeats = !Is(Mutant::kNamesBehindStored);
  }

  // `hides`: the packet ends a message whose data has to be visible first.
  AcceptResult Decide(const AcceptCase& whole, bool hides) {
    AcceptCase c = whole;
    Find(&c);
    AcceptResult result;
    const rules::Packet packet = PacketOf(c);
    rules::ReceiveState state = StateOf(c);
    const bool fresh = c.syn && !c.hit;
    rude_ = fresh ? c.pds_type == contract::PdsType::kRudReq : c.e_rud;
    const rules::Judgement known = rules::JudgeName(packet, NamedOf(c));
    if (known.outcome != rules::Outcome::kOffer) {
      Count(known, &result);
      if (known.outcome == rules::Outcome::kStrange) {
        Nack(c, packet, known, packet.psn, false, &result);
      }
      return result;
    }
    const rules::Place place = state.window.Find(packet.psn, !rude_, reach_);
    rules::Judgement judgement =
        rules::JudgePlace(packet, place, state.window, state.gap);
    if (unlooked_ && packet.trim == rules::Trim::kNone &&
        place != rules::Place::kDuplicate) {
      judgement = {
          rules::Outcome::kDrop, {}, contract::Statistic::kRxOutOfOrder};
    }
    const bool kept = Keeps(c, packet, place, state);
    const bool clears =
        !fresh && packet.clears() && state.window.Clears(packet.clear_psn);
    bool told = false;
    if (clears &&
        (judgement.changes() || Is(Mutant::kClearWhereNothingChanges))) {
      told = rules::Clear(packet, answers_, &state);
    }
    rules::Answer answer;
    if (judgement.outcome == rules::Outcome::kOffer) {
      answer = AnswerOf(c, place, fresh);
      judgement = rules::Conclude(packet, place, state.gap,
                                  SaidOf(c, packet, state, place, answer));
    }
    Count(judgement, &result);
    if (kept) {
      Keep(c, packet, &state, &result);
      Entry(state, &result);
      return result;
    }
    const uint8_t code = static_cast<uint8_t>(
        clears ? contract::ReturnCode::kNull : c.e_stored_code);
    switch (judgement.outcome) {
      case rules::Outcome::kDrop:
      case rules::Outcome::kStrange:
      case rules::Outcome::kOffer:
        break;
      case rules::Outcome::kOutside:
        Nack(c, packet, judgement, packet.psn, !fresh, &result);
        result.write = Is(Mutant::kClearWhereNothingChanges) && clears;
        break;
      case rules::Outcome::kRefuse: {
        const uint32_t psn =
            rules::NackPsn(packet, place, judgement, state.window);
        Nack(c, packet, judgement,
             Is(Mutant::kNacksTheOneAhead) ? packet.psn : psn, true, &result);
        if (judgement.code == contract::NackCode::kRodOoo) {
          result.cack = state.window.next();
        }
        if (!Is(Mutant::kRefusalIsNoGap)) {
          rules::Refuse(packet, place, false, &state);
        }
        result.write = true;
        break;
      }
      case rules::Outcome::kQuiet:
        rules::Refuse(packet, place, true, &state);
        result.write = true;
        break;
      case rules::Outcome::kClear:
        result.write = true;
        state.unacked = 0;
        if (told) Ack(c, packet, state, rules::AckFor::kNobody, 0, &result);
        break;
      case rules::Outcome::kDuplicate:
      case rules::Outcome::kQuery:
        result.write = true;
        state.unacked = 0;
        Ack(c, packet, state, rules::AckFor::kKnown, code, &result);
        if (packet.kind == rules::PacketKind::kClose) result.kind = 1;
        break;
      case rules::Outcome::kTell:
        result.respond = true;
        result.kind = packet.kind == rules::PacketKind::kProbe ? 1 : 3;
        break;
      case rules::Outcome::kAccept:
        Accept(c, packet, place, answer, {clears, hides}, code, &state,
               &result);
        break;
      case rules::Outcome::kClose:
        rules::Close(packet, &state);
        result.respond = result.write = result.close = result.bury = true;
        result.kind = 1;
        result.names_pdc = true;
        result.retx = packet.retx;
        result.m = packet.marked;
        result.cack = state.window.cack();
        result.cc = rude_ || c.syn || c.ruled;
        return result;
    }
    result.create = fresh && rules::Opens(judgement.outcome);
    result.stat |= result.create ? Bit(contract::Statistic::kRxPdcs) : 0;
    if (result.write) Entry(state, &result);
    return result;
  }

 private:
  bool Keeps(const AcceptCase& c, const rules::Packet& packet,
             rules::Place place, const rules::ReceiveState& state) const {
    return c.reorder_room && (!c.ruled || Is(Mutant::kKeepsUnderControl)) &&
           place == rules::Place::kEarly &&
           packet.kind == rules::PacketKind::kRequest &&
           packet.trim == rules::Trim::kNone &&
           (packet.psn - state.window.next() < 64 ||
            Is(Mutant::kKeepsBeyondTheWindow)) &&
           (!state.gap.state().refused || Is(Mutant::kKeepsAfterRefusal));
  }

  // One that is missing alone is retransmitted alone; for more, and for each
  // pass of the sender, it goes back.
  void Keep(const AcceptCase& c, const rules::Packet& packet,
            rules::ReceiveState* state, AcceptResult* result) {
    const uint32_t expected = state->window.next();
    const bool after_kept =
        c.reorder_mine && static_cast<int32_t>(c.reorder_next - expected) >= 0;
    const uint32_t from = after_kept && !Is(Mutant::kGapBeginsAtExpected)
                              ? c.reorder_next
                              : expected;
    const auto missing = static_cast<int32_t>(packet.psn - from);
    const bool gap = (missing > 0 || Is(Mutant::kNacksEachKept)) &&
                     (c.reorder_mine || !state->gap.open());
    const bool alone = gap && missing == 1 && !Is(Mutant::kGoesBackForOne);
    const bool pass = state->gap.open() && !Is(Mutant::kIgnoresPass) &&
                      state->gap.Reports(packet.psn - expected, packet.retx);
    if (gap || pass) {
      const rules::Judgement judgement = {
          rules::Outcome::kRefuse,
          alone ? contract::NackCode::kPktNotRcvd : contract::NackCode::kRodOoo,
          {}};
      Nack(c, packet, judgement, alone ? from : packet.psn, true, result);
      if (!alone) result->cack = expected;
    }
    rules::Refuse(packet, rules::Place::kEarly, false, state);
    result->write = true;
    result->kept = true;
  }

  // The message of the packet, if it is one of the table; whether it can be
  // opened there.
  void Find(AcceptCase* c) {
    const bool fresh = c->syn && !c->hit;
    const bool looked = !c->syn;
    const bool same = c->message_id == c->e_message_id;
    const bool used = c->e_tabled || c->e_busy;
    in_use_ =
        !fresh && (c->e_busy ||
                   (c->e_tabled && AcceptCase::PlaceOf(c->message_id) ==
                                       AcceptCase::PlaceOf(c->e_message_id)));
    const bool named = c->e_tabled && same && looked;
    const bool own = !c->e_tabled && c->e_state != AcceptCase::kNone && !fresh;
    unlooked_ = c->request() && !looked && !fresh && used &&
                !(own && same && c->e_state != AcceptCase::kDiscard);
    const bool reports =
        (c->hd && c->opcode == contract::SesOpcode::kWrite) || c->look_event;
    may_open_ = looked && !in_use_ && !(own && same) &&
                (c->rma() || c->head_spare) &&
                ((c->rma() && !reports) || c->credit_spare);
    if (c->e_tabled && !named) {
      c->e_state = AcceptCase::kNone;
      c->e_first_psn = c->e_last_psn = c->e_length = c->e_bytes = 0;
      c->e_job_id = 0;
      c->e_message_id = 0;
      c->e_piece_log2 = 0;
      c->e_match_bits = c->e_iova = 0;
      c->e_last_known = c->e_rma = c->e_read = c->e_credit = c->e_gone = false;
      c->e_code = contract::ReturnCode::kNull;
    }
  }
  bool Is(Mutant mutant) const { return mutant_ == mutant; }
  static uint64_t Bit(contract::Statistic which) {
    return uint64_t{1} << static_cast<unsigned>(which);
  }
  static void Count(const rules::Judgement& judgement, AcceptResult* result) {
    if (judgement.counted) result->stat |= Bit(*judgement.counted);
  }

  rules::Packet PacketOf(const AcceptCase& c) const {
    const auto clear =
        static_cast<uint32_t>(int32_t{static_cast<int16_t>(c.clear_offset)});
    rules::Packet packet = {.kind = rules::PacketKind::kRequest,
                            .trim = static_cast<rules::Trim>(c.trim),
                            .psn = c.psn,
                            .clear_psn = c.psn + clear,
                            .ordered = c.pds_type == contract::PdsType::kRodReq,
                            .syn = c.syn && !Is(Mutant::kIgnoresSyn),
                            .retx = c.retx && !Is(Mutant::kIgnoresRetx),
                            .ar = c.ar && !Is(Mutant::kIgnoresAr),
                            .marked = c.ce && !Is(Mutant::kIgnoresMark)};
    if (Is(Mutant::kTrimsSwapped) && c.trim != 0) {
      packet.trim = static_cast<rules::Trim>(3 - c.trim);
    }
    if (!c.request()) {
      packet.kind = rules::PacketKind::kOther;
      packet.clear_psn = c.pds_payload;
      packet.ordered = !c.e_rud;
      if (!c.syn) {
        switch (c.cp_type) {
          case contract::CpType::kAckRequest:
            packet.kind = rules::PacketKind::kAckRequest;
            break;
          case contract::CpType::kClearCommand:
            packet.kind = rules::PacketKind::kClear;
            break;
          case contract::CpType::kCloseCommand:
            packet.kind = rules::PacketKind::kClose;
            break;
          case contract::CpType::kProbe:
            packet.kind = rules::PacketKind::kProbe;
            break;
          case contract::CpType::kNegotiation:
            packet.kind = rules::PacketKind::kNegotiation;
            break;
          default:
            break;
        }
      }
    }
    return packet;
  }

  static rules::ReceiveState StateOf(const AcceptCase& c) {
    rules::ReceiveState state;
    if (c.syn && !c.hit) {
      state.window.Open(c.psn - c.psn_offset);
      return state;
    }
    state.window = rules::ReceiveWindow(
        {.cack = (c.e_stored ? c.e_stored_psn : c.e_expected) - 1,
         .next = c.e_expected,
         .ahead = c.e_ahead,
         .held = c.e_stored ? uint64_t{1} : 0});
    state.gap =
        rules::RodGap({c.gap_open, c.gap_refused, c.gap_turned, c.gap_last,
                       static_cast<rules::Trim>(c.gap_lost), c.gap_lost_psn});
    state.unacked = c.e_unacked;
    state.received_bytes = c.e_received;
    return state;
  }

  rules::Named NamedOf(const AcceptCase& c) const {
    using Ended = rules::Named::Ended;
    const bool ended = c.syn ? c.closed : (c.e_used >> c.named_gen & 1) != 0;
    const bool rud = c.pds_type == contract::PdsType::kRudReq;
    rules::Named named = {
        .ours = c.syn || (c.slot && c.target),
        .open = c.syn ? c.hit : c.e_open && c.named_gen == c.e_gen,
        .same_peer = c.fa == c.e_fa && c.spdcid == c.e_spdcid,
        .same_start = c.psn - c.psn_offset == c.e_start,
        .same_mode = rud == c.e_rud,
        .listens = c.listens || Is(Mutant::kTakesWithoutListening),
        .room = c.room || Is(Mutant::kIgnoresRoom),
        .ended =
            ended && !Is(Mutant::kForgetsClosed) ? Ended::kNow : Ended::kNo};
    named.ours = named.ours || Is(Mutant::kIgnoresOurs);
    named.same_peer = named.same_peer || Is(Mutant::kIgnoresPeer);
    named.same_start = named.same_start || Is(Mutant::kIgnoresStart);
    named.same_mode = named.same_mode || Is(Mutant::kIgnoresMode);
    return named;
  }

  // Whether a packet fits what came of its message: by where that has got to
  // (ROD), or by its place among packets of one size (RUD).
  bool Legal(const AcceptCase& c, bool alone, bool fresh) const {
    if (c.ie ||
        (!c.som && !fresh && c.e_state == AcceptCase::kFailed && !alone)) {
      return true;
    }
    const uint32_t part =
        c.opcode == contract::SesOpcode::kRead ? c.read_bytes : c.payload_bytes;
    const uint32_t base = c.som   ? 0
                          : rude_ ? c.message_offset
                          : fresh ? 0
                                  : c.e_bytes;
    const uint64_t reach = uint64_t{base} + part;
    if (c.contradicts || reach > c.request_length ||
        c.eom != (reach == c.request_length)) {
      return false;
    }
    if (alone) return true;
    const uint32_t piece = fresh ? 0 : c.e_piece_log2;
    const bool whole =
        part == 1024 || part == 2048 || part == 4096 || part == 8192;
    if (!rude_) return c.som || c.message_offset == base;
    if (c.som) return c.eom || whole;
    const uint32_t first = fresh ? 0 : c.e_first_psn;
    return c.message_offset == (c.psn - first) << (10 + piece) &&
           (c.eom || part == 1024u << piece);
  }

  rules::Answer AnswerOf(const AcceptCase& c, rules::Place place, bool fresh) {
    using contract::SesOpcode;
    const AcceptCase::State state = fresh ? AcceptCase::kNone : c.e_state;
    const bool jumps = place == rules::Place::kAhead;
    const bool write = c.opcode == SesOpcode::kWrite;
    const bool read = c.opcode == SesOpcode::kRead;
    const bool send =
        c.opcode == SesOpcode::kSend || c.opcode == SesOpcode::kDeferrableSend;
    const bool held =
        state == AcceptCase::kOpen || state == AcceptCase::kFailed;
    const bool same_id = c.message_id == (fresh ? 0 : c.e_message_id);
    const bool over =
        state == AcceptCase::kDiscard && (!rude_ || (same_id && !c.som));
    const bool reports = (write && c.hd) || (c.rma() && c.look_event);
    const bool counted =
        (c.counts_write || c.region_counts) && !(c.som && c.eom);
    first_ = c.som;
    const bool told = read && (reports || c.counts_read);
    alone_ = rude_ && (write ? !reports && !counted : read && !told) &&
             !(held && (same_id || !jumps));
    const uint32_t to_last = c.e_last_psn - c.psn;
    beyond_ =
        !held || (c.e_last_known && !fresh && (c.eom || (to_last >> 31) != 0));
    dc_ = c.dc;

    const rules::Part part = {
        .opcode = send ? SesOpcode::kSend : c.opcode,
        .known_version = c.ses_ver == 0,
        .single = c.som && c.eom,
        .empty = c.request_length == 0 && c.payload_bytes == 0,
        .ie = c.ie && !Is(Mutant::kIgnoresIe),
        .dc = c.dc && !Is(Mutant::kIgnoresDc),
        .legal = Legal(c, alone_, fresh)};
    part_ = part;
    const bool asks = read && c.read_bytes != 0;
    rules::Aim aim = {
        .context = c.look_hit,
        .miss = c.look_hit ? contract::ReturnCode::kBadIndex : c.look_miss,
        .same_generation = !c.other_gen || Is(Mutant::kIgnoresGeneration),
        .same_job = c.look_job == c.job_id || Is(Mutant::kIgnoresJob),
        .region = Is(Mutant::kIgnoresRegion) ? contract::ReturnCode::kOk
                  : c.region_owner           ? c.region_code
                                             : contract::ReturnCode::kBadMkey,
        .buffer = c.head_valid || Is(Mutant::kIgnoresBuffer),
        .reports = reports,
        .entry = c.credit || Is(Mutant::kIgnoresCredit),
        .data = !asks || (c.return_room && (!told || c.report_room)) ||
                Is(Mutant::kIgnoresData)};
    if (!part.known_version) return rules::Violation(part);
    if (part.opcode == SesOpcode::kNoOp) return rules::AnswerToNoOp(part);
    if (alone_) return rules::AnswerToAlone(part, aim, over);
    if (c.som && held && !jumps) return rules::Violation(part);
    if (c.som) return rules::AnswerToFirst(part, aim);
    // The context of a message that is open has to be that of its packets.
    aim.context = aim.context && c.head_ctx;
    using Progress = rules::Open::Progress;
    const bool e_rma = !fresh && c.e_rma;
    return rules::AnswerToOther(
        part, aim,
        {.progress = over && !Is(Mutant::kRefusesTheRest) ? Progress::kOver
                     : state == AcceptCase::kOpen         ? Progress::kOpen
                     : state == AcceptCase::kFailed       ? Progress::kFailed
                                                          : Progress::kNone,
         .rma = e_rma,
         .same = same_id && c.job_id == c.e_job_id &&
                 (e_rma && c.e_read ? read
                  : e_rma           ? write
                                    : send) &&
                 (!e_rma || (c.match_bits == c.e_match_bits &&
                             c.buffer_offset == c.e_iova)) &&
                 c.request_length == c.e_length,
         .stale = (c.e_gone || !c.alive) && !Is(Mutant::kIgnoresStale),
         .remembered = !Is(Mutant::kForgetsEnded)});
  }

  rules::Said SaidOf(const AcceptCase& c, const rules::Packet& packet,
                     const rules::ReceiveState& state, rules::Place place,
                     const rules::Answer& answer) const {
    if (packet.kind == rules::PacketKind::kClose) {
      const bool holds = c.e_tabled || c.e_busy;
      return (c.grave && !holds) || Is(Mutant::kClosesWithoutTombstone)
                 ? rules::Said{}
                 : rules::Said{rules::Said::Kind::kRefused,
                               contract::NackCode::kNoResource};
    }
    if (place == rules::Place::kAhead && !Is(Mutant::kTakesOutOfTurn) &&
        !rules::InTurn(part_, answer, alone_, first_,
                       first_ ? may_open_ : !beyond_)) {
      return {rules::Said::Kind::kOutOfTurn, {}};
    }
    const uint32_t places = Is(Mutant::kTwoStoredAnswers) ? 2 : 1;
    return rules::SaidOf(answer,
                         rules::MayStore(state.window, places, packet.psn));
  }

  void Nack(const AcceptCase& c, const rules::Packet& packet,
            const rules::Judgement& judgement, uint32_t psn, bool names_pdc,
            AcceptResult* result) const {
    result->respond = true;
    result->kind = 2;
    result->code = static_cast<uint8_t>(judgement.code);
    result->nack_psn = psn;
    result->names_pdc = names_pdc;
    result->retx = packet.retx;
    result->m = c.ce;
  }

  void Ack(const AcceptCase& c, const rules::Packet& packet,
           const rules::ReceiveState& state, rules::AckFor what, uint8_t code,
           AcceptResult* result) const {
    const rules::AckSays says =
        rules::AckOf(state.window, what, packet.psn, answers_);
    result->respond = true;
    result->names_pdc = true;
    result->retx = packet.retx;
    result->m = packet.marked;
    result->cack = says.cack;
    result->ack_offset = static_cast<uint16_t>(says.psn - says.cack);
    result->req = says.stored ? 1 : 0;
    result->stored_code = says.stored ? code : 0;
    result->cc = rude_ || c.syn || c.ruled;
    if (result->cc) {
      result->sack = rules::SackBitmap(state.window);
      if (Is(Mutant::kBitmapShifted)) result->sack <<= 1;
    }
    if (c.ruled) {
      result->rcvd_bytes =
          rules::ReceivedField(static_cast<uint32_t>(state.received_bytes));
    }
  }

  struct Facts {
    bool clears = false;
    bool hides = false;
  };
  void Accept(const AcceptCase& c, const rules::Packet& packet,
              rules::Place place, const rules::Answer& answer,
              const Facts& facts, uint8_t code, rules::ReceiveState* state,
              AcceptResult* result) const {
    using contract::Statistic;
    using contract::wire::PdsRequest;
    using contract::wire::SesStd;
    const bool error = answer.kind == rules::Answer::Kind::kError;
    const bool begins = answer.kind == rules::Answer::Kind::kBegins;
    const uint32_t nominal = contract::wire::Udp::kBytes + PdsRequest::kBytes +
                             SesStd::kBytes + 4 + 40;
    const rules::Accepted accepted = rules::Take(
        packet, place,
        {.bytes = Is(Mutant::kCountsNoBytes) ? 0 : c.payload_bytes + nominal,
         .answers = error,
         .hold = error && !Is(Mutant::kErrorIsNotStored),
         .cleared = facts.clears,
         .later = facts.hides},
        answers_, state);
    result->write = true;
    result->take = begins && !c.rma();
    result->credit =
        begins &&
        (!c.rma() || (c.hd && c.opcode == contract::SesOpcode::kWrite) ||
         c.look_event);
    result->serves = c.opcode == contract::SesOpcode::kRead &&
                     c.read_bytes != 0 && !c.ie &&
                     (begins || (answer.kind == rules::Answer::Kind::kTaken &&
                                 (alone_ || c.e_state == AcceptCase::kOpen)));
    if (c.ce) result->stat |= Bit(Statistic::kRxEcnMarked);
    if (c.rma()) result->stat |= Bit(Statistic::kRxRma);
    if (c.rma() && error) result->stat |= Bit(Statistic::kRxRmaRefused);
    if (answer.violation) result->stat |= Bit(Statistic::kDropSes);
    if (accepted.due == rules::Due::kTrimmed) {
      Nack(c, packet, {{}, rules::TrimmedCode(accepted.lost), {}},
           packet.psn + 1, true, result);
      result->retx = true;
    } else if (accepted.due == rules::Due::kNow ||
               accepted.due == rules::Due::kAsked) {
      const rules::AckFor what = error ? rules::AckFor::kKnown
                                 : place == rules::Place::kAhead && dc_
                                     ? rules::AckFor::kNobody
                                     : rules::AckFor::kTaken;
      Ack(c, packet, *state, what,
          error ? static_cast<uint8_t>(answer.code) : code, result);
    }
  }

  static void Entry(const rules::ReceiveState& state, AcceptResult* result) {
    const rules::ReceiveWindow::State& window = state.window.state();
    result->open = true;
    result->expected = window.next;
    result->ahead = window.ahead;
    result->gap = state.gap.state();
    result->unacked = static_cast<uint8_t>(state.unacked);
    result->received = static_cast<uint32_t>(state.received_bytes);
    result->stored = window.held != 0;
    result->stored_psn = result->stored ? window.cack + 1 : 0;
  }

  Mutant mutant_;
  rules::Reach reach_;
  rules::AnswerRules answers_;
  // Of the packet in hand.
  rules::Part part_;
  bool rude_ = false, alone_ = false, first_ = false, beyond_ = false;
  bool dc_ = false;
  bool in_use_ = false, may_open_ = false, unlooked_ = false;
};

}  // namespace heddle::test
