// SPDX-License-Identifier: Apache-2.0
// A port of the named one-machine wire.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/result.h"
#include "firmware/base/hal.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_settings.h"
#include "hw/sim/base/time_source.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/frame/route.h"
#include "hw/sim/wire/frame_ring.h"
#include "hw/sim/wire/wire_directory.h"
#include "hw/sim/wire/wire_segment.h"

namespace heddle::sim::wire {

struct SharedWireOptions {
  std::string name;                    // Empty: the default wire.
  frame::WireAddress ip = 0x7f000001;  // NOLINT(google-explicit-constructor)
  uint32_t payload_mtu = contract::kPayloadMtuFallback;
  // Of all frames on the wire.
  contract::CrcOrder crc = contract::CrcOrder::kMsbFirst;
  // Of UET packets without UDP, in case that there are any.
  uint8_t ip_protocol = contract::kNativeIpProtocol;
  // Frames may come without CRC, so marked.
  bool takes_unchecked = false;
  // All PDCIDs of a slot from the start, for devices that form them by
  // themselves; else blocks are granted on demand.
  bool takes_slot = false;
  // Of something that is no NIC of this project: all that is sent to `ip` goes
  // to this port, whatever it is, and no function shares the address. It has no
  // payload MTU.
  bool tap = false;
  // Receivers learn of frames with every `kGatheredFrames`, and are woken by
  // `FlushNews`: where both share a CPU, a receiver that wakes in the middle of
  // a burst takes it from the sender.
  bool gathers_news = false;
  // By which peers are patient.
  base::TimeSource time = {};
};

// One function attached to the wire, and its part of the switch.
//
// No daemon: each sender routes its own frames with the tables in the shared
// memory. What a process left behind when it died is void, and is cleared by
// whoever needs the place.
//
// The wire stands for a NIC that the functions share, and so is the owner of
// their addresses: a packet for an unknown PDC is refused in the name of the
// address (unknown_pdc.h), and its sender receives the NACK.
//
// Thread safety: `Kick`, `ClaimPort`, `ReleasePort` from any thread; sending
// and receiving by one thread at a time.
class SharedWire final : public firmware::Switch {
 public:
  // Errors, each with a line in `*message`: EADDRINUSE when `ip` is that of a
  // tap, or a tap's and a function has it; EBUSY when the wire has kMaxPorts
  // functions or kMaxAddresses addresses, or no slot is left that is wanted;
  // EPROTO when the payload MTU or the layout differ; ETIMEDOUT when a stopped
  // process holds the wire's lock.
  static Result<std::unique_ptr<SharedWire>> Attach(
      const SharedWireOptions& options, std::string* message);
  ~SharedWire();
  SharedWire(const SharedWire&) = delete;
  SharedWire& operator=(const SharedWire&) = delete;

  FunctionId id() const { return id_; }
  // Of the wire; tells those behind an address apart.
  uint16_t function() const { return static_cast<uint16_t>(index_); }
  // 0 unless it was wanted.
  uint8_t slot() const { return slot_; }
  // `faults` with seeds of this port: they repeat when functions attach to a
  // new wire in the same order.
  fault::LineFaults OfThisPort(const fault::LineFaults& faults) const {
    return faults.OfPort(ip_, ordinal_);
  }
  const std::string& name() const { return name_; }

  // First PDCID of a block that this function has from now on; empty when the
  // address has none left. From any thread, as `ReturnPdcids`.
  std::optional<uint16_t> TakePdcids();
  void ReturnPdcids(uint16_t first);

  firmware::PortClaim ClaimPort(const firmware::PortName& wanted) override;
  void ReleasePort(const firmware::PortName& name) override;

