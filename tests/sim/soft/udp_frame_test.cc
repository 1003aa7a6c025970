// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/wire/udp_frame.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/random.h"
#include "hw/sim/soft/frame/frame_codec.h"

namespace heddle::sim::soft {
namespace {

namespace wire = contract::wire;

struct Case {
  UdpFlow flow;
  std::vector<uint8_t> payload;
};

Case RandomCase(uint64_t seed, bool ipv6) {
  Random random(seed);
  Case out;
  out.flow.source = ipv6 ? WireAddress(random.Next(), random.Next())
                         : WireAddress(static_cast<uint32_t>(random.Next()));
  out.flow.destination =
      ipv6 ? WireAddress(random.Next(), random.Next())
           : WireAddress(static_cast<uint32_t>(random.Next()));
  out.flow.source_port = static_cast<uint16_t>(49152 + random.Below(16384));
  out.flow.destination_port = contract::kUetUdpPort;
  out.flow.tos = static_cast<uint8_t>(random.Below(64) << kDscpShift);
  out.payload.resize(wire::PdsAck::kBytes + random.Below(3000));
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
  port.crc = 1;
  port.enable = 1;
  FrameCodec codec;
  codec.Configure(port);
  std::vector<uint8_t> buffer(FrameCodec::kHeadroom + each.payload.size() +
                              FrameCodec::kTailroom);
  std::copy(each.payload.begin(), each.payload.end(),
            buffer.begin() + FrameCodec::kHeadroom);
  FrameHeader header;
  header.destination = {.lo = each.flow.destination.lo,
                        .hi = each.flow.destination.hi,
                        .ipv6 = each.flow.destination.ipv6};
  header.source_port = each.flow.source_port;
  header.dscp = each.flow.tos >> kDscpShift;
  const auto frame = codec.Build(header, buffer, each.payload.size());
  return {frame.begin(), frame.end()};
}

TEST(UdpFrameTest, HeadersChecksumsAndCrcAreThoseOfANic) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Case each = RandomCase(seed, seed % 2 == 1);
    const std::vector<uint8_t> expected = FrameOfNic(each);
    // A NIC may leave the ECN field as it is.
    const uint8_t* const ip = expected.data() + wire::Ethernet::kBytes;
    const int ecn = (ip[0] >> 4 == 6 ? ip[1] >> 4 : ip[1]) & kEcnMask;
    each.flow.tos = static_cast<uint8_t>(each.flow.tos | ecn);
    const uint32_t crc = DatagramCrc(each.flow, each.payload);
    for (size_t i = 0; i < contract::kCrcBytes; ++i) {
      each.payload.push_back(static_cast<uint8_t>(crc >> 8 * i));
    }
    Frame frame;
    BuildUdpFrame(each.flow, each.payload, &frame);
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
}  // namespace heddle::sim::soft
