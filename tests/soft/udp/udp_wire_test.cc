// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_wire.h"

#include <netinet/udp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/random.h"
#include "tests/soft/udp/udp_test_wires.h"

namespace heddle::soft::udp {
namespace {

using contract::Statistic;
using SendOutcome = wire::DatagramWire::SendOutcome;

constexpr uint8_t kDscp = 46;

// Two functions that know of each other, in each address family. Both of IPv6
// are at the one address that a loopback interface has.
class UdpWireTest : public ::testing::TestWithParam<bool> {
 protected:
  static sim::frame::WireAddress Address(uint32_t node) {
    return GetParam() ? sim::frame::WireAddress(0, 1)
                      : sim::frame::WireAddress(0x7f000001 + node);
  }
  void Open(const sim::fault::LineFaults& faults = {}, uint64_t linger_ns = 0) {
    for (const uint32_t node : {0, 1}) {
      addresses_[node] = Address(node);
      wires_[node] = OpenWire({.ip = Address(node),
                               .payload_mtu = 0,
                               .linger_ns = linger_ns,
                               .faults = faults,
                               .capture = ""});
      ASSERT_NE(wires_[node], nullptr);
      ports_[node] = ClaimOwnPort(*wires_[node]);
      ASSERT_NE(ports_[node], 0);
    }
  }
  wire::Path Request(uint16_t entropy = 0) const {
    return {.destination = addresses_[1],
            .port = ports_[1],
            .entropy = entropy,
            .dscp = kDscp,
            .source_port = ports_[0]};
  }
  // As a device answers it.
  static wire::Path Answer(const wire::Datagram& datagram) {
    return {.destination = datagram.source,
            .port = 0,
            .recorded_port = datagram.source_udp_port,
            .entropy = datagram.source_udp_port,
            .dscp = datagram.dscp,
            .source_port = datagram.destination_port};
  }
  // Sends `count` numbered datagrams and takes what arrives, until a last one
  // without faults could no longer be overtaken.
  std::vector<uint32_t> Stream(uint32_t count) {
    std::vector<uint32_t> numbers;
    wire::Datagram datagram;
    const auto take = [&] {
      while (wires_[1]->Receive(&datagram)) {
        uint32_t number = 0;
        std::memcpy(&number, datagram.bytes.data(), sizeof(number));
        EXPECT_EQ(Copy(datagram), Numbered(number, 16 + number % 500));
        marked_ += datagram.congestion;
        numbers.push_back(number);
      }
    };
    for (uint32_t i = 0; i < count; ++i) {
      while (SendBytes(*wires_[0], Request(), Numbered(i, 16 + i % 500)) ==
             SendOutcome::kBlocked) {
        take();
      }
      if (i % 16 == 0) {
        wires_[0]->Flush();
        wires_[1]->Flush();
        take();
      }
    }
    // Loopback delivers within the call that sends.
    while (wires_[0]->deadline_ns() != UINT64_MAX ||
           wires_[1]->deadline_ns() != UINT64_MAX || wires_[1]->HasNews()) {
      wires_[0]->Flush();
      wires_[1]->Flush();
      take();
    }
    wires_[0]->Flush();
    take();
    return numbers;
  }

  std::array<std::unique_ptr<UdpWire>, 2> wires_;
  std::array<sim::frame::WireAddress, 2> addresses_;
  std::array<uint16_t, 2> ports_{};
  uint32_t marked_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Family, UdpWireTest, testing::Bool(),
                         [](const auto& family) {
                           return family.param ? "Ipv6" : "Ipv4";
                         });

TEST_P(UdpWireTest, ARequestFindsTheEndpointAndItsAnswerTheWayBack) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const Bytes question = Numbered(1, 100);
  ASSERT_EQ(SendBytes(*wires_[0], Request(5), question), SendOutcome::kSent);
  wires_[0]->Flush();
  wire::Datagram datagram;
  ASSERT_TRUE(Await(*wires_[1], &datagram));
  EXPECT_EQ(Copy(datagram), question);
  EXPECT_EQ(datagram.source, Address(0));
  EXPECT_GE(datagram.source_udp_port, 49152);
  EXPECT_EQ(datagram.destination_port, ports_[1]);
  EXPECT_EQ(datagram.dscp, kDscp);
  EXPECT_FALSE(datagram.congestion);
  const Bytes answer = Numbered(2, 30);
  ASSERT_EQ(SendBytes(*wires_[1], Answer(datagram), answer),
            SendOutcome::kSent);
  wires_[1]->Flush();
  ASSERT_TRUE(Await(*wires_[0], &datagram));
  EXPECT_EQ(Copy(datagram), answer);
  EXPECT_EQ(datagram.source, Address(1));
  EXPECT_EQ(datagram.source_udp_port, ports_[1])
      << "a firewall that keeps state expects it from there";
  EXPECT_EQ(datagram.destination_port, 0) << "none of an endpoint";
  EXPECT_FALSE(wires_[0]->Receive(&datagram));
}

TEST_P(UdpWireTest, EachSizeArrivesWhole) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(wires_[0]->payload_mtu(), 8192U) << "a loopback carries all";
  sim::base::Random random(1);
  wire::Datagram datagram;
  for (uint32_t i = 0; i < 300; ++i) {
    const uint32_t bytes =
        i < 2 ? 2 : 2 + random.Below(wires_[0]->max_bytes() - 1U);
    const Bytes sent = Numbered(i, i == 1 ? wires_[0]->max_bytes() : bytes);
    SCOPED_TRACE(sent.size());
    ASSERT_EQ(SendBytes(*wires_[0], Request(), sent), SendOutcome::kSent);
    wires_[0]->Flush();
    ASSERT_TRUE(Await(*wires_[1], &datagram));
    ASSERT_EQ(Copy(datagram), sent);
  }
}

