// SPDX-License-Identifier: Apache-2.0
// Accept or refuse: the stages of heddle_accept against the rules that the soft
// device follows, and against the decision in one step.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "Vaccept_decide_probe.h"
#include "hw/sim/base/random.h"
#include "tests/rtl/transport/accept_case.h"
#include "tests/rtl/transport/accept_model.h"
#include "tests/seed.h"

namespace heddle::test {
namespace {

// HEDDLE_TEST_ROUNDS asks for another number of cases.
uint32_t Rounds(uint32_t usual) {
  const char* text = std::getenv("HEDDLE_TEST_ROUNDS");
  return text == nullptr
             ? usual
             : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

class Block {
 public:
  void Drive(const AcceptCase& c) {
    dut_.ruled_i = c.ruled;
    dut_.slot_i = c.slot;
    dut_.target_i = c.target;
    dut_.named_gen_i = c.named_gen;
    dut_.pds_type_i = static_cast<uint8_t>(c.pds_type);
    dut_.next_hdr_i = static_cast<uint8_t>(
        c.request() ? static_cast<uint8_t>(contract::NextHdr::kRequestStd)
                    : static_cast<uint8_t>(c.cp_type));
    dut_.retx_i = c.retx;
    dut_.ar_i = c.ar;
    dut_.syn_i = c.syn;
    dut_.ce_i = c.ce;
    dut_.trim_i = c.trim;
    dut_.psn_i = c.psn;
    dut_.psn_offset_i = c.psn_offset;
    dut_.clear_offset_i = c.clear_offset;
    dut_.pds_payload_i = c.pds_payload;
    dut_.fa_i = c.fa;
    dut_.spdcid_i = c.spdcid;
    dut_.opcode_i = static_cast<uint8_t>(c.opcode);
    dut_.ses_ver_i = c.ses_ver;
    dut_.dc_i = c.dc;
    dut_.ie_i = c.ie;
    dut_.hd_i = c.hd;
    dut_.eom_i = c.eom;
    dut_.som_i = c.som;
    dut_.message_id_i = c.message_id;
    dut_.job_id_i = c.job_id;
    dut_.buffer_offset_i = c.buffer_offset;
    dut_.match_bits_i = c.match_bits;
    dut_.message_offset_i = c.message_offset;
    dut_.request_length_i = c.request_length;
    dut_.payload_bytes_i = c.payload_bytes;
    dut_.read_bytes_i = c.read_bytes;
    dut_.contradicts_i = c.contradicts;
    dut_.other_gen_i = c.other_gen;
    dut_.hit_i = c.hit;
    dut_.room_i = c.room;
    dut_.closed_i = c.closed;
    dut_.grave_i = c.grave;
    dut_.look_hit_i = c.look_hit;
    dut_.look_miss_i = static_cast<uint8_t>(c.look_miss);
    dut_.look_job_i = c.look_job;
    dut_.look_event_i = c.look_event;
    dut_.listens_i = c.listens;
    dut_.region_code_i = static_cast<uint8_t>(c.region_code);
    dut_.region_owner_i = c.region_owner;
    dut_.region_counts_i = c.region_counts;
    dut_.counts_read_i = c.counts_read;
    dut_.counts_write_i = c.counts_write;
    dut_.return_room_i = c.return_room;
    dut_.report_room_i = c.report_room;
    dut_.head_valid_i = c.head_valid;
    dut_.head_ctx_i = c.head_ctx;
    dut_.credit_i = c.credit;
    dut_.head_spare_i = c.head_spare;
    dut_.credit_spare_i = c.credit_spare;
    dut_.alive_i = c.alive;
    dut_.e_open_i = c.e_open;
    dut_.e_gen_i = c.e_gen;
    dut_.e_used_i = c.e_used;
    dut_.e_fa_i = c.e_fa;
    dut_.e_spdcid_i = c.e_spdcid;
    dut_.e_start_i = c.e_start;
    dut_.e_expected_i = c.e_expected;
    dut_.e_rud_i = c.e_rud;
    dut_.e_ahead_i = c.e_ahead;
    dut_.e_gap_open_i = c.gap_open;
    dut_.e_gap_refused_i = c.gap_refused;
    dut_.e_gap_turned_i = c.gap_turned;
    dut_.e_gap_last_i = c.gap_last;
    dut_.e_gap_lost_i = c.gap_lost;
    dut_.e_gap_lost_psn_i = c.gap_lost_psn;
    dut_.e_unacked_i = c.e_unacked;
    dut_.e_received_i = c.e_received;
    dut_.e_stored_i = c.e_stored;
    dut_.e_stored_psn_i = c.e_stored_psn;
    dut_.e_stored_code_i = static_cast<uint8_t>(c.e_stored_code);
    dut_.e_state_i = c.e_state;
    dut_.e_first_psn_i = c.e_first_psn;
    dut_.e_piece_log2_i = c.e_piece_log2;
    dut_.e_last_known_i = c.e_last_known;
    dut_.e_last_psn_i = c.e_last_psn;
    dut_.e_code_i = static_cast<uint8_t>(c.e_code);
    dut_.e_rma_i = c.e_rma;
    dut_.e_read_i = c.e_read;
    dut_.e_credit_i = c.e_credit;
    dut_.e_gone_i = c.e_gone;
    dut_.e_length_i = c.e_length;
    dut_.e_bytes_i = c.e_bytes;
    dut_.e_message_id_i = c.e_message_id;
    dut_.e_job_id_i = c.e_job_id;
    dut_.e_match_bits_i = c.e_match_bits;
    dut_.e_iova_i = c.e_iova;
    dut_.e_tabled_i = c.e_tabled;
    dut_.e_busy_i = c.e_busy;
    dut_.e_dc_ahead_i = c.e_dc_ahead;
    dut_.reorder_room_i = c.reorder_room;
    dut_.reorder_mine_i = c.reorder_mine;
    dut_.reorder_next_i = c.reorder_next;
    dut_.eval();
  }

  // Fields that no rule names.
  void Disturb(sim::base::Random& random) {
    for (int i = 0; i < 4; ++i) {
      dut_.noise_i[i] = static_cast<uint32_t>(random.Next());
    }
    dut_.forget_i = random.Chance(0.02);
    dut_.eval();
  }
  bool Agrees() const { return dut_.agrees_o; }
  bool Early() const { return dut_.early_o; }

  bool hides() const { return dut_.visible_o; }

  AcceptResult Result() const {
    AcceptResult r;
    // Of a message that completes; the rules say nothing of that.
    const uint64_t beside =
        uint64_t{1} << static_cast<unsigned>(contract::Statistic::kRxMessages);
    r.stat = dut_.stat_o & ~beside;
    r.write = dut_.write_o;
    r.create = dut_.create_o;
    r.close = dut_.close_o;
    r.bury = dut_.bury_o;
    r.take = dut_.take_o;
    r.credit = dut_.credit_o;
    r.serves = dut_.hand_o;
    r.kept = dut_.reorder_o;
    r.respond = dut_.respond_o;
    if (r.respond) Answer(&r);
    if (r.write && !r.close) {
      r.open = dut_.n_open_o;
      r.expected = dut_.n_expected_o;
      r.ahead = dut_.n_ahead_o;
      r.gap = {dut_.n_gap_open_o != 0,
               dut_.n_gap_refused_o != 0,
               dut_.n_gap_turned_o != 0,
               dut_.n_gap_last_o,
               static_cast<rules::Trim>(dut_.n_gap_lost_o),
               dut_.n_gap_lost_psn_o};
      r.unacked = dut_.n_unacked_o;
      r.received = dut_.n_received_o;
      r.stored = dut_.n_stored_o;
      r.stored_psn = r.stored ? dut_.n_stored_psn_o : 0;
    }
    return r;
  }

 private:
  void Answer(AcceptResult* r) const {
    r->kind = dut_.kind_o;
    if (r->kind == 3 || (r->kind == 1 && !dut_.write_o)) return;
    if (r->kind == 2) {
      r->code = dut_.code_o;
      r->nack_psn = dut_.nack_psn_o;
      if (r->code == static_cast<uint8_t>(contract::NackCode::kRodOoo)) {
        r->cack = dut_.cack_o;
      }
    } else {
      r->cack = dut_.cack_o;
    }
    r->names_pdc = dut_.names_pdc_o;
    r->retx = dut_.retx_o;
    r->m = dut_.m_o;
    if (r->kind == 2) return;
    r->ack_offset = dut_.ack_offset_o;
    r->req = dut_.req_o;
    r->stored_code = r->req != 0 ? dut_.return_code_o : 0;
    r->cc = dut_.cc_o;
    r->sack = r->cc ? dut_.sack_o : 0;
    r->rcvd_bytes = dut_.rcvd_bytes_o;
  }

  Vaccept_decide_probe dut_;
};

std::string Print(const AcceptResult& r) {
  std::array<char, 1024> text;
  std::snprintf(
      text.data(), text.size(),
      "respond %d kind %u code %u nack_psn %08x names %d retx %d m %d cack "
      "%08x offset %04x req %u cc %d sack %016llx rcvd %u stored_code %u\n"
      "write %d create %d close %d bury %d take %d credit %d serves %d stat "
      "%016llx\n"
      "open %d expected %08x ahead %016llx gap %d%d%d %u lost %u %u unacked "
      "%u received %u stored %d %08x",
      r.respond, r.kind, r.code, r.nack_psn, r.names_pdc, r.retx, r.m, r.cack,
      r.ack_offset, r.req, r.cc, static_cast<unsigned long long>(r.sack),
      r.rcvd_bytes, r.stored_code, r.write, r.create, r.close, r.bury, r.take,
      r.credit, r.serves, static_cast<unsigned long long>(r.stat), r.open,
      r.expected, static_cast<unsigned long long>(r.ahead), r.gap.open,
      r.gap.refused, r.gap.turned, r.gap.last,
      static_cast<unsigned>(r.gap.lost), r.gap.lost_psn, r.unacked, r.received,
      r.stored, r.stored_psn);
  return text.data();
}

std::string Print(const AcceptCase& c) {
  std::array<char, 1024> text;
  std::snprintf(
      text.data(), text.size(),
      "type %u cp %u slot %d target %d gen %u/%u used %x open %d syn %d hit %d "
      "retx %d ar %d ce %d trim %u psn expected%+d offset %u start "
      "expected%+d fa %u/%u spdcid %u/%u rud %d listens %d room %d closed %d\n"
      "opcode %u ver %u dc %d ie %d hd %d som %d eom %d id %u/%u length %u/%u "
      "payload %u read %u state %u tabled %d busy %d rma %d read %d stored %d "
      "expected%+d",
      static_cast<unsigned>(c.pds_type), static_cast<unsigned>(c.cp_type),
      c.slot, c.target, c.named_gen, c.e_gen, c.e_used, c.e_open, c.syn, c.hit,
      c.retx, c.ar, c.ce, c.trim, static_cast<int32_t>(c.psn - c.e_expected),
      c.psn_offset, static_cast<int32_t>(c.e_start - c.e_expected), c.fa,
      c.e_fa, c.spdcid, c.e_spdcid, c.e_rud, c.listens, c.room, c.closed,
      static_cast<unsigned>(c.opcode), c.ses_ver, c.dc, c.ie, c.hd, c.som,
      c.eom, c.message_id, c.e_message_id, c.request_length, c.e_length,
      c.payload_bytes, c.read_bytes, c.e_state, c.e_tabled, c.e_busy, c.e_rma,
      c.e_read, c.e_stored,
      static_cast<int32_t>(c.e_stored_psn - c.e_expected));
  return text.data();
}

TEST(AcceptDecideTest, DoesWhatTheRulesSay) {
  AcceptCases cases(TestSeed());
  Block block;
  AcceptModel model;
  const uint32_t rounds = Rounds(1'000'000);
  std::array<uint32_t, 4> kinds = {};
  uint32_t accepted = 0;
  uint32_t refused = 0;
  uint32_t kept = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < rounds; ++i) {
    const AcceptCase c = cases.Next();
    block.Drive(c);
    const AcceptResult got = block.Result();
    const AcceptResult want = model.Decide(c, block.hides());
    ASSERT_EQ(got, want) << "case " << i << "\n"
                         << Print(c) << "\nblock\n"
                         << Print(got) << "\nrules\n"
                         << Print(want);
    kinds[got.kind] += got.respond;
    accepted += got.write && got.received != c.e_received;
    refused += got.kind == 2 && got.write;
    kept += got.kept;
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  std::printf("%u cases in %.1f s: %u ACKs, %u NACKs; %u accepted\n", rounds,
              took.count(), kinds[0], kinds[2], accepted);
  EXPECT_GT(kinds[0], rounds / 20);
  EXPECT_GT(kinds[2], rounds / 20);
  EXPECT_GT(accepted, rounds / 10);
  EXPECT_GT(refused, rounds / 50);
  EXPECT_GT(kept, rounds / 200);
}

// The peer of a SEND whose context is gone asks for memory it has no right to.
TEST(AcceptDecideTest, ReadInPlaceOfAWithdrawnSendReturnsNothing) {
  AcceptCase c;
  c.e_state = AcceptCase::kOpen;
  c.e_used = 1;
  c.e_message_id = c.message_id = 1;
  c.e_length = c.request_length = 4096;
  c.e_bytes = c.message_offset = 1024;
  c.opcode = contract::SesOpcode::kRead;
  c.som = c.eom = false;
  c.read_bytes = 1024;
  c.alive = false;
  c.region_code = contract::ReturnCode::kPermViolation;
  Block block;
  block.Drive(c);
  EXPECT_TRUE(block.Result().write);
  EXPECT_FALSE(block.Result().serves);
}

TEST(AcceptDecideTest, StagesDecideAsOneStep) {
  const uint32_t seed = TestSeed();
  AcceptCases cases(seed);
  sim::base::Random random(seed);
  Block block;
  const uint32_t rounds = Rounds(1'000'000);
  for (uint32_t i = 0; i < rounds; ++i) {
    const AcceptCase c = cases.Next();
    block.Drive(c);
    block.Disturb(random);
    ASSERT_TRUE(block.Agrees()) << "case " << i << "\n" << Print(c);
    ASSERT_TRUE(block.Early()) << "case " << i << "\n" << Print(c);
  }
}

TEST(AcceptDecideTest, EachWrongRuleIsFound) {
  const uint32_t seed = TestSeed();
  Block block;
  constexpr uint32_t kMost = 200'000;
  std::vector<AcceptModel> wrong;
  for (int m = 1; m <= static_cast<int>(Mutant::kLast); ++m) {
    wrong.emplace_back(static_cast<Mutant>(m));
  }
  std::vector<uint32_t> found(wrong.size(), 0);
  size_t left = wrong.size();
  AcceptCases cases(seed);
  for (uint32_t i = 1; i <= kMost && left != 0; ++i) {
    const AcceptCase c = cases.Next();
    block.Drive(c);
    const AcceptResult got = block.Result();
    for (size_t m = 0; m < wrong.size(); ++m) {
      if (found[m] == 0 && wrong[m].Decide(c, block.hides()) != got) {
        found[m] = i;
        --left;
      }
    }
  }
  for (size_t m = 0; m < found.size(); ++m) {
    EXPECT_NE(found[m], 0u) << "mutant " << m + 1;
  }
  std::printf("%zu wrong rules, the last found with case %u\n", found.size(),
              *std::max_element(found.begin(), found.end()));
}

}  // namespace
}  // namespace heddle::test
