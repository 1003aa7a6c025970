// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/wire/shared_wire.h"

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/base/clock.h"
#include "hw/sim/wire/wire_control.h"
#include "hw/soft/frame/frame_codec.h"
#include "tests/sim/base/child_process.h"
#include "tests/sim/frame/test_frames.h"

namespace heddle::sim::wire {
namespace {

namespace wire = contract::wire;

constexpr uint32_t kIpA = 0x0a000001;
constexpr uint32_t kIpB = 0x0a000002;
constexpr uint64_t kLimitNs = 200000000000;
// A monotonic time.
constexpr uint64_t kNow = 1000000000;

// A wire of its own for each test.
class SharedWireTest : public testing::Test {
 protected:
  using WirePtr = std::unique_ptr<SharedWire>;

  SharedWireOptions Options(const frame::WireAddress& ip) const {
    return {.name = name_, .ip = ip, .payload_mtu = 4096};
  }
  WirePtr Attach(const frame::WireAddress& ip) const {
    std::string message;
    auto wire = SharedWire::Attach(Options(ip), &message);
    EXPECT_TRUE(wire.ok()) << message;
    return wire.ok() ? std::move(wire.value()) : nullptr;
  }
  static bool ReceiveSoon(SharedWire& wire, frame::Frame* frame) {
    const uint64_t deadline = base::MonotonicNs() + kLimitNs;
    while (base::MonotonicNs() < deadline) {
      if (wire.Receive(frame)) {
        return true;
      }
      wire.Sleep(10000000);
    }
    return false;
  }
  // One of the function's, which has a block from then on.
  uint16_t Pdcid(SharedWire& wire) {
    if (!first_pdcids_.contains(wire.id())) {
      const auto first = wire.TakePdcids();
      EXPECT_TRUE(first);
      first_pdcids_[wire.id()] = first.value_or(0);
    }
    return static_cast<uint16_t>(first_pdcids_[wire.id()] + 1);
  }
  // Of a child: takes the port at `ip`, and a block, and stays.
  auto Claim(const frame::WireAddress& ip, uint16_t port) const {
    return [this, ip, port](const base::ChildProcess::Signal& signal) {
      const WirePtr wire = Attach(ip);
      if (wire->ClaimPort({port}).granted && wire->TakePdcids()) {
        signal();
      }
      pause();
    };
  }
  // A PDCID of the function that claimed `port` at `ip` and has a block.
  static uint16_t PdcidAt(SharedWire& wire, const frame::WireAddress& ip,
                          uint16_t port) {
    const FunctionId function = wire.FunctionAt(
        {.kind = frame::Route::Kind::kPort, .ip = ip, .port = port});
    EXPECT_NE(function, 0U);
    for (uint16_t block = 0; block < frame::kPdcidBlocks; ++block) {
      if (wire.FunctionAt(
              {.kind = frame::Route::Kind::kBlock, .ip = ip, .block = block}) ==
          function) {
        return static_cast<uint16_t>(block * contract::kPdcidBlock);
      }
    }
    ADD_FAILURE() << "no block";
    return 0;
  }
  // A frame to a function at kIpB, which takes it.
  void Pass(SharedWire& from, SharedWire& to) {
    EXPECT_EQ(from.Send(frame::MakeAck(kIpB, Pdcid(to))),
              SharedWire::SendOutcome::kSent);
    frame::Frame frame;
    EXPECT_TRUE(to.Receive(&frame));
  }
  // System V segments made by one of `pids`.
  static int Segments(const std::set<pid_t>& pids) {
    std::ifstream list("/proc/sysvipc/shm");
    std::string line;
    int count = 0;
    while (std::getline(list, line)) {
      int creator = 0;
      if (std::sscanf(line.c_str(), "%*d %*d %*o %*u %d", &creator) == 1) {
        count += static_cast<int>(pids.count(creator));
      }
    }
    return count;
  }
  // Those of them that stay. A process that searches for its wire attaches to
  // each segment of its user, and a removed one lives until it has looked.
  static int SegmentsLeft(const std::set<pid_t>& pids) {
    const uint64_t deadline = base::MonotonicNs() + kLimitNs;
    int left = Segments(pids);
    while (left != 0 && base::MonotonicNs() < deadline) {
      std::this_thread::yield();
      left = Segments(pids);
    }
    return left;
  }

  const std::string name_ =
      "test-" + std::to_string(getpid()) + "-" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
  std::map<FunctionId, uint16_t> first_pdcids_;
};

TEST_F(SharedWireTest, RequestsThatOpenGoByClaimTheRestByBlock) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  const WirePtr other = Attach(kIpB);
  ASSERT_NE(b->function(), other->function());
  ASSERT_TRUE(b->ClaimPort({5000}).granted);
  ASSERT_TRUE(other->ClaimPort({5001}).granted);

  EXPECT_EQ(a->Send(frame::MakeSyn(kIpB, 5000)),
            SharedWire::SendOutcome::kSent);
  EXPECT_EQ(a->Send(frame::MakeSyn(kIpB, 5001, 16)),
            SharedWire::SendOutcome::kSent);
  EXPECT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*other), 3)),
            SharedWire::SendOutcome::kSent);
  frame::Frame frame;
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_EQ(frame, frame::MakeSyn(kIpB, 5000));
  EXPECT_FALSE(b->Receive(&frame));
  ASSERT_TRUE(other->Receive(&frame));
  EXPECT_EQ(frame, frame::MakeSyn(kIpB, 5001, 16));
  ASSERT_TRUE(other->Receive(&frame));
  EXPECT_EQ(frame, frame::MakeAck(kIpB, Pdcid(*other), 3));
  EXPECT_EQ(a->dropped(), 0u);
}

TEST_F(SharedWireTest, NeighbourFramesReachOneOrAllButTheSender) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  const WirePtr other = Attach(kIpB);
  const frame::Frame question = frame::MakeArp(0xffffffffffff, 1);
  const frame::Frame answer =
      frame::MakeArp(frame::PortMac(kIpB, other->function()), 2);
  EXPECT_EQ(a->Send(question), SharedWire::SendOutcome::kSent);
  EXPECT_EQ(a->Send(answer), SharedWire::SendOutcome::kSent);
  frame::Frame frame;
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_EQ(frame, question);
  EXPECT_FALSE(b->Receive(&frame));
  ASSERT_TRUE(other->Receive(&frame));
  EXPECT_EQ(frame, question);
  ASSERT_TRUE(other->Receive(&frame));
  EXPECT_EQ(frame, answer);
  EXPECT_FALSE(a->Receive(&frame));
  EXPECT_EQ(a->dropped(), 0u);
  EXPECT_EQ(a->Send(frame::MakeArp(frame::PortMac(0x0a000063, 0), 3)),
            SharedWire::SendOutcome::kDropped);
}

TEST_F(SharedWireTest, AQuestionToAllIsNotHeldUpByOneWhoIsFull) {
  const WirePtr a = Attach(kIpA);
  const WirePtr full = Attach(kIpB);
  const WirePtr b = Attach(kIpB);
  frame::Frame frame;
  uint32_t heard = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    ASSERT_EQ(a->Send(frame::MakeArp(0xffffffffffff, i)),
              SharedWire::SendOutcome::kSent);
    ASSERT_TRUE(b->Receive(&frame));
    heard += frame == frame::MakeArp(0xffffffffffff, i) ? 1 : 0;
  }
  EXPECT_EQ(heard, 20000u);
  EXPECT_GT(a->dropped(), 0u);
}

TEST_F(SharedWireTest, TapHasAllThatIsSentToItsAddress) {
  const WirePtr a = Attach(kIpA);
  SharedWireOptions options = Options(kIpB);
  options.tap = true;
  std::string message;
  auto attached = SharedWire::Attach(options, &message);
  ASSERT_TRUE(attached.ok()) << message;
  WirePtr tap = std::move(attached.value());
  frame::Frame other = frame::MakeSyn(kIpB, 5000);
  other[14 + 9] = 6;  // TCP.
  frame::Frame frame;
  for (const frame::Frame& sent :
       {frame::MakeSyn(kIpB, 5000), frame::MakeAck(kIpB, 0xffff),
        frame::MakeAck(kIpB, 0xffff), frame::MakeAck(kIpB, 7), other,
        frame::MakeArp(frame::PortMac(kIpB, tap->function()))}) {
    ASSERT_EQ(a->Send(sent), SharedWire::SendOutcome::kSent);
    ASSERT_TRUE(tap->Receive(&frame));
    EXPECT_EQ(frame, sent);
    EXPECT_FALSE(tap->Receive(&frame));
  }
  EXPECT_EQ(a->refused(), 0u) << "each PDC of the address is the tap's";
  // A function has no more than its names, which end the tap's.
  tap.reset();
  EXPECT_EQ(a->Send(other), SharedWire::SendOutcome::kDropped);
  const WirePtr b = Attach(kIpB);
  EXPECT_EQ(a->Send(other), SharedWire::SendOutcome::kDropped);
  EXPECT_EQ(a->Send(frame::MakeSyn(kIpB, 5000)),
            SharedWire::SendOutcome::kDropped);
  ASSERT_TRUE(b->ClaimPort({5000}).granted);
  Pass(*a, *b);
}