TEST_P(UdpWireTest, ABurstOfOneFlowStaysInOrder) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto numbers = Stream(3000);
  ASSERT_EQ(numbers.size(), 3000U);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  // The same of equal sizes, which leave joined.
  wire::Datagram datagram;
  for (uint32_t round = 0; round < 20; ++round) {
    for (uint32_t i = 0; i < 64; ++i) {
      const Bytes sent = Numbered(i, i == 63 ? 700 : 1000);
      ASSERT_EQ(SendBytes(*wires_[0], Request(), sent), SendOutcome::kSent);
    }
    wires_[0]->Flush();
    for (uint32_t i = 0; i < 64; ++i) {
      ASSERT_TRUE(Await(*wires_[1], &datagram));
      ASSERT_EQ(Copy(datagram), Numbered(i, i == 63 ? 700 : 1000));
      ASSERT_EQ(datagram.dscp, kDscp);
    }
  }
}

TEST_P(UdpWireTest, OnlyDatagramsOfOneFlowLeaveJoined) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const firmware::PortClaim claim = wires_[1]->ClaimPort({0});
  ASSERT_TRUE(claim.granted);
  // The same source and size; every other one differs in port or DSCP.
  const auto path_of = [&](uint32_t number) {
    wire::Path path = Request();
    if (number / 16 % 2 == 0 && number % 2 == 1) {
      path.port = static_cast<uint16_t>(claim.port);
    }
    if (number / 16 % 2 == 1 && number % 2 == 1) {
      path.dscp = 0;
    }
    return path;
  };
  for (uint32_t i = 0; i < 64; ++i) {
    SendBytes(*wires_[0], path_of(i), Numbered(i, 1000));
  }
  wires_[0]->Flush();
  std::set<uint32_t> seen;
  wire::Datagram datagram;
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(Await(*wires_[1], &datagram));
    uint32_t number = 0;
    std::memcpy(&number, datagram.bytes.data(), sizeof(number));
    ASSERT_EQ(Copy(datagram), Numbered(number, 1000));
    EXPECT_EQ(datagram.destination_port, path_of(number).port);
    EXPECT_EQ(datagram.dscp, path_of(number).dscp);
    seen.insert(number);
  }
  EXPECT_EQ(seen.size(), 64U);
}

TEST_P(UdpWireTest, EntropyChoosesTheSourcePort) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::set<uint16_t> ports;
  wire::Datagram datagram;
  for (uint16_t round = 0; round < 3; ++round) {
    for (uint16_t i = 0; i < UdpSockets::kEntropySockets; ++i) {
      // Those of one run share a port.
      const auto entropy = static_cast<uint16_t>(49152 + i * kEntropyRun);
      for (const uint32_t next : {0U, kEntropyRun - 1}) {
        SendBytes(*wires_[0], Request(static_cast<uint16_t>(entropy + next)),
                  Numbered(i, 40));
      }
      wires_[0]->Flush();
      ASSERT_TRUE(Await(*wires_[1], &datagram));
      const uint16_t port = datagram.source_udp_port;
      ASSERT_TRUE(Await(*wires_[1], &datagram));
      EXPECT_EQ(datagram.source_udp_port, port) << "a PDC keeps its own";
      EXPECT_GE(port, 49152);
      ports.insert(port);
    }
  }
  EXPECT_EQ(ports.size(), UdpSockets::kEntropySockets);
}

