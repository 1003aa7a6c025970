// SPDX-License-Identifier: Apache-2.0
// The calls of fi_msg(3), and of fi_tagged(3) what is the same, as templates of
// backend and threading model.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <type_traits>

#include "host/lib/backend/model.h"
#include "host/lib/base/refuse.h"
#include "host/lib/ofi/transfer_call.h"
#include "host/lib/ofi/transfer_handle.h"
#include "host/lib/ofi/transmit_calls.h"

namespace heddle::ofi {

// The functions below have the API's parameters. `Tag`: nothing, or the type of
// the tag that the calls of fi_tagged(3) have after the peer.
// NOLINTBEGIN(readability-function-size)
template <typename Model, typename Locking, bool kPlain, typename... Tag>
struct SendOps : TransmitCalls<Model, Locking, kPlain> {
  using Calls = TransmitCalls<Model, Locking, kPlain>;
  using Calls::Post;
  using Calls::TransmitOf;
  using typename Calls::Buffer;
  using typename Calls::Context;
  using typename Calls::Operation;
  using typename Calls::Transmit;

  static constexpr bool kTagged = sizeof...(Tag) != 0;
  using ApiMessage = std::conditional_t<kTagged, fi_msg_tagged, fi_msg>;

  static constexpr backend::Opcode kOpcode =
      kTagged ? backend::Opcode::kTaggedSend : backend::Opcode::kSend;
  static uint64_t KeyOf(Tag... tag) noexcept {
    return (uint64_t{0} | ... | tag);
  }
  static uint64_t TagOf(const fi_msg& /*message*/) noexcept { return 0; }
  static uint64_t TagOf(const fi_msg_tagged& message) noexcept {
    return message.tag;
  }

  static Operation Message(const Transmit& transmit, fi_addr_t peer, Tag... tag,
                           void* context) noexcept {
    return {.context = FromContext(context),
            .peer = peer,
            .flags = Calls::FlagsOf(transmit),
            .copy_now = Calls::CopiesNow(transmit),
            .opcode = kOpcode,
            .key = KeyOf(tag...)};
  }
  // An injected message has no context of its own: its failure is reported
  // with the endpoint's.
  static Operation Injected(fid_ep* handle, fi_addr_t peer,
                            Tag... tag) noexcept {
    return {.context = FromContext(handle->fid.context),
            .peer = peer,
            .flags = Calls::Fenced(TransmitOf(handle), 0),
            .copy_now = true,
            .opcode = kOpcode,
            .key = KeyOf(tag...)};
  }

  // Each path that refuses continues in a function of its own, so that the
  // shorter one saves no register for the other.
  [[gnu::flatten]] static ssize_t Send(fid_ep* handle, const void* buffer,
                                       size_t bytes, void* descriptor,
                                       fi_addr_t peer, Tag... tag,
                                       void* context) noexcept {
    if (!Context::IsShort(bytes)) {
      return bytes > backend::kInjectBytes
                 ? SendLong(handle, buffer, bytes, descriptor, peer, tag...,
                            context)
                 : SendMedium(handle, buffer, bytes, descriptor, peer, tag...,
                              context);
    }
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] { return Message(transmit, peer, tag..., context); };
    return Calls::TryShort(transmit, peer, make, {buffer, bytes})
               ? 0
               : SendAny(handle, buffer, bytes, descriptor, peer, tag...,
                         context);
  }

