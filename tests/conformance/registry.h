// SPDX-License-Identifier: Apache-2.0
// Links tests with the requirements that they show.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace heddle::conformance {

struct RegisteredTest {
  std::string name;          // Suite.Name, as GoogleTest has it.
  std::vector<int> numbers;  // The requirements that its verdict is of.
};

// All tests of this program, in the order of their registration.
std::vector<RegisteredTest>& RegisteredTests();

// Adds a test; for CONFORMANCE_TEST alone.
bool Register(const char* name, std::initializer_list<int> numbers);

}  // namespace heddle::conformance

// A test of the fixture `suite` that shows the requirements of the numbers.
#define CONFORMANCE_TEST(suite, name, ...)                              \
  [[maybe_unused]] const bool registered_##suite##_##name =             \
      ::heddle::conformance::Register(#suite "." #name, {__VA_ARGS__}); \
  TEST_F(suite, name)
