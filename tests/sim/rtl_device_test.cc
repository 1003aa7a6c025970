// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/rtl_device.h"

#include <dirent.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "driver/device/admin_queue.h"
#include "driver/device/device_info.h"
#include "driver/dma/dma_buffer.h"
#include "driver/sim_factory.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/clock.h"
#include "hw/sim/settings.h"
#include "hw/sim/statistic_names.h"
#include "hw/sim/wire_control.h"
#include "tests/sim/child_process.h"
#include "tests/system/harness/bare_endpoint.h"

extern "C" HeddleSimOpen heddle_sim_open;

namespace heddle::sim {
namespace {

using contract::Completion;
using contract::Status;

constexpr uint32_t kIpA = 0x0a000001;
constexpr uint32_t kIpB = 0x0a000002;
constexpr uint64_t kLimitNs = 30000000000;
constexpr size_t kBufferBytes = 65536;

// A device with one endpoint at `port` and a buffer.
struct Node {
  static std::unique_ptr<Node> Open(const RtlDeviceOptions& options,
                                    uint32_t port) {
    auto node = std::make_unique<Node>();
    std::string error;
    auto device = RtlDevice::Open(options, &error);
    if (!device.ok()) {
      ADD_FAILURE() << error;
      return nullptr;
    }
    node->device = std::move(device.value());
    auto info = WaitReady(*node->device, kReadyLimit, error);
    auto admin = AdminQueue::Create(*node->device);
    auto buffer = DmaBuffer::Create(*node->device, kBufferBytes);
    if (!info.ok() || !admin.ok() || !buffer.ok()) {
      ADD_FAILURE() << error;
      return nullptr;
    }
    node->admin = std::move(admin.value());
    node->buffer = std::move(buffer.value());
    BareEndpointOptions shape;
    shape.port = port;
    node->endpoint =
        BareEndpoint::Create(*node->device, *node->admin, shape, &error);
    EXPECT_NE(node->endpoint, nullptr) << error;
    return node->endpoint == nullptr ? nullptr : std::move(node);
  }

  // The grant of an endpoint at `port` of another process.
  static EndpointGrant GrantOf(uint32_t port) {
    return {.endpoint = 0,
            .port = port,
            .pid_on_fep = static_cast<uint16_t>(port % 4096),
            .resource_index =
                static_cast<uint16_t>(port / 4096 * contract::kRiBlock)};
  }

  void PostReceive(uint32_t bytes) {
    EXPECT_TRUE(endpoint->rx().TryPush(1, buffer.iova(), bytes));
    endpoint->rx().Publish();
  }
  void PostSend(uint32_t peer, uint32_t bytes) {
    const SendFields fields{.op_context = 2,
                            .header_data = 0,
                            .peer = peer,
                            .flags = contract::kTxFlagCompletion};
    EXPECT_TRUE(endpoint->tx().PushBuffer(fields, buffer.iova(), bytes));
    endpoint->tx().Publish();
  }
  void Step() {
    const ProgressHook hook = device->progress_hook();
    hook.step(hook.cookie);
  }

  std::unique_ptr<RtlDevice> device;
  std::unique_ptr<AdminQueue> admin;
  DmaBuffer buffer;
  std::unique_ptr<BareEndpoint> endpoint;
};

class RtlDeviceTest : public testing::Test {
 protected:
  RtlDeviceOptions Options(uint32_t ip) const {
    RtlDeviceOptions options;
    options.wire.name = name_;
    options.wire.ip = ip;
    return options;
  }
  std::string File(const std::string& suffix) const {
    return testing::TempDir() + "heddle-" + name_ + suffix;
  }
  static std::map<std::string, uint64_t> ReadStatistics(
      const std::string& path) {
    std::map<std::string, uint64_t> statistics;
    std::ifstream file(path);
    std::string name;
    uint64_t value = 0;
    while (file >> name >> value) {
      statistics[name] = value;
    }
    return statistics;
  }
  // Both completions of one message from `a` to `b`, devices polled by us.
  static void Exchange(Node& a, Node& b, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) {
      a.buffer.data()[i] = static_cast<std::byte>(i * 3 + bytes);
    }
    b.PostReceive(bytes);
    a.PostSend(0, bytes);
    std::optional<Completion> sent;
    std::optional<Completion> received;
    const uint64_t deadline = MonotonicNs() + kLimitNs;
    while ((!sent || !received) && MonotonicNs() < deadline) {
      a.Step();
      b.Step();
      sent = sent ? sent : a.endpoint->PollTx();
      received = received ? received : b.endpoint->PollRx();
    }
    ASSERT_TRUE(sent && received) << a.device->failure() << b.device->failure();
    EXPECT_EQ(sent->status, Status::kOk);
    EXPECT_EQ(received->status, Status::kOk);
    EXPECT_EQ(received->length, bytes);
    EXPECT_EQ(std::memcmp(a.buffer.data(), b.buffer.data(), bytes), 0);
  }
  // Names of this process's threads.
  static int Threads(const std::string& name, bool* signals_blocked) {
    int count = 0;
    DIR* const directory = opendir("/proc/self/task");
    while (const dirent* entry = readdir(directory)) {
      const std::string base = std::string("/proc/self/task/") + entry->d_name;
      std::ifstream comm(base + "/comm");
      std::string text;
      std::getline(comm, text);
      if (text != name) {
        continue;
      }
      ++count;
      std::ifstream status(base + "/status");
      while (std::getline(status, text)) {
        if (text.rfind("SigBlk:", 0) == 0) {
          const uint64_t mask = std::stoull(text.substr(7), nullptr, 16);
          *signals_blocked = (mask >> (SIGTERM - 1) & 1) != 0 &&
                             (mask >> (SIGALRM - 1) & 1) != 0;
        }
      }
    }
    closedir(directory);
    return count;
  }

