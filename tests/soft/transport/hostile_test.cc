// SPDX-License-Identifier: Apache-2.0
// Packets that no honest peer sends: none crashes, none changes what it must
// not.
#include <gtest/gtest.h>

#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/seed.h"
#include "tests/soft/transport/world.h"

namespace heddle::soft::transport {

using contract::wire::PdsAck;
using contract::wire::PdsNack;
using contract::wire::PdsRequest;

namespace {

using contract::NackCode;
using contract::PdsType;
using contract::Statistic;

constexpr size_t kStranger = 2;

TestMessage Message(uint64_t serial, bool ordered, size_t to) {
  TestMessage message;
  message.serial = serial;
  message.ordered = ordered;
  message.packets = 1 + static_cast<uint32_t>(serial % 5);
  message.kind = static_cast<Kind>(serial % 4);
  if (message.kind == Kind::kRead) {
    message.packets = 1;
    message.data_packets = 7;
  }
  message.peer = World::Address(to);
  return message;
}

std::vector<uint8_t> Copy(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

std::unique_ptr<World> Make(uint64_t seed) {
  TransportLimits limits;
  limits.pdcs = 16;
  limits.messages = 64;
  auto world = std::make_unique<World>(seed, 3, limits);
  (*world)[kStranger].dead = true;
  return world;
}

void ExpectAllDone(World* world, size_t count) {
  ASSERT_TRUE(world->Run());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*world)[i].client.endings.size(), count);
    for (const Ending& ending : (*world)[i].client.endings) {
      EXPECT_TRUE(ending.completed) << "detail " << ending.detail;
    }
    EXPECT_EQ((*world)[i].client.taken.size(), count);
  }
}

class HostileTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Modes, HostileTest, testing::Bool(),
                         [](const auto& param) {
                           return param.param ? "Rod" : "Rud";
                         });

