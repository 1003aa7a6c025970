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

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvolatile"
// The functions below have the API's parameters.
// NOLINTBEGIN(readability-function-size)
template <typename Model, typename Locking, bool kPlain>
struct RmaOps : TransmitCalls<Model, Locking, kPlain> {
  using Calls = TransmitCalls<Model, Locking, kPlain>;
  using Calls::Post;
  using Calls::TransmitOf;
  using typename Calls::Buffer;
  using typename Calls::Context;
  using typename Calls::Operation;
  using typename Calls::Transmit;

  // Flags of fi_readmsg; a read completes when its data are here, which is
  // what each level asks for.
  static constexpr uint64_t kReadFlags =
      FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
      FI_DELIVERY_COMPLETE | FI_FENCE;

  // A parameter that x86-64 passes on the stack: loaded where it is used, not
  // at once into a register that must be saved first.
#if defined(__x86_64__)
  template <typename T>
  using OnStack = volatile T;
#else
  template <typename T>
  using OnStack = T;
#endif

  // Where in whose memory.
  struct Place {
    fi_addr_t peer;
    uint64_t address;
    uint64_t key;
  };
  static Operation Write(const Transmit& transmit, const Place& place,
                         void* context) noexcept {
    return {.context = FromContext(context),
            .peer = place.peer,
            .flags = Calls::FlagsOf(transmit),
            .copy_now = Calls::CopiesNow(transmit),
            .opcode = backend::Opcode::kWrite,
            .key = place.key,
            .address = place.address};
  }
  // An injected write has no context of its own: its failure is reported with
  // the endpoint's.
  static Operation Injected(fid_ep* handle, const Place& place) noexcept {
    return {.context = FromContext(handle->fid.context),
            .peer = place.peer,
            .flags = Calls::Fenced(TransmitOf(handle), 0),
            .copy_now = true,
            .opcode = backend::Opcode::kWrite,
            .key = place.key,
            .address = place.address};
  }
  static Operation Read(const Transmit& transmit, const Place& place,
                        void* context) noexcept {
    return {.context = FromContext(context),
            .peer = place.peer,
            .flags = static_cast<uint8_t>(
                Calls::FlagsOf(transmit) &
                (backend::kReportSuccess | backend::kFence)),
            .opcode = backend::Opcode::kRead,
            .key = place.key,
            .address = place.address};
  }

  // As in messages: what a shorter way does not take continues in a function of
  // its own.
  [[gnu::flatten]] static ssize_t WriteOne(fid_ep* handle, const void* buffer,
                                           size_t bytes, void* descriptor,
                                           fi_addr_t peer, uint64_t address,
                                           OnStack<uint64_t> key,
                                           OnStack<void*> context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] {
      return Write(transmit, {peer, address, key}, context);
    };
    const Buffer local = {buffer, bytes, descriptor};
    const bool posted =
        bytes > backend::kInjectBytes
            ? !Calls::CopiesNow(transmit) &&
                  Calls::TryRegistered(transmit, peer, make, local)
            : Context::IsShort(bytes) &&
                  Calls::TryShort(transmit, peer, make, local);
    if (posted) [[likely]] {
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
    const auto make = [&] {
      return Write(transmit, {peer, address, key}, context);
    };
    const Buffer local = {buffer, bytes, descriptor};
    return bytes <= backend::kInjectBytes &&
                   Calls::TryMedium(transmit, peer, make, local)
               ? 0
               : Post(transmit, make(), local);
  }

