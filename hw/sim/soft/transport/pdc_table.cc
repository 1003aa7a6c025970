// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/transport/pdc_table.h"

#include <bit>
#include <utility>

namespace heddle::sim::soft {

PdcTable::PdcTable(uint32_t pdcs, uint64_t seed)
    : pdcs_(2 * size_t{pdcs}), ids_(seed) {
  for (auto& buckets : buckets_) {
    buckets.resize(2 * std::bit_ceil(size_t{pdcs}));
  }
  Fill();
}

void PdcTable::Fill() {
  const uint32_t pdcs = static_cast<uint32_t>(pdcs_.size() / 2);
  for (int role = 0; role < 2; ++role) {
    buckets_[role].assign(buckets_[role].size(), kNone);
    free_[role].clear();
    free_[role].reserve(pdcs);
    for (uint32_t i = pdcs; i-- > 0;) {
      free_[role].push_back(
          static_cast<uint16_t>(i + static_cast<uint32_t>(role) * pdcs));
    }
    oldest_[role] = newest_[role] = kNone;
  }
  for (size_t i = 0; i < pdcs_.size(); ++i) {
    pdcs_[i].index = static_cast<uint16_t>(i);
    pdcs_[i].target = i >= pdcs;
  }
  ids_.ReturnAll();
}

void PdcTable::Clear() {
  for (Pdc& pdc : pdcs_) {
    pdc = Pdc();
  }
  Fill();
}

Pdc* PdcTable::Take(bool target, uint16_t slot_bits, uint64_t now_ns) {
  auto& free = free_[target ? 1 : 0];
  if (free.empty()) {
    return nullptr;
  }
  const uint16_t index = free.back();
  const uint16_t id = ids_.Take(index, now_ns);
  if (id == 0) {
    return nullptr;
  }
  free.pop_back();
  pdcs_[index].id = static_cast<uint16_t>(slot_bits | id);
  return &pdcs_[index];
}

void PdcTable::Return(Pdc* pdc, uint64_t rest_until_ns) {
  RemoveName(pdc);
  Unlist(pdc);
  ids_.Return(pdc->id & (PdcidPool::kIds - 1), rest_until_ns);
  pdc->id = 0;
  pdc->state = PdcState::kFree;
  free_[pdc->target ? 1 : 0].push_back(pdc->index);
}

bool PdcTable::Rename(Pdc* pdc, uint16_t slot_bits, uint64_t now_ns,
                      uint64_t rest_until_ns) {
  const uint16_t id = ids_.Take(pdc->index, now_ns);
  if (id == 0) {
    return false;
  }
  ids_.Return(pdc->id & (PdcidPool::kIds - 1), rest_until_ns);
  pdc->id = static_cast<uint16_t>(slot_bits | id);
  return true;
}

uint64_t PdcTable::Hash(const PdcName& name) {
  uint64_t hash = Mixed(name.peer.lo, name.peer.hi);
  hash = Mixed(hash, uint64_t{name.job_id} << 32 |
                         uint64_t{name.source_pid} << 16 | name.target_pid);
  return Mixed(hash, uint64_t{name.target_ri} << 16 |
                         uint64_t{name.traffic_class} << 1 |
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
  uint16_t at = buckets_[0][Hash(name) & (buckets_[0].size() - 1)];
  while (at != kNone && pdcs_[at].name != name) {
    at = pdcs_[at].chain;
  }
  return at == kNone ? nullptr : &pdcs_[at];
}

Pdc* PdcTable::BySource(const FabricAddress& source, uint16_t spdcid) {
  uint16_t at = buckets_[1][Hash(source, spdcid) & (buckets_[1].size() - 1)];
  while (at != kNone &&
         (pdcs_[at].peer_id != spdcid || pdcs_[at].peer != source)) {
    at = pdcs_[at].chain;
  }
  return at == kNone ? nullptr : &pdcs_[at];
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
    link = &pdcs_[*link].chain;
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
  (newest_[role] == kNone ? oldest_[role] : pdcs_[newest_[role]].newer) =
      pdc->index;
  newest_[role] = pdc->index;
}

void PdcTable::Unlist(Pdc* pdc) {
  if (!std::exchange(pdc->listed, false)) {
    return;
  }
  const int role = pdc->target ? 1 : 0;
  (pdc->older == kNone ? oldest_[role] : pdcs_[pdc->older].newer) = pdc->newer;
  (pdc->newer == kNone ? newest_[role] : pdcs_[pdc->newer].older) = pdc->older;
}

}  // namespace heddle::sim::soft
