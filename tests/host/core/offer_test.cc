// SPDX-License-Identifier: Apache-2.0
// What is offered follows from the capability register, bit by bit.
#include "host/lib/core/offer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "driver/control/device_info.h"
#include "host/lib/core/info_layout.h"
#include "host/lib/core/info_memory.h"
#include "host/lib/nic/profile.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::core {
namespace {

struct OfferTest : ::testing::Test {
  std::optional<Refusal> Refused(uint64_t capability) {
    return FindRefusal(Wanted(), Offer(capability));
  }
  InfoPointer Answer(uint64_t capability) {
    EXPECT_FALSE(Refused(capability).has_value());
    return MakeInfo(Wanted(), FI_VERSION(1, 17), Offer(capability));
  }
  Hints Wanted() const {
    return {hints.get(), LayoutOfVersion(FI_VERSION(1, 17))};
  }
  static DeviceOffer Offer(uint64_t capability) {
    DeviceInfo info;
    info.capability = capability;
    info.counts = {.tx_contexts = 7,
                   .rx_contexts = 6,
                   .completion_queues = 5,
                   .counters = 4,
                   .regions = 3};
    return {.domain_name = "some0",
            .fabric_name = "some",
            .provider_name = "heddle",
            .ipv4 = true,
            .ipv6 = true,
            .profile = nic::ProfileOf(info),
            .unexpected_bytes = 8192};
  }
  static constexpr uint64_t kTags =
      contract::kCapabilitySend | contract::kCapabilityMatch |
      contract::kCapabilityTagged | contract::kCapabilityMultiRecv;
  static constexpr uint64_t kWriter =
      contract::kCapabilitySend | contract::kCapabilityWrite;
  InfoPointer hints{AllocateInfo()};
};

TEST_F(OfferTest, WriteAloneIsRmaWithoutReads) {
  const InfoPointer answer = Answer(kWriter);
  constexpr uint64_t kRma =
      FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  EXPECT_EQ(answer->caps & kRma, FI_RMA | FI_WRITE | FI_REMOTE_WRITE);
  EXPECT_EQ(answer->tx_attr->caps & kRma, FI_RMA | FI_WRITE);
  EXPECT_EQ(answer->rx_attr->caps & kRma, FI_RMA | FI_REMOTE_WRITE);
  EXPECT_EQ(answer->tx_attr->rma_iov_limit, 1U);
  EXPECT_EQ(answer->domain_attr->cntr_cnt, 0U);
}

TEST_F(OfferTest, CountsAreThoseOfTheDevice) {
  const InfoPointer answer = Answer(kWriter | contract::kCapabilityCounters);
  const fi_domain_attr& domain = *answer->domain_attr;
  EXPECT_EQ(domain.tx_ctx_cnt, 7U);
  EXPECT_EQ(domain.rx_ctx_cnt, 6U);
  EXPECT_EQ(domain.ep_cnt, 6U);
  EXPECT_EQ(domain.cq_cnt, 5U);
  EXPECT_EQ(domain.cntr_cnt, 4U);
  EXPECT_EQ(domain.mr_cnt, 3U);
  // Of regions that no peer reaches the device keeps nothing.
  hints->caps = FI_MSG;
  hints->domain_attr->mr_cnt = 100000;
  EXPECT_EQ(Answer(kWriter)->domain_attr->mr_cnt, 100000U);
}

TEST_F(OfferTest, MoreThanTheDeviceHasIsRefusedWithBothNumbers) {
  const struct {
    const char* attribute;
    size_t fi_domain_attr::*count;
    size_t offered;
  } kCases[] = {
      {"domain_attr->tx_ctx_cnt", &fi_domain_attr::tx_ctx_cnt, 7},
      {"domain_attr->rx_ctx_cnt", &fi_domain_attr::rx_ctx_cnt, 6},
      {"domain_attr->ep_cnt", &fi_domain_attr::ep_cnt, 6},
      {"domain_attr->cq_cnt", &fi_domain_attr::cq_cnt, 5},
      {"domain_attr->cntr_cnt", &fi_domain_attr::cntr_cnt, 4},
      {"domain_attr->mr_cnt", &fi_domain_attr::mr_cnt, 3},
  };
  constexpr uint64_t kOffered = kWriter | contract::kCapabilityCounters;
  for (const auto& [attribute, count, offered] : kCases) {
    SCOPED_TRACE(attribute);
    hints.reset(AllocateInfo());
    hints->domain_attr->*count = offered;
    EXPECT_FALSE(Refused(kOffered).has_value());
    hints->domain_attr->*count = offered + 1;
    const auto refusal = Refused(kOffered);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->attribute, attribute);
    EXPECT_EQ(refusal->wanted, std::to_string(offered + 1));
    EXPECT_EQ(refusal->offered, "at most " + std::to_string(offered));
  }
}

