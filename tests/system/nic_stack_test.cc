// SPDX-License-Identifier: Apache-2.0
// Two whole NICs in each encapsulation: IPv4 and IPv6, untagged and tagged,
// without and with the end-to-end CRC, over UDP and as native IP.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "driver/control/device_info.h"
#include "gtest/gtest.h"
#include "hw/contract/gen/heddle_contract.h"
#include "tests/system/harness/nodes_test.h"

namespace heddle {
namespace {

using contract::Statistic;
using contract::Status;

constexpr uint64_t kLimit = 1000000;  // Cycles; the tests end far earlier.
constexpr uint64_t kPrefix = 0xfd00'0000'0000'0001;

class NicStackTest : public NodesTest, public testing::WithParamInterface<int> {
 protected:
  bool ipv6() const { return (GetParam() & 1) != 0; }
  bool tagged() const { return (GetParam() & 2) != 0; }
  contract::CrcOrder crc() const {
    return static_cast<contract::CrcOrder>(GetParam() / 4 % 3);
  }
  bool native() const { return GetParam() >= 12; }

  static sim::frame::WireAddress Address(size_t node, bool ipv6) {
    const uint32_t ipv4 = LockstepNodes::Address(node);
    return ipv6 ? sim::frame::WireAddress(kPrefix, ipv4)
                : sim::frame::WireAddress(ipv4);
  }
  void SetUp() override {
    sim::nic::LockstepOptions options;
    options.addresses = {Address(0, ipv6()), Address(1, ipv6())};
    options.vlan = tagged() ? 0x123 : 0;
    options.crc = crc();
    options.ip_protocol = native() ? contract::kNativeIpProtocol : 0;
    ASSERT_NO_FATAL_FAILURE(NodesTest::Open(2, options));
  }
};

std::string StackName(const testing::TestParamInfo<int>& stack) {
  constexpr const char* kCrcs[] = {"", "CrcLsbFirst", "CrcMsbFirst"};
  return std::string(stack.param & 1 ? "V6" : "V4") +
         (stack.param & 2 ? "Tagged" : "") + kCrcs[stack.param / 4 % 3] +
         (stack.param >= 12 ? "Native" : "");
}

INSTANTIATE_TEST_SUITE_P(Each, NicStackTest, testing::Range(0, 24), StackName);

TEST_P(NicStackTest, MessagesArriveWholeAndFramesHaveTheLengthOfTheStack) {
  constexpr uint32_t kLengths[] = {0, 1, 8, 16, 17, 100, 4096, 10001};
  constexpr uint32_t kSlot = 10008;
  BareEndpoint& a = nodes_->endpoint(0);
  BareEndpoint& b = nodes_->endpoint(1);
  const size_t count = std::size(kLengths);
  DmaBuffer& source = nodes_->Memory(0, count * kSlot);
  DmaBuffer& target = nodes_->Memory(1, count * kSlot);
  for (size_t i = 0; i < source.bytes(); ++i) {
    source.data()[i] = static_cast<std::byte>(i * 151 >> 3);
  }
  uint64_t bytes = 0;
  uint64_t packets = 0;
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_TRUE(b.rx().TryPush(i, target.iova() + i * kSlot, kSlot));
    ASSERT_TRUE(a.tx().PushBuffer(
        {.op_context = i, .peer = 1, .flags = contract::kTxFlagCompletion},
        source.iova() + i * kSlot, kLengths[i]));
    bytes += kLengths[i];
    packets += kLengths[i] == 0 ? 1 : (kLengths[i] + 4095) / 4096;
  }
  b.rx().Publish();
  a.tx().Publish();
  uint32_t sent = 0;
  uint32_t received = 0;
  ASSERT_TRUE(nodes_->StepUntil(kLimit, [&] {
    while (auto completion = a.PollTx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      ++sent;
    }
    while (auto completion = b.PollRx()) {
      EXPECT_EQ(completion->status, Status::kOk);
      EXPECT_EQ(completion->length, kLengths[received]);
      EXPECT_EQ(completion->source_fa_lo, Address(0, ipv6()).lo);
      EXPECT_EQ(completion->source_fa_hi, Address(0, ipv6()).hi);
      ++received;
    }
    return sent == count && received == count;
  }));
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(std::memcmp(target.data() + size_t{i} * kSlot,
                          source.data() + size_t{i} * kSlot, kLengths[i]),
              0)
        << "message " << i;
  }
  // Ethernet, tag, IP, UDP or entropy, PDS, SES, CRC.
  const uint64_t headers = 14 + (tagged() ? 4 : 0) + (ipv6() ? 40 : 20) +
                           (native() ? 4 : 8) + 12 + 44 +
                           (crc() != contract::CrcOrder::kNone ? 4 : 0);
  EXPECT_EQ(Count(0, Statistic::kTxRequests), packets);
  EXPECT_EQ(Count(0, Statistic::kTxBytes), bytes + packets * headers);
}

TEST_P(NicStackTest, PeerOfTheOtherAddressFamilyIsABadPeer) {
  BareEndpoint& a = nodes_->endpoint(0);
  const uint32_t peer =
      a.AddPeer(Address(1, !ipv6()), nodes_->endpoint(1).grant());
  DmaBuffer& source = nodes_->Memory(0, 64);
  ASSERT_TRUE(a.tx().PushBuffer(
      {.op_context = 7, .peer = peer, .flags = contract::kTxFlagCompletion},
      source.iova(), 64));
  a.tx().Publish();
  Status status = Status::kOk;
  ASSERT_TRUE(nodes_->StepUntil(kLimit, [&] {
    const auto completion = a.PollTx();
    if (completion) {
      status = completion->status;
    }
    return completion.has_value();
  }));
  EXPECT_EQ(status, Status::kBadPeer);
  EXPECT_EQ(Count(0, Statistic::kTxFrames), 0U);
}

}  // namespace
}  // namespace heddle
