// SPDX-License-Identifier: Apache-2.0
// Completions of contexts that match, on the soft device in virtual time.
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "driver/control/device_info.h"
#include "host/lib/nic/endpoint.h"
#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/base/virtual_time.h"
#include "hw/sim/device/settings.h"
#include "hw/soft/soft_device.h"

namespace heddle::nic {
namespace {

// One endpoint, which sends to itself.
class MatchEndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string wire = "match-endpoint-" + std::to_string(getpid());
    const std::array<HeddleSimOption, 2> options = {
        {{.name = "address", .value = "10.0.0.1"},
         {.name = "wire", .value = wire.c_str()}}};
    std::string message;
    const auto settings =
        sim::device::ParseSettings(contract::kSoftKind, options, &message);
    ASSERT_TRUE(settings.ok()) << message;
    auto device =
        soft::SoftDevice::Open(settings.value(), &message, {.time = &time_});
    ASSERT_TRUE(device.ok()) << message;
    auto info = WaitReady(*device.value(), std::chrono::seconds(10), message);
    ASSERT_TRUE(info.ok()) << message;
    auto adopted = Nic::Adopt(
        {.device = std::move(device.value()), .info = info.value()}, message);
    ASSERT_TRUE(adopted.ok()) << message;
    nic_ = std::move(adopted.value());
    cq_ = std::make_unique<Cq>(*nic_);
    ASSERT_TRUE(cq_->Open(64, false).ok());
    peers_ = std::move(AddressTable::Create(nic_->device(), 0).value());
    contract::AdminAnswer refusal;
    auto claimed = Endpoint::Claim(*nic_, {.port = 0, .job_id = 1}, &refusal);
    ASSERT_TRUE(claimed.ok());
    endpoint_ = std::move(claimed.value());
    Endpoint::Options wanted = {.tx_cq = cq_.get(),
                                .rx_cq = cq_.get(),
                                .peers = peers_.get(),
                                .tx_operations = 16,
                                .rx_operations = 16,
                                .copy_limit_bytes = 65536,
                                .msg_order = 0};
    wanted.contexts = {.untagged = false,
                       .tagged = true,
                       .unexpected_bytes = 4096,
                       .unexpected_messages = 16,
                       .copy_limit_bytes = 256};
    ASSERT_TRUE(endpoint_->Enable(wanted).ok());
    const iovec part = {buffer_.data(), buffer_.size()};
    size_t refused = 0;
    auto region = Registration::Create(*nic_, {&part, 1}, &refused);
    ASSERT_TRUE(region.ok());
    region_ = std::move(region.value());
    self_ =
        peers_->Insert({.ipv4 = 0x0a000001, .port = endpoint_->port()}).value();
  }

  // Posts a receive into `buffer_`, and then a message with its context as tag;
  // its completion comes.
  void Arrive(uint64_t context, uint64_t data, bool registered = true) {
    const backend::MatchOperation receive = {.context = context,
                                             .tag = context};
    const backend::Buffer local = {
        .address = buffer_.data(),
        .bytes = buffer_.size(),
        .descriptor = registered ? static_cast<backend::Region*>(region_.get())
                                 : nullptr};
    MatchQueue& queue = *endpoint_->tagged_receive();
    if (registered) {
      ASSERT_TRUE(queue.TryPostRegistered<backend::Unlocked>(receive, local));
    } else {
      ASSERT_EQ(queue.Post<backend::Unlocked>(receive, local), 0);
    }
    ASSERT_EQ(endpoint_->transmit()->Post<backend::Unlocked>(
                  {.data = data,
                   .peer = self_,
                   .flags = data != 0 ? backend::kCarryData : uint8_t{0},
                   .opcode = backend::Opcode::kTaggedSend,
                   .key = context},
                  backend::Buffer{.address = message_.data(),
                                  .bytes = message_.size(),
                                  .descriptor = nullptr}),
              0);
    for (int i = 0; i < 1000 && cq_->Peek() == nullptr; ++i) {
      nic_->progressor()->step(nic_->progressor()->cookie);
    }
    ASSERT_NE(cq_->Peek(), nullptr);
  }

