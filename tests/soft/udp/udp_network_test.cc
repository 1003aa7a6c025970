// SPDX-License-Identifier: Apache-2.0
// What a UDP wire makes of the interface it is on: each test in a network
// namespace of its own.
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/soft/udp/udp_test_wires.h"

namespace heddle::soft::udp {
namespace {

using contract::Statistic;

constexpr uint32_t kLoopback = 0x7f000001;

bool SetLoopback(int mtu, bool up) {
  const sim::base::OwnedFd fd(socket(AF_INET, SOCK_DGRAM, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_mtu = mtu;
  if (ioctl(fd.get(), SIOCSIFMTU, &request) != 0) {
    return false;
  }
  request.ifr_flags = up ? IFF_UP : 0;
  return ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

// Runs `body` in a child with a network of its own, a loopback of `mtu`.
void InNetwork(int mtu, const std::function<void()>& body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int flags =
        getuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    if (unshare(flags) != 0 || !SetLoopback(mtu, true)) {
      std::perror("network namespace");
      _exit(2);
    }
    body();
    std::fflush(stdout);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "see above";
}

TEST(UdpNetworkTest, ThePayloadMtuFollowsTheInterface) {
  for (const auto& [mtu, payload] :
       std::vector<std::pair<int, uint32_t>>{{65536, 8192},
                                             {9000, 8192},
                                             {8191, 4096},
                                             {4400, 4096},
                                             {1500, 1024},
                                             {1188, 1024}}) {
    SCOPED_TRACE(mtu);
    InNetwork(mtu, [payload = payload] {
      const auto wire = OpenWire({.ip = kLoopback});
      ASSERT_NE(wire, nullptr);
      EXPECT_EQ(wire->payload_mtu(), payload);
    });
  }
}

TEST(UdpNetworkTest, APayloadMtuThatIsNamedMustFit) {
  InNetwork(4400, [] {
    std::string message;
    auto wire = UdpWire::Open({.ip = kLoopback, .payload_mtu = 2048}, &message);
    ASSERT_TRUE(wire.ok()) << message;
    EXPECT_EQ(wire.value()->payload_mtu(), 2048U) << "it wins when it fits";
    wire = UdpWire::Open({.ip = kLoopback, .payload_mtu = 8192}, &message);
    ASSERT_FALSE(wire.ok());
    EXPECT_EQ(wire.error(), Errno{EMSGSIZE});
    EXPECT_EQ(message,
              "payload MTU 8192 needs an MTU of 8348 bytes, interface lo has "
              "4400: raise it, or set FI_HEDDLE_PAYLOAD_MTU to 4096");
  });
}

TEST(UdpNetworkTest, AnInterfaceTooNarrowForAnyPayloadIsRefused) {
  InNetwork(1100, [] {
    std::string message;
    const auto wire = UdpWire::Open({.ip = kLoopback}, &message);
    ASSERT_FALSE(wire.ok());
    EXPECT_EQ(wire.error(), Errno{EMSGSIZE});
    EXPECT_NE(message.find("interface lo has 1100"), std::string::npos)
        << message;
    EXPECT_NE(message.find("FI_HEDDLE_IP"), std::string::npos) << message;
  });
}

TEST(UdpNetworkTest, AnAddressOfNoInterfaceIsRefused) {
  std::string message;
  const auto wire = UdpWire::Open({.ip = 0xc0000201}, &message);
  ASSERT_FALSE(wire.ok());
  EXPECT_EQ(wire.error(), Errno{EADDRNOTAVAIL});
  EXPECT_NE(message.find("192.0.2.1"), std::string::npos) << message;
  EXPECT_NE(message.find("FI_HEDDLE_IP"), std::string::npos) << message;
}

// Sends a datagram of the largest payload to itself until the wire has looked
// at the interface.
void SendLargest(UdpWire& wire, uint16_t port) {
  const wire::Path path{.destination = sim::frame::WireAddress(kLoopback),
                        .port = port};
  SendBytes(wire, path, Numbered(1, wire.payload_mtu()));
  wire.Flush();
  wire.Flush();
}

TEST(UdpNetworkTest, DatagramsThatNoLongerFitAreLostNeverFragmented) {
  InNetwork(9000, [] {
    const auto wire = OpenWire({.ip = kLoopback});
    ASSERT_NE(wire, nullptr);
    const auto port = static_cast<uint16_t>(wire->ClaimPort({0}).port);
    wire::Datagram datagram;
    SendLargest(*wire, port);
    ASSERT_TRUE(Await(*wire, &datagram));
    ASSERT_TRUE(SetLoopback(1500, true));
    SendLargest(*wire, port);
    EXPECT_FALSE(wire->Receive(&datagram));
    EXPECT_EQ(wire->network_errors().too_big, 1U);
    EXPECT_FALSE(wire->link_up()) << "it cannot carry what it has to";
    // What fits still passes, and all does when the MTU is back.
    SendBytes(*wire,
              {.destination = sim::frame::WireAddress(kLoopback), .port = port},
              Numbered(2, 100));
    wire->Flush();
    ASSERT_TRUE(Await(*wire, &datagram));
    ASSERT_TRUE(SetLoopback(9000, true));
    while (!wire->link_up()) {
      wire->Flush();  // Looks every tenth of a second.
    }
    SendLargest(*wire, port);
    EXPECT_TRUE(Await(*wire, &datagram));
  });
}

TEST(UdpNetworkTest, JoinedDatagramsThatNoLongerFitAreEachLost) {
  InNetwork(9000, [] {
    const auto wire = OpenWire({.ip = kLoopback});
    ASSERT_NE(wire, nullptr);
    const auto port = static_cast<uint16_t>(wire->ClaimPort({0}).port);
    ASSERT_TRUE(SetLoopback(1500, true));
    const wire::Path path{.destination = sim::frame::WireAddress(kLoopback),
                          .port = port};
    for (uint32_t i = 0; i < 5; ++i) {
      SendBytes(*wire, path, Numbered(i, 4000));
    }
    SendBytes(*wire, path, Numbered(5, 100));
    wire->Flush();
    wire::Datagram datagram;
    ASSERT_TRUE(Await(*wire, &datagram));
    EXPECT_EQ(Copy(datagram), Numbered(5, 100));
    EXPECT_EQ(wire->network_errors().too_big, 5U);
    EXPECT_EQ(wire->statistic(Statistic::kTxFrames), 1U);
  });
}

TEST(UdpNetworkTest, AnInterfaceThatGoesDownIsALinkThatGoesDown) {
  InNetwork(9000, [] {
    const auto wire = OpenWire({.ip = kLoopback});
    ASSERT_NE(wire, nullptr);
    EXPECT_TRUE(wire->link_up());
    ASSERT_TRUE(SetLoopback(9000, false));
    while (wire->link_up()) {
      wire->Flush();
    }
    const auto port = static_cast<uint16_t>(wire->ClaimPort({0}).port);
    SendLargest(*wire, port);
    ASSERT_TRUE(SetLoopback(9000, true));
    while (!wire->link_up()) {
      wire->Flush();
    }
    wire::Datagram datagram;
    SendLargest(*wire, port);
    EXPECT_TRUE(Await(*wire, &datagram));
  });
}

TEST(UdpNetworkTest, AnAddressHasItsPdcidsAndGetsThemBack) {
  InNetwork(9000, [] {
    const auto wire = OpenWire({.ip = kLoopback});
    ASSERT_NE(wire, nullptr);
    std::set<uint16_t> blocks;
    while (const auto first = wire->TakePdcids()) {
      ASSERT_EQ(*first % contract::kPdcidBlock, 0U);
      ASSERT_TRUE(blocks.insert(*first).second) << *first;
    }
    EXPECT_EQ(blocks.size(), sim::frame::kPdcidBlocks);
    EXPECT_TRUE(NumberClaim::TakePdcidBlock(kLoopback + 1).ok())
        << "another address";
    const auto other = OpenWire({.ip = kLoopback});
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->TakePdcids(), std::nullopt);
    wire->ReturnPdcids(64);
    EXPECT_EQ(other->TakePdcids(), 64);
    EXPECT_EQ(wire->TakePdcids(), std::nullopt);
  });
}

}  // namespace
}  // namespace heddle::soft::udp
