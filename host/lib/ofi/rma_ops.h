// SPDX-License-Identifier: Apache-2.0
// Operation tables of fi_rma(3).
#pragma once

#include <rdma/fi_rma.h>

namespace heddle::ofi {

// Before fi_enable: -FI_EOPBADSTATE each.
extern const fi_ops_rma disabled_rma_ops;

// The table of an enabled endpoint; a direction that it does not have answers
// -FI_EOPNOTSUPP, without either all answer -FI_ENOSYS. `locked`: threads may
// share the endpoint or its queues.
fi_ops_rma MakeRmaOps(bool locked, bool reads, bool writes) noexcept;

}  // namespace heddle::ofi
