// SPDX-License-Identifier: Apache-2.0
// Commands that destroy, and the end of everything at a reset.
#include "firmware/admin/executor.h"

namespace heddle::firmware {

template <typename Contexts>
Executor::Progress Executor::StartClosing(Contexts& contexts,
                                          contract::Table table,
                                          uint32_t index) {
  auto disabled = contexts.at(index).config;
  disabled.enable = 0;
  const Status status = tables_.Write(table, index, disabled);
  if (!status.ok()) {
    return Fail(status);
  }
  tables_.StartDrain(table, index);
  closing_ = {.table = table, .index = index};
  return Progress::kRunning;
}

template <typename Config>
void Executor::Forget(Context<Config>& context) {
  --endpoints_.at(context.endpoint).users;
  --cqs_.at(context.cq).users;
  context = {};
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
        return StartClosing(tx_contexts_, contract::Table::kTxCtx, index);
      }
      break;
    case contract::AdminOpcode::kDestroyRx:
      if (rx_contexts_.Find(index, function_) != nullptr) {
        return StartClosing(rx_contexts_, contract::Table::kRxCtx, index);
      }
      break;
    default:
      break;
  }
  return Answer(contract::AdminStatus::kNotFound,
                offsetof(contract::AdminCommand, object));
}

Executor::Progress Executor::DestroyEndpoint(uint32_t index) {
  Endpoint* endpoint = endpoints_.Find(index, function_);
  if (endpoint == nullptr) {
    return Answer(contract::AdminStatus::kNotFound,
                  offsetof(contract::AdminCommand, object));
  }
  if (endpoint->users != 0) {
    return Answer(contract::AdminStatus::kInUse, endpoint->users);
  }
  switch_.ReleasePort(endpoint->port);
  *endpoint = {};
  return Answer(contract::AdminStatus::kOk, 0);
}

Executor::Progress Executor::DestroyCq(uint32_t index) {
  Cq* cq = cqs_.Find(index, function_);
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
  *cq = {};
  return Answer(contract::AdminStatus::kOk, 0);
}

Executor::Progress Executor::Continue() {
  Status status;
  if (tables_.DrainRuns(status)) {
    return Progress::kRunning;
  }
  if (!status.ok()) {
    return Fail(status);
  }
  if (closing_.table == contract::Table::kTxCtx) {
    Forget(tx_contexts_.at(closing_.index));
  } else {
    Forget(rx_contexts_.at(closing_.index));
  }
  closing_ = {};
  return Answer(contract::AdminStatus::kOk, 0);
}

template <typename Contexts>
Executor::Progress Executor::CloseFirst(Contexts& contexts,
                                        contract::Table table) {
  for (uint32_t i = 0; i < contexts.limit(); ++i) {
    if (contexts.at(i).used) {
      return StartClosing(contexts, table, i);
    }
  }
  return Progress::kAnswered;
}

Executor::Progress Executor::TearDown() {
  Progress progress = CloseFirst(tx_contexts_, contract::Table::kTxCtx);
  if (progress == Progress::kAnswered) {
    progress = CloseFirst(rx_contexts_, contract::Table::kRxCtx);
  }
  if (progress != Progress::kAnswered) {
    return progress;
  }
  for (uint32_t i = 0; i < cqs_.limit(); ++i) {
    if (cqs_.at(i).used) {
      const Status status =
          tables_.Write(contract::Table::kCq, i, contract::CqCfg{});
      if (!status.ok()) {
        return Fail(status);
      }
      cqs_.at(i) = {};
    }
  }
  for (uint32_t i = 0; i < endpoints_.limit(); ++i) {
    if (endpoints_.at(i).used) {
      switch_.ReleasePort(endpoints_.at(i).port);
      endpoints_.at(i) = {};
    }
  }
  return Progress::kAnswered;
}

}  // namespace heddle::firmware
