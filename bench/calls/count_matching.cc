// SPDX-License-Identifier: Apache-2.0
// Matches messages with posted receives, for callgrind to count instructions,
// and prints the memory of receives and headers.
#include <valgrind/callgrind.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "host/lib/semantics/receive_queue.h"

namespace {

size_t allocated_bytes = 0;

}  // namespace

void* operator new(size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  allocated_bytes += bytes;
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace heddle::bench {
namespace {

using semantics::Arrival;
using semantics::Delivery;
using semantics::ReceiveQueue;
using semantics::ReceiveSpec;

constexpr uint64_t kSeed = 1;
constexpr uint32_t kMessages = 256;  // Matched in each case.

struct Case {
  std::string name;
  uint32_t receives;
  bool wildcards;
};

// Receive number `i`, which takes tag 2 i from one sender. As a wildcard it
// also takes the next tag, from anyone.
ReceiveSpec Spec(uint32_t i, bool wildcard) {
  ReceiveSpec spec;
  spec.op_context = i;
  spec.length = 8;
  spec.rule.tag = uint64_t{i} * 2;
  spec.rule.ignore = wildcard ? 1 : 0;
  spec.rule.any_source = wildcard;
  spec.rule.source.initiator = 1;
  return spec;
}

void Post(ReceiveQueue& queue, const ReceiveSpec& spec) {
  if (queue.Post(spec).status != ReceiveQueue::PostStatus::kPosted) {
    throw std::runtime_error("a receive was not posted");
  }
}

// Each message takes a receive, which is posted again as the youngest. Messages
// take wildcards from the end, past all others.
void Count(const Case& test) {
  ReceiveQueue queue({.receives = test.receives}, kSeed);
  for (uint32_t i = 0; i < test.receives; ++i) {
    Post(queue, Spec(i, test.wildcards));
  }
  CALLGRIND_ZERO_STATS;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const uint32_t taken =
        test.wildcards ? test.receives - 1 : i * 7 % test.receives;
    Arrival arrival;
    arrival.length = 8;
    arrival.envelope.tag = uint64_t{taken} * 2;
    arrival.envelope.source.initiator = 1;
    CALLGRIND_TOGGLE_COLLECT;
    const std::optional<Delivery> delivery = queue.Match(arrival);
    CALLGRIND_TOGGLE_COLLECT;
    if (!delivery.has_value() || delivery->op_context != taken ||
        queue.Finish(delivery->receive) !=
            ReceiveQueue::FinishStatus::kReleased) {
      throw std::runtime_error(test.name + ": another receive was taken");
    }
    Post(queue, Spec(taken, test.wildcards));
  }
  CALLGRIND_DUMP_STATS_AT(test.name.c_str());
  (void)std::printf("%s %u\n", test.name.c_str(), kMessages);
}

void CountNothing() {
  CALLGRIND_ZERO_STATS;
  for (uint32_t i = 0; i < kMessages; ++i) {
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_TOGGLE_COLLECT;
  }
  CALLGRIND_DUMP_STATS_AT("null");
  (void)std::printf("null %u\n", kMessages);
}

// Each of the `count` that these limits allow takes so much, rounded.
size_t BytesOfOne(const ReceiveQueue::Limits& limits, size_t count) {
  const size_t before = allocated_bytes;
  const ReceiveQueue queue(limits, kSeed);
  return (allocated_bytes - before + count / 2) / count;
}

void PrintMemory() {
  constexpr uint32_t kReceives = 8192;  // Each endpoint has so many.
  constexpr uint32_t kHeaders = 65536;
  (void)std::printf("bytes_of_receive %zu\nbytes_of_header %zu\n",
                    BytesOfOne({.receives = kReceives}, kReceives),
                    BytesOfOne({.unexpected = kHeaders}, kHeaders));
}

void Main() {
  CountNothing();
  for (const bool wildcards : {false, true}) {
    for (const uint32_t receives : {1U, 16U, 256U, 1024U}) {
      Count({(wildcards ? "wildcards_" : "exact_") + std::to_string(receives),
             receives, wildcards});
    }
  }
  PrintMemory();
}

}  // namespace
}  // namespace heddle::bench

int main() try {
  heddle::bench::Main();
  return 0;
} catch (const std::exception& e) {
  (void)std::fprintf(stderr, "heddle_count_matching: %s\n", e.what());
  return 1;
} catch (...) {
  return 1;
}
