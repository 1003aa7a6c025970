// SPDX-License-Identifier: Apache-2.0
// The device's completions in libfabric's terms.
#pragma once

#include <rdma/fabric.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::nic {

// What ended, by kind of completion and opcode; four bits hold every opcode.
inline constexpr auto kOperationFlags = [] {
  std::array<std::array<uint64_t, 16>, 4> flags{};
  const auto of = [&flags](contract::CompletionKind kind) -> auto& {
    return flags[static_cast<size_t>(kind)];
  };
  of(contract::CompletionKind::kTx).fill(FI_MSG | FI_SEND);
  of(contract::CompletionKind::kRx).fill(FI_MSG | FI_RECV);
  of(contract::CompletionKind::kTarget).fill(FI_RMA | FI_REMOTE_WRITE);
  constexpr auto kRead = static_cast<size_t>(contract::Opcode::kRead);
  constexpr auto kWrite = static_cast<size_t>(contract::Opcode::kWrite);
  constexpr auto kTagged = static_cast<size_t>(contract::Opcode::kTaggedSend);
  of(contract::CompletionKind::kTx)[kRead] = FI_RMA | FI_READ;
  of(contract::CompletionKind::kTx)[kWrite] = FI_RMA | FI_WRITE;
  of(contract::CompletionKind::kTx)[kTagged] = FI_TAGGED | FI_SEND;
  of(contract::CompletionKind::kTarget)[kRead] = FI_RMA | FI_REMOTE_READ;
  return flags;
}();

// `kind` is that of the entry.
inline uint64_t CompletionFlags(contract::CompletionKind kind,
                                const contract::Completion& entry) noexcept {
  uint64_t flags = FI_MSG | FI_RECV;  // Contexts that match have others.
  if (kind != contract::CompletionKind::kRx) {
    flags = kOperationFlags[static_cast<size_t>(kind) % 4]
                           [static_cast<size_t>(entry.opcode) % 16];
  }
  static_assert(contract::kCompletionFlagHeaderData == 1);
  const uint64_t has_data = entry.flags & contract::kCompletionFlagHeaderData;
  return flags | has_data * FI_REMOTE_CQ_DATA;
}

}  // namespace heddle::nic