  // At most `kInjectBytes`.
  [[gnu::noinline, gnu::flatten]] static ssize_t SendMedium(
      fid_ep* handle, const void* buffer, size_t bytes, void* descriptor,
      fi_addr_t peer, Tag... tag, void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] { return Message(transmit, peer, tag..., context); };
    return Calls::TryMedium(transmit, peer, make, {buffer, bytes})
               ? 0
               : SendAny(handle, buffer, bytes, descriptor, peer, tag...,
                         context);
  }

  // Longer.
  [[gnu::noinline, gnu::flatten]] static ssize_t SendLong(
      fid_ep* handle, const void* buffer, size_t bytes, void* descriptor,
      fi_addr_t peer, Tag... tag, void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] { return Message(transmit, peer, tag..., context); };
    return !Calls::CopiesNow(transmit) &&
                   Calls::TryRegistered(transmit, peer, make,
                                        {buffer, bytes, descriptor})
               ? 0
               : SendAny(handle, buffer, bytes, descriptor, peer, tag...,
                         context);
  }

  [[gnu::noinline]] static ssize_t SendAny(fid_ep* handle, const void* buffer,
                                           size_t bytes, void* descriptor,
                                           fi_addr_t peer, Tag... tag,
                                           void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Message(transmit, peer, tag..., context),
                Buffer{buffer, bytes, descriptor});
  }

  static ssize_t SendVector(fid_ep* handle, const iovec* parts,
                            void** descriptors, size_t count, fi_addr_t peer,
                            Tag... tag, void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Message(transmit, peer, tag..., context),
                backend::Payload{parts, descriptors, count});
  }

  static ssize_t SendMessage(fid_ep* handle, const ApiMessage* message,
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
         .flags =
             Calls::Fenced(transmit, OperationFlags(flags, transmit.selective)),
         .copy_now = (flags & FI_INJECT) != 0,
         .more = (flags & FI_MORE) != 0,
         .opcode = kOpcode,
         .key = TagOf(*message)},
        backend::Payload{message->msg_iov, message->desc, message->iov_count});
  }

  [[gnu::flatten]] static ssize_t Inject(fid_ep* handle, const void* buffer,
                                         size_t bytes, fi_addr_t peer,
                                         Tag... tag) noexcept {
    const auto make = [&] { return Injected(handle, peer, tag...); };
    return Context::IsShort(bytes) && Calls::TryShort(TransmitOf(handle), peer,
                                                      make, {buffer, bytes})
               ? 0
               : InjectAny(handle, buffer, bytes, peer, tag...);
  }

  [[gnu::noinline]] static ssize_t InjectAny(fid_ep* handle, const void* buffer,
                                             size_t bytes, fi_addr_t peer,
                                             Tag... tag) noexcept {
    const auto make = [&] { return Injected(handle, peer, tag...); };
    const Buffer local = {buffer, bytes};
    return bytes <= backend::kInjectBytes &&
                   Calls::TryMedium(TransmitOf(handle), peer, make, local)
               ? 0
               : Post(TransmitOf(handle), make(), local);
  }

  static ssize_t SendData(fid_ep* handle, const void* buffer, size_t bytes,
                          void* descriptor, uint64_t data, fi_addr_t peer,
                          Tag... tag, void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit,
                WithData(Message(transmit, peer, tag..., context), data),
                Buffer{buffer, bytes, descriptor});
  }

  static ssize_t InjectData(fid_ep* handle, const void* buffer, size_t bytes,
                            uint64_t data, fi_addr_t peer,
                            Tag... tag) noexcept {
    return Post(TransmitOf(handle),
                WithData(Injected(handle, peer, tag...), data),
                Buffer{buffer, bytes});
  }

  template <typename Ops>
  static void Fill(Ops* ops) noexcept {
    ops->send = Send;
    ops->sendv = SendVector;
    ops->sendmsg = SendMessage;
    ops->inject = Inject;
    ops->senddata = SendData;
    ops->injectdata = InjectData;
  }
};

// `Context`: the backend's receive context, that of `kOf`. `Rule`: nothing, or
// the types of the tag and its ignored bits, which the calls of fi_tagged(3)
// have after the source. `kPlain`: calls without flags report success, as most
// endpoints have it.
template <typename Context, typename Locking, bool kPlain, typename... Rule>
struct ReceiveOps {
  using Receiver = TransferHandle::Receive;

