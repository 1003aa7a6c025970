// SPDX-License-Identifier: Apache-2.0
// Ownership of struct fi_info through the library under test.
#pragma once

#include <rdma/fabric.h>

#include <memory>

namespace heddle::test {

struct InfoFree {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoFree>;

// Hints with every attribute structure, zeroed.
inline Info MakeHints() {
  return Info(fi_allocinfo());
}

struct Answer {
  int result;
  Info info;
};

inline Answer Ask(const fi_info* hints, const char* node = nullptr,
                  const char* service = nullptr, uint64_t flags = 0,
                  uint32_t version = FI_VERSION(1, 17)) {
  // Not null: a failure must clear it.
  fi_info garbage = {};
  fi_info* info = &garbage;
  const int result = fi_getinfo(version, node, service, flags, hints, &info);
  return {result, Info(info)};
}

}  // namespace heddle::test
