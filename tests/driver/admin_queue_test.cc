// SPDX-License-Identifier: Apache-2.0
#include "driver/control/admin_queue.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/driver/fake_device.h"

namespace heddle {
namespace {

using contract::AdminOpcode;
using contract::AdminStatus;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class AdminQueueTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(AdminQueue::kDefaultLimit); }

  void Open(nanoseconds limit) {
    queue_.reset();
    Result<std::unique_ptr<AdminQueue>> queue =
        AdminQueue::Create(device_, limit);
    ASSERT_TRUE(queue.ok());
    queue_ = std::move(queue.value());
  }

  template <typename T>
  static int ErrorOf(const Result<T>& result) {
    return result.ok() ? 0 : static_cast<int>(result.error());
  }

  static contract::AdminCreateTx Tx(const EndpointGrant& endpoint,
                                    uint32_t cq) {
    return {.endpoint = endpoint.endpoint,
            .ring_base = 0x20000,
            .head_cell = 0x30008,
            .av_base = 0x40040,
            .av_entries = 100,
            .cq = static_cast<uint8_t>(cq),
            .ring_log2 = 5};
  }

  FakeDevice device_;
  std::unique_ptr<AdminQueue> queue_;
};

TEST_F(AdminQueueTest, CommandsReachTheTablesOfTheDevice) {
  Result<EndpointGrant> endpoint =
      queue_->CreateEndpoint({.port = 5000, .job_id = 7});
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value().port, 5000U);
  EXPECT_EQ(endpoint.value().pid_on_fep, 904);
  EXPECT_EQ(endpoint.value().resource_index, 256);
  Result<uint32_t> cq = queue_->CreateCq({.base = 0x10000, .log2 = 6});
  ASSERT_TRUE(cq.ok());
  Result<uint32_t> tx = queue_->CreateTx(Tx(endpoint.value(), cq.value()));
  ASSERT_TRUE(tx.ok());
  const auto entry = device_.bus.Table<contract::TxCtxCfg>(
      contract::Table::kTxCtx, tx.value());
  EXPECT_EQ(entry.enable, 1);
  EXPECT_EQ(entry.job_id, 7U);
  EXPECT_EQ(entry.source_pid, 904);
  Result<uint32_t> rx =
      queue_->CreateRx({.endpoint = endpoint.value().endpoint,
                        .ring_base = 0x50000,
                        .head_cell = 0x60000,
                        .cq = static_cast<uint8_t>(cq.value()),
                        .ring_log2 = 3});
  ASSERT_TRUE(rx.ok());
  EXPECT_EQ(
      device_.bus.Table<contract::RxCtxCfg>(contract::Table::kRxCtx, rx.value())
          .resource_index,
      257);
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(cq.value())), EBUSY);
  EXPECT_TRUE(queue_->DestroyTx(tx.value()).ok());
  EXPECT_TRUE(queue_->DestroyRx(rx.value()).ok());
  EXPECT_TRUE(queue_->DestroyCq(cq.value()).ok());
  EXPECT_TRUE(queue_->DestroyEndpoint(endpoint.value().endpoint).ok());
  EXPECT_TRUE(device_.ports.owner_of.empty());
  EXPECT_EQ(device_.bus.violations, 0U);
}

TEST_F(AdminQueueTest, ClaimedPortIsAddressInUseAndNamesTheOwner) {
  device_.ports.owner_of[{6000, firmware::kAddressSpace}] = 4711;
  contract::AdminAnswer refusal;
  EXPECT_EQ(
      ErrorOf(queue_->CreateEndpoint({.port = 6000, .job_id = 0}, &refusal)),
      EADDRINUSE);
  EXPECT_EQ(refusal.detail, 4711U);
}

TEST_F(AdminQueueTest, BadFieldIsInvalidAndNamesItsOffset) {
  contract::AdminAnswer refusal;
  EXPECT_EQ(ErrorOf(queue_->CreateCq({.base = 1, .log2 = 6}, &refusal)),
            EINVAL);
  EXPECT_EQ(refusal.detail, offsetof(contract::AdminCreateCq, base));
}