  enum class SendOutcome : uint8_t {
    kSent,
    kBlocked,  // Receiver is full: try again.
    kDropped,  // Nobody to send it to, or a receiver that stopped.
  };
  SendOutcome Send(std::span<const uint8_t> frame) {
    return Send(frame, frame::FindRoute(frame, ip_protocol_));
  }
  // `route` is that of the frame.
  SendOutcome Send(std::span<const uint8_t> frame, const frame::Route& route,
                   frame::FrameMarks marks = {});
  // A frame that faults may have changed: it goes where it was sent to.
  SendOutcome Send(const fault::LineFrame& frame) {
    return Send(frame.bytes, frame.route, {.bad_fcs = frame.bad_fcs});
  }
  // With `gathers_news`, to be called after each burst of `Send` and `SendTo`.
  void FlushNews();
  bool Receive(frame::Frame* frame, frame::FrameMarks* marks = nullptr);

  // The port that a frame with `route` reaches; empty when there is none, or
  // not one. For a `SendTo` at once; same thread as sending.
  std::optional<uint32_t> FindPort(const frame::Route& route);
  // Whether a port takes unchecked frames.
  bool TakesUnchecked(uint32_t port) const;
  SendOutcome SendTo(std::optional<uint32_t> port,
                     std::span<const uint8_t> frame, frame::FrameMarks marks);

  // Whether frames pass. Once it has been called, a change is news until the
  // next call. Same thread as `Receive`.
  bool link_up();

  // Whether this function was to be reset since the last call; news until then.
  bool TakeReset();

  // For its peers: this function has something to do at `at_ns`, monotonic (0:
  // now, UINT64_MAX: nothing), and did `done` since the last call, in cycles of
  // a NIC or what takes about as long.
  void NoteWork(uint64_t at_ns, uint64_t done = 0);
  // True if the function lags and is not silent: it has frames of this port to
  // take, or has had too little time on a CPU since it took them
  // (`kAnswerWork`). False once it has taken nothing for `kStarvedNs`, or its
  // process has ended. Same thread as sending.
  bool PeerIsBehind(FunctionId function, uint64_t now_ns);
  // True if no peer lags, or if each has had the time to answer what it had
  // been sent when the last call returned true. With endless traffic some peer
  // lags at each moment, but no frame waits without end. Same thread as
  // sending.
  bool PeersCaughtUp(uint64_t now_ns);
  // Frames were blocked, and no receiver that had no room has taken anything
  // since. Same thread as sending.
  bool IsStillFull() const;

  // The function that a frame with `route` reaches; 0 if there is none. Same
  // thread as sending.
  FunctionId FunctionAt(const frame::Route& route) {
    return directory_.FindFunction(route);
  }
  // Whether it has detached or its process has ended, which is noticed by this.
  // What it sent before may still be received.
  bool HasLeft(FunctionId function) const {
    return !directory_.IsAlive(function);
  }

  // True if a frame or a kick may have arrived since `Receive` left nothing, or
  // an order from outside waits.
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
  // Packets to unknown PDCs, each answered with a NACK.
  uint64_t refused() const { return refused_; }
  // Times that a peer was cut off because its ring held nonsense. A later
  // owner of the peer's port begins anew.
  uint64_t corrupt_peers() const { return corrupt_peers_; }

  // A receiver that takes nothing for this long does not hold senders back,
  // unless its process only waits for a CPU: then `kStarvedNs`.
  static constexpr uint64_t kPatienceNs = 50000000;
  // A peer that takes nothing for this long is silent, whether or not its
  // process gets a CPU.
  static constexpr uint64_t kStarvedNs = 1000000000;
  static constexpr uint32_t kGatheredFrames = 8;
  // Work within which a peer answers what it has taken, unless that was lost.
  static constexpr uint64_t kAnswerWork = 4096;
  // Work that is late by more than this waits for a CPU.
  static constexpr uint64_t kLateNs = 1000000;

 private:
  struct Peer {
    std::optional<FrameRingProducer> producer;
    std::optional<FrameRingConsumer> consumer;
    bool corrupt = false;      // Its ring holds nonsense.
    uint64_t progress_ns = 0;  // When it was last seen to take frames.
    uint64_t progress_at = 0;  // What it had taken then.
    uint64_t work_then = 0;    // Work that it had done then.
    uint64_t looked_ns = 0;    // When its process was last looked at.
    base::ProcessId::State process = base::ProcessId::State::kRuns;
    bool was_pending = false;
    // For `PeersCaughtUp`, since it last returned true:
    uint64_t sent_before = 0;  // The end of what it had been sent by then.
    uint64_t taken_work = 0;   // Its work when it was seen to have taken that.
    bool taken = false;
    bool caught_up = false;
    uint32_t unflushed = 0;         // Frames since `FlushNews`.
    uint64_t blocked_since_ns = 0;  // 0: not blocked.
    uint64_t consumed_then = 0;
    bool stopped = false;
  };

