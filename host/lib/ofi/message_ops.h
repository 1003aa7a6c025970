// SPDX-License-Identifier: Apache-2.0
// The calls of fi_msg(3), as templates of backend and threading model.
#pragma once

#include <rdma/fi_endpoint.h>

#include "host/lib/backend/model.h"
#include "host/lib/base/refuse.h"
#include "host/lib/ofi/transfer_call.h"
#include "host/lib/ofi/transfer_handle.h"
#include "host/lib/ofi/transmit_calls.h"

namespace heddle::ofi {

// The functions below have the API's parameters.
// NOLINTBEGIN(readability-function-size)
template <typename Model, typename Locking>
struct SendOps : TransmitCalls<Model> {
  using Calls = TransmitCalls<Model>;
  using Calls::CanSend;
  using Calls::Contains;
  using Calls::ContextOf;
  using Calls::TransmitOf;
  using typename Calls::Context;
  using typename Calls::Transmit;

  static bool CanSendMedium(const Transmit& transmit, fi_addr_t peer,
                            size_t bytes) noexcept {
    return Context::IsMedium(bytes) && Contains(transmit, peer) &&
           ContextOf(transmit).CanSendMedium();
  }

  // `local` is a Buffer or a Payload.
  template <typename Local>
  [[gnu::always_inline]] static ssize_t Post(const Transmit& transmit,
                                             backend::Operation operation,
                                             fi_addr_t peer,
                                             const Local& local) noexcept {
    if (!Contains(transmit, peer)) {
      return -FI_EINVAL;
    }
    operation.peer = static_cast<uint32_t>(peer);
    return -ContextOf(transmit).template Post<Locking>(operation, local);
  }

