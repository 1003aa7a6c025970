// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/soft/engine/counters.h"

#include <cstddef>

namespace heddle::sim::soft {

using contract::CounterCell;

bool Counters::Write(uint32_t index, const contract::CounterCfg& cfg) {
  if (index >= counters_.size()) {
    return false;
  }
  counters_[index] = {{}, cfg.cell, 0, cfg.enable != 0};
  return true;
}

void Counters::StoreValue(const Entry& entry) {
  statistics_->Count(contract::Statistic::kCounterUpdates);
  host_->Store(entry.cell + offsetof(CounterCell, value),
               entry.counter.value());
}

void Counters::StoreErrors(const Entry& entry) {
  statistics_->Count(contract::Statistic::kCounterUpdates);
  host_->Store(entry.cell + offsetof(CounterCell, errors),
               entry.counter.errors());
}

void Counters::Count(uint8_t number, contract::Status status) {
  if (number == 0 || number > counters_.size() ||
      !counters_[number - 1U].alive) {
    return;
  }
  Entry& entry = counters_[number - 1U];
  entry.counter.Count(status);
  if (status == contract::Status::kOk) {
    StoreValue(entry);
  } else {
    StoreErrors(entry);
  }
}

void Counters::Doorbell(uint32_t index, uint32_t offset, uint64_t value) {
  if (index >= counters_.size() || !counters_[index].alive) {
    return;
  }
  Entry& entry = counters_[index];
  switch (offset) {
    case contract::kDoorbellCounterSetOffset:
      entry.counter.Set(value);
      StoreValue(entry);
      break;
    case contract::kDoorbellCounterAddOffset:
      entry.counter.Add(value);
      StoreValue(entry);
      break;
    case contract::kDoorbellCounterSetErrorsOffset:
      entry.counter.SetErrors(value);
      StoreErrors(entry);
      break;
    case contract::kDoorbellCounterAddErrorsOffset:
      entry.counter.AddErrors(value);
      StoreErrors(entry);
      break;
    default:
      return;
  }
  host_->Store(entry.cell + offsetof(CounterCell, echo), ++entry.echo);
}

}  // namespace heddle::sim::soft
