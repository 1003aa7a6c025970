// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/next_hops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "host/lib/nic/address_table.h"
#include "hw/contract/gen/heddle_wire.h"
#include "tests/driver/fake_device.h"

namespace heddle::nic {
namespace {

namespace wire = contract::wire;

constexpr uint32_t kSilent = 0x0a0000ff;

firmware::Board ResolvingBoard() {
  firmware::Board board = firmware::TestBoard();
  board.resolve_neighbours = true;
  board.neighbour_tries = 2;
  board.neighbour_retry_ns = 10 * board.tick_ns;
  board.neighbour_reachable_ns = uint64_t{1} << 40;
  return board;
}

// A device on a link where everybody answers but kSilent.
class NextHopsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_.is_hardware = true;
    engine_ = std::thread([this] {
      while (!stop_) {
        Step();
        std::this_thread::yield();
      }
    });
    auto admin = AdminQueue::Create(device_);
    ASSERT_TRUE(admin.ok());
    admin_ = std::move(admin.value());
    hops_ = std::make_unique<NextHops>(*admin_, /*resolves=*/true);
  }
  void TearDown() override {
    stop_ = true;
    engine_.join();
  }

  // The MAC address of a neighbour.
  static uint64_t MacOf(uint32_t ip) { return 0x020000000000 | ip; }

  void Step() {
    device_.Step();
    for (const auto& frame : device_.TakeQuestions()) {
      ++questions_;
      auto arp = wire::Arp::Decode(frame.data() + wire::Ethernet::kBytes);
      if (arp.target_ip == kSilent) {
        continue;
      }
      std::vector<uint8_t> answer(60);
      wire::Ethernet{.destination = arp.sender_mac,
                     .source = MacOf(arp.target_ip),
                     .ethertype = 0x0806}
          .Encode(answer.data());
      arp.operation = contract::ArpOperation::kReply;
      arp.target_mac = arp.sender_mac;
      arp.sender_mac = MacOf(arp.target_ip);
      std::swap(arp.sender_ip, arp.target_ip);
      arp.Encode(answer.data() + wire::Ethernet::kBytes);
      device_.Receive(answer);
    }
    device_.PassTicks(1);
  }
  uint64_t TableMac(uint16_t hop) {
    return device_
        .TableEntry<contract::NextHopCfg>(contract::Table::kNextHop, hop)
        .mac;
  }
  // Whether the device counts a use of `hop`; takes one if so.
  bool InUse(uint16_t hop) { return admin_->ReleaseNextHop(hop).ok(); }

  FakeDevice device_{ResolvingBoard()};
  std::atomic<uint32_t> questions_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread engine_;
  std::unique_ptr<AdminQueue> admin_;
  std::unique_ptr<NextHops> hops_;
};

TEST_F(NextHopsTest, EachAddressIsAskedForOnceAndGivenBackWithItsLastUse) {
  const auto first = hops_->Acquire({.lo = 0x0a000002});
  const auto second = hops_->Acquire({.lo = 0x0a000003});
  const auto again = hops_->Acquire({.lo = 0x0a000002});
  ASSERT_TRUE(first.ok() && second.ok() && again.ok());
  EXPECT_NE(first.value(), second.value());
  EXPECT_EQ(first.value(), again.value());
  EXPECT_EQ(TableMac(first.value()), MacOf(0x0a000002));
  EXPECT_EQ(TableMac(second.value()), MacOf(0x0a000003));
  EXPECT_EQ(questions_, 2U);
  hops_->Release({.lo = 0x0a000002});
  EXPECT_TRUE(InUse(first.value())) << "one is left";
  EXPECT_FALSE(InUse(first.value())) << "of one taken from the device";
  hops_->Release({.lo = 0x0a000003});
  EXPECT_FALSE(InUse(second.value()));
}

TEST_F(NextHopsTest, SilentNeighbourIsUnreachableAndMayBeTriedAgain) {
  for (int i = 0; i < 2; ++i) {
    const auto hop = hops_->Acquire({.lo = kSilent});
    ASSERT_FALSE(hop.ok());
    EXPECT_EQ(hop.error(), Errno{EHOSTUNREACH});
  }
  EXPECT_EQ(questions_, 4U) << "two tries each time";
}

TEST_F(NextHopsTest, ThreadsThatAskTogetherShareOneUse) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::atomic<uint32_t> sum = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto hop = hops_->Acquire({.lo = 0x0a000009});
      sum += hop.ok() ? hop.value() : 1000U;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto hop = static_cast<uint16_t>(sum / 8);
  EXPECT_EQ(sum, 8U * hop);
  for (int i = 0; i < 8; ++i) {
    hops_->Release({.lo = 0x0a000009});
  }
  EXPECT_FALSE(InUse(hop)) << "every use was given back";
}

TEST_F(NextHopsTest, ADeviceWithoutASlowPathIsNotAsked) {
  NextHops without(*admin_, /*resolves=*/false);
  const auto hop = without.Acquire({.lo = kSilent});
  ASSERT_TRUE(hop.ok());
  EXPECT_EQ(hop.value(), 0);
  without.Release({.lo = kSilent});
  EXPECT_EQ(questions_, 0U);
}

TEST_F(NextHopsTest, AddressTableNamesTheHopAndGivesItBack) {
  auto created = AddressTable::Create(device_, 0, hops_.get());
  ASSERT_TRUE(created.ok());
  AddressTable& table = *created.value();
  const auto entry = [&](uint32_t index) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<const contract::AvEntry*>(
        static_cast<uint64_t>(table.iova()) - FakeDevice::kIovaOffset)[index];
  };
  const auto unreachable = table.Insert({.ipv4 = kSilent, .port = 5});
  ASSERT_FALSE(unreachable.ok());
  EXPECT_EQ(unreachable.error(), Errno{EHOSTUNREACH});
  EXPECT_EQ(table.size(), 0U);
  for (uint16_t port = 1; port <= 3; ++port) {
    ASSERT_EQ(table.Insert({.ipv4 = 0x0a000002, .port = port}).value(),
              port - 1U);
  }
  ASSERT_EQ(table.Insert({.ipv4 = 0x0a000003, .port = 1}).value(), 3U);
  const uint16_t hop = entry(0).next_hop;
  const uint16_t other = entry(3).next_hop;
  EXPECT_EQ(TableMac(hop), MacOf(0x0a000002));
  EXPECT_EQ(entry(2).next_hop, hop);
  EXPECT_EQ(TableMac(other), MacOf(0x0a000003));
  EXPECT_TRUE(table.Remove(0));
  EXPECT_TRUE(table.Remove(1));
  // Still used: the same number, and nobody is asked.
  questions_ = 0;
  ASSERT_TRUE(table.Insert({.ipv4 = 0x0a000002, .port = 9}).ok());
  EXPECT_EQ(questions_, 0U);
  created.value().reset();
  EXPECT_FALSE(InUse(hop));
  EXPECT_FALSE(InUse(other));
}

}  // namespace
}  // namespace heddle::nic
