// SPDX-License-Identifier: Apache-2.0
// What a bad wire does to the frames that a port sends or receives: loss,
// duplication, reordering, damage that the FCS shows and damage that it does
// not, congestion marks, and what a slow or long wire does to all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/sim/base/random.h"
#include "hw/sim/frame/frame.h"
#include "hw/sim/frame/route.h"
#include "hw/sim/frame/wire_address.h"

namespace heddle::sim::fault {

// Of one direction of one port. Time is in cycles on the lock-step wire, in
// nanoseconds on the others.
struct FaultOptions {
  uint64_t seed = 1;
  double loss = 0;  // Probabilities per frame, 0 to 1.
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;  // Silently: only the end-to-end CRC can tell.
  double bad_fcs = 0;  // The receiver's MAC reports an error.
  double ecn = 0;      // The frame is marked.
  // Each frame takes so long, and up to `jitter` longer; it does not overtake.
  uint64_t delay = 0;
  uint64_t jitter = 0;
  // Bits per unit of time that pass, 0: all. What is faster queues.
  double rate = 0;
  // Bytes that queue for `rate`; a frame that finds no room is lost. One alone
  // always finds it.
  uint64_t queue_bytes = 262144;
  // A frame that finds more bytes than this in the queue is marked; 0: none.
  uint64_t ecn_bytes = 0;
  // A request that finds no room is not lost but trimmed, and gets this DSCP.
  // What is left goes before all that waits, and has a quarter of `queue_bytes`
  // of its own.
  bool trim = false;
  uint8_t trim_dscp = 0;
  // Of UET packets without UDP, which are corrupted, marked and trimmed like
  // those with it.
  uint8_t ip_protocol = contract::kNativeIpProtocol;

  // Whether a frame may leave later than it was sent, or marked.
  bool shapes() const { return ecn > 0 || delay > 0 || jitter > 0 || rate > 0; }
};

// Of both directions of a port.
struct LineFaults {
  FaultOptions tx = {};  // What it sends.
  FaultOptions rx = {};  // What it receives.

  // The same faults with seeds of one port: both ends of a wire have the same
  // settings, but each direction of each port draws from its own stream.
  // `ordinal` distinguishes the functions at `address`.
  LineFaults OfPort(const frame::WireAddress& address, uint32_t ordinal) const;
};

// A frame on its way, with what the switch and the receiver's MAC know of it.
struct LineFrame {
  frame::Frame bytes;
  frame::Route route;  // As sent; damage does not lead a frame astray.
  bool bad_fcs = false;
};

// What happens to one frame.
struct FaultDecision {
  bool lost = false;
  bool duplicated = false;
  // Later frames of the port that overtake this one, 0 for none.
  uint32_t overtaken_by = 0;
  bool corrupted = false;
  bool bad_fcs = false;
  uint64_t damage_seed = 0;

  bool damaged() const { return corrupted || bad_fcs; }
};

// Flips bits behind the UDP or entropy header of a UET frame as a switch with a
// bad memory does behind its own FCS check: in pairs of equal weight and
// opposite direction, so that a UDP checksum, and with it every check below the
// end-to-end CRC, still holds. All of it lies within what that CRC covers.
// False if the frame has no two words that differ; then it is unchanged.
bool CorruptSilently(uint64_t seed, frame::Frame* frame,
                     uint8_t ip_protocol = contract::kNativeIpProtocol);

// Flips a few bits anywhere behind the Ethernet header.
void Damage(uint64_t seed, frame::Frame* frame);

// Sets the ECN field of a UET frame to CE, as a congested switch does; the
// checksum of an IPv4 header goes along, the end-to-end CRC does not cover the
// field. Whether the sender said that it understands marks is not asked: a UET
// endpoint does. False if the frame is none or already marked.
bool MarkCongestion(frame::Frame* frame,
                    uint8_t ip_protocol = contract::kNativeIpProtocol);

// Cuts off what is behind the UDP or entropy header and 16 bytes of a UET
// request, as a switch with a full queue does, and writes `dscp` and the length
// of the datagram into the IP header; UDP keeps its length (UET 3.4). False if
// the frame is no request, or too short to become shorter; then it is
// unchanged.
bool TrimRequest(uint8_t dscp, frame::Frame* frame,
                 uint8_t ip_protocol = contract::kNativeIpProtocol);

// Decides from seed and frame number alone, so that a run can be repeated.
// Thread safety: none.
class FaultInjector {
 public:
  explicit FaultInjector(const FaultOptions& options);

  FaultDecision Next();

  // Whether any fault but those of `FaultOptions::shapes` is asked for.
  bool active() const { return active_; }
  uint64_t lost() const { return lost_; }
  uint64_t duplicated() const { return duplicated_; }
  uint64_t reordered() const { return reordered_; }
  uint64_t corrupted() const { return corrupted_; }
  uint64_t bad_fcs() const { return bad_fcs_; }

  // Does to `frame` what `decision` says, and counts it.
  void Apply(const FaultDecision& decision, LineFrame* frame);

  static constexpr uint32_t kMaxOvertaking = 4;

 private:
  const FaultOptions options_;
  const bool active_;
  base::Random random_;
  base::Random
      damage_;  // Apart, so that damage does not shift the other faults.
  uint64_t lost_ = 0;
  uint64_t duplicated_ = 0;
  uint64_t reordered_ = 0;
  uint64_t corrupted_ = 0;
  uint64_t bad_fcs_ = 0;
};

}  // namespace heddle::sim::fault
