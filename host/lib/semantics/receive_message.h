// SPDX-License-Identifier: Apache-2.0
// A message on its way in: its packets, in any order, put together.
#pragma once

#include <cstdint>

#include "host/lib/semantics/outcome.h"
#include "host/lib/semantics/range_set.h"

namespace heddle::semantics {

// What one request packet says of its message (UET 4.2).
struct MessagePacket {
  uint32_t request_length = 0;  // Of the whole message.
  uint32_t offset = 0;          // message_offset; 0 with som.
  // Bytes of the message that the packet stands for. One with `ie` carries no
  // payload but stands for the bytes that its sender could not read; without
  // `eom` that is never none.
  uint32_t length = 0;
  bool som = false;
  bool eom = false;
  bool ie = false;
};

// Target side of a SEND, a WRITE, or the return data of a READ.
//
// Guarantees:
// - each byte is placed at most once, and none beyond `room`;
// - complete exactly when every byte, the som and the eom packet have come, in
//   any order; a packet with ie and eom is where the message ends then. Not
//   before: a packet that follows would be taken for a new message's;
// - the first error stays, later packets are accounted and placed no more, and
//   answered with its code (UET 4.14);
// - a packet that contradicts the others changes nothing.
//
// Thread safety: one thread at a time.
class ReceiveMessage {
 public:
  // Longer than the buffer: cut to it (FI_ETRUNC), or refused (TOO_LONG).
  enum class Longer : uint8_t { kTruncate, kReject };

  ReceiveMessage(uint32_t request_length, uint64_t room,
                 Longer longer = Longer::kTruncate) noexcept;

  enum class Action : uint8_t {
    kAccepted,   // Place `place_bytes` at `place_offset`; may be none.
    kDuplicate,  // Came before; unchanged, answer as the first time.
    kMalformed,  // Contradicts the message; unchanged.
    kFull,       // More gaps than a legal sender makes; unchanged.
  };
  struct Verdict {
    Action action = Action::kMalformed;
    uint32_t place_offset = 0;  // In the buffer and in the message.
    uint32_t place_bytes = 0;   // From the start of the payload.
    contract::ReturnCode code = contract::ReturnCode::kOk;  // To answer.
  };
  [[nodiscard]] Verdict Accept(const MessagePacket& packet) noexcept;

  // Ends the message in an error of the target's (memory that refused a write,
  // a peer that is gone). The first error stays.
  void Fail(contract::Status status, uint16_t detail) noexcept;
  // Nobody wants the rest: packets are accounted and placed no more
  // (FI_DISCARD). No error.
  void Discard() noexcept { discard_ = true; }

  bool complete() const noexcept {
    return som_ && eom_ && arrived_.Covers(end_);
  }
  // Valid at any time, final once complete.
  Outcome outcome() const noexcept;
  // Answer to a packet of this message.
  contract::ReturnCode code() const noexcept { return code_; }
  // modified_length of the response (UET 4.7).
  uint32_t modified_length() const noexcept;

  // A sender has at most kPdcWindow packets in flight.
  static constexpr size_t kRanges = contract::kPdcWindow / 2 + 1;

 private:
  bool Consistent(const MessagePacket& packet) const noexcept;

  RangeSet<kRanges> arrived_;
  uint64_t room_;
  uint64_t end_;  // Of the bytes to come.
  uint32_t request_length_;
  uint32_t placed_ = 0;  // Bytes.
  contract::Status status_ = contract::Status::kOk;
  contract::ReturnCode code_ = contract::ReturnCode::kOk;
  uint16_t detail_ = 0;
  bool som_ = false;
  bool eom_ = false;
  bool discard_ = false;
};

}  // namespace heddle::semantics
