// SPDX-License-Identifier: Apache-2.0
// fi_cancel, aliases, options, names, traffic classes.
#include <cstdlib>
#include <cstring>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class CancelTest : public NodesTest {};
class OptionTest : public NodesTest {};
class NameTest : public NodesTest {
 protected:
  // Endpoints of `options` exchange messages, none with one of `others`.
  void ExpectStranger(const NodeOptions& options, const NodeOptions& others);
};

void NameTest::ExpectStranger(const NodeOptions& options,
                              const NodeOptions& others) {
  if (!Open(options)) {
    return;
  }
  const auto stranger = OpenAlone(others);
  ASSERT_NE(stranger, nullptr);
  ASSERT_NO_FATAL_FAILURE(Exchange(64));
  Buffer sent(a(), 64);
  Buffer received(*stranger, 64);
  sent.Fill();
  fi_context2 contexts[2] = {};
  const fi_addr_t address = a().Insert(*stranger);
  ASSERT_EQ(fi_recv(stranger->ep, received.data(), 64, received.desc(),
                    FI_ADDR_UNSPEC, &contexts[0]),
            0);
  ASSERT_EQ(Post([&] {
              stranger->rx.Poll();
              return fi_send(a().ep, sent.data(), 64, sent.desc(), address,
                             &contexts[1]);
            }),
            0);
  EXPECT_TRUE(StaysEmpty(stranger->rx, {stranger.get()}));
  EXPECT_EQ(received.bytes(), std::vector<uint8_t>(64));
  // Before its buffer.
  EXPECT_EQ(fi_close(&stranger->ep->fid), 0);
  stranger->ep = nullptr;
}

// Node a reports sends on request only.
class AliasTest : public NodesTest {
 protected:
  bool OpenSelective() {
    NodeOptions options;
    options.tx_bind_flags = FI_SELECTIVE_COMPLETION;
    return Open(options);
  }

  // Sends by that endpoint, which is node a's or an alias of it.
  void SendBy(fid_ep* ep, Buffer& sent, Buffer& received) {
    ASSERT_EQ(Receive(received, &receive_context_), 0);
    ASSERT_EQ(Post([&] {
                return fi_send(ep, sent.data(), 8, sent.desc(), to_b(),
                               &send_context_);
              }),
              0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &receive_context_));
  }

  fi_context2 send_context_ = {};
  fi_context2 receive_context_ = {};
};

CONFORMANCE_TEST(CancelTest, CanceledReceiveIsAnErrorEntry, 181, 182) {
  if (!Open()) {
    return;
  }
  Buffer canceled(b(), 64);
  Buffer received(b(), 64);
  Buffer sent(a(), 64);
  sent.Fill();
  fi_context2 contexts[3] = {};
  ASSERT_EQ(Receive(canceled, &contexts[0]), 0);
  ASSERT_EQ(Receive(received, &contexts[1]), 0);
  ASSERT_EQ(fi_cancel(&b().ep->fid, &contexts[0]), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  EXPECT_EQ(completion->failure.err, FI_ECANCELED);
  EXPECT_EQ(completion->failure.op_context, &contexts[0]);
  // The other receive takes the message.
  ASSERT_EQ(Send(sent, 64, &contexts[2]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[1]));
  EXPECT_EQ(received.bytes(), sent.bytes());
  EXPECT_EQ(canceled.bytes(), std::vector<uint8_t>(64));
}

CONFORMANCE_TEST(CancelTest, CompleteReceiveHasOneEntry, 183) {
  if (!Open()) {
    return;
  }
  Buffer received(b(), 64);
  Buffer sent(a(), 64);
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  ASSERT_EQ(Send(sent, 64, &contexts[1]), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectDone(b().rx, &contexts[0]));
  (void)fi_cancel(&b().ep->fid, &contexts[0]);
  EXPECT_TRUE(StaysEmpty(b().rx));
}

CONFORMANCE_TEST(CancelTest, OneOfTwoReceivesOfAContextIsCanceled, 184) {
  NodeOptions options;
  options.mode = 0;  // Contexts are any values.
  if (!Open(options)) {
    return;
  }
  Buffer buffers[2] = {{b(), 64}, {b(), 64}};
  Buffer sent(a(), 64);
  int context = 0;
  int send_context = 0;
  ASSERT_EQ(Receive(buffers[0], &context), 0);
  ASSERT_EQ(Receive(buffers[1], &context), 0);
  int other = 0;
  const ssize_t unknown = fi_cancel(&b().ep->fid, &other);
  EXPECT_TRUE(unknown == 0 || unknown == -FI_ENOENT) << unknown;
  EXPECT_TRUE(StaysEmpty(b().rx));
  ASSERT_EQ(fi_cancel(&b().ep->fid, &context), 0);
  const auto completion = Take(b().rx);
  ASSERT_TRUE(completion.has_value());
  ASSERT_TRUE(completion->error);
  EXPECT_TRUE(StaysEmpty(b().rx));
  ASSERT_EQ(Send(sent, 64, &send_context), 0);
  ExpectDone(b().rx, &context);
}

CONFORMANCE_TEST(OptionTest, UnknownOnesAreNoProtocolOptions, 192) {
  if (!Open({}, 1)) {
    return;
  }
  size_t value = 0;
  size_t bytes = sizeof(value);
  constexpr int kUnknown = 0x7ffffff0;
  fid* const ep = &a().ep->fid;
  EXPECT_EQ(fi_getopt(ep, kUnknown, FI_OPT_MIN_MULTI_RECV, &value, &bytes),
            -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_getopt(ep, FI_OPT_ENDPOINT, kUnknown, &value, &bytes),
            -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_setopt(ep, kUnknown, FI_OPT_MIN_MULTI_RECV, &value, bytes),
            -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, kUnknown, &value, bytes),
            -FI_ENOPROTOOPT);
}

