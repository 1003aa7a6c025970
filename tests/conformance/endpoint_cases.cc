// SPDX-License-Identifier: Apache-2.0
// Life of an endpoint, what it is bound to, and its queues.
#include <rdma/fi_tagged.h>

#include <array>
#include <cstring>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class EndpointTest : public NodesTest {
 protected:
  // One node and a second endpoint in its domain that is bound to nothing.
  bool OpenBare(const NodeOptions& options = {}) {
    if (!Open(options, 1)) {
      return false;
    }
    bare_ = a().OpenBareEndpoint();
    return bare_ != nullptr;
  }

  void TearDown() override {
    if (bare_ != nullptr) {
      EXPECT_EQ(fi_close(&bare_->fid), 0);
    }
    NodesTest::TearDown();
  }

  // A send with flags by fi_sendmsg.
  ssize_t SendWithFlags(Buffer& buffer, size_t bytes, uint64_t flags,
                        void* context) {
    iovec part = {.iov_base = buffer.data(), .iov_len = bytes};
    void* desc = buffer.desc();
    fi_msg message = {};
    message.msg_iov = &part;
    message.desc = &desc;
    message.iov_count = 1;
    message.addr = to_b();
    message.context = context;
    return Post([&] { return fi_sendmsg(a().ep, &message, flags); });
  }

  // Receives what SendWithFlags sends.
  void ExpectReceived(const std::function<ssize_t()>& send) {
    Buffer received(b(), 64);
    fi_context2 context = {};
    ASSERT_EQ(Receive(received, &context), 0);
    ASSERT_EQ(send(), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &context));
  }

  fid_ep* bare_ = nullptr;
};

bool IsOneOf(ssize_t result, std::initializer_list<int> errors) {
  for (const int error : errors) {
    if (result == -error) {
      return true;
    }
  }
  return false;
}

CONFORMANCE_TEST(EndpointTest, DisabledEndpointTransfersNothing, 146) {
  NodeOptions options;
  options.enable = false;
  if (!Open(options, 1)) {
    return;
  }
  uint64_t value = 0;
  fi_context2 context = {};
  EXPECT_EQ(fi_send(a().ep, &value, 8, nullptr, 0, &context), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_recv(a().ep, &value, 8, nullptr, FI_ADDR_UNSPEC, &context),
            -FI_EOPBADSTATE);
  EXPECT_EQ(fi_inject(a().ep, &value, 8, 0), -FI_EOPBADSTATE);
}

CONFORMANCE_TEST(EndpointTest, EnabledEndpointCarriesMessages, 150, 154) {
  if (!Open()) {
    return;
  }
  for (const size_t bytes : {1U, 64U, 4096U, 1'000'000U}) {
    ASSERT_NO_FATAL_FAILURE(Exchange(bytes)) << bytes;
  }
}

