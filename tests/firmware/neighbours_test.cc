// SPDX-License-Identifier: Apache-2.0
// Neighbours as the control program keeps them: frames in, frames and next hops
// out, admin commands on the other side.
#include "firmware/net/neighbours.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "firmware/control_program.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_wire.h"
#include "tests/firmware/fake_management_bus.h"
#include "tests/firmware/test_memory.h"
#include "tests/seed.h"

namespace heddle::firmware {
namespace {

namespace wire = contract::wire;
using contract::AdminAnswer;
using contract::AdminCommand;
using contract::AdminOpcode;
using contract::AdminResolveNextHop;
using contract::AdminStatus;
using contract::ArpOperation;
using contract::Icmpv6Type;
using contract::NdOption;
using contract::NextHopCfg;
using Bytes = std::vector<uint8_t>;

constexpr uint64_t kCommands = TestMemory::kBase;
constexpr uint64_t kAnswers = TestMemory::kBase + 0x8000;
constexpr uint64_t kOurMac = 0x020000000001;
constexpr uint64_t kPeerMac = 0x020000000042;
constexpr uint64_t kOtherMac = 0x020000000043;
constexpr uint64_t kBroadcast = 0xffffffffffff;
constexpr uint32_t kOurIp = 0x0a000001;
constexpr uint32_t kPeerIp = 0x0a000002;
constexpr uint32_t kRetryTicks = 100;
constexpr uint32_t kReachableTicks = 1000;
constexpr uint32_t kTries = 3;
constexpr uint64_t kPrefix = 0x20010db800000000;
constexpr FabricAddress kOurIp6{.lo = 1, .hi = kPrefix};
constexpr FabricAddress kPeerIp6{.lo = 0x0123456789abcdef, .hi = kPrefix};

uint16_t OnesSum(const Bytes& bytes, uint32_t sum) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? uint32_t{bytes[i]} << 8 : bytes[i];
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(sum);
}

// What ICMPv6 sums: an independent statement of it, from bytes.
uint16_t IcmpSum(const Bytes& ip, const Bytes& message) {
  Bytes pseudo(ip.begin() + 8, ip.begin() + 40);
  const auto length = static_cast<uint32_t>(message.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    pseudo.push_back(static_cast<uint8_t>(length >> shift));
  }
  pseudo.insert(pseudo.end(), {0, 0, 0, 58});
  return OnesSum(message, OnesSum(pseudo, 0));
}

Bytes Padded(Bytes frame) {
  frame.resize(std::max<size_t>(frame.size(), 60));
  return frame;
}

template <typename Header>
Bytes Encoded(const Header& header) {
  Bytes bytes(Header::kBytes);
  header.Encode(bytes.data());
  return bytes;
}

void Append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

wire::Arp ArpOf(ArpOperation operation, uint32_t sender_ip, uint64_t sender_mac,
                uint32_t target_ip, uint64_t target_mac) {
  return {.hardware_type = 1,
          .protocol_type = 0x0800,
          .hardware_length = 6,
          .protocol_length = 4,
          .operation = operation,
          .sender_mac = sender_mac,
          .sender_ip = sender_ip,
          .target_mac = target_mac,
          .target_ip = target_ip};
}

Bytes ArpFrame(const wire::Arp& arp, uint64_t destination) {
  Bytes frame = Encoded(wire::Ethernet{.destination = destination,
                                       .source = arp.sender_mac,
                                       .ethertype = 0x0806});
  Append(frame, Encoded(arp));
  return Padded(frame);
}

// The peer's answer to our question.
Bytes Reply(uint32_t ip = kPeerIp, uint64_t mac = kPeerMac) {
  return ArpFrame(ArpOf(ArpOperation::kReply, ip, mac, kOurIp, kOurMac),
                  kOurMac);
}

Bytes Request(uint32_t sender_ip, uint64_t sender_mac, uint32_t target_ip) {
  return ArpFrame(
      ArpOf(ArpOperation::kRequest, sender_ip, sender_mac, target_ip, 0),
      kBroadcast);
}

// A neighbor solicitation or advertisement, its fields free to spoil.
struct Discovery {
  wire::Ethernet ethernet{
      .destination = kOurMac, .source = kPeerMac, .ethertype = 0x86dd};
  wire::Ipv6 ip{.version = 6,
                .payload_length = 0,
                .next_header = 58,
                .hop_limit = 255,
                .source_hi = kPeerIp6.hi,
                .source_lo = kPeerIp6.lo,
                .destination_hi = kOurIp6.hi,
                .destination_lo = kOurIp6.lo};
  wire::NeighborMessage message{.type = Icmpv6Type::kNeighborAdvertisement,
                                .solicited = 1,
                                .replaces = 1,
                                .target_hi = kPeerIp6.hi,
                                .target_lo = kPeerIp6.lo};
  Bytes options = Encoded(wire::NeighborOption{
      .type = NdOption::kTargetLink, .length = 1, .mac = kPeerMac});
  uint16_t sum_error = 0;

