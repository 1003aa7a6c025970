// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/endpoint_alias.h"

#include <memory>

#include "host/lib/ofi/endpoint.h"
#include "host/lib/ofi/endpoint_ops.h"
#include "host/lib/ofi/inherited_ops.h"

namespace heddle::ofi {

int EndpointAlias::Open(TransferHandle* parent, uint64_t flags,
                        EndpointAlias** alias) {
  Endpoint& endpoint = parent->endpoint();
  std::unique_ptr<EndpointAlias> made(new EndpointAlias(*parent));
  if (const int refused = made->ReplaceOpFlags(flags); refused != 0) {
    return refused;
  }
  const fid_ep& original = endpoint;
  made->fid = {.fclass = FI_CLASS_EP,
               .context = original.fid.context,
               .ops = &alias_fid_ops};
  made->ops = original.ops;
  made->cm = original.cm;
  made->atomic = original.atomic;
  made->collective = original.collective;
  endpoint.Add(made.get());
  *alias = made.release();
  return 0;
}

int EndpointAlias::Close() noexcept {
  endpoint().Remove(this);
  delete this;
  return 0;
}

void EndpointAlias::Disinherit() noexcept {
  fid.ops = &inherited_fid_ops;
  ops = &inherited_ep_ops;
  cm = &inherited_cm_ops;
  DisableCalls();
}

}  // namespace heddle::ofi
