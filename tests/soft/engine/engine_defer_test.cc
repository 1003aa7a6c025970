// SPDX-License-Identifier: Apache-2.0
// Messages that their target defers until a receive takes them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_wire.h"
#include "tests/heap_bytes.h"
#include "tests/seed.h"
#include "tests/soft/engine/engine_node.h"
#include "tests/soft/engine/lossy_fabric.h"
#include "tests/soft/engine/match_ring.h"

namespace heddle::soft::engine {
namespace {

using contract::Completion;
using contract::MatchDesc;
using contract::MatchOp;
using contract::NextHdr;
using contract::ReturnCode;
using contract::SesOpcode;
using contract::Statistic;
using contract::Status;
using contract::TxDesc;
using contract::wire::SesStd;
using transport::Verdict;

constexpr uint64_t kAll = ~uint64_t{0};

// Ordered and unordered contexts.
class EngineDeferTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kBytes = 64 * 1024;

  EngineDeferTest() {
    a_.tx.ordered = GetParam() ? 0xff : 0;
    a_.tx.flags = contract::kTxCtxFlagDeferrable;
    a_.Restart();
    for (uint32_t i = 0; i < kBytes; ++i) {
      data_[i] = static_cast<uint8_t>(i * 7 + i / 256);
    }
  }
  // Packets in front of the first one of a message are refused, and come again
  // in random order: the end is quiet for longer than elsewhere.
  void Run() {
    for (int i = 0; i < 32; ++i) {
      Settle(fabric_, {&a_, &b_});
    }
  }
  void Send(uint64_t tag, uint32_t length, uint32_t from = 0) {
    a_.Post(TaggedSend(1, data_ + from, length, tag));
    Run();
  }
  // Until a message restarts, and before its first packet leaves.
  void StepUntilRestart() {
    const size_t before = a_.carrier().posted.size();
    for (int i = 0; i < 10'000 && a_.carrier().posted.size() == before; ++i) {
      b_.engine().Progress(16);
      fabric_.Step();
    }
  }
  uint64_t Deferred() { return b_.engine().statistic(Statistic::kRxDeferred); }
  Completion One() {
    const auto entry = b_.Poll(1);
    EXPECT_TRUE(entry.has_value());
    EXPECT_FALSE(b_.Poll(1).has_value());
    return entry.value_or(Completion{});
  }
  void ExpectSent(Status status) {
    const auto entry = a_.Poll(0);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->status, status);
  }
  // A packet that no engine of ours sent, from node 0 to `node`.
  static Verdict Offer(EngineNode& node, const SesStd& header, size_t payload) {
    std::vector<uint8_t> packet(SesStd::kBytes + payload);
    header.Encode(packet.data());
    transport::Request request;
    request.spdcid = 77;
    request.next_hdr = NextHdr::kRequestStd;
    request.ses = packet;
    return node.engine().OnRequest(request, true);
  }

  FakeFabric fabric_{TestSeed()};
  EngineNode a_{&fabric_};
  EngineNode b_{&fabric_};
  MatchRing ring_{&b_, {.area_bytes = 8192, .copy_limit = 1000}};
  uint8_t* data_ = a_.Allocate(kBytes);
  uint8_t* buffer_ = b_.Allocate(kBytes);
};

INSTANTIATE_TEST_SUITE_P(Ordered, EngineDeferTest, testing::Bool(),
                         [](const auto& param_info) {
                           return param_info.param ? "Rod" : "Rud";
                         });