  Bytes Frame() const {
    wire::Ipv6 header = ip;
    header.payload_length =
        static_cast<uint16_t>(24 + options.size() + ip.payload_length);
    Bytes body = Encoded(message);
    Append(body, options);
    const auto sum = static_cast<uint16_t>(~IcmpSum(Encoded(header), body));
    body[2] = static_cast<uint8_t>((sum + sum_error) >> 8);
    body[3] = static_cast<uint8_t>(sum + sum_error);
    Bytes frame = Encoded(ethernet);
    Append(frame, Encoded(header));
    Append(frame, body);
    return Padded(frame);
  }
};

Discovery Solicitation() {
  Discovery packet;
  packet.ethernet.destination = 0x3333ff000001;
  packet.ip.destination_hi = 0xff02000000000000;
  packet.ip.destination_lo = 0x00000001ff000001;
  packet.message = {.type = Icmpv6Type::kNeighborSolicitation,
                    .target_hi = kOurIp6.hi,
                    .target_lo = kOurIp6.lo};
  packet.options[0] = 1;
  return packet;
}

class NeighboursTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLog2 = 8;
  static constexpr uint32_t kEntries = 1U << kLog2;

  NeighboursTest() {
    board_.resolve_neighbours = true;
    board_.neighbour_retry_ns = kRetryTicks * board_.tick_ns;
    board_.neighbour_reachable_ns = kReachableTicks * board_.tick_ns;
    board_.neighbour_tries = kTries;
    board_.prefix_length = 24;
  }

  void SetUp() override { Begin(); }
  void TearDown() override {
    EXPECT_EQ(bus_.violations, 0U) << "misuse of the management bus";
  }

  void Begin() {
    bus_.admin_command_base = kCommands;
    bus_.admin_answer_base = kAnswers;
    bus_.admin_log2 = kLog2;
    program_ = std::make_unique<ControlProgram>(bus_, switch_, board_);
    program_->Start();
    answers_ = bus_.admin_tail;
  }
  void BeginIpv6() {
    board_.ipv6 = true;
    board_.fa_hi = kOurIp6.hi;
    board_.fa_lo = kOurIp6.lo;
    board_.prefix_length = 64;
    Begin();
  }

