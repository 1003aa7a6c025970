// SPDX-License-Identifier: Apache-2.0
// Errors of the library as libfabric's: the one place where that is decided.
#pragma once

#include <rdma/fi_ext_heddle.h>

#include "driver/result.h"

namespace heddle::base {

// `err` of an error completion from its `prov_errno`: positive FI_E*, 0 for
// FI_HEDDLE_OK. A value unknown to this library is FI_EOTHER.
int ToFiErrno(fi_heddle_errno error) noexcept;

// A sentence for fi_cq_strerror and fi_eq_strerror, static; never null.
const char* ProvErrnoText(int prov_errno) noexcept;

// A positive errno number as the API returns it: a negative FI_E*.
int ToReturnCode(Errno error) noexcept;

}  // namespace heddle::base
