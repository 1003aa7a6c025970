// SPDX-License-Identifier: Apache-2.0
// fi_getinfo without a simulator, as in production installations.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  unsetenv("FI_HEDDLE_DEVICE");
  setenv("FI_HEDDLE_SIM_PATH", "/nowhere/at/all", 1);
  setenv("FI_LOG_LEVEL", "info", 1);
  return true;
}();

TEST(NoDevice, OffersNothingAndNamesWhatIsMissing) {
  testing::internal::CaptureStderr();
  const Answer answer = Ask(nullptr);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.result, -FI_ENODATA);
  EXPECT_EQ(answer.info, nullptr);
  EXPECT_NE(log.find("device soft0 ruled out: libheddle-soft.so: not found "
                     "(looked for /nowhere/at/all)"),
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
