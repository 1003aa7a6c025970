// SPDX-License-Identifier: Apache-2.0
// Memory for the objects of a control program that runs on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "firmware/base/hal.h"

namespace heddle::sim::device {

// Thread safety: as of the control program.
class ObjectHeap final : public firmware::ObjectMemory {
 public:
  void* Take(uint32_t bytes) override {
    try {
      auto block = std::make_unique<std::byte[]>(bytes);
      return blocks_.emplace_back(std::move(block)).get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace heddle::sim::device
