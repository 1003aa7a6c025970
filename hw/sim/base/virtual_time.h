// SPDX-License-Identifier: Apache-2.0
// Time that jumps from event to event, for devices of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "hw/sim/base/time_source.h"

namespace heddle::sim::base {

// Devices join as workers and have no thread of their own: they work when the
// thread that drives everything waits. Time stands still while anything
// computes; each turn of a worker costs `kTurnNs`, so that work for now never
// keeps the clock from moving. The same calls in the same order give the same
// run.
//
// Thread safety: none; one thread drives everything.
class VirtualTime {
 public:
  class Worker {
   public:
    // When it has something to do: a time, 0: now, UINT64_MAX: never.
    virtual uint64_t due_ns() const = 0;
    virtual void Work() = 0;

   protected:
    ~Worker() = default;
  };

  // What a caller of `Pause` waits for: work of one worker, or null.
  using Pauser = std::function<void(const Worker* worker, uint64_t until_ns)>;

  uint64_t now_ns() const { return now_ns_; }
  TimeSource source() const { return TimeSource(&now_ns_); }

  void Join(Worker* worker) { workers_.push_back(worker); }
  void Leave(Worker* worker);

  // The worker that is due first, of several the one that has waited longest,
  // works once if it is due at `until_ns` at the latest, and is returned; time
  // moves to when it was due and by what the turn costs. Null: none is, and
  // time has moved to `until_ns`.
  const Worker* RunNext(uint64_t until_ns);

  // The caller has nothing to do before `until_ns`, or before `worker` has
  // worked: returns then. By default runs the workers; `pauser` may run other
  // callers as well.
  void Pause(const Worker* worker, uint64_t until_ns);
  void set_pauser(Pauser pauser) { pauser_ = std::move(pauser); }

  static constexpr uint64_t kTurnNs = 100;
  // Where time begins: 0 stands for "never" and "now" in devices.
  static constexpr uint64_t kStartNs = 1'000'000'000;

 private:
  uint64_t now_ns_ = kStartNs;
  std::vector<Worker*> workers_;  // In the order of their last turns.
  Pauser pauser_;
};

}  // namespace heddle::sim::base
