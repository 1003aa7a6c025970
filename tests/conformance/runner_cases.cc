// SPDX-License-Identifier: Apache-2.0
// Each verdict that the runner has to find: see runner_test.py.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/conformance/registry.h"
#include "tests/conformance/runner.h"

namespace heddle::conformance {
namespace {

class Case : public ::testing::Test {};

// Waits for a signal that does not come.
[[noreturn]] void WaitForever() {
  while (true) {
    (void)pause();
  }
}

CONFORMANCE_TEST(Case, Passes, 1) {
  EXPECT_EQ(1, 1);
}

CONFORMANCE_TEST(Case, Fails, 2) {
  EXPECT_EQ(1, 2) << "first";
  ADD_FAILURE() << "second";
}

CONFORMANCE_TEST(Case, Crashes, 3) {
  // As libraries do that print a backtrace and exit.
  (void)raise(SIGSEGV);
}

CONFORMANCE_TEST(Case, Hangs, 4) {
  WaitForever();
}

CONFORMANCE_TEST(Case, IsRefused, 5) {
  Refused("the call", -ENOSYS);
}

CONFORMANCE_TEST(Case, IsNotOffered, 6) {
  NotOffered("the capability");
}

CONFORMANCE_TEST(Case, Exits, 7) {
  std::_Exit(0);
}

// The child of this one has to end with it.
CONFORMANCE_TEST(Case, LeavesAProcess, 8) {
  if (fork() == 0) {
    WaitForever();
  }
}

CONFORMANCE_TEST(Case, PassesBesideOneThatFails, 2, 9) {
  EXPECT_GT(getppid(), 1) << "the runner is the parent of each case";
}

CONFORMANCE_TEST(Case, IsNotOfferedBesideOneThatPasses, 1, 10) {
  NotOffered("something else");
}

CONFORMANCE_TEST(Case, FailsThoughRefused, 11) {
  Refused("the call", -ENOSYS);
  ADD_FAILURE() << "later";
}

CONFORMANCE_TEST(Case, Spins, 12) {
  volatile bool forever = true;
  while (forever) {
  }
}

// As an earlier process of the number of each child left it.
std::string SegmentPath() {
  return "/dev/shm/" + std::to_string(getpid()) + ":conformance_runner_cases";
}
bool leaves_segment = true;  // The runner does.
[[maybe_unused]] const bool fork_is_hooked = [] {
  return pthread_atfork(nullptr, nullptr, [] {
           if (leaves_segment) {
             leaves_segment = false;
             std::ofstream(SegmentPath()) << "left";
           }
         }) == 0;
}();

CONFORMANCE_TEST(Case, BeginsWithoutSegments, 13) {
  EXPECT_TRUE(fork_is_hooked);
  EXPECT_FALSE(leaves_segment);
  EXPECT_FALSE(std::filesystem::exists(SegmentPath()));
}

// Stands for a library that catches the signal of a crash.
[[maybe_unused]] const bool handler_is_set = [] {
  (void)signal(SIGSEGV, [](int) { std::_Exit(1); });
  return true;
}();

}  // namespace
}  // namespace heddle::conformance
