// SPDX-License-Identifier: Apache-2.0
// Lends a port of the one-machine wire to a program behind a UNIX socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "driver/result.h"
#include "hw/sim/base/owned_fd.h"
#include "hw/sim/base/unix_listener.h"
#include "hw/sim/wire/frame_ring.h"
#include "hw/sim/wire/shared_wire.h"

namespace heddle::sim::wire {

struct WireTapOptions {
  std::string wire;  // As SharedWireOptions::name.
  frame::WireAddress ip;
  // Of the NACKs that the wire answers the client with.
  contract::CrcOrder crc = contract::CrcOrder::kMsbFirst;
  // Of UET packets without UDP, from the client and to it.
  uint8_t ip_protocol = contract::kNativeIpProtocol;
  std::string socket;  // Path.
};

// Frames by what became of them.
struct WireTapCounts {
  uint64_t sent = 0;      // From the client to the wire.
  uint64_t received = 0;  // From the wire to the client.
  uint64_t lost = 0;      // From the client to nobody, or a link that is down.
  // Not taken from the client: shorter than an Ethernet header, longer than
  // the wire's frames; naming another sender than the tap's address, or none.
  uint64_t refused_length = 0;
  uint64_t refused_source = 0;
  // For the client: while none was connected; while it did not read; damaged,
  // as the FCS would show.
  uint64_t dropped_no_client = 0;
  uint64_t dropped_slow_client = 0;
  uint64_t dropped_bad_fcs = 0;
};

// One client at a time, over SOCK_SEQPACKET: a message is an Ethernet frame
// without FCS. The port stays on the wire when the client leaves; the next one
// receives what arrives after it connected. A client that does not read delays
// nobody: what exceeds its queue is dropped. A receiver on the wire that is
// full delays the client.
// Thread safety: none. Ownership: of the port and of the socket.
class WireTap {
 public:
  // Errors, with a line in `*message`: those of `SharedWire::Attach` and
  // `UnixListener::Open`.
  static Result<std::unique_ptr<WireTap>> Open(const WireTapOptions& options,
                                               std::string* message);
  WireTap(const WireTap&) = delete;
  WireTap& operator=(const WireTap&) = delete;

  // Until `stop_fd` is readable. Writes a line to stderr for each client that
  // comes or goes, and for the first frame of each that is refused. False,
  // with a line there, when the system refuses what it needs.
  bool Run(int stop_fd);

  uint64_t mac() const { return frame::PortMac(ip_, wire_->function()); }
  const WireTapCounts& counts() const { return counts_; }

  // Bytes of frames that wait for the client, beside its socket's buffer.
  static constexpr size_t kQueueBytes = 4 << 20;

 private:
  WireTap(std::unique_ptr<SharedWire> wire, base::UnixListener listener,
          const frame::WireAddress& ip)
      : wire_(std::move(wire)), listener_(std::move(listener)), ip_(ip) {}

  void Say(const std::string& what) const;
  // Passes frames on, in both directions, until nothing can go on.
  bool Poll(int stop_fd, int news_fd);
  void Admit();
  void Leave(const std::string& why);
  // Whether there may be more.
  bool TakeFromWire();
  void FlushToClient();
  void TakeFromClient();
  // False when there is none now.
  bool ReadFrame();
  bool IsAllowed(size_t bytes);
  void Refuse(uint64_t* count, const std::string& why);
  void SendToWire();

  const std::unique_ptr<SharedWire> wire_;
  const base::UnixListener listener_;
  const frame::WireAddress ip_;
  base::OwnedFd client_;
  std::deque<frame::Frame> queue_;  // For the client.
  size_t queue_bytes_ = 0;
  frame::Frame outgoing_;  // Taken from the client and not yet by the wire.
  bool said_refused_ = false;
  bool more_ = false;  // Frames may wait on the wire.
  WireTapCounts counts_;
  // One byte more than a frame may have.
  std::array<uint8_t, frame::kMaxWireFrameBytes + 1> buffer_{};
};

}  // namespace heddle::sim::wire
