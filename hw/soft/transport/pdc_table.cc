// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/pdc_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace heddle::soft::transport {

using wire::FabricAddress;

PdcTable::PdcTable(wire::DatagramWire* wire, uint32_t pdcs, uint64_t seed)
    : limit_(pdcs), ids_(wire, seed) {}

void PdcTable::Clear() {
  chunks_.clear();
  last_named_ = kNone;
  for (int role = 0; role < 2; ++role) {
    buckets_[role].clear();
    free_[role].clear();
    made_[role] = open_[role] = 0;
    oldest_[role] = newest_[role] = kNone;
  }
  ids_.Clear();
}

void PdcTable::Grow(bool target) {
  const int role = target ? 1 : 0;
  const auto first = static_cast<uint16_t>(made());
  const uint32_t count = std::min(kChunk, limit_ - made_[role]);
  chunks_.push_back(std::make_unique<Chunk>());
  made_[role] += count;
  free_[role].reserve(made_[role]);
  for (uint32_t i = kChunk; i-- > 0;) {
    Pdc& pdc = (*chunks_.back())[i];
    pdc.index = static_cast<uint16_t>(first + i);
    pdc.target = target;
    if (i < count) {
      free_[role].push_back(pdc.index);
    }
  }
  const size_t buckets = 2 * std::bit_ceil(size_t{made_[role]});
  if (buckets == buckets_[role].size()) {
    return;
  }
  buckets_[role].assign(buckets, kNone);
  for (uint16_t i = 0; i < first; ++i) {
    Pdc& pdc = (*this)[i];
    if (pdc.target == target && pdc.named) {
      pdc.chain = std::exchange(BucketOf(pdc), pdc.index);
    }
  }
}

Pdc* PdcTable::Take(bool target, uint64_t now_ns) {
  if (full(target)) {
    return nullptr;
  }
  auto& free = free_[target ? 1 : 0];
  if (free.empty()) {
    Grow(target);
  }
  const uint16_t index = free.back();
  const uint16_t id = ids_.Take(index, target, now_ns);
  if (id == 0) {
    return nullptr;
  }
  free.pop_back();
  ++open_[target ? 1 : 0];
  Pdc* pdc = &(*this)[index];
  pdc->id = id;
  return pdc;
}

void PdcTable::Return(Pdc* pdc, uint64_t rest_until_ns, bool keep) {
  const int role = pdc->target ? 1 : 0;
  RemoveName(pdc);
  Unlist(pdc);
  ids_.Return(pdc->id, rest_until_ns, keep);
  pdc->id = 0;
  pdc->state = PdcState::kFree;
  --open_[role];
  free_[role].push_back(pdc->index);
}

bool PdcTable::Rename(Pdc* pdc, uint64_t now_ns, uint64_t rest_until_ns) {
  const uint16_t id = ids_.Take(pdc->index, pdc->target, now_ns);
  if (id == 0) {
    return false;
  }
  ids_.Return(pdc->id, rest_until_ns, false);
  pdc->id = id;
  return true;
}

uint64_t PdcTable::Hash(const PdcName& name) {
  uint64_t hash = Mixed(name.peer.lo, name.peer.hi);
  hash = Mixed(hash, uint64_t{name.job_id} << 32 |
                         uint64_t{name.source_pid} << 16 | name.target_pid);
  return Mixed(hash, uint64_t{name.target_ri} << 16 |
                         uint64_t{name.traffic_class} << 2 |
                         static_cast<uint64_t>(name.relative) << 1 |
                         static_cast<uint64_t>(name.ordered));
}

uint64_t PdcTable::Hash(const FabricAddress& source, uint16_t spdcid) {
  return Mixed(Mixed(source.lo, source.hi), spdcid);
}

uint16_t& PdcTable::BucketOf(const Pdc& pdc) {
  auto& buckets = buckets_[pdc.target ? 1 : 0];
  const uint64_t hash =
      pdc.target ? Hash(pdc.peer, pdc.peer_id) : Hash(pdc.name);
  return buckets[hash & (buckets.size() - 1)];
}

Pdc* PdcTable::ByName(const PdcName& name) {
  if (Pdc* const pdc = At(last_named_);
      pdc != nullptr && pdc->named && pdc->name == name) {
    return pdc;  // As most are.
  }
  const auto& buckets = buckets_[0];
  Pdc* pdc = buckets.empty() ? nullptr
                             : At(buckets[Hash(name) & (buckets.size() - 1)]);
  while (pdc != nullptr && pdc->name != name) {
    pdc = At(pdc->chain);
  }
  last_named_ = pdc == nullptr ? kNone : pdc->index;
  return pdc;
}

Pdc* PdcTable::BySource(const FabricAddress& source, uint16_t spdcid) {
  const auto& buckets = buckets_[1];
  Pdc* pdc = buckets.empty()
                 ? nullptr
                 : At(buckets[Hash(source, spdcid) & (buckets.size() - 1)]);
  while (pdc != nullptr && (pdc->peer_id != spdcid || pdc->peer != source)) {
    pdc = At(pdc->chain);
  }
  return pdc;
}

void PdcTable::AddName(Pdc* pdc) {
  pdc->chain = std::exchange(BucketOf(*pdc), pdc->index);
  pdc->named = true;
}

void PdcTable::RemoveName(Pdc* pdc) {
  if (!std::exchange(pdc->named, false)) {
    return;
  }
  uint16_t* link = &BucketOf(*pdc);
  while (*link != pdc->index) {
    link = &(*this)[*link].chain;
  }
  *link = pdc->chain;
}

void PdcTable::Touch(Pdc* pdc) {
  const int role = pdc->target ? 1 : 0;
  if (newest_[role] == pdc->index) {
    return;
  }
  Unlist(pdc);
  pdc->older = newest_[role];
  pdc->newer = kNone;
  pdc->listed = true;
  (newest_[role] == kNone ? oldest_[role] : (*this)[newest_[role]].newer) =
      pdc->index;
  newest_[role] = pdc->index;
}

void PdcTable::Unlist(Pdc* pdc) {
  if (!std::exchange(pdc->listed, false)) {
    return;
  }
  const int role = pdc->target ? 1 : 0;
  (pdc->older == kNone ? oldest_[role] : (*this)[pdc->older].newer) =
      pdc->newer;
  (pdc->newer == kNone ? newest_[role] : (*this)[pdc->newer].older) =
      pdc->older;
}

}  // namespace heddle::soft::transport
