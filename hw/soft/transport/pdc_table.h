// SPDX-License-Identifier: Apache-2.0
// All PDCs, of this end as initiator and as target.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/soft/transport/pdc.h"
#include "hw/soft/transport/pdcid_pool.h"

namespace heddle::soft::transport {

// Finds PDCs by PDCID, initiators by name, targets by {source, spdcid}; keeps
// each role in the order of use. PDCs are made when they are needed first, a
// few of a role at a time, and stay where they are.
class PdcTable {
 public:
  static constexpr uint16_t kNone = PdcidPool::kNoPdc;

  // At most `pdcs` of each role; `seed` says which PDCIDs of a block come
  // first.
  PdcTable(wire::DatagramWire* wire, uint32_t pdcs, uint64_t seed);

  // Frees all PDCs and PDCIDs.
  void Clear();

  Pdc& operator[](uint16_t index) {
    return (*chunks_[index / kChunk])[index % kChunk];
  }
  // PDCs that were made: each index below.
  uint32_t made() const {
    return static_cast<uint32_t>(chunks_.size()) * kChunk;
  }

  // A free PDC of that role with a PDCID, or null. It is kFree still, its
  // halves as they were left.
  Pdc* Take(bool target, uint64_t now_ns);
  // Gives PDC and PDCID back; the PDCID rests until `rest_until_ns`. `keep`: as
  // of PdcidPool::Return.
  void Return(Pdc* pdc, uint64_t rest_until_ns, bool keep = false);
  // Gives the PDC another PDCID. False: there is none.
  bool Rename(Pdc* pdc, uint64_t now_ns, uint64_t rest_until_ns);
  bool full(bool target) const { return open_[target ? 1 : 0] == limit_; }
  uint32_t open(bool target) const { return open_[target ? 1 : 0]; }

  PdcidPool& ids() { return ids_; }
  const PdcidPool& ids() const { return ids_; }

  // The open PDC of this end with that PDCID, or null.
  Pdc* ByPdcid(uint16_t pdcid) {
    const uint16_t index = ids_.OwnerOf(pdcid);
    return index == kNone ? nullptr : &(*this)[index];
  }
  Pdc* ByName(const PdcName& name);
  Pdc* BySource(const wire::FabricAddress& source, uint16_t spdcid);
  // Makes the PDC be found: by its name, or by peer and peer_id.
  void AddName(Pdc* pdc);
  void RemoveName(Pdc* pdc);

  // The list of a role, least recently used first.
  void Touch(Pdc* pdc);  // To its end.
  void Unlist(Pdc* pdc);
  Pdc* Oldest(bool target) { return At(oldest_[target ? 1 : 0]); }
  Pdc* Newer(const Pdc& pdc) { return At(pdc.newer); }

 private:
  static constexpr uint32_t kChunk = 16;
  using Chunk = std::array<Pdc, kChunk>;

  static uint64_t Hash(const PdcName& name);
  static uint64_t Hash(const wire::FabricAddress& source, uint16_t spdcid);
  Pdc* At(uint16_t index) { return index == kNone ? nullptr : &(*this)[index]; }
  uint16_t& BucketOf(const Pdc& pdc);
  // Makes a few PDCs more of the role.
  void Grow(bool target);

  uint32_t limit_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // Each of one role.
  // By role: initiators, targets.
  std::vector<uint16_t> buckets_[2];  // A power of two, or none.
  std::vector<uint16_t> free_[2];
  uint32_t made_[2] = {};
  uint32_t open_[2] = {};
  uint16_t oldest_[2] = {kNone, kNone};
  uint16_t newest_[2] = {kNone, kNone};
  uint16_t last_named_ = kNone;  // That a message's name found.
  PdcidPool ids_;
};

}  // namespace heddle::soft::transport
