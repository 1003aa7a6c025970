// SPDX-License-Identifier: Apache-2.0
// Operations whose target ends and comes back while they are in flight.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_pair.h"

namespace heddle::soft::engine {

using transport::MessageIndex;

namespace {

using contract::Opcode;
using contract::ReturnCode;
using contract::Status;
using contract::TxDesc;

constexpr auto kBadMkey = static_cast<uint16_t>(ReturnCode::kBadMkey);
constexpr int kStepLimit = 100000;

class EngineRestartTest : public EnginePairTest {
 protected:
  // Steps until `done`.
  template <typename Done>
  void Until(Done&& done) {
    a_.engine().Progress(64);
    for (int i = 0; i < kStepLimit && !done(); ++i) {
      fabric_.Step();
      a_.engine().Progress(64);
    }
    ASSERT_TRUE(done());
  }
  // Packets of the message at index `message` that are acknowledged.
  uint32_t Acked(MessageIndex message) {
    return a_.carrier().posted.back().packets -
           a_.carrier().known.at(message).left;
  }
  void Expect(Status status, uint16_t detail) {
    Run();
    const auto entry = a_.Poll(0);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->status, status);
    EXPECT_EQ(entry->detail, detail);
    EXPECT_FALSE(a_.Poll(0).has_value()) << "once";
    EXPECT_TRUE(a_.engine().idle());
    EXPECT_TRUE(a_.carrier().known.empty());
    EXPECT_EQ(a_.released(), a_.tx_tail());
  }
  MessageIndex last() { return a_.carrier().posted.back().message; }

  uint8_t* buffer_ = b_.Allocate(kBytes);
};
INSTANTIATE_TEST_SUITE_P(Modes, EngineRestartTest, testing::Bool(),
                         [](const auto& mode) {
                           return mode.param ? "Ordered" : "Unordered";
                         });

TEST_P(EngineRestartTest, APartlyAcknowledgedSendGoesAgainWhole) {
  b_.Receive(buffer_, kBytes);
  a_.Post(EngineNode::Send(1, local_, 10000));
  Until([&] { return a_.carrier().unheard.size() == 5; });
  fabric_.hold_requests = true;  // Half of its packets.
  Run();
  EXPECT_EQ(Acked(last()), 5u);
  fabric_.Restart(0);
  fabric_.hold_requests = false;
  // The buffer of the first attempt ended with it.
  EXPECT_EQ(b_.Poll(1)->status, Status::kInitiatorError);
  std::fill_n(buffer_, kBytes, uint8_t{0});
  b_.Receive(buffer_, kBytes);
  Expect(Status::kOk, 0);
  EXPECT_TRUE(std::equal(local_, local_ + 10000, buffer_));
  EXPECT_EQ(b_.Poll(1)->status, Status::kOk);
  EXPECT_FALSE(b_.Poll(1).has_value());
}

TEST_P(EngineRestartTest, AnUntouchedWriteGoesAgain) {
  fabric_.hold_answers = true;
  a_.Post(Op(Opcode::kWrite, 0, 5000));
  Run();
  std::fill_n(remote_, kBytes, uint8_t{0});
  fabric_.Restart(0);
  fabric_.hold_answers = false;
  Expect(Status::kOk, 0);
  EXPECT_TRUE(std::equal(local_, local_ + 5000, remote_));
}

TEST_P(EngineRestartTest, APartlyAcknowledgedWriteEndsWithBadMkey) {
  a_.Post(Op(Opcode::kWrite, 0, 5000));
  Until([&] { return Acked(last()) == 1; });
  fabric_.Restart(0);
  Expect(Status::kRemoteError, kBadMkey);
}

TEST_P(EngineRestartTest, AnUntouchedReadGoesAgain) {
  std::iota(remote_, remote_ + kBytes, uint8_t{7});
  fabric_.hold_answers = fabric_.hold_returns = true;
  a_.Post(Op(Opcode::kRead, 0, 5000));
  Run();
  fabric_.Restart(0);
  fabric_.hold_answers = fabric_.hold_returns = false;
  Expect(Status::kOk, 0);
  EXPECT_TRUE(std::equal(local_, local_ + 5000, remote_));
}

// Data of one packet, and no acknowledgement.
TEST_P(EngineRestartTest, APartlyAnsweredReadEndsWithBadMkey) {
  std::fill_n(remote_, kBytes, uint8_t{0xa5});
  fabric_.hold_answers = true;
  a_.Post(Op(Opcode::kRead, 0, 5000));
  Until([&] { return std::count(local_, local_ + 5000, 0xa5) >= 1024; });
  EXPECT_EQ(Acked(last()), 0u);
  fabric_.Restart(0);
  fabric_.hold_answers = false;
  Expect(Status::kRemoteError, kBadMkey);
}

TEST_P(EngineRestartTest, AReadThatWaitsForDataEndsWithBadMkey) {
  fabric_.hold_returns = true;
  a_.Post(Op(Opcode::kRead, 0, 5000));
  Run();
  EXPECT_EQ(Acked(last()), 5u);
  fabric_.Restart(0);
  fabric_.hold_returns = false;
  Expect(Status::kRemoteError, kBadMkey);
}

TEST_P(EngineRestartTest, AnErrorAnswerStays) {
  fabric_.in_order = true;
  a_.Post(Op(Opcode::kWrite, kBytes, 5000));
  Until([&] { return Acked(last()) == 1; });
  fabric_.Restart(0);
  Run();
  const auto entry = a_.Poll(0);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, Status::kRemoteError);
  EXPECT_NE(entry->detail, kBadMkey);
  EXPECT_NE(entry->detail, 0);
  EXPECT_TRUE(a_.engine().idle());
}

