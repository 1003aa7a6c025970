// SPDX-License-Identifier: Apache-2.0
// Commands that destroy, and the end of everything at a reset.
#include "firmware/admin/executor.h"

namespace heddle::firmware {

namespace {

// What is under way on a context still needs the rest of its entry.
template <typename Config>
Config Disabled(const Context<Config>& context) {
  Config config = context.config;
  config.enable = 0;
  return config;
}

}  // namespace

template <typename Config>
Executor::Progress Executor::StartClosing(contract::Table table, uint32_t index,
                                          const Config& disabled) {
  const Status status = tables_.Write(table, index, disabled);
  if (!status.ok()) {
    return Fail(status);
  }
  tables_.StartDrain(table, index);
  closing_ = {.table = table, .index = index};
  return Progress::kRunning;
}

template <typename Table>
void Executor::ForgetContext(Table& table, uint32_t index) {
  const auto& context = table.at(index);
  --endpoints_.at(context.endpoint).users;
  --cqs_.at(context.cq).users;
  ForEachCounter(context.config,
                 [this](uint16_t plus_1) { ReleaseCounter(plus_1); });
  table.Set(index, {});
}

void Executor::ForgetRegion(uint32_t index) {
  const Region& region = regions_.at(index);
  if (region.bound) {
    --endpoints_.at(region.endpoint).users;
  }
  ReleaseCounter(region.counter);
  // Its next key is another one.
  regions_.Set(index, {.generation = region.generation});
}

Executor::Progress Executor::Destroy(const contract::AdminCommand& command) {
  FieldCheck check;
  check.RequireZero(command.argument,
                    offsetof(contract::AdminCommand, argument));
  if (!check.ok()) {
    return Refuse(check);
  }
  const uint32_t index = command.object;
  switch (command.opcode) {
    case contract::AdminOpcode::kDestroyEndpoint:
      return DestroyEndpoint(index);
    case contract::AdminOpcode::kDestroyCq:
      return DestroyCq(index);
    case contract::AdminOpcode::kDestroyTx:
      if (tx_contexts_.Find(index, function_) != nullptr) {
        return StartClosing(contract::Table::kTxCtx, index,
                            Disabled(tx_contexts_.at(index)));
      }
      break;
    case contract::AdminOpcode::kDestroyRx:
      if (rx_contexts_.Find(index, function_) != nullptr) {
        return StartClosing(contract::Table::kRxCtx, index,
                            Disabled(rx_contexts_.at(index)));
      }
      break;
    case contract::AdminOpcode::kDeregisterRegion:
      if (regions_.Find(index, function_) != nullptr) {
        return StartClosing(contract::Table::kRegion, index,
                            contract::RegionCfg{});
      }
      break;
    case contract::AdminOpcode::kDestroyCounter:
      return DestroyCounter(index);
    default:
      break;
  }
  return Answer(contract::AdminStatus::kNotFound,
                offsetof(contract::AdminCommand, object));
}

Executor::Progress Executor::DestroyEndpoint(uint32_t index) {
  const Endpoint* endpoint = endpoints_.Find(index, function_);
  if (endpoint == nullptr) {
    return Answer(contract::AdminStatus::kNotFound,
                  offsetof(contract::AdminCommand, object));
  }
  if (endpoint->users != 0) {
    return Answer(contract::AdminStatus::kInUse, endpoint->users);
  }
  switch_.ReleasePort(endpoint->name());
  endpoints_.Set(index, {});
  return Answer(contract::AdminStatus::kOk, 0);
}

Executor::Progress Executor::DestroyCq(uint32_t index) {
  const Cq* cq = cqs_.Find(index, function_);
  if (cq == nullptr) {
    return Answer(contract::AdminStatus::kNotFound,
                  offsetof(contract::AdminCommand, object));
  }
  if (cq->users != 0) {
    return Answer(contract::AdminStatus::kInUse, cq->users);
  }
  // Needs no token of its own: only contexts write to a queue, and each was
  // answered behind its last completion.
  const Status status =
      tables_.Write(contract::Table::kCq, index, contract::CqCfg{});
  if (!status.ok()) {
    return Fail(status);
  }
  cqs_.Set(index, {});
  return Answer(contract::AdminStatus::kOk, 0);
}

Executor::Progress Executor::DestroyCounter(uint32_t index) {
  const Counter* counter = counters_.Find(index, function_);
  if (counter == nullptr) {
    return Answer(contract::AdminStatus::kNotFound,
                  offsetof(contract::AdminCommand, object));
  }
  if (counter->users != 0) {
    return Answer(contract::AdminStatus::kInUse, counter->users);
  }
  return StartClosing(contract::Table::kCounter, index, contract::CounterCfg{});
}

Executor::Progress Executor::Continue() {
  Status status;
  if (tables_.DrainRuns(status)) {
    return Progress::kRunning;
  }
  if (!status.ok()) {
    return Fail(status);
  }
  const uint32_t index = closing_.index;
  switch (closing_.table) {
    case contract::Table::kTxCtx:
      ForgetContext(tx_contexts_, index);
      break;
    case contract::Table::kRxCtx:
      ForgetContext(rx_contexts_, index);
      break;
    case contract::Table::kRegion:
      ForgetRegion(index);
      break;
    default:
      counters_.Set(index, {});
      break;
  }
  closing_ = {};
  return Answer(contract::AdminStatus::kOk, 0);
}

Executor::Progress Executor::CloseFirst() {
  if (const uint32_t i = tx_contexts_.FindUsed(); i < tx_contexts_.limit()) {
    return StartClosing(contract::Table::kTxCtx, i,
                        Disabled(tx_contexts_.at(i)));
  }
  if (const uint32_t i = rx_contexts_.FindUsed(); i < rx_contexts_.limit()) {
    return StartClosing(contract::Table::kRxCtx, i,
                        Disabled(rx_contexts_.at(i)));
  }
  if (const uint32_t i = regions_.FindUsed(); i < regions_.limit()) {
    return StartClosing(contract::Table::kRegion, i, contract::RegionCfg{});
  }
  if (const uint32_t i = counters_.FindUsed(); i < counters_.limit()) {
    return StartClosing(contract::Table::kCounter, i, contract::CounterCfg{});
  }
  return Progress::kAnswered;
}

Executor::Progress Executor::TearDown() {
  if (const Progress progress = CloseFirst(); progress != Progress::kAnswered) {
    return progress;
  }
  for (uint32_t i = 0; i < cqs_.limit(); ++i) {
    if (cqs_.IsUsed(i)) {
      const Status status =
          tables_.Write(contract::Table::kCq, i, contract::CqCfg{});
      if (!status.ok()) {
        return Fail(status);
      }
      cqs_.Set(i, {});
    }
  }
  for (uint32_t i = 0; i < endpoints_.limit(); ++i) {
    if (endpoints_.IsUsed(i)) {
      switch_.ReleasePort(endpoints_.at(i).name());
      endpoints_.Set(i, {});
    }
  }
  return Progress::kAnswered;
}

}  // namespace heddle::firmware
