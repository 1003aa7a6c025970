// SPDX-License-Identifier: Apache-2.0
// Commands about memory regions and counters.
#include "firmware/admin/executor.h"
#include "hw/contract/split_number.h"

namespace heddle::firmware {
namespace {

constexpr unsigned kAllRegionFlags =
    contract::kRegionFlagRemoteRead | contract::kRegionFlagRemoteWrite |
    contract::kRegionFlagEndpoint | contract::kRegionFlagProviderKey;

bool HasFlag(const contract::AdminRegisterRegion& command, unsigned flag) {
  return (command.flags & flag) != 0;
}

}  // namespace

FieldCheck Executor::CheckRegion(const contract::AdminRegisterRegion& command) {
  using Command = contract::AdminRegisterRegion;
  const bool bound = HasFlag(command, contract::kRegionFlagEndpoint);
  FieldCheck check;
  if (bound) {
    check.Require(endpoints_.Find(command.endpoint, function_) != nullptr,
                  offsetof(Command, endpoint),
                  contract::AdminStatus::kNotFound);
  } else {
    check.Require(command.endpoint == 0, offsetof(Command, endpoint));
  }
  check.Require(command.iova + command.length >= command.iova,
                offsetof(Command, length));
  check.Require(command.address_base + command.length >= command.address_base,
                offsetof(Command, address_base));
  if (HasFlag(command, contract::kRegionFlagProviderKey)) {
    check.Require(command.key == 0, offsetof(Command, key));
  } else {
    check.Require(contract::IsUserKey(command.key), offsetof(Command, key));
  }
  check.Require(command.job_id <= contract::kJobIdMax,
                offsetof(Command, job_id));
  check.Require((command.flags & ~kAllRegionFlags) == 0,
                offsetof(Command, flags));
  check.Require(command.interface == 0, offsetof(Command, interface));
  check.Require(
      IsCounter(contract::JoinBytes(command.counter, command.counter_high)),
      offsetof(Command, counter), contract::AdminStatus::kNotFound);
  check.RequireZero(command.rsvd2, offsetof(Command, rsvd2));
  return check;
}

bool Executor::IsKeyTaken(uint64_t key) const {
  const uint32_t first = contract::RegionSetOfKey(key, regions_.limit());
  for (uint32_t i = first; i < first + contract::kRegionWays; ++i) {
    if (regions_.IsUsed(i) && regions_.at(i).key == key) {
      return true;
    }
  }
  return false;
}

uint32_t Executor::ChooseRegion(const contract::AdminRegisterRegion& command) {
  const uint32_t limit = regions_.limit();
  if (!HasFlag(command, contract::kRegionFlagProviderKey)) {
    const uint32_t first = contract::RegionSetOfKey(command.key, limit);
    for (uint32_t i = first; i < first + contract::kRegionWays; ++i) {
      if (!regions_.IsUsed(i)) {
        return i;
      }
    }
    return limit;
  }
  // An entry whose keys are used up makes no more.
  return regions_.FindTurn([](const Region& region) {
    return region.generation < contract::KeyMaker::kGenerations;
  });
}

Executor::Progress Executor::RegisterRegion(
    const contract::AdminRegisterRegion& command) {
  if (regions_.limit() < contract::kRegionWays) {
    return Answer(contract::AdminStatus::kUnsupported, 0);
  }
  const FieldCheck check = CheckRegion(command);
  if (!check.ok()) {
    return Refuse(check);
  }
  const bool made = HasFlag(command, contract::kRegionFlagProviderKey);
  if (!made && IsKeyTaken(command.key)) {
    return Answer(contract::AdminStatus::kKeyInUse, 0);
  }
  const uint32_t index = ChooseRegion(command);
  if (index == regions_.limit() || !regions_.Prepare(index)) {
    return Answer(contract::AdminStatus::kNoResource, 0);
  }
  const uint32_t generation = regions_.at(index).generation;
  const bool bound = HasFlag(command, contract::kRegionFlagEndpoint);
  const Endpoint* endpoint = bound ? &endpoints_.at(command.endpoint) : nullptr;
  const uint64_t key = made ? keys_.Make(index, generation) : command.key;
  const contract::RegionCfg config{
      .key = key,
      .iova = command.iova,
      .length = command.length,
      .address_base = command.address_base,
      .job_id = command.job_id,
      .pid_on_fep = bound ? endpoint->pid_on_fep() : uint16_t{0},
      .resource_index = bound ? endpoint->first_ri() : uint16_t{0},
      .flags = static_cast<uint8_t>(
          command.flags |
          (bound && endpoint->relative ? contract::kRegionFlagRelative : 0U)),
      .function = function_,
      .enable = 1,
      .counter = command.counter,
      .counter_high = command.counter_high};
  const Status status = tables_.Write(contract::Table::kRegion, index, config);
  if (!status.ok()) {
    return Fail(status);
  }
  const uint16_t counter =
      contract::JoinBytes(command.counter, command.counter_high);
  regions_.Set(index, {.used = true,
                       .function = function_,
                       .bound = bound,
                       .counter = counter,
                       .endpoint = command.endpoint,
                       .generation = generation + (made ? 1 : 0),
                       .key = key});
  regions_.Pass(index);
  if (bound) {
    ++endpoints_.at(command.endpoint).users;
  }
  UseCounter(counter);
  answer_.key = key;
  return Created(index);
}

Executor::Progress Executor::CreateCounter(
    const contract::AdminCreateCounter& command) {
  using Command = contract::AdminCreateCounter;
  if (counters_.limit() == 0) {
    return Answer(contract::AdminStatus::kUnsupported, 0);
  }
  FieldCheck check;
  check.Require(command.rsvd1 == 0, offsetof(Command, rsvd1));
  check.Require(IsHostRange(command.cell, sizeof(contract::CounterCell),
                            sizeof(contract::CounterCell)),
                offsetof(Command, cell));
  check.RequireZero(command.rsvd2, offsetof(Command, rsvd2));
  if (!check.ok()) {
    return Refuse(check);
  }
  const uint32_t index = counters_.FindFree();
  if (index == counters_.limit() || !counters_.Prepare(index)) {
    return Answer(contract::AdminStatus::kNoResource, 0);
  }
  const Status status = tables_.Write(
      contract::Table::kCounter, index,
      contract::CounterCfg{
          .cell = command.cell, .function = function_, .enable = 1});
  if (!status.ok()) {
    return Fail(status);
  }
  counters_.Set(index, {.used = true, .function = function_});
  return Created(index);
}

bool Executor::IsCounter(uint16_t plus_1) {
  return plus_1 == 0 || counters_.Find(plus_1 - 1U, function_) != nullptr;
}

void Executor::UseCounter(uint16_t plus_1) {
  if (plus_1 != 0) {
    ++counters_.at(plus_1 - 1U).users;
  }
}

void Executor::ReleaseCounter(uint16_t plus_1) {
  if (plus_1 != 0) {
    --counters_.at(plus_1 - 1U).users;
  }
}

}  // namespace heddle::firmware
