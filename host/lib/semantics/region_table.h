// SPDX-License-Identifier: Apache-2.0
// Memory regions that peers may reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "hw/contract/memory_key.h"

namespace heddle::semantics {

// What peers may do; fetching atomics need both (libfabric 292).
inline constexpr uint8_t kRemoteRead = 1;
inline constexpr uint8_t kRemoteWrite = 2;

struct RegionSpec {
  static constexpr uint32_t kAnyEndpoint = 0xffffffff;

  uint64_t base = 0;    // Address of the first byte.
  uint64_t length = 0;  // Bytes; `base + length` is at most 2^64 - 1.
  uint8_t access = 0;
  // Remote addresses are those of the owner (FI_MR_VIRT_ADDR), else offsets.
  bool virtual_address = false;
  bool idempotent_safe = false;  // Idempotent (RUDI) requests are allowed.
  bool provider_key = false;     // Else `key` is the user's (libfabric 128).
  uint64_t key = 0;
  uint32_t job_id = 0;               // Peers of other jobs do not find it.
  uint32_t endpoint = kAnyEndpoint;  // The one that it serves.
  uint64_t cookie = 0;               // The owner's, e.g. its counter.
};

// At most `capacity` regions, each with a key of its own; user and provider
// keys never meet.
//
// Deregistration: from `Deregister` on nobody finds the region; it stays, with
// its key taken, until what `Acquire` counted is released. A slot is used by
// kGenerations provider keys, then no more. Lookup of a key costs O(1),
// expected. Nothing allocates after construction.
//
// Thread safety: one thread at a time.
class RegionTable {
 public:
  // At most 2^contract::kKeyIndexBits regions. `secret` is what provider keys
  // are hidden with. Throws std::bad_alloc.
  RegionTable(uint32_t capacity, uint64_t secret);

  enum class Status : uint8_t {
    kOk,
    kFull,      // No free region.
    kKeyInUse,  // By a region, or one that still drains: FI_ENOKEY.
    kBadKey,    // A user key of more than contract::kKeyUserBits bits.
    kBadRange,  // The region wraps.
  };
  struct Registered {
    Status status = Status::kFull;
    uint32_t region = kNone;
    uint64_t key = 0;
  };
  [[nodiscard]] Registered Register(const RegionSpec& spec) noexcept;

  // Region of a key that peers may use, or kNone.
  uint32_t Find(uint64_t key) const noexcept;
  // Of a region that was found.
  const RegionSpec& spec(uint32_t region) const noexcept {
    return slots_[region].spec;
  }

  // Counts an access that is under way. False when the region is not live:
  // the access must not begin (libfabric: nothing is touched after fi_close).
  [[nodiscard]] bool Acquire(uint32_t region) noexcept;

  enum class Drain : uint8_t {
    kDone,      // Nothing under way: the region is gone.
    kPending,   // Accesses under way; the last `Release` answers kDone.
    kNotFound,  // No such region or access.
  };
  // Ends one access.
  Drain Release(uint32_t region) noexcept;
  // Marks the region dead.
  Drain Deregister(uint32_t region) noexcept;

  // Regions, with those that drain.
  uint32_t size() const noexcept { return size_; }
  uint32_t under_way(uint32_t region) const noexcept {
    return slots_[region].accesses;
  }

 private:
  enum class State : uint8_t { kFree, kLive, kDraining };
  struct Slot {
    RegionSpec spec;
    uint32_t accesses = 0;
    uint32_t generation = 0;  // Provider keys made so far.
    State state = State::kFree;
    ListLink free;
    ListLink chain;  // Of user keys.
  };
  using Free = IndexList<Slot, &Slot::free>;
  using Chain = IndexList<Slot, &Slot::chain>;

  // Bucket of a user key.
  size_t Bucket(uint64_t key) const noexcept;
  uint32_t FindUser(uint64_t key) const noexcept;
  void End(uint32_t region) noexcept;

  contract::KeyMaker keys_;
  uint64_t secret_;
  std::vector<Slot> slots_;
  std::vector<Chain> buckets_;  // A power of two.
  Free free_;
  uint32_t size_ = 0;
};

}  // namespace heddle::semantics