// Its last packet would have told the target that is gone.
TEST_P(EngineRestartTest, AMessageThatCannotBeReadEndsWithThat) {
  b_.Receive(buffer_, kBytes);
  TxDesc send = EngineNode::Send(1, local_, 3000);
  send.local_iova = a_.Unmapped() - 1024;
  a_.Post(send);
  Until([&] { return Acked(last()) == 1; });
  fabric_.hold_answers = true;
  Run();
  fabric_.Restart(0);
  fabric_.hold_answers = false;
  Expect(Status::kLocalAccess, 0);
}

TEST_P(EngineRestartTest, AMessageOfAContextThatIsGoneEndsSilently) {
  b_.Receive(buffer_, kBytes);
  a_.Post(EngineNode::Send(1, local_, 5000));
  Until([&] { return Acked(last()) == 1; });
  DisableTxContext();
  fabric_.Restart(0);
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(a_.carrier().known.empty());
  EXPECT_FALSE(a_.Poll(0).has_value());
}

// A read that failed waits for the rest of its packets, which come no more.
TEST_P(EngineRestartTest, AFailedReadThatSettlesIsFreed) {
  fabric_.in_order = true;
  fabric_.hold_returns = true;
  // Its first packets are in the region.
  a_.Post(Op(Opcode::kRead, kBytes - 2048, 5000));
  Run();
  const auto entry = a_.Poll(0);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, Status::kRemoteError);
  fabric_.Restart(0);
  fabric_.hold_returns = false;
  Run();
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(a_.carrier().known.empty());
  EXPECT_FALSE(a_.Poll(0).has_value());
}

TEST_P(EngineRestartTest, AnOperationOfSeveralDescriptorsEndsOnce) {
  fabric_.hold_returns = true;
  TxDesc read = Op(Opcode::kRead, 0, 5000);
  read.flags = contract::kTxFlagMore;
  a_.Post(read);
  Run();
  a_.Post(Op(Opcode::kWrite, 0, 5000));
  fabric_.hold_requests = true;  // The write waits behind the read, or goes.
  Run();
  fabric_.Restart(0);
  fabric_.hold_requests = fabric_.hold_returns = false;
  Expect(Status::kRemoteError, kBadMkey);
}

// Whatever is in flight when: each operation ends once, and nothing is left.
TEST_P(EngineRestartTest, OperationsEndOnceWheneverThatIs) {
  std::mt19937 random(TestSeed());
  const auto any = [&](uint32_t n) {
    return std::uniform_int_distribution<uint32_t>(0, n - 1)(random);
  };
  std::vector<uint8_t> ended(4000);
  uint64_t posted = 0;
  uint32_t failed = 0;
  const auto drain = [&] {
    while (const auto entry = a_.Poll(0)) {
      EXPECT_EQ(ended.at(entry->op_context)++, 0) << entry->op_context;
      if (entry->status != Status::kOk) {
        ++failed;
        EXPECT_EQ(entry->status, Status::kRemoteError);
        EXPECT_EQ(entry->detail, kBadMkey);
        EXPECT_NE(entry->opcode, Opcode::kSend);
      }
    }
    while (b_.Poll(1).has_value()) {
      b_.Receive(buffer_, kBytes);
    }
  };
  for (int i = 0; i < 32; ++i) {
    b_.Receive(buffer_, kBytes);
  }
  for (int round = 0; round < 200; ++round) {
    for (uint32_t i = any(8); i != 0; --i) {
      if (static_cast<uint16_t>(a_.tx_tail() - a_.released()) + 2u >=
          EngineNode::kRing) {
        break;
      }
      const uint32_t length = any(6000);
      TxDesc descriptor =
          any(2) == 0
              ? EngineNode::Send(1, local_, length)
              : Op(any(2) == 0 ? Opcode::kRead : Opcode::kWrite, 0, length);
      descriptor.op_context = posted++;
      if (any(8) == 0) {
        descriptor.flags |= contract::kTxFlagFence;
      }
      a_.Post(descriptor);
    }
    for (uint32_t i = any(60); i != 0; --i) {
      a_.engine().Progress(64);
      b_.engine().Progress(64);
      fabric_.Step();
    }
    if (any(3) == 0) {
      fabric_.Restart(0);
    }
    drain();
  }
  for (int i = 0; i < 50; ++i) {
    Run();
    drain();
  }
  EXPECT_EQ(std::count(ended.begin(), ended.begin() + posted, 1),
            static_cast<ptrdiff_t>(posted));
  EXPECT_GT(failed, 0u);
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(a_.carrier().known.empty());
  EXPECT_EQ(a_.released(), a_.tx_tail());
}

}  // namespace
}  // namespace heddle::soft::engine