CONFORMANCE_TEST(EndpointTest, EnableNeedsAQueueOfEachDirection, 151) {
  if (!OpenBare()) {
    return;
  }
  ASSERT_EQ(fi_ep_bind(bare_, &a().av->fid, 0), 0);
  EXPECT_EQ(fi_enable(bare_), -FI_ENOCQ) << "without a queue";
  ASSERT_EQ(fi_ep_bind(bare_, &a().tx.cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_enable(bare_), -FI_ENOCQ) << "without a queue of receives";
  ASSERT_EQ(fi_ep_bind(bare_, &a().rx.cq->fid, FI_RECV), 0);
  EXPECT_EQ(fi_enable(bare_), 0);
}

CONFORMANCE_TEST(EndpointTest, EnableNeedsAVector, 152) {
  if (!OpenBare()) {
    return;
  }
  ASSERT_EQ(fi_ep_bind(bare_, &a().tx.cq->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_ep_bind(bare_, &a().rx.cq->fid, FI_RECV), 0);
  const int result = fi_enable(bare_);
  EXPECT_TRUE(IsOneOf(result, {FI_ENOAV, FI_EDOMAIN, FI_ENOCQ, FI_EOPBADSTATE}))
      << result;
}

CONFORMANCE_TEST(EndpointTest, SelectiveCompletionNeedsTheQueueToo, 155) {
  if (!OpenBare()) {
    return;
  }
  ASSERT_EQ(fi_ep_bind(bare_, &a().av->fid, 0), 0);
  ASSERT_EQ(
      fi_ep_bind(bare_, &a().rx.cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION), 0);
  EXPECT_LT(fi_enable(bare_), 0);
}

CONFORMANCE_TEST(EndpointTest, NothingIsBoundOnceEnabled, 156) {
  if (!Open({}, 1)) {
    return;
  }
  fi_cntr_attr attr = {};
  fid_cntr* counter = nullptr;
  const int opened = fi_cntr_open(a().domain, &attr, &counter, nullptr);
  if (opened == -FI_ENOSYS) {
    return NotOffered("counters, the only object that is not bound by then");
  }
  ASSERT_EQ(opened, 0);
  EXPECT_EQ(fi_ep_bind(a().ep, &counter->fid, FI_SEND), -FI_EOPBADSTATE);
  // Both of its queues and its vector are bound already.
  EXPECT_LT(fi_ep_bind(a().ep, &a().tx.cq->fid, FI_TRANSMIT), 0);
  EXPECT_LT(fi_ep_bind(a().ep, &a().av->fid, 0), 0);
  // If it was bound, the endpoint goes first.
  if (fi_close(&counter->fid) != 0) {
    EXPECT_EQ(fi_close(&a().ep->fid), 0);
    a().ep = nullptr;
    EXPECT_EQ(fi_close(&counter->fid), 0);
  }
}

CONFORMANCE_TEST(EndpointTest, HasOneVector, 157) {
  if (!OpenBare()) {
    return;
  }
  fi_av_attr attr = {};
  attr.type = FI_AV_TABLE;
  fid_av* second = nullptr;
  ASSERT_EQ(fi_av_open(a().domain, &attr, &second, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(bare_, &a().av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(bare_, &second->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&bare_->fid), 0);
  bare_ = nullptr;
  EXPECT_EQ(fi_close(&second->fid), 0);
}

CONFORMANCE_TEST(EndpointTest, ObjectOfAnotherDomainIsRefused, 158) {
  if (!OpenBare()) {
    return;
  }
  const auto other = OpenAlone({});
  ASSERT_NE(other, nullptr);
  for (const auto& [object, flags] :
       {std::pair(&other->tx.cq->fid, uint64_t{FI_TRANSMIT}),
        std::pair(&other->av->fid, uint64_t{0})}) {
    const int result = fi_ep_bind(bare_, object, flags);
    EXPECT_TRUE(IsOneOf(result, {FI_EDOMAIN, FI_EINVAL})) << result;
  }
  // Where it was bound, the endpoint goes before the object.
  EXPECT_EQ(fi_close(&bare_->fid), 0);
  bare_ = nullptr;
}

CONFORMANCE_TEST(EndpointTest, EachDirectionHasOneQueue, 159) {
  if (!OpenBare()) {
    return;
  }
  ASSERT_EQ(fi_ep_bind(bare_, &a().tx.cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_ep_bind(bare_, &a().rx.cq->fid, FI_TRANSMIT), -FI_EINVAL);
}

CONFORMANCE_TEST(EndpointTest, CompletionsGoToTheirQueue, 160, 161) {
  if (!Open()) {
    return;
  }
  Buffer sent(a(), 64);
  Buffer received(b(), 64);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(Send(sent, 64, &contexts[1]), 0);
  const auto receive = Take(b().rx);
  const auto send = Take(a().tx);
  ASSERT_TRUE(receive.has_value());
  ASSERT_TRUE(send.has_value());
  EXPECT_NE(receive->entry.flags & FI_RECV, 0U);
  EXPECT_EQ(receive->entry.op_context, &contexts[0]);
  EXPECT_NE(send->entry.flags & FI_SEND, 0U);
  EXPECT_EQ(send->entry.op_context, &contexts[1]);
  EXPECT_TRUE(StaysEmpty(a().rx));
  EXPECT_TRUE(StaysEmpty(b().tx));
  EXPECT_TRUE(a().tx.taken.empty());
  EXPECT_TRUE(b().rx.taken.empty());
}

CONFORMANCE_TEST(EndpointTest, SelectiveCompletionNeedsADirection, 163) {
  if (!OpenBare()) {
    return;
  }
  const int result =
      fi_ep_bind(bare_, &a().tx.cq->fid, FI_SELECTIVE_COMPLETION);
  EXPECT_TRUE(IsOneOf(result, {FI_EBADFLAGS, FI_EINVAL})) << result;
}

CONFORMANCE_TEST(EndpointTest, SelectiveQueueHasWhatIsRequested, 164, 167) {
  NodeOptions options;
  options.tx_bind_flags = FI_SELECTIVE_COMPLETION;
  if (!Open(options)) {
    return;
  }
  Buffer sent(a(), 64);
  ASSERT_NO_FATAL_FAILURE(
      ExpectReceived([&] { return Send(sent, 64, nullptr); }));
  ASSERT_NO_FATAL_FAILURE(
      ExpectReceived([&] { return SendWithFlags(sent, 64, 0, nullptr); }));
  EXPECT_TRUE(StaysEmpty(a().tx));
  fi_context2 context = {};
  ASSERT_NO_FATAL_FAILURE(ExpectReceived(
      [&] { return SendWithFlags(sent, 64, FI_COMPLETION, &context); }));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &context));
  EXPECT_TRUE(StaysEmpty(a().tx));
}

CONFORMANCE_TEST(EndpointTest, DefaultFlagsRequestCompletions, 164, 217) {
  NodeOptions options;
  options.tx_bind_flags = FI_SELECTIVE_COMPLETION;
  options.tx_op_flags = FI_COMPLETION;
  if (!Open(options)) {
    return;
  }
  Buffer sent(a(), 64);
  fi_context2 contexts[2] = {};
  ASSERT_NO_FATAL_FAILURE(
      ExpectReceived([&] { return Send(sent, 64, &contexts[0]); }));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[0]));
  // Flags of a call replace the default ones.
  ASSERT_NO_FATAL_FAILURE(
      ExpectReceived([&] { return SendWithFlags(sent, 64, 0, &contexts[1]); }));
  EXPECT_TRUE(StaysEmpty(a().tx));
}

CONFORMANCE_TEST(EndpointTest, SelectiveFailureHasAnEntry, 165) {
  NodeOptions options;
  options.rx_bind_flags = FI_SELECTIVE_COMPLETION;
  if (!Open(options)) {
    return;
  }
  Buffer received(b(), 8);
  fi_context2 context = {};
  ASSERT_EQ(ReceiveWithFlags(received, 0, &context), 0);
  ASSERT_EQ(fi_cancel(&b().ep->fid, &context), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  EXPECT_TRUE(completion->error);
}

CONFORMANCE_TEST(EndpointTest, EveryOperationButInjectHasAnEntry, 166, 263) {
  if (!Open()) {
    return;
  }
  Buffer sent(a(), 8);
  fi_context2 contexts[3] = {};
  ASSERT_NO_FATAL_FAILURE(
      ExpectReceived([&] { return Send(sent, 8, &contexts[0]); }));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[0]));
  ASSERT_NO_FATAL_FAILURE(
      ExpectReceived([&] { return SendWithFlags(sent, 8, 0, &contexts[1]); }));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
  ASSERT_NO_FATAL_FAILURE(ExpectReceived(
      [&] { return SendWithFlags(sent, 8, FI_COMPLETION, &contexts[2]); }));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[2]));
  ASSERT_GE(a().info->tx_attr->inject_size, 8U);
  ASSERT_NO_FATAL_FAILURE(ExpectReceived([&] {
    return Post([&] { return fi_inject(a().ep, sent.data(), 8, to_b()); });
  }));
  EXPECT_TRUE(StaysEmpty(a().tx));
}

