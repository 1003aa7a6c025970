// SPDX-License-Identifier: Apache-2.0
// A port of the named one-machine wire.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/result.h"
#include "firmware/base/hal.h"
#include "hw/sim/faults.h"
#include "hw/sim/frame_ring.h"
#include "hw/sim/route.h"
#include "hw/sim/wire_segment.h"

namespace heddle::sim {

struct SharedWireOptions {
  std::string name;             // Empty: the default wire.
  WireAddress ip = 0x7f000001;  // NOLINT(google-explicit-constructor)
  uint32_t payload_mtu = 4096;
  // Frames may come without UDP checksum and CRC, so marked.
  bool takes_unchecked = false;
};

// One function attached to the wire, and its part of the switch.
//
// No daemon: each sender routes its own frames with the tables in the shared
// memory. What a process left behind when it died is void, and is cleared by
// whoever needs the place.
//
// Thread safety: `Kick`, `ClaimPort`, `ReleasePort` from any thread; sending
// and receiving by one thread at a time.
class SharedWire final : public firmware::Switch {
 public:
  // Errors, each with a line in `*message`: EBUSY when the address has 64
  // functions, or the wire kMaxPorts; EPROTO when the payload MTU or the
  // layout differ; ETIMEDOUT when a stopped process holds the wire's lock.
  static Result<std::unique_ptr<SharedWire>> Attach(
      const SharedWireOptions& options, std::string* message);
  ~SharedWire();
  SharedWire(const SharedWire&) = delete;
  SharedWire& operator=(const SharedWire&) = delete;

  uint8_t slot() const { return slot_; }
  const std::string& name() const { return name_; }

  firmware::PortClaim ClaimPort(uint32_t port) override;
  void ReleasePort(uint32_t port) override;

  enum class SendOutcome : uint8_t {
    kSent,
    kBlocked,  // Receiver is full: try again.
    kDropped,  // Nobody to send it to, or a receiver that stopped.
  };
  SendOutcome Send(std::span<const uint8_t> frame) {
    return Send(frame, FindRoute(frame));
  }
  // `route` is that of the frame.
  SendOutcome Send(std::span<const uint8_t> frame, const Route& route,
                   FrameMarks marks = {});
  // A frame that faults may have changed: it goes where it was sent to.
  SendOutcome Send(const LineFrame& frame) {
    return Send(frame.bytes, frame.route, {.bad_fcs = frame.bad_fcs});
  }
  bool Receive(Frame* frame, FrameMarks* marks = nullptr);

  // The port that a frame with `route` reaches; empty when there is none, or
  // not one. For a `SendTo` at once; same thread as sending.
  std::optional<uint32_t> FindPort(const Route& route);
  // Whether a port takes unchecked frames.
  bool TakesUnchecked(uint32_t port) const;
  SendOutcome SendTo(std::optional<uint32_t> port,
                     std::span<const uint8_t> frame, FrameMarks marks);

  // Whether frames pass; a wake tells of changes. Any thread.
  bool link_up() const;

  // Whether this function was to be reset since the last call; a wake tells.
  bool TakeReset();

  // Whether this function has something to do, for its peers to see.
  void SetWorking(bool working);
  // True if a peer that took frames from this port within `kPatienceNs`, or got
  // its first, has not taken all or is still working: it is behind, not silent.
  // Same thread as sending.
  bool PeerIsBehind(uint64_t now_ns);
  // The same of the function with this number, see `FunctionAt`.
  bool PeerIsBehind(uint32_t function, uint64_t now_ns);
  // Frames were blocked, and no receiver that had no room has taken anything
  // since. Same thread as sending.
  bool IsStillFull() const;

  // The function that a frame with `route` reaches: a number that no other of
  // this wire gets; 0 if there is none. Same thread as sending.
  uint32_t FunctionAt(const Route& route);
  // Whether it has detached or its process has ended. What it sent before may
  // still be received.
  bool HasLeft(uint32_t function) const;

  // True if a frame or a kick may have arrived since `Receive` found nothing.
  bool HasNews() const;
  // Wakes a `Sleep` of this port.
  void Kick() { Wake(index_); }
  // Returns on news, a wake, or after `timeout_ns`. Any thread.
  void Sleep(uint64_t timeout_ns) { Sleep(seen_wake_.load(), timeout_ns); }
  // Counts wakes and news. A `Sleep` with a value of it ends at once when one
  // came since, whoever has seen it.
  uint32_t wakes() const;
  void Sleep(uint32_t wakes, uint64_t timeout_ns);

  uint64_t dropped() const { return dropped_; }
  // Of these, because this link or the receiver's was down.
  uint64_t dropped_link_down() const { return dropped_link_down_; }
  // Times that a peer was cut off because its ring held nonsense. A later
  // owner of the peer's port begins anew.
  uint64_t corrupt_peers() const { return corrupt_peers_; }

  // A receiver that takes nothing for this long does not hold senders back.
  static constexpr uint64_t kPatienceNs = 50000000;

 private:
  struct Peer {
    std::optional<FrameRingProducer> producer;
    std::optional<FrameRingConsumer> consumer;
    bool corrupt = false;      // Its ring holds nonsense.
    uint64_t progress_ns = 0;  // When it was last seen to take frames.
    uint64_t progress_at = 0;  // What it had taken then.
    bool was_pending = false;
    uint64_t blocked_since_ns = 0;  // 0: not blocked.
    uint64_t consumed_then = 0;
    bool stopped = false;
  };

  SharedWire(std::unique_ptr<WireSegment> segment, const WireAddress& ip);

  bool TakePort(const SharedWireOptions& options, Errno* error,
                std::string* message);
  // Makes `index_` this function's port, in a slot that is not `used`.
  void Occupy(const std::bitset<kSlots>& used, bool takes_unchecked);
  void ClearDead();
  void ClearPort(WirePort& port);
  void Wake(uint32_t index);
  void SendToAll(std::span<const uint8_t> frame, FrameMarks marks);
  FrameRingProducer* ProducerTo(uint32_t index);
  FrameRingConsumer* ConsumerFrom(uint32_t index);
  SendOutcome Full(Peer& peer);
  bool ReceiverIsBehind(uint32_t index, uint64_t now_ns);

  std::unique_ptr<WireSegment> segment_;
  const WireAddress ip_;
  std::string name_;
  uint32_t index_ = 0;
  uint8_t slot_ = 0;
  uint32_t epoch_ = 0;
  bool attached_ = false;
  uint32_t next_source_ = 0;
  uint32_t last_found_ = 0;  // Port that a frame went to.
  std::atomic<uint32_t> seen_wake_ =
      0;  // `wake` when `Receive` last found nothing.
  std::vector<Peer> peers_;
  std::vector<uint32_t> receivers_;  // Peers with a producer.
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> dropped_link_down_ = 0;
  std::atomic<uint64_t> corrupt_peers_ = 0;
};

}  // namespace heddle::sim
