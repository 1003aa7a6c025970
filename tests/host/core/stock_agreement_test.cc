// SPDX-License-Identifier: Apache-2.0
// Strings of our core beside those of the stock one, both in this process.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/host/core/info_pointer.h"

namespace heddle::test {
namespace {

template <typename Function>
Function* Ours(const char* name) {
  static void* const library = dlopen(HEDDLE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  void* symbol = dlsym(library, name);
  EXPECT_NE(symbol, nullptr) << name;
  return reinterpret_cast<Function*>(symbol);
}

std::string Text(decltype(fi_tostr_r)* to_text, const void* data,
                 fi_type type) {
  std::array<char, 8192> buffer = {};
  to_text(buffer.data(), buffer.size(), data, type);
  return buffer.data();
}

TEST(StockAgreement, ErrorTextsAreTheSame) {
  auto* ours = Ours<decltype(fi_strerror)>("fi_strerror");
  ASSERT_NE(ours, fi_strerror);
  for (int number = 0; number <= FI_ENORX; ++number) {
    // The stock table has holes between the system's and its own numbers.
    if (number < 134 || number >= FI_ERRNO_OFFSET) {
      const std::string expected = fi_strerror(number);
      if (expected.find("Unknown error") == std::string::npos) {
        EXPECT_EQ(ours(number), expected) << number;
      }
    }
  }
}

// The first pair of lines that differ, "" if there is none.
std::string FirstDifference(const std::string& left, const std::string& right) {
  std::istringstream left_lines(left);
  std::istringstream right_lines(right);
  std::string left_line;
  std::string right_line;
  while (true) {
    const bool more_left = !std::getline(left_lines, left_line).fail();
    const bool more_right = !std::getline(right_lines, right_line).fail();
    if (more_left != more_right || left_line != right_line) {
      return left_line.append(" instead of ").append(right_line);
    }
    if (!more_left) {
      return "";
    }
  }
}

struct EnumerationCase {
  fi_type type;
  uint32_t first;
  uint32_t count;
};

TEST(StockAgreement, EnumeratorNamesAreTheSame) {
  auto* ours = Ours<decltype(fi_tostr_r)>("fi_tostr_r");
  const EnumerationCase cases[] = {
      {FI_TYPE_EP_TYPE, 0, 7},       {FI_TYPE_ADDR_FORMAT, 0, 16},
      {FI_TYPE_THREADING, 0, 7},     {FI_TYPE_PROGRESS, 0, 4},
      {FI_TYPE_PROTOCOL, 0, 26},     {FI_TYPE_AV_TYPE, 0, 4},
      {FI_TYPE_ATOMIC_TYPE, 0, 16},  {FI_TYPE_ATOMIC_OP, 0, 20},
      {FI_TYPE_EQ_EVENT, 0, 8},      {FI_TYPE_CQ_FORMAT, 0, 6},
      {FI_TYPE_COLLECTIVE_OP, 0, 9},
  };
  for (const EnumerationCase& each : cases) {
    for (uint32_t value = each.first; value < each.count; ++value) {
      const std::string expected = Text(fi_tostr_r, &value, each.type);
      // Names that stock 1.17 lacks (FI_PROTO_MXM, ...) may be there in ours.
      if (expected != "Unknown") {
        EXPECT_EQ(Text(ours, &value, each.type), expected)
            << each.type << " " << value;
      }
    }
  }
}

TEST(StockAgreement, FlagNamesAreTheSame) {
  auto* ours = Ours<decltype(fi_tostr_r)>("fi_tostr_r");
  for (const fi_type type : {FI_TYPE_CAPS, FI_TYPE_OP_FLAGS, FI_TYPE_MODE,
                             FI_TYPE_MSG_ORDER, FI_TYPE_CQ_EVENT_FLAGS}) {
    for (int bit = 0; bit < 64; ++bit) {
      const uint64_t flag = 1ULL << bit;
      const std::string expected = Text(fi_tostr_r, &flag, type);
      if (!expected.empty()) {
        EXPECT_EQ(Text(ours, &flag, type), expected) << type << " bit " << bit;
      }
    }
  }
}

TEST(StockAgreement, WholeInfoReadsTheSame) {
  auto* ours = Ours<decltype(fi_tostr_r)>("fi_tostr_r");
  const Answer answer = Ask(nullptr);
  ASSERT_EQ(answer.result, 0);
  int compared = 0;
  for (const fi_info* info = answer.info.get(); info != nullptr;
       info = info->next) {
    if (info->addr_format == FI_SOCKADDR_IN && info->nic == nullptr) {
      // Stock 1.17 has no name for this flag.
      info->tx_attr->op_flags &= ~FI_COMMIT_COMPLETE;
      info->rx_attr->op_flags &= ~FI_COMMIT_COMPLETE;
      EXPECT_EQ(FirstDifference(Text(ours, info, FI_TYPE_INFO),
                                Text(fi_tostr_r, info, FI_TYPE_INFO)),
                "");
      ++compared;
    }
  }
  EXPECT_GT(compared, 0) << "stock libfabric offered nothing to compare";
}

}  // namespace
}  // namespace heddle::test
