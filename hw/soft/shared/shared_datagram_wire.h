// SPDX-License-Identifier: Apache-2.0
// UET in Ethernet frames on the named one-machine wire, where RTL NICs are too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/frame/frame_observer.h"
#include "hw/sim/wire/shared_wire.h"
#include "hw/soft/frame/frame_codec.h"
#include "hw/soft/shared/frame_port.h"
#include "hw/soft/wire/datagram_wire.h"
#include "hw/soft/wire/slow_path_sink.h"

namespace heddle::soft::shared {

struct SharedDatagramWireOptions {
  sim::wire::SharedWireOptions wire;
  sim::fault::LineFaults faults;
  std::string capture;  // File, empty for none.
  // Outlives the wire; null for none.
  sim::frame::FrameObserver* observer = nullptr;
};

// Until firmware has written table `port` nothing passes. Requests take their
// next hop's MAC address and VLAN, answers the address that the packet answered
// came from and the port's VLAN, as in the RTL.
//
// `Receive` copies each datagram out of its ring: a peer may write to the ring
// at any time, so that nothing is judged there.
//
// Thread safety: as of DatagramWire.
class SharedDatagramWire final : public wire::DatagramWire {
 public:
  // Errors: those of `SharedWire::Attach` and `Capture::Open`, with a line in
  // `*message`. `slow_path` outlives the wire.
  static Result<std::unique_ptr<SharedDatagramWire>> Open(
      const SharedDatagramWireOptions& options, wire::SlowPathSink* slow_path,
      std::string* message);

  std::span<uint8_t> Room() override {
    return std::span(room_).subspan(frame::FrameCodec::kHeadroom, kMaxBytes);
  }
  SendOutcome Send(const wire::Path& path, size_t bytes) override;
  bool Receive(wire::Datagram* datagram) override;

  std::optional<uint16_t> TakePdcids() override { return wire_->TakePdcids(); }
  void ReturnPdcids(uint16_t first) override { wire_->ReturnPdcids(first); }
  uint16_t function() const override { return wire_->function(); }
  bool link_up() const override { return wire_->link_up(); }
  bool TakeReset() override { return wire_->TakeReset(); }
  uint16_t max_bytes() const override { return kMaxBytes; }
  uint32_t payload_mtu() const override { return payload_mtu_; }

  void Flush() override {
    port_.Release();
    wire_->FlushNews();
  }
  bool HasNews() const override { return port_.has_news(); }
  void Kick() override { wire_->Kick(); }
  void Sleep(uint64_t timeout_ns) override { wire_->Sleep(timeout_ns); }
  uint32_t Kicks() override { return wire_->wakes(); }
  void SleepSince(uint32_t kicks, uint64_t timeout_ns) override {
    wire_->Sleep(kicks, timeout_ns);
  }
  bool IsBehind(uint64_t receiver, uint64_t now_ns) override {
    return wire_->PeerIsBehind(receiver, now_ns);
  }
  bool IsStillFull() const override { return wire_->IsStillFull(); }
  uint64_t ReceiverOf(const wire::Path& path, size_t bytes) override;
  bool HasLeft(uint64_t receiver) override {
    return !HasNews() && wire_->HasLeft(receiver);
  }

  firmware::PortClaim ClaimPort(const firmware::PortName& name) override {
    return wire_->ClaimPort(name);
  }
  void ReleasePort(const firmware::PortName& name) override {
    wire_->ReleasePort(name);
  }

  void Configure(const contract::PortCfg& port) override;
  void SetTransport(const contract::TransportCfg& transport) override;
  void SetNextHop(uint32_t index, const contract::NextHopCfg& hop) override;
  void SendSlowPath(std::span<const uint8_t> frame) override;
  // See SharedWire::kAnswerWork.
  static constexpr uint64_t kTurnWork = 256;
  void NoteWork(uint64_t at_ns, uint32_t turns) override;
  uint64_t deadline_ns() const override { return port_.release_at_ns(); }
  uint64_t statistic(contract::Statistic which) const override;
  std::string StatisticsText() const override;
  void FlushCapture() override { port_.FlushCapture(); }

 private:
  static constexpr uint16_t kMaxBytes = contract::kMaxFrameBytes -
                                        frame::FrameCodec::kHeadroom -
                                        contract::kCrcBytes;
  // Frames taken in one `Receive` without finding a datagram: a peer that
  // floods must not keep the device for itself.
  static constexpr uint32_t kMostDropped = 64;

  SharedDatagramWire(std::unique_ptr<sim::wire::SharedWire> wire,
                     const SharedDatagramWireOptions& options,
                     std::unique_ptr<sim::frame::Capture> capture,
                     wire::SlowPathSink* slow_path);

  uint64_t& Counter(contract::Statistic which) {
    return counters_[static_cast<size_t>(which)];
  }
  // False, and counted, if there is no way to `path`.
  bool FindHop(const wire::Path& path, frame::FrameHeader* header);

  const std::unique_ptr<sim::wire::SharedWire> wire_;
  const uint32_t payload_mtu_;
  FramePort port_;
  wire::SlowPathSink* const slow_path_;
  frame::FrameCodec codec_;
  std::vector<uint8_t> room_;  // With space for headers and trailer.
  sim::frame::Frame received_;
  std::array<contract::NextHopCfg, contract::kNextHops> hops_{};
  std::array<uint64_t, contract::kBar0StatisticsCount> counters_{};
};

}  // namespace heddle::soft::shared
