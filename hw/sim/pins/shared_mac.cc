// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/pins/shared_mac.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "hw/sim/base/clock.h"

namespace heddle::sim::pins {
namespace {

void MoveTo(std::deque<fault::LineFrame>* queue,
            std::vector<fault::LineFrame>* frames) {
  std::move(frames->begin(), frames->end(), std::back_inserter(*queue));
  frames->clear();
}

}  // namespace

SharedMac::SharedMac(wire::SharedWire* wire, uint32_t bus_bytes,
                     const fault::LineFaults& faults,
                     std::unique_ptr<frame::Capture> capture)
    : wire_(wire),
      bus_bytes_(bus_bytes),
      line_(wire->OfThisPort(faults).tx, fault::kHoldNs),
      rx_line_(wire->OfThisPort(faults).rx, fault::kHoldNs),
      capture_(std::move(capture)) {}

bool SharedMac::TransmitReady() {
  SendOutgoing();
  return outgoing_.empty();
}

void SharedMac::Transmit(std::span<const uint8_t> bytes, bool last) {
  transmitted_.insert(transmitted_.end(), bytes.begin(), bytes.end());
  if (last) {
    line_.Push(std::exchange(transmitted_, {}), base::MonotonicNs(), &leaving_);
    MoveTo(&outgoing_, &leaving_);
    SendOutgoing();
  }
}

void SharedMac::SendOutgoing() {
  while (!outgoing_.empty()) {
    if (wire_->Send(outgoing_.front()) ==
        wire::SharedWire::SendOutcome::kBlocked) {
      return;
    }
    Record(outgoing_.front().bytes);
    ++frames_sent_;
    outgoing_.pop_front();
  }
}

void SharedMac::Release() {
  if (release_at_ns() == UINT64_MAX) {
    return;
  }
  const uint64_t now = base::MonotonicNs();
  line_.Release(now, &leaving_);
  MoveTo(&outgoing_, &leaving_);
  SendOutgoing();
  rx_line_.Release(now, &arriving_);
  MoveTo(&arrived_, &arriving_);
}

bool SharedMac::TakeFrame() {
  frame::FrameMarks marks;
  if (rx_line_.active()) {
    for (;;) {
      fault::LineFrame frame;
      if (!wire_->HasNews() || !wire_->Receive(&frame.bytes, &marks)) {
        break;
      }
      frame.bad_fcs = marks.bad_fcs;
      rx_line_.Push(std::move(frame), base::MonotonicNs(), &arriving_);
    }
    MoveTo(&arrived_, &arriving_);
    if (arrived_.empty()) {
      return false;
    }
    received_ = std::move(arrived_.front().bytes);
    received_bad_ = arrived_.front().bad_fcs;
    arrived_.pop_front();
    return true;
  }
  if (!wire_->HasNews() || !wire_->Receive(&received_, &marks)) {
    return false;
  }
  received_bad_ = marks.bad_fcs;
  return true;
}

bool SharedMac::Receive(MacBeat* beat) {
  if (received_.empty()) {
    if (held_ || !TakeFrame()) {
      return false;
    }
    received_offset_ = 0;
    ++frames_received_;
    last_received_ns_ = base::MonotonicNs();
    Record(received_);
  }
  const size_t bytes =
      std::min<size_t>(bus_bytes_, received_.size() - received_offset_);
  std::memcpy(beat->data.data(), received_.data() + received_offset_, bytes);
  beat->bytes = static_cast<uint32_t>(bytes);
  received_offset_ += bytes;
  beat->last = received_offset_ == received_.size();
  beat->error = beat->last && received_bad_;
  if (beat->last) {
    received_.clear();
  }
  return true;
}

void SharedMac::Record(std::span<const uint8_t> frame) {
  if (capture_ != nullptr) {
    capture_->Add(frame, base::RealtimeNs());
  }
}

void SharedMac::FlushCapture() {
  if (capture_ != nullptr) {
    capture_->Flush();
  }
}

}  // namespace heddle::sim::pins
