// SPDX-License-Identifier: Apache-2.0
// READ and WRITE between the RTL NIC and the soft device, either way.
#include <bit>
#include <cstring>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "hw/sim/base/clock.h"
#include "tests/sim/device/device_test.h"
#include "tests/sim/device/soft_kind.h"

namespace heddle::sim::rtl {
namespace {

using contract::Completion;
using contract::Status;

// Whether the RTL NIC is the initiator.
class RtlSoftTest : public device::DeviceTest,
                    public testing::WithParamInterface<bool> {
 protected:
  void Open(const device::DeviceOptions& options_a,
            const device::DeviceOptions& options_b) {
    a_ = GetParam() ? device::Node::Open(options_a, 100)
                    : device::Node::Open(options_a, 100, device::SoftKind());
    b_ = GetParam() ? device::Node::Open(options_b, 200, device::SoftKind())
                    : device::Node::Open(options_b, 200);
    ASSERT_TRUE(a_ && b_);
    a_->endpoint->AddPeer(options_b.wire.ip, b_->endpoint->grant());
    contract::AdminRegisterRegion command = {};
    command.opcode = contract::AdminOpcode::kRegisterRegion;
    command.iova = ToInteger(b_->buffer.iova());
    command.length = b_->buffer.bytes();
    command.job_id = BareEndpointOptions{}.job_id;
    command.flags = contract::kRegionFlagRemoteRead |
                    contract::kRegionFlagRemoteWrite |
                    contract::kRegionFlagProviderKey;
    const auto answer =
        b_->admin->Execute(std::bit_cast<contract::AdminCommand>(command));
    ASSERT_TRUE(answer.ok());
    ASSERT_EQ(answer.value().status, contract::AdminStatus::kOk);
    key_ = answer.value().key;
  }
  bool Push(contract::Opcode opcode, uint32_t offset, uint32_t bytes,
            uint64_t key) {
    // Who looks at the target's memory waits for delivery.
    const auto flags = static_cast<uint8_t>(
        opcode == contract::Opcode::kWrite
            ? contract::kTxFlagCompletion | contract::kTxFlagDeliveryComplete
            : contract::kTxFlagCompletion);
    const SendFields fields{.op_context = offset, .peer = 0, .flags = flags};
    if (!a_->endpoint->tx().PushBuffer(
            fields, Iova{ToInteger(a_->buffer.iova()) + offset}, bytes)) {
      return false;
    }
    contract::TxDesc& descriptor = a_->endpoint->LastTxDesc();
    descriptor.opcode = opcode;
    descriptor.match_bits = key;
    descriptor.remote_offset = offset;
    a_->endpoint->tx().Publish();
    return true;
  }
  std::optional<Completion> Wait() {
    const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
    while (base::MonotonicNs() < deadline) {
      a_->Step();
      b_->Step();
      if (auto done = a_->endpoint->PollTx()) {
        return done;
      }
    }
    ADD_FAILURE() << a_->device->failure() << b_->device->failure();
    return std::nullopt;
  }
  static void Fill(DmaBuffer& buffer, uint32_t seed) {
    for (size_t i = 0; i < buffer.bytes(); ++i) {
      buffer.data()[i] = static_cast<std::byte>((i * 7 + seed) >> (i % 3));
    }
  }

  std::unique_ptr<device::Node> a_, b_;
  uint64_t key_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Initiator, RtlSoftTest, testing::Bool(),
                         [](const auto& rtl) {
                           return std::string(rtl.param ? "Rtl" : "Soft");
                         });

TEST_P(RtlSoftTest, ReadsOfAnySizeArriveWhole) {
  ASSERT_NO_FATAL_FAILURE(Open(Options(device::kIpA), Options(device::kIpB)));
  for (const uint32_t bytes :
       {0U, 1U, 8U, 16U, 17U, 4096U, 4097U, 20000U, 65536U}) {
    SCOPED_TRACE(bytes);
    Fill(b_->buffer, bytes);
    std::memset(a_->buffer.data(), 0x5a, a_->buffer.bytes());
    ASSERT_TRUE(Push(contract::Opcode::kRead, 0, bytes, key_));
    const auto done = Wait();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kOk);
    ASSERT_EQ(std::memcmp(a_->buffer.data(), b_->buffer.data(), bytes), 0);
    for (size_t i = bytes; i < a_->buffer.bytes(); ++i) {
      ASSERT_EQ(a_->buffer.data()[i], std::byte{0x5a}) << i;
    }
  }
}

TEST_P(RtlSoftTest, BothSpeakEachStackOfHeaders) {
  constexpr uint64_t kPrefix = 0xfd00'0000'0000'0001;
  constexpr uint32_t kBytes = 20000;
  for (const bool ipv6 : {false, true}) {
    for (const uint16_t vlan : {uint16_t{0}, uint16_t{0x123}}) {
      SCOPED_TRACE(testing::Message() << "IPv6 " << ipv6 << " VLAN " << vlan);
      a_.reset();
      b_.reset();
      device::DeviceOptions a = Options(device::kIpA);
      device::DeviceOptions b = Options(device::kIpB);
      for (device::DeviceOptions* options : {&a, &b}) {
        options->settings.vlan = vlan;
        if (ipv6) {
          options->wire.ip = frame::WireAddress(kPrefix, options->wire.ip.lo);
        }
      }
      ASSERT_NO_FATAL_FAILURE(Open(a, b));
      for (const auto opcode :
           {contract::Opcode::kWrite, contract::Opcode::kRead}) {
        const bool read = opcode == contract::Opcode::kRead;
        DmaBuffer& from = read ? b_->buffer : a_->buffer;
        DmaBuffer& to = read ? a_->buffer : b_->buffer;
        Fill(from, read ? 5 : 6);
        ASSERT_TRUE(Push(opcode, 0, kBytes, key_));
        const auto done = Wait();
        ASSERT_TRUE(done);
        EXPECT_EQ(done->status, Status::kOk);
        ASSERT_EQ(std::memcmp(to.data(), from.data(), kBytes), 0);
      }
      EXPECT_EQ(ReadStatistic(*b_->device, contract::Statistic::kDropVlan), 0U);
    }
  }
}

TEST_P(RtlSoftTest, FramesOfAnotherVlanAreDropped) {
  device::DeviceOptions a = Options(device::kIpA);
  a.settings.vlan = 0x123;
  ASSERT_NO_FATAL_FAILURE(Open(a, Options(device::kIpB)));
  ASSERT_TRUE(Push(contract::Opcode::kWrite, 0, 8, key_));
  const uint64_t deadline = base::MonotonicNs() + device::kLimitNs;
  while (ReadStatistic(*b_->device, contract::Statistic::kDropVlan) == 0) {
    ASSERT_LT(base::MonotonicNs(), deadline);
    a_->Step();
    b_->Step();
  }
  EXPECT_FALSE(a_->endpoint->PollTx());
}

TEST_P(RtlSoftTest, ManyReadsAtOnceGoodAndBad) {
  ASSERT_NO_FATAL_FAILURE(Open(Options(device::kIpA), Options(device::kIpB)));
  Fill(b_->buffer, 3);
  std::memset(a_->buffer.data(), 0x5a, a_->buffer.bytes());
  constexpr uint32_t kSlot = 1000;
  constexpr uint32_t kReads = 60;
  const auto bytes = [](uint32_t i) { return i % 3 == 0 ? 8U : i * 16 + 1; };
  for (uint32_t i = 0; i < kReads; ++i) {
    ASSERT_TRUE(Push(contract::Opcode::kRead, i * kSlot, bytes(i),
                     i % 5 == 4 ? key_ ^ 1 << 20 : key_));
  }
  for (uint32_t n = 0; n < kReads; ++n) {
    const auto done = Wait();
    ASSERT_TRUE(done) << n;
    const auto i = static_cast<uint32_t>(done->op_context / kSlot);
    EXPECT_EQ(done->status, i % 5 == 4 ? Status::kRemoteError : Status::kOk)
        << i;
  }
  for (uint32_t i = 0; i < kReads; ++i) {
    const std::byte* local = a_->buffer.data() + i * kSlot;
    if (i % 5 == 4) {
      EXPECT_EQ(local[0], std::byte{0x5a});
    } else {
      EXPECT_EQ(std::memcmp(local, b_->buffer.data() + i * kSlot, bytes(i)), 0)
          << i;
    }
  }
}

TEST_P(RtlSoftTest, ReadsSurviveABadNetwork) {
  device::DeviceOptions a = Options(device::kIpA);
  device::DeviceOptions b = Options(device::kIpB);
  for (device::DeviceOptions* options : {&a, &b}) {
    options->faults.tx.loss = 0.02;
    options->faults.tx.duplicate = 0.02;
    options->faults.tx.reorder = 0.02;
  }
  ASSERT_NO_FATAL_FAILURE(Open(a, b));
  for (uint32_t round = 0; round < 12; ++round) {
    const uint32_t bytes = round % 2 == 0 ? 8 : 60000;
    Fill(b_->buffer, round);
    ASSERT_TRUE(Push(contract::Opcode::kRead, 0, bytes, key_));
    const auto done = Wait();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kOk);
    ASSERT_EQ(std::memcmp(a_->buffer.data(), b_->buffer.data(), bytes), 0);
  }
}

