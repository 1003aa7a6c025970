// SPDX-License-Identifier: Apache-2.0
#include "bench/system/patterns.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "bench/system/pattern_measurements.h"
#include "bench/system/transport_measurements.h"

namespace heddle::bench {
namespace {

using contract::Opcode;

constexpr char kColumns[] =
    "| what | measured | budget | checked |\n|---|---|---|---|\n";

std::string Title(const std::string& title, const std::string& text) {
  return "\n### " + title + "\n\n" + text + "\n\n" + kColumns;
}

// The goal, and what this version must reach.
struct Budget {
  std::string goal = "-";
  std::string floor = {};

  std::string Text() const {
    return floor.empty() ? goal
                         : goal + " (floor of this version: " + floor + ")";
  }
};

// One row; `measure` gives its value.
Part Pattern(const std::string& what, const Budget& budget, bool checked,
             std::function<std::string()> measure) {
  return {.name = what,
          .rows =
              [=, measure = std::move(measure)] {
                return Row(
                    {what, measure(), budget.Text(), checked ? "yes" : "no"});
              },
          .checked = checked};
}

// Wires by the round trip from a packet to its ACK, at 250 MHz.
struct Distance {
  uint32_t wire_cycles;
  std::string name;
};
const Distance kDistances[] = {
    {.wire_cycles = 50, .name = "0.55 µs"},
    {.wire_cycles = 500, .name = "4 µs"},
    {.wire_cycles = 1250, .name = "10 µs"},
};

Conditions At(Conditions conditions, const Distance& distance) {
  conditions.wire_latency_cycles = distance.wire_cycles;
  return conditions;
}

bool Near(const Distance& distance) {
  return &distance == &kDistances[0];
}
bool Far(const Distance& distance) {
  return &distance == &kDistances[2];
}

std::string NameOf(bool ordered) {
  return ordered ? "ROD" : "RUD";
}

std::string CyclesEach(const Conditions& conditions, const Messages& messages) {
  return Number(MeasureMessages(conditions, messages).cycles, 2);
}

// Cycles of each without a disturbance, in % of those with it.
std::string RateKept(double undisturbed, const MessageRate& disturbed) {
  return disturbed.stopped
             ? "stops after " + std::to_string(disturbed.arrived) + " messages"
             : Number(100 * undisturbed / disturbed.cycles, 1);
}

std::string To(uint32_t peers, uint32_t burst = 1) {
  return "8-byte messages to " + std::to_string(peers) +
         (peers == 1   ? " peer"
          : burst == 1 ? " peers in turn"
                       : " peers in bursts of " + std::to_string(burst));
}

Section Peers(const Conditions& conditions) {
  const Budget one = {.goal = "2.0", .floor = "2.2"};
  const Budget some = {.goal = "2.1", .floor = "2.6"};
  const Budget many = {.goal = "2.1", .floor = "3.0"};
  const Budget ipv6 = {.goal = "3.0"};
  const struct {
    Messages messages;
    Budget budget;
    std::string more = {};
  } cases[] = {
      {{.peers = 1}, one},
      {{.peers = 2}, some},
      {{.peers = 3}, some},
      {{.peers = 4}, some},
      {{.peers = 8}, some},
      {{.peers = 8, .burst = 16}, some},
      {{.peers = 64}, some},
      {{.peers = 128}, many},
      {{.peers = 2000, .endpoints = 126, .count = 6000},
       many,
       ", 126 endpoints"},
      {{.peers = 4000, .endpoints = 126, .count = 12000},
       {},
       ", 126 endpoints"},
      {{.peers = 1, .doorbells = true}, one, ", a doorbell for each"},
      {{.peers = 3, .doorbells = true}, some, ", a doorbell for each"},
      {{.peers = 1, .rx_log2 = 8}, {}, " with 256 receive buffers"},
      {{.peers = 1, .ipv6 = true}, ipv6, ", IPv6"},
      {{.peers = 3, .ipv6 = true}, ipv6, ", IPv6"},
  };
  Section section{
      .heading = Title(
          "Peers",
          "Cycles for each message. Up to 14 peers are endpoints of one NIC. "
          "More than 128 are entries of\nthe address vector for the same "
          "endpoints; the NIC keeps 2,048 entries. "
          "Each endpoint has 1,024 receive buffers."),
      .parts = {}};
  for (const auto& c : cases) {
    const Messages& messages = c.messages;
    section.parts.push_back(Pattern(To(messages.peers, messages.burst) + c.more,
                                    c.budget, messages.peers <= 64, [=] {
                                      return CyclesEach(conditions, messages);
                                    }));
  }
  return section;
}

Section Distances(const Conditions& conditions) {
  const struct {
    uint32_t wire_cycles;
    Budget budget = {};
  } cases[] = {
      {5}, {50, {"2.0", "2.2"}}, {250}, {500, {"2.2", "4.5"}}, {1250},
  };
  Section section{.heading = Title("Distance",
                                   "8-byte messages to one peer: "
                                   "cycles for each by those of the wire."),
                  .parts = {}};
  for (const bool ordered : {true, false}) {
    for (const auto& c : cases) {
      Conditions there = conditions;
      there.wire_latency_cycles = c.wire_cycles;
      section.parts.push_back(
          Pattern("wire of " + std::to_string(c.wire_cycles) +
                      (ordered ? "" : ", " + NameOf(ordered)),
                  ordered ? c.budget : Budget{}, true,
                  [=] { return CyclesEach(there, {.ordered = ordered}); }));
    }
  }
  return section;
}

constexpr double kLoss = 0.01;

std::string MessagesUnderLoss(const Conditions& conditions, Messages messages) {
  messages.count = 20000;
  const double lossless = MeasureMessages(conditions, messages).cycles;
  messages.loss = kLoss;
  return RateKept(lossless, MeasureMessages(conditions, messages));
}

Section Loss(const Conditions& conditions) {
  const Budget rud = {.goal = "97", .floor = "92"};
  const Budget rod = {.goal = "92", .floor = "88"};
  const Budget read = {.goal = "95", .floor = "88"};
  const struct {
    std::string what;
    Stream stream;
    Budget rud, rod;
    bool checked = false;  // At the shortest distance.
  } cases[] = {
      {"WRITE of 64 KiB", {}, rud, rod, true},
      {"WRITE of 64 KiB with FI_DELIVERY_COMPLETE",
       {.delivery_complete = true},
       rud,
       rod},
      {"SEND of 8 KiB",
       {.opcode = Opcode::kSend, .bytes = 8192, .operations = 1600},
       rud,
       rod},
      {"SEND of 64 KiB", {.opcode = Opcode::kSend}, rud, rod},
      {"READ of 64 KiB",
       {.opcode = Opcode::kRead, .operations = 1600},
       read,
       read},
  };
  Section section{
      .heading = Title("Loss",
                       "Each frame is lost with a probability of 1 %. "
                       "Goodput in % of that without loss."),
      .parts = {}};
  for (const auto& c : cases) {
    for (const Distance& distance : kDistances) {
      const Conditions there = At(conditions, distance);
      for (const bool ordered : {false, true}) {
        Stream stream = c.stream;
        stream.ordered = ordered;
        Stream lossy = stream;
        lossy.loss = kLoss;
        section.parts.push_back(
            Pattern(c.what + ", " + NameOf(ordered) + ", " + distance.name,
                    Far(distance) ? Budget{}
                    : ordered     ? c.rod
                                  : c.rud,
                    c.checked && Near(distance), [=] {
                      return Percent(MeasureStream(there, stream),
                                     MeasureStream(there, lossy));
                    }));
      }
    }
  }
  for (const Distance& distance : kDistances) {
    const Conditions there = At(conditions, distance);
    for (const bool ordered : {false, true}) {
      section.parts.push_back(Pattern(
          To(1) + ", " + NameOf(ordered) + ", " + distance.name, {}, false,
          [=] { return MessagesUnderLoss(there, {.ordered = ordered}); }));
    }
  }
  return section;
}

std::string ReadShare(const Conditions& conditions) {
  // The datapath's maximum: 66 beats of 64 bytes per 4 KiB of payload.
  constexpr uint32_t kBytes = 1U << 20;
  constexpr uint64_t kBeats = uint64_t{66} * kBytes / 4096;
  return Percent(kBeats, MeasureRmaCycles(conditions, Opcode::kRead, kBytes));
}

std::string ReadCycles(const Conditions& conditions, uint32_t bytes) {
  const Stream stream{.opcode = Opcode::kRead,
                      .bytes = bytes,
                      .operations = 2000,
                      .ordered = false};
  return Number(static_cast<double>(MeasureStream(conditions, stream)) /
                    stream.operations,
                2);
}

Section Read(const Conditions& conditions) {
  Section section{.heading = Title("READ",
                                   "READs of 8 B and 4 KiB go on RUD. 1 MiB of "
                                   "READs is outstanding, at most 1,000."),
                  .parts = {}};
  for (const Distance& distance : kDistances) {
    const Conditions there = At(conditions, distance);
    section.parts.push_back(
        Pattern("READ of 8 B, " + distance.name + ", cycles each",
                Near(distance)  ? Budget{.goal = "4"}
                : Far(distance) ? Budget{}
                                : Budget{.goal = "10"},
                !Far(distance), [=] { return ReadCycles(there, 8); }));
    section.parts.push_back(
        Pattern("READ of 4 KiB, " + distance.name + ", cycles each", {},
                Near(distance), [=] { return ReadCycles(there, 4096); }));
    section.parts.push_back(
        Pattern("READ of 1 MiB, " + distance.name +
                    ", share of the datapath from doorbell to completion in %",
                {.goal = Far(distance) ? "80" : "90"}, true,
                [=] { return ReadShare(there); }));
  }
  return section;
}

std::string OthersOfAStuckPeer(const Conditions& conditions,
                               Messages messages) {
  messages.peers = 3;
  messages.warm_up = 0;
  messages.count = 5340;  // With 60 of the warm-up nine tenths of 6,000.
  const double alone = MeasureMessages(conditions, messages).cycles;
  messages.stuck_peer = true;
  return RateKept(alone, MeasureMessages(conditions, messages));
}

Section StuckPeer(const Conditions& conditions) {
  Section section{
      .heading =
          Title("Stuck peer",
                "6,000 8-byte messages, every tenth to a peer that has no "
                "receive buffer: rate of the others,\nwhich go to three peers "
                "in turn, in % of that without these. The ring has 1,024 "
                "slots; without a spill\narea the context has the flag "
                "`early_release`."),
      .parts = {}};
  for (const bool ordered : {false, true}) {
    for (const bool spill : {true, false}) {
      section.parts.push_back(Pattern(
          NameOf(ordered) + (spill ? ", spill area" : ", no spill area"),
          {.goal = "95", .floor = "80"}, true, [=] {
            return OthersOfAStuckPeer(
                conditions,
                {.ordered = ordered, .spill = spill, .early_release = !spill});
          }));
    }
  }
  return section;
}

// One incast is no measure: a cycle earlier or later trims other packets.
constexpr uint64_t kIncasts = 4;

std::string Incasts(Conditions conditions, bool ordered) {
  double least = 100;
  Incast sum;
  for (uint64_t i = 0; i < kIncasts; ++i, ++conditions.seed) {
    const Incast incast = MeasureIncast(conditions, ordered);
    least = std::min(least, incast.goodput);
    sum.goodput += incast.goodput;
    sum.timeouts += incast.timeouts;
    sum.trimmed += incast.trimmed;
    sum.retransmissions += incast.retransmissions;
  }
  return Number(sum.goodput / kIncasts, 1) + ", " + Number(least, 1) + " / " +
         std::to_string(sum.timeouts) + " / " + std::to_string(sum.trimmed) +
         " / " + std::to_string(sum.retransmissions);
}

Section CongestionControl(const Conditions& conditions) {
  Section section{
      .heading = Title("Congestion control",
                       "With NSCC: windows of 64 packets at first. Frames "
                       "dropped: by a NIC whose receive buffer is full."),
      .parts = {}};
  for (const uint32_t peers : {1U, 3U, 8U, 64U}) {
    section.parts.push_back(Pattern(
        To(peers) + ", cycles each / frames dropped",
        {.goal = peers == 1 ? "2.3 / 0" : "2.4 / 0",
         .floor = peers == 1 ? "2.5 / 0" : "2.9 / 0"},
        peers <= 8, [=] {
          const MessageRate rate = MeasureMessages(
              conditions, {.peers = peers, .congestion_control = true});
          return Number(rate.cycles, 2) + " / " + std::to_string(rate.dropped);
        }));
  }
  for (const bool ordered : {false, true}) {
    section.parts.push_back(
        Pattern("8 to 1 incast of WRITEs through a queue that trims, " +
                    NameOf(ordered) + ", mean and least goodput of " +
                    std::to_string(kIncasts) +
                    " seeds in % of the line / time-outs / packets trimmed / "
                    "retransmitted",
                {.goal = ordered ? "- / 0 / - / -" : "90 / 0 / - / -"}, false,
                [=] { return Incasts(conditions, ordered); }));
  }
  return section;
}

}  // namespace

std::vector<Section> Patterns(const Conditions& conditions) {
  return {
      {.heading =
           "\n## Patterns\n\n"
           "Rates under traffic that the mechanisms do not favor. Round "
           "trips of 0.55, 4 and 10 µs, from a packet to\nits ACK at 250 "
           "MHz, are wires of 50, 500 and 1,250 cycles; without a "
           "distance the wire has 50. Where no\nservice is named it is ROD. "
           "`make bench-check` measures the rows that are checked, `make "
           "performance` all.\n",
       .parts = {}},
      Peers(conditions),
      Distances(conditions),
      Loss(conditions),
      Read(conditions),
      StuckPeer(conditions),
      CongestionControl(conditions),
  };
}

}  // namespace heddle::bench