  // Each call without flags has a path that saves no register, because nothing
  // is called on it that comes back; what it does not take has its own
  // arguments still and continues in the function that ends in `Any`.
  static ssize_t Send(fid_ep* handle, const void* buffer, size_t bytes,
                      void* descriptor, fi_addr_t peer,
                      void* context) noexcept {
    if constexpr (!Locking::kLocks) {
      if (!Context::IsShort(bytes)) {
        return bytes > backend::kInjectBytes
                   ? SendLong(handle, buffer, bytes, descriptor, peer, context)
                   : SendMedium(handle, buffer, bytes, descriptor, peer,
                                context);
      }
      const Transmit& transmit = TransmitOf(handle);
      if (CanSend(transmit, peer)) [[likely]] {
        ContextOf(transmit).SendShort({.context = FromContext(context),
                                       .peer = static_cast<uint32_t>(peer),
                                       .flags = transmit.flags},
                                      {.address = buffer, .bytes = bytes});
        return 0;
      }
    }
    return SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  // At most `kInjectBytes`.
  [[gnu::noinline]] static ssize_t SendMedium(fid_ep* handle,
                                              const void* buffer, size_t bytes,
                                              void* descriptor, fi_addr_t peer,
                                              void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    if (CanSendMedium(transmit, peer, bytes)) [[likely]] {
      ContextOf(transmit).SendMedium({.context = FromContext(context),
                                      .peer = static_cast<uint32_t>(peer),
                                      .flags = transmit.flags},
                                     {.address = buffer, .bytes = bytes});
      return 0;
    }
    return SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  // Longer.
  [[gnu::noinline]] static ssize_t SendLong(fid_ep* handle, const void* buffer,
                                            size_t bytes, void* descriptor,
                                            fi_addr_t peer,
                                            void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const backend::Buffer local = {buffer, bytes, descriptor};
    const auto* reach = ContextOf(transmit).Reach(local);
    if (bytes <= transmit.most_in_place && reach != nullptr &&
        CanSend(transmit, peer)) [[likely]] {
      ContextOf(transmit).SendRegistered({.context = FromContext(context),
                                          .peer = static_cast<uint32_t>(peer),
                                          .flags = transmit.flags},
                                         local, *reach);
      return 0;
    }
    return SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  [[gnu::noinline]] static ssize_t SendAny(fid_ep* handle, const void* buffer,
                                           size_t bytes, void* descriptor,
                                           fi_addr_t peer,
                                           void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit,
                {.context = FromContext(context),
                 .flags = transmit.flags,
                 .copy_now = transmit.copy_now},
                peer, backend::Buffer{buffer, bytes, descriptor});
  }

  static ssize_t SendVector(fid_ep* handle, const iovec* parts,
                            void** descriptors, size_t count, fi_addr_t peer,
                            void* context) noexcept {
    if (count > backend::kMaxSegments) {
      return -FI_EINVAL;
    }
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit,
                {.context = FromContext(context),
                 .flags = transmit.flags,
                 .copy_now = transmit.copy_now},
                peer, backend::Payload{parts, descriptors, count});
  }

  static ssize_t SendMessage(fid_ep* handle, const fi_msg* message,
                             uint64_t flags) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    if ((flags & ~transmit.message_flags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    if (message->iov_count > backend::kMaxSegments) {
      return -FI_EINVAL;
    }
    return Post(
        transmit,
        {.context = FromContext(message->context),
         .data = message->data,
         .flags = OperationFlags(flags, transmit.selective),
         .copy_now = (flags & FI_INJECT) != 0,
         .more = (flags & FI_MORE) != 0},
        message->addr,
        backend::Payload{message->msg_iov, message->desc, message->iov_count});
  }

  // An injected message has no context of its own: its failure is reported
  // with the endpoint's.
  static ssize_t Inject(fid_ep* handle, const void* buffer, size_t bytes,
                        fi_addr_t peer) noexcept {
    if constexpr (!Locking::kLocks) {
      const Transmit& transmit = TransmitOf(handle);
      if (Context::IsShort(bytes) && CanSend(transmit, peer)) [[likely]] {
        ContextOf(transmit).SendShort(
            {.context = FromContext(handle->fid.context),
             .peer = static_cast<uint32_t>(peer),
             .flags = 0},
            {.address = buffer, .bytes = bytes});
        return 0;
      }
    }
    return InjectAny(handle, buffer, bytes, peer);
  }

  [[gnu::noinline]] static ssize_t InjectAny(fid_ep* handle, const void* buffer,
                                             size_t bytes,
                                             fi_addr_t peer) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const backend::Buffer local = {buffer, bytes};
    if constexpr (!Locking::kLocks) {
      if (bytes <= backend::kInjectBytes &&
          CanSendMedium(transmit, peer, bytes)) {
        ContextOf(transmit).SendMedium(
            {.context = FromContext(handle->fid.context),
             .peer = static_cast<uint32_t>(peer),
             .flags = 0},
            local);
        return 0;
      }
    }
    return Post(transmit,
                {.context = FromContext(handle->fid.context),
                 .flags = 0,
                 .copy_now = true},
                peer, local);
  }

  static ssize_t SendData(fid_ep* handle, const void* buffer, size_t bytes,
                          void* descriptor, uint64_t data, fi_addr_t peer,
                          void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(
        transmit,
        {.context = FromContext(context),
         .data = data,
         .flags = static_cast<uint8_t>(transmit.flags | backend::kCarryData),
         .copy_now = transmit.copy_now},
        peer, backend::Buffer{buffer, bytes, descriptor});
  }

  static ssize_t InjectData(fid_ep* handle, const void* buffer, size_t bytes,
                            uint64_t data, fi_addr_t peer) noexcept {
    return Post(TransmitOf(handle),
                {.context = FromContext(handle->fid.context),
                 .data = data,
                 .flags = backend::kCarryData,
                 .copy_now = true},
                peer, backend::Buffer{buffer, bytes});
  }

  static void Fill(fi_ops_msg* ops) noexcept {
    ops->send = Send;
    ops->sendv = SendVector;
    ops->sendmsg = SendMessage;
    ops->inject = Inject;
    ops->senddata = SendData;
    ops->injectdata = InjectData;
  }
};

// Without FI_DIRECTED_RECV the source of a receive is ignored (fi_msg(3)).
template <typename Model, typename Locking>
struct ReceiveOps {
  using Receiver = TransferHandle::Receive;
  using Context = typename Model::Receive;