  const std::string name_ =
      "rtl-" + std::to_string(getpid()) + "-" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(RtlDeviceTest, NeighboursAreResolvedWhenAskedFor) {
  RtlDeviceOptions options = Options(kIpA);
  options.resolve_neighbours = true;
  const auto a = Node::Open(options, 7000);
  options = Options(kIpB);
  options.resolve_neighbours = true;
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

TEST_F(RtlDeviceTest, PollingDrivesMessagesBetweenTwoDevices) {
  const auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  for (const uint32_t bytes : {0u, 1u, 64u, 4096u, 65536u}) {
    SCOPED_TRACE(bytes);
    Exchange(*a, *b, bytes);
  }
}

TEST_F(RtlDeviceTest, DevicesWorkAndWakeASleeperWhenNobodyPolls) {
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

TEST_F(RtlDeviceTest, IdleDeviceSleeps) {
  const std::string statistics = File(".stats");
  RtlDeviceOptions options = Options(kIpA);
  options.statistics = statistics;
  auto a = Node::Open(options, 100);
  ASSERT_TRUE(a);
  // Neither its own thread nor a poller makes the model move.
  const uint64_t cpu_before = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  const uint64_t start = MonotonicNs();
  while (MonotonicNs() - start < 300000000) {
    SleepNs(1000000);
  }
  const uint64_t cpu = ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  EXPECT_LT(cpu, 60000000u) << "ns of CPU in 300 ms of idleness";
  for (int i = 0; i < 2000; ++i) {
    a->Step();
  }
  a.reset();
  const auto values = ReadStatistics(statistics);
  EXPECT_LT(values.at("cycles"), 15000u);
  unlink(statistics.c_str());
}

TEST_F(RtlDeviceTest, StatisticsFileHasEveryCounterOfTheContract) {
  const std::string statistics = File(".stats");
  RtlDeviceOptions options = Options(kIpA);
  options.statistics = statistics;
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
  EXPECT_GT(values.at("cycles"), 0u);
  EXPECT_EQ(values.at("wire_drops"), 0u);
  unlink(statistics.c_str());
}

TEST_F(RtlDeviceTest, CaptureHoldsWhatThePortSentAndReceived) {
  const std::string capture = File(".pcap");
  const std::string statistics = File(".stats");
  RtlDeviceOptions options = Options(kIpA);
  options.capture = capture;
  options.statistics = statistics;
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

TEST_F(RtlDeviceTest, MessagesArriveThroughABadWire) {
  RtlDeviceOptions options = Options(kIpA);
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

TEST_F(RtlDeviceTest, PortOfAKilledProcessIsFreeAndOthersGoOn) {
  const auto a = Node::Open(Options(kIpA), 100);
  ASSERT_TRUE(a);
  ChildProcess child([this](const ChildProcess::Signal& signal) {
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
  a->endpoint->AddPeer(kIpB, Node::GrantOf(200));
  a->PostSend(0, 64);
  std::optional<Completion> sent;
  const uint64_t deadline = MonotonicNs() + kLimitNs;
  while (!sent && MonotonicNs() < deadline) {
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

TEST_F(RtlDeviceTest, StoppedPeerOnlyDelays) {
  ChildProcess child([this](const ChildProcess::Signal& signal) {
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
  RtlDeviceOptions options = Options(kIpA);
  options.rto_ns = 5000000;
  const auto a = Node::Open(options, 100);
  ASSERT_TRUE(a);
  a->endpoint->AddPeer(kIpB, Node::GrantOf(200));
  child.Stop();
  a->PostSend(0, 64);
  const uint64_t start = MonotonicNs();
  while (ReadStatistic(*a->device, contract::Statistic::kTimeouts) < 3 &&
         MonotonicNs() - start < kLimitNs) {
    a->Step();
  }
  EXPECT_FALSE(a->endpoint->PollTx());
  kill(child.pid(), SIGCONT);
  std::optional<Completion> sent;
  while (!sent && MonotonicNs() - start < kLimitNs) {
    a->Step();
    sent = a->endpoint->PollTx();
  }
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, Status::kOk);
}

TEST_F(RtlDeviceTest, TrafficGoesOnAfterALinkWasDown) {
  constexpr uint32_t kLink = contract::kBar0DeviceStatusLinkMask;
  RtlDeviceOptions options = Options(kIpA);
  options.rto_ns = 5000000;
  const auto a = Node::Open(options, 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  Exchange(*a, *b, 64);
  std::string message;
  auto control = WireControl::Open(Options(kIpA).wire.name, &message);
  ASSERT_TRUE(control.ok()) << message;
  const auto link = [](const Node& node) {
    return (node.device->ReadRegister32(contract::kBar0DeviceStatusOffset) &
            kLink) != 0;
  };
  const uint64_t deadline = MonotonicNs() + kLimitNs;
  const auto step_until = [&](const std::function<bool()>& done) {
    while (!done() && MonotonicNs() < deadline) {
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

TEST_F(RtlDeviceTest, FramesWithABadFcsAreCountedAndSentAgain) {
  RtlDeviceOptions options = Options(kIpA);
  options.rto_ns = 5000000;
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

TEST_F(RtlDeviceTest, ItsThreadIsNamedBlocksSignalsAndEndsWithIt) {
  bool blocked = false;
  std::string error;
  auto device = RtlDevice::Open(Options(kIpA), &error);
  ASSERT_TRUE(device.ok()) << error;
  EXPECT_EQ(Threads("heddle-rtl", &blocked), 0) << "not before it is needed";
  device.value()->WriteRegister64(contract::kBar0AdminCommandBaseOffset, 0);
  EXPECT_EQ(Threads("heddle-rtl", &blocked), 1);
  EXPECT_TRUE(blocked);
  device.value().reset();
  EXPECT_EQ(Threads("heddle-rtl", &blocked), 0);
}

TEST_F(RtlDeviceTest, ChildAfterForkCanDropItsCopy) {
  auto a = Node::Open(Options(kIpA), 100);
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(a && b);
  a->endpoint->AddPeer(kIpB, b->endpoint->grant());
  ChildProcess child([&a](const ChildProcess::Signal& signal) {
    delete a->device.release();
    signal();
  });
  EXPECT_TRUE(child.Wait());
  Exchange(*a, *b, 4096);
}

TEST_F(RtlDeviceTest, ProcessThatExitsWithoutClosingKeepsItsStatus) {
  constexpr int kStatus = 7;
  const auto b = Node::Open(Options(kIpB), 200);
  ASSERT_TRUE(b);
  for (int run = 0; run < 10; ++run) {
    ChildProcess child([this](const ChildProcess::Signal& signal) {
      auto a = Node::Open(Options(kIpA), 100);
      if (a == nullptr) {
        return;
      }
      a->endpoint->AddPeer(kIpB, Node::GrantOf(200));
      for (int i = 0; i < 20; ++i) {
        a->PostSend(0, kBufferBytes);  // Under way when it exits.
      }
      static_cast<void>(a.release());
      signal();
      std::exit(kStatus);
    });
    ASSERT_TRUE(child.Wait());
    EXPECT_EQ(child.ExitStatus(), kStatus);
  }
}

TEST_F(RtlDeviceTest, ResetBringsItBackToItsFirstState) {
  std::string error;
  auto opened = RtlDevice::Open(Options(kIpA), &error);
  ASSERT_TRUE(opened.ok()) << error;
  RtlDevice& device = *opened.value();
  const auto claim_port_100 = [&device] {
    auto admin = AdminQueue::Create(device);  // Resets what was there before.
    return admin.ok() && admin.value()->CreateEndpoint(100, 1).ok();
  };
  ASSERT_TRUE(WaitReady(device, kReadyLimit, error).ok()) << error;
  ASSERT_TRUE(claim_port_100());
  ASSERT_TRUE(device.Reset().ok()) << device.failure();
  ASSERT_TRUE(WaitReady(device, kReadyLimit, error).ok()) << error;
  EXPECT_TRUE(claim_port_100()) << "the claim was given back";
}

TEST_F(RtlDeviceTest, SettingsAreReadAndBadOnesNamed) {
  const auto parse = [](const char* name, const char* value,
                        std::string* message) {
    const HeddleSimOption option{.name = name, .value = value};
    return ParseSettings(&option, 1, message);
  };
  std::string message;
  EXPECT_EQ(parse("address", "10.1.2.3", &message).value().wire.ip,
            0x0a010203u);
  EXPECT_EQ(parse("payload_mtu", "8192", &message).value().wire.payload_mtu,
            8192u);
  EXPECT_EQ(parse("address", "fe80::1", &message).value().wire.ip,
            WireAddress(0xfe80000000000000, 1));
  EXPECT_EQ(parse("loss", "0.01", &message).value().faults.tx.loss, 0.01);
  EXPECT_EQ(parse("corrupt", "0.02", &message).value().faults.tx.corrupt, 0.02);
  EXPECT_EQ(parse("bad_fcs", "0.03", &message).value().faults.tx.bad_fcs, 0.03);
  EXPECT_EQ(parse("ecn", "1", &message).value().faults.tx.ecn, 1);
  EXPECT_EQ(parse("delay_ns", "5", &message).value().faults.tx.delay, 5u);
  EXPECT_EQ(parse("jitter_ns", "6", &message).value().faults.tx.jitter, 6u);
  EXPECT_EQ(parse("rate_gbps", "0.5", &message).value().faults.tx.rate, 0.5);
  EXPECT_EQ(parse("queue_bytes", "7", &message).value().faults.tx.queue_bytes,
            7u);
  EXPECT_EQ(parse("ecn_bytes", "8", &message).value().faults.tx.ecn_bytes, 8u);
  const LineFaults received = parse("rx_loss", "0.25", &message).value().faults;
  EXPECT_EQ(received.rx.loss, 0.25);
  EXPECT_EQ(received.tx.loss, 0);
  EXPECT_EQ(parse("rx_delay_ns", "9", &message).value().faults.rx.delay, 9u);
  const LineFaults seeded = parse("seed", "7", &message).value().faults;
  EXPECT_EQ(seeded.tx.seed, 7u);
  EXPECT_NE(seeded.rx.seed, 7u) << "directions fail independently";
  EXPECT_EQ(parse("dead_ns", "1000000", &message).value().dead_ns, 1000000u);
  EXPECT_EQ(parse("wire", "default", &message).value().wire.name, "");
  EXPECT_EQ(parse("statistics", "/x", &message).value().statistics, "/x");
  EXPECT_TRUE(
      parse("neighbours", "resolve", &message).value().resolve_neighbours);
  EXPECT_FALSE(
      parse("neighbours", "static", &message).value().resolve_neighbours);
  constexpr std::array<std::pair<const char*, const char*>, 14> kBad = {{
      {"neighbours", "some"},
      {"address", "10.1.2"},
      {"address", "0.0.0.0"},
      {"payload_mtu", "4095"},
      {"loss", "1.5"},
      {"loss", "0.1x"},
      {"seed", "-1"},
      {"rto_ns", "0"},
      {"wire", ""},
      {"rx_loss", "2"},
      {"delay_ns", "10000000001"},
      {"rate_gbps", "1e-9"},
      {"rx_rx_loss", "0.5"},
      {"colour", "blue"},
  }};
  for (const auto& [name, value] : kBad) {
    auto result = parse(name, value, &message);
    ASSERT_FALSE(result.ok()) << name << '=' << value;
    EXPECT_EQ(result.error(), Errno{EINVAL});
    EXPECT_NE(message.find(std::string(name) + "=" + value), std::string::npos)
        << message;
  }
}

TEST_F(RtlDeviceTest, FactoryRefusesOtherVersionsWithBothNumbers) {
  HeddleSimError error{};
  EXPECT_EQ(heddle_sim_open("rtl", kDeviceAbi + 1, contract::kContractHash,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EPROTO);
  EXPECT_NE(std::string(error.message).find(std::to_string(kDeviceAbi + 1)),
            std::string::npos);
  EXPECT_EQ(heddle_sim_open("rtl", kDeviceAbi, contract::kContractHash ^ 1,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EPROTO);
  EXPECT_EQ(heddle_sim_open("soft", kDeviceAbi, contract::kContractHash,
                            nullptr, 0, &error),
            nullptr);
  EXPECT_EQ(error.error, EINVAL);
  const HeddleSimOption option{.name = "wire", .value = name_.c_str()};
  const std::unique_ptr<Device> device(heddle_sim_open(
      "rtl", kDeviceAbi, contract::kContractHash, &option, 1, &error));
  ASSERT_NE(device, nullptr) << error.message;
  EXPECT_EQ(device->name(), "rtl0");
  EXPECT_EQ(device->ReadRegister32(contract::kBar0MagicOffset),
            contract::kBar0MagicReset);
  EXPECT_EQ(device->interrupt_fd(1000), -1);
}

}  // namespace
}  // namespace heddle::sim
