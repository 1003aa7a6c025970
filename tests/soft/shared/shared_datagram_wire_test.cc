// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/shared/shared_datagram_wire.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hw/sim/base/clock.h"
#include "hw/sim/frame/wire_address.h"
#include "tests/sim/frame/test_frames.h"

namespace heddle::soft::shared {
namespace {

using contract::Statistic;

constexpr uint32_t kIpA = 0x0a000001;
constexpr uint32_t kIpB = 0x0a000002;
constexpr uint16_t kPort = 4242;
constexpr uint64_t kHopMac = 0x02ff00000001;

wire::FabricAddress Address(uint32_t ip) {
  wire::FabricAddress address;
  address.lo = ip;
  return address;
}

wire::Path To(uint32_t ip) {
  wire::Path path;
  path.destination = Address(ip);
  return path;
}

class Frames final : public wire::SlowPathSink {
 public:
  void Accept(std::span<const uint8_t> frame) override {
    frames.emplace_back(frame.begin(), frame.end());
  }
  std::vector<std::vector<uint8_t>> frames;
};

struct End {
  Frames slow_path;
  std::unique_ptr<SharedDatagramWire> wire;
};

class SharedDatagramWireTest : public testing::Test {
 protected:
  SharedDatagramWireOptions Options(uint32_t ip) const {
    SharedDatagramWireOptions options;
    options.wire.name = name_;
    options.wire.ip = ip;
    return options;
  }
  static contract::PortCfg Port(uint32_t ip, uint16_t function) {
    contract::PortCfg port;
    port.local_fa_lo = ip;
    port.mac = sim::frame::PortMac(sim::frame::WireAddress(ip), function);
    port.payload_mtu = 4096;
    port.udp_port = contract::kUetUdpPort;
    port.enable = 1;
    port.crc = contract::CrcOrder::kMsbFirst;
    return port;
  }
  std::unique_ptr<End> Open(const SharedDatagramWireOptions& options) {
    auto end = std::make_unique<End>();
    std::string message;
    auto wire = SharedDatagramWire::Open(options, &end->slow_path, &message);
    EXPECT_TRUE(wire.ok()) << message;
    end->wire = std::move(wire.value());
    end->wire->Configure(
        Port(static_cast<uint32_t>(options.wire.ip.lo), end->wire->function()));
    contract::NextHopCfg hop;
    hop.mac = kHopMac;
    hop.valid = 1;
    end->wire->SetNextHop(0, hop);
    return end;
  }
  // A request with syn=1 to `kPort`, which the switch routes by its address.
  static size_t Fill(SharedDatagramWire& wire, size_t payload) {
    const sim::frame::Frame pds = sim::frame::MakeSynPds(kPort, payload);
    std::memcpy(wire.Room().data(), pds.data(), pds.size());
    return pds.size();
  }
  const std::string name_ =
      "soft-" + std::to_string(getpid()) + "-" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

// Of a frame that `from` sent to a port that takes unchecked ones, or not.
struct Arrived {
  sim::frame::FrameMarks marks;
  bool has_crc = false;
};

class UncheckedTest : public SharedDatagramWireTest {
 protected:
  Arrived Send(const SharedDatagramWireOptions& from, bool takes_unchecked) {
    sim::wire::SharedWireOptions to = Options(kIpB).wire;
    to.takes_unchecked = takes_unchecked;
    std::string message;
    auto b = std::move(sim::wire::SharedWire::Attach(to, &message).value());
    EXPECT_TRUE(b->ClaimPort({kPort}).granted);
    const auto a = Open(from);
    EXPECT_EQ(a->wire->Send(To(kIpB), Fill(*a->wire, 100)),
              wire::DatagramWire::SendOutcome::kSent);
    sim::frame::Frame frame;
    Arrived arrived;
    EXPECT_TRUE(b->Receive(&frame, &arrived.marks));
    const auto crc = std::span(frame).last(contract::kCrcBytes);
    arrived.has_crc =
        std::any_of(crc.begin(), crc.end(), [](uint8_t byte) { return byte; });
    return arrived;
  }
};

TEST_F(UncheckedTest, WhoSaidSoGetsFramesWithoutCrc) {
  const Arrived arrived = Send(Options(kIpA), true);
  EXPECT_TRUE(arrived.marks.unchecked);
  EXPECT_FALSE(arrived.has_crc);
}

TEST_F(UncheckedTest, OthersGetWholeFrames) {
  const Arrived arrived = Send(Options(kIpA), false);
  EXPECT_FALSE(arrived.marks.unchecked);
  EXPECT_TRUE(arrived.has_crc);
}

TEST_F(UncheckedTest, FramesThatFaultsMayChangeAreWhole) {
  SharedDatagramWireOptions options = Options(kIpA);
  options.faults.tx.duplicate = 1e-9;
  const Arrived arrived = Send(options, true);
  EXPECT_FALSE(arrived.marks.unchecked);
  EXPECT_TRUE(arrived.has_crc);
}

TEST_F(UncheckedTest, CapturedFramesAreWhole) {
  SharedDatagramWireOptions options = Options(kIpA);
  options.capture = testing::TempDir() + "/" + name_ + ".pcap";
  const Arrived arrived = Send(options, true);
  EXPECT_FALSE(arrived.marks.unchecked);
  EXPECT_TRUE(arrived.has_crc);
  EXPECT_EQ(std::remove(options.capture.c_str()), 0);
}

// What takes frames through faults or to a file does not ask for such frames.
TEST_F(UncheckedTest, ReceiversThatLookAtChecksSaySo) {
  for (const bool captures : {false, true}) {
    SharedDatagramWireOptions options = Options(kIpB);
    const std::string path = testing::TempDir() + "/" + name_ + ".pcap";
    options.capture = captures ? path : std::string();
    options.faults.rx.corrupt = captures ? 0 : 1;
    const auto a = Open(Options(kIpA));
    const auto b = Open(options);
    ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
    ASSERT_EQ(a->wire->Send(To(kIpB), Fill(*a->wire, 100)),
              wire::DatagramWire::SendOutcome::kSent);
    wire::Datagram datagram;
    EXPECT_EQ(b->wire->Receive(&datagram), captures);
    b->wire->FlushCapture();
    if (captures) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      ASSERT_GT(bytes.size(), contract::kCrcBytes);
      EXPECT_NE(bytes.substr(bytes.size() - contract::kCrcBytes),
                std::string(contract::kCrcBytes, '\0'));
      EXPECT_EQ(std::remove(path.c_str()), 0);
    }
  }
}

TEST_F(SharedDatagramWireTest, BothEndsDrawTheirOwnFaultsAndTheSameAgain) {
  const auto arrived = [](SharedDatagramWire& from, SharedDatagramWire& to,
                          uint32_t ip) {
    std::vector<size_t> sizes;
    wire::Datagram datagram;
    for (size_t payload = 0; payload < 200; ++payload) {
      EXPECT_EQ(from.Send(To(ip), Fill(from, payload)),
                wire::DatagramWire::SendOutcome::kSent);
      while (to.Receive(&datagram)) {
        sizes.push_back(datagram.bytes.size());
      }
    }
    return sizes;
  };
  std::array<std::set<std::vector<size_t>>, 2> runs;
  for (const uint32_t run : {0, 1}) {
    SCOPED_TRACE(run);
    SharedDatagramWireOptions options = Options(kIpA);
    options.faults.tx.loss = 0.5;
    const auto a = Open(options);
    options.wire.ip = kIpB;
    const auto b = Open(options);
    ASSERT_TRUE(a->wire->ClaimPort({kPort}).granted);
    ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
    runs[0].insert(arrived(*a->wire, *b->wire, kIpB));
    runs[1].insert(arrived(*b->wire, *a->wire, kIpA));
  }
  EXPECT_EQ(runs[0].size(), 1U);
  EXPECT_EQ(runs[1].size(), 1U);
  EXPECT_NE(runs[0], runs[1]);
}

TEST_F(SharedDatagramWireTest, DatagramsArriveAndAnswersFindTheirWayBack) {
  const auto a = Open(Options(kIpA));
  const auto b = Open(Options(kIpB));
  ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
  ASSERT_TRUE(a->wire->ClaimPort({kPort}).granted);
  wire::Datagram datagram;
  EXPECT_FALSE(b->wire->Receive(&datagram));
  EXPECT_FALSE(b->wire->HasNews());
  for (const size_t payload : {0u, 1u, 4096u, 8192u}) {
    const size_t bytes = Fill(*a->wire, payload);
    wire::Path path = To(kIpB);
    path.entropy = 0xc001;
    path.dscp = 8;
    ASSERT_EQ(a->wire->Send(path, bytes),
              wire::DatagramWire::SendOutcome::kSent);
    a->wire->Flush();
    ASSERT_TRUE(b->wire->HasNews());
    ASSERT_TRUE(b->wire->Receive(&datagram));
    EXPECT_FALSE(b->wire->HasNews());
    const sim::frame::Frame sent = sim::frame::MakeSynPds(kPort, payload);
    EXPECT_EQ(sim::frame::Frame(datagram.bytes.begin(), datagram.bytes.end()),
              sent);
    EXPECT_EQ(datagram.source, Address(kIpA));
    EXPECT_EQ(datagram.source_udp_port, 0xc001);
    EXPECT_EQ(datagram.dscp, 8);
    // Back by its link, though the hop is not valid any more.
    b->wire->SetNextHop(0, {});
    ASSERT_NE(datagram.link, 0u);
    wire::Path back = To(kIpA);
    back.link = datagram.link;
    ASSERT_EQ(b->wire->Send(back, Fill(*b->wire, 8)),
              wire::DatagramWire::SendOutcome::kSent);
    b->wire->Flush();
    wire::Datagram answer;
    ASSERT_TRUE(a->wire->Receive(&answer));
    EXPECT_EQ(answer.source, Address(kIpB));
  }
  EXPECT_EQ(a->wire->statistic(Statistic::kTxFrames), 4u);
  EXPECT_EQ(b->wire->statistic(Statistic::kRxFrames), 4u);
  EXPECT_EQ(a->wire->statistic(Statistic::kTxBytes),
            b->wire->statistic(Statistic::kRxBytes));
}

TEST_F(SharedDatagramWireTest, ADatagramWithoutAHopIsCountedAndLost) {
  const auto a = Open(Options(kIpA));
  const auto b = Open(Options(kIpB));
  ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
  for (const int hop : {1, 255, 256, 65535}) {
    wire::Path path = To(kIpB);
    path.next_hop = static_cast<uint16_t>(hop);
    EXPECT_EQ(a->wire->Send(path, Fill(*a->wire, 8)),
              wire::DatagramWire::SendOutcome::kSent);
  }
  EXPECT_EQ(a->wire->statistic(Statistic::kDropNoHop), 4u);
  EXPECT_EQ(a->wire->statistic(Statistic::kTxFrames), 0u);
  wire::Datagram datagram;
  EXPECT_FALSE(b->wire->Receive(&datagram));
}

TEST_F(SharedDatagramWireTest, ADisabledPortIsSilentAndDeaf) {
  const auto a = Open(Options(kIpA));
  const auto b = Open(Options(kIpB));
  ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
  const wire::Path path = To(kIpB);
  a->wire->Configure({});
  EXPECT_EQ(a->wire->Send(path, Fill(*a->wire, 8)),
            wire::DatagramWire::SendOutcome::kSent);
  EXPECT_EQ(a->wire->statistic(Statistic::kTxFrames), 0u);
  a->wire->Configure(Port(kIpA, a->wire->function()));
  b->wire->Configure({});
  ASSERT_EQ(a->wire->Send(path, Fill(*a->wire, 8)),
            wire::DatagramWire::SendOutcome::kSent);
  wire::Datagram datagram;
  EXPECT_FALSE(b->wire->Receive(&datagram));
  EXPECT_EQ(b->wire->statistic(Statistic::kRxFrames), 1u);
}

TEST_F(SharedDatagramWireTest, AFullReceiverHoldsTheSenderBack) {
  const auto a = Open(Options(kIpA));
  const auto b = Open(Options(kIpB));
  ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
  const wire::Path path = To(kIpB);
  uint32_t sent = 0;
  while (a->wire->Send(path, Fill(*a->wire, 4096)) ==
         wire::DatagramWire::SendOutcome::kSent) {
    ASSERT_LT(++sent, 1000u) << "rings do not end";
  }
  ASSERT_GT(sent, 0u);
  wire::Datagram datagram;
  EXPECT_TRUE(a->wire->IsStillFull());
  ASSERT_TRUE(b->wire->Receive(&datagram));
  EXPECT_FALSE(a->wire->IsStillFull());
  uint32_t received = 1;
  for (; !a->wire->HasNews(); ++received) {
    ASSERT_TRUE(b->wire->Receive(&datagram)) << "not woken when there is room";
  }
  EXPECT_EQ(a->wire->Send(path, Fill(*a->wire, 4096)),
            wire::DatagramWire::SendOutcome::kSent);
  while (b->wire->Receive(&datagram)) {
    ++received;
  }
  EXPECT_EQ(received, sent + 1);
}

TEST_F(SharedDatagramWireTest, DamageIsCountedUnderItsReason) {
  auto options = Options(kIpA);
  options.faults.tx.corrupt = 0.5;
  options.faults.tx.bad_fcs = 0.3;
  const auto a = Open(options);
  const auto b = Open(Options(kIpB));
  ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
  constexpr uint32_t kCount = 200;
  wire::Datagram datagram;
  uint32_t good = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(a->wire->Send(To(kIpB), Fill(*a->wire, 100)),
              wire::DatagramWire::SendOutcome::kSent);
    a->wire->Flush();
    good += b->wire->Receive(&datagram) ? 1 : 0;
  }
  const uint64_t crc = b->wire->statistic(Statistic::kDropCrc);
  const uint64_t fcs = b->wire->statistic(Statistic::kDropMacError);
  EXPECT_GT(crc, 0u);
  EXPECT_GT(fcs, 0u);
  EXPECT_EQ(good + crc + fcs, kCount);
}

TEST_F(SharedDatagramWireTest, FramesHeldBackByFaultsLeaveInTheEnd) {
  auto options = Options(kIpA);
  options.faults.tx.reorder = 1;
  const auto a = Open(options);
  const auto b = Open(Options(kIpB));
  ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
  ASSERT_EQ(a->wire->Send(To(kIpB), Fill(*a->wire, 8)),
            wire::DatagramWire::SendOutcome::kSent);
  wire::Datagram datagram;
  EXPECT_FALSE(b->wire->Receive(&datagram));
  const uint64_t deadline = a->wire->deadline_ns();
  ASSERT_NE(deadline, UINT64_MAX);
  while (sim::base::MonotonicNs() < deadline) {
  }
  a->wire->Flush();
  EXPECT_TRUE(b->wire->Receive(&datagram));
  EXPECT_EQ(a->wire->deadline_ns(), UINT64_MAX);
}

TEST_F(SharedDatagramWireTest, NeighbourFramesGoToFirmware) {
  const auto a = Open(Options(kIpA));
  const auto b = Open(Options(kIpB));
  // ARP to everybody; shorter than the shortest frame.
  std::vector<uint8_t> arp(42, 0);
  contract::wire::Ethernet ethernet;
  ethernet.destination = 0xffffffffffff;
  ethernet.ethertype = 0x0806;
  ethernet.Encode(arp.data());
  a->wire->SendSlowPath(arp);
  wire::Datagram datagram;
  EXPECT_FALSE(b->wire->Receive(&datagram));
  ASSERT_EQ(b->slow_path.frames.size(), 1u);
  arp.resize(60, 0);
  EXPECT_EQ(b->slow_path.frames[0], arp);
  EXPECT_TRUE(a->slow_path.frames.empty()) << "not to its sender";
}

TEST_F(SharedDatagramWireTest, AFloodOfRubbishDoesNotKeepTheReceiver) {
  const auto a = Open(Options(kIpA));
  const auto b = Open(Options(kIpB));
  ASSERT_TRUE(b->wire->ClaimPort({kPort}).granted);
  contract::PortCfg port = Port(kIpA, a->wire->function());
  port.crc = contract::CrcOrder::kNone;  // Which b expects.
  a->wire->Configure(port);
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(a->wire->Send(To(kIpB), Fill(*a->wire, 8)),
              wire::DatagramWire::SendOutcome::kSent);
  }
  wire::Datagram datagram;
  EXPECT_FALSE(b->wire->Receive(&datagram));
  EXPECT_LT(b->wire->statistic(Statistic::kRxFrames), 200u);
  EXPECT_TRUE(b->wire->HasNews());
}

}  // namespace
}  // namespace heddle::soft::shared
