// SPDX-License-Identifier: Apache-2.0
// Receives that wait for a message, matched in the order of posting.
#pragma once

#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/match_rule.h"

namespace heddle::semantics {

// At most `capacity` rules, each with a value of the owner's (`cookie`).
//
// Guarantees: `Find` answers the rule posted first among those that match,
// exact or with wildcards. It looks at the rules of one or two hash chains and
// at rules with ignored bits, in order, but at none of the latter posted behind
// the exact rule found: where all rules are exact its expected cost does not
// depend on their number. Nothing allocates after construction.
//
// A handle is the entry's until it is removed, and then another's.
//
// Thread safety: one thread at a time.
class PostedList {
 public:
  // At most 2^30 entries. Throws std::bad_alloc.
  PostedList(uint32_t capacity, uint64_t hash_seed);

  // Handle of the new last entry, or kNone when the list is full.
  [[nodiscard]] uint32_t Post(const MatchRule& rule, uint32_t cookie) noexcept;

  // First entry that matches, which stays, or kNone.
  uint32_t Find(const Envelope& message) const noexcept;

  // False when the handle is nobody's.
  bool Remove(uint32_t handle) noexcept;

  // In the order of posting, from `oldest` on; kNone ends it.
  uint32_t oldest() const noexcept { return order_.front(); }
  uint32_t Next(uint32_t handle) const noexcept {
    return Order::Next(nodes_, handle);
  }

  uint32_t cookie(uint32_t handle) const noexcept {
    return nodes_[handle].cookie;
  }
  MatchRule rule(uint32_t handle) const noexcept {
    return {.tag = walked_[handle].tag,
            .ignore = ~walked_[handle].counts,
            .any_source = nodes_[handle].any_source,
            .source = nodes_[handle].source};
  }
  uint32_t size() const noexcept { return size_; }
  uint32_t capacity() const noexcept { return free_.limit(); }
  // Rules that `Find` compared so far: the length of match walks.
  uint64_t compared() const noexcept { return compared_; }

 private:
  struct Node {
    Source source;
    uint32_t cookie = 0;
    bool any_source = true;
    bool used = false;
    ListLink order;  // Of all in use, or of the free ones.
  };
  // The part of the node of this index that a walk past it reads: a power of
  // two of bytes, which index it at the least cost.
  struct Walked {
    uint64_t tag = 0;
    uint64_t counts = 0;    // Bits of the tag.
    uint64_t sequence = 0;  // Of posting.
    ListLink chain;         // In its hash bucket, or in `wildcards_`.
  };
  static_assert(sizeof(Walked) == 32);
  using Order = IndexList<Node, &Node::order>;
  using Chain = IndexList<Walked, &Walked::chain>;

  Chain& ChainOf(uint32_t handle) noexcept;
  // The first one from `from` on, posted up to `limit`, with the bits of `tag`.
  uint32_t FirstWildcard(uint32_t from, uint64_t tag,
                         uint64_t limit) const noexcept;
  // Precondition: the tag of the message has the bits that count.
  bool TakesFrom(uint32_t handle, const Source& source) const noexcept {
    return nodes_[handle].any_source || nodes_[handle].source == source;
  }
  uint32_t FindExact(uint64_t hash, const Envelope& message,
                     bool any_source) const noexcept;

  MatchHash hash_;
  std::vector<Node> nodes_;
  std::vector<Walked> walked_;
  std::vector<Chain> buckets_;  // A power of two.
  Chain wildcards_;
  Order order_;
  FreeList<Node, &Node::order> free_;
  uint64_t next_sequence_ = 0;
  uint32_t size_ = 0;
  mutable uint64_t compared_ = 0;
};

}  // namespace heddle::semantics
