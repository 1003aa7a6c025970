// SPDX-License-Identifier: Apache-2.0
// Entry points of each version node against structures of that version: a
// structure ends where an unreadable page begins.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fi_eq.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
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
                    Layout{"FABRIC_1.3", 120, 80, 64, 96, 192, 32},
                    Layout{"FABRIC_1.7", 120, 80, 64, 96, 200, 32},
                    Layout{"FABRIC_1.8", 120, 80, 64, 96, 208, 32}));

// Fields at the offsets that a compiler gave them for the headers of the
// version: where the application has put them, whatever our headers say.
struct Field {
  const char* node;
  uint32_t version;  // The oldest API of the node.
  const char* structure;
  size_t offset;
  size_t bytes;
};

void PrintTo(const Field& field, std::ostream* stream) {
  *stream << field.node << " " << field.structure << "+" << field.offset;
}

class LastField : public testing::TestWithParam<Field> {
 protected:
  // Memory of hints whose attributes are longer than any version has, filled
  // with what an application that does not know the rest has there.
  LastField() {
    hints_.tx_attr = reinterpret_cast<fi_tx_attr*>(tx_.data());
    hints_.rx_attr = reinterpret_cast<fi_rx_attr*>(rx_.data());
    hints_.ep_attr = reinterpret_cast<fi_ep_attr*>(ep_.data());
    hints_.domain_attr = reinterpret_cast<fi_domain_attr*>(domain_.data());
    hints_.caps = FI_MSG;
  }

  void Set(const Field& field, uint64_t value) {
    const std::string structure = field.structure;
    auto& bytes = structure == "tx_attr"   ? tx_
                  : structure == "ep_attr" ? ep_
                                           : domain_;
    memcpy(bytes.data() + field.offset, &value, field.bytes);
  }

  int Ask(const char* node, uint32_t version) {
    auto* getinfo = Find<decltype(fi_getinfo)>("fi_getinfo", node);
    auto* freeinfo = Find<decltype(fi_freeinfo)>("fi_freeinfo", node);
    fi_info* info = nullptr;
    const int result = getinfo(version, nullptr, nullptr, 0, &hints_, &info);
    freeinfo(info);
    return result;
  }

  alignas(8) std::array<char, 512> tx_ = {};
  alignas(8) std::array<char, 512> rx_ = {};
  alignas(8) std::array<char, 512> ep_ = {};
  alignas(8) std::array<char, 512> domain_ = {};
  fi_info hints_ = {};
};

