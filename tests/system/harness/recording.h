// SPDX-License-Identifier: Apache-2.0
// A lock-step world in the process that repeats a failed test.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "hw/sim/model/recording.h"
#include "hw/sim/nic/lockstep_world.h"

namespace heddle {

// Has the world leave waveforms of its NICs, a capture of its wire and a trace
// of events at their pins. Nothing in other processes.
//
// Ownership: outlives the world.
class WorldRecording {
 public:
  // Fills in the files of `options`; null if nothing is to be recorded.
  static std::unique_ptr<WorldRecording> Prepare(
      sim::nic::LockstepOptions* options);

  // Takes the place of the NICs' observers.
  void Observe(sim::nic::LockstepWorld& world, size_t nics);

 private:
  explicit WorldRecording(const sim::model::Recording& recording);

  const uint64_t from_cycle_;
  std::ofstream events_;  // Lines of cycle, NIC, event.
};

}  // namespace heddle
