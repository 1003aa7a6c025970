// SPDX-License-Identifier: Apache-2.0
#include "host/lib/base/status.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <set>
#include <string>

namespace heddle::base {
namespace {

constexpr int kLastError = FI_HEDDLE_PEER_UNSUPPORTED;

TEST(Status, EveryFailureHasAnErrnoAndASentenceOfItsOwn) {
  std::set<std::string> sentences;
  for (int value = 1; value <= kLastError; ++value) {
    const auto error = static_cast<fi_heddle_errno>(value);
    EXPECT_GT(ToFiErrno(error), 0) << value;
    EXPECT_NE(ToFiErrno(error), FI_EOTHER) << value;
    sentences.insert(ProvErrnoText(value));
  }
  EXPECT_EQ(sentences.size(), static_cast<size_t>(kLastError));
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_OK), 0);
}

TEST(Status, WhatApplicationsTestForHasItsErrno) {
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_TRUNCATED), FI_ETRUNC);
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_CANCELLED), FI_ECANCELED);
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_LOCAL_ACCESS), FI_EFAULT);
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_PEER_UNREACHABLE), FI_EHOSTUNREACH);
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_BAD_KEY), FI_EKEYREJECTED);
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_NO_RIGHT), FI_EACCES);
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_NO_MESSAGE), FI_ENOMSG);
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_PEER_UNSUPPORTED), FI_EOPNOTSUPP);
}

TEST(Status, AnUnknownErrorIsAnErrorToo) {
  EXPECT_EQ(ToFiErrno(FI_HEDDLE_UNKNOWN), FI_EOTHER);
  EXPECT_NE(std::string(ProvErrnoText(12345)), "");
}

TEST(Status, DriverErrorsKeepTheirNumber) {
  EXPECT_EQ(ToReturnCode(Errno{ENOMEM}), -FI_ENOMEM);
  EXPECT_EQ(ToReturnCode(Errno{0}), -FI_EOTHER);
  EXPECT_EQ(ToReturnCode(Errno{100000}), -FI_EOTHER);
}

}  // namespace
}  // namespace heddle::base