TEST_F(SharedWireTest, TapSharesItsAddressWithNobodyAndHasNoMtu) {
  std::string message;
  SharedWireOptions options = Options(kIpA);
  const auto attach = [&](bool tap) {
    options.tap = tap;
    return SharedWire::Attach(options, &message);
  };
  const auto expect_refusal = [&](bool tap) {
    const auto refused = attach(tap);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error(), Errno{EADDRINUSE});
    for (const std::string& what :
         {name_, frame::WireAddress(kIpA).Text(), std::to_string(getpid())}) {
      EXPECT_NE(message.find(what), std::string::npos) << message;
    }
  };
  options.payload_mtu = 1024;
  {
    const auto tap = attach(true);
    ASSERT_TRUE(tap.ok()) << message;
    expect_refusal(false);
    expect_refusal(true);
    const WirePtr b = Attach(kIpB);  // Of another payload MTU.
    EXPECT_NE(b, nullptr);
  }
  const auto function = attach(false);
  ASSERT_TRUE(function.ok()) << message;
  expect_refusal(true);
  options.ip = kIpB;
  EXPECT_TRUE(attach(true).ok()) << message;
}

TEST_F(SharedWireTest, AddressOfADeadTapIsFreeAtOnce) {
  base::ChildProcess child([&](const base::ChildProcess::Signal& signal) {
    SharedWireOptions options = Options(kIpB);
    options.tap = true;
    std::string message;
    const auto tap = SharedWire::Attach(options, &message);
    if (tap.ok()) {
      signal();
      pause();
    }
  });
  ASSERT_TRUE(child.Wait());
  const WirePtr a = Attach(kIpA);
  child.Kill();
  const WirePtr b = Attach(kIpB);
  ASSERT_NE(b, nullptr);
  Pass(*a, *b);
}

TEST_F(SharedWireTest, FunctionCanSendToItself) {
  const WirePtr a = Attach(kIpA);
  ASSERT_TRUE(a->ClaimPort({7}).granted);
  EXPECT_EQ(a->Send(frame::MakeSyn(kIpA, 7)), SharedWire::SendOutcome::kSent);
  frame::Frame frame;
  ASSERT_TRUE(a->Receive(&frame));
  EXPECT_EQ(frame, frame::MakeSyn(kIpA, 7));
}

TEST_F(SharedWireTest, FramesForNobodyAreDroppedAndCounted) {
  const WirePtr a = Attach(kIpA);
  EXPECT_EQ(a->Send(frame::MakeSyn(kIpB, 1)),
            SharedWire::SendOutcome::kDropped);
  EXPECT_EQ(a->Send(frame::MakeSyn(kIpA, 1)),
            SharedWire::SendOutcome::kDropped);
  EXPECT_EQ(a->Send(frame::Frame(64, 0)), SharedWire::SendOutcome::kDropped);
  EXPECT_EQ(a->dropped(), 3u);
}

TEST_F(SharedWireTest, AThousandFunctionsOfAnAddressHaveNamesOfTheirOwn) {
#ifdef __SANITIZE_THREAD__
  constexpr uint32_t kFunctions = 50;  // Each maps the wire; more find no room.
#else
  constexpr uint32_t kFunctions = 1000;
#endif
  std::vector<WirePtr> wires;
  std::set<uint16_t> functions;
  std::set<uint16_t> pdcids;
  for (uint32_t i = 0; i < kFunctions; ++i) {
    wires.push_back(Attach(kIpA));
    ASSERT_NE(wires.back(), nullptr);
    functions.insert(wires.back()->function());
    pdcids.insert(Pdcid(*wires.back()));
    ASSERT_TRUE(wires.back()->ClaimPort({1000 + i}).granted);
  }
  EXPECT_EQ(functions.size(), kFunctions);
  EXPECT_EQ(pdcids.size(), kFunctions);
  const WirePtr sender = Attach(kIpB);
  frame::Frame frame;
  for (uint32_t i = 0; i < kFunctions; ++i) {
    SCOPED_TRACE(i);
    SharedWire& to = *wires[i];
    const auto port = static_cast<uint16_t>(1000 + i);
    ASSERT_EQ(sender->Send(frame::MakeSyn(kIpA, port)),
              SharedWire::SendOutcome::kSent);
    ASSERT_EQ(sender->Send(frame::MakeAck(kIpA, Pdcid(to), i)),
              SharedWire::SendOutcome::kSent);
    ASSERT_EQ(
        sender->Send(frame::MakeArp(frame::PortMac(kIpA, to.function()), i)),
        SharedWire::SendOutcome::kSent);
    ASSERT_TRUE(to.Receive(&frame));
    ASSERT_EQ(frame, frame::MakeSyn(kIpA, port));
    ASSERT_TRUE(to.Receive(&frame));
    ASSERT_EQ(frame::AckNumber(frame), i);
    ASSERT_TRUE(to.Receive(&frame));
    ASSERT_EQ(frame, frame::MakeArp(frame::PortMac(kIpA, to.function()), i));
    ASSERT_FALSE(to.Receive(&frame));
  }
  // The other way: one receiver of them all, each of which it hears at once.
  const uint16_t id = Pdcid(*sender);
  for (uint32_t i = 0; i < kFunctions; ++i) {
    const uint32_t from = i * 7 % kFunctions;
    ASSERT_EQ(wires[from]->Send(frame::MakeAck(kIpB, id, from)),
              SharedWire::SendOutcome::kSent);
    ASSERT_TRUE(sender->Receive(&frame));
    ASSERT_EQ(frame::AckNumber(frame), from);
  }
}

TEST_F(SharedWireTest, NoSourceIsPassedOver) {
  const WirePtr receiver = Attach(kIpB);
  std::vector<WirePtr> senders;
  constexpr uint32_t kSenders = 130;  // Three words of news.
  for (uint32_t i = 0; i < kSenders; ++i) {
    senders.push_back(Attach(kIpA));
    for (uint32_t k = 0; k < 3; ++k) {
      ASSERT_EQ(senders[i]->Send(frame::MakeAck(kIpB, Pdcid(*receiver), i)),
                SharedWire::SendOutcome::kSent);
    }
  }
  std::vector<uint32_t> seen(kSenders);
  frame::Frame frame;
  for (uint32_t turn = 1; turn <= 3; ++turn) {
    for (uint32_t i = 0; i < kSenders; ++i) {
      ASSERT_TRUE(receiver->Receive(&frame));
      ++seen[frame::AckNumber(frame)];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), turn), kSenders)
        << "each in turn";
  }
  EXPECT_FALSE(receiver->Receive(&frame));
}

TEST_F(SharedWireTest, PdcidsAreGrantedOnceAndGoRound) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpA);
  std::set<uint16_t> taken;
  std::optional<uint16_t> first;
  while ((first = (taken.size() % 2 == 0 ? a : b)->TakePdcids())) {
    ASSERT_EQ(*first % contract::kPdcidBlock, 0U);
    ASSERT_TRUE(taken.insert(*first).second) << *first;
  }
  EXPECT_EQ(taken.size(), frame::kPdcidBlocks);
  EXPECT_TRUE(Attach(kIpB)->TakePdcids()) << "another address";
  a->ReturnPdcids(0x40);
  a->ReturnPdcids(0x60);  // That of `b`: nothing happens.
  EXPECT_EQ(b->TakePdcids(), 0x40);
  EXPECT_EQ(b->TakePdcids(), std::nullopt);
}

TEST_F(SharedWireTest, BlockThatIsGivenBackIsNotTheNextOneGranted) {
  const WirePtr a = Attach(kIpA);
  std::set<uint16_t> last;
  for (int i = 0; i < 1000; ++i) {
    const auto first = a->TakePdcids();
    ASSERT_TRUE(first);
    ASSERT_TRUE(last.insert(*first).second) << *first;
    a->ReturnPdcids(*first);
  }
}

