// SPDX-License-Identifier: Apache-2.0
// Aliases of endpoints: fi_ep_alias.
#include "tests/host/ofi/ip_name.h"
#include "tests/host/ofi/rdm_fixture.h"

namespace heddle::test {
namespace {

class AliasTest : public PairTest {
 protected:
  fid_ep* Alias(fid_ep* ep, uint64_t flags) {
    fid_ep* alias = nullptr;
    EXPECT_EQ(fi_ep_alias(ep, &alias, flags), 0);
    return alias;
  }

  // Sends one byte through `ep`; b has a buffer for it.
  void Send(fid_ep* ep) {
    ASSERT_EQ(fi_recv(b->ep, &received_, 1, nullptr, FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(fi_send(ep, &sent_, 1, nullptr, to_b, &sent_), 0);
    ASSERT_TRUE(Take(b->rx_cq).has_value());
  }

  uint8_t sent_ = 7;
  uint8_t received_ = 0;
};

TEST_F(AliasTest, HasItsOwnDefaultFlagsAndTheSameQueues) {
  ASSERT_NO_FATAL_FAILURE(Open(
      {.rx_op_flags = FI_COMPLETION, .bind_flags = FI_SELECTIVE_COMPLETION}));
  fid_ep* alias = Alias(a->ep, FI_TRANSMIT | FI_COMPLETION);
  ASSERT_NE(alias, nullptr);
  EXPECT_EQ(alias->fid.fclass, static_cast<size_t>(FI_CLASS_EP));
  EXPECT_EQ(alias->fid.context, a->ep->fid.context);
  uint64_t flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&alias->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, uint64_t{FI_COMPLETION});
  flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&a->ep->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, 0U);

  // Only what goes through the alias is reported, in the queue of the endpoint.
  ASSERT_NO_FATAL_FAILURE(Send(a->ep));
  ASSERT_NO_FATAL_FAILURE(Send(alias));
  const auto first = Take(a->tx_cq);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->entry.op_context, &sent_);
  EXPECT_TRUE(StaysEmpty(a->tx_cq));

  sockaddr_in name = {};
  size_t length = sizeof(name);
  EXPECT_EQ(fi_getname(&alias->fid, &name, &length), 0);
  EXPECT_EQ(name.sin_port, IpName(*a).sin_port);
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

TEST_F(AliasTest, InheritsTheFlagsOfTheOtherDirection) {
  ASSERT_NO_FATAL_FAILURE(Open({.tx_op_flags = FI_COMPLETION,
                                .rx_op_flags = FI_COMPLETION,
                                .bind_flags = FI_SELECTIVE_COMPLETION}));
  fid_ep* alias = Alias(a->ep, FI_RECV);
  ASSERT_NE(alias, nullptr);
  uint64_t flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&alias->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, uint64_t{FI_COMPLETION});
  flags = FI_RECV;
  EXPECT_EQ(fi_control(&alias->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, 0U);
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

TEST_F(AliasTest, ReceivesThroughTheQueueOfTheEndpoint) {
  ASSERT_NO_FATAL_FAILURE(Open());
  fid_ep* alias = Alias(b->ep, FI_RECV);
  ASSERT_NE(alias, nullptr);
  int context = 0;
  ASSERT_EQ(fi_recv(alias, &received_, 1, nullptr, FI_ADDR_UNSPEC, &context),
            0);
  ASSERT_EQ(fi_inject(a->ep, &sent_, 1, to_b), 0);
  const auto got = Take(b->rx_cq);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->entry.op_context, &context);
  EXPECT_EQ(received_, sent_);
  // A buffer given to one is withdrawn by the other.
  ASSERT_EQ(fi_recv(alias, &received_, 1, nullptr, FI_ADDR_UNSPEC, &context),
            0);
  ASSERT_EQ(fi_cancel(&b->ep->fid, &context), 0);
  const auto cancelled = Take(b->rx_cq);
  ASSERT_TRUE(cancelled.has_value());
  EXPECT_TRUE(cancelled->error);
  EXPECT_EQ(cancelled->failure.err, FI_ECANCELED);
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

TEST_F(AliasTest, OfADisabledEndpointWorksOnceThatIsEnabled) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Node late({.enable = false});
  ASSERT_TRUE(late.ok());
  fid_ep* alias = Alias(late.ep, FI_TRANSMIT | FI_INJECT);
  ASSERT_NE(alias, nullptr);
  const fi_addr_t self = 0;
  EXPECT_EQ(fi_send(alias, &sent_, 1, nullptr, self, nullptr), -FI_EOPBADSTATE);
  ASSERT_EQ(fi_enable(alias), 0);
  EXPECT_EQ(fi_enable(late.ep), -FI_EOPBADSTATE);
  EXPECT_EQ(late.Insert(late), self);
  ASSERT_EQ(fi_recv(late.ep, &received_, 1, nullptr, FI_ADDR_UNSPEC, nullptr),
            0);
  ASSERT_EQ(fi_send(alias, &sent_, 1, nullptr, self, nullptr), 0);
  ASSERT_TRUE(Take(late.rx_cq).has_value());
  ASSERT_TRUE(Take(late.tx_cq).has_value());
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

TEST_F(AliasTest, KeepsTheEndpointOpen) {
  ASSERT_NO_FATAL_FAILURE(Open());
  fid_ep* first = Alias(a->ep, FI_TRANSMIT);
  ASSERT_NE(first, nullptr);
  fid_ep* second = Alias(first, FI_TRANSMIT);  // Of an alias.
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(fi_close(&a->ep->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_close(&a->ep->fid), -FI_EBUSY);
  ASSERT_NO_FATAL_FAILURE(Send(second));
  ASSERT_TRUE(Take(a->tx_cq).has_value());
  EXPECT_EQ(fi_close(&second->fid), 0);
  // TearDown closes the endpoint.
}

TEST_F(AliasTest, NeedsOneDirectionAndFlagsThatAreOffered) {
  Node node;
  ASSERT_TRUE(node.ok());
  fid_ep* alias = nullptr;
  for (const uint64_t flags :
       {uint64_t{0}, uint64_t{FI_COMPLETION},
        uint64_t{FI_TRANSMIT | FI_RECV | FI_COMPLETION}}) {
    EXPECT_EQ(fi_ep_alias(node.ep, &alias, flags), -FI_EINVAL);
  }
  EXPECT_EQ(fi_ep_alias(node.ep, &alias, FI_TRANSMIT | FI_COMMIT_COMPLETE),
            -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_alias(node.ep, &alias, FI_RECV | FI_INJECT), -FI_EBADFLAGS);
  EXPECT_EQ(alias, nullptr);
}

}  // namespace
}  // namespace heddle::test
