// SPDX-License-Identifier: Apache-2.0
// What a transmit context has under way to each of its peers.
#pragma once

#include <cstdint>
#include <vector>

#include "host/lib/semantics/index_list.h"
#include "host/lib/semantics/match_rule.h"

namespace heddle::soft::engine {

using semantics::kNone;

// One {context, address-vector index}.
struct Peer {
  uint32_t context = 0;
  uint32_t index = 0;
  uint32_t in_flight = 0;  // Messages.
  // Of these, ordered reads whose data later operations must not overtake.
  uint32_t reads = 0;
  // Descriptors that wait for this peer, the oldest first (`TxRings`).
  uint32_t waiting_first = kNone;
  uint32_t waiting_last = kNone;
  bool unposted = false;  // A message of it waits for a PDC.
  bool awake = false;     // In the list of those to be looked at.
  bool used = false;
  semantics::ListLink order;  // Of free ones, or of those awake.
  semantics::ListLink chain;

  bool waiting() const noexcept { return waiting_first != kNone; }
};

// Exists while something is under way or waits. Nothing allocates after
// construction.
//
// Thread safety: one thread at a time.
class Peers {
 public:
  Peers(uint32_t capacity, uint64_t seed)
      : hash_(seed),
        buckets_(semantics::MatchHash::Buckets(capacity)),
        free_(&nodes_, capacity) {}

  // Makes it if need be; kNone when there is no room.
  uint32_t Get(uint32_t context, uint32_t index) noexcept {
    const uint32_t found = Find(context, index);
    if (found != kNone) {
      return last_ = found;
    }
    const uint32_t peer = free_.Pop(nodes_);
    if (peer != kNone) {
      nodes_[peer] = {};
      nodes_[peer].context = context;
      nodes_[peer].index = index;
      nodes_[peer].used = true;
      buckets_[Bucket(context, index)].PushBack(nodes_, peer);
    }
    return peer;
  }
  Peer& operator[](uint32_t peer) noexcept { return nodes_[peer]; }

  // Forgets it if nothing is left.
  void Put(uint32_t peer) noexcept {
    Peer& node = nodes_[peer];
    if (!node.used || node.in_flight != 0 || node.waiting() || node.awake) {
      return;
    }
    node.used = false;
    buckets_[Bucket(node.context, node.index)].Remove(nodes_, peer);
    free_.Push(nodes_, peer);
  }

  // Those awake are looked at once each, in order.
  void Wake(uint32_t peer) noexcept {
    if (!nodes_[peer].awake) {
      nodes_[peer].awake = true;
      awake_.PushBack(nodes_, peer);
    }
  }
  uint32_t first_awake() const noexcept { return awake_.front(); }
  void Sleep(uint32_t peer) noexcept {
    awake_.Remove(nodes_, peer);
    nodes_[peer].awake = false;
  }

  // Calls `visit(peer)` for each of a context.
  template <typename Visit>
  void ForEachOf(uint32_t context, Visit&& visit) {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].used && nodes_[i].context == context) {
        visit(i);
      }
    }
  }

 private:
  using Order = semantics::IndexList<Peer, &Peer::order>;
  using Chain = semantics::IndexList<Peer, &Peer::chain>;

  size_t Bucket(uint32_t context, uint32_t index) const noexcept {
    return hash_.OfTag(uint64_t{context} << 32U | index) &
           (buckets_.size() - 1);
  }
  uint32_t Find(uint32_t context, uint32_t index) const noexcept {
    if (last_ < nodes_.size() && nodes_[last_].used &&
        nodes_[last_].context == context && nodes_[last_].index == index) {
      return last_;  // As most are.
    }
    uint32_t at = buckets_[Bucket(context, index)].front();
    while (at != kNone &&
           (nodes_[at].context != context || nodes_[at].index != index)) {
      at = Chain::Next(nodes_, at);
    }
    return at;
  }

  semantics::MatchHash hash_;
  std::vector<Peer> nodes_;
  std::vector<Chain> buckets_;  // A power of two.
  semantics::FreeList<Peer, &Peer::order> free_;
  Order awake_;
  uint32_t last_ = kNone;  // That was found.
};

}  // namespace heddle::soft::engine
