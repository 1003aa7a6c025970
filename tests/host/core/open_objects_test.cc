// SPDX-License-Identifier: Apache-2.0
// What is open, as fi_getinfo reports it.
#include "host/lib/core/open_objects.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "host/lib/core/getinfo.h"
#include "host/lib/core/info_memory.h"
#include "host/lib/ofi/fabric.h"

namespace heddle::core {
namespace {

const bool environment_is_set = [] {
  setenv("FI_HEDDLE_DEVICE", "rtl", 1);
  return true;
}();

class OpenObjectsTest : public testing::Test {
 protected:
  fid_fabric* OpenFabric() {
    char name[] = "heddle-default";
    fi_fabric_attr attr = {};
    attr.name = name;
    attr.api_version = FI_VERSION(1, 17);
    fid_fabric* fabric = nullptr;
    EXPECT_EQ(ofi::Fabric::Open(&attr, &fabric, nullptr), 0);
    return fabric;
  }

  // Objects that the answer names; `*result` is that of the call.
  FoundObjects Ask(int* result, const FoundObjects& wanted = {}) {
    const InfoPointer hints(AllocateInfo());
    hints->fabric_attr->fabric = wanted.fabric;
    hints->domain_attr->domain = wanted.domain;
    fi_info* info = nullptr;
    *result = GetInfo(
        {FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &kNewestLayout},
        &info);
    const InfoPointer owner(info);
    if (info == nullptr) {
      return {};
    }
    return {info->fabric_attr->fabric, info->domain_attr->domain};
  }

  FoundObjects Ask() {
    int result = -1;
    const FoundObjects found = Ask(&result);
    EXPECT_EQ(result, 0);
    return found;
  }
};

TEST_F(OpenObjectsTest, FabricIsReportedWhileItIsOpen) {
  EXPECT_EQ(Ask().fabric, nullptr);
  fid_fabric* first = OpenFabric();
  fid_fabric* second = OpenFabric();
  EXPECT_EQ(Ask().fabric, first);
  EXPECT_EQ(Ask().domain, nullptr);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(Ask().fabric, second);
  EXPECT_EQ(fi_close(&second->fid), 0);
  EXPECT_EQ(Ask().fabric, nullptr);
}

TEST_F(OpenObjectsTest, FirstOpenDomainOfTheNameIsReportedWithItsFabric) {
  fid_fabric* first = OpenFabric();
  fid_fabric* second = OpenFabric();
  fid_domain others = {};
  const OpenDomain of_other_name(&others, first, "rtl1", {});
  EXPECT_EQ(Ask().domain, nullptr);
  {
    fid_domain older = {};
    fid_domain newer = {};
    const OpenDomain older_is_open(&older, second, "rtl0", {});
    const OpenDomain newer_is_open(&newer, second, "rtl0", {});
    EXPECT_EQ(Ask().domain, &older);
    EXPECT_EQ(Ask().fabric, second);
  }
  EXPECT_EQ(Ask().domain, nullptr);
  EXPECT_EQ(Ask().fabric, first);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(OpenObjectsTest, HintRestrictsTheAnswerToTheOpenObject) {
  fid_fabric* fabric = OpenFabric();
  fid_domain older = {};
  fid_domain newer = {};
  const OpenDomain older_is_open(&older, fabric, "rtl0", {});
  int result = -1;
  EXPECT_EQ(Ask(&result, {nullptr, &newer}).domain, nullptr);
  EXPECT_EQ(result, -FI_ENODATA);
  const OpenDomain newer_is_open(&newer, fabric, "rtl0", {});
  EXPECT_EQ(Ask(&result, {nullptr, &newer}).domain, &newer);
  EXPECT_EQ(Ask(&result, {fabric, nullptr}).fabric, fabric);
  fid_fabric closed = {};
  EXPECT_EQ(Ask(&result, {&closed, nullptr}).fabric, nullptr);
  EXPECT_EQ(result, -FI_ENODATA);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

TEST_F(OpenObjectsTest, DomainsOfOneFabricAreVisited) {
  fid_fabric* fabric = OpenFabric();
  fid_fabric* other = OpenFabric();
  fid_domain domains[3] = {};
  const OpenDomain first(&domains[0], fabric, "rtl0", {});
  const OpenDomain second(&domains[1], other, "rtl0", {});
  const OpenDomain third(&domains[2], fabric, "rtl0", {});
  std::vector<fid_domain*> visited;
  ForEachOpenDomain(fabric, [&](fid_domain* each) { visited.push_back(each); });
  EXPECT_EQ(visited, (std::vector<fid_domain*>{&domains[0], &domains[2]}));
  EXPECT_EQ(fi_close(&fabric->fid), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
}

base::SocketAddress Make(const char* text, uint16_t port = 0) {
  return base::SocketAddress::FromText(text)
      .value_or(base::SocketAddress())
      .WithPort(port);
}

TEST_F(OpenObjectsTest, DomainIsFoundWithItsAddress) {
  fid_fabric* fabric = OpenFabric();
  fid_domain older = {};
  fid_domain newer = {};
  const OpenDomain is_open(&older, fabric, "rtl0", Make("10.0.0.1", 80));
  const OpenDomain is_open_too(&newer, fabric, "rtl0", Make("fd00::1"));
  const auto find = [](fid_domain* domain) {
    return FindOpenObjects("heddle-default", "rtl0", {nullptr, domain}).address;
  };
  EXPECT_EQ(find(nullptr), Make("10.0.0.1"));
  EXPECT_EQ(find(&newer), Make("fd00::1"));
  fid_domain closed = {};
  EXPECT_EQ(find(&closed), std::nullopt);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

// A domain's device stays with the parent.
TEST_F(OpenObjectsTest, ChildInheritsNoDomain) {
  fid_fabric* fabric = OpenFabric();
  fid_domain domain = {};
  const OpenDomain is_open(&domain, fabric, "rtl0", {});
  const pid_t child = fork();
  if (child == 0) {
    const FoundObjects found =
        FindOpenObjects("heddle-default", "rtl0", FoundObjects());
    _exit(found.domain == nullptr && found.fabric == fabric ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Ask().domain, &domain);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

}  // namespace
}  // namespace heddle::core
