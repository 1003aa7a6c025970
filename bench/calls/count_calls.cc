// SPDX-License-Identifier: Apache-2.0
// Makes libfabric calls in batches, for callgrind to count instructions.
#include <valgrind/callgrind.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "bench/calls/measured_calls.h"

namespace heddle::bench {
namespace {

std::string CheckName(const std::string& name) {
  if (FindCall(name) != nullptr) {
    return {};
  }
  std::string message = name + " is not one of:";
  for (const MeasuredCall& call : AllCalls()) {
    message += " " + std::string(call.name);
  }
  return message;
}

int Main(int argc, char** argv) {
  CLI::App app{
      "Makes libfabric calls in batches between two endpoints of one process.\n"
      "Under valgrind --tool=callgrind --collect-atstart=no only the calls "
      "are\n"
      "counted, and each ends with a dump that has its name."};
  std::string provider = "heddle";
  std::vector<std::string> names;
  size_t batches = 8;
  app.add_option("-p,--provider", provider, "Provider, as in FI_PROVIDER")
      ->capture_default_str();
  app.add_option("-n,--batches", batches, "Batches of each call")
      ->capture_default_str();
  app.add_option("call", names,
                 "Calls to make; all but whole messages when none is "
                 "given")
      ->check(CheckName);
  CLI11_PARSE(app, argc, argv);
  if (names.empty()) {
    for (const MeasuredCall& call : AllCalls()) {
      if (!IsWhole(call)) {
        names.emplace_back(call.name);
      }
    }
  }

  constexpr size_t kLargest = 4096;
  std::map<PairKind, FabricPair> pairs;
  constexpr size_t kWarmUp = 3;
  for (const std::string& name : names) {
    const MeasuredCall& call = *FindCall(name);
    FabricPair& pair =
        pairs.try_emplace(call.pair, provider, kLargest, call.pair)
            .first->second;
    for (size_t i = 0; i < kWarmUp; ++i) {
      (void)RunBatch(call, pair, FabricPair::kMaxBatch);
    }
    CALLGRIND_ZERO_STATS;
    size_t calls = 0;
    for (size_t i = 0; i < batches; ++i) {
      calls += RunBatch(call, pair, FabricPair::kMaxBatch).calls;
    }
    CALLGRIND_DUMP_STATS_AT(name.c_str());
    (void)std::printf("%s %zu\n", name.c_str(), calls);
  }
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) try {
  return heddle::bench::Main(argc, argv);
} catch (const std::exception& e) {
  (void)std::fprintf(stderr, "heddle_count_calls: %s\n", e.what());
  return 1;
} catch (...) {
  return 1;
}
