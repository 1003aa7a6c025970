// SPDX-License-Identifier: Apache-2.0
// Prints what the RTL does in how many clock cycles.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <future>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/system/measurements.h"
#include "bench/system/pattern_measurements.h"
#include "bench/system/transport_measurements.h"

namespace {

using namespace std::string_literals;
using heddle::bench::Conditions;

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

std::string Row(const std::string& what, const std::string& value,
                const std::string& budget) {
  return "| " + what + " | " + value + " | " + budget + " |\n";
}

std::string Number(double value, int digits = 0) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Share(uint64_t without, uint64_t with) {
  return Number(100 * static_cast<double>(without) / static_cast<double>(with),
                1);
}

// The two services that messages go by.
enum class Service : bool { kRud, kRod };

const char* NameOf(Service service) {
  return service == Service::kRod ? "ROD" : "RUD";
}

std::string LossRow(const Conditions& conditions, Service service) {
  using namespace heddle::bench;  // NOLINT: one function's vocabulary.
  constexpr double kLoss = 0.01;
  const bool ordered = service == Service::kRod;
  const uint64_t lossless =
      MeasureWriteStream(conditions, {.ordered = ordered});
  const uint64_t lossy =
      MeasureWriteStream(conditions, {.ordered = ordered, .loss = kLoss});
  return Row(
      "stream of 64 KiB WRITEs at 1 % random loss, goodput in % of "
      "lossless, "s +
          NameOf(service),
      Share(lossless, lossy), ordered ? "-" : "90");
}

std::string StuckPeerRow(const Conditions& conditions, Service service) {
  using namespace heddle::bench;  // NOLINT: one function's vocabulary.
  const bool ordered = service == Service::kRod;
  return Row(
      "rate to three peers while a fourth has no receive buffer, in % "
      "of that without the fourth, "s +
          NameOf(service),
      Share(MeasureOthersOfAStuckPeer(conditions, ordered, false),
            MeasureOthersOfAStuckPeer(conditions, ordered, true)),
      "90");
}

std::string IncastRows(const Conditions& conditions, Service service) {
  const bool ordered = service == Service::kRod;
  const auto incast = heddle::bench::MeasureIncast(conditions, ordered);
  return Row("8 to 1 incast of WRITEs through a queue that trims, NSCC, "
             "goodput in % of the line, "s +
                 NameOf(service),
             Number(incast.goodput, 1), ordered ? "-" : "90") +
         Row("the same, time-outs", std::to_string(incast.timeouts), "0") +
         Row("the same, packets trimmed / retransmitted",
             std::to_string(incast.trimmed) + " / " +
                 std::to_string(incast.retransmissions),
             "-");
}

std::string RateRows(const Conditions& conditions) {
  using namespace heddle::bench;  // NOLINT: one function's vocabulary.
  std::string out;
  const double one = MeasureMessageRate(conditions, 8, false);
  const double both = MeasureMessageRate(conditions, 8, true);
  out += Row("8-byte messages per 1,000 cycles, one context, one direction",
             Number(one), "500 (floor of this version: 250)");
  out += Row("the same, cycles per message", Number(1000 / one, 2), "2");
  out += Row("8-byte messages per 1,000 cycles and direction, both directions",
             Number(both), "250");
  out += Row("4 KiB payload packets, cycles each",
             Number(MeasurePacketCycles(conditions), 1),
             "66 to 67 (floor of this version: 75)");
  // The datapath's maximum: 66 beats of 64 bytes per 4 KiB of payload.
  constexpr uint32_t kRmaBytes = 1U << 20;
  constexpr double kRmaBeats = 66.0 * kRmaBytes / 4096;
  for (const auto opcode :
       {heddle::contract::Opcode::kWrite, heddle::contract::Opcode::kRead}) {
    const auto cycles =
        static_cast<double>(MeasureRmaCycles(conditions, opcode, kRmaBytes));
    out += Row(opcode == heddle::contract::Opcode::kWrite
                   ? "WRITE of 1 MiB, cycles from doorbell to completion"
                   : "READ of 1 MiB, cycles from doorbell to completion",
               Number(cycles), "18773");
    out += Row("the same, share of the datapath in %",
               Number(100 * kRmaBeats / cycles), "90");
  }
  return out;
}

std::string PeerRows(const Conditions& conditions) {
  using namespace heddle::bench;  // NOLINT: one function's vocabulary.
  std::string out;
  for (const Turns turns :
       {Turns{.peers = 3}, Turns{.peers = 8}, Turns{.peers = 8, .burst = 16},
        Turns{.peers = 64}}) {
    out += Row("8-byte messages to " + std::to_string(turns.peers) +
                   (turns.burst == 1 ? " peers in turn"s
                                     : " peers in bursts of " +
                                           std::to_string(turns.burst)) +
                   ", cycles each",
               Number(MeasureCyclesPerMessage(conditions, turns), 2),
               "2.1 (floor of this version: 2.6)");
  }
  return out;
}

std::string LatencyRows(const Conditions& conditions) {
  using namespace heddle::bench;  // NOLINT: one function's vocabulary.
  std::string out;
  const Latencies latency = MeasureLatencies(conditions);
  out += Row("push doorbell to first beat on the wire, 8 bytes inline",
             std::to_string(latency.push_doorbell_to_first_beat),
             "24 (floor of this version: 40)");
  out += Row("doorbell to first beat, descriptor read from host memory instead",
             std::to_string(latency.doorbell_to_first_beat), "-");
  out += Row("last beat of a frame to payload write",
             std::to_string(latency.last_beat_to_payload_write),
             "16 (floor of this version: 24)");
  out += Row("payload write to completion write, bridge that only posts",
             std::to_string(latency.payload_write_to_completion_write_posted),
             "6");
  out += Row("payload write to completion write, bridge that reports errors",
             std::to_string(latency.payload_write_to_completion_write),
             "6 and the bridge's answer");
  for (const uint32_t bytes : {8U, 64U, 128U, 1024U, 4096U, 65536U}) {
    out += Row("round trip of " + std::to_string(bytes) + " bytes",
               std::to_string(MeasureRoundTrip(conditions, bytes, 10).cycles),
               "-");
  }
  return out;
}

// Measured at the same time: each has NICs of its own.
class Parts {
 public:
  explicit Parts(const Conditions& conditions) : conditions_(conditions) {}