  SharedWire(std::unique_ptr<WireSegment> segment,
             const SharedWireOptions& options);

  bool TakePort(const SharedWireOptions& options, Errno* error,
                std::string* message);
  bool TakeSlot(Errno* error, std::string* message);
  // What `take` gives; if nothing, once more without dead functions.
  template <typename Take>
  std::optional<uint32_t> Reclaiming(Take take);
  // A libfabric port of the dynamic range that no function has.
  std::optional<uint32_t> FindDynamicPort(uint32_t space);
  // Whether the address may be shared with those that have it.
  bool MayHaveAddress(bool tap, Errno* error, std::string* message);
  // A port without an owner; empty: there is none. `alone`: no function is
  // attached but taps.
  std::optional<uint32_t> FindFreePort(bool* alone) const;
  // Makes `index_` this function's port.
  void Occupy(const SharedWireOptions& options);
  static void ClearPort(WirePort& port);
  void Wake(uint32_t index);
  void NoteNews(uint32_t index);
  // The same, but a sleeper does not wake.
  void AnnounceNews(uint32_t index);
  void GatherNews(uint32_t index);
  // Takes the news of this port over to `fresh_`.
  void TakeNews();
  // Refuses a frame without a receiver, if a NACK is due; whether it was.
  bool Refuse(std::span<const uint8_t> frame, const frame::Route& route,
              frame::FrameMarks marks);
  Peer& PeerAt(uint32_t index);
  void SendToAll(std::span<const uint8_t> frame, frame::FrameMarks marks);
  FrameRingProducer* ProducerTo(uint32_t index);
  FrameRingConsumer* ConsumerFrom(uint32_t index);
  SendOutcome Full(uint32_t index);
  // The state of a port's process; up to `kPatienceNs` old, as it takes a
  // system call. An end is noticed by this.
  base::ProcessId::State ProcessOf(uint32_t index, uint64_t now_ns);
  bool ReceiverIsBehind(uint32_t index, uint64_t now_ns);
  bool ReceiverCaughtUp(uint32_t index, uint64_t now_ns);

  std::unique_ptr<WireSegment> segment_;
  WireDirectory directory_;
  const frame::WireAddress ip_;
  const base::TimeSource time_;
  const contract::CrcOrder crc_;
  const uint8_t ip_protocol_;
  std::string name_;
  uint32_t index_ = 0;
  uint32_t address_ = 0;  // Entry of `ip_`.
  uint8_t slot_ = 0;
  uint32_t ordinal_ = 0;  // Among the functions at `ip_`.
  uint32_t epoch_ = 0;
  FunctionId id_ = 0;
  bool attached_ = false;
  uint32_t next_source_ = 0;
  // Sources that may have frames, one bit each.
  std::array<uint64_t, kMaxPorts / kWordBits> fresh_{};
  uint32_t fresh_words_ = 0;  // Of these, those that are not 0.
  std::atomic<bool> link_was_read_ = false;
  std::atomic<bool> seen_link_up_ = true;  // What `link_up` returned last.
  std::atomic<uint32_t> seen_wake_ =
      0;  // `wake` when `Receive` last left nothing.
  std::vector<std::unique_ptr<Peer>> peers_;  // By port, made when needed.
  std::vector<uint32_t> receivers_;           // Peers with a producer.
  std::vector<uint32_t> unflushed_;           // They have news to come.
  const bool gathers_news_;
  std::deque<frame::Frame> refusals_;  // For this function.
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<uint64_t> dropped_link_down_ = 0;
  std::atomic<uint64_t> corrupt_peers_ = 0;
};

}  // namespace heddle::sim::wire