CONFORMANCE_TEST(EndpointTest, CloseDiscardsWhatIsOutstanding, 170) {
  if (!OpenBare()) {
    return;
  }
  ASSERT_EQ(fi_ep_bind(bare_, &a().av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(bare_, &a().tx.cq->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_ep_bind(bare_, &a().rx.cq->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(bare_), 0);
  std::array<uint8_t, 256> name = {};
  size_t bytes = name.size();
  ASSERT_EQ(fi_getname(&bare_->fid, name.data(), &bytes), 0);
  fi_addr_t to_bare = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(a().av, name.data(), 1, &to_bare, 0, nullptr), 1);
  auto buffer = std::make_unique<Buffer>(a(), 4096);
  std::array<fi_context2, 4> contexts = {};
  for (fi_context2& context : contexts) {
    ASSERT_EQ(fi_recv(bare_, buffer->data(), buffer->size(), buffer->desc(),
                      FI_ADDR_UNSPEC, &context),
              0);
  }
  ASSERT_EQ(fi_close(&bare_->fid), 0);
  bare_ = nullptr;
  EXPECT_EQ(buffer->bytes(), std::vector<uint8_t>(4096));
  buffer.reset();
  // The queues serve the other endpoint; entries of the closed one may come.
  a().tx.Poll();
  a().rx.Poll();
  TearDown();
  ASSERT_TRUE(Open());
  Exchange(100);
}

CONFORMANCE_TEST(EndpointTest, BoundObjectStaysOpen, 171) {
  if (!Open()) {
    return;
  }
  EXPECT_EQ(fi_close(&b().tx.cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&b().rx.cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&b().av->fid), -FI_EBUSY);
  Exchange(100);
}

CONFORMANCE_TEST(EndpointTest, InjectedBufferIsTheCallersAtReturn, 257) {
  if (!Open()) {
    return;
  }
  const size_t limit = a().info->tx_attr->inject_size;
  if (limit == 0) {
    return NotOffered("fi_inject");
  }
  Buffer sent(a(), limit);
  Buffer received(b(), limit);
  fi_context2 contexts[2] = {};
  for (const bool by_flag : {true, false}) {
    const std::vector<uint8_t> pattern = Pattern(limit, by_flag ? 1 : 2);
    sent.Fill(by_flag ? 1 : 2);
    const auto post = [&] {
      return by_flag ? SendWithFlags(sent, limit, FI_INJECT, &contexts[1])
                     : Post([&] {
                         return fi_inject(a().ep, sent.data(), limit, to_b());
                       });
    };
    ASSERT_EQ(post(), 0);
    std::memset(sent.data(), 0xee, limit);
    ASSERT_EQ(Receive(received, &contexts[0]), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
    EXPECT_EQ(received.bytes(), pattern) << "by flag: " << by_flag;
    if (by_flag) {
      ASSERT_TRUE(Take(a().tx).has_value());
    }
  }
}

CONFORMANCE_TEST(EndpointTest, MoreThanInjectSizeIsRefused, 218) {
  if (!Open()) {
    return;
  }
  const size_t limit = a().info->tx_attr->inject_size;
  if (limit == 0) {
    return NotOffered("fi_inject");
  }
  ASSERT_LT(limit, 1U << 24U);
  ASSERT_NO_FATAL_FAILURE(Exchange(8));  // The peers find each other.
  Buffer longer(a(), limit + 1);
  fi_context2 context = {};
  ssize_t result = fi_inject(a().ep, longer.data(), longer.size(), to_b());
  EXPECT_TRUE(IsOneOf(result, {FI_EMSGSIZE, FI_EINVAL}))
      << "fi_inject: " << result;
  result = SendWithFlags(longer, longer.size(), FI_INJECT, &context);
  EXPECT_TRUE(IsOneOf(result, {FI_EMSGSIZE, FI_EINVAL}))
      << "FI_INJECT: " << result;
}

CONFORMANCE_TEST(EndpointTest, CompletionMeansThatTheBufferIsFree, 258, 262) {
  if (!Open()) {
    return;
  }
  // Overwritten before the receive is posted, if the send completes by then.
  for (const uint64_t level : {uint64_t{0}, uint64_t{FI_INJECT_COMPLETE}}) {
    for (const size_t bytes : {8U, 2000U, 20'000U, 500'000U}) {
      Buffer sent(a(), bytes);
      Buffer received(b(), bytes);
      const std::vector<uint8_t> pattern = Pattern(bytes);
      sent.Fill();
      fi_context2 contexts[2] = {};
      ASSERT_EQ(SendWithFlags(sent, bytes, level, &contexts[0]), 0);
      bool overwritten = false;
      const auto overwrite = [&] {
        if (!overwritten && !a().tx.taken.empty()) {
          std::memset(sent.data(), 0xee, bytes);
          overwritten = true;
        }
      };
      (void)StaysEmpty(a().tx);
      overwrite();
      ASSERT_EQ(Receive(received, &contexts[1]), 0);
      EXPECT_TRUE(WaitUntil([&] {
        overwrite();
        return overwritten && !b().rx.taken.empty();
      })) << bytes;
      ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[0]));
      ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[1]));
      EXPECT_EQ(received.bytes(), pattern) << bytes;
    }
  }
}

CONFORMANCE_TEST(EndpointTest, DeliveredMessageIsInTheMemoryOfItsTarget, 260) {
  NodeOptions options;
  options.tx_op_flags = FI_DELIVERY_COMPLETE;
  {
    const InfoPointer hints = MakeHints(FI_MSG);
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    if (GetInfo(hints.get()).result == -FI_ENODATA &&
        GetInfo(MakeHints(FI_MSG).get()).result == 0) {
      return Refused("FI_DELIVERY_COMPLETE among the hints", -FI_ENODATA);
    }
  }
  if (!Open(options)) {
    return;
  }
  for (const size_t bytes : {8U, 3000U, 50'000U, 500'000U}) {
    Buffer sent(a(), bytes);
    Buffer received(b(), bytes);
    sent.Fill();
    fi_context2 contexts[2] = {};
    ASSERT_EQ(Receive(received, &contexts[0]), 0);
    ASSERT_EQ(Send(sent, bytes, &contexts[1]), 0);
    // The target is driven, but its completion does not matter.
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
    EXPECT_EQ(received.bytes(), sent.bytes()) << bytes;
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
  }
}

}  // namespace
}  // namespace heddle::conformance