TEST_P(EngineDeferTest, ALongMessageWaitsAtItsSenderForItsReceive) {
  uint64_t deferred = 0;
  for (const uint32_t length : {1010U, 1024U, 1025U, 5000U, 60000U}) {
    for (const bool claimed : {false, true}) {
      SCOPED_TRACE(testing::Message() << length << " claimed " << claimed);
      std::fill_n(buffer_, kBytes, uint8_t{0});
      TxDesc send = TaggedSend(1, data_ + 3, length, 9);
      send.flags |= contract::kTxFlagHeaderData;
      send.header_data = 0x77;
      a_.Post(send);
      Run();
      EXPECT_EQ(Deferred(), ++deferred);
      EXPECT_FALSE(a_.Poll(0).has_value());
      MatchDesc receive = MatchRing::Receive(buffer_, kBytes, 9);
      if (claimed) {
        ring_.Post(MatchRing::Op(MatchOp::kClaim, 9), 4);
        const Completion rx = One();
        EXPECT_EQ(rx.status, Status::kOk);
        EXPECT_EQ(rx.message_length, length);
        receive.opcode = MatchOp::kReceiveClaimed;
      }
      ring_.Post(receive, 4);
      EXPECT_FALSE(b_.Poll(1).has_value());
      Run();
      const Completion rx = One();
      EXPECT_EQ(rx.status, Status::kOk);
      EXPECT_EQ(rx.op_context, 4u);
      EXPECT_EQ(rx.length, length);
      EXPECT_EQ(rx.match_bits, 9u);
      EXPECT_EQ(rx.header_data, 0x77u);
      EXPECT_EQ(rx.opcode, contract::Opcode::kTaggedSend);
      EXPECT_TRUE(std::equal(buffer_, buffer_ + length, data_ + 3));
      EXPECT_EQ(buffer_[length], 0);
      ExpectSent(Status::kOk);
      EXPECT_TRUE(a_.engine().idle());
      EXPECT_TRUE(b_.engine().idle());
    }
  }
}

TEST_P(EngineDeferTest, ALongerMessageIsCutToItsReceive) {
  Send(1, 20000);
  ring_.Post(MatchRing::Receive(buffer_, 3000, 1), 4);
  Run();
  const Completion rx = One();
  EXPECT_EQ(rx.status, Status::kTruncated);
  EXPECT_EQ(rx.length, 3000u);
  EXPECT_EQ(rx.message_length, 20000u);
  EXPECT_TRUE(std::equal(buffer_, buffer_ + 3000, data_));
  EXPECT_EQ(buffer_[3000], 0);
  ExpectSent(Status::kOk);
}

TEST_P(EngineDeferTest, OthersGoOnMeanwhile) {
  Send(1, 20000);
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 2), 5);
  Send(2, 20000, 50);
  EXPECT_EQ(One().op_context, 5u);
  ExpectSent(Status::kOk);
  EXPECT_TRUE(std::equal(buffer_, buffer_ + 20000, data_ + 50));
  // Short ones are copied while there is room, deferred then, and the shortest
  // wait.
  for (int i = 0; i < 20; ++i) {
    Send(3, 900);
  }
  EXPECT_EQ(Deferred(), 1 + 20 - 8u);
  for (int i = 0; i < 8; ++i) {
    ExpectSent(Status::kOk);
  }
  EXPECT_FALSE(a_.Poll(0).has_value());
  for (int i = 0; i < 20; ++i) {
    ring_.Post(MatchRing::Receive(buffer_, 900, 3), 6);
    Run();
    EXPECT_EQ(One().length, 900u);
    (void)a_.Poll(0);
  }
}

TEST_P(EngineDeferTest, ADiscardedMessageEndsAtItsSenderToo) {
  for (const uint32_t length : {1010U, 20000U}) {
    Send(1, length);
    EXPECT_FALSE(a_.Poll(0).has_value());
    ring_.Post(MatchRing::Op(MatchOp::kDiscard, 1), 1);
    EXPECT_EQ(One().message_length, length);
    Run();
    ExpectSent(Status::kOk);
    EXPECT_FALSE(b_.Poll(1).has_value());
    ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 1);
    EXPECT_EQ(One().status, Status::kNoMessage);
    EXPECT_TRUE(a_.engine().idle());
  }
}

TEST_P(EngineDeferTest, ContextsWithoutTheFlagAndShortSendsAreNotDeferred) {
  Send(1, contract::kDeferAbove);
  ExpectSent(Status::kOk);
  a_.tx.flags = 0;
  a_.Restart();
  Send(1, 4000);  // Copied, as there is room.
  ExpectSent(Status::kOk);
  EXPECT_EQ(Deferred(), 0u);
}

