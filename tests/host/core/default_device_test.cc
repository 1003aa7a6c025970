// SPDX-License-Identifier: Apache-2.0
// fi_getinfo when FI_HEDDLE_DEVICE names no device, with a simulator at hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  unsetenv("FI_HEDDLE_DEVICE");
  setenv("FI_LOG_LEVEL", "info", 1);
  return true;
}();

std::string LogOf(const fi_info* hints, Answer* answer) {
  testing::internal::CaptureStderr();
  *answer = Ask(hints);
  return testing::internal::GetCapturedStderr();
}

TEST(DefaultDevice, IsSoftForTheReasonThatIsLogged) {
  Answer answer;
  const std::string log = LogOf(nullptr, &answer);
  ASSERT_EQ(answer.result, 0) << log;
  EXPECT_STREQ(answer.info->domain_attr->name, "soft0");
  EXPECT_EQ(answer.info->next, nullptr);
  EXPECT_NE(log.find("device soft0 offered: it meets all hints, and there is "
                     "no hardware, and FI_HEDDLE_DEVICE names no device"),
            std::string::npos)
      << log;
}

TEST(DefaultDevice, IsRuledOutByAnUnmetHint) {
  const Info hints = MakeHints();
  hints->caps = FI_ATOMIC;
  Answer answer;
  const std::string log = LogOf(hints.get(), &answer);
  EXPECT_EQ(answer.result, -FI_ENODATA);
  EXPECT_NE(log.find("device soft0 ruled out by caps: wanted FI_ATOMIC"),
            std::string::npos)
      << log;
}

}  // namespace
}  // namespace heddle::test
