// SPDX-License-Identifier: Apache-2.0
// Runs a stream between processes.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

struct RunOptions {
  // FI_HEDDLE_DEVICE of each side; of more sides than are named, the first
  // names again.
  std::vector<std::string> devices = {"rtl", "rtl"};
  const std::string& DeviceOf(uint32_t side) const {
    return devices.at(side % devices.size());
  }
  // More variables for all.
  std::vector<std::pair<std::string, std::string>> environment;
  // What the first side sends and receives goes here, of each run anew; empty
  // for none.
  std::string capture;
  // A run in which nothing happens for so long is ended. A target forgets a
  // message that broke off after three times FI_HEDDLE_DEAD_NS at most.
  std::chrono::seconds silence{20};
};

// Each side is a child process, on a wire that no other run is on. A side that
// ends by itself, or hangs, ends the run; its trace says so.
// Precondition: one thread, and libfabric was not used in this process.
Trace Run(const Stream& stream, const RunOptions& options);

}  // namespace heddle::differential
