// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/shared_mac.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/frame/test_frames.h"

namespace heddle::sim::pins {
namespace {

constexpr uint32_t kBusBytes = 64;
constexpr uint32_t kReceiver = 0x0a000063;
constexpr uint16_t kPort = 4242;
constexpr uint32_t kFrames = 200;

class SharedMacTest : public testing::Test {
 protected:
  std::unique_ptr<wire::SharedWire> Attach(uint32_t ip) const {
    std::string message;
    auto wire = wire::SharedWire::Attach({.name = name_, .ip = ip}, &message);
    EXPECT_TRUE(wire.ok()) << message;
    return wire.ok() ? std::move(wire.value()) : nullptr;
  }
  // Sizes of the frames, all different, that arrive of those sent by `mac`.
  static std::vector<size_t> Arrivals(SharedMac& mac,
                                      wire::SharedWire& receiver) {
    std::vector<size_t> sizes;
    frame::Frame frame;
    for (uint32_t i = 0; i < kFrames; ++i) {
      EXPECT_TRUE(mac.TransmitReady());
      mac.Transmit(frame::MakeSyn(kReceiver, kPort, i), /*last=*/true);
      while (receiver.Receive(&frame)) {
        sizes.push_back(frame.size());
      }
    }
    return sizes;
  }
  // The same of functions at `addresses`, on a new wire with the same faults.
  std::vector<std::vector<size_t>> Run(
      const std::vector<uint32_t>& addresses) const {
    const auto receiver = Attach(kReceiver);
    EXPECT_TRUE(receiver->ClaimPort({kPort}).granted);
    fault::LineFaults faults;
    faults.tx.loss = 0.5;
    std::vector<std::unique_ptr<wire::SharedWire>> wires;
    for (const uint32_t ip : addresses) {
      wires.push_back(Attach(ip));
    }
    std::vector<std::vector<size_t>> arrivals;
    for (const auto& wire : wires) {
      SharedMac mac(wire.get(), kBusBytes, faults, nullptr);
      arrivals.push_back(Arrivals(mac, *receiver));
    }
    return arrivals;
  }

  const std::string name_ =
      "mac-" + std::to_string(getpid()) + "-" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(SharedMacTest, PortsWithOneSeedDrawTheirOwnFaultsAndTheSameAgain) {
  const auto first = Run({1, 2, 2});
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[1], first[2]) << "of one address";
  EXPECT_NE(first[0], first[2]);
  EXPECT_EQ(Run({1, 2, 2}), first);
}

TEST_F(SharedMacTest, FaultsOfAnAddressDoNotDependOnTheOrderOfAttaching) {
  const auto first = Run({1, 2});
  const auto second = Run({2, 1});
  EXPECT_EQ(second[0], first[1]);
  EXPECT_EQ(second[1], first[0]);
}

}  // namespace
}  // namespace heddle::sim::pins