TEST_F(AdminQueueTest, EveryStatusHasItsErrno) {
  EXPECT_EQ(AdminErrno(AdminOpcode::kCreateCq, AdminStatus::kOk), 0);
  EXPECT_EQ(AdminErrno(AdminOpcode::kCreateCq, AdminStatus::kUnsupported),
            EOPNOTSUPP);
  EXPECT_EQ(AdminErrno(AdminOpcode::kCreateCq, AdminStatus::kInvalid), EINVAL);
  EXPECT_EQ(AdminErrno(AdminOpcode::kCreateCq, AdminStatus::kNoResource),
            ENOSPC);
  EXPECT_EQ(AdminErrno(AdminOpcode::kDestroyCq, AdminStatus::kInUse), EBUSY);
  EXPECT_EQ(AdminErrno(AdminOpcode::kCreateEndpoint, AdminStatus::kInUse),
            EADDRINUSE);
  EXPECT_EQ(AdminErrno(AdminOpcode::kDestroyCq, AdminStatus::kNotFound),
            ENOENT);
  EXPECT_EQ(AdminErrno(AdminOpcode::kResolveNextHop, AdminStatus::kNotFound),
            EHOSTUNREACH);
  EXPECT_EQ(AdminErrno(AdminOpcode::kCreateCq, AdminStatus::kDmaError), EIO);
  EXPECT_EQ(AdminErrno(AdminOpcode::kCreateCq, static_cast<AdminStatus>(99)),
            EIO);
}

TEST_F(AdminQueueTest, AnswersAreRecognisedOverManyPassesOfTheRing) {
  for (uint32_t i = 0; i < 0x10100; ++i) {
    ASSERT_EQ(ErrorOf(queue_->DestroyCq(9)), ENOENT) << i;
  }
  EXPECT_EQ(queue_->failure(), "");
}

TEST_F(AdminQueueTest, TimesArriveInTicks) {
  EXPECT_TRUE(queue_->SetTiming(milliseconds(2), milliseconds(500)).ok());
  const auto port =
      device_.bus.Table<contract::PortCfg>(contract::Table::kPort, 0);
  EXPECT_EQ(port.rto_ticks, 2000U);
  EXPECT_EQ(port.dead_ticks, 500'000U);
  EXPECT_EQ(ErrorOf(queue_->SetTiming(nanoseconds(-1), {})), EINVAL);
  EXPECT_EQ(ErrorOf(queue_->SetTiming(std::chrono::hours(24 * 60), {})),
            EINVAL);
}

TEST_F(AdminQueueTest, PortIsThatOfTheBoard) {
  const auto port = queue_->QueryPort();
  ASSERT_TRUE(port.ok());
  const auto table =
      device_.bus.Table<contract::PortCfg>(contract::Table::kPort, 0);
  EXPECT_NE(port.value().address.lo, 0U);
  EXPECT_EQ(port.value().address.lo, table.local_fa_lo);
  EXPECT_EQ(port.value().address.hi, table.local_fa_hi);
  EXPECT_EQ(port.value().address.ipv6, table.ipv6 != 0);
  EXPECT_EQ(port.value().payload_mtu_bytes, table.payload_mtu);
}

TEST_F(AdminQueueTest, PdcsAreClosedOrCounted) {
  const auto closes = [this] {
    return device_.bus
               .Table<contract::TransportCfg>(contract::Table::kTransport, 0)
               .close != 0;
  };
  device_.bus.open_pdcs = 7;
  auto open = queue_->CountPdcs();
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open.value(), 7U);
  EXPECT_FALSE(closes());
  open = queue_->ClosePdcs();
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open.value(), 7U);
  EXPECT_TRUE(closes());
}

TEST_F(AdminQueueTest, MissingAnswerBreaksTheQueueForGood) {
  Open(milliseconds(20));
  device_.dead = true;
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(0)), EIO);
  EXPECT_NE(queue_->failure().find("no answer to admin command 0"),
            std::string::npos)
      << queue_->failure();
  device_.dead = false;
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(0)), EIO)
      << "the late answer to the first command must not be taken for this";
}

