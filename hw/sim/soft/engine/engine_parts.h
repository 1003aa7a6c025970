// SPDX-License-Identifier: Apache-2.0
// What both sides of the engine share.
#pragma once

#include "hw/sim/soft/engine/completion_queues.h"
#include "hw/sim/soft/engine/counters.h"
#include "hw/sim/soft/engine/host_access.h"
#include "hw/sim/soft/engine/statistics.h"

namespace heddle::sim::soft::engine {

struct EngineParts {
  HostAccess* host = nullptr;
  Statistics* statistics = nullptr;
  CompletionQueues* queues = nullptr;
  Counters* counters = nullptr;
};

}  // namespace heddle::sim::soft::engine
