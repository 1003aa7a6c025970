// SPDX-License-Identifier: Apache-2.0
// All PDCs: those of this end as initiator first, then those as target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hw/sim/soft/transport/pdc.h"
#include "hw/sim/soft/transport/pdcid_pool.h"

namespace heddle::sim::soft {

// Finds PDCs by PDCID, initiators by name, targets by {source, spdcid}; keeps
// each role in the order of use.
class PdcTable {
 public:
  static constexpr uint16_t kNone = PdcidPool::kNoPdc;

  // `pdcs` of each role; `seed` says which PDCIDs come first.
  PdcTable(uint32_t pdcs, uint64_t seed);

  // Frees all PDCs.
  void Clear();

  Pdc& operator[](uint16_t index) { return pdcs_[index]; }
  std::span<Pdc> all() { return pdcs_; }

  // A free PDC of that role with a PDCID, or null. It is kFree still, its
  // halves as they were left.
  Pdc* Take(bool target, uint16_t slot_bits, uint64_t now_ns);
  // Gives PDC and PDCID back; the PDCID rests until `rest_until_ns`.
  void Return(Pdc* pdc, uint64_t rest_until_ns);
  // Gives the PDC another PDCID. False: there is none.
  bool Rename(Pdc* pdc, uint16_t slot_bits, uint64_t now_ns,
              uint64_t rest_until_ns);
  bool full(bool target) const { return free_[target ? 1 : 0].empty(); }
  // When a PDCID stops resting next.
  uint64_t next_pdcid_ns() const { return ids_.next_free_ns(); }

  // The open PDC of this end with that PDCID, or null.
  Pdc* ByPdcid(uint16_t pdcid) {
    const uint16_t index = ids_.OwnerOf(pdcid);
    return index == kNone || pdcs_[index].id != pdcid ? nullptr : &pdcs_[index];
  }
  Pdc* ByName(const PdcName& name);
  Pdc* BySource(const FabricAddress& source, uint16_t spdcid);
  // Makes the PDC be found: by its name, or by peer and peer_id.
  void AddName(Pdc* pdc);
  void RemoveName(Pdc* pdc);

  // The list of a role, least recently used first.
  void Touch(Pdc* pdc);  // To its end.
  void Unlist(Pdc* pdc);
  Pdc* Oldest(bool target) {
    return oldest_[target] == kNone ? nullptr : &pdcs_[oldest_[target]];
  }
  Pdc* Newer(const Pdc& pdc) {
    return pdc.newer == kNone ? nullptr : &pdcs_[pdc.newer];
  }

 private:
  static uint64_t Hash(const PdcName& name);
  static uint64_t Hash(const FabricAddress& source, uint16_t spdcid);
  uint16_t& BucketOf(const Pdc& pdc);
  void Fill();

  std::vector<Pdc> pdcs_;
  std::vector<uint16_t> buckets_[2];  // Initiators, targets; a power of two.
  std::vector<uint16_t> free_[2];
  uint16_t oldest_[2] = {kNone, kNone};
  uint16_t newest_[2] = {kNone, kNone};
  PdcidPool ids_;
};

}  // namespace heddle::sim::soft
