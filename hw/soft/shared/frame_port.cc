// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/shared/frame_port.h"

#include <iterator>
#include <utility>

namespace heddle::soft::shared {
namespace {

void Gather(std::deque<sim::fault::LineFrame>* queue,
            std::vector<sim::fault::LineFrame>* frames) {
  std::move(frames->begin(), frames->end(), std::back_inserter(*queue));
  frames->clear();
}

}  // namespace

FramePort::FramePort(sim::wire::SharedWire* wire,
                     const sim::fault::LineFaults& faults,
                     std::unique_ptr<sim::frame::Capture> capture,
                     sim::base::TimeSource time,
                     sim::frame::FrameObserver* observer)
    : wire_(wire),
      tx_line_(wire->OfThisPort(faults).tx, sim::fault::kHoldNs),
      rx_line_(wire->OfThisPort(faults).rx, sim::fault::kHoldNs),
      faulty_(tx_line_.active() || rx_line_.active()),
      capture_(std::move(capture)),
      time_(time),
      observer_(observer) {}

void FramePort::RecordFrame(std::span<const uint8_t> frame,
                            sim::frame::FrameObserver::Way way) {
  if (capture_ != nullptr) {
    capture_->Add(frame, time_.stamp_ns());
  }
  if (observer_ != nullptr) {
    observer_->Add(frame, way);
  }
}

void FramePort::CountSent(std::span<const uint8_t> frame) {
  Record(frame, sim::frame::FrameObserver::Way::kSent);
  ++frames_sent_;
  bytes_sent_ += frame.size();
}

std::optional<uint32_t> FramePort::FindUnchecked(
    const sim::frame::Route& route) {
  if (tx_line_.active() || capture_ != nullptr || observer_ != nullptr) {
    return std::nullopt;
  }
  const std::optional<uint32_t> port = wire_->FindPort(route);
  return port && wire_->TakesUnchecked(*port) ? port : std::nullopt;
}

bool FramePort::SendUnchecked(std::span<const uint8_t> frame, uint32_t port) {
  if (wire_->SendTo(port, frame, {.unchecked = true}) ==
      sim::wire::SharedWire::SendOutcome::kBlocked) {
    return false;
  }
  CountSent(frame);
  return true;
}

bool FramePort::Send(std::span<const uint8_t> frame,
                     const sim::frame::Route& route) {
  if (!outgoing_.empty() && !SendOutgoing()) {
    return false;
  }
  if (tx_line_.active()) {
    tx_line_.Push(sim::frame::Frame(frame.begin(), frame.end()), time_.now_ns(),
                  &leaving_);
    Gather(&outgoing_, &leaving_);
    SendOutgoing();
    return true;
  }
  if (wire_->Send(frame, route) ==
      sim::wire::SharedWire::SendOutcome::kBlocked) {
    return false;
  }
  CountSent(frame);
  return true;
}

bool FramePort::SendOutgoing() {
  while (!outgoing_.empty()) {
    if (wire_->Send(outgoing_.front()) ==
        sim::wire::SharedWire::SendOutcome::kBlocked) {
      retry_at_ns_ = time_.now_ns() + kRetryNs;
      return false;
    }
    CountSent(outgoing_.front().bytes);
    outgoing_.pop_front();
  }
  retry_at_ns_ = UINT64_MAX;
  return true;
}

bool FramePort::Receive(sim::frame::Frame* frame,
                        sim::frame::FrameMarks* marks) {
  const bool came = rx_line_.active() ? ReceiveFaulty(frame, marks)
                                      : wire_->Receive(frame, marks);
  if (came) {
    Record(*frame, sim::frame::FrameObserver::Way::kReceived);
    ++frames_received_;
    bytes_received_ += frame->size();
  }
  return came;
}

bool FramePort::ReceiveFaulty(sim::frame::Frame* frame,
                              sim::frame::FrameMarks* marks) {
  sim::fault::LineFrame arriving;
  sim::frame::FrameMarks sent;
  while (arrived_.empty() && wire_->Receive(&arriving.bytes, &sent)) {
    arriving.bad_fcs = sent.bad_fcs;
    rx_line_.Push(std::move(arriving), time_.now_ns(), &leaving_);
    Arrive();
    arriving = {};
  }
  if (arrived_.empty()) {
    return false;
  }
  *frame = std::move(arrived_.front().bytes);
  *marks = {.bad_fcs = arrived_.front().bad_fcs};
  arrived_.pop_front();
  has_arrived_.store(!arrived_.empty(), std::memory_order_relaxed);
  return true;
}

void FramePort::Arrive() {
  Gather(&arrived_, &leaving_);
  has_arrived_.store(!arrived_.empty(), std::memory_order_relaxed);
}

void FramePort::ReleaseHeld() {
  const uint64_t now = time_.now_ns();
  tx_line_.Release(now, &leaving_);
  Gather(&outgoing_, &leaving_);
  SendOutgoing();
  rx_line_.Release(now, &leaving_);
  Arrive();
}

void FramePort::FlushCapture() {
  if (capture_ != nullptr) {
    capture_->Flush();
  }
}

std::string FramePort::StatisticsText() const {
  return tx_line_.StatisticsText("faults_") +
         rx_line_.StatisticsText("rx_faults_");
}

}  // namespace heddle::soft::shared
