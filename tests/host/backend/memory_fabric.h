// SPDX-License-Identifier: Apache-2.0
// A fabric and a domain of the backend in memory.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstring>

#include "host/lib/core/info_memory.h"
#include "host/lib/ofi/domain_open.h"
#include "host/lib/ofi/fabric.h"
#include "host/lib/ofi/make_data_path.h"
#include "tests/host/backend/memory_model.h"

namespace heddle::ofi {

class MemoryFabricTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static constexpr DataPath kPath =
        MakeDataPath<backend::memory::Model>(backend::memory::kBackend);
    AddDataPath(kPath);
    core::AddOpener(backend::memory::kOpener);
  }

  // `info_` serves endpoints, too.
  void SetUp() override {
    char name[] = "heddle-default";
    fi_fabric_attr attr = {};
    attr.name = name;
    attr.api_version = FI_VERSION(1, 17);
    ASSERT_EQ(Fabric::Open(&attr, &fabric_, nullptr), 0);
    info_->fabric_attr->api_version = FI_VERSION(1, 17);
    info_->domain_attr->name = strdup("memory0");
    info_->domain_attr->threading = FI_THREAD_DOMAIN;
    ASSERT_EQ(OpenDomain(fabric_, info_.get(), 0, &domain_, nullptr), 0);
  }

  core::InfoPointer info_{core::AllocateInfo()};
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
};

}  // namespace heddle::ofi
