// SPDX-License-Identifier: Apache-2.0
// Operation tables of fi_msg(3).
#pragma once

#include <rdma/fi_endpoint.h>

namespace heddle::ofi {

// Before fi_enable: -FI_EOPBADSTATE each.
extern const fi_ops_msg disabled_message_ops;

// The table of an enabled endpoint; a direction that it does not have answers
// -FI_EOPNOTSUPP. `locked`: threads may share the endpoint or its queues.
fi_ops_msg MakeMessageOps(bool locked, bool sends, bool receives) noexcept;

}  // namespace heddle::ofi
