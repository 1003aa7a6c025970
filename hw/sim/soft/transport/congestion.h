// SPDX-License-Identifier: Apache-2.0
// Congestion window of one direction of a PDC: fixed, or NSCC (UET 3.1).
#pragma once

#include <cstdint>

#include "hw/sim/soft/transport/settings.h"

namespace heddle::sim::soft {

// What a packet counts in a window (UET 3.0: transport size + 40, the transport
// size being that of the UDP datagram with its CRC).
constexpr uint32_t NominalBytes(uint32_t pds_bytes) {
  return pds_bytes + 8 + contract::kCrcBytes + 40;
}

class Congestion {
 public:
  void Open(const Settings& settings);

  // May one more packet leave while `flight_bytes` are out?
  bool Allows(uint64_t flight_bytes) const {
    return cwnd_ == 0 || flight_bytes == 0 ||
           static_cast<double>(flight_bytes + packet_) <= cwnd_;
  }

  // An ACK for `bytes` more. `rtt_ns` is 0 when it measured none; `marked`: its
  // packet met congestion.
  void OnAck(uint64_t bytes, uint64_t rtt_ns, bool marked, uint64_t now_ns);
  // A loss that later packets or a NACK showed.
  void OnLoss(uint64_t bytes, uint64_t now_ns);
  // The retransmission timer ended: halves the window.
  void OnTimeout();

  double cwnd_bytes() const { return cwnd_; }

 private:
  void Decrease(double factor, uint64_t now_ns);
  void QuickAdapt(uint64_t now_ns, bool congested, double delay);
  void Apply(uint64_t bytes, uint64_t now_ns);

  double cwnd_ = 0;  // 0: no limit.
  double max_cwnd_ = 0;
  double increase_ = 0;       // Gathered since the last adjustment.
  double average_delay_ = 0;  // ns.
  double target_ = 0;         // Queueing delay aimed at, ns.
  double alpha_ = 0;
  double fair_ = 0;
  double eta_ = 0;
  double fast_scale_ = 0;
  uint64_t base_rtt_ = 0;
  uint64_t config_rtt_ = 0;
  uint64_t decreased_at_ = 0;
  uint64_t adjusted_at_ = 0;
  uint64_t adapted_at_ = 0;
  uint64_t achieved_ = 0;      // Bytes since the last quick adapt's period.
  uint64_t adjust_bytes_ = 0;  // Bytes since the last adjustment.
  uint64_t fast_bytes_ = 0;    // Bytes acknowledged without any delay.
  uint64_t ignore_bytes_ = 0;  // Marks of so many bytes belong to the past.
  uint32_t packet_ = 0;
  bool nscc_ = false;
};

}  // namespace heddle::sim::soft
