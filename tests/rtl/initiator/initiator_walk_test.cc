// SPDX-License-Identifier: Apache-2.0
// The initiator half while the queue of its walk is full.
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "Vinitiator_probe.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/clocked_model.h"

namespace heddle {
namespace {

using contract::NackCode;
using contract::Status;

// Time stands still, and every answer is the test's.
class InitiatorWalkTest : public testing::Test {
 protected:
  struct Sent {
    uint32_t pdc = 0;
    uint32_t psn = 0;
  };
  struct Pdc {
    uint32_t peer = 0;
    uint16_t spdcid = 0;
  };

  InitiatorWalkTest() {
    dut_->pdc_seed_i = 0x12345671;
    dut_->pkt_ready_i = 1;
    dut_->done_ready_i = 1;
    for (int i = 0; i < 1100; ++i) {
      Cycle();
    }
  }

  void Cycle() {
    if (reads_return_) {
      dut_->seq_done_i = dut_->seq_issued_o;
    }
    dut_->ack_valid_i = !answers_.empty();
    if (!answers_.empty()) {
      const auto& [sent, code] = answers_.front();
      dut_->ack_nack_i = code != 0;
      dut_->ack_code_i = code;
      dut_->ack_dpdcid_i = pdcs_[sent.pdc].spdcid;
      dut_->ack_spdcid_i = static_cast<uint16_t>(0x4400 + sent.pdc);
      dut_->ack_fa_i = pdcs_[sent.pdc].peer;
      dut_->ack_cack_i = dut_->ack_psn_i = sent.psn;
    }
    dut_.Settle();
    if (dut_->open_o) {
      pdcs_[dut_->open_pdc_o] = {.peer = dut_->open_fa_o,
                                 .spdcid = dut_->open_spdcid_o};
      ++opened_[dut_->open_fa_o];
    }
    if (dut_->pkt_valid_o) {
      sent_.push_back({.pdc = dut_->pkt_pdc_o, .psn = dut_->pkt_psn_o});
    }
    if (dut_->ack_valid_i && dut_->ack_ready_o) {
      answers_.pop_front();
    }
    if (dut_->done_valid_o && dut_->done_ready_i) {
      ++done_[dut_->done_status_o];
    }
    dut_.Tick();
  }
  void Run(int cycles) {
    for (int i = 0; i < cycles; ++i) {
      Cycle();
    }
  }
  void Post(uint32_t peer) {
    dut_->op_valid_i = 1;
    dut_->op_opcode_i = static_cast<uint8_t>(contract::Opcode::kSend);
    dut_->op_peer_i = peer;
    dut_->op_length_i = 8;
    do {
      dut_.Settle();
      const bool posted = dut_->op_ready_o != 0;
      Cycle();
      if (posted) {
        break;
      }
    } while (true);
    dut_->op_valid_i = 0;
  }
  void Answer(Sent sent) { answers_.emplace_back(sent, uint8_t{0}); }
  void Answer(Sent sent, NackCode code) {
    answers_.emplace_back(sent, static_cast<uint8_t>(code));
  }
  // What was sent to `peer`, in order.
  std::vector<Sent> SentTo(uint32_t peer) {
    std::vector<Sent> result;
    for (const Sent& sent : sent_) {
      if (pdcs_[sent.pdc].peer == peer) {
        result.push_back(sent);
      }
    }
    return result;
  }

  // Sends, and lets the walk stand at the first message that ends. Payload of
  // the last one is being read from then on.
  void Fill() {
    for (uint32_t peer = 1; peer <= kPeers; ++peer) {
      for (uint32_t i = 0; i < kEach; ++i) {
        Post(peer);
      }
    }
    Post(kEnds);
    reads_return_ = false;
    Post(kAgain);
    Run(3000);
    ASSERT_EQ(sent_.size(), kPeers * kEach + 2);
    dut_->done_ready_i = 0;
    Answer(SentTo(1)[0]);
    Run(50);
  }
  // Answers all there is, which is more than the queue of the walk holds.
  void Flood() {
    for (uint32_t peer = 1; peer <= kPeers; ++peer) {
      const std::vector<Sent> sent = SentTo(peer);
      for (uint32_t i = peer == 1 ? 1 : 0; i < kEach; ++i) {
        Answer(sent[i]);
      }
    }
    Run(2000);
    dut_->done_ready_i = 1;
    Run(50);
    ASSERT_FALSE(answers_.empty()) << "the queue is not full";
    ASSERT_EQ(opened_[kAgain], 1);
    reads_return_ = true;
    Run(5000);
    EXPECT_TRUE(answers_.empty()) << answers_.size() << " answers are left";
  }

