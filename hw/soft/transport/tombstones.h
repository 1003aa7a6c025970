// SPDX-License-Identifier: Apache-2.0
// Names of the target PDCs that ended lately.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/soft/rules/accept.h"
#include "hw/soft/wire/fabric_address.h"

namespace heddle::soft::transport {

// Mixes `value` into `hash`.
constexpr uint64_t Mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

// What distinguishes a PDC from all others of its initiator (UET 2.16).
struct PdcIdentity {
  wire::FabricAddress source;
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

  // One whose `until_ns` lies before that of an earlier call is kept as long as
  // that.
  void Add(const PdcIdentity& identity, uint64_t until_ns) {
    if (places_.empty()) {
      places_.reserve(kPlaces);
      buckets_.resize(kPlaces, kNone);
    }
    if (tail_ - head_ == kPlaces) {
      Drop();
    }
    const uint32_t place = tail_++ % kPlaces;
    uint32_t& bucket = buckets_[identity.Hash() % kPlaces];
    if (place == places_.size()) {
      places_.emplace_back();
    }
    places_[place] = {identity, until_ns, bucket};
    bucket = place;
  }

  // All so far are of an earlier incarnation of this end from now on.
  void NewIncarnation() { former_ = tail_; }

  using Ended = rules::Named::Ended;
  Ended Find(const PdcIdentity& identity, uint64_t now_ns) {
    while (head_ != tail_ && places_[head_ % kPlaces].until <= now_ns) {
      Drop();
    }
    if (head_ == tail_) {
      return Ended::kNo;
    }
    uint32_t place = buckets_[identity.Hash() % kPlaces];
    while (place != kNone && places_[place].identity != identity) {
      place = places_[place].next;
    }
    if (place == kNone) {
      return Ended::kNo;
    }
    const uint32_t number = head_ + (place - head_) % kPlaces;
    return static_cast<int32_t>(number - former_) < 0 ? Ended::kBefore
                                                      : Ended::kNow;
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

  std::vector<Place> places_;  // None before the first.
  std::vector<uint32_t> buckets_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t former_ = 0;  // Those before are of earlier incarnations.
};

}  // namespace heddle::soft::transport
