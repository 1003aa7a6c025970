// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/device/device_test.h"

#include <pcap/pcap.h>
#include <poll.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>

#include "hw/sim/device/statistic_names.h"
#include "hw/sim/wire/wire_control.h"
#include "tests/sim/base/child_process.h"

namespace heddle::sim::device {
namespace {

TEST_F(DeviceTest, NeighboursAreResolvedWhenAskedFor) {
  DeviceOptions options = Options(kIpA);
  options.settings.neighbours = contract::Neighbours::kResolve;
  const auto a = Node::Open(options, 7000);
  options = Options(kIpB);
  options.settings.neighbours = contract::Neighbours::kResolve;
  const auto b = Node::Open(options, 7000);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const auto hop = a->admin->ResolveNextHop({.lo = kIpB});
  ASSERT_TRUE(hop.ok());
  EXPECT_NE(hop.value(), 0U) << "0 is the static one";
  const auto nobody = a->admin->ResolveNextHop({.lo = kIpB + 1});
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error(), Errno{EHOSTUNREACH});
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  Exchange(*a, *b, 5000);
}

TEST_F(DeviceTest, PollingDrivesMessagesBetweenTwoDevices) {
  const auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  for (const uint32_t bytes : {0u, 1u, 64u, 4096u, 65536u}) {
    SCOPED_TRACE(bytes);
    Exchange(*a, *b, bytes);
  }
}

TEST_F(DeviceTest, DevicesWorkAndWakeASleeperWhenNobodyPolls) {
  const auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  const int fd = b->device->interrupt_fd(0);
  ASSERT_GE(fd, 0);
  b->endpoint->rx_cq().Arm();
  b->PostReceive(1000);
  a->PostSend(0, 1000);
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&readable, 1, kLimitNs / 1000000), 1) << "no interrupt";
  const auto received = b->endpoint->PollRx();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->length, 1000u);
}

TEST_F(DeviceTest, StatisticsFileHasEveryCounterOfTheContract) {
  const std::string statistics = File(".stats");
  DeviceOptions options = Options(kIpA);
  options.settings.statistics = statistics;
  {
    const auto a = Node::Open(options, 100);
    const auto b = Node::Open(Options(kIpB), 200);
    ASSERT_TRUE(a && b);
    a->endpoint->AddPeer(kIpB, b->endpoint->grant());
    Exchange(*a, *b, 100);
  }
  const auto values = ReadStatistics(statistics);
  for (const StatisticName& statistic : kStatisticNames) {
    EXPECT_EQ(values.count(statistic.name), 1u) << statistic.name;
  }
  EXPECT_EQ(values.at("tx_messages"), 1u);
  EXPECT_GE(values.at("tx_frames"), 1u);
  EXPECT_EQ(values.at("blocked_reads"), 0u);
  EXPECT_EQ(values.at("blocked_writes"), 0u);
  EXPECT_EQ(values.at("wire_drops"), 0u);
  unlink(statistics.c_str());
}

TEST_F(DeviceTest, CaptureHoldsWhatThePortSentAndReceived) {
  const std::string capture = File(".pcap");
  const std::string statistics = File(".stats");
  DeviceOptions options = Options(kIpA);
  options.settings.capture = capture;
  options.settings.statistics = statistics;
  {
    const auto a = Node::Open(options, 100);
    const auto b = Node::Open(Options(kIpB), 200);
    ASSERT_TRUE(a && b);
    a->endpoint->AddPeer(kIpB, b->endpoint->grant());
    Exchange(*a, *b, 10000);
  }
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  pcap_t* const reader = pcap_open_offline(capture.c_str(), error.data());
  ASSERT_NE(reader, nullptr) << error.data();
  uint64_t frames = 0;
  pcap_pkthdr header{};
  while (pcap_next(reader, &header) != nullptr) {
    ++frames;
  }
  pcap_close(reader);
  const auto values = ReadStatistics(statistics);
  EXPECT_EQ(frames, values.at("tx_frames") + values.at("rx_frames"));
  EXPECT_GE(frames, 4u);
  unlink(capture.c_str());
  unlink(statistics.c_str());
}

TEST_F(DeviceTest, MessagesArriveThroughABadWire) {
  DeviceOptions options = Options(kIpA);
  options.faults.tx = {
      .seed = 5, .loss = 0.05, .duplicate = 0.05, .reorder = 0.05};
  const auto a = Node::Open(options, 100);
  options.wire.ip = kIpB;
  options.faults.tx.seed = 6;
  const auto b = Node::Open(options, 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    Exchange(*a, *b, 8192);
    if (HasFatalFailure()) {
      return;
    }
  }
}

