// SPDX-License-Identifier: Apache-2.0
// Writes what a Verilated model counted when its context ends.
//
// Linked to every program of the build of `make coverage`. Verilator's counters
// are part of the model, which is gone by then: its memory is kept. A file per
// model in the directory that HEDDLE_COVERAGE_DIRECTORY names.
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "verilated.h"
#include "verilated_cov.h"

namespace {

// Counters of models that exist, by first byte: the byte behind them. Never
// destroyed: memory is given back until the process is gone.
struct Ranges {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> by_begin;
};

std::atomic<Ranges*> ranges{nullptr};
thread_local bool inside = false;  // The map gives memory back too.

void Keep(uintptr_t begin, size_t bytes) {
  static auto* const created = new Ranges;
  const std::lock_guard lock(created->mutex);
  inside = true;
  auto& map = created->by_begin;
  auto next = map.upper_bound(begin);
  if (next != map.begin() && std::prev(next)->second == begin) {
    std::prev(next)->second += bytes;
  } else {
    map[begin] = begin + bytes;
  }
  inside = false;
  ranges = created;
}

// Whether a block holds counters; it is asked once.
bool Kept(void* block) {
  Ranges* const known = ranges;
  if (known == nullptr || inside || block == nullptr) {
    return false;
  }
  // NOLINTNEXTLINE: an address.
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const std::lock_guard lock(known->mutex);
  const auto first = known->by_begin.lower_bound(begin);
  const auto last =
      known->by_begin.lower_bound(begin + malloc_usable_size(block));
  if (first == last) {
    return false;
  }
  inside = true;
  known->by_begin.erase(first, last);
  inside = false;
  return true;
}

}  // namespace

void operator delete(void* block) noexcept {
  if (!Kept(block)) {
    std::free(block);
  }
}
void operator delete(void* block, std::size_t /*bytes*/) noexcept {
  ::operator delete(block);
}
// Models are aligned to cache lines.
void operator delete(void* block, std::align_val_t /*alignment*/) noexcept {
  ::operator delete(block);
}
void operator delete(void* block, std::size_t /*bytes*/,
                     std::align_val_t /*alignment*/) noexcept {
  ::operator delete(block);
}

// Passed through by the linker (--wrap).
extern "C" {
void __real__ZN19VerilatedCovContext8_insertiEPj(VerilatedCovContext* context,
                                                 uint32_t* counter);
void __wrap__ZN19VerilatedCovContext8_insertiEPj(VerilatedCovContext* context,
                                                 uint32_t* counter) {
  // NOLINTNEXTLINE: an address.
  Keep(reinterpret_cast<uintptr_t>(counter), sizeof(*counter));
  __real__ZN19VerilatedCovContext8_insertiEPj(context, counter);
}

void __real__ZN16VerilatedContextD1Ev(VerilatedContext* context);
void __wrap__ZN16VerilatedContextD1Ev(VerilatedContext* context) {
  static std::atomic<uint32_t> count{0};
  if (const char* directory = std::getenv("HEDDLE_COVERAGE_DIRECTORY")) {
    const std::string file = std::string(directory) + '/' +
                             std::to_string(getpid()) + '-' +
                             std::to_string(count++) + ".dat";
    context->coveragep()->write(file.c_str());
  }
  __real__ZN16VerilatedContextD1Ev(context);
}
}
