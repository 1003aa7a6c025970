// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/transport/congestion.h"

#include <algorithm>

#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/psn.h"

namespace heddle::soft::transport {

namespace {

constexpr uint64_t kMax24 = (1u << 24) - 1;
constexpr uint64_t kMax28 = (1u << 28) - 1;
constexpr uint64_t kMax32 = UINT32_MAX;

}  // namespace

void Congestion::Open(const Settings& settings) {
  *this = Congestion();
  packet_ =
      NominalBytes(settings, settings.mtu + contract::wire::PdsRequest::kBytes +
                                 contract::wire::SesStd::kBytes);
  if (settings.cwnd_bytes == 0) {
    return;
  }
  const uint64_t bytes = std::min<uint64_t>(settings.cwnd_bytes, kMax24);
  min_cwnd_ = uint64_t{packet_} << kFraction;
  max_cwnd_ =
      std::clamp(bytes << kFraction, min_cwnd_, rules::kWindow * min_cwnd_);
  cwnd_ = max_cwnd_;  // 1.5 x link speed x base RTT, chosen by the firmware.
  nscc_ = settings.congestion && settings.base_rtt_ns != 0;
  trimming_ = settings.trimming;
  empty_rtt_ = std::min(settings.base_rtt_ns, kMax24);
  target_ = trimming_
                ? empty_rtt_ - (empty_rtt_ >> contract::kNsccTrimTargetShift)
                : empty_rtt_;
  const uint64_t scale =
      bytes * contract::kNsccScale >> contract::kNsccScaleShift;
  const uint64_t packets = scale * packet_ >> (16 - kFraction);
  step_ = packets * contract::kNsccStep >> 10;
  eta_ = packets * contract::kNsccEta >> 8;
  fast_scale_ = scale >> contract::kNsccFastShift;  // 0.25 x scaling_a.
}

void Congestion::OnAck(uint64_t bytes, uint64_t rtt_ns, bool marked,
                       uint64_t now_ns) {
  if (!nscc_) {
    return;
  }
  const uint32_t now = static_cast<uint32_t>(now_ns);
  const uint32_t size = static_cast<uint32_t>(bytes);
  achieved_ = std::min(achieved_ + size, kMax24);
  if (rtt_ns != 0 &&
      !TakeRtt(size, static_cast<uint32_t>(std::min(rtt_ns, kMax24)), marked,
               now)) {
    return;
  }
  Apply(size, now);
}

// The shortest. One sample that is too short must not last for ever: a base
// below that of the settings, which it may rise to again, is taken anew in each
// period. A base above it is the distance.
void Congestion::TakeBase(uint32_t rtt_ns, uint32_t now_ns) {
  const uint8_t period =
      static_cast<uint8_t>(now_ns >> contract::kNsccBaseShift);
  if (base_rtt_ == 0 || rtt_ns < base_rtt_) {
    base_rtt_ = rtt_ns;
  } else if (period != base_period_ && base_rtt_ < empty_rtt_) {
    base_rtt_ = static_cast<uint32_t>(std::min<uint64_t>(rtt_ns, empty_rtt_));
  }
  base_period_ = period;
}

bool Congestion::TakeRtt(uint32_t bytes, uint32_t rtt_ns, bool marked,
                         uint32_t now_ns) {
  TakeBase(rtt_ns, now_ns);
  const uint64_t delay = rtt_ns - base_rtt_;
  average_delay_ += delay;
  average_delay_ -= (average_delay_ - delay) >> contract::kNsccAverageShift;
  // Where packets are trimmed, their NACKs say sooner than any delay.
  QuickAdapt(now_ns,
             !trimming_ && delay > contract::kNsccAdaptThreshold * target_);
  if (marked && ignore_bytes_ >= bytes) {
    ignore_bytes_ -= bytes;
    return false;
  }
  ignore_bytes_ = 0;
  const bool none = !marked && delay <= target_ >> contract::kNsccNoDelayShift;
  fast_bytes_ = none ? std::min(fast_bytes_ + bytes, kMax24) : 0;
  if (!marked && delay < target_) {
    if (fast_bytes_ << kFraction > cwnd_) {
      SetWindow(cwnd_ + (bytes * fast_scale_ >> (16 - kFraction)));
    } else {
      increase_ = std::min(
          increase_ + (bytes * (target_ - delay) >> contract::kNsccUnitShift),
          kMax32);
    }
  } else if (!marked) {
    increase_ = std::min(
        increase_ + (uint64_t{bytes} << contract::kNsccFairShift) - bytes,
        kMax32);
  } else if (delay >= target_ && average_delay_ >> kAverage > target_) {
    Decrease(now_ns);
  }
  return true;
}

void Congestion::Decrease(uint32_t now_ns) {
  if (now_ns - decreased_at_ < base_rtt_) {
    return;
  }
  decreased_at_ = now_ns;
  increase_ = 0;
  const uint64_t average = average_delay_ >> kAverage;
  const uint64_t part =
      std::min<uint64_t>((average - target_) * contract::kNsccGamma / average,
                         contract::kNsccMaxDecrease);
  SetWindow(cwnd_ - (cwnd_ * part >> 8));
}

// Delivered much less than the window allows, and the path shows why: what was
// delivered is the window.
void Congestion::QuickAdapt(uint32_t now_ns, bool congested) {
  if (now_ns - adapted_at_ < base_rtt_ + target_) {
    return;
  }
  if (adapting_ && congested &&
      achieved_ << kFraction < max_cwnd_ >> contract::kNsccAdaptGateShift) {
    SetWindow(achieved_ << kFraction);
    ignore_bytes_ = achieved_;
    increase_ = 0;
  }
  adapting_ = true;
  adapted_at_ = now_ns;
  achieved_ = 0;
}

void Congestion::Apply(uint32_t bytes, uint32_t now_ns) {
  adjust_bytes_ += bytes;
  const bool period = now_ns - adjusted_at_ >= empty_rtt_;
  if (period || adjust_bytes_ >= contract::kNsccAdjustPackets * packet_) {
    SetWindow(cwnd_ + std::min(step_ * increase_ / cwnd_bytes(), kMax28));
    increase_ = 0;
    adjust_bytes_ = 0;
  }
  if (period) {
    SetWindow(cwnd_ + eta_);
    adjusted_at_ = now_ns;
  }
}

void Congestion::SetWindow(uint64_t cwnd) {
  cwnd_ = std::clamp(cwnd, min_cwnd_, max_cwnd_);
}

void Congestion::OnLoss(uint64_t bytes, uint64_t now_ns) {
  if (!nscc_) {
    return;
  }
  fast_bytes_ = 0;
  const uint64_t lost = bytes << kFraction;
  SetWindow(cwnd_ > lost ? cwnd_ - lost : 0);
  QuickAdapt(static_cast<uint32_t>(now_ns), true);
}

void Congestion::OnTrim(uint64_t bytes, uint64_t now_ns) {
  average_delay_ += empty_rtt_;
  average_delay_ -=
      (average_delay_ - empty_rtt_) >> contract::kNsccAverageShift;
  OnLoss(bytes, now_ns);
}

void Congestion::OnTimeout() {
  if (nscc_) {
    SetWindow(cwnd_ / 2);
    increase_ = 0;
    fast_bytes_ = 0;
  }
}

}  // namespace heddle::soft::transport