CONFORMANCE_TEST(OptionTest, ShortBufferIsTooSmall, 193) {
  NodeOptions options;
  options.caps = FI_MSG | FI_MULTI_RECV;
  if (!Open(options, 1)) {
    return;
  }
  size_t value = 0;
  size_t bytes = 1;
  EXPECT_EQ(fi_getopt(&a().ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                      &value, &bytes),
            -FI_ETOOSMALL);
  EXPECT_EQ(bytes, sizeof(size_t));
}

CONFORMANCE_TEST(OptionTest, MinimumOfMultiReceiveIsKept, 194) {
  NodeOptions options;
  options.caps = FI_MSG | FI_MULTI_RECV;
  options.enable = false;
  if (!Open(options, 1)) {
    return;
  }
  size_t value = 12345;
  size_t bytes = sizeof(value);
  fid* const ep = &a().ep->fid;
  ASSERT_EQ(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value,
                      sizeof(value)),
            0);
  value = 0;
  ASSERT_EQ(
      fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &bytes), 0);
  EXPECT_EQ(value, 12345U);
  EXPECT_EQ(bytes, sizeof(value));
}

CONFORMANCE_TEST(OptionTest, TrafficClassesHoldADscp, 242) {
  for (int dscp = 0; dscp < 64; ++dscp) {
    const uint32_t traffic_class = fi_tc_dscp_set(static_cast<uint8_t>(dscp));
    EXPECT_NE(traffic_class, 0U) << dscp;
    EXPECT_EQ(fi_tc_dscp_get(traffic_class), dscp);
  }
  EXPECT_EQ(fi_tc_dscp_get(FI_TC_BULK_DATA), 0);
}

CONFORMANCE_TEST(NameTest, ShortBufferIsFilledAndNeedsTheSize, 280) {
  if (!Open({}, 1)) {
    return;
  }
  const std::vector<uint8_t> whole = a().Name();
  ASSERT_GT(whole.size(), 4U);
  std::vector<uint8_t> part(whole.size(), 0xee);
  size_t bytes = 4;
  EXPECT_EQ(fi_getname(&a().ep->fid, part.data(), &bytes), -FI_ETOOSMALL);
  EXPECT_EQ(bytes, whole.size());
  EXPECT_EQ(std::memcmp(part.data(), whole.data(), 4), 0);
  for (size_t i = 4; i < part.size(); ++i) {
    EXPECT_EQ(part[i], 0xee) << i;
  }
}

CONFORMANCE_TEST(AliasTest, HasOneDirectionAndFlagsOfItsOwn, 185) {
  if (!OpenSelective()) {
    return;
  }
  fid_ep* alias = nullptr;
  EXPECT_EQ(fi_ep_alias(a().ep, &alias, FI_COMPLETION), -FI_EINVAL);
  EXPECT_EQ(fi_ep_alias(a().ep, &alias, FI_TRANSMIT | FI_RECV | FI_COMPLETION),
            -FI_EINVAL);
  ASSERT_EQ(fi_ep_alias(a().ep, &alias, FI_TRANSMIT | FI_COMPLETION), 0);
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  // The queue is the same, and so is the endpoint's own default.
  ASSERT_NO_FATAL_FAILURE(SendBy(alias, sent, received));
  ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &send_context_));
  ASSERT_NO_FATAL_FAILURE(SendBy(a().ep, sent, received));
  EXPECT_TRUE(StaysEmpty(a().tx));
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

