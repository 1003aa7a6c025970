// SPDX-License-Identifier: Apache-2.0
// The offers of fi_getinfo of the device `soft`, remote memory access in
// particular.
#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdlib>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

// Settings are read once, at the first call into the library.
const bool environment_is_set = [] {
  setenv("FI_HEDDLE_DEVICE", "soft", 1);
  setenv("FI_HEDDLE_IP", "10.1.2.3", 1);
  return true;
}();

constexpr uint64_t kRmaModifiers =
    FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

struct RmaOffer : ::testing::Test {
  Answer Get() { return Ask(hints.get()); }
  Info hints = MakeHints();
};

TEST_F(RmaOffer, WithoutHintsHasAllThatCostsNothing) {
  const Answer answer = Ask(nullptr);
  ASSERT_EQ(answer.result, 0);
  constexpr uint64_t kBoth = FI_MSG | FI_TAGGED | FI_RMA;
  constexpr uint64_t kMatching = FI_MULTI_RECV | FI_DIRECTED_RECV;
  EXPECT_EQ(answer.info->caps, kBoth | FI_SEND | FI_RECV | kMatching |
                                   kRmaModifiers | FI_SOURCE | FI_FENCE |
                                   FI_LOCAL_COMM | FI_REMOTE_COMM);
  EXPECT_EQ(answer.info->tx_attr->caps,
            kBoth | FI_SEND | FI_READ | FI_WRITE | FI_FENCE);
  EXPECT_EQ(answer.info->rx_attr->caps, kBoth | FI_RECV | kMatching |
                                            FI_SOURCE | FI_REMOTE_READ |
                                            FI_REMOTE_WRITE);
  EXPECT_EQ(answer.info->tx_attr->rma_iov_limit, 4U);
  EXPECT_EQ(answer.info->domain_attr->mr_mode, 0);
  EXPECT_EQ(answer.info->domain_attr->mr_key_size, 6U);
  EXPECT_NE(answer.info->domain_attr->cntr_cnt, 0U);
  EXPECT_STREQ(answer.info->domain_attr->name, "soft0");
  const Answer again = Ask(answer.info.get());
  ASSERT_EQ(again.result, 0);
  EXPECT_EQ(again.info->caps, answer.info->caps);
}

TEST_F(RmaOffer, IsNotGivenToThoseWhoDoNotAsk) {
  hints->caps = FI_MSG;
  const Answer answer = Get();
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->caps & (FI_RMA | kRmaModifiers), 0U);
  EXPECT_EQ(answer.info->tx_attr->rma_iov_limit, 0U);
  EXPECT_EQ(answer.info->domain_attr->mr_key_size, 8U);
  EXPECT_EQ(answer.info->domain_attr->mr_iov_limit, 4U);
}

TEST_F(RmaOffer, WithoutModifiersMeansAllOfThem) {
  hints->caps = FI_RMA;
  const Answer answer = Get();
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->caps,
            FI_RMA | kRmaModifiers | FI_LOCAL_COMM | FI_REMOTE_COMM);
}

TEST_F(RmaOffer, ModifiersRestrictToTheirDirection) {
  hints->caps = FI_RMA | FI_WRITE;
  const Answer answer = Get();
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->caps,
            FI_RMA | FI_WRITE | FI_LOCAL_COMM | FI_REMOTE_COMM);
  EXPECT_EQ(answer.info->tx_attr->caps, FI_RMA | FI_WRITE);
  EXPECT_EQ(answer.info->rx_attr->caps, 0U);
}

TEST_F(RmaOffer, CapabilitiesThatNeedAnotherAreRefusedAlone) {
  constexpr uint64_t kBroken[] = {
      FI_MSG | FI_READ, FI_MSG | FI_REMOTE_WRITE, FI_MSG | FI_RMA_EVENT,
      FI_RMA | FI_WRITE | FI_RMA_EVENT, FI_RMA | FI_SEND};
  for (const uint64_t caps : kBroken) {
    hints->caps = caps;
    EXPECT_EQ(Get().result, -FI_ENODATA) << caps;
  }
}

TEST_F(RmaOffer, ModeKeepsWhatTheApplicationOffersForRemoteAccess) {
  constexpr int kOffered = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                           FI_MR_VIRT_ADDR | FI_MR_ENDPOINT | FI_MR_RMA_EVENT;
  hints->domain_attr->mr_mode = kOffered;
  hints->caps = FI_MSG;
  EXPECT_EQ(Get().info->domain_attr->mr_mode, 0);
  hints->caps = FI_RMA;
  Answer answer = Get();
  EXPECT_EQ(answer.info->domain_attr->mr_mode,
            FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT);
  EXPECT_EQ(answer.info->domain_attr->mr_key_size, 8U);
  hints->caps = FI_RMA | FI_RMA_EVENT;
  answer = Get();
  EXPECT_EQ(
      answer.info->domain_attr->mr_mode,
      FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT | FI_MR_RMA_EVENT);
}

TEST_F(RmaOffer, OrderIsTheOneAskedFor) {
  hints->caps = FI_RMA;
  EXPECT_EQ(Get().info->tx_attr->msg_order, FI_ORDER_SAS);
  EXPECT_EQ(Get().info->ep_attr->max_order_waw_size, 0U);
  hints->tx_attr->msg_order = FI_ORDER_RMA_WAW | FI_ORDER_SAW;
  hints->ep_attr->max_order_waw_size = 1U << 20U;
  const Answer answer = Get();
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->tx_attr->msg_order, FI_ORDER_RMA_WAW | FI_ORDER_SAW);
  EXPECT_GE(answer.info->ep_attr->max_order_waw_size, 1U << 20U);
  hints->tx_attr->msg_order = FI_ORDER_WAW | FI_ORDER_WAR;
  ASSERT_EQ(Get().result, 0);
  EXPECT_EQ(Get().info->tx_attr->msg_order, FI_ORDER_WAW | FI_ORDER_WAR);
}

TEST_F(RmaOffer, LimitsAreKept) {
  hints->caps = FI_RMA;
  hints->tx_attr->rma_iov_limit = 5;
  EXPECT_EQ(Get().result, -FI_ENODATA);
  hints->tx_attr->rma_iov_limit = 4;
  EXPECT_EQ(Get().result, 0);
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  EXPECT_EQ(Get().info->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
  hints->tx_attr->op_flags = FI_COMMIT_COMPLETE;
  EXPECT_EQ(Get().result, -FI_ENODATA);
}

}  // namespace
}  // namespace heddle::test