// No call looks for a second one: the next poll does that.
TEST_P(UdpWireTest, OneDatagramCostsOneCallAtEachEnd) {
  ASSERT_NO_FATAL_FAILURE(Open());
  wire::Datagram datagram;
  for (uint32_t i = 0; i < 10; ++i) {
    SendBytes(*wires_[0], Request(), Numbered(i, 40));
    wires_[0]->Flush();
    ASSERT_TRUE(wires_[1]->HasNews());
    ASSERT_TRUE(wires_[1]->Receive(&datagram));
    EXPECT_FALSE(wires_[1]->HasTaken());
    EXPECT_FALSE(wires_[1]->HasNews());
  }
  EXPECT_EQ(wires_[0]->send_calls(), 10U);
  EXPECT_EQ(wires_[1]->receive_calls(), 10U);
}

// As an unordered PDC sends them.
TEST_P(UdpWireTest, ARunOfEntropiesLeavesInOneCallAndArrivesJoined) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint32_t kRuns = 64 / kEntropyRun;
  wire::Datagram datagram;
  for (uint32_t i = 0; i < kRuns * kEntropyRun; ++i) {
    const auto entropy = static_cast<uint16_t>(49152 + i);
    SendBytes(*wires_[0], Request(entropy), Numbered(i, 1000));
  }
  wires_[0]->Flush();
  EXPECT_EQ(wires_[0]->send_calls(), kRuns);
  for (uint32_t i = 0; i < kRuns * kEntropyRun; ++i) {
    ASSERT_TRUE(Await(*wires_[1], &datagram));
    EXPECT_EQ(Copy(datagram), Numbered(i, 1000));
    EXPECT_EQ(wires_[1]->HasTaken(), i + 1 != kRuns * kEntropyRun);
  }
  EXPECT_EQ(wires_[1]->receive_calls(), 1U);
}

TEST_P(UdpWireTest, DatagramsCarryDscpAndDeclareThemselvesEcnCapable) {
  ASSERT_NO_FATAL_FAILURE(Open());
  auto interface = FindInterface(Address(1));
  ASSERT_TRUE(interface.ok());
  const uint16_t port = ports_[1];
  wires_[1]->ReleasePort({port});
  auto plain = OpenUdpSocket(interface.value(), Address(1), port);
  ASSERT_TRUE(plain.ok()) << "the port is free again";
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  wires_[0]->Flush();
  UdpReceiver receiver;
  NetworkErrors errors;
  ASSERT_TRUE(receiver.Fill(plain.value().get(), port, &errors));
  const ReceivedDatagram received = receiver.Next();
  EXPECT_EQ(received.tos, kDscp << kDscpShift | kEcnCapable);
  EXPECT_EQ(received.bytes.size(), 40 + contract::kCrcBytes);
  EXPECT_TRUE(receiver.empty());
}

// As peers other than a kernel send them (UE specification 1.0.3 3.5.10.1).
TEST_P(UdpWireTest, DatagramsWithoutUdpChecksumArrive) {
  ASSERT_NO_FATAL_FAILURE(Open());
  auto interface = FindInterface(Address(0));
  ASSERT_TRUE(interface.ok());
  auto peer = OpenUdpSocket(interface.value(), Address(0), 0);
  ASSERT_TRUE(peer.ok());
  const int on = 1;
  const bool ipv6 = Address(0).ipv6;
  ASSERT_EQ(setsockopt(peer.value().get(), ipv6 ? IPPROTO_UDP : SOL_SOCKET,
                       ipv6 ? UDP_NO_CHECK6_TX : SO_NO_CHECK, &on, sizeof(on)),
            0);
  const SocketName target =
      MakeName(Address(1), ports_[1], interface.value().index);
  const Bytes bytes = Numbered(1, 100);
  ASSERT_EQ(sendto(peer.value().get(), bytes.data(), bytes.size(), 0,
                   target.get(), target.bytes),
            static_cast<ssize_t>(bytes.size()));
  wire::Datagram datagram;
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  EXPECT_EQ(wires_[1]->statistic(Statistic::kDropCrc), 1U)
      << "it has no CRC, but the socket let it pass";
}

// A switch that trims takes the CRC, too; the kernel wants the UDP length new.
TEST_P(UdpWireTest, TrimmedDatagramsArriveByTheirDscpWithoutACrc) {
  ASSERT_NO_FATAL_FAILURE(Open());
  contract::PortCfg port = EnabledPort();
  port.crc = contract::CrcOrder::kNone;
  wires_[0]->Configure(port);
  contract::TransportCfg transport{};
  transport.dscp_trimmed_lasthop = kDscp;
  wire::Datagram datagram;
  for (const size_t bytes : {15U, 16U, 40U}) {
    SCOPED_TRACE(bytes);
    for (const bool known : {false, true}) {
      wires_[1]->SetTransport(known ? transport : contract::TransportCfg{});
      SendBytes(*wires_[0], Request(), Numbered(1, bytes));
      wires_[0]->Flush();
      const bool arrives = known && bytes >= 16;
      ASSERT_EQ(wires_[1]->Receive(&datagram), arrives);
      if (arrives) {
        EXPECT_EQ(datagram.trim, wire::Trim::kLasthop);
        EXPECT_EQ(Copy(datagram), Numbered(1, bytes));
      }
    }
  }
  EXPECT_EQ(wires_[1]->statistic(Statistic::kDropCrc), 3U);
  EXPECT_EQ(wires_[1]->statistic(Statistic::kDropTruncated), 1U);
}

