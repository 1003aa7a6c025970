// SPDX-License-Identifier: Apache-2.0
// Messages that came before a receive, found in the order of arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/match_rule.h"

namespace heddle::semantics {

// At most `capacity` messages, which together hold at most `bytes` of buffered
// payload; each has a value of the owner's (`cookie`).
//
// Guarantees: `Find` answers the message that arrived first among those that
// the rule matches and that are not claimed. Rules without ignored bits look
// at one hash chain, others at messages in order of arrival. Nothing allocates
// after construction.
//
// A handle is the message's until it is removed, and then another's.
//
// Thread safety: one thread at a time.
class UnexpectedList {
 public:
  // At most 2^30 entries. Throws std::bad_alloc.
  UnexpectedList(uint32_t capacity, uint64_t bytes, uint64_t hash_seed);

  // Handle of the new last message, which takes `bytes` of the budget, or
  // kNone when the list or the budget is full: the sender has to try again.
  [[nodiscard]] uint32_t Add(const Envelope& message, uint64_t cookie,
                             uint64_t bytes) noexcept;

  // First message that the rule matches, which stays, or kNone.
  uint32_t Find(const MatchRule& rule) const noexcept;

  // Hides the message from `Find` and keeps its place for whoever has this
  // context (FI_PEEK with FI_CLAIM). False when it is claimed or nobody's.
  bool Claim(uint32_t handle, uint64_t context) noexcept;
  bool claimed(uint32_t handle) const noexcept {
    return nodes_[handle].state == State::kClaimed;
  }
  // Message claimed first under this context, or kNone.
  uint32_t FindClaimed(uint64_t context) const noexcept;

  // Gives back place and budget, claimed or not. False when the handle is
  // nobody's.
  bool Remove(uint32_t handle) noexcept;

  // In order of arrival, without claimed ones, then the claimed ones.
  uint32_t oldest() const noexcept { return order_.front(); }
  uint32_t oldest_claimed() const noexcept { return claimed_.front(); }
  uint32_t Next(uint32_t handle) const noexcept {
    return Order::Next(nodes_, handle);
  }

  uint64_t cookie(uint32_t handle) const noexcept {
    return nodes_[handle].cookie;
  }
  const Envelope& envelope(uint32_t handle) const noexcept {
    return nodes_[handle].message;
  }
  uint32_t size() const noexcept { return size_; }
  uint64_t bytes() const noexcept { return bytes_; }
  // Messages that `Find` compared so far.
  uint64_t compared() const noexcept { return compared_; }

 private:
  enum class State : uint8_t { kFree, kWaiting, kClaimed };
  struct Node {
    uint64_t cookie = 0;
    uint64_t bytes = 0;
    uint64_t context = 0;  // Of the claim.
    Envelope message;
    State state = State::kFree;
    ListLink order;      // Of those waiting, claimed or free.
    ListLink by_tag;     // Of the bucket of its tag.
    ListLink by_source;  // Of the bucket of its tag and source.
  };
  using Order = IndexList<Node, &Node::order>;
  using ByTag = IndexList<Node, &Node::by_tag>;
  using BySource = IndexList<Node, &Node::by_source>;

  template <typename List>
  uint32_t Walk(const List& list, const MatchRule& rule) const noexcept;
  size_t TagBucket(uint64_t tag) const noexcept {
    return hash_.OfTag(tag) & (by_tag_.size() - 1);
  }
  size_t SourceBucket(uint64_t tag, const Source& source) const noexcept {
    return hash_.Of(tag, source) & (by_source_.size() - 1);
  }
  void Hide(uint32_t handle) noexcept;

  MatchHash hash_;
  std::vector<Node> nodes_;
  std::vector<ByTag> by_tag_;  // Both a power of two.
  std::vector<BySource> by_source_;
  Order order_;
  Order claimed_;
  FreeList<Node, &Node::order> free_;
  uint64_t limit_bytes_;
  uint64_t bytes_ = 0;
  uint32_t size_ = 0;
  mutable uint64_t compared_ = 0;
};

}  // namespace heddle::semantics