// The timer would end after the test.
TEST_F(DeviceTest, AWireThatTrimsDelaysNothingUntilATimeOut) {
  DeviceOptions options = Options(kIpA);
  options.settings.rto_ns = uint64_t{3600} * 1000000000;
  options.settings.dscp_trimmed = 3;
  const auto a = Node::Open(options, {.port = 100, .ordered = false});
  options.wire.ip = kIpB;
  // 11 ms per packet: slower than a model of the NIC on a busy machine.
  options.faults.rx = {
      .rate = 0.003, .queue_bytes = 10000, .trim = true, .trim_dscp = 3};
  const auto b = Node::Open(options, {.port = 200, .ordered = false});
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    Exchange(*a, *b, 60000);
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GT(ReadStatistic(*b->device, contract::Statistic::kRxTrimmed), 0U);
  EXPECT_EQ(ReadStatistic(*a->device, contract::Statistic::kTimeouts), 0U);
}

TEST_F(DeviceTest, PortOfAKilledProcessIsFreeAndOthersGoOn) {
  // Before a device has a thread, which may hold a lock of AddressSanitizer's
  // allocator at the fork.
  base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
    const auto node = Node::Open(Options(kIpB), 200);
    if (node != nullptr) {
      node->PostReceive(64);
      signal();
    }
    while (true) {
      pause();  // The device's own thread serves it.
    }
  });
  ASSERT_TRUE(child.Wait());
  const auto a = Node::Open(Options(kIpA), 100);
  ASSERT_TRUE(a);
  a->endpoint->AddPeer(kIpB, Node::GrantOf(200));
  a->PostSend(0, 64);
  std::optional<Completion> sent;
  const uint64_t deadline = base::MonotonicNs() + kLimitNs;
  while (!sent && base::MonotonicNs() < deadline) {
    a->Step();
    sent = a->endpoint->PollTx();
  }
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, Status::kOk);
  child.KillOnly();
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(b) << "its port is free";
  const auto c = Node::Open(Options(kIpA), 101);
  ASSERT_TRUE(c);
  c->endpoint->AddPeer(kIpB, b->endpoint->grant());
  Exchange(*c, *b, 64);
}

TEST_F(DeviceTest, PeerWithoutACpuIsSentNothingAgain) {
  // On RTL 1,600 cycles, several round trips: while a NIC works, 16 of its
  // cycles count as a tick of 0.1 ms on a machine that is too slow for more.
  constexpr uint64_t kRtoNs = 10000000;
  constexpr uint64_t kStopNs = 10 * kRtoNs;
  static_assert(kStopNs < wire::SharedWire::kStarvedNs / 5);
  constexpr uint32_t kMessages = 4;
  const std::string statistics = File(".stats");
  DeviceOptions options = Options(kIpA);
  options.settings.rto_ns = kRtoNs;
  options.settings.statistics = statistics;
  base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
    const auto node = Node::Open(Options(kIpB), 200);
    for (uint32_t i = 0; node != nullptr && i < kMessages; ++i) {
      node->PostReceive(64);
    }
    if (node != nullptr) {
      signal();
    }
    while (true) {
      pause();  // The device's own thread serves it.
    }
  });
  ASSERT_TRUE(child.Wait());
  {
    const auto a = Node::Open(options, 100);
    ASSERT_TRUE(a);
    a->endpoint->AddPeer(kIpB, Node::GrantOf(200));
    const uint64_t deadline = base::MonotonicNs() + kLimitNs;
    for (uint32_t i = 0; i < kMessages; ++i) {
      child.Stop();
      a->PostSend(0, 64);
      for (const uint64_t start = base::MonotonicNs();
           base::MonotonicNs() - start < kStopNs;) {
        a->Step();
      }
      kill(child.pid(), SIGCONT);
      std::optional<Completion> sent;
      while (!sent && base::MonotonicNs() < deadline) {
        a->Step();
        sent = a->endpoint->PollTx();
      }
      ASSERT_TRUE(sent);
      EXPECT_EQ(sent->status, Status::kOk);
    }
  }
  const auto values = ReadStatistics(statistics);
  EXPECT_EQ(values.at("tx_messages"), kMessages);
  EXPECT_EQ(values.at("tx_retransmissions"), 0U);
  EXPECT_EQ(values.at("timeouts"), 0U);
  unlink(statistics.c_str());
}