TEST_F(SharedWireTest, SlotIsAllOfItsBlocksAndTheLastOneIsNamed) {
  SharedWireOptions options = Options(kIpA);
  options.takes_slot = true;
  std::string message;
  const auto attach = [&] { return SharedWire::Attach(options, &message); };
  const WirePtr single = Attach(kIpA);
  const auto block = single->TakePdcids();
  ASSERT_TRUE(block);
  std::vector<WirePtr> wires;
  std::set<uint8_t> slots = {static_cast<uint8_t>(*block >> 10)};
  for (uint32_t i = 1; i < frame::kSlots; ++i) {
    auto wire = attach();
    ASSERT_TRUE(wire.ok()) << message;
    EXPECT_TRUE(slots.insert(wire.value()->slot()).second);
    const frame::Route route{
        .kind = frame::Route::Kind::kBlock,
        .ip = kIpA,
        .block = static_cast<uint16_t>(
            wire.value()->slot() * frame::kSlotBlocks + 31)};
    EXPECT_EQ(single->FunctionAt(route), wire.value()->id());
    wires.push_back(std::move(wire.value()));
  }
  const auto refused = attach();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Errno{EBUSY});
  EXPECT_NE(message.find("10.0.0.1"), std::string::npos) << message;
  EXPECT_NE(message.find(std::to_string(getpid())), std::string::npos);
  single->ReturnPdcids(*block);
  EXPECT_TRUE(attach().ok()) << message;
}

using contract::CrcOrder;

void Configure(soft::frame::FrameCodec* codec, uint32_t ip,
               CrcOrder crc = CrcOrder::kMsbFirst, uint8_t ip_protocol = 0) {
  contract::PortCfg port{};
  port.enable = 1;
  port.ip_protocol = ip_protocol;
  port.crc = crc;
  port.local_fa_lo = ip;
  port.mac = frame::PortMac(ip, 0);
  port.udp_port = contract::kUetUdpPort;
  port.vlan = 7;
  codec->Configure(port);
}

// A frame with its CRC, as devices send them.
frame::Frame Whole(uint32_t source, uint32_t destination,
                   std::span<const uint8_t> datagram,
                   CrcOrder crc = CrcOrder::kMsbFirst,
                   uint8_t ip_protocol = 0) {
  soft::frame::FrameCodec codec;
  Configure(&codec, source, crc, ip_protocol);
  frame::Frame room(soft::frame::FrameCodec::kHeadroom + datagram.size() +
                    soft::frame::FrameCodec::kTailroom);
  std::copy(datagram.begin(), datagram.end(),
            room.begin() + soft::frame::FrameCodec::kHeadroom);
  const auto frame = codec.Build({.destination = {.lo = destination},
                                  .destination_mac = 0x020000000009,
                                  .vlan = 7,
                                  .entropy = 50000},
                                 room, datagram.size());
  return {frame.begin(), frame.end()};
}

frame::Frame RequestPds(uint16_t spdcid, uint16_t dpdcid, uint32_t psn) {
  wire::PdsRequest request;
  request.type = contract::PdsType::kRodReq;
  request.next_hdr = contract::NextHdr::kRequestStd;
  request.psn = psn;
  request.spdcid = spdcid;
  request.dpdcid = dpdcid;
  frame::Frame pds(wire::PdsRequest::kBytes + wire::SesStd::kBytes);
  request.Encode(pds.data());
  return pds;
}

TEST_F(SharedWireTest, GatheredNewsComeWithEachEighthFrameAndAtTheEnd) {
  SharedWireOptions options = Options(kIpA);
  options.gathers_news = true;
  std::string message;
  const auto a = SharedWire::Attach(options, &message);
  ASSERT_TRUE(a.ok()) << message;
  const WirePtr b = Attach(kIpB);
  frame::Frame frame;
  EXPECT_FALSE(b->Receive(&frame));
  const frame::Frame sent = Whole(kIpA, kIpB, RequestPds(1, Pdcid(*b), 1));
  const auto send = [&](uint32_t frames) {
    for (uint32_t i = 0; i < frames; ++i) {
      ASSERT_EQ(a.value()->Send(sent), SharedWire::SendOutcome::kSent);
    }
  };
  const auto take = [&] {
    uint32_t taken = 0;
    while (b->Receive(&frame)) {
      ++taken;
    }
    return taken;
  };
  send(1);  // The first one opens the ring, which is news.
  a.value()->FlushNews();
  EXPECT_EQ(take(), 1U);
  send(SharedWire::kGatheredFrames - 1);
  EXPECT_FALSE(b->HasNews());
  send(1);
  EXPECT_TRUE(b->HasNews());
  EXPECT_EQ(take(), SharedWire::kGatheredFrames);
  send(1);
  EXPECT_FALSE(b->HasNews());
  a.value()->FlushNews();
  EXPECT_TRUE(b->HasNews());
  EXPECT_EQ(take(), 1U);
  a.value()->FlushNews();
  EXPECT_FALSE(b->HasNews()) << "there are none";
}

TEST_F(SharedWireTest, LongFramesReachAnotherProcess) {
  constexpr size_t kExtraBytes = 5000;
  constexpr uint32_t kFrames = 100;
  const WirePtr b = Attach(kIpB);
  const uint16_t pdcid = Pdcid(*b);
  for (const bool gathers : {false, true}) {
    SCOPED_TRACE(gathers ? "gathers news" : "does not gather news");
    base::ChildProcess child([&](const base::ChildProcess::Signal& signal) {
      SharedWireOptions options = Options(kIpA);
      options.gathers_news = gathers;
      std::string message;
      const auto a = SharedWire::Attach(options, &message);
      bool sent = a.ok();
      for (uint32_t i = 0; sent && i < kFrames; ++i) {
        const frame::Frame frame = frame::MakeAck(kIpB, pdcid, i, kExtraBytes);
        auto outcome = SharedWire::SendOutcome::kBlocked;
        while (outcome == SharedWire::SendOutcome::kBlocked) {
          outcome = a.value()->Send(frame);
        }
        sent = outcome == SharedWire::SendOutcome::kSent;
      }
      if (sent) {
        a.value()->FlushNews();
        signal();
        pause();  // All is received while the sender lives.
      }
    });
    for (uint32_t i = 0; i < kFrames; ++i) {
      frame::Frame frame;
      ASSERT_TRUE(ReceiveSoon(*b, &frame)) << i;
      ASSERT_EQ(frame, frame::MakeAck(kIpB, pdcid, i, kExtraBytes));
    }
    EXPECT_TRUE(child.Wait());
  }
}

TEST_F(SharedWireTest, ASleeperWakesAtTheEndOfABurstThatItLearnedOf) {
  SharedWireOptions options = Options(kIpA);
  options.gathers_news = true;
  std::string message;
  const auto a = SharedWire::Attach(options, &message);
  ASSERT_TRUE(a.ok()) << message;
  const WirePtr b = Attach(kIpB);
  frame::Frame frame;
  EXPECT_FALSE(b->Receive(&frame));
  const frame::Frame sent = Whole(kIpA, kIpB, RequestPds(1, Pdcid(*b), 1));
  std::thread sleeper([&b] { b->Sleep(kLimitNs); });
  for (uint32_t i = 0; i < SharedWire::kGatheredFrames; ++i) {
    EXPECT_EQ(a.value()->Send(sent), SharedWire::SendOutcome::kSent);
  }
  a.value()->FlushNews();
  sleeper.join();
  EXPECT_TRUE(b->HasNews());
}

TEST_F(SharedWireTest, PacketForAPdcOfNoFunctionIsRefused) {
  const WirePtr a = Attach(kIpA);
  WirePtr b = Attach(kIpB);
  const WirePtr other = Attach(kIpB);
  const uint16_t dpdcid = Pdcid(*b);
  const frame::Frame request =
      Whole(kIpA, kIpB, RequestPds(0x1234, dpdcid, 77));
  frame::Frame frame;
  ASSERT_EQ(a->Send(request), SharedWire::SendOutcome::kSent);
  EXPECT_FALSE(a->Receive(&frame)) << "it is served";
  b.reset();
  ASSERT_EQ(a->Send(request), SharedWire::SendOutcome::kSent);
  EXPECT_TRUE(a->HasNews());
  ASSERT_TRUE(a->Receive(&frame));
  EXPECT_EQ(a->refused(), 1U);
  soft::frame::FrameCodec codec;
  Configure(&codec, kIpA);
  const soft::frame::ParsedFrame parsed = codec.Parse(frame);
  ASSERT_EQ(parsed.kind, soft::frame::ParsedFrame::Kind::kDatagram);
  EXPECT_EQ(parsed.datagram.source.lo, kIpB);
  EXPECT_EQ(wire::Ethernet::Decode(frame.data()).destination,
            frame::PortMac(kIpA, 0));
  ASSERT_GE(parsed.datagram.bytes.size(), wire::PdsNack::kBytes);
  const auto nack = wire::PdsNack::Decode(parsed.datagram.bytes.data());
  EXPECT_EQ(nack.type, contract::PdsType::kNack);
  EXPECT_EQ(nack.nack_code, contract::NackCode::kInvDpdcid);
  EXPECT_EQ(nack.nack_psn, 77U);
  EXPECT_EQ(nack.spdcid, 0);
  EXPECT_EQ(nack.dpdcid, 0x1234);
  EXPECT_FALSE(a->Receive(&frame));
  EXPECT_FALSE(a->HasNews());
}