TEST_P(EngineDeferTest, ContextsThatDoNotMatchTakeDeferrableSends) {
  EngineNode d(&fabric_);
  uint8_t* const plain = d.Allocate(6000);
  for (const uint32_t length : {900U, 6000U}) {
    d.Receive(plain, 6000, 7);
    a_.Post(EngineNode::Send(2, data_, length));
    Settle(fabric_, {&a_, &d});
    const auto rx = d.Poll(1);
    ASSERT_TRUE(rx.has_value());
    EXPECT_EQ(rx->length, length);
    EXPECT_TRUE(std::equal(plain, plain + length, data_));
    ExpectSent(Status::kOk);
  }
}

TEST_P(EngineDeferTest, TheEndOfTheSendersContextEndsItsMessages) {
  Send(1, 20000);
  contract::TxCtxCfg off = a_.tx;
  off.enable = 0;
  ASSERT_TRUE(a_.Write(contract::Table::kTxCtx, 0, off));
  EXPECT_EQ(a_.engine().Drain(contract::Table::kTxCtx, 0),
            Engine::DrainState::kDone);
  EXPECT_TRUE(a_.engine().idle());
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 1), 1);
  Run();
  const Completion rx = One();
  EXPECT_EQ(rx.status, Status::kInitiatorError);
  EXPECT_EQ(rx.message_length, 20000u);
  EXPECT_EQ(buffer_[0], 0);
  EXPECT_FALSE(a_.Poll(0).has_value());
  EXPECT_TRUE(a_.carrier().known.empty());
}

TEST_P(EngineDeferTest, TheEndOfTheReceiversContextEndsTheSends) {
  Send(1, 20000);
  Send(2, 20000);
  ring_.Post(MatchRing::Op(MatchOp::kClaim, 2), 1);
  EXPECT_EQ(One().status, Status::kOk);
  ring_.Disable();
  Run();
  ExpectSent(Status::kRemoteError);
  ExpectSent(Status::kRemoteError);
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(b_.engine().idle());
}

// More than it has messages of its own to request them with.
TEST_P(EngineDeferTest, TheEndOfTheReceiversContextEndsAnyNumberOfSends) {
  EngineNode::Options options;
  options.limits.messages = 4;
  EngineNode few(&fabric_, options);
  MatchRing ring(&few, {.area_bytes = 8192, .copy_limit = 1000});
  constexpr uint64_t kSends = 20;
  for (uint64_t i = 0; i < kSends; ++i) {
    a_.Post(TaggedSend(2, data_, 2000, i));
  }
  for (int i = 0; i < 32; ++i) {
    Settle(fabric_, {&a_, &few});
  }
  EXPECT_EQ(few.engine().statistic(Statistic::kRxDeferred), kSends);
  ring.Disable();
  for (int i = 0; i < 32; ++i) {
    Settle(fabric_, {&a_, &few});
  }
  for (uint64_t i = 0; i < kSends; ++i) {
    ExpectSent(Status::kRemoteError);
  }
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(few.engine().idle());
}

TEST_P(EngineDeferTest, ASenderThatDiesBeforeItRestartsFailsTheReceive) {
  for (uint64_t i = 1; i <= 3; ++i) {
    Send(i, 20000);
  }
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 2), 10);
  StepUntilRestart();
  // It may not take what is lost as well.
  MatchDesc next = MatchRing::Receive(buffer_, kBytes, 0, kAll);
  next.op_context = 11;
  ring_.Put(next);
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  ring_.Ring();
  Run();
  const Completion lost = One();
  EXPECT_EQ(lost.op_context, 10u);
  EXPECT_EQ(lost.status, Status::kInitiatorError);
  EXPECT_EQ(lost.message_length, 20000u);
  for (int i = 0; i < 3; ++i) {
    ExpectSent(Status::kPeerUnreachable);
  }
  EXPECT_TRUE(a_.engine().idle());
  EXPECT_TRUE(b_.engine().idle());
  // None of them is left for the other receive.
  Send(4, 100);
  const Completion rx = One();
  EXPECT_EQ(rx.op_context, 11u);
  EXPECT_EQ(rx.match_bits, 4u);
}

