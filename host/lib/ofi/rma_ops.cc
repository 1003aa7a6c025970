// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/rma_ops.h"

#include <array>
#include <span>

#include "host/lib/base/refuse.h"
#include "host/lib/ofi/transfer_call.h"
#include "host/lib/ofi/transfer_handle.h"

namespace heddle::ofi {
namespace {

// Flags of fi_readmsg; a read completes when its data are here, which is what
// each level asks for.
constexpr uint64_t kReadFlags = FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE |
                                FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                FI_FENCE;

using nic::kMaxSegments;
using nic::RemoteSegment;
using nic::Segment;
using Transmit = TransferHandle::Transmit;

const Transmit& TransmitOf(fid_ep* handle) noexcept {
  return TransferHandle::From(handle)->transmit();
}

// False for a peer that is not in the address vector.
bool SetPeer(const Transmit& transmit, fi_addr_t peer,
             nic::RmaOperation* operation) noexcept {
  if (!transmit.peers->Contains(peer)) [[unlikely]] {
    return false;
  }
  operation->peer = static_cast<uint32_t>(peer);
  return true;
}

// Whether a call without flags may take its first path.
bool CanSend(const Transmit& transmit, fi_addr_t peer) noexcept {
  return transmit.peers->Contains(peer) && transmit.queue->CanSend();
}

// Precondition: `peer` is in the address vector.
nic::RmaOperation SentTo(fi_addr_t peer, nic::RmaOperation operation) noexcept {
  operation.peer = static_cast<uint32_t>(peer);
  return operation;
}

// What a call without a vector names.
struct OneBuffer {
  const void* buffer;
  size_t bytes;
  const void* descriptor;
};

// The functions below have the API's parameters.
// NOLINTBEGIN(readability-function-size)
template <typename Locking>
struct RmaOps {
  // One buffer and one piece of the peer's memory that no faster way takes.
  [[gnu::noinline]] static ssize_t PostSlow(const Transmit& transmit,
                                            const nic::RmaOperation& operation,
                                            const OneBuffer& one) noexcept {
    const Segment segment = MakeSegment(one.buffer, one.bytes, one.descriptor);
    const RemoteSegment remote = {
        .address = operation.address, .key = operation.key, .bytes = one.bytes};
    return -transmit.queue->PostRma<Locking>(operation, {&segment, 1},
                                             {&remote, 1});
  }

  [[gnu::noinline]] static ssize_t WriteLong(const Transmit& transmit,
                                             const nic::RmaOperation& operation,
                                             const OneBuffer& one) noexcept {
    nic::TxQueue& queue = *transmit.queue;
    if (one.bytes <= contract::kInjectBytes) {
      return -queue.PostInRing<Locking>(operation, one.buffer, one.bytes);
    }
    const Segment segment = MakeSegment(one.buffer, one.bytes, one.descriptor);
    return segment.region != nullptr
               ? -queue.PostRegistered<Locking>(operation, one.buffer,
                                                one.bytes, *segment.region)
               : PostSlow(transmit, operation, one);
  }

  [[gnu::always_inline]] static ssize_t WriteOne(
      const Transmit& transmit, nic::RmaOperation operation, fi_addr_t peer,
      const OneBuffer& one) noexcept {
    if (!SetPeer(transmit, peer, &operation)) [[unlikely]] {
      return -FI_EINVAL;
    }
    if (one.bytes > contract::kInlineBytes) {
      // As in PostOne of messages.
      const nic::RmaOperation copy = operation;
      const OneBuffer buffer = one;
      return WriteLong(transmit, copy, buffer);
    }
    return -transmit.queue->PostInline<Locking>(operation, one.buffer,
                                                one.bytes);
  }

  static nic::RmaOperation Make(const Transmit& transmit, void* context,
                                uint64_t address, uint64_t key) noexcept {
    nic::RmaOperation operation;
    operation.context = FromContext(context);
    operation.flags = transmit.flags;
    operation.copy_now = transmit.copy_now;
    operation.key = key;
    operation.address = address;
    return operation;
  }

  // An injected write has no context of its own: its failure is reported with
  // the endpoint's.
  static nic::RmaOperation MakeInjected(fid_ep* handle, uint64_t address,
                                        uint64_t key) noexcept {
    nic::RmaOperation operation;
    operation.context = FromContext(handle->fid.context);
    operation.flags = 0;
    operation.copy_now = true;
    operation.key = key;
    operation.address = address;
    return operation;
  }

  static nic::RmaOperation MakeRead(const Transmit& transmit, void* context,
                                    uint64_t address, uint64_t key) noexcept {
    nic::RmaOperation operation = Make(transmit, context, address, key);
    operation.opcode = contract::Opcode::kRead;
    operation.flags &= contract::kTxFlagCompletion;
    operation.copy_now = false;
    return operation;
  }

