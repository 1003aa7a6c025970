// SPDX-License-Identifier: Apache-2.0
#include "hw/soft/engine/counters.h"

#include <cstddef>

namespace heddle::soft::engine {

using contract::CounterCell;

bool Counters::Write(uint32_t index, const contract::CounterCfg& cfg) {
  if (index >= counters_.size()) {
    return false;
  }
  counters_.Make(index) = {{}, cfg.cell, 0, cfg.enable != 0};
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

void Counters::Count(uint16_t number, contract::Status status) {
  Entry* const found = number == 0 ? nullptr : counters_.Find(number - 1U);
  if (found == nullptr || !found->alive) {
    return;
  }
  Entry& entry = *found;
  entry.counter.Count(status);
  if (status == contract::Status::kOk) {
    StoreValue(entry);
  } else {
    StoreErrors(entry);
  }
}

void Counters::Doorbell(uint32_t index, uint32_t offset, uint64_t value) {
  Entry* const found = counters_.Find(index);
  if (found == nullptr || !found->alive) {
    return;
  }
  Entry& entry = *found;
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

}  // namespace heddle::soft::engine