CONFORMANCE_TEST(AliasTest, KeepsTheEndpointOpen, 186) {
  if (!OpenSelective()) {
    return;
  }
  fid_ep* alias = nullptr;
  ASSERT_EQ(fi_ep_alias(a().ep, &alias, FI_TRANSMIT | FI_COMPLETION), 0);
  const int closed = fi_close(&a().ep->fid);
  EXPECT_TRUE(closed == 0 || closed == -FI_EBUSY) << closed;
  if (closed == 0) {
    a().ep = nullptr;
  }
  {
    Buffer sent(a(), 8);
    Buffer received(b(), 8);
    ASSERT_NO_FATAL_FAILURE(SendBy(alias, sent, received));
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &send_context_));
  }
  EXPECT_EQ(fi_close(&alias->fid), 0);
}

CONFORMANCE_TEST(AliasTest, DefaultFlagsAreReadAndReplaced, 187, 190) {
  if (!OpenSelective()) {
    return;
  }
  fid* const ep = &a().ep->fid;
  for (const uint64_t direction :
       {uint64_t{0}, uint64_t{FI_TRANSMIT | FI_RECV}}) {
    uint64_t flags = direction;
    EXPECT_EQ(fi_control(ep, FI_GETOPSFLAG, &flags), -FI_EINVAL);
    flags = direction | FI_COMPLETION;
    EXPECT_EQ(fi_control(ep, FI_SETOPSFLAG, &flags), -FI_EINVAL);
  }
  Buffer sent(a(), 8);
  Buffer received(b(), 8);
  // Between other calls of the endpoint, of the same thread.
  for (int i = 0; i < 6; ++i) {
    const uint64_t set = i % 2 == 0 ? uint64_t{FI_COMPLETION} : 0;
    uint64_t flags = FI_TRANSMIT | set;
    ASSERT_EQ(fi_control(ep, FI_SETOPSFLAG, &flags), 0);
    flags = FI_TRANSMIT;
    ASSERT_EQ(fi_control(ep, FI_GETOPSFLAG, &flags), 0);
    EXPECT_EQ(flags & FI_COMPLETION, set);
    ASSERT_NO_FATAL_FAILURE(SendBy(a().ep, sent, received));
    if (set != 0) {
      ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &send_context_));
    } else {
      EXPECT_TRUE(StaysEmpty(a().tx));
    }
  }
}

CONFORMANCE_TEST(AliasTest, DefaultCompletionLevelIsThatOfTheInfo, 266) {
  const auto level_of = [](const NodeOptions& options, uint64_t level) {
    const InfoPointer hints = MakeHints(options.caps);
    hints->tx_attr->op_flags = level;
    return GetInfo(hints.get());
  };
  constexpr uint64_t kLevels[] = {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
                                  FI_DELIVERY_COMPLETE};
  for (const uint64_t level : kLevels) {
    NodeOptions options;
    options.tx_op_flags = level;
    const Answer answer = level_of(options, level);
    if (answer.result == -FI_ENODATA) {
      continue;
    }
    ASSERT_FALSE(answer.empty());
    for (const fi_info* info : answer.own()) {
      EXPECT_EQ(info->tx_attr->op_flags & level, level);
    }
    ASSERT_TRUE(Open(options));
    Exchange(64);
    TearDown();
  }
}

