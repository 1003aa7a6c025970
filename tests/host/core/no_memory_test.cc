// SPDX-License-Identifier: Apache-2.0
// fi_getinfo and fi_dupinfo when memory runs out, at each allocation in turn.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "tests/host/core/info_pointer.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#error "a sanitizer has its own malloc; leave this test out"
#endif

// Of glibc, below the names that are replaced here.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void __libc_free(void* memory);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

// Allocations of this thread while it is counted.
thread_local bool counting = false;
thread_local int until_failure = 0;  // 0: none fails.
thread_local int live = 0;

// True if this allocation fails.
bool Fails() {
  if (!counting || until_failure == 0 || --until_failure != 0) {
    return false;
  }
  errno = ENOMEM;
  return true;
}

void* Count(void* memory) {
  live += counting && memory != nullptr ? 1 : 0;
  return memory;
}

}  // namespace

extern "C" void* malloc(size_t bytes) {
  return Fails() ? nullptr : Count(__libc_malloc(bytes));
}

extern "C" void* calloc(size_t count, size_t bytes) {
  return Fails() ? nullptr : Count(__libc_calloc(count, bytes));
}

extern "C" void free(void* memory) {
  live -= counting && memory != nullptr ? 1 : 0;
  __libc_free(memory);
}

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  setenv("FI_HEDDLE_DEVICE", "rtl", 1);
  setenv("FI_HEDDLE_IP", "10.1.2.3", 1);
  return true;
}();

TEST(NoMemory, GetInfoFailsCleanlyAtEveryAllocation) {
  // What is allocated once for the process stays.
  ASSERT_EQ(Ask(nullptr).result, 0);
  int result = -FI_ENOMEM;
  int round = 0;
  while (result != 0) {
    ASSERT_LT(++round, 1000);
    fi_info garbage = {};
    fi_info* info = &garbage;
    live = 0;
    until_failure = round;
    counting = true;
    result = fi_getinfo(FI_VERSION(1, 17), "10.0.0.9", "90", FI_NUMERICHOST,
                        nullptr, &info);
    if (result == 0) {
      fi_freeinfo(info);
      info = nullptr;
    }
    counting = false;
    EXPECT_EQ(live, 0) << "allocation " << round;
    EXPECT_EQ(info, nullptr) << "allocation " << round;
    // The resolver of the system has its own way of saying it.
    EXPECT_TRUE(result == 0 || result == -FI_ENOMEM || result == -FI_ENODATA)
        << result;
  }
  // Structures, addresses, names and the nic.
  EXPECT_GT(round, 15);
}

TEST(NoMemory, DuplicateFailsCleanlyAtEveryAllocation) {
  const Answer answer = Ask(nullptr);
  ASSERT_EQ(answer.result, 0);
  fi_info* copy = nullptr;
  int round = 0;
  while (copy == nullptr) {
    ASSERT_LT(++round, 1000);
    live = 0;
    until_failure = round;
    counting = true;
    copy = fi_dupinfo(answer.info.get());
    counting = false;
    if (copy == nullptr) {
      EXPECT_EQ(live, 0) << "allocation " << round;
    }
  }
  EXPECT_GT(round, 12);
  fi_freeinfo(copy);
}

}  // namespace
}  // namespace heddle::test
