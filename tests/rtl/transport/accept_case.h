// SPDX-License-Identifier: Apache-2.0
// Random cases for the stages of heddle_accept and for the rules of
// hw/soft/rules: a packet, the state of its PDC, free resources.
#pragma once

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/base/random.h"
#include "hw/soft/rules/psn.h"

namespace heddle::test {

struct AcceptCase {
  // Port.
  bool ruled = false;

  // Packet.
  contract::PdsType pds_type = contract::PdsType::kRodReq;
  contract::CpType cp_type = {};
  bool slot = true, target = true, syn = false;
  uint8_t named_gen = 0;
  bool retx = false, ar = false, ce = false;
  uint8_t trim = 0;
  uint32_t psn = 0, pds_payload = 0, fa = 0;
  uint16_t psn_offset = 0, clear_offset = 0, spdcid = 0;
  contract::SesOpcode opcode = contract::SesOpcode::kSend;
  uint8_t ses_ver = 0;
  bool dc = false, ie = false, hd = false, som = true, eom = true;
  uint16_t message_id = 0;
  uint32_t job_id = 0;
  uint64_t buffer_offset = 0, match_bits = 0;
  uint32_t message_offset = 0, request_length = 0;
  uint16_t payload_bytes = 0, read_bytes = 0;
  bool contradicts = false, other_gen = false;

  // Tables and resources.
  bool hit = false, room = true, closed = false, grave = true;
  bool look_hit = true;
  contract::ReturnCode look_miss = contract::ReturnCode::kBadIndex;
  uint32_t look_job = 0;
  bool look_event = false, listens = true;
  contract::ReturnCode region_code = contract::ReturnCode::kOk;
  bool region_owner = true, region_counts = false;
  bool counts_read = false, counts_write = false;
  bool return_room = true, report_room = true;
  bool head_spare = true, credit_spare = true;
  bool head_valid = true, head_ctx = true, credit = true, alive = true;

  // Entry.
  enum State : uint8_t { kNone, kOpen, kFailed, kDiscard };
  bool e_open = true, e_rud = false;
  uint8_t e_gen = 0, e_used = 0;
  uint32_t e_fa = 0, e_start = 0, e_expected = 0;
  uint16_t e_spdcid = 0;
  uint64_t e_ahead = 0;
  bool gap_open = false, gap_refused = false, gap_turned = false;
  uint16_t gap_last = 0, gap_lost_psn = 0;
  uint8_t gap_lost = 0;
  uint8_t e_unacked = 0;
  uint32_t e_received = 0;
  bool e_stored = false;
  uint32_t e_stored_psn = 0;
  contract::ReturnCode e_stored_code = contract::ReturnCode::kNull;
  State e_state = kNone;
  uint32_t e_first_psn = 0;
  uint8_t e_piece_log2 = 0;
  bool e_last_known = false;
  uint32_t e_last_psn = 0;
  contract::ReturnCode e_code = contract::ReturnCode::kNull;
  bool e_rma = false, e_read = false, e_credit = false, e_gone = false;
  uint32_t e_length = 0, e_bytes = 0, e_job_id = 0;
  uint16_t e_message_id = 0;
  uint64_t e_match_bits = 0, e_iova = 0;
  bool e_tabled = false;  // The message is of the table; the entry has none.
  bool e_busy = false;    // The packet's place in the table has another one.
  bool e_dc_ahead = false;

  // heddle_rx_reorder.
  bool reorder_room = false, reorder_mine = false;
  uint32_t reorder_next = 0;

  bool request() const {
    return pds_type == contract::PdsType::kRodReq ||
           pds_type == contract::PdsType::kRudReq;
  }
  // The place in the table of a message.
  static uint32_t PlaceOf(uint16_t message_id) { return message_id % 4; }
  bool rma() const {
    return opcode == contract::SesOpcode::kWrite ||
           opcode == contract::SesOpcode::kRead;
  }
};

// Most packets are what an initiator sends next, but for one thing; PSNs lie
// about the ends of the windows, and wrap.
class AcceptCases {
 public:
  explicit AcceptCases(uint64_t seed) : random_(seed) {}