CONFORMANCE_TEST(OptionTest, BufferIsReleasedBelowTheMinimum, 194, 264) {
  NodeOptions options;
  options.caps = FI_MSG | FI_MULTI_RECV;
  if (!Open(options)) {
    return;
  }
  constexpr size_t kBytes = 500;
  // After a message of 500 bytes of 1,000 some 500 are free.
  for (const auto& [minimum, released] :
       {std::pair(size_t{700}, true), std::pair(size_t{300}, false)}) {
    size_t value = minimum;
    ASSERT_EQ(fi_setopt(&b().ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                        &value, sizeof(value)),
              0);
    Buffer pool(b(), 2 * kBytes);
    Buffer sent(a(), kBytes);
    sent.Fill();
    iovec part = {.iov_base = pool.data(), .iov_len = pool.size()};
    void* desc = pool.desc();
    fi_context2 contexts[2] = {};
    fi_msg message = {};
    message.msg_iov = &part;
    message.desc = &desc;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &contexts[0];
    ASSERT_EQ(Post([&] { return fi_recvmsg(b().ep, &message, FI_MULTI_RECV); }),
              0);
    ASSERT_EQ(Send(sent, kBytes, &contexts[1]), 0);
    ASSERT_NO_FATAL_FAILURE(ExpectDone(a().tx, &contexts[1]));
    const auto completion = Take(b().rx);
    ASSERT_TRUE(completion.has_value());
    ASSERT_FALSE(completion->error);
    EXPECT_EQ(completion->entry.len, kBytes);
    EXPECT_EQ(std::memcmp(completion->entry.buf, sent.data(), kBytes), 0);
    bool seen = (completion->entry.flags & FI_MULTI_RECV) != 0;
    // The release may be an entry of its own.
    if (!StaysEmpty(b().rx)) {
      seen |= (b().rx.taken.front().entry.flags & FI_MULTI_RECV) != 0;
      b().rx.taken.pop_front();
    }
    EXPECT_EQ(seen, released) << "minimum " << minimum;
    if (!seen) {
      // The rest of the buffer is still the provider's.
      ASSERT_EQ(fi_cancel(&b().ep->fid, &contexts[0]), 0);
      EXPECT_TRUE(Take(b().rx).has_value());
    }
  }
}

// fi_getinfo with that traffic class.
int ResultOfClass(uint32_t traffic_class, bool of_domain) {
  const InfoPointer hints = MakeHints(FI_MSG);
  (of_domain ? hints->domain_attr->tclass : hints->tx_attr->tclass) =
      traffic_class;
  return GetInfo(hints.get()).result;
}

CONFORMANCE_TEST(OptionTest, UnknownTrafficClassHasNoData, 241) {
  for (const bool of_domain : {true, false}) {
    for (const uint32_t label :
         {uint32_t{FI_TC_BEST_EFFORT}, uint32_t{FI_TC_BULK_DATA},
          uint32_t{FI_TC_DEDICATED_ACCESS}, uint32_t{FI_TC_LOW_LATENCY},
          uint32_t{FI_TC_SCAVENGER}, fi_tc_dscp_set(46)}) {
      const int result = ResultOfClass(label, of_domain);
      EXPECT_TRUE(result == 0 || result == -FI_ENODATA) << label;
    }
    EXPECT_EQ(ResultOfClass(FI_TC_UNSPEC, of_domain), 0);
    EXPECT_EQ(ResultOfClass(0x7ffe, of_domain), -FI_ENODATA)
        << "of the domain: " << of_domain;
  }
}

CONFORMANCE_TEST(OptionTest, ClassOfTheHintsIsThatOfTheAnswer, 241) {
  for (const uint32_t label : {uint32_t{FI_TC_UNSPEC},
                               uint32_t{FI_TC_BULK_DATA}, fi_tc_dscp_set(46)}) {
    NodeOptions options;
    options.hints = [label](fi_info& hints) {
      hints.domain_attr->tclass = label;
      hints.tx_attr->tclass = label;
    };
    if (!Open(options)) {
      return;
    }
    // One that was not requested is the provider's choice.
    EXPECT_TRUE(label == FI_TC_UNSPEC || a().info->tx_attr->tclass == label)
        << label;
    ASSERT_NO_FATAL_FAILURE(Exchange(64));
    TearDown();
  }
}

CONFORMANCE_TEST(OptionTest, NetworkControlMayNeedPrivileges, 243) {
  const int result = ResultOfClass(FI_TC_NETWORK_CTRL, false);
  if (result == -FI_ENODATA) {
    return NotOffered("FI_TC_NETWORK_CTRL");
  }
  if (result == -FI_EACCES || result == -FI_EPERM) {
    return Refused("FI_TC_NETWORK_CTRL", result);
  }
  ASSERT_EQ(result, 0);
  NodeOptions options;
  options.hints = [](fi_info& hints) {
    hints.tx_attr->tclass = FI_TC_NETWORK_CTRL;
  };
  auto node = std::make_unique<Node>(options);
  if (node->result == -FI_EACCES || node->result == -FI_EPERM) {
    return Refused(node->failed, node->result);
  }
  EXPECT_EQ(node->result, 0) << node->failed;
}

