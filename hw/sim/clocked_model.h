// SPDX-License-Identifier: Apache-2.0
// Owns one Verilated model, its clock, its reset and its simulated time.
#pragma once

#include <memory>

#include "verilated.h"

namespace heddle::sim {

// Wraps a model whose ports include `clk_i` and `rst_ni`.
//
// The clock rests low between calls. A test or bus model sets inputs, may call
// `Settle()` to read combinational outputs, then `Tick()` to take the rising
// edge; inputs therefore never change together with the edge that samples them.
// No globals: several models (two NICs and a wire) can live in one process.
template <typename Model>
class ClockedModel {
 public:
  ClockedModel() {
    model_->rst_ni = 0;
    Tick();
    model_->rst_ni = 1;
  }
  ~ClockedModel() {
    model_->final();
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
  }

 private:
  void HalfPeriod(uint8_t level) {
    context_->timeInc(1);
    model_->clk_i = level;
    model_->eval();
  }

  std::unique_ptr<VerilatedContext> context_ =
      std::make_unique<VerilatedContext>();
  std::unique_ptr<Model> model_ = std::make_unique<Model>(context_.get());
};

}  // namespace heddle::sim
