// SPDX-License-Identifier: Apache-2.0
// What admin commands have created, and who uses what.
#pragma once

#include <stdint.h>

#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// The functions of a NIC are numbered; a command acts only on objects of the
// function whose admin queue it came from.
using Function = uint8_t;

struct Endpoint {
  bool used = false;
  Function function = 0;
  bool relative = false;  // Named in its job, else in the address.
  uint32_t port = 0;
  uint32_t job_id = 0;
  uint32_t users = 0;  // Contexts and regions.

  PortName name() const {
    return {.port = port, .space = relative ? JobSpace(job_id) : kAddressSpace};
  }
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
  bool bound = false;    // To `endpoint`.
  uint16_t counter = 0;  // Plus 1; 0: none.
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
  uint16_t cq = 0;
  uint32_t endpoint = 0;
  Config config;
};

using TxContext = Context<contract::TxCtxCfg>;
using RxContext = Context<contract::RxCtxCfg>;

// A bounded array of objects; the index is the object number. Memory for
// `kChunk` neighbours is taken when the first of them is claimed, so that a
// device pays for what was in use at one time, not for what it offers.
template <typename T, uint32_t kCapacity>
class ObjectTable {
 public:
  static constexpr uint32_t kChunk = 64;
  static_assert(kCapacity % kChunk == 0);

  explicit ObjectTable(ObjectMemory& memory) : memory_(memory) {}

  // At most `limit` objects from now on; at most `kCapacity`.
  void set_limit(uint32_t limit) {
    limit_ = limit < kCapacity ? limit : kCapacity;
  }
  uint32_t limit() const { return limit_; }

  // The object of that number if `function` owns it; null otherwise, also when
  // it exists and belongs to another.
  T* Find(uint32_t index, Function function) {
    return IsUsed(index) && at(index).function == function ? &at(index)
                                                           : nullptr;
  }

  bool IsUsed(uint32_t index) const {
    return index < limit_ && chunks_[index / kChunk] != nullptr &&
           at(index).used;
  }

  // Lowest free number; `limit()` when there is none.
  uint32_t FindFree() const {
    uint32_t index = 0;
    while (index < limit_ && IsUsed(index)) {
      ++index;
    }
    return index;
  }

  // A free number, each in turn, of those that `usable(const T&)` allows;
  // `limit()` when there is none. For objects of which the NIC tells the uses
  // of one number apart by a counter, while what is left of an early use may
  // wait for a silent peer. The turn goes round the first numbers, as many as
  // leave half of them free, so that memory follows the number in use.
  template <typename Usable>
  uint32_t FindTurn(Usable usable) {
    for (;;) {
      while (reach_ < limit_ && 2 * used_ >= reach_) {
        Widen();
      }
      for (uint32_t i = 0; i < reach_; ++i) {
        const uint32_t index = (next_ + i) % reach_;
        if (!IsUsed(index) && usable(Value(index))) {
          return index;
        }
      }
      if (reach_ == limit_) {
        return limit_;
      }
      Widen();
    }
  }
  uint32_t FindTurn() {
    return FindTurn([](const T& /*object*/) { return true; });
  }
  // The next turn begins behind `index`.
  void Pass(uint32_t index) { next_ = index + 1; }

  // Lowest number in use; `limit()` when there is none.
  uint32_t FindUsed() const {
    uint32_t index = 0;
    while (index < limit_ && !IsUsed(index)) {
      index += chunks_[index / kChunk] == nullptr ? kChunk : 1;
    }
    return index < limit_ ? index : limit_;
  }

  // Has memory for the object. False: there is none left. Precondition:
  // index < limit().
  [[nodiscard]] bool Prepare(uint32_t index) {
    T*& chunk = chunks_[index / kChunk];
    if (chunk == nullptr) {
      chunk = static_cast<T*>(memory_.Take(kChunk * sizeof(T)));
      for (uint32_t i = 0; chunk != nullptr && i < kChunk; ++i) {
        chunk[i] = T{};
      }
    }
    return chunk != nullptr;
  }

  // Precondition for all three: `Prepare(index)` was true.
  T& at(uint32_t index) { return chunks_[index / kChunk][index % kChunk]; }
  const T& at(uint32_t index) const {
    return chunks_[index / kChunk][index % kChunk];
  }
  // `used` changes through this alone.
  void Set(uint32_t index, const T& object) {
    used_ += (object.used ? 1U : 0U) - (at(index).used ? 1U : 0U);
    at(index) = object;
  }

  // The object, or what it would be at first.
  T Value(uint32_t index) const {
    return chunks_[index / kChunk] == nullptr ? T{} : at(index);
  }

 private:
  void Widen() {
    const uint32_t wider = reach_ == 0 ? kChunk : 2 * reach_;
    reach_ = wider < limit_ ? wider : limit_;
  }

  ObjectMemory& memory_;
  T* chunks_[kCapacity / kChunk] = {};
  uint32_t limit_ = 0;
  uint32_t used_ = 0;
  uint32_t reach_ = 0;  // Numbers that take turns.
  uint32_t next_ = 0;   // Whose turn it is, if it is free.
};

// The most that this program manages, whatever a device has.
inline constexpr uint32_t kMaxTxContexts = 1024;
inline constexpr uint32_t kMaxRxContexts = 1024;
inline constexpr uint32_t kMaxCqs = 1024;
inline constexpr uint32_t kMaxCounters = 1024;
inline constexpr uint32_t kMaxRegions = 65536;
inline constexpr uint32_t kMaxEndpoints = kMaxTxContexts + kMaxRxContexts;

}  // namespace heddle::firmware