// One CRC in 2^16 is right in both orders, and ports of sockets vary.
TEST_P(UdpWireTest, BothOrdersOfTheCrcArriveAtAPortOfTheSame) {
  using contract::CrcOrder;
  constexpr uint32_t kEach = 16;
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const CrcOrder from : {CrcOrder::kLsbFirst, CrcOrder::kMsbFirst}) {
    for (const CrcOrder to : {CrcOrder::kLsbFirst, CrcOrder::kMsbFirst}) {
      contract::PortCfg port = EnabledPort();
      port.crc = from;
      wires_[0]->Configure(port);
      port.crc = to;
      wires_[1]->Configure(port);
      const uint64_t before = wires_[1]->statistic(Statistic::kDropCrc);
      uint64_t arrived = 0;
      for (uint32_t number = 0; number < kEach; ++number) {
        SendBytes(*wires_[0], Request(), Numbered(number, 40));
        wires_[0]->Flush();
        wire::Datagram datagram;
        if (from == to) {
          ASSERT_TRUE(Await(*wires_[1], &datagram));
          EXPECT_EQ(Copy(datagram), Numbered(number, 40));
          ++arrived;
        } else {
          arrived += wires_[1]->Receive(&datagram) ? 1 : 0;
        }
      }
      const uint64_t dropped =
          wires_[1]->statistic(Statistic::kDropCrc) - before;
      EXPECT_EQ(arrived + dropped, kEach);
      EXPECT_EQ(dropped == 0, from == to);
    }
  }
}

TEST_P(UdpWireTest, MarksArriveAndLeaveTheCrcIntact) {
  sim::fault::LineFaults faults;
  faults.tx.ecn = 1;
  ASSERT_NO_FATAL_FAILURE(Open(faults));
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  wires_[0]->Flush();
  wire::Datagram datagram;
  ASSERT_TRUE(Await(*wires_[1], &datagram));
  EXPECT_TRUE(datagram.congestion);
  EXPECT_EQ(datagram.dscp, kDscp);
  EXPECT_EQ(Copy(datagram), Numbered(1, 40));
}

TEST_P(UdpWireTest, NothingPassesUntilFirmwareEnablesThePort) {
  ASSERT_NO_FATAL_FAILURE(Open());
  wires_[0]->Configure({});
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  wires_[0]->Flush();
  wires_[0]->Configure(EnabledPort());
  wires_[1]->Configure({});
  SendBytes(*wires_[0], Request(), Numbered(2, 40));
  wires_[0]->Flush();
  wire::Datagram datagram;
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  wires_[1]->Configure(EnabledPort());
  SendBytes(*wires_[0], Request(), Numbered(3, 40));
  wires_[0]->Flush();
  ASSERT_TRUE(Await(*wires_[1], &datagram));
  EXPECT_EQ(Copy(datagram), Numbered(3, 40));
}

TEST_P(UdpWireTest, FaultsLoseDoubleReorderAndDelayAsTheySay) {
  sim::fault::LineFaults faults;
  faults.tx = {.seed = 3, .loss = 0.1, .duplicate = 0.1, .reorder = 0.1};
  ASSERT_NO_FATAL_FAILURE(Open(faults));
  auto numbers = Stream(2000);
  EXPECT_NEAR(static_cast<double>(numbers.size()), 2000, 80);
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_NEAR(static_cast<double>(numbers.size()), 1800, 60);
}

TEST_P(UdpWireTest, FaultsOfTheReceiverAreItsOwn) {
  sim::fault::LineFaults faults;
  faults.rx.loss = 0.5;
  faults.rx.bad_fcs = 0.1;
  ASSERT_NO_FATAL_FAILURE(Open(faults));
  const auto numbers = Stream(2000);
  EXPECT_NEAR(static_cast<double>(numbers.size()), 900, 100);
  EXPECT_EQ(wires_[0]->statistic(Statistic::kTxFrames), 2000U);
  EXPECT_NEAR(
      static_cast<double>(wires_[1]->statistic(Statistic::kDropMacError)), 100,
      60);
}