  static void AddData(uint64_t data, nic::RmaOperation* operation) noexcept {
    operation->data = data;
    operation->flags |= contract::kTxFlagHeaderData;
  }

  // As in messages: what the first path does not take goes on in `Any`.
  static ssize_t Write(fid_ep* handle, const void* buffer, size_t bytes,
                       void* descriptor, fi_addr_t peer, uint64_t address,
                       uint64_t key, void* context) noexcept {
    if constexpr (!Locking::kLocks) {
      const Transmit& transmit = TransmitOf(handle);
      if (CanSend(transmit, peer)) [[likely]] {
        if (nic::TxQueue::IsShort(bytes)) {
          transmit.queue->SendInline(
              SentTo(peer, Make(transmit, context, address, key)), buffer,
              bytes);
          return 0;
        }
        const nic::Region* region = MemoryRegion::Only(descriptor);
        if (region != nullptr && bytes > contract::kInjectBytes &&
            bytes <= transmit.most_in_place && region->Covers(buffer, bytes)) {
          transmit.queue->SendRegistered(
              SentTo(peer, Make(transmit, context, address, key)), buffer,
              bytes, *region);
          return 0;
        }
      }
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
    return WriteOne(transmit, Make(transmit, context, address, key), peer,
                    {buffer, bytes, descriptor});
  }

  static ssize_t WriteData(fid_ep* handle, const void* buffer, size_t bytes,
                           void* descriptor, uint64_t data, fi_addr_t peer,
                           uint64_t address, uint64_t key,
                           void* context) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    nic::RmaOperation operation = Make(transmit, context, address, key);
    AddData(data, &operation);
    return WriteOne(transmit, operation, peer, {buffer, bytes, descriptor});
  }

  static ssize_t Inject(fid_ep* handle, const void* buffer, size_t bytes,
                        fi_addr_t peer, uint64_t address,
                        uint64_t key) noexcept {
    if constexpr (!Locking::kLocks) {
      const Transmit& transmit = TransmitOf(handle);
      if (nic::TxQueue::IsShort(bytes) && CanSend(transmit, peer)) [[likely]] {
        transmit.queue->SendInline(
            SentTo(peer, MakeInjected(handle, address, key)), buffer, bytes);
        return 0;
      }
    }
    return InjectAny(handle, buffer, bytes, peer, address, key);
  }

  [[gnu::noinline]] static ssize_t InjectAny(fid_ep* handle, const void* buffer,
                                             size_t bytes, fi_addr_t peer,
                                             uint64_t address,
                                             uint64_t key) noexcept {
    return WriteOne(TransmitOf(handle), MakeInjected(handle, address, key),
                    peer, {buffer, bytes, nullptr});
  }

  static ssize_t InjectData(fid_ep* handle, const void* buffer, size_t bytes,
                            uint64_t data, fi_addr_t peer, uint64_t address,
                            uint64_t key) noexcept {
    nic::RmaOperation operation = MakeInjected(handle, address, key);
    AddData(data, &operation);
    return WriteOne(TransmitOf(handle), operation, peer,
                    {buffer, bytes, nullptr});
  }

