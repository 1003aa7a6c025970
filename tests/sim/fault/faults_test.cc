// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/fault/faulty_line.h"
#include "tests/sim/frame/test_frames.h"

namespace heddle::sim::fault {
namespace {

constexpr uint64_t kHold = 1000;

std::vector<uint32_t> Send(const FaultOptions& options, uint32_t frames) {
  FaultyLine line(options, kHold);
  std::vector<LineFrame> out;
  for (uint32_t i = 0; i < frames; ++i) {
    line.Push(
        frame::Frame{static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8),
                     static_cast<uint8_t>(i >> 16)},
        /*now=*/0, &out);
  }
  line.Release(kHold, &out);
  EXPECT_EQ(line.next(), UINT64_MAX);
  std::vector<uint32_t> numbers;
  for (const LineFrame& frame : out) {
    numbers.push_back(frame.bytes[0] | frame.bytes[1] << 8 |
                      frame.bytes[2] << 16);
  }
  return numbers;
}

TEST(FaultsTest, NoFaultsNoChange) {
  const auto numbers = Send({}, 1000);
  ASSERT_EQ(numbers.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST(FaultsTest, SameSeedSameFaults) {
  const FaultOptions options{
      .seed = 7, .loss = 0.1, .duplicate = 0.1, .reorder = 0.1};
  FaultOptions other = options;
  other.seed = 8;
  EXPECT_EQ(Send(options, 1000), Send(options, 1000));
  EXPECT_NE(Send(options, 1000), Send(other, 1000));
}

TEST(FaultsTest, EachDirectionOfEachPortHasItsOwnFaults) {
  const FaultOptions options{
      .seed = 7, .loss = 0.1, .duplicate = 0.1, .reorder = 0.1};
  const LineFaults faults{.tx = options, .rx = options};
  const std::vector<std::pair<frame::WireAddress, uint32_t>> ports = {
      {0x0a000001, 0},
      {0x0a000001, 1},
      {0x0a000002, 0},
      {frame::WireAddress(0, 0x0a000001), 0},
      {frame::WireAddress(0x0a000001, 0), 0}};
  std::set<std::vector<uint32_t>> runs;
  for (const auto& [address, ordinal] : ports) {
    const LineFaults port = faults.OfPort(address, ordinal);
    const LineFaults again = faults.OfPort(address, ordinal);
    EXPECT_EQ(Send(port.tx, 1000), Send(again.tx, 1000));
    EXPECT_EQ(Send(port.rx, 1000), Send(again.rx, 1000));
    runs.insert(Send(port.tx, 1000));
    runs.insert(Send(port.rx, 1000));
  }
  EXPECT_EQ(runs.size(), 2 * ports.size());
}

TEST(FaultsTest, EachFaultHappensAboutAsOftenAsAsked) {
  constexpr uint32_t kFrames = 20000;
  const auto lossy =
      Send({.seed = 1, .loss = 0.1, .duplicate = 0, .reorder = 0}, kFrames);
  EXPECT_NEAR(static_cast<double>(lossy.size()), kFrames * 0.9, 200);
  const auto doubled =
      Send({.seed = 1, .loss = 0, .duplicate = 0.1, .reorder = 0}, kFrames);
  EXPECT_NEAR(static_cast<double>(doubled.size()), kFrames * 1.1, 200);
}

TEST(FaultsTest, ReorderedFramesAreOvertakenByAFewOnly) {
  constexpr uint32_t kFrames = 5000;
  const auto numbers =
      Send({.seed = 1, .loss = 0, .duplicate = 0, .reorder = 0.05}, kFrames);
  ASSERT_EQ(numbers.size(), kFrames) << "none may be lost";
  uint32_t displaced = 0;
  for (uint32_t i = 0; i < kFrames; ++i) {
    const uint32_t distance = numbers[i] > i ? numbers[i] - i : i - numbers[i];
    EXPECT_LE(distance, FaultInjector::kMaxOvertaking + 1);
    displaced += numbers[i] < i && distance > 0;
  }
  EXPECT_GT(displaced, kFrames / 50);
}

namespace wire = contract::wire;
constexpr size_t kUdpAt = wire::Ethernet::kBytes + wire::Ipv4::kBytes;
constexpr size_t kPayloadAt = kUdpAt + wire::Udp::kBytes;

frame::Frame RandomFrame(uint32_t number) {
  frame::Frame frame = frame::MakeAck(0x0a000001, 0x1234, number, number % 700);
  base::Random random(number);
  for (size_t i = kPayloadAt + wire::PdsAck::kBytes; i < frame.size(); ++i) {
    frame[i] = static_cast<uint8_t>(random.Next());
  }
  return frame;
}

// The internet checksum of everything behind Ethernet: header and datagram.
uint32_t InternetSum(const frame::Frame& frame) {
  uint32_t sum = 0;
  for (size_t i = wire::Ethernet::kBytes; i < frame.size(); ++i) {
    const bool high = (i - wire::Ethernet::kBytes) % 2 == 0;
    sum += static_cast<uint32_t>(frame[i]) << (high ? 8 : 0);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

TEST(FaultsTest, SilentCorruptionIsInTheUdpPayloadAndKeepsItsChecksum) {
  for (uint32_t number = 0; number < 2000; ++number) {
    SCOPED_TRACE(number);
    const frame::Frame sent = RandomFrame(number);
    frame::Frame frame = sent;
    ASSERT_TRUE(CorruptSilently(number, &frame));
    EXPECT_NE(frame, sent);
    ASSERT_EQ(frame.size(), sent.size());
    EXPECT_TRUE(
        std::equal(frame.begin(), frame.begin() + kPayloadAt, sent.begin()))
        << "no header below UET changes";
    EXPECT_EQ(InternetSum(frame), InternetSum(sent));
  }
}

TEST(FaultsTest, PaddingBehindTheDatagramIsNotWhatIsCorrupted) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    frame::Frame frame = frame::MakeAck(0x0a000001, 0x1234);
    const size_t bytes = frame.size();
    frame.resize(bytes + 64, 0xff);
    ASSERT_TRUE(CorruptSilently(seed, &frame));
    EXPECT_TRUE(std::all_of(frame.begin() + static_cast<std::ptrdiff_t>(bytes),
                            frame.end(), [](uint8_t b) { return b == 0xff; }));
  }
}

TEST(FaultsTest, NativeIpIsCorruptedBehindItsEntropyHeader) {
  for (uint32_t number = 0; number < 200; ++number) {
    SCOPED_TRACE(number);
    const frame::Frame sent = frame::AsNativeIp(RandomFrame(number), 254);
    frame::Frame frame = sent;
    EXPECT_FALSE(CorruptSilently(number, &frame)) << "another number";
    ASSERT_TRUE(CorruptSilently(number, &frame, 254));
    EXPECT_NE(frame, sent);
    EXPECT_TRUE(
        std::equal(frame.begin(), frame.begin() + kUdpAt + 4, sent.begin()));
  }
}

// What a line does to it follows from its own setting.
TEST(FaultsTest, ALineFindsNativeIpUnderItsNumber) {
  FaultOptions options{.corrupt = 1, .ecn = 1, .ip_protocol = 254};
  FaultyLine line(options, kHold);
  std::vector<LineFrame> out;
  const frame::Frame sent = frame::AsNativeIp(RandomFrame(600), 254);
  line.Push(sent, /*now=*/0, &out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].route.kind, frame::Route::Kind::kBlock);
  EXPECT_NE(frame::Frame(out[0].bytes.begin() + kUdpAt, out[0].bytes.end()),
            frame::Frame(sent.begin() + kUdpAt, sent.end()));
  EXPECT_EQ(out[0].bytes[wire::Ethernet::kBytes + 1] & 3, 3);
}

TEST(FaultsTest, FramesThatAreNotUdpAreNotCorruptedSilently) {
  const frame::Frame sent(64, 0x5a);
  frame::Frame frame = sent;
  EXPECT_FALSE(CorruptSilently(1, &frame));
  EXPECT_EQ(frame, sent);
}

TEST(FaultsTest, DamageIsAsOftenAsAskedAndGoesWhereTheFrameWasSent) {
  constexpr uint32_t kFrames = 20000;
  FaultOptions options;
  options.corrupt = 0.02;
  options.bad_fcs = 0.01;
  FaultyLine line(options, kHold);
  std::vector<LineFrame> out;
  for (uint32_t i = 0; i < kFrames; ++i) {
    line.Push(RandomFrame(i), /*now=*/0, &out);
  }
  ASSERT_EQ(out.size(), kFrames) << "none is lost or doubled";
  uint32_t silent = 0;
  uint32_t bad = 0;
  for (uint32_t i = 0; i < kFrames; ++i) {
    const frame::Frame sent = RandomFrame(i);
    const LineFrame& frame = out[i];
    bad += frame.bad_fcs;
    silent += !frame.bad_fcs && frame.bytes != sent;
    EXPECT_EQ(frame.bytes.size(), sent.size());
    EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + wire::Ethernet::kBytes,
                           frame.bytes.begin()));
    EXPECT_EQ(frame.route.kind, frame::Route::Kind::kBlock);
    EXPECT_EQ(frame.route.ip, frame::WireAddress(0x0a000001));
    EXPECT_EQ(frame.route.block, 0x1234 / contract::kPdcidBlock);
  }
  EXPECT_NEAR(silent, kFrames * 0.02, 80);
  EXPECT_NEAR(bad, kFrames * 0.01, 60);
  EXPECT_EQ(line.injector().bad_fcs(), bad);
  EXPECT_GE(line.injector().corrupted(), silent);
}

