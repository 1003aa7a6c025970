// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/transport/congestion.h"

#include <algorithm>

#include "hw/contract/gen/heddle_wire.h"

namespace heddle::sim::soft {

namespace {

// UET 3.1.
constexpr double kReferenceBytes = 100e9 / 8 * 12e-6;  // 100 Gb/s x 12 us.
constexpr double kReferenceRtt = 12e3;                 // ns.
constexpr double kGamma = 0.8;
constexpr double kMaxDecrease = 0.5;
constexpr double kDelayGain = 0.0125;
constexpr double kFastScale = 0.25;
constexpr uint32_t kAdjustPackets = 8;
constexpr uint32_t kAdaptGate = 3;
constexpr double kAdaptThreshold = 4;  // Target delays.
// A delay of a hundredth of the target's is none.
constexpr double kNoDelay = 0.01;

}  // namespace

void Congestion::Open(const Settings& settings) {
  *this = Congestion();
  packet_ = NominalBytes(settings.mtu + contract::wire::PdsRequest::kBytes +
                         contract::wire::SesStd::kBytes);
  cwnd_ = settings.cwnd_bytes;
  nscc_ = settings.congestion && settings.cwnd_bytes != 0 &&
          settings.base_rtt_ns != 0;
  if (!nscc_) {
    return;
  }
  config_rtt_ = settings.base_rtt_ns;
  max_cwnd_ = cwnd_;  // 1.5 x link speed x base RTT, chosen by the firmware.
  target_ = static_cast<double>(config_rtt_);
  const double scale_a = cwnd_ / 1.5 / kReferenceBytes;
  const double scale_b = target_ / kReferenceRtt;
  alpha_ = 4.0 * scale_a * scale_b * packet_ / target_;
  fair_ = 5.0 * packet_ * scale_a;
  eta_ = 0.15 * packet_ * scale_a;
  fast_scale_ = kFastScale * scale_a;
}

void Congestion::OnAck(uint64_t bytes, uint64_t rtt_ns, bool marked,
                       uint64_t now_ns) {
  if (!nscc_) {
    return;
  }
  achieved_ += bytes;
  if (rtt_ns != 0) {
    base_rtt_ = base_rtt_ == 0 ? rtt_ns : std::min(base_rtt_, rtt_ns);
    const double delay = static_cast<double>(rtt_ns - base_rtt_);
    average_delay_ += kDelayGain * (delay - average_delay_);
    QuickAdapt(now_ns, delay > kAdaptThreshold * target_, delay);
    if (ignore_bytes_ >= bytes && marked) {
      ignore_bytes_ -= bytes;
      return;
    }
    ignore_bytes_ = 0;
    fast_bytes_ =
        !marked && delay < kNoDelay * target_ ? fast_bytes_ + bytes : 0;
    if (!marked && delay < target_) {
      if (static_cast<double>(fast_bytes_) > cwnd_) {
        cwnd_ += static_cast<double>(bytes) * fast_scale_;
      } else {
        increase_ += alpha_ * static_cast<double>(bytes) * (target_ - delay);
      }
    } else if (!marked) {
      increase_ += fair_ * static_cast<double>(bytes);
    } else if (delay >= target_ && average_delay_ > target_) {
      Decrease(1 - kGamma * (average_delay_ - target_) / average_delay_,
               now_ns);
    }
  }
  Apply(bytes, now_ns);
}

void Congestion::Decrease(double factor, uint64_t now_ns) {
  if (now_ns - decreased_at_ < base_rtt_) {
    return;
  }
  decreased_at_ = now_ns;
  increase_ = 0;
  cwnd_ = std::max(cwnd_ * std::max(factor, kMaxDecrease),
                   static_cast<double>(packet_));
}

// Delivered much less than the window allows, and the path shows why: what was
// delivered is the window.
void Congestion::QuickAdapt(uint64_t now_ns, bool congested, double delay) {
  const uint64_t period = base_rtt_ + static_cast<uint64_t>(target_);
  if (now_ns - adapted_at_ < period) {
    return;
  }
  const double achieved = static_cast<double>(achieved_);
  if (adapted_at_ != 0 && congested && delay >= 0 &&
      achieved < max_cwnd_ / (1u << kAdaptGate)) {
    cwnd_ = std::max(achieved, static_cast<double>(packet_));
    ignore_bytes_ = achieved_;
    increase_ = 0;
  }
  adapted_at_ = now_ns;
  achieved_ = 0;
}

void Congestion::Apply(uint64_t bytes, uint64_t now_ns) {
  adjust_bytes_ += bytes;
  const bool period = now_ns - adjusted_at_ >= config_rtt_;
  if (period || adjust_bytes_ >= uint64_t{kAdjustPackets} * packet_) {
    cwnd_ += increase_ / cwnd_;
    increase_ = 0;
    adjust_bytes_ = 0;
  }
  if (period) {
    cwnd_ += eta_;
    adjusted_at_ = now_ns;
  }
  cwnd_ = std::min(cwnd_, max_cwnd_);
}

void Congestion::OnLoss(uint64_t bytes, uint64_t now_ns) {
  if (!nscc_) {
    return;
  }
  fast_bytes_ = 0;
  cwnd_ = std::max(cwnd_ - static_cast<double>(bytes),
                   static_cast<double>(packet_));
  QuickAdapt(now_ns, true, 0);
}

void Congestion::OnTimeout() {
  if (nscc_) {
    cwnd_ = std::max(cwnd_ / 2, static_cast<double>(packet_));
    increase_ = 0;
    fast_bytes_ = 0;
  }
}

}  // namespace heddle::sim::soft
