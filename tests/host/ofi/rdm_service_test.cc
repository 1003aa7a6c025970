// SPDX-License-Identifier: Apache-2.0
// What endpoints ask of the network: authorization keys and traffic classes.
#include <dlfcn.h>

#include <cstdlib>

#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class KeyTest : public PairTest {
 protected:
  // Sends from a to b, who has a buffer; the outcome at a.
  std::optional<Outcome> Send() {
    EXPECT_EQ(fi_recv(b->ep, &received_, sizeof(received_), nullptr,
                      FI_ADDR_UNSPEC, nullptr),
              0);
    EXPECT_EQ(fi_send(a->ep, &sent_, sizeof(sent_), nullptr, to_b, nullptr), 0);
    return Take(a->tx_cq);
  }

  uint32_t sent_ = 99;
  uint32_t received_ = 0;
};

TEST_F(KeyTest, DifferentKeysDoNot) {
  ASSERT_NO_FATAL_FAILURE(Open({.auth_key = 7}, {.auth_key = 8}));
  const auto outcome = Send();
  ASSERT_TRUE(outcome.has_value());
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->failure.err, FI_EREMOTEIO);
  EXPECT_TRUE(StaysEmpty(b->rx_cq));
  EXPECT_EQ(received_, 0U);
}

TEST_F(KeyTest, KeysThatAreNoneAreRefused) {
  EXPECT_EQ(Node({.auth_key = 0x1000000}).result, -FI_EINVAL);
  EXPECT_EQ(Node({.domain_auth_key = 0x1000000}).result, -FI_EINVAL);
  Node node;
  ASSERT_TRUE(node.ok());
  uint8_t bytes[8] = {1};
  const InfoPointer info(fi_dupinfo(node.info.get()));
  fid_ep* ep = nullptr;
  info->ep_attr->auth_key = bytes;
  info->ep_attr->auth_key_size = sizeof(bytes);
  EXPECT_EQ(fi_endpoint(node.domain, info.get(), &ep, nullptr), -FI_EINVAL);
  info->ep_attr->auth_key = nullptr;
  info->ep_attr->auth_key_size = sizeof(uint32_t);
  EXPECT_EQ(fi_endpoint(node.domain, info.get(), &ep, nullptr), -FI_EINVAL);
  info->ep_attr->auth_key_size = 0;
}

// DSCP that the device was told for transmit context 0; empty where the test
// cannot look into the device.
std::optional<uint8_t> DscpOfDevice() {
  auto* const look = reinterpret_cast<uint8_t (*)(uint32_t)>([] {
    const char* path = std::getenv("FI_HEDDLE_SIM_PATH");
    void* simulator =
        path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return simulator == nullptr ? nullptr
                                : dlsym(simulator, "heddle_loopback_dscp");
  }());
  return look == nullptr ? std::nullopt : std::optional(look(0));
}

TEST(TrafficClass, BecomesTheDscpOfWhatIsSent) {
  struct Case {
    uint32_t domain;
    uint32_t endpoint;
    uint8_t dscp;
  };
  // Source: RFC 4594 section 2.3, RFC 8622.
  const Case cases[] = {
      {FI_TC_UNSPEC, FI_TC_UNSPEC, 0},
      {FI_TC_UNSPEC, FI_TC_BEST_EFFORT, 0},
      {FI_TC_UNSPEC, FI_TC_LOW_LATENCY, 46},
      {FI_TC_UNSPEC, FI_TC_DEDICATED_ACCESS, 34},
      {FI_TC_UNSPEC, FI_TC_BULK_DATA, 10},
      {FI_TC_UNSPEC, FI_TC_SCAVENGER, 1},
      {FI_TC_UNSPEC, FI_TC_NETWORK_CTRL, 48},
      {FI_TC_UNSPEC, fi_tc_dscp_set(63), 63},
      {FI_TC_BULK_DATA, FI_TC_UNSPEC, 10},
      {FI_TC_BULK_DATA, fi_tc_dscp_set(0), 0},
  };
  for (const Case& one : cases) {
    const Node node(
        {.traffic_class = one.endpoint, .domain_traffic_class = one.domain});
    ASSERT_TRUE(node.ok()) << fi_strerror(-node.result);
    const auto dscp = DscpOfDevice();
    if (!dscp.has_value()) {
      GTEST_SKIP() << "needs the loopback device";
    }
    EXPECT_EQ(*dscp, one.dscp) << one.domain << ' ' << one.endpoint;
  }
}

TEST(TrafficClass, UnknownClassesAreRefused) {
  for (const uint32_t wrong :
       {uint32_t{1}, uint32_t{FI_TC_DSCP | 64},
        uint32_t{FI_TC_NETWORK_CTRL + 1}, uint32_t{0x80000000}}) {
    EXPECT_EQ(Node({.traffic_class = wrong}).result, -FI_EINVAL) << wrong;
    EXPECT_EQ(Node({.domain_traffic_class = wrong}).result, -FI_EINVAL)
        << wrong;
  }
}

}  // namespace
}  // namespace heddle::test
