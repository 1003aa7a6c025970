// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/posted_list.h"

namespace heddle::semantics {

PostedList::PostedList(uint32_t capacity, uint64_t hash_seed)
    : hash_(hash_seed),
      buckets_(MatchHash::Buckets(capacity)),
      free_(&nodes_, capacity) {}

PostedList::Chain& PostedList::ChainOf(const MatchRule& rule) noexcept {
  if (!rule.exact()) {
    return wildcards_;
  }
  const uint64_t hash =
      rule.any_source ? hash_.OfTag(rule.tag) : hash_.Of(rule.tag, rule.source);
  return buckets_[hash & (buckets_.size() - 1)];
}

uint32_t PostedList::Post(const MatchRule& rule, uint64_t cookie) noexcept {
  const uint32_t handle = free_.Pop(nodes_);
  if (handle == kNone) {
    return kNone;
  }
  Node& node = nodes_[handle];
  node.sequence = next_sequence_++;
  node.cookie = cookie;
  node.rule = rule;
  node.used = true;
  order_.PushBack(nodes_, handle);
  ChainOf(rule).PushBack(nodes_, handle);
  ++size_;
  return handle;
}

uint32_t PostedList::FindExact(uint64_t hash, const Envelope& message,
                               bool any_source) const noexcept {
  uint32_t at = buckets_[hash & (buckets_.size() - 1)].front();
  for (; at != kNone; at = Chain::Next(nodes_, at)) {
    ++compared_;
    if (nodes_[at].rule.any_source == any_source &&
        nodes_[at].rule.Matches(message)) {
      return at;
    }
  }
  return kNone;
}

uint32_t PostedList::Find(const Envelope& message) const noexcept {
  const uint32_t directed =
      FindExact(hash_.Of(message.tag, message.source), message, false);
  const uint32_t open = FindExact(hash_.OfTag(message.tag), message, true);
  uint32_t best = directed;
  if (best == kNone ||
      (open != kNone && nodes_[open].sequence < nodes_[best].sequence)) {
    best = open;
  }
  for (uint32_t at = wildcards_.front(); at != kNone;
       at = Chain::Next(nodes_, at)) {
    if (best != kNone && nodes_[best].sequence < nodes_[at].sequence) {
      break;
    }
    ++compared_;
    if (nodes_[at].rule.Matches(message)) {
      return at;
    }
  }
  return best;
}

bool PostedList::Remove(uint32_t handle) noexcept {
  if (handle >= nodes_.size() || !nodes_[handle].used) {
    return false;
  }
  nodes_[handle].used = false;
  ChainOf(nodes_[handle].rule).Remove(nodes_, handle);
  order_.Remove(nodes_, handle);
  free_.Push(nodes_, handle);
  --size_;
  return true;
}

}  // namespace heddle::semantics