  static constexpr bool kMatches = backend::MatchModel<Context>;
  using Operation = std::conditional_t<kMatches, backend::MatchOperation,
                                       backend::ReceiveOperation>;
  static constexpr bool kTagged = sizeof...(Rule) != 0;
  using ApiMessage = std::conditional_t<kTagged, fi_msg_tagged, fi_msg>;

  static const Receiver& ReceiverOf(fid_ep* handle) noexcept {
    return TransferHandle::From(handle)->receive();
  }
  static Context& ContextOf(const Receiver& receiver) noexcept {
    return static_cast<Context&>(kTagged ? *receiver.tagged_context
                                         : *receiver.context);
  }
  static ssize_t Post(fid_ep* handle, const Operation& operation,
                      const backend::Payload& local) noexcept {
    return local.count <= backend::kMaxSegments
               ? -ContextOf(ReceiverOf(handle))
                      .template Post<Locking>(operation, local)
               : -FI_EINVAL;
  }

  static void SetRule(Operation& /*operation*/) noexcept {}
  static void SetRule(Operation& operation, uint64_t tag,
                      uint64_t ignore) noexcept {
    operation.tag = tag;
    operation.ignore = ignore;
  }
  // Without FI_DIRECTED_RECV the source of a receive is ignored (fi_msg(3)).
  [[gnu::always_inline]] static Operation Make(const Receiver& receiver,
                                               fi_addr_t source, Rule... rule,
                                               void* context) noexcept {
    Operation operation = {.context = FromContext(context),
                           .report = kPlain || receiver.report};
    if constexpr (kMatches) {
      static_assert(FI_ADDR_UNSPEC == backend::kAnySource);
      operation.source = receiver.directed ? source : backend::kAnySource;
      SetRule(operation, rule...);
    }
    return operation;
  }
  [[gnu::always_inline]] static bool TryRegistered(const Receiver& receiver,
                                                   const backend::Buffer& local,
                                                   fi_addr_t source,
                                                   Rule... rule,
                                                   void* context) noexcept {
    Context& to = ContextOf(receiver);
    if constexpr (kMatches) {
      return to.template TryPostRegistered<Locking>(
          Make(receiver, source, rule..., context), local);
    } else {
      return to.template TryPostRegistered<Locking>(FromContext(context),
                                                    local);
    }
  }

  [[gnu::flatten]] static ssize_t Receive(fid_ep* handle, void* buffer,
                                          size_t bytes, void* descriptor,
                                          fi_addr_t source, Rule... rule,
                                          void* context) noexcept {
    return kPlain && bytes != 0 &&
                   TryRegistered(ReceiverOf(handle),
                                 {buffer, bytes, descriptor}, source, rule...,
                                 context)
               ? 0
               : ReceiveAny(handle, buffer, bytes, descriptor, source, rule...,
                            context);
  }

  [[gnu::noinline]] static ssize_t ReceiveAny(fid_ep* handle, void* buffer,
                                              size_t bytes, void* descriptor,
                                              fi_addr_t source, Rule... rule,
                                              void* context) noexcept {
    const Receiver& receiver = ReceiverOf(handle);
    return -ContextOf(receiver).template Post<Locking>(
        Make(receiver, source, rule..., context),
        backend::Buffer{buffer, bytes, descriptor});
  }

  static ssize_t ReceiveVector(fid_ep* handle, const iovec* parts,
                               void** descriptors, size_t count,
                               fi_addr_t source, Rule... rule,
                               void* context) noexcept {
    return Post(handle, Make(ReceiverOf(handle), source, rule..., context),
                {parts, descriptors, count});
  }

