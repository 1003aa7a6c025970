// SPDX-License-Identifier: Apache-2.0
// Which packets of one direction of a PDC are out, and what is known of each.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "hw/soft/rules/psn.h"

namespace heddle::soft::transport {

// PSNs from `una`, the oldest that no cumulative ACK covers, to `top`, the
// first never sent; at most rules::kWindow of them. Each is in one of these
// states:
//   in flight   sent, nothing heard of it;
//   lost        to be sent again;
//   arrived     the peer has it, its answer is not here yet;
//   answered    released: what it stands for is done with it.
class SendWindow {
 public:
  struct Packet {
    uint32_t what = 0;     // The owner's: message, or a marker.
    uint32_t sent_at = 0;  // Units of kTimeUnit.
    uint16_t bytes = 0;    // Nominal size.
    uint8_t transmissions = 0;
  };
  static constexpr uint64_t kTimeUnit = 64;  // ns

  void Open(uint32_t start) {
    una_ = top_ = start;
    answered_ = arrived_ = lost_ = 0;
    flight_bytes_ = 0;
  }

  uint32_t una() const { return una_; }
  uint32_t top() const { return top_; }
  uint64_t flight_bytes() const { return flight_bytes_; }
  bool empty() const { return top_ == una_; }
  bool full() const { return top_ - una_ >= rules::kWindow; }
  bool Contains(uint32_t psn) const { return psn - una_ < top_ - una_; }
  uint64_t sent() const { return rules::LowBits(top_ - una_); }
  uint64_t unanswered() const { return sent() & ~answered_; }
  uint64_t in_flight() const {
    return sent() & ~answered_ & ~arrived_ & ~lost_;
  }
  uint64_t lost() const { return lost_; }
  uint64_t arrived() const { return arrived_; }
  uint64_t answered() const { return answered_; }
  bool Has(uint64_t set, uint32_t psn) const {
    return Contains(psn) && (set & rules::Bit(psn - una_)) != 0;
  }
  const Packet& packet(uint32_t psn) const {
    return packets_[psn % rules::kWindow];
  }

  // CLEAR_PSN: the answers of all PSNs up to it are here (UET 2.15).
  uint32_t clear_psn() const {
    return una_ - 1 + static_cast<uint32_t>(std::countr_one(answered_));
  }

  // PSN `top` was sent.
  void PushSent(uint32_t what, uint32_t bytes, uint64_t now_ns) {
    packets_[top_ % rules::kWindow] = {.what = what,
                                       .sent_at = Time(now_ns),
                                       .bytes = static_cast<uint16_t>(bytes),
                                       .transmissions = 1};
    ++top_;
    flight_bytes_ += bytes;
  }

  // The lost PSN to be sent next; `lost` is not empty.
  uint32_t first_lost() const {
    return una_ + static_cast<uint32_t>(std::countr_zero(lost_));
  }
  void NoteResent(uint32_t psn, uint64_t now_ns) {
    Packet& packet = packets_[psn % rules::kWindow];
    packet.sent_at = Time(now_ns);
    packet.transmissions =
        static_cast<uint8_t>(packet.transmissions + (packet.transmissions < 3));
    lost_ &= ~rules::Bit(psn - una_);
    flight_bytes_ += packet.bytes;
  }

  // Of those in `set`: what is not answered or arrived counts as lost. Returns
  // the nominal bytes that this takes out of flight.
  uint64_t MarkLost(uint64_t set) {
    set &= in_flight();
    const uint64_t bytes = TakeFromFlight(set);
    lost_ |= set;
    return bytes;
  }
  // What was believed to have arrived has not: it is lost. Its bytes left the
  // flight before.
  void MarkNotArrived(uint32_t psn) {
    const uint64_t bit = rules::Bit(psn - una_) & arrived_ & ~answered_;
    arrived_ &= ~bit;
    lost_ |= bit;
  }
  // Returns the nominal bytes that left the flight.
  uint64_t MarkArrived(uint64_t set) {
    set &= unanswered() & ~arrived_;
    const uint64_t bytes = TakeFromFlight(set);
    arrived_ |= set;
    lost_ &= ~set;
    return bytes;
  }
  // Answered by an ACK of its own. False: it was before.
  bool Answer(uint32_t psn, uint64_t* bytes) {
    const uint64_t bit = rules::Bit(psn - una_);
    if ((answered_ & bit) != 0) {
      return false;
    }
    *bytes += MarkArrived(bit);
    answered_ |= bit;
    return true;
  }
  // Everything before `una` is answered, and out of the window. Returns those
  // that were not before, as a set with the old base; adds their bytes.
  uint64_t Cumulate(uint32_t una, uint64_t* bytes) {
    const uint32_t count = una - una_;
    const uint64_t fresh = rules::LowBits(count) & ~answered_;
    *bytes += TakeFromFlight(fresh & in_flight());
    una_ = una;
    answered_ = rules::MovedUp(answered_, count);
    arrived_ = rules::MovedUp(arrived_, count);
    lost_ = rules::MovedUp(lost_, count);
    return fresh;
  }

  static uint32_t Time(uint64_t now_ns) {
    return static_cast<uint32_t>(now_ns / kTimeUnit);
  }
  // Since the last transmission of `psn`; wraps after 4 minutes.
  uint64_t AgeNs(uint32_t psn, uint64_t now_ns) const {
    return (Time(now_ns) - packet(psn).sent_at) * uint64_t{kTimeUnit};
  }

 private:
  uint64_t TakeFromFlight(uint64_t set) {
    uint64_t bytes = 0;
    for (set &= in_flight(); set != 0; set &= set - 1) {
      bytes += packets_[(una_ + static_cast<uint32_t>(std::countr_zero(set))) %
                        rules::kWindow]
                   .bytes;
    }
    flight_bytes_ -= bytes;
    return bytes;
  }

  uint32_t una_ = 0;
  uint32_t top_ = 0;
  uint64_t answered_ = 0;
  uint64_t arrived_ = 0;
  uint64_t lost_ = 0;
  uint64_t flight_bytes_ = 0;
  std::array<Packet, rules::kWindow> packets_;
};

}  // namespace heddle::soft::transport
