// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/shared/shared_datagram_wire.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace heddle::soft::shared {

using frame::FrameCodec;
using frame::FrameHeader;
using frame::ParsedFrame;

namespace {

using contract::Statistic;

// A note of where a frame came from is never 0.
constexpr uint64_t kLinkValid = uint64_t{1} << 63;
constexpr uint64_t kMacMask = (uint64_t{1} << 48) - 1;

}  // namespace

SharedDatagramWire::SharedDatagramWire(
    std::unique_ptr<sim::wire::SharedWire> wire,
    const SharedDatagramWireOptions& options,
    std::unique_ptr<sim::frame::Capture> capture, wire::SlowPathSink* slow_path)
    : wire_(std::move(wire)),
      payload_mtu_(options.wire.payload_mtu),
      port_(wire_.get(), options.faults, std::move(capture), options.wire.time,
            options.observer),
      slow_path_(slow_path),
      room_(FrameCodec::kHeadroom + kMaxBytes + FrameCodec::kTailroom) {
  received_.reserve(sim::frame::kMaxWireFrameBytes);
}

Result<std::unique_ptr<SharedDatagramWire>> SharedDatagramWire::Open(
    const SharedDatagramWireOptions& options, wire::SlowPathSink* slow_path,
    std::string* message) {
  sim::wire::SharedWireOptions attach = options.wire;
  // What faults may change, or people look at, is to be whole.
  attach.takes_unchecked =
      options.capture.empty() && options.observer == nullptr &&
      !sim::fault::FaultyLine(options.faults.rx, 0).active();
  attach.gathers_news = true;
  auto wire = sim::wire::SharedWire::Attach(attach, message);
  if (!wire.ok()) {
    return wire.error();
  }
  std::unique_ptr<sim::frame::Capture> capture;
  if (!options.capture.empty()) {
    auto opened = sim::frame::Capture::Open(options.capture);
    if (!opened.ok()) {
      *message = "capture file " + options.capture + ": " +
                 strerror(static_cast<int>(opened.error()));
      return opened.error();
    }
    capture = std::move(opened.value());
  }
  return std::unique_ptr<SharedDatagramWire>(new SharedDatagramWire(
      std::move(wire.value()), options, std::move(capture), slow_path));
}

void SharedDatagramWire::Configure(const contract::PortCfg& port) {
  codec_.Configure(port);
}

void SharedDatagramWire::SetTransport(const contract::TransportCfg& transport) {
  codec_.SetTransport(transport);
}

void SharedDatagramWire::SetNextHop(uint32_t index,
                                    const contract::NextHopCfg& hop) {
  if (index < hops_.size()) {
    hops_[index] = hop;
  }
}

bool SharedDatagramWire::FindHop(const wire::Path& path, FrameHeader* header) {
  if (path.link != 0) {
    header->destination_mac = path.link & kMacMask;
    header->vlan = codec_.port().vlan;
    return true;
  }
  if (path.next_hop >= hops_.size() || hops_[path.next_hop].valid == 0) {
    ++Counter(Statistic::kDropNoHop);
    return false;
  }
  header->destination_mac = hops_[path.next_hop].mac & kMacMask;
  header->vlan = hops_[path.next_hop].vlan;
  return true;
}

wire::DatagramWire::SendOutcome SharedDatagramWire::Send(const wire::Path& path,
                                                         size_t bytes) {
  FrameHeader header{.destination = path.destination,
                     .destination_mac = 0,
                     .vlan = 0,
                     .entropy = path.entropy,
                     .dscp = path.dscp};
  const bool same_family = path.destination.ipv6 == (codec_.port().ipv6 != 0);
  if (codec_.port().enable == 0 || !same_family || !FindHop(path, &header)) {
    return SendOutcome::kSent;  // Lost: what watches over it finds out.
  }
  const sim::frame::Route route =
      sim::frame::FindDatagramRoute(path.destination, Room().first(bytes));
  // Without the option of a CRC its place would be missing, too.
  const auto unchecked = codec_.port().crc != contract::CrcOrder::kNone
                             ? port_.FindUnchecked(route)
                             : std::nullopt;
  const auto frame = codec_.Build(header, room_, bytes, unchecked.has_value());
  const bool sent = unchecked ? port_.SendUnchecked(frame, *unchecked)
                              : port_.Send(frame, route);
  return sent ? SendOutcome::kSent : SendOutcome::kBlocked;
}

uint64_t SharedDatagramWire::ReceiverOf(const wire::Path& path, size_t bytes) {
  return wire_->FunctionAt(
      sim::frame::FindDatagramRoute(path.destination, Room().first(bytes)));
}

bool SharedDatagramWire::Receive(wire::Datagram* datagram) {
  for (uint32_t i = 0; i < kMostDropped; ++i) {
    sim::frame::FrameMarks marks;
    if (!port_.has_news() || !port_.Receive(&received_, &marks)) {
      return false;
    }
    const ParsedFrame parsed = codec_.Parse(received_, marks);
    switch (parsed.kind) {
      case ParsedFrame::Kind::kDatagram:
        *datagram = parsed.datagram;
        datagram->link = kLinkValid | parsed.source_mac;
        return true;
      case ParsedFrame::Kind::kSlowPath:
        slow_path_->Accept(received_);
        break;
      case ParsedFrame::Kind::kDropped:
        ++Counter(parsed.reason);
        break;
      case ParsedFrame::Kind::kIgnored:
        break;
    }
  }
  return false;
}

void SharedDatagramWire::SendSlowPath(std::span<const uint8_t> frame) {
  if (codec_.port().enable == 0) {
    return;
  }
  std::array<uint8_t, contract::kSlowPathTxBytes> padded{};
  const size_t bytes = std::min(frame.size(), padded.size());
  std::copy_n(frame.begin(), bytes, padded.begin());
  const auto whole =
      std::span(padded).first(std::max(bytes, FrameCodec::kShortestFrame));
  port_.Send(whole, sim::frame::FindRoute(whole));
  wire_->FlushNews();
}

void SharedDatagramWire::NoteWork(uint64_t at_ns, uint32_t turns) {
  if (turns == 0 && !HasNews()) {
    return;  // Peers do not wait for this turn.
  }
  wire_->NoteWork(at_ns, turns * kTurnWork);
}

uint64_t SharedDatagramWire::statistic(Statistic which) const {
  switch (which) {
    case Statistic::kTxFrames:
      return port_.frames_sent();
    case Statistic::kTxBytes:
      return port_.bytes_sent();
    case Statistic::kRxFrames:
      return port_.frames_received();
    case Statistic::kRxBytes:
      return port_.bytes_received();
    default:
      return counters_[static_cast<size_t>(which)];
  }
}

std::string SharedDatagramWire::StatisticsText() const {
  return "wire_drops " + std::to_string(wire_->dropped()) +
         "\nwire_drops_link_down " +
         std::to_string(wire_->dropped_link_down()) + "\nwire_corrupt_peers " +
         std::to_string(wire_->corrupt_peers()) + '\n' + port_.StatisticsText();
}

}  // namespace heddle::soft::shared
