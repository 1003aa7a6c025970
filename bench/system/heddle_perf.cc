// SPDX-License-Identifier: Apache-2.0
// Prints what the RTL does in how many clock cycles.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/system/measurements.h"
#include "bench/system/patterns.h"
#include "bench/system/table.h"

namespace {

using heddle::bench::Conditions;
using heddle::bench::Section;

std::string ConditionsText(const Conditions& c) {
  std::ostringstream out;
  out << "512-bit NICs on the lock-step wire: wire " << c.wire_latency_cycles
      << " cycles, host memory reads " << c.read_latency_cycles
      << " cycles and up to 50 more, writes visible within "
      << c.write_delay_cycles << " cycles, host turnaround "
      << c.host_turnaround_cycles
      << " cycle; of latencies and round trips each delay is the middle of "
         "its range";
  return out.str();
}

void PrintDemo(const Conditions& conditions) {
  std::printf("Round trips, %s:\n", ConditionsText(conditions).c_str());
  for (const uint32_t bytes : {64U, 1024U, 65536U}) {
    const auto trip = heddle::bench::MeasureRoundTrip(conditions, bytes, 10);
    std::printf("  %6u bytes  %8llu cycles\n", trip.bytes,
                static_cast<unsigned long long>(trip.cycles));
  }
  const auto speed = heddle::bench::MeasureSimulationSpeed(conditions);
  std::printf("Simulation speed: %.0f cycles per second of one NIC\n",
              static_cast<double>(speed.cycles) / speed.seconds);
}

std::string RateRows(const Conditions& conditions) {
  using namespace heddle::bench;  // NOLINT: one function's vocabulary.
  std::string out;
  const double one = MeasureMessageRate(conditions, 8, false);
  const double both = MeasureMessageRate(conditions, 8, true);
  out += Row({"8-byte messages per 1,000 cycles, one context, one direction",
              Number(one), "500 (floor of this version: 250)"});
  out += Row({"the same, cycles per message", Number(1000 / one, 2), "2"});
  out += Row({"8-byte messages per 1,000 cycles and direction, both directions",
              Number(both), "250"});
  out += Row({"4 KiB payload packets, cycles each",
              Number(MeasurePacketCycles(conditions), 1),
              "66 to 67 (floor of this version: 75)"});
  // The datapath's maximum: 66 beats of 64 bytes per 4 KiB of payload.
  constexpr uint32_t kRmaBytes = 1U << 20;
  constexpr double kRmaBeats = 66.0 * kRmaBytes / 4096;
  const auto cycles = static_cast<double>(MeasureRmaCycles(
      conditions, heddle::contract::Opcode::kWrite, kRmaBytes));
  out += Row({"WRITE of 1 MiB, cycles from doorbell to completion",
              Number(cycles), "18773"});
  out += Row({"the same, share of the datapath in %",
              Number(100 * kRmaBeats / cycles), "90"});
  return out;
}

std::string LatencyRows(const Conditions& conditions) {
  using namespace heddle::bench;  // NOLINT: one function's vocabulary.
  std::string out;
  const Latencies latency = MeasureLatencies(conditions);
  out += Row({"push doorbell to first beat on the wire, 8 bytes inline",
              std::to_string(latency.push_doorbell_to_first_beat),
              "24 (floor of this version: 40)"});
  out +=
      Row({"doorbell to first beat, descriptor read from host memory instead",
           std::to_string(latency.doorbell_to_first_beat), "-"});
  out += Row({"last beat of a frame to payload write",
              std::to_string(latency.last_beat_to_payload_write),
              "16 (floor of this version: 24)"});
  out += Row({"payload write to completion write, bridge that only posts",
              std::to_string(latency.payload_write_to_completion_write_posted),
              "6"});
  out += Row({"payload write to completion write, bridge that reports errors",
              std::to_string(latency.payload_write_to_completion_write),
              "6 and the bridge's answer"});
  for (const uint32_t bytes : {8U, 64U, 128U, 1024U, 4096U, 65536U}) {
    out += Row({"round trip of " + std::to_string(bytes) + " bytes",
                std::to_string(MeasureRoundTrip(conditions, bytes, 10).cycles),
                "-"});
  }
  return out;
}

std::string Heading(const Conditions& conditions) {
  return "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
         "<!-- Written by `make performance`. Do not edit. -->\n\n"
         "# Performance\n\n"
         "Clock cycles are exact: the same on every machine and in every run. "
         "Measured on\n" +
         ConditionsText(conditions) +
         ".\nRates: descriptors and buffers are in host memory before the "
         "NIC needs them, and one\nsend in 16 is signaled. The "
         "budget is the goal of the architecture.\n\n"
         "| what | measured | budget |\n|---|---|---|\n";
}

std::vector<Section> Page(const Conditions& conditions) {
  std::vector<Section> page = {
      {.heading = Heading(conditions),
       .parts = {
           {.name = "rates", .rows = [=] { return RateRows(conditions); }},
           {.name = "latencies",
            .rows = [=] { return LatencyRows(conditions); }}}}};
  for (Section& section : heddle::bench::Patterns(conditions)) {
    page.push_back(std::move(section));
  }
  return page;
}

int Run(int argc, char** argv) {
  CLI::App app("Cycle counts of the simulated Heddle NIC.");
  app.set_version_flag("--version", HEDDLE_VERSION);
  bool demo = false;
  std::string markdown;
  heddle::bench::Selection selection;
  Conditions conditions;
  app.add_flag("--demo", demo, "Round trips and simulation speed only");
  app.add_flag("--checked", selection.checked_only,
               "Only what `make bench-check` compares");
  app.add_option("--only", selection.text,
                 "Only rows or sections with this text");
  app.add_option("--markdown", markdown, "Write the table to this file");
  app.add_option("--seed", conditions.seed, "Seed of memory order and PSNs");
  app.add_option("--host-turnaround", conditions.host_turnaround_cycles,
                 "Cycles from a completion to the host's answer");
  CLI11_PARSE(app, argc, argv);
  if (demo) {
    PrintDemo(conditions);
    return 0;
  }
  const std::string table = Measure(Page(conditions), selection);
  std::fputs(table.c_str(), stdout);
  if (!markdown.empty()) {
    std::ofstream file(markdown);
    if (!(file << table).flush()) {
      throw std::runtime_error("cannot write " + markdown);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return Run(argc, argv);
} catch (const std::exception& e) {
  std::fprintf(stderr, "heddle_perf: %s\n", e.what());
  return 1;
} catch (...) {
  return 1;
}