TEST_F(SharedWireTest, APacketIsRefusedByTheCrcOrderOfItsSender) {
  const std::array orders = {CrcOrder::kNone, CrcOrder::kLsbFirst,
                             CrcOrder::kMsbFirst};
  const WirePtr b = Attach(kIpB);
  const uint16_t dpdcid = static_cast<uint16_t>(Pdcid(*b) ^ 0x8000);
  frame::Frame request;
  uint32_t psn = 77;
  do {  // Its CRC is not the same in both orders.
    request = RequestPds(0x1234, dpdcid, psn++);
  } while (Whole(kIpA, kIpB, request, CrcOrder::kLsbFirst) ==
           Whole(kIpA, kIpB, request, CrcOrder::kMsbFirst));
  for (const CrcOrder order : orders) {
    SharedWireOptions options = Options(kIpA);
    options.crc = order;
    std::string message;
    auto a = SharedWire::Attach(options, &message);
    ASSERT_TRUE(a.ok()) << message;
    uint64_t refused = 0;
    for (const CrcOrder sent : orders) {
      const bool accepted = order == CrcOrder::kNone || order == sent;
      EXPECT_EQ(a.value()->Send(Whole(kIpA, kIpB, request, sent)),
                accepted ? SharedWire::SendOutcome::kSent
                         : SharedWire::SendOutcome::kDropped);
      refused += accepted ? 1 : 0;
      EXPECT_EQ(a.value()->refused(), refused);
      frame::Frame frame;
      if (accepted) {
        ASSERT_TRUE(a.value()->Receive(&frame));
        soft::frame::FrameCodec codec;
        Configure(&codec, kIpA, order);
        EXPECT_EQ(codec.Parse(frame).kind,
                  soft::frame::ParsedFrame::Kind::kDatagram);
      }
    }
  }
}

// Under the number that its sender's wire has, in the same encapsulation.
TEST_F(SharedWireTest, APacketOfNativeIpIsRefusedByNativeIp) {
  constexpr uint8_t kProtocol = 254;
  const WirePtr b = Attach(kIpB);
  const uint16_t dpdcid = static_cast<uint16_t>(Pdcid(*b) ^ 0x8000);
  SharedWireOptions options = Options(kIpA);
  options.ip_protocol = kProtocol;
  std::string message;
  auto a = SharedWire::Attach(options, &message);
  ASSERT_TRUE(a.ok()) << message;
  for (const unsigned protocol : {0U, unsigned{kProtocol}, 253U}) {
    const auto sent = a.value()->Send(
        Whole(kIpA, kIpB, RequestPds(0x1234, dpdcid, 77), CrcOrder::kMsbFirst,
              static_cast<uint8_t>(protocol)));
    frame::Frame frame;
    EXPECT_EQ(a.value()->Receive(&frame), protocol != 253) << protocol;
    if (protocol == 253) {
      EXPECT_EQ(sent, SharedWire::SendOutcome::kDropped);
      continue;
    }
    soft::frame::FrameCodec codec;
    Configure(&codec, kIpA, CrcOrder::kMsbFirst,
              static_cast<uint8_t>(protocol));
    const auto parsed = codec.Parse(frame);
    ASSERT_EQ(parsed.kind, soft::frame::ParsedFrame::Kind::kDatagram);
    EXPECT_EQ(parsed.datagram.source_udp_port, 50000);
    EXPECT_EQ(wire::PdsNack::Decode(parsed.datagram.bytes.data()).nack_psn,
              77U);
  }
}

TEST_F(SharedWireTest, WhatMustNotBeRefusedIsLost) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  const uint16_t dpdcid = static_cast<uint16_t>(Pdcid(*b) ^ 0x8000);
  const auto dropped = [&](const frame::Frame& frame) {
    const uint64_t before = a->dropped();
    EXPECT_EQ(a->Send(frame), SharedWire::SendOutcome::kDropped);
    frame::Frame received;
    return a->dropped() == before + 1 && !a->Receive(&received);
  };
  const frame::Frame request = RequestPds(1, dpdcid, 5);
  EXPECT_TRUE(dropped(Whole(kIpA, 0x0a0000ff, request)))
      << "the address of no function";
  frame::Frame damaged = Whole(kIpA, kIpB, request);
  damaged[60] ^= 1;
  EXPECT_TRUE(dropped(damaged)) << "the CRC is wrong";
  fault::LineFrame bad{.bytes = Whole(kIpA, kIpB, request), .route = {}};
  bad.route = frame::FindRoute(bad.bytes);
  bad.bad_fcs = true;
  EXPECT_EQ(a->Send(bad), SharedWire::SendOutcome::kDropped);
  wire::PdsAck ack;
  ack.type = contract::PdsType::kAck;
  ack.dpdcid = dpdcid;
  frame::Frame bytes(wire::PdsAck::kBytes);
  ack.Encode(bytes.data());
  EXPECT_TRUE(dropped(Whole(kIpA, kIpB, bytes))) << "an ACK";
  wire::PdsNack nack;
  nack.type = contract::PdsType::kNack;
  nack.dpdcid = dpdcid;
  bytes.assign(wire::PdsNack::kBytes, 0);
  nack.Encode(bytes.data());
  EXPECT_TRUE(dropped(Whole(kIpA, kIpB, bytes))) << "a NACK";
  wire::PdsCp control;
  control.type = contract::PdsType::kCp;
  control.cp_type = contract::CpType::kClearCommand;
  control.dpdcid = dpdcid;
  bytes.assign(wire::PdsCp::kBytes, 0);
  control.Encode(bytes.data());
  EXPECT_TRUE(dropped(Whole(kIpA, kIpB, bytes))) << "a Clear Command";
  control.cp_type = contract::CpType::kCloseCommand;
  control.Encode(bytes.data());
  EXPECT_EQ(a->Send(Whole(kIpA, kIpB, bytes)), SharedWire::SendOutcome::kSent)
      << "a Close Command is refused";
  EXPECT_EQ(a->refused(), 1U);
}

TEST_F(SharedWireTest, RefusesForAFunctionThatWasKilledOnceItIsLookedUp) {
  const WirePtr a = Attach(kIpA);
  const WirePtr neighbour = Attach(kIpB);
  base::ChildProcess child(Claim(kIpB, 900));
  ASSERT_TRUE(child.Wait());
  const FunctionId function = a->FunctionAt(
      {.kind = frame::Route::Kind::kPort, .ip = kIpB, .port = 900});
  ASSERT_NE(function, 0U);
  const frame::Frame request =
      Whole(kIpA, kIpB, RequestPds(9, PdcidAt(*a, kIpB, 900), 3));
  child.KillOnly();
  ASSERT_EQ(a->Send(request), SharedWire::SendOutcome::kSent);
  EXPECT_EQ(a->refused(), 0U) << "not yet detected";
  // As a receiver that does not take what was sent.
  uint64_t now = base::MonotonicNs();
  EXPECT_FALSE(a->PeersCaughtUp(now));
  now += SharedWire::kPatienceNs;
  EXPECT_TRUE(a->PeersCaughtUp(now));
  ASSERT_EQ(a->Send(request), SharedWire::SendOutcome::kSent);
  EXPECT_EQ(a->refused(), 1U);
  EXPECT_TRUE(a->HasLeft(function));
}

TEST_F(SharedWireTest, PayloadMtuMustBeEqualOnOneWire) {
  WirePtr a = Attach(kIpA);
  SharedWireOptions options = Options(kIpB);
  options.payload_mtu = 1024;
  std::string message;
  const auto refused = SharedWire::Attach(options, &message);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Errno{EPROTO});
  EXPECT_NE(message.find("4096"), std::string::npos) << message;
  EXPECT_NE(message.find("1024"), std::string::npos) << message;
  a.reset();
  EXPECT_TRUE(SharedWire::Attach(options, &message).ok()) << message;
}

TEST_F(SharedWireTest, OtherLayoutIsRefusedWithBothNumbers) {
  const WirePtr a = Attach(kIpA);
  std::string message;
  auto segment = WireSegment::Open(name_, &message);
  ASSERT_TRUE(segment.ok()) << message;
  (*segment.value())->layout_version = 77;
  const auto refused = SharedWire::Attach(Options(kIpB), &message);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Errno{EPROTO});
  EXPECT_NE(message.find("77"), std::string::npos) << message;
  EXPECT_NE(message.find(std::to_string(kWireLayoutVersion)),
            std::string::npos);
}

TEST_F(SharedWireTest, SecondClaimOfAPortNamesItsOwner) {
  const WirePtr a = Attach(kIpA);
  base::ChildProcess child(Claim(kIpA, 4000));
  ASSERT_TRUE(child.Wait());
  firmware::PortClaim claim = a->ClaimPort({4000});
  EXPECT_FALSE(claim.granted);
  EXPECT_EQ(claim.owner, static_cast<uint32_t>(child.pid()));
  EXPECT_TRUE(Attach(kIpB)->ClaimPort({4000}).granted) << "another address";
  child.KillOnly();
  claim = a->ClaimPort({4000});
  EXPECT_TRUE(claim.granted) << "the claim of a dead process is void";
  EXPECT_FALSE(a->ClaimPort({4000}).granted);
  a->ReleasePort({4000});
  EXPECT_TRUE(a->ClaimPort({4000}).granted);
  EXPECT_FALSE(a->ClaimPort({65536}).granted);
}