TEST_P(EngineDeferTest,
       ASenderWhoseContextEndsBeforeItRestartsFailsTheReceive) {
  for (const bool overtakes : {false, true}) {
    SCOPED_TRACE(overtakes);
    a_.Restart();
    // The request may overtake the answers to what left before.
    fabric_.hold_answers = overtakes;
    Send(1, 20000);
    ring_.Post(MatchRing::Receive(buffer_, kBytes, 1), 1);
    if (overtakes) {
      Run();
    } else {
      StepUntilRestart();
    }
    contract::TxCtxCfg off = a_.tx;
    off.enable = 0;
    ASSERT_TRUE(a_.Write(contract::Table::kTxCtx, 0, off));
    fabric_.hold_answers = false;
    Run();
    EXPECT_EQ(One().status, Status::kInitiatorError);
    EXPECT_EQ(buffer_[0], 0);
    EXPECT_TRUE(a_.engine().idle());
  }
}

TEST_P(EngineDeferTest, ATargetThatRestartsGetsTheMessageAnew) {
  Send(1, 20000);
  Send(2, 20000);
  EXPECT_EQ(Deferred(), 2u);
  fabric_.Restart(0);
  for (const uint64_t tag : {2U, 1U}) {
    ring_.Post(MatchRing::Receive(buffer_, kBytes, tag), tag);
    Run();
    EXPECT_EQ(Deferred(), 3u);  // The receive of one precedes it now.
    EXPECT_EQ(One().status, Status::kOk);
    EXPECT_TRUE(std::equal(buffer_, buffer_ + 20000, data_));
    ExpectSent(Status::kOk);
  }
  EXPECT_TRUE(a_.engine().idle());
}

// A request for a message of the former life must not fetch another one.
TEST_P(EngineDeferTest, TokensDifferInEachLife) {
  std::set<uint64_t> tokens;
  for (int life = 0; life < 4; ++life) {
    Send(1, 20000);
    std::vector<uint8_t> packet(SesStd::kBytes + EngineNode::kMtu);
    ASSERT_NE(a_.engine().BuildRequest(0, 0, packet).bytes, 0u);
    const SesStd header = SesStd::Decode(packet.data());
    EXPECT_EQ(header.opcode, SesOpcode::kDeferrableTsend);
    EXPECT_TRUE(tokens.insert(header.buffer_offset >> 32U).second);
    fabric_.Abandon(0, Status::kPeerUnreachable, 0);
    a_.engine().Reset();
    EXPECT_TRUE(a_.Write(
        contract::Table::kPort, 0,
        contract::PortCfg{.payload_mtu = EngineNode::kMtu, .enable = 1}));
    EXPECT_TRUE(a_.Write(
        contract::Table::kCq, 0,
        contract::CqCfg{.base = EngineNode::Iova(
                            a_.Allocate(sizeof(contract::Completion) << 4U)),
                        .log2 = 4,
                        .enable = 1}));
    a_.Restart();
  }
}

// The target refuses the rest, as it needs the header to keep it.
TEST_P(EngineDeferTest, AMessageWhoseFirstPacketIsLostIsDeferredAllTheSame) {
  LossyFabric fabric(TestSeed(), {});
  EngineNode a(&fabric);
  EngineNode b(&fabric);
  a.tx.ordered = a_.tx.ordered;
  a.tx.flags = contract::kTxCtxFlagDeferrable;
  a.Restart();
  MatchRing ring(&b, {.copy_limit = 1000});
  const auto run = [&] {
    for (int i = 0; i < 3000; ++i) {
      a.engine().Progress(16);
      b.engine().Progress(16);
      fabric.Step();
    }
  };
  uint8_t* const data = a.Allocate(9000);
  a.Post(TaggedSend(1, data, 100, 1));
  run();
  bool lost = false;
  fabric.filter = [&lost](std::span<const uint8_t> bytes) {
    const bool loses = !lost && bytes.size() > 900;
    lost = lost || loses;
    return !loses;
  };
  a.Post(TaggedSend(1, data, 9000, 1));
  run();
  EXPECT_TRUE(lost);
  EXPECT_EQ(b.engine().statistic(Statistic::kRxDeferred), 1u);
}

