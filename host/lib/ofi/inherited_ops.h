// SPDX-License-Identifier: Apache-2.0
// Operation tables of objects that a forked child inherited.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

namespace heddle::ofi {

// Every entry answers -FI_EOPBADSTATE.
extern fi_ops inherited_fid_ops;
extern fi_ops_domain inherited_domain_ops;
extern fi_ops_mr inherited_mr_ops;
extern fi_ops_av inherited_av_ops;
extern fi_ops_cq inherited_cq_ops;
extern fi_ops_cntr inherited_cntr_ops;
extern fi_ops_ep inherited_ep_ops;
extern fi_ops_cm inherited_cm_ops;

}  // namespace heddle::ofi
