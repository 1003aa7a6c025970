// SPDX-License-Identifier: Apache-2.0
// What the soft device sends to and receives from: UET datagrams, whatever
// carries them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/trim.h"
#include "hw/soft/wire/fabric_address.h"

namespace heddle::soft::wire {

// Where a datagram goes.
struct Path {
  FabricAddress destination;
  // libfabric port of the endpoint that opened or accepted the PDC, for wires
  // on which each endpoint has a socket of its own; 0 for those that came from
  // a recorded port.
  uint16_t port = 0;
  // UDP port that the peer's packets came from; 0 while none has.
  uint16_t recorded_port = 0;
  uint16_t next_hop = 0;  // Index in the next-hop table; when `link` is 0.
  // `Datagram::link` of the packet answered: back the way it came.
  uint64_t link = 0;
  // UDP source port or native IP's entropy, where the wire lets it be chosen.
  uint16_t entropy = 0;
  uint8_t dscp = 0;
  // libfabric port of the own endpoint that sends.
  uint16_t source_port = 0;
};

using rules::Trim;

// Bytes from the PDS header on that a switch keeps.
constexpr size_t kTrimmedBytes = 16;

// Of the UDP header, or of the entropy header of native IP (UET 1.2).
inline size_t Layer4Bytes(const contract::PortCfg& port) {
  return port.ip_protocol != 0 ? contract::wire::Entropy::kBytes
                               : contract::wire::Udp::kBytes;
}

// By the DSCP alone, never by a length.
inline Trim TrimOf(const contract::TransportCfg& transport, uint8_t dscp) {
  return dscp == 0                                ? Trim::kNone
         : dscp == transport.dscp_trimmed         ? Trim::kPath
         : dscp == transport.dscp_trimmed_lasthop ? Trim::kLasthop
                                                  : Trim::kNone;
}

// A datagram that arrived whole: PDS header to end of payload, its end-to-end
// CRC and checksums already checked and taken off. Of a trimmed one, the PDS
// header and what is left behind it, unchecked. Valid until the next `Receive`.
struct Datagram {
  FabricAddress source;
  uint16_t source_udp_port = 0;   // Of native IP, the entropy.
  uint16_t destination_port = 0;  // libfabric port of the socket, 0: unknown.
  // The wire's own note of where the frame came from, for answers; not 0 on
  // wires with next hops (source MAC address, VLAN).
  uint64_t link = 0;
  uint8_t dscp = 0;
  bool congestion = false;  // ECN CE.
  Trim trim = Trim::kNone;
  std::span<const uint8_t> bytes;
};

// Thread safety: `Kick`, `ClaimPort`, `ReleasePort` from any thread; the rest
// by one thread at a time.
class DatagramWire : public firmware::Switch {
 public:
  virtual ~DatagramWire() = default;

  enum class SendOutcome : uint8_t {
    kSent,     // Or lost, as wires do.
    kBlocked,  // No room: the datagram was not taken, try again.
  };

  // Room for a datagram of at most `max_bytes()`, PDS header first, to be
  // filled before `Send`; what is in it is lost with the next `Room` or
  // `Receive`.
  virtual std::span<uint8_t> Room() = 0;
  // Sends the first `bytes` bytes of `Room`.
  virtual SendOutcome Send(const Path& path, size_t bytes) = 0;

  // Next datagram, or false when there is none now. What is damaged or not UET
  // is dropped and counted on the way; frames of the slow path go to their own
  // queue.
  virtual bool Receive(Datagram* datagram) = 0;

  // Grants the function a block of `kPdcidBlock` PDCIDs at its address, until
  // `ReturnPdcids` or the end of the wire: its first. Packets that name one of
  // them come here, and to no other function. Empty: all are granted.
  virtual std::optional<uint16_t> TakePdcids() = 0;
  virtual void ReturnPdcids(uint16_t first) = 0;
  // Tells the functions of an address apart.
  virtual uint16_t function() const = 0;
  virtual bool link_up() const = 0;
  virtual uint16_t max_bytes() const = 0;
  virtual uint32_t payload_mtu() const = 0;

  // Frames held back by faults or gathered for one system call leave now, and
  // receivers learn of what was sent.
  virtual void Flush() = 0;
  // True when `Receive` may find something.
  virtual bool HasNews() const = 0;
  // The same without a system call: of what the last `Receive` left.
  virtual bool HasTaken() const { return HasNews(); }
  // Ends a `Sleep`.
  virtual void Kick() = 0;
  // Returns on news, a kick, or after `timeout_ns`. Any thread.
  virtual void Sleep(uint64_t timeout_ns) = 0;
  // For one thread, which must not miss a kick that others have seen: what each
  // kick changes, and a `Sleep` that also ends if one came since that was
  // `kicks`. What it sees with `HasNews` is looked at in between.
  virtual uint32_t Kicks() { return 0; }
  virtual void SleepSince(uint32_t /*kicks*/, uint64_t timeout_ns) {
    Sleep(timeout_ns);
  }
  // What was blocked would be blocked again.
  virtual bool IsStillFull() const { return false; }

  // -- what not every wire has

  // A name of the function that `Send` of the first `bytes` bytes of `Room`
  // would reach, never given again; 0: nobody, or not known.
  virtual uint64_t ReceiverOf(const Path& /*path*/, size_t /*bytes*/) {
    return 0;
  }
  // True when that function has left the wire, or its process has ended, and
  // all it sent was received.
  virtual bool HasLeft(uint64_t /*receiver*/) { return false; }
  // True when that function has not taken what was sent to it, or had no time
  // to answer it: it is behind, not silent.
  virtual bool IsBehind(uint64_t /*receiver*/, uint64_t /*now_ns*/) {
    return false;
  }

  // Tables `port`, `transport` and `next_hop` as firmware wrote them.
  virtual void Configure(const contract::PortCfg& /*port*/) {}
  virtual void SetTransport(const contract::TransportCfg& /*transport*/) {}
  virtual void SetNextHop(uint32_t /*index*/,
                          const contract::NextHopCfg& /*hop*/) {}
  // Sends a frame of the slow path, from its Ethernet header on; one that finds
  // no room is lost, as neighbour protocols expect of a wire.
  virtual void SendSlowPath(std::span<const uint8_t> /*frame*/) {}
  // Whether somebody on the wire wants this function reset; true once.
  virtual bool TakeReset() { return false; }
  // For peers, after each turn of work, and at its begin with `turns` 0: when
  // this function has something to do next, monotonic; 0: now.
  virtual void NoteWork(uint64_t /*at_ns*/, uint32_t /*turns*/) {}
  // When `Flush` has something to do, monotonic; UINT64_MAX: never.
  virtual uint64_t deadline_ns() const { return UINT64_MAX; }
  // Those that are the wire's; 0 for the others.
  virtual uint64_t statistic(contract::Statistic /*which*/) const { return 0; }
  // Lines `name value` of what has no number in the contract.
  virtual std::string StatisticsText() const { return {}; }
  // Completes the capture file, if there is one, as far as it goes.
  virtual void FlushCapture() {}
};

}  // namespace heddle::soft::wire