// DEFERRABLE_RTR is a request.
TEST_P(EngineDeferTest, AFunctionWithoutReceiveContextRestartsItsMessages) {
  LossyFabric fabric(TestSeed(), {});
  EngineNode a(&fabric);
  EngineNode b(&fabric);
  a.engine().StopListening();
  a.tx.ordered = a_.tx.ordered;
  a.tx.flags = contract::kTxCtxFlagDeferrable;
  a.Restart();
  MatchRing ring(&b, {.copy_limit = 1000});
  uint8_t* const data = a.Allocate(5000);
  data[4999] = 7;
  uint8_t* const buffer = b.Allocate(5000);
  const auto run = [&] {
    for (int i = 0; i < 2000; ++i) {
      a.engine().Progress(16);
      b.engine().Progress(16);
      fabric.Step();
    }
  };
  a.Post(TaggedSend(1, data, 5000, 1));
  run();
  EXPECT_EQ(b.engine().statistic(Statistic::kRxDeferred), 1u);
  ring.Post(MatchRing::Receive(buffer, 5000, 1), 1);
  run();
  const auto rx = b.Poll(1);
  ASSERT_TRUE(rx.has_value());
  EXPECT_EQ(rx->status, Status::kOk);
  EXPECT_EQ(buffer[4999], 7);
  // It does not listen to others, and does not refuse them either.
  SesStd header;
  std::vector<uint8_t> ses(SesStd::kBytes);
  for (const SesOpcode opcode :
       {SesOpcode::kDeferrableRtr, SesOpcode::kSend, SesOpcode::kNoOp}) {
    header.opcode = opcode;
    header.Encode(ses.data());
    EXPECT_EQ(a.engine().Listens(ses), opcode == SesOpcode::kDeferrableRtr);
    EXPECT_FALSE(a.engine().Listens(std::span(ses).first(SesStd::kBytes - 1)));
  }
  a.engine().StopListening();
  header.opcode = SesOpcode::kDeferrableRtr;
  header.Encode(ses.data());
  EXPECT_FALSE(a.engine().Listens(ses));
}

TEST_P(EngineDeferTest, ASenderThatDiesFailsClaimsAndLeavesNoMessage) {
  Send(1, 20000);
  Send(2, 20000);
  ring_.Post(MatchRing::Op(MatchOp::kClaim, 2), 2);
  EXPECT_EQ(One().status, Status::kOk);
  fabric_.Abandon(0, Status::kPeerUnreachable, 0);
  ExpectSent(Status::kPeerUnreachable);
  ExpectSent(Status::kPeerUnreachable);
  EXPECT_TRUE(a_.engine().idle());
  ring_.Post(MatchRing::Op(MatchOp::kPeek, 0, kAll), 1);
  EXPECT_EQ(One().status, Status::kNoMessage);
  MatchDesc receive = MatchRing::Receive(buffer_, kBytes, 0);
  receive.opcode = MatchOp::kReceiveClaimed;
  ring_.Post(receive, 2);
  const Completion rx = One();
  EXPECT_EQ(rx.status, Status::kInitiatorError);
  EXPECT_EQ(rx.message_length, 20000u);
  EXPECT_TRUE(b_.engine().idle());
  ring_.Post(receive, 2);
  EXPECT_EQ(One().status, Status::kNoMessage) << "it was claimed once";
}

TEST_P(EngineDeferTest, AnUnreachableSenderFailsTheReceive) {
  Send(1, 20000);
  fabric_.hold_requests = true;
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 1), 1);
  Run();
  fabric_.Abandon(1, Status::kPeerUnreachable, 0);
  fabric_.hold_requests = false;
  EXPECT_EQ(One().status, Status::kInitiatorError);
  EXPECT_TRUE(b_.engine().idle());
}

