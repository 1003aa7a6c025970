// SPDX-License-Identifier: Apache-2.0
// Receives of one context and the messages that come to it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "host/lib/semantics/posted_list.h"
#include "host/lib/semantics/unexpected_list.h"

namespace heddle::semantics {

// A receive, as the application posts it.
struct ReceiveSpec {
  MatchRule rule;
  uint64_t op_context = 0;  // Returned with what becomes of it.
  uint64_t buffer = 0;      // Address; only counted with.
  uint64_t length = 0;      // Bytes.
  bool multi = false;       // FI_MULTI_RECV: takes many messages.
  // Such a buffer is given back when fewer bytes are free, and at the latest
  // when none is (FI_OPT_MIN_MULTI_RECV; libfabric 194, 264).
  uint64_t min_free = 0;
};

// A message that has arrived, in whole or in part.
struct Arrival {
  Envelope envelope;
  uint64_t length = 0;    // Bytes of the whole message.
  uint64_t message = 0;   // The owner's name for it.
  uint64_t buffered = 0;  // Bytes that its owner keeps until it is received.
};

// Message `message` goes to `address`. `Finish(receive)` ends it.
struct Delivery {
  uint32_t receive = kNone;
  uint64_t op_context = 0;
  uint64_t message = 0;
  uint64_t address = 0;
  uint64_t room = 0;    // Bytes; a longer message is truncated.
  uint64_t offset = 0;  // From the start of the buffer.
  bool multi = false;   // The receive is one of FI_MULTI_RECV.
};

struct Peeked {
  uint64_t message = 0;
  Envelope envelope;
  uint64_t length = 0;
};

// Matches receives with messages: a message goes to the first receive posted
// that it fits, a receive takes the first message arrived that it fits, each
// exactly one (libfabric 52, 211, 231). Tagged and untagged messages have a
// queue each.
//
// A buffer of FI_MULTI_RECV gives each message the next free bytes and goes
// back to the application after the last of its messages is finished, in
// whatever order they are.
//
// A receive holds one of `receives` places from `Post` until the answer that
// says that it is released; what is full answers so and changes nothing.
// Nothing allocates after construction.
//
// Thread safety: one thread at a time.
class ReceiveQueue {
 public:
  struct Limits {
    uint32_t receives = 0;          // At most 2^30.
    uint32_t unexpected = 0;        // Messages; at most 2^30.
    uint64_t unexpected_bytes = 0;  // Sum of `buffered`.
  };

  // Throws std::bad_alloc.
  ReceiveQueue(const Limits& limits, uint64_t hash_seed);

  enum class PostStatus : uint8_t {
    kPosted,    // Waits.
    kMatched,   // `delivery` is valid. One of FI_MULTI_RECV: ask `MatchNext`.
    kFull,      // No place; unchanged.
    kNotFound,  // No message is claimed under this context; unchanged.
  };
  struct PostAnswer {
    PostStatus status = PostStatus::kFull;
    Delivery delivery;
  };
  [[nodiscard]] PostAnswer Post(const ReceiveSpec& spec) noexcept;
  // Next message for a buffer of FI_MULTI_RECV that `Post` matched; ask until
  // there is none, and before the next message arrives.
  std::optional<Delivery> MatchNext(uint32_t receive) noexcept;

  enum class ArriveStatus : uint8_t {
    kMatched,     // `delivery` is valid.
    kUnexpected,  // Kept for a later receive.
    kRefused,     // No room; unchanged. The sender has to try again.
  };
  struct ArriveAnswer {
    ArriveStatus status = ArriveStatus::kRefused;
    Delivery delivery;
  };
  [[nodiscard]] ArriveAnswer Arrive(const Arrival& arrival) noexcept;
  // `Arrive` in two steps, for an owner who makes room for a message only when
  // no receive takes it: where it goes, and else its handle in the queue, or
  // kNone. The handle is the message's until something takes it out.
  std::optional<Delivery> Match(const Arrival& arrival) noexcept;
  [[nodiscard]] uint32_t Keep(const Arrival& arrival) noexcept;
  // A receive waits that takes such a message.
  bool Expects(const Envelope& envelope) const noexcept {
    return posted_.Find(envelope) != kNone;
  }
  // Takes out a message that will not be whole. False: it is claimed, and stays
  // for its claim, which fails.
  [[nodiscard]] bool Drop(uint32_t handle) noexcept {
    return !unexpected_.claimed(handle) && unexpected_.Remove(handle);
  }

