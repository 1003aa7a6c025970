// SPDX-License-Identifier: Apache-2.0
// What a bad wire does to the frames a port sends: loss, duplication,
// reordering, damage that the FCS shows and damage that it does not.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "hw/sim/random.h"
#include "hw/sim/route.h"

namespace heddle::sim {

using Frame = std::vector<uint8_t>;  // Ethernet frame without FCS.

struct FaultOptions {
  uint64_t seed = 1;
  double loss = 0;  // Probabilities per frame sent, 0 to 1.
  double duplicate = 0;
  double reorder = 0;
  double corrupt = 0;  // Silently: only the end-to-end CRC can tell.
  double bad_fcs = 0;  // The receiver's MAC reports an error.
};

// A frame on its way, with what the switch and the receiver's MAC know of it.
struct LineFrame {
  Frame bytes;
  Route route;  // As sent; damage does not lead a frame astray.
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

// Flips bits in the UDP payload of a UET frame as a switch with a bad memory
// does behind its own FCS check: in pairs of equal weight and opposite
// direction, so that the UDP checksum, and with it every check below the
// end-to-end CRC, still holds. All of it lies within what that CRC covers.
// False if the frame has no two words that differ; then it is unchanged.
bool CorruptSilently(uint64_t seed, Frame* frame);

// Flips a few bits anywhere behind the Ethernet header.
void Damage(uint64_t seed, Frame* frame);

// Decides from seed and frame number alone, so that a run can be repeated.
// Thread safety: none.
class FaultInjector {
 public:
  explicit FaultInjector(const FaultOptions& options);

  FaultDecision Next();

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
  Random random_;
  Random damage_;  // Apart, so that damage does not shift the other faults.
  uint64_t lost_ = 0;
  uint64_t duplicated_ = 0;
  uint64_t reordered_ = 0;
  uint64_t corrupted_ = 0;
  uint64_t bad_fcs_ = 0;
};

// Applies the decisions to a stream of frames: what to put on the wire, in
// which order. Of a frame that is both doubled and damaged, the first copy is
// good. Thread safety: none.
class FaultyLine {
 public:
  explicit FaultyLine(const FaultOptions& options) : injector_(options) {}

  // Takes the next frame sent; appends to `out` the frames that leave now.
  void Push(Frame frame, std::vector<LineFrame>* out);

  // Releases the frames held back for reordering, for a line that fell silent.
  void Flush(std::vector<LineFrame>* out);

  bool holding() const { return !held_.empty(); }
  const FaultInjector& injector() const { return injector_; }

 private:
  struct Held {
    LineFrame frame;
    uint32_t remaining;  // Frames that still pass it.
  };

  FaultInjector injector_;
  std::deque<Held> held_;
};

}  // namespace heddle::sim