TEST_F(OfferTest, RmaWithoutModifiersNeedsReadsToo) {
  hints->caps = FI_RMA;
  const auto refusal = Refused(kWriter);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->attribute, "caps");
  EXPECT_NE(refusal->wanted.find("FI_REMOTE_READ"), std::string::npos);
  EXPECT_FALSE(Refused(kWriter | contract::kCapabilityRead).has_value());
  hints->caps = FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
  EXPECT_FALSE(Refused(kWriter).has_value());
}

TEST_F(OfferTest, EachHintNeedsItsBit) {
  const struct {
    const char* attribute;
    uint64_t bit;
    void (*want)(fi_info* hints);
  } kCases[] = {
      {"caps", contract::kCapabilityWrite,
       [](fi_info* h) { h->caps = FI_RMA | FI_WRITE; }},
      {"caps", contract::kCapabilityFence,
       [](fi_info* h) { h->caps = FI_MSG | FI_FENCE; }},
      {"caps", contract::kCapabilityRead,
       [](fi_info* h) { h->caps = FI_RMA | FI_REMOTE_READ; }},
      {"caps", contract::kCapabilityRegionEvent,
       [](fi_info* h) {
         h->caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE | FI_RMA_EVENT;
       }},
      {"tx_attr->op_flags", contract::kCapabilityDeliveryComplete,
       [](fi_info* h) { h->tx_attr->op_flags = FI_DELIVERY_COMPLETE; }},
      {"tx_attr->msg_order", contract::kCapabilityRead,
       [](fi_info* h) { h->tx_attr->msg_order = FI_ORDER_RAW; }},
      {"tx_attr->rma_iov_limit", contract::kCapabilityMore,
       [](fi_info* h) { h->tx_attr->rma_iov_limit = 2; }},
      {"domain_attr->cntr_cnt", contract::kCapabilityCounters,
       [](fi_info* h) { h->domain_attr->cntr_cnt = 1; }},
      {"caps", contract::kCapabilityTagged,
       [](fi_info* h) { h->caps = FI_TAGGED; }},
      {"caps", contract::kCapabilityMatch,
       [](fi_info* h) { h->caps = FI_TAGGED; }},
      {"caps", contract::kCapabilityMultiRecv,
       [](fi_info* h) { h->caps = FI_MSG | FI_MULTI_RECV; }},
      {"caps", contract::kCapabilityMatch,
       [](fi_info* h) { h->caps = FI_MSG | FI_DIRECTED_RECV; }},
      {"tx_attr->msg_order", contract::kCapabilityWriteAfterRead,
       [](fi_info* h) { h->tx_attr->msg_order = FI_ORDER_WAR; }},
      {"rx_attr->msg_order", contract::kCapabilityWriteAfterRead,
       [](fi_info* h) { h->rx_attr->msg_order = FI_ORDER_SAR; }},
      {"ep_attr->max_order_war_size", contract::kCapabilityWriteAfterRead,
       [](fi_info* h) { h->ep_attr->max_order_war_size = 1; }},
      {"tx_attr->comp_order", contract::kCapabilityFence,
       [](fi_info* h) {
         h->caps = FI_MSG;
         h->tx_attr->comp_order = FI_ORDER_STRICT;
       }},
  };
  constexpr uint64_t kAll =
      kTags | kWriter | contract::kCapabilityWriteAfterRead |
      contract::kCapabilityRead | contract::kCapabilityFence |
      contract::kCapabilityRegionEvent | contract::kCapabilityDeliveryComplete |
      contract::kCapabilityMore | contract::kCapabilityCounters;
  for (const auto& [attribute, bit, want] : kCases) {
    SCOPED_TRACE(testing::Message() << attribute << ' ' << bit);
    hints.reset(AllocateInfo());
    want(hints.get());
    EXPECT_FALSE(Refused(kAll).has_value());
    const auto refusal = Refused(kAll & ~bit);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->attribute, attribute);
  }
}

TEST_F(OfferTest, TagsHaveAFormatAndMemoryForUnexpectedMessages) {
  hints->caps = FI_TAGGED;
  InfoPointer answer = Answer(kTags);
  EXPECT_EQ(answer->caps,
            FI_TAGGED | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM);
  EXPECT_EQ(answer->tx_attr->caps, FI_TAGGED | FI_SEND);
  EXPECT_EQ(answer->rx_attr->caps, FI_TAGGED | FI_RECV);
  EXPECT_EQ(answer->ep_attr->mem_tag_format, 0xaaaaaaaaaaaaaaaaU);
  EXPECT_EQ(answer->rx_attr->total_buffered_recv, 8192U);
  EXPECT_EQ(answer->domain_attr->ep_cnt, 6U);
  // MPICH's of many fields.
  hints->ep_attr->mem_tag_format = 0x00e000007fffffff;
  hints->rx_attr->total_buffered_recv = 10000;
  answer = Answer(kTags);
  EXPECT_EQ(answer->ep_attr->mem_tag_format, 0x00e000007fffffffU);
  EXPECT_EQ(answer->rx_attr->total_buffered_recv, 12288U);
  // Both kinds of message have a receive context each.
  hints->caps = FI_TAGGED | FI_MSG;
  EXPECT_EQ(Answer(kTags)->domain_attr->ep_cnt, 3U);
  hints->caps = FI_MSG;
  answer = Answer(kTags);
  EXPECT_EQ(answer->caps & FI_TAGGED, 0U);
  EXPECT_EQ(answer->rx_attr->total_buffered_recv, 0U);
  EXPECT_EQ(answer->ep_attr->mem_tag_format, 0U);
}

