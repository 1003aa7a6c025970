// SPDX-License-Identifier: Apache-2.0
// The setting `addressing` on a device without relative addressing.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <cstdlib>

namespace heddle {
namespace {

TEST(AddressingTest, DomainOfADeviceWithoutRelativeAddressesIsRefused) {
  ASSERT_EQ(setenv("FI_HEDDLE_ADDRESSING", "relative", 1), 0);
  fi_info* hints = fi_allocinfo();
  ASSERT_NE(hints, nullptr);
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG;
  fi_info* info = nullptr;
  ASSERT_EQ(fi_getinfo(FI_VERSION(1, 18), nullptr, nullptr, 0, hints, &info),
            0);
  fid_fabric* fabric = nullptr;
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  fid_domain* domain = nullptr;
  EXPECT_EQ(fi_domain(fabric, info, &domain, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(domain, nullptr);
  EXPECT_EQ(fi_close(&fabric->fid), 0) << "nothing of it is left";
  fi_freeinfo(info);
  fi_freeinfo(hints);
}

}  // namespace
}  // namespace heddle