  void Run() {
    for (uint32_t i = 0; i < 2000 && bus_.HasEvent(); ++i) {
      program_->Step();
    }
  }
  void Receive(const Bytes& frame) {
    bus_.slow_rx.push_back(frame);
    Run();
    EXPECT_TRUE(bus_.slow_rx.empty());
  }
  void Wait(uint32_t ticks) {
    for (uint32_t i = 0; i < ticks; ++i) {
      bus_.Tick(1);
      Run();
    }
  }
  // Publishes a command; its id.
  template <typename T>
  uint16_t Publish(T command, AdminOpcode opcode) {
    command.opcode = opcode;
    command.id = static_cast<uint16_t>(0x1000 + bus_.admin_tail);
    EXPECT_TRUE(memory_.Write(kCommands + bus_.admin_tail % kEntries * 64,
                              &command, sizeof(command)));
    ++bus_.admin_tail;
    return command.id;
  }
  uint16_t Resolve(uint32_t ip) {
    const uint16_t id =
        Publish(AdminResolveNextHop{.fa_lo = ip}, AdminOpcode::kResolveNextHop);
    Run();
    return id;
  }
  uint16_t Resolve(const FabricAddress& address) {
    const uint16_t id =
        Publish(AdminResolveNextHop{.fa_lo = address.lo,
                                    .fa_hi = address.hi,
                                    .flags = contract::kAvFlagIpv6},
                AdminOpcode::kResolveNextHop);
    Run();
    return id;
  }
  // The next answer in the ring, if there is one.
  std::optional<AdminAnswer> Next() {
    AdminAnswer answer;
    EXPECT_TRUE(memory_.Read(kAnswers + answers_ % kEntries * 64, &answer,
                             sizeof(answer)));
    const bool odd_pass = ((answers_ >> kLog2) & 1) != 0;
    if (answer.phase != (odd_pass ? 0 : 1)) {
      return std::nullopt;
    }
    ++answers_;
    return answer;
  }
  // The answer is `status` for command `id`; its object.
  uint32_t ExpectAnswer(uint16_t id, AdminStatus status = AdminStatus::kOk) {
    const auto answer = Next();
    if (!answer) {
      ADD_FAILURE() << "no answer";
      return 0;
    }
    EXPECT_EQ(answer->id, id);
    EXPECT_EQ(answer->status, status);
    if (status == AdminStatus::kNotFound) {
      EXPECT_EQ(answer->detail, offsetof(AdminResolveNextHop, fa_lo));
    }
    return answer->object;
  }
  void ExpectNoAnswer() { EXPECT_FALSE(Next().has_value()); }
  AdminStatus Release(uint32_t hop) {
    Publish(AdminCommand{.object = hop}, AdminOpcode::kReleaseNextHop);
    Run();
    const auto answer = Next();
    EXPECT_TRUE(answer.has_value());
    return answer ? answer->status : AdminStatus::kUnsupported;
  }
  // Resolves a peer that answers; its hop.
  uint32_t Meet(uint32_t ip, uint64_t mac) {
    const uint16_t id = Resolve(ip);
    bus_.slow_tx.clear();
    Receive(Reply(ip, mac));
    return ExpectAnswer(id);
  }
  NextHopCfg Hop(uint32_t index) {
    return bus_.Table<NextHopCfg>(contract::Table::kNextHop, index);
  }
  std::vector<Bytes> Sent() { return std::exchange(bus_.slow_tx, {}); }
  // Exactly one ARP packet left.
  wire::Arp SentArp(uint64_t destination) {
    const std::vector<Bytes> frames = Sent();
    if (frames.size() != 1 || frames[0].size() != 42) {
      ADD_FAILURE() << frames.size() << " frames";
      return {};
    }
    const auto ethernet = wire::Ethernet::Decode(frames[0].data());
    EXPECT_EQ(ethernet.destination, destination);
    EXPECT_EQ(ethernet.source, kOurMac);
    EXPECT_EQ(ethernet.ethertype, 0x0806);
    return wire::Arp::Decode(frames[0].data() + 14);
  }

  TestMemory memory_;
  FakeManagementBus bus_{memory_};
  FakeSwitch switch_;
  Board board_ = TestBoard();
  std::unique_ptr<ControlProgram> program_;
  uint16_t answers_ = 0;
};

// ------------------------------------------------------------------- static

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

// ------------------------------------------------------------------ resolve

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

// ------------------------------------------------------------ what is heard

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

// ------------------------------------------------------------------- ageing

TEST_F(NeighboursTest, AnOldPeerInUseIsConfirmedBehindItsUsersBacks) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  Wait(kReachableTicks - 1);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop);
  EXPECT_TRUE(Sent().empty());
  Wait(1);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop) << "at once";
  EXPECT_EQ(Sent().size(), 1U);
  Receive(Reply(kPeerIp, kOtherMac));
  EXPECT_EQ(Hop(hop).mac, kOtherMac);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop);
  EXPECT_TRUE(Sent().empty()) << "confirmed";
}

