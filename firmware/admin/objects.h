// SPDX-License-Identifier: Apache-2.0
// What admin commands have created, and who uses what.
#pragma once

#include <stdint.h>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// The functions of a NIC are numbered; a command acts only on objects of the
// function whose admin queue it came from.
using Function = uint8_t;

struct Endpoint {
  bool used = false;
  Function function = 0;
  uint32_t port = 0;
  uint32_t job_id = 0;
  uint32_t users = 0;  // Contexts and regions.

  // A port is {RI block, PIDonFEP}.
  uint16_t pid_on_fep() const {
    return static_cast<uint16_t>(port & ((1U << contract::kPidBits) - 1));
  }
  uint16_t first_ri() const {
    return static_cast<uint16_t>((port >> contract::kPidBits) *
                                 contract::kRiBlock);
  }
};

struct Cq {
  bool used = false;
  Function function = 0;
  uint32_t users = 0;  // Contexts.
};

struct Counter {
  bool used = false;
  Function function = 0;
  uint32_t users = 0;  // Contexts and regions.
};

// A memory region. Its table entry is cleared when it is deregistered: accesses
// under way have what they need.
struct Region {
  bool used = false;
  Function function = 0;
  bool bound = false;   // To `endpoint`.
  uint8_t counter = 0;  // Plus 1; 0: none.
  uint32_t endpoint = 0;
  uint32_t generation = 0;  // Provider keys made of this entry so far.
  uint64_t key = 0;
};

// A transmit or receive context. `config` is its table entry, kept because the
// entry is disabled with all its other fields in place: what is under way
// still needs the ring, the cell and the queue.
template <typename Config>
struct Context {
  bool used = false;
  Function function = 0;
  uint8_t cq = 0;
  uint32_t endpoint = 0;
  Config config;
};

using TxContext = Context<contract::TxCtxCfg>;
using RxContext = Context<contract::RxCtxCfg>;

// A bounded array of objects; the index is the object number.
template <typename T, uint32_t kCapacity>
class ObjectTable {
 public:
  // At most `limit` objects from now on; at most `kCapacity`.
  void set_limit(uint32_t limit) {
    limit_ = limit < kCapacity ? limit : kCapacity;
  }
  uint32_t limit() const { return limit_; }

  // The object of that number if `function` owns it; null otherwise, also when
  // it exists and belongs to another.
  T* Find(uint32_t index, Function function) {
    if (index >= limit_ || !objects_[index].used ||
        objects_[index].function != function) {
      return nullptr;
    }
    return &objects_[index];
  }

  // Lowest free number; `limit()` when there is none.
  uint32_t FindFree() const {
    uint32_t index = 0;
    while (index < limit_ && objects_[index].used) {
      ++index;
    }
    return index;
  }

  // A free number, each in turn; `limit()` when there is none. For objects of
  // which the NIC tells the uses of one number apart by a counter, while what
  // is left of an early use may wait for a silent peer.
  uint32_t TakeTurn() {
    for (uint32_t i = 0; i < limit_; ++i) {
      const uint32_t index = (next_ + i) % limit_;
      if (!objects_[index].used) {
        next_ = index + 1;
        return index;
      }
    }
    return limit_;
  }

  // Lowest number in use; `limit()` when there is none.
  uint32_t FindUsed() const {
    uint32_t index = 0;
    while (index < limit_ && !objects_[index].used) {
      ++index;
    }
    return index;
  }

  // Precondition for both: index < limit().
  T& at(uint32_t index) { return objects_[index]; }
  const T& at(uint32_t index) const { return objects_[index]; }

 private:
  T objects_[kCapacity];
  uint32_t limit_ = 0;
  uint32_t next_ = 0;  // Whose turn it is, if it is free.
};

// Capacities are what BAR2 has doorbell pages for; endpoints have none, and
// one without contexts of its own serves nobody.
inline constexpr uint32_t kMaxTxContexts =
    contract::kRxPageFirst - contract::kTxPageFirst;
inline constexpr uint32_t kMaxRxContexts =
    contract::kCqPageFirst - contract::kRxPageFirst;
inline constexpr uint32_t kMaxCqs =
    contract::kCounterPageFirst - contract::kCqPageFirst;
inline constexpr uint32_t kMaxEndpoints = kMaxTxContexts;
inline constexpr uint32_t kMaxCounters =
    contract::kBar2Bytes / contract::kDoorbellPageBytes -
    contract::kCounterPageFirst;
inline constexpr uint32_t kMaxRegions = 1024;

}  // namespace heddle::firmware
