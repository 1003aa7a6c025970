// SPDX-License-Identifier: Apache-2.0
// Whole frames to and from a port of the one-machine wire, with faults and
// capture.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hw/sim/base/time_source.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/fault/faulty_line.h"
#include "hw/sim/frame/capture.h"
#include "hw/sim/frame/frame_observer.h"
#include "hw/sim/wire/shared_wire.h"

namespace heddle::soft::shared {

// As SharedMac, without clock cycles; a frame that meets no fault goes from the
// caller's buffer to the wire. Thread safety: none.
class FramePort {
 public:
  // `capture` and `observer` may be null. `wire` and `observer` outlive it.
  FramePort(sim::wire::SharedWire* wire, const sim::fault::LineFaults& faults,
            std::unique_ptr<sim::frame::Capture> capture,
            sim::base::TimeSource time = {},
            sim::frame::FrameObserver* observer = nullptr);

  // `route` is that of the frame. False: no room, nothing was taken.
  bool Send(std::span<const uint8_t> frame, const sim::frame::Route& route);
  // The wire's port for a frame with `route` that can do without CRC, because
  // nothing changes, records or checks it on its way; for a `SendUnchecked` at
  // once. Empty: it cannot.
  std::optional<uint32_t> FindUnchecked(const sim::frame::Route& route);
  bool SendUnchecked(std::span<const uint8_t> frame, uint32_t port);
  // The next frame; false when there is none now.
  bool Receive(sim::frame::Frame* frame, sim::frame::FrameMarks* marks);

  // Lets go what faults held back until now, and what found no room.
  void Release() {
    if (release_at_ns() != UINT64_MAX) {
      ReleaseHeld();
    }
  }
  // When `Release` has something to do, monotonic; UINT64_MAX: never.
  uint64_t release_at_ns() const {
    return faulty_ ? std::min({retry_at_ns_, tx_line_.next(), rx_line_.next()})
                   : retry_at_ns_;
  }
  // True when `Receive` may find something. Any thread may ask, at any time.
  bool has_news() const {
    return has_arrived_.load(std::memory_order_relaxed) || wire_->HasNews();
  }
  void FlushCapture();

  uint64_t frames_sent() const { return frames_sent_; }
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t frames_received() const { return frames_received_; }
  uint64_t bytes_received() const { return bytes_received_; }
  // Lines `name value` of what happened to frames.
  std::string StatisticsText() const;

 private:
  // A receiver that takes frames again wakes this port; one that does not is
  // found out by trying.
  static constexpr uint64_t kRetryNs = 1000000;

  void ReleaseHeld();
  // Frames with faults; false while earlier ones wait for room.
  bool SendOutgoing();
  bool ReceiveFaulty(sim::frame::Frame* frame, sim::frame::FrameMarks* marks);
  // Moves what has passed `rx_line_` to `arrived_`.
  void Arrive();
  void Record(std::span<const uint8_t> frame,
              sim::frame::FrameObserver::Way way) {
    if (capture_ != nullptr || observer_ != nullptr) {
      RecordFrame(frame, way);
    }
  }
  void RecordFrame(std::span<const uint8_t> frame,
                   sim::frame::FrameObserver::Way way);
  void CountSent(std::span<const uint8_t> frame);

  sim::wire::SharedWire* const wire_;
  sim::fault::FaultyLine tx_line_;
  sim::fault::FaultyLine rx_line_;
  const bool faulty_;  // One of them may hold frames.
  std::unique_ptr<sim::frame::Capture> capture_;
  const sim::base::TimeSource time_;
  sim::frame::FrameObserver* const observer_;
  std::vector<sim::fault::LineFrame> leaving_;  // Scratch.
  std::deque<sim::fault::LineFrame> outgoing_;
  std::deque<sim::fault::LineFrame> arrived_;
  std::atomic<bool> has_arrived_ = false;  // A hint: who takes holds a lock.
  uint64_t retry_at_ns_ = UINT64_MAX;      // While `outgoing_` waits for room.
  uint64_t frames_sent_ = 0;
  uint64_t bytes_sent_ = 0;
  uint64_t frames_received_ = 0;
  uint64_t bytes_received_ = 0;
};

}  // namespace heddle::soft::shared
