// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/region_table.h"

#include "host/lib/semantics/match_rule.h"

namespace heddle::semantics {

RegionTable::RegionTable(uint32_t capacity, uint64_t secret)
    : keys_(secret),
      secret_(secret),
      slots_(capacity),
      buckets_(MatchHash::Buckets(capacity)) {
  for (uint32_t i = 0; i < capacity; ++i) {
    free_.PushBack(slots_, i);
  }
}

size_t RegionTable::Bucket(uint64_t key) const noexcept {
  return MatchHash(secret_).OfTag(key & ~contract::kKeyIdempotentSafe) &
         (buckets_.size() - 1);
}

uint32_t RegionTable::FindUser(uint64_t key) const noexcept {
  uint32_t at = buckets_[Bucket(key)].front();
  while (at != kNone && (slots_[at].spec.key & ~contract::kKeyIdempotentSafe) !=
                            (key & ~contract::kKeyIdempotentSafe)) {
    at = Chain::Next(slots_, at);
  }
  return at;
}

RegionTable::Registered RegionTable::Register(const RegionSpec& spec) noexcept {
  if (spec.base + spec.length < spec.base) {
    return {Status::kBadRange, kNone, 0};
  }
  if (!spec.provider_key) {
    if (!contract::IsUserKey(spec.key)) {
      return {Status::kBadKey, kNone, 0};
    }
    if (FindUser(spec.key) != kNone) {
      return {Status::kKeyInUse, kNone, 0};
    }
  }
  const uint32_t region = free_.PopFront(slots_);
  if (region == kNone) {
    return {Status::kFull, kNone, 0};
  }
  Slot& slot = slots_[region];
  slot.spec = spec;
  slot.state = State::kLive;
  if (spec.provider_key) {
    slot.spec.key = keys_.Make(region, slot.generation++);
  } else {
    buckets_[Bucket(spec.key)].PushBack(slots_, region);
  }
  if (spec.idempotent_safe) {
    slot.spec.key |= contract::kKeyIdempotentSafe;
  }
  ++size_;
  return {Status::kOk, region, slot.spec.key};
}

uint32_t RegionTable::Find(uint64_t key) const noexcept {
  const uint32_t region =
      contract::IsProviderKey(key) ? contract::RegionOfKey(key) : FindUser(key);
  if (region >= slots_.size() || slots_[region].state != State::kLive ||
      slots_[region].spec.key != key) {
    return kNone;
  }
  return region;
}

bool RegionTable::Acquire(uint32_t region) noexcept {
  if (region >= slots_.size() || slots_[region].state != State::kLive) {
    return false;
  }
  ++slots_[region].accesses;
  return true;
}

void RegionTable::End(uint32_t region) noexcept {
  Slot& slot = slots_[region];
  if (!slot.spec.provider_key) {
    buckets_[Bucket(slot.spec.key)].Remove(slots_, region);
  }
  slot.state = State::kFree;
  --size_;
  if (slot.generation < contract::KeyMaker::kGenerations) {
    free_.PushBack(slots_, region);
  }
}

RegionTable::Drain RegionTable::Release(uint32_t region) noexcept {
  if (region >= slots_.size() || slots_[region].accesses == 0) {
    return Drain::kNotFound;
  }
  Slot& slot = slots_[region];
  --slot.accesses;
  if (slot.state == State::kDraining && slot.accesses == 0) {
    End(region);
    return Drain::kDone;
  }
  return Drain::kPending;
}

RegionTable::Drain RegionTable::Deregister(uint32_t region) noexcept {
  if (region >= slots_.size() || slots_[region].state != State::kLive) {
    return Drain::kNotFound;
  }
  if (slots_[region].accesses != 0) {
    slots_[region].state = State::kDraining;
    return Drain::kPending;
  }
  End(region);
  return Drain::kDone;
}

}  // namespace heddle::semantics