TEST_P(UdpWireTest, BothEndsDrawTheirOwnFaultsAndTheSameAgain) {
  sim::fault::LineFaults faults;
  faults.tx.loss = 0.5;
  std::array<std::set<std::vector<uint32_t>>, 2> runs;
  std::array<uint32_t, 2> ordinals{};
  // Functions of other processes come to the addresses and leave them.
  for (bool again = false; !again;) {
    wires_ = {};
    ASSERT_NO_FATAL_FAILURE(Open(faults));
    const std::array now = {wires_[0]->ordinal(), wires_[1]->ordinal()};
    again = !runs[0].empty() && now == ordinals;
    if (!again) {
      runs = {};
    }
    ordinals = now;
    for (const uint32_t sender : {0, 1}) {
      runs[sender].insert(Stream(200));
      std::swap(wires_[0], wires_[1]);
      std::swap(addresses_[0], addresses_[1]);
      std::swap(ports_[0], ports_[1]);
    }
  }
  EXPECT_EQ(runs[0].size(), 1U);
  EXPECT_EQ(runs[1].size(), 1U);
  EXPECT_NE(runs[0], runs[1]);
}

TEST_P(UdpWireTest, TheCrcFindsSilentCorruption) {
  sim::fault::LineFaults faults;
  faults.tx.corrupt = 0.2;
  ASSERT_NO_FATAL_FAILURE(Open(faults));
  const auto numbers = Stream(2000);
  const uint64_t dropped = wires_[1]->statistic(Statistic::kDropCrc);
  EXPECT_EQ(numbers.size() + dropped, 2000U);
  EXPECT_NEAR(static_cast<double>(dropped), 400, 80);
}

TEST_P(UdpWireTest, ARateMarksThenLosesAndADelayHoldsWithoutLoss) {
  sim::fault::LineFaults faults;
  faults.tx.rate = 0.005;  // 64 KiB take 0.1 s: slower than instrumented code.
  faults.tx.queue_bytes = 65536;
  faults.tx.ecn_bytes = 16384;
  faults.rx.delay = 300000;
  ASSERT_NO_FATAL_FAILURE(Open(faults));
  SendBytes(*wires_[0], Request(), Numbered(0, 40));
  while (wires_[0]->deadline_ns() != UINT64_MAX) {
    wires_[0]->Flush();
  }
  wire::Datagram datagram;
  const uint64_t start = sim::base::MonotonicNs();
  ASSERT_TRUE(Await(*wires_[1], &datagram));
  EXPECT_GE(sim::base::MonotonicNs() - start, 300000U);
  const auto numbers = Stream(2000);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  const std::string text = wires_[0]->StatisticsText();
  const auto count = [&](const std::string& name) {
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos
               ? 0
               : std::stoul(text.substr(at + name.size() + 2));
  };
  EXPECT_EQ(numbers.size() + count("faults_overflowed"), 2000U) << text;
  EXPECT_EQ(marked_, count("faults_marked"));
  EXPECT_GT(marked_, 0U);
}

TEST_P(UdpWireTest, DatagramsThatAreNotUetAreDroppedAndCounted) {
  ASSERT_NO_FATAL_FAILURE(Open());
  auto interface = FindInterface(Address(0));
  ASSERT_TRUE(interface.ok());
  auto stranger = OpenUdpSocket(interface.value(), Address(0), 0);
  ASSERT_TRUE(stranger.ok());
  const SocketName target =
      MakeName(Address(1), ports_[1], interface.value().index);
  const auto send = [&](const Bytes& bytes) {
    EXPECT_EQ(sendto(stranger.value().get(), bytes.data(), bytes.size(), 0,
                     target.get(), target.bytes),
              static_cast<ssize_t>(bytes.size()));
  };
  send({});
  send({1});
  send(Bytes(5, 0xff));
  send(Bytes(wires_[1]->max_bytes() + contract::kCrcBytes + 1U, 1));
  send(Bytes(60000, 1));
  wire::Datagram datagram;
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  EXPECT_EQ(wires_[1]->statistic(Statistic::kDropTruncated), 5U);
  send(Numbered(1, 6));
  send(Numbered(2, 100));
  send(Numbered(3, wires_[1]->max_bytes() + contract::kCrcBytes));
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  EXPECT_EQ(wires_[1]->statistic(Statistic::kDropCrc), 3U);
  EXPECT_EQ(wires_[1]->statistic(Statistic::kRxFrames), 8U);
  SendBytes(*wires_[0], Request(), Numbered(4, 40));
  wires_[0]->Flush();
  ASSERT_TRUE(Await(*wires_[1], &datagram)) << "it goes on";
}

TEST_P(UdpWireTest, AFloodOfNonsenseDoesNotHoldReceiveUp) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (uint32_t i = 0; i < 200; ++i) {
    contract::PortCfg port = EnabledPort();
    port.crc = contract::CrcOrder::kNone;
    wires_[0]->Configure(port);
    SendBytes(*wires_[0], Request(), Numbered(i, 100));
  }
  wires_[0]->Flush();
  wire::Datagram datagram;
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  EXPECT_EQ(wires_[1]->statistic(Statistic::kDropCrc), 64U);
  EXPECT_TRUE(wires_[1]->HasNews()) << "there is more";
}

