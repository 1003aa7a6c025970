// SPDX-License-Identifier: Apache-2.0
// A control program on a fake NIC, and the admin queue in front of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "firmware/control_program.h"
#include "tests/firmware/fake_management_bus.h"
#include "tests/firmware/test_memory.h"

namespace heddle::firmware {

using contract::AdminAnswer;
using contract::AdminCommand;
using contract::AdminCreateCq;
using contract::AdminCreateEndpoint;
using contract::AdminCreateRx;
using contract::AdminCreateTx;
using contract::AdminOpcode;
using contract::AdminSetTiming;
using contract::AdminStatus;
using contract::TransportCfg;

inline constexpr uint64_t kCommands = TestMemory::kBase;
inline constexpr uint64_t kAnswers = TestMemory::kBase + 0x4000;

class ControlProgramTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLog2 = 2;
  // More steps than any command needs.
  static constexpr uint32_t kMaxSteps = 100;

  void SetUp() override {
    bus_.admin_command_base = kCommands;
    bus_.admin_answer_base = kAnswers;
    bus_.admin_log2 = kLog2;
    program_ =
        std::make_unique<ControlProgram>(bus_, switch_, object_memory_, board_);
    program_->Start();
    bus_.events.clear();
  }

  void TearDown() override {
    EXPECT_EQ(bus_.violations, 0U) << "misuse of the management bus";
  }

  template <typename T>
  void Publish(T command, AdminOpcode opcode) {
    command.opcode = opcode;
    command.id = static_cast<uint16_t>(0x1000 + bus_.admin_tail);
    ASSERT_TRUE(memory_.Write(kCommands + Slot(bus_.admin_tail) * 64, &command,
                              sizeof(command)));
    ++bus_.admin_tail;
  }

  bool IsAnswered(uint16_t count) {
    const bool odd_pass = ((count >> kLog2) & 1) != 0;
    return AnswerAt(count).phase == (odd_pass ? 0 : 1);
  }

  AdminAnswer AnswerAt(uint16_t count) {
    AdminAnswer answer;
    EXPECT_TRUE(
        memory_.Read(kAnswers + Slot(count) * 64, &answer, sizeof(answer)));
    return answer;
  }

  void Run() {
    for (uint32_t i = 0; i < kMaxSteps && bus_.HasEvent(); ++i) {
      program_->Step();
    }
  }

  template <typename T>
  AdminAnswer Execute(T command, AdminOpcode opcode) {
    const uint16_t count = bus_.admin_tail;
    Publish(command, opcode);
    EXPECT_FALSE(IsAnswered(count));
    Run();
    EXPECT_TRUE(IsAnswered(count)) << "no answer";
    const AdminAnswer answer = AnswerAt(count);
    EXPECT_EQ(answer.id, static_cast<uint16_t>(0x1000 + count));
    return answer;
  }

  uint32_t MakeEndpoint(uint32_t port = 5000) {
    const AdminAnswer answer =
        Execute(AdminCreateEndpoint{.port = port, .job_id = 9},
                AdminOpcode::kCreateEndpoint);
    EXPECT_EQ(answer.status, AdminStatus::kOk);
    return answer.object;
  }
  uint32_t MakeCq() {
    const AdminAnswer answer = Execute(ValidCq(), AdminOpcode::kCreateCq);
    EXPECT_EQ(answer.status, AdminStatus::kOk);
    return answer.object;
  }
  uint32_t MakeTx() {
    const AdminAnswer answer = Execute(ValidTx(), AdminOpcode::kCreateTx);
    EXPECT_EQ(answer.status, AdminStatus::kOk);
    return answer.object;
  }
  uint32_t MakeRx(uint16_t rx_index) {
    AdminCreateRx command = ValidRx();
    command.rx_index = rx_index;
    const AdminAnswer answer = Execute(command, AdminOpcode::kCreateRx);
    EXPECT_EQ(answer.status, AdminStatus::kOk);
    return answer.object;
  }
  AdminAnswer Destroy(AdminOpcode opcode, uint32_t object) {
    return Execute(AdminCommand{.object = object}, opcode);
  }

  static AdminCreateCq ValidCq() {
    return {.base = 0x10000, .log2 = 7, .vector = 3};
  }
  // Both use endpoint 0 and queue 0.
  static AdminCreateTx ValidTx() {
    return {.ring_base = 0x20000,
            .head_cell = 0x30008,
            .av_base = 0x40040,
            .av_entries = 100,
            .ring_log2 = 7,
            .traffic_class = 46,
            .msg_order = 0xffff};
  }
  static AdminCreateRx ValidRx() {
    return {.ring_base = 0x50000,
            .head_cell = 0x60010,
            .ring_log2 = 7,
            .rx_index = 3};
  }

  TestMemory memory_;
  FakeManagementBus bus_{memory_};
  FakeSwitch switch_;
  TestObjectMemory object_memory_;
  Board board_ = TestBoard();
  std::unique_ptr<ControlProgram> program_;

 private:
  static uint64_t Slot(uint16_t count) { return count & ((1U << kLog2) - 1); }
};

}  // namespace heddle::firmware
