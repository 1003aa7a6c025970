// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/registry.h"

namespace heddle::conformance {

std::vector<RegisteredTest>& RegisteredTests() {
  static std::vector<RegisteredTest> tests;
  return tests;
}

bool Register(const char* name, std::initializer_list<int> numbers) {
  RegisteredTests().push_back({name, numbers});
  return true;
}

}  // namespace heddle::conformance
