// SPDX-License-Identifier: Apache-2.0
// Operations of several descriptors (contract `tx_flag.more`).
#pragma once

#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::soft::engine {

// Thread safety: one thread at a time.
class OperationGroups {
 public:
  struct Failure {
    contract::Status status = contract::Status::kOk;
    uint16_t detail = 0;
    uint16_t position = 0;
  };
  struct Group {
    uint32_t open = 0;  // Descriptors taken whose messages go on.
    uint32_t last = semantics::kNone;  // Message of the last one, once over.
    Failure failure;     // That of the first descriptor that failed.
    bool ended = false;  // The last descriptor was taken.
    semantics::ListLink free;
  };

  explicit OperationGroups(uint32_t capacity) : free_(&groups_, capacity) {}

  bool full() const noexcept { return free_.empty(groups_); }
  // There is room.
  uint32_t Open() noexcept {
    const uint32_t group = free_.Pop(groups_);
    groups_[group] = {};
    return group;
  }
  void Close(uint32_t group) noexcept { free_.Push(groups_, group); }
  Group& operator[](uint32_t group) noexcept { return groups_[group]; }

  // A descriptor at `failure.position` failed.
  void Fail(uint32_t group, const Failure& failure) noexcept {
    Failure& first = groups_[group].failure;
    if (first.status == contract::Status::kOk ||
        static_cast<int16_t>(failure.position - first.position) < 0) {
      first = failure;
    }
  }

 private:
  std::vector<Group> groups_;
  semantics::FreeList<Group, &Group::free> free_;
};

}  // namespace heddle::soft::engine
