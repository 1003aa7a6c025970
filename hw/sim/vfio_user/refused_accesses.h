// SPDX-License-Identifier: Apache-2.0
// What a device was refused of its client's memory.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace heddle::sim::vfio_user {

// Thread safety: none.
class RefusedAccesses {
 public:
  struct Access {
    uint64_t iova = 0;
    uint64_t bytes = 0;
    bool write = false;
  };
  static constexpr size_t kMostKept = 16;

  void Add(const Access& access) {
    ++count_;
    if (first_.size() < kMostKept) {
      first_.push_back(access);
    }
  }

  // The number and the first of them, for a log.
  std::string Text() const {
    std::ostringstream text;
    text << count_ << " accesses refused" << std::hex;
    for (size_t i = 0; i < first_.size(); ++i) {
      text << (i == 0 ? ": " : ", ") << (first_[i].write ? "write" : "read")
           << " of 0x" << first_[i].bytes << " at 0x" << first_[i].iova;
    }
    return text.str();
  }

 private:
  uint64_t count_ = 0;
  std::vector<Access> first_;
};

}  // namespace heddle::sim::vfio_user
