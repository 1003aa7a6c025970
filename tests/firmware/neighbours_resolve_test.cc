// SPDX-License-Identifier: Apache-2.0
// Resolutions: the static hop, questions and their answers, gateway, VLAN.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/firmware/neighbours_fixture.h"

namespace heddle::firmware {
namespace {

TEST_F(NeighboursTest, AStaticWireHasOneHopForEverybodyAndAsksNobody) {
  board_.resolve_neighbours = false;
  Begin();
  EXPECT_EQ(Hop(0).valid, 1);
  EXPECT_EQ(Hop(0).mac, 0x0200000000feU);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), 0U);
  EXPECT_EQ(ExpectAnswer(Resolve(0x01020304)), 0U);
  EXPECT_TRUE(Sent().empty());
  EXPECT_EQ(Release(0), AdminStatus::kOk);
  EXPECT_EQ(Release(0), AdminStatus::kOk);
  EXPECT_EQ(Release(0), AdminStatus::kNotFound);
  // Others may resolve us all the same.
  Receive(Request(kPeerIp, kPeerMac, kOurIp));
  EXPECT_EQ(SentArp(kPeerMac).operation, ArpOperation::kReply);
}

TEST_F(NeighboursTest, AResolutionIsAnsweredWhenThePeerHas) {
  EXPECT_EQ(Hop(0).valid, 0) << "no hop stands in for others";
  const uint16_t id = Resolve(kPeerIp);
  ExpectNoAnswer();
  const wire::Arp question = SentArp(kBroadcast);
  EXPECT_EQ(question.hardware_type, 1);
  EXPECT_EQ(question.protocol_type, 0x0800);
  EXPECT_EQ(question.hardware_length, 6);
  EXPECT_EQ(question.protocol_length, 4);
  EXPECT_EQ(question.operation, ArpOperation::kRequest);
  EXPECT_EQ(question.sender_ip, kOurIp);
  EXPECT_EQ(question.sender_mac, kOurMac);
  EXPECT_EQ(question.target_ip, kPeerIp);
  EXPECT_EQ(question.target_mac, 0U);
  Receive(Reply());
  const uint32_t hop = ExpectAnswer(id);
  EXPECT_NE(hop, 0U);
  EXPECT_EQ(Hop(hop).valid, 1);
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
  EXPECT_EQ(Hop(hop).mtu, 4096);
  EXPECT_EQ(bus_.timer(), 0U) << "nothing is waited for";
  // Known now.
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop);
  EXPECT_TRUE(Sent().empty());
}

TEST_F(NeighboursTest, OtherCommandsAreAnsweredWhileOneWaits) {
  const uint16_t waiting = Resolve(kPeerIp);
  const uint16_t other = Publish(contract::AdminCreateEndpoint{.port = 4000},
                                 AdminOpcode::kCreateEndpoint);
  Run();
  ExpectAnswer(other);
  const uint16_t second = Resolve(kPeerIp);
  ExpectNoAnswer();
  Receive(Reply());
  const uint32_t hop = ExpectAnswer(waiting);
  EXPECT_EQ(ExpectAnswer(second), hop);
  EXPECT_EQ(Release(hop), AdminStatus::kOk);
  EXPECT_EQ(Release(hop), AdminStatus::kOk);
  EXPECT_EQ(Release(hop), AdminStatus::kNotFound);
}

TEST_F(NeighboursTest, AskedAgainAndThenReportedUnknown) {
  const uint16_t id = Resolve(kPeerIp);
  for (uint32_t i = 0; i < kTries; ++i) {
    EXPECT_EQ(Sent().size(), 1U) << i;
    EXPECT_EQ(bus_.timer(), kRetryTicks);
    Wait(kRetryTicks - 1);
    ExpectNoAnswer();
    EXPECT_TRUE(Sent().empty());
    Wait(1);
  }
  EXPECT_TRUE(Sent().empty());
  ExpectAnswer(id, AdminStatus::kNotFound);
  EXPECT_EQ(bus_.timer(), 0U);
  // Too late, and nobody asked.
  Receive(Reply());
  const uint16_t again = Resolve(kPeerIp);
  ExpectNoAnswer();
  EXPECT_EQ(Sent().size(), 1U);
  Wait(kRetryTicks + 5);
  EXPECT_EQ(Sent().size(), 1U);
  Receive(Reply());
  ExpectAnswer(again);
}

TEST_F(NeighboursTest, RetriesOfSeveralPeersEachHaveTheirTime) {
  Resolve(kPeerIp);
  Wait(30);
  Resolve(kPeerIp + 1);
  Sent();
  Wait(70);
  EXPECT_EQ(SentArp(kBroadcast).target_ip, kPeerIp);
  Wait(30);
  EXPECT_EQ(SentArp(kBroadcast).target_ip, kPeerIp + 1);
}

TEST_F(NeighboursTest, ALinkThatTakesNoFrameDelaysAQuestionToTheNextTry) {
  bus_.slow_tx_busy_reads = 1U << 30;
  Resolve(kPeerIp);  // Leaves; the next does not.
  const uint16_t id = Resolve(kPeerIp + 1);
  EXPECT_EQ(Sent().size(), 1U);
  Wait(kTries * kRetryTicks);
  EXPECT_TRUE(Sent().empty());
  EXPECT_TRUE(Next().has_value());
  ExpectAnswer(id, AdminStatus::kNotFound);
}

