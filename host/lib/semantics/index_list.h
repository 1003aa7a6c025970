// SPDX-License-Identifier: Apache-2.0
// Doubly linked list through the elements of an array.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::semantics {

// No element.
inline constexpr uint32_t kNone = 0xffffffff;

// What an element needs per list that it may be in.
struct ListLink {
  uint32_t previous = kNone;
  uint32_t next = kNone;
};

// List of elements of a `std::vector<Node>` that the owner passes to each
// call; an element is in the list at most once. Every operation is O(1) and
// allocates nothing.
//
// Thread safety: one thread at a time.
template <typename Node, ListLink Node::*kLink>
class IndexList {
 public:
  uint32_t front() const noexcept { return head_; }
  bool empty() const noexcept { return head_ == kNone; }

  static uint32_t Next(const std::vector<Node>& nodes,
                       uint32_t index) noexcept {
    return (nodes[index].*kLink).next;
  }

  void PushBack(std::vector<Node>& nodes, uint32_t index) noexcept {
    nodes[index].*kLink = {tail_, kNone};
    (tail_ == kNone ? head_ : (nodes[tail_].*kLink).next) = index;
    tail_ = index;
  }

  // The element is in this list.
  void Remove(std::vector<Node>& nodes, uint32_t index) noexcept {
    const ListLink link = nodes[index].*kLink;
    (link.previous == kNone ? head_ : (nodes[link.previous].*kLink).next) =
        link.next;
    (link.next == kNone ? tail_ : (nodes[link.next].*kLink).previous) =
        link.previous;
    nodes[index].*kLink = {};
  }

  // Takes the first element out, or kNone.
  uint32_t PopFront(std::vector<Node>& nodes) noexcept {
    const uint32_t index = head_;
    if (index != kNone) {
      Remove(nodes, index);
    }
    return index;
  }

 private:
  uint32_t head_ = kNone;
  uint32_t tail_ = kNone;
};

// Free elements of a table. An element exists from its first use on, in memory
// that the table reserved, so that a table that is never full stays small. Once
// all exist, the element that was freed first is taken first.
//
// Thread safety: one thread at a time.
template <typename Node, ListLink Node::*kLink>
class FreeList {
 public:
  // `nodes` is empty; only this list adds elements. Throws std::bad_alloc.
  FreeList(std::vector<Node>* nodes, uint32_t limit) : limit_(limit) {
    nodes->reserve(limit);
  }

  // The number of elements that there may be.
  uint32_t limit() const noexcept { return limit_; }
  bool empty(const std::vector<Node>& nodes) const noexcept {
    return nodes.size() == limit_ && freed_.empty();
  }
  // Takes an element, or kNone.
  uint32_t Pop(std::vector<Node>& nodes) noexcept {
    if (nodes.size() == limit_) {
      return freed_.PopFront(nodes);
    }
    nodes.emplace_back();
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  void Push(std::vector<Node>& nodes, uint32_t index) noexcept {
    freed_.PushBack(nodes, index);
  }

 private:
  const uint32_t limit_;
  IndexList<Node, kLink> freed_;
};

}  // namespace heddle::semantics