TEST_P(UdpWireTest, NamesOfAPortInSeveralSpacesShareItsSocket) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const firmware::PortName relative = {ports_[1], firmware::JobSpace(7)};
  const auto other = OpenWire({.ip = Address(1)});
  ASSERT_NE(other, nullptr);
  EXPECT_FALSE(other->ClaimPort(relative).granted) << "it has the socket";
  EXPECT_TRUE(wires_[1]->ClaimPort(relative).granted);
  EXPECT_FALSE(wires_[1]->ClaimPort(relative).granted);
  // The socket stays for the one that is left.
  wires_[1]->ReleasePort({ports_[1]});
  EXPECT_FALSE(other->ClaimPort({ports_[1]}).granted);
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  wires_[0]->Flush();
  wire::Datagram datagram;
  EXPECT_TRUE(Await(*wires_[1], &datagram));
  wires_[1]->ReleasePort(relative);
  EXPECT_TRUE(other->ClaimPort(relative).granted);
}

TEST_P(UdpWireTest, APortBelongsToOneEndpointAtATime) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto other = OpenWire({.ip = Address(1)});
  ASSERT_NE(other, nullptr);
  firmware::PortClaim claim = other->ClaimPort({ports_[1]});
  EXPECT_FALSE(claim.granted);
  EXPECT_EQ(claim.owner, 0U) << "who has it is not known";
  claim = wires_[1]->ClaimPort({ports_[1]});
  EXPECT_FALSE(claim.granted);
  EXPECT_EQ(claim.owner, static_cast<uint32_t>(getpid()));
  wires_[1]->ReleasePort({ports_[1]});
  claim = other->ClaimPort({ports_[1]});
  EXPECT_TRUE(claim.granted);
  EXPECT_EQ(claim.port, ports_[1]);
  EXPECT_FALSE(wires_[1]->ClaimPort({65536}).granted);
  wires_[1]->ReleasePort({65536});
  // What was sent to the port goes to its new owner.
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  wires_[0]->Flush();
  wire::Datagram datagram;
  EXPECT_TRUE(Await(*other, &datagram));
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
}

TEST_P(UdpWireTest, FreePortsAreDistinctAlsoAmongFunctions) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::set<uint32_t> ports = {ports_[0], ports_[1]};
  const auto other = OpenWire({.ip = Address(1)});
  ASSERT_NE(other, nullptr);
  for (uint32_t i = 0; i < 50; ++i) {
    for (UdpWire* const wire : {wires_[1].get(), other.get()}) {
      const firmware::PortClaim claim = wire->ClaimPort({0});
      ASSERT_TRUE(claim.granted);
      EXPECT_GE(claim.port, 49152U);
      ports.insert(claim.port);
    }
  }
  EXPECT_GE(ports.size(), 101U);
}

TEST_P(UdpWireTest, ManyEndpointsEachHearTheirOwn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<uint16_t> ports;
  for (uint32_t i = 0; i < 300; ++i) {
    const firmware::PortClaim claim = wires_[1]->ClaimPort({0});
    ASSERT_TRUE(claim.granted);
    ports.push_back(static_cast<uint16_t>(claim.port));
  }
  for (uint32_t i = 0; i < ports.size(); ++i) {
    wire::Path path = Request(static_cast<uint16_t>(i));
    path.port = ports[i];
    ASSERT_EQ(SendBytes(*wires_[0], path, Numbered(i, 40)), SendOutcome::kSent);
  }
  wires_[0]->Flush();
  std::set<uint32_t> seen;
  wire::Datagram datagram;
  for (size_t i = 0; i < ports.size(); ++i) {
    ASSERT_TRUE(Await(*wires_[1], &datagram));
    uint32_t number = 0;
    std::memcpy(&number, datagram.bytes.data(), sizeof(number));
    ASSERT_LT(number, ports.size());
    EXPECT_EQ(datagram.destination_port, ports[number]);
    seen.insert(number);
  }
  EXPECT_EQ(seen.size(), ports.size());
}