TEST_F(NeighboursTest, AnOldPeerInUseThatIsSilentKeepsItsAddress) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  Wait(kReachableTicks);
  ExpectAnswer(Resolve(kPeerIp));
  Wait(kTries * kRetryTicks);
  EXPECT_EQ(Sent().size(), kTries);
  EXPECT_EQ(bus_.timer(), 0U);
  EXPECT_EQ(Hop(hop).valid, 1);
  EXPECT_EQ(Hop(hop).mac, kPeerMac);
}

TEST_F(NeighboursTest, AnOldPeerThatNobodyUsesIsAskedBeforeItIsHandedOut) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  EXPECT_EQ(Release(hop), AdminStatus::kOk);
  EXPECT_EQ(ExpectAnswer(Resolve(kPeerIp)), hop) << "young enough";
  EXPECT_EQ(Release(hop), AdminStatus::kOk);
  Wait(kReachableTicks);
  const uint16_t id = Resolve(kPeerIp);
  ExpectNoAnswer();
  Wait(kTries * kRetryTicks);
  ExpectAnswer(id, AdminStatus::kNotFound);
  EXPECT_EQ(Hop(hop).valid, 0) << "gone";
}

TEST_F(NeighboursTest, AFullTableRefusesUntilAHopIsReleased) {
  const uint32_t places = contract::kNextHops - 1;
  std::vector<uint32_t> hops;
  board_.prefix_length = 0;
  Begin();
  for (uint32_t i = 0; i < places; ++i) {
    hops.push_back(Meet(0x0b000000 + i, kPeerMac + i));
  }
  std::vector<uint32_t> numbers = hops;
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_GT(numbers.front(), 0U);
  EXPECT_LT(numbers.back(), contract::kNextHops);
  ExpectAnswer(Resolve(kPeerIp), AdminStatus::kNoResource);
  EXPECT_TRUE(Sent().empty());
  // The place of the peer released first is taken first; until its new owner
  // is known the hop is not valid.
  EXPECT_EQ(Release(hops[7]), AdminStatus::kOk);
  EXPECT_EQ(Release(hops[3]), AdminStatus::kOk);
  const uint16_t id = Resolve(kPeerIp);
  EXPECT_EQ(Hop(hops[7]).valid, 0);
  EXPECT_EQ(Hop(hops[3]).valid, 1);
  Receive(Reply());
  EXPECT_EQ(ExpectAnswer(id), hops[7]);
  EXPECT_EQ(Hop(hops[7]).mac, kPeerMac);
  EXPECT_EQ(ExpectAnswer(Resolve(0x0b000003)), hops[3]) << "kept meanwhile";
}

// ------------------------------------------------------- drains, reset, fault

TEST_F(NeighboursTest, AHopLearntDuringADrainIsWrittenBehindIt) {
  const uint16_t endpoint = Publish(contract::AdminCreateEndpoint{.port = 4000},
                                    AdminOpcode::kCreateEndpoint);
  const uint16_t cq =
      Publish(contract::AdminCreateCq{.base = 0x10000, .log2 = 4},
              AdminOpcode::kCreateCq);
  const uint16_t rx = Publish(
      contract::AdminCreateRx{
          .ring_base = 0x20000, .head_cell = 0x30000, .ring_log2 = 4},
      AdminOpcode::kCreateRx);
  Run();
  ExpectAnswer(endpoint);
  ExpectAnswer(cq);
  const uint32_t context = ExpectAnswer(rx);
  const uint16_t id = Resolve(kPeerIp);
  bus_.hold_drains = true;
  const uint16_t destroy =
      Publish(AdminCommand{.object = context}, AdminOpcode::kDestroyRx);
  for (int i = 0; i < 10; ++i) {
    program_->Step();
  }
  bus_.slow_rx.push_back(Reply());
  for (int i = 0; i < 10; ++i) {
    program_->Step();
  }
  EXPECT_TRUE(bus_.slow_rx.empty()) << "frames are not held up";
  ExpectNoAnswer();
  bus_.hold_drains = false;
  Run();
  ExpectAnswer(destroy);
  EXPECT_EQ(Hop(ExpectAnswer(id)).mac, kPeerMac);
}

