// SPDX-License-Identifier: Apache-2.0
// libheddle-fi.so through the stock core, which this test is linked to.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_prov.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  setenv("FI_PROVIDER_PATH", HEDDLE_PLUGIN_DIRECTORY, 1);
  setenv("FI_HEDDLE_DEVICE", "rtl", 1);
  setenv("FI_HEDDLE_IP", "10.1.2.3", 1);
  setenv("FI_LOG_LEVEL", "info", 1);
  return true;
}();

Info HeddleHints() {
  Info hints = MakeHints();
  hints->fabric_attr->prov_name = strdup("heddle");
  return hints;
}

TEST(Plugin, IsListedOnceAndNotLayeredOver) {
  const Answer answer = Ask(nullptr);
  ASSERT_EQ(answer.result, 0);
  int plain = 0;
  for (const fi_info* info = answer.info.get(); info != nullptr;
       info = info->next) {
    const std::string name = info->fabric_attr->prov_name;
    plain += name == "heddle" ? 1 : 0;
    EXPECT_NE(name.find("heddle;"), 0U) << name;
  }
  EXPECT_EQ(plain, 1);
}

TEST(Plugin, OffersWhatTheLibraryOffers) {
  const Info hints = HeddleHints();
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  EXPECT_EQ(answer.info->next, nullptr);
  EXPECT_STREQ(answer.info->domain_attr->name, "rtl0");
  EXPECT_EQ(answer.info->fabric_attr->prov_version,
            static_cast<uint32_t>(FI_VERSION(0, 1)));
  EXPECT_EQ(answer.info->src_addrlen, 16U);
  // What it answers it accepts.
  EXPECT_EQ(Ask(answer.info.get()).result, 0);
}

TEST(Plugin, RefusalReachesTheStockLog) {
  const Info hints = HeddleHints();
  hints->tx_attr->inject_size = 4096;
  testing::internal::CaptureStderr();
  const Answer answer = Ask(hints.get());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.result, -FI_ENODATA);
  EXPECT_NE(log.find("device rtl0 ruled out by tx_attr->inject_size: wanted "
                     "4096, offered at most 192"),
            std::string::npos)
      << log;
}

TEST(Plugin, SettingsAreListedByTheStockCore) {
  fi_param* parameters = nullptr;
  int count = 0;
  ASSERT_EQ(fi_getparams(&parameters, &count), 0);
  int seeds = 0;
  int devices = 0;
  for (int index = 0; index < count; ++index) {
    const std::string name = parameters[index].name;
    seeds += name == "FI_HEDDLE_SEED" ? 1 : 0;
    devices += name == "FI_HEDDLE_DEVICE" ? 1 : 0;
  }
  fi_freeparams(parameters);
  EXPECT_EQ(seeds, 1);
  EXPECT_EQ(devices, 1);
}

TEST(Plugin, FabricAndEventQueueOpenAndClose) {
  const Info hints = HeddleHints();
  const Answer answer = Ask(hints.get());
  ASSERT_EQ(answer.result, 0);
  fid_fabric* fabric = nullptr;
  ASSERT_EQ(fi_fabric(answer.info->fabric_attr, &fabric, nullptr), 0);
  EXPECT_EQ(fabric->api_version, static_cast<uint32_t>(FI_VERSION(1, 17)));
  fi_eq_attr attr = {};
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* queue = nullptr;
  ASSERT_EQ(fi_eq_open(fabric, &attr, &queue, nullptr), 0);
  EXPECT_EQ(fi_close(&fabric->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&queue->fid), 0);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

// Called as the core does, since it never shows a provider's own answers.
fi_provider* LoadProvider() {
  void* library = dlopen(HEDDLE_PLUGIN_DIRECTORY "/libheddle-fi.so", RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  auto* start =
      reinterpret_cast<fi_provider* (*)()>(dlsym(library, "fi_prov_ini"));
  EXPECT_NE(start, nullptr);
  return start();
}

TEST(Provider, FulfilsWhatTheCoreRequires) {
  fi_provider* provider = LoadProvider();
  EXPECT_STREQ(provider->name, "heddle");
  EXPECT_EQ(provider->fi_version, static_cast<uint32_t>(FI_VERSION(2, 1)));
  EXPECT_NE(provider->getinfo, nullptr);
  EXPECT_NE(provider->fabric, nullptr);
  EXPECT_NE(provider->cleanup, nullptr);
}

TEST(Provider, LeavesItsNameToTheCore) {
  fi_info* info = nullptr;
  ASSERT_EQ(LoadProvider()->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0,
                                    nullptr, &info),
            0);
  EXPECT_EQ(info->fabric_attr->prov_name, nullptr);
  fi_freeinfo(info);
}

TEST(Provider, OffersNothingForLayeringAndIgnoresOtherInternalFlags) {
  fi_provider* provider = LoadProvider();
  fi_info* info = nullptr;
  EXPECT_EQ(provider->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 1ULL << 59,
                              nullptr, &info),
            -FI_ENODATA);
  EXPECT_EQ(info, nullptr);
  ASSERT_EQ(provider->getinfo(FI_VERSION(1, 17), nullptr, nullptr, 1ULL << 58,
                              nullptr, &info),
            0);
  fi_freeinfo(info);
}

}  // namespace
}  // namespace heddle::test
