// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_frame.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/base/random.h"
#include "hw/soft/frame/crc32c.h"
#include "hw/soft/frame/frame_codec.h"
#include "hw/soft/frame/internet_checksum.h"

namespace heddle::soft::udp {

using frame::FrameCodec;

namespace {

struct Case {
  UdpFlow flow;
  std::vector<uint8_t> payload;
};

Case RandomCase(uint64_t seed, bool ipv6) {
  sim::base::Random random(seed);
  Case out;
  out.flow.source =
      ipv6 ? sim::frame::WireAddress(random.Next(), random.Next())
           : sim::frame::WireAddress(static_cast<uint32_t>(random.Next()));
  out.flow.destination =
      ipv6 ? sim::frame::WireAddress(random.Next(), random.Next())
           : sim::frame::WireAddress(static_cast<uint32_t>(random.Next()));
  out.flow.source_port = static_cast<uint16_t>(49152 + random.Below(16384));
  out.flow.destination_port = contract::kUetUdpPort;
  out.flow.tos = static_cast<uint8_t>(random.Below(64) << kDscpShift);
  out.payload.resize(contract::wire::PdsAck::kBytes + random.Below(3000));
  for (uint8_t& byte : out.payload) {
    byte = static_cast<uint8_t>(random.Next());
  }
  return out;
}

// The frame that a NIC would send.
std::vector<uint8_t> FrameOfNic(const Case& each) {
  contract::PortCfg port{};
  port.local_fa_lo = each.flow.source.lo;
  port.local_fa_hi = each.flow.source.hi;
  port.ipv6 = each.flow.source.ipv6 ? 1 : 0;
  port.udp_port = each.flow.destination_port;
  port.crc = contract::CrcOrder::kMsbFirst;
  port.enable = 1;
  FrameCodec codec;
  codec.Configure(port);
  std::vector<uint8_t> buffer(FrameCodec::kHeadroom + each.payload.size() +
                              FrameCodec::kTailroom);
  std::copy(each.payload.begin(), each.payload.end(),
            buffer.begin() + FrameCodec::kHeadroom);
  frame::FrameHeader header;
  header.destination = {.lo = each.flow.destination.lo,
                        .hi = each.flow.destination.hi,
                        .ipv6 = each.flow.destination.ipv6};
  header.entropy = each.flow.source_port;
  header.dscp = each.flow.tos >> kDscpShift;
  const auto frame = codec.Build(header, buffer, each.payload.size());
  return {frame.begin(), frame.end()};
}

// Of a datagram with its pseudo header.
uint16_t UdpSum(const sim::frame::Frame& frame) {
  const uint8_t* const ip = frame.data() + contract::wire::Ethernet::kBytes;
  const bool ipv6 = ip[0] >> 4 == 6;
  const std::span<const uint8_t> covered(ip + (ipv6 ? 8 : 12),
                                         frame.data() + frame.size());
  const auto bytes = static_cast<uint16_t>(covered.size() - (ipv6 ? 32 : 8));
  return frame::ChecksumFold(frame::ChecksumPart(covered) +
                             frame::ChecksumWord(bytes) +
                             frame::ChecksumWord(17));
}

TEST(UdpFrameTest, HeadersAndCrcAreThoseOfANicWithAUdpChecksum) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Case each = RandomCase(seed, seed % 2 == 1);
    const std::vector<uint8_t> expected = FrameOfNic(each);
    // A NIC may leave the ECN field as it is.
    const uint8_t* const ip =
        expected.data() + contract::wire::Ethernet::kBytes;
    const int ecn = (ip[0] >> 4 == 6 ? ip[1] >> 4 : ip[1]) & kEcnMask;
    each.flow.tos = static_cast<uint8_t>(each.flow.tos | ecn);
    const uint32_t crc = DatagramCrc(each.flow, each.payload);
    each.payload.resize(each.payload.size() + contract::kCrcBytes);
    frame::StoreCrc(contract::CrcOrder::kMsbFirst, crc,
                    &each.payload[each.payload.size() - contract::kCrcBytes]);
    sim::frame::Frame frame;
    BuildUdpFrame(each.flow, each.payload, &frame);
    EXPECT_EQ(UdpSum(frame), 0xffff);
    const size_t checksum =
        contract::wire::Ethernet::kBytes + (ip[0] >> 4 == 6 ? 40 : 20) + 6;
    frame[checksum] = frame[checksum + 1] = 0;  // As a NIC sends it.
    ASSERT_LE(frame.size(), expected.size());
    constexpr size_t kMacs = 12;
    EXPECT_TRUE(std::equal(frame.begin() + kMacs, frame.end(),
                           expected.begin() + kMacs))
        << "all but the MAC addresses";
    EXPECT_EQ(UdpFrameFlow(frame), each.flow);
    EXPECT_TRUE(std::ranges::equal(UdpFramePayload(frame), each.payload));
  }
}

TEST(UdpFrameTest, TheCrcCoversAddressesAndPortsButNotTheMark) {
  for (const bool ipv6 : {false, true}) {
    const Case each = RandomCase(7, ipv6);
    const uint32_t crc = DatagramCrc(each.flow, each.payload);
    UdpFlow flow = each.flow;
    flow.tos = 0xff;
    EXPECT_EQ(DatagramCrc(flow, each.payload), crc);
    flow.source.lo ^= 1;
    EXPECT_NE(DatagramCrc(flow, each.payload), crc);
    flow = each.flow;
    flow.destination.lo ^= 1;
    EXPECT_NE(DatagramCrc(flow, each.payload), crc);
    flow = each.flow;
    flow.source_port ^= 1;
    EXPECT_NE(DatagramCrc(flow, each.payload), crc);
    flow = each.flow;
    flow.destination_port ^= 1;
    EXPECT_NE(DatagramCrc(flow, each.payload), crc);
  }
}

}  // namespace
}  // namespace heddle::soft::udp