TEST_F(AdminQueueTest, FailedDeviceEndsTheWaitAtOnceAndSaysWhy) {
  device_.dead = true;
  device_.failure_text = "assertion FrameFits_A in heddle_tx_framer";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(0)), EIO);
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            AdminQueue::kDefaultLimit / 2);
  EXPECT_NE(queue_->failure().find("FrameFits_A"), std::string::npos);
}

TEST_F(AdminQueueTest, HaltedFirmwareIsNamedWithItsStatus) {
  Open(milliseconds(20));
  device_.bus.broken_table = contract::Table::kCq;
  EXPECT_EQ(ErrorOf(queue_->CreateCq({.base = 0x10000, .log2 = 6})), EIO);
  EXPECT_NE(queue_->failure().find("0x00030401"), std::string::npos)
      << queue_->failure();
}

TEST_F(AdminQueueTest, LostDeviceIsNamed) {
  Open(milliseconds(20));
  device_.dead = true;
  device_.lost = true;
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(0)), EIO);
  EXPECT_NE(queue_->failure().find("lost"), std::string::npos);
}

TEST_F(AdminQueueTest, NewQueueStartsFromAResetDevice) {
  ASSERT_TRUE(queue_->CreateEndpoint({.port = 5000, .job_id = 0}).ok());
  Open(AdminQueue::kDefaultLimit);
  EXPECT_EQ(device_.resets, 1U);
  EXPECT_TRUE(device_.ports.owner_of.empty());
  EXPECT_TRUE(queue_->CreateEndpoint({.port = 5000, .job_id = 0}).ok());
}

// The first left its endpoint, and a count that says nothing.
TEST_F(AdminQueueTest, NewQueueStartsFromAResetDeviceAlsoWhenTheCountWrapped) {
  ASSERT_TRUE(queue_->CreateEndpoint({.port = 5000, .job_id = 0}).ok());
  for (uint32_t i = 1; i < 1U << 16; ++i) {
    ASSERT_EQ(ErrorOf(queue_->DestroyCq(9)), ENOENT);
  }
  Open(AdminQueue::kDefaultLimit);
  EXPECT_EQ(device_.resets, 1U);
  EXPECT_TRUE(queue_->CreateEndpoint({.port = 5000, .job_id = 0}).ok());
}

TEST_F(AdminQueueTest, NewQueueContinuesWhereAResetLeftTheCount) {
  device_.reset_keeps_tail = true;
  // Every position of the ring, in passes of either phase.
  for (uint32_t used = 1; used < 40; ++used) {
    ASSERT_EQ(ErrorOf(queue_->DestroyCq(9)), ENOENT);
    Open(AdminQueue::kDefaultLimit);
    for (uint32_t i = 0; i < 40; ++i) {
      ASSERT_EQ(ErrorOf(queue_->DestroyCq(9)), ENOENT) << used << " " << i;
    }
  }
}

TEST_F(AdminQueueTest, ClosedQueueLeavesNoMapping) {
  queue_.reset();
  EXPECT_TRUE(device_.mappings.empty());
  EXPECT_EQ(device_.bad_unmaps, 0U);
}

TEST_F(AdminQueueTest, ThreadsShareTheQueue) {
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kRounds = 200;
  std::vector<std::thread> threads;
  std::vector<int> errors(kThreads, 0);
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &errors] {
      for (uint32_t i = 0; i < kRounds && errors[t] == 0; ++i) {
        Result<EndpointGrant> grant =
            queue_->CreateEndpoint({.port = 1000 + t, .job_id = 0});
        errors[t] = ErrorOf(grant);
        if (grant.ok()) {
          errors[t] =
              grant.value().port == 1000 + t
                  ? ErrorOf(queue_->DestroyEndpoint(grant.value().endpoint))
                  : -1;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(errors, std::vector<int>(kThreads, 0));
}

TEST_F(AdminQueueTest, OneStaticHopServesEverybody) {
  Result<uint32_t> hop = queue_->ResolveNextHop({.lo = 0x0a000002});
  ASSERT_TRUE(hop.ok());
  EXPECT_EQ(hop.value(), 0U);
  EXPECT_TRUE(queue_->ReleaseNextHop(0).ok());
  EXPECT_EQ(ErrorOf(queue_->ReleaseNextHop(0)), ENOENT);
  EXPECT_EQ(ErrorOf(queue_->ResolveNextHop({.lo = 1, .ipv6 = true})), EINVAL);
}

firmware::Board ResolvingBoard() {
  firmware::Board board = firmware::TestBoard();
  board.resolve_neighbours = true;
  board.neighbour_tries = 2;
  board.neighbour_retry_ns = 10 * board.tick_ns;
  return board;
}

// The peer is silent until the test lets its time pass.
class ResolvingQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_.is_hardware = true;  // Threads only poll; the test steps.
    engine_ = std::thread([this] {
      while (!stop_) {
        device_.Step();
        std::this_thread::yield();
      }
    });
    auto queue = AdminQueue::Create(device_);
    ASSERT_TRUE(queue.ok());
    queue_ = std::move(queue.value());
  }
  void TearDown() override {
    stop_ = true;
    engine_.join();
  }
  void WaitForQuestions(size_t count) {
    while (device_.Questions() < count) {
      std::this_thread::yield();
    }
  }

  FakeDevice device_{ResolvingBoard()};
  std::atomic<bool> stop_ = false;
  std::thread engine_;
  std::unique_ptr<AdminQueue> queue_;
};

