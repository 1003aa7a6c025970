// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/departure.h"

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "host/lib/nic/nic.h"
#include "tests/driver/fake_device.h"
#include "tests/sim/base/child_process.h"

namespace heddle::nic {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRto{2};

// PDCs that are open once all exit handlers that came later have run.
const uint32_t* open_at_exit = nullptr;
const int registered = std::atexit([] {
  if (open_at_exit != nullptr) {
    std::fprintf(stderr, "%u open at the end\n", *open_at_exit);
  }
});

class DepartureTest : public ::testing::Test {
 protected:
  void Open(uint64_t capability) {
    auto device = std::make_unique<FakeDevice>();
    device_ = device.get();
    device_->capability |= capability;
    device_->bus.before_read = [this](uint32_t offset) {
      if (offset == contract::kMgmtOpenPdcsOffset) {
        ++counts_;
        closes_ += ClosesNow() ? 1 : 0;
        Count();
      }
    };
    std::string message;
    auto info = WaitReady(*device, kReadyLimit, message);
    ASSERT_TRUE(info.ok()) << message;
    auto nic = Nic::Adopt({.device = std::move(device), .info = info.value()},
                          message);
    ASSERT_TRUE(nic.ok()) << message;
    nic_ = std::move(nic.value());
  }

  // Whether the last write of the table closes PDCs; not a second time.
  bool ClosesNow() {
    const auto& events = device_->bus.events;
    const size_t writes = events.size();
    const bool table =
        device_->bus
            .Table<contract::TransportCfg>(contract::Table::kTransport, 0)
            .close != 0;
    return std::exchange(events_, writes) != writes && table &&
           events.back().kind == firmware::BusEvent::Kind::kTableWrite;
  }

  void Count() {
    if (open_ != 0 && ends_) {
      --open_;
    }
    device_->bus.open_pdcs = open_;
  }

  FakeDevice* device_ = nullptr;
  std::unique_ptr<Nic> nic_;
  uint32_t open_ = 5;
  bool ends_ = true;
  uint32_t counts_ = 0;
  uint32_t closes_ = 0;
  size_t events_ = 0;
};

TEST_F(DepartureTest, WaitsUntilNoPdcIsOpen) {
  Open(contract::kCapabilityClosePdcs);
  std::optional<Departure> departure;
  departure.emplace(*nic_, std::chrono::hours(1));
  EXPECT_EQ(counts_, 0U) << "not before its end";
  departure.reset();
  EXPECT_EQ(open_, 0U);
  EXPECT_EQ(counts_, 5U);
  EXPECT_EQ(closes_, 1U) << "the rest only counts";
}

TEST_F(DepartureTest, DoesNotWaitForSilentPeersAndAsksThemAgain) {
  Open(contract::kCapabilityClosePdcs);
  ends_ = false;
  std::optional<Departure> departure;
  departure.emplace(*nic_, kRto);
  departure.reset();
  EXPECT_EQ(open_, 5U);
  EXPECT_GE(closes_, 2U);
  EXPECT_GT(counts_, closes_);
}

TEST_F(DepartureTest, DeviceWithoutTheCommandIsNotAsked) {
  Open(0);
  { const Departure departure(*nic_, kRto); }
  EXPECT_EQ(counts_, 0U);
}

TEST_F(DepartureTest, DeviceThatFailedIsNotAsked) {
  Open(contract::kCapabilityClosePdcs);
  device_->failure_text = "gone";
  { const Departure departure(*nic_, kRto); }
  EXPECT_EQ(counts_, 0U);
}

TEST_F(DepartureTest, ExitOfTheProcessIsADeparture) {
  ASSERT_EQ(registered, 0);
  EXPECT_EXIT(
      {
        open_at_exit = &open_;
        Open(contract::kCapabilityClosePdcs);
        new Departure(*nic_, std::chrono::hours(1));  // NOLINT: never ended.
        std::exit(7);
      },
      testing::ExitedWithCode(7), "0 open at the end");
}

// As when a signal handler exits that has stopped a call into the device.
TEST_F(DepartureTest, ExitOfAThreadThatHoldsTheDevicesLockIsBounded) {
  std::mutex lock;
  EXPECT_EXIT(
      {
        open_at_exit = &open_;
        Open(contract::kCapabilityClosePdcs);
        device_->bus.before_read = [&lock](uint32_t) {
          const std::lock_guard guard(lock);
        };
        new Departure(*nic_, std::chrono::hours(1));  // NOLINT: never ended.
        lock.lock();
        std::exit(7);
      },
      testing::ExitedWithCode(7), "5 open at the end");
}

TEST_F(DepartureTest, ChildAfterForkLeavesTheParentsPeersAlone) {
  Open(contract::kCapabilityClosePdcs);
  const Departure departure(*nic_, kRto);
  EXPECT_EXIT(
      {
        open_at_exit = &open_;
        std::exit(0);
      },
      testing::ExitedWithCode(0), "5 open at the end");
}

// A child has no thread that would release what another one held at the fork.
TEST_F(DepartureTest, ChildExitsThoughAThreadBeganADepartureAtTheFork) {
  Open(0);
  // To find one among many takes most of the thread's time.
  std::deque<Departure> many;
  for (int i = 0; i < 10000; ++i) {
    many.emplace_back(*nic_, kRto);
  }
  constexpr int kForks = 10;
  // At each fork so many in a row, since the one that forks waits for its turn.
  constexpr int kDepartures = 5000;
  std::barrier forks(2);
  std::thread other([&] {
    for (int fork = 0; fork < kForks; ++fork) {
      forks.arrive_and_wait();
      for (int i = 0; i < kDepartures; ++i) {
        const Departure departure(*nic_, kRto);
      }
    }
  });
  std::fflush(stdout);  // Or each child writes it, too.
  for (int fork = 0; fork < kForks; ++fork) {
    forks.arrive_and_wait();
    sim::base::ChildProcess child(
        [](const sim::base::ChildProcess::Signal& /*signal*/) {
          std::exit(0);
        });
    EXPECT_EQ(child.ExitStatus(), 0);
  }
  other.join();
}

}  // namespace
}  // namespace heddle::nic
