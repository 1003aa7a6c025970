// SPDX-License-Identifier: Apache-2.0
// fi_getinfo when FI_HEDDLE_DEVICE names no device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  unsetenv("FI_HEDDLE_DEVICE");
  setenv("FI_LOG_LEVEL", "info", 1);
  return true;
}();

std::string LogOf(const fi_info* hints) {
  testing::internal::CaptureStderr();
  const Answer answer = Ask(hints);
  std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.result, -FI_ENODATA);
  EXPECT_EQ(answer.info, nullptr);
  return log;
}

TEST(NoDevice, SimulatedRtlIsNotOfferedUnnamed) {
  const std::string log = LogOf(nullptr);
  EXPECT_NE(log.find("device rtl0 ruled out by FI_HEDDLE_DEVICE"),
            std::string::npos)
      << log;
}

TEST(NoDevice, AnUnmetHintIsNamedAllTheSame) {
  const Info hints = MakeHints();
  hints->caps = FI_ATOMIC;
  const std::string log = LogOf(hints.get());
  EXPECT_NE(log.find("device rtl0 ruled out by caps: wanted FI_ATOMIC"),
            std::string::npos)
      << log;
}

TEST(NoDevice, ProviderIsListedAllTheSame) {
  const Answer answer = Ask(nullptr, nullptr, nullptr, FI_PROV_ATTR_ONLY);
  ASSERT_EQ(answer.result, 0);
  EXPECT_STREQ(answer.info->fabric_attr->prov_name, "heddle");
  const Info hints = MakeHints();
  hints->fabric_attr->prov_name = strdup("tcp");
  EXPECT_EQ(Ask(hints.get(), nullptr, nullptr, FI_PROV_ATTR_ONLY).result,
            -FI_ENODATA);
}

}  // namespace
}  // namespace heddle::test
