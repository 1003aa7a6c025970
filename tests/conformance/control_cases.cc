// SPDX-License-Identifier: Apache-2.0
// fi_cancel, aliases, options, names, traffic classes.
#include <cstring>

#include "tests/conformance/info.h"
#include "tests/conformance/node.h"

namespace heddle::conformance {
namespace {

class CancelTest : public NodesTest {};
class OptionTest : public NodesTest {};
class NameTest : public NodesTest {};

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

}  // namespace
}  // namespace heddle::conformance
