// SPDX-License-Identifier: Apache-2.0
// Owns one Verilated model, its clock, its reset and its simulated time.
#pragma once

#include <cstdint>
#include <memory>

#include "hw/sim/model/recording.h"
#include "verilated.h"

namespace heddle::sim::model {

// Wraps a model whose ports include `clk_i` and `rst_ni`.
//
// The clock rests low between calls. A test or bus model sets inputs, may call
// `Settle()` to read combinational outputs, then `Tick()` to take the rising
// edge; inputs therefore never change together with the edge that samples them.
// Several models (two NICs and a wire) can live in one process. In a process
// that repeats a failed test, a model that was verilated with TRACE records its
// waveform, see `Recording`.
template <typename Model>
class ClockedModel {
 public:
  ClockedModel() {
    StartWaveform();
    model_->rst_ni = 0;
    Tick();
    model_->rst_ni = 1;
  }
  ~ClockedModel() {
    model_->final();
    waveform_.reset();
    // Verilator 5.006 takes scopes out of the context that this thread used
    // last, which may be that of a model already gone.
    Verilated::threadContextp(context_.get());
    model_.reset();
    Verilated::threadContextp(nullptr);
  }
  ClockedModel(const ClockedModel&) = delete;
  ClockedModel& operator=(const ClockedModel&) = delete;

  Model* operator->() { return model_.get(); }

  // Propagates inputs to combinational outputs; simulated time stands still.
  void Settle() { model_->eval(); }

  // Advances one clock period (two `timeprecision` units).
  void Tick() {
    Settle();
    HalfPeriod(1);
    HalfPeriod(0);
    latest_cycle = context_->time() / 2;
  }

 private:
  void HalfPeriod(uint8_t level) {
    context_->timeInc(1);
    model_->clk_i = level;
    model_->eval();
    if (waveform_ != nullptr) {
      waveform_->Dump(context_->time());
    }
  }

  void StartWaveform() {
    if constexpr (requires(Model & model, VerilatedFstC * fst) {
                    model.trace(fst, kAllLevels);
                  }) {
      waveform_ = Waveform::OfRecording(model_->modelName());
      if (waveform_ != nullptr) {
        context_->traceEverOn(true);
        model_->trace(waveform_->fst(), kAllLevels);
        waveform_->Open();
      }
    }
  }

  static constexpr int kAllLevels = 99;

  std::unique_ptr<VerilatedContext> context_ =
      std::make_unique<VerilatedContext>();
  std::unique_ptr<Model> model_ = std::make_unique<Model>(context_.get());
  std::unique_ptr<Waveform> waveform_;
};

}  // namespace heddle::sim::model
