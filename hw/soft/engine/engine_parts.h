// SPDX-License-Identifier: Apache-2.0
// What both sides of the engine share.
#pragma once

#include "hw/soft/engine/completion_queues.h"
#include "hw/soft/engine/counters.h"
#include "hw/soft/engine/host_access.h"
#include "hw/soft/engine/statistics.h"

namespace heddle::soft::engine {

struct EngineParts {
  HostAccess* host = nullptr;
  Statistics* statistics = nullptr;
  CompletionQueues* queues = nullptr;
  Counters* counters = nullptr;
};

}  // namespace heddle::soft::engine
