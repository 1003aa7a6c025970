// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/shared_mac.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "hw/sim/clock.h"

namespace heddle::sim {

SharedMac::SharedMac(SharedWire* wire, uint32_t bus_bytes,
                     const FaultOptions& faults,
                     std::unique_ptr<Capture> capture)
    : wire_(wire),
      bus_bytes_(bus_bytes),
      line_(faults),
      capture_(std::move(capture)) {}

bool SharedMac::TransmitReady() {
  SendOutgoing();
  return outgoing_.empty();
}

void SharedMac::Transmit(std::span<const uint8_t> bytes, bool last) {
  transmitted_.insert(transmitted_.end(), bytes.begin(), bytes.end());
  if (last) {
    line_.Push(std::exchange(transmitted_, {}), &leaving_);
    std::move(leaving_.begin(), leaving_.end(), std::back_inserter(outgoing_));
    leaving_.clear();
    last_sent_ns_ = MonotonicNs();
    SendOutgoing();
  }
}

void SharedMac::SendOutgoing() {
  while (!outgoing_.empty()) {
    if (wire_->Send(outgoing_.front()) == SharedWire::SendOutcome::kBlocked) {
      return;
    }
    Record(outgoing_.front().bytes);
    ++frames_sent_;
    outgoing_.pop_front();
  }
}

void SharedMac::Release() {
  if (line_.holding() && MonotonicNs() - last_sent_ns_ > kHoldNs) {
    line_.Flush(&leaving_);
    std::move(leaving_.begin(), leaving_.end(), std::back_inserter(outgoing_));
    leaving_.clear();
    SendOutgoing();
  }
}

bool SharedMac::Receive(MacBeat* beat) {
  if (received_.empty()) {
    if (!wire_->HasNews() || !wire_->Receive(&received_, &received_bad_)) {
      return false;
    }
    received_offset_ = 0;
    ++frames_received_;
    last_received_ns_ = MonotonicNs();
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
    capture_->Add(frame, RealtimeNs());
  }
}

void SharedMac::FlushCapture() {
  if (capture_ != nullptr) {
    capture_->Flush();
  }
}

}  // namespace heddle::sim