// Each learns from the other's ACKs; what is marked is answered at once.
TEST_P(RtlSoftTest, CongestionWindowsKeepToWhatTheOtherSays) {
  device::DeviceOptions a = Options(device::kIpA);
  device::DeviceOptions b = Options(device::kIpB);
  for (device::DeviceOptions* options : {&a, &b}) {
    options->settings.cwnd_bytes = 100'000;
    options->settings.base_rtt_ns = 500'000;
    options->faults.rx.ecn = 0.3;
    options->faults.rx.loss = 0.01;
  }
  ASSERT_NO_FATAL_FAILURE(Open(a, b));
  for (uint32_t round = 0; round < 12; ++round) {
    const bool read = round % 4 == 3;
    DmaBuffer& from = read ? b_->buffer : a_->buffer;
    DmaBuffer& to = read ? a_->buffer : b_->buffer;
    Fill(from, round);
    ASSERT_TRUE(Push(read ? contract::Opcode::kRead : contract::Opcode::kWrite,
                     0, 60000, key_));
    const auto done = Wait();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, Status::kOk);
    ASSERT_EQ(std::memcmp(to.data(), from.data(), 60000), 0) << round;
  }
  EXPECT_GT(ReadStatistic(*b_->device, contract::Statistic::kRxEcnMarked), 0U);
}

