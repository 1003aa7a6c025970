// SPDX-License-Identifier: Apache-2.0
// A control program that resolves neighbours, on a fake NIC: frames in, frames
// and next hops out, admin commands on the other side.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "firmware/control_program.h"
#include "tests/firmware/fake_management_bus.h"
#include "tests/firmware/neighbour_frames.h"
#include "tests/firmware/test_memory.h"

namespace heddle::firmware {

using contract::AdminAnswer;
using contract::AdminCommand;
using contract::AdminOpcode;
using contract::AdminResolveNextHop;
using contract::AdminStatus;
using contract::ArpOperation;
using contract::Icmpv6Type;
using contract::NdOption;
using contract::NextHopCfg;

inline constexpr uint64_t kCommands = TestMemory::kBase;
inline constexpr uint64_t kAnswers = TestMemory::kBase + 0x8000;
inline constexpr uint32_t kRetryTicks = 100;
inline constexpr uint32_t kReachableTicks = 1000;
inline constexpr uint32_t kTries = 3;

class NeighboursTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLog2 = 8;
  static constexpr uint32_t kEntries = 1U << kLog2;

  NeighboursTest() {
    board_.resolve_neighbours = true;
    board_.neighbour_retry_ns = kRetryTicks * board_.tick_ns;
    board_.neighbour_reachable_ns = kReachableTicks * board_.tick_ns;
    board_.neighbour_tries = kTries;
    board_.prefix_length = 24;
  }

  void SetUp() override { Begin(); }
  void TearDown() override {
    EXPECT_EQ(bus_.violations, 0U) << "misuse of the management bus";
  }

  void Begin() {
    bus_.admin_command_base = kCommands;
    bus_.admin_answer_base = kAnswers;
    bus_.admin_log2 = kLog2;
    program_ =
        std::make_unique<ControlProgram>(bus_, switch_, object_memory_, board_);
    program_->Start();
    answers_ = bus_.admin_tail;
  }
  void BeginIpv6() {
    board_.ipv6 = true;
    board_.fa_hi = kOurIp6.hi;
    board_.fa_lo = kOurIp6.lo;
    board_.prefix_length = 64;
    Begin();
  }

  void Run() {
    for (uint32_t i = 0; i < 2000 && bus_.HasEvent(); ++i) {
      program_->Step();
    }
  }
  void Receive(const Bytes& frame) {
    bus_.slow_rx.push_back(frame);
    Run();
    EXPECT_TRUE(bus_.slow_rx.empty());
  }
  void Wait(uint32_t ticks) {
    for (uint32_t i = 0; i < ticks; ++i) {
      bus_.Tick(1);
      Run();
    }
  }
  static uint64_t EntryOffset(uint16_t index) {
    return uint64_t{index} % kEntries * sizeof(AdminCommand);
  }
  // Publishes a command; its id.
  template <typename T>
  uint16_t Publish(T command, AdminOpcode opcode) {
    command.opcode = opcode;
    command.id = static_cast<uint16_t>(0x1000 + bus_.admin_tail);
    EXPECT_TRUE(memory_.Write(kCommands + EntryOffset(bus_.admin_tail),
                              &command, sizeof(command)));
    ++bus_.admin_tail;
    return command.id;
  }
  uint16_t Resolve(uint32_t ip) {
    const uint16_t id =
        Publish(AdminResolveNextHop{.fa_lo = ip}, AdminOpcode::kResolveNextHop);
    Run();
    return id;
  }
  uint16_t Resolve(const FabricAddress& address) {
    const uint16_t id =
        Publish(AdminResolveNextHop{.fa_lo = address.lo,
                                    .fa_hi = address.hi,
                                    .flags = contract::kAvFlagIpv6},
                AdminOpcode::kResolveNextHop);
    Run();
    return id;
  }
  // The next answer in the ring, if there is one.
  std::optional<AdminAnswer> Next() {
    AdminAnswer answer;
    EXPECT_TRUE(memory_.Read(kAnswers + EntryOffset(answers_), &answer,
                             sizeof(answer)));
    const bool odd_pass = ((answers_ >> kLog2) & 1) != 0;
    if (answer.phase != (odd_pass ? 0 : 1)) {
      return std::nullopt;
    }
    ++answers_;
    return answer;
  }
  // The answer is `status` for command `id`; its object.
  uint32_t ExpectAnswer(uint16_t id, AdminStatus status = AdminStatus::kOk) {
    const auto answer = Next();
    if (!answer) {
      ADD_FAILURE() << "no answer";
      return 0;
    }
    EXPECT_EQ(answer->id, id);
    EXPECT_EQ(answer->status, status);
    if (status == AdminStatus::kNotFound) {
      EXPECT_EQ(answer->detail, offsetof(AdminResolveNextHop, fa_lo));
    }
    return answer->object;
  }
  void ExpectNoAnswer() { EXPECT_FALSE(Next().has_value()); }
  AdminStatus Release(uint32_t hop) {
    Publish(AdminCommand{.object = hop}, AdminOpcode::kReleaseNextHop);
    Run();
    const auto answer = Next();
    EXPECT_TRUE(answer.has_value());
    return answer ? answer->status : AdminStatus::kUnsupported;
  }
  // Resolves a peer that answers; its hop.
  uint32_t Meet(uint32_t ip, uint64_t mac) {
    const uint16_t id = Resolve(ip);
    bus_.slow_tx.clear();
    Receive(Reply(ip, mac));
    return ExpectAnswer(id);
  }
  NextHopCfg Hop(uint32_t index) {
    return bus_.Table<NextHopCfg>(contract::Table::kNextHop, index);
  }
  std::vector<Bytes> Sent() { return std::exchange(bus_.slow_tx, {}); }
  // Exactly one ARP packet left.
  wire::Arp SentArp(uint64_t destination) {
    const std::vector<Bytes> frames = Sent();
    if (frames.size() != 1 || frames[0].size() != 42) {
      ADD_FAILURE() << frames.size() << " frames";
      return {};
    }
    const auto ethernet = wire::Ethernet::Decode(frames[0].data());
    EXPECT_EQ(ethernet.destination, destination);
    EXPECT_EQ(ethernet.source, kOurMac);
    EXPECT_EQ(ethernet.ethertype, 0x0806);
    return wire::Arp::Decode(frames[0].data() + 14);
  }

  TestMemory memory_;
  FakeManagementBus bus_{memory_};
  FakeSwitch switch_;
  TestObjectMemory object_memory_;
  Board board_ = TestBoard();
  std::unique_ptr<ControlProgram> program_;
  uint16_t answers_ = 0;
};

}  // namespace heddle::firmware
