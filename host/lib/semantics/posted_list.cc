// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/posted_list.h"

namespace heddle::semantics {

PostedList::PostedList(uint32_t capacity, uint64_t hash_seed)
    : hash_(hash_seed),
      buckets_(MatchHash::Buckets(capacity)),
      free_(&nodes_, capacity) {
  walked_.reserve(capacity);
}

PostedList::Chain& PostedList::ChainOf(uint32_t handle) noexcept {
  const Walked& rule = walked_[handle];
  if (rule.counts != ~uint64_t{0}) {
    return wildcards_;
  }
  const Node& node = nodes_[handle];
  const uint64_t hash =
      node.any_source ? hash_.OfTag(rule.tag) : hash_.Of(rule.tag, node.source);
  return buckets_[hash & (buckets_.size() - 1)];
}

uint32_t PostedList::Post(const MatchRule& rule, uint32_t cookie) noexcept {
  const uint32_t handle = free_.Pop(nodes_);
  if (handle == kNone) {
    return kNone;
  }
  if (handle >= walked_.size()) {
    walked_.resize(handle + 1);  // Reserved.
  }
  Node& node = nodes_[handle];
  node.source = rule.source;
  node.cookie = cookie;
  node.any_source = rule.any_source;
  node.used = true;
  Walked& walked = walked_[handle];
  walked.tag = rule.tag;
  walked.counts = ~rule.ignore;
  walked.sequence = next_sequence_++;
  order_.PushBack(nodes_, handle);
  ChainOf(handle).PushBack(walked_, handle);
  ++size_;
  return handle;
}

uint32_t PostedList::FindExact(uint64_t hash, const Envelope& message,
                               bool any_source) const noexcept {
  uint32_t at = buckets_[hash & (buckets_.size() - 1)].front();
  for (; at != kNone; at = Chain::Next(walked_, at)) {
    ++compared_;
    if (walked_[at].tag == message.tag && nodes_[at].any_source == any_source &&
        TakesFrom(at, message.source)) {
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
      (open != kNone && walked_[open].sequence < walked_[best].sequence)) {
    best = open;
  }
  const uint64_t limit = best == kNone ? UINT64_MAX : walked_[best].sequence;
  uint32_t at = FirstWildcard(wildcards_.front(), message.tag, limit);
  while (at != kNone && !TakesFrom(at, message.source)) {
    at = FirstWildcard(Chain::Next(walked_, at), message.tag, limit);
  }
  return at != kNone ? at : best;
}

uint32_t PostedList::FirstWildcard(uint32_t from, uint64_t tag,
                                   uint64_t limit) const noexcept {
  const Walked* const first = walked_.data();
  uint64_t compared = 0;
  uint32_t found = kNone;
  for (uint32_t at = from; at != kNone;) {
    const Walked* const wildcard = first + at;
    if (wildcard->sequence > limit) {
      break;
    }
    ++compared;
    if (((wildcard->tag ^ tag) & wildcard->counts) == 0) {
      found = static_cast<uint32_t>(wildcard - first);
      break;
    }
    at = wildcard->chain.next;
  }
  compared_ += compared;
  return found;
}

bool PostedList::Remove(uint32_t handle) noexcept {
  if (handle >= nodes_.size() || !nodes_[handle].used) {
    return false;
  }
  nodes_[handle].used = false;
  ChainOf(handle).Remove(walked_, handle);
  order_.Remove(nodes_, handle);
  free_.Push(nodes_, handle);
  --size_;
  return true;
}

}  // namespace heddle::semantics
