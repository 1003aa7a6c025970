// SPDX-License-Identifier: Apache-2.0
// A shared library that is not a simulator.
extern "C" __attribute__((visibility("default"))) int NotASimulator() {
  return 0;
}