TEST_F(SharedWireTest, EachSpaceHasItsClaimsAndStrangersReachOneThatRefuses) {
  const auto job = [](uint32_t id) { return firmware::JobSpace(id); };
  const WirePtr a = Attach(kIpA);
  const WirePtr absolute = Attach(kIpB);
  const WirePtr seven = Attach(kIpB);
  const WirePtr eight = Attach(kIpB);
  ASSERT_TRUE(absolute->ClaimPort({4000}).granted);
  ASSERT_TRUE(seven->ClaimPort({4000, job(7)}).granted);
  EXPECT_EQ(eight->ClaimPort({4000, job(7)}).owner,
            static_cast<uint32_t>(getpid()));
  ASSERT_TRUE(eight->ClaimPort({4000, job(8)}).granted);
  const auto reaches = [&](uint32_t id, bool relative) -> const SharedWire* {
    const uint64_t dropped = a->dropped();
    const SharedWire::SendOutcome outcome =
        a->Send(frame::MakeJobSyn(kIpB, 4000, id, relative));
    const SharedWire* reached = nullptr;
    frame::Frame frame;
    for (const WirePtr* wire : {&absolute, &seven, &eight}) {
      while ((*wire)->Receive(&frame)) {
        EXPECT_EQ(reached, nullptr);
        reached = wire->get();
      }
    }
    EXPECT_EQ(a->dropped() - dropped, reached == nullptr ? 1U : 0U);
    EXPECT_EQ(outcome == SharedWire::SendOutcome::kSent, reached != nullptr);
    return reached;
  };
  EXPECT_EQ(reaches(7, false), absolute.get());
  EXPECT_EQ(reaches(7, true), seven.get());
  EXPECT_EQ(reaches(8, true), eight.get());
  EXPECT_NE(reaches(9, true), nullptr) << "which answers BAD_JOB_ID";
  absolute->ReleasePort({4000});
  EXPECT_NE(reaches(7, false), nullptr) << "which answers BAD_PID";
  seven->ReleasePort({4000, job(7)});
  EXPECT_EQ(reaches(7, true), eight.get());
  EXPECT_TRUE(absolute->ClaimPort({4000, job(7)}).granted);
  EXPECT_EQ(reaches(7, true), absolute.get());
  absolute->ReleasePort({4000, job(7)});
  eight->ReleasePort({4000, job(8)});
  EXPECT_EQ(reaches(8, true), nullptr) << "nobody has the port";
}

// Names of those that left make room: there is some for so many at once only.
TEST_F(SharedWireTest, ManyJobsOneAfterAnotherFindRoomForTheirPorts) {
  const WirePtr a = Attach(kIpA);
  for (uint32_t i = 1; i <= 3 * kMaxJobNames; ++i) {
    const firmware::PortName name = {1000 + i % 50, firmware::JobSpace(i)};
    ASSERT_TRUE(a->ClaimPort(name).granted) << i;
    a->ReleasePort(name);
  }
  for (uint32_t i = 1; i <= kMaxJobNames; ++i) {
    ASSERT_TRUE(a->ClaimPort({7, firmware::JobSpace(i)}).granted) << i;
  }
  firmware::PortClaim claim = a->ClaimPort({8, firmware::JobSpace(1)});
  EXPECT_FALSE(claim.granted);
  EXPECT_TRUE(claim.exhausted);
  EXPECT_FALSE(a->ClaimPort({7, firmware::JobSpace(kMaxJobNames)}).granted);
  a->ReleasePort({7, firmware::JobSpace(5)});
  EXPECT_TRUE(a->ClaimPort({8, firmware::JobSpace(1)}).granted);
}

TEST_F(SharedWireTest, PortZeroTakesOneOfADeadProcess) {
  const WirePtr a = Attach(kIpA);
  base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
    const WirePtr wire = Attach(kIpA);
    for (uint32_t port = 1; port < kPortNumbers; ++port) {
      wire->ClaimPort({port});
    }
    signal();
    pause();
  });
  ASSERT_TRUE(child.Wait());
  EXPECT_TRUE(a->ClaimPort({0}).exhausted);
  child.KillOnly();
  EXPECT_TRUE(a->ClaimPort({0}).granted);
}

// ThreadSanitizer has no room for so many wires, AddressSanitizer takes 85 s.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_F(SharedWireTest, AddressesOfADeadProcessAreFree) {
  const WirePtr b = Attach(kIpB);  // The wire stays.
  base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
    std::vector<WirePtr> wires;
    for (uint32_t i = 0; i < kMaxAddresses; ++i) {
      wires.push_back(Attach(kIpB + i));
    }
    signal();
    pause();
  });
  ASSERT_TRUE(child.Wait());
  std::string message;
  const auto refused = SharedWire::Attach(Options(kIpA), &message);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Errno{EBUSY});
  EXPECT_NE(message.find("1024 addresses"), std::string::npos) << message;
  child.KillOnly();
  EXPECT_TRUE(SharedWire::Attach(Options(kIpA), &message).ok()) << message;
}
#endif

TEST_F(SharedWireTest, PortZeroTakesAFreeOne) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpA);
  std::set<uint32_t> ports;
  for (int i = 0; i < 100; ++i) {
    const auto claim = (i % 2 == 0 ? a : b)->ClaimPort({0});
    ASSERT_TRUE(claim.granted);
    EXPECT_GT(claim.port, 0u);
    EXPECT_LT(claim.port, 65536u);
    EXPECT_TRUE(ports.insert(claim.port).second) << claim.port;
  }
}

TEST_F(SharedWireTest, FullReceiverHoldsTheSenderBackAndNothingIsLost) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  constexpr size_t kExtra = 4000;
  uint32_t sent = 0;
  while (a->Send(frame::MakeAck(kIpB, Pdcid(*b), sent, kExtra)) ==
         SharedWire::SendOutcome::kSent) {
    ++sent;
  }
  EXPECT_GT(sent, 16u);
  EXPECT_EQ(a->dropped(), 0u);
  frame::Frame frame;
  uint32_t told = 0;
  for (uint32_t received = 0; received < 500; ++received) {
    ASSERT_TRUE(b->Receive(&frame)) << "the sender never learns of the room";
    ASSERT_EQ(frame::AckNumber(frame), received);
    if (!a->HasNews()) {
      continue;
    }
    ++told;
    while (a->Send(frame::MakeAck(kIpB, Pdcid(*b), sent, kExtra)) ==
           SharedWire::SendOutcome::kSent) {
      ++sent;
    }
    a->Receive(&frame);
  }
  EXPECT_LT(told, 100u) << "a wake for each frame";
  EXPECT_EQ(a->dropped(), 0u);
}

TEST_F(SharedWireTest, StoppedReceiverDoesNotHoldSendersForEver) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  const uint64_t deadline = base::MonotonicNs() + kLimitNs;
  // The ring is not a multiple of it.
  const frame::Frame frame_for_b = frame::MakeAck(kIpB, Pdcid(*b), 0, 5000);
  uint64_t blocked_ns = base::MonotonicNs();
  while (a->Send(frame_for_b) == SharedWire::SendOutcome::kSent) {
    blocked_ns = base::MonotonicNs();  // Before the call that finds no room.
  }
  while (a->dropped() == 0 && base::MonotonicNs() < deadline) {
    a->Send(frame_for_b);
  }
  EXPECT_GT(a->dropped(), 0u);
  EXPECT_GE(base::MonotonicNs() - blocked_ns, SharedWire::kStarvedNs)
      << "its process runs, and may only wait for a CPU";
  EXPECT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
            SharedWire::SendOutcome::kSent)
      << "a small one still fits";
  EXPECT_EQ(a->Send(frame_for_b), SharedWire::SendOutcome::kDropped)
      << "no patience a second time";
  frame::Frame frame;
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
            SharedWire::SendOutcome::kSent)
      << "it goes on";
}

TEST_F(SharedWireTest, TellsWhichPeerIsBehind) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  const WirePtr other = Attach(kIpB);
  const auto function_of = [&](const WirePtr& wire) {
    const auto frame = frame::MakeAck(kIpB, Pdcid(*wire));
    EXPECT_EQ(a->Send(frame), SharedWire::SendOutcome::kSent);
    return a->FunctionAt(frame::FindRoute(frame));
  };
  const FunctionId function_b = function_of(b);
  const FunctionId function_other = function_of(other);
  ASSERT_NE(function_b, function_other);
  frame::Frame frame;
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_FALSE(a->PeersCaughtUp(kNow));
  EXPECT_FALSE(a->PeerIsBehind(function_b, kNow));
  EXPECT_TRUE(a->PeerIsBehind(function_other, kNow));
  EXPECT_FALSE(a->PeerIsBehind(0, kNow)) << "nobody";
}

