// SPDX-License-Identifier: Apache-2.0
// Neighbour discovery of IPv6, RFC 4861.
#include <cstdint>
#include <vector>

#include "tests/firmware/neighbours_fixture.h"

namespace heddle::firmware {
namespace {

class DiscoveryTest : public NeighboursTest {
 protected:
  void SetUp() override { BeginIpv6(); }

  // Exactly one packet left; checks what all have in common.
  wire::NeighborMessage SentMessage(uint64_t destination_mac,
                                    const FabricAddress& destination,
                                    NdOption option) {
    const std::vector<Bytes> frames = Sent();
    if (frames.size() != 1 || frames[0].size() != 86) {
      ADD_FAILURE() << frames.size() << " frames";
      return {};
    }
    const Bytes& frame = frames[0];
    const auto ethernet = wire::Ethernet::Decode(frame.data());
    EXPECT_EQ(ethernet.destination, destination_mac);
    EXPECT_EQ(ethernet.source, kOurMac);
    EXPECT_EQ(ethernet.ethertype, 0x86dd);
    const Bytes ip(frame.begin() + 14, frame.begin() + 54);
    const auto header = wire::Ipv6::Decode(ip.data());
    EXPECT_EQ(header.version, 6);
    EXPECT_EQ(header.hop_limit, 255);
    EXPECT_EQ(header.next_header, 58);
    EXPECT_EQ(header.payload_length, 32);
    EXPECT_EQ(header.source_hi, kOurIp6.hi);
    EXPECT_EQ(header.source_lo, kOurIp6.lo);
    EXPECT_EQ(header.destination_hi, destination.hi);
    EXPECT_EQ(header.destination_lo, destination.lo);
    const Bytes body(frame.begin() + 54, frame.end());
    EXPECT_EQ(IcmpSum(ip, body), 0xffff);
    const auto link = wire::NeighborOption::Decode(body.data() + 24);
    EXPECT_EQ(link.type, option);
    EXPECT_EQ(link.length, 1);
    EXPECT_EQ(link.mac, kOurMac);
    return wire::NeighborMessage::Decode(body.data());
  }
  void ExpectIgnored(const Discovery& packet) {
    bus_.events.clear();
    Receive(packet.Frame());
    EXPECT_TRUE(bus_.events.empty());
    EXPECT_TRUE(Sent().empty());
  }
};

TEST_F(DiscoveryTest, AResolutionAsksTheSolicitedNodeGroup) {
  const uint16_t id = Resolve(kPeerIp6);
  ExpectNoAnswer();
  const auto question =
      SentMessage(0x3333ffabcdef,
                  FabricAddress::Ipv6(0xff02000000000000, 0x00000001ffabcdef),
                  NdOption::kSourceLink);
  EXPECT_EQ(question.type, Icmpv6Type::kNeighborSolicitation);
  EXPECT_EQ(question.code, 0);
  EXPECT_EQ(question.target_hi, kPeerIp6.hi);
  EXPECT_EQ(question.target_lo, kPeerIp6.lo);
  EXPECT_EQ(question.solicited + question.replaces + question.router, 0);
  Receive(Discovery{}.Frame());
  const uint32_t hop = ExpectAnswer(id);
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
}

TEST_F(DiscoveryTest, SolicitationsForOurAddressAreAnswered) {
  Receive(Solicitation().Frame());
  const auto answer = SentMessage(kPeerMac, kPeerIp6, NdOption::kTargetLink);
  EXPECT_EQ(answer.type, Icmpv6Type::kNeighborAdvertisement);
  EXPECT_EQ(answer.solicited, 1);
  EXPECT_EQ(answer.replaces, 1);
  EXPECT_EQ(answer.router, 0);
  EXPECT_EQ(answer.target_hi, kOurIp6.hi);
  EXPECT_EQ(answer.target_lo, kOurIp6.lo);
  // Without the option the answer goes to the frame's source.
  Discovery bare = Solicitation();
  bare.options.clear();
  bare.ethernet.source = kOtherMac;
  Receive(bare.Frame());
  SentMessage(kOtherMac, kPeerIp6, NdOption::kTargetLink);
  // Duplicate address detection: to all nodes, not solicited.
  Discovery probe = Solicitation();
  probe.ip.source_hi = 0;
  probe.ip.source_lo = 0;
  probe.options.clear();
  Receive(probe.Frame());
  const auto defence =
      SentMessage(0x333300000001, FabricAddress::Ipv6(0xff02000000000000, 1),
                  NdOption::kTargetLink);
  EXPECT_EQ(defence.solicited, 0);
  // For somebody else.
  Discovery other = Solicitation();
  other.message.target_lo = 0x55;
  ExpectIgnored(other);
}

// RFC 4861, 7.1.1 and 7.1.2.
TEST_F(DiscoveryTest, InvalidMessagesAreIgnored) {
  Resolve(kPeerIp6);
  Sent();
  const auto spoil = [&](auto&& change) {
    Discovery advertisement;
    change(advertisement);
    ExpectIgnored(advertisement);
    Discovery solicitation = Solicitation();
    change(solicitation);
    ExpectIgnored(solicitation);
  };
  spoil([](Discovery& p) { p.ip.hop_limit = 254; });
  spoil([](Discovery& p) { p.sum_error = 1; });
  spoil([](Discovery& p) { p.message.code = 1; });
  spoil([](Discovery& p) { p.ip.version = 4; });
  spoil([](Discovery& p) { p.ip.next_header = 17; });
  spoil([](Discovery& p) { p.ip.payload_length = 64; });  // Beyond the frame.
  spoil([](Discovery& p) { p.options[1] = 0; });
  spoil([](Discovery& p) { p.options[1] = 2; });
  spoil([](Discovery& p) { p.options.resize(5); });
  spoil([](Discovery& p) { p.ip.source_hi = uint64_t{0xff02} << 48; });
  spoil([](Discovery& p) { p.message.target_hi = uint64_t{0xff02} << 48; });
  spoil([](Discovery& p) { p.message.type = static_cast<Icmpv6Type>(134); });
  spoil([](Discovery& p) { p.options[2] = 1; });  // A group's address.
  spoil([](Discovery& p) { p.ethernet.destination = kOtherMac; });
  spoil([](Discovery& p) { p.ethernet.ethertype = 0x0806; });
  // An answer to us is not sent to a group.
  Discovery group;
  group.ip.destination_hi = 0xff02000000000000;
  group.ip.destination_lo = 1;
  ExpectIgnored(group);
  // An asker without address names none and asks the right group.
  Discovery nobody = Solicitation();
  nobody.ip.source_hi = 0;
  nobody.ip.source_lo = 0;
  ExpectIgnored(nobody);
  nobody.options.clear();
  nobody.ip.destination_lo = 1;
  ExpectIgnored(nobody);
  ExpectNoAnswer();
  Receive(Discovery{}.Frame());
  EXPECT_TRUE(Next().has_value());
}

TEST_F(DiscoveryTest, WithoutOverrideAnotherAddressOnlyRaisesDoubt) {
  const uint16_t id = Resolve(kPeerIp6);
  Receive(Discovery{}.Frame());
  const uint32_t hop = ExpectAnswer(id);
  Sent();
  Discovery claim;
  claim.message.solicited = 0;
  claim.message.replaces = 0;
  claim.options[7] = 0x99;
  Receive(claim.Frame());
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp6)), hop);
  EXPECT_EQ(Sent().size(), 1U) << "asked again";
  claim.message.replaces = 1;
  Receive(claim.Frame());
  EXPECT_EQ(Hop(hop).mac, (kPeerMac & ~uint64_t{255}) | 0x99);
}