  enum class FinishStatus : uint8_t {
    kHeld,       // The buffer takes more messages or waits for others.
    kReleased,   // The buffer is the application's (FI_MULTI_RECV flag).
    kCancelled,  // The same, and the cancellation completes now.
    kNotFound,   // No delivery of this receive is under way.
  };
  // The delivery's data are placed, or it failed.
  FinishStatus Finish(uint32_t receive) noexcept;

  enum class CancelStatus : uint8_t {
    kCancelled,  // Withdrawn; completes as cancelled now (libfabric 182).
    kPending,    // Withdrawn; the last `Finish` answers kCancelled.
    kNotFound,   // No receive waits with this context (libfabric 183, 184).
  };
  // Withdraws the first receive that waits with this context.
  CancelStatus Cancel(uint64_t op_context) noexcept {
    return CancelWhere(op_context, ~uint64_t{0}).status;
  }
  struct Withdrawn {
    uint64_t op_context = 0;
    CancelStatus status = CancelStatus::kNotFound;
    bool multi = false;  // A buffer of FI_MULTI_RECV.
  };
  // The first one whose context has the bits of `op_context` under `mask`.
  Withdrawn CancelWhere(uint64_t op_context, uint64_t mask) noexcept;

  enum class PeekAction : uint8_t {
    kLook,     // FI_PEEK.
    kClaim,    // FI_PEEK | FI_CLAIM: kept for `ReceiveClaimed` by `context`.
    kDiscard,  // FI_PEEK | FI_DISCARD: taken out; its owner frees it.
  };
  // First message that the rule matches; without one, FI_ENOMSG.
  std::optional<Peeked> Peek(const MatchRule& rule, PeekAction action,
                             uint64_t context) noexcept;
  // FI_CLAIM: `spec.op_context` is the context of the claim, `spec.rule` does
  // not count. Answers kMatched, kFull or kNotFound.
  [[nodiscard]] PostAnswer ReceiveClaimed(const ReceiveSpec& spec) noexcept;
  // FI_CLAIM | FI_DISCARD: the message is its owner's to free.
  std::optional<uint64_t> DiscardClaimed(uint64_t context) noexcept;

  // For the end of the context: withdraws the oldest receive that waits, as
  // `Cancel` does.
  std::optional<Withdrawn> FlushReceive() noexcept;
  // Takes out one message, claimed or not.
  std::optional<uint64_t> FlushMessage() noexcept;

  uint32_t waiting() const noexcept { return posted_.size(); }
  uint32_t unexpected() const noexcept { return unexpected_.size(); }
  // Places free for `Post`.
  uint32_t room() const noexcept { return room_; }

 private:
  // Its rule is in `posted_`, while it waits.
  struct Receive {
    uint64_t op_context = 0;
    uint64_t buffer = 0;
    uint64_t length = 0;
    uint64_t min_free = 0;
    uint64_t used = 0;        // Bytes given to messages.
    uint32_t posted = kNone;  // In `posted_` while it waits.
    uint32_t under_way = 0;   // Deliveries not finished.
    bool multi = false;
    bool cancelled = false;
    ListLink free;
  };

  uint32_t Take(const ReceiveSpec& spec) noexcept;
  Delivery Give(uint32_t receive, uint64_t message, uint64_t length) noexcept;
  Delivery GiveUnexpected(uint32_t receive, uint32_t handle) noexcept;
  Withdrawn Withdraw(uint32_t receive) noexcept;

  PostedList posted_;  // Cookie: the receive.
  UnexpectedList unexpected_;
  std::vector<uint64_t> lengths_;  // Of unexpected messages, by handle.
  std::vector<Receive> receives_;
  FreeList<Receive, &Receive::free> free_;
  uint32_t room_;
};

}  // namespace heddle::semantics