  // Flags of fi_recvmsg or fi_trecvmsg that name a use of the message.
  static constexpr uint64_t kActions = FI_PEEK | FI_CLAIM | FI_DISCARD;
  static uint64_t FlagsOf(const Receiver& receiver) noexcept {
    return FI_COMPLETION | FI_MORE |
           (kMatches && receiver.multi_recv ? FI_MULTI_RECV : 0) |
           (kTagged ? kActions : 0);
  }
  static backend::MatchOp ActionOf(uint64_t flags) noexcept {
    using backend::MatchOp;
    const bool discards = (flags & FI_DISCARD) != 0;
    if ((flags & FI_PEEK) == 0) {
      return discards ? MatchOp::kDiscardClaimed
                      : ((flags & FI_CLAIM) != 0 ? MatchOp::kReceiveClaimed
                                                 : MatchOp::kReceive);
    }
    return discards
               ? MatchOp::kDiscard
               : ((flags & FI_CLAIM) != 0 ? MatchOp::kClaim : MatchOp::kPeek);
  }
  // Source: fi_tagged(3): FI_DISCARD is with FI_PEEK or with FI_CLAIM.
  static bool AreActions(uint64_t flags) noexcept {
    const uint64_t actions = flags & kActions;
    return actions != FI_DISCARD && actions != kActions &&
           (actions == 0 || (flags & FI_MULTI_RECV) == 0);
  }
  static void SetRuleOf(Operation& /*operation*/,
                        const fi_msg& /*message*/) noexcept {}
  static void SetRuleOf(Operation& operation,
                        const fi_msg_tagged& message) noexcept {
    SetRule(operation, message.tag, message.ignore);
  }

  static ssize_t ReceiveMessage(fid_ep* handle, const ApiMessage* message,
                                uint64_t flags) noexcept {
    const Receiver& receiver = ReceiverOf(handle);
    if ((flags & ~FlagsOf(receiver)) != 0) {
      return -FI_EOPNOTSUPP;
    }
    if (!AreActions(flags)) {
      return -FI_EINVAL;
    }
    Operation operation = {
        .context = FromContext(message->context),
        .report = !receiver.selective || (flags & FI_COMPLETION) != 0,
        .more = (flags & FI_MORE) != 0};
    if constexpr (kMatches) {
      operation.match = ActionOf(flags);
      operation.many = (flags & FI_MULTI_RECV) != 0;
      operation.min_free = operation.many ? receiver.min_multi_recv : 0;
      operation.source =
          receiver.directed ? message->addr : backend::kAnySource;
      SetRuleOf(operation, *message);
    }
    // The message of a peek or a discard goes nowhere.
    const bool placed = (flags & (FI_PEEK | FI_DISCARD)) == 0;
    return Post(
        handle, operation,
        {message->msg_iov, message->desc, placed ? message->iov_count : 0});
  }

  template <typename Ops>
  static void Fill(Ops* ops) noexcept {
    ops->recv = Receive;
    ops->recvv = ReceiveVector;
    ops->recvmsg = ReceiveMessage;
  }
};
// NOLINTEND(readability-function-size)

template <typename Ops, int kError>
constexpr Ops RefuseMessages(base::Refusal<kError> refusal) noexcept {
  return {.size = sizeof(Ops),
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
inline constexpr auto kDisabledMessageOps =
    RefuseMessages<fi_ops_msg>(base::kNotEnabled);

// The table of an enabled handle; a direction that it does not have answers
// -FI_EOPNOTSUPP.
template <typename Model>
fi_ops_msg MakeMessageOps(const CallTraits& traits) noexcept {
  auto ops = RefuseMessages<fi_ops_msg>(base::kNotOffered);
  ChooseCalls(traits.locked, traits.plain_transmit,
              [&]<typename Locking, bool kPlain>() {
                if (traits.caps.sends) {
                  SendOps<Model, Locking, kPlain>::Fill(&ops);
                }
              });
  ChooseCalls(
      traits.locked, traits.plain_receive,
      [&]<typename Locking, bool kPlain>() {
        if constexpr (backend::MatchingModel<Model>) {
          if (traits.caps.matches()) {
            ReceiveOps<typename Model::Match, Locking, kPlain>::Fill(&ops);
            return;
          }
        }
        if (traits.caps.receives) {
          ReceiveOps<typename Model::Receive, Locking, kPlain>::Fill(&ops);
        }
      });
  return ops;
}

}  // namespace heddle::ofi
