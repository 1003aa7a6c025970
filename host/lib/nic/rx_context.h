// SPDX-License-Identifier: Apache-2.0
// The common part of the receive contexts that match and those that do not.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "driver/dma/dma_buffer.h"
#include "driver/queue/doorbells.h"
#include "host/lib/backend/locking.h"
#include "host/lib/backend/objects.h"
#include "host/lib/nic/address_table.h"
#include "host/lib/nic/context_map.h"
#include "host/lib/nic/registration.h"

namespace heddle::nic {

using backend::ReceiveOperation;

struct RxOptions {
  size_t operations = 0;          // Posted at a time, at least.
  uint32_t copy_limit_bytes = 0;  // Larger unregistered buffers are mapped.
  // Names senders in completions; null without FI_SOURCE.
  const AddressTable* peers = nullptr;
  bool refuse_strangers = false;  // With `peers`: see `Cq::RefuseStranger`.
  // Messages go straight to their place: a counter tells of them, without a
  // completion that is read. Buffers of several segments are EOPNOTSUPP.
  bool in_place = false;
  bool report_targets = true;  // Peers' RMA operations that are reported.
  uint64_t owner_context = 0;  // Of errors that no receive belongs to.
  MapRefusalListener on_refused = {};
  // Contexts that match: sources of receives, and the space of tags.
  const AddressTable* directory = nullptr;
  bool tagged = false;
  uint32_t unexpected_bytes = 0;  // A multiple of 4 KiB.
};

// What a completion means to the host.
struct Finished {
  uint64_t context = 0;
  void* buffer = nullptr;  // Receive: where the message begins.
  // Where the operation's peer is named; null without FI_SOURCE.
  const AddressTable* peers = nullptr;
  bool known = false;   // False: of no operation of ours, to be ignored.
  bool report = false;  // False: the application asked not to hear of success.
  // Contexts that match report these.
  bool matched = false;
  uint64_t flags = 0;   // From fi_cq(3).
  uint32_t length = 0;  // Placed; of a peek, the message's.
};

// State of a receive; compared as a whole.
struct ReceiveUse {
  Ticket ticket = kNoTicket;
  uint8_t state = 0;  // Bits of the queue's.
  bool report = false;
};

// The part of a receive context of either kind that completions need.
//
// Thread safety: immutable once bound, but for the link, which is of the
// completion queue's.
class RxContext : public backend::ReceiveContext {
 public:
  backend::SpinLock& lock() noexcept { return lock_; }
  // Whether it is a `MatchQueue`, or else an `RxQueue`.
  bool matches() const noexcept { return matches_; }
  uint32_t context() const noexcept { return context_; }
  ContextLink<RxContext>& link() noexcept { return link_; }
  const AddressTable* peers() const noexcept { return peers_; }
  bool refuses_strangers() const noexcept { return refuses_strangers_; }
  bool reports_targets() const noexcept { return reports_targets_; }
  uint64_t owner_context() const noexcept { return owner_context_; }

  Iova ring_iova() const noexcept { return memory_.iova(); }
  Iova head_cell_iova() const noexcept { return memory_.iova() + ring_bytes_; }
  uint8_t ring_log2() const noexcept { return ring_log2_; }

 protected:
  explicit RxContext(bool matches) noexcept : matches_(matches) {}
  ~RxContext() = default;

