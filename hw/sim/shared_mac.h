// SPDX-License-Identifier: Apache-2.0
// The NIC's MAC on a port of the one-machine wire, with faults and capture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "hw/sim/capture.h"
#include "hw/sim/faults.h"
#include "hw/sim/faulty_line.h"
#include "hw/sim/mac_link.h"
#include "hw/sim/shared_wire.h"

namespace heddle::sim {

// Frames enter and leave the wire whole; the NIC sees them at one beat per
// cycle. A receiver that is full holds this NIC's transmitter back.
// Thread safety: none.
class SharedMac : public MacLink {
 public:
  // `capture` may be null. `wire` outlives it.
  SharedMac(SharedWire* wire, uint32_t bus_bytes, const LineFaults& faults,
            std::unique_ptr<Capture> capture);

  bool TransmitReady() override;
  bool Receive(MacBeat* beat) override;
  void Transmit(std::span<const uint8_t> bytes, bool last) override;

  // True if the link has work for the next cycle.
  bool active() const {
    return !received_.empty() || !outgoing_.empty() || !arrived_.empty() ||
           wire_->HasNews();
  }
  // While held, frames wait on the wire.
  void HoldReceive(bool hold) { held_ = hold; }
  // Lets go what faults held back until now.
  void Release();
  // When `Release` has something to do, monotonic; UINT64_MAX: never.
  uint64_t release_at_ns() const {
    return std::min(line_.next(), rx_line_.next());
  }
  void FlushCapture();

  uint64_t frames_sent() const { return frames_sent_; }
  uint64_t frames_received() const { return frames_received_; }
  // Monotonic time of the last frame received, 0 for none.
  uint64_t last_received_ns() const { return last_received_ns_; }
  const FaultyLine& faults() const { return line_; }
  const FaultyLine& rx_faults() const { return rx_line_; }

  static constexpr uint64_t kHoldNs = 1000000;  // Longest for reordering.

 private:
  void SendOutgoing();
  // Takes the next frame to receive, through the receiver's faults.
  bool TakeFrame();
  void Record(std::span<const uint8_t> frame);

  SharedWire* const wire_;
  const uint32_t bus_bytes_;
  FaultyLine line_;
  FaultyLine rx_line_;
  std::unique_ptr<Capture> capture_;
  Frame transmitted_;               // The frame the NIC is sending.
  std::vector<LineFrame> leaving_;  // Scratch.
  std::deque<LineFrame> outgoing_;
  std::vector<LineFrame> arriving_;  // Scratch.
  std::deque<LineFrame> arrived_;    // Through `rx_line_`.
  Frame received_;                   // The frame the NIC is receiving.
  bool received_bad_ = false;
  bool held_ = false;
  size_t received_offset_ = 0;
  uint64_t frames_sent_ = 0;
  uint64_t frames_received_ = 0;
  uint64_t last_received_ns_ = 0;
};

}  // namespace heddle::sim
