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
  [[nodiscard]] uint32_t Post(const MatchRule& rule, uint64_t cookie) noexcept;

  // First entry that matches, which stays, or kNone.
  uint32_t Find(const Envelope& message) const noexcept;

  // False when the handle is nobody's.
  bool Remove(uint32_t handle) noexcept;

  // In the order of posting, from `oldest` on; kNone ends it.
  uint32_t oldest() const noexcept { return order_.front(); }
  uint32_t Next(uint32_t handle) const noexcept {
    return Order::Next(nodes_, handle);
  }

  uint64_t cookie(uint32_t handle) const noexcept {
    return nodes_[handle].cookie;
  }
  const MatchRule& rule(uint32_t handle) const noexcept {
    return nodes_[handle].rule;
  }
  uint32_t size() const noexcept { return size_; }
  uint32_t capacity() const noexcept { return free_.limit(); }
  // Rules that `Find` compared so far: the length of match walks.
  uint64_t compared() const noexcept { return compared_; }

 private:
  struct Node {
    uint64_t sequence = 0;  // Of posting.
    uint64_t cookie = 0;
    MatchRule rule;
    bool used = false;
    ListLink order;  // Of all in use, or of the free ones.
    ListLink chain;  // Of its hash bucket, or of rules with wildcards.
  };
  using Order = IndexList<Node, &Node::order>;
  using Chain = IndexList<Node, &Node::chain>;

  Chain& ChainOf(const MatchRule& rule) noexcept;
  uint32_t FindExact(uint64_t hash, const Envelope& message,
                     bool any_source) const noexcept;

  MatchHash hash_;
  std::vector<Node> nodes_;
  std::vector<Chain> buckets_;  // A power of two.
  Chain wildcards_;
  Order order_;
  FreeList<Node, &Node::order> free_;
  uint64_t next_sequence_ = 0;
  uint32_t size_ = 0;
  mutable uint64_t compared_ = 0;
};

}  // namespace heddle::semantics