TEST_F(ResolvingQueueTest, CommandsAreAnsweredWhileOthersWaitForANeighbour) {
  constexpr size_t kThreads = 40;  // More than the ring has entries.
  std::vector<std::thread> threads;
  std::atomic<uint32_t> unreachable = 0;
  std::atomic<uint32_t> waiting = 0;
  threads.emplace_back([&] {
    const auto hop = queue_->ResolveNextHop({.lo = 0x0a000002});
    unreachable += !hop.ok() && hop.error() == Errno{EHOSTUNREACH} ? 1 : 0;
  });
  WaitForQuestions(1);
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue_->CreateEndpoint({.port = 5000 + i, .job_id = 0}).ok())
        << "pass " << i;
    ASSERT_TRUE(queue_->DestroyEndpoint(0).ok());
  }
  EXPECT_EQ(unreachable, 0U);
  for (uint32_t i = 1; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ++waiting;
      const auto hop = queue_->ResolveNextHop({.lo = 0x0a000002 + i});
      unreachable += !hop.ok() && hop.error() == Errno{EHOSTUNREACH} ? 1 : 0;
    });
  }
  WaitForQuestions(16);  // The ring is full of commands that wait.
  while (unreachable < kThreads) {
    device_.PassTicks(10);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(queue_->failure(), "");
  EXPECT_TRUE(queue_->CreateEndpoint({.port = 5000, .job_id = 0}).ok());
}

TEST_F(AdminQueueTest, CommandThatTheDeviceCannotReadFailsAlone) {
  ASSERT_EQ(ErrorOf(queue_->DestroyCq(0)), ENOENT);
  device_.refuse_reads = true;
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(0)), EIO);
  device_.refuse_reads = false;
  EXPECT_EQ(queue_->failure(), "");
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(0)), ENOENT);
}

TEST_F(AdminQueueTest, AnswerToNoCommandBreaksTheQueue) {
  device_.stray_answers = true;
  EXPECT_EQ(ErrorOf(queue_->DestroyCq(0)), EIO);
  EXPECT_NE(queue_->failure().find("was not issued"), std::string::npos)
      << queue_->failure();
}

// Hardware has no progress hook: the driver only polls.
TEST(AdminQueueOnHardwareTest, AnswerOfAnIndependentDeviceIsSeen) {
  FakeDevice device;
  device.is_hardware = true;
  std::atomic<bool> stop = false;
  std::thread engine([&] {
    while (!stop) {
      device.Step();
    }
  });
  Result<std::unique_ptr<AdminQueue>> queue = AdminQueue::Create(device);
  ASSERT_TRUE(queue.ok());
  for (int i = 0; i < 100; ++i) {
    Result<EndpointGrant> grant =
        queue.value()->CreateEndpoint({.port = 0, .job_id = 0});
    EXPECT_TRUE(grant.ok());
    EXPECT_TRUE(queue.value()->DestroyEndpoint(grant.value().endpoint).ok());
  }
  stop = true;
  engine.join();
}

}  // namespace
}  // namespace heddle
