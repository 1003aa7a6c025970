// SPDX-License-Identifier: Apache-2.0
// Congestion window of one direction of a PDC: fixed, or NSCC (UET 3.1).
#pragma once

#include <cstdint>

#include "hw/soft/transport/settings.h"

namespace heddle::soft::transport {

// What a packet counts in a window (UET 3.0): what follows the IP header, with
// the CRC, and kNsccPacketBytes.
constexpr uint32_t NominalBytes(const Settings& settings, uint32_t pds_bytes) {
  return pds_bytes + settings.layer4_bytes + contract::kCrcBytes +
         contract::kNsccPacketBytes;
}

// In whole numbers, so that hw/rtl/transport/heddle_nscc.sv has the same window
// after the same events. Times wrap at 32 bits: an age beyond that may look
// short, and delays one adjustment.
class Congestion {
 public:
  void Open(const Settings& settings);

  // May one more packet leave while `flight_bytes` are out?
  bool Allows(uint64_t flight_bytes) const {
    return cwnd_ == 0 || flight_bytes == 0 ||
           flight_bytes + packet_ <= cwnd_bytes();
  }

  // An ACK for `bytes` more. `rtt_ns` is 0 when it measured none; `marked`: its
  // packet met congestion.
  void OnAck(uint64_t bytes, uint64_t rtt_ns, bool marked, uint64_t now_ns);
  // A loss that later packets or a NACK showed.
  void OnLoss(uint64_t bytes, uint64_t now_ns);
  // The same, of a packet that the network trimmed: the queue was full.
  void OnTrim(uint64_t bytes, uint64_t now_ns);
  // The retransmission timer ended: halves the window.
  void OnTimeout();

  uint64_t cwnd_bytes() const { return cwnd_ >> kFraction; }

 private:
  static constexpr uint32_t kFraction =
      contract::kNsccFractionBits;  // Of `cwnd_`.
  static constexpr uint32_t kAverage =
      contract::kNsccAverageShift;  // Of `average_delay_`.

  void TakeBase(uint32_t rtt_ns, uint32_t now_ns);
  // False: the mark belongs to the past, and so does the ACK.
  bool TakeRtt(uint32_t bytes, uint32_t rtt_ns, bool marked, uint32_t now_ns);
  void Decrease(uint32_t now_ns);
  void QuickAdapt(uint32_t now_ns, bool congested);
  void Apply(uint32_t bytes, uint32_t now_ns);
  void SetWindow(uint64_t cwnd);

  uint64_t cwnd_ = 0;  // 2^-kFraction bytes; 0: no limit.
  uint64_t max_cwnd_ = 0;
  uint64_t min_cwnd_ = 0;
  uint64_t empty_rtt_ = 0;  // Of an empty network, as the settings say, ns.
  uint64_t target_ = 0;     // Queueing delay aimed at, ns.
  // From the settings: alpha and fair_ in one, eta, and the fast increase.
  uint64_t step_ = 0;
  uint64_t eta_ = 0;
  uint64_t fast_scale_ = 0;

  uint64_t increase_ = 0;       // Gathered since the last adjustment.
  uint64_t average_delay_ = 0;  // 2^-kAverage ns.
  uint32_t base_rtt_ = 0;
  uint32_t decreased_at_ = 0;
  uint32_t adjusted_at_ = 0;
  uint32_t adapted_at_ = 0;
  uint64_t achieved_ = 0;      // Bytes since the last quick adapt's period.
  uint32_t adjust_bytes_ = 0;  // Bytes since the last adjustment.
  uint64_t fast_bytes_ = 0;    // Bytes acknowledged without any delay.
  uint64_t ignore_bytes_ = 0;  // Marks of so many bytes belong to the past.
  uint32_t packet_ = 0;
  uint8_t base_period_ = 0;  // `base_rtt_` was measured in it.
  bool adapting_ = false;    // A period of quick adapt has begun.
  bool trimming_ = false;
  bool nscc_ = false;
};

}  // namespace heddle::soft::transport
