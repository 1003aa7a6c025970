// SPDX-License-Identifier: Apache-2.0
// UET over UDP sockets: between machines, for use in earnest.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/fault/faulty_line.h"
#include "hw/sim/frame/capture.h"
#include "hw/soft/udp/interface.h"
#include "hw/soft/udp/number_claim.h"
#include "hw/soft/udp/udp_receiver.h"
#include "hw/soft/udp/udp_sender.h"
#include "hw/soft/udp/udp_socket.h"
#include "hw/soft/udp/udp_sockets.h"
#include "hw/soft/wire/datagram_wire.h"

namespace heddle::soft::udp {

struct UdpWireOptions {
  sim::frame::WireAddress ip;  // An address of this machine.
  uint32_t payload_mtu = 0;    // 0: the largest that the interface carries.
  // 0: each endpoint binds its libfabric port. Else all packets go to this one,
  // everywhere, and one process has it at each address.
  uint16_t udp_port = 0;
  // For so long the socket of a released port goes on to answer peers whose
  // last ACK was lost; no other function can have the port until then.
  uint64_t linger_ns = 0;
  sim::fault::LineFaults faults = {};
  std::string capture = {};  // File, empty for none.
};

// Requests go to the libfabric port of the peer's endpoint, from one of
// `UdpSockets::kEntropySockets` ports of this function, which the path's
// entropy chooses; answers go back to the port that was recorded, from that of
// the endpoint that was asked. docs/adr/0010-udp-wire.md says why, and what it
// asks of firewalls.
//
// Datagrams are never fragmented. One that a link under way cannot carry is
// lost and counted (`udp_too_big`), so that its operation ends as one to a dead
// peer does; when the interface itself no longer carries the payload MTU, the
// link is down.
//
// Thread safety: as of DatagramWire.
class UdpWire final : public wire::DatagramWire {
 public:
  // Errors, each with a line in `*message`: EADDRNOTAVAIL when no interface has
  // the address; EMSGSIZE when its MTU is too small; EADDRINUSE when `udp_port`
  // is another's; those of `Capture::Open` and of the system calls.
  static Result<std::unique_ptr<UdpWire>> Open(const UdpWireOptions& options,
                                               std::string* message);

  firmware::PortClaim ClaimPort(const firmware::PortName& name) override {
    return sockets_->Claim(name);
  }
  void ReleasePort(const firmware::PortName& name) override;

  std::span<uint8_t> Room() override {
    room_ = tx_line_.active() ? std::span(faulty_room_) : sender_.Room();
    return room_.first(max_bytes_);
  }
  SendOutcome Send(const wire::Path& path, size_t bytes) override;
  bool Receive(wire::Datagram* datagram) override;

  std::optional<uint16_t> TakePdcids() override;
  void ReturnPdcids(uint16_t first) override;
  // There are no MAC addresses to be told apart.
  uint16_t function() const override { return 0; }
  bool link_up() const override { return link_up_; }
  uint16_t max_bytes() const override { return max_bytes_; }
  uint32_t payload_mtu() const override { return payload_mtu_; }

  void Flush() override;
  bool HasNews() const override { return pending_ || sockets_->HasNews(); }
  bool HasTaken() const override { return pending_; }
  void Kick() override { sockets_->Kick(); }
  void Sleep(uint64_t timeout_ns) override;
  // A kick stays until this is called.
  uint32_t Kicks() override;

  void Configure(const contract::PortCfg& port) override { port_ = port; }
  void SetTransport(const contract::TransportCfg& transport) override {
    transport_ = transport;
  }
  uint64_t deadline_ns() const override {
    return std::min<uint64_t>(deadline_ns_, sockets_->first_close_ns());
  }
  uint64_t statistic(contract::Statistic which) const override;
  std::string StatisticsText() const override;
  void FlushCapture() override;

  const NetworkErrors& network_errors() const { return errors_; }
  // System calls that sent or received.
  uint64_t send_calls() const { return sender_.calls(); }
  uint64_t receive_calls() const { return receiver_.calls(); }
  const Interface& interface() const { return interface_; }
  Pace pace(uint64_t rto_ns) const {
    return PaceOf(interface_, sockets_->receive_bytes(), rto_ns);
  }
  // Of the functions at one address, which draw faults of their own by it.
  uint32_t ordinal() const { return ordinal_.number(); }

  // IP payload beside that of the packet: UDP, UET and CRC.
  static constexpr uint32_t kHeaderBytes = 136;

 private:
  UdpWire(const UdpWireOptions& options, Interface interface,
          NumberClaim ordinal, uint32_t payload_mtu);

  UdpFlow FlowOf(const wire::Path& path) const;
  void SendFaulty(const UdpFlow& flow, std::span<const uint8_t> bytes);
  // Moves frames that left `tx_line_` to the sender.
  void MoveOutgoing();
  void FlushSender();
  void CheckInterface(uint64_t now_ns);
  void UpdateDeadline();

  // The next datagram, through the receiver's faults.
  bool Next(ReceivedDatagram* received);
  bool NextFaulty(ReceivedDatagram* received);
  // Whether `received` is good; else it is counted.
  bool Accept(const ReceivedDatagram& received, wire::Datagram* datagram);
  void Record(const UdpFlow& flow, std::span<const uint8_t> bytes);
  UdpFlow FlowOf(const ReceivedDatagram& received) const;
  uint64_t& Counter(contract::Statistic which) {
    return counters_[static_cast<size_t>(which)];
  }

  const UdpWireOptions options_;
  Interface interface_;
  const NumberClaim ordinal_;
  const uint32_t payload_mtu_;
  const uint16_t max_bytes_;
  contract::PortCfg port_{};
  contract::TransportCfg transport_{};
  std::vector<NumberClaim> pdcid_blocks_;
  std::unique_ptr<UdpSockets> sockets_;
  UdpSender sender_;
  UdpReceiver receiver_;
  // The last `Room`, with space for the CRC: the sender's own unless faults may
  // hold the datagram back.
  std::span<uint8_t> room_;
  std::vector<uint8_t> faulty_room_;

  sim::fault::FaultyLine tx_line_;
  sim::fault::FaultyLine rx_line_;
  std::unique_ptr<sim::frame::Capture> capture_;
  sim::frame::Frame recorded_;                  // Scratch of `Record`.
  std::vector<sim::fault::LineFrame> leaving_;  // Scratch.
  std::deque<sim::fault::LineFrame> outgoing_;
  std::deque<sim::fault::LineFrame> arrived_;
  sim::frame::Frame current_;  // The last of `arrived_` handed out.

  uint64_t checked_ns_ = 0;  // When the interface was looked at.
  uint64_t checked_too_big_ = 0;
  std::atomic<bool> link_up_ = true;
  std::atomic<bool> pending_ = false;  // Something to receive is here.
  std::atomic<uint64_t> deadline_ns_ = UINT64_MAX;
  NetworkErrors errors_;
  uint64_t no_port_ = 0;  // Datagrams without a port to send them to.
  std::array<uint64_t, contract::kBar0StatisticsCount> counters_{};
};

}  // namespace heddle::soft::udp
