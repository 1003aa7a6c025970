// SPDX-License-Identifier: Apache-2.0
// Counters and their cells in host memory.
#pragma once

#include <cstdint>

#include "host/lib/semantics/counter.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/host_access.h"
#include "hw/soft/engine/lazy_table.h"
#include "hw/soft/engine/statistics.h"

namespace heddle::soft::engine {

// Guarantees: the cell holds the counter when a call returns; `echo` is stored
// after what the doorbell changed.
//
// Thread safety: one thread at a time.
class Counters {
 public:
  Counters(uint32_t count, HostAccess* host, Statistics* statistics)
      : host_(host), statistics_(statistics), counters_(count) {}

  // Starts the counter at 0. False: no such counter.
  bool Write(uint32_t index, const contract::CounterCfg& cfg);
  // `number` is an index plus 1, as contexts and regions name counters; 0 and
  // counters that are off count nothing.
  void Count(uint16_t number, contract::Status status);
  // `offset` is in the counter's doorbell page.
  void Doorbell(uint32_t index, uint32_t offset, uint64_t value);

 private:
  struct Entry {
    semantics::Counter counter;
    uint64_t cell = 0;
    uint64_t echo = 0;
    bool alive = false;
  };

  void StoreValue(const Entry& entry);
  void StoreErrors(const Entry& entry);

  HostAccess* host_;
  Statistics* statistics_;
  LazyTable<Entry, 16> counters_;
};

}  // namespace heddle::soft::engine
