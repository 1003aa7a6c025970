// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/unexpected_list.h"

namespace heddle::semantics {

UnexpectedList::UnexpectedList(uint32_t capacity, uint64_t bytes,
                               uint64_t hash_seed)
    : hash_(hash_seed),
      by_tag_(MatchHash::Buckets(capacity)),
      by_source_(MatchHash::Buckets(capacity)),
      free_(&nodes_, capacity),
      limit_bytes_(bytes) {}

uint32_t UnexpectedList::Add(const Envelope& message, uint64_t cookie,
                             uint64_t bytes) noexcept {
  if (bytes > limit_bytes_ - bytes_) {
    return kNone;
  }
  const uint32_t handle = free_.Pop(nodes_);
  if (handle == kNone) {
    return kNone;
  }
  Node& node = nodes_[handle];
  node.cookie = cookie;
  node.bytes = bytes;
  node.message = message;
  node.state = State::kWaiting;
  order_.PushBack(nodes_, handle);
  by_tag_[TagBucket(message.tag)].PushBack(nodes_, handle);
  by_source_[SourceBucket(message.tag, message.source)].PushBack(nodes_,
                                                                 handle);
  bytes_ += bytes;
  ++size_;
  return handle;
}

template <typename List>
uint32_t UnexpectedList::Walk(const List& list,
                              const MatchRule& rule) const noexcept {
  for (uint32_t at = list.front(); at != kNone; at = List::Next(nodes_, at)) {
    ++compared_;
    if (rule.Matches(nodes_[at].message)) {
      return at;
    }
  }
  return kNone;
}

uint32_t UnexpectedList::Find(const MatchRule& rule) const noexcept {
  if (!rule.exact()) {
    return Walk(order_, rule);
  }
  if (rule.any_source) {
    return Walk(by_tag_[TagBucket(rule.tag)], rule);
  }
  return Walk(by_source_[SourceBucket(rule.tag, rule.source)], rule);
}

void UnexpectedList::Hide(uint32_t handle) noexcept {
  const Envelope& message = nodes_[handle].message;
  order_.Remove(nodes_, handle);
  by_tag_[TagBucket(message.tag)].Remove(nodes_, handle);
  by_source_[SourceBucket(message.tag, message.source)].Remove(nodes_, handle);
}

bool UnexpectedList::Claim(uint32_t handle, uint64_t context) noexcept {
  if (handle >= nodes_.size() || nodes_[handle].state != State::kWaiting) {
    return false;
  }
  Hide(handle);
  nodes_[handle].state = State::kClaimed;
  nodes_[handle].context = context;
  claimed_.PushBack(nodes_, handle);
  return true;
}

uint32_t UnexpectedList::FindClaimed(uint64_t context) const noexcept {
  uint32_t at = claimed_.front();
  while (at != kNone && nodes_[at].context != context) {
    at = Order::Next(nodes_, at);
  }
  return at;
}

bool UnexpectedList::Remove(uint32_t handle) noexcept {
  if (handle >= nodes_.size() || nodes_[handle].state == State::kFree) {
    return false;
  }
  Node& node = nodes_[handle];
  if (node.state == State::kClaimed) {
    claimed_.Remove(nodes_, handle);
  } else {
    Hide(handle);
  }
  node.state = State::kFree;
  bytes_ -= node.bytes;
  --size_;
  free_.Push(nodes_, handle);
  return true;
}

}  // namespace heddle::semantics
