// SPDX-License-Identifier: Apache-2.0
// The device's status as `prov_errno`: the one place where that is decided.
#pragma once

#include <rdma/fi_ext_heddle.h>

#include <cstdint>

#include "hw/contract/gen/heddle_contract.h"

namespace heddle::nic {

// `prov_errno` of a completion; FI_HEDDLE_UNKNOWN for a value unknown to this
// library, from a newer device.
fi_heddle_errno ToProvErrno(contract::Status status) noexcept;

// The same with the completion's `detail`, by which a peer's refusal of remote
// access is told from its other errors.
fi_heddle_errno ToProvErrno(contract::Status status, uint16_t detail) noexcept;

}  // namespace heddle::nic