// What one learned from another's packets: a copy, perhaps with a bit turned,
// from an address that is not the peer's. (SYNs aside: a stranger may open PDCs
// of its own.)
TEST_P(HostileTest, StrangerCannotDisturbAPdc) {
  sim::base::Random random(TestSeed());
  auto world = Make(random.Next());
  for (size_t from = 0; from < 2; ++from) {
    (*world)[from].wire.filter = [&, from](std::span<const uint8_t> bytes) {
      std::vector<uint8_t> copy = Copy(bytes);
      if (random.Chance(0.5)) {
        copy[random.Below(12)] ^= static_cast<uint8_t>(1u << random.Below(8));
      }
      const auto header = PdsRequest::Decode(copy.data());
      const bool request = header.type == PdsType::kRodReq ||
                           header.type == PdsType::kRudReq ||
                           header.type == PdsType::kRodCcReq ||
                           header.type == PdsType::kRudCcReq;
      if (!request || header.syn == 0) {
        world->Inject(kStranger, 1 - from, copy, random.Below(20'000));
      }
      return true;
    };
    for (uint64_t i = 1; i <= 100; ++i) {
      (*world)[from].client.Send(Message(i, GetParam(), 1 - from));
    }
  }
  ExpectAllDone(world.get(), 100);
  EXPECT_GT(world->Total(Statistic::kDropPdcid), 0u);
}

// Old packets of the peer's own, much later.
TEST_P(HostileTest, ReplaysChangeNothing) {
  sim::base::Random random(TestSeed());
  auto world = Make(random.Next());
  for (size_t from = 0; from < 2; ++from) {
    (*world)[from].wire.filter = [&, from](std::span<const uint8_t> bytes) {
      // Retransmissions of what is refused repeat themselves for ever else.
      if (random.Chance(0.3)) {
        world->Inject(from, 1 - from, Copy(bytes), random.Below(300'000));
      }
      return true;
    };
    for (uint64_t i = 1; i <= 100; ++i) {
      (*world)[from].client.Send(Message(i, GetParam(), 1 - from));
    }
  }
  ExpectAllDone(world.get(), 100);
  EXPECT_GT(world->Total(Statistic::kRxDuplicates), 0u);
}

// ACKs and NACKs from the peer's address with the right PDCIDs, about PSNs that
// are not out.
TEST_P(HostileTest, AnswersAboutPsnsThatAreNotOutChangeNothing) {
  sim::base::Random random(TestSeed());
  auto world = Make(random.Next());
  uint64_t forged = 0;
  (*world)[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto ack = PdsAck::Decode(bytes.data());
    if (ack.type != PdsType::kAck && ack.type != PdsType::kAckCc) {
      return true;
    }
    const uint32_t far = 1000 + random.Below(0x7fff0000u);
    std::vector<uint8_t> out = Copy(bytes);
    PdsAck changed = ack;
    changed.cack_psn = ack.cack_psn + far;
    changed.Encode(out.data());
    world->Inject(1, 0, out, random.Below(5000));
    for (const NackCode code : {NackCode::kInvDpdcid, NackCode::kClosing,
                                NackCode::kRodOoo, NackCode::kNoResource}) {
      PdsNack nack;
      nack.type = PdsType::kNack;
      nack.nack_code = code;
      nack.nack_psn = random.Chance(0.5)
                          ? ack.cack_psn + far
                          : ack.cack_psn - 100 - random.Below(1000);
      nack.spdcid = random.Chance(0.5) ? ack.spdcid : uint16_t{0};
      nack.dpdcid = ack.dpdcid;
      std::vector<uint8_t> packet(PdsNack::kBytes);
      nack.Encode(packet.data());
      world->Inject(1, 0, packet, random.Below(5000));
      ++forged;
    }
    return true;
  };
  for (uint64_t i = 1; i <= 100; ++i) {
    (*world)[0].client.Send(Message(4 * i, GetParam(), 1));
  }
  ASSERT_TRUE(world->Run());
  EXPECT_EQ((*world)[0].client.endings.size(), 100u);
  for (const Ending& ending : (*world)[0].client.endings) {
    EXPECT_TRUE(ending.completed) << "detail " << ending.detail;
  }
  EXPECT_EQ((*world)[0].transport.statistic(Statistic::kRxNacks), 0u);
  EXPECT_GE((*world)[0].transport.statistic(Statistic::kDropPsn), forged);
}

// Answers must not be answered, nor packets whose sender waits for no answer.
TEST_P(HostileTest, AnswersToUnknownPdcidsAreDroppedWithoutAWord) {
  constexpr uint16_t kUnknown = 33u << 10 | 7;
  auto world = Make(TestSeed());
  const uint64_t before = (*world)[1].wire.sent;
  std::vector<uint8_t> packet(PdsAck::kBytes);
  PdsAck ack;
  ack.type = PdsType::kAck;
  ack.spdcid = 5;
  ack.dpdcid = kUnknown;
  ack.Encode(packet.data());
  world->Inject(0, 1, packet);
  packet.resize(PdsNack::kBytes);
  PdsNack nack;
  nack.type = PdsType::kNack;
  nack.nack_code = NackCode::kInvDpdcid;
  nack.spdcid = 5;
  nack.dpdcid = kUnknown;
  nack.Encode(packet.data());
  world->Inject(0, 1, packet);
  contract::wire::PdsCp clear;
  clear.type = PdsType::kCp;
  clear.cp_type = contract::CpType::kClearCommand;
  clear.spdcid = 5;
  clear.dpdcid = kUnknown;
  clear.Encode(packet.data());
  world->Inject(0, 1, packet);
  world->RunFor(100'000);
  EXPECT_EQ((*world)[1].wire.sent, before);
  EXPECT_EQ((*world)[1].transport.statistic(Statistic::kDropPdcid), 3u);
}

TEST_P(HostileTest, UnknownPdcidsAreNacked) {
  auto world = Make(TestSeed());
  NackCode code = {};
  uint16_t spdcid = 1;
  (*world)[1].wire.filter = [&](std::span<const uint8_t> bytes) {
    const auto nack = PdsNack::Decode(bytes.data());
    code = nack.nack_code;
    spdcid = nack.spdcid;
    EXPECT_EQ(nack.type, PdsType::kNack);
    EXPECT_EQ(nack.dpdcid, 5);
    return true;
  };
  PdsRequest request;
  request.type = PdsType::kRodReq;
  request.next_hdr = contract::NextHdr::kRequestStd;
  request.spdcid = 5;
  request.dpdcid = 1u << 10 | 7;
  std::vector<uint8_t> packet(100);
  request.Encode(packet.data());
  world->Inject(0, 1, packet);
  world->RunFor(100'000);
  EXPECT_EQ(code, NackCode::kInvDpdcid);
  EXPECT_EQ(spdcid, 0);
}

// Bytes without sense, from strangers; short ones too, and half of them as long
// as ACKs, NACKs and control packets are.
TEST_P(HostileTest, RandomBytesCrashNothing) {
  sim::base::Random random(TestSeed());
  auto world = Make(random.Next());
  for (int i = 0; i < 200'000; ++i) {
    constexpr size_t kForms[] = {12, 16, 24, 32, 40, 44};
    std::vector<uint8_t> bytes(random.Chance(0.5) ? kForms[random.Below(6)]
                                                  : random.Below(80));
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random.Next());
    }
    if (bytes.size() > 11) {
      const uint32_t type = 2 + random.Below(13);
      bytes[0] = static_cast<uint8_t>(type << 3 | (bytes[0] & 7));
      // Often one of node 1's PDCIDs; no request that the client would see.
      bytes[10] = 0;
      bytes[11] &= 0x1f;
      if (bytes.size() >= PdsRequest::kBytes + contract::wire::SesStd::kBytes) {
        bytes.resize(PdsRequest::kBytes);
      }
      const auto header = PdsRequest::Decode(bytes.data());
      if (header.type <= PdsType::kRodReq ||
          header.type >= PdsType::kRudCcReq) {
        bytes[1] &= 0x7f;
        bytes[0] &= 0xf8;  // next_hdr: none or small.
        bytes[1] &= static_cast<uint8_t>(~0x80u);
        if (PdsRequest::Decode(bytes.data()).next_hdr !=
            contract::NextHdr::kNone) {
          continue;
        }
      }
    }
    (*world)[1].transport.Receive({.source = World::Address(kStranger),
                                   .source_udp_port = 1,
                                   .destination_port = 0,
                                   .link = 0,
                                   .dscp = 0,
                                   .congestion = false,
                                   .bytes = bytes},
                                  world->now_ns());
  }
  for (size_t from = 0; from < 2; ++from) {
    for (uint64_t i = 1; i <= 20; ++i) {
      (*world)[from].client.Send(Message(i, GetParam(), 1 - from));
    }
  }
  ExpectAllDone(world.get(), 20);
}

}  // namespace
}  // namespace heddle::soft::transport
