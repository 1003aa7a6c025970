// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/pace.h"

#include <gtest/gtest.h>

namespace heddle::soft::udp {
namespace {

constexpr uint64_t kRtoNs = 20'000'000;

TEST(PaceTest, OnANetworkTheWindowFitsABufferThatKernelsGrantUnasked) {
  const Interface network{.name = "eth0"};
  constexpr uint32_t kUnasked = 212'992;
  for (const uint32_t granted : {kUnasked, 64U << 20}) {
    EXPECT_LT(PaceOf(network, granted, kRtoNs).cwnd_bytes, kUnasked);
  }
}

TEST(PaceTest, OnTheLoopbackTheWindowFollowsTheOwnBuffer) {
  const Interface loopback{.name = "lo", .loopback = true};
  const auto window = [&](uint32_t granted) {
    return PaceOf(loopback, granted, kRtoNs).cwnd_bytes;
  };
  EXPECT_EQ(window(0), PaceOf({}, 0, kRtoNs).cwnd_bytes);
  EXPECT_EQ(window(600'000), 300'000U);
  EXPECT_EQ(window(64U << 20), 750'000U);
}

TEST(PaceTest, TheAckDelayStaysFarBelowTheRto) {
  for (const uint64_t rto_ns : {kRtoNs, uint64_t{1'000'000}, uint64_t{1000}}) {
    EXPECT_LE(PaceOf({}, 0, rto_ns).ack_delay_ns, rto_ns / 16);
  }
  EXPECT_EQ(PaceOf({}, 0, kRtoNs).ack_delay_ns, 200'000U);
}

}  // namespace
}  // namespace heddle::soft::udp