// A key of the size that Heddle and others take, unless it is 0.
void SetKey(uint32_t key, uint8_t** bytes, size_t* size) {
  if (key != 0) {
    *size = sizeof(key);
    *bytes = static_cast<uint8_t*>(malloc(*size));
    std::memcpy(*bytes, &key, sizeof(key));
  }
}

NodeOptions WithKey(uint32_t of_endpoint, uint32_t of_domain = 0) {
  NodeOptions options;
  options.hints = [=](fi_info& hints) {
    SetKey(of_endpoint, &hints.ep_attr->auth_key,
           &hints.ep_attr->auth_key_size);
    SetKey(of_domain, &hints.domain_attr->auth_key,
           &hints.domain_attr->auth_key_size);
  };
  return options;
}

CONFORMANCE_TEST(NameTest, KeyOfAnEndpointComesBeforeThatOfItsDomain, 213) {
  if (Open(WithKey(3), WithKey(3, 4))) {
    Exchange(64);
  }
}

CONFORMANCE_TEST(NameTest, KeyOfADomainIsThatOfEndpointsWithoutOne, 144, 213) {
  if (Open(WithKey(3), WithKey(0, 3))) {
    Exchange(64);
  }
}

CONFORMANCE_TEST(NameTest, VersionsBefore15HaveNoKeys, 144) {
  NodeOptions options = WithKey(~0U, ~0U);
  options.version = FI_VERSION(1, 4);
  options.mr_mode = FI_MR_UNSPEC;
  options.mode |= FI_LOCAL_MR;
  if (Open(options)) {
    Exchange(64);
  }
}

CONFORMANCE_TEST(NameTest, KeysOfDomainsThatDifferDoNotMeet, 144) {
  ExpectStranger(WithKey(0, 3), WithKey(0, 4));
}

CONFORMANCE_TEST(NameTest, DifferentKeysDoNotMeet, 213) {
  ExpectStranger(WithKey(3), WithKey(4));
}

CONFORMANCE_TEST(NameTest, UnknownSenderIsReportedByItsAddress, 63, 143) {
  NodeOptions options;
  options.caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR;
  if (!Open(options)) {
    return;
  }
  auto stranger = OpenAlone(options);
  ASSERT_NE(stranger, nullptr);
  Buffer sent(*stranger, 64);
  Buffer received(b(), 64);
  sent.Fill();
  fi_context2 contexts[2] = {};
  ASSERT_EQ(Receive(received, &contexts[0]), 0);
  const fi_addr_t address = stranger->Insert(b());
  ssize_t result = -FI_EAGAIN;
  fi_cq_tagged_entry entry = {};
  fi_addr_t source = 0;
  ssize_t count = -FI_EAGAIN;
  const Deadline deadline;
  while (count == -FI_EAGAIN && !deadline.HasPassed()) {
    if (result == -FI_EAGAIN) {
      result = fi_send(stranger->ep, sent.data(), 64, sent.desc(), address,
                       &contexts[1]);
    }
    stranger->tx.Poll();
    stranger->rx.Poll();
    count = fi_cq_readfrom(b().rx.cq, &entry, 1, &source);
  }
  ASSERT_EQ(result, 0);
  ASSERT_EQ(count, -FI_EAVAIL);
  uint8_t raw[256] = {};
  fi_cq_err_entry failure = {};
  failure.err_data = raw;
  failure.err_data_size = sizeof(raw);
  ASSERT_EQ(fi_cq_readerr(b().rx.cq, &failure, 0), 1);
  EXPECT_EQ(failure.err, FI_EADDRNOTAVAIL);
  EXPECT_EQ(failure.op_context, &contexts[0]);
  EXPECT_EQ(failure.len, 64U);
  const std::vector<uint8_t> name = stranger->Name();
  ASSERT_GE(failure.err_data_size, name.size());
  EXPECT_LE(failure.err_data_size, b().info->domain_attr->max_err_data);
  EXPECT_EQ(std::memcmp(failure.err_data, name.data(), name.size()), 0);
  EXPECT_EQ(received.bytes(), sent.bytes());
  while (stranger->tx.taken.empty() && !deadline.HasPassed()) {
    stranger->tx.Poll();
    b().rx.Poll();
  }
  EXPECT_FALSE(stranger->tx.taken.empty()) << "the send completes";
}

}  // namespace
}  // namespace heddle::conformance