TEST_F(SharedWireTest, PeerWithWorkIsBehindForAWhileNotForEver) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  constexpr uint64_t kLater = kNow + SharedWire::kStarvedNs;
  b->NoteWork(0);
  EXPECT_TRUE(a->PeersCaughtUp(kNow)) << "not with anything of ours";
  ASSERT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
            SharedWire::SendOutcome::kSent);
  EXPECT_FALSE(a->PeersCaughtUp(kNow));
  EXPECT_TRUE(a->PeersCaughtUp(kLater)) << "it takes nothing";
  frame::Frame frame;
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_FALSE(a->PeersCaughtUp(kLater)) << "it took something";
  EXPECT_TRUE(a->PeersCaughtUp(kLater + SharedWire::kStarvedNs));
  Pass(*a, *b);
  b->NoteWork(UINT64_MAX);
  EXPECT_TRUE(a->PeersCaughtUp(2 * kLater)) << "all taken and done";
}

TEST_F(SharedWireTest, PeerIsBehindUntilItHadTheTimeToAnswer) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  Pass(*a, *b);
  b->NoteWork(0, 100000);
  EXPECT_FALSE(a->PeersCaughtUp(kNow)) << "its work before does not count";
  b->NoteWork(0, SharedWire::kAnswerWork - 1);
  EXPECT_FALSE(a->PeersCaughtUp(kNow));
  b->NoteWork(0, 1);
  EXPECT_TRUE(a->PeersCaughtUp(kNow)) << "it works on something else";
  ASSERT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
            SharedWire::SendOutcome::kSent);
  EXPECT_FALSE(a->PeersCaughtUp(kNow)) << "it has something to take";
}

// Timers of `a` would stop for as long as both send.
TEST_F(SharedWireTest, PeerWithEndlessTrafficCatchesUpWithWhatWasSentBefore) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  frame::Frame frame;
  const auto send = [&] {
    EXPECT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
              SharedWire::SendOutcome::kSent);
  };
  constexpr uint64_t kSteps = 64;
  constexpr uint64_t kStepWork = SharedWire::kAnswerWork / kSteps;
  // One frame is always on its way.
  const auto step = [&] {
    send();
    EXPECT_TRUE(b->Receive(&frame));
    b->NoteWork(0, kStepWork);
    return a->PeersCaughtUp(kNow);
  };
  send();
  b->NoteWork(0);
  for (int round = 0; round < 3; ++round) {
    // It takes the frame sent before in the first step, and then has to work.
    for (uint64_t i = 0; i < kSteps; ++i) {
      EXPECT_FALSE(step()) << "round " << round << ", step " << i;
    }
    EXPECT_TRUE(step()) << "round " << round;
  }
  // Without progress it does not.
  for (int i = 0; i < 100; ++i) {
    send();
    EXPECT_FALSE(a->PeersCaughtUp(kNow));
  }
}

TEST_F(SharedWireTest, PeerThatIsLateIsBehind) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  Pass(*a, *b);
  b->NoteWork(kNow);  // A delayed acknowledgement, for instance.
  EXPECT_TRUE(a->PeersCaughtUp(kNow - 1));
  EXPECT_TRUE(a->PeersCaughtUp(kNow + SharedWire::kLateNs)) << "any moment";
  EXPECT_FALSE(a->PeersCaughtUp(kNow + SharedWire::kLateNs + 1));
}

TEST_F(SharedWireTest, PeerWhoseProcessHasEndedIsNotBehind) {
  const WirePtr a = Attach(kIpA);
  base::ChildProcess child(Claim(kIpB, 99));
  ASSERT_TRUE(child.Wait());
  ASSERT_EQ(a->Send(frame::MakeSyn(kIpB, 99)), SharedWire::SendOutcome::kSent);
  EXPECT_FALSE(a->PeersCaughtUp(kNow));
  EXPECT_FALSE(a->PeersCaughtUp(kNow + SharedWire::kPatienceNs))
      << "stopped, or without a CPU";
  child.Kill();
  EXPECT_TRUE(a->PeersCaughtUp(kNow + 2 * SharedWire::kPatienceNs));
}

TEST_F(SharedWireTest, OthersGoOnWhenTheFirstIsKilled) {
  auto first = std::make_unique<base::ChildProcess>(
      [this](const base::ChildProcess::Signal& signal) {
        const WirePtr wire = Attach(kIpA);
        wire->ClaimPort({99});
        signal();
        frame::Frame frame;
        while (true) {  // Killed while it sends.
          if (ReceiveSoon(*wire, &frame)) {
            wire->Send(frame::MakeAck(kIpB, 1));
          }
        }
      });
  ASSERT_TRUE(first->Wait());
  const WirePtr b = Attach(kIpB);
  ASSERT_TRUE(b->ClaimPort({1}).granted);
  for (uint32_t i = 0; i < 50; ++i) {
    ASSERT_NE(b->Send(frame::MakeSyn(kIpA, 99)),
              SharedWire::SendOutcome::kDropped);
  }
  first->KillOnly();
  const WirePtr c = Attach(kIpA);  // Finds the same wire.
  EXPECT_TRUE(c->ClaimPort({99}).granted);
  frame::Frame frame;
  while (b->Receive(&frame)) {
  }
  ASSERT_EQ(b->Send(frame::MakeSyn(kIpA, 99, 24)),
            SharedWire::SendOutcome::kSent);
  ASSERT_TRUE(ReceiveSoon(*c, &frame));
  EXPECT_EQ(frame, frame::MakeSyn(kIpA, 99, 24))
      << "what was meant for the dead one is not delivered to the next";
  ASSERT_EQ(c->Send(frame::MakeSyn(kIpB, 1)), SharedWire::SendOutcome::kSent);
  ASSERT_TRUE(ReceiveSoon(*b, &frame));
}

TEST_F(SharedWireTest, ProcessesEchoThousandsOfFrames) {
  const WirePtr b = Attach(kIpB);
  const uint16_t here = Pdcid(*b);
  base::ChildProcess child(
      [this, here](const base::ChildProcess::Signal& signal) {
        const WirePtr wire = Attach(kIpA);
        if (wire->ClaimPort({1}).granted && wire->TakePdcids()) {
          signal();
        }
        frame::Frame frame;
        while (ReceiveSoon(*wire, &frame)) {
          while (wire->Send(frame::MakeAck(kIpB, here, frame::AckNumber(frame),
                                           frame::AckNumber(frame) % 5000)) ==
                 SharedWire::SendOutcome::kBlocked) {
            wire->Sleep(1000000);
          }
        }
      });
  ASSERT_TRUE(child.Wait());
  const uint16_t there = PdcidAt(*b, kIpA, 1);
  uint32_t sent = 0;
  uint32_t received = 0;
  constexpr uint32_t kFrames = 5000;
  frame::Frame frame;
  while (received < kFrames) {
    if (sent < kFrames && b->Send(frame::MakeAck(kIpA, there, sent)) ==
                              SharedWire::SendOutcome::kSent) {
      ++sent;
    }
    if (sent == kFrames || sent - received > 10) {
      ASSERT_TRUE(ReceiveSoon(*b, &frame)) << received;
      ASSERT_EQ(frame::AckNumber(frame), received);
      ASSERT_EQ(frame.size(), frame::MakeAck(0, 0, 0, received % 5000).size());
      ++received;
    }
  }
  EXPECT_EQ(b->dropped(), 0u);
}

TEST_F(SharedWireTest, LockOfADeadProcessIsTakenOver) {
  const WirePtr a = Attach(kIpA);
  base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
    std::string message;
    auto segment = WireSegment::Open(name_, &message);
    const WireSegment::Lock lock(segment.value()->operator->());
    if (lock.held()) {
      signal();
    }
    pause();
  });
  ASSERT_TRUE(child.Wait());
  child.KillOnly();
  EXPECT_TRUE(a->ClaimPort({5}).granted);
}

TEST_F(SharedWireTest, CorruptRingEndsThatPeerOnly) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  const WirePtr c = Attach(kIpB);
  ASSERT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
            SharedWire::SendOutcome::kSent);
  std::string message;
  auto segment = WireSegment::Open(name_, &message);
  ASSERT_TRUE(segment.ok());
  WireMemory& memory = *segment.value()->operator->();
  ASSERT_EQ(memory.ring_count.load(), 1u);
  memory.rings[0].tail = 8;
  frame::Frame frame;
  EXPECT_FALSE(b->Receive(&frame));
  EXPECT_EQ(b->corrupt_peers(), 1u);
  ASSERT_EQ(c->Send(frame::MakeAck(kIpB, Pdcid(*b), 9)),
            SharedWire::SendOutcome::kSent);
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_EQ(frame::AckNumber(frame), 9u);
}