  static ssize_t Read(fid_ep* handle, void* buffer, size_t bytes,
                      void* descriptor, fi_addr_t peer, uint64_t address,
                      uint64_t key, void* context) noexcept {
    if constexpr (!Locking::kLocks) {
      const Transmit& transmit = TransmitOf(handle);
      const nic::Region* region = MemoryRegion::Only(descriptor);
      if (region != nullptr && bytes - 1 < contract::kMaxMessageBytes &&
          region->Covers(buffer, bytes) && CanSend(transmit, peer)) [[likely]] {
        transmit.queue->SendRegistered(
            SentTo(peer, MakeRead(transmit, context, address, key)), buffer,
            bytes, *region);
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
    nic::RmaOperation operation = MakeRead(transmit, context, address, key);
    if (!SetPeer(transmit, peer, &operation)) [[unlikely]] {
      return -FI_EINVAL;
    }
    if (bytes == 0) {
      return -transmit.queue->PostInline<Locking>(operation, nullptr, 0);
    }
    const nic::Region* region = MemoryRegion::Find(descriptor, buffer, bytes);
    return region != nullptr
               ? -transmit.queue->PostRegistered<Locking>(operation, buffer,
                                                          bytes, *region)
               : PostSlow(transmit, operation, {buffer, bytes, descriptor});
  }

  // fi_writev and fi_readv reach one piece as long as all buffers together.
  static ssize_t PostVector(const Transmit& transmit,
                            nic::RmaOperation operation, fi_addr_t peer,
                            std::span<const Segment> segments) noexcept {
    if (!SetPeer(transmit, peer, &operation)) {
      return -FI_EINVAL;
    }
    RemoteSegment remote = {.address = operation.address, .key = operation.key};
    for (const Segment& segment : segments) {
      if (segment.bytes > contract::kMaxMessageBytes) {
        return -FI_EMSGSIZE;
      }
      remote.bytes += segment.bytes;
    }
    if (remote.bytes > contract::kMaxMessageBytes) {
      return -FI_EMSGSIZE;
    }
    return -transmit.queue->PostRma<Locking>(operation, segments, {&remote, 1});
  }

  static ssize_t WriteVector(fid_ep* handle, const iovec* parts,
                             void** descriptors, size_t count, fi_addr_t peer,
                             uint64_t address, uint64_t key,
                             void* context) noexcept {
    if (count > kMaxSegments) {
      return -FI_EINVAL;
    }
    const Transmit& transmit = TransmitOf(handle);
    const auto segments = MakeSegments(parts, descriptors, count);
    return PostVector(transmit, Make(transmit, context, address, key), peer,
                      {segments.data(), count});
  }

  static ssize_t ReadVector(fid_ep* handle, const iovec* parts,
                            void** descriptors, size_t count, fi_addr_t peer,
                            uint64_t address, uint64_t key,
                            void* context) noexcept {
    if (count > kMaxSegments) {
      return -FI_EINVAL;
    }
    const Transmit& transmit = TransmitOf(handle);
    const auto segments = MakeSegments(parts, descriptors, count);
    return PostVector(transmit, MakeRead(transmit, context, address, key), peer,
                      {segments.data(), count});
  }

  static ssize_t PostMessage(const Transmit& transmit,
                             const fi_msg_rma& message,
                             nic::RmaOperation operation) noexcept {
    if (message.iov_count > kMaxSegments ||
        message.rma_iov_count > kMaxSegments ||
        !SetPeer(transmit, message.addr, &operation)) {
      return -FI_EINVAL;
    }
    const auto segments =
        MakeSegments(message.msg_iov, message.desc, message.iov_count);
    std::array<RemoteSegment, kMaxSegments> remote;
    for (size_t i = 0; i < message.rma_iov_count; ++i) {
      remote[i] = {.address = message.rma_iov[i].addr,
                   .key = message.rma_iov[i].key,
                   .bytes = message.rma_iov[i].len};
    }
    return -transmit.queue->PostRma<Locking>(
        operation, {segments.data(), message.iov_count},
        {remote.data(), message.rma_iov_count});
  }

  static ssize_t WriteMessage(fid_ep* handle, const fi_msg_rma* message,
                              uint64_t flags) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    if ((flags & ~transmit.message_flags) != 0) {
      return -FI_EOPNOTSUPP;
    }
    nic::RmaOperation operation;
    operation.context = FromContext(message->context);
    operation.data = message->data;
    operation.flags = DescriptorFlags(flags, transmit.selective);
    operation.copy_now = (flags & FI_INJECT) != 0;
    operation.more = (flags & FI_MORE) != 0;
    return PostMessage(transmit, *message, operation);
  }

  static ssize_t ReadMessage(fid_ep* handle, const fi_msg_rma* message,
                             uint64_t flags) noexcept {
    const Transmit& transmit = TransmitOf(handle);
    const uint64_t offered =
        transmit.message_flags | (kReadFlags & ~uint64_t{FI_FENCE});
    if ((flags & ~(kReadFlags & offered)) != 0) {
      return -FI_EOPNOTSUPP;
    }
    nic::RmaOperation operation;
    operation.context = FromContext(message->context);
    operation.opcode = contract::Opcode::kRead;
    operation.flags =
        DescriptorFlags(flags & (FI_COMPLETION | FI_FENCE), transmit.selective);
    operation.more = (flags & FI_MORE) != 0;
    return PostMessage(transmit, *message, operation);
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

template <typename Locking>
fi_ops_rma MakeRma(bool reads, bool writes) noexcept {
  if (!reads && !writes) {
    return RefuseRma(base::kNotImplemented);
  }
  fi_ops_rma ops = RefuseRma(base::kNotOffered);
  if (reads) {
    ops.read = RmaOps<Locking>::Read;
    ops.readv = RmaOps<Locking>::ReadVector;
    ops.readmsg = RmaOps<Locking>::ReadMessage;
  }
  if (writes) {
    ops.write = RmaOps<Locking>::Write;
    ops.writev = RmaOps<Locking>::WriteVector;
    ops.writemsg = RmaOps<Locking>::WriteMessage;
    ops.inject = RmaOps<Locking>::Inject;
    ops.writedata = RmaOps<Locking>::WriteData;
    ops.injectdata = RmaOps<Locking>::InjectData;
  }
  return ops;
}

}  // namespace

const fi_ops_rma disabled_rma_ops = RefuseRma(base::kNotEnabled);

fi_ops_rma MakeRmaOps(bool locked, bool reads, bool writes) noexcept {
  return locked ? MakeRma<nic::Locked>(reads, writes)
                : MakeRma<nic::Unlocked>(reads, writes);
}

}  // namespace heddle::ofi
