// SPDX-License-Identifier: Apache-2.0
// Operation tables of an endpoint but for message transfer.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>

namespace heddle::ofi {

extern fi_ops endpoint_fid_ops;
extern fi_ops alias_fid_ops;
extern fi_ops_ep endpoint_ops;
extern fi_ops_cm endpoint_cm_ops;

// Every entry answers -FI_ENOSYS: fi_getinfo offers none of them.
extern fi_ops_atomic endpoint_atomic_ops;
extern fi_ops_collective endpoint_collective_ops;

}  // namespace heddle::ofi
