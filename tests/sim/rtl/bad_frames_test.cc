// SPDX-License-Identifier: Apache-2.0
// The table of docs/uet.md 2.20: what is wrong with a packet, and the one thing
// that a device does about it. After each, the PDC carries a good message, and
// there is no PDC more than before. And the worked frames of UET on an open
// PDC.
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/clock.h"
#include "tests/frames/worked.h"
#include "tests/sim/rtl/answers_fixture.h"

namespace heddle::sim::rtl {
namespace {

using contract::CpType;
using contract::wire::PdsPrologue;

constexpr size_t kIp = 14;
constexpr size_t kUdp = kIp + 20;
constexpr size_t kPds = kUdp + 8;
constexpr size_t kSes = 12;  // Behind the PDS header of a request.
constexpr uint32_t kPort = 300;

class BadFramesTest : public AnswersTest {
 protected:
  // A good request on the open PDC, to be spoilt. Takes no PSN.
  Bytes Request() {
    return peer_->RequestPacket(Whole(SesOpcode::kWrite, 8), Pattern(8));
  }
  static void SetType(Bytes& packet, unsigned type) {
    packet[0] = static_cast<uint8_t>(type << 3 | (packet[0] & 7));
  }
  static void SetNextHdr(Bytes& packet, unsigned next) {
    packet[0] = static_cast<uint8_t>((packet[0] & 0xf8) | next >> 1);
    packet[1] = static_cast<uint8_t>((packet[1] & 0x7f) | (next & 1) << 7);
  }
  static void AddToHalf(Bytes& frame, size_t at, int add) {
    const int value = (frame[at] << 8 | frame[at + 1]) + add;
    frame[at] = static_cast<uint8_t>(value >> 8);
    frame[at + 1] = static_cast<uint8_t>(value);
  }
  static void FixIpChecksum(Bytes& frame) {
    frame[kIp + 10] = frame[kIp + 11] = 0;
    uint32_t sum = 0;
    for (size_t at = kIp; at < kUdp; at += 2) {
      sum += static_cast<uint32_t>(frame[at] << 8 | frame[at + 1]);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    frame[kIp + 10] = static_cast<uint8_t>(sum >> 8);
    frame[kIp + 11] = static_cast<uint8_t>(sum);
  }

  // Of `statistic`, one packet more; of all other reasons to drop none.
  void ExpectCounted(const std::vector<uint64_t>& before,
                     std::optional<Statistic> statistic) {
    for (size_t i = 0; i < std::size(kDrops); ++i) {
      EXPECT_EQ(Count(kDrops[i]) - before[i], kDrops[i] == statistic ? 1U : 0U)
          << "statistic " << static_cast<int>(kDrops[i]);
    }
  }
  std::vector<uint64_t> Drops() {
    std::vector<uint64_t> counts;
    for (const Statistic drop : kDrops) {
      counts.push_back(Count(drop));
    }
    return counts;
  }

  // A frame that has no answer: the first one is that of a good request behind
  // it.
  void ExpectDropped(const Bytes& frame, Statistic statistic) {
    const uint64_t pdcs = Count(Statistic::kRxPdcs);
    const std::vector<uint64_t> before = Drops();
    peer_->SendFrame(frame);
    ExpectAlive();
    ExpectCounted(before, statistic);
    EXPECT_EQ(Count(Statistic::kRxPdcs), pdcs);
  }
  void ExpectPacketDropped(const Bytes& packet, Statistic statistic) {
    ExpectDropped(peer_->FrameOf(packet), statistic);
  }
  // A frame that is as good as one without the fault.
  void ExpectTaken(const Bytes& frame, const SesStd& ses) {
    const uint64_t pdcs = Count(Statistic::kRxPdcs);
    const std::vector<uint64_t> before = Drops();
    peer_->SendFrame(frame);
    const PeerPacket answer = Next();
    ++peer_->psn;
    ExpectSuccess(answer, ses);
    EXPECT_TRUE(MemoryBecomes(0, Pattern(8)));
    ExpectAlive();
    ExpectCounted(before, std::nullopt);
    EXPECT_EQ(Count(Statistic::kRxPdcs), pdcs);
  }

  // The device is the initiator of a message to the peer.
  void BeInitiator() {
    ASSERT_TRUE(peer_->Claim(kPort));
    device_->endpoint->AddPeer(device::kIpA, device::Node::GrantOf(kPort));
  }
  // Posts a message; the request that it becomes.
  PeerPacket Posted() {
    device_->PostSend(0, 100);
    PeerPacket request = Next();
    while (last_ && request.request.psn == *last_ && !HasFailure()) {
      request = Next();  // It was sent again before its ACK came.
    }
    last_ = request.request.psn;
    EXPECT_EQ(request.ses.opcode, SesOpcode::kSend);
    return request;
  }
  static contract::wire::SesResponse Good() {
    contract::wire::SesResponse response;
    response.opcode = contract::SesResponse::kDefaultResponse;
    response.return_code = ReturnCode::kOk;
    return response;
  }
  std::optional<Completion> Sent() {
    const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
    while (base::MonotonicNs() < deadline) {
      device_->Step();
      if (auto done = device_->endpoint->PollTx()) {
        return done;
      }
    }
    return std::nullopt;
  }
  void ExpectSent(const PeerPacket& request) {
    peer_->Acknowledge(request.request, Good());
    const auto sent = Sent();
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->status, Status::kOk) << "detail " << sent->detail;
  }
  // A packet to the initiator of an outstanding request that changes nothing:
  // the request is acknowledged as if it had not come.
  void ExpectIgnored(const PeerPacket& request, const Bytes& packet,
                     std::optional<Statistic> statistic) {
    const uint64_t pdcs = Count(Statistic::kTxPdcs);
    const std::vector<uint64_t> before = Drops();
    peer_->Send(packet);
    ExpectSent(request);
    if (statistic) {
      ExpectCounted(before, statistic);
    }
    ExpectSent(Posted());
    EXPECT_EQ(Count(Statistic::kTxPdcs), pdcs);
  }

