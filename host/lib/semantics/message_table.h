// SPDX-License-Identifier: Apache-2.0
// Messages that are open at their target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/match_rule.h"

namespace heddle::semantics {

// How a target tells messages apart (UET 4.14).
struct MessageKey {
  uint64_t address_lo = 0;  // Of the sender, as in `Source`.
  uint64_t address_hi = 0;
  uint16_t pdcid = 0;  // Of the sender's PDC.
  uint16_t message_id = 0;
  bool ipv6 = false;

  bool operator==(const MessageKey&) const = default;
};

// At most `capacity` messages; the handle of one, below `capacity`, names its
// state in arrays of the owner's until `Close`. `Open` and `Find` cost O(1),
// expected. Nothing allocates after construction.
//
// Thread safety: one thread at a time.
class MessageTable {
 public:
  // At most 2^30 messages. Throws std::bad_alloc.
  MessageTable(uint32_t capacity, uint64_t hash_seed);

  // Message with this key, or kNone.
  uint32_t Find(const MessageKey& key) const noexcept;
  // Handle of a new message, or kNone when the table is full (NACK
  // NO_SES_MSG_AVAIL) or one with this key is open.
  [[nodiscard]] uint32_t Open(const MessageKey& key) noexcept;
  // False when the handle is nobody's.
  bool Close(uint32_t handle) noexcept;

  // All open ones, the oldest first; kNone ends them. For PDCs that die.
  uint32_t oldest() const noexcept { return order_.front(); }
  uint32_t Next(uint32_t handle) const noexcept {
    return Order::Next(nodes_, handle);
  }
  const MessageKey& key(uint32_t handle) const noexcept {
    return nodes_[handle].key;
  }
  uint32_t size() const noexcept { return size_; }

 private:
  struct Node {
    MessageKey key;
    bool used = false;
    ListLink order;  // Of open ones, or of free ones.
    ListLink chain;
  };
  using Order = IndexList<Node, &Node::order>;
  using Chain = IndexList<Node, &Node::chain>;

  size_t Bucket(const MessageKey& key) const noexcept;

  MatchHash hash_;
  std::vector<Node> nodes_;
  std::vector<Chain> buckets_;  // A power of two.
  Order order_;
  FreeList<Node, &Node::order> free_;
  uint32_t size_ = 0;
};

}  // namespace heddle::semantics