  static ssize_t WriteData(fid_ep* handle, const void* buffer, size_t bytes,
                           void* descriptor, uint64_t data, fi_addr_t peer,
                           uint64_t address, uint64_t key,
                           void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit,
                WithData(Write(transmit, {peer, address, key}, context), data),
                Buffer{buffer, bytes, descriptor});
  }

  [[gnu::flatten]] static ssize_t Inject(fid_ep* handle, const void* buffer,
                                         size_t bytes, fi_addr_t peer,
                                         uint64_t address,
                                         uint64_t key) noexcept {
    const auto make = [&] { return Injected(handle, {peer, address, key}); };
    return Context::IsShort(bytes) && Calls::TryShort(TransmitOf(handle), peer,
                                                      make, {buffer, bytes})
               ? 0
               : InjectAny(handle, buffer, bytes, peer, address, key);
  }

  [[gnu::noinline]] static ssize_t InjectAny(fid_ep* handle, const void* buffer,
                                             size_t bytes, fi_addr_t peer,
                                             uint64_t address,
                                             uint64_t key) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] { return Injected(handle, {peer, address, key}); };
    const Buffer local = {buffer, bytes};
    return bytes <= backend::kInjectBytes &&
                   Calls::TryMedium(transmit, peer, make, local)
               ? 0
               : Post(transmit, make(), local);
  }

  static ssize_t InjectData(fid_ep* handle, const void* buffer, size_t bytes,
                            uint64_t data, fi_addr_t peer, uint64_t address,
                            uint64_t key) noexcept {
    return Post(TransmitOf(handle),
                WithData(Injected(handle, {peer, address, key}), data),
                Buffer{buffer, bytes});
  }

  [[gnu::flatten]] static ssize_t ReadOne(fid_ep* handle, void* buffer,
                                          size_t bytes, void* descriptor,
                                          fi_addr_t peer, uint64_t address,
                                          OnStack<uint64_t> key,
                                          OnStack<void*> context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const auto make = [&] {
      return Read(transmit, {peer, address, key}, context);
    };
    if (bytes != 0 &&
        Calls::TryRegistered(transmit, peer, make, {buffer, bytes, descriptor}))
        [[likely]] {
      return 0;
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
    return Post(transmit, Read(transmit, {peer, address, key}, context),
                Buffer{buffer, bytes, descriptor});
  }

  // fi_writev and fi_readv reach one piece as long as all buffers together.
  static ssize_t WriteVector(fid_ep* handle, const iovec* parts,
                             void** descriptors, size_t count, fi_addr_t peer,
                             uint64_t address, uint64_t key,
                             void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Write(transmit, {peer, address, key}, context),
                backend::Payload{parts, descriptors, count});
  }

  static ssize_t ReadVector(fid_ep* handle, const iovec* parts,
                            void** descriptors, size_t count, fi_addr_t peer,
                            uint64_t address, uint64_t key,
                            void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    return Post(transmit, Read(transmit, {peer, address, key}, context),
                backend::Payload{parts, descriptors, count});
  }

  static ssize_t PostMessage(const Transmit& transmit,
                             const fi_msg_rma& message,
                             const Operation& operation) noexcept {
    if (message.rma_iov_count > backend::kMaxSegments) {
      return -FI_EINVAL;
    }
    std::array<backend::RemoteSegment, backend::kMaxSegments> remote;
    for (size_t i = 0; i < message.rma_iov_count; ++i) {
      remote[i] = {.address = message.rma_iov[i].addr,
                   .key = message.rma_iov[i].key,
                   .bytes = message.rma_iov[i].len};
    }
    return Post(
        transmit, operation,
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
    return PostMessage(
        transmit, *message,
        {.context = FromContext(message->context),
         .data = message->data,
         .peer = message->addr,
         .flags =
             Calls::Fenced(transmit, OperationFlags(flags, transmit.selective)),
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
         .peer = message->addr,
         .flags = Calls::Fenced(
             transmit, OperationFlags(flags & (FI_COMPLETION | FI_FENCE),
                                      transmit.selective)),
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
#pragma GCC diagnostic pop

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

// The table of an enabled handle; a direction that it does not have answers
// -FI_EOPNOTSUPP, without either all answer -FI_ENOSYS.
template <typename Model>
fi_ops_rma MakeRmaOps(const CallTraits& traits) noexcept {
  fi_ops_rma ops = traits.caps.reads || traits.caps.writes
                       ? RefuseRma(base::kNotOffered)
                       : RefuseRma(base::kNotImplemented);
  ChooseCalls(traits.locked, traits.plain_transmit,
              [&]<typename Locking, bool kPlain>() {
                if (traits.caps.reads) {
                  RmaOps<Model, Locking, kPlain>::FillReads(&ops);
                }
                if (traits.caps.writes) {
                  RmaOps<Model, Locking, kPlain>::FillWrites(&ops);
                }
              });
  return ops;
}

}  // namespace heddle::ofi