  static constexpr Statistic kDrops[] = {
      Statistic::kDropTruncated, Statistic::kDropEthertype,
      Statistic::kDropIpHeader,  Statistic::kDropIpChecksum,
      Statistic::kDropIpAddress, Statistic::kDropUdpPort,
      Statistic::kDropCrc,       Statistic::kDropPdsType,
      Statistic::kDropSes,       Statistic::kDropPdcid,
      Statistic::kDropPsn};

  std::optional<uint32_t> last_;
};

INSTANTIATE_TEST_SUITE_P(Device, BadFramesTest, testing::Bool(),
                         [](const auto& rtl) {
                           return std::string(rtl.param ? "Rtl" : "Soft");
                         });

TEST_P(BadFramesTest, UnknownPacketTypesAreDropped) {
  OnBothModes([this] {
    ExpectAlive();
    for (const unsigned type : {0U, 1U, 4U, 5U, 15U, 16U, 31U}) {
      SCOPED_TRACE(type);
      Bytes packet = Request();
      SetType(packet, type);
      ExpectPacketDropped(packet, Statistic::kDropPdsType);
    }
  });
}

TEST_P(BadFramesTest, UnknownNextHeadersAreDropped) {
  OnBothModes([this] {
    ExpectAlive();
    for (const unsigned next : {0U, 1U, 2U, 6U, 7U, 12U, 15U}) {
      SCOPED_TRACE(next);
      Bytes packet = Request();
      SetNextHdr(packet, next);
      ExpectPacketDropped(packet, Statistic::kDropPdsType);
    }
  });
}

TEST_P(BadFramesTest, UnknownOpcodesAreAnsweredUnsupported) {
  OnBothModes([this] {
    ExpectAlive();
    const uint64_t pdcs = Count(Statistic::kRxPdcs);
    for (const unsigned opcode : {0x0fU, 0x10U, 0x2fU, 0x30U, 0x3fU}) {
      SCOPED_TRACE(opcode);
      const SesStd ses = Whole(static_cast<SesOpcode>(opcode), 8);
      ExpectError(Ask(ses, Pattern(8)), ses, ReturnCode::kUnsupportedOp);
    }
    ExpectAlive();
    EXPECT_EQ(Count(Statistic::kRxPdcs), pdcs);
  });
}

TEST_P(BadFramesTest, UnknownControlPacketsAreDropped) {
  OnBothModes([this] {
    ExpectAlive();
    for (const unsigned type : {10U, 11U, 15U}) {
      SCOPED_TRACE(type);
      ExpectPacketDropped(peer_->ControlPacket(static_cast<CpType>(type)),
                          Statistic::kDropPdsType);
    }
  });
}

TEST_P(BadFramesTest, ReservedBitsAreIgnored) {
  OnBothModes([this] {
    ExpectAlive();
    struct Bits {
      size_t at;
      uint8_t set;
    };
    // Flags of the request; reserved bits of its SES header.
    for (const Bits& bits : {Bits{1, 0x60}, Bits{1, 0x03}, Bits{kSes, 0xc0},
                             Bits{kSes + 8, 0xf0}, Bits{kSes + 10, 0xf0}}) {
      SCOPED_TRACE(bits.at);
      const SesStd ses = Whole(SesOpcode::kWrite, 8);
      std::memset(device_->buffer.data(), 0x55, 8);
      Bytes packet = peer_->RequestPacket(ses, Pattern(8));
      packet[bits.at] = static_cast<uint8_t>(packet[bits.at] | bits.set);
      ExpectTaken(peer_->FrameOf(packet), ses);
    }
  });
}

TEST_P(BadFramesTest, LengthsThatDisagreeAreDropped) {
  OnBothModes([this] {
    ExpectAlive();
    for (const int add : {-9, -1, 1, 9}) {
      SCOPED_TRACE(add);
      Bytes frame = peer_->FrameOf(Request());
      AddToHalf(frame, kUdp + 4, add);  // UDP's alone.
      ExpectDropped(frame, Statistic::kDropTruncated);
      frame = peer_->FrameOf(Request());
      AddToHalf(frame, kIp + 2, add);  // IP's alone, within the frame or not.
      FixIpChecksum(frame);
      frame.resize(frame.size() + (add == 1 ? 1 : 0));
      ExpectDropped(frame, Statistic::kDropTruncated);
    }
  });
}

TEST_P(BadFramesTest, PacketsShorterThanTheirHeadersAreDropped) {
  OnBothModes([this] {
    ExpectAlive();
    for (const size_t bytes : {size_t{12}, kSes + SesStd::kBytes - 1}) {
      SCOPED_TRACE(bytes);
      Bytes packet = Request();
      packet.resize(bytes);
      ExpectPacketDropped(packet, Statistic::kDropTruncated);
    }
    Bytes control = peer_->ControlPacket(CpType::kAckRequest);
    control.pop_back();
    ExpectPacketDropped(control, Statistic::kDropTruncated);
  });
}

TEST_P(BadFramesTest, ControlPacketsWithPayloadAreDropped) {
  OnBothModes([this] {
    ExpectAlive();
    Bytes control = peer_->ControlPacket(CpType::kAckRequest);
    control.push_back(0);
    ExpectPacketDropped(control, Statistic::kDropSes);
  });
}

TEST_P(BadFramesTest, CrcsOfTheOtherOrderAreDropped) {
  OnBothModes([this] {
    ExpectAlive();
    ExpectDropped(peer_->FrameOf(Request(), contract::CrcOrder::kLsbFirst),
                  Statistic::kDropCrc);
    Bytes frame = peer_->FrameOf(Request());
    frame.back() ^= 1;
    ExpectDropped(frame, Statistic::kDropCrc);
  });
}

TEST_P(BadFramesTest, PaddingBehindTheCrcIsIgnored) {
  OnBothModes([this] {
    ExpectAlive();
    for (const size_t padding : {1, 4, 100}) {
      SCOPED_TRACE(padding);
      const SesStd ses = Whole(SesOpcode::kWrite, 8);
      std::memset(device_->buffer.data(), 0x55, 16);
      Bytes frame = peer_->FrameOf(peer_->RequestPacket(ses, Pattern(8)));
      frame.resize(frame.size() + padding, 0xff);
      ExpectTaken(frame, ses);
      EXPECT_TRUE(MemoryIs(8, Bytes(8, 0x55)));
    }
  });
}

TEST_P(BadFramesTest, NacksOfPacketsNeverSentChangeNothing) {
  BeInitiator();
  for (const auto code : {NackCode::kPktNotRcvd, NackCode::kNoResource,
                          NackCode::kPdcHdrMismatch, NackCode::kUnexpEvent}) {
    for (const uint32_t ahead : {1U, 64U, 100000U}) {
      SCOPED_TRACE(testing::Message()
                   << static_cast<int>(code) << ' ' << ahead);
      const PeerPacket request = Posted();
      ExpectIgnored(
          request,
          peer_->NackPacket(request.request, code, request.request.psn + ahead),
          Statistic::kDropPsn);
    }
  }
}

TEST_P(BadFramesTest, AcksBeyondWhatWasSentAreDropped) {
  BeInitiator();
  for (const uint32_t ahead : {1U, 64U, 100000U}) {
    SCOPED_TRACE(ahead);
    const PeerPacket request = Posted();
    contract::wire::PdsRequest beyond = request.request;
    beyond.psn += ahead;
    ExpectIgnored(request, peer_->AckPacket(beyond, Good()),
                  Statistic::kDropPsn);
  }
}

TEST_P(BadFramesTest, AcksAndNacksOfUnknownFormAreDropped) {
  BeInitiator();
  for (const unsigned next : {1U, 3U, 6U, 7U, 15U}) {
    SCOPED_TRACE(next);
    PeerPacket request = Posted();
    Bytes packet = peer_->AckPacket(request.request, Good());
    SetNextHdr(packet, next);
    ExpectIgnored(request, packet, Statistic::kDropPdsType);
    request = Posted();
    packet = peer_->NackPacket(request.request, NackCode::kUnexpEvent,
                               request.request.psn);
    SetNextHdr(packet, next);
    ExpectIgnored(request, packet, Statistic::kDropPdsType);
  }
  const PeerPacket request = Posted();
  Bytes packet = peer_->AckPacket(request.request, Good());
  packet.push_back(0);
  ExpectIgnored(request, packet, Statistic::kDropSes);
}

TEST_P(BadFramesTest, UnknownNackCodesEndTheMessageAndThePdc) {
  BeInitiator();
  for (const unsigned code : {0U, 12U, 27U, 200U, 255U}) {
    SCOPED_TRACE(code);
    ExpectSent(Posted());
    const uint64_t pdcs = Count(Statistic::kTxPdcs);
    const PeerPacket request = Posted();
    peer_->Send(peer_->NackPacket(request.request, static_cast<NackCode>(code),
                                  request.request.psn));
    const auto sent = Sent();
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->status, Status::kPeerRejected);
    EXPECT_EQ(sent->detail, code);
    // Another PDC has its place.
    ExpectSent(Posted());
    EXPECT_EQ(Count(Statistic::kTxPdcs), pdcs + 1);
  }
}

// Their SES headers, extensions and payloads, on a PDC of the peer's.
TEST_P(BadFramesTest, WorkedFramesAreAnsweredAsStated) {
  OnBothModes([this] {
    size_t requests = 0;
    for (const test::WorkedFrame& frame : test::kWorkedFrames) {
      if (!frame.request) {
        continue;
      }
      ++requests;
      SCOPED_TRACE(testing::Message() << frame.name << ", " << frame.title);
      ExpectAlive();  // A SYN is routed by its endpoint.
      const std::vector<uint8_t> packet = test::WorkedPacket(frame);
      const size_t ses_at = frame.ses - frame.pds;
      const SesStd ses = SesStd::Decode(packet.data() + ses_at);
      const PeerPacket answer =
          Ask(ses, Bytes(packet.begin() +
                             static_cast<ptrdiff_t>(ses_at + SesStd::kBytes),
                         packet.end()));
      if (*frame.request == ReturnCode::kOk) {
        ExpectSuccess(answer, ses);
      } else {
        const bool tags = ses.opcode == SesOpcode::kTaggedSend ||
                          ses.opcode == SesOpcode::kDeferrableTsend ||
                          ses.opcode == SesOpcode::kDeferrableRtr;
        ReturnCode code = tags ? CodeWithoutTags(ses.opcode) : *frame.request;
        if (code == ReturnCode::kBadIndex && ses.rel != 0) {
          code = ReturnCode::kBadJobId;  // No endpoint of it is named in a job.
        }
        ExpectError(answer, ses, code);
      }
    }
    EXPECT_GE(requests, 10U);
    ExpectAlive();
  });
}

}  // namespace
}  // namespace heddle::sim::rtl
