// SPDX-License-Identifier: Apache-2.0
// The calls of fi_rma(3), as templates of backend and threading model.
#pragma once

#include <rdma/fi_rma.h>

#include <array>
#include <span>

#include "host/lib/backend/model.h"
#include "host/lib/base/refuse.h"
#include "host/lib/ofi/transfer_call.h"
#include "host/lib/ofi/transfer_handle.h"
#include "host/lib/ofi/transmit_calls.h"

namespace heddle::ofi {

// The functions below have the API's parameters.
// NOLINTBEGIN(readability-function-size)
template <typename Model, typename Locking>
struct RmaOps : TransmitCalls<Model> {
  using Calls = TransmitCalls<Model>;
  using Calls::CanSend;
  using Calls::Contains;
  using Calls::ContextOf;
  using Calls::TransmitOf;
  using typename Calls::Context;
  using typename Calls::Transmit;
  using Operation = backend::Operation;

  // Flags of fi_readmsg; a read completes when its data are here, which is
  // what each level asks for.
  static constexpr uint64_t kReadFlags =
      FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
      FI_DELIVERY_COMPLETE | FI_FENCE;

  static bool CanSendMedium(const Transmit& transmit, fi_addr_t peer,
                            size_t bytes) noexcept {
    return bytes <= backend::kInjectBytes && Context::IsMedium(bytes) &&
           Contains(transmit, peer) && ContextOf(transmit).CanSendMedium();
  }

  // Where in the peer's memory. Precondition of `At`: the peer is in the
  // address vector.
  struct Place {
    fi_addr_t peer;
    uint64_t address;
    uint64_t key;
  };
  static Operation At(const Place& place, Operation operation) noexcept {
    operation.peer = static_cast<uint32_t>(place.peer);
    operation.key = place.key;
    operation.address = place.address;
    return operation;
  }

  static Operation Write(const Transmit& transmit, void* context) noexcept {
    return {.context = FromContext(context),
            .flags = transmit.flags,
            .copy_now = transmit.copy_now,
            .opcode = backend::Opcode::kWrite};
  }
  // An injected write has no context of its own: its failure is reported with
  // the endpoint's.
  static Operation InjectedWrite(fid_ep* handle) noexcept {
    return {.context = FromContext(handle->fid.context),
            .flags = 0,
            .copy_now = true,
            .opcode = backend::Opcode::kWrite};
  }
  static Operation Read(const Transmit& transmit, void* context) noexcept {
    return {
        .context = FromContext(context),
        .flags = static_cast<uint8_t>(transmit.flags & backend::kReportSuccess),
        .opcode = backend::Opcode::kRead};
  }
  static Operation WithData(Operation operation, uint64_t data) noexcept {
    operation.data = data;
    operation.flags |= backend::kCarryData;
    return operation;
  }

  // `local` is a Buffer or a Payload, as long as the peer's memory.
  template <typename Local>
  [[gnu::always_inline]] static ssize_t Post(const Transmit& transmit,
                                             const Operation& operation,
                                             const Place& place,
                                             const Local& local) noexcept {
    if (!Contains(transmit, place.peer)) [[unlikely]] {
      return -FI_EINVAL;
    }
    return -ContextOf(transmit).template Post<Locking>(At(place, operation),
                                                       local);
  }

  // As in messages: what the first path does not take continues in `Any`. Two
  // functions, so that the short one saves no register for the other.
  static ssize_t WriteOne(fid_ep* handle, const void* buffer, size_t bytes,
                          void* descriptor, fi_addr_t peer, uint64_t address,
                          uint64_t key, void* context) noexcept {
    if constexpr (Locking::kLocks) {
      return WriteAny(handle, buffer, bytes, descriptor, peer, address, key,
                      context);
    }
    return Context::IsShort(bytes)
               ? WriteShort(handle, buffer, bytes, descriptor, peer, address,
                            key, context)
               : WriteLong(handle, buffer, bytes, descriptor, peer, address,
                           key, context);
  }

  [[gnu::noinline]] static ssize_t WriteShort(fid_ep* handle,
                                              const void* buffer, size_t bytes,
                                              void* descriptor, fi_addr_t peer,
                                              uint64_t address, uint64_t key,
                                              void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    if (CanSend(transmit, peer)) [[likely]] {
      ContextOf(transmit).SendShort(
          At({peer, address, key}, Write(transmit, context)),
          {.address = buffer, .bytes = bytes});
      return 0;
    }
    return WriteAny(handle, buffer, bytes, descriptor, peer, address, key,
                    context);
  }

