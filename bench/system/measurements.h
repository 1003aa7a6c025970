// SPDX-License-Identifier: Apache-2.0
// Measurements on the simulated NIC, in clock cycles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::bench {

// Conditions of every figure.
struct Conditions {
  uint32_t wire_latency_cycles = 50;
  uint32_t read_latency_cycles = 150;
  uint32_t write_delay_cycles = 60;
  // Cycles from a completion in memory to the host's answer being posted.
  uint32_t host_turnaround_cycles = 1;
  uint64_t seed = 1;
};

struct RoundTrip {
  uint32_t bytes = 0;
  uint64_t cycles = 0;  // Mean of the rounds after the first.
};

struct SimulationSpeed {
  uint64_t cycles = 0;  // One NIC's.
  double seconds = 0;
};

// Messages of `bytes` there and back between two NICs, `rounds` times.
// Throws std::runtime_error when the simulation fails.
RoundTrip MeasureRoundTrip(const Conditions& conditions, uint32_t bytes,
                           uint32_t rounds);

// Messages of `bytes` per 1,000 cycles that arrive, one context, one
// direction or both; one sender completion in 16.
double MeasureMessageRate(const Conditions& conditions, uint32_t bytes,
                          bool both_directions);

// Cycles per packet of 4 KiB payload in one long message.
double MeasurePacketCycles(const Conditions& conditions);

// Cycles from the doorbell of one WRITE or READ of `bytes` to its completion,
// the PDC open.
uint64_t MeasureRmaCycles(const Conditions& conditions, contract::Opcode opcode,
                          uint32_t bytes);

// Cycles from doorbell or last beat to what it causes.
struct Latencies {
  // 8-byte inline SEND, peer cached, PDC open; descriptor pushed or read.
  uint64_t push_doorbell_to_first_beat = 0;
  uint64_t doorbell_to_first_beat = 0;
  uint64_t last_beat_to_payload_write = 0;
  uint64_t payload_write_to_completion_write = 0;
  uint64_t payload_write_to_completion_write_posted = 0;  // Bridge only posts.
};
Latencies MeasureLatencies(const Conditions& conditions);

// Wall time of a simulation under load, one NIC's clock.
SimulationSpeed MeasureSimulationSpeed(const Conditions& conditions);

}  // namespace heddle::bench