TEST_F(DeviceTest, StoppedPeerOnlyDelays) {
  base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
    const auto node = Node::Open(Options(kIpB), 200);
    if (node != nullptr) {
      node->PostReceive(64);
      signal();
    }
    while (true) {
      pause();
    }
  });
  ASSERT_TRUE(child.Wait());
  DeviceOptions options = Options(kIpA);
  options.settings.rto_ns = 5000000;
  const auto a = Node::Open(options, 100);
  ASSERT_TRUE(a);
  a->endpoint->AddPeer(kIpB, Node::GrantOf(200));
  child.Stop();
  a->PostSend(0, 64);
  const uint64_t start = base::MonotonicNs();
  while (ReadStatistic(*a->device, contract::Statistic::kTimeouts) < 3 &&
         base::MonotonicNs() - start < kLimitNs) {
    a->Step();
  }
  EXPECT_FALSE(a->endpoint->PollTx());
  kill(child.pid(), SIGCONT);
  std::optional<Completion> sent;
  while (!sent && base::MonotonicNs() - start < kLimitNs) {
    a->Step();
    sent = a->endpoint->PollTx();
  }
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, Status::kOk);
}

TEST_F(DeviceTest, TrafficGoesOnAfterALinkWasDown) {
  constexpr uint32_t kLink = contract::kBar0DeviceStatusLinkMask;
  DeviceOptions options = Options(kIpA);
  options.settings.rto_ns = 5000000;
  const auto a = Node::Open(options, 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  Exchange(*a, *b, 64);
  std::string message;
  auto control = wire::WireControl::Open(Options(kIpA).wire.name, &message);
  ASSERT_TRUE(control.ok()) << message;
  const auto link = [](const Node& node) {
    return (node.device->ReadRegister32(contract::kBar0DeviceStatusOffset) &
            kLink) != 0;
  };
  const uint64_t deadline = base::MonotonicNs() + kLimitNs;
  const auto step_until = [&](const std::function<bool()>& done) {
    while (!done() && base::MonotonicNs() < deadline) {
      a->Step();
      b->Step();
    }
    return done();
  };
  EXPECT_TRUE(link(*b));
  ASSERT_EQ(control.value().SetLink(kIpB, std::nullopt, /*up=*/false), 1u);
  EXPECT_TRUE(step_until([&] { return !link(*b); }));
  EXPECT_TRUE(link(*a));
  b->PostReceive(64);
  a->PostSend(0, 64);
  EXPECT_TRUE(step_until([&] {
    return ReadStatistic(*a->device, contract::Statistic::kTimeouts) >= 3;
  }));
  EXPECT_FALSE(a->endpoint->PollTx());
  control.value().SetLink(kIpB, std::nullopt, /*up=*/true);
  std::optional<Completion> sent;
  EXPECT_TRUE(step_until([&] {
    sent = sent ? sent : a->endpoint->PollTx();
    return sent.has_value();
  }));
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, Status::kOk);
  EXPECT_TRUE(step_until([&] { return link(*b); }));
}

TEST_F(DeviceTest, ResetFromTheWireFailsItForItsOwner) {
  const auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  std::string message;
  auto control = wire::WireControl::Open(Options(kIpA).wire.name, &message);
  ASSERT_TRUE(control.ok()) << message;
  EXPECT_EQ(control.value().Reset(kIpB + 1, std::nullopt), 0u);
  EXPECT_FALSE(b->device->failed());
  ASSERT_EQ(control.value().Reset(kIpB, std::nullopt), 1u);
  const uint64_t deadline = base::MonotonicNs() + kLimitNs;
  while (!b->device->failed() && base::MonotonicNs() < deadline) {
    b->Step();
  }
  EXPECT_TRUE(b->device->failed());
  EXPECT_NE(b->device->failure().find("reset"), std::string::npos);
  EXPECT_FALSE(a->device->failed());
  // Its port is free, and a new function has it.
  const auto again = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(again);
  a->endpoint->AddPeer(kIpB, again->endpoint->grant());
  Exchange(*a, *again, 64);
}

