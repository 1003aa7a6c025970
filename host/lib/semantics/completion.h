// SPDX-License-Identifier: Apache-2.0
// Completion queue entries and the room for them.
#pragma once

#include <cstdint>
#include <optional>

#include "host/lib/semantics/match_rule.h"
#include "host/lib/semantics/outcome.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::semantics {

// Ring slot that a completion is about.
struct RingPlace {
  uint16_t context = 0;
  uint16_t position = 0;    // Of the descriptor.
  uint16_t queue_head = 0;  // Slots released so far.
};

// What the target knows of a message besides its outcome.
struct MessageNames {
  contract::Opcode opcode = contract::Opcode::kSend;
  Source source;
  uint64_t tag = 0;
  std::optional<uint64_t> header_data;  // Remote CQ data.
};

// Whether a transmit operation has an entry: each that asked, and each that
// failed (libfabric 164 to 166).
constexpr bool WantsCompletion(uint8_t tx_flags,
                               contract::Status status) noexcept {
  return (tx_flags & contract::kTxFlagCompletion) != 0 ||
         status != contract::Status::kOk;
}

// Entries but for their phase. A device that ends a cancelled receive leaves
// op_context 0, as the contract says: the host still holds the slot.
contract::Completion TxCompletion(const contract::TxDesc& descriptor,
                                  const Outcome& outcome,
                                  const RingPlace& place) noexcept;
contract::Completion RxCompletion(uint64_t op_context,
                                  const MessageNames& names,
                                  const Outcome& outcome,
                                  const RingPlace& place) noexcept;

// The device's side of a completion queue: where the next entry goes, and the
// credit that keeps entries from being overwritten.
//
// Guarantees: entries reserved and entries not yet read are together never more
// than the queue holds; what is reserved can always be written.
//
// Thread safety: one thread at a time.
class CompletionRing {
 public:
  // Of 2^log2 entries, at most kCqLog2Max.
  explicit CompletionRing(unsigned log2) noexcept : log2_(log2) {}

  // False when the queue has no room left: the operation has to wait.
  [[nodiscard]] bool Reserve() noexcept {
    if (reserved_ + (produced_ - consumed_) == size()) {
      return false;
    }
    ++reserved_;
    return true;
  }
  // Gives back a reservation that was not needed.
  void Unreserve() noexcept { --reserved_; }

  struct Entry {
    uint32_t index = 0;
    uint8_t phase = 0;
  };
  // Turns a reservation into the next entry, to be written at once.
  Entry Produce() noexcept {
    const Entry entry = {
        produced_ & (size() - 1),
        static_cast<uint8_t>((produced_ >> log2_ & 1U) == 0 ? 1 : 0)};
    --reserved_;
    ++produced_;
    return entry;
  }

  // The host has read all entries before this free-running count. False, and
  // unchanged, when it claims entries that were never produced.
  [[nodiscard]] bool Consumed(uint32_t count) noexcept {
    if (count - consumed_ > produced_ - consumed_) {
      return false;
    }
    consumed_ = count;
    return true;
  }

  uint32_t size() const noexcept { return 1U << log2_; }
  uint32_t reserved() const noexcept { return reserved_; }
  uint32_t unread() const noexcept { return produced_ - consumed_; }

 private:
  unsigned log2_;
  uint32_t reserved_ = 0;
  uint32_t produced_ = 0;  // Free-running.
  uint32_t consumed_ = 0;  // Free-running.
};

}  // namespace heddle::semantics
