// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/inherited_ops.h"

#include <cstddef>

#include "host/lib/base/refuse.h"

namespace heddle::ofi {
namespace {

constexpr base::Refusal<-FI_EOPBADSTATE> kInherited;

const char* NoAddressText(fid_av* /*handle*/, const void* /*address*/,
                          char* /*buffer*/, size_t* /*length*/) noexcept {
  return nullptr;
}

uint64_t ReadNothing(fid_cntr* /*handle*/) noexcept {
  return 0;
}

const char* NoErrorText(fid_cq* /*handle*/, int /*prov_errno*/,
                        const void* /*data*/, char* /*buffer*/,
                        size_t /*bytes*/) noexcept {
  return "the object belongs to the parent process";
}

}  // namespace

fi_ops inherited_fid_ops = {
    .size = sizeof(fi_ops),
    .close = kInherited,
    .bind = kInherited,
    .control = kInherited,
    .ops_open = kInherited,
    .tostr = nullptr,
    .ops_set = kInherited,
};

fi_ops_domain inherited_domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = kInherited,
    .cq_open = kInherited,
    .endpoint = kInherited,
    .scalable_ep = kInherited,
    .cntr_open = kInherited,
    .poll_open = kInherited,
    .stx_ctx = kInherited,
    .srx_ctx = kInherited,
    .query_atomic = kInherited,
    .query_collective = kInherited,
    .endpoint2 = kInherited,
};

fi_ops_mr inherited_mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = kInherited,
    .regv = kInherited,
    .regattr = kInherited,
};

fi_ops_av inherited_av_ops = {
    .size = sizeof(fi_ops_av),
    .insert = kInherited,
    .insertsvc = kInherited,
    .insertsym = kInherited,
    .remove = kInherited,
    .lookup = kInherited,
    .straddr = NoAddressText,
    .av_set = kInherited,
};

fi_ops_cq inherited_cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = kInherited,
    .readfrom = kInherited,
    .readerr = kInherited,
    .sread = kInherited,
    .sreadfrom = kInherited,
    .signal = kInherited,
    .strerror = NoErrorText,
};

// The value has no room for an error.
fi_ops_cntr inherited_cntr_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = ReadNothing,
    .readerr = ReadNothing,
    .add = kInherited,
    .set = kInherited,
    .wait = kInherited,
    .adderr = kInherited,
    .seterr = kInherited,
};

fi_ops_ep inherited_ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = kInherited,
    .getopt = kInherited,
    .setopt = kInherited,
    .tx_ctx = kInherited,
    .rx_ctx = kInherited,
    .rx_size_left = kInherited,
    .tx_size_left = kInherited,
};

fi_ops_cm inherited_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = kInherited,
    .getname = kInherited,
    .getpeer = kInherited,
    .connect = kInherited,
    .listen = kInherited,
    .accept = kInherited,
    .reject = kInherited,
    .shutdown = kInherited,
    .join = kInherited,
};

}  // namespace heddle::ofi