TEST_F(SharedWireTest, CountsThatMakeNoSenseHarmNoNewcomer) {
  const WirePtr a = Attach(kIpA);
  std::string message;
  auto segment = WireSegment::Open(name_, &message);
  ASSERT_TRUE(segment.ok());
  WireMemory& memory = *segment.value()->operator->();
  memory.port_count = UINT32_MAX;
  memory.ring_count = UINT32_MAX;
  memory.address_count = UINT32_MAX;
  const WirePtr b = Attach(kIpB);
  ASSERT_NE(b, nullptr);
  ASSERT_NE(Attach(kIpB), nullptr);
  frame::Frame frame;
  EXPECT_FALSE(a->Receive(&frame));
  EXPECT_FALSE(b->Receive(&frame));
  // There is no ring for a new pair; what is there goes on.
  (void)a->Send(frame::MakeAck(kIpB, Pdcid(*b)));
  EXPECT_TRUE(b->PeersCaughtUp(base::MonotonicNs()));
}

TEST_F(SharedWireTest, NextOwnerOfAPortIsNotCutOffForTheLastOnesNonsense) {
  const WirePtr b = Attach(kIpB);
  for (const bool seen : {false, true}) {
    SCOPED_TRACE(seen);
    WirePtr a = Attach(kIpA);
    ASSERT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b), 1)),
              SharedWire::SendOutcome::kSent);
    std::string message;
    auto segment = WireSegment::Open(name_, &message);
    ASSERT_TRUE(segment.ok());
    (*segment.value())->rings[0].tail = 24;
    frame::Frame frame;
    if (seen) {
      EXPECT_FALSE(b->Receive(&frame));
      EXPECT_FALSE(b->Receive(&frame));
      EXPECT_EQ(b->corrupt_peers(), 1u) << "counted once";
    }
    a.reset();
    a = Attach(kIpA);
    // At most the first frame is lost on the way to the new beginning.
    for (uint32_t number = 2; number < 6; ++number) {
      a->Send(frame::MakeAck(kIpB, Pdcid(*b), number));
      while (b->Receive(&frame)) {
      }
    }
    ASSERT_FALSE(frame.empty());
    EXPECT_EQ(frame::AckNumber(frame), 5u);
  }
}

TEST_F(SharedWireTest, LastFramesOfAProcessThatLeftStillArrive) {
  const WirePtr b = Attach(kIpB);
  WirePtr a = Attach(kIpA);
  a->Send(frame::MakeAck(kIpB, Pdcid(*b), 1));
  a.reset();
  a = Attach(kIpA);  // The same port of the wire.
  a->Send(frame::MakeAck(kIpB, Pdcid(*b), 2));
  frame::Frame frame;
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_EQ(frame::AckNumber(frame), 1u);
  ASSERT_TRUE(b->Receive(&frame));
  EXPECT_EQ(frame::AckNumber(frame), 2u);
}

TEST_F(SharedWireTest, FramesAreLostWhileALinkIsDown) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  const WirePtr c = Attach(kIpB);
  std::string message;
  auto control = WireControl::Open(name_, &message);
  ASSERT_TRUE(control.ok()) << message;
  const auto sent = [this](const WirePtr& from, uint32_t ip,
                           const WirePtr& to) {
    return from->Send(frame::MakeAck(ip, Pdcid(*to))) ==
           SharedWire::SendOutcome::kSent;
  };
  frame::Frame frame;
  ASSERT_FALSE(b->Receive(&frame));
  EXPECT_EQ(control.value().SetLink(kIpB, b->function(), /*up=*/false), 1u);
  EXPECT_TRUE(b->HasNews()) << "it learns of the change";
  EXPECT_FALSE(b->link_up());
  EXPECT_FALSE(sent(a, kIpB, b));
  EXPECT_FALSE(sent(b, kIpA, a));
  EXPECT_EQ(a->dropped_link_down(), 1u);
  EXPECT_EQ(b->dropped_link_down(), 1u);
  EXPECT_TRUE(sent(a, kIpB, c)) << "its neighbour is not concerned";
  EXPECT_EQ(control.value().SetLink(kIpB, std::nullopt, /*up=*/true), 2u);
  EXPECT_TRUE(b->link_up());
  EXPECT_TRUE(sent(a, kIpB, b));
  EXPECT_TRUE(sent(b, kIpA, a));
  EXPECT_EQ(control.value().SetLink(0x0a0000ff, std::nullopt, true), 0u);
}

// `Receive` may come between the order and the look at it.
TEST_F(SharedWireTest, AnOrderIsNewsUntilItIsTaken) {
  const WirePtr a = Attach(kIpA);
  std::string message;
  auto control = WireControl::Open(name_, &message);
  ASSERT_TRUE(control.ok()) << message;
  frame::Frame frame;
  EXPECT_TRUE(a->link_up());
  EXPECT_FALSE(a->TakeReset());
  ASSERT_FALSE(a->Receive(&frame));
  ASSERT_FALSE(a->HasNews());
  ASSERT_EQ(control.value().Reset(kIpA, std::nullopt), 1u);
  ASSERT_FALSE(a->Receive(&frame));
  EXPECT_TRUE(a->HasNews());
  EXPECT_TRUE(a->TakeReset());
  EXPECT_FALSE(a->HasNews());
  ASSERT_EQ(control.value().SetLink(kIpA, std::nullopt, /*up=*/false), 1u);
  ASSERT_FALSE(a->Receive(&frame));
  EXPECT_TRUE(a->HasNews());
  EXPECT_FALSE(a->link_up());
  EXPECT_FALSE(a->HasNews());
}

TEST_F(SharedWireTest, ControlListsWhoIsThere) {
  const WirePtr a = Attach(kIpA);
  base::ChildProcess child([this](const base::ChildProcess::Signal& signal) {
    const WirePtr wire = Attach(kIpB);
    signal();
    pause();
  });
  ASSERT_TRUE(child.Wait());
  std::string message;
  auto control = WireControl::Open(name_, &message);
  ASSERT_TRUE(control.ok()) << message;
  control.value().SetLink(kIpB, std::nullopt, /*up=*/false);
  auto ports = control.value().Ports();
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].address, frame::WireAddress(kIpA));
  EXPECT_EQ(ports[0].function, a->function());
  EXPECT_EQ(ports[0].pid, static_cast<uint32_t>(getpid()));
  EXPECT_TRUE(ports[0].link_up);
  EXPECT_EQ(ports[1].pid, static_cast<uint32_t>(child.pid()));
  EXPECT_FALSE(ports[1].link_up);
  child.KillOnly();
  EXPECT_EQ(control.value().Ports().size(), 1u);
}

TEST_F(SharedWireTest, ControlDoesNotMakeAWire) {
  std::string message;
  const auto control = WireControl::Open(name_, &message);
  ASSERT_FALSE(control.ok());
  EXPECT_EQ(control.error(), Errno{ENOENT});
  EXPECT_NE(message.find(name_), std::string::npos);
  EXPECT_EQ(SegmentsLeft({getpid()}), 0);
}

TEST_F(SharedWireTest, Ipv6AddressesAreToldApartInFull) {
  const frame::WireAddress one(0x20010db800000000, 1);
  const frame::WireAddress other(0x20010db800000001, 1);
  const frame::WireAddress ipv4(1);  // 0.0.0.1, the same low half.
  const WirePtr a = Attach(one);
  const WirePtr b = Attach(other);
  const WirePtr c = Attach(ipv4);
  ASSERT_TRUE(a->ClaimPort({5000}).granted);
  ASSERT_TRUE(b->ClaimPort({5000}).granted) << "another address";
  ASSERT_TRUE(c->ClaimPort({5000}).granted);
  frame::Frame frame;
  for (const bool vlan : {false, true}) {
    ASSERT_EQ(c->Send(frame::MakeSyn6(one, 5000, vlan)),
              SharedWire::SendOutcome::kSent);
    ASSERT_EQ(c->Send(frame::MakeSyn6(other, 5000, vlan)),
              SharedWire::SendOutcome::kSent);
    ASSERT_TRUE(a->Receive(&frame));
    EXPECT_EQ(frame, frame::MakeSyn6(one, 5000, vlan));
    EXPECT_FALSE(a->Receive(&frame));
    ASSERT_TRUE(b->Receive(&frame));
    EXPECT_EQ(frame, frame::MakeSyn6(other, 5000, vlan));
  }
  EXPECT_FALSE(c->Receive(&frame));
}

