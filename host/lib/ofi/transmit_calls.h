// SPDX-License-Identifier: Apache-2.0
// The endpoint as the calls that transmit see it, in classes of its backend.
#pragma once

#include <rdma/fi_endpoint.h>

#include "host/lib/backend/model.h"
#include "host/lib/ofi/transfer_handle.h"

namespace heddle::ofi {

template <typename Model>
struct TransmitCalls {
  using Transmit = TransferHandle::Transmit;
  using Context = typename Model::Transmit;

  static const Transmit& TransmitOf(fid_ep* handle) noexcept {
    return TransferHandle::From(handle)->transmit();
  }
  static Context& ContextOf(const Transmit& transmit) noexcept {
    return static_cast<Context&>(*transmit.context);
  }
  // Whether `peer` is in the endpoint's address vector.
  static bool Contains(const Transmit& transmit, fi_addr_t peer) noexcept {
    return static_cast<const typename Model::PeerTable&>(*transmit.peers)
        .Contains(peer);
  }
  static bool CanSend(const Transmit& transmit, fi_addr_t peer) noexcept {
    return Contains(transmit, peer) && ContextOf(transmit).CanSend();
  }
};

}  // namespace heddle::ofi
