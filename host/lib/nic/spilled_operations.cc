// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/spilled_operations.h"

#include <new>

namespace heddle::nic {

bool SpilledOperations::Reserve(size_t capacity) noexcept {
  if (nodes_ != nullptr) {
    return true;
  }
  nodes_.reset(new (std::nothrow) Node[capacity]);
  if (nodes_ == nullptr) {
    return false;
  }
  buckets_.fill(kNone);
  for (size_t i = capacity; i != 0; --i) {
    nodes_[i - 1].newer = free_;
    free_ = static_cast<uint16_t>(i - 1);
  }
  return true;
}

bool SpilledOperations::Add(const SpilledOperation& operation) noexcept {
  if (free_ == kNone) {
    return false;
  }
  const uint16_t at = free_;
  free_ = nodes_[at].newer;
  uint16_t& bucket = buckets_[operation.position % kBuckets];
  nodes_[at] = {.operation = operation, .older = newest_, .chain = bucket};
  bucket = at;
  (newest_ == kNone ? oldest_ : nodes_[newest_].newer) = at;
  newest_ = at;
  ++size_;
  return true;
}

const SpilledOperation* SpilledOperations::Find(
    uint16_t position) const noexcept {
  if (empty()) {
    return nullptr;
  }
  uint16_t at = buckets_[position % kBuckets];
  while (at != kNone && nodes_[at].operation.position != position) {
    at = nodes_[at].chain;
  }
  return at == kNone ? nullptr : &nodes_[at].operation;
}

void SpilledOperations::Remove(uint16_t position) noexcept {
  uint16_t* link = &buckets_[position % kBuckets];
  while (nodes_[*link].operation.position != position) {
    link = &nodes_[*link].chain;
  }
  const uint16_t at = *link;
  Node& node = nodes_[at];
  *link = node.chain;
  (node.older == kNone ? oldest_ : nodes_[node.older].newer) = node.newer;
  (node.newer == kNone ? newest_ : nodes_[node.newer].older) = node.older;
  node.newer = free_;
  free_ = at;
  --size_;
}

}  // namespace heddle::nic
