// SPDX-License-Identifier: Apache-2.0
// What the types of control packets mean to a receiver (UET 2.9).
#pragma once

#include <cstddef>

#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "hw/soft/rules/accept.h"

namespace heddle::soft::transport {

// Others are ignored and counted.
constexpr bool IsExecuted(contract::CpType type) {
  switch (type) {
    case contract::CpType::kAckRequest:
    case contract::CpType::kClearCommand:
    case contract::CpType::kClearRequest:
    case contract::CpType::kCloseCommand:
    case contract::CpType::kCloseRequest:
    case contract::CpType::kProbe:
    case contract::CpType::kNegotiation:
      return true;
    default:
      return false;
  }
}

// Clears are not acknowledged, so their PSN means nothing to their sender.
constexpr bool IsRefused(contract::CpType type) {
  return IsExecuted(type) && type != contract::CpType::kClearCommand &&
         type != contract::CpType::kClearRequest;
}

// At a target.
constexpr rules::PacketKind KindOf(contract::CpType type) {
  switch (type) {
    case contract::CpType::kAckRequest:
      return rules::PacketKind::kAckRequest;
    case contract::CpType::kClearCommand:
      return rules::PacketKind::kClear;
    case contract::CpType::kCloseCommand:
      return rules::PacketKind::kClose;
    case contract::CpType::kProbe:
      return rules::PacketKind::kProbe;
    case contract::CpType::kNegotiation:
      return rules::PacketKind::kNegotiation;
    default:  // What only a target asks for.
      return rules::PacketKind::kOther;
  }
}

// The first four bytes of a Negotiation's payload are in the header.
inline constexpr size_t kNegotiationAt = contract::wire::PdsCp::kBytes - 4;

constexpr size_t BytesOf(contract::CpType type) {
  return type == contract::CpType::kNegotiation
             ? kNegotiationAt + contract::wire::PdsNegotiation::kBytes
             : contract::wire::PdsCp::kBytes;
}

}  // namespace heddle::soft::transport