TEST_P(LastField, IsReadByItsVersionAndNotByOlderOnes) {
  const Field& field = GetParam();
  EXPECT_EQ(Ask(field.node, field.version), 0);
  // More than is offered, whatever the field is.
  Set(field, 0x7fffffff);
  EXPECT_EQ(Ask(field.node, field.version), -FI_ENODATA);
  // The same memory, of an application that passes an older version ...
  EXPECT_EQ(Ask(field.node, field.version - 1), 0);
  // ... or was linked with an older library.
  EXPECT_EQ(Ask("FABRIC_1.0", FI_VERSION(1, 4)), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, LastField,
    testing::Values(
        Field{"FABRIC_1.1", FI_VERSION(1, 5), "ep_attr", 80, 8},
        Field{"FABRIC_1.1", FI_VERSION(1, 5), "domain_attr", 120, 8},
        Field{"FABRIC_1.1", FI_VERSION(1, 5), "domain_attr", 136, 8},
        Field{"FABRIC_1.3", FI_VERSION(1, 9), "tx_attr", 72, 4},
        Field{"FABRIC_1.3", FI_VERSION(1, 9), "domain_attr", 184, 4},
        Field{"FABRIC_1.7", FI_VERSION(1, 20), "domain_attr", 192, 8},
        Field{"FABRIC_1.8", FI_VERSION(2, 0), "domain_attr", 200, 4}));

// An answer as an application compiled for 1.8 reads it.
TEST(NewestLayout, AnswerIsWholeAndZeroWhereItSaysNothing) {
  auto* getinfo = Find<decltype(fi_getinfo)>("fi_getinfo", "FABRIC_1.8");
  auto* dupinfo = Find<decltype(fi_dupinfo)>("fi_dupinfo", "FABRIC_1.8");
  auto* freeinfo = Find<decltype(fi_freeinfo)>("fi_freeinfo", "FABRIC_1.8");
  fi_info* info = nullptr;
  ASSERT_EQ(getinfo(FI_VERSION(2, 0), nullptr, nullptr, 0, nullptr, &info), 0);
  const std::array<char, 16> zeros = {};
  const auto* domain = reinterpret_cast<const char*>(info->domain_attr);
  EXPECT_EQ(memcmp(domain + 192, zeros.data(), 16), 0);
  uint32_t version = 0;
  memcpy(&version, reinterpret_cast<const char*>(info->fabric_attr) + 28, 4);
  EXPECT_EQ(version, static_cast<uint32_t>(FI_VERSION(2, 0)));
  // What such an application writes there, a duplicate keeps.
  const uint64_t keys = 7;
  const uint32_t groups = 9;
  memcpy(const_cast<char*>(domain) + 192, &keys, 8);
  memcpy(const_cast<char*>(domain) + 200, &groups, 4);
  fi_info* copy = dupinfo(info);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(memcmp(copy->domain_attr, info->domain_attr, 8), 0);
  EXPECT_EQ(memcmp(reinterpret_cast<const char*>(copy->domain_attr) + 192,
                   domain + 192, 16),
            0);
  freeinfo(info);
  freeinfo(copy);
}

TEST(NewestLayout, OneProgressModelSetsBoth) {
  auto* getinfo = Find<decltype(fi_getinfo)>("fi_getinfo", "FABRIC_1.8");
  auto* freeinfo = Find<decltype(fi_freeinfo)>("fi_freeinfo", "FABRIC_1.8");
  fi_domain_attr domain = {};
  fi_info hints = {};
  hints.domain_attr = &domain;
  domain.data_progress = FI_PROGRESS_MANUAL;
  for (const uint32_t version : {FI_VERSION(2, 0), FI_VERSION(1, 17)}) {
    // The memory beyond the installed header's structure is not ours to lend.
    alignas(8) std::array<char, 208> newest = {};
    memcpy(newest.data(), &domain, sizeof(domain));
    hints.domain_attr = reinterpret_cast<fi_domain_attr*>(newest.data());
    fi_info* info = nullptr;
    ASSERT_EQ(getinfo(version, nullptr, nullptr, 0, &hints, &info), 0);
    EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
    EXPECT_EQ(info->domain_attr->control_progress, version == FI_VERSION(2, 0)
                                                       ? FI_PROGRESS_MANUAL
                                                       : FI_PROGRESS_AUTO);
    freeinfo(info);
  }
}

TEST(FabricVersions, NewestOpensByInfo) {
  auto* getinfo = Find<decltype(fi_getinfo)>("fi_getinfo", "FABRIC_1.8");
  auto* freeinfo = Find<decltype(fi_freeinfo)>("fi_freeinfo", "FABRIC_1.8");
  auto* open = Find<int(fi_info*, fid_fabric**, uint64_t, void*)>("fi_fabric2",
                                                                  "FABRIC_1.8");
  fi_info* info = nullptr;
  ASSERT_EQ(getinfo(FI_VERSION(2, 0), nullptr, nullptr, 0, nullptr, &info), 0);
  fid_fabric* fabric = nullptr;
  EXPECT_EQ(open(nullptr, &fabric, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(open(info, &fabric, 1, nullptr), -FI_EINVAL);
  ASSERT_EQ(open(info, &fabric, 0, info), 0);
  EXPECT_EQ(fabric->api_version, static_cast<uint32_t>(FI_VERSION(2, 0)));
  EXPECT_EQ(fabric->fid.context, info);
  EXPECT_EQ(fi_close(&fabric->fid), 0);
  freeinfo(info);
}

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
