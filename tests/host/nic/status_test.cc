// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/status.h"

#include <gtest/gtest.h>

namespace heddle::nic {
namespace {

using contract::ReturnCode;
using contract::Status;

TEST(NicStatus, TheTwoListsGoTogether) {
  for (int value = 0; value <= static_cast<int>(Status::kDeviceFault);
       ++value) {
    EXPECT_EQ(ToProvErrno(static_cast<Status>(value)), value);
  }
}

TEST(NicStatus, AMessageThatIsNotThereHasItsOwn) {
  EXPECT_EQ(ToProvErrno(Status::kNoMessage), FI_HEDDLE_NO_MESSAGE);
}

TEST(NicStatus, AStatusOfANewerDeviceIsUnknown) {
  EXPECT_EQ(ToProvErrno(static_cast<Status>(250)), FI_HEDDLE_UNKNOWN);
}

TEST(NicStatus, APeersRefusalIsToldByItsReturnCode) {
  const auto refusal = [](ReturnCode code) {
    return ToProvErrno(Status::kRemoteError, static_cast<uint16_t>(code));
  };
  EXPECT_EQ(refusal(ReturnCode::kBadMkey), FI_HEDDLE_BAD_KEY);
  EXPECT_EQ(refusal(ReturnCode::kPermViolation), FI_HEDDLE_NO_RIGHT);
  EXPECT_EQ(refusal(ReturnCode::kOpViolation), FI_HEDDLE_NO_RIGHT);
  EXPECT_EQ(refusal(ReturnCode::kBadAddr), FI_HEDDLE_OUT_OF_RANGE);
  EXPECT_EQ(refusal(ReturnCode::kUnsupportedOp), FI_HEDDLE_PEER_UNSUPPORTED);
  EXPECT_EQ(ToProvErrno(Status::kRemoteError, 0), FI_HEDDLE_REMOTE_ERROR);
  EXPECT_EQ(ToProvErrno(Status::kTruncated,
                        static_cast<uint16_t>(ReturnCode::kBadMkey)),
            FI_HEDDLE_TRUNCATED);
}

}  // namespace
}  // namespace heddle::nic
