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
template <typename Model, typename Locking, bool kPlain>
struct SendOps : TransmitCalls<Model, Locking, kPlain> {
  using Calls = TransmitCalls<Model, Locking, kPlain>;
  using Calls::Post;
  using Calls::TransmitOf;
  using typename Calls::Buffer;
  using typename Calls::Context;
  using typename Calls::Operation;
  using typename Calls::Transmit;

  static Operation Message(const Transmit& transmit, fi_addr_t peer,
                           void* context) noexcept {
    return {.context = FromContext(context),
            .peer = peer,
            .flags = Calls::FlagsOf(transmit),
            .copy_now = Calls::CopiesNow(transmit)};
  }
  // An injected message has no context of its own: its failure is reported
  // with the endpoint's.
  static Operation Injected(fid_ep* handle, fi_addr_t peer) noexcept {
    return {.context = FromContext(handle->fid.context),
            .peer = peer,
            .flags = 0,
            .copy_now = true};
  }

  // Each path that refuses continues in a function of its own, so that the
  // shorter one saves no register for the other.
  [[gnu::flatten]] static ssize_t Send(fid_ep* handle, const void* buffer,
                                       size_t bytes, void* descriptor,
                                       fi_addr_t peer, void* context) noexcept {
    if (!Context::IsShort(bytes)) {
      return bytes > backend::kInjectBytes
                 ? SendLong(handle, buffer, bytes, descriptor, peer, context)
                 : SendMedium(handle, buffer, bytes, descriptor, peer, context);
    }
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] { return Message(transmit, peer, context); };
    return Calls::TryShort(transmit, peer, make, {buffer, bytes})
               ? 0
               : SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  // At most `kInjectBytes`.
  [[gnu::noinline, gnu::flatten]] static ssize_t SendMedium(
      fid_ep* handle, const void* buffer, size_t bytes, void* descriptor,
      fi_addr_t peer, void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] { return Message(transmit, peer, context); };
    return Calls::TryMedium(transmit, peer, make, {buffer, bytes})
               ? 0
               : SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  // Longer.
  [[gnu::noinline, gnu::flatten]] static ssize_t SendLong(
      fid_ep* handle, const void* buffer, size_t bytes, void* descriptor,
      fi_addr_t peer, void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] { return Message(transmit, peer, context); };
    return !Calls::CopiesNow(transmit) &&
                   Calls::TryRegistered(transmit, peer, make,
                                        {buffer, bytes, descriptor})
               ? 0
               : SendAny(handle, buffer, bytes, descriptor, peer, context);
  }

  [[gnu::noinline]] static ssize_t SendAny(fid_ep* handle, const void* buffer,
                                           size_t bytes, void* descriptor,
                                           fi_addr_t peer,
                                           void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Message(transmit, peer, context),
                Buffer{buffer, bytes, descriptor});
  }

  static ssize_t SendVector(fid_ep* handle, const iovec* parts,
                            void** descriptors, size_t count, fi_addr_t peer,
                            void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Message(transmit, peer, context),
                backend::Payload{parts, descriptors, count});
  }

  static ssize_t SendMessage(fid_ep* handle, const fi_msg* message,
                             uint64_t flags) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    if ((flags & ~transmit.message_flags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    return Post(
        transmit,
        {.context = FromContext(message->context),
         .data = message->data,
         .peer = message->addr,
         .flags = OperationFlags(flags, transmit.selective),
         .copy_now = (flags & FI_INJECT) != 0,
         .more = (flags & FI_MORE) != 0},
        backend::Payload{message->msg_iov, message->desc, message->iov_count});
  }

  [[gnu::flatten]] static ssize_t Inject(fid_ep* handle, const void* buffer,
                                         size_t bytes,
                                         fi_addr_t peer) noexcept {
    const auto make = [&] { return Injected(handle, peer); };
    return Context::IsShort(bytes) && Calls::TryShort(TransmitOf(handle), peer,
                                                      make, {buffer, bytes})
               ? 0
               : InjectAny(handle, buffer, bytes, peer);
  }

  [[gnu::noinline]] static ssize_t InjectAny(fid_ep* handle, const void* buffer,
                                             size_t bytes,
                                             fi_addr_t peer) noexcept {
    const auto make = [&] { return Injected(handle, peer); };
    const Buffer local = {buffer, bytes};
    return bytes <= backend::kInjectBytes &&
                   Calls::TryMedium(TransmitOf(handle), peer, make, local)
               ? 0
               : Post(TransmitOf(handle), make(), local);
  }

  static ssize_t SendData(fid_ep* handle, const void* buffer, size_t bytes,
                          void* descriptor, uint64_t data, fi_addr_t peer,
                          void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, WithData(Message(transmit, peer, context), data),
                Buffer{buffer, bytes, descriptor});
  }

  static ssize_t InjectData(fid_ep* handle, const void* buffer, size_t bytes,
                            uint64_t data, fi_addr_t peer) noexcept {
    return Post(TransmitOf(handle), WithData(Injected(handle, peer), data),
                Buffer{buffer, bytes});
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
// `kPlain`: calls without flags report success, as most endpoints have it.
template <typename Model, typename Locking, bool kPlain>
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
  static ssize_t Post(fid_ep* handle,
                      const backend::ReceiveOperation& operation,
                      const backend::Payload& local) noexcept {
    return local.count <= backend::kMaxSegments
               ? -ContextOf(ReceiverOf(handle))
                      .template Post<Locking>(operation, local)
               : -FI_EINVAL;
  }

  [[gnu::flatten]] static ssize_t Receive(fid_ep* handle, void* buffer,
                                          size_t bytes, void* descriptor,
                                          fi_addr_t /*source*/,
                                          void* context) noexcept {
    return kPlain && bytes != 0 &&
                   ContextOf(ReceiverOf(handle))
                       .template TryPostRegistered<Locking>(
                           FromContext(context), {buffer, bytes, descriptor})
               ? 0
               : ReceiveAny(handle, buffer, bytes, descriptor, context);
  }

  [[gnu::noinline]] static ssize_t ReceiveAny(fid_ep* handle, void* buffer,
                                              size_t bytes, void* descriptor,
                                              void* context) noexcept {
    const Receiver& receiver = ReceiverOf(handle);
    return -ContextOf(receiver).template Post<Locking>(
        {.context = FromContext(context), .report = receiver.report},
        backend::Buffer{buffer, bytes, descriptor});
  }

  static ssize_t ReceiveVector(fid_ep* handle, const iovec* parts,
                               void** descriptors, size_t count,
                               fi_addr_t /*source*/, void* context) noexcept {
    return Post(
        handle,
        {.context = FromContext(context), .report = ReceiverOf(handle).report},
        {parts, descriptors, count});
  }

  static ssize_t ReceiveMessage(fid_ep* handle, const fi_msg* message,
                                uint64_t flags) noexcept {
    if ((flags & ~kFlags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    return Post(handle,
                {.context = FromContext(message->context),
                 .report = !ReceiverOf(handle).selective ||
                           (flags & FI_COMPLETION) != 0,
                 .more = (flags & FI_MORE) != 0},
                {message->msg_iov, message->desc, message->iov_count});
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

// The table of an enabled handle; a direction that it does not have answers
// -FI_EOPNOTSUPP.
template <typename Model>
fi_ops_msg MakeMessageOps(const CallTraits& traits) noexcept {
  fi_ops_msg ops = RefuseMessages(base::kNotOffered);
  ChooseCalls(traits.locked, traits.plain_transmit,
              [&]<typename Locking, bool kPlain>() {
                if (traits.caps.sends) {
                  SendOps<Model, Locking, kPlain>::Fill(&ops);
                }
              });
  ChooseCalls(traits.locked, traits.plain_receive,
              [&]<typename Locking, bool kPlain>() {
                if (traits.caps.receives) {
                  ReceiveOps<Model, Locking, kPlain>::Fill(&ops);
                }
              });
  return ops;
}

}  // namespace heddle::ofi