TEST_P(UdpWireTest, ARefusedDatagramIsCountedAndHarmsNoOther) {
  ASSERT_NO_FATAL_FAILURE(Open());
  wire::Path unserved = Request();
  unserved.port = ClaimOwnPort(*wires_[1]);
  ASSERT_NE(unserved.port, 0);
  wires_[1]->ReleasePort({unserved.port});
  wire::Datagram datagram;
  for (uint32_t i = 0; i < 100; ++i) {
    SendBytes(*wires_[0], unserved, Numbered(i, 40));
    wires_[0]->Flush();
    SendBytes(*wires_[0], Request(), Numbered(i, 50));
    wires_[0]->Flush();
    ASSERT_TRUE(Await(*wires_[1], &datagram)) << i;
    EXPECT_EQ(Copy(datagram), Numbered(i, 50));
    EXPECT_FALSE(wires_[0]->Receive(&datagram));
  }
  EXPECT_GT(wires_[0]->network_errors().refused, 0U);
  EXPECT_FALSE(wires_[0]->HasNews()) << "errors do not keep a sleeper awake";
  EXPECT_TRUE(wires_[0]->link_up());
}

TEST_P(UdpWireTest, WithoutAPortToSendToADatagramIsLost) {
  ASSERT_NO_FATAL_FAILURE(Open());
  wire::Path path = Request();
  path.port = 0;
  EXPECT_EQ(SendBytes(*wires_[0], path, Numbered(1, 40)), SendOutcome::kSent);
  path.port = ports_[1];
  path.destination.ipv6 = !path.destination.ipv6;
  EXPECT_EQ(SendBytes(*wires_[0], path, Numbered(1, 40)), SendOutcome::kSent);
  wires_[0]->Flush();
  EXPECT_EQ(wires_[0]->statistic(Statistic::kTxFrames), 0U);
  EXPECT_NE(wires_[0]->StatisticsText().find("udp_no_port 2"),
            std::string::npos);
}

TEST_P(UdpWireTest, AnEndpointMayCloseWithDatagramsUnderWay) {
  ASSERT_NO_FATAL_FAILURE(Open());
  wire::Datagram datagram;
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  SendBytes(*wires_[0], Request(), Numbered(2, 40));
  wires_[0]->Flush();
  ASSERT_TRUE(Await(*wires_[1], &datagram));
  const wire::Path answer = Answer(datagram);
  SendBytes(*wires_[1], answer, Numbered(3, 40));  // From its socket.
  wires_[1]->ReleasePort({ports_[1]});
  wires_[1]->Flush();
  wires_[1]->Receive(&datagram);
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  SendBytes(*wires_[1], answer, Numbered(4, 40));  // From another.
  wires_[1]->Flush();
  ASSERT_TRUE(Await(*wires_[0], &datagram));
  EXPECT_EQ(Copy(datagram), Numbered(4, 40));
}

TEST_P(UdpWireTest, NewsOfASocketThatClosedHidesNoOther) {
  ASSERT_NO_FATAL_FAILURE(Open());
  wire::Path other = Request();
  other.port = ClaimOwnPort(*wires_[1]);
  ASSERT_NE(other.port, 0);
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  wires_[0]->Flush();
  ASSERT_TRUE(wires_[1]->HasNews());
  wires_[1]->ReleasePort({ports_[1]});
  SendBytes(*wires_[0], other, Numbered(2, 40));
  wires_[0]->Flush();
  wire::Datagram datagram;
  ASSERT_TRUE(wires_[1]->Receive(&datagram));
  EXPECT_EQ(Copy(datagram), Numbered(2, 40));
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  EXPECT_FALSE(wires_[1]->HasNews());
}

TEST_P(UdpWireTest, AReleasedPortGoesOnToAnswer) {
  ASSERT_NO_FATAL_FAILURE(Open({}, 3600 * sim::base::kNsPerSecond));
  wire::Datagram datagram;
  wires_[1]->ReleasePort({ports_[1]});
  SendBytes(*wires_[0], Request(), Numbered(1, 40));
  wires_[0]->Flush();
  ASSERT_TRUE(Await(*wires_[1], &datagram));
  EXPECT_EQ(datagram.destination_port, ports_[1]);
  SendBytes(*wires_[1], Answer(datagram), Numbered(2, 40));
  wires_[1]->Flush();
  ASSERT_TRUE(Await(*wires_[0], &datagram));
  EXPECT_EQ(Copy(datagram), Numbered(2, 40));
  EXPECT_EQ(datagram.source_udp_port, ports_[1]);
  // It is its function's to give away meanwhile.
  const auto other = OpenWire({.ip = Address(1)});
  ASSERT_NE(other, nullptr);
  EXPECT_FALSE(other->ClaimPort({ports_[1]}).granted);
  EXPECT_TRUE(wires_[1]->ClaimPort({ports_[1]}).granted);
  EXPECT_FALSE(wires_[1]->ClaimPort({ports_[1]}).granted);
  SendBytes(*wires_[0], Request(), Numbered(3, 40));
  wires_[0]->Flush();
  EXPECT_TRUE(Await(*wires_[1], &datagram));
  EXPECT_EQ(wires_[0]->network_errors().refused, 0U);
  // But only to who asks for that one.
  const firmware::PortClaim chosen = wires_[1]->ClaimPort({0});
  wires_[1]->ReleasePort({chosen.port});
  EXPECT_NE(wires_[1]->ClaimPort({0}).port, chosen.port);
}