TEST_F(NeighboursTest, AResetForgetsNeighboursAndThoseWhoWait) {
  const uint32_t hop = Meet(kPeerIp, kPeerMac);
  Resolve(kPeerIp + 1);
  bus_.reset_requested = true;
  Run();
  answers_ = bus_.admin_tail;
  EXPECT_EQ(Hop(hop).valid, 0);
  EXPECT_EQ(bus_.timer(), 0U);
  Receive(Reply(kPeerIp + 1));
  ExpectNoAnswer();
  EXPECT_EQ(Release(hop), AdminStatus::kNotFound);
  Sent();
  Meet(kPeerIp, kPeerMac);
}

TEST_F(NeighboursTest, ARingTooLongForTheDeviceEndsTheWaitOfCommands) {
  Resolve(kPeerIp);
  bus_.admin_log2 = 9;
  Publish(AdminCommand{}, AdminOpcode::kNone);
  Run();
  bus_.admin_log2 = kLog2;
  answers_ = bus_.admin_tail;
  Receive(Reply());
  ExpectNoAnswer();
  const uint16_t id = Resolve(kPeerIp);
  ExpectAnswer(id);
}

TEST_F(NeighboursTest, AHaltedProgramTakesItsEventsBack) {
  Resolve(kPeerIp);
  bus_.stuck_mailbox = true;
  Publish(AdminCommand{}, AdminOpcode::kNone);
  program_->Step();
  ASSERT_NE(bus_.fatal_cause, 0U);
  bus_.stuck_mailbox = false;
  bus_.Tick(kRetryTicks);
  bus_.slow_rx.push_back(Reply());
  program_->Step();
  program_->Step();
  EXPECT_TRUE(bus_.slow_rx.empty());
  EXPECT_EQ(bus_.timer(), 0U);
  EXPECT_EQ(bus_.Read(contract::kMgmtEventsOffset),
            contract::kMgmtEventsAdminMask);
}

TEST_F(NeighboursTest, ATableThatRefusesAHopIsFatal) {
  Resolve(kPeerIp);
  bus_.broken_table = contract::Table::kNextHop;
  Receive(Reply());
  EXPECT_EQ(bus_.status, contract::kBar0DeviceStatusFatalMask);
  EXPECT_EQ(bus_.fatal_cause,
            Status(Module::kTablePort,
                   static_cast<uint8_t>(contract::Table::kNextHop),
                   StatusClass::kRefused)
                .value());
}

// --------------------------------------------------------------------- VLAN

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

// --------------------------------------------------------------------- IPv6

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
  const auto question = SentMessage(
      0x3333ffabcdef, {.lo = 0x00000001ffabcdef, .hi = 0xff02000000000000},
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
      SentMessage(0x333300000001, {.lo = 1, .hi = 0xff02000000000000},
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
    return FabricAddress{.lo = message.target_lo, .hi = message.target_hi};
  };
  EXPECT_EQ(asked(kPeerIp6), kPeerIp6);
  const FabricAddress local{.lo = 7, .hi = uint64_t{0xfe80} << 48};
  EXPECT_EQ(asked(local), local);
  const FabricAddress gateway{.lo = 0xfe, .hi = kPrefix};
  EXPECT_EQ(asked({.lo = 1, .hi = kPrefix + 1}), gateway);
}

TEST_F(DiscoveryTest, APrefixMayBeLongerThanHalfAnAddress) {
  board_.prefix_length = 120;
  board_.gateway_fa_hi = 0;
  Begin();
  Resolve({.lo = 0xff, .hi = kPrefix});
  EXPECT_EQ(Sent().size(), 1U);
  ExpectAnswer(Resolve({.lo = 0x101, .hi = kPrefix}), AdminStatus::kNotFound);
}

}  // namespace
}  // namespace heddle::firmware