TEST(FaultsTest, AFrameHeldForReorderingLeavesInTimeWithoutSuccessors) {
  FaultOptions options;
  options.reorder = 1;
  FaultyLine line(options, kHold);
  std::vector<LineFrame> out;
  line.Push(RandomFrame(1), /*now=*/5, &out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(line.next(), 5 + kHold);
  line.Release(5 + kHold - 1, &out);
  EXPECT_TRUE(out.empty());
  line.Release(5 + kHold, &out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].bytes, RandomFrame(1));
  EXPECT_EQ(line.next(), UINT64_MAX);
}

// A frame whose IPv4 header checksum is right.
// Of an IPv4 header's 16-bit words.
uint32_t IpSum(const uint8_t* ip) {
  uint32_t sum = 0;
  for (size_t i = 0; i < wire::Ipv4::kBytes; i += 2) {
    sum += static_cast<uint32_t>(ip[i] << 8 | ip[i + 1]);
  }
  while (sum >> 16 != 0) {
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

frame::Frame WithIpChecksum(frame::Frame frame) {
  const uint32_t sum = IpSum(frame.data() + wire::Ethernet::kBytes);
  frame[wire::Ethernet::kBytes + 10] = static_cast<uint8_t>(~sum >> 8);
  frame[wire::Ethernet::kBytes + 11] = static_cast<uint8_t>(~sum);
  return frame;
}

TEST(FaultsTest, AMarkChangesTheEcnFieldAndTheHeaderChecksumAlone) {
  for (uint32_t number = 0; number < 1000; ++number) {
    SCOPED_TRACE(number);
    frame::Frame sent = RandomFrame(number);
    // All TOS fields, and a header that varies.
    sent[wire::Ethernet::kBytes + 1] = static_cast<uint8_t>(number);
    sent[wire::Ethernet::kBytes + 4] = static_cast<uint8_t>(number >> 2);
    sent = WithIpChecksum(sent);
    frame::Frame frame = sent;
    const bool was_marked = number % 4 == 3;
    EXPECT_EQ(MarkCongestion(&frame), !was_marked);
    frame::Frame expected = sent;
    expected[wire::Ethernet::kBytes + 1] |= 3;
    expected[wire::Ethernet::kBytes + 10] = 0;
    expected[wire::Ethernet::kBytes + 11] = 0;
    EXPECT_EQ(frame, WithIpChecksum(expected));
  }
}

TEST(FaultsTest, AMarkStandsInTheTrafficClassOfIpv6AndBehindAVlanTag) {
  for (const bool vlan : {false, true}) {
    SCOPED_TRACE(vlan);
    const size_t at = wire::Ethernet::kBytes + (vlan ? wire::Vlan::kBytes : 0);
    frame::Frame frame = frame::MakeSyn6(frame::WireAddress(1, 2), 77, vlan);
    const frame::Frame sent = frame;
    EXPECT_TRUE(MarkCongestion(&frame));
    EXPECT_EQ(wire::Ipv6::Decode(frame.data() + at).ecn, 3);
    EXPECT_FALSE(MarkCongestion(&frame));
    for (size_t i = 0; i < frame.size(); ++i) {
      EXPECT_EQ(frame[i], sent[i] | (i == at + 1 ? 0x30 : 0)) << i;
    }
    frame = frame::MakeSyn(0x0a000001, 77, 8, vlan);
    EXPECT_TRUE(MarkCongestion(&frame));
    EXPECT_EQ(wire::Ipv4::Decode(frame.data() + at).ecn, 3);
  }
}

TEST(FaultsTest, ATrimKeeps16BytesOfPdsAndWritesTheIpHeaderAlone) {
  constexpr uint8_t kDscp = 44;
  for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool ipv6 = (form & 1) != 0;
    const bool vlan = (form & 2) != 0;
    const bool native = (form & 4) != 0;
    const size_t kept = native ? 20 : 24;
    frame::Frame frame =
        ipv6 ? frame::MakeSyn6(frame::WireAddress(1, 2), 77, vlan)
             : frame::MakeSyn(0x0a000001, 77, 800, vlan);
    if (native) {
      frame = frame::AsNativeIp(frame);
    }
    const frame::Frame sent = frame;
    ASSERT_TRUE(TrimRequest(kDscp, &frame));
    const size_t at = wire::Ethernet::kBytes + (vlan ? wire::Vlan::kBytes : 0);
    const size_t l4 = at + (ipv6 ? wire::Ipv6::kBytes : wire::Ipv4::kBytes);
    ASSERT_EQ(frame.size(), std::max<size_t>(l4 + kept, 60));
    frame::Frame expected = sent;
    expected.resize(l4 + kept);
    if (ipv6) {
      auto ip = wire::Ipv6::Decode(expected.data() + at);
      ip.dscp = kDscp;
      ip.payload_length = static_cast<uint16_t>(kept);
      ip.Encode(expected.data() + at);
    } else {
      auto ip = wire::Ipv4::Decode(expected.data() + at);
      ip.dscp = kDscp;
      ip.total_length = static_cast<uint16_t>(20 + kept);
      ip.checksum = 0;
      ip.Encode(expected.data() + at);
      const uint32_t sum = IpSum(expected.data() + at);
      expected[at + 10] = static_cast<uint8_t>(~sum >> 8);
      expected[at + 11] = static_cast<uint8_t>(~sum);
    }
    expected.resize(frame.size());
    EXPECT_EQ(frame, expected);
  }
  frame::Frame frame = frame::MakeAck(0x0a000001, 0, 7);
  frame.resize(200);
  const frame::Frame sent = frame;
  EXPECT_FALSE(TrimRequest(kDscp, &frame)) << "no request";
  EXPECT_EQ(frame, sent);
}

TEST(FaultsTest, FramesThatAreNotUdpAreNotMarked) {
  frame::Frame frame = frame::MakeArp(0xffffffffffff, 1);
  const frame::Frame sent = frame;
  EXPECT_FALSE(MarkCongestion(&frame));
  EXPECT_EQ(frame, sent);
}

TEST(FaultsTest, DamageDoesNotShiftTheOtherFaults) {
  FaultOptions options{.seed = 3,
                       .loss = 0.1,
                       .duplicate = 0.1,
                       .reorder = 0.1,
                       .corrupt = 0,
                       .bad_fcs = 0};
  FaultInjector plain(options);
  options.corrupt = 0.5;
  options.bad_fcs = 0.5;
  FaultInjector damaging(options);
  for (int i = 0; i < 1000; ++i) {
    const FaultDecision a = plain.Next();
    const FaultDecision b = damaging.Next();
    EXPECT_FALSE(a.damaged());
    EXPECT_EQ(a.lost, b.lost);
    EXPECT_EQ(a.duplicated, b.duplicated);
    EXPECT_EQ(a.overtaken_by, b.overtaken_by);
    EXPECT_FALSE(b.lost && b.damaged());
  }
}

}  // namespace
}  // namespace heddle::sim::fault
