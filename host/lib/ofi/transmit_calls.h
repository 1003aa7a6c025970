// SPDX-License-Identifier: Apache-2.0
// The endpoint as the calls that transmit see it, in classes of its backend.
#pragma once

#include <rdma/fi_endpoint.h>

#include "host/lib/backend/model.h"
#include "host/lib/ofi/transfer_handle.h"

namespace heddle::ofi {

// `kPlain`: calls without flags report success and leave long buffers where
// they are, completions have no order, and the context is direct. Then nothing
// is called on the shortest ways, so that they save no register.
template <typename Model, typename Locking, bool kPlain>
struct TransmitCalls {
  using Transmit = TransferHandle::Transmit;
  using Context = typename Model::Transmit;
  using Operation = backend::Operation;
  using Buffer = backend::Buffer;

  static const Transmit& TransmitOf(fid_ep* handle) noexcept {
    return TransferHandle::From(handle)->transmit();
  }
  static Context& ContextOf(const Transmit& transmit) noexcept {
    return static_cast<Context&>(*transmit.context);
  }

  // Defaults of calls without flags.
  static uint8_t FlagsOf(const Transmit& transmit) noexcept {
    return kPlain ? backend::kReportSuccess : transmit.flags;
  }
  // Those of other calls; `flags` are an operation's.
  static uint8_t Fenced(const Transmit& transmit, uint8_t flags) noexcept {
    return kPlain ? flags : flags | transmit.fence;
  }
  static bool CopiesNow(const Transmit& transmit) noexcept {
    return !kPlain && transmit.copy_now;
  }

  // Whether the peer is in the endpoint's address vector.
  static bool Contains(const Transmit& transmit, fi_addr_t peer) noexcept {
    return static_cast<const typename Model::PeerTable&>(*transmit.peers)
        .Contains(peer);
  }

  // The shortest ways, of one buffer. False, changing nothing, where only
  // `Post` finds out what to do. `make` answers the operation.
  template <typename Make>
  [[gnu::always_inline]] static bool TryShort(const Transmit& transmit,
                                              fi_addr_t peer, const Make& make,
                                              const Buffer& local) noexcept {
    return Contains(transmit, peer) &&
           ContextOf(transmit).template TryPostShort<Locking, kPlain>(make,
                                                                      local);
  }
  template <typename Make>
  [[gnu::always_inline]] static bool TryMedium(const Transmit& transmit,
                                               fi_addr_t peer, const Make& make,
                                               const Buffer& local) noexcept {
    return Contains(transmit, peer) &&
           ContextOf(transmit).template TryPostMedium<Locking, kPlain>(make,
                                                                       local);
  }
  template <typename Make>
  [[gnu::always_inline]] static bool TryRegistered(
      const Transmit& transmit, fi_addr_t peer, const Make& make,
      const Buffer& local) noexcept {
    return Contains(transmit, peer) &&
           ContextOf(transmit).template TryPostRegistered<Locking, kPlain>(
               make, local);
  }

  // `remote`: of an operation with several pieces of the peer's memory.
  template <typename... Remote>
  static ssize_t Post(const Transmit& transmit, const Operation& operation,
                      const backend::Payload& local,
                      const Remote&... remote) noexcept {
    return local.count <= backend::kMaxSegments &&
                   Contains(transmit, operation.peer)
               ? -ContextOf(transmit).template Post<Locking>(operation, local,
                                                             remote...)
               : -FI_EINVAL;
  }
  static ssize_t Post(const Transmit& transmit, const Operation& operation,
                      const Buffer& local) noexcept {
    return Contains(transmit, operation.peer)
               ? -ContextOf(transmit).template Post<Locking>(operation, local)
               : -FI_EINVAL;
  }
};

}  // namespace heddle::ofi