TEST_P(UdpWireTest, AReleasedPortIsClosedInTheEnd) {
  ASSERT_NO_FATAL_FAILURE(Open({}, 10'000'000));
  const auto other = OpenWire({.ip = Address(1)});
  ASSERT_NE(other, nullptr);
  wires_[1]->ReleasePort({ports_[1]});
  ASSERT_TRUE(wires_[1]->ClaimPort({ports_[1]}).granted);
  EXPECT_EQ(wires_[1]->deadline_ns(), UINT64_MAX) << "it is used again";
  wires_[1]->ReleasePort({ports_[1]});
  // A sleeper wakes for it.
  while (wires_[1]->deadline_ns() > sim::base::MonotonicNs()) {
    ASSERT_NE(wires_[1]->deadline_ns(), UINT64_MAX);
    wires_[1]->Sleep(3600 * sim::base::kNsPerSecond);
  }
  wires_[1]->Flush();
  EXPECT_EQ(wires_[1]->deadline_ns(), UINT64_MAX);
  EXPECT_TRUE(other->ClaimPort({ports_[1]}).granted);
}

TEST_P(UdpWireTest, ReleasedPortsCloseWhenDescriptorsRunOut) {
  ASSERT_NO_FATAL_FAILURE(Open({}, 3600 * sim::base::kNsPerSecond));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  bool granted = true;
  for (uint32_t i = 0; i < 200 && granted; ++i) {
    const firmware::PortClaim claim = wires_[1]->ClaimPort({0});
    granted = claim.granted;
    wires_[1]->ReleasePort({claim.port});
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(granted);
}

TEST_P(UdpWireTest, ASleeperWakesForADatagramAKickOrItsTime) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint64_t kLong = 60 * sim::base::kNsPerSecond;
  wire::Datagram datagram;
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  EXPECT_FALSE(wires_[1]->HasNews());
  wires_[1]->Sleep(1000);
  std::thread kicker([&] { wires_[1]->Kick(); });
  wires_[1]->Sleep(kLong);
  kicker.join();
  EXPECT_FALSE(wires_[1]->HasNews()) << "a kick is none";
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  const uint32_t kicks = wires_[1]->Kicks();
  wires_[1]->SleepSince(kicks, 1000);
  wires_[1]->Kick();
  EXPECT_FALSE(wires_[1]->Receive(&datagram));
  wires_[1]->SleepSince(kicks, kLong);  // Whoever else has looked.
  std::thread sender([&] {
    SendBytes(*wires_[0], Request(), Numbered(1, 40));
    wires_[0]->Flush();
  });
  wires_[1]->Sleep(kLong);
  sender.join();
  EXPECT_TRUE(wires_[1]->HasNews());
  EXPECT_TRUE(wires_[1]->Receive(&datagram));
}

TEST_P(UdpWireTest, OnePortForEverythingIsOneProcessesPort) {
  uint16_t port = 0;
  {
    const auto probe = OpenWire({.ip = Address(0)});
    ASSERT_NE(probe, nullptr);
    port = ClaimOwnPort(*probe);
  }
  std::string message;
  const auto first =
      OpenWire({.ip = Address(0), .payload_mtu = 0, .udp_port = port});
  ASSERT_NE(first, nullptr);
  auto second = UdpWire::Open(
      {.ip = Address(0), .payload_mtu = 0, .udp_port = port}, &message);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error(), Errno{EADDRINUSE});
  EXPECT_NE(message.find(std::to_string(port)), std::string::npos) << message;
  // Claims are of this process alone, and bind nothing.
  EXPECT_TRUE(first->ClaimPort({7}).granted);
  EXPECT_EQ(first->ClaimPort({7}).owner, static_cast<uint32_t>(getpid()));
  first->ReleasePort({7});
  EXPECT_TRUE(first->ClaimPort({7}).granted);
  // Requests and answers alike go there.
  const auto other = OpenWire({.ip = Address(1)});
  ASSERT_NE(other, nullptr);
  wire::Path path{.destination = Address(0), .port = 7};
  path.recorded_port = 9;
  SendBytes(*first, path, Numbered(1, 40));
  path.port = 0;
  SendBytes(*first, path, Numbered(2, 40));
  first->Flush();
  wire::Datagram datagram;
  for (const uint32_t number : {1, 2}) {
    ASSERT_TRUE(Await(*first, &datagram));
    EXPECT_EQ(Copy(datagram), Numbered(number, 40));
    EXPECT_EQ(datagram.destination_port, 0);
    EXPECT_GE(datagram.source_udp_port, 49152);
  }
}

}  // namespace
}  // namespace heddle::soft::udp
