// SPDX-License-Identifier: Apache-2.0
// The exact wire between NICs of one process: a cut-through switch on their
// clock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "firmware/base/hal.h"
#include "hw/sim/base/random.h"
#include "hw/sim/fault/faults.h"
#include "hw/sim/fault/faulty_line.h"
#include "hw/sim/frame/capture.h"
#include "hw/sim/frame/route.h"
#include "hw/sim/pins/mac_link.h"

namespace heddle::sim::pins {

struct LockstepWireOptions {
  // Beat sent to beat received; at least 2, of 64-bit NICs 12, so that the
  // frame's route is known.
  uint32_t latency_cycles = 50;
  fault::FaultOptions faults;          // On each port's transmitter; in cycles.
  fault::FaultOptions rx_faults = {};  // On its receiver.
  uint64_t cycle_ns = 4;               // Unit of the capture's time stamps.
};

// Beats arrive `latency_cycles` after they were sent, one per cycle and port;
// frames to one port queue in the order in which their headers were sent (of
// those sent in one cycle, lower port first). Nothing is ever held back or lost
// but by faults. A frame that faults damage, and each frame on a transmitter
// that is shaped or a receiver with faults, moves on with its last beat. Same
// calls, same seed: same result.
//
// Thread safety: none.
class LockstepWire {
 public:
  explicit LockstepWire(const LockstepWireOptions& options);
  ~LockstepWire();

  // Adds a port for a function at `ip`, in the next slot there.
  // Precondition: fewer than 64 functions are at `ip`.
  uint32_t AddPort(const frame::WireAddress& ip);
  MacLink* mac(uint32_t port);
  firmware::Switch* ports(uint32_t port);
  uint8_t slot(uint32_t port) const;

  // While a port's link is down, frames from and to it are lost.
  void SetLink(uint32_t port, bool up);
  bool link_up(uint32_t port) const;

  // Begins the next clock cycle. Frames held back by reordering leave latest
  // `kHoldCycles` after they were sent.
  void BeginCycle(uint64_t cycle);
  // True if nothing is under way.
  bool quiet() const { return next() == UINT64_MAX; }
  // The cycle in which something happens next if nobody sends: the present one
  // if that cannot be said, UINT64_MAX if nothing is under way.
  uint64_t next() const;

  // Records each frame that the switch forwards, when its last beat was sent.
  void set_capture(std::unique_ptr<frame::Capture> capture);

  uint64_t frames() const { return frames_; }    // Forwarded.
  uint64_t dropped() const { return dropped_; }  // Nobody to send them to.
  uint64_t lost_link_down() const { return lost_link_down_; }
  // By faults.
  uint64_t lost() const;
  uint64_t corrupted() const;
  uint64_t bad_fcs() const;
  uint64_t overflowed() const;  // Lost at the end of a queue.
  uint64_t marked() const;
  uint64_t trimmed() const;  // Instead.

  static constexpr uint64_t kHoldCycles = 2048;

 private:
  class Port;
  // A frame under way; beats are still being added while it is received.
  struct Flight {
    frame::Frame bytes;
    std::vector<uint64_t> sent_cycle;  // Of each beat.
    std::vector<uint32_t> beat_end;    // Offset behind each beat.
    frame::Route route;
    fault::FaultDecision fault;
    uint32_t copies = 0;  // Forwarded so often.
    bool complete = false;
    bool bad_fcs = false;
    bool sender_up = true;
    const Port* sender = nullptr;
  };
  using FlightPtr = std::shared_ptr<Flight>;

  void Forward(const FlightPtr& flight);
  template <typename Count>
  uint64_t Sum(Count count) const;
  void Record(const Flight& flight);
  Port* Find(const frame::Route& route);
  void ForwardToAll(const FlightPtr& flight);

  const LockstepWireOptions options_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::unique_ptr<frame::Capture> capture_;
  uint64_t cycle_ = 0;
  size_t beat_bytes_ = 0;  // Widest beat sent.
  uint64_t frames_ = 0;
  uint64_t dropped_ = 0;
  uint64_t lost_link_down_ = 0;
};

}  // namespace heddle::sim::pins