  size_t slots() const noexcept { return size_t{1} << ring_log2_; }
  // Memory for a ring of `slot_bytes`. Errors: those of `DmaBuffer`.
  Result<bool> CreateRing(Device& device, const RxOptions& options,
                          size_t slot_bytes);
  Result<Registrar> CreateRegistrar(Device& device, const RxOptions& options,
                                    size_t tickets) const;
  // The sum of the segments in `bytes`; EINVAL for too many, EMSGSIZE for too
  // much.
  [[gnu::always_inline]] static int CountBytes(
      std::span<const Segment> segments, size_t* bytes) noexcept {
    if (segments.size() > kMaxSegments) {
      return EINVAL;
    }
    size_t sum = 0;  // A few of at most 2^32: cannot wrap.
    for (const Segment& segment : segments) {
      if (segment.bytes > contract::kMaxMessageBytes) {
        return EMSGSIZE;
      }
      sum += segment.bytes;
    }
    if (sum > contract::kMaxMessageBytes) {
      return EMSGSIZE;
    }
    *bytes = sum;
    return 0;
  }
  // Error of a buffer that was not prepared.
  static int ErrorOf(const Prepared& prepared) noexcept {
    return prepared.status == Prepared::Status::kFull
               ? EAGAIN
               : static_cast<int>(prepared.error);
  }
  bool in_place() const noexcept { return in_place_; }

 private:
  template <typename Queue, typename Ring, typename Descriptor,
            typename Operation>
  friend class PostingContext;

  backend::SpinLock lock_;
  const bool matches_;
  const AddressTable* peers_ = nullptr;
  // Above: completions. Below: cold.
  uint32_t context_ = 0;
  ContextLink<RxContext> link_;
  uint8_t ring_log2_ = 0;
  bool in_place_ = false;
  bool refuses_strangers_ = false;
  bool reports_targets_ = true;
  uint64_t owner_context_ = 0;
  size_t ring_bytes_ = 0;
  DmaBuffer memory_;  // The ring, then its head cell.
};

// How receives are posted to a ring of either kind; `Queue` is the class that
// derives from it, whose `TryPostCopied`, `Push` and `CancelOldest` do the
// work.
//
// Thread safety: `Post*` and `Cancel` take the lock, by their policy;
// `Retire` is called under `lock()`; the rest is for the thread that makes or
// ends the endpoint.
// Ownership: owns ring memory and bounce buffers; borrows the device.
template <typename Queue, typename Ring, typename Descriptor,
          typename Operation>
class PostingContext : public RxContext {
 public:
  // The ring of context `context` in this memory. Errors: EINVAL.
  Result<bool> Bind(Device& device, uint32_t context) {
    auto made = Ring::Create(
        memory_.entries<Descriptor>(slots()),
        reinterpret_cast<const uint64_t*>(memory_.data() + ring_bytes_),
        RxTailDoorbell(device, context), RxOpDoorbell(device, context));
    if (!made.ok()) {
      return made.error();
    }
    ring_.emplace(made.value());
    context_ = context;
    return true;
  }

  // As TxQueue::PostSegments, and the errors of the queue's `Push`. Defined in
  // posting_context.h.
  template <typename Locking>
  [[nodiscard]] int PostSegments(const Operation& operation,
                                 std::span<const Segment> segments) noexcept;
  template <typename Locking>
  [[nodiscard]] int Post(const Operation& operation,
                         const backend::Buffer& buffer) noexcept {
    if (buffer.descriptor == nullptr &&
        static_cast<Queue*>(this)->template TryPostCopied<Locking>(operation,
                                                                   buffer)) {
      return 0;
    }
    const Segment segment = Segments::Of(buffer);
    return PostSegments<Locking>(operation, {&segment, 1});
  }
  template <typename Locking>
  [[nodiscard]] int Post(const Operation& operation,
                         const backend::Payload& payload) noexcept {
    return PostSegments<Locking>(operation, Segments(payload).list());
  }

  // Requests that the device withdraw the oldest receive posted with `context`
  // whose withdrawal has not been requested. False when there is none.
  template <typename Locking>
  bool Cancel(uint64_t context) noexcept {
    const typename Locking::Guard guard(lock());
    return static_cast<Queue*>(this)->CancelOldest(context);
  }

  // Memory of retired operations; under `lock()`.
  EndedMemory& ended() noexcept { return registrar_->ended(); }

 protected:
  using RxContext::RxContext;

  void Break() noexcept {
    broken_ = true;
    ring_->Close();
  }

  bool broken_ = false;  // The device failed or broke its contract.
  std::optional<Ring> ring_;
  std::optional<Registrar> registrar_;
};

}  // namespace heddle::nic
