// SPDX-License-Identifier: Apache-2.0
// Entry points of each version node against structures of that version: a
// structure ends where an unreadable page begins.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fi_eq.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  setenv("FI_HEDDLE_DEVICE", "rtl", 1);
  return true;
}();

template <typename Function>
Function* Find(const char* name, const char* node) {
  // Never closed: the library is linked -z nodelete.
  static void* const library = dlopen(HEDDLE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  void* symbol = dlvsym(library, name, node);
  EXPECT_NE(symbol, nullptr) << name << "@" << node;
  return reinterpret_cast<Function*>(symbol);
}

// `bytes` of zeroed memory that end at the end of readable memory.
class Guarded {
 public:
  explicit Guarded(size_t bytes) {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    base_ = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page_, page_, PROT_NONE);
    data_ = base_ + page_ - bytes;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, 2 * page_); }

  template <typename Structure>
  Structure* as() {
    return reinterpret_cast<Structure*>(data_);
  }

 private:
  size_t page_;
  char* base_;
  char* data_;
};

// Sizes as an application of that version was compiled with; 1.0's fabric_attr
// had its four bytes of padding where api_version came.
struct Layout {
  const char* node;
  size_t info, tx, rx, ep, domain, fabric;
};

void PrintTo(const Layout& layout, std::ostream* stream) {
  *stream << layout.node;
}

class Versions : public testing::TestWithParam<Layout> {
 protected:
  Versions()
      : info_(GetParam().info),
        tx_(GetParam().tx),
        rx_(GetParam().rx),
        ep_(GetParam().ep),
        domain_(GetParam().domain),
        fabric_(GetParam().fabric) {
    hints()->tx_attr = tx_.as<fi_tx_attr>();
    hints()->rx_attr = rx_.as<fi_rx_attr>();
    hints()->ep_attr = ep_.as<fi_ep_attr>();
    hints()->domain_attr = domain_.as<fi_domain_attr>();
    hints()->fabric_attr = fabric_.as<fi_fabric_attr>();
    hints()->caps = FI_MSG;
    hints()->domain_attr->name = name_.data();
    hints()->domain_attr->max_ep_rx_ctx = 1;
  }

  fi_info* hints() { return info_.as<fi_info>(); }

  std::string name_ = "rtl0";
  Guarded info_, tx_, rx_, ep_, domain_, fabric_;
};

TEST_P(Versions, StructuresAreReadToTheirEndAndNotBeyond) {
  auto* getinfo = Find<decltype(fi_getinfo)>("fi_getinfo", GetParam().node);
  auto* freeinfo = Find<decltype(fi_freeinfo)>("fi_freeinfo", GetParam().node);
  fi_info* info = nullptr;
  ASSERT_EQ(getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints(), &info), 0);
  EXPECT_EQ(info->caps & FI_MSG, FI_MSG);
  EXPECT_STREQ(info->domain_attr->name, "rtl0");
  freeinfo(info);
  hints()->domain_attr->max_ep_srx_ctx = 1;  // The last field of 1.0.
  EXPECT_EQ(getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints(), &info),
            -FI_ENODATA);
}

TEST_P(Versions, DuplicateReadsNoFurtherAndZeroesTheRest) {
  auto* dupinfo = Find<decltype(fi_dupinfo)>("fi_dupinfo", GetParam().node);
  auto* freeinfo = Find<decltype(fi_freeinfo)>("fi_freeinfo", GetParam().node);
  fi_info* copy = dupinfo(hints());
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->caps, FI_MSG);
  EXPECT_STREQ(copy->domain_attr->name, "rtl0");
  EXPECT_NE(copy->domain_attr->name, name_.data());
  EXPECT_EQ(copy->domain_attr->max_ep_rx_ctx, 1U);
  EXPECT_EQ(copy->domain_attr->tclass, 0U);
  EXPECT_EQ(copy->tx_attr->tclass, 0U);
  EXPECT_EQ(copy->nic, nullptr);
  freeinfo(copy);
  fi_info* empty = dupinfo(nullptr);
  ASSERT_NE(empty, nullptr);
  EXPECT_NE(empty->domain_attr, nullptr);
  freeinfo(empty);
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, Versions,
    testing::Values(Layout{"FABRIC_1.0", 112, 72, 64, 80, 120, 28},
                    Layout{"FABRIC_1.1", 112, 72, 64, 96, 184, 32},
                    Layout{"FABRIC_1.2", 120, 72, 64, 96, 184, 32},
                    Layout{"FABRIC_1.3", 120, 80, 64, 96, 192, 32}));

TEST(FabricVersions, OldestHasNoApiVersion) {
  Guarded memory(28);
  auto* attr = memory.as<fi_fabric_attr>();
  std::string name = "heddle-default";
  std::string provider = "heddle";
  attr->name = name.data();
  attr->prov_name = provider.data();
  auto* open = Find<decltype(fi_fabric)>("fi_fabric", "FABRIC_1.0");
  fid_fabric* fabric = nullptr;
  ASSERT_EQ(open(attr, &fabric, nullptr), 0);
  EXPECT_EQ(fabric->api_version, static_cast<uint32_t>(FI_VERSION(1, 0)));
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

TEST(FabricVersions, LaterOnesKeepIt) {
  fi_fabric_attr attr = {};
  std::string name = "heddle-default";
  std::string provider = "heddle";
  attr.name = name.data();
  attr.prov_name = provider.data();
  attr.api_version = FI_VERSION(1, 9);
  auto* open = Find<decltype(fi_fabric)>("fi_fabric", "FABRIC_1.1");
  fid_fabric* fabric = nullptr;
  ASSERT_EQ(open(&attr, &fabric, nullptr), 0);
  EXPECT_EQ(fabric->api_version, static_cast<uint32_t>(FI_VERSION(1, 9)));
  EXPECT_EQ(fi_close(&fabric->fid), 0);
}

}  // namespace
}  // namespace heddle::test
