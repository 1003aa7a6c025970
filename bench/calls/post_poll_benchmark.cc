// SPDX-License-Identifier: Apache-2.0
// Time per post and poll, on a device that completes at once when it is
// stepped. Compare within one run only: the machine has other things to do.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "bench/calls/measured_calls.h"

namespace heddle::bench {
namespace {

FabricPair& Pair() {
  constexpr size_t kLargest = 4096;
  const char* provider = std::getenv("FI_PROVIDER");
  static FabricPair pair(provider == nullptr ? "heddle" : provider, kLargest,
                         PairKind::kMessages);
  return pair;
}

void Call(benchmark::State& state, const char* name) {
  const MeasuredCall& call = *FindCall(name);
  int64_t calls = 0;
  while (state.KeepRunning()) {
    const BatchResult result = RunBatch(call, Pair(), FabricPair::kMaxBatch);
    state.SetIterationTime(std::chrono::duration<double>(result.time).count());
    calls += static_cast<int64_t>(result.calls);
  }
  state.SetItemsProcessed(calls);
}

BENCHMARK_CAPTURE(Call, null, "null")->UseManualTime();
BENCHMARK_CAPTURE(Call, inject, "inject")->UseManualTime();
BENCHMARK_CAPTURE(Call, send, "send")->UseManualTime();
BENCHMARK_CAPTURE(Call, send_64, "send_64")->UseManualTime();
BENCHMARK_CAPTURE(Call, send_4096, "send_4096")->UseManualTime();
BENCHMARK_CAPTURE(Call, recv, "recv")->UseManualTime();
BENCHMARK_CAPTURE(Call, recv_unregistered, "recv_unregistered")
    ->UseManualTime();
BENCHMARK_CAPTURE(Call, cq_read, "cq_read")->UseManualTime();
BENCHMARK_CAPTURE(Call, empty_poll, "empty_poll")->UseManualTime();

}  // namespace
}  // namespace heddle::bench

BENCHMARK_MAIN();
