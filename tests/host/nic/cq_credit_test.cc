// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/cq_credit.h"

#include <gtest/gtest.h>

namespace heddle::nic {
namespace {

TEST(CqCreditTest, AtMostHalfIsSetAside) {
  CqCredit credit(16);
  EXPECT_FALSE(credit.TryReserve(9));
  EXPECT_TRUE(credit.TryReserve(5));
  EXPECT_FALSE(credit.TryReserve(4));
  EXPECT_TRUE(credit.TryReserve(3));
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(credit.TryTake<backend::Unlocked>()) << i;
  }
  EXPECT_FALSE(credit.TryTake<backend::Locked>());
}

TEST(CqCreditTest, WhatWasSetAsideComesBack) {
  CqCredit credit(16);
  ASSERT_TRUE(credit.TryReserve(8));
  credit.ReturnReserved(8);
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(credit.TryTake<backend::Locked>()) << i;
  }
  EXPECT_FALSE(credit.TryTake<backend::Unlocked>());
  credit.Return<backend::Unlocked>(1);
  EXPECT_TRUE(credit.TryTake<backend::Unlocked>());
}

}  // namespace
}  // namespace heddle::nic