  sim::base::VirtualTime time_;
  std::unique_ptr<Nic> nic_;
  std::unique_ptr<Cq> cq_;
  std::unique_ptr<AddressTable> peers_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Registration> region_;  // `buffer_`
  uint64_t self_ = 0;
  std::array<uint8_t, 8> message_ = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<uint8_t, 8> buffer_{};
};

// Entries that end in the same word are taken without a look at their queue.
TEST_F(MatchEndpointTest, FrequentEntriesAreOfTheAttachedQueueAndItsFlags) {
  backend::Completion last;
  const auto sink = [&last](const backend::Completion& done, auto /*source*/) {
    last = done;
  };
  for (const uint64_t context : {1, 2, 3}) {
    SCOPED_TRACE(context);
    ASSERT_NO_FATAL_FAILURE(Arrive(context, 0));
    const bool first = context == 1;
    EXPECT_FALSE(cq_->TryTake(cq_->Poll(), sink));
    EXPECT_EQ(cq_->TryTakeMatched(cq_->Poll(), sink), !first);
    EXPECT_TRUE(!first || cq_->TryTakeOther(*cq_->Peek(), sink));
    EXPECT_EQ(last.context, context);
    EXPECT_EQ(last.tag(), context);
    EXPECT_EQ(last.flags, FI_TAGGED | FI_RECV);
    EXPECT_EQ(last.length, message_.size());
    EXPECT_EQ(last.buffer, buffer_.data());
    EXPECT_EQ(buffer_, message_);
  }
  for (const uint64_t data : {42, 0}) {
    ASSERT_NO_FATAL_FAILURE(Arrive(4, data));
    EXPECT_FALSE(cq_->TryTakeMatched(cq_->Poll(), sink)) << "other flags";
    ASSERT_TRUE(cq_->TryTakeOther(*cq_->Peek(), sink));
    EXPECT_EQ(last.flags,
              FI_TAGGED | FI_RECV | (data != 0 ? FI_REMOTE_CQ_DATA : 0));
    EXPECT_EQ(last.data(), data);
  }
  // The queue that these were of may be another one's by now.
  cq_->Detach(*endpoint_->tagged_receive());
  cq_->Forget(*endpoint_->tagged_receive());
  cq_->Attach(*endpoint_->tagged_receive());
  ASSERT_NO_FATAL_FAILURE(Arrive(5, 0));
  ASSERT_FALSE(cq_->TryTakeMatched(cq_->Poll(), sink));
  cq_->Take<backend::Unlocked>(*cq_->Peek(), 1, sink);
  EXPECT_EQ(last.context, 5U);
}

// Only completions that leave nothing to do are short.
TEST_F(MatchEndpointTest, ReceiveThroughASlabReachesItsBufferOnTheLongWay) {
  backend::Completion last;
  const auto sink = [&last](const backend::Completion& done, auto /*source*/) {
    last = done;
  };
  ASSERT_NO_FATAL_FAILURE(Arrive(1, 0));
  ASSERT_TRUE(cq_->TryTakeOther(*cq_->Peek(), sink));
  buffer_ = {};
  ASSERT_NO_FATAL_FAILURE(Arrive(2, 0, /*registered=*/false));
  EXPECT_FALSE(cq_->TryTakeMatched(cq_->Poll(), sink));
  EXPECT_FALSE(cq_->TryTakeOther(*cq_->Peek(), sink));
  EXPECT_EQ(last.context, 1U);
  EXPECT_NE(buffer_, message_) << "the owner's only at the completion";
  cq_->Take<backend::Unlocked>(*cq_->Peek(), 1, sink);
  EXPECT_EQ(last.context, 2U);
  EXPECT_EQ(buffer_, message_);
}

}  // namespace
}  // namespace heddle::nic
