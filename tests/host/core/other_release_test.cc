// SPDX-License-Identifier: Apache-2.0
// fi_getinfo with the simulator of another release.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  unsetenv("FI_HEDDLE_DEVICE");
  setenv("FI_HEDDLE_SIM_PATH", HEDDLE_TEST_SIM, 1);
  setenv("FI_LOG_LEVEL", "warn", 1);
  return true;
}();

TEST(OtherRelease, IsWarnedOfWithBothVersionsAndTheCure) {
  testing::internal::CaptureStderr();
  const Answer answer = Ask(nullptr);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.result, -FI_ENODATA);
  char own[24];
  std::snprintf(own, sizeof(own), "%#llx",
                static_cast<unsigned long long>(contract::kContractHash));
  for (const std::string& part :
       {std::string("device soft0 ruled out: "),
        std::string("library has contract 0x1, the driver ") + own,
        std::string("install both from one release")}) {
    EXPECT_NE(log.find(part), std::string::npos) << part << " in: " << log;
  }
}

}  // namespace
}  // namespace heddle::test