TEST_F(DiscoveryTest, OnLinkIsThePrefixAndLinkLocal) {
  board_.gateway_fa_hi = kPrefix;
  board_.gateway_fa_lo = 0xfe;
  Begin();
  const auto asked = [&](const FabricAddress& address) {
    Resolve(address);
    const std::vector<Bytes> sent = Sent();
    EXPECT_EQ(sent.size(), 1U);
    const auto message = wire::NeighborMessage::Decode(sent.at(0).data() + 54);
    return FabricAddress::Ipv6(message.target_hi, message.target_lo);
  };
  EXPECT_EQ(asked(kPeerIp6), kPeerIp6);
  const FabricAddress local = FabricAddress::Ipv6(uint64_t{0xfe80} << 48, 7);
  EXPECT_EQ(asked(local), local);
  const FabricAddress gateway = FabricAddress::Ipv6(kPrefix, 0xfe);
  EXPECT_EQ(asked(FabricAddress::Ipv6(kPrefix + 1, 1)), gateway);
}

TEST_F(DiscoveryTest, APrefixMayBeLongerThanHalfAnAddress) {
  board_.prefix_length = 120;
  board_.gateway_fa_hi = 0;
  Begin();
  Resolve(FabricAddress::Ipv6(kPrefix, 0xff));
  EXPECT_EQ(Sent().size(), 1U);
  ExpectAnswer(Resolve(FabricAddress::Ipv6(kPrefix, 0x101)),
               AdminStatus::kNotFound);
}

}  // namespace
}  // namespace heddle::firmware