  static constexpr uint64_t kFlags = FI_COMPLETION | FI_MORE;

  static const Receiver& ReceiverOf(fid_ep* handle) noexcept {
    return TransferHandle::From(handle)->receive();
  }
  static Context& ContextOf(const Receiver& receiver) noexcept {
    return static_cast<Context&>(*receiver.context);
  }

  static ssize_t Receive(fid_ep* handle, void* buffer, size_t bytes,
                         void* descriptor, fi_addr_t source,
                         void* context) noexcept {
    if constexpr (!Locking::kLocks) {
      const Receiver& receiver = ReceiverOf(handle);
      if (receiver.report &&
          ContextOf(receiver).TryPostRegistered(
              FromContext(context), {buffer, bytes, descriptor})) [[likely]] {
        return 0;
      }
    }
    return ReceiveAny(handle, buffer, bytes, descriptor, source, context);
  }

  [[gnu::noinline]] static ssize_t ReceiveAny(fid_ep* handle, void* buffer,
                                              size_t bytes, void* descriptor,
                                              fi_addr_t /*source*/,
                                              void* context) noexcept {
    const Receiver& receiver = ReceiverOf(handle);
    return -ContextOf(receiver).template Post<Locking>(
        {.context = FromContext(context), .report = receiver.report},
        backend::Buffer{buffer, bytes, descriptor});
  }

  static ssize_t ReceiveVector(fid_ep* handle, const iovec* parts,
                               void** descriptors, size_t count,
                               fi_addr_t /*source*/, void* context) noexcept {
    if (count > backend::kMaxSegments) {
      return -FI_EINVAL;
    }
    const Receiver& receiver = ReceiverOf(handle);
    return -ContextOf(receiver).template Post<Locking>(
        {.context = FromContext(context), .report = receiver.report},
        backend::Payload{parts, descriptors, count});
  }

  static ssize_t ReceiveMessage(fid_ep* handle, const fi_msg* message,
                                uint64_t flags) noexcept {
    if ((flags & ~kFlags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    if (message->iov_count > backend::kMaxSegments) {
      return -FI_EINVAL;
    }
    const Receiver& receiver = ReceiverOf(handle);
    return -ContextOf(receiver).template Post<Locking>(
        {.context = FromContext(message->context),
         .report = !receiver.selective || (flags & FI_COMPLETION) != 0,
         .more = (flags & FI_MORE) != 0},
        backend::Payload{message->msg_iov, message->desc, message->iov_count});
  }

  static void Fill(fi_ops_msg* ops) noexcept {
    ops->recv = Receive;
    ops->recvv = ReceiveVector;
    ops->recvmsg = ReceiveMessage;
  }
};
// NOLINTEND(readability-function-size)

template <int kError>
constexpr fi_ops_msg RefuseMessages(base::Refusal<kError> refusal) noexcept {
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

// Before fi_enable.
inline constexpr fi_ops_msg kDisabledMessageOps =
    RefuseMessages(base::kNotEnabled);

// The table of an enabled endpoint; a direction that it does not have answers
// -FI_EOPNOTSUPP. `locked`: threads may share the endpoint or its queues.
template <typename Model>
fi_ops_msg MakeMessageOps(bool locked, bool sends, bool receives) noexcept {
  fi_ops_msg ops = RefuseMessages(base::kNotOffered);
  if (sends && locked) {
    SendOps<Model, backend::Locked>::Fill(&ops);
  } else if (sends) {
    SendOps<Model, backend::Unlocked>::Fill(&ops);
  }
  if (receives && locked) {
    ReceiveOps<Model, backend::Locked>::Fill(&ops);
  } else if (receives) {
    ReceiveOps<Model, backend::Unlocked>::Fill(&ops);
  }
  return ops;
}

}  // namespace heddle::ofi