TEST_F(OfferTest, MatchingIsOfReceives) {
  for (const uint64_t caps :
       {FI_MULTI_RECV, FI_DIRECTED_RECV, FI_MSG | FI_SEND | FI_MULTI_RECV,
        FI_TAGGED | FI_SEND | FI_DIRECTED_RECV}) {
    hints->caps = caps;
    const auto refusal = Refused(kTags);
    ASSERT_TRUE(refusal.has_value()) << caps;
    EXPECT_EQ(refusal->attribute, "caps");
  }
}

TEST_F(OfferTest, TheAnswerToNoHintsIsAcceptedWithDirectedReceives) {
  // As MPICH does.
  InfoPointer answer = Answer(kTags | kWriter);
  constexpr uint64_t kPicked = FI_TAGGED | FI_MSG | FI_MULTI_RECV;
  EXPECT_EQ(answer->caps & kPicked, kPicked);
  hints->caps = answer->caps | FI_DIRECTED_RECV;
  EXPECT_EQ(Answer(kTags | kWriter)->caps, hints->caps);
}

TEST_F(OfferTest, HintsOfOpenMpiAreMet) {
  hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->av_type = FI_AV_MAP;
  hints->domain_attr->cq_data_size = 4;
  const InfoPointer answer = Answer(kTags);
  EXPECT_EQ(answer->caps, hints->caps | FI_SEND | FI_RECV);
  EXPECT_EQ(answer->rx_attr->caps, FI_TAGGED | FI_RECV | FI_DIRECTED_RECV);
  EXPECT_EQ(answer->mode, 0U);
  EXPECT_EQ(answer->domain_attr->mr_mode, 0);
  EXPECT_EQ(answer->domain_attr->threading, FI_THREAD_DOMAIN);
  EXPECT_GE(answer->domain_attr->cq_data_size, 4U);
}

TEST_F(OfferTest, CompletionOrderIsStrictWhereNoMessageWaitsForAnother) {
  constexpr uint64_t kDevice = kTags | kWriter | contract::kCapabilityFence;
  constexpr uint64_t kWrite = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
  const auto refused = [&](uint64_t caps) {
    hints->caps = caps;
    const auto refusal = Refused(kDevice);
    return refusal.has_value() ? refusal->attribute : "";
  };
  hints->tx_attr->comp_order = FI_ORDER_STRICT;
  EXPECT_EQ(refused(FI_TAGGED), "tx_attr->comp_order");
  EXPECT_EQ(refused(FI_MSG | FI_MULTI_RECV | kWrite), "");
  EXPECT_EQ(Answer(kDevice)->tx_attr->comp_order, uint64_t{FI_ORDER_STRICT});
  EXPECT_EQ(Answer(kDevice)->rx_attr->comp_order, uint64_t{FI_ORDER_NONE});
  hints->tx_attr->comp_order = FI_ORDER_NONE;
  hints->rx_attr->comp_order = FI_ORDER_STRICT;
  for (const uint64_t matches : {FI_TAGGED, FI_MULTI_RECV, FI_DIRECTED_RECV}) {
    EXPECT_EQ(refused(FI_MSG | matches), "rx_attr->comp_order");
  }
  EXPECT_EQ(refused(FI_MSG | kWrite), "");
  EXPECT_EQ(Answer(kDevice)->rx_attr->comp_order, uint64_t{FI_ORDER_STRICT});
}

TEST_F(OfferTest, WriteAfterReadHasAnySize) {
  hints->tx_attr->msg_order = FI_ORDER_WAR | FI_ORDER_RMA_WAR | FI_ORDER_SAR;
  hints->ep_attr->max_order_war_size = 4096;
  const InfoPointer answer = Answer(kWriter | contract::kCapabilityRead |
                                    contract::kCapabilityWriteAfterRead);
  EXPECT_EQ(answer->tx_attr->msg_order, hints->tx_attr->msg_order);
  EXPECT_EQ(answer->ep_attr->max_order_war_size, SIZE_MAX);
}

}  // namespace
}  // namespace heddle::core