TEST_F(SharedWireTest, BadFcsReachesTheReceiver) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  fault::LineFrame sent{.bytes = frame::MakeAck(kIpB, Pdcid(*b), 7),
                        .route = {},
                        .bad_fcs = true};
  sent.route = frame::FindRoute(sent.bytes);
  sent.bytes[30] ^= 0xff;  // The address: it still goes there.
  ASSERT_EQ(a->Send(sent), SharedWire::SendOutcome::kSent);
  ASSERT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b), 8)),
            SharedWire::SendOutcome::kSent);
  frame::Frame frame;
  frame::FrameMarks marks;
  ASSERT_TRUE(b->Receive(&frame, &marks));
  EXPECT_EQ(frame, sent.bytes);
  EXPECT_TRUE(marks.bad_fcs);
  ASSERT_TRUE(b->Receive(&frame, &marks));
  EXPECT_FALSE(marks.bad_fcs);
}

TEST_F(SharedWireTest, SleeperWakesForAFrame) {
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  frame::Frame frame;
  ASSERT_FALSE(b->Receive(&frame));
  const uint64_t start = base::MonotonicNs();
  std::thread sleeper([&b] { b->Sleep(kLimitNs); });
  ASSERT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
            SharedWire::SendOutcome::kSent);
  sleeper.join();
  EXPECT_LT(base::MonotonicNs() - start, kLimitNs / 2);
  EXPECT_TRUE(b->HasNews());
}

TEST_F(SharedWireTest, SleeperSeesAKickThatAReceiverTook) {
  const WirePtr wire = Attach(kIpA);
  frame::Frame frame;
  ASSERT_FALSE(wire->Receive(&frame));
  const uint32_t wakes = wire->wakes();
  wire->Kick();
  ASSERT_FALSE(wire->Receive(&frame));
  ASSERT_FALSE(wire->HasNews());
  const uint64_t start = base::MonotonicNs();
  wire->Sleep(wakes, kLimitNs);
  EXPECT_LT(base::MonotonicNs() - start, kLimitNs / 2);
}

TEST_F(SharedWireTest, FunctionHasLeftWhenItDetachedOrWasKilled) {
  const WirePtr a = Attach(kIpA);
  WirePtr b = Attach(kIpB);
  const frame::Route to_b{
      .kind = frame::Route::Kind::kPort, .ip = kIpB, .port = 900};
  EXPECT_EQ(a->FunctionAt(to_b), 0U);
  ASSERT_TRUE(b->ClaimPort({900}).granted);
  const FunctionId first = a->FunctionAt(to_b);
  ASSERT_EQ(first, b->id());
  EXPECT_FALSE(a->HasLeft(first));
  b.reset();
  EXPECT_TRUE(a->HasLeft(first));
  EXPECT_EQ(a->FunctionAt(to_b), 0U);
  base::ChildProcess child(Claim(kIpB, 900));
  ASSERT_TRUE(child.Wait());
  const FunctionId second = a->FunctionAt(to_b);
  ASSERT_NE(second, 0U);
  EXPECT_NE(second, first);
  EXPECT_FALSE(a->HasLeft(second));
  child.Kill();
  EXPECT_EQ(a->FunctionAt(to_b), second) << "not yet polled";
  EXPECT_TRUE(a->HasLeft(second));
  EXPECT_EQ(a->FunctionAt(to_b), 0U);
}

TEST_F(SharedWireTest, NothingIsLeftWhenTheLastIsKilled) {
  std::set<pid_t> pids = {getpid()};
  {
    base::ChildProcess first([this](const base::ChildProcess::Signal& signal) {
      const WirePtr wire = Attach(kIpA);
      signal();
      pause();
    });
    ASSERT_TRUE(first.Wait());
    pids.insert(first.pid());
    EXPECT_EQ(Segments(pids), 1);
    base::ChildProcess last([this](const base::ChildProcess::Signal& signal) {
      const WirePtr wire = Attach(kIpA);
      signal();
      pause();
    });
    ASSERT_TRUE(last.Wait());
    pids.insert(last.pid());
    EXPECT_EQ(Segments(pids), 1) << "both are on one segment";
    first.Kill();
    EXPECT_EQ(Segments(pids), 1);
    last.Kill();
  }
  EXPECT_EQ(SegmentsLeft(pids), 0);
}

TEST_F(SharedWireTest, ManyProcessesMakeOneWire) {
  constexpr int kProcesses = 12;
  std::vector<std::unique_ptr<base::ChildProcess>> children;
  std::set<pid_t> pids;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(std::make_unique<base::ChildProcess>(
        [this](const base::ChildProcess::Signal& signal) {
          const WirePtr wire = Attach(kIpA);
          if (wire != nullptr) {
            signal();
          }
          pause();
        }));
    pids.insert(children.back()->pid());
  }
  for (const auto& child : children) {
    ASSERT_TRUE(child->Wait());
  }
  EXPECT_EQ(Segments(pids), 1);
  std::string message;
  auto segment = WireSegment::Open(name_, &message);
  ASSERT_TRUE(segment.ok()) << message;
  int attached = 0;
  for (const WirePort& port : (*segment.value())->ports) {
    attached += port.key.load() != 0;
  }
  EXPECT_EQ(attached, kProcesses);
}

TEST_F(SharedWireTest, SegmentIsForItsUserOnly) {
  const WirePtr a = Attach(kIpA);
  std::ifstream list("/proc/sysvipc/shm");
  std::string line;
  bool found = false;
  while (std::getline(list, line)) {
    unsigned int mode = 0;
    int creator = 0;
    if (std::sscanf(line.c_str(), "%*d %*d %o %*u %d", &mode, &creator) == 2 &&
        creator == getpid()) {
      found = true;
      EXPECT_EQ(mode & 0777, 0600u);
    }
  }
  EXPECT_TRUE(found);
}

// A segment that another user made and gave away looks like the own wire.
TEST_F(SharedWireTest, SegmentsMadeByAnotherUserAreNotTaken) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to act as another user";
  }
  constexpr uid_t kNobody = 65534;
  base::ChildProcess squatter([this](const base::ChildProcess::Signal& signal) {
    // The wire of user 0 by name; made, and owned at first, by nobody.
    if (setresuid(kNobody, kNobody, kNobody) != 0) {
      return;
    }
    const WirePtr wire = Attach(kIpA);
    std::ifstream list("/proc/sysvipc/shm");
    std::string line;
    while (std::getline(list, line)) {
      int id = 0;
      int creator = 0;
      shmid_ds status{};
      if (std::sscanf(line.c_str(), "%*d %d %*o %*u %d", &id, &creator) == 2 &&
          creator == getpid() && shmctl(id, IPC_STAT, &status) == 0) {
        status.shm_perm.uid = 0;
        if (shmctl(id, IPC_SET, &status) == 0) {
          signal();
        }
      }
    }
    pause();
  });
  ASSERT_TRUE(squatter.Wait());
  const WirePtr a = Attach(kIpA);
  EXPECT_EQ(Segments({getpid()}), 1) << "a wire of its own";
  std::string message;
  auto control = WireControl::Open(name_, &message);
  ASSERT_TRUE(control.ok()) << message;
  EXPECT_EQ(control.value().Ports().size(), 1u);
}

TEST_F(SharedWireTest, KeysTakenByAnotherUserDoNotKeepOneOut) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to act as another user";
  }
  constexpr uid_t kNobody = 65534;
  // Nobody holds the first key of root's wire, unfinished for ever.
  base::ChildProcess squatter([this](const base::ChildProcess::Signal& signal) {
    const key_t key = WireSegment::Key(name_, 0);
    if (setresuid(kNobody, kNobody, kNobody) != 0) {
      return;
    }
    const int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
    if (id < 0) {
      return;
    }
    signal();
    pause();
  });
  ASSERT_TRUE(squatter.Wait());
  const WirePtr a = Attach(kIpA);
  const WirePtr b = Attach(kIpB);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->Send(frame::MakeAck(kIpB, Pdcid(*b))),
            SharedWire::SendOutcome::kSent);
  const int id = shmget(WireSegment::Key(name_, 0), 0, 0);
  ASSERT_GE(id, 0);
  shmctl(id, IPC_RMID, nullptr);
}

TEST_F(SharedWireTest, HalfMadeSegmentOfADeadProcessIsRemoved) {
  const int id = shmget(WireSegment::Key(name_, 0), WireSegment::Bytes(),
                        IPC_CREAT | IPC_EXCL | 0600);
  ASSERT_GE(id, 0);
  const WirePtr a = Attach(kIpA);  // Waits until it counts as abandoned.
  ASSERT_TRUE(a);
  EXPECT_EQ(Segments({getpid()}), 1);
  shmid_ds status{};
  EXPECT_NE(shmctl(id, IPC_STAT, &status), 0);
}

TEST_F(SharedWireTest, BadNamesAreRefused) {
  std::string message;
  SharedWireOptions options = Options(kIpA);
  options.name = std::string(65, 'x');
  EXPECT_FALSE(SharedWire::Attach(options, &message).ok());
  options.name = std::string(64, 'x');
  EXPECT_TRUE(SharedWire::Attach(options, &message).ok()) << message;
}

}  // namespace
}  // namespace heddle::sim::wire