  template <typename Rows, typename... Arguments>
  void Begin(Rows rows, Arguments... arguments) {
    parts_.push_back(
        std::async(std::launch::async, rows, conditions_, arguments...));
  }
  template <typename Rows>
  void BeginBoth(Rows rows) {
    Begin(rows, Service::kRud);
    Begin(rows, Service::kRod);
  }
  // In the order in which they began.
  std::string Text() {
    std::string text;
    for (std::future<std::string>& part : parts_) {
      text += part.get();
    }
    return text;
  }

 private:
  const Conditions conditions_;
  std::vector<std::future<std::string>> parts_;
};

std::string Table(const Conditions& conditions) {
  Parts parts(conditions);
  parts.Begin(RateRows);
  parts.Begin(PeerRows);
  parts.BeginBoth(LossRow);
  parts.BeginBoth(StuckPeerRow);
  parts.BeginBoth(IncastRows);
  parts.Begin(LatencyRows);
  return "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
         "<!-- Written by `make performance`. Do not edit. -->\n\n"
         "# Performance\n\n"
         "Clock cycles are exact: the same on every machine and in every run. "
         "Measured on\n" +
         ConditionsText(conditions) +
         ".\nRates: descriptors and buffers are in host memory before the "
         "NIC needs them, and one\nsend in 16 is signaled. The "
         "budget is the goal of the architecture.\n\n"
         "| what | measured | budget |\n|---|---|---|\n" +
         parts.Text();
}

int Run(int argc, char** argv) {
  CLI::App app("Cycle counts of the simulated Heddle NIC.");
  app.set_version_flag("--version", HEDDLE_VERSION);
  bool demo = false;
  bool incast = false;
  std::string markdown;
  Conditions conditions;
  app.add_flag("--demo", demo, "Round trips and simulation speed only");
  app.add_flag("--incast", incast, "The rows of the incast only");
  app.add_option("--markdown", markdown, "Write the table to this file");
  app.add_option("--seed", conditions.seed, "Seed of memory order and PSNs");
  app.add_option("--host-turnaround", conditions.host_turnaround_cycles,
                 "Cycles from a completion to the host's answer");
  CLI11_PARSE(app, argc, argv);
  if (demo) {
    PrintDemo(conditions);
    return 0;
  }
  if (incast) {
    Parts parts(conditions);
    parts.BeginBoth(IncastRows);
    std::fputs(parts.Text().c_str(), stdout);
    return 0;
  }
  const std::string table = Table(conditions);
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