TEST_F(NeighboursTest, AQuestionWaitsALittleForTheFrameBeforeIt) {
  bus_.slow_tx_busy_reads = 50;
  Resolve(kPeerIp);
  Resolve(kPeerIp + 1);
  EXPECT_EQ(Sent().size(), 2U);
}

TEST_F(NeighboursTest, OffTheLinkTheGatewaysHopIsUsed) {
  board_.gateway_fa_lo = 0x0a0000fe;
  Begin();
  const uint16_t far = Resolve(0x0a000102);
  EXPECT_EQ(SentArp(kBroadcast).target_ip, 0x0a0000feU);
  const uint16_t farther = Resolve(0xc0a80001);
  EXPECT_TRUE(Sent().empty());
  Receive(Reply(0x0a0000fe, kOtherMac));
  const uint32_t hop = ExpectAnswer(far);
  EXPECT_EQ(ExpectAnswer(farther), hop);
  EXPECT_EQ(Hop(hop).mac, kOtherMac);
  // The last address on the link is not the gateway's.
  Resolve(0x0a0000ff);
  EXPECT_EQ(SentArp(kBroadcast).target_ip, 0x0a0000ffU);
}

TEST_F(NeighboursTest, WithoutAGatewayWhatIsOffTheLinkIsUnknownAtOnce) {
  ExpectAnswer(Resolve(0x0a000102), AdminStatus::kNotFound);
  EXPECT_TRUE(Sent().empty());
}

TEST_F(NeighboursTest, OurOwnAddressIsKnownWithoutAsking) {
  const uint32_t hop = ExpectAnswer(Resolve(kOurIp));
  EXPECT_EQ(Hop(hop).mac, kOurMac);
  EXPECT_EQ(Hop(hop).valid, 1);
  EXPECT_TRUE(Sent().empty());
  // Another function at our address does not take it over.
  Receive(Request(kOurIp, kOtherMac, kPeerIp));
  Receive(Reply(kOurIp, kOtherMac));
  EXPECT_EQ(Hop(hop).mac, kOurMac);
}

TEST_F(NeighboursTest, BadCommandsNameTheField) {
  const auto expect = [&](AdminResolveNextHop command, size_t offset) {
    Publish(command, AdminOpcode::kResolveNextHop);
    Run();
    const auto answer = Next();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, AdminStatus::kInvalid);
    EXPECT_EQ(answer->detail, offset);
  };
  using Command = AdminResolveNextHop;
  const size_t address = offsetof(Command, fa_lo);
  expect({.fa_lo = 0}, address);
  expect({.fa_lo = 0xffffffff}, address);
  expect({.fa_lo = 0xe0000001}, address);
  expect({.fa_lo = uint64_t{1} << 32}, address);
  expect({.fa_lo = kPeerIp, .fa_hi = 1}, address);
  expect({.fa_lo = kPeerIp, .flags = contract::kAvFlagIpv6},
         offsetof(Command, flags));
  expect({.fa_lo = kPeerIp, .flags = contract::kAvFlagValid},
         offsetof(Command, flags));
  expect({.rsvd1 = 1, .fa_lo = kPeerIp}, offsetof(Command, rsvd1));
  expect({.fa_lo = kPeerIp, .rsvd2 = 1}, offsetof(Command, rsvd2));
  expect({.fa_lo = kPeerIp, .rsvd5 = {0, 0, 1}}, offsetof(Command, rsvd5) + 16);
  EXPECT_TRUE(Sent().empty());
  EXPECT_EQ(Release(0), AdminStatus::kNotFound);
  EXPECT_EQ(Release(contract::kNextHops), AdminStatus::kNotFound);
}

TEST_F(NeighboursTest, FramesOfAVlanCarryItsTag) {
  board_.vlan = 0x123;
  Begin();
  const uint16_t id = Resolve(kPeerIp);
  const std::vector<Bytes> sent = Sent();
  ASSERT_EQ(sent.size(), 1U);
  ASSERT_EQ(sent[0].size(), 46U);
  const auto tag = wire::Vlan::Decode(sent[0].data() + 12);
  EXPECT_EQ(tag.tpid, 0x8100);
  EXPECT_EQ(tag.vid, 0x123);
  EXPECT_EQ(sent[0][16], 0x08);
  EXPECT_EQ(sent[0][17], 0x06);
  EXPECT_EQ(wire::Arp::Decode(sent[0].data() + 18).target_ip, kPeerIp);
  Bytes reply = Reply();
  const Bytes inserted = {0x81, 0x00, 0x61, 0x23};
  reply.insert(reply.begin() + 12, inserted.begin(), inserted.end());
  Receive(reply);
  const uint32_t hop = ExpectAnswer(id);
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
  EXPECT_EQ(Hop(hop).vlan, 0x123);
}

}  // namespace
}  // namespace heddle::firmware
