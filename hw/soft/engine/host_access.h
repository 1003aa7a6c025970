// SPDX-License-Identifier: Apache-2.0
// Host memory, refused accesses counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "hw/soft/engine/dma_port.h"
#include "hw/soft/engine/statistics.h"

namespace heddle::soft::engine {

// Thread safety: one thread at a time.
class HostAccess {
 public:
  HostAccess(DmaPort* memory, Statistics* statistics)
      : memory_(memory), statistics_(statistics) {}

  [[nodiscard]] bool Read(uint64_t iova, std::span<uint8_t> out) {
    return memory_->Read(iova, out) ||
           Refused(contract::Statistic::kDmaReadErrors);
  }
  // A structure of the contract, whose layout is that of host memory.
  template <typename T>
  [[nodiscard]] bool ReadStruct(uint64_t iova, T* out) {
    return Read(iova, {reinterpret_cast<uint8_t*>(out), sizeof(T)});
  }
  [[nodiscard]] bool Write(uint64_t iova, std::span<const uint8_t> bytes) {
    return memory_->Write(iova, bytes) ||
           Refused(contract::Statistic::kDmaWriteErrors);
  }
  // What nobody waits for: a refusal is counted, nothing else.
  void Store(uint64_t iova, uint64_t value) {
    if (!memory_->Store(iova, value)) {
      Refused(contract::Statistic::kDmaWriteErrors);
    }
  }
  void Publish(uint64_t iova, const contract::Completion& entry) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&entry);
    if (!memory_->Publish(iova, std::span<const uint8_t, 64>(bytes, 64))) {
      Refused(contract::Statistic::kDmaWriteErrors);
    }
  }

 private:
  bool Refused(contract::Statistic which) {
    statistics_->Count(which);
    return false;
  }

  DmaPort* memory_;
  Statistics* statistics_;
};

}  // namespace heddle::soft::engine
