// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/udp/udp_wire.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "hw/contract/gen/heddle_settings.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/sim/base/clock.h"
#include "hw/soft/frame/crc32c.h"

namespace heddle::soft::udp {
namespace {

using contract::Statistic;

constexpr uint64_t kCheckNs = 100000000;  // Between looks at the interface.
constexpr uint64_t kRetryNs = 50000;      // After a socket took no more.

uint32_t IpBytes(bool ipv6) {
  return ipv6 ? contract::wire::Ipv6::kBytes : contract::wire::Ipv4::kBytes;
}

uint32_t NeededMtu(uint32_t payload_mtu, bool ipv6) {
  return payload_mtu + UdpWire::kHeaderBytes + IpBytes(ipv6);
}

// Payload MTU of the wire; 0, with the reason, if there is none.
uint32_t ChooseMtu(const UdpWireOptions& options, const Interface& interface,
                   std::string* message) {
  const bool ipv6 = options.ip.ipv6;
  const auto fits = [&](uint32_t payload_mtu) {
    return NeededMtu(payload_mtu, ipv6) <= interface.mtu;
  };
  constexpr auto& kLegal = contract::kPayloadMtuValues;
  const auto largest = std::find_if(kLegal.rbegin(), kLegal.rend(), fits);
  if (options.payload_mtu == 0 && largest != kLegal.rend()) {
    return *largest;
  }
  const uint32_t wanted =
      options.payload_mtu != 0 ? options.payload_mtu : kLegal.front();
  if (fits(wanted)) {
    return wanted;
  }
  *message = "payload MTU " + std::to_string(wanted) + " needs an MTU of " +
             std::to_string(NeededMtu(wanted, ipv6)) + " bytes, interface " +
             interface.name + " has " + std::to_string(interface.mtu) +
             ": raise it, ";
  message->append(largest == kLegal.rend()
                      ? "or set FI_HEDDLE_IP to an address of another"
                      : "or set FI_HEDDLE_PAYLOAD_MTU to " +
                            std::to_string(*largest));
  return 0;
}

void MoveTo(std::deque<sim::fault::LineFrame>* queue,
            std::vector<sim::fault::LineFrame>* frames) {
  std::move(frames->begin(), frames->end(), std::back_inserter(*queue));
  frames->clear();
}

}  // namespace

UdpWire::UdpWire(const UdpWireOptions& options, Interface interface,
                 NumberClaim ordinal, uint32_t payload_mtu)
    : options_(options),
      interface_(std::move(interface)),
      ordinal_(std::move(ordinal)),
      payload_mtu_(payload_mtu),
      max_bytes_(static_cast<uint16_t>(payload_mtu + kHeaderBytes -
                                       contract::wire::Udp::kBytes -
                                       contract::kCrcBytes)),
      sender_(max_bytes_ + contract::kCrcBytes, interface_.index),
      faulty_room_(max_bytes_ + contract::kCrcBytes),
      tx_line_(options.faults.OfPort(options.ip, ordinal_.number()).tx,
               sim::fault::kHoldNs),
      rx_line_(options.faults.OfPort(options.ip, ordinal_.number()).rx,
               sim::fault::kHoldNs) {}

std::optional<uint16_t> UdpWire::TakePdcids() {
  auto claim = NumberClaim::TakePdcidBlock(options_.ip);
  if (!claim.ok()) {
    return std::nullopt;
  }
  pdcid_blocks_.push_back(std::move(claim.value()));
  return static_cast<uint16_t>(pdcid_blocks_.back().number() *
                               contract::kPdcidBlock);
}

void UdpWire::ReturnPdcids(uint16_t first) {
  std::erase_if(pdcid_blocks_, [&](const NumberClaim& claim) {
    return claim.number() == first / contract::kPdcidBlock;
  });
}

Result<std::unique_ptr<UdpWire>> UdpWire::Open(const UdpWireOptions& options,
                                               std::string* message) {
  auto interface = FindInterface(options.ip);
  if (!interface.ok()) {
    *message = "no interface of this machine has the address " +
               options.ip.Text() + "; set FI_HEDDLE_IP to one that has";
    return interface.error();
  }
  const uint32_t payload_mtu = ChooseMtu(options, interface.value(), message);
  if (payload_mtu == 0) {
    return Errno{EMSGSIZE};
  }
  auto ordinal = NumberClaim::TakeOrdinal(options.ip);
  if (!ordinal.ok()) {
    *message = "address " + options.ip.Text() + ": " +
               strerror(static_cast<int>(ordinal.error()));
    return ordinal.error();
  }
  auto sockets = UdpSockets::Open(interface.value(), options.ip,
                                  options.udp_port, message);
  if (!sockets.ok()) {
    return sockets.error();
  }
  std::unique_ptr<UdpWire> udp(new UdpWire(
      options, interface.value(), std::move(ordinal.value()), payload_mtu));
  udp->sockets_ = std::move(sockets.value());
  udp->link_up_ = interface.value().up;
  if (!options.capture.empty()) {
    auto capture = sim::frame::Capture::Open(options.capture);
    if (!capture.ok()) {
      *message = "capture file " + options.capture + ": " +
                 strerror(static_cast<int>(capture.error()));
      return capture.error();
    }
    udp->capture_ = std::move(capture.value());
  }
  return udp;
}

void UdpWire::ReleasePort(const firmware::PortName& name) {
  const uint64_t now = sim::base::MonotonicNs();
  sockets_->Release(name, now + options_.linger_ns);
  sockets_->CloseReleased(now);  // At once without `linger_ns`.
}

// -------------------------------------------------------------------- sending

UdpFlow UdpWire::FlowOf(const wire::Path& path) const {
  UdpFlow flow{
      .source = options_.ip,
      .destination = path.destination,
      .source_port = sockets_->EntropyPort(path.entropy),
      .destination_port = path.port,
      .tos = static_cast<uint8_t>(path.dscp << kDscpShift | kEcnCapable)};
  if (options_.udp_port != 0) {
    flow.destination_port = options_.udp_port;
  } else if (path.port == 0) {
    flow.destination_port = path.recorded_port;
    // From where the question went, as firewalls that keep state expect.
    if (path.source_port != 0 && sockets_->Has(path.source_port)) {
      flow.source_port = path.source_port;
    }
  }
  return flow;
}

wire::DatagramWire::SendOutcome UdpWire::Send(const wire::Path& path,
                                              size_t bytes) {
  const UdpFlow flow = FlowOf(path);
  if (flow.destination_port == 0 || path.destination.ipv6 != options_.ip.ipv6) {
    ++no_port_;
    return SendOutcome::kSent;  // Lost: what watches over it finds out.
  }
  if (port_.enable == 0) {
    return SendOutcome::kSent;
  }
  if (sender_.full() || !outgoing_.empty()) {
    Flush();
    if (sender_.full() || !outgoing_.empty()) {
      return SendOutcome::kBlocked;
    }
  }
  size_t total = bytes;
  if (port_.crc != contract::CrcOrder::kNone) {
    frame::StoreCrc(port_.crc, DatagramCrc(flow, room_.first(bytes)),
                    &room_[bytes]);
    total += contract::kCrcBytes;
  }
  if (tx_line_.active()) {
    SendFaulty(flow, room_.first(total));
    return SendOutcome::kSent;
  }
  Record(flow, room_.first(total));
  sender_.Add(flow, total);
  return SendOutcome::kSent;
}

void UdpWire::SendFaulty(const UdpFlow& flow, std::span<const uint8_t> bytes) {
  sim::fault::LineFrame frame;
  BuildUdpFrame(flow, bytes, &frame.bytes);
  tx_line_.Push(std::move(frame), sim::base::MonotonicNs(), &leaving_);
  MoveTo(&outgoing_, &leaving_);
  MoveOutgoing();
  UpdateDeadline();
}

void UdpWire::MoveOutgoing() {
  while (!outgoing_.empty()) {
    if (sender_.full()) {
      FlushSender();
      if (sender_.full()) {
        return;
      }
    }
    const sim::fault::LineFrame& frame = outgoing_.front();
    // What a MAC would see is damaged does not get as far as a socket.
    if (!frame.bad_fcs) {
      const UdpFlow flow = UdpFrameFlow(frame.bytes);
      const auto payload = UdpFramePayload(frame.bytes);
      std::copy(payload.begin(), payload.end(), sender_.Room().begin());
      Record(flow, payload);
      sender_.Add(flow, payload.size());
    }
    outgoing_.pop_front();
  }
}

void UdpWire::FlushSender() {
  if (!sender_.empty()) {
    sockets_->Flush(&sender_, &errors_);
  }
}

void UdpWire::Flush() {
  const uint64_t now = sim::base::MonotonicNs();
  if (tx_line_.next() <= now) {
    tx_line_.Release(now, &leaving_);
    MoveTo(&outgoing_, &leaving_);
  }
  if (rx_line_.next() <= now) {
    rx_line_.Release(now, &leaving_);
    MoveTo(&arrived_, &leaving_);
    pending_ = pending_ || !arrived_.empty();
  }
  MoveOutgoing();
  FlushSender();
  sockets_->CloseReleased(now);
  CheckInterface(now);
  UpdateDeadline();
}

void UdpWire::UpdateDeadline() {
  uint64_t deadline = std::min(tx_line_.next(), rx_line_.next());
  if (sender_.blocked() || !outgoing_.empty()) {
    deadline = std::min(deadline, sim::base::MonotonicNs() + kRetryNs);
  }
  deadline_ns_ = deadline;
}

void UdpWire::CheckInterface(uint64_t now_ns) {
  if (now_ns - checked_ns_ < kCheckNs && errors_.too_big == checked_too_big_) {
    return;
  }
  checked_ns_ = now_ns;
  checked_too_big_ = errors_.too_big;
  RefreshInterface(&interface_);
  link_up_ = interface_.up &&
             NeededMtu(payload_mtu_, options_.ip.ipv6) <= interface_.mtu;
}

// ------------------------------------------------------------------ receiving

UdpFlow UdpWire::FlowOf(const ReceivedDatagram& received) const {
  return {.source = received.source,
          .destination = options_.ip,
          .source_port = received.source_port,
          .destination_port = received.destination_port,
          .tos = received.tos};
}

bool UdpWire::Next(ReceivedDatagram* received) {
  if (receiver_.empty() && !sockets_->Fill(&receiver_, &errors_)) {
    return false;
  }
  *received = receiver_.Next();
  return true;
}

bool UdpWire::NextFaulty(ReceivedDatagram* received) {
  while (arrived_.empty() && Next(received)) {
    sim::fault::LineFrame frame;
    BuildUdpFrame(FlowOf(*received), received->bytes, &frame.bytes);
    rx_line_.Push(std::move(frame), sim::base::MonotonicNs(), &leaving_);
    MoveTo(&arrived_, &leaving_);
  }
  UpdateDeadline();
  for (; !arrived_.empty(); arrived_.pop_front()) {
    if (arrived_.front().bad_fcs) {
      ++Counter(Statistic::kDropMacError);
      continue;
    }
    current_ = std::move(arrived_.front().bytes);
    arrived_.pop_front();
    const UdpFlow flow = UdpFrameFlow(current_);
    *received = {.source = flow.source,
                 .source_port = flow.source_port,
                 .destination_port = flow.destination_port,
                 .tos = flow.tos,
                 .bytes = UdpFramePayload(current_)};
    return true;
  }
  return false;
}

bool UdpWire::Accept(const ReceivedDatagram& received,
                     wire::Datagram* datagram) {
  Counter(Statistic::kRxBytes) += received.bytes.size();
  ++Counter(Statistic::kRxFrames);
  const auto dscp = static_cast<uint8_t>(received.tos >> kDscpShift);
  const wire::Trim trim = wire::TrimOf(transport_, dscp);
  const bool has_crc =
      port_.crc != contract::CrcOrder::kNone && trim == wire::Trim::kNone;
  const size_t trailer = has_crc ? contract::kCrcBytes : 0;
  const size_t least = trim == wire::Trim::kNone
                           ? contract::wire::PdsPrologue::kBytes + trailer
                           : wire::kTrimmedBytes;
  if (port_.enable == 0) {
    return false;
  }
  if (received.bytes.size() < least ||
      received.bytes.size() > max_bytes_ + trailer) {
    ++Counter(Statistic::kDropTruncated);
    return false;
  }
  const auto bytes = received.bytes.first(received.bytes.size() - trailer);
  if (has_crc && frame::LoadCrc(port_.crc, &received.bytes[bytes.size()]) !=
                     DatagramCrc(FlowOf(received), bytes)) {
    ++Counter(Statistic::kDropCrc);
    return false;
  }
  *datagram = {.source = received.source,
               .source_udp_port = received.source_port,
               .destination_port = received.destination_port,
               .link = 0,
               .dscp = dscp,
               .congestion = (received.tos & kEcnMask) == kEcnMask,
               .trim = trim,
               .bytes = bytes};
  return true;
}

bool UdpWire::Receive(wire::Datagram* datagram) {
  // A flood of what is not good must not keep the device for itself.
  constexpr uint32_t kMostDropped = 64;
  ReceivedDatagram received;
  bool good = false;
  bool any = true;
  for (uint32_t i = 0; i < kMostDropped && any && !good; ++i) {
    any = rx_line_.active() ? NextFaulty(&received) : Next(&received);
    if (any) {
      Record(FlowOf(received), received.bytes);
      good = Accept(received, datagram);
    }
  }
  if (good && !sockets_->Has(received.destination_port)) {
    datagram->destination_port = 0;
  }
  pending_ = !receiver_.empty() || !arrived_.empty() || sockets_->HasReady();
  return good;
}

uint32_t UdpWire::Kicks() {
  sockets_->TakeKicks();
  return 0;
}

void UdpWire::Sleep(uint64_t timeout_ns) {
  const uint64_t now = sim::base::MonotonicNs();
  const uint64_t deadline = deadline_ns();
  const uint64_t left = deadline > now ? deadline - now : 0;
  if (!pending_ && left > 0) {
    sockets_->Sleep(std::min(timeout_ns, left));
  }
}

// -------------------------------------------------------------------- records

void UdpWire::Record(const UdpFlow& flow, std::span<const uint8_t> bytes) {
  if (capture_ != nullptr) {
    BuildUdpFrame(flow, bytes, &recorded_);
    capture_->Add(recorded_, sim::base::RealtimeNs());
  }
}

void UdpWire::FlushCapture() {
  if (capture_ != nullptr) {
    capture_->Flush();
  }
}

uint64_t UdpWire::statistic(Statistic which) const {
  switch (which) {
    case Statistic::kTxFrames:
      return sender_.sent();
    case Statistic::kTxBytes:
      return sender_.sent_bytes();
    default:
      return counters_[static_cast<size_t>(which)];
  }
}

std::string UdpWire::StatisticsText() const {
  std::string text;
  const auto add = [&](const char* name, uint64_t value) {
    text.append(name).append(" ").append(std::to_string(value)).append("\n");
  };
  add("udp_refused", errors_.refused);
  add("udp_unreachable", errors_.unreachable);
  add("udp_too_big", errors_.too_big);
  add("udp_other_errors", errors_.other);
  add("udp_lost", sender_.lost());
  add("udp_no_port", no_port_);
  add("udp_send_calls", sender_.calls());
  add("udp_receive_calls", receiver_.calls());
  return text + tx_line_.StatisticsText("faults_") +
         rx_line_.StatisticsText("rx_faults_");
}

}  // namespace heddle::soft::udp
