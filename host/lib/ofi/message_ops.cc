// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/message_ops.h"

#include <array>

#include "host/lib/base/refuse.h"
#include "host/lib/ofi/transfer_call.h"
#include "host/lib/ofi/transfer_handle.h"

namespace heddle::ofi {
namespace {

constexpr uint64_t kReceiveFlags = FI_COMPLETION | FI_MORE;

using nic::kMaxSegments;
using nic::Segment;

// The functions below have the API's parameters.
// NOLINTBEGIN(readability-function-size)
template <typename Locking>
struct SendOps {
  static ssize_t Post(const TransferHandle::Transmit& transmit,
                      nic::SendOperation& operation, fi_addr_t peer,
                      std::span<const Segment> segments) noexcept {
    if (!transmit.peers->Contains(peer)) {
      return -FI_EINVAL;
    }
    operation.peer = static_cast<uint32_t>(peer);
    return -transmit.queue->Post<Locking>(operation, segments);
  }

  [[gnu::noinline]] static ssize_t PostLong(
      const TransferHandle::Transmit& transmit,
      const nic::SendOperation& operation, const void* buffer, size_t bytes,
      const void* descriptor) noexcept {
    nic::TxQueue& queue = *transmit.queue;
    if (bytes <= contract::kInjectBytes) {
      return -queue.PostInRing<Locking>(operation, buffer, bytes);
    }
    const Segment segment = MakeSegment(buffer, bytes, descriptor);
    return segment.region != nullptr
               ? -queue.PostRegistered<Locking>(operation, buffer, bytes,
                                                *segment.region)
               : -queue.Post<Locking>(operation, {&segment, 1});
  }

  // One buffer, the most frequent case; short ones stay in registers.
  [[gnu::always_inline]] static ssize_t PostOne(
      const TransferHandle::Transmit& transmit, nic::SendOperation operation,
      fi_addr_t peer, const void* buffer, size_t bytes,
      const void* descriptor) noexcept {
    if (!transmit.peers->Contains(peer)) {
      return -FI_EINVAL;
    }
    operation.peer = static_cast<uint32_t>(peer);
    if (bytes > contract::kInlineBytes) {
      // The one that is passed on is in memory; `operation` then need not be.
      const nic::SendOperation copy = operation;
      return PostLong(transmit, copy, buffer, bytes, descriptor);
    }
    return -transmit.queue->PostInline<Locking>(operation, buffer, bytes);
  }

