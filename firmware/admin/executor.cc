// SPDX-License-Identifier: Apache-2.0
// Dispatch, and the commands that need no context.
#include "firmware/admin/executor.h"

#include "firmware/base/field.h"

namespace heddle::firmware {
namespace {

constexpr uint32_t kMaxPort = 65535;

// A command without fields of its own but `object`, at most `max_object`.
FieldCheck CheckBare(const contract::AdminCommand& command,
                     uint32_t max_object) {
  FieldCheck check;
  check.Require(command.object <= max_object,
                offsetof(contract::AdminCommand, object));
  check.RequireZero(command.argument,
                    offsetof(contract::AdminCommand, argument));
  return check;
}

}  // namespace

void Executor::SetLimits(const Limits& limits) {
  tx_contexts_.set_limit(limits.tx_contexts);
  rx_contexts_.set_limit(limits.rx_contexts);
  cqs_.set_limit(limits.cqs);
  vectors_ = limits.vectors;
  capability_ = limits.capability;
  // More would have no context at all.
  endpoints_.set_limit(limits.tx_contexts + limits.rx_contexts);
  regions_.set_limit(limits.regions);
  counters_.set_limit(limits.counters);
}

Executor::Progress Executor::Execute(const contract::AdminCommand& command,
                                     Function function) {
  function_ = function;
  answer_ = {.id = command.id};
  if (command.rsvd0 != 0) {
    return Answer(contract::AdminStatus::kInvalid,
                  offsetof(contract::AdminCommand, rsvd0));
  }
  return Dispatch(command);
}

Executor::Progress Executor::Dispatch(const contract::AdminCommand& command) {
  switch (command.opcode) {
    case contract::AdminOpcode::kCreateEndpoint:
      return CreateEndpoint(
          Reinterpret<contract::AdminCreateEndpoint>(command));
    case contract::AdminOpcode::kCreateCq:
      return CreateCq(Reinterpret<contract::AdminCreateCq>(command));
    case contract::AdminOpcode::kCreateTx:
      return CreateTx(Reinterpret<contract::AdminCreateTx>(command));
    case contract::AdminOpcode::kCreateRx:
      return CreateRx(Reinterpret<contract::AdminCreateRx>(command));
    case contract::AdminOpcode::kSetTiming:
      return SetTiming(Reinterpret<contract::AdminSetTiming>(command));
    case contract::AdminOpcode::kResolveNextHop:
      return ResolveNextHop(
          Reinterpret<contract::AdminResolveNextHop>(command));
    case contract::AdminOpcode::kReleaseNextHop:
      return ReleaseNextHop(command);
    case contract::AdminOpcode::kRegisterRegion:
      return RegisterRegion(
          Reinterpret<contract::AdminRegisterRegion>(command));
    case contract::AdminOpcode::kCreateCounter:
      return CreateCounter(Reinterpret<contract::AdminCreateCounter>(command));
    case contract::AdminOpcode::kQueryPort:
      return QueryPort(command);
    case contract::AdminOpcode::kClosePdcs:
      return ClosePdcs(command);
    case contract::AdminOpcode::kDestroyEndpoint:
    case contract::AdminOpcode::kDestroyCq:
    case contract::AdminOpcode::kDestroyTx:
    case contract::AdminOpcode::kDestroyRx:
    case contract::AdminOpcode::kDeregisterRegion:
    case contract::AdminOpcode::kDestroyCounter:
      return Destroy(command);
    case contract::AdminOpcode::kNone:
      break;
  }
  return Answer(contract::AdminStatus::kUnsupported, 0);
}

Executor::Progress Executor::CreateEndpoint(
    const contract::AdminCreateEndpoint& command) {
  using Command = contract::AdminCreateEndpoint;
  FieldCheck check;
  check.Require(command.port <= kMaxPort, offsetof(Command, port));
  check.Require(command.job_id <= contract::kJobIdMax,
                offsetof(Command, job_id));
  check.Require((command.flags & ~contract::kEndpointFlagRelative) == 0,
                offsetof(Command, flags));
  check.Require(command.rsvd1 == 0, offsetof(Command, rsvd1));
  check.Require(command.rsvd3 == 0, offsetof(Command, rsvd3));
  check.RequireZero(command.rsvd2, offsetof(Command, rsvd2));
  if (!check.ok()) {
    return Refuse(check);
  }
  const uint32_t index = endpoints_.FindFree();
  if (index == endpoints_.limit() || !endpoints_.Prepare(index)) {
    return Answer(contract::AdminStatus::kNoResource, 0);
  }
  Endpoint endpoint = {
      .used = true,
      .function = function_,
      .relative = (command.flags & contract::kEndpointFlagRelative) != 0,
      .port = command.port,
      .job_id = command.job_id};
  const PortClaim claim = switch_.ClaimPort(endpoint.name());
  if (!claim.granted) {
    return claim.exhausted ? Answer(contract::AdminStatus::kNoResource, 0)
                           : Answer(contract::AdminStatus::kInUse, claim.owner);
  }
  endpoint.port = claim.port;
  endpoints_.Set(index, endpoint);
  answer_.port = claim.port;
  answer_.pid_on_fep = endpoint.pid_on_fep();
  answer_.resource_index = endpoint.first_ri();
  return Created(index);
}

Executor::Progress Executor::SetTiming(
    const contract::AdminSetTiming& command) {
  using Command = contract::AdminSetTiming;
  FieldCheck check;
  check.Require(command.rsvd1 == 0, offsetof(Command, rsvd1));
  check.RequireZero(command.rsvd2, offsetof(Command, rsvd2));
  if (!check.ok()) {
    return Refuse(check);
  }
  Status status;
  switch (port_.SetTiming(command.rto_ns, command.dead_ns, status)) {
    case Port::Timing::kSet:
      return Answer(contract::AdminStatus::kOk, 0);
    case Port::Timing::kBadRto:
      return Answer(contract::AdminStatus::kInvalid, offsetof(Command, rto_ns));
    case Port::Timing::kBadDead:
      return Answer(contract::AdminStatus::kInvalid,
                    offsetof(Command, dead_ns));
    case Port::Timing::kFailed:
      break;
  }
  return Fail(status);
}

Executor::Progress Executor::ClosePdcs(const contract::AdminCommand& command) {
  if (const FieldCheck check = CheckBare(command, 1); !check.ok()) {
    return Refuse(check);
  }
  if (command.object == 0) {
    if (const Status status = port_.ClosePdcs(); !status.ok()) {
      return Fail(status);
    }
  }
  return Answer(contract::AdminStatus::kOk, port_.CountOpenPdcs());
}

Executor::Progress Executor::QueryPort(const contract::AdminCommand& command) {
  if (const FieldCheck check = CheckBare(command, 0); !check.ok()) {
    return Refuse(check);
  }
  const contract::PortCfg& port = port_.config();
  answer_.fa_lo = port.local_fa_lo;
  answer_.fa_hi = port.local_fa_hi;
  answer_.payload_mtu = port.payload_mtu;
  answer_.ipv6 = port.ipv6;
  return Answer(contract::AdminStatus::kOk, 0);
}

Executor::Progress Executor::Answer(contract::AdminStatus status,
                                    uint32_t detail) {
  answer_.status = status;
  answer_.detail = detail;
  return Progress::kAnswered;
}

Executor::Progress Executor::Created(uint32_t object) {
  answer_.object = object;
  return Answer(contract::AdminStatus::kOk, 0);
}

Executor::Progress Executor::Fail(Status fault) {
  fault_ = fault;
  return Progress::kFailed;
}

}  // namespace heddle::firmware
