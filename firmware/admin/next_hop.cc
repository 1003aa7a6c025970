// SPDX-License-Identifier: Apache-2.0
// Commands about next hops.
#include "firmware/admin/executor.h"

namespace heddle::firmware {

Executor::Progress Executor::ResolveNextHop(
    const contract::AdminResolveNextHop& command) {
  using Command = contract::AdminResolveNextHop;
  const FabricAddress address{
      .lo = command.fa_lo, .hi = command.fa_hi, .ipv6 = neighbours_.ipv6()};
  const uint8_t family =
      neighbours_.ipv6() ? static_cast<uint8_t>(contract::kAvFlagIpv6) : 0;
  FieldCheck check;
  check.Require(command.rsvd1 == 0, offsetof(Command, rsvd1));
  // What an address of the other family is worth does not matter.
  check.Require(command.flags != family || neighbours_.IsUnicast(address),
                offsetof(Command, fa_lo));
  check.Require(command.flags == family, offsetof(Command, flags));
  check.Require(command.rsvd2 == 0, offsetof(Command, rsvd2));
  check.Require(command.rsvd3 == 0, offsetof(Command, rsvd3));
  check.Require(command.rsvd4 == 0, offsetof(Command, rsvd4));
  check.RequireZero(command.rsvd5, offsetof(Command, rsvd5));
  if (!check.ok()) {
    return Refuse(check);
  }
  uint32_t hop = 0;
  switch (neighbours_.Resolve(command.id, address, hop)) {
    case Neighbours::Outcome::kKnown:
      return Created(hop);
    case Neighbours::Outcome::kPending:
      return Progress::kPending;
    case Neighbours::Outcome::kNoRoute:
      return Answer(contract::AdminStatus::kNotFound, offsetof(Command, fa_lo));
    case Neighbours::Outcome::kFull:
      break;
  }
  return Answer(contract::AdminStatus::kNoResource, 0);
}

Executor::Progress Executor::ReleaseNextHop(
    const contract::AdminCommand& command) {
  FieldCheck check;
  check.RequireZero(command.argument,
                    offsetof(contract::AdminCommand, argument));
  if (!check.ok()) {
    return Refuse(check);
  }
  if (!neighbours_.Release(command.object)) {
    return Answer(contract::AdminStatus::kNotFound,
                  offsetof(contract::AdminCommand, object));
  }
  return Answer(contract::AdminStatus::kOk, 0);
}

}  // namespace heddle::firmware
