// SPDX-License-Identifier: Apache-2.0
// What stands behind the table port of the management bus.
#pragma once

#include <cstdint>
#include <span>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/soft/engine/engine.h"

namespace heddle::soft::control {

class Tables {
 public:
  // False: no such entry.
  virtual bool Write(contract::Table table, uint32_t index,
                     engine::Engine::ConstEntry entry) = 0;
  virtual bool Read(contract::Table table, uint32_t index,
                    engine::Engine::Entry entry) const = 0;
  // Asked again until it is not pending any more.
  virtual engine::Engine::DrainState Drain(contract::Table table,
                                           uint32_t index) = 0;

 protected:
  ~Tables() = default;
};

}  // namespace heddle::soft::control
