// SPDX-License-Identifier: Apache-2.0
// An alias of an endpoint (fi_ep_alias).
#pragma once

#include <cstdint>

#include "host/lib/ofi/fork_guard.h"
#include "host/lib/ofi/transfer_handle.h"

namespace heddle::ofi {

// Calls other than data transfer, FI_GETOPSFLAG, FI_SETOPSFLAG and fi_close
// act on the endpoint.
//
// Ownership: the application, until fi_close; the endpoint cannot be closed
// before.
class EndpointAlias final : public TransferHandle, private ForkGuarded {
 public:
  // `flags`: FI_TRANSMIT or FI_RECV with the operation flags of that
  // direction; those of the other are as `parent` has them. 0, -FI_EINVAL or
  // -FI_EBADFLAGS. Throws std::bad_alloc.
  static int Open(TransferHandle* parent, uint64_t flags,
                  EndpointAlias** alias);

  static EndpointAlias* From(struct fid* handle) noexcept {
    return static_cast<EndpointAlias*>(TransferHandle::From(handle));
  }

  int Close() noexcept;

 private:
  void Disinherit() noexcept override;

  explicit EndpointAlias(const TransferHandle& parent)
      : TransferHandle(&parent.endpoint(), parent.op_flags()) {}
};

}  // namespace heddle::ofi