TEST_P(EngineDeferTest, ForgedTokensHaveNoEffect) {
  Send(1, 20000);
  SesStd header;
  header.opcode = SesOpcode::kDeferrableRtr;
  header.som = header.eom = 1;
  header.message_id = 9;
  header.job_id = EngineNode::kJob;
  header.pid_on_fep = EngineNode::kPid;
  header.resource_index = 1;
  for (const uint64_t tokens :
       {uint64_t{0}, uint64_t{1}, kAll, uint64_t{0x10001} << 32U,
        uint64_t{0x00010001}, uint64_t{77} << 32U | 78}) {
    SCOPED_TRACE(tokens);
    header.match_bits = tokens;
    // Node 0 stands for a stranger at itself: nothing it deferred is there.
    const Verdict verdict = Offer(b_, header, 0);
    EXPECT_EQ(verdict.response.return_code, ReturnCode::kOpViolation);
  }
  header.match_bits = uint64_t{0x10001} << 32U | 5;
  EXPECT_EQ(Offer(a_, header, 0).response.return_code,
            ReturnCode::kOpViolation);  // From another source.
  // A restart under a token that the target never gave.
  header.opcode = SesOpcode::kDeferrableTsend;
  header.match_bits = 1;
  header.request_length = 1000;
  header.initiator = uint32_t{EngineNode::kPid} << 12U;
  for (const uint32_t token : {1U, 0x10001U, 0x20001U, 0xffffffffU}) {
    SCOPED_TRACE(token);
    header.buffer_offset = uint64_t{1} << 32U | token;
    EXPECT_EQ(Offer(b_, header, 1000).response.return_code,
              ReturnCode::kOpViolation);
  }
  EXPECT_FALSE(b_.Poll(1).has_value());
  // One of another life of its entry, while the message is expected.
  fabric_.hold_requests = true;
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 1), 1);
  header.request_length = 20000;
  header.eom = 0;
  for (const uint32_t token : {1U, 0x20001U, 0x10002U}) {
    SCOPED_TRACE(token);
    header.buffer_offset = uint64_t{1} << 32U | token;
    EXPECT_EQ(Offer(b_, header, EngineNode::kMtu).response.return_code,
              ReturnCode::kOpViolation);
  }
  EXPECT_EQ(buffer_[0], 0);
  fabric_.hold_requests = false;
  Run();
  EXPECT_EQ(One().status, Status::kOk);
  ExpectSent(Status::kOk);
}

TEST_P(EngineDeferTest, TokensInTheOtherOrderAreTaken) {
  // The sender alone; the test stands for its target.
  Send(1, 20000);
  EXPECT_EQ(Deferred(), 1u);
  SesStd header;
  header.opcode = SesOpcode::kDeferrableRtr;
  header.som = header.eom = 1;
  header.message_id = 9;
  transport::Request request;
  request.source = {1, 0, false};
  request.spdcid = 77;
  request.next_hdr = NextHdr::kRequestStd;
  std::vector<uint8_t> packet(SesStd::kBytes);
  // Entry 0 in its first life, and the token of the target.
  header.match_bits = uint64_t{0x10001} << 32U | 0x10001;
  header.Encode(packet.data());
  request.ses = packet;
  const size_t posted = a_.carrier().posted.size();
  const Verdict verdict = a_.engine().OnRequest(request, true);
  EXPECT_FALSE(verdict.respond);
  // Once only.
  EXPECT_TRUE(a_.engine().OnRequest(request, true).respond);
  a_.engine().Progress(1);
  EXPECT_EQ(a_.carrier().posted.size(), posted + 1);
}

