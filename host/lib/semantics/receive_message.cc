// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/receive_message.h"

#include <algorithm>

namespace heddle::semantics {

using contract::ReturnCode;
using contract::Status;

ReceiveMessage::ReceiveMessage(uint32_t request_length, uint64_t room,
                               Longer longer) noexcept
    : room_(room), end_(request_length), request_length_(request_length) {
  if (longer == Longer::kReject && request_length > room) {
    status_ = Status::kTruncated;
    code_ = ReturnCode::kTooLong;
    detail_ = static_cast<uint16_t>(code_);
  }
}

bool ReceiveMessage::Consistent(const MessagePacket& packet) const noexcept {
  const uint64_t packet_end = uint64_t{packet.offset} + packet.length;
  if (packet.request_length != request_length_ || packet_end > end_ ||
      packet.som != (packet.offset == 0)) {
    return false;
  }
  if (packet.ie) {
    // Ends the message behind everything that came, or goes on.
    return packet.eom
               ? (!eom_ || packet_end == end_) && packet_end >= arrived_.end()
               : packet.length != 0;
  }
  // Only a packet of its own may stand for no bytes.
  return packet.eom == (packet_end == request_length_) &&
         (packet.length != 0 || request_length_ == 0);
}

ReceiveMessage::Verdict ReceiveMessage::Accept(
    const MessagePacket& packet) noexcept {
  Verdict verdict;
  verdict.code = code_;
  if (!Consistent(packet)) {
    return verdict;
  }
  const uint64_t packet_end = uint64_t{packet.offset} + packet.length;
  using Added = RangeSet<kRanges>::Added;
  Added added = arrived_.Add(packet.offset, packet_end);
  if (packet.length == 0 && !(packet.som ? som_ : eom_)) {
    added = Added::kNew;
  }
  if (added != Added::kNew) {
    verdict.action = added == Added::kDuplicate ? Action::kDuplicate
                     : added == Added::kFull    ? Action::kFull
                                                : Action::kMalformed;
    return verdict;
  }
  som_ = som_ || packet.som;
  eom_ = eom_ || packet.eom;
  if (packet.ie) {
    end_ = packet.eom ? packet_end : end_;
    if (status_ == Status::kOk) {
      status_ = Status::kInitiatorError;
      code_ = ReturnCode::kInitiatorErr;
      detail_ = static_cast<uint16_t>(code_);
    }
  }
  verdict.action = Action::kAccepted;
  verdict.code = code_;
  if (status_ == Status::kOk && !discard_ && packet.offset < room_) {
    verdict.place_offset = packet.offset;
    verdict.place_bytes = static_cast<uint32_t>(
        std::min<uint64_t>(packet.length, room_ - packet.offset));
    placed_ += verdict.place_bytes;
  }
  return verdict;
}

void ReceiveMessage::Fail(Status status, uint16_t detail) noexcept {
  if (status_ == Status::kOk) {
    status_ = status;
    code_ = ReturnCodeOf(status);
    detail_ = detail;
  }
}

Outcome ReceiveMessage::outcome() const noexcept {
  Status status = status_;
  if (status == Status::kOk && !discard_ && request_length_ > room_) {
    status = Status::kTruncated;
  }
  return {status, detail_, placed_, request_length_};
}

uint32_t ReceiveMessage::modified_length() const noexcept {
  // An error that nothing precedes leaves the buffer as it was.
  return status_ == Status::kOk && !discard_
             ? static_cast<uint32_t>(std::min<uint64_t>(request_length_, room_))
             : placed_;
}

}  // namespace heddle::semantics
