// SPDX-License-Identifier: Apache-2.0
// Names of the target PDCs that ended lately.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/sim/soft/wire/fabric_address.h"

namespace heddle::sim::soft {

// Mixes `value` into `hash`.
constexpr uint64_t Mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

// What tells a PDC from all others of its initiator (design §3).
struct PdcIdentity {
  FabricAddress source;
  uint32_t start_psn = 0;
  uint16_t spdcid = 0;

  bool operator==(const PdcIdentity&) const = default;
  uint64_t Hash() const {
    return Mixed(Mixed(source.lo, source.hi),
                 uint64_t{start_psn} << 16 | spdcid);
  }
};

// The last kPlaces of them, each until its time is over. With more, the oldest
// is forgotten early; its initiator alone could tell, by a SYN that is late.
class Tombstones {
 public:
  static constexpr uint32_t kPlaces = 4096;

  Tombstones() : places_(kPlaces), buckets_(kPlaces, kNone) {}

  // One whose `until_ns` lies before that of an earlier call is kept as long as
  // that.
  void Add(const PdcIdentity& identity, uint64_t until_ns) {
    if (tail_ - head_ == kPlaces) {
      Drop();
    }
    const uint32_t place = tail_++ % kPlaces;
    uint32_t& bucket = buckets_[identity.Hash() % kPlaces];
    places_[place] = {identity, until_ns, bucket};
    bucket = place;
  }

  bool Knows(const PdcIdentity& identity, uint64_t now_ns) {
    while (head_ != tail_ && places_[head_ % kPlaces].until <= now_ns) {
      Drop();
    }
    uint32_t place = buckets_[identity.Hash() % kPlaces];
    while (place != kNone && places_[place].identity != identity) {
      place = places_[place].next;
    }
    return place != kNone;
  }

 private:
  struct Place {
    PdcIdentity identity;
    uint64_t until = 0;
    uint32_t next = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void Drop() {
    const uint32_t place = head_++ % kPlaces;
    uint32_t* link = &buckets_[places_[place].identity.Hash() % kPlaces];
    while (*link != place) {
      link = &places_[*link].next;
    }
    *link = places_[place].next;
  }

  std::vector<Place> places_;
  std::vector<uint32_t> buckets_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

}  // namespace heddle::sim::soft