  [[gnu::noinline]] static ssize_t WriteLong(fid_ep* handle, const void* buffer,
                                             size_t bytes, void* descriptor,
                                             fi_addr_t peer, uint64_t address,
                                             uint64_t key,
                                             void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const backend::Buffer local = {buffer, bytes, descriptor};
    const auto* reach = ContextOf(transmit).Reach(local);
    if (bytes > backend::kInjectBytes && bytes <= transmit.most_in_place &&
        reach != nullptr && CanSend(transmit, peer)) [[likely]] {
      ContextOf(transmit).SendRegistered(
          At({peer, address, key}, Write(transmit, context)), local, *reach);
      return 0;
    }
    return WriteAny(handle, buffer, bytes, descriptor, peer, address, key,
                    context);
  }

  [[gnu::noinline]] static ssize_t WriteAny(fid_ep* handle, const void* buffer,
                                            size_t bytes, void* descriptor,
                                            fi_addr_t peer, uint64_t address,
                                            uint64_t key,
                                            void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const backend::Buffer local = {buffer, bytes, descriptor};
    if constexpr (!Locking::kLocks) {
      if (CanSendMedium(transmit, peer, bytes)) {
        ContextOf(transmit).SendMedium(
            At({peer, address, key}, Write(transmit, context)), local);
        return 0;
      }
    }
    return Post(transmit, Write(transmit, context), {peer, address, key},
                local);
  }

  static ssize_t WriteData(fid_ep* handle, const void* buffer, size_t bytes,
                           void* descriptor, uint64_t data, fi_addr_t peer,
                           uint64_t address, uint64_t key,
                           void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, WithData(Write(transmit, context), data),
                {peer, address, key},
                backend::Buffer{buffer, bytes, descriptor});
  }

  static ssize_t Inject(fid_ep* handle, const void* buffer, size_t bytes,
                        fi_addr_t peer, uint64_t address,
                        uint64_t key) noexcept {
    if constexpr (!Locking::kLocks) {
      const Transmit& transmit = TransmitOf(handle);
      if (Context::IsShort(bytes) && CanSend(transmit, peer)) [[likely]] {
        ContextOf(transmit).SendShort(
            At({peer, address, key}, InjectedWrite(handle)),
            {.address = buffer, .bytes = bytes});
        return 0;
      }
    }
    return InjectAny(handle, buffer, bytes, peer, address, key);
  }

