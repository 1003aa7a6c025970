// SPDX-License-Identifier: Apache-2.0
// PDCIDs of this function: which are free, which rest, whose the others are.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::transport {

// PDCs of both roles share the identifiers, so that an ACK or a control packet
// that names one belongs to one PDC. The identifier that was free for longest
// is given next; 0 is none. The wire grants them in blocks, taken when none is
// free, and returned when all of a block are free and another block is as well.
class PdcidPool {
 public:
  static constexpr uint16_t kNoPdc = UINT16_MAX;

  // The first identifier of a block to be given follows `seed`.
  PdcidPool(wire::DatagramWire* wire, uint64_t seed);

  // What is remembered of an identifier from one PDC to the next.
  struct Past {
    uint32_t last_psn = 0;
    bool initiator = false;  // `last_psn` is there.
  };

  // An identifier for PDC `pdc`, or 0 when all are in use or rest, and the wire
  // has no more.
  uint16_t Take(uint16_t pdc, bool target, uint64_t now_ns);
  // `id` is used by nobody until `until_ns` (0: may be used at once), which
  // does not lie before that of an earlier call. `keep`: its block is never
  // returned, because another function could not answer for this one.
  void Return(uint16_t id, uint64_t until_ns, bool keep);
  // Ends rests that are over; returns blocks.
  void Tidy(uint64_t now_ns);
  // Returns all blocks, whatever uses them: a new incarnation begins.
  void Clear();

  // When an identifier stops resting next; UINT64_MAX: none rests.
  uint64_t next_free_ns() const {
    return resting_.first == 0 ? UINT64_MAX : At(resting_.first).until;
  }
  // The same, if a block may be returned then.
  uint64_t next_tidy_ns() const {
    return blocks_.size() > 1 ? next_free_ns() : UINT64_MAX;
  }
  size_t blocks() const { return blocks_.size(); }

  // The PDC with that PDCID, or kNoPdc.
  uint16_t OwnerOf(uint16_t pdcid) const {
    const uint16_t place = places_[pdcid / kBlock];
    return place == kNoBlock ? kNoPdc
                             : blocks_[place].ids[pdcid % kBlock].owner;
  }
  // Since this incarnation took the block, the PDCID was a target PDC's.
  bool WasTarget(uint16_t pdcid) const {
    const uint16_t place = places_[pdcid / kBlock];
    return place != kNoBlock &&
           (blocks_[place].was_target >> (pdcid % kBlock) & 1U) != 0;
  }
  // Of an identifier in use.
  Past& PastOf(uint16_t id) { return At(id).past; }

 private:
  static constexpr uint32_t kBlock = contract::kPdcidBlock;
  static constexpr uint32_t kBlocks = (1U << 16) / kBlock;
  static constexpr uint16_t kNoBlock = UINT16_MAX;
  static_assert(kBlock == 32, "sets of a block are words of 32 bits");

  struct Id {
    uint64_t until = 0;
    Past past;
    uint16_t owner = kNoPdc;
    uint16_t previous = 0;  // In the list that it is on.
    uint16_t next = 0;
  };
  struct Block {
    uint16_t first = 0;
    uint16_t busy = 0;  // Identifiers that are not free.
    bool kept = false;
    uint32_t was_target = 0;
    std::array<Id, kBlock> ids;
  };
  struct List {
    uint16_t first = 0;
    uint16_t last = 0;
  };

  Id& At(uint16_t id) { return blocks_[places_[id / kBlock]].ids[id % kBlock]; }
  const Id& At(uint16_t id) const {
    return blocks_[places_[id / kBlock]].ids[id % kBlock];
  }
  Block& BlockOf(uint16_t id) { return blocks_[places_[id / kBlock]]; }
  void Append(List* list, uint16_t id);
  void Remove(List* list, uint16_t id);
  void Release(uint16_t id);  // It rested, or needs no rest.
  bool TakeBlock();
  void ReturnBlocks();

  wire::DatagramWire* wire_;
  uint64_t seed_;
  std::vector<uint16_t> places_;  // In `blocks_`, by block; kNoBlock: not ours.
  std::vector<Block> blocks_;
  uint32_t free_blocks_ = 0;  // None of their identifiers is busy.
  List free_;
  List resting_;
};

}  // namespace heddle::soft::transport
