// SPDX-License-Identifier: Apache-2.0
// What others say unasked, well formed or not.
#include <cstdint>
#include <random>

#include "tests/firmware/neighbours_fixture.h"
#include "tests/seed.h"

namespace heddle::firmware {
namespace {

TEST_F(NeighboursTest, QuestionsForOurAddressAreAnsweredAndOthersAreNot) {
  Receive(Request(kPeerIp, kPeerMac, kOurIp));
  const wire::Arp answer = SentArp(kPeerMac);
  EXPECT_EQ(answer.operation, ArpOperation::kReply);
  EXPECT_EQ(answer.sender_ip, kOurIp);
  EXPECT_EQ(answer.sender_mac, kOurMac);
  EXPECT_EQ(answer.target_ip, kPeerIp);
  EXPECT_EQ(answer.target_mac, kPeerMac);
  // A probe: the asker has no address yet (RFC 5227).
  Receive(Request(0, kPeerMac, kOurIp));
  EXPECT_EQ(SentArp(kPeerMac).sender_ip, kOurIp);
  Receive(Request(kPeerIp, kPeerMac, kOurIp + 9));
  EXPECT_TRUE(Sent().empty());
}

TEST_F(NeighboursTest, OnlyKnownPeersAreUpdatedByWhatOthersSay) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  // Gratuitous, both forms.
  Receive(Request(kPeerIp, kOtherMac, kPeerIp));
  EXPECT_EQ(Hop(hop).mac, kOtherMac);
  Receive(ArpFrame(
      ArpOf(ArpOperation::kReply, kPeerIp, kPeerMac, kPeerIp, kBroadcast),
      kBroadcast));
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
  // A stranger stays one.
  bus_.events.clear();
  Receive(Request(kPeerIp + 1, kOtherMac, kPeerIp + 1));
  Receive(Reply(kPeerIp + 1, kOtherMac));
  EXPECT_TRUE(bus_.events.empty());
  const uint16_t id = Resolve(kPeerIp + 1);
  ExpectNoAnswer();
  EXPECT_EQ(Sent().size(), 1U);
  Receive(Reply(kPeerIp + 1, kOtherMac));
  ExpectAnswer(id);
}

TEST_F(NeighboursTest, AnAddressHeardButNotAskedForIsNotTrusted) {
  const uint16_t id = Resolve(kPeerIp);
  Sent();
  // The peer asks somebody: its address is known, but it did not answer us.
  Receive(Request(kPeerIp, kPeerMac, kPeerIp + 5));
  ExpectNoAnswer();
  Receive(Reply());
  ExpectAnswer(id);
}

TEST_F(NeighboursTest, MalformedArpChangesNothing) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  bus_.events.clear();
  const auto expect_ignored = [&](wire::Arp arp, uint64_t destination) {
    arp.sender_mac = arp.sender_mac == kPeerMac ? kOtherMac : arp.sender_mac;
    Bytes frame = ArpFrame(arp, destination);
    const wire::Ethernet ethernet{
        .destination = destination, .source = kOtherMac, .ethertype = 0x0806};
    ethernet.Encode(frame.data());
    Receive(frame);
    EXPECT_TRUE(bus_.events.empty());
    EXPECT_TRUE(Sent().empty());
  };
  const wire::Arp good =
      ArpOf(ArpOperation::kRequest, kPeerIp, kPeerMac, kOurIp, 0);
  wire::Arp arp = good;
  arp.hardware_type = 6;
  expect_ignored(arp, kBroadcast);
  arp = good;
  arp.protocol_type = 0x86dd;
  expect_ignored(arp, kBroadcast);
  arp = good;
  arp.hardware_length = 8;
  expect_ignored(arp, kBroadcast);
  arp = good;
  arp.protocol_length = 16;
  expect_ignored(arp, kBroadcast);
  arp = good;
  arp.operation = static_cast<ArpOperation>(3);
  expect_ignored(arp, kBroadcast);
  arp = good;
  arp.sender_mac = kBroadcast;
  expect_ignored(arp, kBroadcast);
  arp.sender_mac = 0;
  expect_ignored(arp, kBroadcast);
  expect_ignored(good, kOtherMac);  // Somebody else's frame.
  Bytes cut = Request(kPeerIp, kOtherMac, kOurIp);
  cut.resize(41);
  Receive(cut);
  EXPECT_TRUE(bus_.events.empty());
  EXPECT_TRUE(Sent().empty());
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
}

TEST_F(NeighboursTest, RandomFramesNeverStopTheControlProgram) {
  std::mt19937 random(TestSeed());
  for (const bool ipv6 : {false, true}) {
    if (ipv6) {
      BeginIpv6();
    }
    for (int i = 0; i < 20000; ++i) {
      Bytes frame =
          ipv6 ? random() % 2 ? Discovery{}.Frame() : Solicitation().Frame()
               : Request(kPeerIp, kPeerMac, kOurIp);
      for (uint32_t n = random() % 4; n > 0; --n) {
        frame[random() % frame.size()] = static_cast<uint8_t>(random());
      }
      if (random() % 4 == 0) {
        frame.resize(1 + random() % frame.size());
      }
      Receive(frame);
    }
  }
  EXPECT_EQ(bus_.fatal_cause, 0U);
  Sent();
  const uint16_t id = Resolve(kPeerIp6);
  Receive(Discovery{}.Frame());
  ExpectAnswer(id);
}

}  // namespace
}  // namespace heddle::firmware