  [[gnu::noinline]] static ssize_t InjectAny(fid_ep* handle, const void* buffer,
                                             size_t bytes, fi_addr_t peer,
                                             uint64_t address,
                                             uint64_t key) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const backend::Buffer local = {buffer, bytes};
    if constexpr (!Locking::kLocks) {
      if (CanSendMedium(transmit, peer, bytes)) {
        ContextOf(transmit).SendMedium(
            At({peer, address, key}, InjectedWrite(handle)), local);
        return 0;
      }
    }
    return Post(transmit, InjectedWrite(handle), {peer, address, key}, local);
  }

  static ssize_t InjectData(fid_ep* handle, const void* buffer, size_t bytes,
                            uint64_t data, fi_addr_t peer, uint64_t address,
                            uint64_t key) noexcept {
    return Post(TransmitOf(handle), WithData(InjectedWrite(handle), data),
                {peer, address, key}, backend::Buffer{buffer, bytes});
  }

  static ssize_t ReadOne(fid_ep* handle, void* buffer, size_t bytes,
                         void* descriptor, fi_addr_t peer, uint64_t address,
                         uint64_t key, void* context) noexcept {
    if constexpr (!Locking::kLocks) {
      const Transmit& transmit = TransmitOf(handle);
      const backend::Buffer local = {buffer, bytes, descriptor};
      const auto* reach = ContextOf(transmit).Reach(local);
      if (bytes - 1 < backend::kMaxMessageBytes && reach != nullptr &&
          CanSend(transmit, peer)) [[likely]] {
        ContextOf(transmit).SendRegistered(
            At({peer, address, key}, Read(transmit, context)), local, *reach);
        return 0;
      }
    }
    return ReadAny(handle, buffer, bytes, descriptor, peer, address, key,
                   context);
  }

  [[gnu::noinline]] static ssize_t ReadAny(fid_ep* handle, void* buffer,
                                           size_t bytes, void* descriptor,
                                           fi_addr_t peer, uint64_t address,
                                           uint64_t key,
                                           void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Read(transmit, context), {peer, address, key},
                backend::Buffer{buffer, bytes, descriptor});
  }

  // fi_writev and fi_readv reach one piece as long as all buffers together.
  static ssize_t WriteVector(fid_ep* handle, const iovec* parts,
                             void** descriptors, size_t count, fi_addr_t peer,
                             uint64_t address, uint64_t key,
                             void* context) noexcept {
    if (count > backend::kMaxSegments) {
      return -FI_EINVAL;
    }
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Write(transmit, context), {peer, address, key},
                backend::Payload{parts, descriptors, count});
  }

  static ssize_t ReadVector(fid_ep* handle, const iovec* parts,
                            void** descriptors, size_t count, fi_addr_t peer,
                            uint64_t address, uint64_t key,
                            void* context) noexcept {
    if (count > backend::kMaxSegments) {
      return -FI_EINVAL;
    }
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Read(transmit, context), {peer, address, key},
                backend::Payload{parts, descriptors, count});
  }

  static ssize_t PostMessage(const Transmit& transmit,
                             const fi_msg_rma& message,
                             Operation operation) noexcept {
    if (message.iov_count > backend::kMaxSegments ||
        message.rma_iov_count > backend::kMaxSegments ||
        !Contains(transmit, message.addr)) {
      return -FI_EINVAL;
    }
    operation.peer = static_cast<uint32_t>(message.addr);
    std::array<backend::RemoteSegment, backend::kMaxSegments> remote;
    for (size_t i = 0; i < message.rma_iov_count; ++i) {
      remote[i] = {.address = message.rma_iov[i].addr,
                   .key = message.rma_iov[i].key,
                   .bytes = message.rma_iov[i].len};
    }
    return -ContextOf(transmit).template Post<Locking>(
        operation,
        backend::Payload{message.msg_iov, message.desc, message.iov_count},
        std::span<const backend::RemoteSegment>(remote.data(),
                                                message.rma_iov_count));
  }

  static ssize_t WriteMessage(fid_ep* handle, const fi_msg_rma* message,
                              uint64_t flags) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    if ((flags & ~transmit.message_flags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    return PostMessage(transmit, *message,
                       {.context = FromContext(message->context),
                        .data = message->data,
                        .flags = OperationFlags(flags, transmit.selective),
                        .copy_now = (flags & FI_INJECT) != 0,
                        .more = (flags & FI_MORE) != 0,
                        .opcode = backend::Opcode::kWrite});
  }

  static ssize_t ReadMessage(fid_ep* handle, const fi_msg_rma* message,
                             uint64_t flags) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const uint64_t offered =
        transmit.message_flags | (kReadFlags & ~uint64_t{FI_FENCE});
    if ((flags & ~(kReadFlags & offered)) != 0) {
      return -FI_EOPNOTSUPP;
    }
    return PostMessage(
        transmit, *message,
        {.context = FromContext(message->context),
         .flags = OperationFlags(flags & (FI_COMPLETION | FI_FENCE),
                                 transmit.selective),
         .more = (flags & FI_MORE) != 0,
         .opcode = backend::Opcode::kRead});
  }

  static void FillReads(fi_ops_rma* ops) noexcept {
    ops->read = ReadOne;
    ops->readv = ReadVector;
    ops->readmsg = ReadMessage;
  }
  static void FillWrites(fi_ops_rma* ops) noexcept {
    ops->write = WriteOne;
    ops->writev = WriteVector;
    ops->writemsg = WriteMessage;
    ops->inject = Inject;
    ops->writedata = WriteData;
    ops->injectdata = InjectData;
  }
};
// NOLINTEND(readability-function-size)

template <int kError>
constexpr fi_ops_rma RefuseRma(base::Refusal<kError> refusal) noexcept {
  return {.size = sizeof(fi_ops_rma),
          .read = refusal,
          .readv = refusal,
          .readmsg = refusal,
          .write = refusal,
          .writev = refusal,
          .writemsg = refusal,
          .inject = refusal,
          .writedata = refusal,
          .injectdata = refusal};
}

// Before fi_enable.
inline constexpr fi_ops_rma kDisabledRmaOps = RefuseRma(base::kNotEnabled);

// The table of an enabled endpoint; a direction that it does not have answers
// -FI_EOPNOTSUPP, without either all answer -FI_ENOSYS. `locked`: threads may
// share the endpoint or its queues.
template <typename Model>
fi_ops_rma MakeRmaOps(bool locked, bool reads, bool writes) noexcept {
  fi_ops_rma ops = reads || writes ? RefuseRma(base::kNotOffered)
                                   : RefuseRma(base::kNotImplemented);
  if (reads && locked) {
    RmaOps<Model, backend::Locked>::FillReads(&ops);
  } else if (reads) {
    RmaOps<Model, backend::Unlocked>::FillReads(&ops);
  }
  if (writes && locked) {
    RmaOps<Model, backend::Locked>::FillWrites(&ops);
  } else if (writes) {
    RmaOps<Model, backend::Unlocked>::FillWrites(&ops);
  }
  return ops;
}

}  // namespace heddle::ofi