  // Each call without flags has a path that saves no register, because nothing
  // is called on it that comes back; what it does not take has its own
  // arguments still and goes on in the function that ends in `Any`.
  static ssize_t Send(fid_ep* handle, const void* buffer, size_t bytes,
                      void* descriptor, fi_addr_t peer,
                      void* context) noexcept {
    if constexpr (!Locking::kLocks) {
      const TransferHandle::Transmit& transmit =
          TransferHandle::From(handle)->transmit();
      if (!nic::TxQueue::IsShort(bytes)) {
        return SendLong(handle, buffer, bytes, descriptor, peer, context);
      }
      if (transmit.peers->Contains(peer) && transmit.queue->CanSend())
          [[likely]] {
        transmit.queue->SendInline(
            nic::SendOperation{.context = FromContext(context),
                               .peer = static_cast<uint32_t>(peer),
                               .flags = transmit.flags},
            buffer, bytes);
        return 0;
      }
    }
    return SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  [[gnu::noinline]] static ssize_t SendLong(fid_ep* handle, const void* buffer,
                                            size_t bytes, void* descriptor,
                                            fi_addr_t peer,
                                            void* context) noexcept {
    const TransferHandle::Transmit& transmit =
        TransferHandle::From(handle)->transmit();
    const nic::Region* region = MemoryRegion::Only(descriptor);
    if (bytes > contract::kInjectBytes && bytes <= transmit.most_in_place &&
        region != nullptr && region->Covers(buffer, bytes) &&
        transmit.peers->Contains(peer) && transmit.queue->CanSend())
        [[likely]] {
      transmit.queue->SendRegistered(
          nic::SendOperation{.context = FromContext(context),
                             .peer = static_cast<uint32_t>(peer),
                             .flags = transmit.flags},
          buffer, bytes, *region);
      return 0;
    }
    return SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  [[gnu::noinline]] static ssize_t SendAny(fid_ep* handle, const void* buffer,
                                           size_t bytes, void* descriptor,
                                           fi_addr_t peer,
                                           void* context) noexcept {
    const TransferHandle::Transmit& transmit =
        TransferHandle::From(handle)->transmit();
    return PostOne(transmit,
                   {.context = FromContext(context),
                    .flags = transmit.flags,
                    .copy_now = transmit.copy_now},
                   peer, buffer, bytes, descriptor);
  }

  static ssize_t SendVector(fid_ep* handle, const iovec* parts,
                            void** descriptors, size_t count, fi_addr_t peer,
                            void* context) noexcept {
    if (count > kMaxSegments) {
      return -FI_EINVAL;
    }
    const TransferHandle::Transmit& transmit =
        TransferHandle::From(handle)->transmit();
    nic::SendOperation operation = {.context = FromContext(context),
                                    .flags = transmit.flags,
                                    .copy_now = transmit.copy_now};
    const auto segments = MakeSegments(parts, descriptors, count);
    return Post(transmit, operation, peer, {segments.data(), count});
  }

  static ssize_t SendMessage(fid_ep* handle, const fi_msg* message,
                             uint64_t flags) noexcept {
    const TransferHandle::Transmit& transmit =
        TransferHandle::From(handle)->transmit();
    if ((flags & ~transmit.message_flags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    if (message->iov_count > kMaxSegments) {
      return -FI_EINVAL;
    }
    nic::SendOperation operation = {
        .context = FromContext(message->context),
        .data = message->data,
        .flags = DescriptorFlags(flags, transmit.selective),
        .copy_now = (flags & FI_INJECT) != 0,
        .more = (flags & FI_MORE) != 0};
    const auto segments =
        MakeSegments(message->msg_iov, message->desc, message->iov_count);
    return Post(transmit, operation, message->addr,
                {segments.data(), message->iov_count});
  }

  // An injected message has no context of its own: its failure is reported
  // with the endpoint's.
  static ssize_t Inject(fid_ep* handle, const void* buffer, size_t bytes,
                        fi_addr_t peer) noexcept {
    if constexpr (!Locking::kLocks) {
      const TransferHandle::Transmit& transmit =
          TransferHandle::From(handle)->transmit();
      if (nic::TxQueue::IsShort(bytes) && transmit.peers->Contains(peer) &&
          transmit.queue->CanSend()) [[likely]] {
        transmit.queue->SendInline(
            nic::SendOperation{.context = FromContext(handle->fid.context),
                               .peer = static_cast<uint32_t>(peer),
                               .flags = 0},
            buffer, bytes);
        return 0;
      }
    }
    return InjectAny(handle, buffer, bytes, peer);
  }

  [[gnu::noinline]] static ssize_t InjectAny(fid_ep* handle, const void* buffer,
                                             size_t bytes,
                                             fi_addr_t peer) noexcept {
    const TransferHandle::Transmit& transmit =
        TransferHandle::From(handle)->transmit();
    return PostOne(transmit,
                   {.context = FromContext(handle->fid.context),
                    .flags = 0,
                    .copy_now = true},
                   peer, buffer, bytes, nullptr);
  }

  static ssize_t SendData(fid_ep* handle, const void* buffer, size_t bytes,
                          void* descriptor, uint64_t data, fi_addr_t peer,
                          void* context) noexcept {
    const TransferHandle::Transmit& transmit =
        TransferHandle::From(handle)->transmit();
    return PostOne(transmit,
                   {.context = FromContext(context),
                    .data = data,
                    .flags = static_cast<uint8_t>(transmit.flags |
                                                  contract::kTxFlagHeaderData),
                    .copy_now = transmit.copy_now},
                   peer, buffer, bytes, descriptor);
  }

  static ssize_t InjectData(fid_ep* handle, const void* buffer, size_t bytes,
                            uint64_t data, fi_addr_t peer) noexcept {
    const TransferHandle::Transmit& transmit =
        TransferHandle::From(handle)->transmit();
    return PostOne(transmit,
                   {.context = FromContext(handle->fid.context),
                    .data = data,
                    .flags = contract::kTxFlagHeaderData,
                    .copy_now = true},
                   peer, buffer, bytes, nullptr);
  }
};

// Without FI_DIRECTED_RECV the source of a receive is ignored (fi_msg(3)).
template <typename Locking>
struct ReceiveOps {
  static ssize_t Receive(fid_ep* handle, void* buffer, size_t bytes,
                         void* descriptor, fi_addr_t source,
                         void* context) noexcept {
    const TransferHandle::Receive& receive =
        TransferHandle::From(handle)->receive();
    if constexpr (!Locking::kLocks) {
      const nic::Region* region = MemoryRegion::Only(descriptor);
      if (region != nullptr && receive.report &&
          receive.queue->TryPostRegistered(FromContext(context), buffer, bytes,
                                           *region)) [[likely]] {
        return 0;
      }
    }
    return ReceiveAny(handle, buffer, bytes, descriptor, source, context);
  }

  [[gnu::noinline]] static ssize_t ReceiveAny(fid_ep* handle, void* buffer,
                                              size_t bytes, void* descriptor,
                                              fi_addr_t /*source*/,
                                              void* context) noexcept {
    const TransferHandle::Receive& receive =
        TransferHandle::From(handle)->receive();
    const nic::ReceiveOperation operation = {.context = FromContext(context),
                                             .report = receive.report};
    if (descriptor == nullptr) {
      return PostUnregistered(receive, operation, buffer, bytes);
    }
    return -receive.queue->PostRegistered<Locking>(
        operation, buffer, bytes,
        *MemoryRegion::Find(descriptor, buffer, bytes));
  }

  [[gnu::noinline]] static ssize_t PostUnregistered(
      const TransferHandle::Receive& receive, nic::ReceiveOperation operation,
      void* buffer, size_t bytes) noexcept {
    const Segment segment = {.address = buffer, .bytes = bytes};
    return -receive.queue->Post<Locking>(operation, {&segment, 1});
  }

  static ssize_t ReceiveVector(fid_ep* handle, const iovec* parts,
                               void** descriptors, size_t count,
                               fi_addr_t /*source*/, void* context) noexcept {
    if (count > kMaxSegments) {
      return -FI_EINVAL;
    }
    const TransferHandle::Receive& receive =
        TransferHandle::From(handle)->receive();
    const auto segments = MakeSegments(parts, descriptors, count);
    return -receive.queue->Post<Locking>(
        {.context = FromContext(context), .report = receive.report},
        {segments.data(), count});
  }

  static ssize_t ReceiveMessage(fid_ep* handle, const fi_msg* message,
                                uint64_t flags) noexcept {
    if ((flags & ~kReceiveFlags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    if (message->iov_count > kMaxSegments) {
      return -FI_EINVAL;
    }
    const TransferHandle::Receive& receive =
        TransferHandle::From(handle)->receive();
    const auto segments =
        MakeSegments(message->msg_iov, message->desc, message->iov_count);
    return -receive.queue->Post<Locking>(
        {.context = FromContext(message->context),
         .report = !receive.selective || (flags & FI_COMPLETION) != 0,
         .more = (flags & FI_MORE) != 0},
        {segments.data(), message->iov_count});
  }
};

// NOLINTEND(readability-function-size)

template <typename Locking>
void FillSend(fi_ops_msg* ops) noexcept {
  ops->send = SendOps<Locking>::Send;
  ops->sendv = SendOps<Locking>::SendVector;
  ops->sendmsg = SendOps<Locking>::SendMessage;
  ops->inject = SendOps<Locking>::Inject;
  ops->senddata = SendOps<Locking>::SendData;
  ops->injectdata = SendOps<Locking>::InjectData;
}

template <typename Locking>
void FillReceive(fi_ops_msg* ops) noexcept {
  ops->recv = ReceiveOps<Locking>::Receive;
  ops->recvv = ReceiveOps<Locking>::ReceiveVector;
  ops->recvmsg = ReceiveOps<Locking>::ReceiveMessage;
}

template <int kError>
constexpr fi_ops_msg RefuseAll(base::Refusal<kError> refusal) noexcept {
  return {.size = sizeof(fi_ops_msg),
          .recv = refusal,
          .recvv = refusal,
          .recvmsg = refusal,
          .send = refusal,
          .sendv = refusal,
          .sendmsg = refusal,
          .inject = refusal,
          .senddata = refusal,
          .injectdata = refusal};
}

template <typename Locking>
fi_ops_msg Make(bool sends, bool receives) noexcept {
  fi_ops_msg ops = RefuseAll(base::kNotOffered);
  if (sends) {
    FillSend<Locking>(&ops);
  }
  if (receives) {
    FillReceive<Locking>(&ops);
  }
  return ops;
}

}  // namespace

const fi_ops_msg disabled_message_ops = RefuseAll(base::kNotEnabled);

fi_ops_msg MakeMessageOps(bool locked, bool sends, bool receives) noexcept {
  return locked ? Make<nic::Locked>(sends, receives)
                : Make<nic::Unlocked>(sends, receives);
}

}  // namespace heddle::ofi