  AcceptCase Next() {
    AcceptCase c;
    Entry(&c);
    Message(&c);
    Packet(&c);
    Part(&c);
    Resources(&c);
    Change(&c);
    c.e_busy = c.e_rud && Chance(0.1) &&
               !(c.e_tabled && AcceptCase::PlaceOf(c.message_id) ==
                                   AcceptCase::PlaceOf(c.e_message_id));
    return c;
  }

 private:
  bool Chance(double p) { return random_.Chance(p); }
  uint32_t Below(uint32_t n) { return random_.Below(n); }
  uint32_t Any() { return static_cast<uint32_t>(random_.Next()); }
  // One of the codes that an entry or a table may have.
  contract::ReturnCode Error() {
    constexpr contract::ReturnCode kCodes[] = {
        contract::ReturnCode::kBadIndex, contract::ReturnCode::kBadPid,
        contract::ReturnCode::kBadJobId, contract::ReturnCode::kBadMkey,
        contract::ReturnCode::kBadAddr,  contract::ReturnCode::kPermViolation};
    return kCodes[Below(6)];
  }

  void Entry(AcceptCase* c) {
    c->ruled = Chance(0.5);
    c->e_rud = Chance(0.5);
    c->e_open = Chance(0.95);
    c->e_gen = static_cast<uint8_t>(Below(2));
    c->e_used = static_cast<uint8_t>(Below(4) | 1u << c->e_gen);
    c->e_fa = Below(4);
    c->e_spdcid = static_cast<uint16_t>(1 + Below(4));
    c->e_expected = Chance(0.3) ? Below(300) - 150 : Any();
    c->e_start = c->e_expected - Below(Chance(0.5) ? 4 : 4000);
    if (c->e_rud && Chance(0.5)) {
      c->e_ahead = random_.Next() & random_.Next() & ~uint64_t{1};
      if (Chance(0.3)) c->e_ahead |= ~uint64_t{0} << (1 + Below(63));
    }
    c->gap_open = Chance(0.4);
    if (c->gap_open) {
      c->gap_refused = Chance(0.5);
      if (!c->e_rud) {
        c->gap_turned = Chance(0.5);
        c->gap_last = static_cast<uint16_t>(Below(soft::rules::kRodWindow));
      }
    }
    if (c->e_rud && !c->gap_open) c->gap_turned = Chance(0.3);
    if (!c->e_rud && Chance(0.3)) {
      c->gap_lost = static_cast<uint8_t>(1 + Below(2));
      c->gap_lost_psn = (Chance(0.5) ? c->e_expected + 1 + Below(4)
                                     : Below(2 * soft::rules::kRodWindow)) &
                        (2 * soft::rules::kRodWindow - 1);
    }
    c->e_unacked = static_cast<uint8_t>(Chance(0.3) ? 15 : Below(16));
    c->e_received = Any();
    c->e_stored = Chance(0.3);
    c->e_stored_psn = c->e_expected - 1 -
                      Below(Chance(0.7)   ? 6
                            : Chance(0.7) ? 80
                                          : 40'000);
    c->e_stored_code = Error();
  }

  void Message(AcceptCase* c) {
    c->e_state = static_cast<AcceptCase::State>(Below(4));
    c->e_rma = Chance(0.5);
    c->e_read = c->e_rma && Chance(0.5);
    c->e_credit = Chance(0.5);
    c->e_gone = Chance(0.05);
    c->e_message_id = static_cast<uint16_t>(1 + Below(3));
    c->e_job_id = Below(3);
    c->e_match_bits = Below(3);
    c->e_iova = Below(3);
    c->e_piece_log2 = static_cast<uint8_t>(Below(3));
    const uint32_t pieces = Below(Chance(0.7) ? 4 : 60);
    c->e_bytes = pieces << (10 + c->e_piece_log2);
    c->e_length = c->e_bytes + 1 + Below(8192);
    c->e_first_psn = c->e_expected - pieces;
    c->e_last_known = c->e_rud && Chance(0.2);
    c->e_last_psn = c->e_expected + Below(16);
    if (Chance(0.7)) c->e_code = Error();
    c->e_tabled = c->e_rud && c->e_state != AcceptCase::kNone && Chance(0.3);
    c->e_dc_ahead = c->e_ahead != 0 && Chance(0.3);
  }

  uint32_t Psn(const AcceptCase& c) {
    switch (Below(10)) {
      case 0:
        return c.e_expected + 1 + Below(63);
      case 1:
        return c.e_expected + 60 + Below(8);
      case 2:
        return c.e_expected + soft::rules::kRodWindow - 4 + Below(8);
      case 3:
        return c.e_expected - 1 - Below(40);
      case 4:
        return c.e_expected - 32'768 + Below(4) - 2;
      case 5:
        return Chance(0.5) ? c.e_expected + 1 + Below(3) : Any();
      default:
        return c.e_expected;
    }
  }

  void Packet(AcceptCase* c) {
    c->fa = Chance(0.97) ? c->e_fa : Below(4);
    c->spdcid = Chance(0.97) ? c->e_spdcid : static_cast<uint16_t>(Below(4));
    c->slot = Chance(0.98);
    c->named_gen = Chance(0.9) ? c->e_gen : static_cast<uint8_t>(Below(2));
    c->syn = Chance(0.2);
    c->hit = c->syn && Chance(0.6);
    c->e_open = c->e_open || c->hit;
    c->psn = Psn(*c);
    c->psn_offset = static_cast<uint16_t>(
        Chance(0.8) ? (c->psn - c->e_start) & 4095 : Below(200));
    if (c->syn && !c->hit) {
      c->psn_offset = static_cast<uint16_t>(Chance(0.6)   ? 0
                                            : Chance(0.5) ? Below(140)
                                                          : Below(4096));
    }
    const bool same = Chance(0.98);
    c->pds_type = c->e_rud == same ? contract::PdsType::kRudReq
                                   : contract::PdsType::kRodReq;
    if (Chance(0.25)) {
      c->pds_type = contract::PdsType::kCp;
      c->cp_type = static_cast<contract::CpType>(Below(10));
      c->syn = Chance(0.02);
    }
    c->retx = Chance(0.4);
    c->ar = Chance(0.3);
    c->ce = Chance(0.1);
    if (c->request() && Chance(0.15)) {
      c->trim = static_cast<uint8_t>(1 + Below(2));
    }
    // What heddle_return_rx judges is none of this block's.
    const bool back = c->trim != 0 ||
                      c->cp_type == contract::CpType::kAckRequest ||
                      c->cp_type == contract::CpType::kProbe ||
                      c->cp_type == contract::CpType::kClearRequest ||
                      c->cp_type == contract::CpType::kCloseRequest;
    c->target = back || Chance(0.98);
    const uint32_t clear = Chance(0.5)   ? c->e_stored_psn + Below(3) - 1
                           : Chance(0.5) ? c->e_expected - Below(3)
                                         : Any();
    c->clear_offset = static_cast<uint16_t>(clear - c->psn);
    c->pds_payload = clear;
  }

  // The next part of the message that is open, or a first one.
  void Part(AcceptCase* c) {
    const bool open = c->e_state != AcceptCase::kNone;
    c->som = open ? Chance(0.15) : Chance(0.9);
    constexpr contract::SesOpcode kOpcodes[] = {
        contract::SesOpcode::kSend,  contract::SesOpcode::kDeferrableSend,
        contract::SesOpcode::kWrite, contract::SesOpcode::kRead,
        contract::SesOpcode::kWrite, contract::SesOpcode::kNoOp,
        contract::SesOpcode::kAtomic};
    c->opcode = kOpcodes[Below(Chance(0.9) ? 5 : 7)];
    c->message_id =
        c->som ? static_cast<uint16_t>(1 + Below(4)) : c->e_message_id;
    c->job_id = c->e_job_id;
    c->match_bits = c->e_match_bits;
    c->buffer_offset = c->e_iova;
    uint32_t part = 1024u << c->e_piece_log2;
    if (c->som) {
      c->request_length = Chance(0.5) ? Below(1025) : Below(20'000);
    } else {
      if (Chance(0.95)) {
        c->opcode = c->e_read  ? contract::SesOpcode::kRead
                    : c->e_rma ? contract::SesOpcode::kWrite
                               : contract::SesOpcode::kSend;
      }
      c->request_length = c->e_length;
      c->message_offset = c->e_rud ? (c->psn - c->e_first_psn)
                                         << (10 + c->e_piece_log2)
                                   : c->e_bytes;
      if (c->message_offset >= c->request_length) {
        c->request_length = c->message_offset + 1 + Below(8192);
        if (Chance(0.7)) c->e_length = c->request_length;
      }
    }
    if (c->opcode == contract::SesOpcode::kNoOp && Chance(0.8)) {
      c->request_length = 0;
      c->som = true;
    }
    const uint32_t left = c->request_length - c->message_offset;
    const uint32_t bytes = left < part ? left : part;
    (c->opcode == contract::SesOpcode::kRead ? c->read_bytes
                                             : c->payload_bytes) =
        static_cast<uint16_t>(bytes);
    c->eom = bytes == left;
    c->ie = Chance(0.08);
    c->dc = Chance(0.15);
    c->hd = Chance(0.3);
  }

  void Resources(AcceptCase* c) {
    c->room = Chance(0.9);
    c->closed = Chance(0.1);
    c->grave = Chance(0.8);
    c->look_hit = Chance(0.92);
    if (!c->look_hit) c->look_miss = Error();
    c->look_job = Chance(0.95) ? c->job_id : Below(3);
    c->look_event = Chance(0.2);
    c->listens = Chance(0.95);
    if (Chance(0.1)) c->region_code = Error();
    c->region_owner = Chance(0.97);
    c->region_counts = Chance(0.2);
    c->counts_read = Chance(0.2);
    c->counts_write = Chance(0.2);
    c->return_room = Chance(0.85);
    c->report_room = Chance(0.85);
    c->head_valid = Chance(0.85);
    c->head_ctx = Chance(0.95);
    c->credit = Chance(0.85);
    c->head_spare = c->head_valid && Chance(0.8);
    c->credit_spare = c->credit && Chance(0.8);
    c->alive = Chance(0.95);
    c->reorder_room = Chance(0.6);
    c->reorder_mine = Chance(0.5);
    c->reorder_next = Chance(0.6)   ? c->psn - Below(3) + 1
                      : Chance(0.8) ? c->e_expected + Below(70)
                                    : Any();
  }

  // One thing that a legal initiator would not say.
  void Change(AcceptCase* c) {
    if (!Chance(0.2)) return;
    switch (Below(12)) {
      case 0:
        c->ses_ver = static_cast<uint8_t>(1 + Below(3));
        break;
      case 1:
        c->other_gen = true;
        break;
      case 2:
        c->contradicts = true;
        break;
      case 3:
        c->eom = !c->eom;
        break;
      case 4:
        c->message_offset += 1 + Below(4096);
        break;
      case 5:
        c->request_length = Below(8192);
        break;
      case 6:
        c->message_id = static_cast<uint16_t>(c->message_id + 1);
        break;
      case 7:
        c->job_id = Below(3);
        break;
      case 8:
        c->match_bits = Below(3);
        break;
      case 9:
        c->buffer_offset = Below(3);
        break;
      case 10:
        c->payload_bytes = static_cast<uint16_t>(Below(2049));
        break;
      default:
        c->som = !c->som;
        break;
    }
    if (c->som) c->message_offset = 0;
  }

  sim::base::Random random_;
};

}  // namespace heddle::test
