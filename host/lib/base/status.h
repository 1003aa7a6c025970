// SPDX-License-Identifier: Apache-2.0
// Device status to libfabric errno: the one place where that is decided.
#pragma once

#include <rdma/fi_ext_heddle.h>

#include <cstdint>

#include "driver/result.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::base {

// `err` of an error completion: positive FI_E*, 0 for kOk. A value unknown to
// this library, from a newer device, is FI_EOTHER.
int ToFiErrno(contract::Status status) noexcept;

// `prov_errno` of an error completion; FI_HEDDLE_UNKNOWN likewise.
fi_heddle_errno ToProvErrno(contract::Status status) noexcept;

// The same with the completion's `detail`, by which a peer's refusal of remote
// access is told from its other errors.
int ToFiErrno(contract::Status status, uint16_t detail) noexcept;
fi_heddle_errno ToProvErrno(contract::Status status, uint16_t detail) noexcept;

// A sentence for fi_cq_strerror and fi_eq_strerror, static; never null.
const char* ProvErrnoText(int prov_errno) noexcept;

// Answer of the admin queue: 0 or a negative FI_E*.
int ToReturnCode(contract::AdminStatus status) noexcept;

// The driver's error: a negative FI_E*.
int ToReturnCode(Errno error) noexcept;

}  // namespace heddle::base