  static constexpr uint32_t kPeers = 9;
  static constexpr uint32_t kEach = contract::kPdcWindow;
  static constexpr uint32_t kEnds = 100;
  static constexpr uint32_t kAgain = 101;

  sim::model::ClockedModel<Vinitiator_probe> dut_;
  bool reads_return_ = true;
  std::map<uint32_t, Pdc> pdcs_;
  std::map<uint32_t, int> opened_;    // By peer.
  std::map<uint8_t, uint32_t> done_;  // By status.
  std::vector<Sent> sent_;
  std::deque<std::pair<Sent, uint8_t>> answers_;
};

// Peers in turn: each acknowledgement is of another PDC than the one before.
TEST_F(InitiatorWalkTest, AcknowledgementsOfManyPeersTakeTwoCyclesEach) {
  for (uint32_t i = 0; i < kEach; ++i) {
    for (uint32_t peer = 1; peer <= kPeers; ++peer) {
      Post(peer);
    }
  }
  Run(3000);
  constexpr uint32_t kAll = kPeers * kEach;
  ASSERT_EQ(sent_.size(), kAll);
  std::map<uint32_t, std::vector<Sent>> sent;
  for (uint32_t peer = 1; peer <= kPeers; ++peer) {
    sent[peer] = SentTo(peer);
  }
  for (uint32_t i = 0; i < kEach; ++i) {
    for (uint32_t peer = 1; peer <= kPeers; ++peer) {
      Answer(sent[peer].at(i));
    }
  }
  uint32_t cycles = 0;
  for (; done_[static_cast<uint8_t>(Status::kOk)] < kAll; ++cycles) {
    ASSERT_LT(cycles, 10 * kAll);
    Cycle();
  }
  EXPECT_LE(cycles, 2 * kAll + 50);
}

// To open a PDC again needs room in the queue, and what makes room there may be
// a PDC that ends.
TEST_F(InitiatorWalkTest, PdcThatOpensAgainDoesNotWaitForOneThatEnds) {
  Fill();
  Answer(SentTo(kEnds)[0], NackCode::kPdcModeMismatch);
  Answer(SentTo(kAgain)[0], NackCode::kInvalidSyn);
  Flood();
  EXPECT_EQ(opened_[kAgain], 2);
  EXPECT_EQ(done_[static_cast<uint8_t>(Status::kOk)], kPeers * kEach);
  EXPECT_EQ(done_[static_cast<uint8_t>(Status::kPeerRejected)], 1U);
}

TEST_F(InitiatorWalkTest, PdcThatEndsIsNotOpenedAgain) {
  Fill();
  Answer(SentTo(kAgain)[0], NackCode::kInvalidSyn);
  Answer(SentTo(kAgain)[0], NackCode::kPdcModeMismatch);
  Flood();
  EXPECT_EQ(opened_[kAgain], 1);
  EXPECT_EQ(done_[static_cast<uint8_t>(Status::kPeerRejected)], 1U);
  Answer(SentTo(kEnds)[0]);
  sent_.clear();
  Post(kAgain);
  Run(3000);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(opened_[kAgain], 2);
  Answer(sent_[0]);
  Run(100);
  EXPECT_EQ(done_[static_cast<uint8_t>(Status::kOk)], kPeers * kEach + 2);
}

// The ACK, as if it were of the PDC that waits for its new PDCID, acknowledges
// what that has: nothing.
TEST_F(InitiatorWalkTest, LateAnswersOfATargetThatRestartedMatchNoPdc) {
  Post(kAgain);
  Run(300);
  ASSERT_EQ(sent_.size(), 1U);
  Answer(sent_[0]);
  Run(50);
  for (int i = 0; i < 3; ++i) {
    Post(kAgain);
  }
  Run(50);
  ASSERT_EQ(sent_.size(), 4U);
  Answer(sent_[2], NackCode::kInvDpdcid);
  for (int i = 0; i < 200; ++i) {
    Answer({.pdc = sent_[0].pdc, .psn = 0xffffffff});
    Answer(sent_[3]);
    Answer(sent_[1], NackCode::kInvDpdcid);
  }
  Run(2000);
  EXPECT_EQ(opened_[kAgain], 2);
  ASSERT_EQ(sent_.size(), 7U);
  for (size_t i = 4; i < 7; ++i) {
    Answer(sent_[i]);
  }
  Run(100);
  EXPECT_EQ(done_[static_cast<uint8_t>(Status::kOk)], 4U);
}

}  // namespace
}  // namespace heddle
