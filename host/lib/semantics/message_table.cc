// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/message_table.h"

namespace heddle::semantics {

MessageTable::MessageTable(uint32_t capacity, uint64_t hash_seed)
    : hash_(hash_seed),
      buckets_(MatchHash::Buckets(capacity)),
      free_(&nodes_, capacity) {}

size_t MessageTable::Bucket(const MessageKey& key) const noexcept {
  const uint64_t names = uint64_t{key.pdcid} << 16U | key.message_id;
  const Source source = {key.address_lo, key.address_hi, 0, key.ipv6};
  return hash_.Of(names, source) & (buckets_.size() - 1);
}

uint32_t MessageTable::Find(const MessageKey& key) const noexcept {
  uint32_t at = buckets_[Bucket(key)].front();
  while (at != kNone && nodes_[at].key != key) {
    at = Chain::Next(nodes_, at);
  }
  return at;
}

uint32_t MessageTable::Open(const MessageKey& key) noexcept {
  if (Find(key) != kNone) {
    return kNone;
  }
  const uint32_t handle = free_.Pop(nodes_);
  if (handle == kNone) {
    return kNone;
  }
  nodes_[handle].key = key;
  nodes_[handle].used = true;
  order_.PushBack(nodes_, handle);
  buckets_[Bucket(key)].PushBack(nodes_, handle);
  ++size_;
  return handle;
}

bool MessageTable::Close(uint32_t handle) noexcept {
  if (handle >= nodes_.size() || !nodes_[handle].used) {
    return false;
  }
  nodes_[handle].used = false;
  buckets_[Bucket(nodes_[handle].key)].Remove(nodes_, handle);
  order_.Remove(nodes_, handle);
  free_.Push(nodes_, handle);
  --size_;
  return true;
}

}  // namespace heddle::semantics