// Rendezvous is not offered, whatever its extension header is.
TEST_P(EngineDeferTest, RendezvousIsRefusedAndHasNoEffect) {
  ring_.Post(MatchRing::Receive(buffer_, kBytes, 0, kAll), 1);
  SesStd header;
  header.som = header.eom = 1;
  header.message_id = 9;
  header.job_id = EngineNode::kJob;
  header.pid_on_fep = EngineNode::kPid;
  header.resource_index = 1;
  header.buffer_offset = uint64_t{0x10001} << 32U | 0x10001;
  for (const SesOpcode opcode :
       {SesOpcode::kRendezvousSend, SesOpcode::kRendezvousTsend}) {
    header.opcode = opcode;
    for (const uint32_t length : {0U, 1000U, 1000000U}) {
      SCOPED_TRACE(length);
      header.request_length = length;
      const Verdict verdict = Offer(
          b_, header,
          contract::wire::SesRendezvous::kBytes + std::min(length, 1000U));
      EXPECT_EQ(verdict.kind, Verdict::Kind::kAccepted);
      EXPECT_EQ(verdict.response.return_code, ReturnCode::kUnsupportedOp);
    }
  }
  EXPECT_FALSE(b_.Poll(1).has_value());
  EXPECT_EQ(Deferred(), 0u);
  Send(3, 20000);
  EXPECT_EQ(One().length, 20000u);
  ExpectSent(Status::kOk);
  EXPECT_TRUE(std::equal(buffer_, buffer_ + 20000, data_));
}

// With room for 64 headers, 10,000 messages of two senders without receives do
// not stop a third, and take no memory but that of the 64.
TEST_P(EngineDeferTest, ManyUnmatchedMessagesStopNoOtherSender) {
  constexpr uint32_t kHeaders = 64;
  constexpr uint32_t kEach = 5000;
  constexpr size_t kRoom = size_t{2} << 20U;
  MatchRing ring(&b_, {.area_bytes = 16384, .unexpected = kHeaders});
  // Longest rings: the senders post as much as they may.
  EngineNode::Options options;
  options.ordered = a_.tx.ordered;
  options.ring_log2 = contract::kRingLog2Max;
  options.cq_log2 = contract::kRingLog2Max;
  std::vector<std::unique_ptr<EngineNode>> senders;
  for (int i = 0; i < 3; ++i) {
    senders.push_back(std::make_unique<EngineNode>(&fabric_, options));
    senders.back()->tx.flags = contract::kTxCtxFlagDeferrable;
    senders.back()->Restart();
  }
  uint32_t posted[2] = {};
  uint32_t completed = 0;
  const auto post = [&](uint32_t i) {
    constexpr uint16_t kSlots = (1U << contract::kRingLog2Max) - 1;
    EngineNode& sender = *senders[i];
    for (; posted[i] != kEach &&
           static_cast<uint16_t>(sender.tx_tail() - sender.released()) < kSlots;
         ++posted[i]) {
      sender.Put(
          TaggedSend(1, sender.av, posted[i] % 2 == 0 ? 100 : 400, 10 + i));
    }
    sender.Ring();
  };
  const auto step = [&] {
    for (const auto& sender : senders) {
      sender->engine().Progress(8);
    }
    b_.engine().Progress(8);
    for (int i = 0; i < 20; ++i) {
      fabric_.Step();
    }
    for (uint32_t i = 0; i < 2; ++i) {
      while (const auto entry = senders[i]->Poll(0)) {
        EXPECT_EQ(entry->status, Status::kOk);
        ++completed;
      }
      post(i);
    }
  };
  const size_t before = HeapBytes();
  for (int i = 0; i < 200; ++i) {
    step();
  }
  // It is full by now; the third sender continues.
  EXPECT_EQ(b_.engine().statistic(Statistic::kRxUnexpected), kHeaders);
  const size_t full = HeapBytes();
  constexpr uint64_t kExchanges = 50;
  uint8_t* const third = senders[2]->Allocate(100);
  for (uint64_t i = 0; i < kExchanges; ++i) {
    ring.Post(MatchRing::Receive(buffer_, 200, 1), i);
    senders[2]->Post(TaggedSend(1, third, 100, 1));
    for (int turn = 0; turn < 2000 && !senders[2]->Poll(0); ++turn) {
      step();
    }
    const auto entry = b_.Poll(1);
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->op_context, i);
  }
  EXPECT_LE(completed, kHeaders);
  const size_t after = HeapBytes();
  std::printf(
      "%u unmatched sent, %u exchanged: heap of all %zu bytes before, %zu when "
      "%u headers are full, %zu after\n",
      posted[0] + posted[1], static_cast<unsigned>(kExchanges), before, full,
      kHeaders, after);
  EXPECT_LE(full, before + kRoom);
  EXPECT_LE(after, full + kRoom / 16);
  // Nothing is lost.
  uint32_t asked = 0;
  uint32_t received = 0;
  for (int turn = 0; turn < 400'000 && received != 2 * kEach; ++turn) {
    while (asked < 2 * kEach && asked - received < 32) {
      ring.Post(MatchRing::Receive(buffer_, 400, 10 + asked % 2), 1);
      ++asked;
    }
    step();
    while (const auto entry = b_.Poll(1)) {
      ASSERT_EQ(entry->status, Status::kOk);
      ++received;
    }
  }
  for (int turn = 0; turn < 2000; ++turn) {
    step();
  }
  EXPECT_EQ(received, 2 * kEach);
  EXPECT_EQ(completed, 2 * kEach);
  std::printf("heap at the end %zu bytes\n", HeapBytes());
}