// The target answers READs more often than asked, and with data of others: what
// is due to one must not be taken from another, which would wait for ever.
class WrongTargetTest : public RtlSoftTest {};

INSTANTIATE_TEST_SUITE_P(Initiator, WrongTargetTest, testing::Values(true),
                         [](const auto&) { return std::string("Rtl"); });

TEST_P(WrongTargetTest, EachReadEndsAndThoseThatSucceedAreWhole) {
  constexpr uint32_t kSlot = 16384;
  device::DeviceOptions a = Options(device::kIpA);
  device::DeviceOptions b = Options(device::kIpB);
  a.settings.dead_ns = 400'000'000;
  b.settings.read_again = 0.2;
  ASSERT_NO_FATAL_FAILURE(Open(a, b));
  Fill(b_->buffer, 9);
  const auto reads = static_cast<uint32_t>(a_->buffer.bytes() / kSlot);
  uint32_t succeeded = 0;
  for (uint32_t round = 0; round < 12; ++round) {
    std::memset(a_->buffer.data(), 0x5a, a_->buffer.bytes());
    const auto bytes = [round](uint32_t i) {
      return (i + round) % 3 == 0 ? 100U : 16000U;
    };
    for (uint32_t i = 0; i < reads; ++i) {
      ASSERT_TRUE(Push(contract::Opcode::kRead, i * kSlot, bytes(i), key_));
    }
    for (uint32_t n = 0; n < reads; ++n) {
      const auto done = Wait();
      ASSERT_TRUE(done) << "round " << round << ", READ " << n;
      const auto i = static_cast<uint32_t>(done->op_context / kSlot);
      if (done->status == Status::kOk) {
        ++succeeded;
        ASSERT_EQ(std::memcmp(a_->buffer.data() + i * kSlot,
                              b_->buffer.data() + i * kSlot, bytes(i)),
                  0);
      }
    }
    for (uint32_t i = 0; i < reads; ++i) {
      const std::byte* const behind = a_->buffer.data() + i * kSlot;
      for (uint32_t at = bytes(i); at < kSlot; ++at) {
        ASSERT_EQ(behind[at], std::byte{0x5a}) << i << ' ' << at;
      }
    }
  }
  EXPECT_GT(succeeded, 0U);
  EXPECT_GT(ReadStatistic(*a_->device, contract::Statistic::kDropSes), 0U);
}

}  // namespace
}  // namespace heddle::sim::rtl
