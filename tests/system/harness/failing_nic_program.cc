// SPDX-License-Identifier: Apache-2.0
// A test of whole NICs that fails, for recorder_test.py.
#include <cstring>

#include "gtest/gtest.h"
#include "tests/system/harness/lockstep_nodes.h"

namespace heddle {
namespace {

TEST(Failing, AfterAMessage) {
  std::string error;
  const auto nodes = LockstepNodes::Create(2, {}, &error);
  ASSERT_NE(nodes, nullptr) << error;
  constexpr uint32_t kBytes = 64;
  DmaBuffer& source = nodes->Memory(0, kBytes);
  DmaBuffer& target = nodes->Memory(1, kBytes);
  ASSERT_TRUE(nodes->endpoint(1).rx().TryPush(1, target.iova(), kBytes));
  nodes->endpoint(1).rx().Publish();
  const SendFields fields{
      .op_context = 1, .peer = 1, .flags = contract::kTxFlagCompletion};
  ASSERT_TRUE(
      nodes->endpoint(0).tx().PushBuffer(fields, source.iova(), kBytes));
  nodes->endpoint(0).tx().Publish();
  ASSERT_TRUE(nodes->StepUntil(
      100000, [&] { return nodes->endpoint(1).PollRx().has_value(); }));
  FAIL() << "at cycle " << nodes->world().evaluated_cycles();
}

}  // namespace
}  // namespace heddle
