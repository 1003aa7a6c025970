// SPDX-License-Identifier: Apache-2.0
#include "host/lib/nic/counter_cell.h"

#include <cerrno>
#include <chrono>

#include "driver/control/wait.h"

namespace heddle::nic {

Result<std::unique_ptr<Counter>> Counter::Create(Nic& nic) {
  std::unique_ptr<Counter> counter(new Counter(nic));
  auto memory = DmaBuffer::Create(nic.device(), sizeof(contract::CounterCell));
  if (!memory.ok()) {
    return memory.error();
  }
  counter->memory_ = std::move(memory.value());
  counter->SetCells(&counter->cell().value, &counter->cell().errors);
  auto number = nic.admin().CreateCounter(counter->memory_.iova());
  if (!number.ok()) {
    return number.error();
  }
  counter->number_ = number.value();
  counter->created_ = true;
  return counter;
}

Counter::~Counter() {
  if (created_) {
    // On failure the device is lost; unmapping still keeps it off the cell.
    (void)nic_.admin().DestroyCounter(number_);
  }
}

namespace {

// By which doorbell the host asks for a change.
uint32_t DoorbellOf(Counter::Change change) noexcept {
  switch (change) {
    case Counter::Change::kSet:
      return contract::kDoorbellCounterSetOffset;
    case Counter::Change::kAdd:
      return contract::kDoorbellCounterAddOffset;
    case Counter::Change::kSetErrors:
      return contract::kDoorbellCounterSetErrorsOffset;
    case Counter::Change::kAddErrors:
      break;
  }
  return contract::kDoorbellCounterAddErrorsOffset;
}

}  // namespace

int Counter::Execute(Change change, uint64_t amount) noexcept {
  uint64_t own = 0;
  {
    const backend::Locked::Guard guard(lock_);
    own = ++issued_;
    Ring(CounterDoorbell(nic_.device(), number_, DoorbellOf(change)), amount);
  }
  const auto executed = [&] { return LoadShared(&cell().echo) >= own; };
  return WaitFor(nic_.device(), AdminQueue::kDefaultLimit, executed) ? 0 : EIO;
}

}  // namespace heddle::nic
