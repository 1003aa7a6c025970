// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/status.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <set>
#include <string>

namespace heddle::base {
namespace {

constexpr int kLastStatus = static_cast<int>(contract::Status::kDeviceFault);

TEST(Status, EveryFailureHasAnErrnoAndASentenceOfItsOwn) {
  std::set<std::string> sentences;
  for (int value = 1; value <= kLastStatus; ++value) {
    const auto status = static_cast<contract::Status>(value);
    EXPECT_GT(ToFiErrno(status), 0) << value;
    EXPECT_NE(ToFiErrno(status), FI_EOTHER) << value;
    EXPECT_EQ(ToProvErrno(status), value) << "the two lists go together";
    sentences.insert(ProvErrnoText(value));
  }
  EXPECT_EQ(sentences.size(), static_cast<size_t>(kLastStatus));
  EXPECT_EQ(ToFiErrno(contract::Status::kOk), 0);
}

TEST(Status, WhatApplicationsTestForHasItsErrno) {
  EXPECT_EQ(ToFiErrno(contract::Status::kTruncated), FI_ETRUNC);
  EXPECT_EQ(ToFiErrno(contract::Status::kCancelled), FI_ECANCELED);
  EXPECT_EQ(ToFiErrno(contract::Status::kLocalAccess), FI_EFAULT);
  EXPECT_EQ(ToFiErrno(contract::Status::kPeerUnreachable), FI_EHOSTUNREACH);
}

TEST(Status, AStatusOfANewerDeviceIsAnErrorToo) {
  const auto status = static_cast<contract::Status>(250);
  EXPECT_EQ(ToFiErrno(status), FI_EOTHER);
  EXPECT_EQ(ToProvErrno(status), FI_HEDDLE_UNKNOWN);
  EXPECT_NE(std::string(ProvErrnoText(12345)), "");
}

TEST(Status, AdminAnswersBecomeReturnCodes) {
  EXPECT_EQ(ToReturnCode(contract::AdminStatus::kOk), 0);
  EXPECT_EQ(ToReturnCode(contract::AdminStatus::kInUse), -FI_EADDRINUSE);
  EXPECT_EQ(ToReturnCode(contract::AdminStatus::kInvalid), -FI_EINVAL);
  EXPECT_EQ(ToReturnCode(static_cast<contract::AdminStatus>(99)), -FI_EOTHER);
}

TEST(Status, DriverErrorsKeepTheirNumber) {
  EXPECT_EQ(ToReturnCode(Errno{ENOMEM}), -FI_ENOMEM);
  EXPECT_EQ(ToReturnCode(Errno{0}), -FI_EOTHER);
  EXPECT_EQ(ToReturnCode(Errno{100000}), -FI_EOTHER);
}

}  // namespace
}  // namespace heddle::base