TEST_F(DeviceTest, FramesWithABadFcsAreCountedAndSentAgain) {
  DeviceOptions options = Options(kIpA);
  options.settings.rto_ns = 5000000;
  options.faults.tx.bad_fcs = 0.1;
  const auto a = Node::Open(options, 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    Exchange(*a, *b, 8192);
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GT(ReadStatistic(*b->device, contract::Statistic::kDropMacError), 0u);
}

TEST_F(DeviceTest, ItsThreadIsNamedBlocksSignalsAndEndsWithIt) {
  bool blocked = false;
  std::string error;
  auto device = TestedDevice().open(Options(kIpA), &error);
  ASSERT_TRUE(device.ok()) << error;
  EXPECT_EQ(Threads(TestedDevice().thread, &blocked), 0)
      << "not before it is needed";
  device.value()->WriteRegister64(contract::kBar0AdminCommandBaseOffset, 0);
  EXPECT_EQ(Threads(TestedDevice().thread, &blocked), 1);
  EXPECT_TRUE(blocked);
  device.value().reset();
  EXPECT_EQ(Threads(TestedDevice().thread, &blocked), 0);
}

TEST_F(DeviceTest, ChildAfterForkCanDropItsCopy) {
  auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  base::ChildProcess child([&a](const base::ChildProcess::Signal& signal) {
    delete a->device.release();
    signal();
  });
  EXPECT_TRUE(child.Wait());
  Exchange(*a, *b, 4096);
}

TEST_F(DeviceTest, ProcessThatExitsWithoutClosingKeepsItsStatus) {
  constexpr int kStatus = 7;
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(b);
  for (int run = 0; run < 10; ++run) {
    base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
      auto a = Node::Open(Options(kIpA), 100);
      if (a == nullptr) {
        return;
      }
      a->endpoint->AddPeer(kIpB, Node::GrantOf(200));
      for (int i = 0; i < 20; ++i) {
        a->PostSend(0, kBufferBytes);  // Under way when it exits.
      }
      static const Node* open_at_exit = nullptr;  // In sight of LeakSanitizer.
      open_at_exit = a.release();
      signal();
      std::exit(open_at_exit != nullptr ? kStatus : 0);
    });
    ASSERT_TRUE(child.Wait());
    EXPECT_EQ(child.ExitStatus(), kStatus);
  }
}

// A port without an enabled receive context.
class ListenTest : public DeviceTest {
 protected:
  static constexpr BareEndpointOptions kDeaf = {.port = 200, .receives = false};
  static constexpr BareEndpointOptions kReceiver = {.port = 200};
  static constexpr uint32_t kBytes = 9000;

  // From `a`, to the port of `b`.
  static void ExpectToWaitForAContext(Node& a, Node& b) {
    const auto refused = [&b] {
      return ReadStatistic(*b.device, contract::Statistic::kRxRefused);
    };
    const uint64_t before = refused();
    a.PostSend(0, kBytes);
    const uint64_t deadline = base::MonotonicNs() + kLimitNs;
    while (refused() < before + 3 && base::MonotonicNs() < deadline) {
      a.Step();
      b.Step();
    }
    EXPECT_GE(refused(), before + 3);
    EXPECT_FALSE(a.endpoint->PollTx());
    b.Begin(kReceiver);
    ASSERT_NE(b.endpoint, nullptr);
    b.PostReceive(kBytes);
    ExpectCompletions(a, b, kBytes);
  }
};

TEST_F(ListenTest, AMessageWaitsForTheFirstReceiveContext) {
  const auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), kDeaf);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  ExpectToWaitForAContext(*a, *b);
}

TEST_F(ListenTest, AMessageWaitsForTheFirstReceiveContextAfterAReset) {
  const auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), kReceiver);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  Exchange(*a, *b, 100);
  b->endpoint.reset();
  auto admin = AdminQueue::Create(*b->device);  // Resets the function.
  ASSERT_TRUE(admin.ok());
  b->admin = std::move(admin.value());
  b->Begin(kDeaf);
  ASSERT_NE(b->endpoint, nullptr);
  ExpectToWaitForAContext(*a, *b);
}

TEST_F(ListenTest, OnceItListensAPortWithoutAContextIsAnError) {
  const auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), kReceiver);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  b->Begin(kDeaf);
  ASSERT_NE(b->endpoint, nullptr);
  a->PostSend(0, kBytes);
  std::optional<Completion> sent;
  const uint64_t deadline = base::MonotonicNs() + kLimitNs;
  while (!sent && base::MonotonicNs() < deadline) {
    a->Step();
    b->Step();
    sent = a->endpoint->PollTx();
  }
  ASSERT_TRUE(sent) << a->device->failure() << b->device->failure();
  EXPECT_EQ(sent->status, Status::kRemoteError);
  EXPECT_EQ(sent->detail, static_cast<uint16_t>(contract::ReturnCode::kBadPid));
}

TEST_F(DeviceTest, ResetBringsItBackToItsFirstState) {
  std::string error;
  auto opened = TestedDevice().open(Options(kIpA), &error);
  ASSERT_TRUE(opened.ok()) << error;
  Device& device = *opened.value();
  const auto claim_port_100 = [&device] {
    auto admin = AdminQueue::Create(device);  // Resets what was there before.
    return admin.ok() &&
           admin.value()->CreateEndpoint({.port = 100, .job_id = 1}).ok();
  };
  ASSERT_TRUE(WaitReady(device, kReadyLimit, error).ok()) << error;
  ASSERT_TRUE(claim_port_100());
  ASSERT_TRUE(device.Reset().ok()) << device.failure();
  ASSERT_TRUE(WaitReady(device, kReadyLimit, error).ok()) << error;
  EXPECT_TRUE(claim_port_100()) << "the claim was given back";
}

}  // namespace
}  // namespace heddle::sim::device
