// SPDX-License-Identifier: Apache-2.0
// Puts the library of a device in the place of those installed, before the
// first call.
#include <cstdlib>

namespace heddle::test {
namespace {

[[maybe_unused]] const bool path_is_set = [] {
  setenv("FI_HEDDLE_SIM_PATH", HEDDLE_TEST_SIM, /*replace=*/0);
  return true;
}();

}  // namespace
}  // namespace heddle::test
