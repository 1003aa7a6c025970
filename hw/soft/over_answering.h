// SPDX-License-Identifier: Apache-2.0
// A target that answers READs incorrectly, to test initiators.
#pragma once

#include <cstdint>

#include "host/lib/semantics/index_list.h"
#include "hw/sim/base/random.h"
#include "hw/soft/transport/message_carrier.h"

namespace heddle::soft {

// With `probability` an answer to a packet of a READ is followed by up to three
// surplus ones, under PSNs of their own, or is replaced by the answer to the
// packet before it. No answer reads memory that the peer did not request;
// nothing else changes.
//
// Thread safety: one thread at a time, as the carrier's.
class OverAnswering final : public transport::MessageCarrier {
 public:
  OverAnswering(transport::MessageCarrier* carrier, double probability,
                uint64_t seed)
      : carrier_(carrier), probability_(probability), random_(seed) {}

  PostOutcome Post(transport::MessageIndex message,
                   const transport::PdcName& name, const wire::Path& path,
                   uint32_t packets, bool expects_data) override {
    return carrier_->Post(message, name, path, packets, expects_data);
  }
  void Fail(transport::MessageIndex message) override {
    carrier_->Fail(message);
  }
  void Finish(transport::MessageIndex message) override {
    carrier_->Finish(message);
  }
  void Hold(transport::MessageIndex message) override {
    carrier_->Hold(message);
  }
  void Resume(transport::MessageIndex message) override {
    carrier_->Resume(message);
  }
  wire::Path ReturnPath(uint16_t pdc) const override {
    return carrier_->ReturnPath(pdc);
  }
  bool Stuck(transport::MessageIndex message) const override {
    return carrier_->Stuck(message);
  }

  bool PostReturn(uint16_t pdc, const transport::ReturnData& data) override {
    transport::ReturnData answer = data;
    uint32_t more = 0;
    if (random_.Chance(probability_)) {
      more = random_.Below(kMore + 1);
      if (more == 0 && last_pdc_ == pdc) {
        answer = last_;
        answer.open_message = data.open_message;
        answer.open_generation = data.open_generation;
      }
    }
    if (!carrier_->PostReturn(pdc, answer)) {
      return false;
    }
    last_pdc_ = pdc;
    last_ = data;
    // The end of these is not reported.
    answer.open_message = semantics::kNone;
    while (more != 0 && carrier_->PostReturn(pdc, answer)) {
      --more;
    }
    return true;
  }

 private:
  static constexpr uint32_t kMore = 3;

  transport::MessageCarrier* const carrier_;
  const double probability_;
  sim::base::Random random_;
  uint32_t last_pdc_ = semantics::kNone;
  transport::ReturnData last_;  // On it, as asked for.
};

}  // namespace heddle::soft