// Each message has a tag of its own, and its receive comes before or after it.
TEST_P(EngineDeferTest, EachMessageArrivesOnceOnABadWire) {
  const uint32_t seed = TestSeed();
  std::mt19937 random(seed);
  LossyFabric fabric(seed,
                     {.loss = 0.02, .duplication = 0.02, .reordering = 0.1});
  EngineNode a(&fabric);
  EngineNode b(&fabric);
  a.tx.ordered = GetParam() ? 0xff : 0;
  a.tx.flags = contract::kTxCtxFlagDeferrable;
  a.Restart();
  MatchRing ring(&b, {.area_bytes = 8192,
                      .unexpected = 32,
                      .receives = 32,
                      .copy_limit = 1000});
  constexpr uint32_t kMessages = 300;
  constexpr uint32_t kMost = 8000;
  uint8_t* const data = a.Allocate(2 * kMost);
  std::generate(data, data + 2 * kMost,
                [&] { return static_cast<uint8_t>(random()); });
  uint8_t* const buffers = b.Allocate(64 * kMost);
  std::vector<uint32_t> lengths(kMessages);
  std::set<uint64_t> done;
  uint32_t sent = 0;
  uint32_t posted = 0;
  uint32_t completed = 0;
  for (int turn = 0;
       turn < 3'000'000 && (done.size() != kMessages || completed != kMessages);
       ++turn) {
    if (sent < kMessages && sent < posted + 20 && random() % 8 == 0 &&
        static_cast<uint16_t>(a.tx_tail() - a.released()) < 60) {
      lengths[sent] = static_cast<uint32_t>(random() % kMost);
      a.Post(TaggedSend(1, data + sent, lengths[sent], sent));
      ++sent;
    }
    if (posted < kMessages && posted < done.size() + 20 && random() % 8 == 0) {
      ring.Post(
          MatchRing::Receive(buffers + posted % 64 * kMost, kMost, posted),
          posted);
      ++posted;
    }
    a.engine().Progress(4);
    b.engine().Progress(4);
    fabric.Step();
    while (const auto entry = a.Poll(0)) {
      ASSERT_EQ(entry->status, Status::kOk);
      ++completed;
    }
    while (const auto entry = b.Poll(1)) {
      ASSERT_EQ(entry->status, Status::kOk);
      const auto tag = static_cast<uint32_t>(entry->op_context);
      ASSERT_EQ(entry->match_bits, tag);
      ASSERT_EQ(entry->length, lengths[tag]);
      const uint8_t* const placed = buffers + tag % 64 * kMost;
      ASSERT_TRUE(std::equal(placed, placed + entry->length, data + tag));
      ASSERT_TRUE(done.insert(tag).second);
    }
  }
  EXPECT_EQ(done.size(), kMessages);
  EXPECT_EQ(completed, kMessages);
}

}  // namespace
}  // namespace heddle::soft::engine
