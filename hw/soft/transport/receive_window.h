// SPDX-License-Identifier: Apache-2.0
// Which packets of one direction of a PDC have come.
#pragma once

#include <bit>
#include <cstdint>

#include "hw/soft/transport/psn.h"

namespace heddle::soft::transport {

// PSNs up to `cack` are done; above it a bitmap of those that came, and of
// those whose stored answer is not cleared yet and therefore holds `cack` back
// (UET 2.15).
class ReceiveWindow {
 public:
  enum class Place : uint8_t {
    kNew,        // To be offered to the client.
    kEarly,      // Ordered, and one before it is missing.
    kDuplicate,  // Came before.
    kOutside,    // Too far above or below.
  };
  // As far below `cack` as an ACK's offset can name.
  static constexpr uint32_t kBehind = 1u << 15;
  // How far an ordered packet may be ahead to be told what is missing.
  static constexpr uint32_t kAhead = 2 * kWindow;

  void Open(uint32_t start) {
    cack_ = start - 1;
    received_ = held_ = owed_ = 0;
  }

  uint32_t cack() const { return cack_; }
  uint32_t next() const {
    return cack_ + 1 + static_cast<uint32_t>(std::countr_one(received_));
  }
  // Bit i: PSN cack + 1 + i came.
  uint64_t received() const { return received_; }
  bool complete() const { return received_ == 0; }
  // Some PSN below one that came is missing.
  bool gap() const { return (received_ & (received_ + 1)) != 0; }

  Place Find(uint32_t psn, bool ordered) const {
    const uint32_t ahead = psn - cack_ - 1;
    if (ahead >= 0u - kBehind) {
      return Place::kDuplicate;
    }
    if (ahead < kWindow) {
      if ((received_ & Bit(ahead)) != 0) {
        return Place::kDuplicate;
      }
      return ordered && psn != next() ? Place::kEarly : Place::kNew;
    }
    return ordered && ahead < kAhead ? Place::kEarly : Place::kOutside;
  }

  // `psn` came (it is kNew); `hold`: its answer is to be cleared.
  void Accept(uint32_t psn, bool hold) {
    const uint64_t bit = Bit(psn - cack_ - 1);
    received_ |= bit;
    if (hold) {
      held_ |= bit;
    }
    Advance();
  }

  // `psn` came, and its acknowledgement waits; CACK may come to say it, too.
  void Owe(uint32_t psn) {
    const uint32_t ahead = psn - cack_ - 1;
    owed_ |= ahead < kWindow ? Bit(ahead) : 0;
  }
  // That the source cannot learn from CACK. Bit i: PSN cack + 1 + i.
  uint64_t owed() const { return owed_; }
  void Pay(uint32_t psn) { owed_ &= ~Bit(psn - cack_ - 1); }

  // Answers up to `clear_psn` are with the peer. True if `cack` moved.
  bool Clear(uint32_t clear_psn) {
    const uint32_t count = clear_psn - cack_;
    if (held_ == 0 || count == 0 || count > kWindow) {
      return false;
    }
    held_ &= ~LowBits(count);
    const uint32_t before = cack_;
    Advance();
    return cack_ != before;
  }

 private:
  void Advance() {
    const uint32_t count =
        static_cast<uint32_t>(std::countr_one(received_ & ~held_));
    cack_ += count;
    received_ = MovedUp(received_, count);
    held_ = MovedUp(held_, count);
    owed_ = MovedUp(owed_, count);
  }

  uint32_t cack_ = 0;
  uint64_t received_ = 0;
  uint64_t held_ = 0;
  uint64_t owed_ = 0;
};

}  // namespace heddle::soft::transport
