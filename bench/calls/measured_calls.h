// SPDX-License-Identifier: Apache-2.0
// Loops over one libfabric call each, in functions of their own that a profiler
// can distinguish.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

#include "bench/calls/fabric_pair.h"

namespace heddle::bench {

// One operation as it is measured.
struct MeasuredCall {
  std::string_view name;
  size_t bytes;    // Length of a message.
  bool sends;      // Posts at the sender; receives are posted before.
  bool completes;  // The sender gets a completion for each.
  bool receives;   // Posts at the receiver.
  PairKind pair;   // Whose call it is.
  // The loop: calls `batch` times, answers how many succeeded.
  size_t (*loop)(FabricPair& pair, size_t bytes, size_t batch);
};

// Every call; `null`, an empty loop, first. Whole messages (`IsWhole`) last.
std::span<const MeasuredCall> AllCalls();

// Whether the loop posts receive and message and polls until both are complete.
// A device that is stepped would never complete them.
bool IsWhole(const MeasuredCall& call);

// Null when there is none of that name.
const MeasuredCall* FindCall(std::string_view name);

struct BatchResult {
  size_t calls = 0;  // That succeeded.
  std::chrono::steady_clock::duration time{};
};

// Runs the loop once; what must come before and after it is not measured.
BatchResult RunBatch(const MeasuredCall& call, FabricPair& pair, size_t batch);

}  // namespace heddle::bench
