// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/base/virtual_time.h"

#include <algorithm>

namespace heddle::sim::base {

void VirtualTime::Leave(Worker* worker) {
  std::erase(workers_, worker);
}

const VirtualTime::Worker* VirtualTime::RunNext(uint64_t until_ns) {
  size_t first = 0;
  uint64_t first_ns = UINT64_MAX;
  for (size_t i = 0; i < workers_.size(); ++i) {
    // What was due before now is due now.
    const uint64_t due_ns = std::max(workers_[i]->due_ns(), now_ns_);
    if (due_ns < first_ns) {
      first = i;
      first_ns = due_ns;
    }
  }
  if (first_ns > until_ns || first_ns == UINT64_MAX) {
    now_ns_ = std::max(now_ns_, until_ns);
    return nullptr;
  }
  Worker* const worker = workers_[first];
  std::rotate(workers_.begin() + static_cast<ptrdiff_t>(first),
              workers_.begin() + static_cast<ptrdiff_t>(first) + 1,
              workers_.end());
  now_ns_ = first_ns;
  worker->Work();
  now_ns_ += kTurnNs;
  return worker;
}

void VirtualTime::Pause(const Worker* worker, uint64_t until_ns) {
  if (pauser_) {
    pauser_(worker, until_ns);
    return;
  }
  for (const Worker* ran = RunNext(until_ns); ran != nullptr && ran != worker;
       ran = RunNext(until_ns)) {
  }
}

}  // namespace heddle::sim::base
