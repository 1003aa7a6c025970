// SPDX-License-Identifier: Apache-2.0
// The share of the checker that knows regions: which bytes a read may bring,
// and which may be there in the end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/differential/checker.h"
#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

// One access comes before another when its initiator saw it complete before it
// posted the other, or when a sync lies between them; with `rma_ordered` a
// write also comes before what its endpoint posts later to the same endpoint.
// Everything else may happen in any order, byte by byte. So, for each byte:
//  - a read brings what a write left that does not come after it, unless
//    another write surely came between; or what was there at the last sync,
//    unless a write surely came before it;
//  - at a sync the byte is that of a write after which no other surely came;
//  - a byte that no write covers is what it was.
// A side that begins anew has other regions: untouched, and what was meant for
// the former ones does not reach them.
// A write that failed may have left any of its bytes, but for one that was
// refused whole, which left none. An access fails only if it asked for what it
// may not, or its region or an endpoint was closed; and then it does fail, with
// the error that says so.
//
// Fed as MessageChecker is. Thread safety: none.
class MemoryChecker {
 public:
  // Both must live as long.
  MemoryChecker(const Stream& stream, Verdict* verdict);

  void Feed(uint32_t side, const Event& event);
  void Settle();

 private:
  struct Access {
    uint32_t number = 0;
    const Operation* operation = nullptr;
    // Places in its initiator's trace.
    uint64_t posted = 0;
    uint64_t completed = UINT64_MAX;
    bool failed = false;
    uint32_t life = 0;  // Of the region that it is for.
    int64_t error = 0;
    bool has_result = false;
    std::vector<uint8_t> result = {};
  };
  struct Region {
    // How often its side had begun anew at the last sync, and has now.
    uint32_t first_life = 0;
    uint32_t life = 0;
    std::vector<uint8_t> before;  // At the last sync.
    std::vector<uint8_t> now;
    bool was_reported = false;  // `now` may differ from `before`.
    bool registered = true;
    bool was_changed = false;  // Since the last sync.
  };

  struct Stretch {
    uint32_t end = 0;
    bool overwritten = false;
    std::vector<const Access*> candidates = {};
  };

  void OnCalled(const Event& event);
  bool Precedes(const Access& first, const Access& second) const;
  bool IsSure(const Access& access) const;
  bool MayFail(const Access& access) const;
  bool MustFail(const Access& access) const;
  bool LeavesNothing(const Access& access) const;
  void CheckOutcome(const Access& access);
  bool MayFailOtherwise(const Access& access) const;
  void CheckNotices();
  void CheckRegion(uint32_t index);
  void OnRenewal(uint32_t side);
  void CheckRead(const Access& read, const std::vector<const Access*>& writes);
  Stretch StretchAt(uint32_t from, uint32_t end, const Access* read,
                    const std::vector<const Access*>& writes) const;
  std::optional<uint32_t> FindForbidden(
      uint32_t from, std::span<const uint8_t> bytes, const Region& region,
      const Access* read, const std::vector<const Access*>& writes) const;
  // The accesses to a region in one of its lives that were not refused.
  std::vector<const Access*> AccessesTo(uint32_t index, uint32_t life,
                                        bool reads) const;
  Region& RegionOf(const Operation& operation) {
    return regions_.at(operation.peer.side * kAreas + operation.region);
  }
  const Region& RegionOf(const Operation& operation) const {
    return regions_.at(operation.peer.side * kAreas + operation.region);
  }
  void Violate(const std::string& what);
  std::string Name(const Access& access) const;

  const Stream& stream_;
  const History history_;
  Verdict* const verdict_;
  std::vector<Region> regions_;
  std::map<uint32_t, Access> accesses_;
  std::array<uint64_t, kMaxSides> clock_ = {};
  std::array<std::vector<uint64_t>, kMaxSides> notices_;
  std::array<bool, kMaxPlaces> closed_ = {};
  std::array<bool, kMaxPlaces> was_closed_ = {};
  std::array<bool, kMaxSides> was_renewed_ = {};  // Since the last sync.
};

}  // namespace heddle::differential
