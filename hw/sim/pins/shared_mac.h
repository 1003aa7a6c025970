// SPDX-License-Identifier: Apache-2.0
// The NIC's MAC on a port of the one-machine wire, with faults and capture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "hw/sim/fault/faults.h"
#include "hw/sim/fault/faulty_line.h"
#include "hw/sim/frame/capture.h"
#include "hw/sim/pins/mac_link.h"
#include "hw/sim/wire/shared_wire.h"

namespace heddle::sim::pins {

// Frames enter and leave the wire whole; the NIC sees them at one beat per
// cycle. A receiver that is full holds this NIC's transmitter back.
// Thread safety: none.
class SharedMac : public MacLink {
 public:
  // `capture` may be null. `wire` outlives it.
  SharedMac(wire::SharedWire* wire, uint32_t bus_bytes,
            const fault::LineFaults& faults,
            std::unique_ptr<frame::Capture> capture);

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
  const fault::FaultyLine& faults() const { return line_; }
  const fault::FaultyLine& rx_faults() const { return rx_line_; }

 private:
  void SendOutgoing();
  // Takes the next frame to receive, through the receiver's faults.
  bool TakeFrame();
  void Record(std::span<const uint8_t> frame);

  wire::SharedWire* const wire_;
  const uint32_t bus_bytes_;
  fault::FaultyLine line_;
  fault::FaultyLine rx_line_;
  std::unique_ptr<frame::Capture> capture_;
  frame::Frame transmitted_;               // The frame the NIC is sending.
  std::vector<fault::LineFrame> leaving_;  // Scratch.
  std::deque<fault::LineFrame> outgoing_;
  std::vector<fault::LineFrame> arriving_;  // Scratch.
  std::deque<fault::LineFrame> arrived_;    // Through `rx_line_`.
  frame::Frame received_;                   // The frame the NIC is receiving.
  bool received_bad_ = false;
  bool held_ = false;
  size_t received_offset_ = 0;
  uint64_t frames_sent_ = 0;
  uint64_t frames_received_ = 0;
  uint64_t last_received_ns_ = 0;
};

}  // namespace heddle::sim::pins
